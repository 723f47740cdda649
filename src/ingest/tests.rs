//! The pipeline without a process around it: what each caller gets, and what a failure leaves.

use super::{Caller, Ingested, Input, Run, ingest};
use crate::config::Config;
use crate::model::testing::{event, tool};
use crate::model::{Event, Files, Happening, Kind, SessionStart};
use crate::redact::Redactor;
use crate::store::spool;
use crate::store::testing::Scratch;

const SESSION: &str = "a-session-of-the-pipeline";
const MINUTE: i64 = 60_000;

/// A configuration without any file, with its database in a folder of the test's own.
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
        client_pid: None,
        session_folder: None,
        transcripts: None,
    };
    ingest(&run, Input::Events(events))
}

fn used(minute: i64, kind: Kind, what: &str, succeeded: bool) -> Event {
    event(SESSION, minute * MINUTE, Happening::ToolUsed(Box::new(tool(kind, what, succeeded))))
}

fn prompted(minute: i64, text: &str) -> Event {
    event(SESSION, minute * MINUTE, Happening::Prompted { text: text.into() })
}

fn turn_ended(minute: i64, closing: &str) -> Event {
    event(SESSION, minute * MINUTE, Happening::TurnEnded { closing: Some(closing.into()), error: None })
}

/// A session of one piece of work in two turns.
fn past_session() -> Vec<Event> {
    vec![
        event(SESSION, MINUTE, Happening::SessionStarted(SessionStart::default())),
        prompted(1, "Fix the login: tokens expire too early. Always round expiry up to the next minute."),
        used(2, Kind::Command, "cargo test login", false),
        used(3, Kind::Edit, "src/login.rs", true),
        used(4, Kind::Command, "cargo test login", true),
        turn_ended(5, "Fixed. The root cause was that expiry was rounded down to the minute, so tokens expired early."),
        prompted(6, "commit it"),
        used(7, Kind::Command, "git commit -m 'Fix the expiry of tokens'", true),
        turn_ended(8, "Committed."),
        event(SESSION, 9 * MINUTE, Happening::SessionEnded { reason: "other".into(), git: None }),
    ]
}

/// The database as anybody may open it.
#[expect(clippy::disallowed_methods, reason = "a reader beside the store")]
fn sqlite(scratch: &Scratch) -> rusqlite::Connection {
    rusqlite::Connection::open(scratch.files().db).unwrap()
}

fn count(scratch: &Scratch, sql: &str) -> i64 {
    let conn = sqlite(scratch);
    conn.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn a_past_session_goes_through_at_once_and_its_memories_are_drawn_once_a_unit() {
    let scratch = Scratch::new("pipeline-past");
    note_drawn(&scratch);
    let done = run(&scratch, Caller::History, past_session()).unwrap();
    assert_eq!(done, Ingested::default(), "nobody waits for an answer");
    assert_eq!(count(&scratch, "SELECT count(*) FROM tool_uses"), 4);
    assert_eq!(count(&scratch, "SELECT count(*) FROM prompts WHERE source = 'user'"), 2);
    assert_eq!(count(&scratch, "SELECT count(*) FROM work_units WHERE state = 'closed'"), 1);
    assert!(count(&scratch, "SELECT count(*) FROM memories") > 0);
    assert_eq!(count(&scratch, "SELECT count(*) FROM drawn"), 1);
}

#[test]
fn one_by_one_and_at_once_come_to_the_same() {
    let (at_once, one_by_one) = (Scratch::new("pipeline-at-once"), Scratch::new("pipeline-one-by-one"));
    run(&at_once, Caller::History, past_session()).unwrap();
    note_drawn(&one_by_one);
    for event in past_session() {
        run(&one_by_one, Caller::Program, vec![event]).unwrap();
    }
    for sql in [
        "SELECT group_concat(content, ' ') FROM (SELECT * FROM tool_uses ORDER BY seq)",
        "SELECT group_concat(intent || state || outcome, ' ') FROM work_units",
        "SELECT group_concat(title, char(10)) FROM (SELECT title FROM memories WHERE superseded_by IS NULL ORDER BY title)",
    ] {
        let read = |scratch: &Scratch| -> String {
            let conn = sqlite(scratch);
            conn.query_row(sql, [], |row| row.get(0)).unwrap()
        };
        assert_eq!(read(&at_once), read(&one_by_one), "{sql}");
    }
    // After each turn, and for the session's end.
    assert!(count(&one_by_one, "SELECT count(*) FROM drawn") > 1);
}

/// Has the database note each time that memories of a unit are drawn.
fn note_drawn(scratch: &Scratch) {
    drop(scratch.open());
    let conn = sqlite(scratch);
    conn.execute_batch(
        "CREATE TABLE drawn(unit);
         CREATE TRIGGER draws AFTER UPDATE OF rules_mark ON work_units BEGIN INSERT INTO drawn VALUES (NEW.id); END",
    )
    .unwrap();
}

#[test]
fn a_hooks_event_waits_in_the_spool_where_a_past_one_is_an_error() {
    let scratch = Scratch::new("pipeline-locked");
    drop(scratch.open());
    let lock = sqlite(&scratch);
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let done = run(&scratch, Caller::Hook, vec![prompted(1, "Fix the login")]).unwrap();
    assert!(done.not_stored.unwrap().contains("kept and stored later"));
    assert!(spool::is_waiting(&scratch.files()));
    drop(lock);
    // The next event brings the first one with it, in order.
    run(&scratch, Caller::Hook, vec![used(2, Kind::Read, "src/login.rs", true)]).unwrap();
    assert!(!spool::is_waiting(&scratch.files()));
    assert_eq!(count(&scratch, "SELECT count(*) FROM prompts"), 1);
    assert_eq!(count(&scratch, "SELECT count(*) FROM tool_uses WHERE prompt_id IS NOT NULL"), 1);
}

#[test]
fn of_past_events_that_cannot_be_stored_none_is() {
    let scratch = Scratch::new("pipeline-none");
    drop(scratch.open());
    let conn = sqlite(&scratch);
    conn.execute_batch(
        "CREATE TRIGGER full BEFORE INSERT ON tool_uses WHEN NEW.seq = 3 BEGIN SELECT RAISE(FAIL, 'no room'); END",
    )
    .unwrap();
    assert!(run(&scratch, Caller::History, past_session()).is_err());
    assert_eq!(count(&scratch, "SELECT (SELECT count(*) FROM prompts) + (SELECT count(*) FROM tool_uses)"), 0);
    assert!(!spool::is_waiting(&scratch.files()), "they lie elsewhere and can be read again");
}

#[test]
fn a_question_opens_no_database() {
    let scratch = Scratch::new("pipeline-question");
    let asks = event(SESSION, MINUTE, Happening::AboutToEdit { path: "src/login.rs".into() });
    assert_eq!(run(&scratch, Caller::Hook, vec![asks]).unwrap(), Ingested::default());
    assert!(!scratch.files().db.exists());
}
