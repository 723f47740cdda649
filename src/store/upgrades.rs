//! Work that remains after an upgrade: texts that older rules redacted, units that older rules distilled.

use super::Store;
use super::create::{ANNOUNCED, REDACTION, mark};
use crate::model::RULES_VERSION;
use crate::redact::REDACTION_VERSION;
use anyhow::Result;
use rusqlite::Connection;

impl Store {
    /// The version of the redaction rules that last checked all texts; 0 for none.
    pub fn redaction_version(&self) -> Result<i64> {
        version(&self.conn, REDACTION)
    }

    /// Records that all texts were checked by the current rules.
    pub fn set_redaction_version(&mut self) -> Result<()> {
        self.write(|tx| mark(&tx.tx, REDACTION, REDACTION_VERSION))
    }

    /// Whether the user has not been offered yet to distil again with the current rules.
    pub fn has_unannounced_rules(&self) -> Result<bool> {
        Ok(version(&self.conn, ANNOUNCED)? < RULES_VERSION)
    }

    /// Records that the user has been offered to distil again.
    pub fn announce_rules(&mut self) -> Result<()> {
        self.write(|tx| mark(&tx.tx, ANNOUNCED, RULES_VERSION))
    }

    /// Number of units that older rules distilled, and of the projects that these units belong to.
    pub fn units_of_older_rules(&self) -> Result<(i64, i64)> {
        let sql = "SELECT count(*), count(DISTINCT s.project_id) FROM work_units u JOIN sessions s ON s.id = u.session_id
                   WHERE u.rules_mark IS NOT NULL AND coalesce(u.rules_version, 0) < ?1";
        Ok(self.conn.query_row(sql, [RULES_VERSION], |row| Ok((row.get(0)?, row.get(1)?)))?)
    }
}

fn version(conn: &Connection, key: &str) -> Result<i64> {
    let sql = "SELECT coalesce((SELECT value FROM meta WHERE key = ?1), 0)";
    Ok(conn.query_row(sql, [key], |row| row.get(0))?)
}
