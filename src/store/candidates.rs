//! Candidates for recall: units by words, files, branch and age, and memories by embedding.

use super::events::known_session;
use super::history::worked_in;
use super::index::scope;
use super::{Store, Tx};
use crate::index_text::query_terms;
use crate::model::{Millis, Platform, Vector};
use anyhow::Result;
use rusqlite::{OptionalExtension, Row, params};
use std::collections::{BTreeMap, HashMap};

/// Maximum sessions in a project's timeline.
pub const TIMELINE: usize = 400;

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

    /// The scope of a session: the project of its last unit; `None` if it is unknown or has no project.
    pub fn session_scope(&self, platform: Platform, session: &str) -> Result<Option<SessionScope>> {
        let Some(known) = known_session(&self.conn, platform, session)? else { return Ok(None) };
        let sql = "SELECT coalesce(start_branch, end_branch), (SELECT project_id FROM work_units WHERE session_id = ?1 ORDER BY id DESC LIMIT 1)
                   FROM sessions WHERE id = ?1";
        let row = |row: &Row| Ok((row.get(0)?, row.get::<_, Option<i64>>(1)?));
        let (branch, elsewhere) = self.conn.prepare_cached(sql)?.query_row([known.id], row)?;
        let Some(project) = elsewhere.or(known.project) else { return Ok(None) };
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

    /// A project's sessions except `own`, newest first, at most `limit`, with the branches on which they began.
    pub fn sessions_in_time(&self, project: i64, own: Option<i64>, limit: usize) -> Result<Vec<(i64, Option<String>)>> {
        // Most projects have all their work in their own sessions, and then one index is read in order.
        let is_elsewhere =
            self.conn.prepare_cached("SELECT 1 FROM work_units WHERE project_id = ?1 LIMIT 1")?.exists([project])?;
        let of_project = match is_elsewhere {
            true => format!("id IN ({})", worked_in("?3")),
            false => "project_id = ?1 AND prompts + tool_uses > 0".to_string(),
        };
        let sql = format!(
            "SELECT id, coalesce(start_branch, end_branch) FROM sessions WHERE {of_project} AND id IS NOT ?2
             ORDER BY active_at DESC, id DESC LIMIT ?3"
        );
        let row = |row: &Row| Ok((row.get(0)?, row.get(1)?));
        Ok(self.conn.prepare_cached(&sql)?.query_map(params![project, own, limit as i64], row)?.collect::<Result<_, _>>()?)
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

/// Vectors per block.
const BLOCK: usize = 256;
/// Maximum bytes of the file to map while scanning.
const MAPPED: i64 = 1 << 30;
/// Minimum share by which a memory must exceed the mean to count as near.
const STANDS_OUT: f64 = 0.15;

/// A memory without an embedding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unembedded {
    pub memory: i64,
    pub project: i64,
    /// Title, subtitle and narrative.
    pub text: String,
    /// Its session; `None` for memories added by hand.
    pub session: Option<i64>,
}

/// The nearest memories to a text, and the mean over all.
#[derive(Clone, Debug, Default)]
pub struct Near {
    /// Memories with their cosines, nearest first.
    pub memories: Vec<(i64, f32)>,
    /// The mean cosine.
    pub mean: f32,
    pub count: usize,
}

impl Near {
    /// Returns the share by which a cosine exceeds the mean: from 0 (average) to 1 (identical). `None` below
    /// `STANDS_OUT`.
    pub fn stands_out(&self, cosine: f32) -> Option<f64> {
        let out = f64::from((cosine - self.mean) / (1.0 - self.mean).max(0.01));
        (out >= STANDS_OUT).then_some(out)
    }
}

impl Store {
    /// Time at which the embedding model last failed to answer a hook; `None` if it has answered since.
    pub fn meaning_failed_at(&self) -> Result<Option<Millis>> {
        let sql = "SELECT value FROM meta WHERE key = 'meaning_failed_at'";
        Ok(self.conn.prepare_cached(sql)?.query_row([], |row| row.get(0)).optional()?)
    }

    /// Stores the time at which the embedding model failed to answer; `None` if it answered.
    pub fn set_meaning_failed(&mut self, at: Option<Millis>) -> Result<()> {
        self.write(|tx| {
            match at {
                Some(at) => tx.tx.execute("INSERT OR REPLACE INTO meta(key, value) VALUES ('meaning_failed_at', ?1)", [at])?,
                None => tx.tx.execute("DELETE FROM meta WHERE key = 'meaning_failed_at'", [])?,
            };
            Ok(())
        })
    }

    /// Active memories without a vector of the model, of a project, a session or all projects, newest first.
    pub fn unembedded(
        &self,
        (project, session): (Option<i64>, Option<i64>),
        model: &str,
        limit: usize,
    ) -> Result<Vec<Unembedded>> {
        let of = match (project, session) {
            (_, Some(_)) => "m.session_id = ?2 AND (?1 IS NULL OR ?1)",
            (Some(_), None) => "m.project_id = ?1 AND ?2 IS NULL",
            (None, None) => "?1 IS NULL AND ?2 IS NULL",
        };
        let sql = format!(
            "SELECT m.id, m.project_id, concat_ws('. ', m.title, m.subtitle, m.body), m.session_id FROM memories m
             WHERE {of} AND m.project_id IS NOT NULL AND m.superseded_by IS NULL AND m.kind <> 'task'
               AND (m.vector_block IS NULL OR NOT EXISTS (SELECT 1 FROM vectors v WHERE v.id = m.vector_block AND v.model = ?3))
             ORDER BY m.created_at DESC, m.id DESC LIMIT ?4"
        );
        let row =
            |row: &Row| Ok(Unembedded { memory: row.get(0)?, project: row.get(1)?, text: row.get(2)?, session: row.get(3)? });
        let values = params![project, session, model, limit as i64];
        Ok(self.conn.prepare_cached(&sql)?.query_map(values, row)?.collect::<Result<_, _>>()?)
    }

    /// Folders in which a session did anything; they decide whether a model may see its memories.
    pub fn folders_of_session(&self, session: i64) -> Result<Vec<String>> {
        let sql = "SELECT cwd FROM sessions WHERE id = ?1 AND cwd IS NOT NULL
                   UNION SELECT cwd FROM tool_uses WHERE session_id = ?1 AND cwd IS NOT NULL";
        Ok(self.conn.prepare_cached(sql)?.query_map([session], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }

    /// Stores vectors, except for memories whose text has changed meanwhile. All vectors have the same dimension.
    pub fn keep_vectors(&mut self, model: &str, all: &[(Unembedded, Vector)]) -> Result<()> {
        self.write(|tx| {
            let same = "SELECT EXISTS (SELECT 1 FROM memories WHERE id = ?1 AND concat_ws('. ', title, subtitle, body) = ?2)";
            let mut same = tx.tx.prepare_cached(same)?;
            let mut by_project: BTreeMap<i64, Vec<(i64, &Vector)>> = BTreeMap::new();
            for (of, vector) in all {
                if same.query_row(params![of.memory, of.text], |row| row.get(0))? {
                    tx.forget_vector(of.memory)?;
                    by_project.entry(of.project).or_default().push((of.memory, vector));
                }
            }
            by_project.into_iter().try_for_each(|(project, new)| tx.pack(project, model, &new))
        })
    }

    /// The nearest memories of a project, or of all.
    pub fn nearest_memories(&self, project: Option<i64>, model: &str, to: &Vector, most: usize) -> Result<Near> {
        // Map the file only in WAL mode: it is then local, and never truncated while somebody reads it.
        if self.journal_mode()? == "wal" {
            self.conn.pragma_update(None, "mmap_size", MAPPED)?;
        }
        let length = to.numbers.len();
        // Columns before the blobs are read first: the blocks of other projects cost a page each.
        let of = if project.is_some() { "project_id = ?1" } else { "?1 IS NULL" };
        let sql = format!("SELECT memories, data FROM vectors WHERE {of} AND model = ?2 AND length = ?3");
        let mut statement = self.conn.prepare_cached(&sql)?;
        let mut rows = statement.query(params![project, model, length as i64])?;
        let mut all: Vec<(i64, f32)> = Vec::new();
        while let Some(row) = rows.next()? {
            let (ids, data) = (row.get_ref(0)?.as_blob()?, row.get_ref(1)?.as_blob()?);
            for (id, vector) in ids.chunks_exact(8).zip(data.chunks_exact(4 + length)) {
                let (scale, numbers) = vector.split_at(4);
                let id = i64::from_le_bytes(id.try_into()?);
                all.push((id, to.cosine(f32::from_le_bytes(scale.try_into()?), numbers)));
            }
        }
        let count = all.len();
        let mean = all.iter().map(|(_, cosine)| f64::from(*cosine)).sum::<f64>() / count.max(1) as f64;
        let nearer = |a: &(i64, f32), b: &(i64, f32)| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0));
        if all.len() > most {
            all.select_nth_unstable_by(most, nearer);
            all.truncate(most);
        }
        all.sort_by(nearer);
        Ok(Near { memories: all, mean: mean as f32, count })
    }

    /// The units of memories.
    pub fn units_of_memories(&self, memories: &[(i64, f32)]) -> Result<Vec<(i64, f32)>> {
        let sql = "SELECT work_unit_id FROM memories WHERE id = ?1 AND superseded_by IS NULL AND work_unit_id IS NOT NULL";
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut units = Vec::new();
        for (memory, cosine) in memories {
            units.extend(statement.query_row([memory], |row| row.get::<_, i64>(0)).optional()?.map(|unit| (unit, *cosine)));
        }
        Ok(units)
    }

    /// Number of memories with a vector of the model, and of all that could have one.
    pub fn embedded(&self, model: &str) -> Result<(i64, i64)> {
        let sql = "SELECT (SELECT coalesce(sum(length(memories) / 8), 0) FROM vectors WHERE model = ?1),
                     (SELECT count(*) FROM memories WHERE project_id IS NOT NULL AND superseded_by IS NULL AND kind <> 'task')";
        Ok(self.conn.query_row(sql, [model], |row| Ok((row.get(0)?, row.get(1)?)))?)
    }
}

impl Tx<'_> {
    /// Adds vectors to the last block of their kind while it has room, then to new ones.
    pub(super) fn pack(&self, project: i64, model: &str, mut new: &[(i64, &Vector)]) -> Result<()> {
        while let Some((_, first)) = new.first() {
            let length = first.numbers.len() as i64;
            let sql = "SELECT id, memories, data FROM vectors WHERE project_id = ?1 AND model = ?2 AND length = ?3 AND length(memories) < ?4 ORDER BY id DESC LIMIT 1";
            let values = params![project, model, length, (BLOCK * 8) as i64];
            let row = |row: &Row| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?, row.get::<_, Vec<u8>>(2)?));
            let existing = self.tx.prepare_cached(sql)?.query_row(values, row).optional()?;
            let (block, mut ids, mut data) = match existing {
                Some((block, ids, data)) => (Some(block), ids, data),
                None => (None, Vec::new(), Vec::new()),
            };
            let (now, later) = new.split_at(new.len().min(BLOCK - ids.len() / 8));
            for (memory, vector) in now {
                ids.extend(memory.to_le_bytes());
                data.extend(vector.scale.to_le_bytes());
                data.extend(vector.numbers.iter().map(|number| *number as u8));
            }
            let sql = "INSERT INTO vectors(id, project_id, model, length, memories, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                       ON CONFLICT DO UPDATE SET memories = excluded.memories, data = excluded.data";
            self.tx.prepare_cached(sql)?.execute(params![block, project, model, length, ids, data])?;
            let block = block.unwrap_or_else(|| self.tx.last_insert_rowid());
            let mut named = self.tx.prepare_cached("UPDATE memories SET vector_block = ?2 WHERE id = ?1")?;
            now.iter().try_for_each(|(memory, _)| named.execute([memory, &block]).map(drop))?;
            new = later;
        }
        Ok(())
    }

    /// Drops a memory's vector because its text changed or it was forgotten.
    pub(super) fn forget_vector(&self, memory: i64) -> Result<()> {
        let sql =
            "SELECT v.id, v.length, v.memories, v.data FROM memories m JOIN vectors v ON v.id = m.vector_block WHERE m.id = ?1";
        let row =
            |row: &Row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, Vec<u8>>(2)?, row.get::<_, Vec<u8>>(3)?));
        let Some((block, length, ids, data)) = self.tx.prepare_cached(sql)?.query_row([memory], row).optional()? else {
            return Ok(());
        };
        let keeps = |id: &&[u8]| **id != memory.to_le_bytes();
        let size = 4 + length as usize;
        let kept: Vec<(&[u8], &[u8])> = ids.chunks_exact(8).zip(data.chunks_exact(size)).filter(|(id, _)| keeps(id)).collect();
        if kept.is_empty() {
            self.tx.prepare_cached("DELETE FROM vectors WHERE id = ?1")?.execute([block])?;
        } else {
            let (ids, data): (Vec<&[u8]>, Vec<&[u8]>) = kept.into_iter().unzip();
            let sql = "UPDATE vectors SET memories = ?2, data = ?3 WHERE id = ?1";
            self.tx.prepare_cached(sql)?.execute(params![block, ids.concat(), data.concat()])?;
        }
        self.tx.prepare_cached("UPDATE memories SET vector_block = NULL WHERE id = ?1")?.execute([memory])?;
        Ok(())
    }
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
