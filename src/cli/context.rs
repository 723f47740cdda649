//! `nmem context`: the SessionStart hook, and in a terminal the same view for a person.

use super::output;
use super::project_argument::{ProjectArgument, open};
use super::stdin::{self, Stdin};
use crate::config::{CONTEXT_BYTES_MAX, Config, Inject, environment};
use crate::distil::embedding;
use crate::ingest::{self, hook};
use crate::model::{MemoryKind, MemoryRow, Millis, Recalled};
use crate::platforms::intake::{self, Intake};
use crate::project;
use crate::recall::{self, Asked, Here};
use crate::render::context::{ForAgent, for_agent, for_person, token_stats};
use crate::render::memories;
use crate::render::past::{Told, past, why};
use crate::render::patterns;
use crate::runtime::{FolderProject, redactor};
use crate::store::Store;
use anyhow::Result;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Pieces of work among which a block is chosen.
const RANKED: usize = 16;
/// How long stdin is waited for, where it isn't a terminal.
const STDIN: Duration = Duration::from_secs(1);

/// Show what the next session here would be given
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem context --json\n         nmem context --query 'the exporter breaks rows with commas' --why\n         nmem context --file src/export.rs\n\nWith a hook event on stdin it registers the session and answers as the agent expects."
)]
pub struct Arguments {
    #[command(flatten)]
    project: ProjectArgument,
    /// What a session would be given that begins with this request
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    query: Option<String>,
    /// What it would be given with these files in play
    #[arg(long, value_name = "PATH", num_args = 1..)]
    file: Vec<PathBuf>,
    /// Say what brought each piece of work there
    #[arg(long)]
    why: bool,
    /// Bytes of the block that an agent would be given [default: the setting context_bytes]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(500..=CONTEXT_BYTES_MAX as i64))]
    budget: Option<u32>,
    /// Print one JSON object; `text` is what an agent would be given
    #[arg(long)]
    json: bool,
    /// The agent that sends the event on stdin
    #[arg(long, value_name = "NAME")]
    platform: Option<String>,
}

/// Whether these arguments may be those of a hook.
pub fn is_hook(args: &[OsString]) -> bool {
    let plain = |a: &OsString| a.to_str().is_some_and(|a| !a.starts_with('-') || a.starts_with("--platform"));
    args.iter().all(plain) && !stdin::is_terminal()
}

/// Answers a hook event on stdin; `None` where stdin holds nothing: then a person asks.
pub fn run_hook(args: &[OsString]) -> Option<ExitCode> {
    if environment::switched_off().is_some() {
        return Some(ExitCode::SUCCESS);
    }
    let mut asked = true;
    let code = super::hook::run_safely(|| match Stdin::within(STDIN).and_then(intake::read) {
        // Nothing came at all: a person asks.
        Ok(Intake::Empty) | Err(_) => {
            asked = false;
            Ok(None)
        }
        Ok(intake) => hook::answer(hook::platform(args), intake),
    });
    asked.then_some(code)
}

/// Shows the context to a person.
pub fn run(args: &Arguments) -> Result<()> {
    let (folder, config) = args.project.config()?;
    let store = open(&config)?;
    let now = environment::now();
    let place = args.project.find(&folder, &config, store.as_ref());
    let budget = args.budget.map_or(config.context_bytes.value, |b| b as usize);
    if args.query.is_some() || !args.file.is_empty() || args.why {
        return ranked(args, &config, &folder, &place, store.as_ref(), budget);
    }
    let branch = project::git::state_at(&folder, config.home.as_deref()).and_then(|state| state.branch);
    let root = project::worktree_root(&folder, config.home.as_deref());
    let here = Here { own: None, branch: branch.as_deref(), root };
    let recalled = match (&store, &place.row) {
        (Some(store), Some(row)) => recall::at_start(store, row.id, here, ingest::start_limits(&config), now)?,
        _ => Recalled::default(),
    };
    // What an agent would be given, and why it would be given nothing.
    let silent = silent(&config, &place, now);
    if args.json {
        let mut given = if silent.is_some() { ForAgent::default() } else { for_agent(&recalled, budget) };
        if let Some(store) = &store {
            let of_units: Vec<i64> =
                told(&recalled).into_iter().filter(|m| given.shown.contains(&m.id)).filter_map(|m| m.unit).collect();
            given.tokens.distil = store.spent_on(&of_units)?;
        }
        return output::say(&json(place.name(), &recalled, &given).to_string());
    }
    if recalled.sessions.is_empty() && recalled.pinned.is_empty() && recalled.settled.is_empty() {
        return output::say(&nothing(&place));
    }
    if let Some(reason) = silent {
        output::warn(&reason);
    }
    output::say(for_person(&recalled, now, output::style()).trim_end())
}

