//! For a request, files in play and a branch: pieces of work in the order in which they matter, with the reasons.

use super::stale::stale;
use crate::model::{Beside, Filter, Hit, HitKind, MemoryKind, MemoryRow, Past, Vector, Why};
use crate::rank::{self, Kin, Moment, Scored, Trace, Weights};
use crate::store::Store;
use crate::store::recall::{Effort, UnitPlace};
use crate::store::search::Query;
use crate::words::files_named;
use anyhow::Result;
use std::collections::HashMap;
use std::path::Path;

/// Sessions whose units are looked at without any other sign, and sessions of the same branch.
const RECENT: usize = 24;
/// Sessions in whose files a name without its folder is looked for.
const NAMED: usize = 60;
/// The best, whose files lead to others.
const BEST: usize = 4;
/// Units that one of the best leads to.
const KIN: usize = 40;
/// What may be contradicted, and how many of the newest are asked whether they do.
const SETTLED: [MemoryKind; 2] = [MemoryKind::Decision, MemoryKind::Lesson];
const NEWEST: usize = 24;
/// Memories that are near in meaning.
const NEAR: usize = 40;
/// Memories by which pieces are found, and words by which they are looked for.
const TOLD: usize = 60;
const TOLD_BY: usize = 24;
/// Pieces of work of which it is asked at a prompt where they stand.
const AMONG: usize = 12;
/// Of the best score, what is at least worth a line.
const LEAST: f64 = 0.25;

/// What is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked<'a> {
    pub project: i64,
    /// The session that asks, which is left out.
    pub own: Option<i64>,
    pub request: Option<&'a str>,
    pub branch: Option<&'a str>,
    /// What the request means, and the model that says so.
    pub meaning: Option<(&'a str, &'a Vector)>,
    /// Files in play, relative to the worktree's root.
    pub files: &'a [String],
    /// The worktree's root, where files are looked at; `None`: nothing is said of what became of them.
    pub root: Option<&'a Path>,
}

/// The same at a prompt, where milliseconds count: what is clearly relevant by what speaks for it beside its age and its kin.
pub(super) fn clear(store: &Store, asked: &Asked, limit: usize) -> Result<Vec<Past>> {
    let weights = Weights::default();
    let mut moment = routes(store, asked, &[], Effort::QUICK)?;
    moment.age = moment.found().map(|unit| (unit, 0)).collect();
    // Where a piece of work stands is asked only of those that could be clear on the right branch.
    let could_be = rank::fuse(&moment, &weights).into_iter().filter(|scored| scored.clarity(weights.branch).is_enough);
    let could_be: Vec<i64> = could_be.take(AMONG).map(|scored| scored.unit).collect();
    if could_be.is_empty() {
        return Ok(Vec::new());
    }
    let mut places = HashMap::new();
    let mut known = store.unit_places(&could_be, &[])?;
    known.retain(|place| Some(place.session) != asked.own);
    moment.age.clear();
    add_places(&mut moment, &mut places, known, asked.branch);
    let clear = rank::fuse(&moment, &weights).into_iter().filter(|scored| scored.clarity(0.0).is_enough).take(limit);
    clear.filter_map(|scored| found(store, &places, scored).transpose()).collect()
}

/// Ranks a project's pieces of work, at most `limit`, the best first.
pub fn ranked(store: &Store, asked: &Asked, limit: usize) -> Result<Vec<Past>> {
    ranked_by(store, asked, &Weights::default(), limit)
}

/// The same by other weights: what a bench compares.
pub fn ranked_by(store: &Store, asked: &Asked, weights: &Weights, limit: usize) -> Result<Vec<Past>> {
    let (scored, places) = scored(store, asked, weights, limit)?;
    let mut past =
        scored.into_iter().filter_map(|scored| found(store, &places, scored).transpose()).collect::<Result<Vec<Past>>>()?;
    let mut settled = store.newest_memories(asked.project, &SETTLED, NEWEST)?;
    settled.extend(past.iter().flat_map(|past| &past.memories).cloned());
    let against = rank::contradicted(&settled);
    for past in &mut past {
        past.beside.against = past.memories.iter().filter_map(|m| Some((m.id, *against.get(&m.id)?))).collect();
    }
    mark_stale(store, asked, &mut past)?;
    Ok(past)
}

/// What is remembered of a piece of work, and how near that is.
pub struct NearUnit {
    pub unit: i64,
    pub score: f64,
    pub why: Vec<Why>,
    /// Those that hold.
    pub memories: Vec<MemoryRow>,
}

