//! Stores events with their steps and units in one transaction. A hook never loses an event: a locked, full or newer
//! database sends it to the spool, a broken one is set aside and replaced.

use super::complete;
use super::run::{self, Caller, Run};
use crate::command_kind;
use crate::index_text::INDEX_TEXT_VERSION;
use crate::model::{BackgroundEnd, ClosedBy, Event, EventKind, Files, Millis, ProjectId, StartSource, ToolUse, UserAnswer};
use crate::redact::Clean;
use crate::runtime::log_error;
use crate::segmentation::{self, StepRow, StoredToolUse, is_due};
use crate::store::events::{StoredSession, TranscriptRead};
use crate::store::{self, HOOK_WAIT, PERSON_WAIT, Store, Tx, spool};
use anyhow::{Context, Result, anyhow};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

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

/// Stores events in one transaction.
///
/// # Errors
///
/// Fails only for past events, which can be read again. In that case, none of them is stored.
pub fn persist(run: &Run, events: &[Clean<Event>]) -> Result<Persisted> {
    if events.iter().all(|event| event.what.is_question()) {
        return Ok(Persisted::Question);
    }
    let stored = catch_unwind(AssertUnwindSafe(|| store(run, events))).unwrap_or_else(|_| Err(anyhow!("panic while storing")));
    match stored {
        Ok(store) => Ok(Persisted::Stored(store)),
        Err(error) if run.caller == Caller::History => Err(error),
        Err(error) => Ok(Persisted::NotStored(put_in_spool(run, events, &error))),
    }
}

/// Adds events to the spool, or counts them as lost. Returns the reason why the database is unavailable.
fn put_in_spool(run: &Run, events: &[Clean<Event>], error: &anyhow::Error) -> String {
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
fn store(run: &Run, events: &[Clean<Event>]) -> Result<Store> {
    let (files, wait) = (&run.config.files.value, run.wait);
    let mut store = Store::open(files, wait)?;
    match write(run, &mut store, events) {
        Ok(()) => Ok(store),
        // On a full disk a checkpoint frees space; try once more.
        Err(error) if store::is_full(&error) => {
            store.checkpoint();
            write(run, &mut store, events).map(|()| store)
        }
        Err(error) => {
            if !store.set_aside_if_broken(&error)? {
                return Err(error);
            }
            let mut store = Store::open(files, wait)?;
            write(run, &mut store, events)?;
            Ok(store)
        }
    }
}

fn write(run: &Run, store: &mut Store, events: &[Clean<Event>]) -> Result<()> {
    let read = |store: &Store, event: &Clean<Event>| complete::read_transcript(run, store, event);
    let reads: Vec<Option<TranscriptRead>> = events.iter().map(|event| read(store, event)).collect::<Result<_>>()?;
    let identify = identify(run);
    let one = |tx: &Tx, event: &Clean<Event>, read: Option<&TranscriptRead>| store_event(tx, event, read, &identify);
    let all = |tx: &Tx| events.iter().zip(&reads).try_for_each(|(event, read)| one(tx, event, read.as_ref()));
    if spool::is_waiting(&run.config.files.value) {
        store.write_after_spool(run.redactor, &|tx, event| one(tx, event, None), all)
    } else {
        store.write(all)
    }
}

/// The place whose project is asked for.
#[derive(Clone, Copy, Debug)]
pub enum WorkPlace<'a> {
    /// The folder of an event.
    Event(&'a Event),
    /// Root of a repository in which a session works, and that of the session's own project.
    Repository(&'a str, Option<&'a str>),
}

/// Identifies a project; `None` if the place has none, or belongs to the session's own project.
pub type Identify<'a> = dyn Fn(WorkPlace) -> Option<Clean<ProjectId>> + 'a;

fn identify<'a>(run: &Run<'a>) -> impl Fn(WorkPlace) -> Option<Clean<ProjectId>> + use<'a> {
    let projects = run.projects();
    move |place| match place {
        WorkPlace::Event(event) => projects.of_event(event),
        WorkPlace::Repository(root, own) => projects.elsewhere(root, own),
    }
}

/// Stores one event and assigns it to a unit, inside the caller's transaction. `identify` is asked only for a session
/// without a project, and for work in another repository: it reads the repository.
pub fn store_event(tx: &Tx, event: &Clean<Event>, read: Option<&TranscriptRead>, identify: &Identify) -> Result<()> {
    for missed in read.iter().flat_map(|read| &read.missed) {
        store_alone(tx, missed, None, identify)?;
    }
    store_alone(tx, event, read, identify)
}

