//! `nmem show`: shows one item completely, with links to related ones. `nmem log`: shows the sessions of a project by day, or
//! the texts that agents received from nmem. `nmem resume`: the agent's own command that opens a session again.

use super::output;
use super::project_argument::{BranchArgument, ProjectArgument, ProjectEvidence, open};
use crate::config::environment;
use crate::error::{NO_PROJECT, UserError};
use crate::evidence::{check, evidence_of};
use crate::model::{Evidence, MemoryClaims, MemoryRow, Millis, SearchScope, SessionRow, StoredItem};
use crate::render::clean::{self, line};
use crate::render::{evidence_text, session_log, time};
use crate::store::Store;
use crate::text::is_unseen;
use crate::{lookup, platforms, recall};
use anyhow::{Context, Result};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Show a memory, session, work unit, prompt or tool use completely
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem show m7\n\nIds: m7 is a memory, s14 a session, u3 a work unit, p12 a prompt, t345 a tool use. The first characters of the agent's session id or of a memory's uuid work too, and so does the id of a commit (see `nmem why`)."
)]
pub struct ShowArguments {
    /// Its id, as other commands print it
    #[arg(value_name = "ID")]
    id: String,
    /// Show why a work unit begins where it does, and what a memory cost
    #[arg(long)]
    why: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    project: ProjectArgument,
}

/// Runs `nmem show`.
pub fn run(args: &ShowArguments) -> Result<()> {
    let (_, config) = args.project.config()?;
    let unknown = || {
        UserError::new(
            format!("nothing has the id {}", line(&args.id, 80)),
            match args.id.starts_with('t') {
                true => "old tool uses are deleted, see retention in `nmem status --settings`; memories are not",
                false => "an id looks like m5, s14, u3, p12 or t345, and `nmem search` prints them",
            },
        )
    };
    let store = open(&config)?.ok_or_else(unknown)?;
    let mut found = lookup::find(&store, &args.id)?;
    if found.is_none() && is_commit_id(&args.id) {
        if let Some(evidence) = evidence_of_commit(args)? {
            let json = args.json;
            let text =
                if json { evidence_text::json(&evidence).to_string() } else { evidence_text::text(&evidence, output::style()) };
            return output::entry(&text, json);
        }
        found = command_of_commit(&store, &args.id)?;
    }
    let found = found.ok_or_else(unknown)?;
    let rotten = match &found {
        StoredItem::Memory(memory) => rotten_claims(args, memory),
        _ => None,
    };
    let text = match args.json {
        true => {
            let mut json = lookup::json(&store, found)?;
            if let Some(claims) = &rotten {
                json["rotten"] = evidence_text::claims_json(claims)["rotten"][0]["claims"].take();
            }
            json.to_string()
        }
        false => {
            let claims = rotten.map(|claims| evidence_text::rotten_lines(&claims, output::style())).unwrap_or_default();
            format!("{}\n{claims}", lookup::text(&store, found, args.why, output::style())?.trim_end())
        }
    };
    output::entry(text.trim_end(), args.json)
}

/// The claims of a memory of this project that no longer hold; `None` if all do, or it cannot be known here.
fn rotten_claims(args: &ShowArguments, memory: &MemoryRow) -> Option<MemoryClaims> {
    let evidence = ProjectEvidence::open(&args.project).ok()?;
    let recorded = evidence.recorded();
    let is_here = memory.project_id.is_some_and(|project| recorded.scope.projects.contains(&project));
    let claims = is_here.then(|| check(&recorded, vec![memory.clone()]).ok()).flatten()?;
    (!claims.rotten.is_empty()).then_some(claims)
}

fn is_commit_id(id: &str) -> bool {
    (MIN_SHA..=64).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_hexdigit())
}

/// The work behind a commit of this repository.
fn evidence_of_commit(args: &ShowArguments) -> Result<Option<Evidence>> {
    let Ok(evidence) = ProjectEvidence::open(&args.project) else { return Ok(None) };
    evidence_of(&evidence.recorded(), &args.project.folder()?, &args.id)
}

