//! `nmem distil`: what waits for a model, now; with `--redo` also what was distilled before.

use super::output;
use super::project_argument::{ProjectArgument, writable};
use crate::config::{Config, environment};
use crate::distil::{Distiller, Meaning, Observer, Outcome, shown};
use crate::distil::{embedding, llm_may_see};
use crate::error::Failure;
use crate::lookup;
use crate::model::{Endpoint, Found, Provider};
use crate::redact::Redactor;
use crate::render::clean::line;
use crate::render::count;
use crate::runtime::redactor;
use crate::store::Store;
use crate::store::memories::Due;
use anyhow::Result;
use serde_json::json;
use std::time::{Duration, Instant};

/// How long one answer is waited for: a person who is waiting can press Ctrl-C.
const PATIENCE: Duration = Duration::from_secs(60);
/// Failures in a row after which the server is taken to be unwell.
const FAILURES: usize = 2;
/// Columns of the bar.
const BAR: usize = 20;

/// Ask a model now about all that waits for one
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem distil\n         nmem distil --session s14 --redo\n         nmem distil --budget 120\n\nThe model is that of [llm] in the config file. It is asked at the end of turns, too; this asks at\nonce, also while that pauses, and has the rules look first. Ctrl-C at any time: what was told is\nstored, the rest stays in the queue."
)]
pub struct Arguments {
    /// Only this session: s14, or the beginning of the agent's own id
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Also what is already distilled, with today's provider; what you wrote, changed or pinned stays
    #[arg(long)]
    redo: bool,
    /// Begin nothing after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    budget: Option<u64>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    project: ProjectArgument,
}

/// What became of it.
#[derive(Default)]
struct Done {
    units: usize,
    memories: usize,
    /// Failed, at hand elsewhere, or not begun.
    left: usize,
    /// Units that no model may see where they were recorded.
    withheld: usize,
    problem: Option<Failure>,
}

/// Runs the command.
pub fn run(args: &Arguments) -> Result<()> {
    let until = args.budget.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let folder = args.project.folder()?;
    if let Some(begun) = environment::session_folder() {
        // In an agent's shell a project's settings have set variables, and this sends what is recorded.
        environment::enter_hook(&folder, &begun);
    }
    let (folder, config) = args.project.config()?;
    if !config.files.value.db.exists() {
        return output::say("Nothing is recorded, so there is nothing to distil.");
    }
    let redactor = redactor(&config)?;
    let mut store = writable(&config)?;
    let place = args.project.find(&folder, &config, Some(&store));
    let session = args.session.as_deref().map(|id| session(&store, id)).transpose()?;
    let project = place.row.as_ref().map(|row| row.id).filter(|_| session.is_none());
    if project.is_none() && session.is_none() {
        return output::say("Nothing is recorded of this folder's project, so there is nothing to distil.");
    }
    let to = config.llm.endpoint(&config.files.value)?;
    let ignored = config.ignored();
    let now = environment::now();
    let distiller = Distiller { redactor: &redactor, home: config.home.as_deref(), ignored: &ignored, now };
    let progress = output::Progress::begin();
    progress.say("by rules");
    if args.redo {
        store.rules_again(project, session)?;
    }
    let sessions = store.sessions_of(project, session)?;
    let due = store.due_in_sessions(&sessions)?;
    let by_rules = distiller.distil(&mut store, &due)?;
    let Some(to) = to else {
        let embedded = embed(&config, &redactor, &mut store, (project, session), until, &progress)?;
        drop(progress);
        store.checkpoint();
        return told_by_rules(args, by_rules, embedded);
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
    told(args, &to, by_rules, done, spent.tokens(), embedded)
}

fn session(store: &Store, id: &str) -> Result<i64> {
    match lookup::find(store, id)? {
        Some(Found::Session(session)) => Ok(session.id),
        _ => Err(Failure::new(format!("{} is no session", line(id, 80)), "`nmem status` and `nmem search` print ids").into()),
    }
}

/// Goes through the queue, as long as there is time and somebody answers.
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
        let left = until.map_or(PATIENCE, |until| until.saturating_duration_since(Instant::now()).min(PATIENCE));
        if left.is_zero() || failed >= FAILURES {
            done.left += queue.len() - at;
            break;
        }
        let filled = at * BAR / queue.len();
        progress.say(&format!(
            "[{}{}] u{}, {} of {}",
            "#".repeat(filled),
            "·".repeat(BAR - filled),
            due.unit,
            at + 1,
            queue.len()
        ));
        if !due.may_be_seen(&|folder| llm_may_see(folder, observer.to.provider)) {
            done.withheld += 1;
            continue;
        }
        match observer.ask_about(store, due, left)? {
            Outcome::Told(memories) => {
                failed = 0;
                done.units += 1;
                done.memories += memories;
            }
            Outcome::Nothing => {}
            Outcome::Left => done.left += 1,
            Outcome::Failed(refusal) => {
                failed += 1;
                done.left += 1;
                let hint = "the queue keeps it; mend [llm] in the config file, or try again later";
                done.problem = Some(Failure::new(format!("no model was heard: {}", refusal.what), hint));
            }
            Outcome::Spent => {
                done.left += queue.len() - at;
                let what = format!("the day's {} tokens are used up", observer.daily_tokens);
                done.problem = Some(Failure::new(what, "raise `daily_tokens` in [llm], or wait; the queue keeps it"));
                break;
            }
        }
    }
    Ok(done)
}

