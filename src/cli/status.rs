//! `nmem status`: shows hooks, stored data, queue, errors and settings. `nmem` alone: three lines of it. `nmem statusline`: one
//! line for an agent's status line.

use super::hook::Stdin;
use super::output;
use super::project_argument::{ProjectArgument, older_rules, open, writable};
use crate::config::llm::When;
use crate::config::{Config, ListedSetting, SettingSource, environment};
use crate::evidence::failing_check;
use crate::installation;
use crate::llm::local;
use crate::model::{
    Counts, EmbeddingModel, Files, FindingLevel, InjectionPoint, InjectionStats, LastEvent, LastSync, Millis, Platform, Spend,
    Spent,
};
use crate::platforms::payload::{self, Payload};
use crate::project::git;
use crate::recall;
use crate::render::clean::line;
use crate::render::{count, memory_text, time};
use crate::runtime;
use crate::store::{self, PERSON_WAIT, Store, spool};
use anyhow::Result;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum errors to show.
const ERRORS: usize = 5;
const DAY: Millis = 86_400_000;
/// Days of injections to count, and number of newest sessions in which their use is judged.
const INJECTION_DAYS: Millis = 30;
const JUDGED: usize = 10;

/// Show hooks, stored data, queue, errors and changed settings
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: nmem status --json")]
pub struct StatusArguments {
    /// List every setting with its origin, not only changed ones
    #[arg(long)]
    settings: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    project: ProjectArgument,
}

/// Contents of the store; empty if there is none.
#[derive(Default)]
struct StoreStatus {
    counts: Counts,
    last: Vec<LastEvent>,
    models: Models,
    injections: BTreeMap<InjectionPoint, InjectionStats>,
    /// Offer to distil again the units that older rules distilled.
    older_rules: Option<String>,
    /// Number of memories with an embedding, and of all that can have one.
    embedded: Option<(i64, i64)>,
    /// Shared projects, and the result of the last sync; `None` if nothing is shared.
    team: Option<(Vec<String>, LastSync)>,
    problem: Option<String>,
}

/// Costs and queue of the model.
#[derive(Default)]
struct Models {
    today: Spent,
    all: Spent,
    last: Option<Spend>,
    waiting: usize,
    paused_until: Option<Millis>,
}

/// Prints three lines: where nmem records, what it knows of this project, and what to do next.
pub fn brief() -> Result<()> {
    let place = ProjectArgument { project: None };
    let folder = place.folder()?;
    let (config, problem) = place.config_and_problem(&folder)?;
    let now = environment::now();
    let off = switched_off(&config, now);
    let scopes = [installation::Scope::User, installation::Scope::Project(None)];
    let hooks = installation::agents().into_iter().filter(|(adapter, setup)| {
        scopes.iter().any(|scope| installation::is_installed(*adapter, setup, scope).unwrap_or_default())
    });
    let hooks: Vec<&str> = hooks.map(|(adapter, _)| adapter.platform().name()).collect();
    let is_anywhere = !hooks.is_empty() || !installation::plugins().is_empty();
    let records = match (problem, off.first(), is_anywhere) {
        (Some(problem), ..) => format!("nothing is recorded: {}", line(&format!("{problem:#}"), 200)),
        (_, Some(off), _) => line(off, 200),
        (_, _, false) => "no agent has nmem's hooks".to_string(),
        (_, _, true) if hooks.is_empty() => "recording by the plugin of Claude Code".to_string(),
        _ => format!("recording {}", hooks.join(", ")),
    };
    let store = open(&config)?;
    let project = place.find(&folder, &config, store.as_ref());
    let knows = match (&project.row, project.name()) {
        (Some(row), _) => {
            let store = store.as_ref();
            let sessions = store.map_or(Ok(0), |store| store.session_count(row.id))?;
            let (_, memories) = store.map_or(Ok((Vec::new(), 0)), |store| store.all_memories(Some(row.id), 1))?;
            format!(
                "{}: {}, {}",
                line(&row.name, 60),
                count(sessions, "session", "sessions"),
                count(memories as i64, "memory", "memories")
            )
        }
        (None, Some(name)) => format!("{}: nothing is recorded yet", line(name, 60)),
        (None, None) => "this folder is no project".to_string(),
    };
    let next = match (is_anywhere, project.row.is_some()) {
        (false, _) => "next: `nmem install --found` adds the hooks, `nmem demo` shows what they do",
        (true, true) => "next: `nmem context` shows what the next session gets, `nmem search WORDS` finds more",
        (true, false) => "next: work with an agent here, or `nmem import` past sessions",
    };
    let style = output::style();
    output::say(&format!("{}  {records}\n{knows}\n{next}; `nmem help` lists all commands", style.strong("nmem")))
}

