//! Ranks units for a request, a task or the files in play.

use super::passage_search::search;
use super::stale::stale;
use super::{SessionContext, at_start, below};
use crate::model::{
    Filter, Grade, Hit, HitKind, MemoryKind, MemoryRow, Millis, Passage, RankedUnit, Recalled, RelatedWork, Relevance,
    SearchScope, TextKind, UnitRow, Vector, Why,
};
use crate::project::{self, git};
use crate::rank::passage_score::best_alone;
use crate::rank::{self, CandidateFeatures, EditRates, RankWeights, Scored};
use crate::store::Store;
use crate::store::candidates::{TIMELINE, UnitLocation};
use crate::store::query::Query;
use crate::store::unit_index::Effort;
use crate::text::files_named;
use anyhow::Result;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Number of recent sessions, and of sessions on the same branch, whose units are always candidates.
const RECENT: usize = 24;
/// Number of sessions in whose files a bare file name is looked up.
const NAMED: usize = 60;
const NEWEST: usize = 24;
/// Number of nearest memories by embedding.
const NEAR: usize = 40;
/// Maximum memories by which units are found, and maximum words to search them by.
const STATED: usize = 60;
const STATED_WORDS: usize = 12;
/// Number of sessions of the branch whose units are candidates at a prompt.
const OWN: usize = 4;
/// Maximum candidates at a prompt.
const AMONG: usize = 24;
/// Minimum probability of a unit in a ranking.
pub(super) const LEAST: f64 = 0.1;

/// A recall query.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecallQuery<'a> {
    pub project: i64,
    /// The session that asks, which is excluded.
    pub own: Option<i64>,
    pub request: Option<&'a str>,
    pub branch: Option<&'a str>,
    /// Embedding of the request, and the model.
    pub embedding: Option<(&'a str, &'a Vector)>,
    /// Files of the task, relative to the root of the worktree.
    pub files: &'a [String],
    /// Root of the worktree, for checking files; if `None`, memories are not marked stale.
    pub root: Option<&'a Path>,
}

impl RecallQuery<'_> {
    /// Returns the query without its branch if that is a trunk: other work on a trunk is not related.
    fn on_topic(self, sessions: &[(i64, Option<String>)]) -> Self {
        RecallQuery { branch: self.branch.filter(|branch| is_topic(branch, sessions)), ..self }
    }
}

/// Whether a branch is dedicated to one topic, among a project's sessions.
pub(super) fn is_topic(branch: &str, sessions: &[(i64, Option<String>)]) -> bool {
    rank::is_topic(branch, sessions.iter().map(|(_, branch)| branch.as_deref()))
}

/// Returns the units that a prompt may refer to, best first. Faster than [`ranked`].
pub(super) fn nearest(
    store: &Store,
    query: &RecallQuery,
    enough: fn(Relevance) -> bool,
    limit: usize,
) -> Result<Vec<RankedUnit>> {
    let weights = RankWeights::default();
    let sessions = store.sessions_in_time(query.project, query.own, TIMELINE)?;
    let query = &query.on_topic(&sessions);
    let mut features = routes(store, query, &sessions, Effort::QUICK)?;
    features.age = features.found().map(|unit| (unit, 0)).collect();
    let mut found_first: Vec<i64> = rank::fuse(&features, &weights).into_iter().take(AMONG).map(|scored| scored.unit).collect();
    found_first.extend(store.units_of_sessions(&of_branch(&sessions, query.branch, OWN))?);
    found_first.sort_unstable();
    found_first.dedup();
    let mut locations = HashMap::new();
    let known = store.unit_places(&found_first, &sessions)?;
    features.age.clear();
    add_places(&mut features, &mut locations, known, query.branch);
    add_often_edited(store, &mut features, &sessions, &found_first)?;
    let scored = with_relevance(rank::fuse(&features, &weights), &features);
    let enough = scored.into_iter().filter(|(_, relevance)| enough(*relevance)).take(limit);
    enough.filter_map(|scored| found(store, &locations, scored).transpose()).collect()
}

fn add_often_edited(
    store: &Store,
    features: &mut CandidateFeatures,
    sessions: &[(i64, Option<String>)],
    units: &[i64],
) -> Result<()> {
    let lately: Vec<i64> = sessions.iter().take(RECENT).map(|(id, _)| *id).collect();
    let rates = EditRates::of(&store.edited_by_sessions(&lately)?);
    let edited = store.edited_by_units(units)?;
    features.often_edited = edited.iter().map(|(unit, files)| (*unit, rates.any_of(files))).collect();
    Ok(())
}

