//! Use case: a hook's event, from its payload to the answer. [`answer`] is the list of steps; [`ingest::ingest`] is the
//! part that imports and programs share.

use crate::config::{self, Config, environment};
use crate::import;
use crate::ingest::{self, Caller, Run};
use crate::model::{EventKind, LogLevel, Platform};
use crate::platforms::adapter::{Adapter, HookAnswer};
use crate::platforms::payload::Payload;
use crate::platforms::{self, DecodeContext};
use crate::project;
use crate::redact::Redactor;
use crate::runtime::{log_at, log_error, redactor};
use anyhow::{Result, anyhow, bail};
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Ingests a hook's stdin and returns the text to print.
pub fn answer(platform: Option<Platform>, intake: Payload) -> Result<Option<String>> {
    let (json, repaired) = match intake {
        Payload::Json { value, repaired } => (value, repaired),
        Payload::Empty => return Ok(None),
        Payload::Garbage(reason) => bail!("stdin was not a hook event: {reason}"),
    };
    // Recognise the agent, and load the settings of its folder.
    let adapter = platforms::recognised(platform, &json);
    let (config, redactor) = match settings(&json) {
        Ok(settings) => settings,
        Err(error) => {
            let answer = refusal(&error);
            return Ok(adapter.encode(&json, &answer).filter(|_| is_start(adapter, &json)));
        }
    };
    if !config.enabled.value {
        return Ok(None);
    }
    if repaired {
        log_at(LogLevel::Info, "a payload that was too large or invalid JSON was repaired");
    }
    let run = Run::new(Caller::Hook, &config, &redactor);

    // Decode the agent's JSON. Tools on the skip list yield no events.
    let context = DecodeContext { now: run.now, skip_tools: &config.skip_tools.value };
    let events = adapter.decode(&json, &context).map_err(|reason| anyhow!("a payload was not stored: {reason}"))?;

    // Filter, complete, redact, store, read what hooks missed before a session start, distil, inject.
    let start = events.iter().find(|event| matches!(event.what, EventKind::SessionStarted(_))).cloned();
    let ingested = match start {
        Some(start) => ingest::ingest_start(&run, events, &|store| import::catch_up(&run, store, &start))?,
        None => ingest::ingest(&run, events)?,
    };

    // Encode the answer as the agent accepts it.
    Ok(ingested.answer.and_then(|answer| adapter.encode(&json, &answer)))
}

/// Parses `--platform P`. Unknown arguments are logged and ignored: a hook never fails because of its own command line.
pub fn platform(args: &[OsString]) -> Option<Platform> {
    let words: Vec<&str> = args.iter().filter_map(|a| a.to_str()).collect();
    let name = words.iter().enumerate().find_map(|(i, word)| match *word {
        "--platform" => words.get(i + 1).copied(),
        _ => word.strip_prefix("--platform="),
    })?;
    let platform = Platform::from_name(name);
    if platform.is_none() {
        log_error(&format!("--platform {name} is not a known platform"));
    }
    platform
}

/// Loads the settings for the session's current folder and its start folder. From here on, environment variables that
/// the project set are ignored.
fn settings(json: &Value) -> Result<(Config, Redactor)> {
    let folder =
        platforms::cwd(json).map(PathBuf::from).filter(|f| f.is_absolute() && f.as_os_str().len() <= environment::PATH_BYTES);
    let folder = folder.or_else(|| std::env::current_dir().ok());
    let folder = folder.as_deref().unwrap_or(Path::new("/"));
    let root = project::worktree_root(folder, environment::home().as_deref()).unwrap_or(folder);
    environment::enter_hook(folder, root);
    let begun = environment::session_folder();
    let folders: Vec<&Path> = begun.as_deref().into_iter().filter(|begun| *begun != folder).chain([folder]).collect();
    let config = config::load(&folders)?;
    let redactor = redactor(&config)?;
    Ok((config, redactor))
}

/// Returns true if a payload starts a session.
fn is_start(adapter: &dyn Adapter, json: &Value) -> bool {
    let around = DecodeContext { now: environment::now(), skip_tools: &[] };
    let events = adapter.decode(json, &around).unwrap_or_default();
    events.iter().any(|event| matches!(event.what, EventKind::SessionStarted(_)))
}

/// Answers a session start with unreadable settings. It is unknown what the user forbade, so nothing is recorded.
fn refusal(error: &anyhow::Error) -> HookAnswer {
    log_error(&format!("nothing is recorded: {error:#}"));
    HookAnswer::for_person(format!("nmem is not recording: {error:#}. Fix it, then run `nmem status`."))
}
