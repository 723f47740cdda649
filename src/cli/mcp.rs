//! `nmem mcp`: memory as tools, for agents without hooks.

use super::project_argument::ProjectArgument;
use crate::error::UserError;
use crate::mcp;
use anyhow::Result;
use std::io::IsTerminal;

/// Serve memory as MCP tools over stdio
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: claude mcp add nmem -- nmem mcp\n         nmem install cursor --mcp\n\nSix tools: search, context, show, remember, error, how. A client starts it in the project's folder and ends it."
)]
pub struct McpArguments {
    #[command(flatten)]
    project: ProjectArgument,
}

/// Runs the command.
pub fn run(args: &McpArguments) -> Result<()> {
    if std::io::stdin().is_terminal() {
        return Err(UserError::usage("`nmem mcp` speaks to a program, not to a person", "see `nmem mcp --help`").into());
    }
    mcp::serve(args.project.folder()?)
}
