//! `nmem distil`: asks the model about every queued unit now; `--redo` also about finished ones.

use super::output;
use super::project_argument::{ProjectArgument, writable};
use crate::config::{Config, environment};
use crate::distil::distiller::Distiller;
use crate::distil::embed::{self, EmbeddingClient, shown};
use crate::distil::observer::{DistilOutcome, Observer, llm_may_see};
use crate::error::UserError;
use crate::lookup;
use crate::model::{Endpoint, Provider};
use crate::redact::Redactor;
use crate::render::clean::line;
use crate::render::count;
use crate::runtime::redactor;
use crate::store::Store;
use crate::store::llm_queue::Due;
use crate::store::rule_memories::Gone;
use anyhow::Result;
use serde_json::json;
use std::time::{Duration, Instant};

/// Time limit of a call. A person who waits can press Ctrl-C.
const PATIENCE: Duration = Duration::from_secs(60);
/// Number of consecutive failures after which the command stops.
const FAILURES: usize = 2;
/// Number of units that rules distil between two steps of the progress bar.
const AT_ONCE: usize = 16;
/// Columns of the progress bar.
const BAR: usize = 20;

/// Distil queued work units with the configured model now
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem distil\n         nmem distil --session s14 --redo\n         nmem distil --redo --all\n         nmem distil --budget 120\n\nRules run first, then the model in [llm] of the config file. Hooks call it at the end of turns, too; this command calls it at once, even during a pause after failures. You can press Ctrl-C at any time: finished units are stored, the rest stays queued."
)]
pub struct DistilArguments {
    /// Only this session: s14, or the first characters of the agent's id
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Also distil finished units again, with today's provider; memories that you wrote, changed or pinned stay
    #[arg(long)]
    redo: bool,
    /// Every project, not only this folder's
    #[arg(long, conflicts_with_all = ["session", "project"])]
    all: bool,
    /// Start no further call after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    budget: Option<u64>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    project: ProjectArgument,
}

/// The result.
#[derive(Default)]
struct Done {
    units: usize,
    memories: usize,
    /// Failed, leased by another process, or not started.
    remaining: usize,
    /// Units from folders that the model may not see.
    withheld: usize,
    problem: Option<UserError>,
}

/// Runs the command.
pub fn run(args: &DistilArguments) -> Result<()> {
    let until = args.budget.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let folder = args.project.folder()?;
    if let Some(begun) = environment::session_folder() {
        // In an agent's shell the project's settings may have set variables, and this command sends recorded text.
        environment::enter_hook(&folder, &begun);
    }
    let (folder, config) = args.project.config()?;
    if !config.files.value.db.exists() {
        return output::say("Nothing is recorded yet, so there is nothing to distil.");
    }
    let redactor = redactor(&config)?;
    let mut store = writable(&config)?;
    let place = args.project.find(&folder, &config, Some(&store));
    let session = args.session.as_deref().map(|id| lookup::session_by_id(&store, id).map(|session| session.id)).transpose()?;
    let project = place.row.as_ref().map(|row| row.id).filter(|_| session.is_none() && !args.all);
    if project.is_none() && session.is_none() && !args.all {
        return output::say("Nothing is recorded for this folder's project, so there is nothing to distil.");
    }
    let to = config.llm.endpoint(&config.files.value)?;
    let ignored = config.ignored();
    let now = environment::now();
    let gone = if args.redo { Gone::Superseded } else { Gone::Deleted };
    let distiller = Distiller { redactor: &redactor, home: config.home.as_deref(), ignored: &ignored, now, gone };
    let progress = output::Progress::begin();
    if args.redo {
        store.rules_again(project, session)?;
    }
    let sessions = store.sessions_of(project, session)?;
    let due = store.due_in_sessions(&sessions)?;
    let mut by_rules = 0;
    for (at, part) in due.chunks(AT_ONCE).enumerate() {
        progress.say(&format!("{} by rules, {} of {}", bar(at * AT_ONCE, due.len()), at * AT_ONCE, due.len()));
        by_rules += distiller.distil(&mut store, part)?;
    }
    let Some(to) = to else {
        let embedded = embed(&config, &redactor, &mut store, (project, session), until, &progress)?;
        drop(progress);
        store.checkpoint();
        return report_of_rules(args, by_rules, embedded);
    };
    let queue = if args.redo { store.units_to_redo(project, session)? } else { store.model_queue(project, session, now)? };
    let observer = Observer {
        distiller: &distiller,
        to: &to,
        language: &config.language.value,
        daily_tokens: config.llm.daily_tokens.value,
    };
    let begun = now;
    let done = work(&observer, &mut store, &queue, until, &progress)?;
    let embedded = embed(&config, &redactor, &mut store, (project, session), until, &progress)?;
    drop(progress);
    store.checkpoint();
    let spent = store.spent_since(begun - 1)?;
    report(args, &to, by_rules, done, spent.tokens(), embedded)
}

/// A progress bar.
fn bar(done: usize, all: usize) -> String {
    let filled = done * BAR / all.max(1);
    format!("[{}{}]", "#".repeat(filled), "·".repeat(BAR - filled))
}

