//! Decisions as Markdown, for a file with general instructions such as `AGENTS.md`.

use super::clean;
use super::context::whose;
use super::time;
use crate::model::{MemoryRow, Provenance};

/// Maximum bytes of a decision.
const TITLE: usize = 300;

/// The decisions that a person made or pinned, a line each; empty if there are none. What an agent or a tool said stays
/// out: no person has reviewed it.
pub fn decisions<'a>(memories: impl IntoIterator<Item = &'a MemoryRow>) -> String {
    let of_a_person = |memory: &&MemoryRow| memory.pinned || memory.provenance == Provenance::User;
    let line = |memory: &MemoryRow| {
        let said = clean::line(&memory.title, TITLE);
        format!("- {said} ({}, {})\n", whose(memory), time::day(memory.created_at))
    };
    let lines: String = memories.into_iter().filter(of_a_person).map(line).collect();
    if lines.is_empty() { lines } else { format!("## Decisions in this project\n\n{lines}") }
}