/// Print one line for an agent's status line
#[derive(Debug, Default, clap::Args)]
#[command(
    after_help = "Example: nmem install claude-code --statusline\n\nPrints the branch's open ends, the check that failed last, and how many memories the session received. The agent gives its\nsession on stdin."
)]
pub struct StatuslineArguments {
    #[command(flatten)]
    project: ProjectArgument,
}

/// Maximum wait for stdin, and for a store that another process is writing.
const STDIN: Duration = Duration::from_millis(500);
const LINE_WAIT: Duration = Duration::from_millis(20);

/// Prints the line. Its exit code is 0 even if there is nothing to say.
pub fn run_statusline(args: &StatuslineArguments) -> Result<()> {
    let input: Value = match Stdin::within(STDIN).map(payload::read) {
        Ok(Ok(Payload::Json { value, .. })) => value,
        _ => Value::Null,
    };
    let given = input["workspace"]["current_dir"].as_str().or(input["cwd"].as_str()).map(PathBuf::from);
    let folder = match given.filter(|folder| args.project.project.is_none() && folder.is_absolute()) {
        Some(folder) => folder,
        None => args.project.folder()?,
    };
    let (config, problem) = args.project.config_and_problem(&folder)?;
    let parts = match (problem, switched_off(&config, environment::now()).first()) {
        (None, None) => status_parts(&config, &args.project, &folder, input["session_id"].as_str())?,
        _ => vec!["off".to_string()],
    };
    if !parts.is_empty() {
        output::print(&format!("nmem: {}", parts.join(" · ")))?;
    }
    Ok(())
}

/// The parts of the status line that have something to say.
fn status_parts(config: &Config, project: &ProjectArgument, folder: &Path, session: Option<&str>) -> Result<Vec<String>> {
    let Some(store) = Store::open_to_read(&config.files.value, LINE_WAIT)? else { return Ok(Vec::new()) };
    let place = project.find(folder, config, Some(&store));
    let Some(row) = &place.row else { return Ok(Vec::new()) };
    let branch = git::state_at(folder, config.home.as_deref()).and_then(|state| state.branch);
    let open = store.open_end_count(row.id, branch.as_deref())?;
    let of_agent = |agent: &Platform| session.map(|id| store.session_row(*agent, id)).transpose().ok().flatten().flatten();
    let own = [Platform::ClaudeCode, Platform::QwenCode].iter().find_map(of_agent);
    let failing = own.map(|own| failing_check(&store, own)).transpose()?.flatten();
    let received = own.map_or(Ok(0), |own| store.injected_count(own))?;
    let parts = [
        (open > 0).then(|| format!("{open} open")),
        failing.map(|check| format!("{} fails", line(&check, 40))),
        (received > 0).then(|| format!("{received} received")),
    ];
    Ok(parts.into_iter().flatten().collect())
}

