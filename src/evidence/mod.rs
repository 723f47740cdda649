//! Use case: what recorded work says about a line, a commit, the working tree or a unit. `git_program` (questions to git),
//! `origin` (the edit and the unit behind a line or a commit), `verify` (checks since the last change), `claims` (what
//! memories say about the code, and whether it still holds); here the state of a unit for somebody else, the units of a
//! branch, and notes for its commits.

mod claims;
mod git_program;
mod origin;
mod verify;

pub use claims::{check, check_memories};
pub use git_program::{Git, ProjectRecords};
pub use origin::evidence_of;
pub use verify::{failing_check, unproven_claim, verify};

use crate::model::{BranchStory, Certainty, Handoff, MemoryRow, Origin, PromptKind, PromptSource, UnitRow};
use crate::store::Store;
use anyhow::Result;
use origin::{CommitIndex, last_checks, sorted, why_commit};

/// The unit that last wrote a file, or made a commit, which this clone does not have.
pub fn recorded_under(recorded: &ProjectRecords, subject: &str) -> Result<Option<i64>> {
    let path = subject.rsplit_once(':').filter(|(_, line)| line.parse::<usize>().is_ok()).map_or(subject, |(path, _)| path);
    let edit = recorded.store.edits_of_file(recorded.scope, path)?.pop().and_then(|edit| edit.unit);
    let is_it = |sha: &String| subject.len() >= 7 && (sha.starts_with(subject) || subject.starts_with(sha.as_str()));
    let commits = recorded.store.recorded_commits(recorded.scope)?;
    let commit = commits.into_iter().find(|commit| commit.shas.iter().any(is_it)).and_then(|commit| commit.unit);
    Ok(edit.or(commit))
}

/// Maximum commits of a branch to follow.
const COMMITS: usize = 200;

/// Reads the state of a unit.
pub fn handoff(store: &Store, unit: UnitRow) -> Result<Handoff> {
    let session = store.session_by_row(unit.session)?;
    let said = store.said_in_unit(unit.session, unit.id)?;
    let (asked, answered): (Vec<_>, Vec<_>) = said
        .into_iter()
        .filter(|prompt| prompt.kind != PromptKind::TakenBack)
        .partition(|prompt| prompt.source == PromptSource::User);
    let closing = answered.into_iter().rfind(|prompt| prompt.kind == PromptKind::Closing && prompt.agent_id.is_none());
    let memories = store.memories_of_unit(unit.session, unit.id)?;
    let checks = last_checks(store, &unit, 0)?;
    let [decisions, tried, open] = sorted(memories);
    Ok(Handoff { unit, session, asked, closing, decisions, tried, open, checks })
}

/// Writes a note for each commit of the current branch, newest first, that has none and that recorded work is behind.
/// `text` writes it. Returns the number of notes.
pub fn write_notes(recorded: &ProjectRecords, text: impl Fn(&Origin) -> String) -> Result<usize> {
    let noted = recorded.git.noted();
    let commits = CommitIndex::read(recorded)?;
    let mut written = 0;
    for (sha, _) in recorded.git.history()?.into_iter().take(COMMITS).filter(|(sha, _)| !noted.contains(sha)) {
        let mut origin = why_commit(recorded, &commits, &sha)?;
        if origin.certainty == Certainty::Unknown {
            continue;
        }
        for memories in [&mut origin.decisions, &mut origin.tried] {
            *memories = public(recorded.store, std::mem::take(memories))?;
        }
        recorded.git.set_note(&sha, &text(&origin))?;
        written += 1;
    }
    Ok(written)
}

/// Memories that others may read.
fn public(store: &Store, memories: Vec<MemoryRow>) -> Result<Vec<MemoryRow>> {
    let mut public = Vec::new();
    for memory in memories {
        if !store.is_private(&memory.uuid)? {
            public.push(memory);
        }
    }
    Ok(public)
}

/// Reads the units whose work is in the commits of the current branch, oldest first.
pub fn branch_story(recorded: &ProjectRecords, base: &str) -> Result<BranchStory> {
    let mut story = BranchStory { verification: verify(recorded)?, ..BranchStory::default() };
    let commits = recorded.git.commits_since(base, "HEAD")?;
    let index = CommitIndex::read(recorded)?;
    for sha in commits.iter().rev().take(COMMITS).rev() {
        let origin = why_commit(recorded, &index, sha)?;
        let subject = recorded.git.subject(sha);
        let units: Vec<UnitRow> = match origin.certainty {
            Certainty::Unknown => Vec::new(),
            _ => origin.unit.into_iter().chain(origin.others.into_iter().map(|(unit, _)| unit)).collect(),
        };
        story.commits.push((sha.clone(), subject, !units.is_empty()));
        for unit in units {
            if story.units.iter().all(|known: &Handoff| known.unit.id != unit.id) {
                let mut unit = handoff(recorded.store, unit)?;
                for memories in [&mut unit.decisions, &mut unit.tried, &mut unit.open] {
                    *memories = public(recorded.store, std::mem::take(memories))?;
                }
                story.units.push(unit);
            }
        }
    }
    Ok(story)
}
