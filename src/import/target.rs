//! What an import knows before it reads a file: the settings of the session's folder, and what the database holds.

use super::find::Imported;
use crate::config::pauses::RecordingPause;
use crate::config::{self, Config, environment, past_pauses};
use crate::distil::Distiller;
use crate::redact::Redactor;
use crate::runtime::redactor;
use crate::store::memories::Gone;
use crate::store::{PERSON_WAIT, Store};
use anyhow::Result;
use std::collections::HashSet;
use std::path::Path;

/// What a database knows of imports.
#[derive(Debug, Default)]
pub struct Target {
    pub files: Imported,
    /// Hashes of what was forgotten.
    pub forgotten: HashSet<Vec<u8>>,
    /// Stays open, so that no other connection is the last one: closing that one would write the log into the database.
    pub open: Option<Store>,
}

impl Target {
    /// Settles what supersedes what: older memories were stored after newer ones.
    pub fn settle(&mut self, config: &Config) -> Result<()> {
        let Some(store) = &mut self.open else { return Ok(()) };
        let units = store.unsettled_units()?;
        let (redactor, ignored) = (redactor(config)?, config.ignored());
        let now = environment::now();
        let distiller =
            Distiller { redactor: &redactor, home: config.home.as_deref(), ignored: &ignored, now, gone: Gone::Deleted };
        distiller.settle(store, &units)?;
        store.settled()
    }

    pub fn new(config: &Config) -> Result<Target> {
        let mut store = Store::open(&config.files.value, PERSON_WAIT)?;
        store.begin_out_of_order()?;
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
    pub fn new(folder: Option<&Path>) -> Result<Folder> {
        let config = config::load(&folder.into_iter().collect::<Vec<_>>())?;
        let redactor = redactor(&config)?;
        let past_pauses = past_pauses::load(&config.switches_file)?;
        Ok(Folder { config, redactor, past_pauses })
    }
}
