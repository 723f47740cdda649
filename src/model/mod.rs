//! Plain types shared by all levels: events, stored rows, and what use cases exchange.
//!
//! These types contain no business logic and do no I/O. An adapter creates an [`Event`], `redact` turns it into
//! `Clean<Event>`, and only that can be stored. Rows are what the store returns.
//!
//! Read in this order: `spelled` (enums with a stored spelling), `platform`, `event` and `texts` (events, and the texts
//! in them that are redacted), `stored`, `unit` and `memory` (rows), `recalled` and `commands` (results of recall),
//! `domain`, `fields`, `llm`, `vector`, `archive`, `team` and `finding`.

mod archive;
mod commands;
mod domain;
mod event;
mod fields;
mod finding;
mod llm;
mod memory;
mod platform;
mod recalled;
mod spelled;
mod stored;
mod team;
mod texts;
mod unit;
mod vector;

pub use archive::*;
pub use commands::*;
pub use domain::*;
pub use event::*;
pub use fields::{DEPTH, depth};
pub use finding::*;
pub use llm::*;
pub use memory::*;
pub use platform::*;
pub use recalled::*;
pub use stored::*;
pub use team::*;
pub use texts::*;
pub use unit::*;
pub use vector::*;

use std::path::{Path, PathBuf};

/// Milliseconds since the Unix epoch, UTC.
pub type Millis = i64;

/// The files that belong to one database.
#[derive(Clone, Debug)]
pub struct Files {
    pub db: PathBuf,
    /// Spool files for events that could not be stored: the one in the data folder, then fallbacks. Never empty.
    pub spools: Vec<PathBuf>,
    /// Spooled lines that can never be stored.
    pub rejected: PathBuf,
    pub log: PathBuf,
    /// The data folder belongs to nmem, so its permissions may be tightened.
    pub own_folder: bool,
}

impl Files {
    /// Derives the file names from the database's path by adding suffixes, as SQLite does. None of them ends in `.db`.
    pub fn of(db: PathBuf, own_folder: bool) -> Files {
        let (rejected, log) = (beside(&db, "-rejected"), beside(&db, "-log"));
        Files { spools: vec![beside(&db, "-spool")], rejected, log, db, own_folder }
    }

    /// SQLite's write-ahead log.
    pub fn wal(&self) -> PathBuf {
        beside(&self.db, "-wal")
    }

    /// The page that `nmem view` writes and opens.
    pub fn page(&self) -> PathBuf {
        beside(&self.db, "-page.html")
    }

    /// The file that is locked during a sync.
    pub fn sync_lock(&self) -> PathBuf {
        beside(&self.db, "-sync-lock")
    }

    /// The folder of the database.
    pub fn folder(&self) -> &Path {
        self.db.parent().unwrap_or(Path::new("/"))
    }
}

/// The path of a companion file: `path` plus a suffix.
pub fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Verbosity of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub enum LogLevel {
    Off,
    Error,
    Info,
    Debug,
}
