//! Stores what happened: sessions, prompts, tool uses. Every write is idempotent, so an event told twice is stored once.

use super::units::ClosedBy;
use super::{Store, Tx};
use crate::model::{Event, GitState, Happening, Millis, Platform, ProjectId, SessionStart, StartSource, TurnUsage};
use crate::redact::Clean;
use anyhow::Result;
use rusqlite::{Connection, OptionalExtension, Row, named_params, params};
use sha2::{Digest, Sha256};

/// Two deliveries of an event without an id count as one within this time.
pub(super) const SAME_EVENT: Millis = 2000;

/// A name for an event that the platform gives no id, but a time: the same for each time it is told.
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

/// Finds the project of an event, when a session is seen for the first time.
pub type Identify<'a> = &'a dyn Fn(&Event) -> Option<Clean<ProjectId>>;

/// How far a session's transcript has been read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TranscriptMark {
    pub offset: u64,
    /// Where the turn under way begins; `None` where its prompt was not recorded.
    pub turn: Option<u64>,
    pub last_message: Option<String>,
}

/// What was read of a transcript: stored only if nobody else has read on meanwhile.
#[derive(Debug)]
pub struct TranscriptRead {
    pub usage: Clean<TurnUsage>,
    pub from: u64,
    pub to: u64,
}

/// A session's row, as far as storing an event needs it.
#[derive(Default)]
pub(super) struct Session {
    pub(super) id: i64,
    pub(super) muted: bool,
    pub(super) muted_prompt: Option<String>,
    pub(super) project: Option<i64>,
    pub(super) cwd: Option<String>,
    pub(super) prompts: i64,
    pub(super) tool_uses: i64,
    pub(super) last_prompt_id: Option<i64>,
    pub(super) tasks: Option<String>,
    mark: TranscriptMark,
}

