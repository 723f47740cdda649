//! `nmem export` and `nmem restore`: everything stored as JSON Lines, and back.

use super::output;
use super::project_argument::{ProjectArgument, open, writable};
use crate::archive;
use crate::config::{self, environment};
use crate::error::{NO_PROJECT, UserError};
use crate::files;
use crate::model::Table;
use crate::recall::{self, SessionContext};
use crate::render::clean::line;
use crate::render::{count, session_start};
use crate::runtime::redactor;
use crate::store::Store;
use crate::store::restore::Restored;
use anyhow::{Context, Result};
use clap::ValueEnum;
use serde_json::json;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter};
use std::path::PathBuf;

/// Write everything stored to JSON Lines, for backup or a new machine
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem export memory.jsonl\n         nmem export --project . | gzip > project.jsonl.gz\n\nOne row per line; memories are entities of the RAD protocol. The file is private to you. Hooks keep recording meanwhile."
)]
pub struct ExportArguments {
    /// The file to write; - for stdout [default: stdout]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Only the project of this folder [default: everything]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
    /// Everything, or this project's decisions as Markdown for an AGENTS.md
    #[arg(long, value_enum, default_value_t = ExportFormat::Jsonl)]
    format: ExportFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExportFormat {
    Jsonl,
    Agents,
}

/// Restore an export: all of it or nothing
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem restore memory.jsonl\n         gunzip -c project.jsonl.gz | nmem restore -\n\nExisting data is left unchanged: sessions with the same agent id, memories with the same uuid. Only restore files that you exported yourself, since your agents will receive their memories. Hooks wait in the spool meanwhile."
)]
pub struct RestoreArguments {
    /// The file to read; - for stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Only report what would be restored
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Writes a project's decisions as Markdown.
fn decisions(args: &ExportArguments, store: &Store, project: i64) -> Result<()> {
    // All of them, even if other agents' files already contain them.
    let recalled = recall::at_start(store, project, SessionContext::default(), environment::now())?;
    let text = session_start::decisions(recalled.pinned.iter().chain(&recalled.decisions));
    if text.is_empty() {
        output::warn("no decision of a person is recorded for this project");
    }
    match args.file.as_ref().filter(|file| file.as_os_str() != "-") {
        None => output::print(text.trim_end()),
        Some(path) if path.exists() && !args.force => {
            Err(UserError::usage(format!("{} exists", path.display()), "name another file, or give --force").into())
        }
        Some(path) => std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display())),
    }
}

/// Runs `nmem export`.
pub fn export(args: &ExportArguments) -> Result<()> {
    let argument = ProjectArgument { project: args.project.clone() };
    let (folder, config) = argument.config()?;
    let store = open(&config)?;
    let nothing = || UserError::new("nothing is recorded yet", "recording starts with the first session after `nmem install`");
    let store = store.ok_or_else(nothing)?;
    let place = argument.find(&folder, &config, Some(&store));
    if args.format == ExportFormat::Agents {
        let row =
            place.row.as_ref().ok_or_else(|| UserError::new(NO_PROJECT, "change into a project folder, or give --project"))?;
        return decisions(args, &store, row.id);
    }
    let of = match (&args.project, &place.row) {
        (None, _) => None,
        (Some(_), Some(row)) => Some(row),
        (Some(_), None) => {
            return Err(UserError::new("nothing is recorded for that folder's project", "`nmem project list`").into());
        }
    };
    let progress = output::Progress::begin();
    let mut report = |rows: usize| progress.say(&format!("{rows} rows"));
    let Some(path) = args.file.as_ref().filter(|file| file.as_os_str() != "-") else {
        archive::export(&store, of, environment::now(), &mut BufWriter::new(io::stdout().lock()), &mut report)?;
        return Ok(());
    };
    if path.symlink_metadata().is_ok_and(|meta| !meta.is_file()) {
        return Err(UserError::usage(
            format!("{} is not a regular file", path.display()),
            "name another file, or write to stdout",
        )
        .into());
    }
    if path.exists() && !args.force {
        return Err(UserError::usage(format!("{} already exists", path.display()), "name another file, or use --force").into());
    }
    let rows = files::write_private(path, |file| archive::export(&store, of, environment::now(), file, &mut report))
        .with_context(|| format!("cannot write {}", path.display()))?;
    drop(progress);
    output::say(&format!("{} in {}", count(rows as i64, "row", "rows"), path.display()))
}

/// Runs `nmem restore`.
pub fn restore(args: &RestoreArguments) -> Result<()> {
    let folder = std::env::current_dir().context("cannot determine the current folder")?;
    let config = config::load(&[&folder])?;
    let redactor = redactor(&config)?;
    let mut input: Box<dyn BufRead> = match args.file.as_os_str() == "-" {
        true => Box::new(io::stdin().lock()),
        false => {
            let file = File::open(&args.file);
            let hint = "give a file that `nmem export` wrote";
            Box::new(BufReader::new(file.map_err(|e| UserError::new(format!("cannot read {}: {e}", args.file.display()), hint))?))
        }
    };
    let mut store = writable(&config)?;
    let progress = output::Progress::begin();
    let mut report = |lines: usize| progress.say(&format!("{lines} lines"));
    let done = archive::restore(&mut store, &redactor, &mut *input, args.dry_run, &mut report)?;
    drop(progress);
    store.checkpoint();
    if args.json {
        let written: serde_json::Map<_, _> =
            Table::ALL.iter().map(|table| (table.name().to_string(), json!(done.written.get(table).unwrap_or(&0)))).collect();
        let json = json!({"written": written, "sessions_here": done.sessions_here, "memories_here": done.memories_here, "dry_run": args.dry_run});
        return output::print(&json.to_string());
    }
    output::say(&line(&restored_line(&done, args.dry_run), usize::MAX))
}

fn restored_line(done: &Restored, dry_run: bool) -> String {
    let of = |table: Table| done.written.get(&table).copied().unwrap_or(0) as i64;
    let written = [
        count(of(Table::Projects), "project", "projects"),
        count(of(Table::Sessions), "session", "sessions"),
        count(of(Table::ToolUses), "tool use", "tool uses"),
        count(of(Table::Memories), "memory", "memories"),
    ];
    let here = match (done.sessions_here as i64, done.memories_here as i64) {
        (0, 0) => String::new(),
        (sessions, memories) => format!(
            "; {} and {} already existed and were left unchanged",
            count(sessions, "session", "sessions"),
            count(memories, "memory", "memories")
        ),
    };
    format!("{}: {}{here}.", if dry_run { "Would restore" } else { "Restored" }, written.join(", "))
}
