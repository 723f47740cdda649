//! Notes of earlier summaries that no longer hold.

use super::summary::FALSE_CLAIM;
use crate::model::UnitStory;
use crate::rules::failures::programs;

/// The notes of an earlier summary without the checks that passed in a unit; `None` if nothing changes.
pub fn notes_now(notes: &str, story: &UnitStory) -> Option<String> {
    let passed = |program: &str| {
        story.tools.iter().any(|tool| {
            // `cargo test` runs what `cargo test export` does.
            let covers = |own: String| program == own || program.strip_prefix(&own).is_some_and(|rest| rest.starts_with(' '));
            let runs = tool.content.as_deref().is_some_and(|line| programs(line).any(covers));
            tool.succeeded == Some(true) && runs
        })
    };
    let is_over = |note: &&str| {
        let program = note.strip_prefix('`').and_then(|rest| rest.split_once("` failed last"));
        program.is_some_and(|(program, _)| passed(program))
    };
    let mut all: Vec<String> = Vec::new();
    for part in notes.split("; ") {
        match all.last_mut().filter(|_| !part.starts_with('`')) {
            // A reason may contain a semicolon.
            Some(last) if last.starts_with('`') => *last += &format!("; {part}"),
            _ => all.push(part.to_string()),
        }
    }
    let (over, mut left): (Vec<&str>, Vec<&str>) = all.iter().map(String::as_str).partition(is_over);
    if over.is_empty() {
        return None;
    }
    // A claim that is true by now is no longer false.
    if !left.iter().any(|note| note.contains("failed last")) {
        left.retain(|note| *note != FALSE_CLAIM);
    }
    Some(left.join("; "))
}
