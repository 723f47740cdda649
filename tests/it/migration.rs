//! Databases that earlier nmems wrote: nothing of them is lost, and their sessions under way go on.
//!
//! `fixtures/databases/schema-N.db` was recorded by the last build on main with that schema, from captured payloads: two
//! sessions that are over and one that is open. `schema-9.db` was recorded by the build of 1adbddd: two sessions that are over, a decision that a person
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

/// Contents that every schema has, of tables from the given schema on.
const IN_EVERY_SCHEMA: [(u32, &str); 5] = [
    (1, "SELECT id, agent_session_id, started_at, ended_at, prompts, tool_uses FROM sessions ORDER BY id"),
    (1, "SELECT id, number, source, kind, text FROM prompts ORDER BY id"),
    (1, "SELECT id, seq, tool_name, content, path, outcome, succeeded, metadata FROM tool_uses ORDER BY id"),
    (2, "SELECT id, session_id, state, started_at FROM work_units ORDER BY id"),
    (3, "SELECT id, uuid, kind, type, title, content, sources, provenance, created_at FROM memories ORDER BY id"),
];

#[test]
fn a_database_of_every_schema_that_was_on_main_migrates_with_its_data() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/databases");
    let newest = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/migrations")).unwrap().count() as u32;
    // Some had an early form for a few hours.
    let early = [1, 2, 3, 9].map(|schema| (schema, format!("{schema}-early")));
    for (schema, name) in (1..newest).map(|schema| (schema, schema.to_string())).chain(early) {
        let mut world = World::new();
        fs::create_dir_all(world.data()).unwrap();
        fs::copy(format!("{folder}/schema-{name}.db"), world.db()).unwrap_or_else(|e| panic!("schema {name}: {e}"));
        assert_eq!(world.sql("PRAGMA user_version"), schema.to_string());
        world.now = world.count("SELECT max(active_at) FROM sessions") + 60_000;
        let contents = || {
            let of_schema = IN_EVERY_SCHEMA.iter().filter(|(since, _)| *since <= schema);
            of_schema.map(|(_, sql)| world.sql(sql)).collect::<Vec<_>>()
        };
        let before = contents();
        assert!(before.iter().all(|content| !content.is_empty()), "schema {name}: {before:?}");
        let first = world.nmem(&["status"]);
        assert_eq!(first.code, Some(0), "schema {name}: {}", first.text());
        // The texts of the last schemas were redacted by today's rules.
        let checked = if schema >= 13 {
            ""
        } else {
            "nmem: checking stored texts with this version's rules for secrets, once after the upgrade\nnmem: nothing found\n"
        };
        let units = if schema < 3 {
            0
        } else {
            world.count("SELECT count(*) FROM work_units WHERE rules_mark IS NOT NULL AND rules_version IS NULL")
        };
        let offer = match units {
            0 => String::new(),
            1 => "nmem: 1 work unit was distilled by earlier rules; `nmem distil --redo` draws their memories again\n".into(),
            n => {
                format!("nmem: {n} work units were distilled by earlier rules; `nmem distil --redo` draws their memories again\n")
            }
        };
        // Where a migration added an index, the check has filled it already.
        let said = first.stderr.replacen("nmem: indexing stored texts again, once after the upgrade\n", "", 1);
        assert_eq!(said, format!("{checked}{offer}"), "schema {name}");
        let version = nmem::index_text::INDEX_TEXT_VERSION.to_string();
        assert_eq!(world.sql("SELECT value FROM meta WHERE key = 'index_text_version'"), version, "schema {name}");
        assert_eq!(first.stdout.contains("distilled by earlier rules"), units > 0, "schema {name}");
        assert_eq!(world.sql("PRAGMA user_version"), newest.to_string());
        assert_eq!(contents(), before, "schema {name}");
        assert_eq!(world.sql("PRAGMA integrity_check"), "ok", "schema {name}");
        // Everything works on it: hooks, search, units, the log, the context, doctor.
        assert_eq!(hook(&world, "UserPromptSubmit", json!({"prompt": "and the changelog", "prompt_id": "new"})), "[exit 0]");
        assert_eq!(hook(&world, "Stop", json!({"last_assistant_message": "The changelog is written."})), "[exit 0]");
        assert_eq!(world.count("SELECT count(*) FROM prompts WHERE text = 'and the changelog'"), 1, "schema {name}");
        for command in [&["units"][..], &["log"], &["context"], &["search", "exporter", "--limit", "0"], &["status", "--json"]] {
            let output = world.nmem(command);
            assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "schema {name}: {command:?}");
        }
        // Old memories are drawn again where no person has touched them, and every number still leads somewhere.
        let ids = if schema < 3 { String::new() } else { world.sql("SELECT id FROM memories") };
        let redone = world.nmem(&["distil", "--redo", "--all"]);
        assert_eq!(redone.code, Some(0), "schema {name}: {}", redone.text());
        assert!(!world.nmem(&["status"]).text().contains("earlier rules"), "schema {name}");
        for id in ids.lines() {
            assert_eq!(world.nmem(&["show", &format!("m{id}")]).code, Some(0), "schema {name}: m{id}");
        }
        let found = world.nmem(&["doctor"]).text();
        for problem in ["is damaged", "problem: search", "problem: events", "problem: secrets"] {
            assert!(!found.contains(problem), "schema {name}: {found}");
        }
    }
}