/// Works through the queue while there is time and the model answers.
fn work(
    observer: &Observer,
    store: &mut Store,
    queue: &[Due],
    until: Option<Instant>,
    progress: &output::Progress,
) -> Result<Done> {
    let mut done = Done::default();
    let mut failed = 0;
    for (at, due) in queue.iter().enumerate() {
        let remaining = until.map_or(PATIENCE, |until| until.saturating_duration_since(Instant::now()).min(PATIENCE));
        if remaining.is_zero() || failed >= FAILURES {
            done.remaining += queue.len() - at;
            break;
        }
        progress.say(&format!("{} u{}, {} of {}", bar(at, queue.len()), due.unit, at + 1, queue.len()));
        if !due.may_be_seen(&|folder| llm_may_see(folder, observer.to.provider)) {
            done.withheld += 1;
            continue;
        }
        match observer.ask_about(store, due, remaining)? {
            DistilOutcome::Extracted(memories) => {
                failed = 0;
                done.units += 1;
                done.memories += memories;
            }
            DistilOutcome::Nothing => {}
            DistilOutcome::Busy => done.remaining += 1,
            DistilOutcome::Failed(refusal) => {
                failed += 1;
                done.remaining += 1;
                let hint = "units stay queued; fix [llm] in the config file, or try again later";
                done.problem = Some(UserError::new(format!("the model request failed: {}", refusal.what), hint));
            }
            DistilOutcome::OverBudget => {
                done.remaining += queue.len() - at;
                let what = format!("the daily budget of {} tokens is used up", observer.daily_tokens);
                done.problem = Some(UserError::new(what, "raise `daily_tokens` in [llm], or wait; units stay queued"));
                break;
            }
        }
    }
    Ok(done)
}

/// Embeds memories without an embedding; `None` if no model is configured.
fn embed(
    config: &Config,
    redactor: &Redactor,
    store: &mut Store,
    of: (Option<i64>, Option<i64>),
    until: Option<Instant>,
    progress: &output::Progress,
) -> Result<Option<Embedded>> {
    let Some(to) = config.embeddings.endpoint()? else { return Ok(None) };
    let may_see = |folder: &str| embed::may_see(folder, &to);
    let waiting = shown(store, store.unembedded(of, &to.model, usize::MAX >> 1)?, &may_see)?;
    let mut more = |done: usize| {
        progress.say(&format!("{}, {done} of {}", line(&to.model, 40), waiting.len()));
        Some(until.map_or(PATIENCE, |until| until.saturating_duration_since(Instant::now()).min(PATIENCE)))
    };
    let asked = EmbeddingClient { to: &to, redactor }.of_memories(store, &waiting, &mut more)?;
    let hint = "finished embeddings are kept; fix [embeddings] in the config file, or try again later";
    let problem =
        asked.as_ref().err().map(|refusal| UserError::new(format!("the embedding request failed: {}", refusal.what), hint));
    let remaining = shown(store, store.unembedded(of, &to.model, usize::MAX >> 1)?, &may_see)?.len();
    Ok(Some(Embedded { done: waiting.len() - remaining.min(waiting.len()), remaining, problem }))
}

/// The result.
struct Embedded {
    done: usize,
    remaining: usize,
    problem: Option<UserError>,
}

impl Embedded {
    fn summary(&self) -> String {
        let remaining = if self.remaining > 0 { format!("; {} wait", self.remaining) } else { String::new() };
        format!(" {} embedded{remaining}.", count(self.done as i64, "memory was", "memories were"))
    }
}

fn report_of_rules(args: &DistilArguments, by_rules: usize, embedded: Option<Embedded>) -> Result<()> {
    if args.json {
        let done = embedded.as_ref().map(|embedded| embedded.done);
        let report = json!({"by_rules": by_rules, "units": 0, "memories": 0, "left": 0, "tokens": 0, "embedded": done});
        output::print(&report.to_string())?;
    } else {
        let units = count(by_rules as i64, "unit was", "units were");
        let embedding_note = embedded.as_ref().map(Embedded::summary).unwrap_or_default();
        output::say(&format!(
            "{units} distilled by rules.{embedding_note} No model is configured: see [llm] in `nmem status --settings`."
        ))?;
    }
    embedded.and_then(|embedded| embedded.problem).map_or(Ok(()), |problem| Err(problem.into()))
}

fn report(
    args: &DistilArguments,
    to: &Endpoint,
    by_rules: usize,
    done: Done,
    tokens: i64,
    embedded: Option<Embedded>,
) -> Result<()> {
    if args.json {
        let problem = done.problem.as_ref().map(|problem| &problem.what);
        output::say(
            &json!({"by_rules": by_rules, "units": done.units, "memories": done.memories, "left": done.remaining,
                "withheld": done.withheld, "tokens": tokens, "problem": problem,
                "embedded": embedded.as_ref().map(|embedded| embedded.done)})
            .to_string(),
        )?;
    } else {
        let who = if to.provider == Provider::Claude { format!("the claude program ({})", to.model) } else { to.model.clone() };
        let mut parts = vec![match (done.units, done.remaining) {
            (0, 0) => format!("Nothing is queued for {}", line(&who, 80)),
            (0, _) => format!("No memories from {}", line(&who, 80)),
            (units, _) => format!(
                "{} distilled by {}: {}",
                count(units as i64, "unit was", "units were"),
                line(&who, 80),
                count(done.memories as i64, "memory", "memories")
            ),
        }];
        if tokens > 0 {
            parts.push(format!("{tokens} tokens"));
        }
        if done.remaining > 0 {
            parts.push(format!("{} in the queue", count(done.remaining as i64, "unit stays", "units stay")));
        }
        if done.withheld > 0 {
            let units = count(done.withheld as i64, "unit is", "units are");
            parts.push(format!("{units} not for this model, according to the settings of a folder"));
        }
        let embedding_note = embedded.as_ref().map(Embedded::summary).unwrap_or_default();
        output::say(&format!("{}.{embedding_note}", parts.join("; ")))?;
    }
    done.problem.or(embedded.and_then(|embedded| embedded.problem)).map_or(Ok(()), |problem| Err(problem.into()))
}
