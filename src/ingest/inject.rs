//! Injects context at a session start, at a prompt, before an edit, and for a subagent. `recall` selects the
//! context and `render` writes it; this module decides when to inject, and records the injection.

use super::persist::Persisted;
use super::run::{self, Caller, Run};
use crate::config::{Config, Inject};
use crate::distil::{embed, notes, observer};
use crate::evidence::unproven_claim;
use crate::model::{Event, EventKind, InjectionPoint, Millis, Platform, Share, StartSource};
use crate::platforms;
use crate::platforms::adapter::HookAnswer;
use crate::platforms::author::without_client_blocks;
use crate::project::{self, git};
use crate::recall::{self, Prompt, SessionContext};
use crate::redact::Clean;
use crate::render::ranked_units;
use crate::render::session_start::{self, ContextBlock, ContextLoss, for_agent, with_below};
use crate::runtime::log_error;
use crate::store::candidates::SessionScope;
use crate::store::injections::Injection;
use crate::store::{HOOK_WAIT, Store, is_broken, spool};
use anyhow::Result;
use std::cell::Cell;
use std::path::Path;

/// Maximum share of the budget, in percent, for the state that a compaction or `/clear` removed.
const LOST: usize = 70;

/// Maximum time between a subagent's call and its start, in milliseconds. A start does not identify its call.
const TASKS: Millis = 60_000;

/// Message for the person at a session start if only parts of the database can be read.
const DAMAGED: &str =
    "nmem: the database is damaged, and a part of what it remembers cannot be read. `nmem doctor --fix` repairs it.";

/// Answers an event, if it is one that gets an answer; most events do not. A session start is answered even if its
/// event could not be stored.
pub fn inject(run: &Run, persisted: &mut Persisted, event: &Clean<Event>) -> Result<Option<HookAnswer>> {
    if run.caller != Caller::Hook || !is_possible(event) {
        return Ok(None);
    }
    match (&event.what, persisted) {
        (EventKind::SessionStarted(start), persisted) => at_start(run, persisted, event, start.source),
        (EventKind::UserPrompt { text }, Persisted::Stored(store)) => match with_first_prompt(run, store, event)? {
            None => at_prompt(run, store, event, text),
            start => Ok(start),
        },
        (EventKind::PreEdit { path, repository }, _) => before_edit(run, event, path, repository.as_deref()),
        (EventKind::SubagentStarted, _) => at_subagent(run, event),
        (EventKind::ToolUsed(_), Persisted::Stored(store)) => with_first_result(run, store, event),
        (EventKind::TurnEnded { closing: Some(closing), .. }, Persisted::Stored(store)) if run.config.verify_at_stop.value => {
            let session = store.session_by_agent_id(event.platform, &event.session)?;
            let line = session.map(|session| unproven_claim(store, session.id, closing)).transpose()?.flatten();
            Ok(line.map(HookAnswer::for_person))
        }
        _ => Ok(None),
    }
}

/// Returns true if the event's platform accepts an answer to it. Context that would not arrive is not injected, so it
/// can be injected later.
fn is_possible(event: &Event) -> bool {
    let support = platforms::adapter(event.platform).support();
    match event.what {
        EventKind::SessionStarted(_) => support.takes(InjectionPoint::Start),
        EventKind::UserPrompt { .. } => support.takes(InjectionPoint::Prompt),
        EventKind::PreEdit { .. } => support.takes(InjectionPoint::File),
        EventKind::SubagentStarted => support.takes(InjectionPoint::Subagent),
        EventKind::ToolUsed(_) => support.takes_results,
        // They show a message of a hook to the person when a turn ends.
        EventKind::TurnEnded { .. } => matches!(event.platform, Platform::ClaudeCode | Platform::QwenCode),
        _ => false,
    }
}

/// Reminds the person, at a session start, of a pause without an end: such a pause is easily forgotten.
pub fn while_paused(run: &Run, left_out: &[(&str, Event)]) -> Option<HookAnswer> {
    let (_, start) = left_out.iter().find(|(_, event)| matches!(event.what, EventKind::SessionStarted(_)))?;
    let pause = run::pause(run, start).filter(|pause| run.caller == Caller::Hook && pause.until.is_none())?;
    Some(HookAnswer::for_person(format!("nmem: recording is paused {}. `nmem on` resumes it.", pause.describe(run.now))))
}

