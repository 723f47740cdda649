//! Recall during a session, before an edit and for a subagent. Usually nothing is recalled (ADR/0030).

use super::ranked::whole_paths;
use super::stale::{concepts, remove_overtaken, stale};
use super::start::{holds_everywhere, lasts, may_hold_everywhere};
use crate::distil::statements::is_fragment;
use crate::distil::user_decisions;
use crate::model::{Annotations, Finding, InjectionPoint, MemoryKind, MemoryRow, Provenance};
use crate::prompt_injection::looks_like_prompt_injection;
use crate::rank;
use crate::store::Store;
use crate::store::candidates::{SessionScope, TIMELINE};
use crate::text::is_cjk;
use anyhow::Result;
use std::cmp::Reverse;
use std::path::Path;

/// Maximum memories about a file, and the number of candidates.
const OF_FILE: usize = 3;
const KNOWN: usize = 40;
/// Maximum pinned memories, wishes and files for a subagent, and the number of the newest decisions to look at.
const PINNED: usize = 8;
const WISHES: usize = 3;
const NEWEST: usize = 60;
const FILES: usize = 8;
/// Findings that count as warnings before an edit: gotchas and fixed problems.
const WARNINGS: [Finding; 2] = [Finding::Limit, Finding::Fix];

/// Whether a memory may be injected unasked: the user stated it, a person pinned it, or the agent stated it and its
/// work confirms it. Tool output and web pages never qualify, nor does an agent's repetition of them. Memories of other
/// team members qualify only if the user trusts their author.
pub(super) fn is_trusted(store: &Store, memory: &MemoryRow) -> Result<bool> {
    Ok(memory.pinned
        || memory.provenance == Provenance::User
        || memory.is_of_team() && !memory.is_of_stranger() && !looks_like_prompt_injection(&memory.title)
        || memory.provenance == Provenance::Agent && store.is_proven(memory)?)
}

/// Minimum words of a statement that express its subject.
const SUBJECT: usize = 2;
/// Minimum words of a heading.
const HEADING: usize = 3;

/// Whether a memory says something by itself: it is no question, no heading, and names its subject, unlike "add this".
pub(super) fn says_something(memory: &MemoryRow) -> bool {
    let title = memory.title.as_str();
    let is_chosen = memory.by_hand || memory.pinned || lasts(memory);
    let points = memory.provenance == Provenance::User && user_decisions::needs_context(title);
    is_chosen
        || !title.trim_end().ends_with(['?', '？'])
            && !is_heading(title)
            && !is_fragment(title)
            && !points
            && (has_cjk(title) || rank::subject(title).len() >= SUBJECT)
}

fn has_cjk(text: &str) -> bool {
    text.chars().any(is_cjk)
}

/// Whether a text is a heading: each longer word begins with a capital letter.
fn is_heading(text: &str) -> bool {
    let longer: Vec<&str> = text.split_whitespace().filter(|word| word.len() > 3).collect();
    let is_capital = |word: &&str| word.starts_with(char::is_uppercase) && word[1..].chars().all(|c| !c.is_uppercase());
    longer.len() >= HEADING && longer.iter().all(is_capital)
}

/// Endings of files that are about everything: a memory must name such a file.
const GENERAL: [&str; 4] = [".md", ".mdx", ".txt", ".rst"];

/// Whether a memory contains the name of a file.
fn names(memory: &MemoryRow, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    memory.title.contains(name) || memory.list("facts").iter().any(|fact| fact.contains(name))
}

/// Returns the memories to show before an edit of a file: what was tried there in vain, decisions and lessons about it,
/// gotchas and earlier fixes; each once per session.
pub fn at_file(store: &Store, scope: &SessionScope, path: &str, root: Option<&Path>) -> Result<(Vec<MemoryRow>, Annotations)> {
    // Most files have no memories, so this check is usually the whole cost.
    if scope.muted || !store.has_memories_about(path)? {
        return Ok(Default::default());
    }
    let mut memories = about(store, scope.project, path)?;
    let is_general = GENERAL.iter().any(|end| path.ends_with(end));
    memories.retain(|memory| memory.session != Some(scope.session) && (!is_general || memory.pinned || names(memory, path)));
    if memories.is_empty() {
        return Ok(Default::default());
    }
    // Items from the session start count as new: they may be far back in the conversation, and here they matter.
    let injected = store.injected_items(scope.session, &[InjectionPoint::Prompt, InjectionPoint::File])?;
    memories.retain(|memory| !injected.contains(&format!("m{}", memory.id)));
    with_annotations(store, scope, best(store, memories, path)?, root)
}

