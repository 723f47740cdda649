//! Databases of schema 16: nothing in them is lost, and their sessions go on.
//!
//! `fixtures/databases/schema-16.db` was recorded by the build of aa6ae37 through its commands: four finished sessions, one
//! imported, a muted and a forgotten one, and one that is open; memories of every kind by rules, a model, a person and a
//! program; pinned, superseded, dismissed, embedded and shared ones, and one of a teammate. Its m1 is superseded by m5 of
//! another unit, as rules did then.

use crate::world::World;
use serde_json::{Value, json};
use std::fs;

const OPEN: &str = "33333333-open";
/// Every table with rows that a person may miss.
const TABLES: [&str; 18] = [
    "projects",
    "project_keys",
    "sessions",
    "prompts",
    "tool_uses",
    "work_units",
    "steps",
    "step_files",
    "domains",
    "memory_files",
    "dismissed",
    "spend",
    "injections",
    "vectors",
    "imports",
    "forgotten",
    "shared",
    "machines",
];
const MEMORIES: &str = "SELECT id, uuid, kind, type, title, subtitle, body, content, sources, provenance, made_by, created_at, pinned, by_hand, vector_block FROM memories ORDER BY id";

/// Rows that became columns: a query for schema 16, and one for today's.
const MOVED: [[&str; 2]; 2] = [
    [
        "SELECT step_id, reason, score, signals, at_prompt, active, history FROM boundaries ORDER BY 1",
        "SELECT id, boundary ->> '$.reason', boundary ->> '$.score', nullif(boundary -> '$.signals', 'null'), boundary ->> '$.at_prompt',
           boundary ->> '$.active', boundary -> '$.history' FROM steps WHERE boundary IS NOT NULL ORDER BY 1",
    ],
    [
        "SELECT memory_id, concept FROM memory_concepts ORDER BY 1, 2",
        "SELECT memories.id, value FROM memories, json_each(concepts) ORDER BY 1, 2",
    ],
];

/// A world whose database is the recorded one, a minute after its last event.
fn world() -> World {
    let mut world = World::new();
    fs::create_dir_all(world.data()).unwrap();
    fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/databases/schema-16.db"), world.db()).unwrap();
    world.now = world.count("SELECT max(active_at) FROM sessions") + 60_000;
    world
}

fn hook(world: &World, event: &str, more: Value) -> String {
    let mut payload = json!({"hook_event_name": event, "session_id": OPEN, "cwd": world.project()});
    payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    world.feed(&["record"], payload.to_string().as_bytes()).text()
}

/// Tables with their columns and keys, and indexes with their columns.
fn schema(world: &World) -> String {
    world.sql(
        "SELECT m.name, (SELECT group_concat(name || ' ' || type || ' ' || \"notnull\" || ' ' || pk, ', ') FROM pragma_table_xinfo(m.name)),
                (SELECT group_concat(name, ', ') FROM pragma_index_info(m.name))
         FROM sqlite_schema m WHERE m.type IN ('table', 'index', 'view') ORDER BY m.name",
    )
}

#[test]
fn everything_that_was_stored_is_there_after_the_migration() {
    let world = world();
    assert_eq!(world.sql("PRAGMA user_version"), "16");
    let columns = TABLES.map(|table| {
        (
            table,
            world.sql(&format!(
                "SELECT group_concat('\"' || name || '\"') FROM pragma_table_info('{table}') WHERE name <> 'hidden'"
            )),
        )
    });
    let all = || {
        columns.clone().map(|(table, columns)| (table, world.sql(&format!("SELECT {columns} FROM {table} ORDER BY 1")))).to_vec()
    };
    let (before, memories) = (all(), world.sql(MEMORIES));
    let moved = MOVED.map(|[before, after]| (world.sql(before), after));
    assert!(before.iter().all(|(_, rows)| !rows.is_empty()), "{before:?}");
    assert_eq!(world.sql("SELECT id, superseded_by FROM memories WHERE superseded_by IS NOT NULL"), "1|5\n6|13");
    assert_eq!(world.nmem(&["status"]).code, Some(0));
    assert_eq!(world.sql("PRAGMA user_version"), "23");
    for ((table, before), (_, after)) in before.iter().zip(all()) {
        assert_eq!(&after, before, "{table}");
    }
    for (before, after) in moved {
        assert!(!before.is_empty());
        assert_eq!(world.sql(after), before);
    }
    assert_eq!(world.sql(MEMORIES), memories);
    let superseded = world.sql("SELECT id, superseded_by FROM memories WHERE superseded_by IS NOT NULL");
    assert_eq!(superseded, "6|13", "a person superseded m6; rules of another unit superseded m1");
    assert_eq!(world.sql("PRAGMA integrity_check"), "ok");
    let new = World::new();
    new.feed(
        &["record"],
        json!({"hook_event_name": "SessionStart", "session_id": "a", "cwd": new.project()}).to_string().as_bytes(),
    );
    assert_eq!(schema(&world), schema(&new), "a migrated database is like a new one");
}

