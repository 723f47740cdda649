//! Stores the user's prompts and the agent's texts.

use super::Tx;
use super::identity::{SAME_EVENT, name_of};
use super::sessions::StoredSession;
use crate::model::{Event, Millis, PromptKind, PromptSource};
use anyhow::Result;
use rusqlite::{OptionalExtension, params};

/// An agent's text as stored.
#[derive(Clone, Copy, Debug)]
pub struct StoredText {
    pub row: i64,
    /// True if it was not stored before.
    pub is_new: bool,
}

impl Tx<'_> {
    /// Stores a user's prompt once; returns its row if it is new.
    pub fn user_prompt(&self, session: &StoredSession, event: &Event, text: &str) -> Result<Option<i64>> {
        let named = event.prompt.is_some() || event.time.is_some();
        if !named && self.was_stored_just_now(session, "user", text, event.at)? {
            return Ok(None);
        }
        let number = session.prompts + 1;
        let Some(id) = self.insert_prompt(session, number, PromptKind::Prompt, event, text)? else { return Ok(None) };
        // After an interrupted muted turn, the transcript is read from here on.
        let sql = "UPDATE sessions SET prompts = ?2, last_prompt_id = ?3, active_at = max(active_at, ?4), ended_at = NULL, end_reason = NULL, turn_offset = ?5, task_files = NULL,
                     transcript_offset = CASE WHEN muted THEN max(transcript_offset, coalesce(?5, 0)) ELSE transcript_offset END, muted = 0 WHERE id = ?1";
        let length = event.transcript_length.map(|length| length as i64);
        self.tx.prepare_cached(sql)?.execute(params![session.id, number, id, event.at, length])?;
        Ok(Some(id))
    }

    /// Stores an agent's closing message, also of a subagent.
    pub fn closing_text(&self, session: &StoredSession, event: &Event, text: &str) -> Result<Option<StoredText>> {
        self.agent_text(session, event, PromptKind::Closing, text)
    }

    /// Stores an agent's text under the number of the prompt that it answers; returns it, or the one already stored.
    pub(super) fn agent_text(
        &self,
        session: &StoredSession,
        event: &Event,
        kind: PromptKind,
        text: &str,
    ) -> Result<Option<StoredText>> {
        let number = match self.named_prompt(session, event)? {
            Some((_, number)) => number,
            None => session.prompts,
        };
        let sql = "SELECT id FROM prompts WHERE session_id = ?1 AND source = 'agent' AND kind = ?2 AND agent_id IS ?3
                     AND platform_prompt_id IS ?4 AND text = ?5 AND (platform_prompt_id IS NOT NULL OR number = ?6)";
        let values = params![session.id, kind.name(), event.agent, event.prompt, text, number];
        let existing = self.tx.prepare_cached(sql)?.query_row(values, |row| row.get(0)).optional()?;
        match existing {
            Some(row) => Ok(Some(StoredText { row, is_new: false })),
            None => {
                let new = self.insert_prompt(session, number, kind, event, text)?;
                Ok(new.map(|row| StoredText { row, is_new: true }))
            }
        }
    }

    fn insert_prompt(
        &self,
        session: &StoredSession,
        number: i64,
        kind: PromptKind,
        event: &Event,
        text: &str,
    ) -> Result<Option<i64>> {
        let sql = "INSERT INTO prompts(session_id, number, source, kind, platform_prompt_id, agent_id, text, received_at)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING";
        let source = if kind == PromptKind::Prompt { PromptSource::User } else { PromptSource::Agent };
        let unnamed = event.prompt.is_none() && source == PromptSource::User;
        let name = if unnamed { name_of(event, &[Some(text)]) } else { event.prompt.clone() };
        let values = params![session.id, number, source.name(), kind.name(), name, event.agent, text, event.at];
        if self.tx.prepare_cached(sql)?.execute(values)? == 0 {
            return Ok(None);
        }
        let id = self.tx.last_insert_rowid();
        if kind != PromptKind::Thinking {
            self.index_prompt(id, session.project, text)?;
        }
        Ok(Some(id))
    }

    fn was_stored_just_now(&self, session: &StoredSession, source: &str, text: &str, at: Millis) -> Result<bool> {
        let sql = "SELECT 1 FROM prompts WHERE session_id = ?1 AND number = ?2 AND source = ?3 AND text = ?4 AND abs(?5 - received_at) <= ?6";
        let values = params![session.id, session.prompts, source, text, at, SAME_EVENT];
        Ok(self.tx.prepare_cached(sql)?.exists(values)?)
    }

    /// Row and number of the prompt that the platform names.
    pub(super) fn named_prompt(&self, session: &StoredSession, event: &Event) -> Result<Option<(i64, i64)>> {
        let Some(prompt) = &event.prompt else { return Ok(None) };
        let sql = "SELECT id, number FROM prompts WHERE session_id = ?1 AND platform_prompt_id = ?2 AND source = 'user' AND platform_prompt_id IS NOT NULL";
        let row = |row: &rusqlite::Row| Ok((row.get(0)?, row.get(1)?));
        Ok(self.tx.prepare_cached(sql)?.query_row(params![session.id, prompt], row).optional()?)
    }

    /// The prompt of an event. Events after a machine-made prompt belong to the person's prompt before it.
    pub fn prompt_of(&self, session: &StoredSession, event: &Event) -> Result<Option<i64>> {
        Ok(self.named_prompt(session, event)?.map(|(id, _)| id).or(session.last_prompt_id))
    }
}
