//! The RAD tables: their schema, rows of memories, and rows that other programs wrote.

use super::{TeamServer, column};
use crate::error::UserError;
use crate::model::{About, MemoryKind, Millis, SharedMemory};
use anyhow::Result;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tokio_postgres::Row;

/// Maximum characters of the values of the specification's columns.
const REPO: usize = 255;
const TITLE: usize = 255;
const KIND: usize = 50;

/// A row of `tasks`, `decisions` or `lessons`.
#[derive(Clone, Debug)]
pub struct RadRow {
    uuid: String,
    kind: MemoryKind,
    repo: String,
    /// `task_kind`, `decision_type` or `lesson_type`.
    of: String,
    title: String,
    text: String,
    list: Vec<String>,
    task: Option<String>,
    confidence: Option<f64>,
    tier: String,
    success: bool,
    error: Option<String>,
    at: Millis,
    metadata: String,
}

impl RadRow {
    /// Returns the row of a memory; `None` if its uuid is invalid, or if it is not a task, decision or lesson.
    pub fn of(uuid: &str, memory: &SharedMemory, repo: &str, person: &str) -> Option<RadRow> {
        if !is_uuid(uuid) {
            return None;
        }
        let text = |names: &[&str]| {
            names.iter().find_map(|name| memory.content.get(*name)?.as_str()).filter(|text| !text.is_empty()).map(plain)
        };
        let list = |name: &str| -> Vec<String> {
            memory
                .content
                .get(name)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(plain)
                .collect()
        };
        let title = plain(&memory.title);
        let of = memory.kind_type.as_deref().map(plain);
        let (of, title, body, list) = match memory.kind {
            MemoryKind::Task => {
                (of.unwrap_or("feature".into()), text(&["task_description"]).unwrap_or(title), String::new(), Vec::new())
            }
            MemoryKind::Decision => {
                let reason = text(&["reasoning", "rationale", "reason"]).or(memory.body.as_deref().map(plain));
                let chosen = text(&["chosen"]).unwrap_or(title);
                (of.unwrap_or("approach".into()), chosen, reason.unwrap_or_default(), list("alternatives"))
            }
            MemoryKind::Lesson => {
                let description = text(&["description"]).or(memory.body.as_deref().map(plain)).unwrap_or(title.clone());
                (of.unwrap_or("warning".into()), cut(&title, TITLE), description, list("tags"))
            }
            _ => return None,
        };
        let mut metadata = match memory.content.get("metadata") {
            Some(Value::Object(fields)) => fields.clone(),
            _ => Map::new(),
        };
        metadata.insert(
            "nmem".into(),
            json!({"repo_id": repo, "by": person, "author": memory.author, "superseded_by": memory.superseded_by}),
        );
        let content = &memory.content;
        Some(RadRow {
            uuid: uuid.to_string(),
            kind: memory.kind,
            repo: cut(&plain(repo), REPO),
            of: cut(&of, KIND),
            title,
            text: body,
            list,
            task: text(&["task"]).filter(|task| is_uuid(task)),
            confidence: content.get("confidence").and_then(Value::as_f64).filter(|value| (0.0..=1.0).contains(value)),
            tier: text(&["agent_tier"]).filter(|tier| tier == "paid").unwrap_or("free".into()),
            success: content.get("success").and_then(Value::as_bool).unwrap_or(true),
            error: text(&["error_message"]),
            at: memory.created_at,
            metadata: without_nul(Value::Object(metadata)).to_string(),
        })
    }
}

/// Whether PostgreSQL accepts an id as a UUID.
pub(super) fn is_uuid(id: &str) -> bool {
    let is_dash = |at: usize| matches!(at, 8 | 13 | 18 | 23);
    id.len() == 36 && id.bytes().enumerate().all(|(at, byte)| if is_dash(at) { byte == b'-' } else { byte.is_ascii_hexdigit() })
}

/// Removes NUL characters, which PostgreSQL cannot store.
fn plain(text: &str) -> String {
    text.replace('\0', "")
}

fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

fn without_nul(value: Value) -> Value {
    match value {
        Value::String(text) => plain(&text).into(),
        Value::Array(items) => items.into_iter().map(without_nul).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (plain(&name), without_nul(value))).collect::<Map<_, _>>().into()
        }
        other => other,
    }
}

const AT: &str = "to_timestamp(at / 1000.0) AT TIME ZONE 'UTC'";
/// Separates the items of a list in one text.
const BETWEEN: &str = "\u{1f}";

impl TeamServer {
    /// Writes rows; existing ones are overwritten.
    pub(super) fn write_rad(&mut self, rows: &[RadRow]) -> Result<()> {
        // Decisions and lessons refer to their tasks.
        for kind in [MemoryKind::Task, MemoryKind::Decision, MemoryKind::Lesson] {
            let rows: Vec<&RadRow> = rows.iter().filter(|row| row.kind == kind).collect();
            if rows.is_empty() {
                continue;
            }
            let texts = |field: fn(&RadRow) -> &str| rows.iter().map(|row| field(row)).collect::<Vec<&str>>();
            let (ids, of, titles) = (texts(|row| &row.uuid), texts(|row| &row.of), texts(|row| &row.title));
            let (bodies, metadata) = (texts(|row| &row.text), texts(|row| &row.metadata));
            let at: Vec<i64> = rows.iter().map(|row| row.at).collect();
            let tasks: Vec<Option<&str>> = rows.iter().map(|row| row.task.as_deref()).collect();
            let lists: Vec<String> = rows.iter().map(|row| row.list.join(BETWEEN)).collect();
            match kind {
                MemoryKind::Task => {
                    let (repos, tiers) = (texts(|row| &row.repo), texts(|row| &row.tier));
                    let success: Vec<bool> = rows.iter().map(|row| row.success).collect();
                    let errors: Vec<Option<&str>> = rows.iter().map(|row| row.error.as_deref()).collect();
                    let sql = format!(
                        "INSERT INTO tasks(id, repo_id, task_description, task_kind, agent_tier, created_at, completed_at, success, error_message, metadata)
                         SELECT id::uuid, repo, title, kind, tier, {AT}, {AT}, success, error, metadata::jsonb
                         FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::boolean[], $8::text[], $9::text[])
                           AS n(id, repo, title, kind, tier, at, success, error, metadata)
                         ON CONFLICT (id) DO UPDATE SET task_description = excluded.task_description, task_kind = excluded.task_kind, agent_tier = excluded.agent_tier,
                           success = excluded.success, error_message = excluded.error_message, metadata = excluded.metadata"
                    );
                    self.execute(&sql, &[&ids, &repos, &titles, &of, &tiers, &at, &success, &errors, &metadata])?;
                }
                MemoryKind::Decision => {
                    let confidence: Vec<Option<f64>> = rows.iter().map(|row| row.confidence).collect();
                    let sql = format!(
                        "INSERT INTO decisions(id, task_id, decision_type, chosen_option, alternatives, reasoning, confidence, created_at, metadata)
                         SELECT id::uuid, (SELECT t.id FROM tasks t WHERE t.id = task::uuid), kind, title, string_to_array(nullif(list, ''), $10), body, confidence, {AT}, metadata::jsonb
                         FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::float8[], $8::bigint[], $9::text[])
                           AS n(id, task, kind, title, list, body, confidence, at, metadata)
                         ON CONFLICT (id) DO UPDATE SET task_id = excluded.task_id, decision_type = excluded.decision_type, chosen_option = excluded.chosen_option,
                           alternatives = excluded.alternatives, reasoning = excluded.reasoning, confidence = excluded.confidence, metadata = excluded.metadata"
                    );
                    self.execute(&sql, &[&ids, &tasks, &of, &titles, &lists, &bodies, &confidence, &at, &metadata, &BETWEEN])?;
                }
                _ => {
                    let sql = format!(
                        "INSERT INTO lessons(id, task_id, lesson_type, title, description, tags, created_at, metadata)
                         SELECT id::uuid, (SELECT t.id FROM tasks t WHERE t.id = task::uuid), kind, title, body, string_to_array(list, $9), {AT}, metadata::jsonb
                         FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[])
                           AS n(id, task, kind, title, body, list, at, metadata)
                         ON CONFLICT (id) DO UPDATE SET task_id = excluded.task_id, lesson_type = excluded.lesson_type, title = excluded.title,
                           description = excluded.description, tags = excluded.tags, metadata = excluded.metadata"
                    );
                    self.execute(&sql, &[&ids, &tasks, &of, &titles, &bodies, &lists, &at, &metadata, &BETWEEN])?;
                }
            }
        }
        Ok(())
    }

    /// Removes the rows of forgotten memories.
    pub(super) fn remove_rad(&mut self, uuids: &[&str]) -> Result<()> {
        let uuids: Vec<&str> = uuids.iter().copied().filter(|id| is_uuid(id)).collect();
        if uuids.is_empty() {
            return Ok(());
        }
        for table in ["decisions", "lessons", "tasks"] {
            let sql = format!(
                "DELETE FROM {table} WHERE id IN (SELECT id::uuid FROM unnest($1::text[]) AS n(id)) AND metadata ? 'nmem'"
            );
            self.execute(&sql, &[&uuids])?;
        }
        Ok(())
    }

    /// Writes the facts about a repository.
    pub fn write_repository(&mut self, repo: &str, name: &str, url: Option<&str>, about: Option<&(About, Millis)>) -> Result<()> {
        let (repo, name) = (cut(&plain(repo), REPO), cut(&plain(name), REPO));
        let kind = about.and_then(|(about, _)| about.project_type.as_deref().map(|kind| cut(kind, 100)));
        let languages = about.map(|(about, _)| about.languages.clone()).unwrap_or_default();
        let frameworks = about.map(|(about, _)| about.frameworks.clone()).unwrap_or_default();
        let at = about.map(|(_, at)| *at);
        let sql = "INSERT INTO repo_metadata(repo_id, repo_name, repo_url, project_type, main_languages, frameworks, last_indexed, metadata)
                   VALUES ($1, $2, $3, $4, $5, $6, to_timestamp($7::bigint / 1000.0) AT TIME ZONE 'UTC', '{\"nmem\": {}}')
                   ON CONFLICT (repo_id) DO UPDATE SET repo_name = excluded.repo_name, repo_url = excluded.repo_url, project_type = excluded.project_type,
                     main_languages = excluded.main_languages, frameworks = excluded.frameworks, last_indexed = excluded.last_indexed
                   WHERE repo_metadata.metadata ? 'nmem'";
        self.execute(sql, &[&repo, &name, &url, &kind, &languages, &frameworks, &at]).map(drop)
    }
}

