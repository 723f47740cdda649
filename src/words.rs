//! How a written word is cut: identifiers at their humps, CJK recognised. What is done with the parts is others' affair.

/// Cuts `parseHTTPResponse2` into parse, HTTP, Response2: before a capital that follows a small letter or a digit, and
/// before the last capital of a run that a small letter follows.
pub fn humps(word: &str) -> Vec<&str> {
    let chars: Vec<(usize, char)> = word.char_indices().collect();
    let mut parts = Vec::new();
    let mut from = 0;
    for i in 1..chars.len() {
        let (at, c) = chars[i];
        let before = chars[i - 1].1;
        let next_small = chars.get(i + 1).is_some_and(|(_, n)| n.is_lowercase());
        if c.is_uppercase() && (!before.is_uppercase() || next_small) {
            parts.push(&word[from..at]);
            from = at;
        }
    }
    parts.push(&word[from..]);
    parts
}

/// Han, kana and Hangul: the scripts that are written without spaces, or with endings glued on.
pub fn is_cjk(c: char) -> bool {
    matches!(c as u32, 0x3040..=0x30FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xAC00..=0xD7AF | 0xF900..=0xFAFF | 0x20000..=0x3FFFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_cut_at_their_humps() {
        assert_eq!(humps("parseHTTPResponse2"), ["parse", "HTTP", "Response2"]);
        assert_eq!(humps("word"), ["word"]);
    }
}
