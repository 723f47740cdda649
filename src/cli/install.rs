//! `nmem install` and `nmem uninstall`: hooks in an agent's settings, with diff, backup and atomic write.

use super::output;
use crate::config;
use crate::error::UserError;
use crate::import;
use crate::installation::{self, Scope};
use crate::platforms::claude::HOOKS;
use crate::render::count;
use anyhow::Result;
use clap::ValueEnum;
use std::path::{Path, PathBuf};

/// Install nmem's hooks into an agent's settings
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem install claude-code --dry-run\n\nOther hooks in the file are not changed. A backup is kept next to the file; `nmem uninstall` restores it byte for byte."
)]
pub struct InstallArguments {
    /// Agents to install into
    #[arg(required = true, value_enum, value_name = "PLATFORM")]
    platforms: Vec<PlatformArgument>,
    #[command(flatten)]
    place: PlaceArguments,
}

/// Remove nmem's hooks from an agent's settings; recorded data stays
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: nmem uninstall\n\nThe database stays; the command prints its path.")]
pub struct UninstallArguments {
    /// Agents to remove from [default: all]
    #[arg(value_enum, value_name = "PLATFORM")]
    platforms: Vec<PlatformArgument>,
    #[command(flatten)]
    place: PlaceArguments,
}

#[derive(Debug, clap::Args)]
struct PlaceArguments {
    /// The user's settings, or those of one project
    #[arg(long, value_enum, default_value_t = ScopeArgument::User)]
    scope: ScopeArgument,
    /// The project, with --scope project [default: the current folder]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Show the changes without making them
    #[arg(long)]
    dry_run: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PlatformArgument {
    ClaudeCode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ScopeArgument {
    User,
    Project,
}

impl PlaceArguments {
    fn scope(&self) -> Result<Scope> {
        match (self.scope, &self.project) {
            (ScopeArgument::Project, folder) => Ok(Scope::Project(folder.clone())),
            (ScopeArgument::User, None) => Ok(Scope::User),
            (ScopeArgument::User, Some(_)) => {
                Err(UserError::usage("--project needs --scope project", "add --scope project").into())
            }
        }
    }
}

/// Installs the hooks.
pub fn install(args: &InstallArguments) -> Result<()> {
    for platform in &args.platforms {
        let PlatformArgument::ClaudeCode = platform;
        let scope = args.place.scope()?;
        let plan = installation::plan_install(&scope)?;
        if plan.changes_nothing() {
            output::say(&format!("nmem is already installed for claude-code ({})", plan.file.display()))?;
            continue;
        }
        if args.place.dry_run {
            output::print(&diff(&plan.file, &plan.before, plan.after.as_deref().unwrap_or_default()))?;
            continue;
        }
        if let Some(other) = installation::other_scope(&scope)? {
            output::warn(&format!(
                "nmem is also installed in {}: every hook would run twice, and a session would receive its context twice",
                other.display()
            ));
        }
        let kept = installation::install(&plan)?;
        let kept = kept.map(|kept| format!("\nBackup: {}", kept.display())).unwrap_or_default();
        output::say(&format!(
            "nmem is installed for claude-code: {} events in {}{kept}\nRecording starts with the next session. `nmem uninstall{}` removes it.",
            HOOKS.len(),
            plan.file.display(),
            if scope == Scope::User { "" } else { " --scope project" }
        ))?;
        // The hooks are installed, whatever is wrong with the settings: doctor says it.
        let past = config::load(&[]).and_then(|config| import::never_imported(&config)).unwrap_or_default();
        if past > 0 {
            output::say(&format!(
                "{} on this machine: `nmem import` reads them.",
                count(past as i64, "past session is", "past sessions are")
            ))?;
        }
    }
    Ok(())
}

/// Removes the hooks.
pub fn uninstall(args: &UninstallArguments) -> Result<()> {
    let scope = args.place.scope()?;
    let plan = match installation::plan_uninstall(&scope)? {
        Ok(plan) => plan,
        Err(file) => {
            let other = match scope {
                Scope::User => "`nmem uninstall --scope project` checks the current project's settings",
                Scope::Project(_) => "`nmem uninstall` checks the user's settings",
            };
            return output::say(&format!("nmem is not installed for claude-code ({})\n{other}", file.display()));
        }
    };
    if args.place.dry_run {
        return output::print(&diff(&plan.file, &plan.before, plan.after.as_deref().unwrap_or_default()));
    }
    installation::uninstall(&plan)?;
    let data = config::files()?.value.db;
    let data = if data.exists() { format!("\nThe recorded data is still in {}", data.display()) } else { String::new() };
    output::say(&format!("nmem was removed from claude-code ({}){data}", plan.file.display()))
}

/// The changed lines. Edits are few, so a common head and tail are enough context.
fn diff(file: &Path, before: &str, after: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(a, b)| a == b).count();
    let mut out = vec![format!("{} would change:", file.display())];
    out.extend(old[head.saturating_sub(2)..head].iter().map(|l| format!("  {l}")));
    out.extend(old[head..old.len() - tail].iter().map(|l| format!("- {l}")));
    out.extend(new[head..new.len() - tail].iter().map(|l| format!("+ {l}")));
    out.extend(old[old.len() - tail..].iter().take(2).map(|l| format!("  {l}")));
    out.join("\n")
}