fn with_relevance(scored: Vec<Scored>, features: &CandidateFeatures) -> Vec<(Scored, Relevance)> {
    let of = |scored: Scored| {
        let relevance = scored.relevance(0.0, features);
        (scored, relevance)
    };
    scored.into_iter().map(of).collect()
}

/// Ranks units, best first, at most `limit`.
pub fn ranked(store: &Store, query: &RecallQuery, limit: usize) -> Result<Vec<RankedUnit>> {
    ranked_by(store, query, &RankWeights::default(), limit)
}

/// Ranks units with other weights, for benchmarks.
pub fn ranked_by(store: &Store, query: &RecallQuery, weights: &RankWeights, limit: usize) -> Result<Vec<RankedUnit>> {
    let (scored, locations) = scored(store, query, weights, limit)?;
    let mut units = scored
        .into_iter()
        .filter_map(|scored| found(store, &locations, scored).transpose())
        .collect::<Result<Vec<RankedUnit>>>()?;
    let mut settled = store.newest_memories(query.project, &MemoryKind::LASTING, NEWEST)?;
    settled.extend(units.iter().flat_map(|unit| &unit.memories).cloned());
    let against = rank::contradicted(&settled);
    for units in &mut units {
        units.annotations.contradicted_by = units.memories.iter().filter_map(|m| Some((m.id, *against.get(&m.id)?))).collect();
    }
    mark_stale(store, query, &mut units)?;
    add_passages(query.request.unwrap_or_default(), &mut units);
    Ok(units)
}

/// Parts of a summary that state something.
const PARTS: [&str; 4] = ["learned", "notes", "next_steps", "completed"];

/// Adds the statements of the units' memories, sorted by their fit to the request.
pub(super) fn add_passages(request: &str, units: &mut [RankedUnit]) {
    for unit in units.iter_mut() {
        for memory in &unit.memories {
            let new = |part, text: &str| Passage { memory: memory.id, part, text: text.to_string(), fit: 0.0 };
            let is_summary = memory.kind.is_summary();
            if is_summary {
                unit.passages.extend(PARTS.iter().filter_map(|part| Some(new(Some(*part), memory.text(part)?))));
            } else {
                unit.passages.push(new(None, &memory.title));
            }
            unit.passages.extend(memory.list("facts").into_iter().map(|fact| new(Some("facts"), fact)));
        }
    }
    let texts: Vec<&str> = units.iter().flat_map(|unit| &unit.passages).map(|passage| passage.text.as_str()).collect();
    let mut fits = rank::fit(request, &texts).into_iter();
    for unit in units {
        unit.passages.iter_mut().for_each(|passage| passage.fit = fits.next().unwrap_or_default());
        unit.passages.sort_by(|a, b| b.fit.total_cmp(&a.fit));
    }
}

/// Units with scores, best first, and their locations.
type Ranking = (Vec<(Scored, Relevance)>, HashMap<i64, UnitLocation>);

/// The best units, at most `limit`.
fn scored(store: &Store, query: &RecallQuery, weights: &RankWeights, limit: usize) -> Result<Ranking> {
    let sessions = store.sessions_in_time(query.project, query.own, TIMELINE)?;
    let (features, locations) = features(store, &query.on_topic(&sessions), &sessions)?;
    let scored = with_relevance(rank::fuse(&features, weights), &features);
    let best = scored.into_iter().filter(|(_, relevance)| relevance.probability() >= LEAST).take(limit);
    Ok((best.collect(), locations))
}

fn reasons(scored: &Scored) -> Vec<Why> {
    scored.reasons.iter().map(|reason| Why { what: reason.route.name(), adds: reason.adds }).collect()
}

/// Marks memories whose files have changed.
pub(super) fn mark_stale(store: &Store, query: &RecallQuery, units: &mut [RankedUnit]) -> Result<()> {
    let Some(root) = query.root else { return Ok(()) };
    let mut stale = stale(store, query.project, root, units.iter().flat_map(|unit| &unit.memories))?;
    for unit in units {
        unit.annotations.stale = unit.memories.iter().filter_map(|memory| stale.remove_entry(&memory.id)).collect();
    }
    Ok(())
}

