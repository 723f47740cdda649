//! Ranks a project's work units for a request, files in play and a branch, with reasons.

use super::stale::stale;
use crate::model::{Annotations, Filter, Hit, HitKind, MemoryKind, MemoryRow, RankedUnit, Vector, Why};
use crate::rank::{self, CandidateFeatures, FileNeighbours, RankWeights, RecencyPrior, Scored};
use crate::store::Store;
use crate::store::recall::{Effort, UnitLocation};
use crate::store::search::Query;
use crate::text::files_named;
use anyhow::Result;
use std::collections::HashMap;
use std::path::Path;

/// Number of recent sessions, and of sessions on the same branch, whose units are always candidates.
const RECENT: usize = 24;
/// Number of sessions in whose files a bare file name is looked up.
const NAMED: usize = 60;
/// Number of best hits whose files lead to others.
const BEST: usize = 4;
/// Maximum units per best hit.
const NEIGHBOURS: usize = 40;
/// Kinds that can be contradicted, and how many of the newest are checked.
const SETTLED: [MemoryKind; 2] = [MemoryKind::Decision, MemoryKind::Lesson];
const NEWEST: usize = 24;
/// Number of nearest memories by embedding.
const NEAR: usize = 40;
/// Maximum memories that lead to units, and maximum words to search them by.
const STATED: usize = 60;
const STATED_UNITS: usize = 24;
/// Maximum candidates at a prompt.
const AMONG: usize = 12;
/// Minimum share of the best score.
const LEAST: f64 = 0.25;

/// A recall query.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecallQuery<'a> {
    pub project: i64,
    /// The asking session, which is excluded.
    pub own: Option<i64>,
    pub request: Option<&'a str>,
    pub branch: Option<&'a str>,
    /// Embedding of the request, and the model.
    pub embedding: Option<(&'a str, &'a Vector)>,
    /// Files in play, relative to the root of the worktree.
    pub files: &'a [String],
    /// Root of the worktree, for checking files; `None`: memories are not marked stale.
    pub root: Option<&'a Path>,
}

/// A faster version for prompts: units with high relevance, not counting recency and shared files.
pub(super) fn highly_relevant(store: &Store, query: &RecallQuery, limit: usize) -> Result<Vec<RankedUnit>> {
    let weights = RankWeights::default();
    let mut features = routes(store, query, &[], Effort::QUICK)?;
    features.age = features.found().map(|unit| (unit, 0)).collect();
    // Only candidates that could qualify on the right branch are located.
    let could_be = rank::fuse(&features, &weights).into_iter().filter(|scored| scored.relevance(weights.branch).is_enough);
    let could_be: Vec<i64> = could_be.take(AMONG).map(|scored| scored.unit).collect();
    if could_be.is_empty() {
        return Ok(Vec::new());
    }
    let mut locations = HashMap::new();
    let mut known = store.unit_places(&could_be, &[])?;
    known.retain(|location| Some(location.session) != query.own);
    features.age.clear();
    add_places(&mut features, &mut locations, known, query.branch);
    let highly_relevant =
        rank::fuse(&features, &weights).into_iter().filter(|scored| scored.relevance(0.0).is_enough).take(limit);
    highly_relevant.filter_map(|scored| found(store, &locations, scored).transpose()).collect()
}

/// Ranks units, best first, at most `limit`.
pub fn ranked(store: &Store, query: &RecallQuery, limit: usize) -> Result<Vec<RankedUnit>> {
    ranked_by(store, query, &RankWeights::default(), limit)
}

/// The same with other weights, for benchmarks.
pub fn ranked_by(store: &Store, query: &RecallQuery, weights: &RankWeights, limit: usize) -> Result<Vec<RankedUnit>> {
    let (scored, locations) = scored(store, query, weights, limit)?;
    let mut units = scored
        .into_iter()
        .filter_map(|scored| found(store, &locations, scored).transpose())
        .collect::<Result<Vec<RankedUnit>>>()?;
    let mut settled = store.newest_memories(query.project, &SETTLED, NEWEST)?;
    settled.extend(units.iter().flat_map(|unit| &unit.memories).cloned());
    let against = rank::contradicted(&settled);
    for units in &mut units {
        units.annotations.contradicted_by = units.memories.iter().filter_map(|m| Some((m.id, *against.get(&m.id)?))).collect();
    }
    mark_stale(store, query, &mut units)?;
    Ok(units)
}

