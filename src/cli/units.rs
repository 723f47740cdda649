//! `nmem units`: lists the work units of a project.

use super::output;
use super::project_argument::{BranchArgument, ProjectArgument, open};
use crate::config::{Config, environment};
use crate::error::{NO_PROJECT, UserError};
use crate::ingest;
use crate::ingest::run::{Caller, Run};
use crate::lookup;
use crate::model::{Millis, SearchScope, UnitRow};
use crate::render::clean::line;
use crate::render::{memory_text, time, unit_text as rendered};
use crate::replay::{self, ScratchStore};
use crate::runtime::FolderProject;
use crate::runtime::redactor;
use crate::segmentation::signal_meaning;
use crate::store::Store;
use anyhow::Result;
use clap::ValueEnum;
use serde_json::json;
use std::path::PathBuf;

/// Show work units: what was done, with outcome, files and commits
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem units --since 7d --why\n\nA weekly report for a team: nmem units --format md. One unit: nmem units u12"
)]
pub struct UnitsArguments {
    /// Only these units
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Only units of this session: s14, or the first characters of the agent's id
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Only units with an event after this time: 2026-11-01, 7d, 12h, yesterday [default for md: 7d]
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Show why each unit begins where it does
    #[arg(long)]
    why: bool,
    /// List what is left open instead: next steps, complaints, plans, uncommitted changes
    #[arg(long, conflicts_with_all = ["ids", "session", "why", "format"])]
    open: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = UnitsFormat::Text)]
    format: UnitsFormat,
    /// Units to show; 0 for all [default: 20, or all with --format md]
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<usize>,
    /// Print one line a unit
    #[arg(long, conflicts_with_all = ["why", "open", "format", "json"])]
    oneline: bool,
    #[command(flatten)]
    branch: BranchArgument,
    /// Show units of all projects
    #[arg(long)]
    all: bool,
    /// Replay recorded hook events in a scratch database; prints one JSON object per file
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["ids", "session", "since", "why", "limit", "all"])]
    replay: Vec<PathBuf>,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    project: ProjectArgument,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum UnitsFormat {
    Text,
    Md,
    Json,
}

/// Default number of units in a list.
const LIMIT: usize = 20;
const WEEK: Millis = 7 * 24 * 3_600_000;

/// Runs the command.
pub fn run(args: &UnitsArguments) -> Result<()> {
    let (folder, config) = args.project.config()?;
    if !args.replay.is_empty() {
        return replayed(&config, &args.replay);
    }
    let now = environment::now();
    let since = args.since.as_deref().map(|text| time::parse(text, now)).transpose();
    let since = since.map_err(|wrong| UserError::usage(wrong, "see `nmem units --help`"))?;
    let since = since.or((args.format == UnitsFormat::Md && args.session.is_none() && args.ids.is_empty()).then_some(now - WEEK));
    let store = open(&config)?;
    let place = args.project.find(&folder, &config, store.as_ref());
    let limit = match args.limit {
        Some(0) => usize::MAX,
        Some(limit) => limit,
        None if args.format == UnitsFormat::Md => usize::MAX,
        None => LIMIT,
    };
    if args.open {
        return open_ends(args, store.as_ref(), &place, since, limit);
    }
    let (units, found) = match &store {
        Some(store) => {
            let on_branch = args.branch.sessions(store, &folder, &config)?;
            let most = if on_branch.is_some() { usize::MAX } else { limit };
            let (mut units, mut found) = chosen(args, store, scope(args, &place), since, most)?;
            if let Some(on_branch) = on_branch {
                units.retain(|unit| on_branch.contains(&(unit.platform, unit.agent_session_id.clone())));
                found = units.len();
                units.truncate(limit);
            }
            (units, found)
        }
        None if !args.ids.is_empty() || args.session.is_some() => {
            return Err(UserError::new(
                "nothing is recorded yet",
                "recording starts with the first session after `nmem install`",
            )
            .into());
        }
        None => (Vec::new(), 0),
    };
    if place.name().is_none() && !args.all && args.ids.is_empty() && args.session.is_none() {
        return Err(UserError::new(NO_PROJECT, "change into a project folder, or use `nmem units --all`").into());
    }
    let name = if args.all { "all projects" } else { place.name().unwrap_or("no project") };
    match args.format {
        _ if args.json || args.format == UnitsFormat::Json => {
            units.iter().try_for_each(|unit| output::print(&rendered::json(unit).to_string()))
        }
        UnitsFormat::Md if units.is_empty() && args.since.is_none() => {
            output::warn("no work in the last 7 days: give --since");
            Ok(())
        }
        UnitsFormat::Md => {
            let begun = since.or(units.last().map(|unit| unit.started_at)).unwrap_or(now);
            output::print(&rendered::report(&units, name, begun, now))
        }
        _ if args.oneline => {
            units.iter().try_for_each(|unit| output::print(&rendered::one_line(unit, output::style())))?;
            if units.len() < found {
                output::warn(&format!("{} of {found}; --limit 0 for all", units.len()));
            }
            Ok(())
        }
        _ => listed(args, &units, found, name),
    }
}

