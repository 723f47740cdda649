//! Injections that agents received, the state of a project, and changes since a time.

use super::edits::IN_PROJECT;
use super::history::{PROMPT, in_project, prompt};
use super::{Store, Tx};
use crate::model::{Check, InjectedItem, InjectionPoint, InjectionRow, InjectionStats, Millis, Platform, PromptRow};
use anyhow::Result;
use rusqlite::{OptionalExtension, Row, params};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

/// SQL for the time of the last compaction in session `?1`.
const LAST_COMPACTION: &str =
    "(SELECT coalesce(max(c.at), 0) FROM injections c WHERE c.session_id = ?1 AND c.point = 'compaction')";

/// Time in milliseconds within which hooks belong to the same start: an agent may run the hooks of two settings files.
const AT_ONCE: Millis = 2000;

/// One text that an agent receives.
#[derive(Clone, Copy, Debug)]
pub struct Injection<'a> {
    /// Row of the session that receives it.
    pub session: i64,
    pub point: InjectionPoint,
    pub at: Millis,
    pub text: &'a str,
    /// Ids of the items in the text, in the form that `nmem show` takes: `m12`, `u3`.
    pub items: &'a [String],
}

impl Store {
    /// Returns true if a session has received context at its start.
    pub fn has_received_start(&self, platform: Platform, session: &str) -> Result<bool> {
        let sql = "SELECT 1 FROM sessions s JOIN injections i ON i.session_id = s.id
                   WHERE s.agent_session_id = ?1 AND s.platform = ?2 AND i.point = 'start'";
        Ok(self.conn.prepare_cached(sql)?.exists(params![session, platform.name()])?)
    }

