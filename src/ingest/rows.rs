//! An event's rows: which are written for which kind of event. What an event tells twice stays as it was.

use super::stored::Stored;
use super::{filter, segment};
use crate::model::ClosedBy;
use crate::model::{Event, Happening, StartSource};
use crate::redact::Clean;
use crate::segmentation::StoredToolUse;
use crate::store::Tx;
use crate::store::sessions::{Identify, TranscriptRead};
use anyhow::Result;

/// Stores one event and puts its work into units: for callers that have a transaction of their own.
pub fn store_event(tx: &Tx, event: &Clean<Event>, read: Option<&TranscriptRead>, identify: Identify) -> Result<()> {
    segment::segment(tx, &store(tx, event, read, identify)?)
}

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
            let step = segment::step_for_tool(tx, session.id, prompt, event)?;
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
