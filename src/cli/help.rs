//! Help by topic, shell completions, and the manual page.

use super::output;
use crate::error::UserError;
use anyhow::{Context, Result};
use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use std::ffi::OsString;
use std::path::PathBuf;

/// The groups and their commands, in the order of the help.
const GROUPS: [(&str, &[&str]); 5] = [
    (
        "Every day",
        &[
            "context", "search", "units", "show", "log", "resume", "view", "serve", "status", "error", "how", "why", "verify",
            "handoff", "pr",
        ],
    ),
    ("Curate memories", &["remember", "edit", "pin", "unpin", "supersede", "done", "review", "check", "forget", "distil"]),
    (
        "Set up and control",
        &["demo", "install", "uninstall", "statusline", "import", "doctor", "off", "on", "project", "domain", "trust", "models"],
    ),
    ("Share with a team", &["sync", "team", "git-notes"]),
    ("For programs and backups", &["mcp", "rad", "export", "restore", "completions", "man"]),
];

/// Replaces clap's flat list of commands by groups.
pub fn grouped(command: Command) -> Command {
    let about = |name: &str| {
        let found = command.get_subcommands().find(|sub| sub.get_name() == name);
        found.and_then(Command::get_about).map(ToString::to_string).unwrap_or_default()
    };
    let group = |(title, names): &(&str, &[&str])| {
        // A command may be left out of the build.
        let built = names.iter().filter(|name| command.find_subcommand(name).is_some());
        let lines: String = built.map(|name| format!("  {name:<13}{}\n", about(name))).collect();
        format!("{title}:\n{lines}\n")
    };
    let groups: String = GROUPS.iter().map(group).collect();
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}Options:\n{{options}}{{after-help}}"
    ))
}

/// Turns `nmem help COMMAND` into `nmem COMMAND --help`.
pub fn as_option(args: Vec<OsString>) -> Vec<OsString> {
    args.into_iter().skip(1).filter(|arg| arg != "--help").chain(["--help".into()]).collect()
}

/// Turns `--branch main` into `--branch=main`, for commands whose other words cannot be a branch: `u12` is a unit.
pub fn with_branch(args: Vec<OsString>) -> Vec<OsString> {
    let mut joined: Vec<OsString> = Vec::new();
    for arg in args {
        let text = arg.to_string_lossy();
        let is_unit = text.strip_prefix('u').is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        match joined.last_mut().filter(|last| *last == "--branch" && !text.starts_with('-') && !is_unit) {
            Some(last) => last.push(format!("={text}")),
            None => joined.push(arg),
        }
    }
    joined
}

/// Turns `-5` into `--limit=5`, as in `git log -5`.
pub fn with_counts(args: Vec<OsString>) -> Vec<OsString> {
    let count = |arg: &OsString| {
        let digits = arg.to_str()?.strip_prefix('-')?;
        let is_count = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_count.then(|| OsString::from(format!("--limit={digits}")))
    };
    args.into_iter().map(|arg| count(&arg).unwrap_or(arg)).collect()
}

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
pub fn run_completions(args: &CompletionsArguments, mut program: Command) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, "nmem", &mut script);
    output::print(String::from_utf8(script)?.trim_end())
}

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
pub fn run_man(args: &ManArguments, program: Command) -> Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_visible_command_is_in_one_group_and_fits_into_80_columns() {
        let command = crate::cli::definition();
        let mut visible: Vec<&str> = command.get_subcommands().filter(|sub| !sub.is_hide_set()).map(Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        visible.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(visible, grouped);
        for sub in command.get_subcommands() {
            let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(!about.is_empty() && about.len() <= 66, "{}: {about}", sub.get_name());
        }
    }
}
