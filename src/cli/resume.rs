//! `nmem resume`: prints or runs the agent's own command that opens a session again.

use super::output;
use super::project_argument::{ProjectArgument, open};
use crate::config::environment;
use crate::error::UserError;
use crate::lookup;
use crate::model::SessionRow;
use crate::platforms;
use crate::render::clean::{self, line};
use crate::text::is_unseen;
use anyhow::{Context, Result};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Print the agent's command that opens a session again, or run it
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem resume s14\n         nmem resume m7 --run\n\nWith the id of a memory, work unit, prompt or tool use, it opens the session of that item."
)]
pub struct ResumeArguments {
    /// The session, or something in it, as other commands print it
    #[arg(value_name = "ID")]
    id: String,
    /// Run the command in the session's folder
    #[arg(long)]
    run: bool,
    /// Print one JSON object
    #[arg(long, conflicts_with = "run")]
    json: bool,
    #[command(flatten)]
    project: ProjectArgument,
}

/// Maximum bytes of a session id that an agent generates.
const ID_BYTES: usize = 128;

/// A command that opens a session again, and its folder.
struct Resumption {
    command: Vec<String>,
    /// The folder in which the agent finds the session.
    folder: Option<PathBuf>,
}

/// Runs the command; with `--run`, returns true if the agent exited successfully.
pub fn run(args: &ResumeArguments) -> Result<bool> {
    let (_, config) = args.project.config()?;
    let unknown =
        || UserError::new(format!("nothing has the id {}", line(&args.id, 80)), "`nmem log` prints the ids of sessions");
    let store = open(&config)?.ok_or_else(unknown)?;
    let found = lookup::find(&store, &args.id)?.ok_or_else(unknown)?;
    let session = lookup::session_of(&store, found)?;
    let resumption = resumption(&session)?;
    if args.run {
        return start(&resumption);
    }
    if args.json {
        let text = json!({"session": session.agent_session_id, "platform": session.platform, "folder": resumption.folder, "command": resumption.command});
        return output::print(&text.to_string()).map(|()| true);
    }
    output::print(&clean::in_folder(resumption.folder.as_deref(), &resumption.command)).map(|()| true)
}

fn resumption(session: &SessionRow) -> Result<Resumption> {
    let form = platforms::adapter(session.platform).resume();
    if form.is_empty() {
        let what = format!("{} has no command that opens a session", session.platform.name());
        return Err(UserError::new(what, format!("`nmem show s{}` shows what was recorded of it", session.id)).into());
    }
    let id = &session.agent_session_id;
    // The id comes from a hook's payload. As an argument it must not be an option, or have a meaning to a shell.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if id.len() > ID_BYTES || !id.starts_with(|c: char| c.is_ascii_alphanumeric()) || !id.chars().all(is_plain) {
        let what = format!("the id of s{} is not one that an agent makes: {}", session.id, line(id, 80));
        return Err(UserError::new(what, "it is not passed to a program").into());
    }
    let folder = session.cwd.as_ref().map(PathBuf::from).filter(|folder| folder.is_absolute());
    if folder.as_ref().is_some_and(|folder| folder.to_string_lossy().chars().any(|c| c.is_control() || is_unseen(c))) {
        let what = format!("the folder of s{} has characters in its name that cannot be seen", session.id);
        return Err(UserError::new(what, format!("`nmem show s{}` shows what was recorded of it", session.id)).into());
    }
    let command = form.iter().map(|word| word.replace("{session}", id)).collect();
    Ok(Resumption { command, folder })
}

/// Runs the agent in this terminal.
fn start(resumption: &Resumption) -> Result<bool> {
    if environment::is_run_by_agent() {
        return Err(UserError::new("an agent cannot open a session", "run the command in a terminal of your own").into());
    }
    let Resumption { command, folder } = resumption;
    if let Some(gone) = folder.as_deref().filter(|folder| !folder.is_dir()) {
        let what = format!("the session's folder is gone: {}", line(&gone.to_string_lossy(), 200));
        return Err(UserError::new(what, "without it the agent does not find the session").into());
    }
    let program = environment::program(&command[0]).ok_or_else(|| {
        UserError::new(format!("{} is not on PATH", command[0]), format!("install it, or run: {}", clean::words(command)))
    })?;
    let mut agent = Command::new(&program);
    agent.args(&command[1..]).current_dir(folder.as_deref().unwrap_or(Path::new(".")));
    let status = agent.status().with_context(|| format!("cannot start {}", program.display()))?;
    Ok(status.success())
}