/// The same ranking where only memories are asked for.
pub(super) fn near_units(store: &Store, asked: &Asked, limit: usize) -> Result<Vec<NearUnit>> {
    let (scored, _) = scored(store, asked, &Weights::default(), limit)?;
    let mut memories = store.memories_of_units(&scored.iter().map(|scored| scored.unit).collect::<Vec<_>>())?;
    let near = scored.into_iter().map(|scored| NearUnit {
        unit: scored.unit,
        score: scored.score,
        why: reasons(&scored),
        memories: memories.extract_if(.., |memory| memory.unit == Some(scored.unit)).collect(),
    });
    Ok(near.collect())
}

/// The nearest units with their scores, at most `limit`, and where they stand.
fn scored(store: &Store, asked: &Asked, weights: &Weights, limit: usize) -> Result<(Vec<Scored>, HashMap<i64, UnitPlace>)> {
    let sessions = store.sessions_in_time(asked.project, asked.own)?;
    let (mut moment, mut places) = moment(store, asked, &sessions)?;
    let mut scored = rank::fuse(&moment, weights);
    let kin = kin(store, asked.project, &scored, &places)?;
    let more: Vec<i64> = kin.iter().flat_map(|kin| kin.units.keys()).filter(|unit| !places.contains_key(unit)).copied().collect();
    if !more.is_empty() {
        add_places(&mut moment, &mut places, store.unit_places(&more, &sessions)?, asked.branch);
        scored = rank::fuse(&moment, weights);
    }
    let scored = rank::with_kin(scored, &kin, &moment, weights);
    let least = scored.first().map_or(0.0, |best| best.score * LEAST);
    let best = scored.into_iter().filter(|scored| scored.score > least).take(limit);
    Ok((best.collect(), places))
}

fn reasons(scored: &Scored) -> Vec<Why> {
    scored.reasons.iter().map(|reason| Why { what: reason.route.name(), adds: reason.adds }).collect()
}

/// Marks memories whose files are not what they were.
pub(super) fn mark_stale(store: &Store, asked: &Asked, past: &mut [Past]) -> Result<()> {
    let Some(root) = asked.root else { return Ok(()) };
    let mut stale = stale(store, asked.project, root, past.iter().flat_map(|past| &past.memories))?;
    for past in past {
        past.beside.stale = past.memories.iter().filter_map(|memory| stale.remove_entry(&memory.id)).collect();
    }
    Ok(())
}

/// What each route finds, and where it stands.
fn moment(store: &Store, asked: &Asked, sessions: &[(i64, Option<String>)]) -> Result<(Moment, HashMap<i64, UnitPlace>)> {
    let mut moment = routes(store, asked, sessions, Effort::WHOLE)?;
    let on_branch = |branch: &Option<String>| branch.as_deref().is_some_and(|b| Some(b) == asked.branch && rank::is_topic(b));
    let near = sessions.iter().take(RECENT);
    let same = sessions.iter().filter(|(_, branch)| on_branch(branch)).take(RECENT);
    let near: Vec<i64> = near.chain(same).map(|(id, _)| *id).collect();
    let mut units = store.units_of_sessions(&near)?;
    units.extend(moment.found());
    units.sort_unstable();
    units.dedup();
    let lately: Vec<i64> = sessions.iter().take(RECENT).rev().map(|(id, _)| *id).collect();
    moment.trace = Trace::of(&store.edited_by_sessions(&lately)?);
    let mut places = HashMap::new();
    add_places(&mut moment, &mut places, store.unit_places(&units, sessions)?, asked.branch);
    Ok((moment, places))
}

/// What is found by words and files.
pub(super) fn routes(store: &Store, asked: &Asked, sessions: &[(i64, Option<String>)], effort: Effort) -> Result<Moment> {
    let project = asked.project;
    let written = files_named(asked.request.unwrap_or_default());
    let written = if written.is_empty() { Vec::new() } else { whole_paths(store, &written, sessions)? };
    Ok(Moment {
        words: store.units_by_words(project, &rank::terms(asked.request.unwrap_or_default()), effort)?,
        told: if effort.is_related() { told(store, asked)? } else { HashMap::new() },
        branch_name: store.units_by_words(project, &rank::branch_terms(asked.branch.unwrap_or_default()), effort)?,
        meaning: by_meaning(store, asked)?,
        files: store.units_by_files(project, asked.files, true, effort)?,
        named: store.units_by_files(project, &written, true, effort)?,
        same_branch: Vec::new(),
        age: HashMap::new(),
        trace: Trace(0.5),
    })
}

