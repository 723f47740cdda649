//! Secrets that an older nmem let through are removed from every byte: by `nmem doctor --fix`, and once after an upgrade.

use crate::world::World;
use serde_json::json;
use std::fs;

/// Built from parts, so that no scanner of repositories takes this file for a leak.
fn key() -> String {
    ["gh", "p_x7Kq2mPz9LrT4vWb8NsD1fGh6JcY3aE5uQ0o"].concat()
}

fn holding(world: &World, text: &str) -> Vec<String> {
    let holds = |bytes: &[u8]| bytes.windows(text.len()).any(|w| w.eq_ignore_ascii_case(text.as_bytes()));
    world.all_bytes().into_iter().filter(|(_, b)| holds(b)).map(|(p, _)| p.display().to_string()).collect()
}

/// A database in which an older nmem stored a key in every kind of column.
fn leaky() -> World {
    let world = World::new();
    world.silently(&["UserPromptSubmit", "PostToolUse-Bash", "PostToolUse-Edit", "Stop"]);
    let key = key();
    world
        .connect()
        .execute_batch(&format!(
            "UPDATE prompts SET text = text || ' with {key} in it';
             UPDATE tool_uses SET content = 'deploy {key}', input = '{{\"command\":\"deploy {key}\"}}', outcome = 'used {key}',
               metadata = json_set(coalesce(metadata, '{{}}'), '$.description', 'password: \"{key}'), tool_use_id = id || '-{key}';
             UPDATE sessions SET tasks = '[{{\"id\":\"1\",\"subject\":\"rotate {key}\",\"status\":\"pending\"}}]', agent_session_id = 's-{key}';
             INSERT OR IGNORE INTO step_files SELECT step_id, 'conf/{key}.txt', 1, 0 FROM step_files;
             UPDATE work_units SET intent = 'use {key}';
             UPDATE meta SET value = 1 WHERE key = 'redaction_version'"
        ))
        .unwrap();
    fs::write(world.data().join("nmem.db-log"), format!("{{\"at\":1,\"level\":\"error\",\"message\":\"no {key}\"}}\n")).unwrap();
    fs::write(world.data().join("nmem.db-rejected"), format!("{{\"v\":9,\"text\":\"{key}\"}}\n{{\"v\":9,\"text\":\"other\"}}\n"))
        .unwrap();
    assert!(holding(&world, &key[4..]).len() >= 3);
    world
}

#[test]
fn the_first_command_after_an_upgrade_cleans_what_is_stored_and_says_so() {
    let world = leaky();
    let rows = world.count("SELECT count(*) FROM tool_uses");
    // A hook leaves it alone: it has no time for that.
    world.silently(&["UserPromptSubmit"]);
    assert!(!holding(&world, &key()[4..]).is_empty());

    let first = world.nmem(&["units"]);
    assert!(
        first.stderr.contains("nmem: checking stored texts with this version's rules for secrets, once after the upgrade\n"),
        "{}",
        first.stderr
    );
    assert!(first.stderr.contains(" texts were cleaned of secrets"), "{}", first.stderr);
    assert_eq!(holding(&world, &key()[4..]), [] as [String; 0]);
    assert_eq!(fs::read_to_string(world.data().join("nmem.db-rejected")).unwrap().lines().count(), 2, "no event is lost");
    // The rows are all there, what surrounded the key too, and JSON is JSON.
    assert_eq!(world.count("SELECT count(*) FROM tool_uses"), rows);
    assert_eq!(
        world.sql("SELECT DISTINCT outcome, json_valid(metadata), json_valid(input) FROM tool_uses"),
        "used [redacted:github-token#MARK]|1|1".replace("#MARK", &mark(&world))
    );
    assert_eq!(world.sql("SELECT count(*) - count(DISTINCT tool_use_id) FROM tool_uses"), "0", "ids stay different");
    assert_eq!(world.nmem(&["units"]).stderr, "", "once");
    assert!(world.nmem(&["doctor"]).text().contains("ok: secrets: none in stored texts"));
}

/// The hash in the mark, from a row.
fn mark(world: &World) -> String {
    let outcome = world.sql("SELECT DISTINCT outcome FROM tool_uses");
    outcome.split("github-token").nth(1).unwrap().split(']').next().unwrap().to_string()
}

#[test]
fn doctor_reports_old_secrets_and_removes_them() {
    let world = leaky();
    let said = world.nmem(&["doctor"]).text();
    assert!(said.contains("problem: secrets: ") && said.contains("--fix replaces it by a mark, in every byte"), "{said}");
    assert!(!holding(&world, &key()[4..]).is_empty(), "only with --fix");
    let said = world.nmem(&["doctor", "--fix"]).text();
    assert!(said.contains("fixed: secrets: "), "{said}");
    assert_eq!(holding(&world, &key()[4..]), [] as [String; 0]);
}

#[test]
fn a_pattern_that_came_later_reaches_the_words_of_the_index_too() {
    let world = World::new();
    for n in 0..40 {
        let prompt = format!("number {n} of the pelican4711 contract");
        let changes = [("/prompt", json!(prompt)), ("/prompt_id", json!(format!("p{n}")))];
        assert_eq!(world.hook_with("UserPromptSubmit", &changes).text(), "[exit 0]");
    }
    assert!(!holding(&world, "pelican4711").is_empty());
    world.write("home/.config/nmem/config.toml", "redact = [\"pelican[0-9]+\"]\n");
    let said = world.nmem(&["doctor", "--fix"]).text();
    assert!(said.contains("fixed: secrets: "), "{said}");
    assert_eq!(holding(&world, "pelican"), [] as [String; 0]);
    assert_eq!(world.sql("SELECT text FROM prompts WHERE number = 3"), "number 2 of the [redacted:own-pattern] contract");
}

#[test]
fn a_broken_database_that_holds_a_secret_is_named() {
    let world = leaky();
    fs::write(world.data().join("nmem.db-broken-12345678"), format!("SQLite format 3\0\u{1}\u{2}text {}\0", key())).unwrap();
    let said = world.nmem(&["doctor", "--fix"]).text();
    assert!(said.contains("nmem.db-broken-12345678 holds what today's rules take for a secret"), "{said}");
    assert!(said.contains("delete it: a broken database cannot be cleaned"), "{said}");
}
