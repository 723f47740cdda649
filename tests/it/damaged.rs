//! A database with a damaged page: recording goes on, a start says so, and `nmem doctor --fix` saves what can be read.

use crate::world::World;
use serde_json::json;
use std::fs;

const PAGE: usize = 4096;

/// A world with enough sessions that every table has pages of its own.
fn worked() -> World {
    let world = World::new();
    for session in 0..12 {
        let session_id = json!(format!("session-{session}"));
        let prompt = json!(format!("prompt {session}: {}", "a request in some words ".repeat(20)));
        let changes = [("/session_id", session_id.clone()), ("/prompt", prompt), ("/prompt_id", json!(format!("p{session}")))];
        assert_eq!(world.hook_with("UserPromptSubmit", &changes).text(), "[exit 0]");
        for n in 0..4 {
            let changes = [
                ("/session_id", session_id.clone()),
                ("/tool_use_id", json!(format!("t{session}-{n}"))),
                ("/tool_input/command", json!(format!("make target_{session}_{n}"))),
                ("/tool_response/stdout", json!("an output line\n".repeat(30))),
            ];
            assert_eq!(world.hook_with("PostToolUse-Bash", &changes).text(), "[exit 0]");
        }
        let message = json!(format!("Step {session}. {}", "It works. ".repeat(30)));
        let changes = [("/session_id", session_id), ("/last_assistant_message", message)];
        assert_eq!(world.hook_with("Stop", &changes).text(), "[exit 0]");
    }
    let remember = world.nmem(&["remember", "Use the small plan"]);
    assert_eq!(remember.code, Some(0), "{}", remember.text());
    world.connect().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    world
}

#[test]
fn whatever_page_is_damaged_doctor_saves_the_rest() {
    let world = worked();
    let sound = fs::read(world.db()).unwrap();
    let pages = sound.len() / PAGE;
    assert!(pages >= 50, "{pages}");
    let all = world.count("SELECT count(*) FROM tool_uses");
    // The pages by which SQLite finds the table's other pages.
    let ways = "SELECT pageno - 1 FROM dbstat WHERE name = 'sqlite_schema' OR name = 'tool_uses' AND pagetype = 'internal' ORDER BY pageno";
    let ways: Vec<usize> = world.sql(ways).lines().map(|page| page.parse().unwrap()).collect();
    let (mut nothing_saved, mut least) = (Vec::new(), all);
    for page in 0..pages {
        for suffix in ["-wal", "-shm"] {
            let _ = fs::remove_file(world.data().join(format!("nmem.db{suffix}")));
        }
        for (path, _) in world.all_bytes().iter().filter(|(path, _)| path.display().to_string().contains("-broken-")) {
            fs::remove_file(path).unwrap();
        }
        let mut bytes = sound.clone();
        bytes[page * PAGE..(page + 1) * PAGE].fill(0x5A);
        fs::write(world.db(), bytes).unwrap();
        // A hook records, whatever it finds.
        let changes = [("/session_id", json!("new-session")), ("/tool_use_id", json!("new"))];
        assert_eq!(world.hook_with("PostToolUse-Bash", &changes).text(), "[exit 0]", "page {page}");
        let fixed = world.nmem(&["doctor", "--fix"]).text();
        let after = world.nmem(&["doctor"]).text();
        assert!(!after.contains("problem: database") && !after.contains("problem: search"), "page {page}: {fixed}\n{after}");
        assert_eq!(world.sql("PRAGMA integrity_check"), "ok", "page {page}");
        assert_eq!(world.count("SELECT count(*) FROM tool_uses WHERE tool_use_id = 'new'"), 1, "page {page}: {fixed}");
        let saved = world.count("SELECT count(*) FROM tool_uses WHERE tool_use_id <> 'new'");
        match saved {
            0 => nothing_saved.push(page),
            _ => least = least.min(saved),
        }
        for command in ["units", "log", "context"] {
            assert_eq!(world.nmem(&[command]).code, Some(0), "page {page}: {command}");
        }
    }
    println!("{pages} pages: nothing saved with {nothing_saved:?}, else at least {least} of {all} tool uses");
    assert_eq!(nothing_saved, ways);
    assert!(least * 3 >= all, "{least} of {all}");
}

#[test]
fn a_start_says_that_a_part_cannot_be_read_and_goes_on_with_the_rest() {
    let world = worked();
    // The page with the newest memories: only a reader meets it.
    let page = world.sql("SELECT max(pageno) - 1 FROM dbstat WHERE name = 'memories' AND pagetype = 'leaf'");
    let page: usize = page.parse().unwrap();
    let mut bytes = fs::read(world.db()).unwrap();
    bytes[page * PAGE..(page + 1) * PAGE].fill(0x5A);
    fs::write(world.db(), bytes).unwrap();
    let start = world.hook_with("SessionStart-startup", &[("/session_id", json!("next"))]);
    assert_eq!(start.code, Some(0));
    assert!(start.stdout.contains("the database is damaged, and a part of what it remembers cannot be read"), "{}", start.stdout);
    assert!(start.stdout.contains("prompt 11: a request in some words"), "the rest: {}", start.stdout);
}