/// Runs all routes and locates their units.
fn features(
    store: &Store,
    query: &RecallQuery,
    sessions: &[(i64, Option<String>)],
) -> Result<(CandidateFeatures, HashMap<i64, UnitLocation>)> {
    let mut features = routes(store, query, sessions, Effort::WHOLE)?;
    let near = sessions.iter().take(RECENT).map(|(id, _)| *id);
    let near: Vec<i64> = near.chain(of_branch(sessions, query.branch, RECENT)).collect();
    let mut units = store.units_of_sessions(&near)?;
    units.extend(features.found());
    units.sort_unstable();
    units.dedup();
    let mut locations = HashMap::new();
    add_places(&mut features, &mut locations, store.unit_places(&units, sessions)?, query.branch);
    add_often_edited(store, &mut features, sessions, &units)?;
    Ok((features, locations))
}

/// The newest sessions of a branch.
fn of_branch(sessions: &[(i64, Option<String>)], branch: Option<&str>, limit: usize) -> Vec<i64> {
    let on_branch = |of: &Option<String>| of.is_some() && of.as_deref() == branch;
    sessions.iter().filter(|(_, branch)| on_branch(branch)).take(limit).map(|(id, _)| *id).collect()
}

/// Runs the routes by words, embedding and files.
pub(super) fn routes(
    store: &Store,
    query: &RecallQuery,
    sessions: &[(i64, Option<String>)],
    effort: Effort,
) -> Result<CandidateFeatures> {
    let project = query.project;
    let written = files_named(query.request.unwrap_or_default());
    let written = if written.is_empty() { Vec::new() } else { whole_paths(store, &written, sessions)? };
    Ok(CandidateFeatures {
        words: store.units_by_words(project, &rank::terms(query.request.unwrap_or_default()), effort)?,
        stated: if effort.reads_memories() { by_stated_text(store, query, effort)? } else { HashMap::new() },
        branch_name: store.units_by_words(project, &rank::branch_terms(query.branch.unwrap_or_default()), effort)?,
        embedding: by_embedding(store, query)?,
        files: store.units_by_files(project, query.files, true, effort)?,
        named: store.units_by_files(project, &written, true, effort)?,
        same_branch: Vec::new(),
        often_edited: HashMap::new(),
        age: HashMap::new(),
    })
}

/// Finds units by the words of their memories; the best memory counts.
fn by_stated_text(store: &Store, query: &RecallQuery, effort: Effort) -> Result<HashMap<i64, f64>> {
    let mut found: HashMap<i64, f64> = HashMap::new();
    for hit in memories_by_words(store, query)? {
        let unit = match hit.unit {
            Some(unit) => unit,
            None if effort.reads_lone_memories() => -store.head_of(hit.id)?,
            None => continue,
        };
        let best = found.entry(unit).or_default();
        *best = best.max(hit.score);
    }
    Ok(found)
}

/// Memories that contain words of the request.
pub(super) fn memories_by_words(store: &Store, query: &RecallQuery) -> Result<Vec<Hit>> {
    let words = rank::terms(query.request.unwrap_or_default());
    if words.is_empty() {
        return Ok(Vec::new());
    }
    let words = Query::parse(&words[..words.len().min(STATED_WORDS)].join(" "));
    let kinds: Vec<MemoryKind> = MemoryKind::ALL.iter().copied().filter(|kind| *kind != MemoryKind::Entity).collect();
    let filter = Filter { scope: SearchScope::of(query.project), memories: kinds, ..Filter::default() };
    let by_word = store.passages_by_word(&words, &[TextKind::Memory], &filter.scope)?;
    let mut known = HashSet::new();
    let best = best_alone(&by_word.by_word).into_iter().filter(|(id, _)| known.insert(id.text()));
    let best: Vec<(i64, f64)> = best.take(STATED).map(|(id, score)| (id.text().row(), score)).collect();
    store.memories_as_hits(&best, &filter)
}

/// Finds units by the embeddings of their memories, with the amount by which the cosine exceeds the mean.
fn by_embedding(store: &Store, query: &RecallQuery) -> Result<HashMap<i64, f64>> {
    let Some((model, vector)) = query.embedding else { return Ok(HashMap::new()) };
    let near = store.nearest_memories(Some(query.project), model, vector, NEAR)?;
    let mut units: HashMap<i64, f64> = HashMap::new();
    for (unit, cosine) in store.units_of_memories(&near.memories)? {
        if let Some(out) = near.stands_out(cosine) {
            let best = units.entry(unit).or_default();
            *best = best.max(out);
        }
    }
    Ok(units)
}

