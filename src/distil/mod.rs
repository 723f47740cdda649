//! A unit becomes memories. [`distil_unit`] is the list of steps, one call each; nothing in it does I/O (ADR/0046).
//!
//! Read in this order: `statements` (of a message), `turns` (a prompt, its tool uses, the answer; facts about them),
//! `score` (features and selection; `statement_weights` is fitted), `superseded` (statements that a later turn
//! superseded), `user_decisions` (phrases that state a decision), `offers` (an option that the user chose),
//! `decisions` (their memories), `findings` (the form of a memory; one per change or finding), `commands`
//! (failures, fixes, working forms; `signatures`), `open_ends` (tried in vain, left), `notes` (of the agent), `summary`
//! (and title). Then the I/O: `distiller` (units that are due,
//! leases, storing), `observer` (a language model, at Stop or by hand), `embed`.

pub mod commands;
mod decisions;
pub(crate) mod distiller;
pub mod embed;
mod findings;
pub mod notes;
pub(crate) mod observer;
pub mod offers;
pub mod open_ends;
pub mod score;
pub mod signatures;
mod statement_weights;
pub mod statements;
pub mod summary;
mod superseded;
pub mod turns;
pub mod user_decisions;

pub use distiller::Distiller;
pub use embed::{BATCH, EmbeddingClient, embed_at_stop, shown};
pub use observer::{DistilOutcome, Observer, llm_at_stop, llm_may_see, llm_note};
pub use summary::notes_now;

use crate::model::{Domain, Failing, PromptKind, PromptRow, PromptSource, UnitDrafts, UnitStory};
use score::{ScoreWeights, ScoredStatements};
use statements::word_count;
use std::borrow::Cow;
use turns::turns;

/// Distils a unit, closed or not: decisions of the user, then one memory per change or finding, then evidence from
/// commands, then a summary.
///
/// With `injected`, notes of the agent are read, and stand above what rules draw from the same turns; they are no memories
/// if they only repeat these texts, which the session was shown.
pub fn distil_unit(story: &UnitStory, domain: &Domain, weights: &ScoreWeights, injected: Option<&[String]>) -> UnitDrafts {
    let as_written = turns(story, domain);
    let notes = injected.map(|injected| notes::notes(&as_written, injected)).unwrap_or_default();
    let bare = if notes.is_empty() { Cow::Borrowed(story) } else { Cow::Owned(notes::without_notes(story)) };
    let (story, turns) = (bare.as_ref(), if notes.is_empty() { as_written } else { turns(&bare, domain) });
    let scored = ScoredStatements::new(&turns, weights);
    // Decisions come first: the agent's reports of a decision belong to it.
    let (mut memories, used) = decisions::decisions(&turns, &scored);
    let mut selected = scored.select(&used, domain);
    selected.retain(|at| !notes.iter().any(|note| note.turn == scored.statements[*at].turn));
    findings::add(&mut memories, &turns, &scored, &selected, domain);
    open_ends::add_tried(&mut memories, &turns, &scored);
    commands::add_evidence(&mut memories, &turns);
    decisions::add_files(&mut memories, &turns);
    memories.extend(open_ends::open_ends(story, &turns, &scored));
    let title = summary::title(story, &turns, &scored);
    title.iter().for_each(|title| findings::give_title(&mut memories, title, &turns, &scored));
    memories.extend(summary::summary(story, &turns, title.as_deref(), &memories));
    let by_agent = notes::drafts(&notes, &turns, domain);
    let ended = open_ends::ended(story, &turns, &scored);
    let mut drafts = findings::drafts(memories, &turns, domain);
    drafts.retain(|draft| !open_ends::is_known(draft, story, &ended));
    UnitDrafts { title, drafts, by_agent, ended, ..UnitDrafts::default() }
}

/// Lines of a failure to show.
const REASONS: usize = 3;

/// Commands that failed in a unit and have not passed since, in order.
pub fn failing(story: &UnitStory) -> Vec<Failing> {
    let tools: Vec<_> = story.tools.iter().collect();
    let open = commands::failures(&tools).into_iter().filter(|failure| failure.passed.is_none());
    // A search without results is not a failure of the work.
    let open = open.filter(|failure| !commands::is_look(failure.command()));
    open.map(|failure| Failing {
        command: failure.command().to_string(),
        times: failure.failed.len(),
        reason: failure.failed.last().map(|tool| commands::reasons(tool, REASONS)).unwrap_or_default(),
    })
    .collect()
}

