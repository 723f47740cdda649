//! Recall during a session: at a prompt that begins a unit, before an edit, and for a subagent. Usually nothing is
//! recalled (ADR/0030).

use super::ranked::{RecallQuery, add_passages, mark_stale, nearest, whole_paths};
use super::stale::{concepts, stale};
use crate::model::{Annotations, Finding, InjectionPoint, MemoryRow, Provenance, RankedUnit, Relevance, UnitRow, Vector};
use crate::prompt_injection::looks_like_prompt_injection;
use crate::rank::{self, Route};
use crate::store::Store;
use crate::store::candidates::SessionScope;
use crate::text::files_named;
use anyhow::Result;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Maximum units to describe at a prompt.
const DESCRIBE: usize = 2;
/// Number of candidates.
const AMONG: usize = 8;
/// Maximum further units to name.
const ALSO: usize = 3;
/// Minimum probability of a unit: to be described, and to be named.
const DESCRIBED: f64 = 0.25;
const NAMED: f64 = 0.2;
/// Minimum part of a unit's score that must come from the words or the embedding of the prompt.
const SAID: f64 = 0.1;
/// Minimum similarity of the subjects of a unit and of the prompt, and minimum words that they share.
const ALIKE: f64 = 0.06;
const SHARED: usize = 2;
/// Maximum files of a unit whose names are part of its subject.
const SUBJECT_FILES: usize = 12;
/// Minimum content words of a prompt, unless it names a file.
const WORDS: usize = 3;
/// Minimum fit of a statement, relative to the best one.
const FITS: f64 = 0.35;
/// Number of newest sessions in which injections without use are counted.
pub(super) const RECENT: usize = 24;
/// Maximum memories about a file, and the number of candidates.
const OF_FILE: usize = 3;
const KNOWN: usize = 40;
/// Injections that the session itself receives. Those into its subagents do not reach it.
const OWN_CONTEXT: [InjectionPoint; 4] =
    [InjectionPoint::Start, InjectionPoint::Compaction, InjectionPoint::Prompt, InjectionPoint::File];
/// Maximum pinned memories and maximum files for a subagent.
const PINNED: usize = 8;
const FILES: usize = 8;
/// Findings that count as warnings before an edit: gotchas and fixed problems.
const WARNINGS: [Finding; 2] = [Finding::Limit, Finding::Fix];

/// A prompt that was just submitted.
pub struct Prompt<'a> {
    pub text: &'a str,
    /// The model and the embedding of the text, computed only if something could be injected.
    pub embedding: &'a dyn Fn() -> Option<(String, Vector)>,
    /// The current branch, read only if needed. Many branches are created after the session starts.
    pub branch: &'a dyn Fn() -> Option<String>,
    pub root: Option<&'a Path>,
}

/// Work units recalled for a prompt.
#[derive(Debug, Default)]
pub struct AtPrompt {
    /// Units that the session has not received yet.
    pub units: Vec<RankedUnit>,
    /// Units that the session has already received and that match better than the new ones.
    pub received: Vec<UnitRow>,
    /// Further units.
    pub also: Vec<UnitRow>,
}

