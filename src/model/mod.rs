//! Plain types that all modules share, without I/O. Files: `event` (what an agent did), `stored` (rows as read from
//! the store, and commands), `unit`, `memory` (kinds, findings, drafts, domains), `recalled` (also the evidence for a line or a commit), `question` (requests to
//! a model, embeddings), `shared` (team memory), `texts` (every text of a value, with its limit).

/// Declares an enum with a stored name for each variant. The names must not change: databases contain them and programs
/// read them. An unknown name in a database (written by a newer nmem or by hand) is read as the default, which is the
/// most conservative value; in JSON it is an error.
macro_rules! spelled {
    ($(#[$doc:meta])* $name:ident, default $default:ident { $($(#[$about:meta])* $variant:ident = $word:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$about])* $variant),* }

        impl $name {
            pub const ALL: &[$name] = &[$($name::$variant),*];

            /// Returns the variant's name in the database and in output.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $word),* }
            }

            /// Finds a variant by its name.
            pub fn from_name(name: &str) -> Option<$name> {
                match name { $($word => Some($name::$variant),)* _ => None }
            }
        }

        impl Default for $name {
            fn default() -> $name {
                $name::$default
            }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> $name {
                $name::from_name(name).unwrap_or_default()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.name())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<$name, D::Error> {
                let name = <std::borrow::Cow<str>>::deserialize(from)?;
                $name::from_name(&name).ok_or_else(|| serde::de::Error::custom(format!("`{name}` is not a {}", stringify!($name))))
            }
        }
    };
}

mod event;
mod memory;
mod question;
mod recalled;
mod shared;
mod stored;
mod texts;
mod unit;

pub use event::*;
pub use memory::*;
pub use question::*;
pub use recalled::*;
pub use shared::*;
pub use stored::*;
pub use texts::{DEPTH, depth, *};
pub use unit::*;

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
