//! Findings of a hostile tester in imports.

use crate::world::World;
use crate::world::session::{MINUTE, NINE};
use crate::world::transcript::{FOLDER, Lines, SESSION, counts, import};
use serde_json::json;
use std::fs;

const DAY: i64 = 24 * 60 * MINUTE;
const OTHER: &str = "223b2708-5340-4532-879b-05e5d9aa16f1";

#[cfg(unix)]
#[test]
fn a_pipe_where_a_session_file_was_stops_nothing() {
    let world = World::new();
    let mut lines = Lines::new(&world);
    lines.work();
    let (file, other) = (format!("{FOLDER}/{SESSION}.jsonl"), format!("{FOLDER}/{OTHER}.jsonl"));
    world.write(&file, &lines.text);
    import(&world, &[]);
    fs::remove_file(world.folder.join(&file)).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(world.folder.join(&file)).status().unwrap();
    assert!(pipe.success());
    lines.user("And the logout").says("There is none.");
    world.write(&other, &lines.text.replace(SESSION, OTHER));
    import(&world, &[]);
    assert_eq!(world.sql("SELECT count(*) FROM sessions"), "2");
}

#[test]
fn what_a_subagent_did_in_a_turn_that_is_not_to_be_remembered_stays_out() {
    let world = World::new();
    let mut lines = Lines::new(&world);
    lines
        .user("#nomem Look at the salaries")
        .says("I ask a subagent.")
        .says("It works.")
        .says("Done.")
        .user("Now fix the login")
        .says("Fixed.");
    let mut agent = Lines { at: NINE - 100 * DAY, number: 500, ..Lines::new(&world) };
    agent
        .uses("s1", "Bash", json!({"command": "cat salaries.csv"}), json!({"stdout": "salaries: 1, 2, 3"}))
        .says("The salaries are there.");
    world.write(&format!("{FOLDER}/{SESSION}.jsonl"), &lines.text);
    world.write(&format!("{FOLDER}/{SESSION}/subagents/agent-a1.jsonl"), &agent.text);
    import(&world, &[]);
    let all = world.all_bytes();
    let holds = |word: &[u8]| all.iter().any(|(_, bytes)| bytes.windows(word.len()).any(|part| part == word));
    assert!(holds(b"Now fix the login") && !holds(b"salaries"), "{}", world.sql("SELECT content FROM tool_uses"));
}

#[test]
fn what_was_forgotten_does_not_come_back_in_a_continued_session() {
    let world = World::new();
    let mut lines = Lines::new(&world);
    lines.user("Fix the login of the quince shop").says("Fixed, the quince shop works.");
    let text = lines.text.replace("\"uuid\":\"line-", "\"promptId\":\"prompt-of-the-session-1\",\"uuid\":\"line-");
    world.write(&format!("{FOLDER}/{SESSION}.jsonl"), &text);
    import(&world, &[]);
    assert_eq!(world.nmem(&["forget", "--session", "s1", "--yes"]).code, Some(0));
    // The client deletes old files itself. The session goes on under another id, with a copy of its past.
    fs::remove_file(world.folder.join(format!("{FOLDER}/{SESSION}.jsonl"))).unwrap();
    lines.text.clear();
    lines.user("Now the logout").says("There is none.");
    world.write(&format!("{FOLDER}/{OTHER}.jsonl"), &(text + &lines.text).replace(SESSION, OTHER));
    assert_eq!(counts(&import(&world, &[])).3["forgotten event"], 2);
    assert_eq!(world.sql("SELECT text FROM prompts ORDER BY id"), "Now the logout\nThere is none.");
}

#[test]
fn a_pause_of_a_project_holds_for_a_session_that_moved_into_it() {
    let mut world = World::new();
    let other = world.git_project("secret", "https://example.org/dev/secret.git");
    let now = world.now;
    world.now = NINE - 100 * DAY + 2 * MINUTE;
    assert_eq!(world.nmem(&["off", "--project", &other.display().to_string()]).code, Some(0));
    world.now += 10 * MINUTE;
    assert_eq!(world.nmem(&["on", "--project", &other.display().to_string()]).code, Some(0));
    world.now = now;
    let mut lines = Lines::new(&world);
    lines.user("Fix the login").says("Fixed.");
    lines.cwd = other.display().to_string();
    lines.user("And here the quince").says("The quince is fixed.");
    world.write(&format!("{FOLDER}/{SESSION}.jsonl"), &lines.text);
    import(&world, &[]);
    let stored = world.sql("SELECT text FROM prompts ORDER BY id");
    assert!(stored.contains("Fix the login") && !stored.contains("quince"), "{stored}");
}

#[test]
fn copies_that_a_killed_import_left_are_removed() {
    let world = World::new();
    let mut lines = Lines::new(&world);
    lines.work();
    world.write(&format!("{FOLDER}/{SESSION}.jsonl"), &lines.text);
    let left = "home/.local/share/nmem/import-999999999-0a1b/copy.db";
    world.write(left, "a copy of another program's database");
    import(&world, &[]);
    assert!(!world.folder.join(left).parent().unwrap().exists());
}

#[test]
fn a_file_that_was_replaced_is_read_from_its_beginning() {
    let world = World::new();
    let mut lines = Lines::new(&world);
    lines.user("Fix the login").says("Fixed.");
    world.write(&format!("{FOLDER}/{SESSION}.jsonl"), &lines.text);
    import(&world, &[]);
    let mut new = Lines { number: 70, ..Lines::new(&world) };
    new.user("Write the manual of the exporter, with an example").says("Written.").user("And an index").says("Added.");
    world.write(&format!("{FOLDER}/{SESSION}.jsonl"), &new.text);
    let report = import(&world, &[]);
    assert_eq!((counts(&report).0, counts(&report).3), (2, json!({})));
}
