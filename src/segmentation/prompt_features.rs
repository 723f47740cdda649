//! Features of a prompt besides its subject: long or terse, a question, a wish, a "yes, go on".

use crate::languages::in_english;
use crate::text::is_cjk;
use serde::{Deserialize, Serialize};

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
}
