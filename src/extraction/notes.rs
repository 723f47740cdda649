//! Notes: memories that rules drew from the unit. The request shows them by number, and the answer judges them.

use crate::model::{Maker, MemoryKind, MemoryRow, Source};
use crate::prompt_injection::looks_like_prompt_injection;
use crate::text::{cut, is_stop_word, words};
use std::collections::HashSet;

/// Maximum notes to show: the latest.
const NOTES: usize = 24;
/// Maximum characters of a note.
const NOTE: usize = 220;

/// What an answer says about notes, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is right as it is.
    Keep,
    /// It is wrong, overtaken, or worth nothing.
    Withdraw,
    /// The observation with this index says it better.
    Corrected(usize),
    /// The answer does not mention it.
    None,
}

/// The memories to show as notes, in order of their numbers, from 1.
pub fn notes(existing: &[MemoryRow]) -> Vec<&MemoryRow> {
    let is_shown = |memory: &&MemoryRow| {
        may_be_superseded(memory) && memory.kind != MemoryKind::Summary && !looks_like_prompt_injection(&line(memory))
    };
    let notes: Vec<&MemoryRow> = existing.iter().filter(is_shown).collect();
    notes[notes.len().saturating_sub(NOTES)..].to_vec()
}

/// A note in one line: type, title, and what it adds.
pub fn line(memory: &MemoryRow) -> String {
    let kind = memory.kind_type.as_deref().filter(|_| memory.kind == MemoryKind::Observation).unwrap_or(memory.kind.name());
    let title = cut(&memory.title, NOTE);
    let reason = ["reasoning", "cause", "solution"].iter().find_map(|name| memory.content.get(*name)?.as_str());
    let more = reason.or(memory.body.as_deref()).or(memory.subtitle.as_deref()).unwrap_or_default();
    let more = more.split_whitespace().collect::<Vec<_>>().join(" ");
    let left = NOTE.saturating_sub(title.chars().count());
    let says_more = left > 40 && !more.is_empty() && !covers_words(&title, &more);
    let more = if says_more { format!(" – {}", cut(&more, left)) } else { String::new() };
    format!("({kind}) {title}{more}")
}

/// Drawn by rules, and untouched since.
pub fn may_be_superseded(memory: &MemoryRow) -> bool {
    memory.made_by == Maker::Rules && !memory.by_hand && !memory.pinned && memory.superseded_by.is_none()
}

/// Whether a text has three in four of the words of a note's title.
pub fn covers_words(text: &str, title: &str) -> bool {
    let meant =
        |text: &str| -> HashSet<String> { words(text).map(str::to_lowercase).filter(|word| !is_stop_word(word)).collect() };
    let (own, text) = (meant(title), meant(text));
    let shared = own.iter().filter(|word| text.contains(*word)).count();
    !own.is_empty() && shared * 4 >= own.len() * 3
}

/// Whether a draft says what a note says that the answer does not mention: most of its words, or half of its tool uses.
pub fn covers(text: &str, sources: &[Source], note: &MemoryRow) -> bool {
    let tools: Vec<&Source> = note.sources.iter().filter(|source| matches!(source, Source::ToolUse(_))).collect();
    let among = tools.iter().filter(|source| sources.contains(source)).count();
    covers_words(text, &note.title) || among > 0 && among * 2 >= tools.len()
}
