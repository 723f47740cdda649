//! For a session that begins, or goes on behind a compaction: where work stopped, what was decided and learnt, what was
//! found and changed.

use crate::model::{MemoryKind, Millis, Platform, PromptRow, Recalled, SessionRow, SessionTold, State, Turn, UnitTold};
use crate::project::client;
use crate::store::Store;
use anyhow::Result;

/// Sessions that are looked at.
const SESSIONS: usize = 8;
/// Units that are told of one session.
const UNITS: usize = 5;
/// Turns of a session that are told, and of the session's own record after a compaction.
const TURNS: usize = 1;
const OWN_TURNS: usize = 10;
const OWN_UNITS: usize = 12;
/// Memories that are gathered of each sort; how many are told, the room decides.
const SETTLED: usize = 12;
const OBSERVATIONS: usize = 24;
/// A session whose client can't be asked counts as at work for so long after its last event.
const SILENCE: Millis = 30 * 60_000;

/// Gathers what went before in a project; `own` is the session that asks, which is left out.
pub fn at_start(store: &Store, project: i64, own: Option<&str>, now: Millis) -> Result<Recalled> {
    let mut sessions = store.last_sessions(project, SESSIONS + 1)?;
    sessions.retain(|s| Some(s.agent_session_id.as_str()) != own);
    sessions.truncate(SESSIONS);
    let sessions = sessions.into_iter().map(|s| told(store, s, (TURNS, UNITS), now)).collect::<Result<Vec<_>>>()?;
    let pinned = store.pinned_memories(project, SETTLED)?;
    let unpinned = |kinds: &[MemoryKind], most: usize| -> Result<Vec<_>> {
        Ok(store.newest_memories(project, kinds, most)?.into_iter().filter(|memory| !memory.pinned).collect())
    };
    Ok(Recalled {
        sessions,
        settled: unpinned(&[MemoryKind::Decision, MemoryKind::Lesson], SETTLED)?,
        observations: unpinned(&[MemoryKind::Observation], OBSERVATIONS)?,
        pinned,
    })
}

/// Gathers what a session did so far, when its conversation was cut away.
pub fn after_compaction(store: &Store, own: (Platform, &str), now: Millis) -> Result<Recalled> {
    let Some(session) = store.session_by_agent_id(own.0, own.1)? else { return Ok(Recalled::default()) };
    if session.prompts + session.tool_uses == 0 {
        return Ok(Recalled::default());
    }
    let mut memories = store.memories_of_session(session.id)?;
    memories.retain(|memory| memory.superseded_by.is_none());
    memories.reverse();
    let of = |kinds: &[&str]| memories.iter().filter(|memory| kinds.contains(&memory.kind.as_str())).cloned().collect();
    Ok(Recalled {
        settled: of(&["decision", "lesson"]),
        observations: of(&["observation"]),
        pinned: Vec::new(),
        sessions: vec![told(store, session, (OWN_TURNS, OWN_UNITS), now)?],
    })
}

fn told(store: &Store, session: SessionRow, (turns, units): (usize, usize), now: Millis) -> Result<SessionTold> {
    let until = store.last_use(session.id)?.unwrap_or(0).max(session.active_at);
    let alive = session.client.and_then(client::is_alive);
    let state = match (session.ended_at, alive) {
        (Some(_), _) => State::Ended,
        (None, Some(true)) => State::AtWork,
        (None, None) if now - until < SILENCE => State::AtWork,
        (None, _) => State::BrokenOff,
    };
    let told = |unit: crate::model::UnitRow| {
        let summary = store.summary_of_unit(unit.session, unit.id)?;
        Ok(UnitTold { unit, summary })
    };
    let units = store.last_units(session.id, units)?.into_iter().map(told).collect::<Result<_>>()?;
    let mut turns_told = as_turns(&store.last_said(session.id)?);
    turns_told.drain(..turns_told.len().saturating_sub(turns));
    Ok(SessionTold { session, state, until, turns: turns_told, units })
}

fn as_turns(prompts: &[PromptRow]) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    for prompt in prompts {
        match (prompt.source.as_str(), turns.last_mut()) {
            // Broken off and asked again: one question.
            ("user", Some(turn)) if turn.done.is_none() && turn.asked == prompt.text => turn.number = prompt.number,
            ("user", _) => turns.push(Turn { number: prompt.number, asked: prompt.text.clone(), done: None }),
            // A turn may close several times (a stop hook goes on, a background task reports): the last word counts.
            (_, Some(turn)) if turn.number == prompt.number => turn.done = Some(prompt.text.clone()),
            _ => {}
        }
    }
    turns
}
