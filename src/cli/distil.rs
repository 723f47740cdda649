//! `nmem distil`: asks the model about every queued unit now; `--redo` also about finished ones. `nmem models`: adds, lists
//! and removes embedding models that run in this process.

use super::output;
use super::project_argument::{ProjectArgument, writable};
use crate::config::{self, Config, environment};
use crate::distil::distiller::Distiller;
use crate::distil::embed::{Embedded, embed_all};
use crate::distil::observer::{DistilOutcome, Observer, llm_may_see};
use crate::error::UserError;
use crate::llm::local::{self, IS_BUILT, KNOWN, KnownModel, NOT_BUILT};
use crate::lookup;
use crate::model::{Endpoint, LocalModel};
use crate::render::clean::line;
use crate::render::count;
use crate::runtime::redactor;
use crate::store::Store;
use crate::store::llm_queue::Due;
use crate::store::rule_memories::Gone;
use anyhow::{Context, Result};
use serde_json::json;
use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
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
    after_help = "Example: nmem distil\n         nmem distil --session s14 --redo\n         nmem distil --redo --limit 20\n         nmem distil --budget 120\n\nRules run first, then the model in [llm] of the config file. Hooks call it at the end of turns, too; this command calls it at once, even during a pause after failures. You can press Ctrl-C at any time: finished units are stored, the rest stays queued."
)]
pub struct DistilArguments {
    /// Only this session: s14, or the first characters of the agent's id
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Also distil finished units again, with today's provider; memories that you wrote, changed or pinned stay
    #[arg(long)]
    redo: bool,
    /// Ask about this many units at most, the newest sessions first
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
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
    /// Units of agents whose program is not here, or that have none.
    without_program: usize,
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
    let endpoints = config.llm.endpoints(&config.files.value)?;
    let ignored = config.ignored();
    let now = environment::now();
    let gone = if args.redo { Gone::Superseded } else { Gone::Deleted };
    let distiller = Distiller {
        redactor: &redactor,
        home: config.home.as_deref(),
        ignored: &ignored,
        now,
        gone,
        agent_notes: config.agent_notes.value,
    };
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
    if endpoints.is_empty() {
        let embedded = embed_all(&config, &redactor, &mut store, (project, session), until, &mut |done, all, model| {
            progress.say(&format!("{}, {done} of {all}", line(model, 40)))
        })?;
        drop(progress);
        store.checkpoint();
        return report_of_rules(args, by_rules, embedded);
    }
    let mut queue = if args.redo { store.units_to_redo(project, session)? } else { store.model_queue(project, session, now)? };
    let all = queue.len();
    queue.truncate(args.limit.map_or(all, |limit| limit as usize));
    if args.redo && !queue.is_empty() {
        drop(progress);
        if !accepts(&estimate(&store, &endpoints, queue.len(), all)?)? {
            return output::say("Nothing was asked.");
        }
    } else {
        drop(progress);
    }
    let progress = output::Progress::begin();
    let provider = config.llm.provider.value;
    let endpoint_of = |platform| {
        let wanted = provider.of_session(platform);
        endpoints.iter().find(|to| to.provider == wanted).cloned()
    };
    let observer = Observer {
        distiller: &distiller,
        endpoint_of: &endpoint_of,
        language: &config.language.value,
        daily_tokens: config.llm.daily_tokens.value,
    };
    let begun = now;
    let may_see = |due: &Due| due.may_be_seen(&|folder| llm_may_see(folder, provider));
    let done = work(&observer, &mut store, &queue, &may_see, until, &progress)?;
    let embedded = embed_all(&config, &redactor, &mut store, (project, session), until, &mut |done, all, model| {
        progress.say(&format!("{}, {done} of {all}", line(model, 40)))
    })?;
    drop(progress);
    store.checkpoint();
    let spent = store.spent_since(begun - 1)?;
    report(args, &endpoints, by_rules, done, spent.tokens(), embedded)
}

/// Tokens of a request and its answer, where no call has shown them.
const TOKENS_A_CALL: i64 = 6_000;
/// Calls that show them.
const KNOWN_CALLS: usize = 50;

