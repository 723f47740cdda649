//! Rows of an export, with their fields and references.

use super::Store;
use crate::error::UserError;
use crate::model::{Maker, Row, Table};
use crate::render::time::iso;
use anyhow::Result;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, ToSql, params};
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;

/// Upper bound of plausible ids.
const MOST: i64 = 1 << 52;

/// Returns an error that names the invalid part.
pub(super) fn wrong<T>(what: &str) -> Result<T> {
    Err(UserError::new(format!("{what} is invalid"), "nothing was restored").into())
}

/// Returns an id shifted past the existing ones; `None` if it is invalid.
pub(super) fn shifted(id: &Value, offset: i64) -> Option<i64> {
    id.as_i64().filter(|id| (1..MOST).contains(id)).map(|id| id + offset)
}

/// A required number.
pub(super) fn number(values: &Map<String, Value>, name: &str) -> Result<i64> {
    let number = values.get(name).and_then(Value::as_i64).filter(|number| *number > 0);
    number.map_or_else(|| wrong(&format!("`{name}`")), Ok)
}

/// A text field.
pub(super) fn text(values: &Map<String, Value>, name: &str) -> Option<String> {
    values.get(name).and_then(Value::as_str).map(String::from)
}

/// The texts of a list.
pub(super) fn texts<'v>(values: &'v Map<String, Value>, name: &str) -> impl Iterator<Item = &'v str> {
    values.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Whether a person or program added the memory, or a person has changed it.
pub(super) fn is_by_person_or_program(row: &Map<String, Value>) -> bool {
    let is = |name: &str| row.get(name).is_some_and(|value| value.as_i64() == Some(1));
    let made_by = text(row, "made_by").map(Maker::from);
    matches!(made_by, Some(Maker::Hand | Maker::Program)) || is("by_hand") || is("pinned")
}

/// Decodes hex.
pub(super) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
    digits.filter(|digits| digits.len() % 2 == 0).map(|digits| digits.chunks_exact(2).map(|two| two[0] * 16 + two[1]).collect())
}

/// Replaces short ids (a letter and a number) in a text with their new ids.
pub(super) fn renamed(text: &str, offsets: &HashMap<Table, i64>) -> String {
    let table = |letter: char| match letter {
        't' => Some(Table::ToolUses),
        'p' => Some(Table::Prompts),
        'u' => Some(Table::WorkUnits),
        'm' => Some(Table::Memories),
        _ => None,
    };
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut inside_word = false;
    while let Some(letter) = rest.chars().next() {
        let digits =
            rest[letter.len_utf8()..].len() - rest[letter.len_utf8()..].trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let end = letter.len_utf8() + digits;
        let id = rest[letter.len_utf8()..end].parse::<i64>().ok();
        match (table(letter).filter(|_| !inside_word), id) {
            (Some(table), Some(id)) => out += &format!("{letter}{}", id + offsets.get(&table).copied().unwrap_or(0)),
            _ => out.push_str(&rest[..end]),
        }
        inside_word = letter.is_alphanumeric();
        rest = &rest[end..];
    }
    out
}

const OF_PROJECT: &str = "session_id IN (SELECT id FROM sessions WHERE ?1 IS NULL OR project_id = ?1)";

impl Store {
    /// Passes every row to `take`, from one snapshot.
    pub fn each_row(&self, project: Option<i64>, take: &mut dyn FnMut(Row) -> Result<()>) -> Result<()> {
        // A read transaction, so hooks can keep writing.
        let snapshot = self.conn.unchecked_transaction()?;
        for table in Table::ALL {
            match table {
                Table::Memories => memories(&snapshot, project, take)?,
                _ => rows(&snapshot, table, project, take)?,
            }
        }
        Ok(())
    }
}

