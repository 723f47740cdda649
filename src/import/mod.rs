//! Use case: imports past sessions. Files: `find` (files of known formats), `target` (settings of a folder, what is
//! imported already, the report), `file` (one file through the pipeline), `lines` (records of a file or database),
//! `memory_files` (memories of other programs), `catch_up` (what hooks missed, at a session start).

mod catch_up;
mod file;
mod find;
mod lines;
mod memory_files;
mod target;

pub use catch_up::catch_up;
pub use find::{FoundFile, FoundMemories, Stores};
pub use lines::find;
pub use target::{AgentReport, ImportReport, JoinedWorktree};

use crate::config::{Config, environment};
use crate::model::{Millis, ProjectRow};
use crate::project::{git, named_by_layout};
use crate::store::imports::{self, ImportedFile};
use crate::store::{PERSON_WAIT, Store};
use anyhow::Result;
use file::DueFile;
use find::{DatabaseState, Imported};
use lines::Databases;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use target::{Folder, Target};

const WEEK: Millis = 7 * 86_400_000;

/// Progress of an import.
#[derive(Clone, Copy, Debug, Default)]
pub struct ImportProgress {
    pub files: usize,
    pub all_files: usize,
    pub bytes: u64,
    pub all_bytes: u64,
}

/// Counts the sessions on this machine that belong to agents with no import so far.
pub fn never_imported(config: &Config) -> Result<usize> {
    let known = imported(config)?;
    let candidates = find::candidates(config.home.as_deref()).into_iter();
    Ok(candidates.filter(|(agent, _)| known.values().all(|file| file.platform != *agent)).count())
}

/// Returns the files that were imported into a database, by path.
pub fn imported(config: &Config) -> Result<Imported> {
    let store = Store::open_to_read(&config.files.value, PERSON_WAIT)?;
    Ok(store.as_ref().map(Store::imported_files).transpose()?.unwrap_or_default())
}

/// Imports files, the newest week first, and each week in chronological order. Skips files that have not changed since
/// their import, and reads only the new part of files that have grown. Each session uses the settings of its folder.
///
/// # Errors
///
/// Settings that cannot be read, or a database that cannot be written. A file that cannot be read is reported.
pub fn import(config: &Config, found: Stores, progress: &mut dyn FnMut(ImportProgress)) -> Result<ImportReport> {
    imports::remove_copies(config.files.value.folder());
    let mut report = ImportReport::default();
    found.unchanged.iter().for_each(|(agent, sessions)| report.agent(agent.name()).unchanged += sessions);
    let target = Target::new(config)?;
    let mut due = Vec::new();
    for file in found.files {
        match target.files.get(&file.name()) {
            Some(known) if file.is_unchanged(known) => report.agent(file.format.platform.name()).unchanged += 1,
            _ => due.push(DueFile::new(file)),
        }
    }
    in_order(&mut due);
    place(&mut due, config)?;
    let mut state = ImportProgress { all_files: due.len(), ..ImportProgress::default() };
    state.all_bytes = due.iter().map(|due| due.file.length).sum();
    let mut targets: HashMap<PathBuf, Target> = HashMap::from([(config.files.value.db.clone(), target)]);
    let mut folders: HashMap<Option<PathBuf>, Folder> = HashMap::new();
    let databases = Databases::new(config.files.value.folder());
    for due in due {
        progress(state);
        let folder = match folders.entry(due.head.folder()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let folder = Folder::new(new.key().as_deref())?;
                new.insert(folder)
            }
        };
        let target = match targets.entry(folder.config.files.value.db.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(Target::new(&folder.config)?),
        };
        let done = file::import(folder, &due, target, report.agent(due.file.format.platform.name()), &databases, None)?;
        report.bytes += done.bytes;
        folders.values_mut().for_each(|folder| folder.past_pauses.extend(done.muted.iter().cloned()));
        state.files += 1;
        state.bytes += due.file.length;
    }
    progress(state);
    // Projects are known by now.
    let target = targets.entry(config.files.value.db.clone()).or_default();
    memory_files::import_memory_files(&Folder::new(None)?, &found.memories, target, &mut report)?;
    keep_states(config, &found.databases)?;
    report.joined = join_worktrees(config)?;
    Ok(report)
}

