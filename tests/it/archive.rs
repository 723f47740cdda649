//! `nmem export` and `nmem restore`: what comes back is what was there.

use crate::world::World;
use crate::world::models::CONFIG;
use crate::world::server::{Reply, Server};
use crate::world::session::Session;
use crate::world::thesaurus::vector;
use proptest::prelude::*;
use serde_json::{Value, json};

/// The rows of an export, without the first line, which says when it was made.
fn exported(world: &World, args: &[&str]) -> Vec<String> {
    let out = world.nmem(&[&["export"], args].concat());
    assert_eq!(out.code, Some(0), "{}", out.text());
    out.stdout.lines().skip(1).filter(|line| !line.contains("nmem_export_rows")).map(String::from).collect()
}

fn restore(world: &World, export: &str) -> Value {
    let out = world.feed(&["restore", "-", "--json"], export.as_bytes());
    assert_eq!(out.code, Some(0), "{}", out.text());
    out.json()
}

/// Two sessions with all that may belong to them.
fn lived_in(world: &World) {
    let server = Server::new(Reply::Embeds(vector));
    world.write(CONFIG, &server.embeddings());
    let mut session = Session::new(world, "first");
    session.ask("Use a ring buffer for rows, not a queue. Remember that the importer counts commas");
    session.fails("cargo test", "error: 12 != 13").edit("src/import.rs").bash("cargo test", "ok");
    session.bash("git commit -am 'feat: a ring buffer'", "[main abc1234] feat: a ring buffer");
    session.close("Done: rows wait in a ring buffer.").end();
    // As the real client tells it, with all that it measures.
    for event in [
        "SessionStart-startup",
        "UserPromptSubmit",
        "PostToolUse-Bash",
        "PostToolUse-Edit",
        "PostToolUse-Agent",
        "PostToolUseFailure-Bash",
    ] {
        world.hook_with(event, &[]);
    }
    assert!(world.count("SELECT count(*) FROM tool_uses WHERE duration_ms IS NOT NULL") > 0);
    Session::new(world, "second").ask("What is the importer's limit?").close("There is none.").end();
    world.typed(&["remember", "Invoices have a number", "--kind", "lesson", "--tag", "billing", "--pin"]);
    world.typed(&["remember", "Invoices have no number", "--kind", "lesson"]);
    let ids = world.sql("SELECT 'm' || id FROM memories WHERE title LIKE 'Invoices%' ORDER BY id");
    let ids: Vec<&str> = ids.split('\n').collect();
    world.nmem(&["supersede", ids[0], ids[1]]);
    let task = json!({"taskDescription": "Ship it", "success": true, "repoId": "shop",
        "decisions": [{"chosenOption": "On Friday", "confidence": 0.1}]});
    world.feed(&["rad", "knowledge/record"], task.to_string().as_bytes());
    world.nmem(&["distil"]);
    let lesson = world.sql("SELECT 'm' || id FROM memories WHERE rule_key LIKE 'lesson:%'");
    assert_eq!(world.nmem(&["forget", &lesson, "--yes"]).code, Some(0));
}

#[test]
fn what_is_restored_into_an_empty_store_is_what_was_exported() {
    let (world, other) = (World::new(), World::new());
    lived_in(&world);
    let file = world.home().join("memory.jsonl").display().to_string();
    let out = world.nmem(&["export", &file]);
    assert!(out.stdout.contains("rows in"), "{}", out.text());
    let again = world.nmem(&["export", &file]);
    assert!(
        again.code == Some(2) && again.stderr.contains("already exists") && again.stderr.contains("--force"),
        "{}",
        again.text()
    );
    let export = std::fs::read_to_string(&file).unwrap();
    let tables = ["projects", "sessions", "prompts", "work_units", "steps", "boundaries", "tool_uses", "dismissed"];
    for table in tables {
        assert!(export.contains(&format!("\"table\":\"{table}\"")), "no {table}");
    }
    assert!(export.contains("\"vector\":{\"hex\"") && export.contains("\"superseded_by\":\""));
    let tried = other.feed(&["restore", "-", "--dry-run"], export.as_bytes());
    insta::assert_snapshot!(tried.stdout);
    assert_eq!(other.count("SELECT count(*) FROM sessions"), 0);
    restore(&other, &export);
    assert_eq!(exported(&other, &[]), exported(&world, &[]));
    // It is found, injected and complete. Only one of the worlds has a model for searches.
    world.write(CONFIG, "");
    for args in [&["search", "ring buffer", "--all", "--format", "md"][..], &["units", "--all", "--json"], &["show", "first"]] {
        assert_eq!(other.nmem(args).stdout, world.nmem(args).stdout, "{args:?}");
    }
    assert_eq!(
        other.sql("SELECT sum(length(memories) / 8) FROM vectors"),
        world.sql("SELECT sum(length(memories) / 8) FROM vectors")
    );
    let out = other.nmem(&["doctor"]);
    assert!(out.stdout.contains("every row is indexed") && out.stdout.contains("sound, "), "{}", out.text());
}

