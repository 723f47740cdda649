//! `nmem trust`: what a repository's `.nmem.toml` asks for beyond less, shown and approved by content.

use super::output;
use super::project_argument::ProjectArgument;
use crate::config::repository::{self, Wishes};
use crate::config::switches::{Switches, Trusted};
use crate::config::{Config, environment};
use crate::error::Failure;
use crate::render::clean::line;
use anyhow::Result;
use std::path::PathBuf;

/// Show what a repository's .nmem.toml asks for, and let it
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem trust\n\nBy itself such a file can only switch recording off. What else it asks for (inject, context_bytes,\nprompt_bytes, file_bytes, ignore, redact, skip_tools, project, enabled = true) counts once it is trusted, until its content changes.\nThe config file's [[folder]] rules go before it."
)]
pub struct Arguments {
    #[command(flatten)]
    project: ProjectArgument,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Trust it no longer
    #[arg(long)]
    revoke: bool,
    /// List what is trusted
    #[arg(long)]
    list: bool,
}

/// Runs the command.
pub fn run(args: &Arguments) -> Result<()> {
    let (folder, config) = args.project.config()?;
    if args.list {
        return list(&config);
    }
    let found = repository::find(&folder, &config.switches);
    let none = || {
        let what = format!("there is no {} in {} nor above it", repository::NAME, folder.display());
        Failure::new(what, "write one, or give the folder with --project")
    };
    let wishes = found.first().ok_or_else(none)?;
    let path = wishes.path.clone();
    if args.revoke {
        change(&config, |trusted| trusted.retain(|t| t.path != path))?;
        return output::say(&format!("{} is not trusted any more", path.display()));
    }
    output::say(&shown(wishes))?;
    if let Err(error) = &wishes.table {
        let what = format!("{} can't be read: {}", path.display(), line(error, 200));
        return Err(Failure::new(what, "until it is mended nothing is recorded there").into());
    }
    let ignored: Vec<String> = wishes.ignored().iter().map(|key| line(key, 40)).collect();
    if !ignored.is_empty() {
        output::say(&format!("Never a repository's to say, so without effect: {}", ignored.join(", ")))?;
    }
    if wishes.trusted {
        return output::say("It is trusted as it stands.");
    }
    if wishes.waiting().is_empty() {
        return output::say("It asks for nothing that needs trust.");
    }
    if !args.yes && !output::confirm("Trust this content?")? {
        return output::say("Not trusted.");
    }
    change(&config, |trusted| {
        trusted.retain(|t| t.path != path);
        trusted.push(Trusted { path: path.clone(), sha256: wishes.sha256.clone() });
    })?;
    output::say("Trusted until it changes.")
}

fn shown(wishes: &Wishes) -> String {
    let text = crate::files::small_text(&wishes.path).unwrap_or_default();
    let lines: Vec<String> = text.lines().map(|l| format!("  {}", line(l, 400))).collect();
    format!("{}\n{}", wishes.path.display(), lines.join("\n"))
}

fn list(config: &Config) -> Result<()> {
    if config.switches.trusted.is_empty() {
        return output::say("No repository's file is trusted.");
    }
    for trusted in &config.switches.trusted {
        let state = match repository::read(&trusted.path, &config.switches) {
            Some(wishes) if wishes.trusted => "",
            Some(_) => "  (has changed since: waits again)",
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
