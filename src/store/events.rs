//! Writes sessions and prompts.

use super::{Store, Tx};
use crate::model::{Event, GitState, Millis, Platform, ProjectId, PromptKind, PromptSource, SessionStart, TextKind, TurnUsage};
use crate::redact::Clean;
use anyhow::Result;
use rusqlite::{Connection, OptionalExtension, Row, named_params, params};
use sha2::{Digest, Sha256};

/// Maximum files of subagent tasks to record.
const TASK_FILES: usize = 40;

/// The position up to which a session's transcript has been read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TranscriptMark {
    pub offset: u64,
    /// Offset of the current turn; `None` if its prompt was not recorded.
    pub turn: Option<u64>,
    pub last_message: Option<String>,
}

/// A newly read part of a transcript. It is stored only if no other process has read further meanwhile.
#[derive(Debug)]
pub struct TranscriptRead {
    pub usage: Clean<TurnUsage>,
    pub from: u64,
    pub to: u64,
    /// Events that no hook reported.
    pub missed: Vec<Clean<Event>>,
}

/// The parts of a session's row that storing an event needs.
#[derive(Debug, Default)]
pub struct StoredSession {
    pub id: i64,
    pub muted: bool,
    pub muted_prompt: Option<String>,
    pub project: Option<i64>,
    /// Root of the project.
    pub root: Option<String>,
    pub cwd: Option<String>,
    pub prompts: i64,
    pub tool_uses: i64,
    pub last_prompt_id: Option<i64>,
    pub tasks: Option<String>,
    pub(super) mark: TranscriptMark,
}

/// Finds a session by the agent's own id. Long ids are unique, so an event of another platform with the same id belongs
/// to the same session: Cursor and VS Code run the hooks in Claude's settings.
pub(super) fn known_session(conn: &Connection, platform: Platform, id: &str) -> Result<Option<StoredSession>> {
    // One statement for all callers in a hook, so it is compiled once. Sorting by platform would need a temporary
    // table.
    let sql = "SELECT id, cwd, prompts, tool_uses, last_prompt_id, tasks, project_id, muted, muted_prompt, transcript_offset,
                 turn_offset, transcript_message, platform = ?1, (SELECT root FROM projects WHERE id = project_id) FROM sessions
               WHERE agent_session_id = ?2 AND (platform = ?1 OR length(?2) >= 16)";
    let row = |row: &Row| {
        let at = |n: usize| row.get::<_, Option<i64>>(n).map(|at| at.map(|at| at.max(0) as u64));
        let mark = TranscriptMark { offset: at(9)?.unwrap_or(0), turn: at(10)?, last_message: row.get(11)? };
        let session = StoredSession {
            id: row.get(0)?,
            cwd: row.get(1)?,
            prompts: row.get(2)?,
            tool_uses: row.get(3)?,
            last_prompt_id: row.get(4)?,
            tasks: row.get(5)?,
            project: row.get(6)?,
            root: row.get(13)?,
            muted: row.get(7)?,
            muted_prompt: row.get(8)?,
            mark,
        };
        Ok((row.get::<_, bool>(12)?, session))
    };
    let mut found = None;
    for known in conn.prepare_cached(sql)?.query_map(params![platform.name(), id], row)? {
        let (own, session) = known?;
        if own {
            return Ok(Some(session));
        }
        found.get_or_insert(session);
    }
    Ok(found)
}

impl Store {
    /// The position up to which the transcript of a session has been read; `None` for a new session.
    pub fn transcript_mark(&self, platform: Platform, session: &str) -> Result<Option<TranscriptMark>> {
        Ok(known_session(&self.conn, platform, session)?.map(|session| session.mark))
    }
}

impl Store {
    /// Files that tasks of subagents have named since a time, in this turn.
    pub fn task_files(&self, session: i64, since: Millis) -> Result<Vec<String>> {
        let sql = "SELECT task_files FROM sessions WHERE id = ?1";
        let noted: Option<String> = self.conn.prepare_cached(sql)?.query_row([session], |row| row.get(0))?;
        Ok(task_files(noted).into_iter().filter(|(at, _)| *at >= since).map(|(_, path)| path).collect())
    }
}

/// Parses `sessions.task_files`: times and paths.
fn task_files(noted: Option<String>) -> Vec<(Millis, String)> {
    noted.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default()
}

/// Number of prompts by which the number of a text may differ from that of its prompt.
const LATE: i64 = 20;

