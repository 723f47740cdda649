//! Restores an export, under new ids.

use super::Tx;
use super::export_rows::{is_by_person_or_program, number, renamed, shifted, text, texts, unhex, wrong};
use super::memory_rows::concepts;
use crate::error::UserError;
use crate::model::{Row, Table, Vector};
use crate::redact::Clean;
use anyhow::{Context, Result};
use rusqlite::types::Value as Sql;
use rusqlite::{OptionalExtension, params, params_from_iter};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The result of a restore: rows written, and rows that already existed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    pub written: BTreeMap<Table, usize>,
    pub sessions_here: usize,
    pub memories_here: usize,
}

/// Location of an exported session in this store.
#[derive(Clone, Copy)]
enum RestorePosition {
    New(i64),
    Here(i64),
}

/// A restore in progress.
pub struct Restoring<'a> {
    tx: &'a Tx<'a>,
    /// Offsets added to row ids.
    offsets: HashMap<Table, i64>,
    columns: HashMap<Table, HashSet<String>>,
    domains: HashMap<i64, i64>,
    projects: HashMap<i64, i64>,
    sessions: HashMap<i64, RestorePosition>,
    /// Memories with the uuid of the one that supersedes them.
    superseded: Vec<(i64, String)>,
    done: Restored,
}

