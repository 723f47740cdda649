//! The text of the full-text index, and of queries against it: one function with a version.
//!
//! A word with umlauts is also written without them, and a word of a text in a language other than English also by its
//! stem (`languages::spelling`).
//!
//! FTS5's `unicode61` tokenizer splits at `_`, `/`, `-` and `.`. It cannot see the words inside `parseHookInput`, and
//! finds no substring in CJK text, which has no spaces. So identifiers are also written in parts, and CJK runs as
//! bigrams. It also cuts words at vowel signs: words of Indic scripts are written in code letters, runs of South-East Asian
//! ones, which have no spaces either, as bigrams of these.

use crate::languages::{has_stems, spelling, stem_terms};
use crate::text::{is_cjk, split_identifier};
use std::borrow::Cow;
use unicode_normalization::char::is_combining_mark;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// Version of the index text. It must change whenever [`index_text`] changes its output: the index is then rebuilt.
pub const INDEX_TEXT_VERSION: i64 = 4;

/// Maximum bytes of a text that are indexed.
const LIMIT: usize = 8 * 1024;

/// Returns the text to index: all words in order with identifiers split, so phrases match, followed by the whole
/// identifiers, for someone who types `parsehookinput`, and other spellings and stems.
pub fn index_text(text: &str) -> String {
    let text = &*composed(&text[..text.floor_char_boundary(LIMIT)]);
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    let mut whole = String::new();
    let stems = has_stems(text);
    for word in words(text) {
        if has_own_terms(word) {
            own_terms(word).iter().for_each(|term| push(term, &mut out));
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
    for word in words(&composed(word)) {
        if has_own_terms(word) {
            terms.extend(own_terms(word).iter().map(|term| term.to_lowercase()));
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

/// A text as it is searched: composed (NFC), `ё` as `е`, the marks of scripts that are also written without them left
/// out, versions without their `v`.
fn composed(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return without_v(text.into());
    }
    let text = match is_nfc_quick(text.chars()) {
        IsNormalized::Yes => Cow::Borrowed(text),
        _ => Cow::Owned(text.nfc().collect()),
    };
    let is_left_out = |c: char| is_combining_mark(c) && !has_signs(c);
    let text = match text.contains(|c: char| matches!(c, 'ё' | 'Ё') || is_left_out(c)) {
        true => text
            .chars()
            .filter(|c| !is_left_out(*c))
            .map(|c| match c {
                'ё' => 'е',
                'Ё' => 'Е',
                c => c,
            })
            .collect(),
        false => text,
    };
    without_v(text)
}

/// Takes the `v` off versions: `v1.2.3` is also written `1.2.3`.
fn without_v(text: Cow<'_, str>) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let begins_version = |at: &usize| {
        let digits = bytes[at + 1..].iter().take_while(|b| b.is_ascii_digit()).count();
        let after = &bytes[at + 1 + digits..];
        matches!(bytes[*at], b'v' | b'V')
            && digits > 0
            && (*at == 0 || !bytes[at - 1].is_ascii_alphanumeric() && bytes[at - 1].is_ascii())
            && after.first() == Some(&b'.')
            && after.get(1).is_some_and(u8::is_ascii_digit)
    };
    let versions: Vec<usize> = (0..bytes.len()).filter(begins_version).collect();
    if versions.is_empty() {
        return text;
    }
    let keep = |(at, c): (usize, char)| (!versions.contains(&at)).then_some(c);
    Cow::Owned(text.char_indices().filter_map(keep).collect())
}

/// Whether a character belongs to a script whose vowels are signs at a letter: Indic and South-East Asian ones.
fn has_signs(c: char) -> bool {
    matches!(c as u32, 0x0900..=0x0FFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0xA8E0..=0xA8FF | 0xAA60..=0xAA7F)
}

/// Whether a script with signs is written without spaces: Thai, Lao, Burmese, Khmer.
fn has_no_spaces(c: char) -> bool {
    matches!(c as u32, 0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF)
}

/// The runs of letters, digits and signs in a text.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && !is_combining_mark(c)).filter(|word| !word.is_empty())
}

/// Whether FTS5 would not find a word, or parts of it, as it is.
fn has_own_terms(word: &str) -> bool {
    !word.is_ascii() && word.chars().any(|c| is_cjk(c) || has_signs(c))
}

/// The terms of a word in a script that FTS5 does not cut right; other runs in it are terms of their own.
fn own_terms(word: &str) -> Vec<String> {
    let sort = |c: char| (is_cjk(c), has_signs(c) || is_combining_mark(c), has_no_spaces(c));
    let chars: Vec<char> = word.chars().collect();
    let mut terms = Vec::new();
    for run in chars.chunk_by(|a, b| sort(*a) == sort(*b)) {
        match sort(run[0]) {
            (true, ..) if run.len() > 1 => terms.extend(run.windows(2).map(|pair| pair.iter().collect::<String>())),
            (_, true, true) => {
                let letters: Vec<&[char]> = run.chunk_by(|_, next| is_combining_mark(*next)).collect();
                match letters.len() {
                    1 => terms.push(code(run)),
                    _ => terms.extend(letters.windows(2).map(|pair| code(&pair.concat()))),
                }
            }
            (_, true, _) => terms.push(code(run)),
            _ => terms.push(run.iter().collect()),
        }
    }
    terms
}

/// Characters in letters that FTS5 keeps together and does not stem: five of each.
fn code(chars: &[char]) -> String {
    const LETTERS: &[u8; 16] = b"bcdfghjklmnpqrtv";
    let letters = |c: &char| {
        let c = *c as u32;
        (0..5).rev().map(move |at| char::from(LETTERS[(c >> (4 * at)) as usize & 15]))
    };
    chars.iter().flat_map(letters).collect()
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

    #[test]
    fn words_of_the_world_are_found_as_people_write_them() {
        let is_found = |text: &str, word: &str| {
            let indexed: Vec<String> = index_text(text).to_lowercase().split(' ').map(String::from).collect();
            query_terms(word).iter().all(|term| indexed.contains(term))
        };
        for (text, word) in [
            ("Die Datei U\u{308}bersicht.md", "Übersicht"),
            ("Die Datei Übersicht.md", "U\u{308}bersicht"),
            ("Upgrade to v1.2.3 only", "1.2.3"),
            ("stays at 2.0.1", "v2.0.1"),
            ("ещё раз", "еще"),
            ("ระบบค้นหาข้อมูลช้า", "ค้นหา"),
            ("फ़ाइल नहीं मिली", "नहीं"),
            ("שָׁלוֹם", "שלום"),
        ] {
            assert!(is_found(text, word), "{word} in {text}: {:?} in {}", query_terms(word), index_text(text));
        }
        assert!(!is_found("ระบบค้นหาข้อมูลช้า", "ปิด"));
        assert_eq!(index_text("the v8 engine"), "the v8 engine", "no version");
    }

    proptest! {
        #[test]
        fn a_text_is_found_by_each_of_its_words(text in "[a-zA-Z_ 記憶のé0-9vค้นहीё.]{0,60}") {
            let indexed: Vec<String> = index_text(&text).to_lowercase().split(' ').map(str::to_string).collect();
            for term in query_terms(&text) {
                prop_assert!(indexed.contains(&term), "{term} not in {indexed:?}");
            }
        }
    }
}
