//! For a session that begins: where work stopped, what was decided and learnt, what was found and changed.

use super::patterns::suggested_at_start;
use super::ranked::{Asked, near_units};
use super::stale::stale;
use crate::model::{
    Beside, MemoryKind, MemoryRow, Millis, PromptRow, PromptSource, Recalled, SessionRow, SessionTold, State, Turn, UnitTold,
};
use crate::project::client;
use crate::rank;
use crate::store::Store;
use anyhow::Result;
use std::path::Path;

/// Sessions that are looked at.
const SESSIONS: usize = 8;
/// Units that are told of one session.
const UNITS: usize = 5;
/// Turns of a session that are told.
const TURNS: usize = 1;
/// Decisions and lessons that are gathered; how many are told, the room decides.
const SETTLED: usize = 12;
/// Pieces of work that are ranked for it.
const NEAR: usize = 24;
/// A session whose client can't be asked counts as at work for so long after its last event.
const SILENCE: Millis = 30 * 60_000;

/// What is told at most, as the user set it.
#[derive(Clone, Copy, Debug)]
pub struct Most {
    pub observations: usize,
    /// Of pieces of work, the newest; of others only what was asked for, and what became of it.
    pub summaries: usize,
}

/// Where a session begins.
#[derive(Clone, Copy, Debug, Default)]
pub struct Here<'a> {
    /// The session that asks, which is left out.
    pub own: Option<i64>,
    pub branch: Option<&'a str>,
    /// The worktree's root, where files are looked at.
    pub root: Option<&'a Path>,
}

/// Gathers what went before in a project, for a session that begins. What was found and decided is told by what it has to do with the branch and with the files at which work stopped.
pub fn at_start(store: &Store, project: i64, here: Here, most: Most, now: Millis) -> Result<Recalled> {
    let Here { own, branch, root } = here;
    let mut sessions = store.last_sessions(project, SESSIONS + 1)?;
    sessions.retain(|s| Some(s.id) != own);
    sessions.truncate(SESSIONS);
    let mut sessions = told(store, sessions, now)?;
    let summed_up = sessions.iter_mut().flat_map(|told| &mut told.units).filter(|told| told.summary.is_some());
    summed_up.skip(most.summaries).for_each(|told| told.summary = None);
    let pinned = store.pinned_memories(project, SETTLED)?;
    let worked = sessions.iter().flat_map(|told| &told.units).find(|told| told.unit.files.iter().any(|file| file.edits > 0));
    let files = worked.map(|told| store.edited_by_unit(told.unit.id)).transpose()?.unwrap_or_default();
    let asked = Asked { project, own, request: None, branch, meaning: None, files: &files, root: None };
    let near = near_units(store, &asked, NEAR)?;
    let gathered = |kinds: &[MemoryKind], most: usize| -> Result<Vec<MemoryRow>> {
        let mut all: Vec<MemoryRow> = store.newest_memories(project, kinds, most)?;
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
    let settled = gathered(&[MemoryKind::Decision, MemoryKind::Lesson], SETTLED)?;
    let observations = gathered(&[MemoryKind::Observation], most.observations)?;
    let against = rank::contradicted(&[&pinned[..], &settled[..]].concat());
    let settled = rank::side_by_side(settled, &against);
    let shown = pinned.iter().chain(&settled).chain(&observations);
    let stale = root.map(|root| stale(store, project, root, shown)).transpose()?.unwrap_or_default();
    let beside = Beside { against, stale };
    let why = near.into_iter().map(|past| (past.unit, (past.score, past.why))).collect();
    let suggestions = suggested_at_start(store, project, &files, &settled)?;
    Ok(Recalled { sessions, settled, beside, observations, pinned, why, suggestions })
}

/// Sessions with their last turns and units.
fn told(store: &Store, sessions: Vec<SessionRow>, now: Millis) -> Result<Vec<SessionTold>> {
    let units = store.last_units(&sessions.iter().map(|session| session.id).collect::<Vec<_>>(), UNITS)?;
    let mut summaries = store.summaries_of_units(&units.iter().map(|unit| unit.id).collect::<Vec<_>>())?;
    let mut units: Vec<UnitTold> = units.into_iter().map(|unit| UnitTold { summary: summaries.remove(&unit.id), unit }).collect();
    let told = sessions.into_iter().map(|session| {
        let until = store.last_use(session.id)?.unwrap_or(0).max(session.active_at);
        let alive = session.client.and_then(client::is_alive);
        let state = match (session.ended_at, alive) {
            (Some(_), _) => State::Ended,
            (None, Some(true)) => State::AtWork,
            (None, None) if now - until < SILENCE => State::AtWork,
            (None, _) => State::BrokenOff,
        };
        let units = units.extract_if(.., |told| told.unit.session == session.id).collect();
        let mut turns = as_turns(&store.last_said(session.id)?);
        turns.drain(..turns.len().saturating_sub(TURNS));
        Ok(SessionTold { session, state, until, turns, units })
    });
    told.collect()
}

fn as_turns(prompts: &[PromptRow]) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    for prompt in prompts {
        match (prompt.source, turns.last_mut()) {
            // Broken off and asked again: one question.
            (PromptSource::User, Some(turn)) if turn.done.is_none() && turn.asked == prompt.text => turn.number = prompt.number,
            (PromptSource::User, _) => turns.push(Turn { number: prompt.number, asked: prompt.text.clone(), done: None }),
            // A turn may close several times (a stop hook goes on, a background task reports): the last word counts.
            (_, Some(turn)) if turn.number == prompt.number => turn.done = Some(prompt.text.clone()),
            _ => {}
        }
    }
    turns
}
