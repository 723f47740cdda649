//! What recall needs to know of a project's sessions and units, beside what the indexes find.

use super::Store;
use super::index::scope;
use super::sessions::known_session;
pub use super::unit_index::Effort;
use super::unit_index::hash;
use crate::index_text::query_terms;
use crate::model::{Millis, Platform};
use anyhow::Result;
use rusqlite::{OptionalExtension, Row, params};
use std::collections::HashMap;

/// Sessions of a project by which its order in time is known.
const SESSIONS: i64 = 400;

/// Files of a unit that are looked at.
const FILES: usize = 40;
/// Files of a session that are looked at.
const SESSION_FILES: usize = 200;

/// How long after a step's last event something may be written that is still of it.
const LATE: Millis = 10_000;

/// Where a unit stands.
#[derive(Clone, Debug)]
pub struct UnitPlace {
    pub unit: i64,
    pub session: i64,
    /// How many sessions of the project ended after its own.
    pub age: usize,
    /// The branch on which its session began.
    pub branch: Option<String>,
}

/// Where a session stands: what it may be told of, and whether its last prompt began something.
#[derive(Clone, Debug)]
pub struct SessionPlace {
    pub session: i64,
    pub project: i64,
    /// The branch on which it began.
    pub branch: Option<String>,
    /// What is said now is not to be remembered.
    pub muted: bool,
}

/// The unit under way, when a prompt has come.
#[derive(Clone, Debug, Default)]
pub struct UnderWay {
    /// The prompt began it.
    pub is_new: bool,
    /// Files that it edited.
    pub edited: Vec<String>,
    /// The turn before edited one that the unit had not edited before.
    pub has_new_files: bool,
}

impl Store {
    /// A session's row.
    pub fn session_row(&self, platform: Platform, session: &str) -> Result<Option<i64>> {
        Ok(known_session(&self.conn, platform, session)?.map(|known| known.id))
    }

    /// Where a session stands; `None` where it is unknown, or belongs to no project.
    pub fn session_place(&self, platform: Platform, session: &str) -> Result<Option<SessionPlace>> {
        let Some(known) = known_session(&self.conn, platform, session)? else { return Ok(None) };
        let Some(project) = known.project else { return Ok(None) };
        let sql = "SELECT coalesce(start_branch, end_branch) FROM sessions WHERE id = ?1";
        let branch = self.conn.prepare_cached(sql)?.query_row([known.id], |row| row.get(0))?;
        Ok(Some(SessionPlace { session: known.id, project, branch, muted: known.muted }))
    }

    /// The unit of a session's last prompt.
    pub fn under_way(&self, session: i64) -> Result<UnderWay> {
        let sql = "SELECT work_unit_id, prompt_id FROM steps WHERE session_id = ?1 AND prompt_id IS NOT NULL ORDER BY prompt_id DESC, id DESC LIMIT 40";
        let mut statement = self.conn.prepare_cached(sql)?;
        let row = |row: &Row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
        let steps: Vec<(i64, i64)> = statement.query_map([session], row)?.collect::<Result<_, _>>()?;
        let Some(&(unit, prompt)) = steps.first() else { return Ok(UnderWay::default()) };
        let before = steps.iter().find(|(_, of)| *of != prompt);
        let Some((_, turn)) = before.filter(|(of, _)| *of == unit) else {
            return Ok(UnderWay { is_new: true, ..UnderWay::default() });
        };
        let sql = "SELECT f.path, s.prompt_id FROM steps s JOIN step_files f ON f.step_id = s.id WHERE s.session_id = ?1 AND s.work_unit_id = ?2 AND f.edits > 0 LIMIT 400";
        let row = |row: &Row| Ok((row.get::<_, String>(0)?, row.get::<_, Option<i64>>(1)?));
        let edits: Vec<(String, Option<i64>)> =
            self.conn.prepare_cached(sql)?.query_map([session, unit], row)?.collect::<Result<_, _>>()?;
        let earlier = |path: &str| edits.iter().any(|(known, of)| known == path && *of != Some(*turn));
        let has_new_files = edits.iter().any(|(path, of)| *of == Some(*turn) && !earlier(path));
        let mut edited: Vec<String> = edits.into_iter().map(|(path, _)| path).collect();
        edited.sort_unstable();
        edited.dedup();
        edited.truncate(40);
        Ok(UnderWay { is_new: false, edited, has_new_files })
    }

    /// A project's sessions in time, the newest first: their ids and the branches on which they began. `own` is left out.
    pub fn sessions_in_time(&self, project: i64, own: Option<i64>) -> Result<Vec<(i64, Option<String>)>> {
        let sql = "SELECT id, coalesce(start_branch, end_branch) FROM sessions WHERE project_id = ?1 AND id IS NOT ?2
                   AND prompts + tool_uses > 0 ORDER BY active_at DESC, id DESC LIMIT ?3";
        let row = |row: &Row| Ok((row.get(0)?, row.get(1)?));
        Ok(self.conn.prepare_cached(sql)?.query_map(params![project, own, SESSIONS], row)?.collect::<Result<_, _>>()?)
    }