fn store_alone(tx: &Tx, event: &Clean<Event>, read: Option<&TranscriptRead>, identify: &Identify) -> Result<()> {
    let stored = store_rows(tx, event, read, identify)?;
    segment_stored(tx, &stored)?;
    let ended = match &stored {
        StoredRows::ToolUse { used, .. } => used.tool.ended.as_ref(),
        StoredRows::BackgroundEnded(ended) => Some(*ended),
        _ => None,
    };
    ended.map_or(Ok(()), |ended| end_background(tx, event, ended))
}

/// Gives a background command that has ended its outcome, and counts it in the session's last step: the last check is
/// the one that ended last.
fn end_background(tx: &Tx, event: &Event, ended: &BackgroundEnd) -> Result<()> {
    let Some(call) = tx.background_call(event, &ended.id)? else { return Ok(()) };
    let output = ended.output.as_deref().unwrap_or_default();
    let hides_failure = call
        .content
        .as_deref()
        .zip(call.command)
        .is_some_and(|(line, command)| command_kind::failed_unseen(line, command, output));
    let succeeded = ended.succeeded.map(|succeeded| succeeded && !hides_failure);
    tx.end_background_call(&call, ended, succeeded)?;
    let (Some(command), Some(succeeded)) = (call.command, succeeded) else { return Ok(()) };
    let Some(step) = tx.last_steps(call.session)?.pop() else { return Ok(()) };
    tx.save(call.session, &segmentation::end_background(step, command, succeeded, event.at))
}

/// Opens the store for a program that reads, after draining the spool; `None` if nothing was ever recorded. Events that
/// cannot be drained, because the database is locked or read-only, remain in the spool.
pub fn reader(run: &Run) -> Result<Option<Store>> {
    let files = &run.config.files.value;
    if spool::is_waiting(files) {
        let drained = Store::open(files, HOOK_WAIT).and_then(|mut store| drain(run, &mut store));
        drained.unwrap_or_else(|error| log_error(&format!("waiting events could not be stored: {error:#}")));
    }
    let store = Store::open_to_read(files, PERSON_WAIT)?;
    if let Some(store) = &store {
        index_waiting(files, store, HOOK_WAIT, &mut |_| ());
    }
    Ok(store)
}

/// Indexes the texts that wait, before a search, and after an upgrade all of them; what cannot be indexed, because the
/// database is locked or read-only, is not found. `progress` receives the number of texts done.
pub fn index_waiting(files: &Files, store: &Store, wait: Duration, progress: &mut dyn FnMut(usize)) {
    let mut index = || match (store.index_text_version()? < INDEX_TEXT_VERSION, store.is_any_waiting()?) {
        (true, _) => Store::open(files, wait)?.rebuild_index(&mut |done, _| progress(done as usize)),
        (_, true) => Store::open(files, wait)?.index_waiting(usize::MAX, progress).map(drop),
        _ => Ok(()),
    };
    if let Err(error) = index() {
        log_error(&format!("waiting texts could not be indexed: {error:#}"));
    }
}

/// Stores the events that wait in the spool.
pub fn drain(run: &Run, store: &mut Store) -> Result<()> {
    if !spool::is_waiting(&run.config.files.value) {
        return Ok(());
    }
    let identify = identify(run);
    let one = |tx: &Tx, event: &Clean<Event>| store_event(tx, event, None, &identify);
    store.write_after_spool(run.redactor, &one, |_| Ok(()))
}

