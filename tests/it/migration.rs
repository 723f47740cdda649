//! A database that an earlier nmem wrote: nothing of it is lost, and its session under way goes on.
//!
//! `fixtures/databases/schema-9.db` was recorded by the build of 1adbddd: two sessions that are over, a decision that a person
//! injected and pinned, vectors of all memories, what sessions received, and a session whose unit is open.

use crate::world::World;
use serde_json::{Value, json};
use std::fs;

const OPEN: &str = "33333333-open";
const CONTENT: [&str; 8] = [
    "SELECT id, uuid, kind, type, title, subtitle, body, content, sources, provenance, made_by, created_at, pinned, by_hand, superseded_by, vector_block FROM memories ORDER BY id",
    "SELECT id, model, hex(data) FROM vectors ORDER BY id",
    "SELECT session_id, item, moment, at, bytes FROM told ORDER BY session_id, item, moment",
    "SELECT id, session_id, state, closed_by, intent, outcome, started_at, ended_at FROM work_units ORDER BY id",
    "SELECT id, session_id, work_unit_id, prompt_id FROM steps ORDER BY id",
    "SELECT id, seq, tool_name, content, path, outcome, succeeded, metadata FROM tool_uses ORDER BY id",
    "SELECT id, number, source, kind, text FROM prompts ORDER BY id",
    "SELECT id, agent_session_id, started_at, ended_at, prompts, tool_uses FROM sessions ORDER BY id",
];

/// A world whose database is the recorded one, a minute after its last event.
fn world() -> World {
    let mut world = World::new();
    fs::create_dir_all(world.data()).unwrap();
    fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/databases/schema-9.db"), world.db()).unwrap();
    world.now = world.count("SELECT max(active_at) FROM sessions") + 60_000;
    world
}

fn hook(world: &World, event: &str, more: Value) -> String {
    let mut payload = json!({"hook_event_name": event, "session_id": OPEN, "cwd": world.project()});
    payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    world.feed(&["record"], payload.to_string().as_bytes()).text()
}

#[test]
fn everything_that_was_stored_is_there_after_the_migration() {
    let world = world();
    assert_eq!(world.sql("PRAGMA user_version"), "9");
    let before = CONTENT.map(|sql| world.sql(sql));
    assert_eq!(world.nmem(&["status"]).code, Some(0));
    assert_ne!(world.sql("PRAGMA user_version"), "9");
    for (sql, before) in CONTENT.iter().zip(before) {
        assert!(!before.is_empty(), "{sql}");
        // Schema 11 renamed the table and its column.
        let sql =
            sql.replace("item, moment, at, bytes FROM told", "item, point, at, bytes FROM injections").replace("moment", "point");
        assert_eq!(world.sql(&sql), before, "{sql}");
    }
    assert_eq!(world.sql("PRAGMA integrity_check"), "ok");
}

#[test]
fn memories_are_found_and_injected_as_before_a_migration() {
    let world = world();
    world.write(
        "home/.config/nmem/config.toml",
        "[embeddings]\nbase_url = \"http://127.0.0.1:9/v1\"\nmodel = \"a-model-of-meaning\"\n",
    );
    assert_eq!(world.nmem(&["status", "--json"]).json()["embedded"], json!({"memories": 5, "of": 5}));
    let context = world.nmem(&["context"]).text();
    assert!(context.contains("We decided to keep sessions in Postgres, not in Redis"), "{context}");
    let found = world.nmem(&["search", "expiry of refresh tokens", "--kind", "memory"]).text();
    assert!(found.contains("Fix the expiry of refresh tokens"), "{found}");
    assert!(world.nmem(&["show", "m3"]).text().contains("rounded down to the minute"));
}

#[test]
fn a_session_under_way_goes_on_in_its_unit_and_is_distilled() {
    let world = world();
    let edit = json!({"tool_name": "Edit", "tool_use_id": "toolu_99", "tool_response": {},
        "tool_input": {"file_path": world.project().join("src/export.rs"), "old_string": "Vec", "new_string": "impl Iterator"}});
    assert_eq!(hook(&world, "PostToolUse", edit), "[exit 0]");
    let said = "Done. The root cause of the memory use was that all rows were collected before the first was written.";
    hook(&world, "Stop", json!({"last_assistant_message": said}));
    hook(&world, "SessionEnd", json!({"reason": "other"}));
    assert_eq!(world.sql("SELECT count(*), min(state) FROM work_units WHERE session_id = 3"), "1|closed");
    assert_eq!(world.sql("SELECT sum(tool_uses) FROM steps WHERE session_id = 3"), "3");
    assert!(world.count("SELECT count(*) FROM memories WHERE session_id = 3") > 0);
}