/// Shows what earlier work has to do with a request and with files in play.
fn ranked(
    args: &Arguments,
    config: &Config,
    folder: &Path,
    place: &FolderProject,
    store: Option<&Store>,
    budget: usize,
) -> Result<()> {
    let branch = project::git::state_at(folder, config.home.as_deref()).and_then(|state| state.branch);
    let cwd = folder.to_string_lossy();
    let relative = |file: &PathBuf| {
        let file = folder.join(file);
        project::relative(&file.to_string_lossy(), Some(&cwd), config.home.as_deref())
    };
    let files: Vec<String> = args.file.iter().map(relative).collect();
    let root = project::worktree_root(folder, config.home.as_deref());
    let meaning = match &args.query {
        Some(query) => embedding::of_text(config, &redactor(config)?, query, embedding::FOR_A_PERSON),
        None => None,
    };
    let meaning = meaning.as_ref().map(|(model, vector)| (model.as_str(), vector));
    let found = match (store, &place.row) {
        (Some(store), Some(row)) => {
            let request = args.query.as_deref();
            recall::ranked(
                store,
                &Asked { project: row.id, own: None, request, branch: branch.as_deref(), meaning, files: &files, root },
                RANKED,
            )?
        }
        _ => Vec::new(),
    };
    let suggestions = match (store, &place.row) {
        (Some(store), Some(row)) => recall::patterns::suggested_beside(store, row.id, &found, args.query.as_deref(), &files)?,
        _ => Vec::new(),
    };
    let mut told = past(&found, budget);
    told.text = patterns::beside(told.text, &suggestions, budget);
    if args.json {
        if let Some(store) = store {
            let units: Vec<i64> = told.shown.iter().map(|shown| shown.past.unit.id).collect();
            told.tokens.distil = store.spent_on(&units)?;
        }
        let mut json = ranked_json(place.name(), &told);
        json["suggestions"] = suggestions.iter().map(patterns::suggestion_json).collect();
        return output::say(&json.to_string());
    }
    if told.text.is_empty() {
        return output::say(&match place.row {
            Some(_) => "Nothing that is remembered of this project has to do with it.".to_string(),
            None => nothing(place),
        });
    }
    output::say(told.text.trim_end())?;
    if args.why {
        output::say(&format!("\n{}", why(&told.shown, output::style()).trim_end()))?;
    }
    Ok(())
}

/// With the keys of COMMANDS.md: the memories of each piece of work in the order in which it matters; one of which nothing is
/// remembered stands for itself.
fn ranked_json(project: Option<&str>, told: &Told) -> Value {
    let memories: Vec<Value> = told.shown.iter().flat_map(|shown| {
        let unit = &shown.past.unit;
        let why: Vec<String> = shown.past.why.iter().map(|why| format!("{} {:+.2}", why.what, why.adds)).collect();
        let item = |id: String, kind: &str, kind_type: Option<&str>, title: &str| {
            json!({
                "id": id, "kind": kind, "type": kind_type, "title": title, "score": shown.past.score, "session": unit.agent_session_id,
                "unit": format!("u{}", unit.id), "why": why,
            })
        };
        match shown.memories.is_empty() {
            true => vec![item(format!("u{}", unit.id), "unit", None, unit.intent.as_deref().unwrap_or_default())],
            false => shown.memories.iter().map(|m| item(memories::id(m), m.kind.name(), m.kind_type.as_deref(), &m.title)).collect(),
        }
    }).collect();
    let of = |kind: MemoryKind| -> Vec<Value> {
        told.shown.iter().flat_map(|shown| &shown.memories).filter(|m| m.kind == kind).map(|m| memories::json(m)).collect()
    };
    json!({
        "project": project, "text": told.text, "bytes": told.text.len(), "memories": memories,
        "observations": of(MemoryKind::Observation), "summaries": of(MemoryKind::Summary), "tokenStats": token_stats(told.tokens),
    })
}

/// All memories among which was chosen.
fn told(recalled: &Recalled) -> Vec<&MemoryRow> {
    let summaries = recalled.sessions.iter().flat_map(|told| &told.units).filter_map(|told| told.summary.as_ref());
    recalled.pinned.iter().chain(&recalled.settled).chain(&recalled.observations).chain(summaries).collect()
}

/// With the keys of COMMANDS.md; observations and summaries as the observation protocol has them.
fn json(project: Option<&str>, recalled: &Recalled, given: &ForAgent) -> Value {
    let all = told(recalled);
    let shown: Vec<&MemoryRow> = given.shown.iter().filter_map(|id| all.iter().find(|m| m.id == *id).copied()).collect();
    let near = |memory: &MemoryRow| memory.unit.and_then(|unit| recalled.why.get(&unit));
    let why = |memory: &MemoryRow| -> Vec<String> {
        let pinned = memory.pinned.then(|| "pinned".to_string());
        let routes = near(memory).into_iter().flat_map(|(_, why)| why).map(|why| format!("{} {:+.2}", why.what, why.adds));
        pinned.into_iter().chain(routes).collect()
    };
    let brief = |memory: &&MemoryRow| {
        json!({
            "id": memories::id(memory), "kind": memory.kind, "type": memory.kind_type, "title": memory.title,
            "session": memory.agent_session_id, "unit": memory.unit.map(|unit| format!("u{unit}")),
            "score": near(memory).map(|(score, _)| score), "why": why(memory),
        })
    };
    let of = |kind: MemoryKind| -> Vec<Value> { shown.iter().filter(|m| m.kind == kind).map(|m| memories::json(m)).collect() };
    json!({
        "project": project, "text": given.text, "bytes": given.text.len(), "memories": shown.iter().map(brief).collect::<Vec<_>>(),
        "observations": of(MemoryKind::Observation), "summaries": of(MemoryKind::Summary),
        "tokenStats": token_stats(given.tokens),
        "suggestions": recalled.suggestions.iter().map(patterns::suggestion_json).collect::<Vec<_>>(),
    })
}

/// Why an agent would be given nothing here.
fn silent(config: &Config, place: &FolderProject, now: Millis) -> Option<String> {
    if !config.enabled.value {
        return Some(format!("enabled = false ({}): hooks do nothing here", config.enabled.source));
    }
    if config.inject.value == Inject::None {
        return Some(format!("inject = \"none\" ({}): agents are given nothing", config.inject.source));
    }
    config.switches.off_in(&place.known, now).map(|off| format!("recording is off {}: hooks do nothing here", off.describe(now)))
}

fn nothing(place: &FolderProject) -> String {
    match place.name() {
        Some(name) => format!(
            "Nothing is recorded of {name} yet: recording begins with the first session after `nmem install claude-code`."
        ),
        None => "This folder is no project (the home folder and / never are one); change into one.".to_string(),
    }
}