/// Pieces of work by what is remembered of them: the best of its memories.
fn told(store: &Store, asked: &Asked) -> Result<HashMap<i64, f64>> {
    let mut found: HashMap<i64, f64> = HashMap::new();
    for hit in memories_by_words(store, asked)? {
        let piece = match hit.unit {
            Some(unit) => unit,
            None => -store.head_of(hit.id)?,
        };
        let best = found.entry(piece).or_default();
        *best = best.max(hit.score);
    }
    Ok(found)
}

/// Memories that hold words of the request.
pub(super) fn memories_by_words(store: &Store, asked: &Asked) -> Result<Vec<Hit>> {
    let words = rank::terms(asked.request.unwrap_or_default());
    let query = Query::parse(&words[..words.len().min(TOLD_BY)].join(" "));
    let kinds = [MemoryKind::Task, MemoryKind::Summary, MemoryKind::Decision, MemoryKind::Lesson, MemoryKind::Observation];
    let filter = Filter { project: Some(asked.project), memories: kinds.to_vec(), ..Filter::default() };
    store.search(&query, &[HitKind::Memory], &filter, TOLD)
}

/// Units whose memories come near the request in meaning: the cosine, from the mean of all on.
fn by_meaning(store: &Store, asked: &Asked) -> Result<HashMap<i64, f64>> {
    let Some((model, vector)) = asked.meaning else { return Ok(HashMap::new()) };
    let near = store.nearest_memories(asked.project, model, vector, NEAR)?;
    let mut units: HashMap<i64, f64> = HashMap::new();
    for (unit, cosine) in store.units_of_memories(&near.memories)? {
        if let Some(out) = near.stands_out(cosine) {
            let best = units.entry(unit).or_default();
            *best = best.max(out);
        }
    }
    Ok(units)
}

/// What somebody wrote of files, as they are stored: `login.rs` is `src/login.rs` where one was at work on it lately.
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

fn add_places(moment: &mut Moment, all: &mut HashMap<i64, UnitPlace>, places: Vec<UnitPlace>, branch: Option<&str>) {
    for place in places {
        moment.age.insert(place.unit, place.age);
        if place.branch.as_deref().is_some_and(|on| Some(on) == branch && rank::is_topic(on)) {
            moment.same_branch.push(place.unit);
        }
        all.insert(place.unit, place);
    }
}

/// Which units of other sessions changed the files of the best ones, and how alike their files are.
fn kin(store: &Store, project: i64, scored: &[Scored], places: &HashMap<i64, UnitPlace>) -> Result<Vec<Kin>> {
    let best: Vec<&UnitPlace> = scored.iter().take(BEST).filter_map(|best| places.get(&best.unit)).collect();
    let mut edited = store.edited_by_units(&best.iter().map(|place| place.unit).collect::<Vec<_>>())?;
    let mut near: Vec<(i64, i64, Vec<i64>)> = Vec::new();
    for place in best {
        let files = edited.entry(place.unit).or_default();
        let found = store.units_by_files(project, files, false, Effort::WHOLE)?;
        let mut found: Vec<(i64, f64)> = found.into_iter().collect();
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
        found.truncate(KIN);
        near.push((place.unit, place.session, found.into_iter().map(|(unit, _)| unit).collect()));
    }
    let others: Vec<i64> =
        near.iter().flat_map(|(_, _, found)| found).filter(|unit| !edited.contains_key(unit)).copied().collect();
    let mut theirs = store.edited_by_units(&others)?;
    edited.extend(others.into_iter().map(|unit| (unit, theirs.remove(&unit).unwrap_or_default())));
    let alike = rank::alike_by_files(&edited, scored.len());
    let other = |unit: &i64, session: i64| places.get(unit).is_none_or(|other| other.session != session);
    let told = near.into_iter().map(|(of, session, found)| {
        let units = found.into_iter().filter(|unit| other(unit, session));
        Kin { of, units: units.map(|unit| (unit, alike(of, unit))).collect() }
    });
    Ok(told.collect())
}

pub(super) fn found(store: &Store, places: &HashMap<i64, UnitPlace>, scored: Scored) -> Result<Option<Past>> {
    let Some(unit) = store.unit_by_row(scored.unit)? else { return Ok(None) };
    let mut memories = store.memories_of_unit(unit.session, unit.id)?;
    memories.retain(|memory: &MemoryRow| memory.superseded_by.is_none());
    let clarity = scored.clarity(0.0);
    let why = reasons(&scored);
    let branch = places.get(&scored.unit).and_then(|place| place.branch.clone());
    Ok(Some(Past { unit, branch, score: scored.score, why, memories, beside: Beside::default(), clarity }))
}
