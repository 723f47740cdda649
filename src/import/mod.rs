//! Use case: imports past sessions, so that memory does not start empty.
//!
//! Read in this order: `find` (files of known formats), `file` (one file through the pipeline), `report`.

mod file;
mod find;
mod report;

pub use file::Import;
pub use find::{FoundFile, Stores, find};
pub use report::{AgentReport, ImportReport};

use crate::config::{self, Config};
use crate::store::imports::ImportedFile;
use crate::store::{PERSON_WAIT, Store};
use anyhow::Result;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// How far an import is.
#[derive(Clone, Copy, Debug, Default)]
pub struct ImportProgress {
    pub files: usize,
    pub all_files: usize,
    pub bytes: u64,
    pub all_bytes: u64,
}

/// How many sessions lie on this machine that neither hooks nor an import have recorded.
pub fn not_recorded(config: &Config) -> Result<usize> {
    let store = Store::open_to_read(&config.files.value, PERSON_WAIT)?;
    let known = store.as_ref().map(Store::imported_files).transpose()?.unwrap_or_default();
    let mut found = 0;
    for (platform, path) in find::candidates(config.home.as_deref()) {
        let session = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let recorded = || store.as_ref().map(|store| store.session_by_agent_id(platform, session)).transpose();
        found += usize::from(!known.contains_key(&path.display().to_string()) && recorded()?.flatten().is_none());
    }
    Ok(found)
}

/// The files that were imported, by path.
pub fn imported(config: &Config) -> Result<HashMap<String, ImportedFile>> {
    Ok(Store::open_to_read(&config.files.value, PERSON_WAIT)?
        .map(|store| store.imported_files())
        .transpose()?
        .unwrap_or_default())
}

/// Imports files, in order of time. Files that were imported and have not changed are left out; of those that have grown,
/// only what is new is read.
pub fn import(
    import: &Import,
    files: Vec<FoundFile>,
    mut known: HashMap<String, ImportedFile>,
    progress: &mut dyn FnMut(ImportProgress),
) -> Result<ImportReport> {
    let mut report = ImportReport::default();
    let mut due = Vec::new();
    for file in files {
        match known.get(&file.name()) {
            Some(known) if is_unchanged(known, &file) => report.agent(file.format.platform).unchanged += 1,
            _ => due.push(file::DueFile::new(file)),
        }
    }
    due.sort_by_key(|due| due.head.at);
    let mut state = ImportProgress { all_files: due.len(), ..ImportProgress::default() };
    state.all_bytes = due.iter().map(|due| due.file.length).sum();
    let mut configs: HashMap<Option<PathBuf>, Config> = HashMap::new();
    for due in due {
        progress(state);
        let folder = due.head.cwd.as_deref().map(PathBuf::from).filter(|folder| folder.is_absolute());
        if !configs.contains_key(&folder) {
            configs.insert(folder.clone(), of_folder(folder.as_deref())?);
        }
        let bytes = file::import(import, &configs[&folder], &due, &mut known, &mut report)?;
        report.bytes += bytes;
        state.files += 1;
        state.bytes += due.file.length;
    }
    progress(state);
    Ok(report)
}

/// The settings of a session's folder, which may be gone.
fn of_folder(folder: Option<&Path>) -> Result<Config> {
    config::load(&folder.into_iter().collect::<Vec<_>>())
}

fn is_unchanged(known: &ImportedFile, file: &FoundFile) -> bool {
    (known.version, known.size, known.modified_at) == (file.format.version, file.length, file.modified_at)
}
