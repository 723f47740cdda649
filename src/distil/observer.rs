//! Asks a language model about units: at Stop within the hook's time if a call is due, or for `nmem distil`.

use super::distiller::Distiller;
use crate::config::llm::When;
use crate::config::{self, Config, environment};
use crate::domains;
use crate::extraction::{self, PromptRequest, RequestedUnit, UnitContext};
use crate::llm;
use crate::model::{
    Budget, CallCost, Domain, Draft, Endpoint, Event, LlmError, LogLevel, Maker, MemoryRow, Millis, Platform, Provider, Purpose,
    Source, UnitStory, estimated_tokens,
};
use crate::redact::Clean;
use crate::render::count;
use crate::runtime::{log_at, log_error, redactor};
use crate::store::Store;
use crate::store::llm_queue::{CallStart, Due, Superseding};
use anyhow::Result;
use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};

/// Calls per Stop.
const AT_STOP: usize = 2;
/// Units that share a call at most.
const SHARED: usize = 4;
/// Number of times that timeouts halve a request at most.
const HALVED: usize = 2;
/// Stop ignores older units: a model switched on after months must not work through them unasked.
const RECENT: Millis = 48 * 3_600_000;
/// Waiting units that are worth a note: the last ones of a session always wait for its next Stop.
const WAITING: usize = 3;
/// Time by which a lease outlasts the limit of its call.
const GRACE: Duration = Duration::from_secs(5);

/// The endpoint for sessions of a platform; `None`: none.
pub type EndpointOf<'a> = &'a dyn Fn(Platform) -> Option<Endpoint>;

/// Distils units with a model.
pub struct Observer<'a> {
    pub distiller: &'a Distiller<'a>,
    pub endpoint_of: EndpointOf<'a>,
    /// A tag such as `de`, or `auto`.
    pub language: &'a str,
    /// Tokens per 24 hours.
    pub daily_tokens: i64,
}

/// The result of one call.
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

/// All that a question about a unit needs.
struct Asked<'a> {
    due: &'a Due,
    story: Clean<UnitStory>,
    /// The last tool use that an earlier call has seen.
    seen: i64,
    existing: Vec<MemoryRow>,
    refused: Vec<MemoryRow>,
    message_before: Option<(Source, String)>,
}

