//! Step 9: syncs the team memory at a session start and at a turn end, if the user's config asks for it and the last
//! sync was more than an hour ago. `nmem sync` runs as a guarded child: no database driver code runs in the hook's own
//! process, and an unreachable server costs at most two seconds.

use super::persist::Persisted;
use super::run::{Caller, Run};
use crate::config::environment;
use crate::llm::guard::Guarded;
use crate::model::{Event, EventKind, Millis, Program};
use crate::runtime::log_error;
use crate::store::Store;
use anyhow::{Context, Result};
use std::time::Duration;

/// Maximum time that a hook waits for a sync.
const LIMIT: Duration = Duration::from_secs(2);
/// Maximum bytes of the child's output.
const PRINTED: u64 = 64 * 1024;
/// Time between syncs, and the pause after a failed one, in milliseconds.
const OFTEN: Millis = 60 * 60_000;
const PAUSE: Millis = 30 * 60_000;

/// Syncs the team memory if a sync is due.
pub fn team_sync(run: &Run, persisted: &mut Persisted, event: &Event) {
    let is_moment = matches!(event.what, EventKind::SessionStarted(_) | EventKind::TurnEnded { error: None, .. });
    if run.caller != Caller::Hook || !is_moment || !run.config.team.syncs_in_sessions() {
        return;
    }
    let Persisted::Stored(store) = persisted else { return };
    if let Err(error) = sync_if_due(run, store, event) {
        log_error(&format!("team memory was not synced: {error:#}"));
    }
}

fn sync_if_due(run: &Run, store: &mut Store, event: &Event) -> Result<()> {
    let last = store.last_sync()?;
    // A timestamp in the future means that the clock was set back.
    let is_within = |at: Option<Millis>, time: Millis| at.is_some_and(|at| at <= run.now && run.now - at < time);
    if is_within(last.done_at, OFTEN) || is_within(last.failed_at, PAUSE) {
        return Ok(());
    }
    let Some(program) = program(run)? else { return Ok(()) };
    let folder = event.cwd.as_deref().unwrap_or("/");
    let child = Guarded::start(&program, &["sync", "--in-hook", "--project", folder], String::new());
    let ended = child.context("nmem cannot be started")?.output(LIMIT, PRINTED);
    // The child records its own failures, unless it was killed.
    if let Err(error) = ended
        && store.last_sync()? == last
    {
        let why = if error.outcome == "timeout" { "not finished within 2 s".to_string() } else { error.what };
        store.note_sync(Some(&format!("{why}; `nmem sync` takes the time that it needs")), run.now)?;
    }
    Ok(())
}

/// The nmem program itself, without the environment variables that the hook's project set; `None` if they are unknown.
fn program(run: &Run) -> Result<Option<Program>> {
    let Some(mut hidden) = environment::set_by_project() else { return Ok(None) };
    for name in ["NMEM_DB", "NMEM_CONFIG"] {
        if environment::path(name)?.is_none() {
            hidden.push(name.to_string());
        }
    }
    let path = std::env::current_exe()?;
    let folder = run.config.files.value.folder().to_path_buf();
    Ok(Some(Program { guard: path.clone(), path, folder, hidden }))
}
