//! The surface: one file per command, each with its arguments, the call of a use case, and the call of `render`.
//!
//! Hook commands don't go through clap, which costs 0.2 of an empty process; and a clap error exits with 2, which blocks
//! an agent (ADR/0006).

mod archive;
mod context;
mod demo;
mod distil;
mod doctor;
mod domain;
mod forget;
mod hook;
mod install;
mod meaning;
mod memory;
mod moments;
mod observe;
mod off;
mod output;
mod patterns;
mod project;
mod rad;
mod record;
mod search;
mod show;
mod status;
mod stdin;
mod trust;
mod units;

use crate::config::switches::Known;
use crate::config::{self, Config, environment};
use crate::error::{Failure, explain, is_broken_pipe};
use crate::llm::guard;
use crate::model::{ProjectId, ProjectRow};
use crate::store::Store;
use anyhow::{Context, Result};
use clap::{CommandFactory, Parser, Subcommand};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Memory for coding agents: one binary, one SQLite file, nothing running
#[derive(Debug, Parser)]
#[command(name = "nmem", version, subcommand_required = true, arg_required_else_help = true)]
#[command(after_help = "Start with `nmem demo`, then `nmem install claude-code`.")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Take one hook event on stdin (agents call this)
    #[command(
        after_help = "Example: nmem record < event.json\n\nAlways exits with 0. Prints nothing, or the JSON that the platform accepts."
    )]
    Record(record::Arguments),
    Context(context::Arguments),
    Search(search::Arguments),
    Units(units::Arguments),
    Show(show::Arguments),
    Status(status::Arguments),
    Patterns(patterns::Arguments),
    Install(install::InstallArguments),
    Uninstall(install::UninstallArguments),
    Demo(demo::Arguments),
    Doctor(doctor::Arguments),
    Remember(memory::RememberArguments),
    Edit(memory::EditArguments),
    Pin(memory::PinArguments),
    /// No longer tell every session of a memory
    #[command(after_help = "Example: nmem unpin m7")]
    Unpin(memory::PinArguments),
    Supersede(memory::SupersedeArguments),
    Forget(forget::Arguments),
    Export(archive::ExportArguments),
    Restore(archive::RestoreArguments),
    Distil(distil::Arguments),
    Domain(domain::Arguments),
    Project(project::Arguments),
    Off(off::OffArguments),
    On(off::OnArguments),
    Trust(trust::Arguments),
    Rad(rad::Arguments),
}