fn at_start(run: &Run, persisted: &mut Persisted, event: &Event, source: StartSource) -> Result<Option<HookAnswer>> {
    let config = run.config;
    let (answer, note) = match persisted {
        Persisted::Stored(store) => {
            let note = observer::llm_note(config, event, Some(store));
            match start_block(run, store, event, source) {
                Err(error) if is_broken(&error) => (HookAnswer::for_person(DAMAGED.into()), note),
                block => (block?, note),
            }
        }
        Persisted::NotStored(problem) => {
            let answer = HookAnswer::for_person(format!("nmem: {problem}. See `nmem status`."));
            (answer, observer::llm_note(config, event, None))
        }
        Persisted::Question => return Ok(None),
    };
    Ok(Some(with_notes(config, answer, note)))
}

/// Answers the first prompt of a session with the context of its start, for agents that take context at a prompt only.
fn with_first_prompt(run: &Run, store: &mut Store, event: &Event) -> Result<Option<HookAnswer>> {
    let support = platforms::adapter(event.platform).support();
    if support.takes(InjectionPoint::Start) || support.takes_results {
        return Ok(None);
    }
    let Some(row) = store.session_row(event.platform, &event.session)? else { return Ok(None) };
    let is_first = store.session_by_row(row)?.is_some_and(|session| session.prompts == 1);
    if !is_first || store.has_received_start(event.platform, &event.session)? {
        return Ok(None);
    }
    Ok(Some(start_block(run, store, event, StartSource::Startup)?).filter(|answer| answer.context.is_some()))
}

/// Answers the first tool use of a session with the context of its start, for agents that drop it at the start itself.
fn with_first_result(run: &Run, store: &mut Store, event: &Event) -> Result<Option<HookAnswer>> {
    let Some(row) = store.session_row(event.platform, &event.session)? else { return Ok(None) };
    let is_first = store.session_by_row(row)?.is_some_and(|session| session.tool_uses == 1);
    if !is_first || store.has_received_start(event.platform, &event.session)? {
        return Ok(None);
    }
    start_block(run, store, event, StartSource::Startup).map(Some)
}

fn at_prompt(run: &Run, store: &mut Store, event: &Event, prompt: &str) -> Result<Option<HookAnswer>> {
    let (config, now) = (run.config, run.now);
    if config.inject.value != Inject::All || config.prompt_bytes.value == 0 {
        return Ok(None);
    }
    let Some(scope) = store.session_scope(event.platform, &event.session)? else { return Ok(None) };
    let root = root(config, event);
    let branch = || git::state_at(root?, config.home.as_deref())?.branch;
    let answered = Cell::new(None);
    let embedding = || {
        let embedding =
            embed::may_be_asked(config, store, now).then(|| embed::of_text(config, run.redactor, prompt, embed::AT_PROMPT))?;
        answered.set(Some(embedding.is_some()));
        embedding
    };
    let asked = Prompt { text: without_client_blocks(prompt), embedding: &embedding, branch: &branch, root };
    let found = store.read(|store| recall::at_prompt(store, &scope, &asked))?;
    if let Some(answered) = answered.get() {
        embed::note(store, answered, now);
    }
    let block = ranked_units::at_prompt(&found, config.prompt_bytes.value);
    inject_once(run, store, &scope, InjectionPoint::Prompt, block.text.clone(), &block.items())
}

fn before_edit(run: &Run, event: &Event, path: &str, repository: Option<&str>) -> Result<Option<HookAnswer>> {
    let budget = run.config.file_bytes.value;
    answer(run, event, InjectionPoint::File, budget, |store, scope| {
        // A file of another repository: what is known about it belongs to that project.
        let elsewhere = repository.and_then(|root| run.projects().look_up(root, Some(store)).row);
        let scope = &SessionScope { project: elsewhere.map_or(scope.project, |row| row.id), ..scope.clone() };
        let root = repository.map(Path::new).or(root(run.config, event));
        let (known, annotations) = recall::at_file(store, scope, path, root)?;
        Ok(session_start::at_file(path, &known, &annotations, budget))
    })
}

fn at_subagent(run: &Run, event: &Event) -> Result<Option<HookAnswer>> {
    let budget = run.config.prompt_bytes.value;
    answer(run, event, InjectionPoint::Subagent, budget, |store, scope| {
        let files = store.task_files(scope.session, run.now - TASKS)?;
        let (known, annotations) = recall::at_subagent(store, scope, &files, root(run.config, event))?;
        Ok(session_start::at_subagent(&known, &annotations, budget))
    })
}

/// Answers an event that only requests context. Stores nothing except the injection.
fn answer(
    run: &Run,
    event: &Event,
    point: InjectionPoint,
    budget: usize,
    block: impl FnOnce(&Store, &SessionScope) -> Result<ContextBlock>,
) -> Result<Option<HookAnswer>> {
    if run.config.inject.value != Inject::All || budget == 0 {
        return Ok(None);
    }
    let files = &run.config.files.value;
    let Some(store) = Store::open_to_read(files, HOOK_WAIT)? else { return Ok(None) };
    let found = store.read(|store| {
        let Some(scope) = store.session_scope(event.platform, &event.session)? else { return Ok(None) };
        let block = block(store, &scope)?;
        Ok(Some((scope, block)))
    });
    store.exit_without_close();
    let Some((scope, block)) = found?.filter(|(_, block)| !block.text.is_empty()) else { return Ok(None) };
    let mut store = Store::open(files, HOOK_WAIT)?;
    inject_once(run, &mut store, &scope, point, block.text.clone(), &block.items())
}