/// The recorded command that made a commit of any project.
fn command_of_commit(store: &Store, id: &str) -> Result<Option<StoredItem>> {
    let id = id.to_ascii_lowercase();
    let is_it = |sha: &String| sha.starts_with(&id) || id.starts_with(sha.as_str());
    let made = store.recorded_commits(&SearchScope::default())?.into_iter().rfind(|commit| commit.shas.iter().any(is_it));
    made.map_or(Ok(None), |commit| lookup::find(store, &format!("t{}", commit.tool_use)))
}

/// Minimum characters of a commit's id.
const MIN_SHA: usize = 7;

/// Maximum units to list per session.
const UNITS: usize = 50;

/// Show sessions by day, with their work units and outcomes
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem log --since 7d\n         nmem log --told --session s14\n\n--told shows when an agent received which text, and which of its items the agent used: words of it that no prompt has turn up in what the agent then did or said."
)]
pub struct LogArguments {
    /// Show what agents received from nmem instead
    #[arg(long = "told")]
    injections: bool,
    /// Only this session: s14, or the first characters of the agent's id
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Only sessions with an event after this time: 2026-11-01, 7d, 12h, yesterday
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    #[command(flatten)]
    branch: BranchArgument,
    /// Print each session in one line
    #[arg(long, conflicts_with_all = ["injections", "json"])]
    oneline: bool,
    /// Sessions to show; 0 for all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    project: ProjectArgument,
}

/// Runs `nmem log`.
pub fn run_log(args: &LogArguments) -> Result<()> {
    let (folder, config) = args.project.config()?;
    let now = environment::now();
    let since = args.since.as_deref().map(|text| time::parse(text, now)).transpose();
    let since: Option<Millis> = since.map_err(|error| UserError::usage(error, "see `nmem log --help`"))?;
    let store = open(&config)?;
    let place = args.project.find(&folder, &config, store.as_ref());
    if place.name().is_none() && args.session.is_none() {
        return Err(UserError::new(NO_PROJECT, "change into a project folder, or use --project DIR").into());
    }
    let limit = if args.limit == 0 { usize::MAX } else { args.limit };
    let on_branch = store.as_ref().map(|store| args.branch.sessions(store, &folder, &config)).transpose()?.flatten();
    // The newest by their start are shown, which need not be those that worked last.
    let (mut sessions, mut found): (Vec<SessionRow>, usize) = match (&store, &args.session, place.scope()) {
        (Some(store), Some(id), _) => (vec![lookup::session_by_id(store, id)?], 1),
        (Some(store), None, Some(scope)) => store.sessions_since(&scope, since, usize::MAX)?,
        _ => (Vec::new(), 0),
    };
    if let Some(on_branch) = on_branch {
        sessions.retain(|session| on_branch.contains(&(session.platform, session.agent_session_id.clone())));
        found = sessions.len();
    }
    sessions.sort_by_key(|session| std::cmp::Reverse(session.started_at));
    sessions.truncate(limit);
    // In a repository, the work that its sessions did in others is not its own.
    let only = place.scope().filter(|scope| args.session.is_none() && scope.projects.len() == 1).map(|scope| scope.projects[0]);
    let shown = sessions.len();
    let Some(store) = store.filter(|_| shown > 0) else {
        return if args.json { Ok(()) } else { output::say("No sessions are recorded here for that time or branch.") };
    };
    let style = output::style();
    if args.injections {
        let mut injections = store.injections_of(&sessions.iter().map(|session| session.id).collect::<Vec<_>>())?;
        recall::judge_use(&store, &mut injections)?;
        let of = |id: i64| sessions.iter().find(|session| session.id == id);
        if args.json {
            let mut all =
                injections.iter().filter_map(|injection| Some(session_log::injection_json(injection, of(injection.session)?)));
            return all.try_for_each(|injection| output::print(&injection.to_string()));
        }
        if injections.is_empty() {
            return output::say("Agents have received nothing in these sessions.");
        }
        output::say(session_log::injections(&injections, &|id| format!("s{id}"), style).trim_end())?;
    } else {
        let overviews = recall::overviews(&store, sessions, only, UNITS, 0, now)?;
        if args.json {
            return overviews.iter().try_for_each(|overview| output::print(&session_log::json(overview).to_string()));
        }
        if args.oneline {
            overviews.iter().try_for_each(|overview| output::print(&session_log::one_line(overview, style)))?;
        } else {
            output::say(session_log::for_person(&overviews, style).trim_end())?;
        }
    }
    if shown < found {
        output::warn(&format!("{shown} of {found} sessions; --limit 0 for all"));
    }
    Ok(())
}

