//! `nmem show`: shows one item completely, with links to related ones. `nmem log`: shows the sessions of a project by day, or
//! the texts that agents received from nmem.

use super::output;
use super::project_argument::{ProjectArgument, open};
use crate::config::environment;
use crate::error::{NO_PROJECT, UserError};
use crate::lookup;
use crate::model::{Millis, SessionRow};
use crate::recall;
use crate::render::clean::line;
use crate::render::{session_log, time};
use anyhow::Result;

/// Show a memory, session, work unit, prompt or tool use completely
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem show m7\n\nIds: m7 is a memory, s14 a session, u3 a work unit, p12 a prompt, t345 a tool use. The first characters of the agent's session id or of a memory's uuid work too."
)]
pub struct ShowArguments {
    /// Its id, as other commands print it
    #[arg(value_name = "ID")]
    id: String,
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
            "an id looks like m5, s14, u3, p12 or t345, and `nmem search` prints them; old tool uses are deleted (see retention in `nmem status --settings`), memories are not",
        )
    };
    let store = open(&config)?.ok_or_else(unknown)?;
    let found = lookup::find(&store, &args.id)?.ok_or_else(unknown)?;
    let text = match args.json {
        true => lookup::json(&store, found)?.to_string(),
        false => lookup::text(&store, found, output::style())?,
    };
    output::entry(text.trim_end(), args.json)
}

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
    /// Sessions to show; 0 for all
    #[arg(long, value_name = "N", default_value_t = 20)]
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
    let (sessions, found): (Vec<SessionRow>, usize) = match (&store, &args.session, place.scope()) {
        (Some(store), Some(id), _) => (vec![lookup::session_by_id(store, id)?], 1),
        (Some(store), None, Some(scope)) => store.sessions_since(&scope, since, limit)?,
        _ => (Vec::new(), 0),
    };
    // In a repository, the work that its sessions did in others is not its own.
    let only = place.scope().filter(|scope| args.session.is_none() && scope.projects.len() == 1).map(|scope| scope.projects[0]);
    let shown = sessions.len();
    let Some(store) = store.filter(|_| shown > 0) else {
        return if args.json { Ok(()) } else { output::say("No sessions are recorded here for that time.") };
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
        output::say(session_log::for_person(&overviews, style).trim_end())?;
    }
    if shown < found {
        output::warn(&format!("{shown} of {found} sessions; --limit 0 for all"));
    }
    Ok(())
}
