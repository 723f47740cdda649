//! `nmem context`: the SessionStart hook; in a terminal, shows what the next session would receive.

use super::hook::{self, Stdin};
use super::output;
use super::project_argument::{ProjectArgument, open};
use crate::config::{CONTEXT_BYTES_MAX, Config, Inject, environment};
use crate::distil::embed;
use crate::error::NO_PROJECT;
use crate::hook_event;
use crate::model::{Grade, MemoryKind, MemoryRow, Millis, Recalled, RelatedWork};
use crate::platforms::payload::{self, Payload};
use crate::recall::{self, CurrentTask};
use crate::render::memory_text;
use crate::render::ranked_units::{InjectedBlock, for_request, why};
use crate::render::session_start::{ContextBlock, for_agent, styled, token_stats, with_below};
use crate::runtime::{FolderProject, redactor};
use crate::store::Store;
use anyhow::Result;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Maximum wait for stdin if it is not a terminal.
const STDIN: Duration = Duration::from_secs(1);

/// Show exactly what the next session here would receive
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem context --json\n         nmem context --query 'the exporter breaks rows with commas' --why\n         nmem context --file src/export.rs\n\nAs a hook (with an event on stdin), it also registers the session and answers in the agent's format."
)]
pub struct ContextArguments {
    #[command(flatten)]
    project: ProjectArgument,
    /// Rank what is known about a task; a prompt receives less of it
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    query: Option<String>,
    /// Rank memories for work on these files
    #[arg(long, value_name = "PATH", num_args = 1..)]
    file: Vec<PathBuf>,
    /// Show why each memory or work unit was chosen
    #[arg(long)]
    why: bool,
    /// Maximum bytes of the context block [default: the setting context_bytes]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(500..=CONTEXT_BYTES_MAX as i64))]
    budget: Option<u32>,
    /// Print one JSON object; `text` is the context block
    #[arg(long)]
    json: bool,
    /// The agent whose hook event is on stdin (for hooks)
    #[arg(long, value_name = "NAME")]
    platform: Option<String>,
}

/// Whether these arguments may come from a hook.
pub fn is_hook(args: &[OsString]) -> bool {
    let plain = |a: &OsString| a.to_str().is_some_and(|a| !a.starts_with('-') || a.starts_with("--platform"));
    args.iter().all(plain) && !hook::is_terminal()
}

/// Answers a hook event on stdin. Returns `None` if stdin is empty, which means that a person runs the command.
pub fn run_hook(args: &[OsString]) -> Option<ExitCode> {
    if environment::switched_off().is_some() {
        return Some(ExitCode::SUCCESS);
    }
    let mut query = true;
    let code = super::hook::run_safely(|| match Stdin::within(STDIN).and_then(payload::read) {
        // Empty stdin means that a person runs the command, unless it names an agent.
        Ok(Payload::Empty) | Err(_) => {
            query = hook_event::platform(args).is_some();
            Ok(None)
        }
        Ok(intake) => hook_event::answer(hook_event::platform(args), intake),
    });
    query.then_some(code)
}