/// Injects a text, unless another process has just injected the same one.
fn inject_once(
    run: &Run,
    store: &mut Store,
    scope: &SessionScope,
    point: InjectionPoint,
    text: String,
    items: &[String],
) -> Result<Option<HookAnswer>> {
    if text.is_empty() || !store.record_injection(Injection { session: scope.session, point, at: run.now, text: &text, items })? {
        return Ok(None);
    }
    Ok(Some(HookAnswer { point, context: Some(text), message: None }))
}

/// Adds notes for the person at a session start.
fn with_notes(config: &Config, mut answer: HookAnswer, note: Option<String>) -> HookAnswer {
    let files = &config.files.value;
    let mut notes: Vec<String> = answer.message.take().into_iter().chain(note).collect();
    let lost = spool::lost(files);
    if lost > 0 {
        notes.push(format!("nmem: {lost} events were lost: neither the database nor a spool folder could be written."));
        spool::losses_were_reported(files);
    }
    if !config.unknown.is_empty() {
        notes.push(format!("nmem: unknown settings in {1}: {0}.", config.unknown.join(", "), config.file.display()));
    }
    let waiting: Vec<&str> = config.wishes.iter().flat_map(|w| w.waiting()).collect();
    if !waiting.is_empty() {
        notes.push(format!(
            "nmem: this project's .nmem.toml asks for {}; `nmem trust` shows and approves them.",
            waiting.join(", ")
        ));
    }
    HookAnswer { message: Some(notes.join(" ")).filter(|n| !n.is_empty()), ..answer }
}

/// Returns the context block for a session start, and records the injection.
fn start_block(run: &Run, store: &mut Store, event: &Event, source: StartSource) -> Result<HookAnswer> {
    let keeps = platforms::adapter(event.platform).support().keeps_start_context;
    let has_context = match source {
        // The session may have begun before nmem was installed, or when nothing was known.
        StartSource::Resume => keeps && store.has_received_start(event.platform, &event.session)?,
        StartSource::Fork => keeps,
        _ => false,
    };
    if run.config.inject.value == Inject::None || has_context {
        return Ok(HookAnswer::default());
    }
    let Some(start) = store.read(|store| recalled(run, store, event, source))? else { return Ok(HookAnswer::default()) };
    let block = start.block;
    if !block.text.is_empty() && !start.is_muted {
        // The agent gets the block even if the injection cannot be recorded.
        let (text, items) = (&block.text, &block.items());
        let injection = Injection { session: start.session, point: start.point, at: run.now, text, items };
        match store.record_injection(injection) {
            // A second hook for the same start: an agent may also run the hooks in another agent's settings.
            Ok(false) if !items.is_empty() => return Ok(HookAnswer::default()),
            Ok(_) => {}
            Err(error) => log_error(&format!("the injection was not recorded: {error:#}")),
        }
    }
    let message = start.message;
    let asks = (run.config.agent_notes.value && !start.is_muted).then(|| notes::REQUEST.to_string());
    let parts: Vec<String> = Some(block.text).filter(|text| !text.is_empty()).into_iter().chain(asks).collect();
    Ok(HookAnswer { point: start.point, context: Some(parts.join("\n\n")).filter(|text| !text.is_empty()), message })
}

/// The context and message that a session start receives.
struct Start {
    session: i64,
    point: InjectionPoint,
    block: ContextBlock,
    /// One line for the person; `None` after a compaction.
    message: Option<String>,
    is_muted: bool,
}

