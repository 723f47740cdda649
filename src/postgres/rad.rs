//! Fills the tables of the RAD memory specification, for other programs to read. nmem's rows have `nmem` in their
//! metadata.

use super::TeamServer;
use crate::model::{About, MemoryKind, Millis, SharedMemory};
use anyhow::Result;
use serde_json::{Map, Value, json};

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