/// Shows the context to a person.
pub fn run(args: &ContextArguments) -> Result<()> {
    let (folder, config) = args.project.config()?;
    let store = open(&config)?;
    let now = environment::now();
    let place = args.project.find(&folder, &config, store.as_ref());
    let budget = args.budget.map_or(config.context_bytes.value, |b| b as usize);
    if args.query.is_some() || !args.file.is_empty() {
        return ranked(args, &config, &folder, &place, store.as_ref(), budget);
    }
    let recalled = match (&store, &place.row) {
        (Some(store), Some(row)) => recall::for_new_session(store, &task(row.id, &folder, &config), now)?,
        _ => Recalled::default(),
    };
    // The block that an agent would receive, or the reason why it would receive nothing.
    let no_context = no_context(&config, &place, now);
    let below = match &store {
        Some(store) => recall::for_session_above(store, &task(0, &folder, &config), now)?,
        None => Vec::new(),
    };
    let mut given = match no_context {
        Some(_) => ContextBlock::default(),
        None => with_below(for_agent(&recalled, budget / (below.len() + 1)), &below, budget),
    };
    if args.json {
        if let Some(store) = &store {
            let of_units: Vec<i64> =
                candidates(&recalled).into_iter().filter(|m| given.shown.contains(&m.id)).filter_map(|m| m.unit).collect();
            given.tokens.distil = store.spent_on(&of_units)?;
        }
        return output::print(&json(place.name(), &recalled, &given).to_string());
    }
    match no_context {
        Some(reason) => output::say(&format!("A session here would receive nothing: {reason}.")),
        None if given.text.is_empty() => output::say(&empty_message(&place)),
        None => {
            output::say(&styled(given.text.trim_end(), output::style()))?;
            let shown = if args.why { shown(&recalled, &given) } else { Vec::new() };
            let reason = |memory: &&MemoryRow| {
                let style = output::style();
                format!("{}  {}", style.strong(&memory_text::id(memory)), style.faint(part_of_start(&recalled, memory)))
            };
            let lines: Vec<String> = shown.iter().map(reason).collect();
            if lines.is_empty() { Ok(()) } else { output::say(&format!("\n{}", lines.join("\n"))) }
        }
    }
}

fn task<'a>(project: i64, folder: &'a Path, config: &'a Config) -> CurrentTask<'a> {
    CurrentTask {
        project,
        folder,
        home: config.home.as_deref(),
        request: None,
        files: &[],
        embedding: None,
        now: environment::now(),
    }
}

/// Shows earlier work related to a request and to files.
fn ranked(
    args: &ContextArguments,
    config: &Config,
    folder: &Path,
    place: &FolderProject,
    store: Option<&Store>,
    budget: usize,
) -> Result<()> {
    let embedding = match &args.query {
        Some(query) => embed::of_query(config, &redactor(config)?, query),
        None => None,
    };
    let files: Vec<String> = args.file.iter().map(|file| file.to_string_lossy().into_owned()).collect();
    let found = match (store, &place.row) {
        (Some(store), Some(row)) => {
            let embedding = embedding.as_ref().map(|(model, vector)| (model.as_str(), vector));
            let request = args.query.as_deref();
            recall::for_task(store, &CurrentTask { request, files: &files, embedding, ..task(row.id, folder, config) })?
        }
        _ => RelatedWork::default(),
    };
    let mut block = for_request(&found, budget);
    if args.json {
        if let Some(store) = store {
            let units: Vec<i64> = block.shown.iter().map(|shown| shown.ranked.unit.id).collect();
            block.tokens.distil = store.spent_on(&units)?;
        }
        return output::print(&ranked_json(place.name(), &block, found.grade).to_string());
    }
    if block.text.is_empty() {
        return output::say(&match place.row {
            Some(_) => "No memory of this project is related to it.".to_string(),
            None => empty_message(place),
        });
    }
    output::say(&styled(block.text.trim_end(), output::style()))?;
    if args.why {
        output::say(&format!("\n{}", why(&block.shown, output::style()).trim_end()))?;
    }
    Ok(())
}

/// Returns the memories of each unit as JSON, most relevant unit first; a unit without memories is listed itself.
fn ranked_json(project: Option<&str>, block: &InjectedBlock, grade: Option<Grade>) -> Value {
    let memories: Vec<Value> = block.shown.iter().flat_map(|shown| {
        let unit = &shown.ranked.unit;
        let why: Vec<String> = shown.ranked.why.iter().map(|why| format!("{} {:+.2}", why.what, why.adds)).collect();
        let item = |id: String, kind: &str, kind_type: Option<&str>, title: &str| {
            json!({
                "id": id, "kind": kind, "type": kind_type, "title": title, "score": shown.ranked.score, "session": unit.agent_session_id,
                "unit": format!("u{}", unit.id), "why": why,
            })
        };
        match shown.memories.is_empty() {
            true => vec![item(format!("u{}", unit.id), "unit", None, unit.title.as_deref().or(unit.intent.as_deref()).unwrap_or_default())],
            false => shown.memories.iter().map(|m| item(memory_text::id(m), m.kind.name(), m.kind_type.as_deref(), &m.title)).collect(),
        }
    }).collect();
    let of = |kind: MemoryKind| -> Vec<Value> {
        block.shown.iter().flat_map(|shown| &shown.memories).filter(|m| m.kind == kind).map(|m| memory_text::json(m)).collect()
    };
    let mut json = json!({
        "project": project, "text": block.text, "bytes": block.text.len(), "memories": memories,
        "observations": of(MemoryKind::Observation), "summaries": of(MemoryKind::Summary), "tokenStats": token_stats(block.tokens),
    });
    if let Some(grade) = grade {
        json["match"] = grade.name().into();
    }
    json
}