/// Returns the memories for a subagent: pinned ones, the user's wishes for the whole project, and those about the files that
/// its task names. A subagent has its own conversation, so memories that its session has received or stated count as new.
pub fn at_subagent(
    store: &Store,
    scope: &SessionScope,
    files: &[String],
    root: Option<&Path>,
) -> Result<(Vec<MemoryRow>, Annotations)> {
    if scope.muted {
        return Ok(Default::default());
    }
    let mut memories = store.pinned_memories(scope.project, PINNED)?;
    let mut wishes = store.newest_settled(scope.project, false, NEWEST, &[])?;
    wishes.retain(may_hold_everywhere);
    let mut wishes = store.memories_by_rows(&wishes.iter().map(|wish| wish.id).collect::<Vec<_>>())?;
    wishes.retain(|memory| !memory.pinned && holds_everywhere(memory));
    remove_overtaken(store, scope.project, &mut wishes)?;
    memories.extend(wishes.into_iter().take(WISHES));
    let sessions = store.sessions_in_time(scope.project, None, TIMELINE)?;
    let named: Vec<&str> = files.iter().map(String::as_str).collect();
    for path in whole_paths(store, &named, &sessions)?.iter().take(FILES) {
        for memory in best(store, about(store, scope.project, path)?, path)? {
            if memories.iter().all(|known| known.id != memory.id) {
                memories.push(memory);
            }
        }
    }
    with_annotations(store, scope, memories, root)
}

/// Memories about a file that may matter to someone who works on it.
fn about(store: &Store, project: i64, path: &str) -> Result<Vec<MemoryRow>> {
    let [trap, solution] = concepts(store, project, WARNINGS)?;
    store.memories_about(project, path, [&trap, &solution], KNOWN)
}

/// Minimum characters of a file's name by which it is recognized without its ending.
const STEM: usize = 8;

/// A memory as far as it is about a file: what was changed or found in several files has the fact that names this one as its
/// title. `None` if it says nothing of it.
fn about_file(mut memory: MemoryRow, path: &str) -> Option<MemoryRow> {
    if memory.kind.is_lasting() || memory.is_tried() || memory.pinned || memory.by_hand || memory.files.len() < 2 {
        return Some(memory);
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.split('.').next().filter(|stem| stem.len() >= STEM);
    let is_named = |text: &str| text.contains(name) || stem.is_some_and(|stem| text.contains(stem));
    if !is_named(&memory.title) {
        let fact = memory.list("facts").into_iter().find(|fact| is_named(fact))?.to_string();
        memory.title = fact;
    }
    Some(memory)
}

/// The most important memories about a file that may be injected unasked.
fn best(store: &Store, mut memories: Vec<MemoryRow>, path: &str) -> Result<Vec<MemoryRow>> {
    // A memory that names the file is about it; one that only changed the file may be about anything.
    let settles = |memory: &MemoryRow| memory.kind.is_lasting();
    memories.sort_by_cached_key(|memory| {
        Reverse((
            !memory.is_of_team(),
            memory.pinned,
            names(memory, path),
            memory.kind == MemoryKind::Tried,
            settles(memory),
            lasts(memory),
            memory.provenance == Provenance::User,
            memory.trust(),
            memory.id,
        ))
    });
    let mut best = Vec::new();
    for memory in memories.into_iter().filter_map(|memory| about_file(memory, path)) {
        if best.len() < OF_FILE && says_something(&memory) && is_trusted(store, &memory)? {
            best.push(memory);
        }
    }
    Ok(best)
}

fn with_annotations(
    store: &Store,
    scope: &SessionScope,
    memories: Vec<MemoryRow>,
    root: Option<&Path>,
) -> Result<(Vec<MemoryRow>, Annotations)> {
    let contradicted_by = rank::contradicted(&memories);
    let stale = root.map(|root| stale(store, scope.project, root, &memories)).transpose()?.unwrap_or_default();
    Ok((memories, Annotations { contradicted_by, stale }))
}
