//! Recall during a session: at a prompt and before an edit. The usual result is nothing (ADR/0030).

use super::ranked::{RecallQuery, highly_relevant, mark_stale};
use super::stale::stale;
use crate::domains;
use crate::model::{Annotations, Finding, InjectionPoint, MemoryKind, MemoryRow, Provenance, RankedUnit, Vector};
use crate::rank;
use crate::store::Store;
use crate::store::recall::SessionScope;
use crate::text::files_named;
use anyhow::Result;
use std::path::Path;

/// Maximum units at a prompt, and the number of candidates.
const PIECES: usize = 1;
const AMONG: usize = 6;
/// Minimum content words of a prompt, unless it names a file.
const WORDS: usize = 3;
/// Maximum memories about a file, and the number of candidates.
const OF_FILE: usize = 3;
const KNOWN: usize = 12;
/// Cues that count as warnings before an edit: gotchas and fixed problems.
const WARNINGS: [Finding; 2] = [Finding::Limit, Finding::Fix];

/// A prompt that was just submitted.
pub struct Prompt<'a> {
    pub text: &'a str,
    /// Its embedding and the model. Computed only if something could be injected.
    pub embedding: &'a dyn Fn() -> Option<(String, Vector)>,
    /// The current branch, read only if needed. Many branches are created after the session starts.
    pub branch: &'a dyn Fn() -> Option<String>,
    pub root: Option<&'a Path>,
}

/// Highly relevant units that the session has not received yet. A prompt that continues the current unit gets nothing,
/// unless new files came into play.
pub fn at_prompt(store: &Store, scope: &SessionScope, given: &Prompt) -> Result<Vec<RankedUnit>> {
    let prompt = given.text;
    let current_unit = store.current_unit(scope.session)?;
    if scope.muted || !(current_unit.is_new || current_unit.has_new_files) {
        return Ok(Vec::new());
    }
    if rank::terms(prompt).len() < WORDS && files_named(prompt).is_empty() {
        return Ok(Vec::new());
    }
    let branch = (given.branch)().or(scope.branch.clone());
    let branch = branch.as_deref();
    let root = given.root;
    let embedding = (given.embedding)();
    let embedding = embedding.as_ref().map(|(model, vector)| (model.as_str(), vector));
    let request = Some(prompt);
    let query = RecallQuery {
        project: scope.project,
        own: Some(scope.session),
        request,
        branch,
        embedding,
        files: &current_unit.edited,
        root,
    };
    let mut found = highly_relevant(store, &query, AMONG)?;
    if found.is_empty() {
        return Ok(found);
    }
    let injected = store.injected_items(scope.session, InjectionPoint::ALL)?;
    found.retain(|unit| !injected.contains(&format!("u{}", unit.unit.id)));
    found.truncate(PIECES);
    let named = files_named(prompt);
    for unit in &mut found {
        // Files that the prompt names or that are in play come first.
        let in_play =
            |path: &str| current_unit.edited.iter().any(|file| file == path) || named.iter().any(|name| path.ends_with(name));
        unit.unit.files.sort_by_key(|file| !in_play(&file.path));
        let memories = std::mem::take(&mut unit.memories);
        let new = memories
            .into_iter()
            .filter(|memory| !injected.contains(&format!("m{}", memory.id)) && memory.kind != MemoryKind::Summary);
        for memory in new {
            if is_trusted(store, &memory)? {
                unit.memories.push(memory);
            }
        }
    }
    mark_stale(store, &query, &mut found)?;
    Ok(found)
}

/// Whether a memory may be injected unasked: the user said it, a person pinned it, or the agent said it and its work
/// confirms it. Tool output and pages never qualify, nor does an agent's repetition of them.
fn is_trusted(store: &Store, memory: &MemoryRow) -> Result<bool> {
    Ok(memory.pinned
        || memory.provenance == Provenance::User
        || memory.provenance == Provenance::Agent && store.is_proven(memory)?)
}

/// What to know before editing a file: decisions and lessons about it, gotchas and earlier fixes; each once per
/// session.
pub fn at_file(store: &Store, scope: &SessionScope, path: &str, root: Option<&Path>) -> Result<(Vec<MemoryRow>, Annotations)> {
    // Most files have no memories, so this check is usually the whole cost.
    if scope.muted || !store.has_memories_about(path)? {
        return Ok(Default::default());
    }
    let domain = store.domain_of_project(scope.project)?.unwrap_or_default();
    let domain = domains::of(Some(&domain.0), domain.1.as_deref());
    let concepts = WARNINGS.map(|finding| domain.becomes(finding).concepts.into_iter().next().unwrap_or_default());
    let [trap, solution] = [concepts[0].as_str(), concepts[1].as_str()];
    let mut memories = store.memories_about(scope.project, path, [trap, solution], KNOWN)?;
    memories.retain(|memory| memory.session != Some(scope.session));
    if memories.is_empty() {
        return Ok(Default::default());
    }
    // Items from the session start count as new: that was long ago, and here they matter.
    let injected = store.injected_items(scope.session, &[InjectionPoint::Prompt, InjectionPoint::File])?;
    memories.retain(|memory| !injected.contains(&format!("m{}", memory.id)));
    let mut warnings = Vec::new();
    for memory in memories {
        if warnings.len() < OF_FILE && is_trusted(store, &memory)? {
            warnings.push(memory);
        }
    }
    let contradicted_by = rank::contradicted(&warnings);
    let stale = root.map(|root| stale(store, scope.project, root, &warnings)).transpose()?.unwrap_or_default();
    Ok((warnings, Annotations { contradicted_by, stale }))
}
