//! Sessions with their latest units and turns, for a session start and for `nmem log`.

use crate::model::{Millis, PromptRow, PromptSource, SessionOverview, SessionRow, SessionStatus, TurnOverview, UnitOverview};
use crate::project::client;
use crate::store::Store;
use anyhow::Result;

/// A session whose client cannot be checked counts as active for this long after its last event.
const SILENCE: Millis = 30 * 60_000;

/// Adds to each session its last units, newest first, and its last turns, in order.
pub fn overviews(
    store: &Store,
    sessions: Vec<SessionRow>,
    units_each: usize,
    turns_each: usize,
    now: Millis,
) -> Result<Vec<SessionOverview>> {
    let units = store.last_units(&sessions.iter().map(|session| session.id).collect::<Vec<_>>(), units_each)?;
    let mut summaries = store.summaries_of_units(&units.iter().map(|unit| unit.id).collect::<Vec<_>>())?;
    let mut units: Vec<UnitOverview> =
        units.into_iter().map(|unit| UnitOverview { summary: summaries.remove(&unit.id), unit }).collect();
    let overviews = sessions.into_iter().map(|session| {
        let last_event_at = store.last_use(session.id)?.unwrap_or(0).max(session.active_at);
        let alive = session.client.and_then(client::is_alive);
        let state = match (session.ended_at, alive) {
            (Some(_), _) => SessionStatus::Ended,
            (None, Some(true)) => SessionStatus::Active,
            (None, None) if now - last_event_at < SILENCE => SessionStatus::Active,
            (None, _) => SessionStatus::Interrupted,
        };
        let units = units.extract_if(.., |overview| overview.unit.session == session.id).collect();
        let mut turns = turns(&store.last_said(session.id)?);
        turns.drain(..turns.len().saturating_sub(turns_each));
        Ok(SessionOverview { session, state, last_event_at, turns, units })
    });
    overviews.collect()
}

/// Groups consecutive messages into turns.
pub(super) fn turns(prompts: &[PromptRow]) -> Vec<TurnOverview> {
    let mut turns: Vec<TurnOverview> = Vec::new();
    for prompt in prompts {
        match (prompt.source, turns.last_mut()) {
            // A prompt that was interrupted and asked again is one turn.
            (PromptSource::User, Some(turn)) if turn.answer.is_none() && turn.prompt == prompt.text => {
                turn.number = prompt.number
            }
            (PromptSource::User, _) => {
                turns.push(TurnOverview { number: prompt.number, prompt: prompt.text.clone(), answer: None })
            }
            // A turn may end several times (a stop hook continues it, a background task reports); the last message
            // counts.
            (_, Some(turn)) if turn.number == prompt.number => turn.answer = Some(prompt.text.clone()),
            _ => {}
        }
    }
    turns
}
