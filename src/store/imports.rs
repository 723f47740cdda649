//! Which files of past sessions were imported, and how far.

use super::{Store, Tx};
use crate::model::{Millis, Platform};
use anyhow::Result;
use rusqlite::{OptionalExtension, Row, params};
use sha2::{Digest, Sha256};
use std::collections::HashMap;

/// An imported file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedFile {
    pub platform: Platform,
    /// Version of the reader.
    pub version: i64,
    /// Bytes, when it was read.
    pub size: u64,
    pub modified_at: Millis,
    /// Where reading goes on when the file has grown.
    pub offset: u64,
    /// Hash of the first line's id.
    pub first_line: Option<u64>,
}

/// A stored prompt or closing message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredMessage {
    /// The platform's id of the prompt.
    pub prompt: Option<String>,
    pub is_users: bool,
    pub text: String,
}

impl Store {
    /// All imported files by path.
    pub fn imported_files(&self) -> Result<HashMap<String, ImportedFile>> {
        let sql = "SELECT path, platform, version, size, modified_at, offset, first_line FROM imports";
        let row = |row: &Row| {
            let number = |at: usize| row.get::<_, i64>(at).map(|n| n.max(0) as u64);
            let platform: String = row.get(1)?;
            let file = ImportedFile {
                platform: Platform::from_name(&platform).unwrap_or_default(),
                version: row.get(2)?,
                size: number(3)?,
                modified_at: row.get(4)?,
                offset: number(5)?,
                first_line: row.get::<_, Option<i64>>(6)?.map(|hash| hash as u64),
            };
            Ok((row.get(0)?, file))
        };
        Ok(self.conn.prepare_cached(sql)?.query_map([], row)?.collect::<Result<_, _>>()?)
    }

    /// Notes how far a file was imported.
    pub fn set_imported(&mut self, path: &str, file: &ImportedFile) -> Result<()> {
        self.write(|tx| {
            let sql = "INSERT OR REPLACE INTO imports(path, platform, version, size, modified_at, offset, first_line)
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
            let values = params![
                path,
                file.platform.name(),
                file.version,
                file.size as i64,
                file.modified_at,
                file.offset as i64,
                file.first_line.map(|hash| hash as i64)
            ];
            Ok(tx.tx.prepare_cached(sql)?.execute(values).map(drop)?)
        })
    }

    /// The texts of a session that are stored, in order: of the user and of the agent.
    pub fn texts_of_session(&self, session: i64) -> Result<Vec<StoredMessage>> {
        let sql = "SELECT platform_prompt_id, source = 'user', text FROM prompts WHERE session_id = ?1 AND kind <> 'thinking' ORDER BY id";
        let row = |row: &Row| Ok(StoredMessage { prompt: row.get(0)?, is_users: row.get(1)?, text: row.get(2)? });
        Ok(self.conn.prepare_cached(sql)?.query_map([session], row)?.collect::<Result<_, _>>()?)
    }

    /// Whether something of a session was forgotten, so that it must not be imported.
    pub fn was_forgotten(&self, platform: Platform, session: &str) -> Result<bool> {
        let key = forgotten(platform.name(), session);
        Ok(self.conn.prepare_cached("SELECT 1 FROM meta WHERE key = ?1")?.exists([key])?)
    }

    /// When the last lease of any of the units ends.
    pub fn leased_until(&self, units: &[i64]) -> Result<Option<Millis>> {
        let sql = "SELECT max(leased_until) FROM work_units WHERE id IN (SELECT value FROM json_each(?1))";
        Ok(self.conn.prepare_cached(sql)?.query_row([serde_json::to_string(units)?], |row| row.get(0))?)
    }
}

impl Tx<'_> {
    /// Notes that something of a session was forgotten: a hash of its identity, and no text.
    pub(super) fn never_import(&self, session: i64) -> Result<()> {
        let sql = "SELECT platform, agent_session_id FROM sessions WHERE id = ?1";
        let row = |row: &Row| Ok((row.get(0)?, row.get(1)?));
        let Some((platform, id)) = self.tx.query_row(sql, [session], row).optional()? else { return Ok(()) };
        let (platform, id): (String, String) = (platform, id);
        let sql = "INSERT OR REPLACE INTO meta(key, value) VALUES (?1, 1)";
        Ok(self.tx.execute(sql, [forgotten(&platform, &id)]).map(drop)?)
    }
}

/// The key in `meta` of a session of which something was forgotten.
fn forgotten(platform: &str, session: &str) -> String {
    let hash = Sha256::digest(format!("{platform}\n{session}"));
    format!("forgotten:{}", hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}
