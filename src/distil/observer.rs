//! Asks a language model about a unit: at Stop within the hook's time if a call is due, or for `nmem distil`.

use super::distiller::Distiller;
use crate::config::llm::When;
use crate::config::{self, Config, environment};
use crate::domains;
use crate::extraction::{self, PromptRequest, UnitContext};
use crate::llm;
use crate::model::{
    Budget, CallCost, Draft, Endpoint, Event, LlmError, LogLevel, Maker, MemoryRow, Millis, Platform, Provider, Purpose,
    UnitStory, estimated_tokens,
};
use crate::runtime::{log_at, log_error, redactor};
use crate::store::Store;
use crate::store::llm_queue::{CallStart, Due, Superseding};
use anyhow::Result;
use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};

/// Calls per Stop.
const AT_STOP: usize = 2;
/// Stop ignores older units: a model switched on after months must not work through them unasked.
const RECENT: Millis = 48 * 3_600_000;
/// Time by which a lease outlasts the limit of its call.
const GRACE: Duration = Duration::from_secs(5);

/// Distils units with one model.
#[derive(Debug)]
pub struct Observer<'a> {
    pub distiller: &'a Distiller<'a>,
    pub to: &'a Endpoint,
    /// A tag such as `de`, or `auto`.
    pub language: &'a str,
    /// Tokens per 24 hours.
    pub daily_tokens: i64,
}

/// The result for one unit.
#[derive(Clone, Debug, PartialEq)]
pub enum DistilOutcome {
    /// Number of memories extracted.
    Extracted(usize),
    /// There was nothing to ask.
    Nothing,
    /// Another process works on it, or it is gone.
    Busy,
    Failed(LlmError),
    /// The call would exceed the daily token budget.
    OverBudget,
}