/// Runs the command.
pub fn run(args: &StatusArguments) -> Result<()> {
    let folder = args.project.folder()?;
    let (config, problem) = args.project.config_and_problem(&folder)?;
    let files = &config.files.value;
    let mut stored = look(&config);
    if let Some(problem) = problem {
        stored.problem = Some(format!("nothing is recorded: {problem:#}"));
    }
    let errors = runtime::last_errors(files, ERRORS);
    let bytes = size(files);
    let now = environment::now();
    let switched_off = switched_off(&config, now);
    let wishes = wishes(&config);
    let hooks = installation::examine(&folder, &config.switches.installed)?;
    if args.json {
        let errors: Vec<Value> = errors.iter().map(|e| json!({"at": e.at, "message": e.message})).collect();
        let last: serde_json::Map<String, Value> = stored.last.iter().map(|l| (l.platform.to_string(), json!(l.at))).collect();
        let settings: serde_json::Map<String, Value> = config
            .listed()
            .into_iter()
            .map(|listed| (listed.name.to_string(), json!({"value": listed.value, "source": listed.source.to_string()})))
            .collect();
        let hooks: Vec<Value> =
            hooks.iter().map(|found| json!({"level": found.level.name(), "what": found.what, "remedy": found.remedy})).collect();
        return output::print(
            &json!({
                "version": env!("CARGO_PKG_VERSION"), "hooks": hooks, "database": files.db, "bytes": bytes, "problem": stored.problem,
                "counts": {"projects": stored.counts.projects, "sessions": stored.counts.sessions, "prompts": stored.counts.prompts, "tool_uses": stored.counts.tool_uses, "work_units": stored.counts.work_units, "memories": stored.counts.memories},
                "last_event": last, "spool": {"waiting": spool::waiting(files), "rejected": spool::rejected(files), "lost": spool::lost(files)}, "errors": errors,
                "given": injections_json(&stored.injections), "embedded": stored.embedded.map(|(done, all)| json!({"memories": done, "of": all})), "queue": stored.models.waiting, "spend": spend(&config, &stored.models),
                "team": stored.team.as_ref().map(|(projects, last)| json!({"with": team_target(&config), "projects": projects, "done_at": last.done_at,
                    "failed_at": last.failed_at, "error": last.error})),
                "off": switched_off, "notes": wishes.iter().chain(&stored.older_rules).collect::<Vec<_>>(),
                "settings": settings, "unknown_settings": config.unknown,
            })
            .to_string(),
        );
    }
    let style = output::style();
    let mut out = String::new();
    for found in &hooks {
        let level = if found.level == FindingLevel::Good {
            String::new()
        } else {
            format!("{} ", style.bad(&format!("{}:", found.level.name())))
        };
        out += &format!("{}  {level}{}\n", style.strong("hooks"), line(&found.what, 400));
        out += &found.remedy.as_ref().map(|remedy| format!("  {}\n", style.faint(&line(remedy, 300)))).unwrap_or_default();
    }
    out += &format!("\n{}  {} ({})\n", style.strong("database"), files.db.display(), megabytes(bytes));
    let Counts { projects, sessions, prompts, tool_uses, work_units, memories } = stored.counts;
    let counted = [
        count(projects, "project", "projects"),
        count(sessions, "session", "sessions"),
        count(prompts, "prompt", "prompts"),
        count(tool_uses, "tool use", "tool uses"),
        count(work_units, "work unit", "work units"),
        count(memories, "memory", "memories"),
    ];
    out += &format!("  {}\n", counted.join(", "));
    if let Some(offer) = &stored.older_rules {
        out += &format!("  {} {offer}\n", style.bad("note:"));
    }
    for last in &stored.last {
        out += &format!("  last event from {}: {}\n", last.platform, time::ago(last.at, now));
    }
    if stored.last.is_empty() && stored.problem.is_none() && Store::broken_ones(files).is_empty() {
        out += "  nothing recorded yet: recording starts with the first session after nmem is installed\n";
    }
    if let Some(problem) = &stored.problem {
        out += &format!("  {} {}\n", style.bad("problem:"), line(problem, 400));
    }
    let (waiting, rejected) = (spool::waiting(files), spool::rejected(files));
    if waiting > 0 {
        let places: Vec<String> = spool::waiting_places(files).iter().map(|p| p.display().to_string()).collect();
        out += &format!("  {waiting} events are waiting in {}\n", places.join(", "));
    }
    if rejected > 0 {
        out += &format!("  {rejected} events were rejected and are kept in {}\n", files.rejected.display());
    }
    let lost = spool::lost(files);
    if lost > 0 {
        out += &format!(
            "  {} {lost} events were lost: neither the database nor a spool folder could be written\n",
            style.bad("problem:")
        );
    }
    for broken in Store::broken_ones(files) {
        out += &format!("  {} a broken database was set aside: {}\n", style.bad("note:"), broken.display());
    }
    for off in &switched_off {
        out += &format!("  {} {off}\n", style.bad("off:"));
    }
    for wish in &wishes {
        out += &format!("  {} {wish}\n", style.bad("note:"));
    }
    if let Some(destination) = config.llm.destination() {
        out += &format!("\n{}  {destination}\n", style.strong("model"));
    } else if stored.models.all.calls > 0 {
        out += &format!("\n{}  none now\n", style.strong("model"));
    }
    for lines in models(&config, &stored.models, now) {
        out += &format!("  {lines}\n");
    }
    for lines in embeddings(&config, stored.embedded) {
        out += &format!("  {lines}\n");
    }
    if let Some((projects, last)) = &stored.team {
        out += &format!("\n{}\n", style.strong("team"));
        let with = team_target(&config);
        for said in memory_text::status(with.as_deref(), config.team.syncs_in_sessions(), projects, last, now) {
            out += &format!("  {said}\n");
        }
    }
    if !stored.injections.is_empty() {
        out += &format!("\n{}  in the last {INJECTION_DAYS} days\n", style.strong("injected"));
    }
    for lines in injections(&stored.injections) {
        out += &format!("  {lines}\n");
    }
    out += &format!("\n{}  {}\n", style.strong("settings"), config.file.display());
    let listed = config.listed();
    let changed = |setting: &&ListedSetting| args.settings || setting.source != SettingSource::Default;
    for ListedSetting { name, value, source } in listed.iter().filter(changed) {
        out += &format!("  {name} = {}  {}\n", line(&value.to_string(), 200), style.faint(&source.to_string()));
    }
    if !args.settings {
        let defaults = listed.iter().filter(|setting| setting.source == SettingSource::Default).count();
        let which = if defaults == listed.len() { format!("all {defaults} settings") } else { format!("{defaults} others") };
        out += &format!("  {}\n", style.faint(&format!("{which} have their defaults; --settings lists them")));
    }
    for key in &config.unknown {
        out += &format!("  {key}: not a known setting\n");
    }
    if !errors.is_empty() {
        out += &format!("\n{}  {}\n", style.strong("recent errors"), files.log.display());
        for error in errors {
            out += &format!("  {}  {}\n", style.faint(&time::ago(error.at, now)), line(&error.message, 300));
        }
    }
    output::say(out.trim_end())
}

