//! Data that an import does not store, queue or bring back, and the order in which it reads.

use crate::world::World;
use crate::world::models::CONFIG;
use crate::world::session::{MINUTE, NINE, Session};
use crate::world::transcript::{FOLDER, Lines, SESSION, counts, import};
use serde_json::json;

const DAY: i64 = 24 * 60 * MINUTE;
const OTHER: &str = "223b2708-5340-4532-879b-05e5d9aa16f1";

/// A file with the work of a session, begun at a time.
fn past_work(world: &World, session: &str, at: i64) -> String {
    let mut lines = Lines::new(world);
    lines.at = at;
    lines.work();
    let text = lines.text.replace(SESSION, session).replace("\"t1\"", "\"a1\"").replace("\"line-", &format!("\"{session}-"));
    let file = format!("{FOLDER}/{session}.jsonl");
    world.write(&file, &text);
    file
}

#[test]
fn what_was_forgotten_does_not_come_back() {
    let world = World::new();
    past_work(&world, SESSION, NINE - 100 * DAY);
    import(&world, &[]);
    // An event of a session, then another session as a whole.
    assert_eq!(world.nmem(&["forget", "--match", "cargo test login", "--yes"]).code, Some(0));
    let left = world.sql("SELECT kind FROM tool_uses");
    assert_eq!((left.as_str(), world.sql("SELECT count(*) FROM forgotten").as_str()), ("edit", "2"));
    past_work(&world, OTHER, NINE - 99 * DAY);
    import(&world, &[]);
    let session = world.sql(&format!("SELECT 's' || id FROM sessions WHERE agent_session_id = '{OTHER}'"));
    assert_eq!(world.nmem(&["forget", "--session", &session, "--yes"]).code, Some(0));
    world.sql("DELETE FROM imports");
    let again = import(&world, &[]);
    assert_eq!(counts(&again).3, json!({"forgotten event": 2, "forgotten session": 1}));
    assert_eq!(world.sql("SELECT kind FROM tool_uses"), left);
    assert_eq!(world.sql("SELECT count(*) FROM sessions"), "1");
    let hashes = world.sql("SELECT hex(hash) FROM forgotten");
    assert!(hashes.lines().all(|hash| hash.len() == 64) && !hashes.contains(&hex(SESSION)), "{hashes}");
}

#[test]
fn a_session_that_was_forgotten_while_it_was_active_stays_forgotten() {
    let world = World::new();
    let mut session = Session::new(&world, SESSION);
    session.starts("startup");
    session.ask("Fix the login");
    assert_eq!(world.nmem(&["forget", "--session", "s1", "--yes"]).code, Some(0));
    // By an earlier version, which left no hash.
    world.sql("DELETE FROM forgotten");
    past_work(&world, SESSION, NINE - DAY);
    assert_eq!(counts(&import(&world, &[])).3, json!({"forgotten session": 1}));
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02X}")).collect()
}

#[test]
fn what_was_said_while_recording_was_off_stays_out_long_after() {
    let mut world = World::new();
    let now = world.now;
    world.now = NINE - 100 * DAY;
    assert_eq!(world.nmem(&["off", "1h"]).code, Some(0));
    world.now = now;
    // Other pauses later: the first one leaves the file that hooks read.
    assert_eq!(world.nmem(&["off", "--project", "1min"]).code, Some(0));
    assert!(!world.read("home/.local/share/nmem/switches.json").contains("everything"));
    world.minutes_later(2);
    past_work(&world, SESSION, NINE - 100 * DAY + 5 * MINUTE);
    past_work(&world, OTHER, NINE - 100 * DAY + 70 * MINUTE);
    let report = import(&world, &[]);
    let left_out = report["agents"][0]["skipped"]["event while recording was paused"].as_u64().unwrap();
    assert!(left_out >= 5, "{report}");
    assert_eq!(world.sql("SELECT agent_session_id FROM sessions"), OTHER);
}