/// Lists the open ends of the project, newest first.
fn open_ends(
    args: &UnitsArguments,
    store: Option<&Store>,
    place: &FolderProject,
    since: Option<Millis>,
    limit: usize,
) -> Result<()> {
    if place.name().is_none() && !args.all {
        return Err(UserError::new(NO_PROJECT, "change into a project folder, or use `nmem units --open --all`").into());
    }
    let mut ends = match (store, &place.row) {
        (Some(store), _) if args.all => store.open_ends(None, None, usize::MAX)?,
        (Some(store), Some(row)) => store.open_ends(Some(row.id), None, usize::MAX)?,
        _ => Vec::new(),
    };
    ends.retain(|end| since.is_none_or(|since| end.created_at >= since));
    let found = ends.len();
    ends.truncate(limit);
    if args.json {
        return ends.iter().try_for_each(|end| output::print(&memory_text::json(end).to_string()));
    }
    if ends.is_empty() {
        return output::say("Nothing is open.");
    }
    let style = output::style();
    for end in &ends {
        let unit = end.unit.map(|unit| format!("  (u{unit})")).unwrap_or_default();
        let id = style.strong(&memory_text::id(end));
        output::say(&format!("{id}  {}  {}{}", time::day(end.created_at), line(&end.title, 200), style.faint(&unit)))?;
    }
    if ends.len() < found {
        output::say(&style.faint(&format!("\n{} of {found}; --limit 0 for all", ends.len())))?;
    }
    output::say(&style.faint("\n`nmem done ID` ends one; with --drop it is not wanted any more"))
}

/// The projects whose units are listed; `None` if nothing is stored here.
fn scope(args: &UnitsArguments, place: &FolderProject) -> Option<SearchScope> {
    if args.all { Some(SearchScope::default()) } else { place.scope() }
}

fn chosen(
    args: &UnitsArguments,
    store: &Store,
    scope: Option<SearchScope>,
    since: Option<Millis>,
    limit: usize,
) -> Result<(Vec<UnitRow>, usize)> {
    if !args.ids.is_empty() {
        let unknown = |id: &str| UserError::new(format!("{} is not a work unit", line(id, 80)), "`nmem units` prints ids");
        let units = args.ids.iter().map(|id| {
            let number = id.strip_prefix('u').and_then(|number| number.parse().ok()).ok_or_else(|| unknown(id))?;
            Ok(store.unit_by_row(number)?.ok_or_else(|| unknown(id))?)
        });
        let units = units.collect::<Result<Vec<_>>>()?;
        return Ok((units, args.ids.len()));
    }
    if let Some(id) = &args.session {
        let mut units = store.units_of_session(lookup::session_by_id(store, id)?.id)?;
        units.retain(|unit| since.is_none_or(|since| unit.ended_at >= since));
        units.reverse();
        let found = units.len();
        units.truncate(limit);
        return Ok((units, found));
    }
    match scope {
        Some(scope) => store.units_of_projects(&scope, since, limit),
        None => Ok((Vec::new(), 0)),
    }
}

fn listed(args: &UnitsArguments, units: &[UnitRow], found: usize, name: &str) -> Result<()> {
    if units.is_empty() {
        return output::say(&format!(
            "No work units are recorded for {name}{}.",
            if args.branch.is_set() {
                " on that branch"
            } else if args.since.is_some() {
                " in that time"
            } else {
                ""
            }
        ));
    }
    let style = output::style();
    let has_several_agents = units.iter().any(|unit| unit.platform != units[0].platform);
    let (mut out, mut day) = (String::new(), String::new());
    for unit in units {
        let on = time::day(unit.started_at);
        if on != day {
            out += &format!("{}{}\n", if day.is_empty() { "" } else { "\n" }, style.strong(&on));
            day = on;
        }
        out += &rendered::text(unit, has_several_agents, style);
        if args.why {
            out += &rendered::why(unit, signal_meaning, style);
        }
    }
    output::say(out.trim_end())?;
    if units.len() < found {
        output::say(&style.faint(&format!("\n{} of {found}; --limit 0 for all", units.len())))?;
    }
    Ok(())
}

/// Replays event streams as hooks would have sent them.
fn replayed(config: &Config, files: &[PathBuf]) -> Result<()> {
    let redactor = redactor(config)?;
    let run = Run::new(Caller::History, config, &redactor);
    let scratch = ScratchStore::new()?;
    let mut store = scratch.store()?;
    for (number, file) in files.iter().enumerate() {
        let (events, skipped) =
            replay::read(file, &format!("replay-{number}"), &config.skip_tools.value, &|event| ingest::completed(&run, event))?;
        if skipped > 0 {
            output::warn(&format!("{}: {skipped} lines are not hook events", file.display()));
        }
        let starts = replay::play(&mut store, &events)?;
        let inner: Vec<_> = starts.inner.iter().map(|(line, reason)| json!({"event": line, "reason": reason})).collect();
        let json = json!({"file": file.display().to_string(), "starts": starts.starts, "inline": starts.inline, "inner": inner});
        output::print(&json.to_string())?;
    }
    Ok(())
}
