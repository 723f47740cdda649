//! Changes that this machine sends: the state of each memory, as a fingerprint of its row, and its own series of
//! changes.
//!
//! Changes are found by comparing fingerprints, not recorded when they happen. So no hook and no other command pays for
//! a sync, and nothing can be missed. A pass over 100,000 memories takes about a second.

use super::super::{Store, Tx};
use crate::model::{Author, MemoryKind, Provenance, SharedMemory};
use anyhow::Result;
use rusqlite::types::ValueRef;
use rusqlite::{OptionalExtension, Row, params};
use sha2::{Digest, Sha256};

/// Bytes of a fingerprint.
const FINGERPRINT: usize = 16;

/// SQL for the state of a memory; the first [`STATE_COLUMNS`] columns make its fingerprint.
const STATE: &str = "SELECT m.kind, m.type, m.title, m.subtitle, m.body, m.content, m.provenance, m.made_by, m.by_hand, m.pinned, m.created_at,
    m.platform, coalesce((SELECT n.uuid FROM memories n WHERE n.id = m.superseded_by), s.superseded_by), u.title,
    (SELECT json_group_array(concept) FROM (SELECT concept FROM memory_concepts WHERE memory_id = m.id ORDER BY concept)),
    (SELECT json_group_array(json_array(path, modified, hash)) FROM (SELECT path, modified, hash FROM memory_files WHERE memory_id = m.id ORDER BY path)),
    m.id, m.uuid, m.project_id, s.counter, s.machine, s.fingerprint, s.seq, s.own, s.private, s.author
  FROM memories m LEFT JOIN shared s ON s.uuid = m.uuid LEFT JOIN work_units u ON u.id = m.work_unit_id";
const STATE_COLUMNS: usize = 16;

/// The recorded state of a shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedState {
    pub counter: i64,
    pub machine: i64,
    /// `None` if it was withdrawn, forgotten, or never shared.
    pub fingerprint: Option<Vec<u8>>,
    pub seq: Option<i64>,
    pub own: bool,
    pub private: bool,
}

/// A memory with its state.
#[derive(Clone, Debug)]
pub struct MemoryState {
    pub id: i64,
    pub uuid: String,
    pub project: i64,
    pub kind: MemoryKind,
    pub title: String,
    pub provenance: Provenance,
    pub fingerprint: Vec<u8>,
    pub shared: Option<SharedState>,
}

/// A change that gets a number in this machine's series.
#[derive(Clone, Debug)]
pub struct NumberedChange {
    pub uuid: String,
    pub counter: i64,
    /// `None` for a tombstone.
    pub fingerprint: Option<Vec<u8>>,
    /// True if this machine reports when the memory is gone.
    pub own: bool,
}

/// A change of this machine's series, with the memory as it is now.
#[derive(Clone, Debug)]
pub struct OwnChange {
    pub uuid: String,
    pub seq: i64,
    pub counter: i64,
    pub project: Option<i64>,
    /// `None` for a tombstone.
    pub memory: Option<SharedMemory>,
    /// True if the memory is private now.
    pub withdrawn: bool,
}

fn fingerprint(row: &Row) -> rusqlite::Result<Vec<u8>> {
    let mut hash = Sha256::new();
    for at in 0..STATE_COLUMNS {
        let number;
        let bytes: &[u8] = match row.get_ref(at)? {
            ValueRef::Null => b"\0null",
            ValueRef::Integer(value) => {
                number = value.to_le_bytes();
                &number
            }
            ValueRef::Real(value) => {
                number = value.to_le_bytes();
                &number
            }
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes,
        };
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    }
    Ok(hash.finalize()[..FINGERPRINT].to_vec())
}

fn state(row: &Row) -> rusqlite::Result<MemoryState> {
    let shared = match row.get::<_, Option<i64>>(19)? {
        None => None,
        Some(counter) => Some(SharedState {
            counter,
            machine: row.get(20)?,
            fingerprint: row.get(21)?,
            seq: row.get(22)?,
            own: row.get(23)?,
            private: row.get(24)?,
        }),
    };
    Ok(MemoryState {
        id: row.get(16)?,
        uuid: row.get(17)?,
        project: row.get(18)?,
        kind: row.get(0)?,
        title: row.get(2)?,
        provenance: row.get(6)?,
        fingerprint: fingerprint(row)?,
        shared,
    })
}

