//! Detects changes in the store, and the sessions that changed, for the live page.

use super::Store;
use crate::model::Millis;
use anyhow::Result;
use rusqlite::params;

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
