//! Applies changes of other machines. The newest change of a memory by (counter, machine) is its state.
//!
//! A change by somebody whom the user does not trust never affects a memory that was made here. That memory gets
//! another uuid and becomes private, and the other version is stored next to it as the team's.

use super::super::Tx;
use super::super::memories::MemoryScope;
use crate::model::{Draft, Machine, Millis, Provenance, SharedChange, SharedMemory};
use crate::redact::Clean;
use anyhow::Result;
use rusqlite::{OptionalExtension, params};

/// Maximum length of a chain of memories that supersede each other.
const CHAIN: usize = 100;

/// A verified change, as it arrives.
#[derive(Clone, Copy, Debug)]
pub struct Arrived<'a> {
    pub change: &'a SharedChange,
    /// `None` for a tombstone.
    pub memory: Option<&'a Clean<SharedMemory>>,
    /// The local project that it belongs to; unknown for a tombstone.
    pub project: Option<i64>,
    pub machine: &'a Machine,
    /// True if the machine belongs to the same person.
    pub is_mine: bool,
    /// Projects whose memories others may change.
    pub shared: &'a [i64],
    /// Time at which the memory was made; never in the future.
    pub created_at: Millis,
}

/// Outcome of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// A newer change is known.
    Overtaken,
    New,
    Changed,
    Forgotten,
    /// A memory of this machine was left unchanged and is private now.
    Kept,
    /// The change names a memory of a project that is not shared.
    Refused,
}

/// A local memory that a change names.
struct Here {
    id: i64,
    project: Option<i64>,
    is_own: bool,
}

