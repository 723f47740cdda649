//! Memory for other programs over stdio: `nmem mcp` (MCP tools) and `nmem rad` (the RAD protocol).

use super::output;
#[cfg(feature = "mcp")]
use super::project_argument::ProjectArgument;
#[cfg(feature = "mcp")]
use crate::error::UserError;
#[cfg(feature = "mcp")]
use crate::mcp;
use crate::platforms::payload;
use crate::rad::{self, Answered};
use anyhow::Result;
#[cfg(feature = "mcp")]
use std::io::IsTerminal;

/// Serve memory as MCP tools over stdio
#[cfg(feature = "mcp")]
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: claude mcp add nmem -- nmem mcp\n         nmem install cursor --mcp\n\nSix tools: memory_search, memory_context, memory_show, memory_remember, memory_error, memory_how. A client starts it in the project's folder and ends it."
)]
pub struct McpArguments {
    #[command(flatten)]
    project: ProjectArgument,
}

/// Runs `nmem mcp`.
#[cfg(feature = "mcp")]
pub fn run_mcp(args: &McpArguments) -> Result<()> {
    if std::io::stdin().is_terminal() {
        return Err(UserError::usage("`nmem mcp` speaks to a program, not to a person", "see `nmem mcp --help`").into());
    }
    mcp::serve(args.project.folder()?)
}

/// Handle a JSON request from another program (RAD protocol)
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: echo '{\"agent_session_id\": \"a-1\", \"project\": \"my-app\", \"user_prompt\": \"Add a login\"}' | nmem rad sessions/ensure\n\nVerbs: sessions/init, sessions/ensure, observations, sessions/summarize, sessions/complete, context, search, observation, session, entities, knowledge/record, knowledge/related, health. An invalid request is answered with {\"error\": {\"code\", \"message\"}} and exit 1. With --batch each line is a request, which may name its own verb in \"verb\"; each answer is a line."
)]
pub struct RadArguments {
    /// The request, such as sessions/init or search
    #[arg(value_name = "VERB")]
    verb: Option<String>,
    /// One request per line, one answer per line
    #[arg(long)]
    batch: bool,
}

/// Runs `nmem rad`; returns true if every request was answered.
pub fn run_rad(args: &RadArguments) -> Result<bool> {
    let verb = args.verb.as_deref();
    let mut say = |answer: Answered| output::print(&answer.unwrap_or_else(|problem| problem.json()).to_string());
    if args.batch {
        return rad::batch(verb, std::io::stdin().lock(), &mut say);
    }
    let answer = rad::answer(verb, payload::read(std::io::stdin().lock())?)?;
    let answered = answer.is_ok();
    say(answer)?;
    Ok(answered)
}