    /// Ids of the items that a session has received at the given points since its last compaction, in the form that
    /// `nmem show` takes.
    pub fn injected_items(&self, session: i64, points: &[InjectionPoint]) -> Result<HashSet<String>> {
        let sql = format!("SELECT item, point FROM injections WHERE session_id = ?1 AND at >= {LAST_COMPACTION}");
        let row = |row: &Row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?));
        let injected: Vec<(String, String)> =
            self.conn.prepare_cached(&sql)?.query_map([session], row)?.collect::<Result<_, _>>()?;
        let wanted = |point: &String| points.iter().any(|wanted| wanted.name() == point);
        Ok(injected.into_iter().filter(|(_, point)| wanted(point)).map(|(item, _)| item).collect())
    }

    /// The texts that a session has received.
    pub fn injected_texts(&self, session: i64) -> Result<Vec<String>> {
        let sql = "SELECT DISTINCT text FROM injections WHERE session_id = ?1 AND text IS NOT NULL";
        Ok(self.conn.prepare_cached(sql)?.query_map([session], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }

    /// Stores an injection and returns whether any of its items is new. If two processes inject the same items at the
    /// same time, only one of them gets `true`.
    pub fn record_injection(&mut self, injection: Injection) -> Result<bool> {
        let Injection { session, point, at, text, items } = injection;
        self.write(|tx| {
            // After its conversation was discarded, an agent receives the same items again. Each subagent counts as
            // another agent.
            let is_again = match point {
                InjectionPoint::Start | InjectionPoint::Compaction => format!("at <= excluded.at - {AT_ONCE}"),
                InjectionPoint::Subagent => "TRUE".to_string(),
                InjectionPoint::Prompt | InjectionPoint::File => "FALSE".to_string(),
            };
            let sql = format!(
                "INSERT INTO injections(session_id, item, point, at, bytes, text) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT DO UPDATE SET at = excluded.at, bytes = excluded.bytes, text = excluded.text
                   WHERE {is_again} OR at < {LAST_COMPACTION}"
            );
            let mut statement = tx.tx.prepare_cached(&sql)?;
            let mut whole = Some(text);
            for item in items {
                let bytes = whole.map_or(0, str::len) as i64;
                if statement.execute(params![session, item, point.name(), at, bytes, whole])? > 0 {
                    whole = None;
                }
            }
            Ok(whole.is_none())
        })
    }

    /// Counts the items that a session has received.
    pub fn injected_count(&self, session: i64) -> Result<i64> {
        let sql = "SELECT count(DISTINCT item) FROM injections WHERE session_id = ?1 AND item GLOB '[a-z][0-9]*'";
        Ok(self.conn.prepare_cached(sql)?.query_row([session], |row| row.get(0))?)
    }

    /// The injections of some sessions, newest first.
    pub fn injections_of(&self, sessions: &[i64]) -> Result<Vec<InjectionRow>> {
        let sql =
            "SELECT item, point, at, bytes, text FROM injections WHERE session_id = ?1 ORDER BY at DESC, point, bytes = 0, item";
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut found: Vec<InjectionRow> = Vec::new();
        for session in sessions {
            let row = |row: &Row| {
                let (item, point): (String, String) = (row.get(0)?, row.get(1)?);
                Ok((item, point, row.get(2)?, row.get::<_, i64>(3)?, row.get::<_, Option<String>>(4)?))
            };
            for row in statement.query_map([session], row)? {
                let (item, point, at, bytes, text) = row?;
                let Some(point) = InjectionPoint::from_name(&point) else { continue };
                let same = |last: &InjectionRow| last.session == *session && last.point == point && last.at == at;
                if !found.last().is_some_and(same) {
                    found.push(InjectionRow { session: *session, point, at, bytes: 0, text: None, items: Vec::new() });
                }
                if let Some(last) = found.last_mut() {
                    last.bytes += bytes;
                    last.text = last.text.take().or(text);
                    last.items.push(InjectedItem { id: item, used: None });
                }
            }
        }
        found.sort_by_key(|injection| std::cmp::Reverse(injection.at));
        Ok(found)
    }

    /// Counts injections since a time, by point, in one project or in all; without their use.
    pub fn injections_since(&self, project: Option<i64>, since: Millis) -> Result<BTreeMap<InjectionPoint, InjectionStats>> {
        let sql = "SELECT i.point, count(*) FILTER (WHERE i.bytes > 0), sum(i.bytes), count(*)
                   FROM sessions s JOIN injections i ON i.session_id = s.id AND i.at >= ?2
                   WHERE (?1 IS NULL OR s.project_id = ?1) AND s.active_at >= ?2 GROUP BY i.point";
        let row = |row: &Row| {
            let stats =
                InjectionStats { times: row.get(1)?, bytes: row.get(2)?, items: row.get(3)?, ..InjectionStats::default() };
            Ok((row.get::<_, String>(0)?, stats))
        };
        let all: Vec<(String, InjectionStats)> =
            self.conn.prepare(sql)?.query_map(params![project, since], row)?.collect::<Result<_, _>>()?;
        Ok(all.into_iter().filter_map(|(point, stats)| Some((InjectionPoint::from_name(&point)?, stats))).collect())
    }

    /// The newest sessions that received anything, at most `limit`.
    pub fn sessions_with_injections(&self, project: Option<i64>, since: Millis, limit: usize) -> Result<Vec<i64>> {
        let sql = "SELECT id FROM sessions s WHERE (?1 IS NULL OR project_id = ?1) AND active_at >= ?2
                     AND EXISTS (SELECT 1 FROM injections WHERE session_id = s.id) ORDER BY active_at DESC LIMIT ?3";
        let values = params![project, since, limit as i64];
        Ok(self.conn.prepare(sql)?.query_map(values, |row| row.get(0))?.collect::<Result<_, _>>()?)
    }
}

impl Tx<'_> {
    /// Drops the stored text of every injection, because forgotten text may have been part of it. The items and times
    /// of injections are kept.
    pub fn forget_injected_texts(&self) -> Result<()> {
        Ok(self.tx.prepare_cached("UPDATE injections SET text = NULL WHERE text IS NOT NULL")?.execute([]).map(drop)?)
    }
}

/// Maximum messages of a turn, files without a commit, and commands to look at for checks.
const MESSAGES: usize = 40;
const FILES: i64 = 40;
const COMMANDS: i64 = 120;

impl Store {
    /// The messages of a session's last turn in a project that edited a file, else of the last that used a tool, in order.
    pub fn last_worked_turn(&self, session: i64, project: i64) -> Result<Vec<PromptRow>> {
        let sql = "SELECT p.number FROM steps s JOIN prompts p ON p.id = s.prompt_id
                   WHERE s.session_id = ?1 AND s.tool_uses > 0 AND coalesce(p.project_id, (SELECT project_id FROM sessions WHERE id = ?1)) = ?2
                   ORDER BY EXISTS (SELECT 1 FROM step_files f WHERE f.step_id = s.id AND f.edits > 0) DESC, s.prompt_id DESC LIMIT 1";
        let number: Option<i64> = self.conn.prepare_cached(sql)?.query_row([session, project], |row| row.get(0)).optional()?;
        let Some(number) = number else { return Ok(Vec::new()) };
        let sql = format!(
            "{PROMPT} WHERE session_id = ?1 AND number = ?2 AND kind <> 'thinking' AND agent_id IS NULL ORDER BY id LIMIT {MESSAGES}"
        );
        Ok(self.conn.prepare_cached(&sql)?.query_map([session, number], prompt)?.collect::<Result<_, _>>()?)
    }