/// Asks what memories mean that nobody has said yet, where a model is named for it; `None` where none is.
fn embed(
    config: &Config,
    redactor: &Redactor,
    store: &mut Store,
    of: (Option<i64>, Option<i64>),
    until: Option<Instant>,
    progress: &output::Progress,
) -> Result<Option<Embedded>> {
    let Some(to) = config.embeddings.endpoint()? else { return Ok(None) };
    let may_see = |folder: &str| embedding::may_see(folder, &to);
    let waiting = shown(store, store.unembedded(of, &to.model, usize::MAX >> 1)?, &may_see)?;
    let mut more = |done: usize| {
        progress.say(&format!("{}, {done} of {}", line(&to.model, 40), waiting.len()));
        Some(until.map_or(PATIENCE, |until| until.saturating_duration_since(Instant::now()).min(PATIENCE)))
    };
    let asked = Meaning { to: &to, redactor }.of_memories(store, &waiting, &mut more)?;
    let hint = "what is embedded is kept; mend [embeddings] in the config file, or try again later";
    let problem =
        asked.as_ref().err().map(|refusal| Failure::new(format!("no model of meaning was heard: {}", refusal.what), hint));
    let left = shown(store, store.unembedded(of, &to.model, usize::MAX >> 1)?, &may_see)?.len();
    Ok(Some(Embedded { done: waiting.len() - left.min(waiting.len()), left, problem }))
}

/// What became of it.
struct Embedded {
    done: usize,
    left: usize,
    problem: Option<Failure>,
}

impl Embedded {
    fn said(&self) -> String {
        let left = if self.left > 0 { format!("; {} wait", self.left) } else { String::new() };
        format!(" {} embedded{left}.", count(self.done as i64, "memory was", "memories were"))
    }
}

fn told_by_rules(args: &Arguments, by_rules: usize, embedded: Option<Embedded>) -> Result<()> {
    if args.json {
        let done = embedded.as_ref().map(|embedded| embedded.done);
        let told = json!({"by_rules": by_rules, "units": 0, "memories": 0, "left": 0, "tokens": 0, "embedded": done});
        output::say(&told.to_string())?;
    } else {
        let units = count(by_rules as i64, "unit was", "units were");
        let meaning = embedded.as_ref().map(Embedded::said).unwrap_or_default();
        output::say(&format!(
            "{units} distilled by rules.{meaning} No model is named: [llm] in the config file, as `nmem status` shows."
        ))?;
    }
    embedded.and_then(|embedded| embedded.problem).map_or(Ok(()), |problem| Err(problem.into()))
}

fn told(args: &Arguments, to: &Endpoint, by_rules: usize, done: Done, tokens: i64, embedded: Option<Embedded>) -> Result<()> {
    if args.json {
        let problem = done.problem.as_ref().map(|problem| &problem.what);
        output::say(
            &json!({"by_rules": by_rules, "units": done.units, "memories": done.memories, "left": done.left,
                "withheld": done.withheld, "tokens": tokens, "problem": problem,
                "embedded": embedded.as_ref().map(|embedded| embedded.done)})
            .to_string(),
        )?;
    } else {
        let who = if to.provider == Provider::Claude { format!("the claude program ({})", to.model) } else { to.model.clone() };
        let mut parts = vec![match (done.units, done.left) {
            (0, 0) => format!("Nothing waits for {}", line(&who, 80)),
            (0, _) => format!("Nothing was told by {}", line(&who, 80)),
            (units, _) => format!(
                "{} told by {}: {}",
                count(units as i64, "unit was", "units were"),
                line(&who, 80),
                count(done.memories as i64, "memory", "memories")
            ),
        }];
        if tokens > 0 {
            parts.push(format!("{tokens} tokens"));
        }
        if done.left > 0 {
            parts.push(format!("{} in the queue", count(done.left as i64, "unit stays", "units stay")));
        }
        if done.withheld > 0 {
            let units = count(done.withheld as i64, "unit is", "units are");
            parts.push(format!("{units} not for this model, as the settings of a folder in it say"));
        }
        let meaning = embedded.as_ref().map(Embedded::said).unwrap_or_default();
        output::say(&format!("{}.{meaning}", parts.join("; ")))?;
    }
    done.problem.or(embedded.and_then(|embedded| embedded.problem)).map_or(Ok(()), |problem| Err(problem.into()))
}
