//! Step 9: what the agent is given of earlier work: at its start, at a prompt, before it edits a file. `recall` chooses it and
//! `render` writes it; this file decides when, and records that it was given.

use super::persist::Persisted;
use super::run::{Caller, Run};
use crate::config::{Config, Inject};
use crate::distil::{self, embedding};
use crate::model::{Event, Happening, Moment, Platform, StartSource};
use crate::platforms::{self, Answer};
use crate::project;
use crate::recall::{self, Here, Prompt};
use crate::redact::Clean;
use crate::render;
use crate::render::context::{ForAgent, for_agent};
use crate::render::past;
use crate::render::standing::{self, Gone};
use crate::runtime::log_error;
use crate::store::recall::SessionPlace;
use crate::store::{HOOK_WAIT, Store, spool};
use anyhow::Result;
use std::cell::Cell;
use std::path::Path;

/// The part of the room, in hundredths, that a session which `/clear` ended may take.
const CLEARED: usize = 60;

/// Answers an event, where it is one that is answered; silence is the usual answer. A start is answered whether its event
/// could be stored or not.
pub fn inject(run: &Run, persisted: &mut Persisted, event: &Clean<Event>) -> Result<Option<String>> {
    if run.caller != Caller::Hook {
        return Ok(None);
    }
    match (&event.what, persisted) {
        (Happening::SessionStarted(start), persisted) => at_start(run, persisted, event, start.source),
        (Happening::Prompted { text }, Persisted::Stored(store)) => at_prompt(run, store, event, text),
        (Happening::AboutToEdit { path }, _) => before_edit(run, event, path),
        _ => Ok(None),
    }
}

fn at_start(run: &Run, persisted: &mut Persisted, event: &Event, source: StartSource) -> Result<Option<String>> {
    let config = run.config;
    let (answer, note) = match persisted {
        Persisted::Stored(store) => {
            let note = distil::llm_note(config, Some(store));
            (given(run, store, event, source)?, note)
        }
        Persisted::NotStored(problem) => {
            let message = Some(format!("nmem: {problem}. See `nmem status`."));
            (Answer { context: None, message }, distil::llm_note(config, None))
        }
        Persisted::Question => return Ok(None),
    };
    Ok(platforms::encode(event.platform, Moment::Start, &with_notes(config, answer, note)))
}

fn at_prompt(run: &Run, store: &mut Store, event: &Event, prompt: &str) -> Result<Option<String>> {
    let (config, now) = (run.config, run.now);
    if config.inject.value != Inject::All || config.prompt_bytes.value == 0 {
        return Ok(None);
    }
    let Some(place) = store.session_place(event.platform, &event.session)? else { return Ok(None) };
    let root = root(config, event);
    let branch = || project::git::state_at(root?, config.home.as_deref())?.branch;
    let answered = Cell::new(None);
    let meaning = || {
        let meaning = embedding::may_be_asked(config, store, now)
            .then(|| embedding::of_text(config, run.redactor, prompt, embedding::AT_PROMPT))?;
        answered.set(Some(meaning.is_some()));
        meaning
    };
    let asked = Prompt { text: prompt, meaning: &meaning, branch: &branch, root };
    let found = store.read(|store| recall::at_prompt(store, &place, &asked))?;
    if let Some(answered) = answered.get() {
        embedding::note(store, answered, now);
    }
    let told = past::at_prompt(&found, config.prompt_bytes.value);
    say(run, store, &place, event.platform, Moment::Prompt, told.text.clone(), &told.items())
}

/// Nothing is stored but what was said.
fn before_edit(run: &Run, event: &Event, path: &str) -> Result<Option<String>> {
    let config = run.config;
    if config.inject.value != Inject::All || config.file_bytes.value == 0 {
        return Ok(None);
    }
    let files = &config.files.value;
    let Some(store) = Store::open_to_read(files, HOOK_WAIT)? else { return Ok(None) };
    let found = store.read(|store| {
        let Some(place) = store.session_place(event.platform, &event.session)? else { return Ok(None) };
        let (known, beside) = recall::at_file(store, &place, path, root(config, event))?;
        Ok(Some((place, past::at_file(path, &known, &beside, config.file_bytes.value))))
    });
    store.exit_without_close();
    let Some((place, told)) = found?.filter(|(_, told)| !told.text.is_empty()) else { return Ok(None) };
    let mut store = Store::open(files, HOOK_WAIT)?;
    say(run, &mut store, &place, event.platform, Moment::File, told.text.clone(), &told.items())
}

/// Says something in the middle of work, unless another process has said it just now.
fn say(
    run: &Run,
    store: &mut Store,
    place: &SessionPlace,
    platform: Platform,
    moment: Moment,
    text: String,
    items: &[String],
) -> Result<Option<String>> {
    if text.is_empty() || !store.tell(place.session, moment, run.now, text.len(), items)? {
        return Ok(None);
    }
    Ok(platforms::encode(platform, moment, &Answer { context: Some(text), message: None }))
}

