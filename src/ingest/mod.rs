//! The event pipeline for hooks, `nmem rad` and past sessions. [`ingest`] lists its steps.
//!
//! Read in this order: `hook` (entry point of hooks), `run` (input of all steps), `decode`, `filter`, `complete`,
//! `persist` (with `transcript`, `rows` and `stored`), `segment`, `distil`, `upkeep`, `team_sync`, `inject`; `tests`
//! cover the whole pipeline. Each step is one call in [`ingest`]. Rows and units are written in one transaction, so
//! `persist` takes `segment` as a parameter (ADR/0039).

mod complete;
mod decode;
mod distil;
pub mod filter;
pub mod hook;
mod inject;
mod persist;
mod rows;
mod run;
mod segment;
mod stored;
mod team_sync;
mod transcript;
mod upkeep;

pub use decode::Input;
pub use persist::{drain, reader, store_event};
pub use run::{Caller, Run};
pub use segment::{end_of_stream, recount};

use crate::model::Event;
use crate::platforms::adapter::HookAnswer;
use crate::redact::Clean;
use anyhow::Result;

/// The result of ingesting an input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ingested {
    /// Answer for the agent that called the hook.
    pub answer: Option<HookAnswer>,
    /// The reason why the events could not be stored. They wait in the spool, or count as lost.
    pub not_stored: Option<String>,
}

/// Completes and redacts an event, as the store requires.
pub fn completed(run: &Run, event: Event) -> Clean<Event> {
    run.redactor.clean(complete::complete(run, filter::without_muted_text(event)))
}

/// Runs an event from a hook or program, or all events of a past session, through every step.
///
/// # Errors
///
/// An invalid payload, or past events that could not be stored. In that case, none of them is stored.
pub fn ingest(run: &Run, input: Input) -> Result<Ingested> {
    // Decode the agent's JSON. Tools on the skip list yield no events.
    let mut events: Vec<Event> = decode::decode(run, input)?;

    // Drop events while recording is paused, and the text of `#nomem` prompts.
    let paused: Vec<Event> = events.extract_if(.., |event| filter::is_paused(run, event)).collect();
    let events = events.into_iter().map(filter::without_muted_text);

    // Add state that is available only now, and make paths relative.
    let events = events.map(|event| complete::complete(run, event));

    // Redact. No other step can create a `Clean<Event>`.
    let events: Vec<Clean<Event>> = events.map(|event| run.redactor.clean(event)).collect();
    let Some(last) = events.last() else {
        return Ok(Ingested { answer: inject::while_paused(run, &paused), ..Ingested::default() });
    };

    // Write rows and assign them to units, in one transaction. Events that cannot be stored wait in the spool.
    let mut persisted = persist::persist(run, &events, segment::segment)?;

    // Distil changed units into memories: by rules, then by a model if one is due.
    distil::distil(run, &mut persisted, &events);

    // Housekeeping: orphaned units, retention, facts about the repository.
    upkeep::upkeep(run, &mut persisted, last);

    // Exchange memories with the team, if the user asked for it and an hour has passed.
    team_sync::team_sync(run, &mut persisted, last);

    // Inject context at a session start, at a prompt, or before an edit.
    let mut answers = events.iter().map(|event| inject::inject(run, &mut persisted, event));
    let answer = answers.find_map(Result::transpose).transpose()?;

    Ok(Ingested { answer, not_stored: persisted.leave(run.caller) })
}

#[cfg(test)]
mod tests;
