//! `nmem forget`: lists what would be deleted, asks, and deletes it from every file.

use super::output;
use super::project_argument::{ProjectArgument, drain};
use crate::config::{Config, environment};
use crate::error::UserError;
use crate::forgetting::{self, ForgetPlan};
use crate::lookup;
use crate::render::time;
use crate::store::deletion::DeleteFilter;
use crate::store::{self, PERSON_WAIT, Store, spool};
use anyhow::Result;
use std::path::{Path, PathBuf};

/// Delete data for good: by id, session, project, time or text
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem forget --match \"project falcon\" --all-projects --dry-run\n         nmem forget p12 t340\n         nmem forget --project --before 90d\n\nOptions combine: --project --before 90d selects what is old in this project. The text is removed from the database, its indexes and log, and from events that are queued or could not be stored. Damaged databases that nmem kept are deleted.\n\n--before and --match select from this project only, unless you add --all-projects."
)]
pub struct ForgetArguments {
    /// Ids of memories, prompts, tool uses, units and sessions, as search and context print them
    #[arg(value_name = "ID", conflicts_with_all = ["session", "project", "before", "text"])]
    ids: Vec<String>,
    /// A whole session: s14, or the first characters of the agent's id
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// A whole project: the current one, or that of DIR
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".")]
    project: Option<PathBuf>,
    /// Everything before this time: 2026-11-01, 90d
    #[arg(long, value_name = "TIME")]
    before: Option<String>,
    /// Everything that contains this text, ignoring case
    #[arg(long = "match", value_name = "TEXT")]
    text: Option<String>,
    /// With --before or --match: in all projects and databases, not only this project
    #[arg(long, conflicts_with_all = ["ids", "session", "project"])]
    all_projects: bool,
    /// Only list what would be deleted
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

/// Runs the command.
pub fn run(args: &ForgetArguments) -> Result<()> {
    let here = ProjectArgument { project: args.project.clone() };
    let (folder, config) = here.config()?;
    let mut databases = if args.all_projects { config.databases()? } else { vec![config.files.value.clone()] };
    if args.all_projects && databases.iter().all(|files| files.db != config.files.value.db) {
        databases.push(config.files.value.clone());
    }
    databases.retain(|files| files.db.symlink_metadata().is_ok() || spool::is_waiting(files));
    if databases.is_empty() {
        return output::say("Nothing is recorded yet, so there is nothing to forget.");
    }
    let mut found = Vec::new();
    for files in &databases {
        let mut config = config.clone();
        config.files.value = files.clone();
        // Drain the spool first, or it would bring back what is deleted now.
        let mut store = Store::open(files, PERSON_WAIT).map_err(|error| {
            UserError::new(
                store::reason(&error),
                format!("nothing was forgotten; fix {}, then run the same command again", files.db.display()),
            )
        })?;
        drain(&config, &mut store)?;
        let wanted = wanted(args, &here, &folder, &config, &store)?;
        let plan = ForgetPlan::of(&store, wanted)?;
        if !plan.is_empty() {
            found.push((store, plan, config));
        }
    }
    if found.is_empty() {
        return output::say("No recorded data matches; nothing to delete.");
    }
    for (store, plan, _) in &found {
        let from = if databases.len() > 1 { format!(" from {}", store.files().db.display()) } else { String::new() };
        output::say(&plan.summary(args.dry_run, &from))?;
    }
    if args.dry_run {
        return Ok(());
    }
    if !args.yes && !output::confirm("Delete this for good?")? {
        return output::say("Nothing was deleted.");
    }
    let progress = output::Progress::begin();
    let mut checked = Vec::new();
    for (store, plan, config) in &mut found {
        plan.carry_out(store, config, environment::now(), &mut |step| progress.say(step)).map_err(|error| {
            UserError::new(format!("{error:#}"), "fix the cause and run the same command again: it continues where it stopped")
        })?;
        progress.say("checking every byte");
        checked.push(check(plan, store, config)?);
    }
    drop(progress);
    // The result for all databases is that of the worst one.
    let worst = checked.iter().find(|said| **said != CLEAN).or(checked.first());
    output::say(&format!("Forgotten.{}", worst.unwrap_or(&"")))
}

/// Message if no byte of the text remains.
const CLEAN: &str = " The text is gone from every file of nmem.";

fn check(plan: &ForgetPlan, store: &Store, config: &Config) -> Result<&'static str> {
    let Some(text) = &plan.wanted.text else { return Ok("") };
    if plan.wanted.session.is_some() || plan.wanted.project.is_some() || plan.wanted.before.is_some() {
        return Ok(" Other data may still contain the text; --match alone with --all-projects removes it everywhere.");
    }
    let held = forgetting::still_held(store.files(), config, text)?;
    if held.is_empty() {
        return Ok(CLEAN);
    }
    if held == [store.files().db.clone()] && store.schema_holds(text)? {
        return Ok(" The same letters occur in names of the database's own tables and columns.");
    }
    let names: Vec<String> = held.iter().map(|p| p.display().to_string()).collect();
    let what = format!("the text is still in {}", names.join(", "));
    Err(UserError::new(what, "a session may have recorded it again meanwhile: run the same command again").into())
}

fn wanted(args: &ForgetArguments, here: &ProjectArgument, folder: &Path, config: &Config, store: &Store) -> Result<DeleteFilter> {
    let now = environment::now();
    let mut wanted = forgetting::rows_of(store, &args.ids)?;
    if let Some(id) = &args.session {
        wanted.session = Some(lookup::session_by_id(store, id)?.id);
    }
    let by_content = args.before.is_some() || args.text.is_some();
    if args.project.is_some() || by_content && args.session.is_none() && !args.all_projects {
        let place = here.find(folder, config, Some(store));
        let row = place.row.as_ref().ok_or_else(|| {
            UserError::new(
                format!("nothing is recorded for {}", place.name().unwrap_or("this folder")),
                "`nmem project list` lists all projects; --all-projects selects from all of them",
            )
        })?;
        wanted.project = Some(row.id);
    }
    let before = args.before.as_deref().map(|t| time::parse(t, now)).transpose();
    wanted.before = before.map_err(|e| UserError::usage(e, "see `nmem forget --help`"))?;
    wanted.text = args.text.clone();
    if wanted.text.as_deref().is_some_and(|t| t.trim().chars().count() < 3) {
        return Err(UserError::usage("--match needs at least three characters", "shorter texts occur almost everywhere").into());
    }
    if args.ids.is_empty() && args.session.is_none() && args.project.is_none() && args.before.is_none() && args.text.is_none() {
        return Err(UserError::usage("no data selected", "give an id, --session, --project, --before or --match").into());
    }
    Ok(wanted)
}
