//! A text as term counts (a bag of words): a few hundred bytes of hashes that contain none of its words.

use crate::languages;
use crate::text::{is_cjk, split_identifier, words};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Words without meaning for the subject.
const STOP_WORDS: &str = " about above after again against all also and another any are because been before being below between both but \
    can cannot cant could did didnt does doesnt doing dont done down during each else even ever every few for from further get gets \
    getting give goes going gonna good got had has have having her here hers him his how however into isnt its itself just keep know \
    let lets like look looks made make makes making many maybe mean might more most much must need needs new not now off okay old \
    once one only other our ours out over own please put really right same say see seem seems she should show since some something \
    still such sure take tell than thank thanks that thats the their them then there these they thing things think this those though \
    through too try two under until use used using very want wants was way well were what whats when where which while who why will \
    with without wont work would yeah yep yes yet you your yours ";

/// Suffixes to strip, with the minimum number of letters before them.
const ENDINGS: [(&str, usize); 12] = [
    ("ations", 4),
    ("ation", 4),
    ("ings", 3),
    ("ing", 3),
    ("ies", 3),
    ("ied", 3),
    ("edly", 3),
    ("ed", 3),
    ("es", 3),
    ("ly", 4),
    ("er", 4),
    ("s", 3),
];

/// Weight of one occurrence, so that lesser mentions can weigh less.
pub(super) const ONE: u8 = 10;

/// Terms ordered by hash, each with its count in tenths (255 at most). The lowest bit of a hash is set for names
/// (identifiers, paths, issue numbers).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TermCounts(Vec<(u32, u8)>);

impl TermCounts {
    /// Counts the terms of a text, keeping at most `most`.
    pub fn of(text: &str, most: usize) -> TermCounts {
        let mut bag = TermCounts::default();
        bag.add(text, ONE, true, most);
        bag
    }

    /// Adds a text. Each term adds `weight`, once or, if `repeated`, per occurrence.
    pub fn add(&mut self, text: &str, weight: u8, repeated: bool, most: usize) {
        let mut counts: BTreeMap<u32, u8> = BTreeMap::new();
        let is_stop_word = languages::stop_words_of(text);
        for term in stems(text, &is_stop_word).chain(names(text)) {
            let count = counts.entry(term).or_default();
            *count = if repeated { count.saturating_add(weight) } else { weight };
        }
        self.join(&TermCounts(counts.into_iter().collect()), most);
    }

    /// Adds other counts.
    pub(super) fn join(&mut self, other: &TermCounts, most: usize) {
        for (term, count) in &other.0 {
            match self.0.binary_search_by_key(term, |t| t.0) {
                Ok(at) => self.0[at].1 = self.0[at].1.saturating_add(*count),
                Err(at) => self.0.insert(at, (*term, *count)),
            }
        }
        self.shorten(most);
    }

    /// Drops the rarest terms down to `most`, once there are half as many again, so that new terms have a chance.
    fn shorten(&mut self, most: usize) {
        if self.0.len() > most + most / 2 {
            self.0.sort_by_key(|(term, count)| (std::cmp::Reverse(*count), *term));
            self.0.truncate(most);
            self.0.sort_by_key(|t| t.0);
        }
    }

    /// Terms with their counts in tenths, by hash.
    pub(super) fn terms(&self) -> &[(u32, u8)] {
        &self.0
    }

    /// Whether the terms are sorted.
    pub(super) fn is_sound(&self) -> bool {
        self.0.is_sorted_by(|a, b| a.0 < b.0)
    }

    /// Number of plain words.
    pub fn word_count(&self) -> usize {
        self.0.iter().filter(|(term, _)| !is_name(*term)).count()
    }
}

/// Whether a term is a name.
pub(super) fn is_name(term: u32) -> bool {
    term & 1 == 1
}

/// FNV-1a, 32 bits: <http://www.isthe.com/chongo/tech/comp/fnv/>.
pub(super) fn hash(word: &str) -> u32 {
    word.bytes().fold(2_166_136_261, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(16_777_619))
}

