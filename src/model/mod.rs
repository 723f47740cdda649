//! The words of nmem as plain types: what an agent told us, what is stored, and what passes between the levels.
//!
//! Nothing here decides, reads or writes. An [`Event`] is what happened in an agent; an adapter makes it, `redact` turns it
//! into `Clean<Event>`, and only that is stored. A row is what comes back out.

mod digest;
mod event;
mod stored;
mod texts;

pub use digest::*;
pub use event::*;
pub use stored::*;
pub use texts::*;

use std::path::PathBuf;

/// Milliseconds since the Unix epoch, UTC.
pub type Millis = i64;

/// The files of one database.
#[derive(Clone, Debug)]
pub struct Files {
    pub db: PathBuf,
    /// Events that could not be stored yet.
    pub spool: PathBuf,
    /// Spooled lines that can never be stored.
    pub rejected: PathBuf,
    pub log: PathBuf,
    /// The data folder is nmem's own, so its mode may be tightened.
    pub own_folder: bool,
}

impl Files {
    /// Names the files beside a database, as SQLite names its own: none of them ends in `.db`.
    pub fn of(db: PathBuf, own_folder: bool) -> Files {
        let beside = |suffix: &str| {
            let mut name = db.clone().into_os_string();
            name.push(suffix);
            PathBuf::from(name)
        };
        Files { spool: beside("-spool"), rejected: beside("-rejected"), log: beside("-log"), db, own_folder }
    }
}

/// How much the log says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub enum LogLevel {
    Off,
    Error,
    Info,
    Debug,
}