/// Completes file names in a request: `login.rs` becomes `src/login.rs` if that was used recently.
pub(super) fn whole_paths(store: &Store, written: &[&str], sessions: &[(i64, Option<String>)]) -> Result<Vec<String>> {
    let lately: Vec<i64> = sessions.iter().take(NAMED).map(|(id, _)| *id).collect();
    let known = store.paths_of_sessions(&lately)?;
    let ends = |path: &str, end: &str| path.strip_suffix(end).is_some_and(|before| before.is_empty() || before.ends_with('/'));
    let mut paths: Vec<String> = written.iter().map(|path| path.to_string()).collect();
    paths.extend(known.into_iter().filter(|path| written.iter().any(|end| ends(path, end))));
    paths.sort_unstable();
    paths.dedup();
    Ok(paths)
}

fn add_places(
    features: &mut CandidateFeatures,
    all: &mut HashMap<i64, UnitLocation>,
    locations: Vec<UnitLocation>,
    branch: Option<&str>,
) {
    for location in locations {
        features.age.insert(location.unit, location.age);
        if location.branch.is_some() && location.branch.as_deref() == branch {
            features.same_branch.push(location.unit);
        }
        all.insert(location.unit, location);
    }
}

pub(super) fn found(
    store: &Store,
    locations: &HashMap<i64, UnitLocation>,
    (scored, relevance): (Scored, Relevance),
) -> Result<Option<RankedUnit>> {
    let Some(unit) = store.brief_unit(scored.unit)? else { return Ok(None) };
    let mut memories = store.memories_of_unit(unit.session, unit.id)?;
    memories.retain(|memory: &MemoryRow| memory.superseded_by.is_none());
    memories.sort_by_key(|memory| std::cmp::Reverse(memory.trust()));
    let why = reasons(&scored);
    let branch = locations.get(&scored.unit).and_then(|location| location.branch.clone());
    let branch = branch.filter(|branch| rank::is_topic(branch, std::iter::empty()));
    let (passages, annotations) = Default::default();
    Ok(Some(RankedUnit { unit, branch, score: scored.score, why, memories, passages, annotations, relevance }))
}

/// Weight of a task's own words, which decide whether two tasks are similar.
const STATED_WEIGHT: f64 = 1.0;
/// Score at which the similarity is one half.
const HALF: f64 = 0.5;

/// A unit, or a task with decisions and lessons that a program recorded without a session.
#[derive(Clone, Debug)]
pub struct RelatedUnit {
    /// Relevance; [`similarity`] maps it to a share.
    pub score: f64,
    pub unit: Option<UnitRow>,
    pub memories: Vec<MemoryRow>,
}

/// Relevance of memories by their own words, relative to the best: a memory of a related unit may be off-topic.
pub(super) fn by_own_words(store: &Store, query: &RecallQuery) -> Result<HashMap<i64, f64>> {
    let hits = memories_by_words(store, query)?;
    let most = hits.iter().map(|hit| hit.score).fold(0.0, f64::max);
    Ok(hits.into_iter().filter(|_| most > 0.0).map(|hit| (hit.id, hit.score / most)).collect())
}

/// Maps a score to a share from 0 to below 1: s / (s + 0.5).
pub fn similarity(score: f64) -> f64 {
    let score = score.max(0.0);
    (score / (score + HALF) * 1000.0).round() / 1000.0
}

/// Returns a project's units related to a description, best first, down to a share of the best score. Superseded
/// memories are excluded.
pub(super) fn related_units(store: &Store, query: &RecallQuery, limit: usize, share: f64) -> Result<Vec<RelatedUnit>> {
    let sessions = store.sessions_in_time(query.project, query.own, TIMELINE)?;
    let mut features = routes(store, query, &sessions, Effort::RELATED)?;
    let mut units: Vec<i64> = features.found().collect();
    units.sort_unstable();
    units.dedup();
    let places: HashMap<i64, UnitLocation> =
        store.unit_places(&units, &sessions)?.into_iter().map(|place| (place.unit, place)).collect();
    // Records without a unit use their memory's id, negated.
    features.age = units.into_iter().filter(|unit| *unit < 0 || places.contains_key(unit)).map(|unit| (unit, 0)).collect();
    let scored = rank::fuse(&features, &RankWeights { stated: STATED_WEIGHT, ..RankWeights::default() });
    let scored = scored.into_iter().map(|scored| (scored.relevance(0.0, &features), scored));
    let mut candidates: Vec<(Relevance, Scored)> = scored.filter(|(relevance, _)| relevance.sum > 0.0).collect();
    candidates.sort_by(|a, b| b.0.sum.total_cmp(&a.0.sum).then(b.1.unit.cmp(&a.1.unit)));
    let least = candidates.first().map_or(0.0, |(best, _)| best.sum * share);
    candidates.retain(|(relevance, _)| relevance.sum >= least);
    let mut related_units = Vec::new();
    for (relevance, scored) in candidates {
        let score = relevance.sum;
        if related_units.len() == limit {
            break;
        }
        if scored.unit < 0 {
            let Some(head) = store.memory_by_row(-scored.unit)?.filter(|memory| memory.superseded_by.is_none()) else { continue };
            let mut memories = store.memories_of_task(&head.uuid)?;
            memories.insert(0, head);
            related_units.push(RelatedUnit { score, unit: None, memories });
        } else if let Some(past) = found(store, &places, (scored, relevance))? {
            related_units.push(RelatedUnit { score, unit: Some(past.unit), memories: past.memories });
        }
    }
    Ok(related_units)
}

