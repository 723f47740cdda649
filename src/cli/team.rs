//! `nmem team` and `nmem sync`.

use super::output;
use super::project_argument::{ProjectArgument, open, writable};
use crate::config::{Config, environment};
use crate::error::UserError;
use crate::model::{DueChange, Machine, Received, SendReason, SharedProject, with_clear_names};
use crate::render::clean::{line, quoted};
use crate::render::{count, time};
use crate::runtime::redactor;
use crate::team::{self, SyncPlace, SyncResult, SyncTarget, people};
use anyhow::Result;
use clap::Subcommand;
use serde_json::json;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// List who shares memories with you, and trust people
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Example: nmem team list\n         nmem team trust 92ac10fbd4e8a716\n\nTrust belongs to a key: anybody can take a name. Compare the digits with those on their screen; the first line of `nmem team list` is your own. Until you trust somebody, an agent sees their memories only if it searches, marked as not trusted, and yours never change by theirs. A trusted machine with your own name counts as yours. Trust ends if the machine takes another name."
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
    /// Trust the person with a key
    #[command(after_help = "Example: nmem team trust 92ac10fbd4e8a716")]
    Trust {
        /// The first 16 digits of the key, or more, as `list` prints them
        key: String,
    },
    /// Trust a person no longer
    #[command(after_help = "Example: nmem team distrust anna")]
    Distrust {
        /// The name or the digits that `list` prints
        name: String,
    },
}

/// Runs the command.
pub fn run(args: &TeamArguments) -> Result<()> {
    match &args.command {
        TeamCommand::List { json } => list(*json),
        TeamCommand::Trust { key } => trust(key),
        TeamCommand::Distrust { name } => distrust(name),
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
    let clear = with_clear_names(&machines);
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
                (_, false, true) => "has your name; if it is yours, `nmem team trust` its key",
                _ => "not trusted",
            };
            let seen = if machine.is_own { String::new() } else { format!(", seen {}", time::ago(machine.seen_at, now)) };
            let shared = count(shared, "memory", "memories");
            let name = style.strong(&quoted(&machine.name, 40));
            let what = if machine.is_own || clear.contains(&machine.id) {
                what.to_string()
            } else {
                format!("{what}; the name is unclear, so it is shown with the key")
            };
            format!("{name}  {}  {shared}{seen}, {what}", style.faint(machine.short()))
        };
        output::entry(&text, json)?;
    }
    Ok(())
}

fn trust(key: &str) -> Result<()> {
    output::only_by_person("trust people", "nmem team trust")?;
    let (_, config) = ProjectArgument { project: None }.config()?;
    let mut store = writable(&config)?;
    let machine = people::trust(&mut store, key)?;
    let is_own = store.machines()?.iter().any(|own| own.is_own && own.name == machine.name);
    let what = if is_own { "is trusted as a machine of your own" } else { "is trusted" };
    output::say(&format!("{} with the key {} {what}.", quoted(&machine.name, 40), machine.short()))
}

fn distrust(name: &str) -> Result<()> {
    let (_, config) = ProjectArgument { project: None }.config()?;
    let machines = people::distrust(&mut writable(&config)?, name)?;
    let keys: Vec<&str> = machines.iter().map(Machine::short).collect();
    output::say(&format!("{} ({}) is no longer trusted.", quoted(&machines[0].name, 40), keys.join(", ")))
}

/// Time limit for each answer of the server, for a person and in a hook.
const PATIENT: Duration = Duration::from_secs(30);
const IN_HOOK: Duration = Duration::from_millis(1800);
/// Maximum number of skipped files to name.
const LEFT_ALONE: usize = 5;

