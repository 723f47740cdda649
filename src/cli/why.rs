//! `nmem why`: the edit, the unit and the request behind a line, a file or a commit.

use super::output;
use super::project_argument::{ProjectArgument, ProjectEvidence};
use crate::error::UserError;
use crate::evidence::evidence_of;
use crate::render::clean::line;
use crate::render::why_text;
use anyhow::Result;

/// Show the edit and the request behind a line, file or commit
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem why src/main.rs:42\n         nmem why src/main.rs\n         nmem why HEAD~2\n\nA line is traced by git's blame and by the text that each recorded edit wrote; a commit by the id that git printed when\nit was made, or by its change. Time alone never counts. Exits with 1 if nothing recorded is behind it."
)]
pub struct WhyArguments {
    /// A file, a line of it (FILE:LINE), or a commit
    #[arg(value_name = "FILE[:LINE]|SHA")]
    subject: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    project: ProjectArgument,
}

/// Runs the command; returns true if something recorded is behind the subject.
pub fn run(args: &WhyArguments) -> Result<bool> {
    let evidence = ProjectEvidence::open(&args.project)?;
    let found = evidence_of(&evidence.recorded(), &args.project.folder()?, &args.subject)?;
    let neither = || {
        let what = format!("{} is neither a file nor a commit here", line(&args.subject, 200));
        UserError::new(what, "give FILE, FILE:LINE or a commit, such as HEAD")
    };
    let found = found.ok_or_else(neither)?;
    let text = if args.json { why_text::json(&found).to_string() } else { why_text::text(&found, output::style()) };
    output::entry(&text, args.json)?;
    Ok(found.is_known())
}
