//! Team memory: shared memories, their versions, and the machines that share (ADR/0051).
//!
//! Read in this order: projects and notes, in this file; `machines`; `outgoing` (what this machine sends); `incoming`
//! (what other machines sent); `other_programs` (rows of the RAD tables).

mod incoming;
mod machines;
mod other_programs;
mod outgoing;

pub use incoming::{Applied, Arrived};
pub use machines::OwnMachine;
pub use outgoing::{MemoryState, NumberedChange, OwnChange, SharedState};

use super::{Store, Tx};
use crate::model::{LastSync, Millis, ProjectRow, Share, SharedProject};
use anyhow::Result;
use rusqlite::{OptionalExtension, params};
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
    fn meta<T: rusqlite::types::FromSql>(&self, key: &str) -> Result<Option<T>> {
        Ok(self.conn.prepare_cached("SELECT value FROM meta WHERE key = ?1")?.query_row([key], |row| row.get(0)).optional()?)
    }
}

impl Tx<'_> {
    /// Stores or removes a value of the table `meta`.
    fn set_meta<T: rusqlite::ToSql>(&self, key: &str, value: Option<T>) -> Result<()> {
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