fn memory(row: &Row) -> rusqlite::Result<SharedMemory> {
    let json = |at: usize| row.get::<_, String>(at);
    let (provenance, by_hand, pinned): (Provenance, bool, bool) = (row.get(6)?, row.get(8)?, row.get(9)?);
    let author = match provenance {
        Provenance::Team => row.get::<_, Option<String>>(25)?.as_deref().unwrap_or_default().into(),
        _ if by_hand || pinned => Author::Hand,
        Provenance::User => Author::User,
        Provenance::Agent => Author::Agent,
        Provenance::Tool => Author::Tool,
    };
    let mut content: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&json(5)?).unwrap_or_default();
    if let Some(title) = row.get::<_, Option<String>>(13)? {
        content.insert("work_unit".into(), title.into());
    }
    Ok(SharedMemory {
        kind: row.get(0)?,
        kind_type: row.get(1)?,
        title: row.get(2)?,
        subtitle: row.get(3)?,
        body: row.get(4)?,
        content,
        concepts: serde_json::from_str(&json(14)?).unwrap_or_default(),
        files: files(&json(15)?),
        created_at: row.get(10)?,
        made_by: row.get(7)?,
        author,
        pinned,
        superseded_by: row.get(12)?,
        platform: row.get(11)?,
        salt: String::new(),
    })
}

/// Parses files from JSON. SQLite writes the flag for modified files as 0 or 1.
fn files(json: &str) -> Vec<(String, bool, Option<String>)> {
    let files: Vec<(String, i64, Option<String>)> = serde_json::from_str(json).unwrap_or_default();
    files.into_iter().map(|(path, modified, hash)| (path, modified != 0, hash)).collect()
}

impl Store {
    /// States of memories of some projects after row id `behind`, in order.
    pub fn memory_states(&self, projects: &[i64], behind: i64, limit: usize) -> Result<Vec<MemoryState>> {
        // By row id: the index by project would have to be sorted for each step.
        let sql =
            format!("{STATE} WHERE m.id > ?2 AND +m.project_id IN (SELECT value FROM json_each(?1)) ORDER BY m.id LIMIT ?3");
        let mut statement = self.conn.prepare_cached(&sql)?;
        let states = statement.query_map(params![serde_json::to_string(projects)?, behind, limit as i64], state)?;
        Ok(states.collect::<Result<_, _>>()?)
    }

    /// Shared memories that no longer exist here and whose deletion this machine reports: uuid and counter.
    pub fn missing_memories(&self) -> Result<Vec<(String, i64)>> {
        let sql = "SELECT uuid, counter FROM shared s WHERE own AND fingerprint IS NOT NULL
                   AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.uuid = s.uuid) ORDER BY uuid";
        let row = |row: &Row| Ok((row.get(0)?, row.get(1)?));
        Ok(self.conn.prepare(sql)?.query_map([], row)?.collect::<Result<_, _>>()?)
    }

    /// Numbers of this machine's changes after number `behind`, with the uuids.
    pub fn own_numbers(&self, behind: i64) -> Result<Vec<(i64, String)>> {
        let sql = "SELECT seq, uuid FROM shared WHERE seq > ?1 ORDER BY seq";
        let row = |row: &Row| Ok((row.get(0)?, row.get(1)?));
        Ok(self.conn.prepare(sql)?.query_map([behind], row)?.collect::<Result<_, _>>()?)
    }

    /// Numbers of this machine's changes that contain a text, in order.
    pub fn own_texts(&self) -> Result<Vec<i64>> {
        let sql = "SELECT seq FROM shared WHERE seq IS NOT NULL AND fingerprint IS NOT NULL ORDER BY seq";
        Ok(self.conn.prepare(sql)?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }

    /// A change of this machine's series. `None` if the memory has changed since it was numbered, so that another
    /// number follows.
    pub fn own_change(&self, seq: i64, uuid: &str) -> Result<Option<OwnChange>> {
        let sql = "SELECT counter, fingerprint, private FROM shared WHERE uuid = ?1 AND seq = ?2";
        let row = |row: &Row| Ok((row.get::<_, i64>(0)?, row.get::<_, Option<Vec<u8>>>(1)?, row.get::<_, bool>(2)?));
        let known = self.conn.prepare_cached(sql)?.query_row(params![uuid, seq], row).optional()?;
        let Some((counter, numbered, withdrawn)) = known else { return Ok(None) };
        let uuid = uuid.to_string();
        let Some(numbered) = numbered else {
            return Ok(Some(OwnChange { uuid, seq, counter, project: None, memory: None, withdrawn }));
        };
        let mut statement = self.conn.prepare_cached(&format!("{STATE} WHERE m.uuid = ?1"))?;
        let now = |row: &Row| Ok((fingerprint(row)?, row.get::<_, Option<i64>>(18)?, memory(row)?));
        let found = statement.query_row([&uuid], now).optional()?.filter(|(now, ..)| *now == numbered);
        Ok(found.map(|(_, project, memory)| OwnChange { uuid, seq, counter, project, memory: Some(memory), withdrawn: false }))
    }

    /// Marks a memory as private or not private.
    pub fn set_private(&mut self, uuid: &str, private: bool) -> Result<()> {
        self.write(|tx| tx.mark_private(uuid, private))
    }

    /// Whether a memory is private.
    pub fn is_private(&self, uuid: &str) -> Result<bool> {
        Ok(self.conn.prepare_cached("SELECT 1 FROM shared WHERE uuid = ?1 AND private")?.exists([uuid])?)
    }
}

