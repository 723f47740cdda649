//! What a session start does: reads what hooks missed of the newest session, of agents whose sessions were imported once.

use super::file::{self, Deadline, DueFile};
use super::find::{self, FoundFile, Stores};
use super::report::AgentReport;
use super::target::{Folder, Target};
use crate::ingest::Run;
use crate::platforms::FORMATS;
use crate::platforms::past::PastFormat;
use crate::runtime::log_error;
use crate::store::Store;
use anyhow::Result;
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time for all agents together. A session start takes 50 ms at most. Builds for tests are many times slower.
const TIME: Duration = Duration::from_millis(if cfg!(debug_assertions) { 1000 } else { 20 });
/// How long to wait for the database.
const WAIT: Duration = Duration::from_millis(10);
/// Maximum unread bytes of a session; more is left to `nmem import`.
const BYTES: u64 = 4 << 20;
/// Maximum depth of folders below those of the newest sessions.
const DEPTH: usize = 2;

/// Reads what hooks missed, for the session start with a payload. Errors are logged: the session must start.
pub fn catch_up(run: &Run, payload: &Value) {
    if payload["hook_event_name"] != "SessionStart" {
        return;
    }
    if let Err(error) = newest_sessions(run, payload) {
        log_error(&format!("past sessions were not read: {error:#}"));
    }
}

fn newest_sessions(run: &Run, payload: &Value) -> Result<()> {
    let deadline = Deadline { at: Instant::now() + TIME, wait: WAIT };
    let Some(store) = Store::open_to_read(&run.config.files.value, WAIT)? else { return Ok(()) };
    let agents = store.imported_agents()?;
    if agents.is_empty() {
        return Ok(());
    }
    let (own, cwd) = (payload["session_id"].as_str().unwrap_or_default(), payload["cwd"].as_str().unwrap_or_default());
    for format in FORMATS.iter().filter(|format| agents.contains(&format.platform)) {
        let Some(file) = newest(format, run.config.home.as_deref(), cwd, deadline.at) else { continue };
        let known = store.imported_file(&file.name())?;
        let read = known.as_ref().filter(|known| known.version == format.version).map_or(0, |known| known.offset);
        let names = file.session_names();
        let is_due = known.is_none_or(|known| !file.is_unchanged(&known)) && file.length.saturating_sub(read) <= BYTES;
        if is_due && !names.iter().any(|name| name == own) && !store.is_recorded_by_hooks(&names)? {
            let due = DueFile::new(file);
            let folder = Folder::new(due.head.folder().as_deref())?;
            let mut target = Target { files: store.imported_files()?, forgotten: store.forgotten()?, open: None };
            if folder.config.files.value.db == run.config.files.value.db {
                file::import(&folder, &due, &mut target, &mut AgentReport::default(), Some(deadline))?;
            }
        }
    }
    Ok(())
}

/// The newest session file of a project.
fn newest(format: &PastFormat, home: Option<&Path>, cwd: &str, until: Instant) -> Option<FoundFile> {
    let mut newest: Option<(std::time::SystemTime, std::path::PathBuf)> = None;
    for folder in find::folders(format, home).iter().flat_map(|store| (format.newest)(store, cwd)) {
        find::walk(&folder, DEPTH, &mut |path| {
            if Instant::now() < until && find::has_lines(path) && (format.session_file)(path).is_none() {
                let modified = path.metadata().and_then(|meta| meta.modified()).ok();
                if let Some(at) = modified.filter(|at| newest.as_ref().is_none_or(|(newest, _)| at > newest)) {
                    newest = Some((at, path.to_path_buf()));
                }
            }
        });
    }
    let mut found = Stores::default();
    find::add(&newest?.1, Some(format.platform), &Default::default(), &mut found);
    found.files.pop()
}
