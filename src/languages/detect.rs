//! Detects the language of a text by its function words, if that language is enabled. Words: `cues/*.txt`.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU8, Ordering};

/// Maximum words of a text that are examined.
const WORDS: usize = 80;
/// Upper bound of the bytes of a mark: longer words are not looked up.
const LONGEST: usize = 16;
/// Number of English marks that is enough to call a text English, if it has no other marks.
const ENOUGH: usize = 4;
/// Maximum words of a text that needs only one mark; a longer text needs two.
const SHORT: usize = 5;
const GERMAN: usize = 0;
const CHINESE: usize = 1;
const JAPANESE: usize = 5;
/// The bit of English in a mark's languages.
const ENGLISH: u8 = 1 << LANGUAGES.len();
/// Words that mark a text as English.
const ENGLISH_MARKS: &str = "the|and|is|are|was|were|this|that|these|those|with|for|from|have|has|had|not|but|you|your|we|it|its|i|of|to|in|on|at|an|as|be|been|will|would|should|can|could|do|does|did|when|where|why|how|what|which|there|then|now|so|if|or|all|also|just|let|please|yes|no|add|fix|make|use|go";

/// A word by which texts in some languages are known.
#[derive(Clone, Copy)]
struct Mark {
    word: &'static [u8],
    /// One bit for each language; 0 in a free slot.
    languages: u8,
}

/// Slots of the table of marks: a power of two, at least twice the number of marks.
const SLOTS: usize = 1024;

/// All marks, each at the slot of its hash or in the next free one. The compiler makes it: prompts and the ends of
/// turns need it, each for some words.
static MARKS: [Mark; SLOTS] = {
    let mut table = [Mark { word: b"", languages: 0 }; SLOTS];
    add_marks(&mut table, ENGLISH_MARKS.as_bytes(), ENGLISH);
    let mut language = 0;
    while language < TEXTS.len() {
        add_marks(&mut table, marks_of(TEXTS[language].as_bytes()), 1 << language);
        language += 1;
    }
    table
};

const fn add_marks(table: &mut [Mark; SLOTS], words: &'static [u8], language: u8) {
    let (mut rest, mut length) = (words, 0);
    while !rest.is_empty() {
        if length < rest.len() && rest[length] != b'|' {
            length += 1;
            continue;
        }
        let (word, behind) = rest.split_at(length);
        assert!(!word.is_empty() && word.len() <= LONGEST);
        let slot = slot_of(table, word);
        table[slot] = Mark { word, languages: table[slot].languages | language };
        rest = if behind.is_empty() { behind } else { behind.split_at(1).1 };
        length = 0;
    }
}

