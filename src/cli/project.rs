//! `nmem project` and `nmem trust`.

use super::output;
use super::project_argument::{ProjectArgument, open, writable};
use crate::config::folders::{self, Wishes};
use crate::config::pauses::{Switches, Trusted};
use crate::config::{Config, environment};
use crate::error::{NO_PROJECT, UserError};
use crate::lookup;
use crate::model::{ProjectRow, Share, StoredItem};
use crate::render::clean::line;
use crate::render::{count, time};
use crate::runtime::{FolderProject, redactor};
use crate::store::Store;
use anyhow::Result;
use clap::Subcommand;
use serde_json::json;
use std::path::{Path, PathBuf};

/// List, rename, merge, split or share projects, or move work
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Example: nmem project list\n         nmem project merge old-name shop\n\nA project is a repository (identified by its remote, first commit or folder), or a folder without one. [[folder]] rules in the config file can name projects, too."
)]
pub struct ProjectArguments {
    #[command(subcommand)]
    command: ProjectCommand,
}

#[derive(Debug, Subcommand)]
enum ProjectCommand {
    /// List all projects, most recently active first
    #[command(after_help = "Example: nmem project list --json")]
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Rename the project
    #[command(after_help = "Example: nmem project rename shop-backend")]
    Rename {
        /// The new name
        name: String,
        #[command(flatten)]
        project: ProjectArgument,
    },
    /// Merge project FROM into INTO
    #[command(after_help = "Example: nmem project merge old-name shop\n         nmem project merge 7 3")]
    Merge {
        /// Name or number, as `list` prints them
        from: String,
        /// Name or number, as `list` prints them
        into: String,
    },
    /// Move a session or a work unit to another project
    #[command(
        after_help = "Example: nmem project move u12 shop\n         nmem project move s7 3\n\nWork belongs to the repository that its edits are in. `nmem project list` also lists sessions without a project."
    )]
    Move {
        /// A session or work unit, such as s7 or u12
        id: String,
        /// Name or number of the project, as `list` prints them
        into: String,
    },
    /// Make a folder a project of its own, with everything below it and its sessions so far
    #[command(after_help = "Example: nmem project split packages/billing")]
    Split {
        /// The folder
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// The new project's name [default: the folder's]
        #[arg(long)]
        name: Option<String>,
    },
    /// Share the project's memories with a team, or with your own machines
    #[command(
        after_help = "Example: nmem project share\n         nmem project share --mine\n\nNothing leaves this machine until `nmem sync`; `nmem sync --dry-run` lists what would. With --mine private memories are sent too: use a server or folder that only you can read."
    )]
    Share {
        /// With your own machines: private memories too
        #[arg(long)]
        mine: bool,
        #[command(flatten)]
        project: ProjectArgument,
    },
    /// Stop sharing the project; what was sent stays with the others
    #[command(
        after_help = "Example: nmem project unshare\n\n`nmem forget` also takes back what was sent; `nmem edit ID --private` a single memory."
    )]
    Unshare {
        #[command(flatten)]
        project: ProjectArgument,
    },
}

/// Runs the command.
pub fn run(args: &ProjectArguments) -> Result<()> {
    match &args.command {
        ProjectCommand::List { json } => list(*json),
        ProjectCommand::Rename { name, project } => rename(name, project),
        ProjectCommand::Merge { from, into } => merge(from, into),
        ProjectCommand::Move { id, into } => move_to(id, into),
        ProjectCommand::Split { folder, name } => split(folder, name.as_deref()),
        ProjectCommand::Share { mine, project } => share(if *mine { Share::Mine } else { Share::Team }, project),
        ProjectCommand::Unshare { project } => share(Share::None, project),
    }
}

/// Maximum characters of a project's name in the list.
const NAME: usize = 30;