fn rows(conn: &Connection, table: Table, project: Option<i64>, take: &mut dyn FnMut(Row) -> Result<()>) -> Result<()> {
    let name = table.name();
    let sql = match table {
        Table::Domains => "SELECT * FROM domains WHERE ?1 IS NULL OR id IN (SELECT domain_id FROM projects WHERE id = ?1
            UNION SELECT domain_id FROM sessions WHERE project_id = ?1) ORDER BY id"
            .to_string(),
        Table::Projects => "SELECT * FROM projects WHERE ?1 IS NULL OR id = ?1 ORDER BY id".to_string(),
        Table::Sessions => "SELECT * FROM sessions WHERE ?1 IS NULL OR project_id = ?1 ORDER BY id".to_string(),
        Table::Boundaries => {
            format!(
                "SELECT id AS step_id, boundary ->> '$.reason' AS reason, boundary ->> '$.score' AS score,
                   nullif(boundary -> '$.signals', 'null') AS signals, boundary ->> '$.at_prompt' AS at_prompt,
                   boundary ->> '$.active' AS active, boundary -> '$.history' AS history
                 FROM steps WHERE boundary IS NOT NULL AND {OF_PROJECT} ORDER BY id"
            )
        }
        Table::Spend => "SELECT * FROM spend WHERE ?1 IS NULL OR work_unit_id IN (SELECT u.id FROM work_units u
            JOIN sessions s ON s.id = u.session_id WHERE s.project_id = ?1) ORDER BY id"
            .to_string(),
        Table::Injections => format!("SELECT * FROM injections WHERE {OF_PROJECT} ORDER BY session_id, item, point"),
        Table::Dismissed => format!("SELECT * FROM dismissed WHERE {OF_PROJECT} ORDER BY session_id, rule_key"),
        _ => format!("SELECT * FROM {name} WHERE {OF_PROJECT} ORDER BY id"),
    };
    let mut statement = conn.prepare(&sql)?;
    // Generated columns are not listed and not exported. A step's boundary is a row of its own.
    let mut own = conn.prepare(&format!("SELECT name FROM pragma_table_info('{name}') WHERE name <> 'boundary'"))?;
    let own: HashSet<String> = own.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let is_exported = |column: &String| table == Table::Boundaries || own.contains(column);
    let columns: Vec<(usize, String)> =
        statement.column_names().map(String::from).enumerate().filter(|(_, column)| is_exported(column)).collect();
    let mut found = statement.query([project])?;
    while let Some(row) = found.next()? {
        let mut values = Map::new();
        for (at, column) in &columns {
            values.extend(value(row.get_ref(*at)?)?.map(|value| (column.clone(), value)));
        }
        let id = values.get("id").and_then(Value::as_i64);
        match table {
            Table::Projects => drop(values.insert("keys".into(), keys(conn, id)?)),
            Table::Steps => drop(values.insert("files".into(), files_of_step(conn, id)?)),
            _ => {}
        }
        take(Row { table, values })?;
    }
    Ok(())
}

