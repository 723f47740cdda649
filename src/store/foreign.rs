//! Reads the SQLite database of another program, without writing a byte next to it.
//!
//! Opening a database in WAL mode writes its shared memory. So a database with a log is first copied, with its log, to
//! a private folder. A database without a log is opened as immutable, so that SQLite takes no lock.

use crate::files;
use anyhow::{Context, Result};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Params, params};
use serde_json::{Map, Value};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

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

/// A database of another program.
#[derive(Debug)]
pub struct ForeignDatabase {
    conn: Connection,
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
    /// Opens a database; `private` is the folder for a copy.
    pub fn open(path: &Path, private: &Path) -> Result<ForeignDatabase> {
        let log = PathBuf::from(OsString::from_iter([path.as_os_str(), "-wal".as_ref()]));
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let open = || -> Result<ForeignDatabase> {
            if fs::metadata(&log).is_ok_and(|meta| meta.len() > 0) {
                let folder = private.join(format!("{COPIES}{}-{}", std::process::id(), files::unique()));
                files::make_folder(&folder)?;
                let copied = Copy(folder.clone());
                let copy = folder.join("copy.db");
                copy_privately(path, &copy)?;
                copy_privately(&log, &folder.join("copy.db-wal"))?;
                let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
                #[expect(clippy::disallowed_methods, reason = "a copy of another program's database")]
                let conn = Connection::open_with_flags(&copy, flags)?;
                return Ok(ForeignDatabase { conn, _copy: Some(copied) });
            }
            let escaped = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
            #[expect(clippy::disallowed_methods, reason = "another program's database, immutable")]
            let conn = Connection::open_with_flags(format!("file:{escaped}?immutable=1"), flags)?;
            Ok(ForeignDatabase { conn, _copy: None })
        };
        open().with_context(|| format!("cannot read {}", path.display()))
    }

    /// All rows of a table in order, as values by column name; none if there is no such table.
    pub fn rows(&self, table: &str) -> Result<Vec<Map<String, Value>>> {
        self.select(table, "", &[], params![])
    }

    /// Rows in which `column` has `value`, sorted by the columns in `order`. Columns that the table lacks are ignored
    /// in sorting.
    pub fn rows_with(&self, table: &str, column: &str, value: &str, order: &[&str]) -> Result<Vec<Map<String, Value>>> {
        self.select(table, &format!("WHERE \"{column}\" = ?1"), order, params![value])
    }

    /// Rows whose key starts with a prefix, read by a key range.
    pub fn rows_keyed(&self, table: &str, key: &str, begin: &str) -> Result<Vec<Map<String, Value>>> {
        // The upper bound of the range: the prefix with its last byte incremented.
        let mut end = begin.as_bytes().to_vec();
        if let Some(last) = end.last_mut() {
            *last += 1;
        }
        let end = String::from_utf8(end)?;
        self.select(table, &format!("WHERE \"{key}\" >= ?1 AND \"{key}\" < ?2"), &[key], params![begin, end])
    }

    fn select(&self, table: &str, condition: &str, order: &[&str], values: impl Params) -> Result<Vec<Map<String, Value>>> {
        let mut statement = self.conn.prepare("SELECT name FROM pragma_table_info(?1)")?;
        let columns: Vec<String> = statement.query_map([table], |row| row.get(0))?.collect::<Result<_, _>>()?;
        if columns.is_empty() {
            return Ok(Vec::new());
        }
        let order: Vec<String> =
            order.iter().filter(|name| columns.iter().any(|column| column == *name)).map(|name| format!("\"{name}\"")).collect();
        let order = if order.is_empty() { String::new() } else { format!("ORDER BY {}", order.join(", ")) };
        let mut statement = self.conn.prepare(&format!("SELECT * FROM \"{table}\" {condition} {order}"))?;
        let names: Vec<String> = statement.column_names().map(String::from).collect();
        let mut rows = statement.query(values)?;
        let mut all = Vec::new();
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
            all.push(columns.collect::<Result<_>>()?);
        }
        Ok(all)
    }
}