/// Print the agent's command that opens a session again, or run it
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem resume s14\n         nmem resume m7 --run\n\nWith the id of a memory, work unit, prompt or tool use, it opens the session of that item."
)]
pub struct ResumeArguments {
    /// The session, or something in it, as other commands print it
    #[arg(value_name = "ID")]
    id: String,
    /// Run the command in the session's folder
    #[arg(long)]
    run: bool,
    /// Print one JSON object
    #[arg(long, conflicts_with = "run")]
    json: bool,
    #[command(flatten)]
    project: ProjectArgument,
}

/// Maximum bytes of a session id that an agent generates.
const ID_BYTES: usize = 128;

/// A command that opens a session again, and its folder.
struct Resumption {
    command: Vec<String>,
    /// The folder in which the agent finds the session.
    folder: Option<PathBuf>,
}

/// Runs the command; with `--run`, returns true if the agent exited successfully.
pub fn run_resume(args: &ResumeArguments) -> Result<bool> {
    let (_, config) = args.project.config()?;
    let unknown =
        || UserError::new(format!("nothing has the id {}", line(&args.id, 80)), "`nmem log` prints the ids of sessions");
    let store = open(&config)?.ok_or_else(unknown)?;
    let found = lookup::find(&store, &args.id)?.ok_or_else(unknown)?;
    let session = lookup::session_of(&store, found)?;
    let resumption = resumption(&session)?;
    if args.run {
        return start(&resumption);
    }
    if args.json {
        let text = json!({"session": session.agent_session_id, "platform": session.platform, "folder": resumption.folder, "command": resumption.command});
        return output::print(&text.to_string()).map(|()| true);
    }
    output::print(&clean::in_folder(resumption.folder.as_deref(), &resumption.command)).map(|()| true)
}

fn resumption(session: &SessionRow) -> Result<Resumption> {
    let form = platforms::adapter(session.platform).resume();
    if form.is_empty() {
        let what = format!("{} has no command that opens a session", session.platform.name());
        return Err(UserError::new(what, format!("`nmem show s{}` shows what was recorded of it", session.id)).into());
    }
    let id = &session.agent_session_id;
    // The id comes from a hook's payload. As an argument it must not be an option, or have a meaning to a shell.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if id.len() > ID_BYTES || !id.starts_with(|c: char| c.is_ascii_alphanumeric()) || !id.chars().all(is_plain) {
        let what = format!("the id of s{} is not one that an agent makes: {}", session.id, line(id, 80));
        return Err(UserError::new(what, "it is not passed to a program").into());
    }
    let folder = session.cwd.as_ref().map(PathBuf::from).filter(|folder| folder.is_absolute());
    if folder.as_ref().is_some_and(|folder| folder.to_string_lossy().chars().any(|c| c.is_control() || is_unseen(c))) {
        let what = format!("the folder of s{} has characters in its name that cannot be seen", session.id);
        return Err(UserError::new(what, format!("`nmem show s{}` shows what was recorded of it", session.id)).into());
    }
    let command = form.iter().map(|word| word.replace("{session}", id)).collect();
    Ok(Resumption { command, folder })
}

/// Runs the agent in this terminal.
fn start(resumption: &Resumption) -> Result<bool> {
    if environment::is_run_by_agent() {
        return Err(UserError::new("an agent cannot open a session", "run the command in a terminal of your own").into());
    }
    let Resumption { command, folder } = resumption;
    if let Some(gone) = folder.as_deref().filter(|folder| !folder.is_dir()) {
        let what = format!("the session's folder is gone: {}", line(&gone.to_string_lossy(), 200));
        return Err(UserError::new(what, "without it the agent does not find the session").into());
    }
    let program = environment::program(&command[0]).ok_or_else(|| {
        UserError::new(format!("{} is not on PATH", command[0]), format!("install it, or run: {}", clean::words(command)))
    })?;
    let mut agent = Command::new(&program);
    agent.args(&command[1..]).current_dir(folder.as_deref().unwrap_or(Path::new(".")));
    let status = agent.status().with_context(|| format!("cannot start {}", program.display()))?;
    Ok(status.success())
}
