//! Cue words of languages other than English.
//!
//! Rules know English words: "because", "instead of", "tests pass". One file per language (`cues/`) lists the words of
//! that language for each of them, and [`gloss()`] replaces them with the English ones, so that one set of rules reads
//! all languages. Memories always quote the original. The language is detected from the text itself; English text is
//! never changed.
//!
//! Read in this order: `switched_on` (the supported languages); `cues` (the files of that folder); `detect`; `gloss`;
//! `spelling` (stems and umlauts for the search index).

mod cues;
mod detect;
mod gloss;
mod spelling;
mod switched_on;

pub use gloss::{Gloss, gloss, gloss_of_part, in_english, part_in_english, stop_words_of};
pub use spelling::{has_stems, spelling, stem_terms};
pub use switched_on::{LANGUAGES, MEASURED, switch_on};

#[cfg(test)]
mod tests {
    use super::LANGUAGES;
    use super::cues::Cues;

    #[test]
    fn every_file_can_be_read_and_names_its_words_once() {
        for (at, language) in LANGUAGES.iter().enumerate() {
            let cues = Cues::of(at);
            assert!(cues.english.len() > 100, "{language}: {} cues", cues.english.len());
            assert_eq!(cues.repeated, [] as [&str; 0], "{language}");
        }
    }
}