impl Tx<'_> {
    /// Records the files that the task of a subagent names, until the turn ends.
    pub fn add_task_files(&self, session: i64, files: &[String], at: Millis) -> Result<()> {
        let noted = self.tx.query_row("SELECT task_files FROM sessions WHERE id = ?1", [session], |row| row.get(0))?;
        let mut all = task_files(noted);
        all.extend(files.iter().map(|path| (at, path.clone())));
        all.drain(..all.len().saturating_sub(TASK_FILES));
        let sql = "UPDATE sessions SET task_files = ?2 WHERE id = ?1";
        self.tx.execute(sql, params![session, serde_json::to_string(&all)?])?;
        Ok(())
    }

    /// Begins a muted turn (`#nomem`).
    pub fn mute(&self, id: i64, event: &Event) -> Result<()> {
        let sql = "UPDATE sessions SET muted = 1, muted_prompt = ?3, active_at = max(active_at, ?2) WHERE id = ?1";
        self.tx.execute(sql, params![id, event.at, event.prompt])?;
        Ok(())
    }

    /// Skips the transcript of a muted turn.
    pub fn skip_transcript(&self, session: i64, read: &TranscriptRead) -> Result<()> {
        let sql = "UPDATE sessions SET transcript_offset = ?2 WHERE id = ?1 AND transcript_offset = ?3";
        self.tx.execute(sql, params![session, read.to as i64, read.from as i64])?;
        Ok(())
    }

    /// Finds or creates the session's row; any event may be its first. `identity` is asked only for a session without a
    /// project: reading a repository takes time.
    pub fn session(&self, event: &Clean<Event>, identity: impl FnOnce() -> Option<Clean<ProjectId>>) -> Result<StoredSession> {
        if let Some(session) = known_session(&self.tx, event.platform, &event.session)? {
            return match (&session.cwd, &event.cwd) {
                (None, Some(cwd)) => self.place_session(session, cwd, event, identity()),
                _ => Ok(session),
            };
        }
        let offset = event.transcript_length.unwrap_or(0) as i64;
        let (project, domain) = match identity() {
            Some(id) => self.project_and_domain(&id, event.at)?,
            None => (None, None),
        };
        let sql = "INSERT INTO sessions(project_id, domain_id, platform, agent_session_id, started_at, active_at, cwd, transcript_offset) VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6, ?7)";
        self.tx.prepare_cached(sql)?.execute(params![
            project,
            domain,
            event.platform.name(),
            event.session,
            event.at,
            event.cwd,
            offset
        ])?;
        let id = self.tx.last_insert_rowid();
        Ok(StoredSession { id, project, cwd: event.cwd.clone(), ..StoredSession::default() })
    }

    /// Assigns a project to a session whose first event named no folder.
    fn place_session(
        &self,
        mut session: StoredSession,
        cwd: &str,
        event: &Event,
        identity: Option<Clean<ProjectId>>,
    ) -> Result<StoredSession> {
        let (project, domain) = match identity {
            Some(id) => self.project_and_domain(&id, event.at)?,
            None => (None, None),
        };
        let sql = "UPDATE sessions SET cwd = ?2, project_id = ?3, domain_id = ?4 WHERE id = ?1";
        self.tx.execute(sql, params![session.id, cwd, project, domain])?;
        session.cwd = Some(cwd.to_string());
        session.project = project;
        Ok(session)
    }

    /// Records that a session starts or resumes.
    pub fn start_session(&self, id: i64, event: &Event, start: &SessionStart) -> Result<()> {
        // A resumed session is no longer ended. Branch and head of its first start are kept.
        let sql =
            "UPDATE sessions SET active_at = max(active_at, :at), ended_at = NULL, end_reason = NULL, start_source = :source, compactions = compactions + (:source = 'compact' AND (start_source IS NOT 'compact' OR :at - active_at > 2000)),
                     client_pid = coalesce(:pid, client_pid), client_started = coalesce(:started, client_started),
                     start_branch = coalesce(start_branch, :branch), start_head = coalesce(start_head, :head),
                     model = coalesce(:model, model) WHERE id = :id";
        let git = start.git.clone().unwrap_or_default();
        self.tx.prepare_cached(sql)?.execute(named_params! {
            ":id": id, ":at": event.at, ":source": start.source.name(),
            ":pid": start.client.map(|c| c.pid), ":started": start.client.and_then(|c| c.started).map(|s| s as i64),
            ":branch": git.branch, ":head": git.head, ":model": start.model,
        })?;
        Ok(())
    }

    /// Records that a session has ended.
    pub fn end_session(&self, id: i64, at: Millis, reason: &str, git: Option<&GitState>) -> Result<()> {
        let sql =
            "UPDATE sessions SET active_at = max(active_at, ?2), ended_at = ?2, end_reason = ?3, end_branch = ?4, end_head = ?5
                   WHERE id = ?1";
        let (branch, head) = git.map_or((None, None), |g| (g.branch.as_deref(), g.head.as_deref()));
        self.tx.prepare_cached(sql)?.execute(params![id, at, reason, branch, head])?;
        Ok(())
    }

    /// Records that a turn has ended, and the error if it failed.
    pub fn end_turn(&self, id: i64, at: Millis, error: Option<&str>) -> Result<()> {
        let sql = "UPDATE sessions SET active_at = max(active_at, ?2), task_files = NULL,
                     stop_reason = CASE WHEN ?3 IS NULL THEN stop_reason ELSE 'error: ' || ?3 END WHERE id = ?1";
        self.tx.prepare_cached(sql)?.execute(params![id, at, error])?;
        Ok(())
    }

    /// Adds the data read from the transcript, unless another process has read the same part meanwhile.
    pub fn transcript_read(
        &self,
        session: &StoredSession,
        event: &Event,
        closing: Option<i64>,
        read: &TranscriptRead,
    ) -> Result<()> {
        let sql = "UPDATE sessions SET transcript_offset = ?2 WHERE id = ?1 AND transcript_offset = ?3";
        if self.tx.prepare_cached(sql)?.execute(params![session.id, read.to as i64, read.from as i64])? == 0 {
            return Ok(());
        }
        self.add_usage(session, event, closing, &read.usage)
    }

    /// Adds the tokens, model and thinking of a turn to the session, and its tokens to its closing message.
    pub fn add_usage(&self, session: &StoredSession, event: &Event, closing: Option<i64>, usage: &TurnUsage) -> Result<()> {
        // The same turn once more, from a file that is read again.
        if usage.tokens.is_some() && usage.last_message.is_some() && usage.last_message == session.mark.last_message {
            return Ok(());
        }
        let sql = "UPDATE sessions SET transcript_message = coalesce(:message, transcript_message),
                     model = coalesce(:model, model), stop_reason = coalesce(:stop, stop_reason),
                     context_tokens = coalesce(:context, context_tokens), cost_usd = coalesce(:cost, cost_usd),
                     input_tokens = CASE WHEN :input IS NULL THEN input_tokens ELSE coalesce(input_tokens, 0) + :input END,
                     output_tokens = CASE WHEN :input IS NULL THEN output_tokens ELSE coalesce(output_tokens, 0) + :output END,
                     cache_read_tokens = CASE WHEN :input IS NULL THEN cache_read_tokens ELSE coalesce(cache_read_tokens, 0) + :read END,
                     cache_write_tokens = CASE WHEN :input IS NULL THEN cache_write_tokens ELSE coalesce(cache_write_tokens, 0) + :write END
                   WHERE id = :id";
        let tokens = usage.tokens;
        self.tx.prepare_cached(sql)?.execute(named_params! {
            ":id": session.id, ":message": usage.last_message,
            ":model": usage.model, ":stop": usage.stop_reason, ":context": usage.context_tokens, ":cost": usage.cost_usd,
            ":input": tokens.map(|t| t.input), ":output": tokens.map(|t| t.output),
            ":read": tokens.map(|t| t.cache_read), ":write": tokens.map(|t| t.cache_write),
        })?;
        if let (Some(closing), Some(t)) = (closing, tokens) {
            let sql = "UPDATE prompts SET input_tokens = ?2, output_tokens = ?3, cache_read_tokens = ?4, cache_write_tokens = ?5 WHERE id = ?1";
            self.tx.prepare_cached(sql)?.execute(params![closing, t.input, t.output, t.cache_read, t.cache_write])?;
        }
        if let Some(thinking) = &usage.thinking {
            self.agent_text(session, event, PromptKind::Thinking, thinking)?;
        }
        Ok(())
    }
}