/// Cost of asking about some units again.
fn estimate(store: &Store, endpoints: &[Endpoint], units: usize, all: usize) -> Result<String> {
    let known = store.last_calls(KNOWN_CALLS)?.into_iter().filter(|call| call.outcome == "ok");
    let known: Vec<i64> = known.map(|call| call.input_tokens + call.output_tokens).collect();
    let (each, basis) = match known.len() as i64 {
        0 => (TOKENS_A_CALL, "no call has been made yet".to_string()),
        n => (known.iter().sum::<i64>() / n, format!("by the last {}", count(n, "call", "calls"))),
    };
    let rest = if units < all { format!(" of {all}") } else { String::new() };
    let models = names_of(endpoints);
    Ok(format!("{units}{rest} units, at most {} tokens with {models} ({basis}).", each * units as i64))
}

/// Shows the cost, and asks on a terminal; `--limit` and a script have decided already.
fn accepts(estimate: &str) -> Result<bool> {
    if !std::io::stdin().is_terminal() {
        output::warn(estimate);
        return Ok(true);
    }
    output::confirm(&format!("{estimate} Ask about them again?"))
}

/// The models, for display.
fn names_of(endpoints: &[Endpoint]) -> String {
    let name = |to: &Endpoint| match to.provider.is_program() {
        true if to.model.is_empty() => format!("the {} program", to.provider),
        true => format!("the {} program ({})", to.provider, line(&to.model, 60)),
        false => line(&to.model, 80),
    };
    endpoints.iter().map(name).collect::<Vec<_>>().join(", ")
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
    may_see: &dyn Fn(&Due) -> bool,
    until: Option<Instant>,
    progress: &output::Progress,
) -> Result<Done> {
    let mut done = Done::default();
    let mut failed = 0;
    let (allowed, withheld): (Vec<Due>, Vec<Due>) = queue.iter().cloned().partition(may_see);
    done.withheld = withheld.len();
    let (allowed, without): (Vec<Due>, Vec<Due>) =
        allowed.into_iter().partition(|due| (observer.endpoint_of)(due.platform).is_some());
    done.without_program = without.len();
    let mut rest = allowed.as_slice();
    while let Some(due) = rest.first() {
        let remaining = until.map_or(PATIENCE, |until| until.saturating_duration_since(Instant::now()).min(PATIENCE));
        if remaining.is_zero() || failed >= FAILURES {
            done.remaining += rest.len();
            break;
        }
        let at = allowed.len() - rest.len();
        progress.say(&format!("{} u{}, {} of {}", bar(at, allowed.len()), due.unit, at + 1, allowed.len()));
        let (outcome, asked) = observer.ask_about(store, rest, remaining)?;
        rest = &rest[asked..];
        match outcome {
            DistilOutcome::Extracted(memories) => {
                failed = 0;
                done.units += asked;
                done.memories += memories;
            }
            DistilOutcome::Nothing => {}
            DistilOutcome::Busy => done.remaining += asked,
            DistilOutcome::Failed(refusal) => {
                failed += 1;
                done.remaining += asked;
                let hint = "units stay queued; fix [llm] in the config file, or try again later";
                done.problem = Some(UserError::new(format!("the model request failed: {}", refusal.what), hint));
            }
            DistilOutcome::OverBudget => {
                done.remaining += asked + rest.len();
                let what = format!("the daily budget of {} tokens is used up", observer.daily_tokens);
                done.problem = Some(UserError::new(what, "raise `daily_tokens` in [llm], or wait; units stay queued"));
                break;
            }
        }
    }
    Ok(done)
}

/// Says what was embedded.
fn embedding_note(embedded: &Embedded) -> String {
    let remaining = if embedded.remaining > 0 { format!("; {} wait", embedded.remaining) } else { String::new() };
    format!(" {} embedded{remaining}.", count(embedded.done as i64, "memory was", "memories were"))
}

