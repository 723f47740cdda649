//! The machines that share memories, this one included.

use super::super::{Store, Tx};
use crate::model::{Machine, Millis, TeamOrigin};
use anyhow::Result;
use rusqlite::{Row, params};
use std::collections::HashMap;

const MACHINE: &str = "SELECT id, key, name, seq, own, trusted, seen_at FROM machines";
/// Keys in `meta`: the seed of this machine's key, and the host and file for which it was made. A copy of the database
/// must not continue the series.
const SEED: &str = "machine_seed";
const PLACE: &str = "machine_place";

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
        let sql = "SELECT s.uuid, k.name, k.trusted, s.author FROM shared s JOIN machines k ON k.id = s.machine
                   WHERE s.uuid IN (SELECT value FROM json_each(?1))";
        let row = |row: &Row| {
            let author: Option<String> = row.get(3)?;
            let author = author.as_deref().unwrap_or_default().into();
            Ok((row.get(0)?, TeamOrigin { name: row.get(1)?, is_trusted: row.get(2)?, author }))
        };
        let uuids = serde_json::to_string(uuids)?;
        Ok(self.conn.prepare_cached(sql)?.query_map([uuids], row)?.collect::<Result<_, _>>()?)
    }
}

impl Tx<'_> {
    /// Returns the machine with a key, and records it if it is new. Updates its name to the one that it last used.
    pub fn machine(&self, key: &str, name: &str, now: Millis) -> Result<Machine> {
        let known: Vec<Machine> = {
            let mut statement = self.tx.prepare_cached(&format!("{MACHINE} WHERE key = ?1"))?;
            statement.query_map([key], machine)?.collect::<Result<_, _>>()?
        };
        let Some(mut known) = known.into_iter().next() else {
            let sql = "INSERT INTO machines(key, name, seq, seen_at) VALUES (?1, ?2, 0, ?3)";
            self.tx.prepare_cached(sql)?.execute(params![key, name, now])?;
            let id = self.tx.last_insert_rowid();
            let (key, name) = (key.to_string(), name.to_string());
            return Ok(Machine { id, key, name, seq: 0, is_own: false, is_trusted: false, seen_at: now });
        };
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
        Ok(self.tx.execute("UPDATE machines SET seq = 0 WHERE NOT own", []).map(drop)?)
    }
}