/// Share memories with a team: PostgreSQL, or a shared folder
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem project share && nmem sync --dry-run\n         nmem sync ~/Dropbox/team-memory\n\nWithout DIR it uses the PostgreSQL that RAD_DATABASE_URL names, or else `folder` under [team] in the config file. Only memories of shared projects leave this machine, redacted once more: never prompts, tool uses or closing messages, and to a team nothing private (`nmem edit ID --private`)."
)]
pub struct SyncArguments {
    /// The shared folder
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// List what would be sent, and why; send and receive nothing
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object; with --dry-run, one per change
    #[arg(long)]
    json: bool,
    /// For hooks: short waits, and no output
    #[arg(long, hide = true)]
    in_hook: bool,
    #[command(flatten)]
    project: ProjectArgument,
}

/// Runs the command.
pub fn run_sync(args: &SyncArguments) -> Result<()> {
    if environment::switched_off() == Some("RAD_ENABLED") {
        return Err(UserError::new("RAD_ENABLED=false: nothing is synced", "unset RAD_ENABLED").into());
    }
    let (_, config) = args.project.config()?;
    let mut store = writable(&config)?;
    if args.dry_run {
        let (projects, due) = team::due(&mut store, &config, &redactor(&config)?)?;
        return dry_run(&projects, &due, args.json);
    }
    let target = SyncTarget { place: place(args, &config)?, is_in_hook: args.in_hook };
    let begun = Instant::now();
    let redactor = redactor(&config)?;
    let progress = output::Progress::begin();
    let done = team::sync(&mut store, &config, &redactor, &target, environment::now(), &mut |step| progress.say(step));
    drop(progress);
    let (result, took) = (done?, begun.elapsed());
    if args.in_hook {
        return Ok(());
    }
    warnings(&result);
    if args.json { output::print(&as_json(&result, took)) } else { output::say(&in_words(&result, &target, took)) }
}

fn place(args: &SyncArguments, config: &Config) -> Result<SyncPlace> {
    let limit = if args.in_hook { IN_HOOK } else { PATIENT };
    let folder = args.folder.clone().map(|folder| std::path::absolute(&folder).unwrap_or(folder));
    if let Some(folder) = folder {
        return Ok(SyncPlace::Folder(folder));
    }
    if let Some(url) = &config.team.url.value {
        return Ok(SyncPlace::Server(url.clone(), limit));
    }
    let Some(folder) = config.team.folder.value.clone() else {
        let hint = "set RAD_DATABASE_URL to a PostgreSQL, or name a shared folder: nmem sync DIR";
        return Err(UserError::usage("there is nothing to sync with", hint).into());
    };
    Ok(SyncPlace::Folder(folder))
}

fn dry_run(projects: &[SharedProject], due: &[DueChange], json: bool) -> Result<()> {
    if !json && projects.is_empty() {
        output::say("No project is shared. `nmem project share` shares the project of this folder.")?;
    }
    for change in due {
        let shared = change.project.as_ref().and_then(|name| projects.iter().find(|project| project.name == *name));
        let (id, title, kind) = match &change.memory {
            Some((id, title, kind)) => (format!("m{id}"), title.as_str(), kind.name()),
            None => (String::new(), "", ""),
        };
        let has_title = change.reason != SendReason::Withdrawn && change.reason != SendReason::Forgotten;
        let text = if json {
            json!({"id": Some(&id).filter(|id| !id.is_empty()), "uuid": change.uuid, "reason": change.reason.name(), "kind": kind,
                "title": has_title.then_some(title), "project": change.project, "share": shared.map(|project| project.share.name())})
            .to_string()
        } else if has_title {
            let project = change.project.as_deref().unwrap_or_default();
            format!("{:<9} {id} {kind} of {}: {}", change.reason.name(), line(project, 40), line(title, 100))
        } else {
            format!("{:<9} {} (no text is sent)", change.reason.name(), if id.is_empty() { &change.uuid } else { &id })
        };
        output::entry(&text, json)?;
    }
    if json {
        return Ok(());
    }
    let names: Vec<String> = projects.iter().map(|project| format!("{} ({})", line(&project.name, 40), project.share)).collect();
    let what = if due.is_empty() { "Nothing would be sent".to_string() } else { format!("{} would be sent", changes(due.len())) };
    let of = if names.is_empty() { String::new() } else { format!(". Shared: {}", names.join(", ")) };
    output::say(&format!("{what}{of}."))
}

