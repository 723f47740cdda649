//! Memories of other programs, and the notes that an agent keeps itself.

use crate::world::World;
use crate::world::transcript::{FOLDER, Lines, SESSION, import};
use rusqlite::Connection;
use serde_json::{Value, json};

const DB: &str = "home/.claude-mem/claude-mem.db";

/// A database with the columns of claude-mem 13.
fn claude_mem(world: &World) -> Connection {
    world.write(DB, "");
    let conn = world.connect_to(&world.folder.join(DB));
    conn.execute_batch(
        "PRAGMA journal_mode = WAL;
         CREATE TABLE sdk_sessions (id INTEGER PRIMARY KEY, content_session_id TEXT, memory_session_id TEXT, project TEXT);
         CREATE TABLE observations (id INTEGER PRIMARY KEY, memory_session_id TEXT, project TEXT, text TEXT, type TEXT, title TEXT, subtitle TEXT,
           facts TEXT, narrative TEXT, concepts TEXT, files_read TEXT, files_modified TEXT, discovery_tokens INTEGER, created_at_epoch INTEGER);
         CREATE TABLE session_summaries (id INTEGER PRIMARY KEY, memory_session_id TEXT, project TEXT, request TEXT, investigated TEXT,
           learned TEXT, completed TEXT, next_steps TEXT, files_read TEXT, files_edited TEXT, notes TEXT, created_at_epoch INTEGER);",
    )
    .unwrap();
    conn.execute("INSERT INTO sdk_sessions VALUES (1, ?1, 'own-1', 'project')", [SESSION]).unwrap();
    conn.execute_batch(
        "INSERT INTO observations VALUES (1, 'own-1', 'project', NULL, 'bugfix', 'Retry the upload twice', 'The gateway drops the first try',
           '[\"The gateway needs 2 s to wake up\"]', 'Uploads fail at first, with token ghp_16C7e42F292c6912E7710c838347Ae178B4a.', '[\"gotcha\"]', '[]',
           '[\"src/upload.rs\"]', 500, 1790000000000);
         INSERT INTO observations VALUES (2, 'own-9', 'elsewhere', NULL, 'discovery', 'Of no project here', NULL, '[]', 'x', '[]', '[]', '[]', 0, 1790000000000);
         INSERT INTO session_summaries VALUES (1, 'own-1', 'project', 'Make uploads reliable', 'the gateway', 'it sleeps', 'retries', 'Alert on the third failure',
           '[]', '[]', NULL, 1790000001000);",
    )
    .unwrap();
    conn
}

fn agent<'a>(report: &'a Value, name: &str) -> &'a Value {
    report["agents"].as_array().unwrap().iter().find(|agent| agent["agent"] == name).unwrap_or(&Value::Null)
}

#[test]
fn memories_of_claude_mem_come_once_and_its_files_stay_as_they_are() {
    let world = World::new();
    let mut lines = Lines::new(&world);
    lines.work();
    world.write(&format!("{FOLDER}/{SESSION}.jsonl"), &lines.text);
    let open = claude_mem(&world);
    let folder = world.home().join(".claude-mem");
    let files = || {
        let mut files: Vec<(String, Vec<u8>)> = std::fs::read_dir(&folder)
            .unwrap()
            .map(|entry| {
                (
                    entry.as_ref().unwrap().file_name().to_string_lossy().into_owned(),
                    std::fs::read(entry.unwrap().path()).unwrap(),
                )
            })
            .collect();
        files.sort();
        files
    };
    let before = files();
    assert!(before.len() == 3, "the program runs: its log and its shared memory are there");
    let report = import(&world, &[]);
    let own = agent(&report, "claude-mem");
    assert_eq!((&own["memories"], &own["secrets_hidden"]), (&json!(2), &json!(1)), "{report}");
    assert_eq!(own["skipped"]["memory of a project that is not known here: import its sessions first"], 1);
    assert!(files() == before, "not a byte of another program's files changes");
    let found = world.nmem(&["search", "gateway drops uploads"]).text();
    assert!(found.contains("Retry the upload twice"), "{found}");
    assert!(world.nmem(&["search", "alert on the third failure"]).text().contains("Make uploads reliable"));
    assert!(
        !world
            .all_bytes()
            .iter()
            .any(|(path, bytes)| !path.starts_with(&folder) && bytes.windows(20).any(|part| part == b"ghp_16C7e42F292c6912"))
    );
    // Once; and what a person has forgotten stays away.
    assert_eq!(agent(&import(&world, &[]), "claude-mem")["memories"], 0);
    let id = world.sql("SELECT 'm' || id FROM memories WHERE title = 'Retry the upload twice'");
    assert_eq!(world.nmem(&["forget", &id, "--yes"]).code, Some(0));
    assert_eq!(agent(&import(&world, &[]), "claude-mem")["skipped"]["forgotten event"], 1);
    assert_eq!(world.sql("SELECT count(*) FROM memories WHERE platform = 'claude-mem'"), "1");
    drop(open);
}