/// Returns the slot of a word, or the free one where it would be.
const fn slot_of(table: &[Mark; SLOTS], word: &[u8]) -> usize {
    // FNV-1a, 32 bits.
    let (mut hash, mut at) = (0x811c_9dc5_u32, 0);
    while at < word.len() {
        hash = (hash ^ word[at] as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    let mut slot = (hash ^ hash >> 15) as usize % SLOTS;
    while table[slot].languages != 0 && !is_same(table[slot].word, word) {
        slot = (slot + 1) % SLOTS;
    }
    slot
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

/// Returns the words that mark a text as being in a language, from the text of its file.
const fn marks_of(text: &'static [u8]) -> &'static [u8] {
    const KEY: &[u8] = b"\nmarks = ";
    let mut at = 0;
    while at + KEY.len() < text.len() {
        let behind = text.split_at(at).1;
        if is_same(behind.split_at(KEY.len()).0, KEY) {
            let words = behind.split_at(KEY.len()).1;
            let mut end = 0;
            while end < words.len() && words[end] != b'\n' {
                end += 1;
            }
            return words.split_at(end).0;
        }
        at += 1;
    }
    b""
}

/// Returns the languages that a word in small letters marks.
fn languages_of(word: &str) -> u8 {
    MARKS[slot_of(&MARKS, word.as_bytes())].languages
}

/// Returns the language of a text, among those that are on; `None` for English or if there is too little evidence.
pub(super) fn of(text: &str) -> Option<usize> {
    among(text, &is_on)
}

/// Whether a word of a text marks it as English, and no other language.
pub(super) fn has_english_mark(text: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '\'').any(|word| languages_of(&word.to_lowercase()) == ENGLISH)
}

/// Returns the language of a text, among those that `is_known` accepts.
pub(super) fn among(text: &str, is_known: &dyn Fn(usize) -> bool) -> Option<usize> {
    if let Some(language) = by_script(text) {
        return Some(language).filter(|language| is_known(*language));
    }
    let mut counts = [0; LANGUAGES.len() + 1];
    let mut words = 0;
    let mut lower = String::with_capacity(LONGEST);
    for word in text.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty()).take(WORDS) {
        words += 1;
        if word.len() > LONGEST {
            continue;
        }
        lower.clear();
        if word.is_ascii() {
            lower.push_str(word);
            lower.make_ascii_lowercase();
        } else {
            lower.extend(word.chars().flat_map(char::to_lowercase));
        }
        let languages = languages_of(&lower);
        if languages == 0 {
            // An umlaut counts as much as a German word.
            counts[GERMAN] += usize::from(!word.is_ascii() && lower.contains(['ä', 'ö', 'ü', 'ß']));
            continue;
        }
        for (language, count) in counts.iter_mut().enumerate() {
            *count += usize::from(languages >> language & 1);
        }
        if counts[LANGUAGES.len()] == ENOUGH && counts[..LANGUAGES.len()].iter().all(|count| *count == 0) {
            return None;
        }
    }
    let best =
        (0..LANGUAGES.len()).filter(|language| is_known(*language)).max_by_key(|at| (counts[*at], LANGUAGES.len() - at))?;
    let least = if words <= SHORT { 1 } else { 2 };
    (counts[best] >= least && counts[best] > counts[LANGUAGES.len()]).then_some(best)
}

/// Detects a language by its script: Han characters without kana are Chinese, with kana Japanese.
fn by_script(text: &str) -> Option<usize> {
    if text.is_ascii() {
        return None;
    }
    let is_kana = |c: char| matches!(c as u32, 0x3040..=0x30FF);
    let is_han = |c: char| matches!(c as u32, 0x3400..=0x4DBF | 0x4E00..=0x9FFF);
    match (text.chars().any(is_kana), text.chars().any(is_han)) {
        (true, _) => Some(JAPANESE),
        (false, true) => Some(CHINESE),
        _ => None,
    }
}

/// All supported languages except English, in the order of their bits.
pub const LANGUAGES: [&str; 6] = ["de", "zh", "es", "fr", "pt", "ja"];
/// Languages that have been measured; the others are off unless the configuration names them.
pub const MEASURED: [&str; 3] = ["en", "de", "zh"];

/// One bit per language that is on. A process has one configuration.
static ON: AtomicU8 = AtomicU8::new(0b11);

/// Switches languages on by their tags, and all others off.
pub fn switch_on(tags: &[String]) {
    let bits = (0..LANGUAGES.len()).filter(|at| tags.iter().any(|tag| tag == LANGUAGES[*at])).fold(0, |bits, at| bits | 1 << at);
    ON.store(bits, Ordering::Relaxed);
}

/// Whether a language is on.
pub(super) fn is_on(language: usize) -> bool {
    ON.load(Ordering::Relaxed) & (1 << language) != 0
}

/// The cue words of one language.
#[derive(Debug, Default)]
pub(super) struct Cues {
    /// Stop words, which have no subject.
    pub stop: HashSet<&'static str>,
    /// English words that rules know, by the cues of this language.
    pub english: HashMap<&'static str, &'static str>,
    /// Length of the longest cue, in words or, in a script without spaces, in characters.
    pub longest: usize,
    /// Cues that occur twice in the file.
    pub repeated: Vec<&'static str>,
}

const TEXTS: [&str; LANGUAGES.len()] = [
    include_str!("cues/de.txt"),
    include_str!("cues/zh.txt"),
    include_str!("cues/es.txt"),
    include_str!("cues/fr.txt"),
    include_str!("cues/pt.txt"),
    include_str!("cues/ja.txt"),
];

static FILES: [LazyLock<Cues>; TEXTS.len()] = [
    LazyLock::new(|| read(TEXTS[0])),
    LazyLock::new(|| read(TEXTS[1])),
    LazyLock::new(|| read(TEXTS[2])),
    LazyLock::new(|| read(TEXTS[3])),
    LazyLock::new(|| read(TEXTS[4])),
    LazyLock::new(|| read(TEXTS[5])),
];

impl Cues {
    pub(super) fn of(language: usize) -> &'static Cues {
        &FILES[language]
    }
}

/// Parses a file of cues: `english = cue|cue`, one per line; `#` begins a comment.
fn read(text: &'static str) -> Cues {
    let mut cues = Cues::default();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    for (english, list) in lines.filter_map(|line| line.split_once('=')) {
        let words = list.trim().split('|').map(str::trim).filter(|word| !word.is_empty());
        match english.trim() {
            "marks" => {}
            "stop" => cues.stop.extend(words),
            english => {
                for word in words {
                    if cues.english.insert(word, english).is_some() {
                        cues.repeated.push(word);
                    }
                    let size = word.chars().any(crate::text::is_cjk).then(|| word.chars().count());
                    cues.longest = cues.longest.max(size.unwrap_or_else(|| word.split(' ').count()));
                }
            }
        }
    }
    cues
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mark_of_a_file_is_in_the_table() {
        for (language, text) in TEXTS.iter().enumerate() {
            let list = text.lines().find_map(|line| line.strip_prefix("marks = ")).unwrap_or_default();
            for word in list.split('|').filter(|word| !word.is_empty()) {
                assert_ne!(languages_of(word) & 1 << language, 0, "{word}");
            }
        }
        assert_eq!(languages_of("the"), ENGLISH);
        assert_eq!(languages_of("deadlock"), 0);
    }

    #[test]
    fn a_text_says_which_language_it_is_in() {
        for (text, language) in [
            ("kannst du bitte den Export reparieren", Some("de")),
            ("mach weiter", Some("de")),
            ("Nie direkt auf main pushen", Some("de")),
            ("加一个测试", Some("zh")),
            ("the exporter breaks rows with commas, fix it", None),
            ("yes", None),
            ("die when the server was gone", None),
            ("git push --force", None),
            ("a mit-licensed der file", None),
            ("arregla el exportador, por favor", None),
            ("", None),
        ] {
            assert_eq!(of(text).map(|language| LANGUAGES[language]), language, "{text}");
        }
    }
}