#[test]
fn names_of_one_repository_become_one_project() {
    let world = world();
    let names = [
        "github.com/Team/App",
        "ssh.github.com:443/team/app",
        "dev.azure.com/Org/Shop/_git/Cart",
        "ssh.dev.azure.com/v3/org/shop/cart",
        "acme.ghe.com/Team/App",
        "git.example.org/Team/App",
    ];
    for (n, name) in names.iter().enumerate() {
        let id = 100 + n;
        world.sql(&format!("INSERT INTO projects(id, name, root, created_at) VALUES ({id}, 'x', '', 1)"));
        world.sql(&format!("INSERT INTO project_keys(key, project_id) VALUES ('repo:{name}', {id})"));
    }
    world.sql("UPDATE sessions SET project_id = 101 WHERE id = 1");
    assert_eq!(world.nmem(&["units"]).code, Some(0));
    let keys = world.sql("SELECT key, project_id FROM project_keys WHERE project_id >= 100 ORDER BY project_id");
    assert_eq!(
        keys,
        "repo:github.com/team/app|100\nrepo:dev.azure.com/org/shop/cart|102\nrepo:acme.ghe.com/team/app|104\nrepo:git.example.org/Team/App|105"
    );
    assert_eq!(world.sql("SELECT project_id FROM sessions WHERE id = 1"), "100");
}

#[test]
fn a_session_that_only_planned_was_not_abandoned() {
    let world = world();
    world.sql("UPDATE work_units SET outcome = 'abandoned' WHERE id IN (1, 3)");
    world.sql(
        "UPDATE step_files SET path = '~/.claude/plans/quiet-river.md'
         WHERE step_id IN (SELECT id FROM steps WHERE work_unit_id = 1)",
    );
    assert_eq!(world.nmem(&["status"]).code, Some(0));
    assert_eq!(world.sql("SELECT id, outcome FROM work_units WHERE id IN (1, 3)"), "1|answered\n3|abandoned");
}

#[test]
fn every_command_works_on_a_migrated_database() {
    let world = world();
    for command in [
        &["status", "--json"][..],
        &["units"],
        &["log"],
        &["context"],
        &["search", "exporter", "--limit", "0"],
        &["export", "-"],
        &["show", "m3"],
        &["doctor"],
    ] {
        let output = world.nmem(command);
        assert!(matches!(output.code, Some(0 | 1)) && !output.text().contains("panic"), "{command:?}: {}", output.text());
    }
    let context = world.nmem(&["context"]).text();
    assert!(context.contains("We decided to keep sessions in Postgres, not in Redis"), "{context}");
    let found = world.nmem(&["search", "expiry of refresh tokens", "--kind", "memory"]).text();
    assert!(found.contains("Round the expiry of tokens up"), "{found}");
    let found = world.nmem(&["doctor"]).text();
    for problem in ["is damaged", "problem: search", "problem: events", "problem: secrets"] {
        assert!(!found.contains(problem), "{found}");
    }
    // Improved rules reach old memories, and every id still leads somewhere.
    let ids = world.sql("SELECT id FROM memories");
    let redone = world.nmem(&["distil", "--redo", "--all"]);
    assert_eq!(redone.code, Some(0), "{}", redone.text());
    for id in ids.lines() {
        assert_eq!(world.nmem(&["show", &format!("m{id}")]).code, Some(0), "m{id}");
    }
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
    let session = world.sql(&format!("SELECT id FROM sessions WHERE agent_session_id = '{OPEN}'"));
    assert_eq!(world.sql(&format!("SELECT count(*), min(state) FROM work_units WHERE session_id = {session}")), "1|closed");
    assert_eq!(world.sql(&format!("SELECT sum(tool_uses) FROM steps WHERE session_id = {session}")), "3");
    assert!(world.count(&format!("SELECT count(*) FROM memories WHERE session_id = {session}")) > 0);
}

#[test]
fn an_earlier_schema_is_refused_with_the_way_through_and_loses_no_event() {
    let world = world();
    world.sql("PRAGMA user_version = 15");
    let refused = world.nmem(&["units"]);
    assert_eq!(refused.code, Some(1), "{}", refused.text());
    assert!(refused.stderr.contains("has schema 15, from before the first release"), "{}", refused.text());
    assert!(refused.stderr.contains("nmem export FILE") && refused.stderr.contains("nmem restore FILE"), "{}", refused.text());
    let prompts = world.count("SELECT count(*) FROM prompts");
    assert_eq!(hook(&world, "UserPromptSubmit", json!({"prompt": "and the changelog", "prompt_id": "new"})), "[exit 0]");
    assert_eq!(world.count("SELECT count(*) FROM prompts"), prompts);
    world.sql("PRAGMA user_version = 16");
    assert_eq!(world.nmem(&["status"]).code, Some(0));
    assert_eq!(world.count("SELECT count(*) FROM prompts WHERE text = 'and the changelog'"), 1);
}
