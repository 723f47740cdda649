//! Step 8: housekeeping at a session start and end. Errors are logged and never affect stored data; the next session
//! tries again.

use super::persist::Persisted;
use super::run::{Caller, Run};
use super::segment;
use crate::model::{Event, EventKind, Millis};
use crate::project::about::about;
use crate::project::client;
use crate::runtime::log_error;
use crate::store::Store;
use anyhow::Result;
use std::path::Path;

const DAY: Millis = 86_400_000;
/// Maximum batches of old tool uses to delete per session end: more than a session adds.
const TRIMMED: usize = 10;
/// Maximum index pages to merge per session end: more than a session adds.
const MERGED: i64 = 64;

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
            logged("text indexes were not merged", store.merge_indexes(MERGED));
            logged("facts about the repository were not stored", look_at_repository(run, store, event));
        }
        _ => {}
    }
}

/// Closes orphaned units of this project.
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
