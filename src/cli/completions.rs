//! `nmem completions`: a completion script for a shell.

use super::output;
use anyhow::Result;
use clap::Command;
use clap_complete::Shell;

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem completions bash > ~/.local/share/bash-completion/completions/nmem\n         nmem completions zsh > ~/.zfunc/_nmem\n         nmem completions fish > ~/.config/fish/completions/nmem.fish\n         nmem completions powershell >> $PROFILE"
)]
pub struct CompletionsArguments {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Runs the command for a program.
pub fn run(args: &CompletionsArguments, mut program: Command) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, "nmem", &mut script);
    output::print(String::from_utf8(script)?.trim_end())
}
