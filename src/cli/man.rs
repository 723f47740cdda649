//! `nmem man`: manual pages.

use super::output;
use crate::error::UserError;
use anyhow::{Context, Result};
use clap::Command;
use clap_mangen::Man;
use std::path::PathBuf;

/// Print the manual page
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: nmem man | man -l -\n         nmem man search\n         nmem man --dir ~/.local/share/man/man1")]
pub struct ManArguments {
    /// The page of this command instead of nmem's own
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    command: Option<String>,
    /// Write all pages into a folder: nmem.1, nmem-search.1, …
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Runs the command for a program.
pub fn run(args: &ManArguments, program: Command) -> Result<()> {
    let mut program = program.disable_help_flag(true);
    program.build();
    if let Some(dir) = &args.dir {
        let written = std::fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(program, dir));
        written.with_context(|| format!("cannot write pages into {}", dir.display()))?;
        return output::say(&format!("The pages are in {}", dir.display()));
    }
    let page = match &args.command {
        None => program,
        Some(name) => {
            let unknown = || UserError::usage(format!("nmem has no command {name}"), "`nmem --help` lists the commands");
            program.find_subcommand(name).cloned().ok_or_else(unknown)?
        }
    };
    let mut roff = Vec::new();
    Man::new(page).render(&mut roff)?;
    output::print(String::from_utf8(roff)?.trim_end())
}
