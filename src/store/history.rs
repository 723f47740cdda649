//! Reads sessions, prompts and tool uses, and counts rows; converts stored words to enums.

use super::Store;
use super::events::known_session;
use crate::model::{
    Client, ClosedBy, CommandKind, Counts, Kind, LastEvent, Maker, MemoryKind, Millis, Platform, ProjectRow, PromptKind,
    PromptRow, PromptSource, Provenance, SearchScope, SessionRow, StoredItem, ToolUseRow, UnitOutcome, UnitState,
};
use anyhow::Result;
use rusqlite::types::{FromSql, FromSqlResult, ValueRef};
use rusqlite::{OptionalExtension, Row, params};

/// Converts stored words. An unknown word in a database is read as the variant that claims the least.
macro_rules! read_as_word {
    ($($word:ty),*) => {$(
        impl FromSql for $word {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<$word> {
                value.as_str().map(<$word>::from)
            }
        }
    )*};
}

read_as_word!(ClosedBy, CommandKind, Kind, MemoryKind, Platform, PromptKind, PromptSource, Provenance, UnitOutcome, UnitState);

impl FromSql for Maker {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Maker> {
        value.as_str().map(|name| Maker::from(name.to_string()))
    }
}

/// Maximum texts that answer one prompt.
const PROMPTS: i64 = 40;

/// SQL for the ids of the newest non-empty sessions of project `?1`, at most `limit`, and of all sessions that also worked
/// in it.
pub(super) fn worked_in(limit: &str) -> String {
    format!(
        "SELECT id FROM (SELECT id FROM sessions WHERE project_id = ?1 AND prompts + tool_uses > 0 ORDER BY active_at DESC LIMIT {limit} + 1)
         UNION SELECT session_id FROM work_units WHERE project_id = ?1"
    )
}

/// SQL that is true for rows of prompts or tool uses of a project, and for all rows if it is NULL.
pub(super) fn in_project(project: &str) -> String {
    format!("({project} IS NULL OR coalesce(project_id, (SELECT project_id FROM sessions WHERE id = session_id)) = {project})")
}

const SESSION: &str = "SELECT s.id, p.name, s.platform, s.agent_session_id, s.started_at, s.active_at, s.ended_at, s.end_reason,
    s.start_branch, s.end_branch, s.start_head, s.end_head, s.client_pid, s.client_started, s.cwd, s.prompts, s.tool_uses, s.failures,
    s.kinds, s.tasks, s.model, s.stop_reason, s.input_tokens, s.output_tokens, s.cache_read_tokens, s.cache_write_tokens,
    s.context_tokens, s.cost_usd
  FROM sessions s LEFT JOIN projects p ON p.id = s.project_id";

fn session(row: &Row) -> rusqlite::Result<SessionRow> {
    let client = row.get::<_, Option<u32>>(12)?.map(|pid| (pid, row.get::<_, Option<i64>>(13)));
    Ok(SessionRow {
        id: row.get(0)?,
        project: row.get(1)?,
        platform: row.get(2)?,
        agent_session_id: row.get(3)?,
        started_at: row.get(4)?,
        active_at: row.get(5)?,
        ended_at: row.get(6)?,
        end_reason: row.get(7)?,
        start_branch: row.get(8)?,
        end_branch: row.get(9)?,
        start_head: row.get(10)?,
        end_head: row.get(11)?,
        client: client.map(|(pid, started)| started.map(|s| Client { pid, started: s.map(|s| s as u64) })).transpose()?,
        cwd: row.get(14)?,
        prompts: row.get(15)?,
        tool_uses: row.get(16)?,
        failures: row.get(17)?,
        kinds: row.get(18)?,
        tasks: row.get::<_, Option<String>>(19)?.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default(),
        model: row.get(20)?,
        stop_reason: row.get(21)?,
        input_tokens: row.get(22)?,
        output_tokens: row.get(23)?,
        cache_read_tokens: row.get(24)?,
        cache_write_tokens: row.get(25)?,
        context_tokens: row.get(26)?,
        cost_usd: row.get(27)?,
    })
}

