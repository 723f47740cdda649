//! What agents were given, and what of it they used (ADR/0031).

use super::Store;
use crate::model::{Given, Millis, Moment};
use anyhow::Result;
use rusqlite::{Row, params};
use std::collections::{BTreeMap, HashSet};

/// Sessions of a report, the newest.
const SESSIONS: i64 = 500;

impl Store {
    /// What a session has been told, as `nmem show` takes it, at some moments.
    pub fn told_at(&self, session: i64, moments: &[Moment]) -> Result<HashSet<String>> {
        let sql = "SELECT item, moment FROM told WHERE session_id = ?1";
        let row = |row: &Row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?));
        let told: Vec<(String, String)> = self.conn.prepare_cached(sql)?.query_map([session], row)?.collect::<Result<_, _>>()?;
        let then = |moment: &String| moments.iter().any(|known| known.name() == moment);
        Ok(told.into_iter().filter(|(_, moment)| then(moment)).map(|(item, _)| item).collect())
    }

    /// Keeps what a session is told now; returns whether any of it is new. Of two processes that would say the same at
    /// once, one is told that it is not.
    pub fn tell(&mut self, session: i64, moment: Moment, at: Millis, bytes: usize, items: &[String]) -> Result<bool> {
        self.write(|tx| {
            // What is told of a conversation that was cut away is told again.
            let again = if matches!(moment, Moment::Start | Moment::Compaction) { "REPLACE" } else { "IGNORE" };
            let sql = format!("INSERT OR {again} INTO told(session_id, item, moment, at, bytes) VALUES (?1, ?2, ?3, ?4, ?5)");
            let mut statement = tx.tx.prepare_cached(&sql)?;
            let mut left = bytes as i64;
            for item in items {
                if statement.execute(params![session, item, moment.name(), at, left])? > 0 {
                    left = 0;
                }
            }
            Ok(left == 0)
        })
    }

    /// What was given since a time, by moment, in all projects or in one. A thing counts as used where the same session
    /// later asked for it by its id, or, told at another moment than that of the file itself, read or changed one of the
    /// files that it is about.
    pub fn given_since(&self, project: Option<i64>, since: Millis) -> Result<BTreeMap<Moment, Given>> {
        let sessions =
            "SELECT id FROM sessions WHERE (?1 IS NULL OR project_id = ?1) AND active_at >= ?2 ORDER BY active_at DESC LIMIT ?3";
        let mut sessions = self.conn.prepare(sessions)?;
        let mut told = self.conn.prepare("SELECT item, moment, at, bytes FROM told WHERE session_id = ?1 AND at >= ?2")?;
        let mut given: BTreeMap<Moment, Given> = BTreeMap::new();
        for session in sessions.query_map(params![project, since, SESSIONS], |row| row.get::<_, i64>(0))? {
            let session = session?;
            let row = |row: &Row| Ok((row.get(0)?, row.get::<_, String>(1)?, row.get(2)?, row.get(3)?));
            let items: Vec<(String, String, Millis, i64)> =
                told.query_map(params![session, since], row)?.collect::<Result<_, _>>()?;
            for (item, moment, at, bytes) in items {
                let Some(moment) = Moment::from_name(&moment) else { continue };
                let used = self.is_used(session, &item, moment, at)?;
                let given = given.entry(moment).or_default();
                given.times += i64::from(bytes > 0);
                given.bytes += bytes;
                given.items += 1;
                given.used += i64::from(used);
            }
        }
        Ok(given)
    }

    fn is_used(&self, session: i64, item: &str, moment: Moment, at: Millis) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM tool_uses WHERE session_id = ?1 AND received_at > ?2 AND kind = 'command'
                     AND instr(content, 'nmem show') > 0 AND instr(content || ' ', ' ' || ?3 || ' ') > 0)";
        if self.conn.prepare_cached(sql)?.query_row(params![session, at, item], |row| row.get(0))? {
            return Ok(true);
        }
        let Some(id) = item.get(1..).and_then(|id| id.parse::<i64>().ok()).filter(|_| moment != Moment::File) else {
            return Ok(false);
        };
        let files = match item.starts_with('m') {
            true => "SELECT path FROM memory_files WHERE memory_id = ?3",
            false => {
                "SELECT f.path FROM steps s JOIN step_files f ON f.step_id = s.id WHERE s.work_unit_id = ?3 AND f.edits > 0
                        AND s.session_id = (SELECT session_id FROM work_units WHERE id = ?3)"
            }
        };
        let sql = format!(
            "SELECT EXISTS (SELECT 1 FROM tool_uses WHERE session_id = ?1 AND received_at > ?2 AND kind IN ('read', 'edit', 'write')
               AND path IN ({files}))"
        );
        Ok(self.conn.prepare_cached(&sql)?.query_row(params![session, at, id], |row| row.get(0))?)
    }
}
