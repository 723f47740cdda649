//! By a model: one call a unit, blocking, within a limit of time and of tokens. What does not fit stays due in the database.
//! A call is leased and written down before it begins; its answer is stored in one transaction, or not at all.

use super::rules::Distiller;
use crate::config::environment;
use crate::domains;
use crate::llm;
use crate::model::{
    Budget, CallCost, Draft, Endpoint, Maker, MemoryKind, MemoryRow, Millis, Platform, Purpose, Refusal, UnitStory,
    estimated_tokens,
};
use crate::observer::{self, Known, Request};
use crate::store::Store;
use crate::store::memories::{Begun, Due, Replacing};
use anyhow::Result;
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// Calls of one Stop.
const AT_STOP: usize = 2;
/// Stop asks about nothing that is older: a model that is switched on after months is not to work through them unasked.
const RECENT: Millis = 48 * 3_600_000;
/// How much longer than its call a process may hold a unit.
const GRACE: Duration = Duration::from_secs(5);

/// Asks one model about units.
#[derive(Debug)]
pub struct Observer<'a> {
    pub distiller: &'a Distiller<'a>,
    pub to: &'a Endpoint,
    /// A tag such as `de`, or `auto`.
    pub language: &'a str,
    /// Tokens in 24 hours.
    pub daily_tokens: i64,
}

/// How it went with one unit.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// So many memories came of it.
    Told(usize),
    /// There was nothing to ask about.
    Nothing,
    /// Another process has it at hand, or it is gone.
    Left,
    Failed(Refusal),
    /// A call would go over the day's tokens.
    Spent,
}