/// Runs a command line without the program's name.
pub fn main(mut args: Vec<OsString>) -> ExitCode {
    environment::started();
    match args.first().and_then(|a| a.to_str()) {
        Some(guard::COMMAND) => return guard::run(&args[1..]),
        Some("record") if !wants_help(&args) => return hook::sealed(|| record::run(&args[1..])),
        Some("context") if context::is_hook(&args[1..]) => {
            if let Some(code) = context::run_hook(&args[1..]) {
                return code;
            }
        }
        Some("search") => args = search::with_negations(args),
        _ => {}
    }
    let parsed = match Arguments::try_parse_from(std::iter::once(OsString::from("nmem")).chain(args)) {
        Ok(parsed) => parsed,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    finish(run(parsed.command))
}

fn wants_help(args: &[OsString]) -> bool {
    args.iter().any(|a| a == "--help" || a == "-h")
}

/// Runs a command; whether all that was asked of it could be answered.
fn run(command: Command) -> Result<bool> {
    let done = match command {
        Command::Rad(args) => return rad::run(&args),
        Command::Record(_) => Ok(()),
        Command::Context(args) => context::run(&args),
        Command::Search(args) => search::run(&args),
        Command::Units(args) => units::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Status(args) => status::run(&args),
        Command::Patterns(args) => patterns::run(&args),
        Command::Install(args) => install::install(&args),
        Command::Uninstall(args) => install::uninstall(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Remember(args) => memory::remember(&args),
        Command::Edit(args) => memory::edit(&args),
        Command::Pin(args) => memory::pin(&args, true),
        Command::Unpin(args) => memory::pin(&args, false),
        Command::Supersede(args) => memory::supersede(&args),
        Command::Export(args) => archive::export(&args),
        Command::Restore(args) => archive::restore(&args),
        Command::Distil(args) => distil::run(&args),
        Command::Domain(args) => domain::run(&args),
        Command::Forget(args) => forget::run(&args),
        Command::Project(args) => project::run(&args),
        Command::Off(args) => off::off(&args),
        Command::On(args) => off::on(&args),
        Command::Trust(args) => trust::run(&args),
    };
    done.map(|()| true)
}

fn finish(result: Result<bool>) -> ExitCode {
    match result {
        Ok(false) => ExitCode::from(1),
        Err(error) if !is_broken_pipe(&error) => {
            let failure = explain(&error);
            output::complain(&failure);
            ExitCode::from(failure.kind.exit_code())
        }
        _ => ExitCode::SUCCESS,
    }
}

/// The clap definition, for tests that hold the help texts.
pub fn definition() -> clap::Command {
    Arguments::command()
}

/// Arguments that every command has which looks at a project.
#[derive(Debug, clap::Args)]
struct ProjectArgument {
    /// Look at the project of this folder instead of the current one
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
}

impl ProjectArgument {
    /// The folder, absolute.
    fn folder(&self) -> Result<PathBuf> {
        match &self.project {
            Some(folder) => folder.canonicalize().map_err(|e| {
                Failure::new(format!("cannot look at {}: {e}", folder.display()), "give a folder that exists").into()
            }),
            None => std::env::current_dir().context("cannot tell the current folder"),
        }
    }

    /// All settings as they hold there; what can't be read is said, and its defaults count.
    fn config(&self) -> Result<(PathBuf, Config)> {
        let folder = self.folder()?;
        let (config, problem) = self.config_and_problem(&folder)?;
        if let Some(problem) = problem {
            output::warn(&format!("nothing is recorded: {problem:#}"));
        }
        for key in &config.unknown {
            output::warn(&format!("{}: `{key}` is not a setting that this nmem knows", config.file.display()));
        }
        Ok((folder, config))
    }

    fn config_and_problem(&self, folder: &Path) -> Result<(Config, Option<anyhow::Error>)> {
        let (config, problem) = config::load_what_can_be(&[folder])?;
        let problem = problem.or_else(|| hook::redactor(&config).err());
        Ok((config, problem))
    }

    /// The project as it is stored: its row, or what it would be called.
    fn find(&self, folder: &Path, config: &Config, store: Option<&Store>) -> Result<Place> {
        let redactor = hook::redactor(config).unwrap_or_default();
        let (known, id, row) = hook::recorder(config, &redactor).known(&folder.to_string_lossy(), store);
        Ok(Place { known, id, row })
    }
}

/// A folder seen as a project.
struct Place {
    known: Known,
    /// `None`: the folder is no project (home, `/`).
    id: Option<ProjectId>,
    /// `None`: nothing is stored of it yet.
    row: Option<ProjectRow>,
}

impl Place {
    fn name(&self) -> Option<&str> {
        self.row.as_ref().map(|row| row.name.as_str()).or(self.id.as_ref().map(|id| id.name.as_str()))
    }
}

/// Opens the store for a person's reading command: stores what waits first; `None` where nothing was ever recorded.
fn open(config: &Config) -> Result<Option<Store>> {
    use crate::store::{PERSON_WAIT, spool};
    let files = &config.files.value;
    if spool::is_waiting(files) {
        let drained = Store::open(files, PERSON_WAIT).and_then(|mut store| {
            let redactor = hook::redactor(config)?;
            hook::recorder(config, &redactor).drain(&mut store)
        });
        if let Err(error) = drained {
            output::warn(&format!("{} events wait and could not be stored: {error:#}", spool::waiting(files)));
        }
    }
    Store::open_to_read(files, PERSON_WAIT)
}

/// Opens the store for a person's writing command, making it where there is none: stores what waits first.
fn writable(config: &Config) -> Result<Store> {
    let mut store = Store::open(&config.files.value, crate::store::PERSON_WAIT)?;
    hook::recorder(config, &hook::redactor(config)?).drain(&mut store)?;
    Ok(store)
}
