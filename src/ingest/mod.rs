//! The pipeline of an event: [`ingest`] is the list of steps. Files: `run` (settings of this run, pauses), `keep` (whether
//! an event is kept), `complete` (what only the disk knows), `persist` (store or spool, and segmentation), `after` (distil,
//! upkeep, team sync), `inject` (the answer). ADR/0039.

mod after;
mod complete;
mod inject;
pub mod keep;
pub(crate) mod persist;
pub mod run;

pub use complete::completed;
pub use persist::{drain, end_of_stream, reader, recount, store_event};
pub use run::{Caller, Run};

use crate::model::Event;
use crate::platforms::adapter::HookAnswer;
use crate::redact::Clean;
use crate::store::Store;
use anyhow::Result;
use keep::{PastSession, keep};
use persist::Persisted;

/// The result of ingesting an input.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ingested {
    /// Answer for the agent that called the hook.
    pub answer: Option<HookAnswer>,
    /// The reason why the events could not be stored. They wait in the spool, or count as lost.
    pub not_stored: Option<String>,
    /// Events that were not kept, each with the reason.
    pub left_out: Vec<(&'static str, Event)>,
}

/// Runs an event of a hook or program through every step.
///
/// # Errors
///
/// See [`ingest_past`].
pub fn ingest(run: &Run, events: Vec<Event>) -> Result<Ingested> {
    run_steps(run, None, events, &|_| ())
}

/// Like [`ingest`]. `catch_up` is called with the open database before anything is distilled or injected.
///
/// # Errors
///
/// See [`ingest_past`].
pub fn ingest_start(run: &Run, events: Vec<Event>, catch_up: &dyn Fn(&Store)) -> Result<Ingested> {
    run_steps(run, None, events, catch_up)
}

/// Runs events through every step; `past` is their session, if they are read from its file.
///
/// # Errors
///
/// Past events that could not be stored. In that case, none of them is stored.
pub fn ingest_past(run: &Run, past: Option<&mut PastSession>, events: Vec<Event>) -> Result<Ingested> {
    run_steps(run, past, events, &|_| ())
}

