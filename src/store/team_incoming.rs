//! Applies changes of other machines and programs.

use super::memory_rows::{self, MemoryScope};
use super::{Store, Tx};
use crate::model::{
    Draft, Machine, Maker, Millis, Platform, Provenance, SharedChange, SharedMemory, TeamOrigin, with_clear_names,
};
use crate::redact::Clean;
use anyhow::Result;
use rusqlite::{OptionalExtension, Row, params};
use std::collections::{BTreeMap, HashMap};

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
    is_private: bool,
}

impl Tx<'_> {
    /// Applies a change. Only this person's machines, and those of trusted people, can change a memory of this machine; only
    /// this person's machines one that is private.
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
            Some(here) if here.is_own && !arrived.is_mine && (!may_change_own || here.is_private) => {
                if let Some(memory) = arrived.memory
                    && self.is_equal(here.id, memory)?
                {
                    // Restored from a copy, or sent under an earlier key. The row stays as it is.
                    self.raise_counter(change)?;
                    return Ok(Applied::Overtaken);
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
                self.note_change(arrived, None, false)?;
                if was_here { Applied::Forgotten } else { Applied::Overtaken }
            }
            (Some(memory), here) => {
                let is_new = here.is_none();
                let stays = here.as_ref().is_some_and(|here| here.is_own);
                let id = self.write_shared(arrived, memory, here)?;
                self.note_change(arrived, Some(memory), stays)?;
                // The current row counts as what was received, even if text was cut or redacted on the way.
                let fingerprint = self.fingerprint_of(id)?;
                let sql = "UPDATE shared SET fingerprint = ?2 WHERE uuid = ?1";
                self.tx.prepare_cached(sql)?.execute(params![change.uuid, fingerprint])?;
                if is_new { Applied::New } else { Applied::Changed }
            }
        };
        Ok(if kept { Applied::Kept } else { outcome })
    }

    /// Whether a newer change of the same memory, or this one, is known.
    pub fn is_overtaken(&self, change: &SharedChange) -> Result<bool> {
        let sql = "SELECT (s.counter, coalesce(k.key, '')) >= (?2, ?3) FROM shared s LEFT JOIN machines k ON k.id = s.machine WHERE s.uuid = ?1";
        let known = params![change.uuid, change.counter, change.machine];
        Ok(self.tx.prepare_cached(sql)?.query_row(known, |row| row.get(0)).optional()?.unwrap_or(false))
    }

    fn memory_here(&self, uuid: &str) -> Result<Option<Here>> {
        let sql = "SELECT m.id, m.project_id, m.provenance <> 'team' AND coalesce(s.own, 1), coalesce(s.private, 0) FROM memories m LEFT JOIN shared s ON s.uuid = m.uuid WHERE m.uuid = ?1";
        let row = |row: &rusqlite::Row| {
            Ok(Here { id: row.get(0)?, project: row.get(1)?, is_own: row.get(2)?, is_private: row.get(3)? })
        };
        Ok(self.tx.prepare_cached(sql)?.query_row([uuid], row).optional()?)
    }

    /// Whether a local memory equals one that arrives, in all that a person or an agent can see of it.
    fn is_equal(&self, id: i64, memory: &SharedMemory) -> Result<bool> {
        let here = self.shared_memory(id)?;
        let sorted = |memory: &SharedMemory| {
            let (mut concepts, mut files) = (memory.concepts.clone(), memory.files.clone());
            concepts.sort_unstable();
            files.sort_unstable();
            (concepts, files)
        };
        let texts = |memory: &SharedMemory| {
            let SharedMemory { title, subtitle, body, content, superseded_by, .. } = memory.clone();
            (title, subtitle, body, content, superseded_by)
        };
        let kinds = |memory: &SharedMemory| (memory.kind, memory.kind_type.clone(), memory.created_at);
        Ok(texts(&here) == texts(memory) && kinds(&here) == kinds(memory) && sorted(&here) == sorted(memory))
    }

    /// Records that a counter is taken, so that the next change of this machine is newer.
    fn raise_counter(&self, change: &SharedChange) -> Result<()> {
        let sql = "UPDATE shared SET counter = max(counter, ?2) WHERE uuid = ?1";
        Ok(self.tx.prepare_cached(sql)?.execute(params![change.uuid, change.counter]).map(drop)?)
    }

    /// Stops sharing a memory: it gets another uuid and becomes private.
    fn keep_as_private(&self, id: i64) -> Result<()> {
        let uuid = memory_rows::uuid();
        self.tx.prepare_cached("UPDATE memories SET uuid = ?2 WHERE id = ?1")?.execute(params![id, uuid])?;
        self.keep_private(&uuid)
    }

    fn note_change(&self, arrived: &Arrived, memory: Option<&SharedMemory>, keeps_private: bool) -> Result<()> {
        let sql = "INSERT INTO shared(uuid, counter, machine, own, author, superseded_by) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                   ON CONFLICT(uuid) DO UPDATE SET counter = excluded.counter, machine = excluded.machine, fingerprint = NULL, seq = NULL,
                     own = max(own, excluded.own) AND NOT ?7, author = excluded.author, superseded_by = excluded.superseded_by, private = private AND ?8";
        let change = arrived.change;
        let author = memory.map(|memory| memory.author.name());
        let superseded_by = memory.and_then(|memory| memory.superseded_by.as_deref());
        let values = params![
            change.uuid,
            change.counter,
            arrived.machine.id,
            arrived.is_mine,
            author,
            superseded_by,
            memory.is_none(),
            keeps_private
        ];
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
    /// every machine; in a cycle through a memory that is private from the team, that one.
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
        // Others do not have a private memory, and so no cycle through it. The machines of one person do.
        let sql = "SELECT m.id, m.uuid FROM memories m LEFT JOIN shared s ON s.uuid = m.uuid LEFT JOIN projects p ON p.id = m.project_id
                   WHERE m.id IN (SELECT value FROM json_each(?1))
                   ORDER BY coalesce(s.private, 0) AND p.share IS NOT 'mine' DESC, m.uuid DESC LIMIT 1";
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

const MACHINE: &str = "SELECT id, key, name, seq, own, trusted, seen_at FROM machines";
/// Keys in `meta`: the seed of this machine's key, and the host and file for which it was made. A copy of the database
/// must not continue the series.
const SEED: &str = "machine_seed";
const PLACE: &str = "machine_place";
/// Before the id of a machine: the greatest number of its changes that arrived.
const NEWEST: &str = "sync_newest:";
/// Before the name of a machine's folder: the chunks in it that were read, as a JSON object.
const CHUNKS: &str = "sync_chunks:";

/// This machine's identity.
#[derive(Clone, Debug)]
pub struct OwnMachine {
    /// Seed of its Ed25519 key, in hex.
    pub seed: String,
    pub machine: Machine,
}

fn machine(row: &Row) -> rusqlite::Result<Machine> {
    Ok(Machine {
        id: row.get(0)?,
        key: row.get(1)?,
        name: row.get(2)?,
        seq: row.get(3)?,
        is_own: row.get(4)?,
        is_trusted: row.get(5)?,
        seen_at: row.get(6)?,
    })
}

impl Store {
    /// All known machines.
    pub fn machines(&self) -> Result<Vec<Machine>> {
        Ok(self.conn.prepare_cached(&format!("{MACHINE} ORDER BY id"))?.query_map([], machine)?.collect::<Result<_, _>>()?)
    }

    /// Records up to which number the changes of each machine were applied.
    pub fn set_applied<'a>(&mut self, mut marks: impl Iterator<Item = (&'a str, i64)>) -> Result<()> {
        self.write(|tx| marks.try_for_each(|(key, mark)| tx.set_applied(key, mark)))
    }

    /// Numbers that a sync remembers about the files of a machine's folder.
    pub fn chunks_read(&self, machine: &str) -> Result<BTreeMap<String, i64>> {
        let json: Option<String> = self.meta(&format!("{CHUNKS}{machine}"))?;
        Ok(json.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default())
    }

    /// Remembers them.
    pub fn set_chunks_read(&mut self, machine: &str, read: &BTreeMap<String, i64>) -> Result<()> {
        let json = serde_json::to_string(read)?;
        self.write(|tx| tx.set_meta(&format!("{CHUNKS}{machine}"), Some(json)))
    }

    /// This machine, if it has shared before from the same host and file.
    pub fn own_machine(&self, place: &str) -> Result<Option<OwnMachine>> {
        let own = self.machines()?.into_iter().find(|machine| machine.is_own);
        let is_here = self.meta::<String>(PLACE)?.as_deref() == Some(place);
        let seed: Option<String> = self.meta(SEED)?;
        Ok(own.zip(seed).filter(|_| is_here).map(|(machine, seed)| OwnMachine { seed, machine }))
    }

    /// Gives this machine a new identity: its own memories are sent again under the new key.
    pub fn become_machine(&mut self, key: &str, seed: &str, place: &str, name: &str, now: Millis) -> Result<OwnMachine> {
        self.write(|tx| {
            // An earlier key remains known, as a trusted machine of the same person.
            tx.tx.execute("UPDATE machines SET own = 0, trusted = 1 WHERE own", [])?;
            let sql = "INSERT INTO machines(key, name, seq, own, trusted, seen_at) VALUES (?1, ?2, 0, 1, 1, ?3)";
            tx.tx.execute(sql, params![key, name, now])?;
            let id = tx.tx.last_insert_rowid();
            tx.set_meta(SEED, Some(seed))?;
            tx.set_meta(PLACE, Some(place))?;
            let sql = "WITH numbered AS (SELECT uuid, row_number() OVER (ORDER BY seq) AS place FROM shared WHERE seq IS NOT NULL)
                       UPDATE shared SET machine = ?1, counter = counter + 1, seq = numbered.place FROM numbered WHERE numbered.uuid = shared.uuid";
            let renumbered = tx.tx.execute(sql, [id])?;
            tx.tx.execute("UPDATE machines SET seq = ?2 WHERE id = ?1", params![id, renumbered as i64])?;
            let machine = tx.tx.query_row(&format!("{MACHINE} WHERE id = ?1"), [id], machine)?;
            Ok(OwnMachine { seed: seed.to_string(), machine })
        })
    }

    /// Changes the name under which this machine shares.
    pub fn set_own_name(&mut self, name: &str) -> Result<()> {
        let sql = "UPDATE machines SET name = ?1 WHERE own AND name <> ?1";
        self.write(|tx| Ok(tx.tx.execute(sql, [name])?)).map(drop)
    }

    /// Marks a machine as trusted or not trusted.
    pub fn set_trusted(&mut self, machine: i64, trusted: bool) -> Result<()> {
        let sql = "UPDATE machines SET trusted = ?2 WHERE id = ?1";
        self.write(|tx| Ok(tx.tx.execute(sql, params![machine, trusted])?)).map(drop)
    }

    /// Number of shared memories by the machine of their newest change.
    pub fn shared_by_machine(&self) -> Result<HashMap<i64, i64>> {
        let sql = "SELECT machine, count(*) FROM shared WHERE fingerprint IS NOT NULL GROUP BY machine";
        Ok(self.conn.prepare(sql)?.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?)
    }

    /// Origins of memories of the team, by uuid.
    pub fn team_origins(&self, uuids: &[&str]) -> Result<HashMap<String, TeamOrigin>> {
        let all = self.machines()?;
        let clear = with_clear_names(&all);
        let sql = "SELECT uuid, machine, author FROM shared WHERE uuid IN (SELECT value FROM json_each(?1))";
        let row = |row: &Row| {
            let (machine, author): (i64, Option<String>) = (row.get(1)?, row.get(2)?);
            let machine = all.iter().find(|known| known.id == machine);
            let origin = machine.map(|machine| TeamOrigin {
                name: machine.name.clone(),
                key: machine.short().to_string(),
                has_clear_name: clear.contains(&machine.id),
                is_trusted: machine.is_trusted,
                author: author.as_deref().unwrap_or_default().into(),
            });
            Ok(origin.map(|origin| (row.get::<_, String>(0).unwrap_or_default(), origin)))
        };
        let uuids = serde_json::to_string(uuids)?;
        let found: Vec<Option<_>> = self.conn.prepare_cached(sql)?.query_map([uuids], row)?.collect::<Result<_, _>>()?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Number of memories by people whom the user does not trust, among the newest 1,000 of a project: strangers decide how many
    /// there are, and a session start waits for the count.
    pub fn count_of_strangers(&self, project: i64) -> Result<i64> {
        if !self.conn.prepare_cached("SELECT 1 FROM machines WHERE NOT trusted AND NOT own")?.exists([])? {
            return Ok(0);
        }
        let sql = "SELECT count(*) FROM (SELECT uuid, provenance, superseded_by FROM memories WHERE project_id = ?1 ORDER BY created_at DESC LIMIT 1000) m
                   JOIN shared s ON s.uuid = m.uuid JOIN machines k ON k.id = s.machine
                   WHERE m.provenance = 'team' AND m.superseded_by IS NULL AND NOT k.trusted";
        Ok(self.conn.prepare_cached(sql)?.query_row([project], |row| row.get(0))?)
    }
}