/// All candidate memories.
fn candidates(recalled: &Recalled) -> Vec<&MemoryRow> {
    let summaries = recalled.last.iter().flat_map(|session| &session.units).filter_map(|unit| unit.summary.as_ref());
    let settled = recalled.pinned.iter().chain(&recalled.decisions).chain(&recalled.open).chain(&recalled.mistakes);
    settled.chain(summaries).collect()
}

/// The memories that a context shows, in its order.
fn shown<'a>(recalled: &'a Recalled, given: &ContextBlock) -> Vec<&'a MemoryRow> {
    let all = candidates(recalled);
    given.shown.iter().filter_map(|id| all.iter().find(|memory| memory.id == *id).copied()).collect()
}

/// Returns the reason why a start shows a memory: the part of the context that it belongs to.
fn part_of_start(recalled: &Recalled, memory: &MemoryRow) -> &'static str {
    let is_in = |part: &[MemoryRow]| part.iter().any(|one| one.id == memory.id);
    match () {
        () if memory.pinned => "pinned",
        () if is_in(&recalled.decisions) => "holds here",
        () if is_in(&recalled.mistakes) => "failed in several of the last sessions",
        () if is_in(&recalled.open) => "open on this branch",
        () => "of the last session on this branch",
    }
}

/// Returns the context as JSON. Observations and summaries have the keys of the observation protocol.
fn json(project: Option<&str>, recalled: &Recalled, given: &ContextBlock) -> Value {
    let shown = shown(recalled, given);
    let brief = |memory: &&MemoryRow| {
        json!({
            "id": memory_text::id(memory), "kind": memory.kind, "type": memory.kind_type, "title": memory.title,
            "session": memory.agent_session_id, "unit": memory.unit.map(|unit| format!("u{unit}")),
            "score": null, "why": [part_of_start(recalled, memory)],
        })
    };
    let of = |kind: MemoryKind| -> Vec<Value> { shown.iter().filter(|m| m.kind == kind).map(|m| memory_text::json(m)).collect() };
    json!({
        "project": project, "text": given.text, "bytes": given.text.len(), "memories": shown.iter().map(brief).collect::<Vec<_>>(),
        "observations": of(MemoryKind::Observation), "summaries": of(MemoryKind::Summary),
        "tokenStats": token_stats(given.tokens),
    })
}

/// Returns the reason why an agent would receive nothing here, if any.
fn no_context(config: &Config, place: &FolderProject, now: Millis) -> Option<String> {
    if !config.enabled.value {
        return Some(format!("enabled = false ({}): hooks do nothing here", config.enabled.source));
    }
    if config.inject.value == Inject::None {
        return Some(format!("inject = \"none\" ({}): nothing is injected", config.inject.source));
    }
    config
        .switches
        .off_in(&place.known, now)
        .map(|off| format!("recording is paused {}: hooks do nothing here", off.describe(now)))
}

fn empty_message(place: &FolderProject) -> String {
    match place.name() {
        Some(name) if place.row.is_some() => format!(
            "A session on this branch would receive nothing yet. `nmem units` lists the work in {name}, `--query TEXT` ranks it for a task."
        ),
        Some(name) => {
            format!("Nothing is remembered for {name} yet. Recording starts with the first session after `nmem install`.")
        }
        None => {
            format!("T{}. Change into a project folder.", &NO_PROJECT[1..])
        }
    }
}
