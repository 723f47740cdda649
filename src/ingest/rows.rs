//! Writes the rows of each kind of event. Writing an event twice changes nothing.

use super::filter;
use super::stored::StoredRows;
use crate::model::{ClosedBy, Event, EventKind, StartSource};
use crate::redact::Clean;
use crate::segmentation::{self, StepRow, StoredToolUse};
use crate::store::Tx;
use crate::store::sessions::{Identify, TranscriptRead};
use anyhow::{Context, Result};

/// Writes the rows of an event.
pub fn store<'a>(tx: &Tx, event: &'a Clean<Event>, read: Option<&TranscriptRead>, identify: Identify) -> Result<StoredRows<'a>> {
    if event.what.is_question() {
        return Ok(StoredRows::Nothing);
    }
    let session = tx.session(event, identify)?;
    let at = event.at;
    if filter::is_in_muted_turn(&session, event) {
        if let Some(read) = read {
            tx.skip_transcript(session.id, read)?;
        }
        // In a muted turn, only the session's end is stored.
        let EventKind::SessionEnded { reason, git } = &event.what else { return Ok(StoredRows::Nothing) };
        tx.end_session(session.id, at, reason, git.as_ref())?;
        return Ok(StoredRows::UnitClosed { session: session.id, by: closed_by(reason), at });
    }
    match &event.what {
        EventKind::PrivatePrompt => tx.mute(session.id, event)?,
        EventKind::SessionStarted(start) => {
            tx.start_session(session.id, event, start)?;
            if start.source == StartSource::Clear {
                return Ok(StoredRows::UnitClosed { session: session.id, by: ClosedBy::Clear, at });
            }
        }
        EventKind::UserPrompt { text } => {
            if let Some(row) = tx.user_prompt(&session, event, text)? {
                return Ok(StoredRows::Prompt { session: session.id, row, text, at });
            }
        }
        EventKind::ToolUsed(tool) => {
            let prompt = tx.prompt_of(&session, event)?;
            if tx.is_same_tool_use(&session, event, tool)? {
                return Ok(StoredRows::Nothing);
            }
            let step = step_for_tool(tx, session.id, prompt, event)?;
            if let Some(row) = tx.tool_use(&session, event, tool, prompt, step.id)? {
                let used = StoredToolUse { row, seq: session.tool_uses + 1, tool, at };
                return Ok(StoredRows::ToolUse { session: session.id, step, used });
            }
        }
        EventKind::TasksChanged(change) => tx.change_tasks(&session, change)?,
        EventKind::TurnEnded { closing, error } => {
            let closing = closing.as_deref().filter(|_| error.is_none());
            let message = closing.map(|text| tx.closing_text(&session, event, text)).transpose()?.flatten();
            if let Some(read) = read {
                tx.transcript_read(&session, event, message.map(|message| message.row), read)?;
            }
            if let Some(usage) = event.usage.as_deref().filter(|_| message.is_none_or(|message| message.is_new)) {
                tx.add_usage(&session, event, message.map(|message| message.row), usage)?;
            }
            tx.end_turn(session.id, at, error.as_deref())?;
            let is_new = message.is_some_and(|message| message.is_new);
            let prompt = tx.prompt_of(&session, event)?;
            return Ok(StoredRows::TurnEnd { session: session.id, prompt, closing, is_new, at });
        }
        EventKind::SubagentEnded { closing: Some(text), .. } => drop(tx.closing_text(&session, event, text)?),
        EventKind::Delegating { files } => tx.add_task_files(session.id, files, at)?,
        EventKind::SubagentStarted | EventKind::SubagentEnded { .. } | EventKind::Compacting | EventKind::PreEdit { .. } => {}
        EventKind::SessionEnded { reason, git } => {
            if let Some(read) = read {
                tx.transcript_read(&session, event, None, read)?;
            }
            if let Some(usage) = &event.usage {
                tx.add_usage(&session, event, None, usage)?;
            }
            tx.end_session(session.id, at, reason, git.as_ref())?;
            return Ok(StoredRows::UnitClosed { session: session.id, by: closed_by(reason), at });
        }
    }
    Ok(StoredRows::Nothing)
}

fn closed_by(reason: &str) -> ClosedBy {
    if reason == "clear" { ClosedBy::Clear } else { ClosedBy::SessionEnd }
}

/// Returns the step that a tool use continues, or a new one.
fn step_for_tool(tx: &Tx, session: i64, prompt: Option<i64>, event: &Event) -> Result<StepRow> {
    let agent = event.agent.as_deref();
    if let Some(step) = segmentation::step_of(tx.steps_of_prompt(session, prompt, agent.is_some())?, agent) {
        return Ok(step);
    }
    tx.save(session, &segmentation::begin_at_work(prompt, event.at))?;
    tx.last_steps(session)?.pop().context("a step that was just inserted")
}