    /// Where units stand; those of sessions that are not in `sessions` are left out, unless none are given: then nothing is
    /// known of their time.
    pub fn unit_places(&self, units: &[i64], sessions: &[(i64, Option<String>)]) -> Result<Vec<UnitPlace>> {
        let ages: HashMap<i64, usize> = sessions.iter().enumerate().map(|(age, (id, _))| (*id, age)).collect();
        let sql = "SELECT u.id, u.session_id, coalesce(s.start_branch, s.end_branch) FROM json_each(?1) e
                     JOIN work_units u ON u.id = e.value JOIN sessions s ON s.id = u.session_id ORDER BY e.key";
        let row = |row: &Row| {
            let session = row.get(1)?;
            Ok(UnitPlace {
                unit: row.get(0)?,
                session,
                age: if sessions.is_empty() { 0 } else { ages.get(&session).copied().unwrap_or(usize::MAX) },
                branch: row.get(2)?,
            })
        };
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut places: Vec<UnitPlace> = statement.query_map([serde_json::to_string(units)?], row)?.collect::<Result<_, _>>()?;
        places.retain(|place| place.age != usize::MAX);
        Ok(places)
    }

    /// The units of some sessions in which something was done or said that is known.
    pub fn units_of_sessions(&self, sessions: &[i64]) -> Result<Vec<i64>> {
        let sql = "SELECT id FROM work_units WHERE session_id IN (SELECT value FROM json_each(?1)) AND rules_mark IS NOT NULL ORDER BY id";
        let sessions = serde_json::to_string(sessions)?;
        Ok(self.conn.prepare_cached(sql)?.query_map([sessions], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }

    /// Files that a unit edited, the most edited first.
    pub fn edited_by_unit(&self, unit: i64) -> Result<Vec<String>> {
        Ok(self.edited_by_units(&[unit])?.remove(&unit).unwrap_or_default())
    }

    /// Files that each of some units edited, the most edited first.
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

    /// The hash that the newest memory knows a file by.
    pub fn last_hash(&self, project: i64, path: &str) -> Result<Option<String>> {
        let sql = "SELECT f.hash FROM memory_files f JOIN memories m ON m.id = f.memory_id
                   WHERE f.path = ?2 AND f.hash IS NOT NULL AND m.project_id = ?1 ORDER BY f.memory_id DESC LIMIT 1";
        Ok(self.conn.prepare_cached(sql)?.query_row(params![project, path], |row| row.get(0)).optional()?)
    }

    /// Whether a session of the project was at work at a time: what was written then, it or its commands wrote.
    pub fn was_at_work(&self, project: i64, at: Millis) -> Result<bool> {
        let sql =
            "SELECT EXISTS (SELECT 1 FROM (SELECT id FROM sessions WHERE project_id = ?1 ORDER BY active_at DESC LIMIT 60) o
                     JOIN steps s ON s.session_id = o.id WHERE s.started_at <= ?2 AND s.ended_at >= ?2 - ?3)";
        Ok(self.conn.prepare_cached(sql)?.query_row(params![project, at, LATE], |row| row.get(0))?)
    }

    /// Where a recorded `mv` or `git mv` put a file, the last one that did.
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

    /// Hashes of the files that each of some sessions edited, in the given order.
    pub fn edited_by_sessions(&self, sessions: &[i64]) -> Result<Vec<Vec<u64>>> {
        let sql = "SELECT DISTINCT e.key, f.path FROM json_each(?1) e JOIN steps s ON s.session_id = e.value
                     JOIN step_files f ON f.step_id = s.id WHERE f.edits > 0";
        let mut edited = vec![Vec::new(); sessions.len()];
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query([serde_json::to_string(sessions)?])?;
        while let Some(row) = rows.next()? {
            let files = &mut edited[row.get::<_, i64>(0)? as usize];
            if files.len() < SESSION_FILES {
                files.push(hash(row.get_ref(1)?.as_str()?));
            }
        }
        Ok(edited)
    }

    /// Paths that were read or edited in some sessions.
    pub fn paths_of_sessions(&self, sessions: &[i64]) -> Result<Vec<String>> {
        let sql = "SELECT DISTINCT f.path FROM steps s JOIN step_files f ON f.step_id = s.id WHERE s.session_id IN (SELECT value FROM json_each(?1)) LIMIT 4000";
        let sessions = serde_json::to_string(sessions)?;
        Ok(self.conn.prepare_cached(sql)?.query_map([sessions], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }
}

/// Where a command line moves a file: `git mv a/x.rs b/` and `mv a/x.rs b/y.rs`, from the root.
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