/// A unit's memories and relevance.
pub struct NearUnit {
    pub unit: i64,
    pub score: f64,
    pub why: Vec<Why>,
    /// Active memories only.
    pub memories: Vec<MemoryRow>,
}

/// The same ranking if only memories are needed.
pub(super) fn near_units(store: &Store, query: &RecallQuery, limit: usize) -> Result<Vec<NearUnit>> {
    let (scored, _) = scored(store, query, &RankWeights::default(), limit)?;
    let mut memories = store.memories_of_units(&scored.iter().map(|scored| scored.unit).collect::<Vec<_>>())?;
    let near = scored.into_iter().map(|scored| NearUnit {
        unit: scored.unit,
        score: scored.score,
        why: reasons(&scored),
        memories: memories.extract_if(.., |memory| memory.unit == Some(scored.unit)).collect(),
    });
    Ok(near.collect())
}

/// The best units with scores and locations, at most `limit`.
fn scored(
    store: &Store,
    query: &RecallQuery,
    weights: &RankWeights,
    limit: usize,
) -> Result<(Vec<Scored>, HashMap<i64, UnitLocation>)> {
    let sessions = store.sessions_in_time(query.project, query.own)?;
    let (mut features, mut locations) = features(store, query, &sessions)?;
    let mut scored = rank::fuse(&features, weights);
    let neighbours = neighbours(store, query.project, &scored, &locations)?;
    let more: Vec<i64> = neighbours
        .iter()
        .flat_map(|neighbours| neighbours.units.keys())
        .filter(|unit| !locations.contains_key(unit))
        .copied()
        .collect();
    if !more.is_empty() {
        add_places(&mut features, &mut locations, store.unit_places(&more, &sessions)?, query.branch);
        scored = rank::fuse(&features, weights);
    }
    let scored = rank::with_neighbours(scored, &neighbours, &features, weights);
    let least = scored.first().map_or(0.0, |best| best.score * LEAST);
    let best = scored.into_iter().filter(|scored| scored.score > least).take(limit);
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
    let on_branch = |branch: &Option<String>| branch.as_deref().is_some_and(|b| Some(b) == query.branch && rank::is_topic(b));
    let near = sessions.iter().take(RECENT);
    let same = sessions.iter().filter(|(_, branch)| on_branch(branch)).take(RECENT);
    let near: Vec<i64> = near.chain(same).map(|(id, _)| *id).collect();
    let mut units = store.units_of_sessions(&near)?;
    units.extend(features.found());
    units.sort_unstable();
    units.dedup();
    let lately: Vec<i64> = sessions.iter().take(RECENT).rev().map(|(id, _)| *id).collect();
    features.trace = RecencyPrior::of(&store.edited_by_sessions(&lately)?);
    let mut locations = HashMap::new();
    add_places(&mut features, &mut locations, store.unit_places(&units, sessions)?, query.branch);
    Ok((features, locations))
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
        stated: if effort.is_related() { by_stated_text(store, query)? } else { HashMap::new() },
        branch_name: store.units_by_words(project, &rank::branch_terms(query.branch.unwrap_or_default()), effort)?,
        embedding: by_embedding(store, query)?,
        files: store.units_by_files(project, query.files, true, effort)?,
        named: store.units_by_files(project, &written, true, effort)?,
        same_branch: Vec::new(),
        age: HashMap::new(),
        trace: RecencyPrior(0.5),
    })
}

/// Units by their memories' words: the best memory counts.
fn by_stated_text(store: &Store, query: &RecallQuery) -> Result<HashMap<i64, f64>> {
    let mut found: HashMap<i64, f64> = HashMap::new();
    for hit in memories_by_words(store, query)? {
        let piece = match hit.unit {
            Some(unit) => unit,
            None => -store.head_of(hit.id)?,
        };
        let best = found.entry(piece).or_default();
        *best = best.max(hit.score);
    }
    Ok(found)
}