#[test]
fn over_a_store_that_is_lived_in_nothing_is_doubled_and_nothing_is_lost() {
    let (world, other) = (World::new(), World::new());
    lived_in(&world);
    let export = world.nmem(&["export"]).stdout;
    Session::new(&other, "its own").ask("Paint the door").edit("src/door.rs").close("Painted the door.").end();
    let before = exported(&other, &[]);
    let first = restore(&other, &export);
    assert_eq!((first["sessions_here"].as_i64(), first["written"]["sessions"].as_i64()), (Some(0), Some(3)), "{first}");
    let whole = exported(&other, &[]);
    assert!(before.iter().all(|line| whole.contains(line)), "what was there is as it was");
    // Rows have other numbers, and lead to the same things.
    let sources = |world: &World| {
        world.sql("SELECT m.title, group_concat(coalesce(t.content, p.text), ' + ') FROM memories m, json_each(m.sources) s
        LEFT JOIN tool_uses t ON 't' || t.id = s.value LEFT JOIN prompts p ON 'p' || p.id = s.value WHERE m.session_id IN (SELECT id FROM sessions WHERE agent_session_id = 'first') GROUP BY m.uuid ORDER BY m.uuid")
    };
    assert_eq!(sources(&other), sources(&world));
    let keys = |world: &World| {
        world.count(
            "SELECT count(*) FROM memories m JOIN tool_uses t ON m.rule_key LIKE '%:t' || t.id AND t.session_id = m.session_id",
        )
    };
    assert!(keys(&world) > 0 && keys(&other) == keys(&world), "{} {}", keys(&other), keys(&world));
    let found = other.nmem(&["search", "ring buffer", "--all", "--kind", "unit", "--json"]).stdout;
    assert!(found.contains("ring buffer"), "{found}");
    let again = restore(&other, &export);
    assert_eq!(
        (again["sessions_here"].as_i64(), again["written"]["sessions"].as_i64(), again["written"]["memories"].as_i64()),
        (Some(3), Some(0), Some(0))
    );
    assert_eq!(exported(&other, &[]), whole);
    // What is forgotten of a session that stands here stays so.
    let own = "SELECT 'm' || id FROM memories WHERE made_by = 'rules' AND session_id = (SELECT id FROM sessions WHERE agent_session_id = 'first') LIMIT 1";
    assert_eq!(other.nmem(&["forget", &other.sql(own), "--yes"]).code, Some(0));
    let left = exported(&other, &[]);
    restore(&other, &export);
    assert_eq!(exported(&other, &[]), left);
    // Rules that look again make nothing twice.
    let memories = other.count("SELECT count(*) FROM memories");
    other.nmem(&["distil", "--project", &other.project().display().to_string()]);
    assert_eq!(other.count("SELECT count(*) FROM memories"), memories);
}

#[test]
fn one_project_goes_alone() {
    let world = World::new();
    lived_in(&world);
    // A program may file a memory of this project's under a session of another, and what was paid for a unit that is gone stays.
    let note = json!({"entity_type": "note", "title": "Of elsewhere", "agent_session_id": "of-shop", "project": world.sql("SELECT name FROM projects LIMIT 1")});
    world.feed(&["rad", "sessions/ensure"], json!({"agent_session_id": "of-shop", "project": "shop"}).to_string().as_bytes());
    world.feed(&["rad", "entities"], note.to_string().as_bytes());
    world.sql("INSERT INTO spend(at, work_unit_id, provider, model, purpose, input_tokens, output_tokens, estimated, took, outcome) VALUES (7, 999, 'p', 'm', 'redo', 1, 2, 0, 3, 'ok')");
    let all = World::new();
    restore(&all, &world.nmem(&["export"]).stdout);
    assert_eq!(exported(&all, &[]), exported(&world, &[]));
    let own = exported(&world, &["--project", "."]);
    assert!(own.iter().any(|line| line.contains("Of elsewhere")));
    let text = own.join("\n");
    assert!(text.contains("ring buffer") && !text.contains("On Friday") && !text.contains("\"name\":\"shop\""), "{text}");
    let other = World::new();
    restore(&other, &world.nmem(&["export", "--project", "."]).stdout);
    assert_eq!(exported(&other, &[]), own);
}

#[test]
fn what_is_no_whole_export_is_refused_whole() {
    let (world, other) = (World::new(), World::new());
    lived_in(&world);
    let export = world.nmem(&["export"]).stdout;
    let lines: Vec<&str> = export.lines().collect();
    let cut = &export[..export.len() - 20];
    let without_sessions: String =
        lines.iter().filter(|line| !line.contains("\"table\":\"sessions\"")).map(|line| format!("{line}\n")).collect();
    let with = |line: &str| format!("{}\n{line}\n", lines[..lines.len() - 1].join("\n"));
    for (text, wrong) in [
        (String::new(), "not a file that `nmem export` wrote"),
        ("hello\n".to_string(), "line 1 is truncated or not a JSON object"),
        ("{\"nmem_export\": 99}\n".to_string(), "written by a newer nmem"),
        (cut.to_string(), "is truncated or not a JSON object"),
        (format!("{}\n", lines[..lines.len() - 1].join("\n")), "the file is truncated: its last line is missing"),
        (format!("{}\n", lines[..9].join("\n")), "the file is truncated: its last line is missing"),
        (format!("{}\n{}\n", lines[..9].join("\n"), lines[lines.len() - 1]), "the file is truncated: it has 8 rows"),
        (without_sessions, "is missing before it"),
        (with("{\"table\": \"sqlite_schema\", \"id\": 1}"), "not a row of an export"),
        (with("{\"table\": \"meta\", \"key\": \"x\"}"), "not a row of an export"),
        (with("{\"table\": \"domains\", \"id\": 77, \"name\": \"x\", \"x); DROP TABLE prompts; --\": 1}"), "is invalid"),
        (with("{\"table\": \"domains\", \"id\": \"x\", \"name\": \"y\"}"), "`id` is invalid"),
        (with("{\"table\": \"domains\", \"id\": 9223372036854775807, \"name\": \"y\", \"created_at\": 1}"), "`id` is invalid"),
        (with("{\"table\": \"domains\", \"id\": 5, \"name\": {\"a\": 1}, \"created_at\": 1}"), "is invalid"),
        (with("{\"table\": \"domains\", \"id\": 5, \"name\": \"z\", \"created_at\": \"soon\"}"), "line "),
        (with("{\"entity_type\": \"note\", \"id\": \"u\"}"), "an entity without `row`"),
    ] {
        let out = other.feed(&["restore", "-"], text.as_bytes());
        assert!(out.code == Some(1) && out.stderr.contains(wrong), "{wrong}: {}", out.text());
        assert_eq!(
            other.sql("SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM memories), (SELECT count(*) FROM projects)"),
            "0|0|0"
        );
    }
    let out = other.nmem(&["restore", "/nowhere"]);
    assert!(out.code == Some(1) && out.stderr.contains("cannot read /nowhere"), "{}", out.text());
}

/// Text of a program, in any script and with any sign.
fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{1,12}( [a-zA-Z0-9_./:-]{1,12}){0,8}", "\\PC{1,60}", "[\\u{0}-\\u{ffff}]{1,20}"]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        text().prop_map(Value::from),
        Just(Value::Null)
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z_]{1,8}", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect()))
        ]
    })
}

