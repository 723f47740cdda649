//! Facts about sessions and units that recall needs besides the indexes.

use super::Store;
use super::index::scope;
use super::sessions::known_session;
pub use super::unit_index::Effort;
use crate::index_text::query_terms;
use crate::model::{Millis, Platform};
use anyhow::Result;
use rusqlite::{OptionalExtension, Row, params};
use std::collections::HashMap;

/// Maximum sessions in a project's timeline.
const SESSIONS: i64 = 400;

/// Maximum files per unit.
const FILES: usize = 40;
/// Maximum files per session.
const SESSION_FILES: usize = 200;

/// Maximum time in milliseconds after a step's last event at which a file change may still belong to it.
const LATE: Millis = 10_000;

/// The location of a unit.
#[derive(Clone, Debug)]
pub struct UnitLocation {
    pub unit: i64,
    pub session: i64,
    /// Number of sessions of the project that ended later.
    pub age: usize,
    /// The branch on which its session began.
    pub branch: Option<String>,
}

/// The scope of a session for injection.
#[derive(Clone, Debug)]
pub struct SessionScope {
    pub session: i64,
    pub project: i64,
    /// The branch on which it began.
    pub branch: Option<String>,
    /// True if the current turn must not be remembered (`#nomem`).
    pub muted: bool,
}

impl Store {
    /// A session's row id.
    pub fn session_row(&self, platform: Platform, session: &str) -> Result<Option<i64>> {
        Ok(known_session(&self.conn, platform, session)?.map(|known| known.id))
    }

    /// The scope of a session; `None` if it is unknown or has no project.
    pub fn session_scope(&self, platform: Platform, session: &str) -> Result<Option<SessionScope>> {
        let Some(known) = known_session(&self.conn, platform, session)? else { return Ok(None) };
        let Some(project) = known.project else { return Ok(None) };
        let sql = "SELECT coalesce(start_branch, end_branch) FROM sessions WHERE id = ?1";
        let branch = self.conn.prepare_cached(sql)?.query_row([known.id], |row| row.get(0))?;
        Ok(Some(SessionScope { session: known.id, project, branch, muted: known.muted }))
    }

    /// Whether a session's last prompt began its unit.
    pub fn begins_unit(&self, session: i64) -> Result<bool> {
        let sql = "SELECT work_unit_id, prompt_id FROM steps WHERE session_id = ?1 AND prompt_id IS NOT NULL ORDER BY prompt_id DESC, id DESC LIMIT 40";
        let mut statement = self.conn.prepare_cached(sql)?;
        let row = |row: &Row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
        let steps: Vec<(i64, i64)> = statement.query_map([session], row)?.collect::<Result<_, _>>()?;
        let Some(&(unit, prompt)) = steps.first() else { return Ok(false) };
        let before = steps.iter().find(|(_, of)| *of != prompt);
        Ok(before.is_none_or(|(of, _)| *of != unit))
    }

    /// A project's sessions except `own`, newest first, with the branches on which they began.
    pub fn sessions_in_time(&self, project: i64, own: Option<i64>) -> Result<Vec<(i64, Option<String>)>> {
        let sql = "SELECT id, coalesce(start_branch, end_branch) FROM sessions WHERE project_id = ?1 AND id IS NOT ?2
                   AND prompts + tool_uses > 0 ORDER BY active_at DESC, id DESC LIMIT ?3";
        let row = |row: &Row| Ok((row.get(0)?, row.get(1)?));
        Ok(self.conn.prepare_cached(sql)?.query_map(params![project, own, SESSIONS], row)?.collect::<Result<_, _>>()?)
    }

    /// Locations of units. Units of sessions outside `sessions` are left out, unless it is empty.
    pub fn unit_places(&self, units: &[i64], sessions: &[(i64, Option<String>)]) -> Result<Vec<UnitLocation>> {
        let ages: HashMap<i64, usize> = sessions.iter().enumerate().map(|(age, (id, _))| (*id, age)).collect();
        let sql = "SELECT u.id, u.session_id, coalesce(s.start_branch, s.end_branch) FROM json_each(?1) e
                     JOIN work_units u ON u.id = e.value JOIN sessions s ON s.id = u.session_id ORDER BY e.key";
        let row = |row: &Row| {
            let session = row.get(1)?;
            Ok(UnitLocation {
                unit: row.get(0)?,
                session,
                age: if sessions.is_empty() { 0 } else { ages.get(&session).copied().unwrap_or(usize::MAX) },
                branch: row.get(2)?,
            })
        };
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut places: Vec<UnitLocation> =
            statement.query_map([serde_json::to_string(units)?], row)?.collect::<Result<_, _>>()?;
        places.retain(|place| place.age != usize::MAX);
        Ok(places)
    }