#[test]
fn old_tool_uses_are_kept_as_long_as_if_they_had_happened_at_the_import() {
    let mut world = World::new();
    past_work(&world, SESSION, NINE - 300 * DAY);
    let report = import(&world, &[]);
    assert_eq!(counts(&report).1, 3);
    assert_eq!(world.sql("SELECT count(*) FROM tool_uses"), "3");
    let unit = world.nmem(&["units", "--json"]).stdout;
    assert!(unit.contains("\"outcome\":\"done\"") && unit.contains("src/login.rs"), "{unit}");
    let found = world.nmem(&["search", "expiry was rounded down"]).text();
    assert!(found.contains("rounded down to the minute"), "{found}");
    let ran = world.nmem(&["how", "cargo test"]).text();
    assert!(ran.contains("cargo test"), "{ran}");
    // A better reader reads it again.
    world.sql("UPDATE imports SET version = 0");
    import(&world, &[]);
    assert_eq!(world.sql("SELECT count(*) FROM tool_uses"), "3");
    assert_eq!(world.nmem(&["units", "--json"]).stdout, unit);
    // Retention deletes them 180 days after the import, answers say so, and a better reader does not bring them back.
    world.now += 181 * DAY;
    for event in ["SessionStart-startup", "UserPromptSubmit", "PostToolUse-Bash", "SessionEnd-other"] {
        world.hook(event);
    }
    let old = || world.sql("SELECT count(*) FROM tool_uses t JOIN sessions s ON s.id = t.session_id WHERE s.imported_at > 0");
    assert_eq!(old(), "0");
    let gone = world.nmem(&["how", "cargo frob"]).text();
    assert!(gone.contains("no call of cargo frob is recorded here; tool calls up to 2026-01-"), "{gone}");
    let gone = world.nmem(&["search", "--file", "src/frob.rs", "--kind", "tool", "frob"]).text();
    assert!(gone.contains("nothing found for frob; tool calls up to 2026-01-"), "{gone}");
    world.sql("UPDATE imports SET version = 0");
    import(&world, &[]);
    assert_eq!(old(), "0");
}

#[test]
fn no_model_is_asked_about_imported_units_unless_a_person_orders_it() {
    let world = World::new();
    world.write(CONFIG, "[llm]\nprovider = \"openai\"\nbase_url = \"http://127.0.0.1:1/v1\"\nmodel = \"m\"\nwhen = \"manual\"\n");
    past_work(&world, SESSION, NINE + DAY - 13 * 60 * MINUTE);
    import(&world, &[]);
    assert_eq!(world.nmem(&["status", "--json"]).json()["queue"], 0);
    world.sql("UPDATE sessions SET imported_until = NULL");
    assert_eq!(world.nmem(&["status", "--json"]).json()["queue"], 1, "hooks would have queued it");
}

#[test]
fn the_newest_week_comes_first_and_each_week_in_order() {
    let world = World::new();
    let ids = ["a", "b", "c", "d"].map(|letter| SESSION.replace("5a4b", &letter.repeat(4)));
    for (id, days) in ids.iter().zip([2, 3, 30, 31]) {
        past_work(&world, id, NINE - days * DAY);
    }
    import(&world, &[]);
    let order = world.sql("SELECT substr(agent_session_id, 1, 1) FROM sessions ORDER BY id");
    assert_eq!(order, "b\na\nd\nc");
}

#[test]
fn sessions_that_another_memory_tool_ran_are_no_work() {
    let world = World::new();
    let mut lines = Lines::new(&world);
    lines.cwd = world.home().join(".claude-mem/observer-sessions").display().to_string();
    lines.user("You are an observer. Write down what happened in this session.").says("<observation>Fixed</observation>");
    world.write(&format!("{FOLDER}/{SESSION}.jsonl"), &lines.text);
    assert_eq!(counts(&import(&world, &[])).3, json!({"session in which another memory tool ran an agent": 1}));
    assert_eq!(world.sql("SELECT count(*) FROM sessions"), "0");
}

#[test]
fn calls_of_a_turn_with_one_id_are_named() {
    let world = World::new();
    let file = past_work(&world, SESSION, NINE - DAY);
    let text = std::fs::read_to_string(world.home().parent().unwrap().join(&file)).unwrap();
    world.write(&file, &text.replace("\"t2\"", "\"a1\""));
    assert_eq!(counts(&import(&world, &[])).3, json!({"call with the id of another one of its turn": 1}));
}