impl Observer<'_> {
    /// After a turn: distils due units while time is left. `may_see` says whether the model may see what was recorded
    /// in a folder, `time_left` how much time remains.
    pub fn at_stop(
        &self,
        store: &mut Store,
        platform: Platform,
        session: &str,
        may_see: &dyn Fn(&str) -> bool,
        time_left: &dyn Fn() -> Duration,
    ) -> Result<Vec<DistilOutcome>> {
        let now = self.distiller.now;
        let due = store.model_due_at_stop(platform, session, now - RECENT, now)?;
        if due.is_empty() || store.paused_until(now)?.is_some() {
            return Ok(Vec::new());
        }
        let mut outcomes = Vec::new();
        let mut took = llm::LEAST;
        for due in due.iter().filter(|due| due.may_be_seen(may_see)).take(AT_STOP) {
            // A call that is cut off costs tokens and yields nothing.
            if time_left() < took {
                break;
            }
            let begun = Instant::now();
            let outcome = self.ask_about(store, due, time_left())?;
            took = begun.elapsed();
            let over = matches!(outcome, DistilOutcome::Failed(_) | DistilOutcome::OverBudget);
            outcomes.push(outcome);
            if over {
                break;
            }
        }
        Ok(outcomes)
    }

    /// Distils one unit and stores the result.
    pub fn ask_about(&self, store: &mut Store, due: &Due, limit: Duration) -> Result<DistilOutcome> {
        let Some(story) = store.unit_story(due.unit)? else { return Ok(DistilOutcome::Busy) };
        let story = self.distiller.redactor.clean(story);
        let (name, config) = story.domain.clone().unwrap_or_default();
        let domain = domains::of(Some(&name), config.as_deref());
        let redo = due.purpose == Purpose::Redo;
        let seen = store.shown_to_model(due.unit)?;
        let after = if redo { 0 } else { seen };
        let (existing, refused) = existing(store, &story, redo)?;
        let recorded = store.recorded_titles(story.session, redo.then_some(story.unit))?;
        let left_out: HashSet<_> = store.dismissed_sources(story.session)?.into_iter().collect();
        let so_far = existing.iter().find(|old| after > 0 && old.kind.is_summary() && old.made_by != Maker::Rules);
        let folder = story.folder.as_deref().map(|folder| self.shown(folder));
        let before = store.message_before(due.unit, &due.folders)?.filter(|(source, _)| !left_out.contains(source));
        let rendered = extraction::question(&PromptRequest {
            story: &story,
            domain: &domain,
            after,
            message_before: before.as_ref().map(|(_, text)| text.as_str()),
            existing: &existing,
            recorded: &recorded,
            so_far: so_far.map(|old| &old.content),
            language: self.language,
            folder: folder.as_deref(),
            left_out: &left_out,
        });
        let Some(rendered) = rendered else {
            let last = story.tools.last().map_or(seen, |tool| tool.seq);
            store.write(|tx| tx.nothing_to_ask(due.unit, last))?;
            return Ok(DistilOutcome::Nothing);
        };
        let question = self.distiller.redactor.clean(rendered.question.clone());
        let input = estimated_tokens(question.system_with_form().len() + question.user.len());
        let hold = (limit + GRACE).as_millis() as Millis;
        let output = i64::from(question.answer_tokens);
        // A person's queue may take minutes, so the clock is read for each call.
        let call =
            match store.begin_call(due, self.to, Budget { input, output, daily: self.daily_tokens }, environment::now(), hold)? {
                CallStart::Leased(call) => call,
                CallStart::Busy => return Ok(DistilOutcome::Busy),
                CallStart::OverBudget => return Ok(DistilOutcome::OverBudget),
            };
        let begun = Instant::now();
        let answer = llm::ask(&question, self.to, limit);
        let took = begun.elapsed().as_millis() as Millis;
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                // A request without an answer may still have been charged.
                let paid = if is_unsent(&error) { 0 } else { input };
                store.write(|tx| {
                    tx.end_call(
                        call.row,
                        CallCost { input_tokens: paid, output_tokens: 0, estimated: true, took },
                        &error.outcome,
                    )?;
                    tx.give_back(call.lease, false)
                })?;
                return Ok(DistilOutcome::Failed(error));
            }
        };
        let estimated = answer.input_tokens.is_none() || answer.output_tokens.is_none();
        let output = answer.output_tokens.unwrap_or_else(|| estimated_tokens(answer.text.len()));
        let cost = CallCost { input_tokens: answer.input_tokens.unwrap_or(input), output_tokens: output, estimated, took };
        let unit_context = UnitContext {
            story: &story,
            domain: &domain,
            existing: &existing,
            refused: &refused,
            recorded: &recorded,
            call: call.row,
        };
        // The answer is untrusted: if reading it panics, it counts as unreadable.
        let read = || {
            let parsed = extraction::read(&answer.text, &domain);
            (!parsed.is_unusable()).then(|| extraction::to_drafts(parsed, &rendered, &unit_context))
        };
        let drafted = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)).unwrap_or_default();
        let Some(drafted) = drafted else {
            store.write(|tx| {
                tx.end_call(call.row, cost, "unusable")?;
                tx.give_back(call.lease, true)
            })?;
            let cut = if answer.is_cut { ": it was cut off at its limit of tokens" } else { "" };
            let what = format!("the answer contains nothing usable{cut}");
            return Ok(DistilOutcome::Failed(LlmError { outcome: "unusable".into(), what, again: None }));
        };
        let withdrawn = drafted.withdrawn;
        let (mut drafts, supersedes): (Vec<Draft>, Vec<Vec<i64>>) =
            drafted.drafts.into_iter().map(|drafted| (drafted.draft, drafted.supersedes)).unzip();
        // Without hashes no memory is marked stale. That is no reason to lose a paid answer.
        let _ = self.distiller.hash_files(store, &story, &mut drafts);
        // Memories and cost are stored together or not at all.
        let drafted = Superseding { drafts: self.distiller.redactor.clean(drafts), supersedes, withdrawn };
        let kept = store.write(|tx| {
            tx.end_call(call.row, cost, "ok")?;
            tx.supersede_by_model(&call, &story, &drafted, environment::now())
        })?;
        Ok(if kept { DistilOutcome::Extracted(drafted.drafts.len()) } else { DistilOutcome::Busy })
    }

    /// A folder as shown to the model, without the name of the user's home.
    fn shown(&self, folder: &str) -> String {
        let inside = self.distiller.home.and_then(|home| std::path::Path::new(folder).strip_prefix(home).ok());
        inside.map_or_else(|| folder.to_string(), |inside| format!("~/{}", inside.display()))
    }
}

/// Whether a call failed before any tokens could be charged.
fn is_unsent(error: &LlmError) -> bool {
    matches!(error.outcome.as_str(), "connect" | "https" | "proxy" | "program") || error.outcome.starts_with("http ")
}

