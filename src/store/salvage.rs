//! Copies the readable rows of a broken database into a new one, row by row.
//!
//! A damaged page of a table makes its own rows unreadable, not those before and after it. Rows that refer to a lost
//! session or project get a placeholder for it.

use super::{Store, migrate};
use crate::files;
use crate::model::{Files, beside};
use anyhow::{Context, Result};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, params_from_iter};
use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Tables that are not copied, because they are derived from others or belong to the file.
const NOT_COPIED: [&str; 2] = ["meta", "machines"];

/// Result of a salvage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Salvaged {
    pub rows: usize,
    /// Tables with rows that cannot be read.
    pub damaged: Vec<String>,
}

/// Reads the database at `broken` into a new one in `folder`.
///
/// # Errors
///
/// Fails if not even the schema can be read, or if `folder` cannot be written.
pub fn salvage(broken: &Path, folder: &Path) -> Result<(Store, Salvaged)> {
    files::make_folder(folder)?;
    // A copy, because reading a log writes to the files, and an old schema is migrated.
    let copy = folder.join("broken.db");
    for suffix in ["", "-wal"] {
        let from = beside(broken, suffix);
        if from.exists() {
            fs::copy(&from, beside(&copy, suffix)).with_context(|| format!("cannot copy {}", from.display()))?;
        }
    }
    #[expect(clippy::disallowed_methods, reason = "a broken database is opened as it is")]
    let mut from = Connection::open(&copy)?;
    migrate::bring_up(&mut from, &copy, true)?;
    let files = Files::of(folder.join("nmem.db"), true);
    migrate::create(&files)?;
    let mut store = Store::open(&files, Duration::ZERO)?;
    // Rows may be copied before the rows that they refer to, or without them.
    store.conn.execute_batch("PRAGMA foreign_keys = OFF")?;
    let mut found = Salvaged::default();
    let tables = tables(&store.conn)?;
    store.write(|tx| {
        for table in &tables {
            let (rows, is_whole) = copy_table(&from, &tx.tx, table)?;
            found.rows += rows;
            if !is_whole {
                found.damaged.push(table.name.clone());
            }
        }
        Ok(tx.tx.execute_batch(REFERENCES)?)
    })?;
    Ok((store, found))
}

/// SQL that adds placeholders for lost projects, sessions and units, and removes other references to lost rows.
const REFERENCES: &str = "
    INSERT INTO projects(id, name, root, created_at)
      SELECT project_id, 'recovered-' || project_id, '', 0 FROM (SELECT project_id FROM sessions UNION SELECT project_id FROM memories UNION SELECT project_id FROM project_keys)
      WHERE project_id IS NOT NULL AND project_id NOT IN (SELECT id FROM projects);
    INSERT OR IGNORE INTO project_keys(key, project_id) SELECT 'name:' || name, id FROM projects WHERE id NOT IN (SELECT project_id FROM project_keys);
    INSERT INTO sessions(id, project_id, platform, agent_session_id, started_at, active_at)
      SELECT session_id, (SELECT max(project_id) FROM memories m WHERE m.session_id = r.session_id), 'claude-code', 'recovered-' || session_id, min(at), max(at)
      FROM (SELECT session_id, received_at AS at FROM tool_uses UNION ALL SELECT session_id, received_at FROM prompts
            UNION ALL SELECT session_id, started_at FROM work_units UNION ALL SELECT session_id, created_at FROM memories) r
      WHERE session_id IS NOT NULL AND session_id NOT IN (SELECT id FROM sessions) GROUP BY session_id;
    DELETE FROM steps WHERE session_id NOT IN (SELECT id FROM sessions);
    INSERT INTO work_units(id, session_id, state, started_at, ended_at)
      SELECT work_unit_id, min(session_id), 'closed', min(started_at), max(ended_at) FROM steps
      WHERE work_unit_id NOT IN (SELECT id FROM work_units) GROUP BY work_unit_id;
    DELETE FROM step_files WHERE step_id NOT IN (SELECT id FROM steps);
    DELETE FROM injections WHERE session_id NOT IN (SELECT id FROM sessions);
    DELETE FROM dismissed WHERE session_id NOT IN (SELECT id FROM sessions);
    DELETE FROM memory_files WHERE memory_id NOT IN (SELECT id FROM memories);
    UPDATE tool_uses SET prompt_id = NULL WHERE prompt_id NOT IN (SELECT id FROM prompts);
    UPDATE tool_uses SET step_id = NULL WHERE step_id NOT IN (SELECT id FROM steps);
    UPDATE steps SET prompt_id = NULL WHERE prompt_id NOT IN (SELECT id FROM prompts);
    UPDATE memories SET work_unit_id = NULL WHERE work_unit_id NOT IN (SELECT id FROM work_units);
    UPDATE memories SET superseded_by = NULL WHERE superseded_by NOT IN (SELECT id FROM memories);
    UPDATE memories SET vector_block = NULL WHERE vector_block NOT IN (SELECT id FROM vectors);
    UPDATE sessions SET domain_id = NULL WHERE domain_id NOT IN (SELECT id FROM domains);
    UPDATE projects SET domain_id = NULL WHERE domain_id NOT IN (SELECT id FROM domains);
    -- What is lost was not forgotten, and lost marks must not publish what was private: sharing begins again when the user says so.
    DELETE FROM shared WHERE NOT private;
    UPDATE shared SET counter = 0, machine = 0, fingerprint = NULL, seq = NULL, own = 1;
    UPDATE projects SET share = 'none';
    UPDATE sessions SET prompts = max(prompts, (SELECT coalesce(max(number), 0) FROM prompts p WHERE p.session_id = sessions.id)),
      tool_uses = max(tool_uses, (SELECT coalesce(max(seq), 0) FROM tool_uses t WHERE t.session_id = sessions.id));";

