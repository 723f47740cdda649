//! `nmem patterns`: what recurs in a project.

use super::output;
use super::project_argument::{ProjectArgument, open};
use crate::error::Failure;
use crate::recall::patterns::patterns;
use crate::render::patterns as rendered;
use anyhow::Result;

/// Show what recurs: the same failure, a file that is mended again and again, lessons of one tag
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem patterns\n\nA pattern is what happened in three pieces of work or more. Errors are the same but for paths, numbers and quoted names."
)]
pub struct Arguments {
    /// Patterns to show; 0 for all
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: usize,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    project: ProjectArgument,
}

/// Runs the command.
pub fn run(args: &Arguments) -> Result<()> {
    let (folder, config) = args.project.config()?;
    let store = open(&config)?;
    let place = args.project.find(&folder, &config, store.as_ref());
    if place.name().is_none() {
        let what = "this folder is no project (the home folder and / never are one)";
        return Err(Failure::new(what, "change into one, or `--project DIR`").into());
    }
    let progress = output::Progress::begin();
    progress.say("looking for what recurs");
    let mut all = match (&store, &place.row) {
        (Some(store), Some(row)) => patterns(store, row.id)?,
        _ => Vec::new(),
    };
    drop(progress);
    let found = all.len();
    all.truncate(if args.limit == 0 { usize::MAX } else { args.limit });
    if args.json {
        return all.iter().try_for_each(|pattern| output::say(&rendered::json(pattern).to_string()));
    }
    if all.is_empty() {
        return output::say(
            "Nothing has happened in three pieces of work or more: no failure, no fix on a file, no tag of lessons.",
        );
    }
    output::say(rendered::for_person(&all, output::style()).trim_end())?;
    if all.len() < found {
        output::say(&format!("{} of {found}; --limit 0 for all", all.len()))?;
    }
    Ok(())
}
