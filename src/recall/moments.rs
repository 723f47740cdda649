//! In the middle of work: at a prompt, and before a file is changed. Silence is the usual answer (ADR/0030).

use super::ranked::{Asked, clear, mark_stale};
use super::stale::stale;
use crate::domains;
use crate::model::{Beside, MemoryKind, MemoryRow, Moment, Past, Provenance, Vector};
use crate::rank;
use crate::rules::Cue;
use crate::store::Store;
use crate::store::recall::SessionPlace;
use crate::words::files_named;
use anyhow::Result;
use std::path::Path;

/// Pieces of work that are told at a prompt, and among which is chosen.
const PIECES: usize = 1;
const AMONG: usize = 6;
/// Words that a prompt must say something in; one that names a file needs none.
const WORDS: usize = 3;
/// Memories that are told of a file, and among which is chosen.
const OF_FILE: usize = 3;
const KNOWN: usize = 12;
/// What memories of a file are told before it is changed: traps, and what was broken there and mended.
const WARNINGS: [Cue; 2] = [Cue::Trap, Cue::Solution];

/// A prompt that a session was just given.
pub struct Prompt<'a> {
    pub text: &'a str,
    /// What it means, and which model says so. As the branch, it is asked only where something could be said.
    pub meaning: &'a dyn Fn() -> Option<(String, Vector)>,
    /// The branch as it is now: many a branch is made after a session began.
    pub branch: &'a dyn Fn() -> Option<String>,
    pub root: Option<&'a Path>,
}

/// What is clearly relevant to a prompt, and was not told to its session yet. A prompt that goes on with what is under way is
/// met with silence, unless work has come to other files since.
pub fn at_prompt(store: &Store, place: &SessionPlace, given: &Prompt) -> Result<Vec<Past>> {
    let prompt = given.text;
    let under_way = store.under_way(place.session)?;
    if place.muted || !(under_way.is_new || under_way.has_new_files) {
        return Ok(Vec::new());
    }
    if rank::terms(prompt).len() < WORDS && files_named(prompt).is_empty() {
        return Ok(Vec::new());
    }
    let branch = (given.branch)().or(place.branch.clone());
    let branch = branch.as_deref();
    let root = given.root;
    let meaning = (given.meaning)();
    let meaning = meaning.as_ref().map(|(model, vector)| (model.as_str(), vector));
    let request = Some(prompt);
    let asked =
        Asked { project: place.project, own: Some(place.session), request, branch, meaning, files: &under_way.edited, root };
    let mut found = clear(store, &asked, AMONG)?;
    if found.is_empty() {
        return Ok(found);
    }
    let told = store.told_at(place.session, Moment::ALL)?;
    found.retain(|past| !told.contains(&format!("u{}", past.unit.id)));
    found.truncate(PIECES);
    let named = files_named(prompt);
    for past in &mut found {
        // Of its files those first that the prompt names or that are at hand.
        let at_hand =
            |path: &str| under_way.edited.iter().any(|file| file == path) || named.iter().any(|name| path.ends_with(name));
        past.unit.files.sort_by_key(|file| !at_hand(&file.path));
        let memories = std::mem::take(&mut past.memories);
        let new = memories
            .into_iter()
            .filter(|memory| !told.contains(&format!("m{}", memory.id)) && memory.kind != MemoryKind::Summary);
        for memory in new {
            if is_trusted(store, &memory)? {
                past.memories.push(memory);
            }
        }
    }
    mark_stale(store, &asked, &mut found)?;
    Ok(found)
}

/// Whether a memory may speak unasked: the user said it, a person pinned it, or the agent said it and its work proves it. What
/// a tool printed or a page said never does, nor does what an agent only repeats of it.
fn is_trusted(store: &Store, memory: &MemoryRow) -> Result<bool> {
    Ok(memory.pinned
        || memory.provenance == Provenance::User
        || memory.provenance == Provenance::Agent && store.is_proven(memory)?)
}

/// What somebody who is about to change a file should know of it: decisions and lessons about it, traps, and what was
/// broken there and mended; each once in a session.
pub fn at_file(store: &Store, place: &SessionPlace, path: &str, root: Option<&Path>) -> Result<(Vec<MemoryRow>, Beside)> {
    // Of most files nothing is known, and to learn that is all that it costs then.
    if place.muted || !store.has_memories_about(path)? {
        return Ok(Default::default());
    }
    let domain = store.domain_of_project(place.project)?.unwrap_or_default();
    let domain = domains::of(Some(&domain.0), domain.1.as_deref());
    let [trap, solution] = WARNINGS.map(|cue| domain.concept_for(cue.name()).unwrap_or_default());
    let mut known = store.memories_about(place.project, path, [trap, solution], KNOWN)?;
    known.retain(|memory| memory.session != Some(place.session));
    if known.is_empty() {
        return Ok(Default::default());
    }
    // A start tells much, an hour before; here it matters.
    let told = store.told_at(place.session, &[Moment::Prompt, Moment::File])?;
    known.retain(|memory| !told.contains(&format!("m{}", memory.id)));
    let mut warnings = Vec::new();
    for memory in known {
        if warnings.len() < OF_FILE && is_trusted(store, &memory)? {
            warnings.push(memory);
        }
    }
    let against = rank::contradicted(&warnings);
    let stale = root.map(|root| stale(store, place.project, root, &warnings)).transpose()?.unwrap_or_default();
    Ok((warnings, Beside { against, stale }))
}
