//! `nmem record`: takes one hook event. Answers a session's start, and nothing else.

use super::hook::{log_at, log_error, recorder, redactor};
use super::meaning;
use super::moments;
use super::observe;
use super::stdin::Stdin;
use crate::config::{self, Config, environment};
use crate::distil::Distiller;
use crate::model::{Event, Happening, LogLevel, Millis, Moment, Platform};
use crate::platforms::intake::{self, Intake};
use crate::platforms::{self, Answer, Surroundings};
use crate::project::{self, about::about};
use crate::record::Recorder;
use crate::redact::Clean;
use crate::store::{self, Store, spool};
use anyhow::Result;
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a hook waits for its caller to close stdin: less than the shortest timeout that `install` sets.
const STDIN: Duration = Duration::from_secs(8);
const DAY: Millis = 86_400_000;
/// A session that was heard of so long ago may be at work: its open unit is left to it.
const AT_WORK: Millis = 30 * 60_000;
/// Batches of old tool uses that go at one session's end: more than a session adds.
const TRIMMED: usize = 10;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The agent that sends the event; detected from the payload where not given
    #[arg(long, value_name = "NAME")]
    platform: Option<String>,
}

/// Runs the hook; returns what is to be printed.
pub fn run(args: &[OsString]) -> Result<Option<String>> {
    if environment::switched_off().is_some() {
        return Ok(None);
    }
    let platform = platform(args);
    match intake::read(Stdin::within(STDIN)?)? {
        Intake::Json { value, mended } => handle(platform, &value, mended),
        Intake::Empty => Ok(None),
        Intake::Garbage(reason) => anyhow::bail!("stdin was no hook event: {reason}"),
    }
}

/// Reads `--platform P`. What is unknown is logged and passed over: a hook never fails on its own command line.
pub fn platform(args: &[OsString]) -> Option<Platform> {
    let words: Vec<&str> = args.iter().filter_map(|a| a.to_str()).collect();
    let name = words.iter().enumerate().find_map(|(i, word)| match *word {
        "--platform" => words.get(i + 1).copied(),
        _ => word.strip_prefix("--platform="),
    })?;
    let platform = Platform::from_name(name);
    if platform.is_none() {
        log_error(&format!("--platform {name} is not a platform that this nmem knows"));
    }
    platform
}

/// Handles one payload: stores it, and answers a session's start.
pub fn handle(platform: Option<Platform>, payload: &Value, mended: bool) -> Result<Option<String>> {
    let platform = platform.unwrap_or(Platform::ClaudeCode);
    let folder =
        payload["cwd"].as_str().map(PathBuf::from).filter(|f| f.is_absolute() && f.as_os_str().len() <= environment::PATH_BYTES);
    let folder = folder.or_else(|| std::env::current_dir().ok());
    let folder = folder.as_deref().unwrap_or(Path::new("/"));
    let root = project::worktree_root(folder, environment::home().as_deref()).unwrap_or(folder);
    environment::enter_hook(folder, root);
    let begun = environment::session_folder();
    let folders: Vec<&Path> = begun.as_deref().into_iter().filter(|begun| *begun != folder).chain([folder]).collect();
    let settings = config::load(&folders).and_then(|config| Ok((redactor(&config)?, config)));
    let (redactor, config) = match settings {
        Ok(settings) => settings,
        Err(error) => {
            log_error(&format!("nothing is recorded: {error:#}"));
            let starts = payload["hook_event_name"] == "SessionStart";
            let message = Some(format!("nmem does not record: {error:#}. Mend it, then see `nmem status`."));
            return Ok(platforms::encode(platform, Moment::Start, &Answer { context: None, message }).filter(|_| starts));
        }
    };
    if !config.enabled.value {
        return Ok(None);
    }
    if mended {
        log_at(LogLevel::Info, "a payload that was too large or not sound JSON was mended");
    }
    let now = environment::now();
    let around = Surroundings { now, skip_tools: &config.skip_tools.value };
    let recorder = recorder(&config, &redactor);
    match platforms::decode(platform, payload, &around) {
        Ok(Some(event)) if recorder.is_off(&event, now) => Ok(None),
        Ok(Some(event)) if matches!(event.what, Happening::AboutToEdit { .. }) => moments::at_file(&recorder, event, now),
        Ok(Some(event)) => store(&recorder, event, now),
        Ok(None) => Ok(None),
        Err(reason) => anyhow::bail!("a payload was not stored: {reason}"),
    }
}