    /// Non-trivial units of the given sessions.
    pub fn units_of_sessions(&self, sessions: &[i64]) -> Result<Vec<i64>> {
        let sql = "SELECT id FROM work_units WHERE session_id IN (SELECT value FROM json_each(?1)) AND rules_mark IS NOT NULL ORDER BY id";
        let sessions = serde_json::to_string(sessions)?;
        Ok(self.conn.prepare_cached(sql)?.query_map([sessions], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }

    /// Files edited in a unit, most edited first.
    pub fn edited_by_unit(&self, unit: i64) -> Result<Vec<String>> {
        Ok(self.edited_by_units(&[unit])?.remove(&unit).unwrap_or_default())
    }

    /// Files edited in each of several units, most edited first.
    pub fn edited_by_units(&self, units: &[i64]) -> Result<HashMap<i64, Vec<String>>> {
        let sql = "SELECT s.work_unit_id, f.path FROM json_each(?1) e JOIN work_units u ON u.id = e.value
                     JOIN steps s ON s.session_id = u.session_id AND s.work_unit_id = u.id JOIN step_files f ON f.step_id = s.id
                   WHERE f.edits > 0 GROUP BY s.work_unit_id, f.path ORDER BY sum(f.edits) DESC, f.path";
        let mut edited: HashMap<i64, Vec<String>> = HashMap::new();
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query([serde_json::to_string(units)?])?;
        while let Some(row) = rows.next()? {
            let files = edited.entry(row.get(0)?).or_default();
            if files.len() < FILES {
                files.push(row.get(1)?);
            }
        }
        Ok(edited)
    }

    /// The content hash of a file in its newest memory.
    pub fn last_hash(&self, project: i64, path: &str) -> Result<Option<String>> {
        let sql = "SELECT f.hash FROM memory_files f JOIN memories m ON m.id = f.memory_id
                   WHERE f.path = ?2 AND f.hash IS NOT NULL AND m.project_id = ?1 ORDER BY f.memory_id DESC LIMIT 1";
        Ok(self.conn.prepare_cached(sql)?.query_row(params![project, path], |row| row.get(0)).optional()?)
    }

    /// Whether a session of the project was active at a time; it, or its commands, may then have written a file.
    pub fn was_at_work(&self, project: i64, at: Millis) -> Result<bool> {
        let sql =
            "SELECT EXISTS (SELECT 1 FROM (SELECT id FROM sessions WHERE project_id = ?1 ORDER BY active_at DESC LIMIT 60) o
                     JOIN steps s ON s.session_id = o.id WHERE s.started_at <= ?2 AND s.ended_at >= ?2 - ?3)";
        Ok(self.conn.prepare_cached(sql)?.query_row(params![project, at, LATE], |row| row.get(0))?)
    }

    /// The new path of a file after the last recorded `mv` or `git mv` of it.
    pub fn moved_to(&self, project: i64, path: &str) -> Result<Option<String>> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let terms: Vec<String> = query_terms(name).iter().map(|term| format!("\"{term}\"")).collect();
        if terms.is_empty() {
            return Ok(None);
        }
        let expression = format!("command : (\"mv\" AND {}) AND scope : {}", terms.join(" AND "), scope(Some(project)));
        let sql = "SELECT rowid FROM tool_index WHERE tool_index MATCH ?1 ORDER BY rowid DESC LIMIT 20";
        let mut statement = self.conn.prepare_cached(sql)?;
        let ids: Vec<i64> = statement.query_map([expression], |row| row.get(0))?.collect::<Result<_, _>>()?;
        let mut command = self.conn.prepare_cached("SELECT content FROM tool_uses WHERE id = ?1 AND succeeded")?;
        for id in ids {
            let line: Option<String> = command.query_row([id], |row| row.get(0)).optional()?.flatten();
            if let Some(new) = line.as_deref().and_then(|line| moved(line, path)) {
                return Ok(Some(new));
            }
        }
        Ok(None)
    }

    /// The files edited in each session, in the given order.
    pub fn edited_by_sessions(&self, sessions: &[i64]) -> Result<Vec<Vec<String>>> {
        let sql = "SELECT DISTINCT e.key, f.path FROM json_each(?1) e JOIN steps s ON s.session_id = e.value
                     JOIN step_files f ON f.step_id = s.id WHERE f.edits > 0";
        let mut edited = vec![Vec::new(); sessions.len()];
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query([serde_json::to_string(sessions)?])?;
        while let Some(row) = rows.next()? {
            let files = &mut edited[row.get::<_, i64>(0)? as usize];
            if files.len() < SESSION_FILES {
                files.push(row.get(1)?);
            }
        }
        Ok(edited)
    }

    /// Paths read or edited in the given sessions.
    pub fn paths_of_sessions(&self, sessions: &[i64]) -> Result<Vec<String>> {
        let sql = "SELECT DISTINCT f.path FROM steps s JOIN step_files f ON f.step_id = s.id WHERE s.session_id IN (SELECT value FROM json_each(?1)) LIMIT 4000";
        let sessions = serde_json::to_string(sessions)?;
        Ok(self.conn.prepare_cached(sql)?.query_map([sessions], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }
}

/// The target of a move in a command line: `git mv a/x.rs b/` and `mv a/x.rs b/y.rs`, with paths from the root.
fn moved(line: &str, path: &str) -> Option<String> {
    line.split(['&', ';', '|', '\n']).find_map(|part| {
        let words: Vec<&str> = part.split_whitespace().map(|word| word.trim_matches(['"', '\''])).collect();
        let at = words.iter().position(|word| *word == "mv")?;
        let names: Vec<&str> = words[at + 1..].iter().copied().filter(|word| !word.starts_with('-')).collect();
        let (to, from) = names.split_last()?;
        from.contains(&path).then(|| match to.strip_suffix('/') {
            Some(folder) => format!("{folder}/{}", path.rsplit('/').next().unwrap_or(path)),
            None => to.to_string(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_is_read_from_its_command() {
        assert_eq!(moved("cd x && git mv src/a.rs src/b.rs", "src/a.rs").as_deref(), Some("src/b.rs"));
        assert_eq!(moved("mv -v 'src/a.rs' src/c.rs lib/", "src/a.rs").as_deref(), Some("lib/a.rs"));
        assert_eq!(moved("rm src/a.rs", "src/a.rs"), None);
    }
}