/// A table to copy; `key` lists the primary key's columns if the table has no rowid.
struct CopiedTable {
    name: String,
    columns: Vec<String>,
    key: Vec<String>,
}

fn tables(conn: &Connection) -> Result<Vec<CopiedTable>> {
    let mut list = conn.prepare("SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type = 'table'")?;
    let names =
        list.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, bool>(1)?)))?.collect::<Result<Vec<_>, _>>()?;
    let mut found = Vec::new();
    for (name, without_rowid) in names {
        if name.starts_with("sqlite_") || NOT_COPIED.contains(&name.as_str()) {
            continue;
        }
        let mut info = conn.prepare("SELECT name, pk FROM pragma_table_info(?1) ORDER BY cid")?;
        let columns =
            info.query_map([&name], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<Vec<(String, i64)>, _>>()?;
        let mut key: Vec<_> = columns.iter().filter(|(_, pk)| *pk > 0 && without_rowid).cloned().collect();
        key.sort_by_key(|(_, pk)| *pk);
        let columns = columns.into_iter().map(|(name, _)| name).collect();
        found.push(CopiedTable { name, columns, key: key.into_iter().map(|(name, _)| name).collect() });
    }
    Ok(found)
}

/// Copies the readable rows; returns their number, and whether all could be read.
fn copy_table(from: &Connection, to: &Connection, table: &CopiedTable) -> Result<(usize, bool)> {
    let columns = table.columns.join(", ");
    let marks = vec!["?"; table.columns.len()].join(", ");
    let mut insert = to.prepare(&format!("INSERT OR IGNORE INTO {}({columns}) VALUES ({marks})", table.name))?;
    let mut rows = 0;
    let mut put = |row: &rusqlite::Row, first: usize| -> Result<()> {
        let values = (0..table.columns.len()).map(|at| Ok(owned(row.get_ref(first + at)?))).collect::<Result<Vec<Value>>>()?;
        // A value of another type than its column's comes from a damaged page.
        rows += insert.execute(params_from_iter(values)).unwrap_or(0);
        Ok(())
    };
    if table.key.is_empty() {
        let is_whole = by_rowid(from, &table.name, &columns, &mut |row| put(row, 1));
        return Ok((rows, is_whole));
    }
    // Reads from both ends towards the damaged page.
    let mut read = |order: &str| -> Result<()> {
        let by = table.key.iter().map(|name| format!("{name} {order}")).collect::<Vec<_>>().join(", ");
        let mut statement = from.prepare(&format!("SELECT {columns} FROM {} ORDER BY {by}", table.name))?;
        let mut found = statement.query([])?;
        while let Some(row) = found.next()? {
            put(row, 0)?;
        }
        Ok(())
    };
    let is_whole = read("ASC").is_ok();
    if !is_whole {
        let _ = read("DESC");
    }
    Ok((rows, is_whole))
}

fn owned(value: ValueRef) -> Value {
    match value {
        ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Real(number) => Value::Real(number),
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
    }
}

/// Reads a table by rowid. After an unreadable row it looks for the next readable one in growing steps, and reads
/// backwards from there. Returns true if no row was unreadable.
fn by_rowid(from: &Connection, table: &str, columns: &str, put: &mut dyn FnMut(&rusqlite::Row) -> Result<()>) -> bool {
    let mut is_whole = true;
    let (mut at, mut seen) = (0_i64, HashSet::new());
    loop {
        let up = format!("SELECT rowid, {columns} FROM {table} WHERE rowid > ?1 ORDER BY rowid");
        if read_rows(from, &up, &[at], &mut seen, &mut at, put).is_ok() {
            return is_whole;
        }
        is_whole = false;
        let Some(next) = next_readable(from, table, at) else { return false };
        let down = format!("SELECT rowid, {columns} FROM {table} WHERE rowid < ?1 AND rowid > ?2 ORDER BY rowid DESC");
        let _ = read_rows(from, &down, &[next, at], &mut seen, &mut 0, put);
        // Perhaps only the id of this row is readable.
        let only = format!("SELECT rowid, {columns} FROM {table} WHERE rowid = ?1");
        let _ = read_rows(from, &only, &[next], &mut seen, &mut 0, put);
        at = next;
    }
}

fn read_rows(
    from: &Connection,
    sql: &str,
    bounds: &[i64],
    seen: &mut HashSet<i64>,
    at: &mut i64,
    put: &mut dyn FnMut(&rusqlite::Row) -> Result<()>,
) -> Result<()> {
    let mut statement = from.prepare(sql)?;
    let mut rows = statement.query(params_from_iter(bounds))?;
    while let Some(row) = rows.next()? {
        let id = row.get(0)?;
        if seen.insert(id) {
            put(row)?;
        }
        *at = id;
    }
    Ok(())
}

/// Finds a readable id after `at`, in growing steps.
fn next_readable(from: &Connection, table: &str, at: i64) -> Option<i64> {
    let sql = format!("SELECT rowid FROM {table} WHERE rowid > ?1 ORDER BY rowid LIMIT 1");
    (0..52).find_map(|power| from.query_row(&sql, [at.checked_add(1 << power)?], |row| row.get(0)).ok())
}
