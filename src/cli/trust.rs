//! `nmem trust`: reviews and approves the settings in a repository's `.nmem.toml`, by content.

use super::output;
use super::project_argument::ProjectArgument;
use crate::config::repository::{self, Wishes};
use crate::config::switches::{Switches, Trusted};
use crate::config::{Config, environment};
use crate::error::UserError;
use crate::render::clean::line;
use anyhow::Result;
use std::path::PathBuf;

/// Review and approve the settings in a repository's .nmem.toml
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem trust\n\nWithout approval such a file can only switch recording off. Its other settings (inject, context_bytes, prompt_bytes, file_bytes, ignore, redact, skip_tools, project, enabled = true) apply once you approve it, until its content changes. [[folder]] rules in the config file take precedence."
)]
pub struct TrustArguments {
    #[command(flatten)]
    project: ProjectArgument,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Withdraw the approval
    #[arg(long)]
    revoke: bool,
    /// List approved files
    #[arg(long)]
    list: bool,
}

/// Runs the command.
pub fn run(args: &TrustArguments) -> Result<()> {
    let (folder, config) = args.project.config()?;
    if args.list {
        return list(&config);
    }
    let found = repository::find(&folder, &config.switches);
    let none = || {
        let what = format!("there is no {} in {} or a parent folder", repository::NAME, folder.display());
        UserError::new(what, "create one, or name the folder with --project")
    };
    let wishes = found.first().ok_or_else(none)?;
    let path = wishes.path.clone();
    if args.revoke {
        change(&config, |trusted| trusted.retain(|t| t.path != path))?;
        return output::say(&format!("{} is no longer approved", path.display()));
    }
    output::say(&shown(wishes))?;
    if let Err(error) = &wishes.table {
        let what = format!("{} cannot be read: {}", path.display(), line(error, 200));
        return Err(UserError::new(what, "nothing is recorded there until it is fixed").into());
    }
    let ignored: Vec<String> = wishes.ignored().iter().map(|key| line(key, 40)).collect();
    if !ignored.is_empty() {
        output::say(&format!("Ignored (a repository may not set these): {}", ignored.join(", ")))?;
    }
    if wishes.trusted {
        return output::say("It is already approved.");
    }
    if wishes.waiting().is_empty() {
        return output::say("It asks for nothing that needs approval.");
    }
    if !args.yes && !output::confirm("Approve this content?")? {
        return output::say("Not trusted.");
    }
    change(&config, |trusted| {
        trusted.retain(|t| t.path != path);
        trusted.push(Trusted { path: path.clone(), sha256: wishes.sha256.clone() });
    })?;
    output::say("Approved until it changes.")
}

fn shown(wishes: &Wishes) -> String {
    let text = crate::files::small_text(&wishes.path).unwrap_or_default();
    let lines: Vec<String> = text.lines().map(|l| format!("  {}", line(l, 400))).collect();
    format!("{}\n{}", wishes.path.display(), lines.join("\n"))
}

fn list(config: &Config) -> Result<()> {
    if config.switches.trusted.is_empty() {
        return output::say("No file is approved.");
    }
    for trusted in &config.switches.trusted {
        let state = match repository::read(&trusted.path, &config.switches) {
            Some(wishes) if wishes.trusted => "",
            Some(_) => "  (changed since: needs approval again)",
            None => "  (is gone)",
        };
        output::say(&format!("{}{state}", trusted.path.display()))?;
    }
    Ok(())
}

fn change(config: &Config, change: impl FnOnce(&mut Vec<Trusted>)) -> Result<PathBuf> {
    Switches::change(&config.switches_file, environment::now(), |switches| change(&mut switches.trusted))?;
    Ok(config.switches_file.clone())
}
