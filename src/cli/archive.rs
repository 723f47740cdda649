//! `nmem export` and `nmem restore`: all that is stored as JSON Lines, and back.

use super::output;
use super::project_argument::{ProjectArgument, open, writable};
use crate::archive;
use crate::config::{self, environment};
use crate::error::Failure;
use crate::files;
use crate::model::Table;
use crate::render::clean::line;
use crate::render::count;
use crate::runtime::redactor;
use crate::store::archive::Restored;
use anyhow::{Context, Result};
use serde_json::json;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter};
use std::path::PathBuf;

/// Write everything that is stored as JSON Lines: a copy to keep, or to take to another machine
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem export memory.jsonl\n         nmem export --project . | gzip > project.jsonl.gz\n\nA line is a row; memories are entities of the RAD protocol. Nobody else may read the file. Hooks go on beside it."
)]
pub struct ExportArguments {
    /// The file to write [default: stdout]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Only the project of this folder [default: everything]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Write over a file that is there
    #[arg(long)]
    force: bool,
}

/// Read an export back: all of it or nothing
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem restore memory.jsonl\n         gunzip -c project.jsonl.gz | nmem restore -\n\nWhat stands here already is left as it is: sessions by their agents' ids, memories by their uuids. Restore only what you\nexported yourself: memories in it are told to your agents. Hooks that come meanwhile wait in the spool."
)]
pub struct RestoreArguments {
    /// The file to read; - for stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Only say what would come of it
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs `nmem export`.
pub fn export(args: &ExportArguments) -> Result<()> {
    let argument = ProjectArgument { project: args.project.clone() };
    let (folder, config) = argument.config()?;
    let store = open(&config)?;
    let nothing = || Failure::new("nothing is recorded yet", "recording begins with the first session after `nmem install`");
    let store = store.ok_or_else(nothing)?;
    let place = argument.find(&folder, &config, Some(&store));
    let of = match (&args.project, &place.row) {
        (None, _) => None,
        (Some(_), Some(row)) => Some(row),
        (Some(_), None) => return Err(Failure::new("nothing is recorded of that folder's project", "`nmem project list`").into()),
    };
    let progress = output::Progress::begin();
    let mut said = |rows: usize| progress.say(&format!("{rows} rows"));
    let Some(path) = &args.file else {
        archive::export(&store, of, environment::now(), &mut BufWriter::new(io::stdout().lock()), &mut said)?;
        return Ok(());
    };
    if path.symlink_metadata().is_ok_and(|meta| !meta.is_file()) {
        return Err(Failure::usage(format!("{} is no plain file", path.display()), "name another, or write to stdout").into());
    }
    if path.exists() && !args.force {
        return Err(Failure::usage(format!("{} is there already", path.display()), "name another file, or --force").into());
    }
    let rows = files::write_private(path, |file| archive::export(&store, of, environment::now(), file, &mut said))
        .with_context(|| format!("cannot write {}", path.display()))?;
    drop(progress);
    output::say(&format!("{} in {}", count(rows as i64, "row", "rows"), path.display()))
}

/// Runs `nmem restore`.
pub fn restore(args: &RestoreArguments) -> Result<()> {
    let folder = std::env::current_dir().context("cannot tell the current folder")?;
    let config = config::load(&[&folder])?;
    let redactor = redactor(&config)?;
    let mut input: Box<dyn BufRead> = match args.file.as_os_str() == "-" {
        true => Box::new(io::stdin().lock()),
        false => {
            let file = File::open(&args.file);
            let hint = "give a file that `nmem export` wrote";
            Box::new(BufReader::new(file.map_err(|e| Failure::new(format!("cannot read {}: {e}", args.file.display()), hint))?))
        }
    };
    let mut store = writable(&config)?;
    let progress = output::Progress::begin();
    let mut said = |lines: usize| progress.say(&format!("{lines} lines"));
    let done = archive::restore(&mut store, &redactor, &mut *input, args.dry_run, &mut said)?;
    drop(progress);
    store.checkpoint();
    if args.json {
        let written: serde_json::Map<_, _> =
            Table::ALL.iter().map(|table| (table.name().to_string(), json!(done.written.get(table).unwrap_or(&0)))).collect();
        let told = json!({"written": written, "sessions_here": done.sessions_here, "memories_here": done.memories_here, "dry_run": args.dry_run});
        return output::say(&told.to_string());
    }
    output::say(&line(&said_of(&done, args.dry_run), usize::MAX))
}

fn said_of(done: &Restored, dry_run: bool) -> String {
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
            "; {} and {} stand here already and were left as they are",
            count(sessions, "session", "sessions"),
            count(memories, "memory", "memories")
        ),
    };
    format!("{}: {}{here}.", if dry_run { "Would be restored" } else { "Restored" }, written.join(", "))
}
