//! The command line: a file a command, with its arguments, one call of a use case and one of `render`.
//!
//! `hook` (record, mcp, rad), `context`, `search`, `units`, `show` (and log, resume), `view` (and serve),
//! `status` (with statusline), `how` (with error), `evidence` (why, verify, check, handoff, pr, git-notes), `remember` (and edit, pin, supersede, review), `forget`, `off`, `project` (with
//! trust), `team` (with sync), `domain`, `distil` (and models), `import`, `export` (with restore), `doctor`, `install`, `demo`,
//! `help` (with completions and man). Shared: `output`, `project_argument`.

mod context;
mod demo;
mod distil;
mod doctor;
mod domain;
mod evidence;
mod export;
mod forget;
mod help;
mod hook;
mod how;
mod import;
mod install;
mod off;
mod output;
mod project;
mod project_argument;
mod remember;
mod search;
mod show;
mod status;
#[cfg(feature = "team")]
mod team;
mod units;
mod view;

use crate::config::environment;
use crate::error::{explain, is_broken_pipe};
use crate::llm::guard;
use anyhow::Result;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;

/// The version, with the name by which scripts tell this program from others that are also called nmem.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (nmem-dev)");

/// Memory for coding agents: one binary, one SQLite file, no daemon
#[derive(Debug, Parser)]
#[command(name = "nmem", version = VERSION, subcommand_required = true)]
#[command(
    after_help = "Start with `nmem demo`, then `nmem install claude-code`. `nmem COMMAND --help` shows an example.\nOn a terminal, long lists open in the pager that NMEM_PAGER or PAGER names, else in less; an empty name means none."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Print no notes and no progress; errors are printed
    #[arg(short, long, global = true)]
    quiet: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Handle one hook event on stdin (for agents)
    #[command(
        hide = true,
        after_help = "Example: nmem record < event.json\n\nAlways exits 0. Prints nothing, or JSON in the platform's format."
    )]
    Record(hook::RecordArguments),
    Context(context::ContextArguments),
    Search(search::SearchArguments),
    Units(units::UnitsArguments),
    Show(show::ShowArguments),
    Log(show::LogArguments),
    Resume(show::ResumeArguments),
    View(view::ViewArguments),
    #[cfg(feature = "serve")]
    Serve(view::live::ServeArguments),
    Status(status::StatusArguments),
    Statusline(status::StatuslineArguments),
    Error(how::ErrorArguments),
    How(how::HowArguments),
    Why(evidence::WhyArguments),
    Verify(evidence::VerifyArguments),
    Check(evidence::CheckArguments),
    Handoff(evidence::HandoffArguments),
    Pr(evidence::PrArguments),
    GitNotes(evidence::NotesArguments),
    Install(install::InstallArguments),
    Uninstall(install::UninstallArguments),
    Demo(demo::DemoArguments),
    Doctor(doctor::DoctorArguments),
    Remember(remember::RememberArguments),
    Edit(remember::EditArguments),
    Pin(remember::PinArguments),
    /// Stop including a memory in every session start
    #[command(after_help = "Example: nmem unpin m7")]
    Unpin(remember::PinArguments),
    Done(remember::DoneArguments),
    Supersede(remember::SupersedeArguments),
    Review(remember::ReviewArguments),
    Forget(forget::ForgetArguments),
    Export(export::ExportArguments),
    Restore(export::RestoreArguments),
    Import(import::ImportArguments),
    Distil(distil::DistilArguments),
    Models(distil::ModelsArguments),
    Domain(domain::DomainArguments),
    Project(project::ProjectArguments),
    #[cfg(feature = "team")]
    Sync(team::SyncArguments),
    #[cfg(feature = "team")]
    Team(team::TeamArguments),
    Off(off::OffArguments),
    On(off::OnArguments),
    Trust(project::TrustArguments),
    Rad(hook::RadArguments),
    #[cfg(feature = "mcp")]
    Mcp(hook::McpArguments),
    Completions(help::CompletionsArguments),
    Man(help::ManArguments),
}