/// Earlier work that a prompt may refer to, if the prompt begins a session or a unit. Later prompts receive nothing.
pub fn at_prompt(store: &Store, scope: &SessionScope, given: &Prompt) -> Result<AtPrompt> {
    let prompt = given.text;
    if scope.muted || !store.begins_unit(scope.session)? {
        return Ok(AtPrompt::default());
    }
    let named = files_named(prompt);
    if rank::terms(prompt).len() < WORDS && named.is_empty() {
        return Ok(AtPrompt::default());
    }
    let branch = (given.branch)().or(scope.branch.clone());
    let embedding = (given.embedding)();
    let query = RecallQuery {
        project: scope.project,
        own: Some(scope.session),
        request: Some(prompt),
        branch: branch.as_deref(),
        embedding: embedding.as_ref().map(|(model, vector)| (model.as_str(), vector)),
        files: &[],
        root: given.root,
    };
    let stands_out = |relevance: Relevance| relevance.words >= SAID && relevance.probability() >= NAMED;
    let mut found = nearest(store, &query, stands_out, AMONG)?;
    let mut likeness = likeness(prompt, &found).into_iter();
    found.retain(|unit| likeness.next().is_some_and(|likeness| likeness >= ALIKE) || is_found_by_meaning(unit));
    if found.is_empty() {
        return Ok(AtPrompt::default());
    }
    let injected = store.injected_items(scope.session, &OWN_CONTEXT)?;
    let is_known = |unit: &RankedUnit| injected.contains(&format!("u{}", unit.unit.id));
    let first_new = found.iter().position(|unit| !is_known(unit)).unwrap_or(found.len());
    let received = found.drain(..first_new).take(ALSO).map(|unit| unit.unit).collect();
    found.retain(|unit| !is_known(unit));
    let probable = |unit: &mut RankedUnit| unit.relevance.probability() >= DESCRIBED;
    let mut units: Vec<RankedUnit> = found.extract_if(.., probable).take(DESCRIBE).collect();
    let also: Vec<UnitRow> = found.into_iter().take(ALSO).map(|unit| unit.unit).collect();
    for unit in &mut units {
        // Files that the prompt names come first.
        unit.unit.files.sort_by_key(|file| !named.iter().any(|name| file.path.ends_with(name)));
        let memories = std::mem::take(&mut unit.memories);
        let new =
            memories.into_iter().filter(|memory| !injected.contains(&format!("m{}", memory.id)) && !memory.kind.is_summary());
        for memory in new {
            if is_trusted(store, &memory)? {
                unit.memories.push(memory);
            }
        }
    }
    mark_stale(store, &query, &mut units)?;
    add_passages(prompt, &mut units);
    let asked = rank::subject(prompt);
    let answers = |text: &str| rank::subject(text).intersection(&asked).count() >= SHARED;
    for unit in units.iter_mut().filter(|unit| !is_found_by_meaning(unit)) {
        unit.passages.retain(|passage| passage.fit >= FITS && answers(&passage.text));
    }
    let is_sure = |unit: &RankedUnit| is_found_by_meaning(unit) || !unit.passages.is_empty() && is_of_subject(&asked, unit);
    let (units, unsure): (Vec<RankedUnit>, Vec<RankedUnit>) = units.into_iter().partition(is_sure);
    let also = unsure.into_iter().map(|unit| unit.unit).chain(also).collect();
    Ok(AtPrompt { units, received, also })
}

/// Whether a unit was found by an embedding. Such a unit need not share a word with the prompt.
fn is_found_by_meaning(unit: &RankedUnit) -> bool {
    unit.why.iter().any(|why| why.what == Route::Embedding.name())
}

/// Returns the similarity of each unit to a prompt, from 0 to 1: a cosine of the words of their subjects, in which a
/// word weighs less if more of these units have it.
fn likeness(prompt: &str, units: &[RankedUnit]) -> Vec<f64> {
    let asked = rank::subject(prompt);
    let subjects: Vec<HashSet<String>> = units.iter().map(subject).collect();
    let shared: Vec<Vec<&String>> = subjects.iter().map(|subject| subject.intersection(&asked).collect()).collect();
    let mut known: HashMap<&String, f64> = HashMap::new();
    shared.iter().flatten().for_each(|word| *known.entry(word).or_default() += 1.0);
    let all = units.len() as f64;
    let weight = |word: &&String| (1.0 + all / known[*word]).ln() / (1.0 + all).ln();
    let of = |(shared, subject): (&Vec<&String>, &HashSet<String>)| {
        let size = ((subject.len() + 1) * (asked.len() + 1)) as f64;
        let is_enough = shared.len() >= SHARED.min(asked.len()) && !shared.is_empty();
        if is_enough { shared.iter().map(weight).sum::<f64>() / size.sqrt() } else { 0.0 }
    };
    shared.iter().zip(&subjects).map(of).collect()
}