impl Asked<'_> {
    fn request(&self) -> RequestedUnit<'_> {
        let titled = |old: &&MemoryRow| self.seen > 0 && old.kind.is_summary() && old.made_by != Maker::Rules;
        RequestedUnit {
            story: &self.story,
            after: self.seen,
            message_before: self.message_before.as_ref().map(|(source, text)| (*source, text.as_str())),
            title: self.existing.iter().find(titled).map(|old| old.title.as_str()),
        }
    }
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
        let mut due: Vec<Due> = due.into_iter().filter(|due| due.may_be_seen(may_see)).collect();
        due.retain(|due| (self.endpoint_of)(due.platform).is_some());
        let (mut outcomes, mut rest) = (Vec::new(), due.as_slice());
        let mut took = llm::LEAST;
        // A call that is cut off costs tokens and yields nothing.
        while !rest.is_empty() && outcomes.len() < AT_STOP && time_left() >= took {
            let begun = Instant::now();
            let (outcome, asked) = self.ask_about(store, rest, time_left())?;
            took = begun.elapsed();
            rest = &rest[asked..];
            let over = matches!(outcome, DistilOutcome::Failed(_) | DistilOutcome::OverBudget);
            outcomes.push(outcome);
            if over {
                break;
            }
        }
        Ok(outcomes)
    }

    /// Distils the first of some units and stores the result. Further units of the session share the call if they are
    /// small. Returns also the number of units that are done with.
    pub fn ask_about(&self, store: &mut Store, due: &[Due], limit: Duration) -> Result<(DistilOutcome, usize)> {
        let Some(first) = due.first() else { return Ok((DistilOutcome::Nothing, 0)) };
        let Some(to) = (self.endpoint_of)(first.platform) else { return Ok((DistilOutcome::Nothing, 1)) };
        let left_out: HashSet<_> = store.dismissed_sources(first.session)?.into_iter().collect();
        let record_tokens = extraction::RECORD_TOKENS >> store.timeouts_in_a_row(HALVED)?;
        let Some(asked) = self.asked(store, first, &left_out)? else { return Ok((DistilOutcome::Busy, 1)) };
        let (name, config) = asked.story.domain.clone().unwrap_or_default();
        let domain = domains::of(Some(&name), config.as_deref());
        let mut units = vec![asked];
        let mut room =
            extraction::shared_bytes(record_tokens).saturating_sub(extraction::size(&units[0].request(), &domain, &left_out));
        for next in due[1..].iter().take_while(|next| next.shares_call_with(first)).take(SHARED - 1) {
            let Some(asked) = self.asked(store, next, &left_out)? else { break };
            let size = extraction::size(&asked.request(), &domain, &left_out);
            if size > room {
                break;
            }
            room -= size;
            units.push(asked);
        }
        // Rows are numbered and described in the order in which things happened.
        units.sort_by_key(|asked| asked.story.unit);
        let number = units.len();
        self.ask(store, &units, &domain, &to, (record_tokens, &left_out), limit).map(|outcome| (outcome, number))
    }

    /// Reads a unit; `None` if it is gone.
    fn asked<'d>(&self, store: &Store, due: &'d Due, left_out: &HashSet<Source>) -> Result<Option<Asked<'d>>> {
        let Some(story) = store.unit_story(due.unit)? else { return Ok(None) };
        let story = self.distiller.redactor.clean(story);
        let redo = due.purpose == Purpose::Redo;
        let seen = if redo { 0 } else { store.shown_to_model(due.unit)? };
        let (existing, refused) = existing(store, &story, redo)?;
        let message_before = store.message_before(due.unit, &due.folders)?.filter(|(source, _)| !left_out.contains(source));
        Ok(Some(Asked { due, story, seen, existing, refused, message_before }))
    }

    /// Asks about units of one session in one call.
    fn ask(
        &self,
        store: &mut Store,
        units: &[Asked],
        domain: &Domain,
        to: &Endpoint,
        (record_tokens, left_out): (usize, &HashSet<Source>),
        limit: Duration,
    ) -> Result<DistilOutcome> {
        let redone: Vec<i64> =
            units.iter().filter(|asked| asked.due.purpose == Purpose::Redo).map(|asked| asked.due.unit).collect();
        let story = &units[0].story;
        let recorded = store.recorded_in_session(story.session, &redone, &units[0].due.folders)?;
        let folder = story.folder.as_deref().map(|folder| self.shown(folder));
        let requested: Vec<RequestedUnit> = units.iter().map(Asked::request).collect();
        let rendered = extraction::question(&PromptRequest {
            units: &requested,
            domain,
            recorded: &recorded,
            language: self.language,
            folder: folder.as_deref(),
            left_out,
            record_tokens,
        });
        let nothing = |store: &mut Store, asked: &Asked| {
            let last = asked.story.tools.last().map_or(asked.seen, |tool| tool.seq);
            store.write(|tx| tx.nothing_to_ask(asked.due.unit, last))
        };
        let Some(rendered) = rendered else {
            units.iter().try_for_each(|asked| nothing(store, asked))?;
            return Ok(DistilOutcome::Nothing);
        };
        let question = self.distiller.redactor.clean(rendered.question.clone());
        let input = estimated_tokens(question.system_with_form().len() + question.user.len()) + to.provider.own_tokens();
        let hold = (limit + GRACE).as_millis() as Millis;
        let output = i64::from(question.answer_tokens);
        let due: Vec<&Due> = units.iter().map(|asked| asked.due).collect();
        // A person's queue may take minutes, so the clock is read for each call.
        let call =
            match store.begin_call(&due, to, Budget { input, output, daily: self.daily_tokens }, environment::now(), hold)? {
                CallStart::Leased(call) => call,
                CallStart::Busy => return Ok(DistilOutcome::Busy),
                CallStart::OverBudget => return Ok(DistilOutcome::OverBudget),
            };
        let begun = Instant::now();
        let answer = llm::ask(&question, to, limit);
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
                    tx.give_back(&call.leases, false)
                })?;
                return Ok(DistilOutcome::Failed(error));
            }
        };
        let estimated = answer.input_tokens.is_none() || answer.output_tokens.is_none();
        let output = answer.output_tokens.unwrap_or_else(|| estimated_tokens(answer.text.len()));
        let cost = CallCost { input_tokens: answer.input_tokens.unwrap_or(input), output_tokens: output, estimated, took };
        let contexts = units.iter().map(|asked| UnitContext {
            story: &asked.story,
            domain,
            existing: &asked.existing,
            refused: &asked.refused,
            recorded: &recorded,
            call: call.row,
        });
        let contexts: Vec<UnitContext> = contexts.collect();
        // The answer is untrusted: if reading it panics, it counts as unreadable.
        let read = || {
            let parsed = extraction::read(&answer.text, domain);
            (!parsed.is_unusable()).then(|| extraction::to_drafts(parsed, &rendered, &contexts))
        };
        let drafted = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)).unwrap_or_default();
        let Some(drafted) = drafted else {
            store.write(|tx| {
                tx.end_call(call.row, cost, "unusable")?;
                tx.give_back(&call.leases, true)
            })?;
            let cut = if answer.is_cut { ": it was cut off at its limit of tokens" } else { "" };
            let what = format!("the answer contains nothing usable{cut}");
            return Ok(DistilOutcome::Failed(LlmError { outcome: "unusable".into(), what, again: None }));
        };
        let mut results = Vec::new();
        for (asked, drafted) in units.iter().zip(drafted) {
            let withdrawn = drafted.withdrawn;
            let (mut drafts, supersedes): (Vec<Draft>, Vec<Vec<i64>>) =
                drafted.drafts.into_iter().map(|drafted| (drafted.draft, drafted.supersedes)).unzip();
            // Without hashes no memory is marked stale. That is no reason to lose a paid answer.
            let _ = self.distiller.hash_files(store, &asked.story, &mut drafts);
            results.push(Superseding { drafts: self.distiller.redactor.clean(drafts), supersedes, withdrawn });
        }
        // Memories and cost are stored together or not at all.
        let kept = store.write(|tx| {
            tx.end_call(call.row, cost, "ok")?;
            let mut kept = 0;
            for ((asked, lease), result) in units.iter().zip(&call.leases).zip(&results) {
                let is_kept = tx.supersede_by_model(&call, *lease, &asked.story, result, environment::now())?;
                kept += if is_kept { 1 + result.drafts.len() } else { 0 };
            }
            Ok(kept)
        })?;
        let memories = results.iter().map(|result| result.drafts.len()).sum();
        Ok(if kept > 0 { DistilOutcome::Extracted(memories) } else { DistilOutcome::Busy })
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
        let endpoint_of = |platform| llm.endpoint_at_stop(&config.files.value, platform);
        let language = &config.language.value;
        let observer = Observer { distiller, endpoint_of: &endpoint_of, language, daily_tokens: llm.daily_tokens.value };
        let here = event.cwd.as_deref();
        let may_see = |folder: &str| Some(folder) == here || llm_may_see(folder, llm.provider.value);
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

/// A note about the model for the person at a session start.
pub fn llm_note(config: &Config, event: &Event, store: Option<&Store>) -> Option<String> {
    let llm = &config.llm;
    if llm.provider.value == Provider::None || llm.when.value == When::Manual {
        return None;
    }
    if let Err(error) = llm.endpoint(&config.files.value, event.platform) {
        return Some(format!("nmem: LLM distillation is off: {error:#}. Rule-based memories are still created."));
    }
    let (store, now) = (store?, environment::now());
    let mut notes = Vec::new();
    let waiting = store.model_due_at_stop(event.platform, &event.session, now - RECENT, now).unwrap_or_default().len();
    if waiting >= WAITING {
        let units = count(waiting as i64, "work unit waits", "work units wait");
        notes.push(format!("{units} for the model; `nmem distil` asks it now"));
    }
    let spent = store.spent_since(now - Duration::from_secs(86_400).as_millis() as i64).ok()?.tokens();
    let most = llm.daily_tokens.value;
    if spent * 2 > most {
        notes
            .push(format!("models have used {spent} of {most} daily tokens (`llm.daily_tokens`); `nmem status` shows the calls"));
    }
    (!notes.is_empty()).then(|| format!("nmem: {}.", notes.join("; ")))
}
