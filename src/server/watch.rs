//! Detects changes in the store: asks SQLite a few times a second whether anybody has written. Hooks are not involved.

use super::events::Listeners;
use super::state::Served;
use crate::files::{self, Identity};
use crate::ingest::{self, Caller, Run};
use crate::render::clean::line;
use crate::runtime::{log_error, redactor};
use crate::store::changes::{Marks, StoreChanges};
use crate::store::{PERSON_WAIT, Store, spool};
use anyhow::Result;
use serde_json::json;
use std::fs;
use std::time::{Duration, Instant};

/// Pause between two checks.
const LOOK: Duration = Duration::from_millis(200);
const PING: Duration = Duration::from_secs(15);

/// Notifies the pages of changes, until the process ends.
pub fn run(served: &Served, listeners: &Listeners) {
    let mut watched: Option<Watched> = None;
    let mut pinged = Instant::now();
    let mut last: Option<String> = None;
    loop {
        std::thread::sleep(LOOK);
        if !listeners.are_any() {
            watched = None;
            continue;
        }
        if pinged.elapsed() > PING {
            pinged = Instant::now();
            listeners.ping();
        }
        // The database may be replaced or locked; the next check opens it again. A lasting problem is logged once.
        let problem = look(served, listeners, &mut watched).err().map(|error| format!("{error:#}"));
        if problem.is_some() {
            watched = None;
        }
        if let Some(new) = problem.as_ref().filter(|new| last.as_ref() != Some(new)) {
            log_error(&format!("nmem serve cannot look for changes: {new}"));
        }
        last = problem;
    }
}

/// The watched store, and its state at the last check.
struct Watched {
    store: Store,
    /// Identity of the opened file: a restored or damaged database is another file at the same path.
    file: Option<Identity>,
    version: i64,
    marks: Marks,
}

fn look(served: &Served, listeners: &Listeners, watched: &mut Option<Watched>) -> Result<()> {
    let of = &served.config.files.value;
    if spool::is_waiting(of) {
        let redactor = redactor(&served.config)?;
        let run = Run::new(Caller::Program, &served.config, &redactor);
        ingest::drain(&run, &mut Store::open(of, PERSON_WAIT)?)?;
    }
    let file = fs::metadata(&of.db).ok().map(|meta| files::identity(&meta));
    let Some(known) = watched.as_mut().filter(|known| known.file == file) else {
        let Some(store) = Store::open_to_read(of, PERSON_WAIT)? else { return Ok(()) };
        *watched = Some(Watched { version: store.data_version()?, marks: store.marks()?, store, file });
        // Changes before this check are unknown.
        listeners.send("changed", "{}");
        return Ok(());
    };
    let version = known.store.data_version()?;
    if version == known.version {
        return Ok(());
    }
    known.version = version;
    let marks = known.store.marks()?;
    let StoreChanges { sessions, latest } = known.store.changes(served.scope(Some(&known.store)).project, known.marks)?;
    known.marks = marks;
    match sessions.is_empty() {
        // An edit, a deletion, or another project's work.
        true => listeners.send("changed", "{}"),
        false => {
            listeners.send("sessions", &json!({"sessions": sessions, "text": latest.map(|text| line(&text, 80))}).to_string())
        }
    }
    Ok(())
}
