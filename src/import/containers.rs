//! Sessions in documents and databases: finds them and reads their records.

use super::find::{self, FoundFile, Imported, Stores};
use crate::model::Platform;
use crate::platforms::past_source::{Columns, PastSource, Rows};
use crate::store::foreign::ForeignDatabase;
use anyhow::Result;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

impl Rows for ForeignDatabase {
    fn all(&self, table: &str) -> Result<Vec<Columns>> {
        self.rows(table)
    }

    fn with(&self, table: &str, column: &str, value: &str, order: &[&str]) -> Result<Vec<Columns>> {
        self.rows_with(table, column, value, order)
    }

    fn keyed(&self, table: &str, key: &str, begin: &str) -> Result<Vec<Columns>> {
        self.rows_keyed(table, key, begin)
    }
}

/// Finds session files in `paths`, or in the agents' own folders if `paths` is empty, and the sessions in documents and
/// databases. `known` holds the imported files; `private` is the folder for copies of databases that are in use.
///
/// # Errors
///
/// A path that does not exist.
pub fn find(paths: &[PathBuf], agent: Option<Platform>, home: Option<&Path>, known: &Imported, private: &Path) -> Result<Stores> {
    let mut found = find::find(paths, agent, home, known)?;
    open(&mut found, private);
    Ok(found)
}

fn open(found: &mut Stores, private: &Path) {
    for file in std::mem::take(&mut found.containers) {
        let PastSource::Database(database) = file.format.source else {
            found.files.push(file);
            continue;
        };
        let sessions = ForeignDatabase::open(&file.path, private).and_then(|rows| (database.sessions)(&rows, &file.path));
        match sessions {
            Ok(sessions) => found.files.extend(sessions.into_iter().map(|part| FoundFile {
                length: part.size,
                modified_at: part.modified_at,
                part: Some(part),
                ..file.clone()
            })),
            Err(error) => found.unreadable.push((file.format.platform, format!("{}: {error:#}", file.path.display()))),
        }
    }
}

/// Databases of an import. Each is opened once; a database in use is copied first.
#[derive(Debug)]
pub struct Databases {
    private: PathBuf,
    open: RefCell<HashMap<PathBuf, ForeignDatabase>>,
}

impl Databases {
    /// `private` is the folder for copies.
    pub fn new(private: &Path) -> Databases {
        Databases { private: private.to_path_buf(), open: RefCell::default() }
    }

    /// Returns the records of a session in a document or database; `None` for a session stored as lines.
    pub fn records(&self, file: &FoundFile) -> Option<Result<Vec<Value>>> {
        match (&file.format.source, &file.part) {
            (PastSource::Document(document), _) => Some((document.records)(&file.path)),
            (PastSource::Database(database), Some(part)) => Some(self.rows(&file.path, |rows| (database.records)(rows, part))),
            _ => None,
        }
    }

    fn rows<T>(&self, path: &Path, read: impl FnOnce(&ForeignDatabase) -> Result<T>) -> Result<T> {
        let mut open = self.open.borrow_mut();
        if !open.contains_key(path) {
            open.insert(path.to_path_buf(), ForeignDatabase::open(path, &self.private)?);
        }
        read(&open[path])
    }
}
