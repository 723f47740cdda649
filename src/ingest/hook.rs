//! A hook's payload: under whose settings it is ingested, and what is said where they can't be read.

use super::decode::Input;
use super::ingest;
use super::run::{Caller, Run};
use crate::config::{self, Config, environment};
use crate::model::{LogLevel, Moment, Platform};
use crate::platforms::intake::Intake;
use crate::platforms::{self, Answer};
use crate::project;
use crate::redact::Redactor;
use crate::runtime::{log_at, log_error, redactor};
use anyhow::{Result, bail};
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Ingests what a hook was given on stdin; returns what it prints.
pub fn answer(platform: Option<Platform>, intake: Intake) -> Result<Option<String>> {
    let (json, mended) = match intake {
        Intake::Json { value, mended } => (value, mended),
        Intake::Empty => return Ok(None),
        Intake::Garbage(reason) => bail!("stdin was no hook event: {reason}"),
    };
    let platform = platform.unwrap_or(Platform::ClaudeCode);
    let (config, redactor) = match settings(&json) {
        Ok(settings) => settings,
        Err(error) => return Ok(refusal(platform, &json, &error)),
    };
    if !config.enabled.value {
        return Ok(None);
    }
    if mended {
        log_at(LogLevel::Info, "a payload that was too large or not sound JSON was mended");
    }
    let run = Run::new(Caller::Hook, &config, &redactor);
    Ok(ingest(&run, Input::Payload { platform, json: &json })?.answer)
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

/// The settings that hold where the session works and where it began. From here on what the project has set in the
/// environment does not count.
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

/// What a session's start is answered where the settings can't be read: what the user forbade is unknown then, so nothing is
/// recorded.
fn refusal(platform: Platform, json: &Value, error: &anyhow::Error) -> Option<String> {
    log_error(&format!("nothing is recorded: {error:#}"));
    let starts = json["hook_event_name"] == "SessionStart";
    let message = Some(format!("nmem does not record: {error:#}. Mend it, then see `nmem status`."));
    platforms::encode(platform, Moment::Start, &Answer { context: None, message }).filter(|_| starts)
}