/// Drains the spool, then counts. An unavailable store is reported as a problem, not as an error.
fn look(config: &Config) -> StoreStatus {
    let files = &config.files.value;
    let look = || -> Result<StoreStatus> {
        // Opened for writing, so that an older database is migrated.
        let store = (spool::is_waiting(files) || files.db.exists()).then(|| writable(config)).transpose()?;
        let Some(store) = store else { return Ok(StoreStatus::default()) };
        let on = config.embeddings.is_on();
        let embedded = on.then(|| store.embedded(config.embeddings.name())).transpose()?;
        let last = store.last_sync()?;
        let projects: Vec<String> = shared_projects(&store, config)?;
        let team = (team_target(config).is_some() || !projects.is_empty()).then_some((projects, last));
        Ok(StoreStatus { embedded, team, ..counted(&store, config)? })
    };
    look().unwrap_or_else(|error| {
        // A read-only store can still be counted.
        let read = Store::open_to_read(files, PERSON_WAIT).ok().flatten().and_then(|store| counted(&store, config).ok());
        StoreStatus { problem: Some(store::reason(&error)), ..read.unwrap_or_default() }
    })
}

/// Returns the target of `nmem sync`: a PostgreSQL host or a folder.
fn team_target(config: &Config) -> Option<String> {
    let folder = || config.team.folder.value.as_ref().map(|folder| folder.display().to_string());
    config.team.host().map(|host| format!("PostgreSQL at {host}")).or_else(folder)
}