/// Joins the projects of folders that are gone with the repository whose worktrees they were: the repository still knows
/// them, or the agent puts worktrees of the only repository of that name there.
fn join_worktrees(config: &Config) -> Result<Vec<JoinedWorktree>> {
    let mut store = Store::open(&config.files.value, PERSON_WAIT)?;
    let mut repositories: Vec<(ProjectRow, Vec<PathBuf>)> = Vec::new();
    let mut gone: Vec<ProjectRow> = Vec::new();
    for (project, ..) in store.projects()? {
        let root = Path::new(&project.root);
        let is_folder_only = store.project_keys(project.id)?.iter().all(|key| key.starts_with("dir:"));
        match (root.is_dir(), is_folder_only) {
            (true, false) => {
                let worktrees = git::linked_worktrees(root);
                repositories.push((project, worktrees));
            }
            (false, true) if root.is_absolute() => gone.push(project),
            _ => {}
        }
    }
    let mut joined = Vec::new();
    for project in gone {
        let folder = Path::new(&project.root);
        let knows = |worktrees: &[PathBuf]| worktrees.iter().any(|worktree| folder.starts_with(worktree));
        let name = named_by_layout(folder);
        let has_name = |row: &ProjectRow| name.is_some_and(|name| Path::new(&row.root).ends_with(name) || row.name == name);
        let by_name: Vec<&ProjectRow> = repositories.iter().map(|(row, _)| row).filter(|row| has_name(row)).collect();
        let known = repositories.iter().find(|(_, worktrees)| knows(worktrees)).map(|(row, _)| row);
        let Some(into) = known.or(by_name.first().copied().filter(|_| by_name.len() == 1)) else { continue };
        let sessions = store.merge_projects(project.id, into.id)?;
        joined.push(JoinedWorktree { folder: project.root.clone(), project: into.name.clone(), sessions });
    }
    Ok(joined)
}

/// Gives a folder to files that do not name theirs, if their path shows that they belong to a known one.
fn place(due: &mut [DueFile], config: &Config) -> Result<()> {
    let is_lost = |due: &DueFile| due.head.cwd.is_none();
    if !due.iter().any(is_lost) {
        return Ok(());
    }
    let mut folders: BTreeSet<String> = due.iter().filter_map(|due| due.head.cwd.clone()).collect();
    let store = Store::open_to_read(&config.files.value, PERSON_WAIT)?;
    folders.extend(store.as_ref().map(Store::folders).transpose()?.into_iter().flatten());
    for due in due.iter_mut().filter(|due| is_lost(due)) {
        let is_of = due.file.format.is_of_folder;
        due.head.cwd = folders.iter().find(|folder| is_of(&due.file.path, folder)).cloned();
    }
    Ok(())
}

/// Records the state of the databases whose sessions are all imported: they are not opened again until they change.
fn keep_states(config: &Config, databases: &[(FoundFile, DatabaseState, Vec<FoundFile>)]) -> Result<()> {
    if databases.is_empty() {
        return Ok(());
    }
    let mut store = Store::open(&config.files.value, PERSON_WAIT)?;
    let imported = store.imported_files()?;
    let is_imported = |file: &FoundFile| imported.get(&file.name()).is_some_and(|known| file.is_unchanged(known));
    for (file, state, _) in databases.iter().filter(|(.., sessions)| sessions.iter().all(is_imported)) {
        let whole = ImportedFile {
            platform: file.format.platform,
            version: file.format.version,
            size: state.length,
            modified_at: state.modified_at,
            offset: 0,
            first_line: None,
        };
        store.set_imported(&file.name(), &whole, None)?;
    }
    Ok(())
}

/// Sorts files: the newest week first, in chronological order within a week. A subagent's file comes after its
/// session's file. A continued session begins with a copy of another session, and comes after that session.
fn in_order(due: &mut [DueFile]) {
    let began: HashMap<PathBuf, Millis> = due.iter().map(|due| (due.file.path.clone(), due.head.at)).collect();
    let now = environment::now();
    due.sort_by_cached_key(|due| {
        let session = (due.file.format.session_file)(&due.file.path).and_then(|session| began.get(&session).copied());
        let began = session.unwrap_or(due.head.at);
        let weeks_ago = (now - began).max(0) / WEEK;
        (weeks_ago, began, session.is_some(), due.head.at, due.file.modified_at, due.file.length)
    });
}