/// The session of a platform by the agent's own id. A long id is nobody else's: where another platform's hooks tell of it
/// too, as Cursor and VS Code run the hooks of Claude's settings, it is the same session.
pub(super) fn known_session(conn: &Connection, platform: Platform, id: &str) -> Result<Option<Session>> {
    // One statement for all that ask in a hook: it is compiled once. Sorting by platform would cost it a table.
    let sql = "SELECT id, cwd, prompts, tool_uses, last_prompt_id, tasks, project_id, muted, muted_prompt, transcript_offset,
                 turn_offset, transcript_message, platform = ?1 FROM sessions
               WHERE agent_session_id = ?2 AND (platform = ?1 OR length(?2) >= 16)";
    let row = |row: &Row| {
        let at = |n: usize| row.get::<_, Option<i64>>(n).map(|at| at.map(|at| at.max(0) as u64));
        let mark = TranscriptMark { offset: at(9)?.unwrap_or(0), turn: at(10)?, last_message: row.get(11)? };
        let session = Session {
            id: row.get(0)?,
            cwd: row.get(1)?,
            prompts: row.get(2)?,
            tool_uses: row.get(3)?,
            last_prompt_id: row.get(4)?,
            tasks: row.get(5)?,
            project: row.get(6)?,
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
    /// Returns how far the transcript of a session has been read; `None` for a session never seen.
    pub fn transcript_mark(&self, platform: Platform, session: &str) -> Result<Option<TranscriptMark>> {
        Ok(known_session(&self.conn, platform, session)?.map(|session| session.mark))
    }
}

impl Tx<'_> {
    /// Stores an event; what it tells twice stays as it was.
    pub fn store_event(&self, event: &Clean<Event>, read: Option<&TranscriptRead>, identify: Identify) -> Result<()> {
        if let Happening::AboutToEdit { .. } = event.what {
            return Ok(());
        }
        let session = self.session(event, identify)?;
        let goes_on = !matches!(event.what, Happening::SessionStarted(_) | Happening::Prompted { .. } | Happening::Muted);
        let late = event.prompt.is_some() && event.prompt == session.muted_prompt;
        if (session.muted || late) && goes_on {
            return self.keep_muted(&session, event, read);
        }
        match &event.what {
            Happening::Muted => self.mute(session.id, event)?,
            Happening::SessionStarted(start) => self.start_session(session.id, event, start)?,
            Happening::Prompted { text } => self.user_prompt(&session, event, text)?,
            Happening::ToolUsed(tool) => self.tool_use(&session, event, tool)?,
            Happening::TasksChanged(change) => self.change_tasks(&session, change)?,
            Happening::TurnEnded { closing, error } => {
                let message = match closing {
                    Some(text) if error.is_none() => self.agent_text(&session, event, "closing", text)?,
                    _ => None,
                };
                if let Some(read) = read {
                    self.transcript_read(&session, event, message.map(|(id, _)| id), read)?;
                }
                if let Some(error) = error {
                    self.tx
                        .prepare_cached("UPDATE sessions SET stop_reason = 'error: ' || ?2 WHERE id = ?1")?
                        .execute(params![session.id, error])?;
                }
                self.touch(session.id, event.at)?;
                let prompt = self.prompt_of(&session, event)?;
                let said = closing.as_deref().filter(|_| error.is_none());
                self.turn_in_units(&session, prompt, (said, message.is_some_and(|(_, is_new)| is_new)), event.at)?;
            }
            Happening::SubagentEnded { closing, .. } => {
                if let Some(text) = closing {
                    self.agent_text(&session, event, "closing", text)?;
                }
            }
            Happening::Compacting | Happening::AboutToEdit { .. } => {}
            Happening::SessionEnded { reason, git } => {
                if let Some(read) = read {
                    self.transcript_read(&session, event, None, read)?;
                }
                self.end_session(session.id, event.at, reason, git.as_ref())?;
            }
        }
        Ok(())
    }

    fn mute(&self, id: i64, event: &Event) -> Result<()> {
        let sql = "UPDATE sessions SET muted = 1, muted_prompt = ?3, active_at = max(active_at, ?2) WHERE id = ?1";
        self.tx.execute(sql, params![id, event.at, event.prompt])?;
        Ok(())
    }

    /// Of a muted turn only the session's end counts; what its transcript says is passed over unread.
    fn keep_muted(&self, session: &Session, event: &Event, read: Option<&TranscriptRead>) -> Result<()> {
        if let Some(read) = read {
            let sql = "UPDATE sessions SET transcript_offset = ?2 WHERE id = ?1 AND transcript_offset = ?3";
            self.tx.execute(sql, params![session.id, read.to as i64, read.from as i64])?;
        }
        match &event.what {
            Happening::SessionEnded { reason, git } => self.end_session(session.id, event.at, reason, git.as_ref()),
            _ => Ok(()),
        }
    }

    /// Finds the session's row or makes it: a first event may be any event.
    fn session(&self, event: &Clean<Event>, identify: Identify) -> Result<Session> {
        if let Some(session) = known_session(&self.tx, event.platform, &event.session)? {
            return match (&session.cwd, &event.cwd) {
                (None, Some(cwd)) => self.place_session(session, cwd, event, identify),
                _ => Ok(session),
            };
        }
        let offset = event.transcript_length.unwrap_or(0) as i64;
        let (project, domain) = match identify(event) {
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
        Ok(Session { id, project, cwd: event.cwd.clone(), ..Session::default() })
    }

    /// A session whose first event told no folder gets its project with the first that does.
    fn place_session(&self, mut session: Session, cwd: &str, event: &Event, identify: Identify) -> Result<Session> {
        let (project, domain) = match identify(event) {
            Some(id) => self.project_and_domain(&id, event.at)?,
            None => (None, None),
        };
        let sql = "UPDATE sessions SET cwd = ?2, project_id = ?3, domain_id = ?4 WHERE id = ?1";
        self.tx.execute(sql, params![session.id, cwd, project, domain])?;
        session.cwd = Some(cwd.to_string());
        session.project = project;
        Ok(session)
    }

    fn start_session(&self, id: i64, event: &Event, start: &SessionStart) -> Result<()> {
        // A resumed session goes on: its end is taken back. Branch and head at the start stay those of the first start.
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
        match start.source {
            StartSource::Clear => self.close_units(id, ClosedBy::Clear, event.at),
            _ => Ok(()),
        }
    }

    fn end_session(&self, id: i64, at: Millis, reason: &str, git: Option<&GitState>) -> Result<()> {
        let sql = "UPDATE sessions SET ended_at = ?2, end_reason = ?3, end_branch = ?4, end_head = ?5 WHERE id = ?1";
        let (branch, head) = git.map_or((None, None), |g| (g.branch.as_deref(), g.head.as_deref()));
        self.tx.prepare_cached(sql)?.execute(params![id, at, reason, branch, head])?;
        self.close_units(id, if reason == "clear" { ClosedBy::Clear } else { ClosedBy::SessionEnd }, at)?;
        self.touch(id, at)
    }

    fn touch(&self, id: i64, at: Millis) -> Result<()> {
        self.tx.prepare_cached("UPDATE sessions SET active_at = max(active_at, ?2) WHERE id = ?1")?.execute(params![id, at])?;
        Ok(())
    }

    fn user_prompt(&self, session: &Session, event: &Event, text: &str) -> Result<()> {
        let named = event.prompt.is_some() || event.time.is_some();
        if !named && self.told_just_now(session, "user", text, event.at)? {
            return Ok(());
        }
        let number = session.prompts + 1;
        let Some(id) = self.insert_prompt(session, number, ("user", "prompt"), event, text)? else { return Ok(()) };
        // Behind a muted turn that was broken off the transcript is read from here on.
        let sql = "UPDATE sessions SET prompts = ?2, last_prompt_id = ?3, active_at = max(active_at, ?4), ended_at = NULL, end_reason = NULL, turn_offset = ?5,
                     transcript_offset = CASE WHEN muted THEN max(transcript_offset, coalesce(?5, 0)) ELSE transcript_offset END, muted = 0 WHERE id = ?1";
        let length = event.transcript_length.map(|length| length as i64);
        self.tx.prepare_cached(sql)?.execute(params![session.id, number, id, event.at, length])?;
        self.prompt_in_units(session, id, text, event.at)
    }

    /// Stores an agent's text under the number of the prompt that it answers; returns its row, or the one that stands, and
    /// whether it is new.
    fn agent_text(&self, session: &Session, event: &Event, kind: &str, text: &str) -> Result<Option<(i64, bool)>> {
        let number = match self.named_prompt(session, event)? {
            Some((_, number)) => number,
            None => session.prompts,
        };
        let sql = "SELECT id FROM prompts WHERE session_id = ?1 AND source = 'agent' AND kind = ?2 AND agent_id IS ?3
                     AND platform_prompt_id IS ?4 AND text = ?5 AND (platform_prompt_id IS NOT NULL OR number = ?6)";
        let told = params![session.id, kind, event.agent, event.prompt, text, number];
        let standing = self.tx.prepare_cached(sql)?.query_row(told, |row| row.get(0)).optional()?;
        match standing {
            Some(id) => Ok(Some((id, false))),
            None => Ok(self.insert_prompt(session, number, ("agent", kind), event, text)?.map(|id| (id, true))),
        }
    }

    fn insert_prompt(
        &self,
        session: &Session,
        number: i64,
        (source, kind): (&str, &str),
        event: &Event,
        text: &str,
    ) -> Result<Option<i64>> {
        let sql = "INSERT INTO prompts(session_id, number, source, kind, platform_prompt_id, agent_id, text, received_at)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING";
        let unnamed = event.prompt.is_none() && source == "user";
        let name = if unnamed { name_of(event, &[Some(text)]) } else { event.prompt.clone() };
        let values = params![session.id, number, source, kind, name, event.agent, text, event.at];
        if self.tx.prepare_cached(sql)?.execute(values)? == 0 {
            return Ok(None);
        }
        let id = self.tx.last_insert_rowid();
        if kind != "thinking" {
            self.index_prompt(id, session.project, text)?;
        }
        Ok(Some(id))
    }

    fn told_just_now(&self, session: &Session, source: &str, text: &str, at: Millis) -> Result<bool> {
        let sql = "SELECT 1 FROM prompts WHERE session_id = ?1 AND number = ?2 AND source = ?3 AND text = ?4 AND abs(?5 - received_at) <= ?6";
        let values = params![session.id, session.prompts, source, text, at, SAME_EVENT];
        Ok(self.tx.prepare_cached(sql)?.exists(values)?)
    }

    /// The row and number of the prompt that the platform names.
    pub(super) fn named_prompt(&self, session: &Session, event: &Event) -> Result<Option<(i64, i64)>> {
        let Some(prompt) = &event.prompt else { return Ok(None) };
        let sql = "SELECT id, number FROM prompts WHERE session_id = ?1 AND platform_prompt_id = ?2 AND source = 'user' AND platform_prompt_id IS NOT NULL";
        let row = |row: &rusqlite::Row| Ok((row.get(0)?, row.get(1)?));
        Ok(self.tx.prepare_cached(sql)?.query_row(params![session.id, prompt], row).optional()?)
    }

    /// The prompt that an event belongs to. What a machine-made prompt sets off belongs to the person's prompt before it.
    pub(super) fn prompt_of(&self, session: &Session, event: &Event) -> Result<Option<i64>> {
        Ok(self.named_prompt(session, event)?.map(|(id, _)| id).or(session.last_prompt_id))
    }

    /// Adds what the transcript says, unless another process has read the same stretch meanwhile.
    fn transcript_read(&self, session: &Session, event: &Event, closing: Option<i64>, read: &TranscriptRead) -> Result<()> {
        let sql = "UPDATE sessions SET transcript_offset = :to, transcript_message = coalesce(:message, transcript_message),
                     model = coalesce(:model, model), stop_reason = coalesce(:stop, stop_reason),
                     context_tokens = coalesce(:context, context_tokens), cost_usd = coalesce(:cost, cost_usd),
                     input_tokens = CASE WHEN :input IS NULL THEN input_tokens ELSE coalesce(input_tokens, 0) + :input END,
                     output_tokens = CASE WHEN :input IS NULL THEN output_tokens ELSE coalesce(output_tokens, 0) + :output END,
                     cache_read_tokens = CASE WHEN :input IS NULL THEN cache_read_tokens ELSE coalesce(cache_read_tokens, 0) + :read END,
                     cache_write_tokens = CASE WHEN :input IS NULL THEN cache_write_tokens ELSE coalesce(cache_write_tokens, 0) + :write END
                   WHERE id = :id AND transcript_offset = :from";
        let usage = &read.usage;
        let tokens = usage.tokens;
        let changed = self.tx.prepare_cached(sql)?.execute(named_params! {
            ":id": session.id, ":from": read.from as i64, ":to": read.to as i64, ":message": usage.last_message,
            ":model": usage.model, ":stop": usage.stop_reason, ":context": usage.context_tokens, ":cost": usage.cost_usd,
            ":input": tokens.map(|t| t.input), ":output": tokens.map(|t| t.output),
            ":read": tokens.map(|t| t.cache_read), ":write": tokens.map(|t| t.cache_write),
        })?;
        if changed == 0 {
            return Ok(());
        }
        if let (Some(closing), Some(t)) = (closing, tokens) {
            let sql = "UPDATE prompts SET input_tokens = ?2, output_tokens = ?3, cache_read_tokens = ?4, cache_write_tokens = ?5 WHERE id = ?1";
            self.tx.prepare_cached(sql)?.execute(params![closing, t.input, t.output, t.cache_read, t.cache_write])?;
        }
        if let Some(thinking) = &usage.thinking {
            self.agent_text(session, event, "thinking", thinking)?;
        }
        Ok(())
    }
}
