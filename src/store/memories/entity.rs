//! What programs record: once under each uuid.

use super::super::Tx;
use super::Home;
use crate::error::Failure;
use crate::model::{Draft, Maker};
use crate::redact::Clean;
use anyhow::Result;
use rusqlite::{OptionalExtension, params};

/// An entity that was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    pub id: i64,
    pub uuid: String,
    /// It stands in the place of one of the same uuid.
    pub replaced: bool,
}

impl Tx<'_> {
    /// Stores what a program records, in the place of what it recorded under the same uuid before.
    ///
    /// # Errors
    /// The uuid is that of a memory which somebody else made, or which a person has changed.
    pub fn record_entity(&self, uuid: Option<&str>, draft: &Clean<Draft>, home: Home, made_by: &Maker) -> Result<Recorded> {
        let sql = "SELECT id, made_by = ?2 AND NOT by_hand AND NOT pinned AND superseded_by IS NULL AND project_id IS ?3 AND kind = ?4 AND platform IS ?5 FROM memories WHERE uuid = ?1";
        let values = params![uuid, made_by.name(), home.project, draft.kind.name(), home.platform];
        let known: Option<(i64, bool)> =
            self.tx.prepare_cached(sql)?.query_row(values, |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let (id, replaced) = match known {
            Some((id, false)) => {
                let what = format!("the id is that of m{id}, which is not this program's to replace");
                return Err(Failure::usage(what, "leave `id` out, or give another").into());
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