/// Whether a unit's name or request shares enough words with the subject of a prompt.
fn is_of_subject(asked: &HashSet<String>, found: &RankedUnit) -> bool {
    let named =
        found.unit.title.iter().chain(&found.unit.intent).flat_map(|text| rank::subject(text)).collect::<HashSet<String>>();
    named.intersection(asked).count() >= SHARED
}

/// Returns the subject of a unit: the words of its title, statements, edited files and commits.
fn subject(found: &RankedUnit) -> HashSet<String> {
    let unit = &found.unit;
    let memories = found.memories.iter().flat_map(|memory| memory.list("facts").into_iter().chain([memory.title.as_str()]));
    let edited = unit.files.iter().filter(|file| file.edits > 0).take(SUBJECT_FILES).map(|file| file.path.as_str());
    let commits = unit.commits.iter().map(|commit| commit.subject.as_str());
    rank::subject_of(unit.title.as_deref().into_iter().chain(memories).chain(edited).chain(commits))
}

/// Whether a memory may be injected unasked: the user stated it, a person pinned it, or the agent stated it and its
/// work confirms it. Tool output and web pages never qualify, nor does an agent's repetition of them. Memories of other
/// team members qualify only if the user trusts their author.
fn is_trusted(store: &Store, memory: &MemoryRow) -> Result<bool> {
    Ok(memory.pinned
        || memory.provenance == Provenance::User
        || memory.team.as_ref().is_some_and(|team| team.is_trusted) && !looks_like_prompt_injection(&memory.title)
        || memory.provenance == Provenance::Agent && store.is_proven(memory)?)
}

/// Whether a memory contains the name of a file.
fn names(memory: &MemoryRow, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    memory.title.contains(name) || memory.list("facts").iter().any(|fact| fact.contains(name))
}

/// Returns the memories to show before an edit of a file: decisions and lessons about it, gotchas and earlier fixes;
/// each once per session.
pub fn at_file(store: &Store, scope: &SessionScope, path: &str, root: Option<&Path>) -> Result<(Vec<MemoryRow>, Annotations)> {
    // Most files have no memories, so this check is usually the whole cost.
    if scope.muted || !store.has_memories_about(path)? {
        return Ok(Default::default());
    }
    let mut memories = about(store, scope.project, path)?;
    memories.retain(|memory| memory.session != Some(scope.session));
    if memories.is_empty() {
        return Ok(Default::default());
    }
    // Items from the session start count as new: they may be far back in the conversation, and here they matter.
    let injected = store.injected_items(scope.session, &[InjectionPoint::Prompt, InjectionPoint::File])?;
    let recent: Vec<i64> = store.last_sessions(scope.project, RECENT)?.into_iter().map(|session| session.id).collect();
    let unused = store.unused_items(&recent, InjectionPoint::File)?;
    let rests = |memory: &MemoryRow, item: &str| !memory.pinned && memory.provenance != Provenance::User && unused.contains(item);
    memories.retain(|memory| {
        let item = format!("m{}", memory.id);
        !injected.contains(&item) && !rests(memory, &item)
    });
    with_annotations(store, scope, best(store, memories, path)?, root)
}

/// Returns the memories for a subagent: pinned ones, and those about the files that its task names. A subagent has its
/// own conversation, so memories that its session has received or stated count as new.
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
    let sessions = store.sessions_in_time(scope.project, None)?;
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

/// The most important memories about a file that may be injected unasked.
fn best(store: &Store, mut memories: Vec<MemoryRow>, path: &str) -> Result<Vec<MemoryRow>> {
    // A memory that names the file is about it; one that only changed the file may be about anything.
    let settles = |memory: &MemoryRow| memory.kind.is_lasting();
    memories.sort_by_cached_key(|memory| {
        Reverse((
            !memory.is_of_team(),
            memory.pinned,
            names(memory, path),
            settles(memory),
            memory.provenance == Provenance::User,
            memory.trust(),
            memory.id,
        ))
    });
    let mut best = Vec::new();
    for memory in memories {
        if best.len() < OF_FILE && is_trusted(store, &memory)? {
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
