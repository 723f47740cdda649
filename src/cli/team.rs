//! `nmem team`: lists the people who share memories, and sets which of them the user trusts.

use super::output;
use super::project_argument::{ProjectArgument, open, writable};
use crate::config::environment;
use crate::error::UserError;
use crate::model::Machine;
use crate::render::clean::line;
use crate::render::{count, time};
use crate::team::people;
use anyhow::Result;
use clap::Subcommand;
use serde_json::json;

/// List who shares memories with you, and trust people
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Example: nmem team list\n         nmem team trust anna\n\nMemories of others are shown as theirs. Those of a person whom you trust may also be shown before an edit, and their changes reach memories that you made; without trust yours stay as they are. A trusted machine with your own name counts as yours. Trust holds for the machines that use the name now."
)]
pub struct TeamArguments {
    #[command(subcommand)]
    command: TeamCommand,
}

#[derive(Debug, Subcommand)]
enum TeamCommand {
    /// List the machines that share memories with this one
    #[command(after_help = "Example: nmem team list --json")]
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Trust a person
    #[command(after_help = "Example: nmem team trust anna")]
    Trust {
        /// The name that `list` prints, or the first digits of a key
        name: String,
    },
    /// Trust a person no longer
    #[command(after_help = "Example: nmem team distrust anna")]
    Distrust {
        /// The name that `list` prints, or the first digits of a key
        name: String,
    },
}

/// Runs the command.
pub fn run(args: &TeamArguments) -> Result<()> {
    match &args.command {
        TeamCommand::List { json } => list(*json),
        TeamCommand::Trust { name } => trust(name, true),
        TeamCommand::Distrust { name } => trust(name, false),
    }
}

fn list(json: bool) -> Result<()> {
    let (_, config) = ProjectArgument { project: None }.config()?;
    let (machines, memories) = match open(&config)? {
        Some(store) => (store.machines()?, store.shared_by_machine()?),
        None => Default::default(),
    };
    if machines.is_empty() && !json {
        return output::say("Nobody has shared a memory with you yet. `nmem project share`, then `nmem sync`.");
    }
    let (now, style) = (environment::now(), output::style());
    let own_name = machines.iter().find(|machine| machine.is_own).map(|machine| machine.name.clone());
    for machine in &machines {
        let shared = memories.get(&machine.id).copied().unwrap_or(0);
        let text = if json {
            json!({"name": machine.name, "key": machine.key, "own": machine.is_own, "trusted": machine.is_trusted, "memories": shared,
                "seen_at": machine.seen_at})
            .to_string()
        } else {
            let is_own_name = own_name.as_ref() == Some(&machine.name);
            let what = match (machine.is_own, machine.is_trusted, is_own_name) {
                (true, ..) => "this machine",
                (_, true, true) => "yours",
                (_, true, false) => "trusted",
                (_, false, true) => "has your name; if it is yours, `nmem team trust` it",
                _ => "not trusted",
            };
            let seen = if machine.is_own { String::new() } else { format!(", seen {}", time::ago(machine.seen_at, now)) };
            let shared = count(shared, "memory", "memories");
            let name = style.strong(&line(&machine.name, 40));
            format!("{name}  {}  {shared}{seen}, {what}", style.faint(machine.short()))
        };
        output::entry(&text, json)?;
    }
    Ok(())
}

fn trust(name: &str, trusted: bool) -> Result<()> {
    if trusted && environment::is_run_by_agent() {
        return Err(UserError::new("agents cannot trust people", "run `nmem team trust` in a terminal of your own").into());
    }
    let (_, config) = ProjectArgument { project: None }.config()?;
    let mut store = writable(&config)?;
    let machines = if trusted { people::trust(&mut store, name)? } else { people::distrust(&mut store, name)? };
    let name = line(machines.first().map_or(name, |machine| &machine.name), 40);
    let keys: Vec<&str> = machines.iter().map(Machine::short).collect();
    let said = if trusted { "is trusted" } else { "is no longer trusted" };
    output::say(&format!("{name} ({}) {said}.", keys.join(", ")))
}
