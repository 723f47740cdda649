//! Embeddings of memories, packed in blocks and scanned in place (ADR/0033).

use super::{Store, Tx};
use crate::model::{Millis, Vector};
use anyhow::Result;
use rusqlite::{OptionalExtension, Row, params};
use std::collections::BTreeMap;

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

    /// Active memories without a vector of the model, of a project or one of its sessions, newest first.
    pub fn unembedded(
        &self,
        (project, session): (Option<i64>, Option<i64>),
        model: &str,
        limit: usize,
    ) -> Result<Vec<Unembedded>> {
        let of = if session.is_some() { "m.session_id = ?2 AND (?1 IS NULL OR ?1)" } else { "m.project_id = ?1 AND ?2 IS NULL" };
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

    /// The nearest memories of a project.
    pub fn nearest_memories(&self, project: i64, model: &str, to: &Vector, most: usize) -> Result<Near> {
        // Map the file only in WAL mode: it is then local, and never truncated while somebody reads it.
        if self.journal_mode()? == "wal" {
            self.conn.pragma_update(None, "mmap_size", MAPPED)?;
        }
        let length = to.numbers.len();
        // Columns before the blobs are read first: the blocks of other projects cost a page each.
        let sql = "SELECT memories, data FROM vectors WHERE project_id = ?1 AND model = ?2 AND length = ?3";
        let mut statement = self.conn.prepare_cached(sql)?;
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
