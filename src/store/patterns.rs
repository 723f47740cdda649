//! Reads candidates for recurring patterns, and commands that reverted commits.

use super::Store;
use super::history::{TOOL_USE, tool_use};
use super::index::scope;
use crate::model::ToolUseRow;
use anyhow::Result;
use rusqlite::{OptionalExtension, params};

/// Maximum memories to search per result.
const AMONG: usize = 20;

/// A memory of a fix, or a lesson, with the file or tag that it is about.
#[derive(Clone, Debug)]
pub struct Noted {
    pub memory: i64,
    pub unit: Option<i64>,
    pub at: i64,
    pub title: String,
    /// An edited file, or a tag.
    pub on: String,
}

/// A command that reverts something.
#[derive(Clone, Debug)]
pub struct Reverting {
    pub tool_use: i64,
    pub session: i64,
    /// Its number in the session.
    pub seq: i64,
    pub command: String,
}

impl Store {
    /// Failed commands of a project with their units, newest sessions first.
    pub fn failed_commands(&self, project: i64, limit: usize) -> Result<Vec<(ToolUseRow, Option<i64>)>> {
        let sessions = "SELECT id FROM sessions WHERE project_id = ?1 AND failures > 0 ORDER BY active_at DESC";
        let mut sessions = self.conn.prepare_cached(sessions)?;
        let mut sessions = sessions.query([project])?;
        let mut found = Vec::new();
        while let (Some(session), true) = (sessions.next()?, found.len() < limit) {
            found.extend(self.failed_commands_of(session.get(0)?, limit - found.len())?);
        }
        Ok(found)
    }

    /// Failed commands of a session with their units, newest first.
    pub fn failed_commands_of(&self, session: i64, limit: usize) -> Result<Vec<(ToolUseRow, Option<i64>)>> {
        let columns = TOOL_USE.replace(" FROM tool_uses", ", (SELECT work_unit_id FROM steps WHERE id = step_id) FROM tool_uses");
        let sql = format!("{columns} WHERE session_id = ?1 AND kind = 'command' AND succeeded = 0 ORDER BY seq DESC LIMIT ?2");
        let row = |row: &rusqlite::Row| Ok((tool_use(row)?, row.get(15)?));
        Ok(self.conn.prepare_cached(&sql)?.query_map(params![session, limit as i64], row)?.collect::<Result<_, _>>()?)
    }

    /// Observations of a type, with the files they changed, newest first.
    pub fn fixes_of_files(&self, project: i64, kind_type: &str, limit: usize) -> Result<Vec<Noted>> {
        self.noted(
            "SELECT m.id, m.work_unit_id, m.created_at, m.title, f.path FROM (SELECT * FROM memories WHERE project_id = ?1 ORDER BY created_at DESC LIMIT ?4) m
               JOIN memory_files f ON f.memory_id = m.id AND f.modified
             WHERE m.kind = 'observation' AND m.type = ?2 AND m.superseded_by IS NULL ORDER BY m.created_at DESC LIMIT ?3",
            project,
            kind_type,
            limit,
        )
    }

    /// Lessons by tag, newest first.
    pub fn tagged_lessons(&self, project: i64, limit: usize) -> Result<Vec<Noted>> {
        self.noted(
            "SELECT m.id, m.work_unit_id, m.created_at, m.title, lower(trim(t.value)) FROM (SELECT * FROM memories WHERE project_id = ?1 ORDER BY created_at DESC LIMIT ?4) m, json_each(m.content, '$.tags') t
             WHERE m.kind = ?2 AND m.superseded_by IS NULL AND t.type = 'text' AND length(trim(t.value)) > 1 ORDER BY m.created_at DESC LIMIT ?3",
            project,
            "lesson",
            limit,
        )
    }

    fn noted(&self, sql: &str, project: i64, what: &str, limit: usize) -> Result<Vec<Noted>> {
        let values = params![project, what, limit as i64, (limit * AMONG) as i64];
        Ok(self.conn.prepare_cached(sql)?.query_map(values, noted)?.collect::<Result<_, _>>()?)
    }

    /// Successful commands of a project that may revert something, newest first.
    pub fn reverting(&self, project: i64, limit: usize) -> Result<Vec<Reverting>> {
        let sql = "SELECT rowid FROM tool_index WHERE tool_index MATCH ?1 ORDER BY rowid DESC LIMIT ?2";
        let expression = format!("command : (\"revert\" OR \"reverts\") AND scope : {}", scope(Some(project)));
        let mut ids = self.conn.prepare_cached(sql)?;
        let ids: Vec<i64> = ids.query_map(params![expression, limit as i64], |row| row.get(0))?.collect::<Result<_, _>>()?;
        let sql = "SELECT id, session_id, seq, content FROM tool_uses WHERE id = ?1 AND succeeded AND content IS NOT NULL";
        let mut command = self.conn.prepare_cached(sql)?;
        let mut found = Vec::new();
        for id in ids {
            let row = |row: &rusqlite::Row| {
                Ok(Reverting { tool_use: row.get(0)?, session: row.get(1)?, seq: row.get(2)?, command: row.get(3)? })
            };
            found.extend(command.query_row([id], row).optional()?);
        }
        Ok(found)
    }

    /// The last commit of a session before a tool use: its id and subject.
    pub fn commit_before(&self, session: i64, seq: i64) -> Result<Option<(Option<String>, Option<String>)>> {
        let sql = "SELECT metadata -> 'commit' ->> 'sha', metadata -> 'commit' ->> 'subject' FROM tool_uses
                   WHERE session_id = ?1 AND seq < ?2 AND command_kind = 'commit' AND metadata -> 'commit' IS NOT NULL ORDER BY seq DESC LIMIT 1";
        Ok(self.conn.prepare_cached(sql)?.query_row([session, seq], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
    }
}

fn noted(row: &rusqlite::Row) -> rusqlite::Result<Noted> {
    Ok(Noted { memory: row.get(0)?, unit: row.get(1)?, at: row.get(2)?, title: row.get(3)?, on: row.get(4)? })
}