impl Tx<'_> {
    /// Gives changes their numbers in this machine's series.
    pub fn number_changes(&self, machine: i64, changes: &[NumberedChange]) -> Result<()> {
        let mut seq: i64 = self.tx.query_row("SELECT seq FROM machines WHERE id = ?1", [machine], |row| row.get(0))?;
        let sql = "INSERT INTO shared(uuid, counter, machine, fingerprint, seq, own) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                   ON CONFLICT(uuid) DO UPDATE SET counter = excluded.counter, machine = excluded.machine,
                     fingerprint = excluded.fingerprint, seq = excluded.seq, own = excluded.own";
        let mut statement = self.tx.prepare_cached(sql)?;
        for change in changes {
            seq += 1;
            statement.execute(params![change.uuid, change.counter, machine, change.fingerprint, seq, change.own])?;
        }
        self.tx.execute("UPDATE machines SET seq = ?2 WHERE id = ?1", params![machine, seq])?;
        Ok(())
    }

    /// Makes this machine send again the memories of a project that it sent before.
    pub(super) fn send_again(&self, project: i64) -> Result<()> {
        let sql = "UPDATE shared SET fingerprint = x'' WHERE own AND fingerprint IS NOT NULL AND uuid IN (SELECT uuid FROM memories WHERE project_id = ?1)";
        Ok(self.tx.prepare_cached(sql)?.execute([project]).map(drop)?)
    }

    fn mark_private(&self, uuid: &str, private: bool) -> Result<()> {
        let sql = "INSERT INTO shared(uuid, counter, machine, own, private) VALUES (?1, 0, 0, 1, ?2)
                   ON CONFLICT(uuid) DO UPDATE SET private = ?2";
        Ok(self.tx.prepare_cached(sql)?.execute(params![uuid, private]).map(drop)?)
    }

    /// Marks a memory that is being stored as private.
    pub(in crate::store) fn keep_private(&self, uuid: &str) -> Result<()> {
        self.mark_private(uuid, true)
    }

    /// Records that shared memories are being forgotten here. This machine reports it, no matter who made them.
    pub(in crate::store) fn note_shared_forgotten(&self, memories: &[i64]) -> Result<()> {
        let known = "SELECT uuid FROM memories WHERE id IN (SELECT value FROM json_each(?1))";
        let ids = serde_json::to_string(memories)?;
        self.tx.execute(&format!("UPDATE shared SET own = 1 WHERE fingerprint IS NOT NULL AND uuid IN ({known})"), [&ids])?;
        Ok(())
    }

    /// Returns the current fingerprint of a memory.
    pub(super) fn fingerprint_of(&self, memory: i64) -> Result<Vec<u8>> {
        let sql = format!("{STATE} WHERE m.id = ?1");
        Ok(self.tx.prepare_cached(&sql)?.query_row([memory], fingerprint)?)
    }
}
