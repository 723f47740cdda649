//! For a session whose conversation was cut away, by a compaction or by `/clear`: where its own work stands.

use crate::model::{Beside, Failing, MemoryKind, MemoryRow, Millis, PromptSource, Standing, UnitTold};
use crate::rank;
use crate::rules;
use crate::store::Store;
use anyhow::Result;

/// Pieces of work that are told of the session.
const UNITS: usize = 12;
/// What fails, as far as it is told.
const FAILING: usize = 4;
/// A session that was cleared so long ago is the one that a new one goes on from.
const JUST_NOW: Millis = 60_000;

/// The session that `/clear` ended just now in a project: the client goes on in a new one.
pub fn cleared(store: &Store, project: i64, own: i64, now: Millis) -> Result<Option<i64>> {
    let client = store.session_by_row(own)?.and_then(|session| session.client);
    let last = store.last_sessions(project, 4)?.into_iter().find(|session| {
        // Of two clients in one folder each goes on from its own.
        let is_same = client.as_ref().zip(session.client.as_ref()).is_none_or(|(own, other)| own.pid == other.pid);
        let ended = session.ended_at.is_some_and(|at| now - at <= JUST_NOW);
        session.id != own && is_same && ended && session.end_reason.as_deref() == Some("clear")
    });
    Ok(last.map(|session| session.id))
}

/// Gathers where a session's work stands; `None` where nothing was said or done in it.
pub fn standing(store: &Store, session: i64) -> Result<Option<Standing>> {
    let Some(session) = store.session_by_row(session)?.filter(|session| session.prompts + session.tool_uses > 0) else {
        return Ok(None);
    };
    let mut units = store.last_units(&[session.id], UNITS)?.into_iter();
    let unit = units.next();
    let told = |unit: crate::model::UnitRow| {
        let summary = store.summary_of_unit(unit.session, unit.id)?;
        Ok(UnitTold { unit, summary })
    };
    let before = units.map(told).collect::<Result<_>>()?;
    let story = unit.as_ref().map(|unit| store.unit_story(unit.id)).transpose()?.flatten();
    let said = |source: PromptSource| story.iter().flat_map(|story| &story.prompts).filter(move |prompt| prompt.source == source);
    let asked = said(PromptSource::User).map(|prompt| (prompt.number, prompt.text.clone())).collect();
    let answered = said(PromptSource::Agent).next_back().map(|prompt| prompt.text.clone());
    let mut failing: Vec<Failing> = story.as_ref().map(rules::failing).unwrap_or_default();
    failing.reverse();
    failing.truncate(FAILING);
    let mut memories = store.memories_of_session(session.id)?;
    memories.retain(|memory| memory.superseded_by.is_none());
    memories.reverse();
    let (settled, rest): (Vec<MemoryRow>, Vec<MemoryRow>) =
        memories.into_iter().partition(|memory| matches!(memory.kind, MemoryKind::Decision | MemoryKind::Lesson));
    let observations = rest.into_iter().filter(|memory| memory.kind == MemoryKind::Observation).collect();
    let against = rank::contradicted(&settled);
    let open = session.tasks.iter().filter(|task| task.status != "completed").map(|task| task.subject.clone());
    Ok(Some(Standing {
        open_tasks: open.collect(),
        unit,
        asked,
        answered,
        failing,
        settled: rank::side_by_side(settled, &against),
        beside: Beside { against, ..Beside::default() },
        observations,
        before,
        session,
    }))
}