/// Maximum passages for a request.
const PASSAGES: usize = 20;
/// Number of ranked units to select from.
const RANKED: usize = 16;

/// A task in a folder of a project.
#[derive(Clone, Copy, Debug)]
pub struct CurrentTask<'a> {
    pub project: i64,
    pub folder: &'a Path,
    pub home: Option<&'a Path>,
    pub request: Option<&'a str>,
    /// Files of the task, absolute or relative to the folder.
    pub files: &'a [String],
    /// Embedding of the request, and the model.
    pub embedding: Option<(&'a str, &'a Vector)>,
    /// Time of the question.
    pub now: Millis,
}

impl CurrentTask<'_> {
    fn branch(&self) -> Option<String> {
        git::state_at(self.folder, self.home).and_then(|state| state.branch)
    }
}

/// Passages that answer the request of a task, and the work units related to it, best first. Without files, nothing is
/// related to a request that nothing answers.
pub fn for_task(store: &Store, task: &CurrentTask) -> Result<RelatedWork> {
    let strangers = store.count_of_strangers(task.project)?;
    let Some(request) = task.request else {
        return Ok(RelatedWork { units: units_for_task(store, task)?, strangers, ..RelatedWork::default() });
    };
    let filter = Filter { scope: SearchScope::of(task.project), asked_at: Some(task.now), ..Filter::default() };
    let embedding = |_: &str| task.embedding.map(|(model, vector)| (model.to_string(), vector.clone()));
    let found = search(store, request, &HitKind::ALL, &filter, PASSAGES, &embedding)?;
    // "Go on" names no subject: then the branch tells.
    let is_nothing = found.grade == Some(Grade::None) && task.files.is_empty() && !rank::subject(request).is_empty();
    let units = if is_nothing { Vec::new() } else { units_for_task(store, task)? };
    // Raw tool uses are for a person who looks for them.
    let is_known = |hit: &Hit| hit.team.as_ref().is_none_or(|team| team.is_trusted);
    let passages = found.hits.into_iter().filter(|hit| hit.passage.is_some() && is_known(hit)).collect();
    Ok(RelatedWork { passages, grade: found.grade, units, strangers })
}

fn units_for_task(store: &Store, task: &CurrentTask) -> Result<Vec<RankedUnit>> {
    let (branch, cwd) = (task.branch(), task.folder.to_string_lossy());
    let relative = |file: &String| project::relative(&task.folder.join(file).to_string_lossy(), Some(&cwd), task.home);
    let files: Vec<String> = task.files.iter().map(relative).collect();
    let query = RecallQuery {
        project: task.project,
        own: None,
        request: task.request,
        branch: branch.as_deref(),
        embedding: task.embedding,
        files: &files,
        root: project::worktree_root(task.folder, task.home),
    };
    let mut units = ranked(store, &query, RANKED)?;
    units.iter_mut().for_each(|unit| unit.memories.retain(|memory| !memory.is_of_stranger()));
    Ok(units)
}

/// Returns what a new session above its repositories needs from each of them.
pub fn for_session_above(store: &Store, task: &CurrentTask, now: Millis) -> Result<Vec<Recalled>> {
    let here = SessionContext { home: task.home, ..SessionContext::default() };
    below(store, task.folder, here, now)
}

/// Returns the memories for a session that starts in the task's folder.
pub fn for_new_session(store: &Store, task: &CurrentTask, now: Millis) -> Result<Recalled> {
    let branch = task.branch();
    let root = project::worktree_root(task.folder, task.home);
    let here = SessionContext { own: None, agent: None, branch: branch.as_deref(), root, home: task.home };
    at_start(store, task.project, here, now)
}