fn list(json: bool) -> Result<()> {
    let (_, config) = ProjectArgument { project: None }.config()?;
    let Some(store) = open(&config)? else { return output::say("No project is recorded yet.") };
    let now = environment::now();
    let style = output::style();
    let projects = store.projects()?;
    let longest = projects.iter().map(|(project, ..)| line(&project.name, NAME).chars().count()).max().unwrap_or(0).max(7);
    if !json {
        output::say(&style.faint(&format!("  id  {:<longest$}  sessions, last activity, origin", "project")))?;
    }
    for (project, sessions, last) in projects {
        let keys = store.project_keys(project.id)?;
        let text = if json {
            json!({"id": project.id, "name": project.name, "root": project.root, "repo_url": project.repo_url, "keys": keys,
                "about": project.about.as_ref().map(|(about, at)| json!({"type": about.project_type, "languages": about.languages, "frameworks": about.frameworks, "last_indexed": at})),
                "sessions": sessions, "last_at": last, "created_at": project.created_at})
            .to_string()
        } else {
            let when = last.map_or_else(|| "never".to_string(), |at| time::ago(at, now));
            let known = project.repo_url.clone().unwrap_or_else(|| project.root.clone());
            let (count, what) = (count(sessions, "session", "sessions"), what_it_is(&project));
            format!(
                "{:>4}  {}  {}",
                project.id,
                style.strong(&format!("{:<longest$}", line(&project.name, NAME))),
                style.faint(&line(&format!("{count}, last {when}{what}  {known}"), 160))
            )
        };
        output::entry(&text, json)?;
    }
    let (homeless, all) = store.sessions_without_project(HOMELESS)?;
    if all == 0 {
        return Ok(());
    }
    if json {
        let ids: Vec<String> = homeless.iter().map(|session| format!("s{}", session.id)).collect();
        return output::print(&json!({"id": null, "name": null, "sessions": all, "session_ids": ids}).to_string());
    }
    output::say(&format!(
        "\n{} without a project; `nmem project move ID PROJECT` gives one:",
        count(all as i64, "session", "sessions")
    ))?;
    for session in &homeless {
        let (when, folder) = (time::ago(session.active_at, now), session.cwd.as_deref().unwrap_or("an unknown folder"));
        let did = format!("{when}, {}  {}", count(session.prompts, "prompt", "prompts"), line(folder, 100));
        output::entry(&format!("{:>5}  {}", format!("s{}", session.id), style.faint(&did)), false)?;
    }
    Ok(())
}

/// Maximum sessions without a project to list.
const HOMELESS: usize = 20;

/// Facts about a project: `, library in Rust, with Tokio`.
fn what_it_is(project: &ProjectRow) -> String {
    let Some((about, _)) = &project.about else { return String::new() };
    let written = Some(about.languages.join(", ")).filter(|names| !names.is_empty()).map(|names| format!("in {names}"));
    let with = Some(about.frameworks.join(", ")).filter(|names| !names.is_empty()).map(|names| format!("with {names}"));
    let words: Vec<String> = about.project_type.clone().into_iter().chain(written).chain(with).collect();
    if words.is_empty() { String::new() } else { format!(", {}", words.join(" ")) }
}

fn rename(name: &str, project: &ProjectArgument) -> Result<()> {
    let (folder, config) = project.config()?;
    let mut store = recorded(&config)?;
    let name = name_of(&config, name)?;
    let row = here(&project.find(&folder, &config, Some(&store)))?;
    store.rename_project(row.id, &name)?;
    output::say(&format!("{} is now called {}.", line(&row.name, 80), line(&name, 80)))
}

fn merge(from: &str, into: &str) -> Result<()> {
    let (_, config) = ProjectArgument { project: None }.config()?;
    let mut store = recorded(&config)?;
    let (from, into) = (one(&store, from)?, one(&store, into)?);
    if from.id == into.id {
        return Err(UserError::usage("both are the same project", "`nmem project list` prints numbers").into());
    }
    let moved = store.merge_projects(from.id, into.id)?;
    let name = line(&into.name, 80);
    output::say(&format!(
        "{} is now part of {name}: {} moved. Its folders belong to {name} from now on.",
        line(&from.name, 80),
        count(moved as i64, "session", "sessions")
    ))
}

fn move_to(id: &str, into: &str) -> Result<()> {
    let (_, config) = ProjectArgument { project: None }.config()?;
    let mut store = recorded(&config)?;
    let into = one(&store, into)?;
    let hint = "`nmem log` and `nmem units` print ids";
    let what = match lookup::find(&store, id)? {
        Some(StoredItem::Session(session)) => {
            store.move_session(session.id, into.id)?;
            let name = line(&into.name, 80);
            return output::say(&format!(
                "Session s{} belongs to {name} now, but for its work in other repositories.",
                session.id
            ));
        }
        Some(StoredItem::Unit(unit)) => {
            store.move_unit_by_hand(unit.session, unit.id, into.id)?;
            format!("Work unit u{}", unit.id)
        }
        Some(_) => return Err(UserError::usage("only sessions and work units can be moved", hint).into()),
        None => return Err(UserError::new(format!("nothing has the id {}", line(id, 80)), hint).into()),
    };
    output::say(&format!("{what} belongs to {} now, with its prompts and memories.", line(&into.name, 80)))
}

