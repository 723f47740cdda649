//! State of an import before it reads a file: the settings of the session's folder, and earlier imports.

use super::find::Imported;
use crate::config::pauses::RecordingPause;
use crate::config::{self, Config, past_pauses};
use crate::redact::Redactor;
use crate::runtime::redactor;
use crate::store::{PERSON_WAIT, Store};
use anyhow::Result;
use std::collections::HashSet;
use std::path::Path;

/// A database's record of earlier imports.
#[derive(Debug, Default)]
pub struct Target {
    pub files: Imported,
    /// Hashes of forgotten sessions, events and memories.
    pub forgotten: HashSet<Vec<u8>>,
    /// A connection that remains open during an import. Closing the last one checkpoints the write-ahead log, which is
    /// slow.
    #[expect(dead_code, reason = "held, not used")]
    pub open: Option<Store>,
}

impl Target {
    /// Opens a database to import into.
    pub fn new(config: &Config) -> Result<Target> {
        let store = Store::open(&config.files.value, PERSON_WAIT)?;
        Ok(Target { files: store.imported_files()?, forgotten: store.forgotten()?, open: Some(store) })
    }
}

/// The settings of the folder in which a session began.
pub struct Folder {
    pub config: Config,
    pub redactor: Redactor,
    /// Pauses of recording that have ended.
    pub past_pauses: Vec<RecordingPause>,
}

impl Folder {
    /// Loads the settings of a folder, or the settings that apply outside any folder.
    pub fn new(folder: Option<&Path>) -> Result<Folder> {
        let config = config::load(&folder.into_iter().collect::<Vec<_>>())?;
        let redactor = redactor(&config)?;
        let past_pauses = past_pauses::load(&config.switches_file)?;
        Ok(Folder { config, redactor, past_pauses })
    }
}