impl Tx<'_> {
    /// Returns the machine with a key, and records it if it is new. Updates its name to that of a change that is newer than all
    /// known ones.
    pub fn machine(&self, key: &str, name: &str, seq: i64, now: Millis) -> Result<Machine> {
        let known: Vec<Machine> = {
            let mut statement = self.tx.prepare_cached(&format!("{MACHINE} WHERE key = ?1"))?;
            statement.query_map([key], machine)?.collect::<Result<_, _>>()?
        };
        let Some(mut known) = known.into_iter().next() else {
            let sql = "INSERT INTO machines(key, name, seq, seen_at) VALUES (?1, ?2, 0, ?3)";
            self.tx.prepare_cached(sql)?.execute(params![key, name, now])?;
            let id = self.tx.last_insert_rowid();
            self.set_meta(&format!("{NEWEST}{id}"), Some(seq))?;
            let (key, name) = (key.to_string(), name.to_string());
            return Ok(Machine { id, key, name, seq: 0, is_own: false, is_trusted: false, seen_at: now });
        };
        let newest: i64 = self
            .tx
            .prepare_cached("SELECT value FROM meta WHERE key = ?1")?
            .query_row([format!("{NEWEST}{}", known.id)], |row| row.get(0))
            .optional()?
            .unwrap_or(known.seq);
        if seq <= newest {
            return Ok(known);
        }
        self.set_meta(&format!("{NEWEST}{}", known.id), Some(seq))?;
        if known.name != name || known.seen_at != now {
            // The user trusts a person by name: a machine that takes another name must be trusted again.
            let sql = "UPDATE machines SET trusted = trusted AND name = ?2, name = ?2, seen_at = ?3 WHERE id = ?1";
            self.tx.prepare_cached(sql)?.execute(params![known.id, name, now])?;
            known.is_trusted &= known.name == name;
            known.name = name.to_string();
        }
        Ok(known)
    }

    /// Records the number up to which a machine's changes are applied.
    pub fn set_applied(&self, key: &str, seq: i64) -> Result<()> {
        let sql = "UPDATE machines SET seq = max(seq, ?2) WHERE key = ?1 AND NOT own";
        self.tx.prepare_cached(sql)?.execute(params![key, seq])?;
        Ok(())
    }

    /// Causes all changes of other machines to be applied again, because more projects are shared than before.
    pub fn apply_all_again(&self) -> Result<()> {
        // What is applied again must not rename anybody to a former name.
        self.tx.execute("INSERT OR IGNORE INTO meta(key, value) SELECT ?1 || id, seq FROM machines WHERE NOT own", [NEWEST])?;
        self.tx.execute("DELETE FROM meta WHERE key LIKE ?1 || '%' AND key <> ?1 || 'own'", [CHUNKS])?;
        Ok(self.tx.execute("UPDATE machines SET seq = 0 WHERE NOT own", []).map(drop)?)
    }
}

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
