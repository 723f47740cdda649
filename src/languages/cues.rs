//! Reads the files of cue words.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

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

const TEXTS: [&str; super::switched_on::LANGUAGES.len()] = [
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

/// Returns the words that mark a text as being in a language. Reads no other line, because this runs in each hook.
pub(super) fn marks(language: usize) -> impl Iterator<Item = &'static str> {
    let list = TEXTS[language].lines().find_map(|line| line.strip_prefix("marks = ")).unwrap_or_default();
    list.split('|').filter(|word| !word.is_empty())
}

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
