//! Recall for a session start: where work stopped, decisions and lessons, findings and changes.

use super::patterns::suggested_at_start;
use super::ranked::{RecallQuery, near_units};
use super::sessions::overviews;
use super::stale::stale;
use crate::model::{Annotations, MemoryKind, MemoryRow, Millis, Recalled};
use crate::rank;
use crate::store::{Store, is_broken};
use anyhow::Result;
use std::cell::Cell;
use std::path::Path;

/// Number of sessions to read.
const SESSIONS: usize = 8;
/// Maximum units per session.
const UNITS: usize = 5;
/// Maximum turns per session.
const TURNS: usize = 1;
/// Maximum decisions and lessons to gather; the budget decides how many are shown.
const SETTLED: usize = 12;
/// Number of units to rank.
const NEAR: usize = 24;

/// The user's limits.
#[derive(Clone, Copy, Debug)]
pub struct ContextLimits {
    pub observations: usize,
    /// For the newest units; older ones show only their request and outcome.
    pub summaries: usize,
}

/// The session that starts.
#[derive(Clone, Copy, Debug, Default)]
pub struct SessionContext<'a> {
    /// The session itself, which is excluded.
    pub own: Option<i64>,
    pub branch: Option<&'a str>,
    /// Root of the worktree, for checking files.
    pub root: Option<&'a Path>,
}

/// Reads part by part: one on a damaged page counts as empty.
#[derive(Default)]
struct ReadableParts {
    is_damaged: Cell<bool>,
}

impl ReadableParts {
    fn read<T: Default>(&self, part: Result<T>) -> Result<T> {
        match part {
            Err(error) if is_broken(&error) => {
                self.is_damaged.set(true);
                Ok(T::default())
            }
            part => part,
        }
    }
}

/// Gathers memories for a session start. Findings and decisions are ranked by branch and by the files edited last.
pub fn at_start(store: &Store, project: i64, here: SessionContext, most: ContextLimits, now: Millis) -> Result<Recalled> {
    let SessionContext { own, branch, root } = here;
    let parts = ReadableParts::default();
    let mut sessions = parts.read(store.last_sessions(project, SESSIONS + 1))?;
    sessions.retain(|s| Some(s.id) != own);
    sessions.truncate(SESSIONS);
    let mut sessions = parts.read(overviews(store, sessions, UNITS, TURNS, now))?;
    let summed_up =
        sessions.iter_mut().flat_map(|overviews| &mut overviews.units).filter(|overviews| overviews.summary.is_some());
    summed_up.skip(most.summaries).for_each(|overviews| overviews.summary = None);
    let pinned = parts.read(store.pinned_memories(project, SETTLED))?;
    let worked = sessions
        .iter()
        .flat_map(|overviews| &overviews.units)
        .find(|overviews| overviews.unit.files.iter().any(|file| file.edits > 0));
    let files = worked.map(|overviews| parts.read(store.edited_by_unit(overviews.unit.id))).transpose()?.unwrap_or_default();
    let query = RecallQuery { project, own, request: None, branch, embedding: None, files: &files, root: None };
    let near = parts.read(near_units(store, &query, NEAR))?;
    let gathered = |kinds: &[MemoryKind], most: usize| -> Result<Vec<MemoryRow>> {
        let mut all: Vec<MemoryRow> = parts.read(store.newest_memories(project, kinds, most))?;
        let others = near.iter().flat_map(|past| &past.memories).filter(|m| kinds.contains(&m.kind));
        for memory in others {
            if !all.iter().any(|known| known.id == memory.id) {
                all.push(memory.clone());
            }
        }
        all.retain(|memory| !memory.pinned);
        let score = |memory: &MemoryRow| near.iter().find(|past| Some(past.unit) == memory.unit).map_or(0.0, |past| past.score);
        all.sort_by(|a, b| score(b).total_cmp(&score(a)).then(b.created_at.cmp(&a.created_at)).then(b.id.cmp(&a.id)));
        all.truncate(most);
        Ok(all)
    };
    let decisions = gathered(&[MemoryKind::Decision, MemoryKind::Lesson], SETTLED)?;
    let observations = gathered(&[MemoryKind::Observation], most.observations)?;
    let contradicted_by = rank::contradicted(&[&pinned[..], &decisions[..]].concat());
    let decisions = rank::side_by_side(decisions, &contradicted_by);
    let shown = pinned.iter().chain(&decisions).chain(&observations);
    let stale = root.map(|root| parts.read(stale(store, project, root, shown))).transpose()?.unwrap_or_default();
    let annotations = Annotations { contradicted_by, stale };
    let why = near.into_iter().map(|past| (past.unit, (past.score, past.why))).collect();
    let suggestions = parts.read(suggested_at_start(store, project, &files, &decisions))?;
    let is_damaged = parts.is_damaged.get();
    Ok(Recalled { sessions, decisions, annotations, observations, pinned, why, suggestions, is_damaged })
}
