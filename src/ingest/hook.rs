//! Entry point of hooks: loads the settings for a payload, ingests it, and answers if the settings are unreadable.

use super::decode::Input;
use super::ingest;
use super::run::{Caller, Run};
use crate::config::{self, Config, environment};
use crate::model::{InjectionPoint, LogLevel, Platform};
use crate::platforms::payload::Payload;
use crate::platforms::{self, HookAnswer};
use crate::project;
use crate::redact::Redactor;
use crate::runtime::{log_at, log_error, redactor};
use anyhow::{Result, bail};
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What to do before an event is ingested, with its JSON.
pub type Before<'a> = &'a dyn Fn(&Run, &Value);

/// Ingests a hook's stdin; returns what to print.
pub fn answer(platform: Option<Platform>, intake: Payload, before: Before) -> Result<Option<String>> {
    let (json, repaired) = match intake {
        Payload::Json { value, repaired } => (value, repaired),
        Payload::Empty => return Ok(None),
        Payload::Garbage(reason) => bail!("stdin was not a hook event: {reason}"),
    };
    let platform = platform.unwrap_or(Platform::ClaudeCode);
    let (config, redactor) = match settings(&json) {
        Ok(settings) => settings,
        Err(error) => return Ok(refusal(platform, &json, &error)),
    };
    if !config.enabled.value {
        return Ok(None);
    }
    if repaired {
        log_at(LogLevel::Info, "a payload that was too large or invalid JSON was repaired");
    }
    let run = Run::new(Caller::Hook, &config, &redactor);
    before(&run, &json);
    Ok(ingest(&run, Input::Payload { platform, json: &json })?.answer)
}

/// Reads `--platform P`. Unknown arguments are logged and ignored: a hook never fails because of its own command line.
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

/// The settings for where the session works and where it began. From here on, whatever the project has set in the
/// environment is ignored.
fn settings(json: &Value) -> Result<(Config, Redactor)> {
    let folder =
        json["cwd"].as_str().map(PathBuf::from).filter(|f| f.is_absolute() && f.as_os_str().len() <= environment::PATH_BYTES);
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

/// The answer to a session start with unreadable settings. Nobody knows what the user forbade, so nothing is recorded.
fn refusal(platform: Platform, json: &Value, error: &anyhow::Error) -> Option<String> {
    log_error(&format!("nothing is recorded: {error:#}"));
    let starts = json["hook_event_name"] == "SessionStart";
    let message = Some(format!("nmem is not recording: {error:#}. Fix it, then run `nmem status`."));
    platforms::encode(platform, InjectionPoint::Start, &HookAnswer { context: None, message }).filter(|_| starts)
}
