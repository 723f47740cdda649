//! The way of an event, for hooks, for `nmem rad` and for past sessions: [`ingest`] is the list of its steps.
//!
//! Read in this order: `hook` (a payload and its settings), `run` (what all steps need to know), `decode`, `filter`,
//! `complete`, `persist` (with `transcript`, `rows` and `stored`), `segment`, `distil`, `upkeep`, `inject`; `tests` go
//! through all of them. Each step is one call in [`ingest`]. Rows and units are written in one transaction, so `persist`
//! takes `segment` as a parameter (ADR/0039).

mod complete;
mod decode;
mod distil;
mod filter;
pub mod hook;
mod inject;
mod persist;
mod rows;
mod run;
mod segment;
mod stored;
mod transcript;
mod upkeep;

pub use decode::Input;
pub use inject::start_limits;
pub use persist::{drain, store_event};
pub use run::{Caller, Run};
pub use segment::{end_of_stream, recount};

use crate::model::Event;
use crate::redact::Clean;
use anyhow::Result;

/// What came of an input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ingested {
    /// What a hook prints for the agent.
    pub answer: Option<String>,
    /// Why the events could not be stored; they wait in the spool, or are counted as lost.
    pub not_stored: Option<String>,
}

/// An event as the store accepts it: completed and redacted.
pub fn completed(run: &Run, event: Event) -> Clean<Event> {
    run.redactor.clean(complete::complete(run, filter::without_muted_text(event)))
}

/// Takes one event of a hook or of a program, or many of a past session, through every step.
///
/// # Errors
/// A payload that is no event; past events that could not be stored, of which then none is.
pub fn ingest(run: &Run, input: Input) -> Result<Ingested> {
    // The agent's JSON becomes events; tools on the skip list are none.
    let mut events: Vec<Event> = decode::decode(run, input)?;

    // Where the user switched recording off, nothing goes on; of a `#nomem` prompt no text does.
    events.retain(|event| !filter::is_paused(run, event));
    let events = events.into_iter().map(filter::without_muted_text);

    // What only the disk knows at this moment is added, and paths become relative.
    let events = events.map(|event| complete::complete(run, event));

    // From here on every text is clean: no other step can make a `Clean<Event>`.
    let events: Vec<Clean<Event>> = events.map(|event| run.redactor.clean(event)).collect();
    let Some(last) = events.last() else { return Ok(Ingested::default()) };

    // In one transaction rows are written and their work goes into units; what can't be stored waits in the spool.
    let mut persisted = persist::persist(run, &events, segment::segment)?;

    // Units in which something happened become memories: by rules, then by a model where one is due.
    distil::distil(run, &mut persisted, &events);

    // What is done once in a while: units that nobody closed, old tool uses, what the repository is.
    upkeep::upkeep(run, &mut persisted, last);

    // What the agent is given of earlier work: at a start, at a prompt, or before it edits a file.
    let answer = inject::inject(run, &mut persisted, last)?;

    Ok(Ingested { answer, not_stored: persisted.leave() })
}

#[cfg(test)]
mod tests;
