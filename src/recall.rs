//! Use case: what a session that begins now should know; for now, the last session of its project and the last work units.

use crate::digest::digest;
use crate::model::{Digest, Millis, Platform, SessionRow, State, UnitRow};
use crate::project::client;
use crate::render::context::{Occasion, for_agent};
use crate::store::Store;
use anyhow::Result;

/// Sessions that are looked at.
const SESSIONS: usize = 8;
/// Units that are told of, and of one session at most.
const UNITS: usize = 12;
const UNITS_OF_SESSION: usize = 5;
/// A session whose client can't be asked counts as at work for so long after its last event.
const SILENCE: Millis = 30 * 60_000;

/// What was recalled for a moment.
#[derive(Debug, Default)]
pub struct Recalled {
    /// The newest first.
    pub digests: Vec<Digest>,
    /// Pieces of work, the newest first.
    pub units: Vec<UnitRow>,
    /// The block for an agent; empty where there is nothing to say.
    pub text: String,
}

/// Tells what went before in a project; `own` is the session that asks, which is left out.
pub fn at_start(store: &Store, project: i64, own: Option<&str>, budget: usize, now: Millis) -> Result<Recalled> {
    let mut sessions = store.last_sessions(project, SESSIONS + 1)?;
    sessions.retain(|s| Some(s.agent_session_id.as_str()) != own);
    sessions.truncate(SESSIONS);
    let digests = sessions.into_iter().map(|s| told(store, s, now)).collect::<Result<Vec<_>>>()?;
    let mut units = Vec::new();
    for digest in digests.iter().filter(|digest| digest.state != State::AtWork) {
        if units.len() < UNITS {
            units.extend(store.last_units(digest.session.id, UNITS_OF_SESSION)?);
        }
    }
    units.truncate(UNITS);
    let text = for_agent(Occasion::Start, &digests, &units, budget);
    Ok(Recalled { digests, units, text })
}

/// Tells a session what it did so far, when its conversation was cut away.
pub fn after_compaction(store: &Store, own: (Platform, &str), budget: usize, now: Millis) -> Result<Recalled> {
    let Some(session) = store.session_by_agent_id(own.0, own.1)? else { return Ok(Recalled::default()) };
    if session.prompts + session.tool_uses == 0 {
        return Ok(Recalled::default());
    }
    let digests = vec![told(store, session, now)?];
    let units = store.last_units(digests[0].session.id, UNITS)?;
    let text = for_agent(Occasion::Compacted, &digests, &units, budget);
    Ok(Recalled { digests, units, text })
}

fn told(store: &Store, session: SessionRow, now: Millis) -> Result<Digest> {
    let until = store.last_use(session.id)?.unwrap_or(0).max(session.active_at);
    let alive = session.client.and_then(client::is_alive);
    let state = match (session.ended_at, alive) {
        (Some(_), _) => State::Ended,
        (None, Some(true)) => State::AtWork,
        (None, None) if now - until < SILENCE => State::AtWork,
        (None, _) => State::BrokenOff,
    };
    Ok(digest(store.story(session)?, state, until))
}
