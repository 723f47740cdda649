//! Step 8: housekeeping at a session's start and end. It never undoes what is stored; a failure is logged, and the next
//! session tries again.

use super::persist::Persisted;
use super::run::{Caller, Run};
use super::segment;
use crate::model::{Event, Happening, Millis};
use crate::project::about::about;
use crate::project::client;
use crate::runtime::log_error;
use crate::store::Store;
use anyhow::Result;
use std::path::Path;

const DAY: Millis = 86_400_000;
/// Batches of old tool uses that go at one session's end: more than a session adds.
const TRIMMED: usize = 10;
/// Pages of each text index that are merged at one session's end: more than a session adds.
const MERGED: i64 = 64;

/// Does what is due at a session's start or end.
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
        Happening::SessionStarted(_) => logged("units that were left open were not closed", close_orphans(store, event)),
        Happening::SessionEnded { .. } => {
            logged("old tool uses were not trimmed", trim(run, store));
            logged("text indexes were not merged", store.merge_indexes(MERGED));
            logged("what the repository is was not kept", look_at_repository(run, store, event));
        }
        _ => {}
    }
}

/// Closes units of this project whose client is gone, or of which nothing was heard for long.
fn close_orphans(store: &mut Store, event: &Event) -> Result<()> {
    let left = store.left_open(event.platform, &event.session)?;
    let closed = left.iter().filter_map(|l| Some((l, l.closed_by(l.client.and_then(client::is_alive), event.at)?)));
    let closed: Vec<_> = closed.collect();
    if closed.is_empty() {
        return Ok(());
    }
    store.write(|tx| {
        let close = |(left, by): &(&crate::store::LeftOpen, _)| segment::close(tx, left.session, *by, left.heard_of);
        closed.iter().try_for_each(close)
    })
}

/// Raw tool uses go after their time, a few at each session's end.
fn trim(run: &Run, store: &mut Store) -> Result<()> {
    let days = Millis::from(run.config.tool_uses_days.value);
    if days > 0 { store.trim_tool_uses(run.now - days * DAY, TRIMMED).map(drop) } else { Ok(()) }
}

/// Once a day it is looked at what a project's repository is.
fn look_at_repository(run: &Run, store: &mut Store, event: &Event) -> Result<()> {
    let Some(project) = store.project_of(event.platform, &event.session)? else { return Ok(()) };
    if project.about.as_ref().is_some_and(|(_, at)| run.now - at < DAY) {
        return Ok(());
    }
    let root = Path::new(&project.root);
    if root.is_dir() { store.set_about(project.id, &about(root), run.now) } else { Ok(()) }
}