#[test]
fn other_memories_of_a_project_that_is_off_stay_away() {
    let world = World::new();
    let mut lines = Lines::new(&world);
    lines.work();
    world.write(&format!("{FOLDER}/{SESSION}.jsonl"), &lines.text);
    import(&world, &[]);
    let open = claude_mem(&world);
    world.write(&format!("{FOLDER}/memory/MEMORY.md"), "## Deploy\n- Deploys run on Mondays only\n");
    assert_eq!(world.nmem(&["off", "--project"]).code, Some(0));
    let report = import(&world, &[]);
    for (name, skipped) in [("claude-mem", 2), ("claude-code", 1)] {
        assert_eq!(agent(&report, name)["skipped"]["session in a folder where recording is off"], skipped, "{report}");
    }
    assert_eq!(world.sql("SELECT count(*) FROM memories WHERE made_by = 'custom'"), "0");
    // Switched on again, they come, and what the project itself calls a secret is hidden.
    world.write("project/.nmem.toml", "redact = [\"gateway\"]\n");
    assert_eq!((world.nmem(&["on", "--project"]).code, world.nmem(&["trust", "--yes"]).code), (Some(0), Some(0)));
    let report = import(&world, &[]);
    assert_eq!((&agent(&report, "claude-mem")["memories"], &agent(&report, "claude-code")["memories"]), (&json!(2), &json!(1)));
    assert!(!world.all_bytes().iter().any(|(_, bytes)| bytes.windows(7).any(|part| part == b"gateway")));
    drop(open);
}

#[test]
fn notes_of_the_agent_come_once_and_again_when_they_change() {
    let world = World::new();
    let mut lines = Lines::new(&world);
    lines.work();
    world.write(&format!("{FOLDER}/{SESSION}.jsonl"), &lines.text);
    let notes = format!("{FOLDER}/memory/MEMORY.md");
    let build = "## Build\n- `make all` needs GNU make, because of the pattern rules\n";
    world
        .write(&notes, &format!("# Memory\n- [Login](login.md) — expiry\n\n{build}\n## Deploy\n- Deploys run on Mondays only\n"));
    world.write(&format!("{FOLDER}/memory/login.md"), "---\nname: login\ndescription: Expiry is rounded up\ntype: project\n---\n\nNever round it down, tokens expire early then.\n");
    assert!(world.nmem(&["import", "--dry-run"]).stdout.contains("notes of the agent: "));
    assert_eq!(agent(&import(&world, &[]), "claude-code")["memories"], 3);
    let titles = || world.sql("SELECT title FROM memories WHERE made_by = 'custom' ORDER BY title");
    assert_eq!(
        titles(),
        "Build: `make all` needs GNU make, because of the pattern rules\nDeploy: Deploys run on Mondays only\nExpiry is rounded up"
    );
    assert_eq!(world.sql("SELECT DISTINCT provenance, project_id FROM memories WHERE made_by = 'custom'"), "agent|1");
    assert_eq!(agent(&import(&world, &[]), "claude-code")["memories"], 0);
    world.write(&notes, &format!("{build}\n## Release\n- Releases need two reviews and a green build\n"));
    assert_eq!(agent(&import(&world, &[]), "claude-code")["memories"], 2);
    assert_eq!(
        titles(),
        "Build: `make all` needs GNU make, because of the pattern rules\nExpiry is rounded up\nRelease: Releases need two reviews and a green build"
    );
    let found = world.nmem(&["search", "GNU make"]).text();
    assert!(found.contains("pattern rules"), "{found}");
}
