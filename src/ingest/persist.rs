//! Step 5: writes rows in one transaction, after the events that wait in the spool. Events that cannot be stored are
//! added to the spool.
//!
//! Hooks avoid losing events: if the database is locked, full or newer, the event goes to the spool; a broken database
//! is set aside and replaced. Only if nothing is writable is the event lost, and counted (ADR/0010).

use super::rows;
use super::run::{Caller, Run};
use super::stored::StoredRows;
use super::{segment, transcript};
use crate::model::Event;
use crate::redact::Clean;
use crate::runtime::log_error;
use crate::store::sessions::{Identify, TranscriptRead};
use crate::store::{self, HOOK_WAIT, PERSON_WAIT, Store, Tx, spool};
use anyhow::{Result, anyhow};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Location of the events after this step. There is one value per process, so its size does not matter.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)]
pub enum Persisted {
    /// In the database, which remains open for the next steps.
    Stored(Store),
    /// In the spool or lost; holds the reason.
    NotStored(String),
    /// Nowhere: the agent only asked for context.
    Question,
}

impl Persisted {
    /// Closes the database if more events may follow; otherwise leaves it open until the process exits. Returns the
    /// reason if nothing was stored.
    pub fn leave(self, caller: Caller) -> Option<String> {
        match self {
            Persisted::Stored(_) if caller == Caller::History => None,
            Persisted::Stored(store) => {
                store.exit_without_close();
                None
            }
            Persisted::NotStored(why) => Some(why),
            Persisted::Question => None,
        }
    }
}

/// Assigns a stored event to its unit, in the same transaction.
pub type Segment = fn(&Tx, &StoredRows) -> Result<()>;

/// Stores events in one transaction.
///
/// # Errors
///
/// Fails only for past events, which can be read again. In that case, none of them is stored.
pub fn persist(run: &Run, events: &[Clean<Event>], segment: Segment) -> Result<Persisted> {
    if events.iter().all(|event| event.what.is_question()) {
        return Ok(Persisted::Question);
    }
    let stored =
        catch_unwind(AssertUnwindSafe(|| store(run, events, segment))).unwrap_or_else(|_| Err(anyhow!("panic while storing")));
    match stored {
        Ok(store) => Ok(Persisted::Stored(store)),
        Err(error) if run.caller == Caller::History => Err(error),
        Err(error) => Ok(Persisted::NotStored(keep(run, events, &error))),
    }
}

/// Adds events to the spool, or counts them as lost. Returns the reason why the database is unavailable.
fn keep(run: &Run, events: &[Clean<Event>], error: &anyhow::Error) -> String {
    let files = &run.config.files.value;
    match events.iter().try_for_each(|event| spool::append(files, event)) {
        Ok(()) => {
            log_error(&format!("kept in the spool: {error:#}"));
            format!("{}; events are kept and stored later", store::reason(error))
        }
        Err(lost) => {
            log_error(&format!("{error:#}; {lost:#}"));
            format!("{}; nothing is writable, so events are being lost", store::reason(error))
        }
    }
}

/// Stores all events or none. If the database is broken, sets it aside and stores the events in a new one.
fn store(run: &Run, events: &[Clean<Event>], segment: Segment) -> Result<Store> {
    let (files, wait) = (&run.config.files.value, run.wait);
    let mut store = Store::open(files, wait)?;
    match write(run, &mut store, events, segment) {
        Ok(()) => Ok(store),
        // On a full disk a checkpoint frees space; try once more.
        Err(error) if store::is_full(&error) => {
            store.checkpoint();
            write(run, &mut store, events, segment).map(|()| store)
        }
        Err(error) => {
            if !store.set_aside_if_broken(&error)? {
                return Err(error);
            }
            let mut store = Store::open(files, wait)?;
            write(run, &mut store, events, segment)?;
            Ok(store)
        }
    }
}

fn write(run: &Run, store: &mut Store, events: &[Clean<Event>], segment: Segment) -> Result<()> {
    let read = |store: &Store, event: &Clean<Event>| transcript::read(run, store, event);
    let reads: Vec<Option<TranscriptRead>> = events.iter().map(|event| read(store, event)).collect::<Result<_>>()?;
    let projects = run.projects();
    let identify: Identify = &|event| projects.of_event(event);
    let one = |tx: &Tx, event: &Clean<Event>, read: Option<&TranscriptRead>| {
        let stored = rows::store(tx, event, read, identify)?;
        segment(tx, &stored)
    };
    let all = |tx: &Tx| events.iter().zip(&reads).try_for_each(|(event, read)| one(tx, event, read.as_ref()));
    if spool::is_waiting(&run.config.files.value) {
        store.write_after_spool(run.redactor, &|tx, event| one(tx, event, None), all)
    } else {
        store.write(all)
    }
}

/// Stores one event and assigns it to a unit, inside the caller's transaction.
pub fn store_event(tx: &Tx, event: &Clean<Event>, read: Option<&TranscriptRead>, identify: Identify) -> Result<()> {
    segment::segment(tx, &rows::store(tx, event, read, identify)?)
}

/// Opens the store for a program that reads, after draining the spool; `None` if nothing was ever recorded. Events that
/// cannot be drained, because the database is locked or read-only, remain in the spool.
pub fn reader(run: &Run) -> Result<Option<Store>> {
    let files = &run.config.files.value;
    if spool::is_waiting(files) {
        let drained = Store::open(files, HOOK_WAIT).and_then(|mut store| drain(run, &mut store));
        drained.unwrap_or_else(|error| log_error(&format!("waiting events could not be stored: {error:#}")));
    }
    Store::open_to_read(files, PERSON_WAIT)
}

/// Stores the events that wait in the spool.
pub fn drain(run: &Run, store: &mut Store) -> Result<()> {
    if !spool::is_waiting(&run.config.files.value) {
        return Ok(());
    }
    let projects = run.projects();
    let identify: Identify = &|event| projects.of_event(event);
    let one = |tx: &Tx, event: &Clean<Event>| store_event(tx, event, None, identify);
    store.write_after_spool(run.redactor, &one, |_| Ok(()))
}
