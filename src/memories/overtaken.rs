//! Later beats earlier over units: which memories of earlier work the work of a unit has changed, refused or restated.

use super::summary::FALSE_CLAIM;
use crate::choice::{Context, content_words, contexts, overtaken_by_work, turns};
use crate::model::{Domain, Draft, Finding, MemoryKind, MemoryRow, Provenance, UnitStory};
use crate::rules::failures::programs;
use std::collections::HashSet;

/// A memory of earlier work.
#[derive(Clone, Debug)]
pub struct EarlierMemory {
    pub title: String,
    pub kind_type: Option<String>,
    /// Paths that the work changed.
    pub files: Vec<String>,
}

impl From<&Draft> for EarlierMemory {
    fn from(draft: &Draft) -> EarlierMemory {
        let files = draft.files.iter().filter(|file| file.modified).map(|file| file.path.clone());
        EarlierMemory { title: draft.title.clone(), kind_type: draft.kind_type.clone(), files: files.collect() }
    }
}

impl From<&MemoryRow> for EarlierMemory {
    fn from(memory: &MemoryRow) -> EarlierMemory {
        let files = memory.files.iter().filter(|file| file.modified).map(|file| file.path.clone());
        EarlierMemory { title: memory.title.clone(), kind_type: memory.kind_type.clone(), files: files.collect() }
    }
}

/// Whether later work may overtake a memory: what the user says only the user takes back, and a summary says what was.
pub fn may_be_overtaken(draft: &Draft) -> bool {
    draft.kind != MemoryKind::Summary && draft.provenance != Provenance::User
}

/// For each earlier memory the draft that takes its place; `None` if it still holds. A unit that overtakes a memory and
/// has no memory of its own to lead to leaves it alone.
pub fn overtaken(earlier: &[EarlierMemory], story: &UnitStory, domain: &Domain, drafts: &[Draft]) -> Vec<Option<usize>> {
    let turns = turns(story, domain);
    let contexts = contexts(&turns);
    let by = |memory: &EarlierMemory| {
        let turn = overtaken_by_work(&memory.title, &file_names(memory), &contexts);
        let at_turn = turn.and_then(|turn| of_turn(drafts, turns[turn].number));
        // The same thing fixed again is a pattern, not a repetition.
        let is_fix = memory.kind_type == domain.becomes(Finding::Fix).kind_type;
        at_turn.or_else(|| if is_fix { None } else { restated(memory, drafts, &contexts) })
    };
    earlier.iter().map(by).collect()
}

fn file_names(memory: &EarlierMemory) -> HashSet<String> {
    memory.files.iter().map(|path| path.rsplit('/').next().unwrap_or(path).to_lowercase()).collect()
}

/// The memory of a turn, else of a later one, else the summary.
fn of_turn(drafts: &[Draft], number: i64) -> Option<usize> {
    let at = |wanted: &dyn Fn(&Draft) -> bool| drafts.iter().position(wanted);
    let is_own = |draft: &Draft| draft.kind != MemoryKind::Summary;
    at(&|draft| is_own(draft) && draft.prompt == Some(number))
        .or_else(|| at(&|draft| is_own(draft) && draft.prompt.is_some_and(|prompt| prompt > number)))
        .or_else(|| at(&|draft| draft.kind == MemoryKind::Summary))
}

/// The draft of changed files that has most of the memory's words in its title or in one of its facts.
fn restated(memory: &EarlierMemory, drafts: &[Draft], contexts: &[Context]) -> Option<usize> {
    const LEAST: usize = 4;
    let words: HashSet<String> = content_words(&memory.title);
    if words.len() < LEAST || !contexts.iter().any(|context| context.edits > 0) {
        return None;
    }
    let restates = |text: &str| {
        let said = content_words(text);
        words.iter().filter(|word| said.contains(*word)).count() * 10 >= words.len() * 7
    };
    drafts.iter().position(|draft| {
        let of_work = draft.kind == MemoryKind::Observation && draft.provenance != Provenance::User;
        let shares = draft.files.iter().any(|file| file.modified && memory.files.contains(&file.path));
        let facts = draft.content.get("facts").and_then(|facts| facts.as_array());
        let facts = facts.into_iter().flatten().filter_map(|fact| fact.as_str());
        of_work && shares && std::iter::once(draft.title.as_str()).chain(facts).any(restates)
    })
}

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