/// Writes the rows of an event.
fn store_rows<'a>(
    tx: &Tx,
    event: &'a Clean<Event>,
    read: Option<&TranscriptRead>,
    identify: &Identify,
) -> Result<StoredRows<'a>> {
    if event.what.is_question() {
        return Ok(StoredRows::Nothing);
    }
    // A command that is not known begins no session.
    if let EventKind::BackgroundEnded(ended) = &event.what
        && tx.background_call(event, &ended.id)?.is_none()
    {
        return Ok(StoredRows::Nothing);
    }
    let session = tx.session(event, || identify(WorkPlace::Event(event)))?;
    let at = event.at;
    if run::is_in_muted_turn(&session, event) {
        if let Some(read) = read {
            tx.skip_transcript(session.id, read)?;
        }
        // In a muted turn, only the session's end is stored.
        let EventKind::SessionEnded { reason, git } = &event.what else { return Ok(StoredRows::Nothing) };
        tx.end_session(session.id, at, reason, git.as_ref())?;
        return Ok(StoredRows::UnitClosed { session: session.id, by: closed_by(reason), at });
    }
    match &event.what {
        EventKind::PrivatePrompt => tx.mute(session.id, event)?,
        EventKind::SessionStarted(start) => {
            tx.start_session(session.id, event, start)?;
            if start.source == StartSource::Clear {
                return Ok(StoredRows::UnitClosed { session: session.id, by: ClosedBy::Clear, at });
            }
        }
        EventKind::UserPrompt { text } => {
            if let Some(row) = tx.user_prompt(&session, event, text)? {
                return Ok(StoredRows::Prompt { session: session.id, row, text, at });
            }
        }
        EventKind::TakenBack(taken) => tx.take_back(&session, event.prompt.as_deref(), taken)?,
        EventKind::Answered { call, answers } => {
            tx.user_answers(&session, event, call.as_deref(), &UserAnswer::to_text(answers))?;
        }
        EventKind::ToolUsed(tool) => {
            let prompt = tx.prompt_of(&session, event)?;
            if tx.is_same_tool_use(&session, event, tool)? {
                return Ok(StoredRows::Nothing);
            }
            let step = step_for_tool(tx, session.id, prompt, event)?;
            let project = project_elsewhere(tx, &session, event, tool, identify)?;
            if let Some(row) = tx.tool_use(&session, event, tool, prompt, step.id, project)? {
                let used = StoredToolUse { row, seq: session.tool_uses + 1, tool, project, at };
                return Ok(StoredRows::ToolUse { session: session.id, step, used });
            }
        }
        EventKind::BackgroundEnded(ended) => return Ok(StoredRows::BackgroundEnded(ended)),
        EventKind::TasksChanged(change) => tx.change_tasks(&session, change)?,
        EventKind::TurnEnded { closing, error } => {
            let closing = closing.as_deref().filter(|_| error.is_none());
            let message = closing.map(|text| tx.closing_text(&session, event, text)).transpose()?.flatten();
            if let Some(read) = read {
                tx.transcript_read(&session, event, message.map(|message| message.row), read)?;
            }
            if let Some(usage) = event.usage.as_deref().filter(|_| message.is_none_or(|message| message.is_new)) {
                tx.add_usage(&session, event, message.map(|message| message.row), usage)?;
            }
            tx.end_turn(session.id, at, error.as_deref())?;
            let is_new = message.is_some_and(|message| message.is_new);
            let prompt = tx.prompt_of(&session, event)?;
            return Ok(StoredRows::TurnEnd { session: session.id, prompt, closing, is_new, at });
        }
        EventKind::SubagentEnded { closing: Some(text), .. } => drop(tx.closing_text(&session, event, text)?),
        EventKind::Delegating { files } => tx.add_task_files(session.id, files, at)?,
        EventKind::SubagentStarted | EventKind::SubagentEnded { .. } | EventKind::Compacting | EventKind::PreEdit { .. } => {}
        EventKind::SessionEnded { reason, git } => {
            if let Some(read) = read {
                tx.transcript_read(&session, event, None, read)?;
            }
            if let Some(usage) = &event.usage {
                tx.add_usage(&session, event, None, usage)?;
            }
            tx.end_session(session.id, at, reason, git.as_ref())?;
            return Ok(StoredRows::UnitClosed { session: session.id, by: closed_by(reason), at });
        }
    }
    Ok(StoredRows::Nothing)
}

/// The project of the repository that a tool worked in, if it is not the session's.
fn project_elsewhere(
    tx: &Tx,
    session: &StoredSession,
    event: &Event,
    tool: &ToolUse,
    identify: &Identify,
) -> Result<Option<i64>> {
    let Some(root) = tool.repository.as_deref().filter(|root| session.root.as_deref() != Some(root)) else { return Ok(None) };
    let Some(id) = identify(WorkPlace::Repository(root, session.root.as_deref())) else { return Ok(None) };
    let project = tx.project(&id, event.at)?;
    Ok(Some(project).filter(|project| session.project != Some(*project)))
}

