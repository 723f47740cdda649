//! Reads what other programs wrote into the RAD tables: rows without `nmem` in their metadata.

use super::{TeamServer, column};
use crate::model::{MemoryKind, Millis};
use anyhow::Result;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tokio_postgres::Row;

/// Maximum rows to read from each table.
const ROWS: i64 = 20_000;
/// Maximum characters of a row's text.
const TEXT: i32 = 60_000;

/// A row of another program.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignRow {
    pub uuid: String,
    pub kind: MemoryKind,
    /// The repository, as the program named it; `None` for a decision or lesson without a task.
    pub repo: Option<String>,
    pub kind_type: String,
    pub title: String,
    pub content: Map<String, Value>,
    pub created_at: Millis,
    /// Digest of all values that were read.
    pub digest: String,
}

/// All rows of other programs, and the URLs of repositories by their id.
#[derive(Clone, Debug, Default)]
pub struct ForeignRows {
    pub rows: Vec<ForeignRow>,
    pub repositories: Vec<(String, String)>,
    /// True if there are more rows than were read.
    pub is_cut: bool,
}

const ALL: &str = "WITH foreign_tasks AS (SELECT * FROM tasks WHERE NOT coalesce(metadata, '{}') ? 'nmem'),
    foreign_decisions AS (SELECT * FROM decisions WHERE NOT coalesce(metadata, '{}') ? 'nmem'),
    foreign_lessons AS (SELECT * FROM lessons WHERE NOT coalesce(metadata, '{}') ? 'nmem')";
const MILLIS: &str = "coalesce((extract(epoch FROM created_at AT TIME ZONE 'UTC') * 1000)::bigint, 0)";

fn row(row: &Row) -> Result<ForeignRow> {
    let kind: String = column(row, "kind")?;
    let content: String = column(row, "content")?;
    let mut row = ForeignRow {
        uuid: column(row, "id")?,
        kind: MemoryKind::from(kind.as_str()),
        repo: column(row, "repo")?,
        kind_type: column(row, "type")?,
        title: column(row, "title")?,
        content: serde_json::from_str(&content).unwrap_or_default(),
        created_at: column(row, "at")?,
        digest: String::new(),
    };
    row.content.retain(|_, value| !value.is_null());
    let all = json!([row.repo, row.kind_type, row.title, row.content, row.created_at]).to_string();
    row.digest = Sha256::digest(all)[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(row)
}

impl TeamServer {
    /// A short text that changes when other programs have written.
    pub fn foreign_state(&mut self) -> Result<String> {
        let of = |table: &str| {
            format!("(SELECT count(*) || ' ' || coalesce(sum(hashtextextended(t::text, 0)), 0) FROM foreign_{table} t)")
        };
        let sql = format!("{ALL} SELECT concat_ws(' ', {}, {}, {}) AS state", of("tasks"), of("decisions"), of("lessons"));
        column(&self.query(&sql, &[])?[0], "state")
    }

    /// Reads all rows of other programs, tasks first.
    pub fn foreign_rows(&mut self) -> Result<ForeignRows> {
        let mut found = ForeignRows::default();
        for (table, sql) in [
            (
                "tasks",
                "SELECT id::text, 'task' AS kind, repo_id::text AS repo, task_kind::text AS type, left(task_description, $2) AS title,
                   json_build_object('task_description', left(task_description, $2), 'success', success, 'agent_tier', agent_tier,
                     'error_message', left(error_message, $2), 'metadata', nullif(metadata, '{}'))::text AS content",
            ),
            (
                "decisions",
                "SELECT id::text, 'decision' AS kind, coalesce((SELECT repo_id FROM tasks k WHERE k.id = task_id)::text, metadata ->> 'repo_id', metadata ->> 'repoId') AS repo,
                   decision_type::text AS type, left(chosen_option, $2) AS title,
                   json_build_object('chosen', left(chosen_option, $2), 'alternatives', alternatives, 'reasoning', left(reasoning, $2),
                     'confidence', confidence, 'task', task_id, 'metadata', nullif(metadata, '{}'))::text AS content",
            ),
            (
                "lessons",
                "SELECT id::text, 'lesson' AS kind, coalesce((SELECT repo_id FROM tasks k WHERE k.id = task_id)::text, metadata ->> 'repo_id', metadata ->> 'repoId') AS repo,
                   lesson_type::text AS type, title::text,
                   json_build_object('description', left(description, $2), 'tags', tags, 'task', task_id, 'metadata', nullif(metadata, '{}'))::text AS content",
            ),
        ] {
            let sql = format!("{ALL} {sql}, {MILLIS} AS at FROM foreign_{table} ORDER BY id LIMIT $1");
            let rows = self.query(&sql, &[&ROWS, &TEXT])?;
            found.is_cut |= rows.len() as i64 == ROWS;
            for of_table in &rows {
                found.rows.push(row(of_table)?);
            }
        }
        let rows = self.query(
            "SELECT repo_id::text AS id, repo_url AS url FROM repo_metadata WHERE repo_url IS NOT NULL LIMIT 10000",
            &[],
        )?;
        for of_table in &rows {
            found.repositories.push((column(of_table, "id")?, column(of_table, "url")?));
        }
        Ok(found)
    }
}
