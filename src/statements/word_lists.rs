//! Lists of words by which rules know what a sentence is. A list is one text, its entries parted by `|`.

/// A list of words.
pub type Words = &'static str;

/// Whether a word is in a list.
pub fn is_one_of(list: Words, word: &str) -> bool {
    list.split('|').any(|entry| entry == word)
}

/// Whether a text begins with an entry of a list, as a whole word.
pub fn begins_with(list: Words, text: &str) -> bool {
    list.split('|').any(|entry| {
        text.strip_prefix(entry).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric) || entry.ends_with(' '))
    })
}

/// Whether an entry of a list stands anywhere in a text.
pub fn holds(list: Words, text: &str) -> bool {
    list.split('|').any(|entry| text.contains(entry))
}

/// The first word of a text, in small letters.
pub fn first_word(text: &str) -> String {
    let word = text.split(|c: char| !c.is_alphanumeric() && c != '\'').find(|word| !word.is_empty());
    word.unwrap_or_default().to_lowercase()
}
