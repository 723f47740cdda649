//! The words of nmem as plain types: what an agent told us, what is stored, and what passes between the levels.
//!
//! Nothing here decides, reads or writes. An [`Event`] is what happened in an agent; an adapter makes it, `redact` turns it
//! into `Clean<Event>`, and only that is stored. A row is what comes back out.
//!
//! Read in this order: `spelled` (how stored words become enums), `event` and `texts` (what an agent did, and which of its texts are redacted), `stored`, `unit` and
//! `memory` (rows), `recalled` (what is chosen for a moment), `domain`, `fields`, `llm`, `vector`, `archive` and
//! `finding`.

mod archive;
mod domain;
mod event;
mod fields;
mod finding;
mod llm;
mod memory;
mod recalled;
mod spelled;
mod stored;
mod texts;
mod unit;
mod vector;

pub use archive::*;
pub use domain::*;
pub use event::*;
pub use fields::{DEPTH, depth};
pub use finding::*;
pub use llm::*;
pub use memory::*;
pub use recalled::*;
pub use stored::*;
pub use texts::*;
pub use unit::*;
pub use vector::*;

use std::path::{Path, PathBuf};

/// Milliseconds since the Unix epoch, UTC.
pub type Millis = i64;

/// The files of one database.
#[derive(Clone, Debug)]
pub struct Files {
    pub db: PathBuf,
    /// Where events wait that could not be stored: beside the database, else in other folders, in this order. Never empty.
    pub spools: Vec<PathBuf>,
    /// Spooled lines that can never be stored.
    pub rejected: PathBuf,
    pub log: PathBuf,
    /// The data folder is nmem's own, so its mode may be tightened.
    pub own_folder: bool,
}

impl Files {
    /// Names the files beside a database, as SQLite names its own: none of them ends in `.db`.
    pub fn of(db: PathBuf, own_folder: bool) -> Files {
        let (rejected, log) = (beside(&db, "-rejected"), beside(&db, "-log"));
        Files { spools: vec![beside(&db, "-spool")], rejected, log, db, own_folder }
    }

    /// The write-ahead log that SQLite keeps beside the database.
    pub fn wal(&self) -> PathBuf {
        beside(&self.db, "-wal")
    }

    /// The folder that holds the database.
    pub fn folder(&self) -> &Path {
        self.db.parent().unwrap_or(Path::new("/"))
    }
}

/// The name of a file that belongs to another.
pub fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// How much the log says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub enum LogLevel {
    Off,
    Error,
    Info,
    Debug,
}