impl Observer<'_> {
    /// After a turn: asks about what is due, as long as there is time. `may_see` tells whether the model may see what was
    /// recorded in a folder, `left` how much time there is.
    pub fn at_stop(
        &self,
        store: &mut Store,
        platform: Platform,
        session: &str,
        may_see: &dyn Fn(&str) -> bool,
        left: &dyn Fn() -> Duration,
    ) -> Result<Vec<Outcome>> {
        let now = self.distiller.now;
        let due = store.model_due_at_stop(platform, session, now - RECENT, now)?;
        if due.is_empty() || store.paused_until(now)?.is_some() {
            return Ok(Vec::new());
        }
        let mut outcomes = Vec::new();
        let mut took = llm::LEAST;
        for due in due.iter().filter(|due| due.may_be_seen(may_see)).take(AT_STOP) {
            // A call that would be cut off is paid for and gives nothing.
            if left() < took {
                break;
            }
            let begun = Instant::now();
            let outcome = self.ask_about(store, due, left())?;
            took = begun.elapsed();
            let over = matches!(outcome, Outcome::Failed(_) | Outcome::Spent);
            outcomes.push(outcome);
            if over {
                break;
            }
        }
        Ok(outcomes)
    }

    /// Asks about one unit, and stores what is told of it.
    pub fn ask_about(&self, store: &mut Store, due: &Due, limit: Duration) -> Result<Outcome> {
        let Some(story) = store.unit_story(due.unit)? else { return Ok(Outcome::Left) };
        let story = self.distiller.redactor.clean(story);
        let (name, config) = story.domain.clone().unwrap_or_default();
        let domain = domains::of(Some(&name), config.as_deref());
        let redo = due.purpose == Purpose::Redo;
        let seen = store.shown_to_model(due.unit)?;
        let after = if redo { 0 } else { seen };
        let (standing, refused) = standing(store, &story, redo)?;
        let recorded = store.recorded_titles(story.session, redo.then_some(story.unit))?;
        let left_out: HashSet<_> = store.dismissed_sources(story.session)?.into_iter().collect();
        let so_far = standing.iter().find(|old| after > 0 && old.kind == MemoryKind::Summary && old.made_by != Maker::Rules);
        let folder = story.folder.as_deref().map(|folder| self.shown(folder));
        let asked = observer::question(&Request {
            story: &story,
            domain: &domain,
            after,
            recorded: &recorded,
            so_far: so_far.map(|old| &old.content),
            language: self.language,
            folder: folder.as_deref(),
            left_out: &left_out,
        });
        let Some(asked) = asked else {
            let last = story.tools.last().map_or(seen, |tool| tool.seq);
            store.write(|tx| tx.nothing_to_ask(due.unit, last))?;
            return Ok(Outcome::Nothing);
        };
        let question = self.distiller.redactor.clean(asked.question.clone());
        let input = estimated_tokens(question.system.len() + question.user.len());
        let hold = (limit + GRACE).as_millis() as Millis;
        let output = i64::from(question.answer_tokens);
        // A person's queue may take minutes: the clock goes on between calls.
        let call =
            match store.begin_call(due, self.to, Budget { input, output, daily: self.daily_tokens }, environment::now(), hold)? {
                Begun::Call(call) => call,
                Begun::Taken => return Ok(Outcome::Left),
                Begun::Spent => return Ok(Outcome::Spent),
            };
        let begun = Instant::now();
        let answer = llm::ask(&question, self.to, limit);
        let took = begun.elapsed().as_millis() as Millis;
        let answer = match answer {
            Ok(answer) => answer,
            Err(refusal) => {
                // What was sent and not answered may have been paid for.
                let paid = if is_unsent(&refusal) { 0 } else { input };
                store.write(|tx| {
                    tx.end_call(
                        call.row,
                        CallCost { input_tokens: paid, output_tokens: 0, estimated: true, took },
                        &refusal.outcome,
                    )?;
                    tx.give_back(call.lease, false)
                })?;
                return Ok(Outcome::Failed(refusal));
            }
        };
        let estimated = answer.input_tokens.is_none() || answer.output_tokens.is_none();
        let output = answer.output_tokens.unwrap_or_else(|| estimated_tokens(answer.text.len()));
        let cost = CallCost { input_tokens: answer.input_tokens.unwrap_or(input), output_tokens: output, estimated, took };
        let known =
            Known { story: &story, domain: &domain, standing: &standing, refused: &refused, recorded: &recorded, call: call.row };
        // What somebody else wrote is read: should that fail, it is an answer that can't be read.
        let read = || {
            let heard = observer::read(&answer.text, &domain);
            (!heard.is_unusable()).then(|| observer::tell(heard, &asked, &known))
        };
        let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)).unwrap_or_default();
        let Some(told) = told else {
            store.write(|tx| {
                tx.end_call(call.row, cost, "unusable")?;
                tx.give_back(call.lease, true)
            })?;
            let what = "the answer holds nothing of what was asked for".to_string();
            return Ok(Outcome::Failed(Refusal { outcome: "unusable".into(), what, again: None }));
        };
        let (mut drafts, supersedes): (Vec<Draft>, Vec<Vec<i64>>) =
            told.into_iter().map(|told| (told.draft, told.supersedes)).unzip();
        // Without hashes nothing is said to be stale; an answer that was paid for is not lost for them.
        let _ = self.distiller.hash_files(store, &story, &mut drafts);
        // Memories and what the call cost are stored, both or neither.
        let told = Replacing { drafts: self.distiller.redactor.clean(drafts), supersedes };
        let kept = store.write(|tx| {
            tx.end_call(call.row, cost, "ok")?;
            tx.tell_by_model(&call, &story, &told, environment::now())
        })?;
        Ok(if kept { Outcome::Told(told.drafts.len()) } else { Outcome::Left })
    }

    /// A folder as a model is shown it: whose home it is, is nobody's affair.
    fn shown(&self, folder: &str) -> String {
        let inside = self.distiller.home.and_then(|home| std::path::Path::new(folder).strip_prefix(home).ok());
        inside.map_or_else(|| folder.to_string(), |inside| format!("~/{}", inside.display()))
    }
}

/// Whether a call failed before anything could be counted.
fn is_unsent(refusal: &Refusal) -> bool {
    matches!(refusal.outcome.as_str(), "connect" | "https" | "proxy" | "program") || refusal.outcome.starts_with("http ")
}

/// Memories of a unit that hold, and those in whose place a person put others; where it is told anew, without those of models
/// that nobody touched.
fn standing(store: &Store, story: &UnitStory, redo: bool) -> Result<(Vec<MemoryRow>, Vec<MemoryRow>)> {
    let all = store.memories_of_unit(story.session, story.unit)?;
    let is_model = |memory: &MemoryRow| !matches!(memory.made_by, Maker::Rules | Maker::Hand);
    let models: Vec<i64> = all.iter().filter(|memory| is_model(memory)).map(|memory| memory.id).collect();
    let going: Vec<i64> = all
        .iter()
        .filter(|m| redo && is_model(m) && !m.by_hand && !m.pinned && m.superseded_by.is_none())
        .map(|m| m.id)
        .collect();
    let holds = |m: &MemoryRow| !going.contains(&m.id) && m.superseded_by.is_none_or(|by| going.contains(&by));
    // A model takes the place of rules; any other succession is a person's.
    let refused = |m: &MemoryRow| m.superseded_by.is_some_and(|by| is_model(m) || !models.contains(&by));
    let refused = all.iter().filter(|m| refused(m)).cloned().collect();
    let cleared = |m: MemoryRow| MemoryRow { superseded_by: None, ..m };
    Ok((all.into_iter().filter(holds).map(cleared).collect(), refused))
}
