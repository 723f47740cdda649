//! Finds commands by their words, and the tool uses that followed them.

use super::Store;
use super::history::{TOOL_USE, tool_use};
use super::index::scope;
use crate::index_text::query_terms;
use crate::model::ToolUseRow;
use anyhow::Result;
use rusqlite::{Row, params};

/// Number of rows above which a word is common: ranking by it would visit all of them.
const COMMON: i64 = 2000;
/// Maximum words to rank by.
const WORDS: usize = 6;

/// A command with its unit and the agent's id of its session.
#[derive(Clone, Debug)]
pub struct StoredCommand {
    pub tool: ToolUseRow,
    pub agent_session_id: String,
    pub unit: Option<i64>,
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

    /// Finds failed commands whose errors contain most of the words, best first. If all words are common, returns the
    /// newest whose errors contain all of them.
    pub fn failed_with(&self, project: Option<i64>, words: &[String], limit: usize) -> Result<Vec<StoredCommand>> {
        let words: Vec<String> = words.iter().flat_map(|word| query_terms(word)).collect();
        let sql = "SELECT count(*) FROM (SELECT 1 FROM tool_index WHERE tool_index MATCH ?1 LIMIT ?2)";
        let mut count = self.conn.prepare_cached(sql)?;
        let mut rare: Vec<(i64, &String)> = Vec::new();
        for word in &words {
            let rows = count
                .query_row(params![matching("error", std::slice::from_ref(word), " AND ", project), COMMON + 1], |row| {
                    row.get(0)
                })?;
            rare.extend((0 < rows && rows <= COMMON).then_some((rows, word)));
        }
        rare.sort();
        let rare: Vec<String> = rare.into_iter().take(WORDS).map(|(_, word)| word.clone()).collect();
        let (expression, order) = match rare.is_empty() {
            true => (matching("error", &words, " AND ", project), "rowid DESC"),
            false => (matching("error", &rare, " OR ", project), "bm25(tool_index)"),
        };
        self.commands(&expression, order, "AND t.succeeded = 0", limit)
    }

    /// Commands with all the words, newest first.
    pub fn commands_with(&self, project: Option<i64>, words: &str, limit: usize) -> Result<Vec<StoredCommand>> {
        let words = query_terms(words);
        if words.is_empty() {
            return Ok(Vec::new());
        }
        self.commands(&matching("command", &words, " AND ", project), "rowid DESC", "", limit)
    }

    fn commands(&self, expression: &str, order: &str, only: &str, limit: usize) -> Result<Vec<StoredCommand>> {
        let sql = format!("SELECT rowid FROM tool_index WHERE tool_index MATCH ?1 ORDER BY {order} LIMIT ?2");
        let mut ids = self.conn.prepare_cached(&sql)?;
        let ids: Vec<i64> = ids.query_map(params![expression, limit as i64], |row| row.get(0))?.collect::<Result<_, _>>()?;
        let columns = TOOL_USE.replace(" FROM tool_uses", ", (SELECT work_unit_id FROM steps WHERE id = step_id), (SELECT agent_session_id FROM sessions WHERE id = session_id) FROM tool_uses t");
        let sql = format!("{columns} WHERE t.id = ?1 AND t.kind = 'command' AND t.succeeded IS NOT NULL {only}");
        let mut load = self.conn.prepare_cached(&sql)?;
        let mut found = Vec::new();
        for id in ids {
            found.extend(load.query_map([id], command)?.collect::<Result<Vec<StoredCommand>, _>>()?);
        }
        Ok(found)
    }

    /// Returns at most `limit` tool uses of a session from number `seq` on, in order.
    pub fn tool_uses_from(&self, session: i64, seq: i64, limit: usize) -> Result<Vec<ToolUseRow>> {
        let sql = format!("{TOOL_USE} WHERE session_id = ?1 AND seq >= ?2 ORDER BY seq LIMIT ?3");
        let mut statement = self.conn.prepare_cached(&sql)?;
        Ok(statement.query_map(params![session, seq, limit as i64], tool_use)?.collect::<Result<_, _>>()?)
    }
}

fn matching(column: &str, words: &[String], joined: &str, project: Option<i64>) -> String {
    let words = words.iter().map(|word| format!("\"{}\"", word.replace('"', ""))).collect::<Vec<_>>().join(joined);
    match project {
        Some(_) => format!("({column} : ({words})) AND scope : {}", scope(project)),
        None => format!("{column} : ({words})"),
    }
}

fn command(row: &Row) -> rusqlite::Result<StoredCommand> {
    Ok(StoredCommand { tool: tool_use(row)?, unit: row.get(15)?, agent_session_id: row.get(16)? })
}
