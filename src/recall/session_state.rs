//! The state of a session whose conversation was lost through compaction or `/clear`.

use crate::model::{Annotations, Failing, MemoryKind, MemoryRow, Millis, PromptSource, SessionState, UnitOverview};
use crate::rank;
use crate::store::Store;
use anyhow::Result;

/// Maximum number of units.
const UNITS: usize = 12;
/// Maximum number of failing commands.
const FAILING: usize = 4;
/// Maximum time after `/clear` in which the new session continues the cleared one, in milliseconds.
const JUST_NOW: Millis = 60_000;

/// Returns the session of a project that `/clear` has just ended; the client continues in a new one.
pub fn cleared(store: &Store, project: i64, own: i64, now: Millis) -> Result<Option<i64>> {
    let client = store.session_by_row(own)?.and_then(|session| session.client);
    let last = store.last_sessions(project, 4)?.into_iter().find(|session| {
        // Two clients in one folder each continue their own session.
        let is_same = client.as_ref().zip(session.client.as_ref()).is_none_or(|(own, other)| own.pid == other.pid);
        let ended = session.ended_at.is_some_and(|at| now - at <= JUST_NOW);
        session.id != own && is_same && ended && session.end_reason.as_deref() == Some("clear")
    });
    Ok(last.map(|session| session.id))
}

/// Gathers the state of a session; `None` if it is empty.
pub fn session_state(store: &Store, session: i64) -> Result<Option<SessionState>> {
    let Some(session) = store.session_by_row(session)?.filter(|session| session.prompts + session.tool_uses > 0) else {
        return Ok(None);
    };
    let mut units = store.last_units(&[session.id], UNITS)?.into_iter();
    let unit = units.next();
    let overview = |unit: crate::model::UnitRow| {
        let summary = store.summary_of_unit(unit.session, unit.id)?;
        Ok(UnitOverview { unit, summary })
    };
    let earlier_units = units.map(overview).collect::<Result<_>>()?;
    let story = unit.as_ref().map(|unit| store.unit_story(unit.id)).transpose()?.flatten();
    let texts =
        |source: PromptSource| story.iter().flat_map(|story| &story.prompts).filter(move |prompt| prompt.source == source);
    let prompts = texts(PromptSource::User).map(|prompt| (prompt.number, prompt.text.clone())).collect();
    let last_answer = texts(PromptSource::Agent).next_back().map(|prompt| prompt.text.clone());
    let mut failing: Vec<Failing> = story.as_ref().map(crate::memories::failing).unwrap_or_default();
    failing.reverse();
    failing.truncate(FAILING);
    let mut memories = store.memories_of_session(session.id)?;
    memories.retain(|memory| memory.superseded_by.is_none());
    memories.reverse();
    let (decisions, rest): (Vec<MemoryRow>, Vec<MemoryRow>) =
        memories.into_iter().partition(|memory| matches!(memory.kind, MemoryKind::Decision | MemoryKind::Lesson));
    let observations = rest.into_iter().filter(|memory| memory.kind == MemoryKind::Observation).collect();
    let contradicted_by = rank::contradicted(&decisions);
    let open = session.tasks.iter().filter(|task| task.status != "completed").map(|task| task.subject.clone());
    Ok(Some(SessionState {
        open_tasks: open.collect(),
        unit,
        prompts,
        last_answer,
        failing,
        decisions: rank::side_by_side(decisions, &contradicted_by),
        annotations: Annotations { contradicted_by, ..Annotations::default() },
        observations,
        earlier_units,
        session,
    }))
}