impl<'a> Restoring<'a> {
    pub fn begin(tx: &'a Tx<'a>) -> Result<Restoring<'a>> {
        let (mut offsets, mut columns) = (HashMap::new(), HashMap::new());
        for table in Table::ALL {
            let name = table.name();
            let mut info = tx.tx.prepare(&format!("SELECT name FROM pragma_table_info('{name}')"))?;
            let mut names: HashSet<String> = info.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
            // Boundaries are rows of their own in an export.
            names.remove("boundary");
            if names.contains("id") {
                // Ids are never reused in tables with AUTOINCREMENT.
                let sql = format!(
                    "SELECT max((SELECT coalesce(max(id), 0) FROM {name}), coalesce((SELECT seq FROM sqlite_sequence WHERE name = '{name}'), 0))"
                );
                offsets.insert(table, tx.tx.query_row(&sql, [], |row| row.get(0))?);
            }
            columns.insert(table, names);
        }
        let (domains, projects, sessions) = Default::default();
        Ok(Restoring { tx, offsets, columns, domains, projects, sessions, superseded: Vec::new(), done: Restored::default() })
    }

    /// Writes a row unless it already exists.
    ///
    /// # Errors
    ///
    /// Returns a [`UserError`] that states the problem with the row.
    pub fn take(&mut self, row: &Clean<Row>) -> Result<()> {
        let values = row.values.clone();
        match row.table {
            Table::Domains => self.domain(values),
            Table::Projects => self.project(values),
            Table::Sessions => self.session(values),
            Table::Memories => self.memory(values),
            Table::Boundaries => self.boundary(&values),
            table => self.event(table, values),
        }
    }

    /// Resolves forward references and indexes all new rows.
    pub fn finish(self) -> Result<Restored> {
        let mut named =
            self.tx.tx.prepare("UPDATE memories SET superseded_by = (SELECT id FROM memories WHERE uuid = ?2) WHERE id = ?1")?;
        self.superseded.iter().try_for_each(|(id, uuid)| named.execute(params![id, uuid]).map(drop))?;
        let from = |table: Table| self.offsets[&table];
        self.tx.index_behind([from(Table::Prompts), from(Table::Memories), from(Table::ToolUses), from(Table::WorkUnits)])?;
        Ok(self.done)
    }

    fn domain(&mut self, mut values: Map<String, Value>) -> Result<()> {
        let id = number(&values, "id")?;
        let sql = "SELECT id FROM domains WHERE name IS ?1 AND config IS ?2 ORDER BY id LIMIT 1";
        let same = params![text(&values, "name"), text(&values, "config")];
        let known: Option<i64> = self.tx.tx.prepare_cached(sql)?.query_row(same, |row| row.get(0)).optional()?;
        let here = match known {
            Some(here) => here,
            None => {
                self.shift(Table::Domains, &mut values, "id")?;
                self.insert(Table::Domains, &values)?;
                number(&values, "id")?
            }
        };
        self.domains.insert(id, here);
        Ok(())
    }

    fn project(&mut self, mut values: Map<String, Value>) -> Result<()> {
        let id = number(&values, "id")?;
        let keys = values.remove("keys").unwrap_or_default();
        // Sharing is not restored: the user chooses again what to share from this machine.
        values.remove("share");
        let keys: Vec<&str> = keys.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut known = self.tx.tx.prepare_cached("SELECT project_id FROM project_keys WHERE key = ?1")?;
        let mut here = None;
        for key in &keys {
            here = here.or(known.query_row([key], |row| row.get::<_, i64>(0)).optional()?);
        }
        let here = match here {
            Some(here) => here,
            None => {
                self.shift(Table::Projects, &mut values, "id")?;
                self.through(&mut values, "domain_id", |here, id| here.domains.get(&id).copied())?;
                self.insert(Table::Projects, &values)?;
                number(&values, "id")?
            }
        };
        let mut note =
            self.tx.tx.prepare_cached("INSERT INTO project_keys(key, project_id) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?;
        keys.iter().try_for_each(|key| note.execute(params![key, here]).map(drop))?;
        self.projects.insert(id, here);
        Ok(())
    }

    fn session(&mut self, mut values: Map<String, Value>) -> Result<()> {
        let id = number(&values, "id")?;
        let sql = "SELECT id FROM sessions WHERE agent_session_id IS ?1 AND platform IS ?2";
        let same = params![text(&values, "agent_session_id"), text(&values, "platform")];
        let known: Option<i64> = self.tx.tx.prepare_cached(sql)?.query_row(same, |row| row.get(0)).optional()?;
        let place = match known {
            Some(here) => {
                self.done.sessions_here += 1;
                RestorePosition::Here(here)
            }
            None => {
                self.shift(Table::Sessions, &mut values, "id")?;
                self.shift(Table::Prompts, &mut values, "last_prompt_id")?;
                self.through(&mut values, "project_id", |here, id| here.projects.get(&id).copied())?;
                self.through(&mut values, "domain_id", |here, id| here.domains.get(&id).copied())?;
                self.insert(Table::Sessions, &values)?;
                RestorePosition::New(number(&values, "id")?)
            }
        };
        self.sessions.insert(id, place);
        Ok(())
    }

    /// Writes a row that belongs to a session; skips it if the session already exists.
    fn event(&mut self, table: Table, mut values: Map<String, Value>) -> Result<()> {
        if values.contains_key("session_id") {
            match self.place(&values)? {
                Some(RestorePosition::New(here)) => drop(values.insert("session_id".into(), here.into())),
                _ => return Ok(()),
            }
        }
        for (of, name) in
            [(table, "id"), (Table::Prompts, "prompt_id"), (Table::WorkUnits, "work_unit_id"), (Table::Steps, "step_id")]
        {
            self.shift(of, &mut values, name)?;
        }
        // Without the other project, the row belongs to its session's.
        if let Some(project) = values.get_mut("project_id") {
            *project = project.as_i64().and_then(|id| self.projects.get(&id).copied()).into();
        }
        for name in ["rule_key", "item"] {
            self.rename(&mut values, name)?;
        }
        if let Some(mark) = text(&values, "rules_mark") {
            values.insert("rules_mark".into(), self.marked(&mark).into());
        }
        if table == Table::Spend && !self.is_new_spend(&values)? {
            return Ok(());
        }
        let files = values.remove("files").unwrap_or_default();
        self.insert(table, &values)?;
        let mut put = self.tx.tx.prepare_cached("INSERT INTO step_files(step_id, path, reads, edits) VALUES (?1, ?2, ?3, ?4)")?;
        for file in files.as_array().into_iter().flatten() {
            put.execute(params![number(&values, "id")?, file["path"].as_str(), file["reads"].as_i64(), file["edits"].as_i64()])?;
        }
        Ok(())
    }

    /// Shifts the prompt id in a unit's rule marker: number of steps, last tool use, last prompt id.
    fn marked(&self, mark: &str) -> String {
        let (seen, prompt) = mark.rsplit_once(' ').unwrap_or((mark, ""));
        match prompt.parse::<i64>() {
            Ok(id) if id > 0 => format!("{seen} {}", id + self.offsets[&Table::Prompts]),
            _ => mark.to_string(),
        }
    }

    /// Whether a model call is not recorded yet. Costs are kept even if their unit was forgotten.
    fn is_new_spend(&self, values: &Map<String, Value>) -> Result<bool> {
        let sql = "SELECT 1 FROM spend WHERE at = ?1 AND provider = ?2 AND purpose = ?3";
        let same = params![number(values, "at")?, text(values, "provider"), text(values, "purpose")];
        Ok(!self.tx.tx.prepare_cached(sql)?.exists(same)?)
    }

    fn memory(&mut self, entity: Map<String, Value>) -> Result<()> {
        let uuid = text(&entity, "id").context("an entity without an id")?;
        if self.tx.tx.prepare_cached("SELECT 1 FROM memories WHERE uuid = ?1")?.exists([&uuid])? {
            self.done.memories_here += 1;
            return Ok(());
        }
        let Some(Value::Object(mut values)) = entity.get("row").cloned() else {
            return Err(UserError::new(
                "an entity without `row`",
                "`nmem rad entities --batch` records entities of other programs",
            )
            .into());
        };
        let (hashes, vector, superseded) = (values.remove("hashes"), values.remove("vector"), values.remove("superseded_by"));
        if values.remove("private").is_some_and(|private| private.as_i64() == Some(1)) {
            self.tx.keep_private(&uuid)?;
        }
        for (name, from) in [
            ("uuid", "id"),
            ("platform", "source_client"),
            ("created_at", "created_at_epoch"),
            ("title", "title"),
            ("subtitle", "subtitle"),
            ("discovery_tokens", "discovery_tokens"),
        ] {
            values.insert(name.into(), entity.get(from).cloned().unwrap_or_default());
        }
        for (name, from) in [("content", entity.get("content").cloned()), ("sources", values.get("sources").cloned())] {
            values.insert(name.into(), from.unwrap_or_default().to_string().into());
        }
        values.insert("concepts".into(), concepts(texts(&entity, "concepts")).into());
        self.shift(Table::Memories, &mut values, "id")?;
        self.through(&mut values, "project_id", |here, id| here.projects.get(&id).copied())?;
        match self.place(&values)? {
            Some(RestorePosition::New(here)) => {
                values.insert("session_id".into(), here.into());
                self.shift(Table::WorkUnits, &mut values, "work_unit_id")?;
                self.rename(&mut values, "rule_key")?;
                self.rename(&mut values, "sources")?;
            }
            // Rules and models have already distilled an existing session here.
            Some(RestorePosition::Here(_)) if !is_by_person_or_program(&values) => {
                self.done.memories_here += 1;
                return Ok(());
            }
            // The sources of such a memory have other ids here.
            Some(RestorePosition::Here(here)) => {
                values.insert("session_id".into(), here.into());
                values.insert("sources".into(), "[]".into());
                ["work_unit_id", "rule_key"].iter().for_each(|name| drop(values.remove(*name)));
            }
            None => {}
        }
        self.insert(Table::Memories, &values)?;
        let id = number(&values, "id")?;
        for (name, modified) in [("files_read", false), ("files_modified", true)] {
            let mut put =
                self.tx.tx.prepare_cached("INSERT INTO memory_files(memory_id, path, modified, hash) VALUES (?1, ?2, ?3, ?4)")?;
            for path in texts(&entity, name) {
                let hash = hashes.as_ref().and_then(|hashes| hashes.get(path)?.as_str());
                put.execute(params![id, path, modified, hash])?;
            }
        }
        self.superseded.extend(superseded.and_then(|by| Some((id, by.as_str()?.to_string()))));
        if let (Some(project), Some(vector)) = (values.get("project_id").and_then(Value::as_i64), vector.filter(Value::is_object))
        {
            self.vector(project, id, &vector)?;
        }
        Ok(())
    }

    fn vector(&self, project: i64, memory: i64, values: &Value) -> Result<()> {
        let bytes = values["hex"].as_str().and_then(unhex).filter(|bytes| bytes.len() > 4);
        let (Some(bytes), Some(model)) = (bytes, values["model"].as_str()) else { return wrong("`vector`") };
        let (scale, numbers) = bytes.split_at(4);
        let numbers = numbers.iter().map(|byte| *byte as i8).collect();
        let vector = Vector { scale: f32::from_le_bytes(scale.try_into()?), numbers };
        self.tx.pack(project, model, &[(memory, &vector)])
    }

    fn place(&self, values: &Map<String, Value>) -> Result<Option<RestorePosition>> {
        let Some(id) = values.get("session_id").filter(|id| !id.is_null()) else { return Ok(None) };
        let known = id.as_i64().and_then(|id| self.sessions.get(&id)).copied();
        known
            .map(Some)
            .ok_or_else(|| UserError::new(format!("session {id} is missing before it"), "the file is truncated").into())
    }

    /// Writes a boundary into its step, unless the step belongs to a session that already exists.
    fn boundary(&mut self, values: &Map<String, Value>) -> Result<()> {
        let step = number(values, "step_id")? + self.offsets[&Table::Steps];
        let json = |name: &str| match text(values, name) {
            Some(text) => serde_json::from_str::<Value>(&text).or_else(|_| wrong(&format!("`{name}`"))),
            None => Ok(Value::Null),
        };
        let mut boundary = Map::from_iter([("signals".into(), json("signals")?), ("history".into(), json("history")?)]);
        for name in ["reason", "score", "at_prompt", "active"] {
            boundary.insert(name.into(), values.get(name).cloned().unwrap_or_default());
        }
        let sql = "UPDATE steps SET boundary = ?2 WHERE id = ?1";
        let written = self.tx.tx.prepare_cached(sql)?.execute(params![step, Value::Object(boundary).to_string()])?;
        *self.done.written.entry(Table::Boundaries).or_default() += written;
        Ok(())
    }

    /// Shifts an id.
    fn shift(&self, of: Table, values: &mut Map<String, Value>, name: &str) -> Result<()> {
        let Some(value) = values.get_mut(name).filter(|value| !value.is_null()) else { return Ok(()) };
        // Tables without ids of their own refer to rows by name.
        let Some(offset) = self.offsets.get(&of) else { return Ok(()) };
        *value = Value::from(shifted(value, *offset).map_or_else(|| wrong(&format!("`{name}`")), Ok)?);
        Ok(())
    }

    /// Maps an id through a table of known ids.
    fn through(&self, values: &mut Map<String, Value>, name: &str, to: impl Fn(&Restoring, i64) -> Option<i64>) -> Result<()> {
        let Some(value) = values.get_mut(name).filter(|value| !value.is_null()) else { return Ok(()) };
        let id = value.as_i64().and_then(|id| to(self, id));
        *value = id.map_or_else(|| wrong(&format!("`{name}`")), |id| Ok(Value::from(id)))?;
        Ok(())
    }

    /// Shifts ids inside a text: `commit:t12`, `["t12", "p3"]`, `m7`.
    fn rename(&self, values: &mut Map<String, Value>, name: &str) -> Result<()> {
        let Some(text) = text(values, name) else { return Ok(()) };
        values.insert(name.into(), renamed(&text, &self.offsets).into());
        Ok(())
    }

    fn insert(&mut self, table: Table, values: &Map<String, Value>) -> Result<()> {
        let known = &self.columns[&table];
        if let Some(name) = values.keys().find(|name| !known.contains(*name)) {
            return wrong(&format!("`{name}`"));
        }
        let names: Vec<&str> = values.keys().map(String::as_str).collect();
        let marks = vec!["?"; names.len()].join(", ");
        let sql = format!("INSERT INTO {}({}) VALUES ({marks})", table.name(), names.join(", "));
        let as_sql = |name: &str, value: &Value| match (name, value) {
            ("features", Value::String(hex)) => unhex(hex).map(Sql::Blob),
            (_, Value::Null) => Some(Sql::Null),
            (_, Value::String(text)) => Some(Sql::Text(text.clone())),
            (_, Value::Bool(is)) => Some(Sql::Integer(i64::from(*is))),
            (_, Value::Number(number)) => number.as_i64().map(Sql::Integer).or(number.as_f64().map(Sql::Real)),
            _ => None,
        };
        let row: Option<Vec<Sql>> = values.iter().map(|(name, value)| as_sql(name, value)).collect();
        let Some(row) = row else { return wrong("a value") };
        self.tx.tx.prepare_cached(&sql)?.execute(params_from_iter(row))?;
        *self.done.written.entry(table).or_default() += 1;
        Ok(())
    }
}