/// Returns the reasons why hooks do nothing here or in one session.
fn switched_off(config: &Config, now: Millis) -> Vec<String> {
    let mut off: Vec<String> =
        config.switches.off.iter().filter(|o| o.holds(now)).map(|o| format!("recording is paused {}", o.describe(now))).collect();
    if !config.enabled.value {
        off.push(format!("enabled = false ({}): nothing is recorded here", config.enabled.source));
    }
    off.extend(environment::switched_off().map(|name| format!("hooks that inherit {name} do nothing")));
    off
}

/// Returns notes about the repository's own settings file: an unreadable file, or requests that are not approved.
fn wishes(config: &Config) -> Vec<String> {
    let mut notes = Vec::new();
    for wishes in &config.wishes {
        let path = wishes.path.display();
        match &wishes.table {
            Err(error) => {
                notes.push(format!("{path} cannot be read ({}): nothing is recorded here until it is fixed", line(error, 200)))
            }
            Ok(_) if !wishes.waiting().is_empty() => {
                notes.push(format!("{path} asks for {}; `nmem trust` shows and approves them", wishes.waiting().join(", ")));
            }
            Ok(_) => {}
        }
    }
    notes
}

fn counted(store: &Store, config: &Config) -> Result<StoreStatus> {
    let now = environment::now();
    let models = Models {
        today: store.spent_since(now - DAY)?,
        all: store.spent_since(Millis::MIN)?,
        last: store.last_calls(1)?.pop(),
        // Nothing waits for a model that nobody has chosen.
        waiting: if config.llm.destination().is_none() { 0 } else { store.model_queue(None, None, now)?.len() },
        paused_until: store.paused_until(now)?,
    };
    Ok(StoreStatus {
        counts: store.counts()?,
        last: store.last_events()?,
        models,
        injections: injected(store, now - INJECTION_DAYS * DAY)?,
        older_rules: older_rules(store)?,
        embedded: None,
        team: None,
        problem: None,
    })
}

/// The embedding model and its coverage.
fn embeddings(config: &Config, embedded: Option<(i64, i64)>) -> Vec<String> {
    if !config.embeddings.is_on() {
        return Vec::new();
    }
    let place = config.embeddings.destination().map_or("in this process".to_string(), |host| format!("at {host}"));
    let mut lines = vec![format!("embeddings: {} {place}", line(config.embeddings.name(), 60))];
    let problem = match config.embeddings.model() {
        Err(error) => Some(format!("{error:#}")),
        Ok(Some(EmbeddingModel::Local(model))) => local::problem(&model),
        Ok(_) => None,
    };
    lines.extend(problem.map(|problem| format!("problem: {}", line(&problem, 300))));
    if let Some((done, all)) = embedded {
        let rest = if done < all { "; `nmem distil` embeds the rest" } else { "" };
        lines.push(format!("{done} of {all} memories have an embedding{rest}"));
    }
    lines
}

/// Counts injections since a time, and the items that were used in the newest sessions.
fn injected(store: &Store, since: Millis) -> Result<BTreeMap<InjectionPoint, InjectionStats>> {
    let mut all = store.injections_since(None, since)?;
    let mut newest = store.injections_of(&store.sessions_with_injections(None, since, JUDGED)?)?;
    recall::judge_use(store, &mut newest)?;
    for injection in newest {
        let stats = all.entry(injection.point).or_default();
        stats.judged += injection.items.len() as i64;
        stats.used += injection.items.iter().filter(|item| item.used.is_some()).count() as i64;
    }
    Ok(all)
}

/// Recent injections, and how many items were used.
fn injections(injections: &BTreeMap<InjectionPoint, InjectionStats>) -> Vec<String> {
    let one_line = |(point, stats): (&InjectionPoint, &InjectionStats)| {
        let when = match point {
            InjectionPoint::Start => "at a session start",
            InjectionPoint::Compaction => "after a compaction",
            InjectionPoint::Prompt => "at a prompt",
            InjectionPoint::File => "before an edit",
            InjectionPoint::Subagent => "at a subagent's start",
        };
        let InjectionStats { times, bytes, items, judged, used } = *stats;
        let of = if judged < items { format!(" of the last {judged}") } else { String::new() };
        let (times, items) = (count(times, "time", "times"), count(items, "item", "items"));
        format!("{when}: {times}, {bytes} bytes, {items}; the agent then used {used}{of}")
    };
    injections.iter().map(one_line).collect()
}

