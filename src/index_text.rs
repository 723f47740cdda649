//! The text of the full-text index, and of queries against it: one function with a version.
//!
//! A word with umlauts is also written without them, and a word of a text in a language other than English also by its
//! stem (`languages::spelling`).
//!
//! FTS5's `unicode61` tokenizer splits at `_`, `/`, `-` and `.`. It cannot see the words inside `parseHookInput`, and
//! finds no substring in CJK text, which has no spaces. So identifiers are also written in parts, and CJK runs as
//! bigrams.

use crate::languages::{has_stems, spelling, stem_terms};
use crate::text::{is_cjk, split_identifier, words};

/// Version of the index text. It must change whenever [`index_text`] changes its output: the index is then rebuilt.
pub const INDEX_TEXT_VERSION: i64 = 3;

/// Maximum bytes of a text that are indexed.
const LIMIT: usize = 8 * 1024;

/// Returns the text to index: all words in order with identifiers split, so phrases match, followed by the whole
/// identifiers, for someone who types `parsehookinput`, and other spellings and stems.
pub fn index_text(text: &str) -> String {
    let text = &text[..(0..=LIMIT.min(text.len())).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0)];
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    let mut whole = String::new();
    let stems = has_stems(text);
    for word in words(text) {
        if word.chars().any(is_cjk) {
            cjk(word, &mut out);
            continue;
        }
        let parts = split_identifier(word);
        if parts.len() > 1 {
            push(word, &mut whole);
        }
        parts.iter().for_each(|part| push(part, &mut out));
        if let Some(spelling) = spelling(word) {
            push(&spelling, &mut whole);
        }
        if stems {
            stem_terms(word).iter().for_each(|stem| push(stem, &mut whole));
        }
    }
    if !whole.is_empty() {
        push(&whole, &mut out);
    }
    out
}

/// Returns the terms for a word of a query; a text must contain all of them. `parseHookInput` becomes its parts, which
/// the index holds for every spelling of it.
pub fn query_terms(word: &str) -> Vec<String> {
    let mut terms = Vec::new();
    for word in words(word) {
        if word.chars().any(is_cjk) {
            let mut bigrams = String::new();
            cjk(word, &mut bigrams);
            terms.extend(bigrams.split_whitespace().map(str::to_lowercase));
        } else {
            terms.extend(split_identifier(word).iter().map(|part| part.to_lowercase()));
        }
    }
    terms
}

fn push(word: &str, out: &mut String) {
    if !out.is_empty() {
        out.push(' ');
    }
    out.push_str(word);
}

fn cjk(word: &str, out: &mut String) {
    let chars: Vec<char> = word.chars().collect();
    for run in chars.chunk_by(|a, b| is_cjk(*a) == is_cjk(*b)) {
        if is_cjk(run[0]) && run.len() > 1 {
            run.windows(2).for_each(|pair| push(&pair.iter().collect::<String>(), out));
        } else {
            push(&run.iter().collect::<String>(), out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn identifiers_stand_whole_and_in_parts() {
        assert_eq!(index_text("fn parseHookInput(x)"), "fn parse Hook Input x parseHookInput");
        assert_eq!(index_text("parse_hook_input"), "parse hook input");
        assert_eq!(index_text("HTTPServer2 src/my-file.rs"), "HTTP Server2 src my file rs HTTPServer2");
    }

    #[test]
    fn umlauts_and_stems_stand_beside_their_words() {
        assert!(index_text("Zürich").starts_with("Zürich zuerich"));
        let text = index_text("die Einstellungen für den Export");
        assert!(stem_terms("Einstellung").iter().any(|stem| text.contains(stem.as_str())), "{text}");
        assert!(!index_text("the settings of the export").contains("qstem"), "English has the stemmer of the index");
    }

    #[test]
    fn cjk_runs_become_bigrams() {
        assert_eq!(index_text("記憶喪失のbug"), "記憶 憶喪 喪失 失の bug");
        assert_eq!(query_terms("喪失"), ["喪失"]);
    }

    #[test]
    fn every_way_of_writing_an_identifier_gives_the_same_terms() {
        let terms = ["parse", "hook", "input"];
        for word in ["parseHookInput", "parse_hook_input", "ParseHookInput", "parse-hook-input"] {
            assert_eq!(query_terms(word), terms);
        }
    }

    proptest! {
        #[test]
        fn a_text_is_found_by_each_of_its_words(text in "[a-zA-Z_ 記憶のé0-9]{0,60}") {
            let indexed: Vec<String> = index_text(&text).to_lowercase().split(' ').map(str::to_string).collect();
            for term in query_terms(&text) {
                prop_assert!(indexed.contains(&term), "{term} not in {indexed:?}");
            }
        }
    }
}
