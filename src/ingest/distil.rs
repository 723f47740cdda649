//! Step 7: distils units into memories. Rules run at the end of a turn, session or conversation, and at a session start
//! for units of other sessions. Models then run at the end of a turn, if configured and due. The events are already
//! stored: an error here is logged, and the next run tries again.

use super::persist::Persisted;
use super::run::{Caller, Run};
use crate::distil::{Distiller, embed_at_stop, llm_at_stop};
use crate::model::{Event, EventKind, Millis, Platform};
use crate::redact::Clean;
use crate::runtime::log_error;
use crate::store::Store;
use crate::store::memories::DueUnit;
use crate::store::memories::Gone;
use anyhow::{Result, anyhow};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Milliseconds after its last event during which a session distils its own open units.
const AT_WORK: Millis = 30 * 60_000;
/// Maximum units to distil per turn end, of a session that session-start catch-up has read.
const CAUGHT_UP: usize = 2;

/// Distils the units that the events made due; each unit once, even for many events.
pub fn distil(run: &Run, persisted: &mut Persisted, events: &[Clean<Event>]) {
    let Persisted::Stored(store) = persisted else { return };
    by_rules(run, store, events);
    let [event] = events else { return };
    if run.caller != Caller::History && matches!(event.what, EventKind::TurnEnded { error: None, .. }) {
        let ignored = run.config.ignored();
        llm_at_stop(run.config, &distiller(run, &ignored), store, event);
        embed_at_stop(run.config, run.redactor, store, event, run.now);
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
    Distiller { redactor: run.redactor, home: run.home(), ignored, now: run.now, gone: Gone::Deleted }
}