/// Maximum rows to read from each table.
const ROWS: i64 = 20_000;
/// Maximum characters of each text of a row.
const TEXT: i32 = 60_000;
/// Maximum bytes of the texts of a table's rows together.
const TABLE: i64 = 32 << 20;

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

/// Condition for rows that nmem did not write.
const FOREIGN: &str = "NOT coalesce(metadata, '{}') ? 'nmem'";
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
        // Each write gives a row another place and transaction; its texts, which may be long, are not read.
        let of = |table: &str| {
            format!(
                "(SELECT count(*) || ' ' || coalesce(sum(hashtextextended(t.ctid::text || ' ' || t.xmin::text, 0)), 0) FROM {table} t WHERE {FOREIGN})"
            )
        };
        let sql = format!("SELECT concat_ws(' ', {}, {}, {}) AS state", of("tasks"), of("decisions"), of("lessons"));
        column(&self.query(&sql, &[])?[0], "state")
    }

    /// Reads all rows of other programs, tasks first.
    pub fn foreign_rows(&mut self) -> Result<ForeignRows> {
        let mut found = ForeignRows::default();
        for (table, columns) in [
            (
                "tasks",
                "'task' AS kind, repo_id::text AS repo, task_kind::text AS type, left(task_description, $2) AS title,
                   json_build_object('task_description', left(task_description, $2), 'success', success, 'agent_tier', agent_tier,
                     'error_message', left(error_message, $2), 'metadata', METADATA)::text AS content",
            ),
            (
                "decisions",
                "'decision' AS kind, coalesce((SELECT repo_id FROM tasks k WHERE k.id = task_id)::text, metadata ->> 'repo_id', metadata ->> 'repoId') AS repo,
                   decision_type::text AS type, left(chosen_option, $2) AS title,
                   json_build_object('chosen', left(chosen_option, $2),
                     'alternatives', CASE WHEN octet_length(alternatives::text) <= $2 THEN alternatives[1:500] END, 'reasoning', left(reasoning, $2),
                     'confidence', confidence, 'task', task_id, 'metadata', METADATA)::text AS content",
            ),
            (
                "lessons",
                "'lesson' AS kind, coalesce((SELECT repo_id FROM tasks k WHERE k.id = task_id)::text, metadata ->> 'repo_id', metadata ->> 'repoId') AS repo,
                   lesson_type::text AS type, left(title, $2) AS title,
                   json_build_object('description', left(description, $2), 'tags', CASE WHEN octet_length(tags::text) <= $2 THEN tags[1:500] END,
                     'task', task_id, 'metadata', METADATA)::text AS content",
            ),
        ] {
            let columns = columns.replace("METADATA", "CASE WHEN octet_length(metadata::text) <= $2 THEN nullif(metadata, '{}') END");
            let sql = format!(
                "SELECT * FROM (
                   SELECT r.*, sum(octet_length(content)) OVER (ORDER BY id) AS bytes, count(*) OVER () AS rows FROM (
                     SELECT id::text, {columns}, {MILLIS} AS at FROM {table} WHERE {FOREIGN} ORDER BY id LIMIT $1
                   ) r WHERE octet_length(coalesce(repo, '') || coalesce(type, '')) <= $2
                 ) r WHERE bytes <= $3 ORDER BY id"
            );
            let rows = self.query(&sql, &[&ROWS, &TEXT, &TABLE])?;
            let all: i64 = rows.first().map_or(Ok(0), |row| column(row, "rows"))?;
            found.is_cut |= all == ROWS || (rows.len() as i64) < all;
            for of_table in &rows {
                found.rows.push(row(of_table)?);
            }
        }
        let rows = self.query(
            "SELECT repo_id::text AS id, repo_url AS url FROM repo_metadata WHERE octet_length(repo_id::text || repo_url) <= 4000 LIMIT 10000",
            &[],
        )?;
        for of_table in &rows {
            found.repositories.push((column(of_table, "id")?, column(of_table, "url")?));
        }
        Ok(found)
    }
}

/// The version of nmem's schema that this nmem knows.
const VERSION: i32 = 2;
/// Statements that bring version 1 to version 2.
const SERIES_2: &str = "ALTER TABLE nmem.heads ADD COLUMN IF NOT EXISTS contents text; UPDATE nmem.version SET version = 2";
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
    /// A schema of a later nmem, or a user that may not create or change one.
    pub(super) fn migrate(&mut self) -> Result<()> {
        // One round trip if the schema exists; otherwise the answer is an error.
        if let Ok(Some((version, has_rad))) = self.known_version()
            && version >= VERSION
        {
            self.has_rad = has_rad;
            return refuse_other(version);
        }
        self.transaction(|server| {
            server.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK])?;
            // Another machine may have created it meanwhile.
            if let Some((version, has_rad)) = server.version()? {
                server.has_rad = has_rad;
                return if version == 1 { server.bring_forward() } else { refuse_other(version) };
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

    fn bring_forward(&mut self) -> Result<()> {
        self.batch(SERIES_2).map_err(|error| {
            let what = format!("the team's database needs a change for this nmem, and your role may not make it: {error}");
            UserError::new(what, "let the role that owns the schema nmem run `nmem sync` once").into()
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
