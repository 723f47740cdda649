//! `nmem import`: imports past sessions of the agents on this machine.

use super::output;
use super::project_argument::writable;
use crate::config::{self, environment};
use crate::distil::embed::embed_all;
use crate::error::UserError;
use crate::files;
use crate::import::{self, AgentReport, FoundFile, ImportProgress, ImportReport, JoinedWorktree, Stores};
use crate::model::Platform;
use crate::platforms;
use crate::render::clean::line;
use crate::render::{count, time};
use crate::runtime::redactor;
use anyhow::Result;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Columns of the progress bar.
const BAR: usize = 20;

/// Import past sessions of the agents on this machine
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem import --dry-run\n         nmem import\n         nmem import ~/backup/claude/projects --since 90d\n\nReads the sessions that agents keep on this machine, Claude Code's notes and the memories of claude-mem, by the same rules as hooks: secrets are redacted, and your settings for folders hold. Retention of tool uses (`[retention] tool_uses_days`, 180) counts from the import. No model is asked, except a local one for embeddings. You can press Ctrl-C at any time and run it again: a second run reads only what is new."
)]
pub struct ImportArguments {
    /// Session files, or folders of them [default: where the agents keep them]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Only sessions of this agent
    #[arg(long, value_name = "NAME", value_parser = agent)]
    agent: Option<Platform>,
    /// The agent of files whose format is not recognised: an agent's name, or `other` for messages with texts, calls and
    /// results as Anthropic's API has them
    #[arg(long = "as", value_name = "NAME", value_parser = agent, requires = "paths")]
    of_agent: Option<Platform>,
    /// Only files that changed after this time: 2026-11-01, 90d, yesterday
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// List what would be imported
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn agent(name: &str) -> Result<Platform, String> {
    let mut known: Vec<&str> = platforms::formats().map(|format| format.platform.name()).collect();
    known.sort_unstable();
    known.dedup();
    Platform::from_name(name).filter(|_| known.contains(&name)).ok_or_else(|| format!("one of: {}", known.join(", ")))
}

/// Runs the command.
pub fn run(args: &ImportArguments) -> Result<()> {
    let begun = Instant::now();
    let now = environment::now();
    let since = args.since.as_deref().map(|text| time::parse(text, now)).transpose();
    let since = since.map_err(|wrong| UserError::usage(wrong, "see `nmem import --help`"))?;
    let config = config::load(&[])?;
    let known = import::imported(&config)?;
    let mut found = import::find(&args.paths, args.agent, config.home.as_deref(), &known, config.files.value.folder())?;
    if let Some(agent) = args.of_agent {
        found.read_unknown_as(agent);
    }
    found.memories.retain(|file| since.is_none_or(|since| file.modified_at >= since));
    found.files.retain(|file| since.is_none_or(|since| file.modified_at >= since));
    if found.files.is_empty() && found.memories.is_empty() && found.unreadable.is_empty() && found.unchanged.is_empty() {
        return nothing(args, &found);
    }
    if args.dry_run {
        found.files.retain(|file| known.get(&file.name()).is_none_or(|known| !file.is_unchanged(known)));
        return dry_run(args, &found);
    }
    drop(writable(&config)?);
    let progress = output::Progress::begin();
    let unreadable = std::mem::take(&mut found.unreadable);
    let mut report = import::import(&config, found, &mut |state| progress.say(&step(state, begun.elapsed())))?;
    drop(progress);
    for (platform, reason) in unreadable {
        report.agent(platform.name()).unreadable.push(reason);
    }
    report.agents.sort_by_key(|agent| agent.agent);
    let mut store = writable(&config)?;
    // A server's embeddings cost money; `nmem distil --all` asks for them.
    if config.embeddings.is_local() {
        let progress = output::Progress::begin();
        let embedded = embed_all(&config, &redactor(&config)?, &mut store, (None, None), None, &mut |done, all, _| {
            progress.say(&format!("embedding memory {done} of {all}"))
        })?;
        if let Some(problem) = embedded.and_then(|embedded| embedded.problem) {
            output::warn(&problem.what);
        }
    }
    store.merge_indexes()?;
    store.checkpoint();
    let seconds = begun.elapsed().as_secs_f64();
    if args.json { output::print(&json(&report, seconds).to_string()) } else { output::say(&text(&report, seconds)) }
}

/// Returns the progress line: bar, rate, remaining time.
fn step(state: ImportProgress, elapsed: Duration) -> String {
    let all = state.all_bytes.max(1);
    let filled = (state.bytes * BAR as u64 / all) as usize;
    let seconds = elapsed.as_secs_f64().max(0.001);
    let rate = state.bytes as f64 / 1e6 / seconds;
    let left = (all - state.bytes.min(all)) as f64 / 1e6 / rate.max(0.001);
    let left = if state.bytes == 0 { String::new() } else { format!(", {left:.0} s left") };
    format!(
        "[{}{}] {} of {} files, {rate:.0} MB/s{left}",
        "#".repeat(filled.min(BAR)),
        "·".repeat(BAR - filled.min(BAR)),
        state.files,
        state.all_files
    )
}

fn nothing(args: &ImportArguments, found: &Stores) -> Result<()> {
    if args.json {
        return output::print(&json!({"agents": [], "bytes": 0, "seconds": 0.0}).to_string());
    }
    let places: Vec<String> = found.places.iter().map(|(_, place)| place.display().to_string()).collect();
    let text = match (found.unknown.len(), places.is_empty()) {
        (0, true) if args.paths.is_empty() => "No agent keeps sessions on this machine, as far as nmem knows.".to_string(),
        (0, false) => format!("No sessions found in {}.", places.join(", ")),
        (0, true) => "No sessions found in these paths.".to_string(),
        (n, _) => format!(
            "{} of no known format, such as {}. Nothing was imported. `--as NAME` says whose they are.",
            count(n as i64, "file is", "files are"),
            found.unknown[0].display()
        ),
    };
    output::say(&line(&text, 2000))
}

fn dry_run(args: &ImportArguments, found: &Stores) -> Result<()> {
    let mut agents: Vec<(Platform, Vec<&FoundFile>)> = Vec::new();
    for file in &found.files {
        match agents.iter_mut().find(|(agent, _)| *agent == file.format.platform) {
            Some((_, files)) => files.push(file),
            None => agents.push((file.format.platform, vec![file])),
        }
    }
    let mut json = Vec::new();
    for (agent, files) in agents {
        let sessions = files.iter().filter(|file| (file.format.session_file)(&file.path).is_none()).count();
        let bytes: u64 = files.iter().map(|file| file.length).sum();
        let first = files.iter().map(|file| file.modified_at).min().unwrap_or_default();
        let last = files.iter().map(|file| file.modified_at).max().unwrap_or_default();
        let place = found.places.iter().find(|(of, _)| *of == agent).map(|(_, place)| place.clone());
        let of_file = || {
            let file = files.first().map(|file| file.path.clone()).unwrap_or_default();
            let given = |path: &&PathBuf| files::canonical(path).is_ok_and(|path| file.starts_with(path));
            args.paths.iter().find(given).cloned().unwrap_or_else(|| file.clone())
        };
        let place = place.unwrap_or_else(of_file);
        if args.json {
            json.push(json!({"agent": agent.name(), "place": place, "files": files.len(), "sessions": sessions,
                "bytes": bytes, "first": first, "last": last}));
            continue;
        }
        output::say(&format!(
            "{}: {} in {}, changed from {} to {}, {:.1} MB",
            agent.name(),
            count(sessions as i64, "session", "sessions"),
            line(&place.display().to_string(), 500),
            time::day(first),
            time::day(last),
            bytes as f64 / 1e6
        ))?;
    }
    for memories in &found.memories {
        let what = if memories.is_notes { "notes of the agent" } else { "memories of claude-mem" };
        let (path, bytes) = (memories.path.display().to_string(), memories.length);
        match args.json {
            true => json.push(json!({"agent": what, "place": path, "files": 1, "bytes": bytes, "last": memories.modified_at})),
            false => output::say(&format!("{what}: {}, {:.1} kB", line(&path, 500), bytes as f64 / 1e3))?,
        }
    }
    match (args.json, found.files.is_empty()) {
        (true, _) => output::print(&json!({"agents": json, "dry_run": true}).to_string()),
        (false, true) => output::say("No session is new since the last import."),
        (false, false) => Ok(()),
    }
}

fn text(report: &ImportReport, seconds: f64) -> String {
    let parts = report.agents.iter().map(of_agent).collect::<String>();
    let joined = |joined: &JoinedWorktree| {
        let (folder, count) = (line(&joined.folder, 300), count(joined.sessions as i64, "session", "sessions"));
        format!("{folder} is gone: its {count} belong to {} now\n", line(&joined.project, 80))
    };
    let parts = parts + &report.joined.iter().map(joined).collect::<String>();
    parts + &format!("{:.1} MB in {seconds:.1} s. `nmem units --all` shows what was done.", report.bytes as f64 / 1e6)
}

fn of_agent(agent: &AgentReport) -> String {
    let counts = &agent.counts;
    let of = |n: u64, one: &str, many: &str| count(n as i64, one, many);
    let mut out = format!("{}: ", agent.agent);
    match agent.first.zip(agent.last) {
        Some((first, last)) => {
            out += &format!(
                "{} from {} to {}: {}, {} ({} failed)",
                of(agent.sessions.len() as u64, "session", "sessions"),
                time::day(first),
                time::day(last),
                of(counts.prompts, "prompt", "prompts"),
                of(counts.tool_uses, "tool use", "tool uses"),
                counts.failures,
            );
        }
        None => out += "nothing new",
    }
    if counts.subagent_tool_uses > 0 {
        out += &format!(", {} of subagents", counts.subagent_tool_uses);
    }
    if agent.memories > 0 {
        out += &format!(", {}", of(agent.memories, "memory", "memories"));
    }
    out += "\n";
    if agent.unchanged > 0 {
        out += &format!("  {} unchanged since the last import\n", of(agent.unchanged, "file is", "files are"));
    }
    if agent.gave_nothing() {
        out += &format!("  {} gave nothing: the format may have changed. Please report it.\n", of(agent.whole, "file", "files"));
    }
    if agent.secrets > 0 {
        out += &format!("  hidden: {}\n", of(agent.secrets, "secret", "secrets"));
    }
    for (reason, n) in &counts.skipped {
        out += &format!("  not stored: {n} × {}\n", line(reason, 200));
    }
    for (path, number) in &agent.broken {
        out += &format!("  not JSON: {}, line {number}\n", line(&path.display().to_string(), 500));
    }
    for unreadable in &agent.unreadable {
        out += &format!("  not readable: {}\n", line(unreadable, 500));
    }
    out
}

fn json(report: &ImportReport, seconds: f64) -> Value {
    let agents: Vec<Value> = report
        .agents
        .iter()
        .map(|agent| {
            let counts = &agent.counts;
            json!({"agent": agent.agent, "files": agent.files, "unchanged": agent.unchanged,
                "sessions": agent.sessions.len(), "prompts": counts.prompts, "tool_uses": counts.tool_uses,
                "failures": counts.failures, "memories": agent.memories, "secrets_hidden": agent.secrets, "subagent_tool_uses": counts.subagent_tool_uses, "skipped": counts.skipped,
                "first": agent.first, "last": agent.last, "gave_nothing": agent.gave_nothing(), "unreadable": agent.unreadable,
                "broken_lines": agent.broken.iter().map(|(path, line)| json!({"file": path, "line": line})).collect::<Vec<_>>()})
        })
        .collect();
    let joined =
        |joined: &JoinedWorktree| json!({"folder": joined.folder, "project": joined.project, "sessions": joined.sessions});
    let joined: Vec<Value> = report.joined.iter().map(joined).collect();
    json!({"agents": agents, "joined": joined, "bytes": report.bytes, "seconds": (seconds * 1000.0).round() / 1000.0})
}
