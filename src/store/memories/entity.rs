//! Entities of programs, unique by uuid.

use super::super::Tx;
use super::MemoryScope;
use crate::error::UserError;
use crate::model::{Draft, Maker};
use crate::redact::Clean;
use anyhow::Result;
use rusqlite::{OptionalExtension, params};

/// A stored entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    pub id: i64,
    pub uuid: String,
    /// True if it replaced an entity with the same uuid.
    pub replaced: bool,
}

impl Tx<'_> {
    /// Stores a program's entity, replacing an earlier one with the same uuid.
    ///
    /// # Errors
    ///
    /// Fails if the uuid belongs to a memory of somebody else, or to one that a person has changed.
    pub fn record_entity(
        &self,
        uuid: Option<&str>,
        draft: &Clean<Draft>,
        home: MemoryScope,
        made_by: &Maker,
    ) -> Result<Recorded> {
        let sql = "SELECT id, made_by = ?2 AND NOT by_hand AND NOT pinned AND superseded_by IS NULL AND project_id IS ?3 AND kind = ?4 AND platform IS ?5 FROM memories WHERE uuid = ?1";
        let values = params![uuid, made_by.name(), home.project, draft.kind.name(), home.platform];
        let known: Option<(i64, bool)> =
            self.tx.prepare_cached(sql)?.query_row(values, |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let (id, replaced) = match known {
            Some((id, false)) => {
                let what = format!("the id belongs to m{id}, which this program may not replace");
                return Err(UserError::usage(what, "omit `id`, or use another").into());
            }
            Some((id, true)) => {
                self.rewrite_memory(id, draft, home, made_by)?;
                (id, true)
            }
            None => (self.insert_memory(draft, home, made_by)?, false),
        };
        if let (Some(uuid), false) = (uuid, replaced) {
            self.tx.prepare_cached("UPDATE memories SET uuid = ?2 WHERE id = ?1")?.execute(params![id, uuid])?;
        }
        Ok(Recorded { id, uuid: self.uuid_of(id)?, replaced })
    }
}