fn report_of_rules(args: &DistilArguments, by_rules: usize, embedded: Option<Embedded>) -> Result<()> {
    if args.json {
        let done = embedded.as_ref().map(|embedded| embedded.done);
        let report = json!({"by_rules": by_rules, "units": 0, "memories": 0, "left": 0, "tokens": 0, "embedded": done});
        output::print(&report.to_string())?;
    } else {
        let units = count(by_rules as i64, "unit was", "units were");
        let embedding_note = embedded.as_ref().map(self::embedding_note).unwrap_or_default();
        output::say(&format!(
            "{units} distilled by rules.{embedding_note} No model is configured: see [llm] in `nmem status --settings`."
        ))?;
    }
    embedded.and_then(|embedded| embedded.problem).map_or(Ok(()), |problem| Err(problem.into()))
}

fn report(
    args: &DistilArguments,
    endpoints: &[Endpoint],
    by_rules: usize,
    done: Done,
    tokens: i64,
    embedded: Option<Embedded>,
) -> Result<()> {
    if args.json {
        let problem = done.problem.as_ref().map(|problem| &problem.what);
        output::say(
            &json!({"by_rules": by_rules, "units": done.units, "memories": done.memories, "left": done.remaining,
                "withheld": done.withheld, "without_program": done.without_program, "tokens": tokens, "problem": problem,
                "embedded": embedded.as_ref().map(|embedded| embedded.done)})
            .to_string(),
        )?;
    } else {
        let who = names_of(endpoints);
        let mut parts = vec![match (done.units, done.remaining) {
            (0, 0) => format!("Nothing is queued for {}", line(&who, 200)),
            (0, _) => format!("No memories from {}", line(&who, 200)),
            (units, _) => format!(
                "{} distilled by {}: {}",
                count(units as i64, "unit was", "units were"),
                line(&who, 200),
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
        if done.without_program > 0 {
            let units = count(done.without_program as i64, "unit is of an agent", "units are of agents");
            parts.push(format!("{units} whose program is not on PATH; `nmem install --model NAME` names another"));
        }
        let embedding_note = embedded.as_ref().map(self::embedding_note).unwrap_or_default();
        output::say(&format!("{}.{embedding_note}", parts.join("; ")))?;
    }
    done.problem.or(embedded.and_then(|embedded| embedded.problem)).map_or(Ok(()), |problem| Err(problem.into()))
}

/// Add, list and remove models for semantic search on this machine
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Example: nmem models add all-MiniLM-L6-v2\n         nmem models add ~/Downloads/multilingual-e5-small\n         nmem models list\n\nA model runs in nmem's own process; nothing is sent anywhere. `provider = \"local\"` in [embeddings] uses it."
)]
pub struct ModelsArguments {
    #[command(subcommand)]
    command: Option<ModelsCommand>,
}

#[derive(Debug, clap::Subcommand)]
enum ModelsCommand {
    /// List models, installed or not
    #[command(after_help = "Example: nmem models list")]
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Fetch a model and check it, or copy one from a folder with model.onnx and tokenizer.json
    #[command(after_help = "Example: nmem models add all-MiniLM-L6-v2")]
    Add {
        /// A name from the list, or a folder
        #[arg(value_name = "NAME or DIR")]
        model: String,
    },
    /// Delete an installed model
    #[command(after_help = "Example: nmem models remove all-MiniLM-L6-v2")]
    Remove {
        /// Its name in the list
        #[arg(value_name = "NAME")]
        name: String,
    },
}

/// Runs the command.
pub fn run_models(args: &ModelsArguments) -> Result<()> {
    let config = config::load(&[])?;
    let folder = environment::models_folder()?;
    match &args.command {
        None => list(&config, &folder, false),
        Some(ModelsCommand::List { json }) => list(&config, &folder, *json),
        Some(ModelsCommand::Add { model }) => add(&config, &folder, model),
        Some(ModelsCommand::Remove { name }) => remove(&folder, name),
    }
}

fn list(config: &Config, folder: &Path, json: bool) -> Result<()> {
    let installed = local::installed(folder);
    let known = KNOWN.iter().map(|known| known.name.to_string());
    let others = installed.iter().filter(|name| KnownModel::named(name).is_none()).cloned();
    for name in known.chain(others) {
        let known = KnownModel::named(&name);
        let is_installed = installed.contains(&name);
        let is_used = config.embeddings.is_local() && config.embeddings.name() == name;
        let bytes = if is_installed { bytes_in(&folder.join(&name)) } else { known.map_or(0, KnownModel::bytes) };
        if json {
            let (languages, licence) = (known.map(|known| known.languages), known.map(|known| known.licence));
            let model = json!({"name": name, "installed": is_installed, "used": is_used, "bytes": bytes, "languages": languages, "licence": licence});
            output::print(&model.to_string())?;
            continue;
        }
        let state = match (is_installed, is_used) {
            (true, true) => "installed, in use",
            (true, false) => "installed",
            (false, _) => "not installed",
        };
        let about = known.map(|known| format!("; {}, {}", known.languages, known.licence)).unwrap_or_default();
        output::say(&format!("{}  {} MB, {state}{about}", line(&name, 60), bytes / 1_000_000))?;
    }
    if !IS_BUILT && !json {
        output::warn(&format!("{NOT_BUILT}; {HINT}"));
    }
    Ok(())
}

const HINT: &str = "install the release archive whose name ends in -local-model, or build with `--features local-model`";

fn add(config: &Config, folder: &Path, given: &str) -> Result<()> {
    if !IS_BUILT {
        return Err(UserError::new(NOT_BUILT, HINT).into());
    }
    let model = match KnownModel::named(given) {
        Some(known) => {
            let to = LocalModel { name: known.name.to_string(), folder: folder.join(known.name) };
            let progress = output::Progress::begin();
            let all = known.bytes() / 1_000_000;
            let mut say = |bytes: u64| progress.say(&format!("{}, {} of about {all} MB", known.name, bytes / 1_000_000));
            let agent = local::downloads(environment::proxy().as_deref(), environment::download_certificates().as_deref())?;
            whole(&to.folder, known.fetch(&to.folder, &agent, &mut say))?;
            to
        }
        None => copied(folder, given)?,
    };
    // A model that cannot be run is worse than none: searches would lose a second each.
    if let Err(refusal) = local::embed(&["a sentence".to_string()], &model) {
        fs::remove_dir_all(&model.folder).with_context(|| format!("cannot remove {}", model.folder.display()))?;
        return Err(
            UserError::new(refusal.what, "the model was not added; nmem runs ONNX sentence models of the BERT family").into()
        );
    }
    output::say(&format!("The model {} was added.", line(&model.name, 60)))?;
    if config.embeddings.is_local() && config.embeddings.name() == model.name {
        return output::say("`nmem distil --all` embeds the memories that exist; searches embed new ones.");
    }
    let named = if model.name == KNOWN[0].name { String::new() } else { format!("model = {:?}\n", model.name) };
    output::say(&format!("To use it, write into {}:\n\n[embeddings]\nprovider = \"local\"\n{named}", config.file.display()))
}

/// Copies a model from a folder, under the folder's name.
fn copied(folder: &Path, given: &str) -> Result<LocalModel> {
    let path = PathBuf::from(given);
    let unknown = || {
        UserError::usage(
            format!("{} is neither a known model nor a folder", line(given, 200)),
            "`nmem models list` lists the known ones",
        )
    };
    let from = if path.is_file() { path.parent().unwrap_or(Path::new(".")).to_path_buf() } else { path };
    let from = crate::files::canonical(&from).map_err(|_| unknown())?;
    if !from.is_dir() {
        return Err(unknown().into());
    }
    let name = from.file_name().and_then(|name| name.to_str()).ok_or_else(unknown)?.to_string();
    let to = LocalModel { folder: folder.join(&name), name };
    whole(&to.folder, local::copy(&from, &to.folder))?;
    Ok(to)
}

/// Removes a model's folder if files are missing in it after an error.
fn whole(folder: &Path, added: Result<()>) -> Result<()> {
    if added.is_err() && !local::is_installed(folder) {
        let _ = fs::remove_dir_all(folder);
    }
    added
}

fn remove(folder: &Path, name: &str) -> Result<()> {
    if !local::installed(folder).iter().any(|installed| installed == name) {
        let what = format!("the model {} is not installed", line(name, 60));
        return Err(UserError::new(what, "`nmem models list` shows which are").into());
    }
    let path = folder.join(name);
    fs::remove_dir_all(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    output::say(&format!("The model {} was removed. Its embeddings stay until memories change.", line(name, 60)))
}

fn bytes_in(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|meta| meta.len()).sum()
}