/// Maximum time in milliseconds between deliveries of the same event without id and time.
pub(super) const SAME_EVENT: Millis = 2000;

/// A stable name for an event that has a time but no id.
pub(super) fn name_of(event: &Event, texts: &[Option<&str>]) -> Option<String> {
    let time = event.time?.to_string();
    let mut hash = Sha256::new();
    for text in texts.iter().copied().chain([Some(time.as_str())]) {
        let text = text.unwrap_or_default();
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    }
    Some(format!("~{}", hash.finalize()[..12].iter().map(|b| format!("{b:02x}")).collect::<String>()))
}

/// Returns the id under which the answers in a call are stored.
pub fn answers_id(call: &str) -> String {
    format!("in {call}")
}

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
        let name = event.prompt.clone().or_else(|| name_of(event, &[Some(text)]));
        let Some(id) = self.insert_prompt(session, number, PromptKind::Prompt, name, event, text)? else { return Ok(None) };
        // After an interrupted muted turn, the transcript is read from here on.
        let sql = "UPDATE sessions SET prompts = ?2, last_prompt_id = ?3, active_at = max(active_at, ?4), ended_at = NULL, end_reason = NULL, turn_offset = ?5, task_files = NULL,
                     transcript_offset = CASE WHEN muted THEN max(transcript_offset, coalesce(?5, 0)) ELSE transcript_offset END, muted = 0 WHERE id = ?1";
        let length = event.transcript_length.map(|length| length as i64);
        self.tx.prepare_cached(sql)?.execute(params![session.id, number, id, event.at, length])?;
        Ok(Some(id))
    }

    /// Stores a user's answers to the agent, under the number of the current prompt.
    pub fn user_answers(&self, session: &StoredSession, event: &Event, call: Option<&str>, text: &str) -> Result<()> {
        let number = match self.named_prompt(session, event)? {
            Some((_, number)) => number,
            None => session.prompts,
        };
        let name = call.map(answers_id).or_else(|| name_of(event, &[Some(text)]));
        self.insert_prompt(session, number, PromptKind::Answer, name, event, text)?;
        Ok(())
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
        // A text that names its prompt may have come before the prompt, and has the number of an earlier one.
        let apart = if event.prompt.is_some() { LATE } else { 0 };
        let sql = "SELECT id FROM prompts WHERE session_id = ?1 AND source = 'agent' AND kind = ?2 AND agent_id IS ?3
                     AND platform_prompt_id IS ?4 AND text = ?5 AND number BETWEEN ?6 - ?7 AND ?6 + ?7";
        let values = params![session.id, kind.name(), event.agent, event.prompt, text, number, apart];
        let existing = self.tx.prepare_cached(sql)?.query_row(values, |row| row.get(0)).optional()?;
        match existing {
            Some(row) => Ok(Some(StoredText { row, is_new: false })),
            None => {
                let new = self.insert_prompt(session, number, kind, event.prompt.clone(), event, text)?;
                Ok(new.map(|row| StoredText { row, is_new: true }))
            }
        }
    }

    fn insert_prompt(
        &self,
        session: &StoredSession,
        number: i64,
        kind: PromptKind,
        name: Option<String>,
        event: &Event,
        text: &str,
    ) -> Result<Option<i64>> {
        let sql = "INSERT INTO prompts(session_id, number, source, kind, platform_prompt_id, agent_id, text, received_at)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING";
        let of_user = matches!(kind, PromptKind::Prompt | PromptKind::Answer);
        let source = if of_user { PromptSource::User } else { PromptSource::Agent };
        let values = params![session.id, number, source.name(), kind.name(), name, event.agent, text, event.at];
        if self.tx.prepare_cached(sql)?.execute(values)? == 0 {
            return Ok(None);
        }
        let id = self.tx.last_insert_rowid();
        if kind != PromptKind::Thinking {
            self.wait_for_index(TextKind::Message, id)?;
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
        let sql = "SELECT id, number FROM prompts WHERE session_id = ?1 AND platform_prompt_id = ?2 AND source = 'user' AND kind = 'prompt' AND platform_prompt_id IS NOT NULL";
        let row = |row: &rusqlite::Row| Ok((row.get(0)?, row.get(1)?));
        Ok(self.tx.prepare_cached(sql)?.query_row(params![session.id, prompt], row).optional()?)
    }

    /// The prompt of an event. Events after a machine-made prompt belong to the person's prompt before it.
    pub fn prompt_of(&self, session: &StoredSession, event: &Event) -> Result<Option<i64>> {
        Ok(self.named_prompt(session, event)?.map(|(id, _)| id).or(session.last_prompt_id))
    }
}