/// Adds what the person should know at a session's start, whatever else is said.
fn with_notes(config: &Config, mut answer: Answer, note: Option<String>) -> Answer {
    let files = &config.files.value;
    let mut notes: Vec<String> = answer.message.take().into_iter().chain(note).collect();
    let lost = spool::lost(files);
    if lost > 0 {
        notes.push(format!("nmem: {lost} events were lost, since neither the database nor any other place could be written."));
        spool::losses_were_told(files);
    }
    if !config.unknown.is_empty() {
        notes.push(format!("nmem: {} in {} are no settings that it knows.", config.unknown.join(", "), config.file.display()));
    }
    let waiting: Vec<&str> = config.wishes.iter().flat_map(|w| w.waiting()).collect();
    if !waiting.is_empty() {
        notes.push(format!("nmem: this project's .nmem.toml asks for {}; `nmem trust` shows it.", waiting.join(", ")));
    }
    Answer { message: Some(notes.join(" ")).filter(|n| !n.is_empty()), ..answer }
}

/// What a session that starts is told; and that it was told it.
fn given(run: &Run, store: &mut Store, event: &Event, source: StartSource) -> Result<Answer> {
    // The conversation of a resumed or forked session still holds what it was told at its start.
    if run.config.inject.value == Inject::None || matches!(source, StartSource::Resume | StartSource::Fork) {
        return Ok(Answer::default());
    }
    let Some(start) = store.read(|store| recalled(run, store, event, source))? else { return Ok(Answer::default()) };
    let block = start.block;
    if !block.text.is_empty() && !start.is_muted {
        // What can't be kept is said all the same.
        if let Err(error) = store.tell(start.session, start.moment, run.now, block.text.len(), &block.items()) {
            log_error(&format!("what the session was told is not kept: {error:#}"));
        }
    }
    let message = start.is_first.and_then(|first| message(run.config, &block, first));
    Ok(Answer { context: Some(block.text).filter(|text| !text.is_empty()), message })
}

/// What a session is given at its start.
struct Start {
    session: i64,
    moment: Moment,
    block: ForAgent,
    /// Whether it is the project's first session; `None` where the person was told before.
    is_first: Option<bool>,
    is_muted: bool,
}

/// Chooses what a session is given; `None` where it belongs to no project. Reads only.
fn recalled(run: &Run, store: &Store, event: &Event, source: StartSource) -> Result<Option<Start>> {
    let (config, now) = (run.config, run.now);
    let budget = config.context_bytes.value;
    let Some(session) = store.session_row(event.platform, &event.session)? else { return Ok(None) };
    let place = store.session_place(event.platform, &event.session)?;
    let is_muted = place.as_ref().is_some_and(|place| place.muted);
    if source == StartSource::Compact {
        let block = standing(store, Some(session), Gone::Compacted, budget)?;
        return Ok(Some(Start { session, moment: Moment::Compaction, block, is_first: None, is_muted }));
    }
    let Some(place) = place else { return Ok(None) };
    let gone = match source {
        StartSource::Clear => recall::cleared(store, place.project, place.session, now)?,
        _ => None,
    };
    // What `/clear` took away comes back first; earlier sessions get the room that it leaves.
    let own = standing(store, gone, Gone::Cleared, budget * CLEARED / 100)?;
    let branch = match &event.what {
        Happening::SessionStarted(start) => start.git.as_ref().and_then(|git| git.branch.as_deref()),
        _ => None,
    };
    let here = Here { own: Some(place.session), branch, root: root(config, event) };
    let mut recalled = recall::at_start(store, place.project, here, start_limits(config), now)?;
    recalled.sessions.retain(|told| Some(told.session.id) != gone);
    for memories in [&mut recalled.pinned, &mut recalled.settled, &mut recalled.observations] {
        memories.retain(|memory| !own.shown.contains(&memory.id));
    }
    let rest = budget.saturating_sub(own.text.len() + 1);
    let is_first = Some(store.session_count(place.project)? <= 1);
    Ok(Some(Start { session, moment: Moment::Start, block: own.and(for_agent(&recalled, rest)), is_first, is_muted }))
}

fn standing(store: &Store, session: Option<i64>, gone: Gone, budget: usize) -> Result<ForAgent> {
    let standing = session.map(|session| recall::standing(store, session)).transpose()?.flatten();
    Ok(standing.map_or_else(ForAgent::default, |standing| standing::for_agent(&standing, gone, budget)))
}

/// The worktree's root, where files are looked at.
fn root<'a>(config: &Config, event: &'a Event) -> Option<&'a Path> {
    project::worktree_root(Path::new(event.cwd.as_deref()?), config.home.as_deref())
}

/// What a session's start is told at most.
pub fn start_limits(config: &Config) -> recall::Most {
    recall::Most { observations: config.observations.value, summaries: config.summaries.value }
}

/// One line for the person: a project's first session says what is recorded, where, and how to switch it off.
fn message(config: &Config, given: &ForAgent, first: bool) -> Option<String> {
    if first {
        let sent = [
            config
                .llm
                .destination()
                .map(|model| format!("parts of it are sent to {model}, as [llm] in {} says", config.file.display())),
            config.embeddings.destination().map(|host| {
                format!(
                    "what is remembered of it and asked for is sent to {host}, as [embeddings] in {} says",
                    config.file.display()
                )
            }),
        ];
        let sent: Vec<String> = sent.into_iter().flatten().collect();
        let leaves = if sent.is_empty() { "nothing leaves this machine".to_string() } else { sent.join("; ") };
        return Some(format!(
            "nmem records prompts, tool calls and closing messages of this project in {}, secrets redacted; {leaves}. \
             `nmem off` stops it, `nmem forget` takes back.",
            config.files.value.db.display()
        ));
    }
    let told = render::count(given.shown.len() as i64, "memory", "memories");
    (!given.text.is_empty())
        .then(|| format!("nmem reminded the agent of {told} ({} bytes). See `nmem context`.", given.text.len()))
}
