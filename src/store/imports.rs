//! Records of imported files, and databases of other programs.

use super::events::known_session;
use super::{Store, Tx};
use crate::files;
use crate::model::{Millis, Platform, beside};
use anyhow::{Context, Result, bail};
use rusqlite::config::DbConfig;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Params, Row, params};
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An imported file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedFile {
    pub platform: Platform,
    /// Version of the reader.
    pub version: i64,
    /// Size in bytes when the file was read.
    pub size: u64,
    pub modified_at: Millis,
    /// Offset at which reading continues when the file has grown.
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

/// Effect of an import on a session.
#[derive(Clone, Debug)]
pub struct ImportedSession {
    pub platform: Platform,
    /// The agent's id.
    pub id: String,
    /// Time of the last stored event.
    pub until: Option<Millis>,
    /// Time of the import.
    pub at: Millis,
}

/// Key of the list of agents with imported files.
const IMPORTED_AGENTS: &str = "imported_agents";
const IMPORTED: &str = "SELECT path, platform, version, size, modified_at, offset, first_line FROM imports";

fn imported(row: &Row) -> rusqlite::Result<(String, ImportedFile)> {
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
}

impl Store {
    /// All imported files by path.
    pub fn imported_files(&self) -> Result<HashMap<String, ImportedFile>> {
        Ok(self.conn.prepare_cached(IMPORTED)?.query_map([], imported)?.collect::<Result<_, _>>()?)
    }

    /// An imported file, and those with the same first line.
    pub fn imported_alike(&self, path: &str, first_line: Option<u64>) -> Result<HashMap<String, ImportedFile>> {
        let sql = format!("{IMPORTED} WHERE path = ?1 OR first_line = ?2");
        let values = params![path, first_line.map(|hash| hash as i64)];
        Ok(self.conn.prepare_cached(&sql)?.query_map(values, imported)?.collect::<Result<_, _>>()?)
    }

    /// An imported file.
    pub fn imported_file(&self, path: &str) -> Result<Option<ImportedFile>> {
        let sql = format!("{IMPORTED} WHERE path = ?1");
        Ok(self.conn.prepare_cached(&sql)?.query_row([path], imported).optional()?.map(|(_, file)| file))
    }

    /// Records the import of a file and its effect on the session.
    pub fn set_imported(&mut self, path: &str, file: &ImportedFile, session: Option<&ImportedSession>) -> Result<()> {
        let is_new_agent = !self.imported_agents()?.contains(&file.platform);
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
            tx.tx.prepare_cached(sql)?.execute(values)?;
            if is_new_agent {
                let sql = "INSERT OR REPLACE INTO meta(key, value) SELECT ?1, json_group_array(DISTINCT platform) FROM imports";
                tx.tx.execute(sql, [IMPORTED_AGENTS])?;
            }
            session.map_or(Ok(()), |session| tx.set_session_imported(session))
        })
    }

    /// Time of the last import that stored events of a session.
    pub fn imported_at(&self, session: i64) -> Result<Option<Millis>> {
        let sql = "SELECT imported_at FROM sessions WHERE id = ?1";
        Ok(self.conn.prepare_cached(sql)?.query_row([session], |row| row.get(0))?)
    }

    /// Stored texts of the user and the agent in a session, in order.
    pub fn texts_of_session(&self, session: i64) -> Result<Vec<StoredMessage>> {
        let sql = "SELECT platform_prompt_id, source = 'user', text FROM prompts WHERE session_id = ?1 AND kind <> 'thinking' ORDER BY id";
        let row = |row: &Row| Ok(StoredMessage { prompt: row.get(0)?, is_users: row.get(1)?, text: row.get(2)? });
        Ok(self.conn.prepare_cached(sql)?.query_map([session], row)?.collect::<Result<_, _>>()?)
    }

    /// Tool uses of a session that have no id from the agent: kind, and content or path.
    pub fn unnamed_tool_uses(&self, session: i64) -> Result<Vec<(String, Option<String>)>> {
        let sql = "SELECT kind, coalesce(content, path) FROM tool_uses
                   WHERE session_id = ?1 AND (tool_use_id IS NULL OR tool_use_id LIKE '~%')";
        Ok(self
            .conn
            .prepare_cached(sql)?
            .query_map([session], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<_, _>>()?)
    }

    /// Agents with imported files. Each session start asks, and there may be thousands of files, so a list is kept.
    pub fn imported_agents(&self) -> Result<Vec<Platform>> {
        let kept: Option<String> = self.meta(IMPORTED_AGENTS)?;
        let names: Vec<String> = match kept.and_then(|json| serde_json::from_str(&json).ok()) {
            Some(names) => names,
            None => {
                let sql = "SELECT DISTINCT platform FROM imports";
                self.conn.prepare_cached(sql)?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?
            }
        };
        Ok(names.iter().filter_map(|name| Platform::from_name(name)).collect())
    }

    /// Whether hooks record a session with any of the names.
    pub fn is_recorded_by_hooks(&self, names: &[String]) -> Result<bool> {
        let sql = "SELECT 1 FROM sessions WHERE agent_session_id IN (SELECT value FROM json_each(?1)) AND client_pid IS NOT NULL";
        Ok(self.conn.prepare_cached(sql)?.exists([serde_json::to_string(names)?])?)
    }

    /// The ids of prompts and tool uses of a session.
    pub fn stored_ids(&self, platform: Platform, session: &str) -> Result<HashSet<String>> {
        let Some(known) = known_session(&self.conn, platform, session)? else { return Ok(HashSet::new()) };
        let sql =
            "SELECT platform_prompt_id FROM prompts WHERE session_id = ?1 AND source = 'user' AND platform_prompt_id IS NOT NULL
                   UNION ALL SELECT tool_use_id FROM tool_uses WHERE session_id = ?1 AND tool_use_id IS NOT NULL";
        Ok(self.conn.prepare_cached(sql)?.query_map([known.id], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }

    /// Uuids of the notes that an import stored from a file and that no person has changed.
    pub fn notes_of_file(&self, path: &str) -> Result<Vec<String>> {
        let sql = "SELECT uuid FROM memories WHERE made_by = 'custom' AND content ->> '$.notes_file' = ?1 AND NOT by_hand AND NOT pinned";
        Ok(self.conn.prepare_cached(sql)?.query_map([path], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }

    /// Deletes notes that are gone from their file.
    pub fn delete_notes(&mut self, uuids: &[&String]) -> Result<()> {
        self.write(|tx| {
            for uuid in uuids {
                let id = tx.tx.query_row("SELECT id FROM memories WHERE uuid = ?1", [uuid], |row| row.get(0)).optional()?;
                id.map_or(Ok(()), |id| tx.delete_memory(id))?;
            }
            Ok(())
        })
    }

    /// Returns those of the uuids that belong to memories.
    pub fn known_uuids<'a>(&self, uuids: impl Iterator<Item = &'a str>) -> Result<HashSet<String>> {
        let sql = "SELECT uuid FROM memories WHERE uuid IN (SELECT value FROM json_each(?1))";
        let all = serde_json::to_string(&uuids.collect::<Vec<_>>())?;
        Ok(self.conn.prepare_cached(sql)?.query_map([all], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }

    /// Records that a session start has stored events of a session, until the units of that session are distilled.
    pub fn note_caught_up(&mut self, platform: Platform, session: &str) -> Result<()> {
        self.write(|tx| {
            let Some(known) = known_session(&tx.tx, platform, session)? else { return Ok(()) };
            Ok(tx.tx.execute("INSERT OR REPLACE INTO meta(key, value) VALUES ('caught_up:' || ?1, ?1)", [known.id]).map(drop)?)
        })
    }

    /// Removes the record of [`Store::note_caught_up`]: the units of the session are distilled.
    pub fn clear_caught_up(&mut self, session: i64) -> Result<()> {
        self.write(|tx| Ok(tx.tx.execute("DELETE FROM meta WHERE key = 'caught_up:' || ?1", [session]).map(drop)?))
    }

    /// Time at which the last lease of any of the units ends.
    pub fn leased_until(&self, units: &[i64]) -> Result<Option<Millis>> {
        let sql = "SELECT max(leased_until) FROM work_units WHERE id IN (SELECT value FROM json_each(?1))";
        Ok(self.conn.prepare_cached(sql)?.query_row([serde_json::to_string(units)?], |row| row.get(0))?)
    }
}

impl Tx<'_> {
    fn set_session_imported(&self, session: &ImportedSession) -> Result<()> {
        let Some(known) = known_session(&self.tx, session.platform, &session.id)? else { return Ok(()) };
        self.tx.prepare_cached("UPDATE sessions SET imported_at = ?2 WHERE id = ?1")?.execute([known.id, session.at])?;
        if let Some(until) = session.until {
            let sql =
                "UPDATE sessions SET imported_until = max(coalesce(imported_until, 0), ?2) WHERE id = ?1 AND client_pid IS NULL";
            self.tx.prepare_cached(sql)?.execute([known.id, until])?;
        }
        Ok(())
    }
}

/// Prefix of the names of folders with copies; the process id follows.
const COPIES: &str = "import-";

/// Removes copies left by killed processes.
pub fn remove_copies(private: &Path) {
    for entry in fs::read_dir(private).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix(COPIES).and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
        if process.is_some_and(|process| process != std::process::id() && !is_running(process)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether a process is running. If processes cannot be looked up, none counts as running: at worst, a concurrent
/// import loses its copy.
fn is_running(process: u32) -> bool {
    Path::new(&format!("/proc/{process}")).exists()
}

fn copy_privately(from: &Path, to: &Path) -> Result<()> {
    std::io::copy(&mut files::regular(from)?, &mut files::append_private(to)?)?;
    Ok(())
}

/// Maximum time to wait for a program that is writing.
const BUSY: Duration = Duration::from_secs(5);

/// Maximum bytes of a database that is copied: a larger one is only linked.
const COPIED_BYTES: u64 = 64 << 20;

/// A query to one table of another program.
#[derive(Default)]
struct Selection<'a> {
    table: &'a str,
    /// Empty for all.
    columns: &'a [&'a str],
    condition: &'a str,
    order: &'a [&'a str],
}

/// A database of another program. Nothing of its files is changed.
#[derive(Debug)]
pub struct ForeignDatabase {
    conn: Connection,
    private: PathBuf,
    _copy: Option<Copy>,
}

/// The folder of a copy, deleted with this value.
#[derive(Debug)]
struct Copy(PathBuf);

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl ForeignDatabase {
    /// Opens a database to read it where it is, however large it is; `private` is a folder of our own.
    ///
    /// One with a log is read as every SQLite program does, except that the shared memory of the program is not
    /// written. If there is none, because the program has crashed or the files were copied, a private copy of the log is
    /// put beside a link to the database. Without a log, the file is read as one that does not change.
    ///
    /// # Errors
    ///
    /// Fails if the log cannot be read in either way: without it, the newest sessions would be missing.
    pub fn open(path: &Path, private: &Path) -> Result<ForeignDatabase> {
        let log = beside(path, "-wal");
        let has_log = fs::metadata(&log).is_ok_and(|meta| meta.len() > 0);
        let open = || {
            if !has_log {
                return ForeignDatabase::connect(path, "immutable=1", private);
            }
            ForeignDatabase::connect(path, "mode=ro&readonly_shm=1", private)
                .or_else(|_| ForeignDatabase::with_copied_log(path, &log, private))
        };
        open().with_context(|| format!("cannot read {}", path.display()))
    }

    fn with_copied_log(path: &Path, log: &Path, private: &Path) -> Result<ForeignDatabase> {
        let folder = private.join(format!("{COPIES}{}-{}", std::process::id(), files::unique()));
        files::make_folder(&folder)?;
        let copied = Copy(folder.clone());
        let link = folder.join("copy.db");
        copy_privately(log, &folder.join("copy.db-wal"))?;
        if fs::hard_link(path, &link).is_err() {
            if files::length(path).is_none_or(|length| length > COPIED_BYTES) {
                bail!("it has a log, which cannot be read on another disk; start and quit its program once");
            }
            copy_privately(path, &link)?;
        }
        let opened = ForeignDatabase::connect(&link, "mode=ro", private)?;
        Ok(ForeignDatabase { _copy: Some(copied), ..opened })
    }

    fn connect(path: &Path, mode: &str, private: &Path) -> Result<ForeignDatabase> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let escaped = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
        #[expect(clippy::disallowed_methods, reason = "another program's database, read only")]
        let conn = Connection::open_with_flags(format!("file:{escaped}?{mode}"), flags)?;
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        conn.busy_timeout(BUSY)?;
        // Opening reads nothing; this does.
        conn.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(ForeignDatabase { conn, private: private.to_path_buf(), _copy: None })
    }

    /// Opens another database of the same program.
    pub fn other(&self, path: &Path) -> Result<ForeignDatabase> {
        ForeignDatabase::open(path, &self.private)
    }

    /// Names of its tables.
    pub fn tables(&self) -> Result<HashSet<String>> {
        let mut statement = self.conn.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")?;
        Ok(statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }

    /// All rows of a table in order, as values by column name; none if there is no such table.
    pub fn rows(&self, table: &str) -> Result<Vec<Map<String, Value>>> {
        self.list(&Selection { table, ..Selection::default() }, params![])
    }

    /// The same, with some of the columns; those that the table lacks are missing.
    pub fn rows_of(&self, table: &str, columns: &[&str]) -> Result<Vec<Map<String, Value>>> {
        self.list(&Selection { table, columns, ..Selection::default() }, params![])
    }

    /// Rows in which `column` has `value`, sorted by the columns in `order`. Columns that the table lacks are ignored
    /// in sorting.
    pub fn rows_with(&self, table: &str, column: &str, value: &str, order: &[&str]) -> Result<Vec<Map<String, Value>>> {
        let condition = &format!("WHERE \"{column}\" = ?1");
        self.list(&Selection { table, condition, order, ..Selection::default() }, params![value])
    }

    /// Visits the rows whose key starts with a prefix, read by a key range.
    pub fn rows_keyed(
        &self,
        table: &str,
        key: &str,
        begin: &str,
        visit: &mut dyn FnMut(Map<String, Value>) -> Result<()>,
    ) -> Result<()> {
        // The upper bound of the range: the prefix with its last byte incremented.
        let mut end = begin.as_bytes().to_vec();
        if let Some(last) = end.last_mut() {
            *last += 1;
        }
        let end = String::from_utf8(end)?;
        let condition = &format!("WHERE \"{key}\" >= ?1 AND \"{key}\" < ?2");
        self.select(&Selection { table, condition, order: &[key], ..Selection::default() }, params![begin, end], visit)
    }

    fn list(&self, from: &Selection, values: impl Params) -> Result<Vec<Map<String, Value>>> {
        let mut all = Vec::new();
        self.select(from, values, &mut |row| {
            all.push(row);
            Ok(())
        })?;
        Ok(all)
    }

    fn select(
        &self,
        from: &Selection,
        values: impl Params,
        visit: &mut dyn FnMut(Map<String, Value>) -> Result<()>,
    ) -> Result<()> {
        let Selection { table, condition, .. } = from;
        let mut statement = self.conn.prepare("SELECT name FROM pragma_table_info(?1)")?;
        let columns: Vec<String> = statement.query_map([table], |row| row.get(0))?.collect::<Result<_, _>>()?;
        if columns.is_empty() {
            return Ok(());
        }
        let known = |names: &[&str]| {
            let names = names.iter().filter(|name| columns.iter().any(|column| column == *name));
            Some(names.map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")).filter(|names| !names.is_empty())
        };
        let order = known(from.order).map_or_else(String::new, |names| format!("ORDER BY {names}"));
        let wanted = known(from.columns).unwrap_or_else(|| "*".to_string());
        let mut statement = self.conn.prepare(&format!("SELECT {wanted} FROM \"{table}\" {condition} {order}"))?;
        let names: Vec<String> = statement.column_names().map(String::from).collect();
        let mut rows = statement.query(values)?;
        while let Some(row) = rows.next()? {
            let value = |at: usize| -> Result<Value> {
                Ok(match row.get_ref(at)? {
                    ValueRef::Integer(n) => n.into(),
                    ValueRef::Real(n) => n.into(),
                    ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned().into(),
                    // Some programs store JSON as bytes. Other bytes become hex digits.
                    ValueRef::Blob(bytes) => match std::str::from_utf8(bytes) {
                        Ok(text) => text.into(),
                        Err(_) => bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into(),
                    },
                    ValueRef::Null => Value::Null,
                })
            };
            let columns = names.iter().enumerate().map(|(at, name)| Ok((name.clone(), value(at)?)));
            visit(columns.collect::<Result<_>>()?)?;
        }
        Ok(())
    }
}
