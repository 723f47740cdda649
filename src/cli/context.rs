//! `nmem context`: the SessionStart hook, and in a terminal the same view for a person.

use super::stdin::{self, Stdin};
use super::{Place, ProjectArgument, hook, off, open, output, record};
use crate::config::{CONTEXT_BYTES_MAX, Config, Inject, environment};
use crate::model::{MemoryRow, Millis, Recalled};
use crate::platforms::intake::{self, Intake};
use crate::recall;
use crate::render::context::{ForAgent, Occasion, for_agent, for_person};
use crate::render::memories;
use anyhow::Result;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

/// How long stdin is waited for, where it isn't a terminal.
const STDIN: Duration = Duration::from_secs(1);

/// Show what the next session here would be given
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem context --json\n\nWith a hook event on stdin it registers the session and answers as the agent expects."
)]
pub struct Arguments {
    #[command(flatten)]
    project: ProjectArgument,
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
    let code = hook::sealed(|| {
        let intake = Stdin::within(STDIN).and_then(intake::read);
        match intake {
            Ok(Intake::Json { value, mended }) => record::handle(record::platform(args), &value, mended),
            Ok(Intake::Garbage(reason)) => anyhow::bail!("stdin was no hook event: {reason}"),
            // Nothing came at all: a person asks.
            Ok(Intake::Empty) | Err(_) => {
                asked = false;
                Ok(None)
            }
        }
    });
    asked.then_some(code)
}

/// Shows the context to a person.
pub fn run(args: &Arguments) -> Result<()> {
    let (folder, config) = args.project.config()?;
    let store = open(&config)?;
    let now = environment::now();
    let place = args.project.find(&folder, &config, store.as_ref())?;
    let budget = args.budget.map_or(config.context_bytes.value, |b| b as usize);
    let recalled = match (&store, &place.row) {
        (Some(store), Some(row)) => recall::at_start(store, row.id, None, now)?,
        _ => Recalled::default(),
    };
    // What an agent would be given, and why it would be given nothing.
    let silent = silent(&config, &place, now);
    if args.json {
        let mut given = if silent.is_some() { ForAgent::default() } else { for_agent(Occasion::Start, &recalled, budget) };
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

/// All memories among which was chosen.
fn told(recalled: &Recalled) -> Vec<&MemoryRow> {
    let summaries = recalled.sessions.iter().flat_map(|told| &told.units).filter_map(|told| told.summary.as_ref());
    recalled.pinned.iter().chain(&recalled.settled).chain(&recalled.observations).chain(summaries).collect()
}

/// With the keys of COMMANDS.md; observations and summaries as the observation protocol has them.
fn json(project: Option<&str>, recalled: &Recalled, given: &ForAgent) -> Value {
    let all = told(recalled);
    let shown: Vec<&MemoryRow> = given.shown.iter().filter_map(|id| all.iter().find(|m| m.id == *id).copied()).collect();
    let brief = |memory: &&MemoryRow| {
        json!({
            "id": memories::id(memory), "kind": memory.kind, "type": memory.kind_type, "title": memory.title,
            "session": memory.agent_session_id, "unit": memory.unit.map(|unit| format!("u{unit}")),
        })
    };
    let of = |kind: &str| -> Vec<Value> { shown.iter().filter(|m| m.kind == kind).map(|m| memories::json(m)).collect() };
    let tokens = given.tokens;
    json!({
        "project": project, "text": given.text, "bytes": given.text.len(), "memories": shown.iter().map(brief).collect::<Vec<_>>(),
        "observations": of("observation"), "summaries": of("summary"),
        "tokenStats": {
            "readTokens": tokens.read, "workTokens": tokens.work, "savings": tokens.savings(), "savingsPercent": tokens.savings_percent(),
            "distilTokens": tokens.distil, "netSavings": tokens.net(), "estimated": tokens.estimated,
        },
    })
}

/// Why an agent would be given nothing here.
fn silent(config: &Config, place: &Place, now: Millis) -> Option<String> {
    if !config.enabled.value {
        return Some(format!("enabled = false ({}): hooks do nothing here", config.enabled.source));
    }
    if config.inject.value == Inject::None {
        return Some(format!("inject = \"none\" ({}): agents are given nothing", config.inject.source));
    }
    off::here(config, place, now).map(|off| format!("recording is off {}: hooks do nothing here", off::told(&off, now)))
}

fn nothing(place: &Place) -> String {
    match place.name() {
        Some(name) => format!(
            "Nothing is recorded of {name} yet: recording begins with the first session after `nmem install claude-code`."
        ),
        None => "This folder is no project (the home folder and / never are one); change into one.".to_string(),
    }
}
