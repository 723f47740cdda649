//! Shared memories: what this machine offers, and changes in its own series.

use super::{Store, Tx};
use crate::model::{Author, LastSync, MemoryKind, Millis, ProjectRow, Provenance, Share, SharedMemory, SharedProject};
use anyhow::Result;
use rusqlite::types::ValueRef;
use rusqlite::{OptionalExtension, Row, params};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// A project with the user's choice about sharing it.
#[derive(Clone, Debug)]
pub struct ProjectShare {
    pub project: ProjectRow,
    /// `None` if the user made no choice for the project itself.
    pub share: Option<Share>,
    pub keys: Vec<String>,
}

/// Key in `meta`: keys of the projects that were shared at the last sync, as a JSON object of lists by project.
const KEYS: &str = "sync_keys";
/// Key in `meta`: set while traces of forgotten memories remain in the file.
const TRACES: &str = "sync_traces";
const DONE: &str = "sync_done_at";
const FAILED: &str = "sync_failed_at";
const ERROR: &str = "sync_error";

impl Store {
    /// All projects, with the user's choices about sharing them.
    pub fn project_shares(&self) -> Result<Vec<ProjectShare>> {
        let mut said = self.conn.prepare("SELECT share FROM projects WHERE id = ?1")?;
        let mut all = Vec::new();
        for (project, ..) in self.projects()? {
            let share: Option<String> = said.query_row([project.id], |row| row.get(0))?;
            let keys = self.project_keys(project.id)?;
            all.push(ProjectShare { share: share.as_deref().and_then(Share::from_name), keys, project });
        }
        Ok(all)
    }

    /// Stores the user's choice about sharing a project.
    pub fn set_share(&mut self, project: i64, share: Option<Share>) -> Result<()> {
        let share = share.map(Share::name);
        self.write(|tx| Ok(tx.tx.execute("UPDATE projects SET share = ?2 WHERE id = ?1", params![project, share])?)).map(drop)
    }

    /// Records the keys of the shared projects. If a project has more than at the last sync (it was merged, or got a
    /// remote), its memories are sent again, so that others find their project. If there are keys that no project had
    /// before, all changes of other machines are applied again.
    pub fn note_shared_keys(&mut self, projects: &[SharedProject]) -> Result<()> {
        let known: Option<String> = self.meta(KEYS)?;
        let known: BTreeMap<i64, Vec<String>> = known.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default();
        let now: BTreeMap<i64, &Vec<String>> = projects.iter().map(|project| (project.id, &project.keys)).collect();
        let json = serde_json::to_string(&now)?;
        if json == serde_json::to_string(&known)? {
            return Ok(());
        }
        let is_new = |key: &String| !known.values().flatten().any(|known| known == key);
        let has_new_keys = now.values().any(|keys| keys.iter().any(is_new));
        let mut grown = projects
            .iter()
            .filter(|project| known.get(&project.id).is_some_and(|known| project.keys.iter().any(|key| !known.contains(key))));
        self.write(|tx| {
            if has_new_keys {
                tx.apply_all_again()?;
            }
            grown.try_for_each(|project| tx.send_again(project.id))?;
            tx.set_meta(KEYS, Some(json))
        })
    }

    /// Outcome of the last sync.
    pub fn last_sync(&self) -> Result<LastSync> {
        Ok(LastSync { done_at: self.meta(DONE)?, failed_at: self.meta(FAILED)?, error: self.meta(ERROR)? })
    }

    /// Records the end of a sync.
    pub fn note_sync(&mut self, error: Option<&str>, now: Millis) -> Result<()> {
        self.write(|tx| match error {
            None => {
                tx.set_meta(DONE, Some(now))?;
                tx.set_meta::<Millis>(FAILED, None)?;
                tx.set_meta::<&str>(ERROR, None)
            }
            Some(error) => {
                tx.set_meta(FAILED, Some(now))?;
                tx.set_meta(ERROR, Some(error))
            }
        })
    }

    /// Whether others have forgotten memories whose last traces are still in this file.
    pub fn has_traces(&self) -> Result<bool> {
        Ok(self.meta::<bool>(TRACES)?.unwrap_or(false))
    }

    /// Records that memories were forgotten by others, or that their traces are gone. The texts that agents received
    /// may have contained such memories, so those texts are dropped.
    pub fn note_traces(&mut self, are_left: bool) -> Result<()> {
        self.write(|tx| {
            if are_left {
                tx.forget_injected_texts()?;
            }
            tx.set_meta(TRACES, Some(are_left).filter(|left| *left))
        })
    }

    /// A value of the table `meta`.
    pub(super) fn meta<T: rusqlite::types::FromSql>(&self, key: &str) -> Result<Option<T>> {
        Ok(self.conn.prepare_cached("SELECT value FROM meta WHERE key = ?1")?.query_row([key], |row| row.get(0)).optional()?)
    }
}

impl Tx<'_> {
    /// Stores or removes a value of the table `meta`.
    pub(super) fn set_meta<T: rusqlite::ToSql>(&self, key: &str, value: Option<T>) -> Result<()> {
        match value {
            Some(value) => {
                let sql = "INSERT OR REPLACE INTO meta(key, value) VALUES (?1, ?2)";
                self.tx.prepare_cached(sql)?.execute(params![key, value])?
            }
            None => self.tx.prepare_cached("DELETE FROM meta WHERE key = ?1")?.execute([key])?,
        };
        Ok(())
    }
}

/// Bytes of a fingerprint.
const FINGERPRINT: usize = 16;

/// SQL for the state of a memory; the first [`STATE_COLUMNS`] columns make its fingerprint.
const STATE: &str = "SELECT m.kind, m.type, m.title, m.subtitle, m.body, m.content, m.provenance, m.made_by, m.by_hand, m.pinned, m.created_at,
    m.platform, coalesce((SELECT n.uuid FROM memories n WHERE n.id = m.superseded_by), s.superseded_by), u.title,
    coalesce(m.concepts, '[]'),
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

    /// Numbers of this machine's changes in order, each with the project of its memory; tombstones have none. Changes that another
    /// number will replace are left out.
    pub fn own_numbers_by_project(&self) -> Result<Vec<(i64, Option<i64>)>> {
        let sql = "SELECT s.seq, CASE WHEN s.fingerprint IS NOT NULL THEN m.project_id END
                   FROM shared s LEFT JOIN memories m ON m.uuid = s.uuid
                   WHERE s.seq IS NOT NULL AND (s.fingerprint IS NULL OR m.project_id IS NOT NULL) ORDER BY s.seq";
        let row = |row: &Row| Ok((row.get(0)?, row.get(1)?));
        Ok(self.conn.prepare(sql)?.query_map([], row)?.collect::<Result<_, _>>()?)
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

    /// A memory as it would be sent.
    pub(super) fn shared_memory(&self, id: i64) -> Result<SharedMemory> {
        Ok(self.tx.prepare_cached(&format!("{STATE} WHERE m.id = ?1"))?.query_row([id], memory)?)
    }

    /// Returns the current fingerprint of a memory.
    pub(super) fn fingerprint_of(&self, memory: i64) -> Result<Vec<u8>> {
        let sql = format!("{STATE} WHERE m.id = ?1");
        Ok(self.tx.prepare_cached(&sql)?.query_row([memory], fingerprint)?)
    }
}