pub(super) const PROMPT: &str = "SELECT id, session_id, number, source, kind, agent_id, text, received_at FROM prompts";

pub(super) fn prompt(row: &Row) -> rusqlite::Result<PromptRow> {
    Ok(PromptRow {
        id: row.get(0)?,
        session_id: row.get(1)?,
        number: row.get(2)?,
        source: row.get(3)?,
        kind: row.get(4)?,
        agent_id: row.get(5)?,
        text: row.get(6)?,
        received_at: row.get(7)?,
    })
}

pub(super) const TOOL_USE: &str =
    "SELECT id, session_id, seq, prompt_id, tool_use_id, received_at, tool_name, kind, command_kind, path, content,
    input, outcome, succeeded, metadata FROM tool_uses";

pub(super) fn tool_use(row: &Row) -> rusqlite::Result<ToolUseRow> {
    Ok(ToolUseRow {
        id: row.get(0)?,
        session_id: row.get(1)?,
        seq: row.get(2)?,
        prompt_id: row.get(3)?,
        tool_use_id: row.get(4)?,
        received_at: row.get(5)?,
        tool_name: row.get(6)?,
        kind: row.get(7)?,
        command_kind: row.get(8)?,
        path: row.get(9)?,
        content: row.get(10)?,
        input: row.get(11)?,
        outcome: row.get(12)?,
        succeeded: row.get(13)?,
        metadata: row.get::<_, Option<String>>(14)?.and_then(|j| serde_json::from_str(&j).ok()).unwrap_or_default(),
    })
}

impl Store {
    /// The project of a session.
    pub fn project_of(&self, platform: Platform, session: &str) -> Result<Option<ProjectRow>> {
        let project = known_session(&self.conn, platform, session)?.and_then(|session| session.project);
        project.map_or(Ok(None), |project| self.project_by_row(project))
    }

    /// Returns the last non-empty sessions of a project, newest first.
    pub fn last_sessions(&self, project: i64, limit: usize) -> Result<Vec<SessionRow>> {
        let sql = format!("{SESSION} WHERE s.id IN ({}) ORDER BY s.active_at DESC, s.id DESC LIMIT ?2", worked_in("?2"));
        let mut statement = self.conn.prepare_cached(&sql)?;
        Ok(statement.query_map(params![project, limit as i64], session)?.collect::<Result<_, _>>()?)
    }

    /// Reads the last session of a project that used a tool, on a branch unless it is `None`.
    pub fn last_session_with_tools(&self, project: i64, branch: Option<&str>) -> Result<Option<SessionRow>> {
        let sql = format!(
            "{SESSION} WHERE s.project_id = ?1 AND s.tool_uses > 0 AND s.prompts > 0
               AND (?2 IS NULL OR coalesce(s.end_branch, s.start_branch, ?2) = ?2) ORDER BY s.active_at DESC LIMIT 1"
        );
        Ok(self.conn.prepare_cached(&sql)?.query_row(params![project, branch], session).optional()?)
    }

