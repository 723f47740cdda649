//! Creates and migrates nmem's schema, and the RAD tables. An advisory lock keeps other machines out meanwhile.

use super::{TeamServer, column};
use crate::error::UserError;
use anyhow::Result;

/// The version of nmem's schema that this nmem knows.
const VERSION: i32 = 1;
const SERIES: &str = include_str!("series.sql");
const RAD: &str = include_str!("rad.sql");
/// "nmem" as a number.
const LOCK: i64 = 0x6e6d_656d;

/// Tables of the RAD memory specification, each with the columns that nmem writes.
const RAD_TABLES: [(&str, &[&str]); 4] = [
    (
        "tasks",
        &[
            "id",
            "repo_id",
            "task_description",
            "task_kind",
            "agent_tier",
            "created_at",
            "completed_at",
            "success",
            "error_message",
            "metadata",
        ],
    ),
    (
        "decisions",
        &["id", "task_id", "decision_type", "chosen_option", "alternatives", "reasoning", "confidence", "created_at", "metadata"],
    ),
    ("lessons", &["id", "task_id", "lesson_type", "title", "description", "tags", "created_at", "metadata"]),
    (
        "repo_metadata",
        &["repo_id", "repo_name", "repo_url", "project_type", "main_languages", "frameworks", "last_indexed", "metadata"],
    ),
];

impl TeamServer {
    /// Brings the schema to this version.
    ///
    /// # Errors
    ///
    /// A schema of a later nmem, or a user that may not create one.
    pub(super) fn migrate(&mut self) -> Result<()> {
        // One round trip if the schema exists; otherwise the answer is an error.
        if let Ok(Some((version, has_rad))) = self.known_version() {
            self.has_rad = has_rad;
            return refuse_other(version);
        }
        self.transaction(|server| {
            server.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK])?;
            // Another machine may have created it meanwhile.
            if let Some((version, has_rad)) = server.version()? {
                server.has_rad = has_rad;
                return refuse_other(version);
            }
            server.batch(SERIES)?;
            server.has_rad = server.may_be_rad()?;
            if server.has_rad {
                server.batch(RAD)?;
            }
            server.execute("INSERT INTO nmem.version(version, has_rad) VALUES ($1, $2)", &[&VERSION, &server.has_rad.clone()])?;
            Ok(())
        })
    }

    fn version(&mut self) -> Result<Option<(i32, bool)>> {
        // A name that does not exist is an error at once, and would abort a transaction.
        let there = self.query("SELECT to_regclass('nmem.version') IS NOT NULL AS there", &[])?;
        if there.first().is_none_or(|row| !row.get::<_, bool>("there")) {
            return Ok(None);
        }
        self.known_version()
    }

    fn known_version(&mut self) -> Result<Option<(i32, bool)>> {
        let rows = self.query("SELECT version, has_rad FROM nmem.version", &[])?;
        rows.first().map(|row| Ok((column(row, "version")?, column(row, "has_rad")?))).transpose()
    }

    /// Whether no table of another program has the name of a RAD table: one that lacks columns is not a RAD table.
    fn may_be_rad(&mut self) -> Result<bool> {
        for (table, columns) in RAD_TABLES {
            let sql = "SELECT attname::text AS name FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped";
            let found = self.query(sql, &[&table])?;
            let found: Vec<String> = found.iter().map(|row| column(row, "name")).collect::<Result<_>>()?;
            if !found.is_empty() && columns.iter().any(|name| !found.iter().any(|found| found == name)) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn refuse_other(version: i32) -> Result<()> {
    if version == VERSION {
        return Ok(());
    }
    let what = format!("the team's database was set up by a newer nmem (schema {version}, this one knows {VERSION})");
    Err(UserError::new(what, "install that version of nmem").into())
}
