//! Memories of claude-mem (<https://github.com/thedotmack/claude-mem>), from its database: the schema of version 13,
//! and older ones, whose columns have other names or are missing.

use super::past::{cut_bytes, stable_uuid};
use crate::model::{Entity, SUBTITLE, TITLE};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// File name of the database.
pub const FILE: &str = "claude-mem.db";
/// Its tables of memories, and the table that holds the agents' sessions.
pub const TABLES: [&str; 2] = ["observations", "session_summaries"];
pub const SESSIONS: &str = "sdk_sessions";
/// Summary fields that nmem also has.
const SECTIONS: [&str; 6] = ["request", "investigated", "learned", "completed", "next_steps", "notes"];
/// Observation types that nmem also has. Modes of claude-mem define others.
const TYPES: [&str; 6] = ["bugfix", "feature", "refactor", "change", "discovery", "decision"];
const OTHER_TYPE: &str = "discovery";
const LIST: usize = 50;

/// A row of the database, by column.
pub type Columns = Map<String, Value>;

fn text(row: &Columns, names: &[&str]) -> Option<String> {
    let found = names.iter().find_map(|name| row.get(*name)?.as_str());
    found.map(str::trim).filter(|text| !text.is_empty()).map(String::from)
}

/// Maps claude-mem's session ids to the agents' session ids.
pub fn sessions(rows: &[Columns]) -> HashMap<String, String> {
    let ids = |row: &Columns| {
        let own = text(row, &["memory_session_id", "sdk_session_id"])?;
        Some((own, text(row, &["content_session_id", "claude_session_id"])?))
    };
    rows.iter().filter_map(ids).collect()
}

/// Returns a row's agent session id and the name of its project's folder. claude-mem names a worktree
/// `project/worktree`.
pub fn place(row: &Columns, sessions: &HashMap<String, String>) -> (Option<String>, Option<String>) {
    let session = text(row, &["memory_session_id", "sdk_session_id"]).and_then(|own| sessions.get(&own).cloned());
    let project = text(row, &["merged_into_project", "project"]);
    (session, project.and_then(|name| Some(name.split('/').next()?.to_string())))
}

/// Converts a row of one of the tables to a memory; `None` if the row has no time or no title.
pub fn memory(table: &str, row: &Columns) -> Option<Entity> {
    let own = text(row, &["memory_session_id", "sdk_session_id"]);
    let at = row.get("created_at_epoch").and_then(Value::as_i64)?;
    // The first versions stored seconds.
    let at = if at < 100_000_000_000 { at.saturating_mul(1000) } else { at };
    let said = text(row, &["narrative", "text"]);
    let is_summary = table == "session_summaries";
    let title =
        if is_summary { text(row, &["request", "completed", "learned"]) } else { text(row, &["title"]).or_else(|| said.clone()) };
    let title = title?.lines().next()?.to_string();
    let mut content = Map::new();
    if is_summary {
        content.extend(SECTIONS.iter().filter_map(|name| Some((name.to_string(), json!(text(row, &[name])?)))));
    } else {
        content.insert("facts".into(), json!(list(row, "facts")));
        let kind = text(row, &["type"]).filter(|kind| TYPES.contains(&kind.as_str()));
        content.insert("type".into(), json!(kind.unwrap_or_else(|| OTHER_TYPE.into())));
        content.extend(said.map(|said| ("narrative".into(), json!(said))));
    }
    let id = row.get("id").map(Value::to_string).unwrap_or_default();
    let key = format!("claude-mem {table} {} {id} {at}", own.as_deref().unwrap_or_default());
    let paths = |name: &str| list(row, name).into_iter().filter(|path| !path.contains("..")).collect::<Vec<_>>();
    let entity = Entity {
        uuid: Some(stable_uuid(&key)),
        entity_type: if is_summary { "summary".into() } else { "observation".into() },
        title: Some(cut_bytes(&title, TITLE.0)),
        subtitle: text(row, &["subtitle"]).map(|text| cut_bytes(&text, SUBTITLE.0)),
        content,
        concepts: list(row, "concepts"),
        files_read: paths("files_read"),
        files_modified: [paths("files_modified"), paths("files_edited")].concat(),
        tokens: row.get("discovery_tokens").and_then(Value::as_i64).filter(|tokens| *tokens > 0),
        at,
    };
    Some(entity)
}

/// Parses a column that holds a list, as JSON or as lines.
fn list(row: &Columns, name: &str) -> Vec<String> {
    let Some(all) = text(row, &[name]) else { return Vec::new() };
    let items = serde_json::from_str::<Vec<String>>(&all).unwrap_or_else(|_| all.lines().map(String::from).collect());
    let clean = |item: String| item.split_whitespace().collect::<Vec<_>>().join(" ");
    items.into_iter().map(clean).filter(|item| !item.is_empty() && item.len() < 500).take(LIST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(value: Value) -> Columns {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn rows_of_all_versions_become_memories() {
        let known = sessions(&[
            row(json!({"sdk_session_id": "old", "claude_session_id": "c1"})),
            row(json!({"memory_session_id": "new", "content_session_id": "c2"})),
        ]);
        let new = json!({"id": 4, "memory_session_id": "new", "project": "shop/branch-a", "type": "bugfix", "title": "Fix totals",
            "narrative": "Rounded per line.", "facts": "[\"tax is per line\"]", "files_modified": "[\"src/cart.rs\", \"../x\"]",
            "created_at_epoch": 1_795_165_200_000_i64, "discovery_tokens": 900});
        let memory_of = |table: &str, value: &Value| memory(table, &row(value.clone()));
        assert_eq!(place(&row(new.clone()), &known), (Some("c2".to_string()), Some("shop".to_string())));
        let new = memory_of("observations", &new).unwrap();
        assert_eq!(new.files_modified, ["src/cart.rs"]);
        assert_eq!(new.content["facts"], json!(["tax is per line"]));
        let old = json!({"id": 1, "sdk_session_id": "old", "project": "shop", "type": "change", "text": "Moved the cart\nto src.",
            "created_at_epoch": 1_758_000_000});
        let old = memory_of("observations", &old).unwrap();
        assert_eq!((old.title.as_deref(), old.at), (Some("Moved the cart"), 1_758_000_000_000));
        let alert =
            json!({"id": 2, "type": "security_alert", "title": "Keys in the log", "created_at_epoch": 1_795_165_200_000_i64});
        assert_eq!(memory_of("observations", &alert).unwrap().content["type"], "discovery");
        let summary = json!({"id": 1, "memory_session_id": "new", "request": "Show tax", "next_steps": "Round it", "created_at_epoch": 1_795_165_200_000_i64});
        let summary = memory_of("session_summaries", &summary).unwrap();
        assert_eq!((summary.entity_type.as_str(), &summary.content["next_steps"]), ("summary", &json!("Round it")));
        assert!(memory_of("observations", &json!({"id": 1, "created_at_epoch": 1})).is_none());
    }
}