fn changes(n: usize) -> String {
    count(n as i64, "change", "changes")
}

/// Warns about results that a person should check.
fn warnings(result: &SyncResult) {
    let Received { kept, invalid, refused, .. } = result.received;
    if result.is_new_machine {
        output::warn("this database is a copy, or was restored: it shares under a new key from now on");
    }
    if kept > 0 {
        let memories = count(kept as i64, "memory", "memories");
        output::warn(&format!(
            "others changed or forgot {memories} of yours; yours are kept and private now. `nmem team trust KEY` lets a person change them"
        ));
    }
    if invalid > 0 {
        output::warn(&format!("{} left out: not signed by the machine that they name, or not a memory", changes(invalid)));
    }
    if refused > 0 {
        output::warn(&format!("{} left out: of memories in projects that you do not share", changes(refused)));
    }
    if result.programs.is_cut {
        output::warn("other programs have more than 20,000 rows in a RAD table; the rest is not read");
    }
    let over_budget = &result.received.over_budget;
    if !over_budget.is_empty() {
        let machines = count(over_budget.len() as i64, "machine", "machines");
        output::warn(&format!("{machines} sent more than one sync reads, the next one continues: {}", over_budget.join(", ")));
    }
    for (path, why) in result.folder.left_alone.iter().take(LEFT_ALONE) {
        output::warn(&format!("{} is left alone: {why}", path.display()));
    }
    let more = result.folder.left_alone.len().saturating_sub(LEFT_ALONE);
    if more > 0 {
        output::warn(&format!("{} more are left alone", count(more as i64, "file", "files")));
    }
}

fn in_words(result: &SyncResult, target: &SyncTarget, took: Duration) -> String {
    let with = match &target.place {
        SyncPlace::Server(..) => "PostgreSQL".to_string(),
        SyncPlace::Folder(folder) => folder.display().to_string(),
    };
    let received = &result.received;
    let mut parts = vec![format!("sent {}", changes(result.sent))];
    let people: Vec<String> = received.people.iter().map(|(name, n)| format!("{} {n}", line(name, 40))).collect();
    let people = if people.is_empty() { String::new() } else { format!(" ({})", people.join(", ")) };
    parts.push(format!("received {}{people}", count(received.new as i64, "memory", "memories")));
    for (n, what) in [(received.changed, "changed"), (received.forgotten, "forgotten")] {
        parts.extend((n > 0).then(|| format!("{n} {what}")));
    }
    let programs = result.programs;
    if programs.written + programs.removed > 0 {
        parts.push(format!("{} of other programs", count(programs.written as i64, "record", "records")));
    }
    format!("Synced with {with} in {:.1} s: {}.", took.as_secs_f64(), parts.join(", "))
}

fn as_json(result: &SyncResult, took: Duration) -> String {
    let Received { new, changed, forgotten, kept, invalid, refused, elsewhere, over_budget, people } = &result.received;
    let projects: Vec<_> = result.projects.iter().map(|project| json!({"name": project.name, "share": project.share})).collect();
    json!({
        "projects": projects, "sent": result.sent,
        "received": {"new": new, "changed": changed, "forgotten": forgotten, "kept": kept, "invalid": invalid, "refused": refused,
            "elsewhere": elsewhere, "over_budget": over_budget, "people": people},
        "programs": {"written": result.programs.written, "removed": result.programs.removed, "elsewhere": result.programs.elsewhere},
        "chunks": {"written": result.folder.chunks, "removed": result.folder.removed},
        "left_alone": result.folder.left_alone.iter().map(|(path, why)| json!({"path": path, "why": why})).collect::<Vec<_>>(),
        "new_machine": result.is_new_machine, "round_trips": result.round_trips, "ms": took.as_millis() as u64,
    })
    .to_string()
}
