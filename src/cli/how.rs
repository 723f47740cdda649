//! `nmem how` and `nmem error`: how a program is called, and what ended an error before.

use super::output;
use super::project_argument::{ProjectArgument, open};
use crate::error::{NO_PROJECT, UserError};
use crate::model::{Grade, SearchScope};
use crate::recall::{command_forms, past_errors};
use crate::render::results::{NEVER_WORKED, WEAK, error_json, error_text, form_json, form_text, not_kept, nothing_json};
use crate::runtime::FolderProject;
use anyhow::Result;
use serde_json::Value;
use std::ffi::OsString;
use std::io::{self, Read};

/// Options of both commands, and those with a value; all others belong to what was pasted.
const FLAGS: [&str; 7] = ["--all", "--all-projects", "--json", "--help", "-h", "--quiet", "-q"];
const VALUED: [&str; 3] = ["--limit", "-n", "--project"];

/// Moves the commands' own options before the words, so that a pasted command line or error keeps its options:
/// `nmem how python3 -m unittest`.
pub fn as_pasted(args: Vec<OsString>) -> Vec<OsString> {
    if args.iter().any(|arg| arg == "--") {
        return args;
    }
    let (mut own, mut words) = (args[..1].to_vec(), Vec::new());
    let mut rest = args.into_iter().skip(1);
    while let Some(arg) = rest.next() {
        let name = arg.to_string_lossy().into_owned();
        if VALUED.contains(&name.as_str()) {
            own.push(arg);
            own.extend(rest.next());
        } else if FLAGS.contains(&name.as_str()) || VALUED.iter().any(|option| name.starts_with(&format!("{option}="))) {
            own.push(arg);
        } else {
            words.push(arg);
        }
    }
    if !words.is_empty() {
        own.push("--".into());
    }
    own.into_iter().chain(words).collect()
}

/// Show how a program is called here, the form that works first
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem how go test\n         nmem how python3 -m unittest --all\n\nCalls that differ only in files, quoted texts and values of options count as one form."
)]
pub struct HowArguments {
    /// The program, and its subcommand if it has one
    #[arg(value_name = "PROGRAM", required = true)]
    program: Vec<String>,
    /// Search all projects
    #[arg(long, visible_alias = "all-projects")]
    all: bool,
    /// Forms to show; 0 for all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 5)]
    limit: usize,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    project: ProjectArgument,
}

/// Runs the command.
pub fn run(args: &HowArguments) -> Result<()> {
    let (folder, config) = args.project.config()?;
    let store = open(&config)?;
    let place = args.project.find(&folder, &config, store.as_ref());
    if place.name().is_none() && !args.all {
        return Err(UserError::new(NO_PROJECT, "change into a project folder, or use --project DIR or --all").into());
    }
    let program = args.program.join(" ");
    let scope = scope(args.all, &place);
    let mut forms = match store.as_ref().zip(scope.as_ref()) {
        Some((store, scope)) => command_forms(store, scope, &program)?,
        None => Vec::new(),
    };
    let found = forms.len();
    forms.truncate(if args.limit == 0 { usize::MAX } else { args.limit });
    if args.json {
        return print_json(forms.iter().map(form_json));
    }
    if forms.is_empty() {
        let gone = store.as_ref().zip(scope.as_ref()).map_or(Ok(None), |(store, scope)| store.tool_uses_gone_until(scope))?;
        output::warn(&format!("no call of {program} is recorded here{}; --all searches all projects", not_kept(gone)));
    }
    if forms.first().is_some_and(|form| form.grade() == Grade::Weak) {
        output::say(output::style().faint(NEVER_WORKED).as_str())?;
    }
    forms.iter().try_for_each(|form| output::entry(&form_text(form, output::style()), false))?;
    if forms.len() < found {
        output::warn(&format!("{} of {found}; --limit 0 for all", forms.len()));
    }
    Ok(())
}

/// Show what ended an error before
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem error \"undefined: NewStore\"\n         cargo build 2>&1 | nmem error -\n\nErrors count as equal if they differ only in paths, numbers and quoted names; those with the same names come first."
)]
pub struct ErrorArguments {
    /// The error, as it was printed; - reads it from stdin
    #[arg(value_name = "TEXT", required = true)]
    text: Vec<String>,
    /// Search all projects
    #[arg(long, visible_alias = "all-projects")]
    all: bool,
    /// Errors to show; 0 for all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 3)]
    limit: usize,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    project: ProjectArgument,
}

/// The projects to search; `None` if nothing is stored here.
fn scope(all: bool, place: &FolderProject) -> Option<SearchScope> {
    if all { Some(SearchScope::default()) } else { place.scope() }
}

/// Maximum bytes of an error on stdin.
const BYTES: u64 = 1 << 20;

/// Reads the first megabyte of stdin; replaces bytes that are not UTF-8.
fn stdin_text() -> Result<String> {
    let mut bytes = Vec::new();
    io::stdin().lock().take(BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Runs the command.
pub fn run_error(args: &ErrorArguments) -> Result<()> {
    let text = match args.text.as_slice() {
        [only] if only == "-" => stdin_text()?,
        words => words.join(" "),
    };
    let (folder, config) = args.project.config()?;
    let store = open(&config)?;
    let place = args.project.find(&folder, &config, store.as_ref());
    if place.name().is_none() && !args.all {
        return Err(UserError::new(NO_PROJECT, "change into a project folder, or use --project DIR or --all").into());
    }
    let limit = if args.limit == 0 { usize::MAX } else { args.limit };
    let scope = scope(args.all, &place);
    let found = match store.as_ref().zip(scope.as_ref()) {
        Some((store, scope)) => past_errors(store, scope, &text, limit)?,
        None => Some(Vec::new()),
    };
    let Some(found) = found else {
        return Err(UserError::usage("this says too little to search for", "give the line that names the error").into());
    };
    if args.json {
        return print_json(found.iter().map(error_json));
    }
    if found.is_empty() {
        let gone = store.as_ref().zip(scope.as_ref()).map_or(Ok(None), |(store, scope)| store.tool_uses_gone_until(scope))?;
        output::warn(&format!("no such error is recorded here{}; `nmem search WORDS` searches everything", not_kept(gone)));
    }
    if found.first().is_some_and(|error| error.grade() == Grade::Weak) {
        output::say(output::style().faint(WEAK).as_str())?;
    }
    found.iter().try_for_each(|error| output::entry(&error_text(error, output::style()), false))
}

/// Prints one object per line; one that says that there is nothing if there is none.
fn print_json(mut items: impl ExactSizeIterator<Item = Value>) -> Result<()> {
    if items.len() == 0 {
        return output::print(&nothing_json().to_string());
    }
    items.try_for_each(|item| output::print(&item.to_string()))
}
