//! Use case: imports past sessions, so that memory does not start empty.
//!
//! Read in this order: `find` (files of known formats), `file` (one file through the pipeline) with `lines`, `report`.

mod file;
mod find;
mod lines;
mod report;

pub use find::{FoundFile, Stores, find};
pub use report::{AgentReport, ImportReport};

use crate::config::{self, Config};
use crate::redact::Redactor;
use crate::runtime::redactor;
use crate::store::{PERSON_WAIT, Store};
use anyhow::Result;
use file::DueFile;
use find::Imported;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::PathBuf;

/// How far an import is.
#[derive(Clone, Copy, Debug, Default)]
pub struct ImportProgress {
    pub files: usize,
    pub all_files: usize,
    pub bytes: u64,
    pub all_bytes: u64,
}

/// How many sessions lie on this machine of agents of which nothing was ever imported.
pub fn never_imported(config: &Config) -> Result<usize> {
    let known = imported(config)?;
    let candidates = find::candidates(config.home.as_deref()).into_iter();
    Ok(candidates.filter(|(agent, _)| known.values().all(|file| file.platform != *agent)).count())
}

/// The files that were imported into a database, by path.
pub fn imported(config: &Config) -> Result<Imported> {
    let store = Store::open_to_read(&config.files.value, PERSON_WAIT)?;
    Ok(store.as_ref().map(Store::imported_files).transpose()?.unwrap_or_default())
}

/// Imports files, in order of time. Files that were imported and have not changed are left out; of those that have grown,
/// only what is new is read. Each session is read by the settings of its folder.
///
/// # Errors
///
/// Settings that cannot be read, or a database that cannot be written. A file that cannot be read is reported.
pub fn import(
    config: &Config,
    files: Vec<FoundFile>,
    known: Imported,
    progress: &mut dyn FnMut(ImportProgress),
) -> Result<ImportReport> {
    let mut report = ImportReport::default();
    let mut due = Vec::new();
    for file in files {
        match known.get(&file.name()) {
            Some(known) if file.is_unchanged(known) => report.agent(file.format.platform).unchanged += 1,
            _ => due.push(DueFile::new(file)),
        }
    }
    due.sort_by_key(|due| due.head.at);
    let mut state = ImportProgress { all_files: due.len(), ..ImportProgress::default() };
    state.all_bytes = due.iter().map(|due| due.file.length).sum();
    let mut imported: HashMap<PathBuf, Imported> = HashMap::from([(config.files.value.db.clone(), known)]);
    let mut folders: HashMap<Option<PathBuf>, (Config, Redactor)> = HashMap::new();
    for due in due {
        progress(state);
        let (config, redactor) = match folders.entry(due.head.folder()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let config = config::load(&new.key().as_deref().into_iter().collect::<Vec<_>>())?;
                let redactor = redactor(&config)?;
                new.insert((config, redactor))
            }
        };
        let known = match imported.entry(config.files.value.db.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(self::imported(config)?),
        };
        report.bytes += file::import(config, redactor, &due, known, report.agent(due.file.format.platform))?;
        state.files += 1;
        state.bytes += due.file.length;
    }
    progress(state);
    Ok(report)
}
