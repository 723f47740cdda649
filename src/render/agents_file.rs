//! Decisions as Markdown, for a file with general instructions such as `AGENTS.md`.

use super::clean;
use super::context::whose;
use super::time;
use crate::model::{MemoryRow, Provenance};

/// Maximum characters of a decision.
const TITLE: usize = 300;

/// Returns the decisions that a person made or pinned, one per line; empty if there are none. Statements of agents and
/// tools are excluded, since no person has reviewed them.
pub fn decisions<'a>(memories: impl IntoIterator<Item = &'a MemoryRow>) -> String {
    let of_a_person = |memory: &&MemoryRow| memory.pinned || memory.provenance == Provenance::User;
    let line = |memory: &MemoryRow| {
        let said = clean::line(&memory.title, TITLE);
        format!("- {said} ({}, {})\n", whose(memory), time::day(memory.created_at))
    };
    let lines: String = memories.into_iter().filter(of_a_person).map(line).collect();
    if lines.is_empty() { lines } else { format!("## Decisions in this project\n\n{lines}") }
}