fn injections_json(injections: &BTreeMap<InjectionPoint, InjectionStats>) -> Value {
    let one = |stats: &InjectionStats| json!({"times": stats.times, "bytes": stats.bytes, "items": stats.items, "judged": stats.judged, "used": stats.used});
    injections.iter().map(|(point, stats)| (point.name().to_string(), one(stats))).collect::<serde_json::Map<_, _>>().into()
}

/// Costs, queue and problems of the model; empty if none was ever configured.
fn models(config: &Config, models: &Models, now: Millis) -> Vec<String> {
    let llm = &config.llm;
    let on = llm.destination().is_some();
    let mut lines = Vec::new();
    if on && let Err(error) = llm.endpoints(&config.files.value) {
        lines.push(format!("problem: {}", line(&format!("{error:#}"), 300)));
    }
    let Spent { calls, failed, .. } = models.today;
    if on || models.all.calls > 0 {
        let failures = if failed > 0 { format!(", {failed} of them failed") } else { String::new() };
        let (used, most) = (models.today.tokens(), llm.daily_tokens.value);
        lines.push(format!("last 24 hours: {}{failures}, {used} of {most} tokens", count(calls, "call", "calls")));
        lines.push(format!("ever: {}, {} tokens", count(models.all.calls, "call", "calls"), models.all.tokens()));
    }
    if let Some(last) = &models.last {
        let took = last.took as f64 / 1000.0;
        lines.push(format!("last: {}, {} in {took:.1} s, {}", line(&last.model, 60), last.outcome, time::ago(last.at, now)));
    }
    if on && models.waiting > 0 {
        let when = if llm.when.value == When::Manual {
            "`nmem distil` runs them"
        } else {
            "units of the last two days run at the next Stop, all of them with `nmem distil`"
        };
        lines.push(format!("{} in the queue: {when}", count(models.waiting as i64, "unit", "units")));
    }
    if let Some(until) = models.paused_until.filter(|_| on) {
        lines.push(format!("paused until {} because the last calls failed; `nmem distil` tries at once", time::clock(until)));
    }
    lines
}

fn spend(config: &Config, models: &Models) -> Value {
    let of = |spent: &Spent| json!({"calls": spent.calls, "failed": spent.failed, "input_tokens": spent.input_tokens, "output_tokens": spent.output_tokens});
    let last = models.last.as_ref().map(|last| {
        json!({"at": last.at, "provider": last.provider, "model": last.model, "purpose": last.purpose, "input_tokens": last.input_tokens,
            "output_tokens": last.output_tokens, "estimated": last.estimated, "ms": last.took, "outcome": last.outcome})
    });
    json!({"day": of(&models.today), "ever": of(&models.all), "daily_tokens": config.llm.daily_tokens.value, "last": last, "paused_until": models.paused_until})
}

fn size(files: &Files) -> u64 {
    [files.db.clone(), files.wal()].iter().filter_map(|path| fs::metadata(path).ok()).map(|m| m.len()).sum()
}

fn megabytes(bytes: u64) -> String {
    match bytes {
        0 => "none yet".to_string(),
        b if b < 1 << 20 => format!("{} kB", b.div_ceil(1024)),
        b => format!("{:.1} MB", b as f64 / f64::from(1 << 20)),
    }
}

/// Names of the projects that are shared with a team.
#[cfg(feature = "team")]
fn shared_projects(store: &Store, config: &Config) -> Result<Vec<String>> {
    Ok(crate::team::incoming::shared(store, config)?.into_iter().map(|project| project.name).collect())
}

#[cfg(not(feature = "team"))]
fn shared_projects(_: &Store, _: &Config) -> Result<Vec<String>> {
    Ok(Vec::new())
}