    /// The files of the project that a session edited after its last commit.
    pub fn edited_since_commit(&self, session: i64, project: i64) -> Result<Vec<String>> {
        let of = in_project("?3");
        let sql = format!("SELECT path FROM tool_uses WHERE session_id = ?1 AND kind IN ('edit', 'write') AND succeeded IS NOT 0 AND path IS NOT NULL AND {IN_PROJECT}
                     AND NOT EXISTS (SELECT 1 FROM prompts p WHERE p.id = prompt_id AND p.kind = 'taken-back')
                     AND seq > coalesce((SELECT max(seq) FROM tool_uses WHERE session_id = ?1 AND command_kind = 'commit' AND succeeded AND {of}), -1)
                     AND {of} GROUP BY path ORDER BY max(seq) DESC LIMIT ?2");
        Ok(self.conn.prepare_cached(&sql)?.query_map([session, FILES, project], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }

    /// Tests, builds and linters of a project that ran in the given sessions, the newest first; with `root`, only those that
    /// ran in that worktree.
    pub fn checks_of_sessions(&self, sessions: &[i64], project: i64, root: Option<&Path>) -> Result<Vec<Check>> {
        let of = in_project("?3");
        let sql = format!(
            "SELECT content, succeeded FROM tool_uses WHERE session_id IN (SELECT value FROM json_each(?1))
                     AND command_kind IN ('test', 'build', 'lint') AND succeeded IS NOT NULL AND content IS NOT NULL AND {of}
                     AND (?4 IS NULL OR cwd IS NULL OR cwd = ?4 OR substr(cwd, 1, length(?4) + 1) = ?4 || '/')
                   ORDER BY id DESC LIMIT ?2"
        );
        let row = |row: &Row| Ok(Check { command: row.get(0)?, passed: row.get(1)? });
        let sessions = serde_json::to_string(sessions)?;
        let root = root.map(|root| root.to_string_lossy().into_owned());
        let values = params![sessions, COMMANDS, project, root];
        Ok(self.conn.prepare_cached(&sql)?.query_map(values, row)?.collect::<Result<_, _>>()?)
    }
}

/// Last rows and times of each kind, to detect later changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    tool_use: i64,
    prompt: i64,
    memory: i64,
    /// Times of the last activity in a session and of the last injection.
    active_at: Millis,
    injected_at: Millis,
}

/// Changes since some [`Marks`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreChanges {
    /// Row ids of the sessions that changed.
    pub sessions: Vec<i64>,
    /// Name and content of the latest tool use.
    pub latest: Option<String>,
}

impl Store {
    /// A number that changes when another process has written.
    pub fn data_version(&self) -> Result<i64> {
        Ok(self.conn.query_row("PRAGMA data_version", [], |row| row.get(0))?)
    }

    /// Returns the current marks.
    pub fn marks(&self) -> Result<Marks> {
        let sql = "SELECT (SELECT max(id) FROM tool_uses), (SELECT max(id) FROM prompts), (SELECT max(id) FROM memories),
                     (SELECT max(active_at) FROM sessions), (SELECT max(at) FROM injections)";
        let row = |row: &rusqlite::Row| {
            let at = |n: usize| row.get::<_, Option<i64>>(n).map(Option::unwrap_or_default);
            Ok(Marks { tool_use: at(0)?, prompt: at(1)?, memory: at(2)?, active_at: at(3)?, injected_at: at(4)? })
        };
        Ok(self.conn.prepare_cached(sql)?.query_row([], row)?)
    }

    /// Changes in the sessions of a project (`None` for all projects) since some marks.
    pub fn changes(&self, project: Option<i64>, since: Marks) -> Result<StoreChanges> {
        let sql = "SELECT id FROM sessions WHERE (?1 IS NULL OR project_id = ?1) AND (active_at > ?5 OR id IN (
                     SELECT session_id FROM tool_uses WHERE id > ?2 UNION SELECT session_id FROM prompts WHERE id > ?3
                     UNION SELECT session_id FROM memories WHERE id > ?4 UNION SELECT session_id FROM injections WHERE at > ?6))
                   ORDER BY id LIMIT 50";
        let marks = params![project, since.tool_use, since.prompt, since.memory, since.active_at, since.injected_at];
        let sessions = self.conn.prepare_cached(sql)?.query_map(marks, |row| row.get(0))?.collect::<Result<_, _>>()?;
        let sql = "SELECT t.tool_name || ' ' || coalesce(t.content, '') FROM tool_uses t JOIN sessions s ON s.id = t.session_id
                   WHERE t.id > ?2 AND (?1 IS NULL OR s.project_id = ?1) ORDER BY t.id DESC LIMIT 1";
        let mut latest = self.conn.prepare_cached(sql)?;
        let latest = latest.query_map(params![project, since.tool_use], |row| row.get(0))?.next().transpose()?;
        Ok(StoreChanges { sessions, latest })
    }
}
