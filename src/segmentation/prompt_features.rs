//! Features of a prompt's text, and counts of hashed terms.

use crate::languages::{Language, in_english};
use crate::text::{is_cjk, split_identifier, words};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Words with which a person continues the current work.
const CONTINUING: &[&str] = &[
    "yes", "yeah", "yep", "ok", "okay", "sure", "go", "continue", "proceed", "no", "stop", "do", "please", "great", "perfect",
    "thanks", "nice", "right", "exactly", "correct", "y", "option", "both", "commit", "push", "1", "2", "3", "a", "b", "c", "it",
];
/// Words that answer or agree.
const ANSWERING: &[&str] = &[
    "yes", "yeah", "yep", "ok", "okay", "sure", "go", "continue", "proceed", "no", "great", "perfect", "thanks", "nice", "right",
    "exactly", "correct", "y", "both", "do", "commit", "push",
];
/// Words that change the subject, among the first twelve.
const SHIFTING: &[&str] = &[
    "now",
    "next",
    "another",
    "new",
    "different",
    "moving",
    "move",
    "separate",
    "separately",
    "back",
    "instead",
    "switch",
    "let's",
    "lets",
    "also",
    "first",
    "question",
    "q:",
    "follow",
];
/// The same among the first five, where they carry more weight.
const OPENING: &[&str] =
    &["now", "next", "question", "q", "another", "different", "new", "time", "first", "quick", "looking", "back"];
/// Chores that follow work rather than replace it.
const CHORES: &[&str] =
    &["test", "tests", "lint", "commit", "push", "docs", "fmt", "format", "rebase", "merge", "pr", "readme", "changelog", "ci"];
/// Imperative verbs.
const ORDERING: &[&str] = &[
    "add",
    "implement",
    "create",
    "write",
    "update",
    "review",
    "fix",
    "investigate",
    "look",
    "check",
    "build",
    "make",
    "refactor",
    "rename",
    "remove",
    "explain",
    "find",
    "show",
    "help",
    "rebase",
    "merge",
    "improve",
    "change",
    "move",
    "run",
    "design",
    "plan",
    "analyze",
    "clean",
    "test",
    "use",
    "set",
    "read",
];
/// Phrases with which a person expresses a wish.
const WISHES: &[&str] = &["i'd like", "i want", "i would like", "let's", "lets", "i need"];

/// Features of a prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptFeatures {
    /// Number of words, separated by blanks.
    pub words: u16,
    /// Number of words about the subject.
    pub content_words: u16,
    /// It begins like a continuation.
    pub continues: bool,
    /// A few words that answer or agree.
    pub answers: bool,
    pub shift_words: u8,
    pub opens: bool,
    pub chore: bool,
    pub orders: bool,
    pub wishes: bool,
    /// It ends in a question mark.
    pub question: bool,
    /// It begins with one of the agent's commands (`/review`), which names the work however short it is.
    pub command: bool,
}

impl PromptFeatures {
    pub(super) fn of(text: &str, content_words: usize) -> PromptFeatures {
        let english = in_english(text);
        let lower = english.to_lowercase();
        let strip = |word: &'_ str| -> String { word.trim_matches(|c: char| ",.!?)(\"'".contains(c)).to_string() };
        let words: Vec<String> = lower.split_whitespace().map(strip).collect();
        // In scripts without spaces, two characters count as a word.
        let count = text.split_whitespace().count() + text.chars().filter(|c| is_cjk(*c)).count() / 2;
        let first = words.first().map_or("", String::as_str);
        let among = |list: &[&str], most: usize| words.iter().take(most).filter(|w| list.contains(&w.as_str())).count();
        let begin = words.iter().take(8).map(String::as_str).collect::<Vec<_>>().join(" ");
        PromptFeatures {
            words: count.min(u16::MAX.into()) as u16,
            content_words: content_words as u16,
            continues: CONTINUING.contains(&first),
            answers: count <= 6 && (ANSWERING.contains(&first) || first.starts_with("option") || first.chars().count() == 1),
            shift_words: among(SHIFTING, 12).min(255) as u8,
            opens: among(OPENING, 5) > 0,
            chore: count < 10 && among(CHORES, 10) > 0,
            orders: among(ORDERING, 6) > 0,
            wishes: WISHES.iter().any(|wish| begin.contains(wish)),
            question: english.trim_end().ends_with('?'),
            command: text.trim_start().starts_with('/'),
        }
    }
}

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
        let language = Language::of(text);
        for term in stems(text, language).chain(names(text)) {
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
fn stems<'a>(text: &'a str, language: Language) -> impl Iterator<Item = u32> + 'a {
    words(text).flat_map(parts).filter_map(move |part| {
        let word = part.to_lowercase();
        let means = word.len() >= 3
            && !word.bytes().all(|b| b.is_ascii_digit())
            && !STOP_WORDS.contains(&format!(" {word} "))
            && !language.is_stop_word(&word);
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

    #[test]
    fn a_prompt_goes_on_or_opens_something() {
        let yes = PromptFeatures::of("yes, do it", 0);
        assert!(yes.continues && yes.answers && !yes.opens);
        let next = PromptFeatures::of("Question: where does the exporter get its author from?", 3);
        assert!(next.question && !next.continues);
        assert!(PromptFeatures::of("I'd like to add a flag", 2).wishes);
        assert!(PromptFeatures::of("commit this and push", 2).chore);
        assert!(PromptFeatures::of("/review", 1).command);
        let german = PromptFeatures::of("Ja, mach weiter", 0);
        assert!(german.continues && german.answers && !german.opens);
        assert!(PromptFeatures::of("ich hätte gern ein Flag dafür", 3).wishes);
        let chinese = PromptFeatures::of("接下来给导出加个测试？", 4);
        assert!(chinese.opens && chinese.question);
        assert!(PromptFeatures::of("日本語のパーサーのバグを直してください", 12).words > 6);
    }

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
