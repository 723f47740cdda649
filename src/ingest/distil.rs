//! Step 7: units in which something happened become memories. Rules run at the end of a turn, a session or a conversation,
//! and at a start for what others left; then, at a turn's end, the models that the user names, where a call is due. The
//! events are safe by now: what goes wrong here is logged, and done the next time.

use super::persist::Persisted;
use super::run::{Caller, Run};
use crate::distil::{Distiller, embed_at_stop, llm_at_stop};
use crate::model::{Event, Happening, Millis, Platform};
use crate::redact::Clean;
use crate::runtime::log_error;
use crate::store::Store;
use crate::store::memories::DueUnit;
use anyhow::{Result, anyhow};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A session that was heard of so long ago may be at work: its open unit is left to it.
const AT_WORK: Millis = 30 * 60_000;

/// Distils what the events have made due; of many events each unit once.
pub fn distil(run: &Run, persisted: &mut Persisted, events: &[Clean<Event>]) {
    let Persisted::Stored(store) = persisted else { return };
    by_rules(run, store, events);
    let [event] = events else { return };
    if run.caller != Caller::History && matches!(event.what, Happening::TurnEnded { error: None, .. }) {
        let ignored = run.config.ignored();
        llm_at_stop(run.config, &distiller(run, &ignored), store, event);
        embed_at_stop(run.config, run.redactor, store, event, run.now);
    }
}

fn by_rules(run: &Run, store: &mut Store, events: &[Clean<Event>]) {
    let ignored = run.config.ignored();
    if !events.iter().any(|event| is_due(run, event)) {
        return;
    }
    let distil = || {
        let due = store.read(|store| due(run, store, events))?;
        if due.is_empty() { Ok(0) } else { distiller(run, &ignored).distil(store, &due) }
    };
    let done = catch_unwind(AssertUnwindSafe(distil)).unwrap_or_else(|_| Err(anyhow!("panic while distilling")));
    if let Err(error) = done {
        log_error(&format!("no memories were drawn: {error:#}"));
    }
}

/// Whether an event is the moment for it.
fn is_due(run: &Run, event: &Event) -> bool {
    let ends = matches!(event.what, Happening::TurnEnded { .. } | Happening::SessionEnded { .. } | Happening::Compacting);
    ends || starts(run, event)
}

fn starts(run: &Run, event: &Event) -> bool {
    matches!(event.what, Happening::SessionStarted(_)) && run.caller != Caller::History
}

fn due(run: &Run, store: &Store, events: &[Clean<Event>]) -> Result<Vec<DueUnit>> {
    // A session that goes on behind a compaction is told of itself.
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
    Distiller { redactor: run.redactor, home: run.home(), ignored, now: run.now }
}
