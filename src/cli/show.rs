//! `nmem show`: shows one item completely, with links to related ones.

use super::output;
use super::project_argument::{ProjectArgument, open};
use crate::error::UserError;
use crate::lookup;
use crate::render::clean::line;
use anyhow::Result;

/// Show a memory, session, work unit, prompt or tool use completely
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem show m7\n\nIds: m7 is a memory, s14 a session, u3 a work unit, p12 a prompt, t345 a tool use. The first characters of the agent's session id or of a memory's uuid work too."
)]
pub struct ShowArguments {
    /// Its id, as other commands print it
    #[arg(value_name = "ID")]
    id: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    project: ProjectArgument,
}

/// Runs the command.
pub fn run(args: &ShowArguments) -> Result<()> {
    let (_, config) = args.project.config()?;
    let unknown = || {
        UserError::new(
            format!("nothing has the id {}", line(&args.id, 80)),
            "an id looks like m5, s14, u3, p12 or t345, and `nmem search` prints them; old tool uses are deleted (see retention in `nmem status --settings`), memories are not",
        )
    };
    let store = open(&config)?.ok_or_else(unknown)?;
    let found = lookup::find(&store, &args.id)?.ok_or_else(unknown)?;
    let text = match args.json {
        true => lookup::json(&store, found)?.to_string(),
        false => lookup::text(&store, found, output::style())?,
    };
    output::entry(text.trim_end(), args.json)
}
