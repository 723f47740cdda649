//! Session-start catch-up: reads the part of the newest session that hooks missed, for agents whose sessions were
//! imported before.

use super::file::{self, Deadline, DueFile};
use super::find::{self, is_compressed};
use super::lines::Databases;
use super::target::{AgentReport, Folder, Target};
use crate::ingest::run::Run;
use crate::model::{Event, EventKind};
use crate::platforms;
use crate::platforms::past::{PastFormat, PastSource};
use crate::runtime::log_error;
use crate::store::Store;
use anyhow::Result;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Maximum time for all agents together. A session start takes 50 ms at most. Test builds are many times slower.
const TIME: Duration = Duration::from_millis(if cfg!(debug_assertions) { 1000 } else { 20 });
/// Maximum time to wait for the database.
const WAIT: Duration = Duration::from_millis(10);
/// Maximum unread bytes of a session; `nmem import` reads larger ones.
const BYTES: u64 = 4 << 20;
/// Maximum folder depth below the folders of the newest sessions.
const DEPTH: usize = 2;

/// Reads what hooks missed, if an event starts a session. Errors are only logged: the session must start.
pub fn catch_up(run: &Run, events: &[Event]) {
    let Some(start) = events.iter().find(|event| matches!(event.what, EventKind::SessionStarted(_))) else { return };
    if let Err(error) = newest_sessions(run, start) {
        log_error(&format!("past sessions were not read: {error:#}"));
    }
}

fn newest_sessions(run: &Run, start: &Event) -> Result<()> {
    let deadline = Deadline { at: Instant::now() + TIME, wait: WAIT };
    let Some(store) = Store::open_to_read(&run.config.files.value, WAIT)? else { return Ok(()) };
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
