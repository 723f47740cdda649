//! An event's rows: which are written for which kind of event. An event that comes twice changes nothing the second time.

use super::filter;
use super::stored::Stored;
use crate::model::{ClosedBy, Event, Happening, StartSource};
use crate::redact::Clean;
use crate::segmentation::{self, StepRow, StoredToolUse};
use crate::store::Tx;
use crate::store::sessions::{Identify, TranscriptRead};
use anyhow::{Context, Result};

/// Writes the rows of an event.
pub fn store<'a>(tx: &Tx, event: &'a Clean<Event>, read: Option<&TranscriptRead>, identify: Identify) -> Result<Stored<'a>> {
    if event.what.is_question() {
        return Ok(Stored::Nothing);
    }
    let session = tx.session(event, identify)?;
    let at = event.at;
    if filter::is_in_muted_turn(&session, event) {
        if let Some(read) = read {
            tx.skip_transcript(session.id, read)?;
        }
        // Of a muted turn only the session's end counts.
        let Happening::SessionEnded { reason, git } = &event.what else { return Ok(Stored::Nothing) };
        tx.end_session(session.id, at, reason, git.as_ref())?;
        return Ok(Stored::UnitClosed { session: session.id, by: closed_by(reason), at });
    }
    match &event.what {
        Happening::Muted => tx.mute(session.id, event)?,
        Happening::SessionStarted(start) => {
            tx.start_session(session.id, event, start)?;
            if start.source == StartSource::Clear {
                return Ok(Stored::UnitClosed { session: session.id, by: ClosedBy::Clear, at });
            }
        }
        Happening::Prompted { text } => {
            if let Some(row) = tx.user_prompt(&session, event, text)? {
                return Ok(Stored::Prompt { session: session.id, row, text, at });
            }
        }
        Happening::ToolUsed(tool) => {
            let prompt = tx.prompt_of(&session, event)?;
            if tx.is_same_tool_use(&session, event, tool)? {
                return Ok(Stored::Nothing);
            }
            let step = step_for_tool(tx, session.id, prompt, event)?;
            if let Some(row) = tx.tool_use(&session, event, tool, prompt, step.id)? {
                let used = StoredToolUse { row, seq: session.tool_uses + 1, tool, at };
                return Ok(Stored::ToolUse { session: session.id, step, used });
            }
        }
        Happening::TasksChanged(change) => tx.change_tasks(&session, change)?,
        Happening::TurnEnded { closing, error } => {
            let closing = closing.as_deref().filter(|_| error.is_none());
            let message = closing.map(|text| tx.closing_text(&session, event, text)).transpose()?.flatten();
            if let Some(read) = read {
                tx.transcript_read(&session, event, message.map(|message| message.row), read)?;
            }
            tx.end_turn(session.id, at, error.as_deref())?;
            let is_new = message.is_some_and(|message| message.is_new);
            let prompt = tx.prompt_of(&session, event)?;
            return Ok(Stored::TurnEnd { session: session.id, prompt, closing, is_new, at });
        }
        Happening::SubagentEnded { closing: Some(text), .. } => drop(tx.closing_text(&session, event, text)?),
        Happening::SubagentEnded { .. } | Happening::Compacting | Happening::AboutToEdit { .. } => {}
        Happening::SessionEnded { reason, git } => {
            if let Some(read) = read {
                tx.transcript_read(&session, event, None, read)?;
            }
            tx.end_session(session.id, at, reason, git.as_ref())?;
            return Ok(Stored::UnitClosed { session: session.id, by: closed_by(reason), at });
        }
    }
    Ok(Stored::Nothing)
}

fn closed_by(reason: &str) -> ClosedBy {
    if reason == "clear" { ClosedBy::Clear } else { ClosedBy::SessionEnd }
}

/// The step that a tool use continues; where there is none, it begins one.
fn step_for_tool(tx: &Tx, session: i64, prompt: Option<i64>, event: &Event) -> Result<StepRow> {
    let agent = event.agent.as_deref();
    if let Some(step) = segmentation::step_of(tx.steps_of_prompt(session, prompt, agent.is_some())?, agent) {
        return Ok(step);
    }
    tx.save(session, &segmentation::begin_at_work(prompt, event.at))?;
    tx.last_steps(session)?.pop().context("a step that was just inserted")
}
