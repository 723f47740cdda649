//! After an event is stored: distillation, housekeeping, team sync. Errors are logged; the next run tries again.

use super::persist::{self, Persisted};
use super::run::{Caller, Run};
use crate::config::environment;
use crate::distil::distiller::Distiller;
use crate::distil::embed::embed_at_stop;
use crate::distil::observer::llm_at_stop;
use crate::files;
use crate::llm::guard::Guarded;
use crate::model::{Event, EventKind, Millis, Platform, Program};
use crate::project::about::about;
use crate::redact::Clean;
use crate::runtime::log_error;
use crate::store::Store;
use crate::store::rule_memories::DueUnit;
use crate::store::rule_memories::Gone;
use anyhow::{Context, Result, anyhow};
use serde_json::Value;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

/// Milliseconds after its last event during which a session distils its own open units.
const AT_WORK: Millis = 30 * 60_000;
/// Maximum units to distil per turn end, of a session that session-start catch-up has read.
const CAUGHT_UP: usize = 2;

/// Distils the units that the events made due; each unit once, even for many events.
pub fn distil(run: &Run, persisted: &mut Persisted, events: &[Clean<Event>]) {
    let Persisted::Stored(store) = persisted else { return };
    by_rules(run, store, events);
    index(run, store, events);
    let [event] = events else { return };
    if run.caller != Caller::History && matches!(event.what, EventKind::TurnEnded { error: None, .. }) {
        let ignored = run.config.ignored();
        llm_at_stop(run.config, &distiller(run, &ignored), store, event);
        embed_at_stop(run.config, run.redactor, store, event, run.now);
        index(run, store, events);
    }
}

/// Maximum texts to index at a turn's end: more than a turn adds.
const INDEXED: usize = 200;

/// Indexes the texts that the turn has added, so that no search has to.
fn index(run: &Run, store: &mut Store, events: &[Clean<Event>]) {
    let most = if run.caller == Caller::Hook { INDEXED } else { usize::MAX };
    if run.distils
        && events.iter().any(|event| is_due(run, event))
        && let Err(error) = store.index_waiting(most, &mut |_| ())
    {
        log_error(&format!("texts were not indexed: {error:#}"));
    }
}

fn by_rules(run: &Run, store: &mut Store, events: &[Clean<Event>]) {
    let ignored = run.config.ignored();
    if !run.distils || !events.iter().any(|event| is_due(run, event)) {
        return;
    }
    let distil = || {
        let mut due = store.read(|store| due(run, store, events))?;
        let is_turn_end =
            run.caller == Caller::Hook && events.iter().any(|event| matches!(event.what, EventKind::TurnEnded { .. }));
        match if is_turn_end { store.due_of_caught_up(CAUGHT_UP)? } else { None } {
            Some((session, units)) if units.is_empty() => store.clear_caught_up(session)?,
            Some((_, units)) => due.extend(units),
            None => {}
        }
        if due.is_empty() { Ok(0) } else { distiller(run, &ignored).distil(store, &due) }
    };
    let done = catch_unwind(AssertUnwindSafe(distil)).unwrap_or_else(|_| Err(anyhow!("panic while distilling")));
    if let Err(error) = done {
        log_error(&format!("distillation by rules failed: {error:#}"));
    }
}

/// Returns true if an event triggers distillation.
fn is_due(run: &Run, event: &Event) -> bool {
    let ends = matches!(event.what, EventKind::TurnEnded { .. } | EventKind::SessionEnded { .. } | EventKind::Compacting);
    ends || starts(run, event)
}

fn starts(run: &Run, event: &Event) -> bool {
    matches!(event.what, EventKind::SessionStarted(_)) && run.caller != Caller::History
}

fn due(run: &Run, store: &Store, events: &[Clean<Event>]) -> Result<Vec<DueUnit>> {
    // After a compaction, a session gets its own state back, so its units are distilled first.
    let own = events.iter().filter(|event| is_due(run, event));
    let sessions: BTreeSet<(&str, &str)> = own.map(|event| (event.platform.name(), event.session.as_str())).collect();
    let mut due = Vec::new();
    for (platform, session) in sessions {
        let platform = Platform::from_name(platform).expect("the name came from a platform");
        due.extend(store.due_in_session(platform, session)?);
    }
    for event in events.iter().filter(|event| starts(run, event)) {
        if let Some(project) = store.project_of(event.platform, &event.session)? {
            due.extend(store.due_in_project(project.id, run.now - AT_WORK)?);
        }
    }
    Ok(due)
}

fn distiller<'a>(run: &'a Run, ignored: &'a [String]) -> Distiller<'a> {
    Distiller {
        redactor: run.redactor,
        home: run.home(),
        ignored,
        now: run.now,
        gone: Gone::Deleted,
        agent_notes: run.config.agent_notes.value,
    }
}

const DAY: Millis = 86_400_000;
/// Maximum batches of old tool uses to delete per session end: more than a session adds.
const TRIMMED: usize = 10;
/// Time to merge a text index per session end: a few pages. Three ends merge each index once.
const MERGING: Duration = Duration::from_micros(150);

/// Runs the housekeeping that is due at a session start or end.
pub fn upkeep(run: &Run, persisted: &mut Persisted, event: &Event) {
    let Persisted::Stored(store) = persisted else { return };
    if run.caller == Caller::History {
        return;
    }
    let logged = |what: &str, done: Result<()>| {
        if let Err(error) = done {
            log_error(&format!("{what}: {error:#}"));
        }
    };
    match event.what {
        EventKind::SessionStarted(_) => logged("orphaned units were not closed", close_orphans(store, event)),
        EventKind::SessionEnded { .. } => {
            logged("old tool uses were not deleted", trim(run, store));
            store.remove_unfinished();
            logged("a text index was not merged", store.merge_index(run.now as usize, MERGING));
            logged("facts about the repository were not stored", look_at_repository(run, store, event));
        }
        _ => {}
    }
}

/// Closes orphaned units of this project.
fn close_orphans(store: &mut Store, event: &Event) -> Result<()> {
    let left = store.left_open(event.platform, &event.session)?;
    let closed = left.iter().filter_map(|l| Some((l, l.closed_by(l.client.and_then(files::is_alive), event.at)?)));
    let closed: Vec<_> = closed.collect();
    if closed.is_empty() {
        return Ok(());
    }
    store.write(|tx| {
        let close = |(left, by): &(&crate::store::LeftOpen, _)| persist::close_units(tx, left.session, *by, left.heard_of);
        closed.iter().try_for_each(close)
    })
}

/// Applies retention: deletes a few batches of old tool uses.
fn trim(run: &Run, store: &mut Store) -> Result<()> {
    let days = Millis::from(run.config.tool_uses_days.value);
    if days > 0 { store.trim_tool_uses(run.now - days * DAY, TRIMMED).map(drop) } else { Ok(()) }
}

/// Reads facts about the project's repository, once a day.
fn look_at_repository(run: &Run, store: &mut Store, event: &Event) -> Result<()> {
    let Some(project) = store.project_of(event.platform, &event.session)? else { return Ok(()) };
    if project.about.as_ref().is_some_and(|(_, at)| run.now - at < DAY) {
        return Ok(());
    }
    let root = Path::new(&project.root);
    if root.is_dir() { store.set_about(project.id, &about(root), run.now) } else { Ok(()) }
}

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
    let arguments = ["sync", "--in-hook", "--project", folder].map(String::from);
    let child = Guarded::start(&program, &arguments, &[], String::new());
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
    let home = folder.clone();
    Ok(Some(Program { guard: path.clone(), path, folder, home, agent_folder: None, settings: Value::Null, hidden }))
}