fn share(share: Share, project: &ProjectArgument) -> Result<()> {
    if share != Share::None && environment::is_run_by_agent() {
        return Err(UserError::new("agents cannot share a project", "run `nmem project share` in a terminal of your own").into());
    }
    let (folder, config) = project.config()?;
    let mut store = writable(&config)?;
    let place = project.find(&folder, &config, Some(&store));
    let id = match (&place.row, &place.id) {
        (Some(row), _) => row.id,
        // Nothing is recorded here yet, but memories that others share in this project should arrive.
        (None, Some(id)) => store.ensure_project(&redactor(&config)?.clean(id.clone()), environment::now())?,
        (None, None) => return Err(UserError::new(NO_PROJECT, "change into a project folder").into()),
    };
    store.set_share(id, Some(share))?;
    let name = line(place.name().unwrap_or("This project"), 80);
    output::say(&match share {
        Share::None => format!("{name} is no longer shared. What was sent stays with the others until you forget it."),
        Share::Team => format!(
            "{name} is shared with your team from the next `nmem sync` on; `nmem sync --dry-run` lists what would be sent."
        ),
        Share::Mine => format!("{name} is shared with your own machines from the next `nmem sync` on, private memories too."),
    })
}

fn split(folder: &std::path::Path, name: Option<&str>) -> Result<()> {
    let part = ProjectArgument { project: Some(folder.to_path_buf()) };
    let (folder, config) = part.config()?;
    let mut store = recorded(&config)?;
    let row = here(&part.find(&folder, &config, Some(&store)))?;
    if Path::new(&row.root) == folder
        || part.find(&folder, &config, Some(&store)).known.is_part && is_root_of_part(&store, &row, &folder)?
    {
        let what = format!("{} is already a project of its own: {}", folder.display(), line(&row.name, 80));
        return Err(UserError::new(what, "`nmem project rename` renames it").into());
    }
    let last = folder.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let name = name_of(&config, name.unwrap_or(&last))?;
    let path = redactor(&config)?.clean(folder.display().to_string());
    let moved = store.split_project(row.id, &path, &name, environment::now())?;
    output::say(&format!(
        "{} is now a project of its own, with everything below {}: {} of {} moved.",
        line(&name, 80),
        folder.display(),
        count(moved as i64, "session", "sessions"),
        line(&row.name, 80)
    ))
}

fn is_root_of_part(store: &Store, row: &ProjectRow, folder: &Path) -> Result<bool> {
    Ok(store.project_keys(row.id)?.contains(&format!("under:{}", folder.display())))
}

fn recorded(config: &Config) -> Result<Store> {
    if !config.files.value.db.exists() {
        return Err(
            UserError::new("no project is recorded yet", "recording starts with the first session after `nmem install`").into()
        );
    }
    writable(config)
}

fn name_of(config: &Config, name: &str) -> Result<crate::redact::Clean<String>> {
    let name = name.trim();
    if name.is_empty() || name.len() > 200 || name.chars().any(char::is_control) || name.chars().all(|c| c.is_ascii_digit()) {
        let what = "not a valid name: use 1 to 200 characters on one line, and not just a number";
        return Err(UserError::usage(what, "choose another, such as shop").into());
    }
    Ok(redactor(config)?.clean(name.to_string()))
}

fn here(place: &FolderProject) -> Result<ProjectRow> {
    let name = place.name().unwrap_or("this folder").to_string();
    place.row.clone().ok_or_else(|| {
        UserError::new(format!("nothing is recorded for {name} yet"), "`nmem project list` lists all projects").into()
    })
}

/// Finds a project by its name or number.
fn one(store: &Store, word: &str) -> Result<ProjectRow> {
    let all = store.projects()?;
    if let Some((project, ..)) = all.iter().find(|(p, ..)| p.id.to_string() == word) {
        return Ok(project.clone());
    }
    let mut named: Vec<&ProjectRow> = all.iter().map(|(p, ..)| p).filter(|p| p.name == word).collect();
    match (named.pop(), named.is_empty()) {
        (Some(project), true) => Ok(project.clone()),
        (Some(_), false) => Err(UserError::usage(
            format!("several projects are called {}", line(word, 80)),
            "use the number that `nmem project list` prints",
        )
        .into()),
        (None, _) => {
            Err(UserError::new(format!("there is no project {}", line(word, 80)), "`nmem project list` lists all projects")
                .into())
        }
    }
}

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
pub fn run_trust(args: &TrustArguments) -> Result<()> {
    let (folder, config) = args.project.config()?;
    if args.list {
        return list_trusted(&config);
    }
    let found = folders::find(&folder, &config.switches);
    let none = || {
        let what = format!("there is no {} in {} or a parent folder", folders::NAME, folder.display());
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

fn list_trusted(config: &Config) -> Result<()> {
    if config.switches.trusted.is_empty() {
        return output::say("No file is approved.");
    }
    for trusted in &config.switches.trusted {
        let state = match folders::read(&trusted.path, &config.switches) {
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
