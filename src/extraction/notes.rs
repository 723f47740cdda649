//! Notes: memories that rules created from the unit. The request shows them by number, and the answer judges them.

use crate::model::{Maker, MemoryKind, MemoryRow, Source};
use crate::prompt_injection::looks_like_prompt_injection;
use crate::text::{cut, is_stop_word, words};
use std::collections::HashSet;

/// Maximum notes to show: the latest.
const NOTES: usize = 24;
/// Maximum characters of a note.
const NOTE: usize = 220;

/// Verdict of an answer on a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is right as it is.
    Keep,
    /// It is wrong, superseded, or useless.
    Withdraw,
    /// The observation with this index states it better.
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

/// Returns a note in one line: type, title, and additional detail.
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

/// Whether a memory was created by rules and is untouched since.
pub fn may_be_superseded(memory: &MemoryRow) -> bool {
    memory.made_by == Maker::Rules && !memory.by_hand && !memory.pinned && memory.superseded_by.is_none()
}

/// Whether a text has at least three quarters of the words of a note's title.
pub fn covers_words(text: &str, title: &str) -> bool {
    let meant =
        |text: &str| -> HashSet<String> { words(text).map(str::to_lowercase).filter(|word| !is_stop_word(word)).collect() };
    let (own, text) = (meant(title), meant(text));
    let shared = own.iter().filter(|word| text.contains(*word)).count();
    !own.is_empty() && shared * 4 >= own.len() * 3
}

/// Whether a draft repeats a note that the answer does not mention: it has most of its words, or half of its tool uses.
pub fn covers(text: &str, sources: &[Source], note: &MemoryRow) -> bool {
    let tools: Vec<&Source> = note.sources.iter().filter(|source| matches!(source, Source::ToolUse(_))).collect();
    let among = tools.iter().filter(|source| sources.contains(source)).count();
    covers_words(text, &note.title) || among > 0 && among * 2 >= tools.len()
}
