//! `nmem install` and `nmem uninstall`: hooks in an agent's own settings, planned, shown, backed up, written whole.

use super::output;
use crate::config;
use crate::error::Failure;
use crate::installation::{self, Scope};
use crate::platforms::claude::HOOKS;
use anyhow::Result;
use clap::ValueEnum;
use std::path::{Path, PathBuf};

/// Hook nmem into an agent
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem install claude-code --dry-run\n\nOther hooks in the file stay as they are. A copy of the file is kept beside it; `nmem uninstall` undoes it byte for byte."
)]
pub struct InstallArguments {
    /// Agents to hook into
    #[arg(required = true, value_enum, value_name = "PLATFORM")]
    platforms: Vec<PlatformArgument>,
    #[command(flatten)]
    place: PlaceArguments,
}

/// Take nmem's hooks out again; what was recorded stays
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: nmem uninstall\n\nThe database stays; the command says where it is.")]
pub struct UninstallArguments {
    /// Agents to leave [default: all]
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
    /// Show what would change, and change nothing
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
                Err(Failure::usage("--project goes with --scope project", "add --scope project").into())
            }
        }
    }
}

/// Hooks nmem in.
pub fn install(args: &InstallArguments) -> Result<()> {
    for platform in &args.platforms {
        let PlatformArgument::ClaudeCode = platform;
        let scope = args.place.scope()?;
        let plan = installation::plan_install(&scope)?;
        if plan.changes_nothing() {
            output::say(&format!("nmem is hooked into claude-code already ({})", plan.file.display()))?;
            continue;
        }
        if args.place.dry_run {
            output::say(&diff(&plan.file, &plan.before, plan.after.as_deref().unwrap_or_default()))?;
            continue;
        }
        if let Some(other) = installation::other_scope(&scope)? {
            output::warn(&format!("{} hooks nmem in as well: a session would be told everything twice", other.display()));
        }
        let kept = installation::install(&plan)?;
        let kept = kept.map(|kept| format!("\nThe file as it was: {}", kept.display())).unwrap_or_default();
        output::say(&format!(
            "nmem is hooked into claude-code: {} events in {}{kept}\nIt records from the next session on. `nmem uninstall{}` undoes it.",
            HOOKS.len(),
            plan.file.display(),
            if scope == Scope::User { "" } else { " --scope project" }
        ))?;
    }
    Ok(())
}

/// Takes the hooks out.
pub fn uninstall(args: &UninstallArguments) -> Result<()> {
    let scope = args.place.scope()?;
    let plan = match installation::plan_uninstall(&scope)? {
        Ok(plan) => plan,
        Err(file) => {
            let other = match scope {
                Scope::User => "`nmem uninstall --scope project` looks into the current project's settings",
                Scope::Project(_) => "`nmem uninstall` looks into the user's settings",
            };
            return output::say(&format!("nmem is not hooked into claude-code ({})\n{other}", file.display()));
        }
    };
    if args.place.dry_run {
        return output::say(&diff(&plan.file, &plan.before, plan.after.as_deref().unwrap_or_default()));
    }
    installation::uninstall(&plan)?;
    let data = config::files()?.value.db;
    let data = if data.exists() { format!("\nWhat was recorded is still in {}", data.display()) } else { String::new() };
    output::say(&format!("nmem is no longer hooked into claude-code ({}){data}", plan.file.display()))
}

/// The lines that change. Edits are insertions or removals at few places, so a common head and tail say enough.
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