/// Runs a command line, given without the program's name.
pub fn main(mut args: Vec<OsString>) -> ExitCode {
    environment::started();
    match args.first().and_then(|a| a.to_str()) {
        Some(guard::COMMAND) => return guard::run(&args[1..]),
        Some("record") if !wants_help(&args) => return hook::run_safely(|| hook::run(&args[1..])),
        Some("context") if context::is_hook(&args[1..]) => {
            if let Some(code) = context::run_hook(&args[1..]) {
                return code;
            }
        }
        Some("search") => args = search::with_negations(help::with_counts(args)),
        Some("log" | "units") => args = help::with_branch(help::with_counts(args)),
        // Without clap, which takes longer than the answer.
        Some("statusline") if args.len() == 1 => return finish(status::run_statusline(&Default::default()).map(|()| true)),
        Some("help") => args = help::as_option(args),
        None if args.is_empty() => return finish(status::brief().map(|()| true)),
        Some("how" | "error") => args = how::as_pasted(args),
        _ => {}
    }
    let matches = definition().try_get_matches_from(std::iter::once(OsString::from("nmem")).chain(args));
    let parsed = match matches.and_then(|matches| Arguments::from_arg_matches(&matches)) {
        Ok(parsed) => parsed,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    if parsed.quiet {
        output::be_quiet();
    }
    if let Command::Search(_) | Command::Units(_) | Command::Show(_) | Command::Log(_) | Command::Context(_) = parsed.command {
        output::page();
    }
    finish(run(parsed.command))
}

fn wants_help(args: &[OsString]) -> bool {
    args.iter().any(|a| a == "--help" || a == "-h")
}

/// Runs a command; returns true if everything requested was answered.
fn run(command: Command) -> Result<bool> {
    let done = match command {
        Command::Rad(args) => return hook::run_rad(&args),
        Command::Resume(args) => return show::run_resume(&args),
        Command::Why(args) => return evidence::run(&args),
        Command::Verify(args) => return evidence::run_verify(&args),
        Command::Check(args) => return evidence::run_check(&args),
        Command::Pr(args) => return evidence::run_pr(&args),
        Command::GitNotes(args) => evidence::run_notes(&args),
        Command::Handoff(args) => evidence::run_handoff(&args),
        Command::Record(_) => Ok(()),
        Command::Context(args) => context::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Search(args) => search::run(&args),
        Command::Units(args) => units::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Log(args) => show::run_log(&args),
        Command::View(args) => view::run(&args),
        #[cfg(feature = "serve")]
        Command::Serve(args) => view::live::run(&args),
        Command::Status(args) => status::run(&args),
        Command::Statusline(args) => status::run_statusline(&args),
        Command::Error(args) => how::run_error(&args),
        Command::How(args) => how::run(&args),
        Command::Install(args) => install::install(&args),
        Command::Uninstall(args) => install::uninstall(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Remember(args) => remember::remember(&args),
        Command::Edit(args) => remember::edit(&args),
        Command::Pin(args) => remember::pin(&args, true),
        Command::Unpin(args) => remember::pin(&args, false),
        Command::Done(args) => remember::done(&args),
        Command::Supersede(args) => remember::supersede(&args),
        Command::Export(args) => export::export(&args),
        Command::Restore(args) => export::restore(&args),
        Command::Distil(args) => distil::run(&args),
        Command::Models(args) => distil::run_models(&args),
        Command::Domain(args) => domain::run(&args),
        Command::Forget(args) => forget::run(&args),
        Command::Review(args) => remember::review(&args),
        Command::Project(args) => project::run(&args),
        #[cfg(feature = "team")]
        Command::Sync(args) => team::run_sync(&args),
        #[cfg(feature = "team")]
        Command::Team(args) => team::run(&args),
        Command::Off(args) => off::off(&args),
        Command::On(args) => off::on(&args),
        Command::Trust(args) => project::run_trust(&args),
        #[cfg(feature = "mcp")]
        Command::Mcp(args) => hook::run_mcp(&args),
        Command::Completions(args) => help::run_completions(&args, definition()),
        Command::Man(args) => help::run_man(&args, definition()),
    };
    done.map(|()| true)
}

fn finish(result: Result<bool>) -> ExitCode {
    output::close_pager();
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

/// Returns clap's definition of the command line, with commands in groups.
pub fn definition() -> clap::Command {
    help::grouped(Arguments::command().disable_help_subcommand(true))
}
