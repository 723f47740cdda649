//! Languages other than English (ADR/0056). Files: `detect` (the language of a text, which are enabled, their words in
//! `cues`), `gloss` (cue words in English); here: other spellings and stems of a word, for the search index.
//!
//! `Zürich` is also found as `Zuerich`, and German and Romance words by their stems. Stems are separate terms with a
//! prefix, so that no English word matches them.

mod detect;
mod gloss;

pub use detect::{LANGUAGES, MEASURED, switch_on};
pub use gloss::{Gloss, Language, gloss, in_english};

/// Prefix of a stem in the index; no word begins with it.
const STEM: &str = "qstem";
/// Minimum letters that remain of a word.
const LEAST: usize = 4;
/// Suffixes of German and Romance words, the longest first. They are cut from both text and query, so that a wrong cut
/// does no harm as long as it is the same in both.
const GERMAN: [&str; 16] =
    ["ungen", "heiten", "keiten", "ung", "heit", "keit", "isch", "ern", "em", "en", "er", "es", "st", "e", "n", "s"];
const ROMANCE: [&str; 26] = [
    "aciones", "ações", "ations", "ación", "ação", "ation", "mente", "ement", "ements", "idades", "idade", "idad", "ités", "ité",
    "eurs", "eur", "ées", "és", "ée", "es", "os", "as", "e", "a", "o", "s",
];

/// Whether the words of a text are also indexed by their stems: its language is not English and has suffixes. Stems do
/// no harm, so this does not depend on which languages are on.
pub fn has_stems(text: &str) -> bool {
    detect::among(text, &|_| true).is_some_and(|language| !matches!(detect::LANGUAGES[language], "zh" | "ja"))
}

/// Returns a word in lower case, as written without umlauts: `zuerich`; `None` if it has none.
pub fn spelling(word: &str) -> Option<String> {
    if word.is_ascii() || !word.contains(['ä', 'ö', 'ü', 'ß', 'Ä', 'Ö', 'Ü', 'ẞ']) {
        return None;
    }
    let mut out = String::with_capacity(word.len() + 2);
    for c in word.chars().flat_map(char::to_lowercase) {
        match c {
            'ä' => out += "ae",
            'ö' => out += "oe",
            'ü' => out += "ue",
            'ß' => out += "ss",
            c => out.push(c),
        }
    }
    Some(out)
}

/// Returns the prefixed stems of a word, one per language family; empty for words that are too short.
pub fn stem_terms(word: &str) -> Vec<String> {
    let lower = word.to_lowercase();
    if lower.chars().count() < LEAST + 1 || !lower.chars().all(char::is_alphabetic) {
        return Vec::new();
    }
    let plain = spelling(&lower).unwrap_or(lower);
    let stem = |endings: &[&str]| {
        let cut = endings.iter().filter_map(|ending| plain.strip_suffix(ending)).find(|rest| rest.chars().count() >= LEAST);
        // A second suffix: `Einstellungen` is `Einstellung` and `en`.
        cut.unwrap_or(&plain).to_string()
    };
    let mut terms = vec![format!("{STEM}d{}", stem(&GERMAN)), format!("{STEM}r{}", stem(&ROMANCE))];
    terms.dedup();
    terms
}

#[cfg(test)]
mod tests {
    use super::{spelling, stem_terms};
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

    #[test]
    fn words_of_one_stem_share_a_term() {
        for (a, b) in [
            ("Einstellung", "Einstellungen"),
            ("Fehler", "Fehlern"),
            ("größer", "groesser"),
            ("décision", "décisions"),
            ("configuración", "configuraciones"),
            ("modification", "modifications"),
        ] {
            assert!(
                stem_terms(a).iter().any(|term| stem_terms(b).contains(term)),
                "{a}: {:?} {:?}",
                stem_terms(a),
                stem_terms(b)
            );
        }
        assert_eq!(stem_terms("das"), [] as [&str; 0]);
        assert_eq!(spelling("Zürich").as_deref(), Some("zuerich"));
        assert_eq!(spelling("Zuerich"), None);
    }
}