/// Whether the messages of a unit without tool uses contain nothing worth remembering.
pub fn is_trivial(prompts: &[PromptRow]) -> bool {
    /// Words from which an answer may be worth remembering.
    const WORDS: usize = 12;
    let says = |prompt: &PromptRow| match prompt.source {
        PromptSource::User if prompt.kind == PromptKind::Answer => true,
        PromptSource::User => user_decisions::has_rule(&prompt.text),
        PromptSource::Agent => word_count(&prompt.text) >= WORDS,
    };
    !prompts.iter().any(says)
}

/// Units for tests of the pure steps.
#[cfg(test)]
pub(crate) mod testing {
    use super::commands::testing::tool;
    use crate::model::{Platform, PromptKind, PromptRow, PromptSource, Reach, ToolUseRow, UnitOutcome, UnitStory};

    /// A turn: a prompt, tool uses as (kind, content, succeeded), and the answer.
    pub type TestTurn<'a> = (&'a str, &'a [(&'a str, &'a str, bool)], &'a str);

    /// A finished unit of these turns. The prompt of turn n has id 2n + 1, its answer 2n + 2.
    pub fn unit(turns: &[TestTurn]) -> UnitStory {
        let (mut prompts, mut tools): (Vec<PromptRow>, Vec<ToolUseRow>) = (Vec::new(), Vec::new());
        for (n, (asked, used, answer)) in turns.iter().enumerate() {
            let id = 2 * n as i64 + 1;
            let row = |id: i64, source, kind, text: &str| PromptRow {
                id,
                session_id: 1,
                number: n as i64 + 1,
                source,
                kind,
                agent_id: None,
                text: text.into(),
                received_at: id * 60_000,
            };
            prompts.push(row(id, PromptSource::User, PromptKind::Prompt, asked));
            for (kind, what, succeeded) in *used {
                let at = tools.len() as i64 + 1;
                tools.push(ToolUseRow { prompt_id: Some(id), received_at: id * 60_000 + at, ..tool(at, kind, what, *succeeded) });
            }
            prompts.push(row(id + 1, PromptSource::Agent, PromptKind::Closing, answer));
        }
        UnitStory {
            unit: 1,
            session: 1,
            intent: None,
            outcome: Some(UnitOutcome::Done),
            evidence: None,
            platform: Platform::ClaudeCode,
            project: Some(1),
            folder: None,
            prompts,
            costs: Vec::new(),
            tools,
            reach: Reach::Whole,
            open_tasks: Vec::new(),
            followed_by: None,
            open_before: Vec::new(),
            seen: None,
            mark: None,
            domain: None,
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_unit_becomes_decisions_findings_and_a_title_in_one_call() {
        let story = super::testing::unit(&[(
            "The login drops sessions. Never round expiry down again.",
            &[("command", "cargo test", false), ("edit", "src/login.rs", true), ("command", "cargo test", true)],
            "Fixed. The root cause was that the expiry in `src/login.rs` was rounded down to the minute, so tokens expired early.",
        )]);
        let drafts = super::distil_unit(&story, &crate::domains::of(None, None), &super::ScoreWeights::fitted(), None);
        let titles: Vec<&str> = drafts.drafts.iter().map(|draft| draft.title.as_str()).collect();
        assert!(titles.iter().any(|title| title.contains("Never round expiry down")), "{titles:?}");
        assert!(titles.iter().any(|title| title.contains("rounded down to the minute")), "{titles:?}");
        assert!(drafts.title.is_some(), "{drafts:?}");
    }

    #[test]
    fn small_talk_leaves_nothing() {
        let story = super::testing::unit(&[("hi", &[], "Hello! What can I do for you?")]);
        assert!(super::is_trivial(&story.prompts));
        let drafts = super::distil_unit(&story, &crate::domains::of(None, None), &super::ScoreWeights::fitted(), None);
        assert_eq!(drafts.drafts, []);
    }

    use crate::distil::distiller::Distiller;
    use crate::model::testing::{event, tool};
    use crate::model::{EventKind, Kind, Platform};
    use crate::redact::Redactor;
    use crate::store::Store;
    use crate::store::rule_memories::Gone;
    use crate::store::testing::{Scratch, store_event};

    const SESSION: &str = "a-session-to-distil";

    const MINUTE: i64 = 60_000;

    fn distil(store: &mut Store, now: i64) -> usize {
        let redactor = Redactor::default();
        let distiller = Distiller { redactor: &redactor, home: None, ignored: &[], now, gone: Gone::Deleted, agent_notes: false };
        let due = store.due_in_session(Platform::ClaudeCode, SESSION).unwrap();
        distiller.distil(store, &due).unwrap()
    }

    /// Stores a turn: a prompt, optionally a failure and its fix, and the answer.
    fn turn(store: &mut Store, minute: i64, asked: &str, is_work: bool, answer: &str) {
        let mut all = vec![EventKind::UserPrompt { text: asked.into() }];
        if is_work {
            for (kind, what, succeeded) in
                [(Kind::Command, "cargo test", false), (Kind::Edit, "src/login.rs", true), (Kind::Command, "cargo test", true)]
            {
                all.push(EventKind::ToolUsed(Box::new(tool(kind, what, succeeded))));
            }
        }
        all.push(EventKind::TurnEnded { closing: Some(answer.into()), error: None });
        let redactor = Redactor::default();
        let at = |n: usize| minute * MINUTE + n as i64 * 1000;
        let events: Vec<_> = all.into_iter().enumerate().map(|(n, what)| redactor.clean(event(SESSION, at(n), what))).collect();
        store.write(|tx| events.iter().try_for_each(|event| store_event(tx, event))).unwrap();
    }

    fn titles(store: &Store) -> Vec<String> {
        let [session] = store.sessions_of(None, None).unwrap()[..] else { panic!("one session") };
        let units: Vec<i64> = store.last_units(&[session], None, 9).unwrap().iter().map(|unit| unit.id).collect();
        let all = units.into_iter().flat_map(|unit| store.memories_of_unit(session, unit).unwrap());
        all.map(|memory| memory.title).collect()
    }

    const FIXED: &str = "Fixed. The root cause was that the expiry was rounded down to the minute, so tokens expired early.";

    #[test]
    fn a_turn_is_distilled_once_and_again_when_something_is_added() {
        let scratch = Scratch::new("distil-once");
        let mut store = scratch.open();
        turn(&mut store, 1, "Fix the login: tokens expire too early", true, FIXED);
        assert_eq!(distil(&mut store, 2 * MINUTE), 1);
        let drawn = titles(&store);
        assert!(!drawn.is_empty());
        assert_eq!(distil(&mut store, 3 * MINUTE), 0, "nothing has happened since");
        turn(&mut store, 4, "Never round tokens down again, please", false, "Understood: I will never round expiry down.");
        assert_eq!(distil(&mut store, 5 * MINUTE), 1);
        assert!(drawn.iter().all(|title| titles(&store).contains(title)), "what was drawn before holds still");
    }

    #[test]
    fn a_greeting_draws_nothing() {
        let scratch = Scratch::new("distil-greeting");
        let mut store = scratch.open();
        turn(&mut store, 1, "hi", false, "Hello! What can I do for you?");
        assert_eq!(distil(&mut store, 2 * MINUTE), 0);
        assert_eq!(titles(&store), [""; 0]);
    }

    #[test]
    fn a_unit_leased_by_another_process_is_left_alone_until_the_lease_expires() {
        let scratch = Scratch::new("distil-leased");
        let mut store = scratch.open();
        turn(&mut store, 1, "Fix the login: tokens expire too early", true, FIXED);
        let [session] = store.sessions_of(None, None).unwrap()[..] else { panic!("one session") };
        let unit = store.last_units(&[session], None, 1).unwrap()[0].id;
        let lease = store.lease(&[unit], 2 * MINUTE).unwrap();
        assert_eq!(lease.len(), 1);
        assert_eq!(distil(&mut store, 2 * MINUTE + 1000), 0);
        assert_eq!(titles(&store), [""; 0]);
        // That process was killed; its lease expires.
        assert_eq!(distil(&mut store, 2 * MINUTE + 11_000), 1);
        assert!(!titles(&store).is_empty());
    }
}