fn request() -> impl Strategy<Value = Value> {
    let session = "[ab]";
    prop_oneof![
        (session, text()).prop_map(|(id, text)| json!({"verb": "sessions/init", "agent_session_id": id, "user_prompt": text})),
        (session, text(), text())
            .prop_map(|(id, a, b)| json!({"verb": "observations", "agent_session_id": id, "tool_name": "Bash",
            "tool_input": {"command": a}, "tool_response": {"stdout": b}})),
        (session, "[a-z]{1,6}", text())
            .prop_map(|(id, file, error)| json!({"verb": "observations", "agent_session_id": id, "tool_name": "Edit",
            "tool_input": {"file_path": format!("src/{file}.rs"), "old_string": "a", "new_string": "b"}, "error": error})),
        (session, text())
            .prop_map(|(id, text)| json!({"verb": "sessions/summarize", "agent_session_id": id, "last_assistant_message": text})),
        session.prop_map(|id| json!({"verb": "sessions/complete", "agent_session_id": id})),
        (text(), value(), prop::collection::vec("[a-z]{1,8}", 0..3))
            .prop_map(|(title, value, concepts)| json!({"verb": "entities",
            "entity_type": "note", "title": title, "content": {"value": value}, "concepts": concepts, "agent_session_id": "a"})),
        (text(), text(), 0.0..=1.0f64)
            .prop_map(|(task, chosen, sure)| json!({"verb": "knowledge/record", "taskDescription": task, "success": true,
            "decisions": [{"chosenOption": chosen, "confidence": sure}]})),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// restore(export(x)) = x, whatever programs recorded.
    #[test]
    fn an_export_comes_back_as_it_was(requests in prop::collection::vec(request(), 1..20)) {
        let (world, other) = (World::new(), World::new());
        let batch: String = requests.iter().map(|request| format!("{request}\n")).collect();
        world.feed(&["rad", "--batch"], batch.as_bytes());
        if world.db().exists() {
            restore(&other, &world.nmem(&["export"]).stdout);
            prop_assert_eq!(exported(&other, &[]), exported(&world, &[]));
        }
    }
}

/// A file may come from a machine that knew fewer kinds of keys: what is restored is cleaned as what is recorded.
#[test]
fn a_secret_in_a_file_is_not_restored() {
    let (world, other) = (World::new(), World::new());
    lived_in(&world);
    let export = world.nmem(&["export"]).stdout.replace("ring buffer", "ring AKIAQ7RZ2JX4MT5NVW3P buffer");
    assert!(export.matches("AKIAQ7RZ2JX4MT5NVW3P").count() > 5);
    restore(&other, &export);
    let left = exported(&other, &[]).join("\n");
    assert!(!left.contains("AKIAQ7RZ2JX4MT5NVW3P") && left.contains("[redacted:"));
}