/// A unit's active memories, and those that a person or later work replaced. When the unit is distilled again, untouched model
/// memories are left out.
fn existing(store: &Store, story: &UnitStory, redo: bool) -> Result<(Vec<MemoryRow>, Vec<MemoryRow>)> {
    let all = store.memories_of_unit(story.session, story.unit)?;
    let is_model = |memory: &MemoryRow| !matches!(memory.made_by, Maker::Rules | Maker::Hand);
    let drawn: Vec<i64> = all.iter().filter(|memory| memory.made_by != Maker::Hand && !memory.by_hand).map(|m| m.id).collect();
    let going: Vec<i64> = all
        .iter()
        .filter(|m| redo && is_model(m) && !m.by_hand && !m.pinned && m.superseded_by.is_none())
        .map(|m| m.id)
        .collect();
    let holds = |m: &MemoryRow| !going.contains(&m.id) && m.superseded_by.is_none_or(|by| going.contains(&by));
    // Rules and models replace what they drew from the unit; any other replacement is a person's, or of later work.
    let refused = |m: &MemoryRow| m.superseded_by.is_some_and(|by| !drawn.contains(&by));
    let refused = all.iter().filter(|m| refused(m)).cloned().collect();
    let cleared = |m: MemoryRow| MemoryRow { superseded_by: None, ..m };
    Ok((all.into_iter().filter(holds).map(cleared).collect(), refused))
}

/// Makes a blocking call if one is due and fits into the hook's remaining time. A failure is logged and never affects
/// stored data.
pub fn llm_at_stop(config: &Config, distiller: &Distiller, store: &mut Store, event: &Event) {
    let llm = &config.llm;
    if llm.provider.value == Provider::None || llm.when.value == When::Manual {
        return;
    }
    let run = || -> Result<Vec<DistilOutcome>> {
        // A missing setting is reported at session start, not at every Stop.
        let Ok(Some(to)) = llm.endpoint(&config.files.value) else { return Ok(Vec::new()) };
        let language = &config.language.value;
        let observer = Observer { distiller, to: &to, language, daily_tokens: llm.daily_tokens.value };
        let here = event.cwd.as_deref();
        let may_see = |folder: &str| Some(folder) == here || llm_may_see(folder, to.provider);
        let left = || llm.stop_limit().saturating_sub(environment::started().elapsed());
        observer.at_stop(store, event.platform, &event.session, &may_see, &left)
    };
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    match done.unwrap_or_else(|_| Err(anyhow::anyhow!("panic during a model call"))) {
        Ok(outcomes) => outcomes.iter().for_each(log_outcome),
        Err(error) => log_error(&format!("the model was not called: {error:#}")),
    }
}

fn log_outcome(outcome: &DistilOutcome) {
    match outcome {
        DistilOutcome::Failed(refusal) => {
            log_error(&format!("the model request failed: {}; nmem will try again later", refusal.what))
        }
        DistilOutcome::OverBudget => log_at(LogLevel::Info, "the model was not called: the daily token budget is used up"),
        _ => {}
    }
}

/// Whether the model may see what was recorded in a folder: recording is on there, and the folder uses the same
/// provider.
pub fn llm_may_see(folder: &str, provider: Provider) -> bool {
    let folder = Path::new(folder);
    let allowed = |config: Config| config.enabled.value && config.llm.provider.value == provider && redactor(&config).is_ok();
    folder.is_absolute() && config::load(&[folder]).is_ok_and(allowed)
}

/// A note about the model for the person at session start.
pub fn llm_note(config: &Config, store: Option<&Store>) -> Option<String> {
    let llm = &config.llm;
    if llm.provider.value == Provider::None || llm.when.value == When::Manual {
        return None;
    }
    if let Err(error) = llm.endpoint(&config.files.value) {
        return Some(format!("nmem: LLM distillation is off: {error:#}. Rule-based memories are still created."));
    }
    let spent = store?.spent_since(environment::now() - Duration::from_secs(86_400).as_millis() as i64).ok()?.tokens();
    let most = llm.daily_tokens.value;
    (spent * 2 > most).then(|| {
        format!("nmem: models have used {spent} of {most} daily tokens (`llm.daily_tokens`); `nmem status` shows the calls.")
    })
}