    /// Returns at most `limit` non-empty sessions that worked in projects, with an event since a time, newest first, and
    /// their total number.
    pub fn sessions_since(&self, scope: &SearchScope, since: Option<Millis>, limit: usize) -> Result<(Vec<SessionRow>, usize)> {
        let of = match scope.is_all() {
            true => "?1 IS NULL",
            false => {
                "(s.project_id IN (SELECT value FROM json_each(?1))
                  OR s.id IN (SELECT session_id FROM work_units WHERE project_id IN (SELECT value FROM json_each(?1))))"
            }
        };
        let project = scope.json();
        let wanted = format!("{of} AND s.prompts + s.tool_uses > 0 AND (?2 IS NULL OR s.active_at >= ?2)");
        let all = format!("SELECT count(*) FROM sessions s WHERE {wanted}");
        let all: i64 = self.conn.query_row(&all, params![project, since], |row| row.get(0))?;
        let sql = format!("{SESSION} WHERE {wanted} ORDER BY s.active_at DESC LIMIT ?3");
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let found = self.conn.prepare(&sql)?.query_map(params![project, since, limit], session)?.collect::<Result<_, _>>()?;
        Ok((found, all as usize))
    }

    /// The last non-empty sessions without a project, and their total number.
    pub fn sessions_without_project(&self, limit: usize) -> Result<(Vec<SessionRow>, usize)> {
        let wanted = "s.project_id IS NULL AND s.prompts + s.tool_uses > 0";
        let all: i64 = self.conn.query_row(&format!("SELECT count(*) FROM sessions s WHERE {wanted}"), [], |row| row.get(0))?;
        let sql = format!("{SESSION} WHERE {wanted} ORDER BY s.active_at DESC, s.id DESC LIMIT ?1");
        let found = self.conn.prepare(&sql)?.query_map([limit as i64], session)?.collect::<Result<_, _>>()?;
        Ok((found, all as usize))
    }

    /// The sessions that began or ended on a branch, by agent and the agent's own id.
    pub fn sessions_on_branch(&self, branch: &str) -> Result<Vec<(Platform, String)>> {
        let sql = "SELECT platform, agent_session_id FROM sessions WHERE start_branch = ?1 OR end_branch = ?1";
        Ok(self.conn.prepare(sql)?.query_map([branch], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?)
    }

    /// Counts the sessions of a project.
    pub fn session_count(&self, project: i64) -> Result<i64> {
        Ok(self.conn.query_row("SELECT count(*) FROM sessions WHERE project_id = ?1", [project], |row| row.get(0))?)
    }

    /// Finds a session by the agent's own id.
    pub fn session_by_agent_id(&self, platform: Platform, id: &str) -> Result<Option<SessionRow>> {
        let id = known_session(&self.conn, platform, id)?.map(|session| session.id);
        Ok(self.conn.prepare_cached(&format!("{SESSION} WHERE s.id = ?1"))?.query_row([id], session).optional()?)
    }

    /// Finds sessions by the agent's complete id, on any platform.
    pub fn sessions_by_id(&self, id: &str) -> Result<Vec<SessionRow>> {
        let sql = format!("{SESSION} WHERE s.agent_session_id = ?1 LIMIT 2");
        Ok(self.conn.prepare(&sql)?.query_map([id], session)?.collect::<Result<_, _>>()?)
    }

    /// Finds up to two sessions by a prefix of the agent's id, to check that it is unique.
    pub fn sessions_by_prefix(&self, prefix: &str) -> Result<Vec<SessionRow>> {
        let sql = format!("{SESSION} WHERE substr(s.agent_session_id, 1, length(?1)) = ?1 LIMIT 2");
        Ok(self.conn.prepare(&sql)?.query_map([prefix], session)?.collect::<Result<_, _>>()?)
    }

    /// Reads the last prompt of a session and the texts that answer it, in order and without subagents.
    pub fn last_said(&self, session: i64, project: Option<i64>) -> Result<Vec<PromptRow>> {
        let of = in_project("?2");
        let sql = format!(
            "{PROMPT} WHERE session_id = ?1 AND kind <> 'thinking' AND agent_id IS NULL AND {of}
               AND number >= (SELECT max(number) FROM prompts WHERE session_id = ?1 AND source = 'user' AND kind = 'prompt' AND {of}) ORDER BY number DESC, id DESC LIMIT {PROMPTS}"
        );
        let mut prompts: Vec<PromptRow> =
            self.conn.prepare_cached(&sql)?.query_map(params![session, project], prompt)?.collect::<Result<_, _>>()?;
        prompts.reverse();
        Ok(prompts)
    }

    /// Reads the times and texts of a project's newest prompts that are short enough to be an order, from a time on.
    pub fn short_prompts_since(&self, project: i64, since: Millis) -> Result<Vec<(Millis, String)>> {
        const SESSIONS: i64 = 60;
        const LONG: usize = 160;
        let sql = "SELECT received_at, text FROM prompts
                   WHERE session_id IN (SELECT id FROM sessions WHERE project_id = ?1 AND active_at > ?2 ORDER BY active_at DESC LIMIT ?3)
                     AND received_at > ?2 AND kind = 'prompt' AND source = 'user' AND agent_id IS NULL AND length(text) < ?4";
        let row = |row: &Row| Ok((row.get(0)?, row.get(1)?));
        let values = params![project, since, SESSIONS, LONG as i64];
        Ok(self.conn.prepare_cached(sql)?.query_map(values, row)?.collect::<Result<_, _>>()?)
    }

    /// Resolves one of nmem's ids: `s7` a session, `u3` a work unit, `p12` a prompt, `t345` a tool use, `m6` a memory.
    pub fn find(&self, id: &str) -> Result<Option<StoredItem>> {
        let Some((kind, number)) = id.split_at_checked(1).and_then(|(k, n)| Some((k, n.parse::<i64>().ok()?))) else {
            return Ok(None);
        };
        Ok(match kind {
            "s" => self.session_by_row(number)?.map(|s| StoredItem::Session(Box::new(s))),
            "u" => self.unit_by_row(number)?.map(|u| StoredItem::Unit(Box::new(u))),
            "p" => self.prompt_by_row(number)?.map(StoredItem::Prompt),
            "m" => self.memory_by_row(number)?.map(|m| StoredItem::Memory(Box::new(m))),
            "t" => {
                let sql = format!("{TOOL_USE} WHERE id = ?1");
                self.conn
                    .prepare_cached(&sql)?
                    .query_row([number], tool_use)
                    .optional()?
                    .map(|t| StoredItem::ToolUse(Box::new(t)))
            }
            _ => None,
        })
    }

    /// Reads a session.
    pub fn session_by_row(&self, id: i64) -> Result<Option<SessionRow>> {
        let sql = format!("{SESSION} WHERE s.id = ?1");
        Ok(self.conn.prepare_cached(&sql)?.query_row([id], session).optional()?)
    }

    /// The project of a session, by row.
    pub fn project_of_session(&self, id: i64) -> Result<Option<i64>> {
        let sql = "SELECT project_id FROM sessions WHERE id = ?1";
        Ok(self.conn.prepare_cached(sql)?.query_row([id], |row| row.get(0)).optional()?.flatten())
    }

    /// The project of a unit.
    pub fn project_of_unit(&self, id: i64) -> Result<Option<i64>> {
        let sql = "SELECT coalesce(u.project_id, s.project_id) FROM work_units u JOIN sessions s ON s.id = u.session_id WHERE u.id = ?1";
        Ok(self.conn.prepare_cached(sql)?.query_row([id], |row| row.get(0))?)
    }

    /// The project of a prompt.
    pub fn project_of_prompt(&self, id: i64) -> Result<Option<i64>> {
        let sql =
            "SELECT coalesce(p.project_id, s.project_id) FROM prompts p JOIN sessions s ON s.id = p.session_id WHERE p.id = ?1";
        Ok(self.conn.prepare_cached(sql)?.query_row([id], |row| row.get(0))?)
    }

    /// The project of a tool use.
    pub fn project_of_tool_use(&self, id: i64) -> Result<Option<i64>> {
        let sql =
            "SELECT coalesce(t.project_id, s.project_id) FROM tool_uses t JOIN sessions s ON s.id = t.session_id WHERE t.id = ?1";
        Ok(self.conn.prepare_cached(sql)?.query_row([id], |row| row.get(0))?)
    }

    /// Reads a prompt.
    pub fn prompt_by_row(&self, id: i64) -> Result<Option<PromptRow>> {
        let sql = format!("{PROMPT} WHERE id = ?1");
        Ok(self.conn.prepare_cached(&sql)?.query_row([id], prompt).optional()?)
    }

    /// Reads all prompts and texts of a session, in order.
    pub fn prompts_of(&self, session: i64) -> Result<Vec<PromptRow>> {
        let sql = format!("{PROMPT} WHERE session_id = ?1 ORDER BY number, id");
        Ok(self.conn.prepare(&sql)?.query_map([session], prompt)?.collect::<Result<_, _>>()?)
    }

    /// Reads prompts and texts by their ids, in order; missing ones are left out.
    pub fn prompts_by_row(&self, ids: &[i64]) -> Result<Vec<PromptRow>> {
        let sql = format!("{PROMPT} WHERE id IN (SELECT value FROM json_each(?1)) ORDER BY id");
        Ok(self.conn.prepare_cached(&sql)?.query_map([serde_json::to_string(ids)?], prompt)?.collect::<Result<_, _>>()?)
    }

    /// Reads tool uses by their ids, in order; missing ones are left out.
    pub fn tool_uses_by_row(&self, ids: &[i64]) -> Result<Vec<ToolUseRow>> {
        let sql = format!("{TOOL_USE} WHERE id IN (SELECT value FROM json_each(?1)) ORDER BY id");
        Ok(self.conn.prepare_cached(&sql)?.query_map([serde_json::to_string(ids)?], tool_use)?.collect::<Result<_, _>>()?)
    }

    /// Reads all tool uses of a session, in order.
    pub fn tool_uses_of(&self, session: i64) -> Result<Vec<ToolUseRow>> {
        let sql = format!("{TOOL_USE} WHERE session_id = ?1 ORDER BY seq");
        Ok(self.conn.prepare(&sql)?.query_map([session], tool_use)?.collect::<Result<_, _>>()?)
    }

    /// Counts memories.
    pub fn memory_count(&self) -> Result<i64> {
        Ok(self.conn.query_row("SELECT count(*) FROM memories", [], |row| row.get(0))?)
    }

    /// Counts for `nmem status`. Prompts that were taken back count too: telling them apart would read every message.
    pub fn counts(&self) -> Result<Counts> {
        let tool_uses = self.tool_uses_counted()?;
        let sql = "SELECT (SELECT count(*) FROM projects), count(*) FILTER (WHERE cwd IS NOT NULL OR prompts + tool_uses > 0),
                     (SELECT count(*) FROM (SELECT 1 FROM prompts GROUP BY session_id, number)),
                     (SELECT count(*) FROM work_units), (SELECT count(*) FROM memories) FROM sessions";
        let row = |row: &Row| {
            Ok(Counts {
                projects: row.get(0)?,
                sessions: row.get(1)?,
                prompts: row.get(2)?,
                tool_uses,
                work_units: row.get(3)?,
                memories: row.get(4)?,
            })
        };
        Ok(self.conn.query_row(sql, [], row)?)
    }

    /// Time up to which the tool uses of projects were deleted, or not kept by an import of an earlier version; `None` if all
    /// are there.
    pub fn tool_uses_gone_until(&self, scope: &SearchScope) -> Result<Option<Millis>> {
        let sql = "SELECT max(active_at) FROM sessions s WHERE (?1 IS NULL OR s.project_id IN (SELECT value FROM json_each(?1))) AND s.tool_uses > 0
                     AND NOT EXISTS (SELECT 1 FROM tool_uses t WHERE t.session_id = s.id)";
        Ok(self.conn.prepare_cached(sql)?.query_row([scope.json()], |row| row.get(0))?)
    }

    /// The last event of each platform, newest first.
    pub fn last_events(&self) -> Result<Vec<LastEvent>> {
        let mut last: Vec<LastEvent> = Vec::new();
        let of_sessions = "SELECT platform, active_at FROM sessions";
        let of_last_tool = "SELECT s.platform, t.received_at FROM (SELECT * FROM tool_uses ORDER BY id DESC LIMIT 1) t JOIN sessions s ON s.id = t.session_id";
        // Grouped here: SQLite would sort all sessions, which takes twice as long.
        for sql in [of_sessions, of_last_tool] {
            let mut statement = self.conn.prepare(sql)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let event = LastEvent { platform: row.get(0)?, at: row.get(1)? };
                match last.iter_mut().find(|known| known.platform == event.platform) {
                    Some(known) => known.at = known.at.max(event.at),
                    None => last.push(event),
                }
            }
        }
        last.sort_by_key(|event| std::cmp::Reverse(event.at));
        Ok(last)
    }

    /// Time of a session's last tool use.
    pub fn last_use(&self, session: i64) -> Result<Option<Millis>> {
        let sql = "SELECT received_at FROM tool_uses WHERE session_id = ?1 ORDER BY seq DESC LIMIT 1";
        Ok(self.conn.prepare_cached(sql)?.query_row([session], |row| row.get(0)).optional()?)
    }
}