fn store(recorder: &Recorder, event: Event, now: Millis) -> Result<Option<String>> {
    let event = recorder.complete(event);
    match (&event.what, keep(recorder, &event, now)) {
        (Happening::SessionStarted(start), stored) => moments::at_start(recorder.config, stored, &event, start.source, now),
        (Happening::Prompted { text }, Ok(mut store)) => {
            let answer = moments::at_prompt(recorder, &mut store, &event, text, now);
            store.leave();
            answer
        }
        (_, stored) => {
            stored.into_iter().for_each(Store::leave);
            Ok(None)
        }
    }
}

/// Stores an event and does what is due after it. What can't be stored is kept in the spool, or counted as lost; the error
/// says why.
pub fn keep(recorder: &Recorder, event: &Clean<Event>, now: Millis) -> std::result::Result<Store, String> {
    let files = &recorder.config.files.value;
    let stored = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| recorder.store(event)))
        .unwrap_or_else(|_| Err(anyhow::anyhow!("panic while storing")));
    let stored = stored.map_err(|error| match spool::append(files, event) {
        Ok(()) => {
            log_error(&format!("kept in the spool: {error:#}"));
            format!("{}; events are kept and stored later", store::reason(&error))
        }
        Err(lost) => {
            log_error(&format!("{error:#}; {lost:#}"));
            format!("{}; nothing can be written, so what happens now is lost", store::reason(&error))
        }
    });
    stored.map(|mut store| {
        draw_memories(recorder, &mut store, event, now);
        if let Happening::TurnEnded { error: None, .. } = event.what {
            observe::at_stop(recorder, &mut store, event);
            meaning::at_stop(recorder, &mut store, event, now);
        }
        store
    })
}

/// Draws memories where a turn, a session or a conversation ends, and at a start from what others left. The event is safe
/// by now: what goes wrong here is logged, and done the next time.
fn draw_memories(recorder: &Recorder, store: &mut Store, event: &Event, now: Millis) {
    let ends = matches!(event.what, Happening::TurnEnded { .. } | Happening::SessionEnded { .. });
    let own = || store.due_in_session(event.platform, &event.session);
    let drawn = match &event.what {
        Happening::SessionStarted(_) => store.project_of(event.platform, &event.session).and_then(|project| {
            // A session that goes on behind a compaction is told of itself.
            let mut due = own()?;
            if let Some(project) = project {
                due.extend(store.due_in_project(project.id, now - AT_WORK)?);
            }
            Ok(due)
        }),
        _ if ends || event.what == Happening::Compacting => own(),
        _ => return,
    };
    let ignored = recorder.config.ignored();
    let distiller = Distiller { redactor: recorder.redactor, home: recorder.config.home.as_deref(), ignored: &ignored, now };
    let run = || drawn.and_then(|due| distiller.distil(store, &due));
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run))
        .unwrap_or_else(|_| Err(anyhow::anyhow!("panic while distilling")));
    match done {
        Err(error) => log_error(&format!("no memories were drawn: {error:#}")),
        // A long log would cost each hook of the session that begins.
        Ok(units) if units > 0 && !ends => store.settle_all(),
        Ok(_) => {}
    }
    if ends {
        if let Happening::SessionEnded { .. } = event.what {
            trim(recorder.config, store, now);
            look_at_repository(store, event, now);
        }
        store.settle_all();
    }
}

/// Once a day it is looked at what a project's repository is.
fn look_at_repository(store: &mut Store, event: &Event, now: Millis) {
    let mut look = || -> Result<()> {
        let Some(project) = store.project_of(event.platform, &event.session)? else { return Ok(()) };
        if project.about.as_ref().is_some_and(|(_, at)| now - at < DAY) {
            return Ok(());
        }
        let root = Path::new(&project.root);
        if root.is_dir() { store.set_about(project.id, &about(root), now) } else { Ok(()) }
    };
    if let Err(error) = look() {
        log_error(&format!("what the repository is was not kept: {error:#}"));
    }
}

/// Raw tool uses go after their time, a few at each session's end.
fn trim(config: &Config, store: &mut Store, now: Millis) {
    let days = Millis::from(config.tool_uses_days.value);
    if days > 0
        && let Err(error) = store.trim_tool_uses(now - days * DAY, TRIMMED)
    {
        log_error(&format!("old tool uses were not trimmed: {error:#}"));
    }
}