/// Selects the context for a session start; `None` if the session has no project. Only reads the database.
fn recalled(run: &Run, store: &Store, event: &Event, source: StartSource) -> Result<Option<Start>> {
    let (config, now) = (run.config, run.now);
    let limit = platforms::adapter(event.platform).support().context_bytes;
    let budget = limit.map_or(config.context_bytes.value, |limit| config.context_bytes.value.min(limit));
    let Some(session) = store.session_row(event.platform, &event.session)? else { return Ok(None) };
    let scope = store.session_scope(event.platform, &event.session)?;
    let is_muted = scope.as_ref().is_some_and(|scope| scope.muted);
    let is_compacted = source == StartSource::Compact;
    let Some(scope) = scope else {
        let lost = Some(session).filter(|_| is_compacted);
        let block = session_state(store, lost, ContextLoss::Compacted, budget)?;
        return Ok(is_compacted.then_some(Start { session, point: InjectionPoint::Compaction, block, message: None, is_muted }));
    };
    let (lost_session, loss) = match source {
        StartSource::Compact => (Some(session), ContextLoss::Compacted),
        StartSource::Clear => (recall::cleared(store, scope.project, scope.session, now)?, ContextLoss::Cleared),
        _ => (None, ContextLoss::Cleared),
    };
    // The lost state comes first; the project's memories share the rest of the budget.
    let own = session_state(store, lost_session, loss, budget * LOST / 100)?;
    let branch = match &event.what {
        EventKind::SessionStarted(start) => start.git.as_ref().and_then(|git| git.branch.as_deref()),
        _ => scope.branch.as_deref(),
    };
    let home = config.home.as_deref();
    let here = SessionContext { own: Some(scope.session), agent: Some(event.platform), branch, root: root(config, event), home };
    let mut recalled = recall::at_start(store, scope.project, here, now)?;
    recalled.last = recalled.last.filter(|last| !is_compacted && Some(last.session.id) != lost_session);
    for memories in [&mut recalled.pinned, &mut recalled.decisions, &mut recalled.mistakes] {
        memories.retain(|memory| !own.shown.contains(&memory.id));
    }
    if source == StartSource::Resume {
        // The session still has in its conversation what came of it.
        for memories in [&mut recalled.open, &mut recalled.decisions] {
            memories.retain(|memory| memory.session != Some(scope.session));
        }
    }
    let below = match event.cwd.as_deref().filter(|_| !is_compacted) {
        Some(cwd) => recall::below(store, Path::new(cwd), here, now)?,
        None => Vec::new(),
    };
    let rest = budget.saturating_sub(own.text.len() + 1) / (below.len() + 1);
    let block = with_below(own.and(for_agent(&recalled, rest)), &below, budget);
    let message = if recalled.is_damaged {
        Some(DAMAGED.to_string())
    } else if is_first(store, &scope, source)? {
        Some(introduction(config, is_shared(store, config, scope.project)?))
    } else {
        Some(session_start::for_person(&recalled, &block)).filter(|_| !block.text.is_empty())
    };
    let (point, message) = match is_compacted {
        true => (InjectionPoint::Compaction, None),
        false => (InjectionPoint::Start, message),
    };
    Ok(Some(Start { session, point, block, message, is_muted }))
}

/// Whether a session is the project's first one, and was not recorded before.
fn is_first(store: &Store, scope: &SessionScope, source: StartSource) -> Result<bool> {
    if store.session_count(scope.project)? > 1 {
        return Ok(false);
    }
    let is_new = || Ok(store.session_by_row(scope.session)?.is_none_or(|session| session.prompts == 0));
    if source == StartSource::Resume { is_new() } else { Ok(true) }
}

fn session_state(store: &Store, session: Option<i64>, cleared_session: ContextLoss, budget: usize) -> Result<ContextBlock> {
    let session_state = session.map(|session| recall::session_state(store, session)).transpose()?.flatten();
    Ok(session_state.map_or_else(ContextBlock::default, |session_state| {
        session_start::state_for_agent(&session_state, cleared_session, budget)
    }))
}

/// The root of the worktree, for checking files.
fn root<'a>(config: &Config, event: &'a Event) -> Option<&'a Path> {
    project::worktree_root(Path::new(event.cwd.as_deref()?), config.home.as_deref())
}

fn is_shared(store: &Store, config: &Config, project: i64) -> Result<bool> {
    let said = store.project_shares()?.into_iter().find(|said| said.project.id == project);
    Ok(said.is_some_and(|said| config.share_of(said.share, Path::new(&said.project.root)) != Share::None))
}

/// The introduction in a project's first session: what is recorded, where, and how to stop it.
fn introduction(config: &Config, is_shared: bool) -> String {
    let sent = [
        is_shared.then(|| "memories are shared by `nmem sync`".to_string()),
        config.llm.destination().map(|model| format!("parts are sent to {model} ([llm] in {})", config.file.display())),
        config
            .embeddings
            .destination()
            .map(|host| format!("memories and search queries are sent to {host} ([embeddings] in {})", config.file.display())),
    ];
    let sent: Vec<String> = sent.into_iter().flatten().collect();
    let leaves = if sent.is_empty() { "nothing leaves this machine".to_string() } else { sent.join("; ") };
    format!(
        "nmem records this project's prompts, tool calls and closing messages in {}, with secrets redacted; {leaves}. \
             `nmem off` pauses it, `nmem forget` deletes.",
        config.files.value.db.display()
    )
}
