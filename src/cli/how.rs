//! `nmem how`: shows how a program is called in a project.

use super::output;
use super::project_argument::{ProjectArgument, open};
use crate::error::{NO_PROJECT, UserError};
use crate::recall::command_forms;
use crate::render::commands::{form_json, form_text};
use anyhow::Result;

/// Show how a program is called here, the form that works first
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem how go test\n         nmem how gh pr create --all\n\nCalls that differ only in files, quoted texts and values of options count as one form."
)]
pub struct HowArguments {
    /// The program, and its subcommand if it has one
    #[arg(value_name = "PROGRAM", required = true)]
    program: Vec<String>,
    /// Search all projects
    #[arg(long)]
    all: bool,
    /// Forms to show; 0 for all
    #[arg(long, value_name = "N", default_value_t = 5)]
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
    let mut forms = match (&store, &place.row) {
        (Some(store), _) if args.all => command_forms(store, None, &program)?,
        (Some(store), Some(row)) => command_forms(store, Some(row.id), &program)?,
        _ => Vec::new(),
    };
    let found = forms.len();
    forms.truncate(if args.limit == 0 { usize::MAX } else { args.limit });
    if args.json {
        return forms.iter().try_for_each(|form| output::print(&form_json(form).to_string()));
    }
    if forms.is_empty() {
        output::warn(&format!("no call of {program} is recorded here; --all searches all projects"));
    }
    forms.iter().try_for_each(|form| output::entry(&form_text(form, output::style()), false))?;
    if forms.len() < found {
        output::warn(&format!("{} of {found}; --limit 0 for all", forms.len()));
    }
    Ok(())
}
