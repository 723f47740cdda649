//! `nmem patterns`: recurring failures, fixes and lessons of a project.

use super::output;
use super::project_argument::{ProjectArgument, open};
use crate::error::{NO_PROJECT, UserError};
use crate::recall::patterns::patterns;
use crate::render::patterns as rendered;
use anyhow::Result;

/// Show recurring failures, files fixed repeatedly, and lesson tags
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem patterns\n\nA pattern occurs in at least three work units. Errors count as equal if they differ only in paths, numbers and quoted names."
)]
pub struct PatternsArguments {
    /// Patterns to show; 0 for all
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: usize,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    project: ProjectArgument,
}

/// Runs the command.
pub fn run(args: &PatternsArguments) -> Result<()> {
    let (folder, config) = args.project.config()?;
    let store = open(&config)?;
    let place = args.project.find(&folder, &config, store.as_ref());
    if place.name().is_none() {
        return Err(UserError::new(NO_PROJECT, "change into a project folder, or use --project DIR").into());
    }
    let progress = output::Progress::begin();
    progress.say("looking for patterns");
    let mut all = match (&store, &place.row) {
        (Some(store), Some(row)) => patterns(store, row.id)?,
        _ => Vec::new(),
    };
    drop(progress);
    let found = all.len();
    all.truncate(if args.limit == 0 { usize::MAX } else { args.limit });
    if args.json {
        return all.iter().try_for_each(|pattern| output::print(&rendered::json(pattern).to_string()));
    }
    if all.is_empty() {
        return output::say("No patterns: no failure, fixed file or lesson tag occurs in three work units.");
    }
    output::say(rendered::for_person(&all, output::style()).trim_end())?;
    if all.len() < found {
        output::say(&format!("{} of {found}; --limit 0 for all", all.len()))?;
    }
    Ok(())
}