#[test]
fn secrets_that_were_found_are_counted() {
    let world = World::new();
    let mut lines = Lines::new(&world);
    lines.user("Deploy with AKIAIOSFODNN7EXAMPLQ please").says("Done with ghp_16C7e42F292c6912E7710c838347Ae178B4a.");
    world.write(&format!("{FOLDER}/{SESSION}.jsonl"), &lines.text);
    let report = import(&world, &[]);
    assert_eq!(report["agents"][0]["secrets_hidden"], 2, "{report}");
    let again = World::new();
    again.write(&format!("{FOLDER}/{SESSION}.jsonl"), &lines.text);
    assert!(again.nmem(&["import"]).stdout.contains("  hidden: 2 secrets\n"));
}

#[test]
fn a_session_start_reads_what_hooks_missed_of_an_agent_that_was_imported_once() {
    let world = World::new();
    let slug: String =
        world.project().display().to_string().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let write = |id: &str, at: i64| {
        let text = world.read(&past_work(&world, id, at));
        world.write(&format!("home/.claude/projects/{slug}/{id}.jsonl"), &text);
        std::fs::remove_file(world.folder.join(format!("{FOLDER}/{id}.jsonl"))).unwrap();
    };
    write(SESSION, NINE - 3 * DAY);
    let mut first = Session::new(&world, "first-start");
    first.starts("startup");
    assert_eq!(world.sql("SELECT agent_session_id FROM sessions"), "first-start", "nothing was ever imported");
    import(&world, &[]);
    write(OTHER, NINE - DAY);
    let memories = world.sql("SELECT count(*) FROM memories");
    let payload = json!({"hook_event_name": "SessionStart", "session_id": "next", "cwd": world.project(), "source": "startup"});
    let answer = world.feed(&["context"], payload.to_string().as_bytes()).text();
    assert!(world.sql("SELECT agent_session_id FROM sessions").contains(OTHER), "{answer}");
    assert!(answer.contains("Last session") && answer.contains("Fix the login"), "{answer}");
    // It waits for the next end of a turn to be distilled.
    assert_eq!(world.sql("SELECT count(*) FROM memories"), memories);
    let mut next = Session::new(&world, "next");
    next.ask("Write the manual").close("Written.");
    assert_ne!(world.sql("SELECT count(*) FROM memories"), memories);
    let left = "SELECT count(*) FROM meta WHERE key LIKE 'caught_up%'";
    assert_eq!(world.sql(left), "1");
    next.ask("Write an index").close("Added.");
    assert_eq!(world.sql(left), "0", "later ends of turns have nothing to look for");
    assert_eq!(import(&world, &[])["agents"][0]["unchanged"], 2);
}

/// The step comes after decoding, so it does not matter how an agent names the start of a session.
#[test]
fn a_session_start_of_every_agent_reads_what_hooks_missed() {
    for (platform, name) in [
        ("cursor", "sessionStart"),
        ("copilot-cli", "sessionStart-resume"),
        ("gemini", "SessionStart"),
        ("codex", "SessionStart-startup"),
    ] {
        let world = World::new();
        let slug: String =
            world.project().display().to_string().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let write = |id: &str, at: i64| {
            let text = world.read(&past_work(&world, id, at));
            world.write(&format!("home/.claude/projects/{slug}/{id}.jsonl"), &text);
            std::fs::remove_file(world.folder.join(format!("{FOLDER}/{id}.jsonl"))).unwrap();
        };
        write(SESSION, NINE - 3 * DAY);
        import(&world, &[]);
        write(OTHER, NINE - DAY);
        let start = crate::platforms::payload(&world, platform, name);
        let answer = world.feed(&["context", "--platform", platform], start.to_string().as_bytes()).text();
        assert!(world.sql("SELECT agent_session_id FROM sessions").contains(OTHER), "{platform}: {answer}");
    }
}
