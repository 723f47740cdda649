//! Languages other than English (ADR/0056). Files: `detect` (the language of a text, which are enabled, their words in
//! `cues`), `gloss` (cue words in English), `spelling` (stems of a word).

mod detect;
mod gloss;
mod spelling;

pub use detect::{LANGUAGES, MEASURED, switch_on};
pub use gloss::{Gloss, gloss, gloss_of_part, in_english, part_in_english, stop_words_of};
pub use spelling::{has_stems, spelling, stem_terms};

#[cfg(test)]
mod tests {
    use crate::languages::LANGUAGES;
    use crate::languages::detect::Cues;

    #[test]
    fn every_file_can_be_read_and_names_its_words_once() {
        for (at, language) in LANGUAGES.iter().enumerate() {
            let cues = Cues::of(at);
            assert!(cues.english.len() > 100, "{language}: {} cues", cues.english.len());
            assert_eq!(cues.repeated, [] as [&str; 0], "{language}");
        }
    }
}
