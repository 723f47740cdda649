//! Records of a session: lines of a file, parts of a document or rows of a database.

use super::find::{self, DatabaseState, FoundFile, Imported, Stores, is_compressed, open};
use crate::files;
use crate::model::Platform;
use crate::platforms::past::{Columns, PastPart, PastSource, Rows};
use crate::store::imports::ForeignDatabase;
use anyhow::Result;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Maximum bytes of a line. A longer line is cut, so it is not valid JSON.
const LINE: u64 = 64 << 20;

/// The lines of a part of a file.
pub struct Lines {
    reader: Box<dyn BufRead>,
    line: Vec<u8>,
    /// Number of lines read so far, counted from the start of the part.
    pub number: u64,
    /// Offset after the last complete line, in bytes of the (decompressed) text.
    pub end: u64,
    at: u64,
    /// True if the last line ended with a newline. If not, it may still be growing.
    pub is_complete: bool,
    /// Time at which to stop reading.
    pub deadline: Option<Instant>,
    /// True if reading stopped at the deadline.
    pub is_late: bool,
}

impl Lines {
    /// Opens a file and skips to an offset, in bytes of the (decompressed) text.
    pub fn open(path: &Path, from: u64) -> io::Result<Lines> {
        let reader: Box<dyn BufRead> = if is_compressed(path) {
            let mut reader = open(path)?;
            io::copy(&mut reader.by_ref().take(from), &mut io::sink())?;
            reader
        } else {
            let mut file = files::regular(path)?;
            file.seek(SeekFrom::Start(from))?;
            Box::new(BufReader::with_capacity(1 << 18, file))
        };
        Ok(Lines { reader, line: Vec::new(), number: 0, end: from, at: from, is_complete: true, deadline: None, is_late: false })
    }

    /// Returns the next line that is not blank, with its offset.
    pub fn next(&mut self) -> io::Result<Option<(u64, &[u8])>> {
        loop {
            if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                self.is_late = true;
                return Ok(None);
            }
            self.line.clear();
            let at = self.at;
            self.at += self.reader.by_ref().take(LINE).read_until(b'\n', &mut self.line)? as u64;
            if self.at == at {
                return Ok(None);
            }
            self.is_complete = self.line.ends_with(b"\n");
            if !self.is_complete && self.line.len() as u64 == LINE {
                self.at += skip_line(&mut self.reader)?;
                self.is_complete = true;
            }
            self.number += 1;
            if self.is_complete {
                self.end = self.at;
            }
            if !self.line.trim_ascii().is_empty() {
                return Ok(Some((at, self.line.trim_ascii())));
            }
        }
    }

    /// Counts the last line as complete, although no newline ends it.
    pub fn complete_last(&mut self) {
        self.end = self.at;
    }
}

/// Skips the rest of a line and returns the number of bytes skipped.
fn skip_line(reader: &mut dyn BufRead) -> io::Result<u64> {
    let mut skipped = 0;
    loop {
        let part = reader.fill_buf()?;
        let (length, ends) = match part.iter().position(|byte| *byte == b'\n') {
            Some(end) => (end + 1, true),
            None => (part.len(), part.is_empty()),
        };
        reader.consume(length);
        skipped += length as u64;
        if ends {
            return Ok(skipped);
        }
    }
}

/// Number of lines before an offset.
pub fn lines_before(path: &Path, offset: u64) -> u64 {
    let mut lines = 0;
    let Ok(reader) = open(path) else { return 0 };
    let mut reader = reader.take(offset);
    while let Ok(read @ 1..) = skip_line(&mut reader) {
        lines += u64::from(read > 0);
    }
    lines
}

impl Rows for ForeignDatabase {
    fn all(&self, table: &str) -> Result<Vec<Columns>> {
        self.rows(table)
    }

    fn all_of(&self, table: &str, columns: &[&str]) -> Result<Vec<Columns>> {
        self.rows_of(table, columns)
    }

    fn with(&self, table: &str, column: &str, value: &str, order: &[&str]) -> Result<Vec<Columns>> {
        self.rows_with(table, column, value, order)
    }

    fn keyed(&self, table: &str, key: &str, begin: &str, visit: &mut dyn FnMut(Columns) -> Result<()>) -> Result<()> {
        self.rows_keyed(table, key, begin, visit)
    }

    fn beside(&self, path: &Path) -> Result<Box<dyn Rows>> {
        Ok(Box::new(self.other(path)?))
    }
}

/// Finds session files in `paths`, or in the agents' own folders if `paths` is empty, and the sessions in documents and
/// databases. `known` holds the imported files; `private` is a folder of our own.
///
/// # Errors
///
/// A path that does not exist.
pub fn find(paths: &[PathBuf], agent: Option<Platform>, home: Option<&Path>, known: &Imported, private: &Path) -> Result<Stores> {
    let mut found = find::find(paths, agent, home, known)?;
    for path in std::mem::take(&mut found.unknown_databases) {
        let tables = ForeignDatabase::open(&path, private).and_then(|rows| rows.tables()).unwrap_or_default();
        match find::by_tables(&tables, agent) {
            Some(format) => found.containers.extend(FoundFile::new(format, path)),
            None => found.unknown.push(path),
        }
    }
    open_rows(&mut found, known, private);
    Ok(found)
}

/// Lists the sessions of databases. One that has not changed since all of it was imported is not opened.
fn open_rows(found: &mut Stores, known: &Imported, private: &Path) {
    for file in std::mem::take(&mut found.containers) {
        let PastSource::Database(database) = file.format.source else {
            found.files.push(file);
            continue;
        };
        let state = DatabaseState::of(&file.path);
        let name = file.path.display().to_string();
        if known.get(&name).is_some_and(|known| state.is_of(known, &file.format)) {
            let parts = format!("{name}#");
            let unchanged = known.keys().filter(|name| name.starts_with(&parts)).count() as u64;
            found.unchanged.push((file.format.platform, unchanged));
            continue;
        }
        let sessions = ForeignDatabase::open(&file.path, private).and_then(|rows| (database.sessions)(&rows, &file.path));
        match sessions {
            Ok(sessions) => {
                let session = |part: PastPart| FoundFile {
                    length: part.size,
                    modified_at: part.modified_at,
                    part: Some(part),
                    ..file.clone()
                };
                let sessions: Vec<FoundFile> = sessions.into_iter().map(session).collect();
                found.files.extend(sessions.iter().cloned());
                found.databases.push((file, state, sessions));
            }
            Err(error) => found.unreadable.push((file.format.platform, format!("{}: {error:#}", file.path.display()))),
        }
    }
}

/// Databases of an import. Each is opened once.
#[derive(Debug)]
pub struct Databases {
    private: PathBuf,
    open: RefCell<HashMap<PathBuf, ForeignDatabase>>,
}

impl Databases {
    /// `private` is a folder of our own.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_a_line_is_skipped_and_the_next_one_is_read() {
        let mut text: &[u8] = b"rest of a long line\nnext\nlast";
        assert_eq!(skip_line(&mut text).unwrap(), 20);
        assert_eq!(text, b"next\nlast");
        assert_eq!((skip_line(&mut text).unwrap(), skip_line(&mut text).unwrap(), skip_line(&mut text).unwrap()), (5, 4, 0));
    }
}
