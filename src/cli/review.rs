//! `nmem review`: shows new decisions, lessons and open ends one by one, to keep, edit, pin, end or forget.

use super::editor::edit_in_editor;
use super::output;
use super::project_argument::{ProjectArgument, open, writable};
use crate::config::{Config, environment};
use crate::error::{NO_PROJECT, UserError, explain};
use crate::forgetting::{self, ForgetPlan};
use crate::knowledge;
use crate::model::{Ending, Maker, MemoryKind, MemoryRow, Provenance};
use crate::render::{count, memory_text, time};
use crate::store::Store;
use anyhow::Result;
use std::io::IsTerminal;

/// Kinds of memories in a review.
const REVIEWED: [MemoryKind; 3] = [MemoryKind::Decision, MemoryKind::Lesson, MemoryKind::Open];
/// Maximum decisions, lessons and open ends in one review.
const MAX_REVIEWED: usize = 500;

/// The questions about an open end, and about any other memory.
const OF_OPEN: &str = "done, keep, edit, pin, forget, next, quit [d/k/e/p/f/n/q/?]";
const OF_OTHER: &str = "keep, edit, pin, forget, next, quit [k/e/p/f/n/q/?]";

/// Help text for the possible answers.
const CHOICES: &str = "k  keep it as it is: rules and models will not change it
e  edit it in $VISUAL or $EDITOR
p  pin it: every session start includes it
f  mark it: nmem forgets it for good when the review ends, also by q
d  done: only for an open end
n  next; it comes again in the next review
q  quit, and forget what you marked";

/// Review new decisions, lessons and open ends one by one
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem review\n         nmem review --since 30d --json\n\nShows each decision, lesson and open end of the last seven days that nobody has checked yet, and asks whether to keep, edit, pin or forget it; an open end can also be marked as done. A memory that you keep, edit or pin does not come again."
)]
pub struct ReviewArguments {
    /// Only memories made after this time: 2026-11-01, 7d, 12h, yesterday
    #[arg(long, value_name = "TIME", default_value = "7d")]
    since: String,
    /// Only list them, as one JSON object per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    project: ProjectArgument,
}

/// Runs the command.
pub fn run(args: &ReviewArguments) -> Result<()> {
    let (folder, config) = args.project.config()?;
    let since = time::parse(&args.since, environment::now());
    let since = since.map_err(|error| UserError::usage(error, "see `nmem review --help`"))?;
    let store = open(&config)?;
    let place = args.project.find(&folder, &config, store.as_ref());
    if place.name().is_none() {
        return Err(UserError::new(NO_PROJECT, "change into a project folder, or use --project DIR").into());
    }
    let found = match (&store, &place.row) {
        (Some(store), Some(row)) => store.newest_memories(row.id, &REVIEWED, MAX_REVIEWED)?,
        _ => Vec::new(),
    };
    let is_over = |memory: &MemoryRow| memory.kind == MemoryKind::Open && !memory.is_open();
    let is_new =
        |memory: &MemoryRow| memory.created_at >= since && !is_checked(memory) && !memory.is_of_team() && !is_over(memory);
    let due: Vec<MemoryRow> = found.into_iter().filter(is_new).collect();
    if args.json {
        return due.iter().try_for_each(|memory| output::print(&memory_text::json(memory).to_string()));
    }
    if due.is_empty() {
        return output::say("Nothing to review: every new decision and lesson is checked.");
    }
    if environment::is_run_by_agent() || !std::io::stdin().is_terminal() {
        let what = "a review needs a person at a terminal";
        return Err(UserError::new(what, "`nmem review --json` lists the memories").into());
    }
    drop(store);
    let mut store = writable(&config)?;
    let forgotten = ask(&mut store, &config, &due)?;
    forget_all(&mut store, &config, &forgotten)
}

/// Whether a person wrote, kept, edited or pinned a memory. A memory that an agent wrote by hand is not checked yet.
fn is_checked(memory: &MemoryRow) -> bool {
    let is_agents = memory.made_by == Maker::Hand && memory.provenance == Provenance::Agent;
    memory.pinned || memory.by_hand && !is_agents
}

/// Asks about each memory; returns those to forget.
fn ask(store: &mut Store, config: &Config, due: &[MemoryRow]) -> Result<Vec<String>> {
    let mut forgotten = Vec::new();
    for (n, memory) in due.iter().enumerate() {
        output::say(&format!("{} of {}", n + 1, due.len()))?;
        output::say(memory_text::whole(memory, None, output::style()).trim_end())?;
        loop {
            // End of input means quit.
            let is_open = memory.kind == MemoryKind::Open;
            let question = if is_open { OF_OPEN } else { OF_OTHER };
            match output::ask(question)?.as_deref().unwrap_or("q") {
                "d" | "done" if is_open => store.write(|tx| tx.set_ended(memory.id, Some(Ending::Done)))?,
                "k" | "keep" => knowledge::keep(store, memory)?,
                "n" | "next" => {}
                "f" | "forget" => forgotten.push(memory_text::id(memory)),
                "q" | "quit" => return Ok(forgotten),
                "p" | "pin" => {
                    if let Err(error) = knowledge::pin(store, memory, true) {
                        output::complain(&explain(&error));
                        continue;
                    }
                }
                "e" | "edit" => {
                    if let Err(error) = edit_in_editor(store, config, memory) {
                        output::complain(&explain(&error));
                        continue;
                    }
                }
                _ => {
                    output::say(CHOICES)?;
                    continue;
                }
            }
            break;
        }
    }
    Ok(forgotten)
}

fn forget_all(store: &mut Store, config: &Config, ids: &[String]) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let plan = ForgetPlan::of(store, forgetting::rows_of(store, ids)?)?;
    let progress = output::Progress::begin();
    let done = plan.carry_out(store, config, environment::now(), &mut |step| progress.say(step));
    drop(progress);
    done.map_err(|error| UserError::new(format!("{error:#}"), format!("fix the cause, then: nmem forget {}", ids.join(" "))))?;
    output::say(&format!("{} forgotten.", count(ids.len() as i64, "memory is", "memories are")))
}
