//! Use case: imports past sessions. Files: `find` (files of known formats), `target` (settings of a folder, what is
//! imported already, the report), `file` (one file through the pipeline), `lines` (records of a file or database),
//! `memory_files` (memories of other programs). What hooks missed is read at a session start (`catch_up`).

mod file;
mod find;
mod lines;
mod memory_files;
mod target;

pub use find::{Drift, FoundFile, FoundMemories, Stores, drift};
pub use lines::find;
pub use target::{AgentReport, ImportReport, JoinedWorktree};

use crate::config::{Config, environment};
use crate::ingest::run::Run;
use crate::model::{Event, Millis, ProjectRow};
use crate::platforms;
use crate::platforms::past::{PastFormat, PastSource};
use crate::project::{git, named_by_layout};
use crate::runtime::log_error;
use crate::store::imports::{self, ImportedFile};
use crate::store::{PERSON_WAIT, Store};
use anyhow::Result;
use file::{Deadline, DueFile, FileRest};
use find::{DatabaseState, Imported, is_compressed};
use lines::Databases;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use target::{Folder, Target};

const WEEK: Millis = 7 * 86_400_000;
/// Maximum files that are stored but not distilled yet.
const AHEAD: usize = 16;

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
    thread::scope(|scope| -> Result<()> {
        // One core reads and stores events, another distils the sessions before: they cost about the same.
        let (stored, rests) = mpsc::sync_channel::<FileRest>(AHEAD);
        let finishing = scope.spawn(move || rests.into_iter().try_for_each(FileRest::finish));
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
            // Nobody receives it once distilling has failed.
            if done.rest.is_some_and(|rest| stored.send(rest).is_err()) {
                break;
            }
        }
        drop(stored);
        finishing.join().unwrap_or_else(|panic| resume_unwind(panic))
    })?;
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

/// Maximum time for all agents together. A session start takes 50 ms at most. Test builds are many times slower.
const TIME: Duration = Duration::from_millis(if cfg!(debug_assertions) { 1000 } else { 20 });
/// Maximum time to wait for the database.
const WAIT: Duration = Duration::from_millis(10);
/// Maximum unread bytes of a session; `nmem import` reads larger ones.
const BYTES: u64 = 4 << 20;
/// Maximum folder depth below the folders of the newest sessions.
const DEPTH: usize = 2;

/// Reads what hooks missed before a session's start. Errors are only logged: the session must start.
pub fn catch_up(run: &Run, store: &Store, start: &Event) {
    if let Err(error) = newest_sessions(run, store, start) {
        log_error(&format!("past sessions were not read: {error:#}"));
    }
}

fn newest_sessions(run: &Run, store: &Store, start: &Event) -> Result<()> {
    let deadline = Deadline { at: Instant::now() + TIME, wait: WAIT };
    let agents = store.imported_agents()?;
    if agents.is_empty() {
        return Ok(());
    }
    let (own, cwd) = (start.session.as_str(), start.cwd.as_deref().unwrap_or_default());
    // A database may be large: its sessions wait for `nmem import`.
    let of_lines = |format: &PastFormat| matches!(format.source, PastSource::Lines);
    for format in platforms::formats().filter(|format| agents.contains(&format.platform) && of_lines(format)) {
        let Some(path) = newest(&format, run.config.home.as_deref(), cwd, deadline.at) else { continue };
        let known = store.imported_file(&path.display().to_string())?;
        let read = known.as_ref().filter(|known| known.version == format.version).map_or(0, |known| known.offset);
        // The format of a large new file may show late.
        if path.metadata().is_ok_and(|meta| meta.len().saturating_sub(read) > BYTES) {
            continue;
        }
        let Some(file) = find::session_file(&path, format.platform) else { continue };
        let names = file.session_names();
        let is_due = known.as_ref().is_none_or(|known| !file.is_unchanged(known));
        if is_due && !names.iter().any(|name| name == own) && !store.is_recorded_by_hooks(&names)? {
            let due = DueFile::new(file);
            let folder = Folder::new(due.head.folder().as_deref())?;
            let files = store.imported_alike(&due.file.name(), due.head.first_line)?;
            // Only the whole other file shows which lines of a continued session are copies.
            let is_copy = known.is_none() && !files.is_empty();
            let databases = Databases::new(run.config.files.value.folder());
            let mut target = Target { files, forgotten: store.forgotten()?, open: None };
            if folder.config.files.value.db == run.config.files.value.db && !is_copy {
                file::import(&folder, &due, &mut target, &mut AgentReport::default(), &databases, Some(deadline))?;
            }
        }
    }
    Ok(())
}

/// Returns the newest session file of a project, or `None` if time runs out during the search.
fn newest(format: &PastFormat, home: Option<&Path>, cwd: &str, until: Instant) -> Option<PathBuf> {
    let mut newest: Option<(SystemTime, PathBuf)> = None;
    let mut folders: Vec<(PathBuf, usize)> = Vec::new();
    for store in find::folders(format, home) {
        folders.extend((format.newest)(&store, cwd).into_iter().map(|folder| (folder, DEPTH)));
    }
    while let Some((folder, depth)) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if Instant::now() >= until {
                return None;
            }
            let (path, kind) = (entry.path(), entry.file_type().ok()?);
            if kind.is_dir() && depth > 0 {
                folders.push((path, depth - 1));
            } else if kind.is_file() && find::has_lines(&path) && !is_compressed(&path) && (format.session_file)(&path).is_none()
            {
                let modified = entry.metadata().and_then(|meta| meta.modified()).ok();
                if let Some(at) = modified.filter(|at| newest.as_ref().is_none_or(|(newest, _)| at > newest)) {
                    newest = Some((at, path));
                }
            }
        }
    }
    newest.map(|(_, path)| path)
}
