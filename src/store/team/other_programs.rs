//! Tasks, decisions and lessons that other programs keep in the RAD tables, as memories of this store.

use super::super::memories::MemoryScope;
use super::super::{Store, Tx};
use crate::model::{Draft, Maker, Platform};
use crate::redact::Clean;
use anyhow::Result;
use rusqlite::{OptionalExtension, params};
use std::collections::HashMap;

/// Value of `shared.machine` for another program.
const PROGRAM: i64 = 0;
/// Key in `meta`: the state of other programs' tables when they were last read.
const READ: &str = "rad_tables_read";

impl Store {
    /// State of the tables when they were last read.
    pub fn rad_tables_read(&self) -> Result<Option<String>> {
        self.meta(READ)
    }

    /// Memories of other programs by uuid, each with the digest of the row that it was read from.
    pub fn memories_of_programs(&self) -> Result<HashMap<String, String>> {
        let sql = "SELECT uuid, author FROM shared WHERE machine = ?1 AND counter > 0 AND fingerprint IS NOT NULL";
        let row = |row: &rusqlite::Row| Ok((row.get(0)?, row.get::<_, Option<String>>(1)?.unwrap_or_default()));
        Ok(self.conn.prepare(sql)?.query_map([PROGRAM], row)?.collect::<Result<_, _>>()?)
    }
}

impl Tx<'_> {
    /// Writes a row of another program; returns false if the uuid was forgotten, or belongs to a memory that this row
    /// may not replace.
    pub fn write_of_program(&self, uuid: &str, digest: &str, project: i64, draft: &Clean<Draft>) -> Result<bool> {
        let sql = "SELECT m.id, coalesce(s.machine = ?2 AND s.counter > 0, 0) AND NOT m.by_hand AND m.project_id = ?3 FROM memories m LEFT JOIN shared s ON s.uuid = m.uuid WHERE m.uuid = ?1";
        let row = |row: &rusqlite::Row| Ok((row.get::<_, i64>(0)?, row.get::<_, bool>(1)?));
        let here = self.tx.prepare_cached(sql)?.query_row(params![uuid, PROGRAM, project], row).optional()?;
        let is_tombstone = "SELECT 1 FROM shared WHERE uuid = ?1 AND fingerprint IS NULL";
        let id = match here {
            Some((_, false)) => return Ok(false),
            None if self.tx.prepare_cached(is_tombstone)?.exists([uuid])? => return Ok(false),
            Some((id, true)) => {
                self.overwrite_memory(id, draft)?;
                id
            }
            None => {
                let home =
                    MemoryScope { project: Some(project), platform: Some(Platform::Custom.name()), ..MemoryScope::default() };
                let id = self.insert_memory(draft, home, &Maker::Program)?;
                self.tx.prepare_cached("UPDATE memories SET uuid = ?2 WHERE id = ?1")?.execute(params![id, uuid])?;
                id
            }
        };
        let fingerprint = self.fingerprint_of(id)?;
        let sql = "INSERT INTO shared(uuid, counter, machine, fingerprint, own, author) VALUES (?1, 1, ?2, ?3, 0, ?4)
                   ON CONFLICT(uuid) DO UPDATE SET fingerprint = excluded.fingerprint, author = excluded.author";
        self.tx.prepare_cached(sql)?.execute(params![uuid, PROGRAM, fingerprint, digest])?;
        Ok(true)
    }

    /// Forgets a memory whose row another program has deleted, unless a person has changed it.
    pub fn forget_of_program(&self, uuid: &str) -> Result<()> {
        let sql =
            "SELECT m.id FROM memories m JOIN shared s ON s.uuid = m.uuid WHERE m.uuid = ?1 AND s.machine = ?2 AND NOT m.by_hand";
        if let Some(id) = self.tx.prepare_cached(sql)?.query_row(params![uuid, PROGRAM], |row| row.get(0)).optional()? {
            self.dismiss_memory(id)?;
            self.tx.prepare_cached("DELETE FROM shared WHERE uuid = ?1")?.execute([uuid])?;
        }
        Ok(())
    }

    /// Records the state of the tables.
    pub fn set_rad_tables_read(&self, held: &str) -> Result<()> {
        self.set_meta(READ, Some(held))
    }
}