fn closed_by(reason: &str) -> ClosedBy {
    if reason == "clear" { ClosedBy::Clear } else { ClosedBy::SessionEnd }
}

/// Returns the step that a tool use continues, or a new one.
fn step_for_tool(tx: &Tx, session: i64, prompt: Option<i64>, event: &Event) -> Result<StepRow> {
    let agent = event.agent.as_deref();
    if let Some(step) = segmentation::step_of(tx.steps_of_prompt(session, prompt, agent.is_some())?, agent) {
        return Ok(step);
    }
    tx.save(session, &segmentation::begin_at_work(prompt, event.at))?;
    tx.last_steps(session)?.pop().context("a step that was just inserted")
}

/// The rows of one event, on the stack.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)]
pub enum StoredRows<'a> {
    /// Nothing, nothing new, or nothing that affects units.
    Nothing,
    Prompt {
        session: i64,
        row: i64,
        text: &'a str,
        at: Millis,
    },
    ToolUse {
        session: i64,
        /// The step in which the tool use was stored.
        step: StepRow,
        used: StoredToolUse<'a>,
    },
    /// The end of a background command, whose own row changes.
    BackgroundEnded(&'a BackgroundEnd),
    TurnEnd {
        session: i64,
        prompt: Option<i64>,
        /// The agent's closing message.
        closing: Option<&'a str>,
        is_new: bool,
        at: Millis,
    },
    UnitClosed {
        session: i64,
        by: ClosedBy,
        at: Millis,
    },
}

/// Assigns the rows of an event to steps and units.
pub fn segment_stored(tx: &Tx, stored: &StoredRows) -> Result<()> {
    match *stored {
        StoredRows::Nothing | StoredRows::BackgroundEnded(_) => Ok(()),
        StoredRows::Prompt { session, row, text, at } => {
            let rows = tx.last_steps(session)?;
            tx.save(session, &segmentation::begin_prompt(rows, row, text, at))
        }
        StoredRows::ToolUse { session, ref step, used } => tool_use(tx, session, step, used),
        StoredRows::TurnEnd { session, prompt, closing, is_new, at } => {
            let Some(step) = tx.steps_of_prompt(session, prompt, false)?.pop() else { return Ok(()) };
            if let Some(closing) = closing {
                tx.save(session, &segmentation::close_turn(step, closing, is_new, at))?;
            }
            judge(tx, session, at)
        }
        StoredRows::UnitClosed { session, by, at } => close_units(tx, session, by, at),
    }
}

/// Closes a session's last unit, provisionally.
pub fn close_units(tx: &Tx, session: i64, by: ClosedBy, at: Millis) -> Result<()> {
    let rows = tx.last_steps(session)?;
    tx.save(session, &segmentation::close(rows, by, at))?;
    tx.place_units_again(session)
}

fn tool_use(tx: &Tx, session: i64, step: &StepRow, used: StoredToolUse) -> Result<()> {
    let cut = segmentation::cuts(step, used.tool) && tx.is_last_step(session, step.id)?;
    let changes = segmentation::add_tool_use(step.clone(), used, cut);
    tx.save(session, &changes)?;
    // One more tool use in the unit's own project changes nothing.
    if let Some(project) = used.project
        && !tx.is_unit_in(step.unit, project)?
    {
        tx.place_units(session)?;
    }
    if changes.used.is_some_and(|used| is_due(&used.features)) { judge(tx, session, used.at) } else { Ok(()) }
}

fn judge(tx: &Tx, session: i64, at: Millis) -> Result<()> {
    let rows = tx.last_steps(session)?;
    tx.save(session, &segmentation::judge(rows, at))?;
    tx.place_units_again(session)
}

/// Runs segmentation once more at the end of a recorded stream whose session continues elsewhere.
pub fn end_of_stream(tx: &Tx, session: i64, at: Millis) -> Result<()> {
    judge(tx, session, at)
}

/// Rebuilds a session's steps and units after some of its rows were forgotten.
pub fn recount(tx: &Tx, session: i64) -> Result<()> {
    for unit in tx.recount_steps(session)? {
        let recounted = unit.steps.into_iter().map(|(row, left)| {
            let step = segmentation::recount_step(row.step.clone(), left);
            StepRow { step, ..row }
        });
        tx.save(session, &segmentation::recount_unit(recounted.collect(), unit.unit, unit.over))?;
    }
    Ok(())
}