impl Tx<'_> {
    /// Applies a change.
    pub fn apply_change(&self, arrived: &Arrived) -> Result<Applied> {
        let change = arrived.change;
        if self.is_overtaken(change)? {
            return Ok(Applied::Overtaken);
        }
        let here = self.memory_here(&change.uuid)?;
        if here.as_ref().is_some_and(|here| here.project.is_none_or(|project| !arrived.shared.contains(&project))) {
            return Ok(Applied::Refused);
        }
        let may_change_own = (arrived.is_mine || arrived.machine.is_trusted) && !change.withdrawn;
        let (here, kept) = match here {
            Some(here) if here.is_own && !may_change_own && !self.says_the_same(here.id, arrived.memory)? => {
                if arrived.memory.is_some() {
                    self.await_successor(here.id, &change.uuid)?;
                }
                self.keep_as_private(here.id)?;
                (None, true)
            }
            here => (here, false),
        };
        let outcome = match (arrived.memory, here) {
            (None, here) => {
                let was_here = here.is_some();
                if let Some(here) = here {
                    self.dismiss_memory(here.id)?;
                }
                self.note_change(arrived, None)?;
                if was_here { Applied::Forgotten } else { Applied::Overtaken }
            }
            (Some(memory), here) => {
                let is_new = here.is_none();
                let id = self.write_shared(arrived, memory, here)?;
                self.note_change(arrived, Some(memory))?;
                // The current row counts as what was received, even if text was cut or redacted on the way.
                let fingerprint = self.fingerprint_of(id)?;
                let sql = "UPDATE shared SET fingerprint = ?2 WHERE uuid = ?1";
                self.tx.prepare_cached(sql)?.execute(params![change.uuid, fingerprint])?;
                if is_new { Applied::New } else { Applied::Changed }
            }
        };
        Ok(if kept { Applied::Kept } else { outcome })
    }

    fn is_overtaken(&self, change: &SharedChange) -> Result<bool> {
        let sql = "SELECT (s.counter, coalesce(k.key, '')) >= (?2, ?3) FROM shared s LEFT JOIN machines k ON k.id = s.machine WHERE s.uuid = ?1";
        let known = params![change.uuid, change.counter, change.machine];
        Ok(self.tx.prepare_cached(sql)?.query_row(known, |row| row.get(0)).optional()?.unwrap_or(false))
    }

    fn memory_here(&self, uuid: &str) -> Result<Option<Here>> {
        let sql = "SELECT m.id, m.project_id, m.provenance <> 'team' AND coalesce(s.own, 1) FROM memories m LEFT JOIN shared s ON s.uuid = m.uuid WHERE m.uuid = ?1";
        let row = |row: &rusqlite::Row| Ok(Here { id: row.get(0)?, project: row.get(1)?, is_own: row.get(2)? });
        Ok(self.tx.prepare_cached(sql)?.query_row([uuid], row).optional()?)
    }

    /// Whether a local memory equals one that arrives: it was restored from a copy, or sent under an earlier key.
    fn says_the_same(&self, id: i64, memory: Option<&Clean<SharedMemory>>) -> Result<bool> {
        let Some(memory) = memory else { return Ok(false) };
        let sql = "SELECT title = ?2 AND subtitle IS ?3 AND body IS ?4 AND kind = ?5 FROM memories WHERE id = ?1";
        let values = params![id, memory.title, memory.subtitle, memory.body, memory.kind.name()];
        Ok(self.tx.prepare_cached(sql)?.query_row(values, |row| row.get(0))?)
    }

    /// Detaches the shared memories that a row supersedes. Their rows in `shared` keep the uuid, so that the version
    /// that arrives under it supersedes them instead (`supersede_arrived`).
    fn await_successor(&self, id: i64, uuid: &str) -> Result<()> {
        let sql = "UPDATE shared SET superseded_by = ?2 WHERE fingerprint IS NOT NULL AND NOT private
                   AND uuid IN (SELECT uuid FROM memories WHERE superseded_by = ?1)";
        self.tx.prepare_cached(sql)?.execute(params![id, uuid])?;
        let sql = "UPDATE memories SET superseded_by = NULL WHERE superseded_by = ?1
                   AND uuid IN (SELECT uuid FROM shared WHERE superseded_by = ?2)";
        self.tx.prepare_cached(sql)?.execute(params![id, uuid])?;
        Ok(())
    }

    /// Stops sharing a memory: it gets another uuid and becomes private.
    fn keep_as_private(&self, id: i64) -> Result<()> {
        let uuid = super::super::memories::uuid();
        self.tx.prepare_cached("UPDATE memories SET uuid = ?2 WHERE id = ?1")?.execute(params![id, uuid])?;
        self.keep_private(&uuid)
    }

    fn note_change(&self, arrived: &Arrived, memory: Option<&SharedMemory>) -> Result<()> {
        let sql = "INSERT INTO shared(uuid, counter, machine, own, author, superseded_by) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                   ON CONFLICT(uuid) DO UPDATE SET counter = excluded.counter, machine = excluded.machine, fingerprint = NULL, seq = NULL,
                     own = max(own, excluded.own) AND NOT ?7, author = excluded.author, superseded_by = excluded.superseded_by, private = 0";
        let change = arrived.change;
        let author = memory.map(|memory| memory.author.name());
        let superseded_by = memory.and_then(|memory| memory.superseded_by.as_deref());
        let values =
            params![change.uuid, change.counter, arrived.machine.id, arrived.is_mine, author, superseded_by, memory.is_none()];
        self.tx.prepare_cached(sql)?.execute(values)?;
        Ok(())
    }

    /// Writes a memory of another machine; returns its row id.
    fn write_shared(&self, arrived: &Arrived, memory: &SharedMemory, here: Option<Here>) -> Result<i64> {
        let project = arrived.project;
        let provenance = if arrived.is_mine { memory.provenance() } else { Provenance::Team };
        let mut content = memory.content.clone();
        if let Some(task) = content.get("task").and_then(|task| task.as_str())
            && self.memory_here(task)?.is_some_and(|task| task.project != project)
        {
            content.remove("task");
        }
        let draft = Draft {
            key: None,
            kind: memory.kind,
            kind_type: memory.kind_type.clone(),
            title: memory.title.clone(),
            subtitle: memory.subtitle.clone(),
            body: memory.body.clone(),
            content,
            concepts: memory.concepts.clone(),
            files: memory.files(),
            prompt: None,
            sources: Vec::new(),
            provenance,
            at: arrived.created_at,
            tokens: None,
        };
        let id = match here {
            Some(here) => {
                // Its session and sources are kept, because they belong to this machine.
                self.overwrite_memory(here.id, &draft)?;
                here.id
            }
            None => {
                let home = MemoryScope { project, platform: memory.platform.as_deref(), ..MemoryScope::default() };
                let id = self.insert_memory(&draft, home, &memory.maker())?;
                self.tx
                    .prepare_cached("UPDATE memories SET uuid = ?2 WHERE id = ?1")?
                    .execute(params![id, arrived.change.uuid])?;
                id
            }
        };
        let pinned = memory.pinned && arrived.is_mine;
        let by_hand = provenance != Provenance::Team && memory.author == crate::model::Author::Hand;
        let sql = "UPDATE memories SET pinned = ?2, by_hand = ?3 OR session_id IS NOT NULL, superseded_by = NULL WHERE id = ?1";
        self.tx.prepare_cached(sql)?.execute(params![id, pinned, by_hand])?;
        if let Some(by) = &memory.superseded_by {
            self.supersede_by_uuid(id, by)?;
        }
        Ok(id)
    }

    /// Marks a memory as superseded by the one with a uuid, if that one exists here, in the same project. If changes of
    /// two machines make memories supersede each other in a cycle, the one with the greatest uuid remains active, on
    /// every machine.
    fn supersede_by_uuid(&self, id: i64, by: &str) -> Result<()> {
        let sql = "SELECT n.id FROM memories n JOIN memories m ON m.project_id = n.project_id WHERE n.uuid = ?2 AND m.id = ?1";
        let Some(new) = self.tx.prepare_cached(sql)?.query_row(params![id, by], |row| row.get::<_, i64>(0)).optional()? else {
            return Ok(());
        };
        let mut next = self.tx.prepare_cached("SELECT superseded_by FROM memories WHERE id = ?1")?;
        let mut chain = vec![id];
        let mut at = Some(new);
        while let Some(memory) = at.filter(|memory| *memory != id && chain.len() < CHAIN) {
            chain.push(memory);
            at = next.query_row([memory], |row| row.get::<_, Option<i64>>(0)).optional()?.flatten();
        }
        self.supersede(id, new)?;
        if at.is_none() { Ok(()) } else { self.open_circle(&chain) }
    }

    /// Removes the successor from the memory of a cycle that remains active; `shared` still records that successor.
    fn open_circle(&self, circle: &[i64]) -> Result<()> {
        let sql = "SELECT id, uuid FROM memories WHERE id IN (SELECT value FROM json_each(?1)) ORDER BY uuid DESC LIMIT 1";
        let row = |row: &rusqlite::Row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?));
        let (holds, uuid) = self.tx.prepare_cached(sql)?.query_row([serde_json::to_string(circle)?], row)?;
        let sql = "UPDATE shared SET superseded_by = (SELECT n.uuid FROM memories m JOIN memories n ON n.id = m.superseded_by WHERE m.id = ?2) WHERE uuid = ?1";
        self.tx.prepare_cached(sql)?.execute(params![uuid, holds])?;
        self.tx.prepare_cached("UPDATE memories SET superseded_by = NULL WHERE id = ?1")?.execute([holds])?;
        Ok(())
    }

    /// Marks memories as superseded if their successors have arrived since.
    pub fn supersede_arrived(&self) -> Result<()> {
        let sql = "SELECT m.id, s.superseded_by FROM shared s JOIN memories m ON m.uuid = s.uuid
                   JOIN memories n ON n.uuid = s.superseded_by WHERE s.superseded_by IS NOT NULL AND m.superseded_by IS NULL";
        let row = |row: &rusqlite::Row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?));
        let waiting: Vec<(i64, String)> = self.tx.prepare(sql)?.query_map([], row)?.collect::<Result<_, _>>()?;
        waiting.iter().try_for_each(|(id, by)| self.supersede_by_uuid(*id, by))
    }
}