fn run_steps(
    run: &Run,
    mut past: Option<&mut PastSession>,
    mut events: Vec<Event>,
    catch_up: &dyn Fn(&Store),
) -> Result<Ingested> {
    // Leave out what must not be stored, or is stored already, and the text of `#nomem` prompts.
    let mut left_out = Vec::new();
    let is_left_out = |event: &mut Event| {
        keep(run, past.as_deref_mut(), event).is_err_and(|reason| {
            left_out.push(reason);
            true
        })
    };
    let dropped: Vec<Event> = events.extract_if(.., is_left_out).collect();
    let left_out: Vec<(&'static str, Event)> = left_out.into_iter().zip(dropped).collect();
    let events = events.into_iter().map(run::without_muted_text);

    // Add state that is available only now, and make paths relative.
    let events = events.map(|event| complete::complete(run, event));

    // Redact. No other step can create a `Clean<Event>`.
    let events: Vec<Clean<Event>> = events.map(|event| run.redactor.clean(event)).collect();
    let Some(last) = events.last() else {
        let answer = inject::while_paused(run, &left_out);
        return Ok(Ingested { answer, left_out, ..Ingested::default() });
    };

    // Write rows and assign them to units, in one transaction. Events that cannot be stored wait in the spool.
    let mut persisted = persist::persist(run, &events)?;

    // Read what hooks missed of the last session, at a session start.
    if let Persisted::Stored(store) = &persisted {
        catch_up(store);
    }

    // Distil changed units into memories: by rules, then by a model if one is due.
    after::distil(run, &mut persisted, &events);

    // Housekeeping: orphaned units, retention, facts about the repository.
    after::upkeep(run, &mut persisted, last);

    // Exchange memories with the team, if the user asked for it and an hour has passed.
    after::team_sync(run, &mut persisted, last);

    // Inject context at a session start, at a prompt, or before an edit.
    let mut answers = events.iter().map(|event| inject::inject(run, &mut persisted, event));
    let answer = answers.find_map(Result::transpose).transpose()?;

    Ok(Ingested { answer, not_stored: persisted.leave(run.caller), left_out })
}

#[cfg(test)]
mod tests {
    use super::{Ingested, ingest};
    use crate::config::Config;
    use crate::ingest::run::{Caller, Run};
    use crate::model::testing::{event, tool};
    use crate::model::{
        BackgroundEnd, Event, EventKind, Files, Kind, MemoryKind, Provenance, SessionStart, UnitRow, UnitState, UnitStory,
        UserAnswer,
    };
    use crate::redact::Redactor;
    use crate::store::spool;
    use crate::store::testing::Scratch;

    const SESSION: &str = "a-session-of-the-pipeline";

    const MINUTE: i64 = 60_000;

    /// A configuration without files, with a database in the test's own folder.
    fn config(files: Files, scratch: &Scratch) -> Config {
        Config::without_files(files, &scratch.0)
    }

    /// Calls the pipeline as a caller does.
    fn run(scratch: &Scratch, caller: Caller, events: Vec<Event>) -> anyhow::Result<Ingested> {
        let (config, redactor) = (config(scratch.files(), scratch), Redactor::default());
        let run = Run {
            caller,
            config: &config,
            redactor: &redactor,
            now: 100 * MINUTE,
            wait: crate::store::PERSON_WAIT,
            distils: true,
            client_pid: None,
            session_folder: None,
            off_in: Default::default(),
        };
        ingest(&run, events)
    }

    fn used(minute: i64, kind: Kind, what: &str, succeeded: bool) -> Event {
        event(SESSION, minute * MINUTE, EventKind::ToolUsed(Box::new(tool(kind, what, succeeded))))
    }

    fn prompted(minute: i64, text: &str) -> Event {
        event(SESSION, minute * MINUTE, EventKind::UserPrompt { text: text.into() })
    }

    fn turn_ended(minute: i64, closing: &str) -> Event {
        event(SESSION, minute * MINUTE, EventKind::TurnEnded { closing: Some(closing.into()), error: None })
    }

    /// A session with one unit of two turns.
    fn past_session() -> Vec<Event> {
        vec![
            event(SESSION, MINUTE, EventKind::SessionStarted(SessionStart::default())),
            prompted(1, "Fix the login: tokens expire too early. Always round expiry up to the next minute."),
            used(2, Kind::Command, "cargo test login", false),
            used(3, Kind::Edit, "src/login.rs", true),
            used(4, Kind::Command, "cargo test login", true),
            turn_ended(5, "Fixed. The root cause was that expiry was rounded down to the minute, so tokens expired early."),
            prompted(6, "commit it"),
            used(7, Kind::Command, "git commit -m 'Fix the expiry of tokens'", true),
            turn_ended(8, "Committed."),
            event(SESSION, 9 * MINUTE, EventKind::SessionEnded { reason: "other".into(), git: None }),
        ]
    }

    /// Counts user prompts, tool uses, units and memories.
    fn counts(scratch: &Scratch) -> [i64; 4] {
        let counts = scratch.open().counts().unwrap();
        [counts.prompts, counts.tool_uses, counts.work_units, counts.memories]
    }

    /// The units of the only session, newest first, each with its memories' titles.
    fn units(scratch: &Scratch) -> Vec<(UnitRow, Vec<String>)> {
        let store = scratch.open();
        let [session] = store.sessions_of(None, None).unwrap()[..] else { panic!("one session") };
        let titles = |unit: &UnitRow| {
            let all = store.memories_of_unit(session, unit.id).unwrap();
            all.into_iter().filter(|memory| memory.superseded_by.is_none()).map(|memory| memory.title).collect()
        };
        store.last_units(&[session], None, 9).unwrap().into_iter().map(|unit| (unit.clone(), titles(&unit))).collect()
    }

    /// The story of each unit, newest first.
    fn stories(scratch: &Scratch) -> Vec<UnitStory> {
        let store = scratch.open();
        units(scratch).into_iter().map(|(unit, _)| store.unit_story(unit.id).unwrap().unwrap()).collect()
    }

    #[test]
    fn a_past_session_goes_through_at_once_and_its_memories_are_drawn_once_a_unit() {
        let scratch = Scratch::new("pipeline-past");
        scratch.count_draws();
        let done = run(&scratch, Caller::History, past_session()).unwrap();
        assert_eq!(done, Ingested::default(), "nobody waits for an answer");
        let [prompts, tool_uses, ..] = counts(&scratch);
        assert_eq!((prompts, tool_uses), (2, 4));
        let units = units(&scratch);
        let [(unit, titles)] = units.as_slice() else { panic!("{units:?}") };
        assert_eq!(unit.state, UnitState::Closed);
        assert!(!titles.is_empty());
        assert_eq!(scratch.draws(), 1);
    }

    #[test]
    fn one_by_one_and_at_once_come_to_the_same() {
        let (at_once, one_by_one) = (Scratch::new("pipeline-at-once"), Scratch::new("pipeline-one-by-one"));
        run(&at_once, Caller::History, past_session()).unwrap();
        one_by_one.count_draws();
        for event in past_session() {
            run(&one_by_one, Caller::Program, vec![event]).unwrap();
        }
        assert_eq!(counts(&at_once), counts(&one_by_one));
        let outcome = |(unit, mut titles): (UnitRow, Vec<String>)| {
            titles.sort();
            (unit.intent, unit.state, unit.outcome, unit.range, titles)
        };
        let came_to = |scratch| units(scratch).into_iter().map(outcome).collect::<Vec<_>>();
        assert_eq!(came_to(&at_once), came_to(&one_by_one));
        let contents =
            |scratch| stories(scratch).into_iter().flat_map(|story| story.tools).map(|tool| tool.content).collect::<Vec<_>>();
        assert_eq!(contents(&at_once), contents(&one_by_one));
        // After each turn, and at the end of the session.
        assert!(one_by_one.draws() > 1);
    }

    #[test]
    fn an_answer_to_the_agents_question_is_the_users_decision() {
        let scratch = Scratch::new("pipeline-answer");
        let answer = |text: &str| UserAnswer {
            question: "Which database should the cache use?".into(),
            options: vec!["SQLite (Recommended)".into(), "Redis".into()],
            text: text.into(),
        };
        let answers = vec![answer("SQLite (Recommended)"), UserAnswer { question: "Commit now?".into(), ..answer("Yes") }];
        let answered = event(SESSION, 2 * MINUTE, EventKind::Answered { call: Some("toolu_1".into()), answers });
        let session = vec![
            prompted(1, "Plan the storage layer"),
            answered.clone(),
            answered,
            used(3, Kind::Edit, "src/cache.rs", true),
            turn_ended(4, "The cache uses a file now."),
        ];
        run(&scratch, Caller::Program, session).unwrap();
        assert_eq!(counts(&scratch)[..2], [1, 1], "an answer is no prompt");
        let store = scratch.open();
        let memories = store.memories_of_session(1).unwrap();
        let decisions: Vec<_> = memories.iter().filter(|memory| memory.kind == MemoryKind::Decision).collect();
        let [decision] = decisions.as_slice() else { panic!("{decisions:?}") };
        assert_eq!(decision.title, "Which database should the cache use? SQLite");
        assert_eq!(decision.content["alternatives"], serde_json::json!(["Redis"]));
        assert_eq!(decision.provenance, Provenance::User);
        let said: Vec<String> = store.prompts_of(1).unwrap().into_iter().map(|row| row.text).collect();
        assert_eq!(said.len(), 3, "the same answer twice is one");
        assert!(said[1].contains("- Redis\n> SQLite"), "{said:?}");
    }

    #[test]
    fn a_check_in_the_background_gets_its_outcome_when_it_ends() {
        let ended = |code: i32, output: &str| BackgroundEnd {
            id: "b1".into(),
            succeeded: Some(code == 0),
            exit_code: Some(code),
            output: Some(output.into()),
        };
        let outcome = |name: &str, ends: Vec<EventKind>| {
            let scratch = Scratch::new(name);
            let mut check = tool(Kind::Command, "cargo test | tail -5", true);
            (check.succeeded, check.metadata.background) = (None, Some("b1".into()));
            let mut session = vec![
                prompted(1, "Fix the parser and run the tests"),
                used(2, Kind::Edit, "src/parser.rs", true),
                event(SESSION, 3 * MINUTE, EventKind::ToolUsed(Box::new(check))),
            ];
            session.extend(ends.into_iter().map(|what| event(SESSION, 4 * MINUTE, what)));
            session.push(turn_ended(5, "Done. All tests pass now."));
            session.push(event(SESSION, 6 * MINUTE, EventKind::SessionEnded { reason: "other".into(), git: None }));
            run(&scratch, Caller::Program, session).unwrap();
            let (unit, _) = units(&scratch).remove(0);
            let check = stories(&scratch)[0].tools.iter().find(|tool| tool.command_kind.is_some()).cloned().unwrap();
            let failures = scratch.open().session_by_row(1).unwrap().unwrap().failures;
            (
                unit.outcome.unwrap().name().to_string(),
                unit.evidence.clone().unwrap_or_default(),
                check.succeeded,
                check.metadata["response"].clone(),
                failures,
            )
        };
        let red = EventKind::BackgroundEnded(ended(101, "1 failed"));
        let (unit, evidence, succeeded, response, failures) = outcome("background-red", vec![red.clone(), red.clone()]);
        assert_eq!((unit.as_str(), evidence.as_str()), ("failing", "changes, and the last check did not pass"));
        assert_eq!((succeeded, response.as_str(), failures), (Some(false), Some("Exit code 101\n1 failed"), 1));

        let mut reader = tool(Kind::Other, "", true);
        reader.ended = Some(ended(0, "4 passed"));
        let green = EventKind::ToolUsed(Box::new(reader));
        let (unit, evidence, succeeded, ..) = outcome("background-green", vec![green]);
        assert_eq!((unit.as_str(), evidence.as_str(), succeeded), ("done", "checks passed after the last change", Some(true)));

        let hidden = EventKind::BackgroundEnded(ended(0, "test result: FAILED. 3 passed; 1 failed"));
        assert_eq!(outcome("background-hidden", vec![hidden]).2, Some(false));

        let other = EventKind::BackgroundEnded(BackgroundEnd { id: "b2".into(), ..ended(101, "") });
        let (_, evidence, succeeded, ..) = outcome("background-other", vec![other]);
        assert_eq!((evidence.as_str(), succeeded), ("the agent said that it is done", None), "no check is known");
    }

    #[test]
    fn a_hooks_event_waits_in_the_spool_and_the_next_one_brings_it_along() {
        let scratch = Scratch::new("pipeline-locked");
        let lock = scratch.lock();
        let done = run(&scratch, Caller::Hook, vec![prompted(1, "Fix the login")]).unwrap();
        assert!(done.not_stored.unwrap().contains("kept and stored later"));
        assert!(spool::is_waiting(&scratch.files()));
        drop(lock);
        run(&scratch, Caller::Hook, vec![used(2, Kind::Read, "src/login.rs", true)]).unwrap();
        assert!(!spool::is_waiting(&scratch.files()));
        assert_eq!(counts(&scratch)[..2], [1, 1]);
        // In order: the tool use belongs to the prompt that waited in the spool.
        let stories = stories(&scratch);
        assert_eq!(stories.len(), 1);
        assert_eq!(stories[0].tools[0].prompt_id, Some(stories[0].prompts[0].id));
    }

    #[test]
    fn of_past_events_that_cannot_be_stored_none_is() {
        let scratch = Scratch::new("pipeline-none");
        scratch.refuse_third_tool_use();
        assert!(run(&scratch, Caller::History, past_session()).is_err());
        assert_eq!(counts(&scratch), [0; 4]);
        assert!(!spool::is_waiting(&scratch.files()), "they can be read again where they came from");
    }

    #[test]
    fn a_question_opens_no_database() {
        let scratch = Scratch::new("pipeline-question");
        let asks = event(SESSION, MINUTE, EventKind::PreEdit { path: "src/login.rs".into(), repository: None });
        assert_eq!(run(&scratch, Caller::Hook, vec![asks]).unwrap(), Ingested::default());
        assert!(!scratch.files().db.exists());
    }
}