/// The lower-case words of a text, identifiers split, without stop words and suffixes.
fn stems<'a>(text: &'a str, is_stop_word: &'a dyn Fn(&str) -> bool) -> impl Iterator<Item = u32> + 'a {
    words(text).flat_map(parts).filter_map(|part| {
        let word = part.to_lowercase();
        let means = word.len() >= 3
            && !word.bytes().all(|b| b.is_ascii_digit())
            && !STOP_WORDS.contains(&format!(" {word} "))
            && !is_stop_word(&word);
        means.then(|| hash(stem(&word)) & !1)
    })
}

/// Splits an identifier into words, and text without spaces into bigrams.
fn parts(word: &str) -> Vec<&str> {
    if !word.chars().any(is_cjk) {
        return split_identifier(word);
    }
    let starts: Vec<usize> = word.char_indices().map(|(at, _)| at).chain([word.len()]).collect();
    if starts.len() < 4 { vec![word] } else { starts.windows(3).map(|pair| &word[pair[0]..pair[2]]).collect() }
}

/// Strips an English suffix, roughly: both forms of a word must become equal.
fn stem(word: &str) -> &str {
    if !word.is_ascii() || word.len() < 5 {
        return word;
    }
    for (ending, left) in ENDINGS {
        let Some(rest) = word.strip_suffix(ending).filter(|rest| rest.len() >= left) else { continue };
        if ending == "s" && rest.ends_with('s') {
            return word;
        }
        let bytes = rest.as_bytes();
        let doubled = bytes.len() >= 4 && bytes[bytes.len() - 1] == bytes[bytes.len() - 2];
        let doubled = doubled && !b"lsz".contains(&bytes[bytes.len() - 1]);
        return rest[..rest.len() - usize::from(doubled)].trim_end_matches('e');
    }
    word.trim_end_matches('e')
}

/// Returns identifiers, file names and issue numbers: anything with a separator, mixed case or digits. Only the last
/// part of a path counts.
fn names(text: &str) -> impl Iterator<Item = u32> {
    let cuts = |c: char| c.is_whitespace() || "()[]{}<>\"'`,;:!?=|*".contains(c);
    text.split(cuts).filter_map(|word| {
        let word = word.trim_matches(|c: char| ".-/@&$~\\".contains(c));
        if !(4..=120).contains(&word.len()) {
            return None;
        }
        let digits = word.bytes().filter(u8::is_ascii_digit).count();
        let separated = word.contains(['/', '_', '.', '#']);
        let humped = split_identifier(word).len() > 1 && word.chars().any(char::is_lowercase);
        let issue = word.contains('-') && digits > 0 && word.bytes().any(|b| b.is_ascii_alphabetic());
        if !(separated || humped || issue) || digits * 2 > word.len() {
            return None;
        }
        let last = word.rsplit('/').next().unwrap_or(word).trim_matches(|c: char| !c.is_alphanumeric());
        (last.len() >= 3).then(|| hash(&last.to_lowercase()) | 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(a: &str, b: &str) -> bool {
        TermCounts::of(a, 50) == TermCounts::of(b, 50)
    }

    #[test]
    fn forms_of_a_word_are_one_term_and_identifiers_are_read_in_parts() {
        assert!(same("migration scripts", "migrations script"));
        assert!(same("it is running and they run", "run running"));
        assert_eq!(TermCounts::of("the and with", 50), TermCounts::default());
        let camel = TermCounts::of("parseHookInput", 50);
        assert_eq!(camel.word_count(), 3);
        assert_eq!(camel.terms().len(), 4, "and the name itself");
        assert_eq!(TermCounts::of("修复登录页面的错误", 50).word_count(), 8, "pairs of characters");
    }

    #[test]
    fn of_many_terms_the_frequent_ones_stay() {
        let mut bag = TermCounts::of("kept kept kept", 4);
        for word in ["alpha", "bravo", "charly", "delta", "foxtrot", "golfing", "hotel"] {
            bag.add(word, ONE, true, 4);
        }
        assert!(bag.terms().len() <= 6);
        assert!(bag.terms().iter().any(|(term, _)| *term == hash("kept") & !1));
    }
}