/// Memories that contain words of the request.
pub(super) fn memories_by_words(store: &Store, query: &RecallQuery) -> Result<Vec<Hit>> {
    let words = rank::terms(query.request.unwrap_or_default());
    let search_query = Query::parse(&words[..words.len().min(STATED_UNITS)].join(" "));
    let kinds = [MemoryKind::Task, MemoryKind::Summary, MemoryKind::Decision, MemoryKind::Lesson, MemoryKind::Observation];
    let filter = Filter { project: Some(query.project), memories: kinds.to_vec(), ..Filter::default() };
    store.search(&search_query, &[HitKind::Memory], &filter, STATED)
}

/// Units by their memories' embeddings: how far the cosine exceeds the mean.
fn by_embedding(store: &Store, query: &RecallQuery) -> Result<HashMap<i64, f64>> {
    let Some((model, vector)) = query.embedding else { return Ok(HashMap::new()) };
    let near = store.nearest_memories(query.project, model, vector, NEAR)?;
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
fn whole_paths(store: &Store, written: &[&str], sessions: &[(i64, Option<String>)]) -> Result<Vec<String>> {
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
        if location.branch.as_deref().is_some_and(|on| Some(on) == branch && rank::is_topic(on)) {
            features.same_branch.push(location.unit);
        }
        all.insert(location.unit, location);
    }
}

/// Units of other sessions that edited the files of the best hits, with their similarity.
fn neighbours(
    store: &Store,
    project: i64,
    scored: &[Scored],
    locations: &HashMap<i64, UnitLocation>,
) -> Result<Vec<FileNeighbours>> {
    let best: Vec<&UnitLocation> = scored.iter().take(BEST).filter_map(|best| locations.get(&best.unit)).collect();
    let mut edited = store.edited_by_units(&best.iter().map(|location| location.unit).collect::<Vec<_>>())?;
    let mut near: Vec<(i64, i64, Vec<i64>)> = Vec::new();
    for location in best {
        let files = edited.entry(location.unit).or_default();
        let found = store.units_by_files(project, files, false, Effort::WHOLE)?;
        let mut found: Vec<(i64, f64)> = found.into_iter().collect();
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
        found.truncate(NEIGHBOURS);
        near.push((location.unit, location.session, found.into_iter().map(|(unit, _)| unit).collect()));
    }
    let others: Vec<i64> =
        near.iter().flat_map(|(_, _, found)| found).filter(|unit| !edited.contains_key(unit)).copied().collect();
    let mut theirs = store.edited_by_units(&others)?;
    edited.extend(others.into_iter().map(|unit| (unit, theirs.remove(&unit).unwrap_or_default())));
    let alike = rank::alike_by_files(&edited, scored.len());
    let other = |unit: &i64, session: i64| locations.get(unit).is_none_or(|other| other.session != session);
    let by_stated_text = near.into_iter().map(|(of, session, found)| {
        let units = found.into_iter().filter(|unit| other(unit, session));
        FileNeighbours { of, units: units.map(|unit| (unit, alike(of, unit))).collect() }
    });
    Ok(by_stated_text.collect())
}

pub(super) fn found(store: &Store, locations: &HashMap<i64, UnitLocation>, scored: Scored) -> Result<Option<RankedUnit>> {
    let Some(unit) = store.unit_by_row(scored.unit)? else { return Ok(None) };
    let mut memories = store.memories_of_unit(unit.session, unit.id)?;
    memories.retain(|memory: &MemoryRow| memory.superseded_by.is_none());
    let relevance = scored.relevance(0.0);
    let why = reasons(&scored);
    let branch = locations.get(&scored.unit).and_then(|location| location.branch.clone());
    Ok(Some(RankedUnit { unit, branch, score: scored.score, why, memories, annotations: Annotations::default(), relevance }))
}