/// Converts an SQL value; `None` for NULL.
fn value(value: ValueRef) -> Result<Option<Value>> {
    Ok(match value {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(Value::from(number)),
        ValueRef::Real(number) => Some(Value::from(number)),
        ValueRef::Text(text) => Some(Value::from(String::from_utf8_lossy(text))),
        ValueRef::Blob(bytes) => Some(Value::from(hex(bytes))),
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

fn list(conn: &Connection, sql: &str, values: &[&dyn ToSql]) -> Result<Value> {
    let texts = conn.prepare_cached(sql)?.query_map(values, |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
    Ok(Value::from(texts))
}

fn keys(conn: &Connection, project: Option<i64>) -> Result<Value> {
    list(conn, "SELECT key FROM project_keys WHERE project_id = ?1 ORDER BY key", &[&project])
}

fn files_of_step(conn: &Connection, step: Option<i64>) -> Result<Value> {
    let sql = "SELECT path, reads, edits FROM step_files WHERE step_id = ?1 ORDER BY path";
    let row = |row: &rusqlite::Row| {
        Ok(json!({"path": row.get::<_, String>(0)?, "reads": row.get::<_, i64>(1)?, "edits": row.get::<_, i64>(2)?}))
    };
    Ok(conn.prepare_cached(sql)?.query_map([step], row)?.collect::<Result<Vec<Value>, _>>()?.into())
}

/// Passes memories to `take` as entities. In a project's export, a memory that belongs to another project's session
/// loses that reference, since the session is not in the file.
fn memories(conn: &Connection, project: Option<i64>, take: &mut dyn FnMut(Row) -> Result<()>) -> Result<()> {
    let sql = "SELECT m.id, m.uuid, m.kind, m.type, m.title, m.subtitle, m.body, m.content, m.project_id,
                 CASE WHEN ?1 IS NULL OR s.project_id = ?1 THEN m.session_id END, CASE WHEN ?1 IS NULL OR s.project_id = ?1 THEN m.work_unit_id END,
                 m.prompt_number, m.sources, m.platform, m.provenance, m.made_by, m.rule_key, m.discovery_tokens, m.tokens_estimated,
                 m.created_at, m.pinned, m.by_hand, (SELECT uuid FROM memories WHERE id = m.superseded_by),
                 CASE WHEN ?1 IS NULL OR s.project_id = ?1 THEN s.agent_session_id END, m.vector_block,
                 EXISTS (SELECT 1 FROM shared WHERE uuid = m.uuid AND private), m.concepts
               FROM memories m LEFT JOIN sessions s ON s.id = m.session_id WHERE ?1 IS NULL OR m.project_id = ?1 ORDER BY m.id";
    let mut statement = conn.prepare(sql)?;
    let mut found = statement.query([project])?;
    let mut vectors = Vectors::default();
    while let Some(row) = found.next()? {
        let get = |at: usize| -> Result<Value> { Ok(value(row.get_ref(at)?)?.unwrap_or(Value::Null)) };
        let id: i64 = row.get(0)?;
        let text = |at: usize| -> Result<Option<String>> { Ok(row.get(at)?) };
        let kind = text(2)?.unwrap_or_default();
        let entity_type = text(3)?.filter(|_| kind == "entity").unwrap_or_else(|| kind.clone());
        let (read, _) = files(conn, id, false)?;
        let (modified, hashes) = files(conn, id, true)?;
        let concepts = text(26)?.map_or_else(|| json!([]), |json| from_json(Some(json)));
        let at: i64 = row.get(19)?;
        let vector = match row.get::<_, Option<i64>>(24)? {
            Some(block) => vectors.of(conn, block, id)?,
            None => Value::Null,
        };
        let own = json!({
            "id": id, "kind": kind, "type": get(3)?, "body": get(6)?, "project_id": get(8)?, "session_id": get(9)?, "work_unit_id": get(10)?,
            "prompt_number": get(11)?, "sources": from_json(text(12)?), "provenance": get(14)?, "made_by": get(15)?, "rule_key": get(16)?,
            "tokens_estimated": get(18)?, "pinned": get(20)?, "by_hand": get(21)?, "superseded_by": get(22)?, "hashes": hashes, "vector": vector,
            "private": get(25)?,
        });
        let entity = json!({
            "id": get(1)?, "entity_type": entity_type, "source_client": get(13)?, "agent_session_id": get(23)?, "created_at": iso(at),
            "created_at_epoch": at, "title": get(4)?, "subtitle": get(5)?, "content": from_json(text(7)?), "concepts": concepts,
            "files_read": read, "files_modified": modified, "discovery_tokens": get(17)?, "row": own,
        });
        let Value::Object(values) = entity else { continue };
        take(Row { table: Table::Memories, values })?;
    }
    Ok(())
}

fn from_json(text: Option<String>) -> Value {
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// Files of a memory, read or modified, with hashes.
fn files(conn: &Connection, memory: i64, modified: bool) -> Result<(Value, Map<String, Value>)> {
    let sql = "SELECT path, hash FROM memory_files WHERE memory_id = ?1 AND modified = ?2 ORDER BY path";
    let row = |row: &rusqlite::Row| Ok((row.get::<_, String>(0)?, row.get::<_, Option<String>>(1)?));
    let found: Vec<(String, Option<String>)> =
        conn.prepare_cached(sql)?.query_map(params![memory, modified], row)?.collect::<Result<_, _>>()?;
    let paths: Vec<String> = found.iter().map(|(path, _)| path.clone()).collect();
    let hashes = found.into_iter().filter_map(|(path, hash)| Some((path, Value::from(hash?)))).collect();
    Ok((Value::from(paths), hashes))
}

/// The vectors of a block, shared by its memories.
#[derive(Default)]
struct Vectors {
    block: i64,
    model: String,
    all: HashMap<i64, Vec<u8>>,
}

impl Vectors {
    fn of(&mut self, conn: &Connection, block: i64, memory: i64) -> Result<Value> {
        if self.block != block {
            let sql = "SELECT model, length, memories, data FROM vectors WHERE id = ?1";
            let row = |row: &rusqlite::Row| {
                Ok((row.get(0)?, row.get::<_, i64>(1)?, row.get::<_, Vec<u8>>(2)?, row.get::<_, Vec<u8>>(3)?))
            };
            let Some((model, length, ids, data)) = conn.prepare_cached(sql)?.query_row([block], row).optional()? else {
                return Ok(Value::Null);
            };
            let id = |bytes: &[u8]| bytes.try_into().map(i64::from_le_bytes).unwrap_or_default();
            let vectors = data.chunks_exact(4 + length as usize).map(<[u8]>::to_vec);
            (self.block, self.model, self.all) = (block, model, ids.chunks_exact(8).map(id).zip(vectors).collect());
        }
        Ok(self.all.get(&memory).map_or(Value::Null, |bytes| json!({"model": self.model, "hex": hex(bytes)})))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_ids_inside_texts_go_by_their_new_numbers() {
        let offsets = HashMap::from([(Table::ToolUses, 100), (Table::Prompts, 10), (Table::WorkUnits, 1000)]);
        for (text, wanted) in [
            ("commit:t12", "commit:t112"),
            ("lesson:p3:1", "lesson:p13:1"),
            ("[\"t12\",\"p3\"]", "[\"t112\",\"p13\"]"),
            ("task:u4", "task:u1004"),
            ("step3:it12", "step3:it12"),
            ("", ""),
        ] {
            assert_eq!(renamed(text, &offsets), wanted);
        }
    }
}
