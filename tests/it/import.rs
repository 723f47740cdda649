//! Past sessions of Claude Code: imported once, by the same rules as hooks, and what a reader must not fall for.

use crate::world::World;
use crate::world::session::{MINUTE, NINE, Session};
use crate::world::transcript::{FOLDER, Lines, SESSION, counts, import};
use serde_json::{Value, json};
use std::fs;

fn status(world: &World) -> (i64, i64, i64) {
    let status: Value = serde_json::from_str(&world.nmem(&["status", "--json"]).stdout).unwrap();
    let of = |key: &str| status["counts"][key].as_i64().unwrap_or_else(|| panic!("{status}"));
    (of("sessions"), of("prompts"), of("tool_uses"))
}

#[test]
fn a_past_session_becomes_units_and_memories_once() {
    let world = World::new();
    let mut lines = Lines::new(&world);
    lines.work();
    world.write(&format!("{FOLDER}/{SESSION}.jsonl"), &lines.text);
    let listed = world.nmem(&["import", "--dry-run"]);
    assert!(listed.stdout.starts_with("claude-code: 1 session in "), "{}", listed.stdout);
    assert_eq!(counts(&import(&world, &[])), (1, 3, 1, json!({})));
    let unit = world.nmem(&["units", "--json"]).lines().remove(0);
    assert_eq!(unit["state"], "closed");
    assert_eq!(unit["outcome"], "done");
    assert_eq!(unit["tokens"]["input"], 40, "of four messages");
    assert!(unit["started_at"].as_i64().unwrap() < NINE - 90 * 24 * 60 * MINUTE, "it keeps its time");
    let found = world.nmem(&["search", "--json", "expiry rounded down"]).lines();
    assert!(found[0]["created_at"].as_i64().unwrap() < NINE - 90 * 24 * 60 * MINUTE, "{found:?}");
    assert_eq!(world.nmem(&["import", "--dry-run"]).stdout, "No session is new since the last import.\n");
    let before = world.nmem(&["units", "--json"]).stdout;
    let again = import(&world, &[]);
    assert_eq!((again["agents"][0]["files"].clone(), again["agents"][0]["unchanged"].clone()), (json!(0), json!(1)));
    // What has grown is read from its last turn on.
    lines.user("commit it").uses(
        "t9",
        "Bash",
        json!({"command": "git commit -m 'Fix the expiry'"}),
        json!({"stdout": "[main 1234567] Fix the expiry"}),
    );
    lines.says("Committed.");
    world.write(&format!("{FOLDER}/{SESSION}.jsonl"), &lines.text);
    let grown = import(&world, &[]);
    assert_eq!(counts(&grown), (1, 1, 0, json!({})));
    assert!(grown["bytes"].as_u64().unwrap() < lines.text.len() as u64 / 2);
    assert_ne!(world.nmem(&["units", "--json"]).stdout, before);
    assert_eq!(status(&world), (1, 2, 4));
}

#[test]
fn what_looks_like_a_prompt_is_none_and_what_does_not_may_be_one() {
    let world = World::new();
    let mut lines = Lines::new(&world);
    let queue = |operation: &str, content: Option<&str>| {
        let mut line = json!({"type": "queue-operation", "operation": operation});
        if let Some(content) = content {
            line["content"] = json!(content);
        }
        line
    };
    lines.add(json!({"type": "user", "isMeta": true, "message": {"content": "Caveat: do not answer"}}));
    lines.user("<command-name>/clear</command-name>\n<command-message>clear</command-message>\n<command-args></command-args>");
    lines.user("<local-command-stdout>cleared</local-command-stdout>");
    lines.user("<system-reminder>\nThe user opened a file.\n</system-reminder>\nWrite the manual of the exporter");
    // Typed while the agent works: no other line has it.
    lines.add(queue("enqueue", Some("{\"task_id\":\"b1\",\"description\":\"cargo test\"}")));
    lines.add(queue("enqueue", Some("and add an example"))).add(queue("remove", None));
    lines.says("Written.");
    lines.add(queue("enqueue", Some("now the index"))).add(queue("dequeue", None)).user("now the index");
    lines.says("Added the index.");
    lines.user("<task-notification>\n<task-id>b1</task-id>\n</task-notification>").says("The tests passed.");
    lines.user("<command-message>review</command-message>\n<command-name>/review</command-name>\n<command-args>the manual</command-args>");
    lines.user("[Request interrupted by user]");
    lines.add(json!({"type": "user", "isCompactSummary": true, "message": {"content": "This session is being continued"}}));
    let queued = json!({"type": "queued_command", "prompt": "also in German", "origin": {"kind": "human"}});
    lines.add(json!({"type": "attachment", "attachment": queued}));
    world.write(&format!("{FOLDER}/{SESSION}.jsonl"), &lines.text);
    assert_eq!(counts(&import(&world, &[])).0, 5);
    let shown = world.nmem(&["search", "--all", "--kind", "prompt", "--json", "--limit", "0"]).lines();
    let mut titles: Vec<&str> = shown.iter().map(|hit| hit["snippet"].as_str().unwrap()).collect();
    titles.sort_unstable();
    let all = titles.join("\n");
    for prompt in
        ["Write the manual of the exporter", "and add an example", "now the index", "also in German", "/review the manual"]
    {
        assert!(all.contains(prompt), "{prompt}: {all}");
    }
    assert!(!all.contains("Caveat") && !all.contains("task-id") && !all.contains("continued") && !all.contains("opened a file"));
}

#[test]
fn a_turn_that_was_open_at_an_import_is_read_again_when_it_is_over() {
    let mut world = World::new();
    let mut lines = Lines::new(&world);
    lines.at = world.now - 10 * MINUTE;
    lines.user("Fix the login").assistant("m1", json!({"type": "text", "text": "The login is fixed."}), "");
    let file = format!("{FOLDER}/{SESSION}.jsonl");
    world.write(&file, &lines.text);
    let changed_at = std::time::UNIX_EPOCH + std::time::Duration::from_millis(lines.at as u64);
    fs::File::options().write(true).open(world.folder.join(&file)).unwrap().set_modified(changed_at).unwrap();
    let said = |world: &World| world.sql("SELECT text FROM prompts ORDER BY id");
    import(&world, &[]);
    assert_eq!(said(&world), "Fix the login");
    world.now += 60 * MINUTE;
    assert_eq!(import(&world, &[])["agents"][0]["unchanged"], 1);
    world.now += 12 * 60 * MINUTE;
    import(&world, &[]);
    assert_eq!(said(&world), "Fix the login\nThe login is fixed.");
    assert_eq!(import(&world, &[])["agents"][0]["unchanged"], 1, "it is over");
    // A version that says when a turn ended need not wait.
    let mut lines = Lines { at: world.now - 10 * MINUTE, number: 70, ..Lines::new(&world) };
    lines.user("Now the logout").assistant("m2", json!({"type": "text", "text": "The logout works."}), "");
    lines.add(json!({"type": "system", "subtype": "turn_duration", "durationMs": 900}));
    world.write(&file.replace("5a4b", "6b5c"), &lines.text.replace("5a4b", "6b5c"));
    import(&world, &[]);
    assert!(said(&world).ends_with("Now the logout\nThe logout works."), "{}", said(&world));
}

#[test]
fn a_continued_session_does_not_count_its_past_twice() {
    let world = World::new();
    let mut lines = Lines::new(&world);
    lines.work();
    world.write(&format!("{FOLDER}/{SESSION}.jsonl"), &lines.text);
    let other = "223b2708-5340-4532-879b-05e5d9aa16f1";
    let mut continued = Lines { text: lines.text.replace(SESSION, other), ..Lines::new(&world) };
    (continued.at, continued.number) = (lines.at, 100);
    continued.add(json!({"type": "queue-operation", "operation": "dequeue", "uuid": null}));
    continued.user("Now fix the logout as well").says("There is no logout.");
    let text = continued.text.replace(&format!("\"sessionId\":\"{SESSION}\""), &format!("\"sessionId\":\"{other}\""));
    world.write(&format!("{FOLDER}/{other}.jsonl"), &text);
    let (prompts, calls, _, skipped) = counts(&import(&world, &[]));
    assert_eq!((prompts, calls), (2, 3));
    assert_eq!(skipped["copied from another session"], 8);
}

#[test]
fn what_hooks_recorded_and_import_finds_is_one() {
    let world = World::new();
    let mut session = Session::new(&world, SESSION);
    session.at = NINE - 100 * 24 * 60 * MINUTE;
    session.starts("startup");
    session.ask("Fix the login: tokens expire too early. Always round expiry up to the next minute.");
    let path = world.project().join("src/login.rs");
    session.send(json!({"hook_event_name": "PostToolUseFailure", "tool_name": "Bash", "tool_use_id": "t1",
        "tool_input": {"command": "cargo test login"}, "error": "Exit code 101\ntest login::expiry ... FAILED"}));
    session.send(json!({"hook_event_name": "PostToolUse", "tool_name": "Edit", "tool_use_id": "t2",
        "tool_input": {"file_path": path, "old_string": "a", "new_string": "b"}, "tool_response": {"filePath": path}}));
    session.close("Fixed. The root cause was that expiry was rounded down to the minute, so tokens expired early.").end();
    let (sessions, prompts, tool_uses) = status(&world);
    let before = world.nmem(&["units", "--json"]).lines().remove(0);
    let mut lines = Lines::new(&world);
    lines.work();
    world.write(&format!("{FOLDER}/{SESSION}.jsonl"), &lines.text);
    import(&world, &[]);
    assert_eq!(status(&world), (sessions, prompts, tool_uses + 1), "one call that no hook brought");
    let after = world.nmem(&["units", "--json"]).lines().remove(0);
    assert_eq!((&after["state"], &after["outcome"], &after["title"]), (&before["state"], &before["outcome"], &before["title"]));
}

#[test]
fn an_answer_before_an_interrupt_counts_if_the_turn_had_ended() {
    let world = World::new();
    let mut lines = Lines::new(&world);
    lines.user("Write the manual").says("The manual is written.").add(json!({"type": "system", "subtype": "stop_hook_summary"}));
    lines
        .user("[Request interrupted by user]")
        .user("And an index")
        .says("I am adding the index")
        .user("[Request interrupted by user]");
    world.write(&format!("{FOLDER}/{SESSION}.jsonl"), &lines.text);
    import(&world, &[]);
    assert_eq!(world.sql("SELECT text FROM prompts ORDER BY id"), "Write the manual\nThe manual is written.\nAnd an index");
}

#[test]
fn hooks_and_import_make_the_same_of_a_session() {
    let commit = "[main 1234567] Fix the expiry\n 1 file changed, 2 insertions(+)";
    let (login, manual) = ("src/login.rs", "docs/manual.md");
    let asked = "Fix the login: tokens expire too early. Always round expiry up to the next minute.";
    let closed = "Fixed. The root cause was that expiry was rounded down to the minute, so tokens expired early.";
    let failure = "Exit code 101\ntest login::expiry ... FAILED\nassertion failed: 59 != 60";
    let by_hooks = World::new();
    let mut session = Session::new(&by_hooks, SESSION);
    session.at = NINE - 100 * 24 * 60 * MINUTE - MINUTE;
    session.starts("startup");
    session.ask(asked).fails("cargo test login", failure);
    let edit = |world: &World| json!({"file_path": world.project().join(login), "old_string": "floor", "new_string": "ceil"});
    let write = |world: &World| json!({"file_path": world.project().join(manual), "content": "# Manual\n\nRun it.\n"});
    let ran = |stdout: &str| json!({"stdout": stdout, "stderr": "", "interrupted": false});
    session.uses("Edit", edit(&by_hooks), json!({"filePath": by_hooks.project().join(login)}));
    session.bash("cargo test login", "test result: ok. 4 passed").bash("git commit -am 'Fix the expiry'", commit).close(closed);
    session.ask("Now write the manual of the exporter, with an example").uses(
        "Write",
        write(&by_hooks),
        json!({"type": "create"}),
    );
    session.close("The manual is in docs/manual.md. Next: a page about errors.").end();
    let by_import = World::new();
    let mut lines = Lines::new(&by_import);
    lines.user(asked).fails("t1", "cargo test login", failure);
    lines.uses("t2", "Edit", edit(&by_import), json!({"filePath": by_import.project().join(login)}));
    lines.uses("t3", "Bash", json!({"command": "cargo test login"}), ran("test result: ok. 4 passed"));
    lines.uses("t4", "Bash", json!({"command": "git commit -am 'Fix the expiry'"}), ran(commit)).says(closed);
    lines.user("Now write the manual of the exporter, with an example").uses(
        "t5",
        "Write",
        write(&by_import),
        json!({"type": "create"}),
    );
    lines.says("The manual is in docs/manual.md. Next: a page about errors.");
    by_import.write(&format!("{FOLDER}/{SESSION}.jsonl"), &lines.text);
    import(&by_import, &[]);
    for same in [
        "SELECT number, source, text FROM prompts ORDER BY id",
        "SELECT tool_name, kind, content, path, input, outcome, succeeded, command_kind FROM tool_uses ORDER BY id",
        "SELECT title, state, outcome, intent FROM work_units ORDER BY id",
        "SELECT path, sum(reads), sum(edits) FROM step_files JOIN steps s ON s.id = step_id GROUP BY work_unit_id, path ORDER BY work_unit_id, path",
        "SELECT kind, type, title, body, content FROM memories ORDER BY kind, title, id",
        "SELECT prompts, tool_uses, failures, kinds FROM sessions",
    ] {
        let (hooks, import) = (by_hooks.sql(same), by_import.sql(same));
        assert!(!hooks.is_empty(), "{same}");
        assert_eq!(import, hooks, "{same}");
    }
}

#[test]
fn the_same_words_twice_are_two_prompts_and_a_sidechain_is_a_subagents() {
    let world = World::new();
    let mut lines = Lines::new(&world);
    lines.user("go on").says("Done with the first part.");
    lines.user("go on").says("Done with the second part.");
    let call = json!([{"type": "tool_use", "id": "s1", "name": "Bash", "input": {"command": "ls docs"}}]);
    lines.add(json!({"type": "assistant", "isSidechain": true, "message": {"id": "m", "content": call}}));
    let result = json!([{"type": "tool_result", "tool_use_id": "s1", "content": "manual.md"}]);
    lines.add(json!({"type": "user", "isSidechain": true, "message": {"content": result}}));
    world.write(&format!("{FOLDER}/{SESSION}.jsonl"), &lines.text);
    let report = import(&world, &[]);
    assert_eq!(counts(&report), (2, 0, 0, json!({})));
    assert_eq!(report["agents"][0]["subagent_tool_uses"], 1);
    assert_eq!(world.sql("SELECT content, metadata ->> 'agent_id' FROM tool_uses"), "ls docs|sidechain");
}

#[test]
fn each_session_is_read_by_the_settings_of_its_folder() {
    let world = World::new();
    let (project, own) = (world.project(), world.home().join("acme/nmem.db"));
    let rule = format!("[[folder]]\nmatch = \"{}/**\"\ndatabase = \"{}\"\n", project.display(), own.display());
    world.write("home/.config/nmem/config.toml", &rule);
    world.write("project/.nmem.toml", "redact = [\"codename-[a-z]+\"]\n");
    assert_eq!(world.nmem(&["trust", "--yes"]).code, Some(0));
    let mut lines = Lines::new(&world);
    lines.user("Ship codename-falcon on Monday, please").says("codename-falcon ships on Monday.");
    world.write(&format!("{FOLDER}/{SESSION}.jsonl"), &lines.text);
    assert_eq!(counts(&import(&world, &[])).0, 1);
    let stored = [fs::read(&own).unwrap(), fs::read(own.with_extension("db-wal")).unwrap_or_default()].concat();
    let holds = |word: &[u8]| stored.windows(word.len()).any(|part| part == word);
    assert!(holds(b"ships on Monday"), "the folder's own database");
    assert!(!holds(b"falcon"), "the project's own pattern hides it");
    assert_eq!(import(&world, &[])["agents"][0]["unchanged"], 1, "its own database knows it");
}

#[test]
fn a_pause_holds_for_imports_and_leaves_no_trace() {
    let world = World::new();
    let mut lines = Lines::new(&world);
    lines.work();
    world.write(&format!("{FOLDER}/{SESSION}.jsonl"), &lines.text);
    assert_eq!(world.nmem(&["off"]).code, Some(0));
    assert_eq!(counts(&import(&world, &[])), (0, 0, 0, json!({"session in a folder where recording is off": 1})));
    assert_eq!(world.nmem(&["on"]).code, Some(0));
    assert_eq!(counts(&import(&world, &[])), (1, 3, 1, json!({})));
}

#[test]
fn odd_lines_and_files_that_cannot_be_read_stop_nothing() {
    let world = World::new();
    let mut lines = Lines::new(&world);
    lines.work();
    for odd in ["[1, 2]", "\"text\"", "7", "null", "{}"] {
        lines.text += &format!("{odd}\n");
    }
    for message in [json!("text"), json!(null), json!([1]), json!({"content": 7}), json!({"content": [null, "x", 5]})] {
        lines.add(json!({"type": "user", "message": message.clone()})).add(json!({"type": "assistant", "message": message}));
    }
    lines.add(json!({"type": "progress", "data": "x"})).add(json!({"type": "attachment", "attachment": []}));
    world.write(&format!("{FOLDER}/{SESSION}.jsonl"), &lines.text);
    let meta = json!({"type": "session_meta", "payload": {"id": "codex-session-that-is-cut", "cwd": lines.cwd}}).to_string();
    let packed = ruzstd::encoding::compress_to_vec(meta.repeat(9000).as_bytes(), ruzstd::encoding::CompressionLevel::Fastest);
    let folder = world.home().join(".codex/sessions");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("rollout-1.jsonl.zst"), [&packed[..packed.len() / 2], b"no zstd here"].concat()).unwrap();
    let report = import(&world, &[]);
    let claude = report["agents"].as_array().unwrap().iter().find(|agent| agent["agent"] == "claude-code").unwrap();
    assert_eq!((claude["prompts"].clone(), claude["tool_uses"].clone()), (json!(1), json!(3)));
    assert_eq!(claude["skipped"]["line that is not JSON"], 4);
    let text = world.nmem(&["import", "--agent", "codex"]);
    assert_eq!(text.code, Some(0), "{}", text.text());
}

#[test]
fn a_file_without_work_is_no_reason_to_doubt_the_format() {
    let world = World::new();
    let mut lines = Lines::new(&world);
    lines.user("<command-name>/exit</command-name>\n<command-message>exit</command-message>");
    world.write(&format!("{FOLDER}/{SESSION}.jsonl"), &lines.text);
    let report = import(&world, &[]);
    assert_eq!((report["agents"][0]["gave_nothing"].clone(), counts(&report).0), (json!(false), 0));
    insta::assert_snapshot!(world.nmem(&["import"]).stdout.split("MB").next().unwrap(), @r"
    claude-code: nothing new
      1 file is unchanged since the last import
    0.0
    ");
}

#[test]
fn broken_lines_are_named_and_a_store_that_gives_nothing_is_said_to() {
    let world = World::new();
    let mut lines = Lines::new(&world);
    lines.work();
    let text = lines.text.replacen("{\"", "\u{0}{\"", 1) + "{\"type\":\"user\",\"mess";
    world.write(&format!("{FOLDER}/{SESSION}.jsonl"), &text);
    let report = import(&world, &[]);
    assert_eq!(report["agents"][0]["skipped"]["line that is not JSON"], 1, "the last line is still being written");
    assert_eq!(report["agents"][0]["broken_lines"][0]["line"], 1);
    let odd = World::new();
    odd.write(&format!("{FOLDER}/{SESSION}.jsonl"), &json!({"type": "unheard-of", "sessionId": SESSION}).to_string());
    assert!(
        odd.nmem(&["import"]).stdout.contains("1 file gave nothing: the format may have changed"),
        "{}",
        odd.nmem(&["import"]).stdout
    );
    odd.write("elsewhere/notes.jsonl", "{\"a\":1}\n");
    let elsewhere = odd.home().join("../elsewhere");
    let out = odd.nmem(&["import", elsewhere.to_str().unwrap()]);
    assert!(out.stdout.contains("1 file is of no known format"), "{}", out.stdout);
    assert_eq!(odd.nmem(&["import", "/no/such/folder"]).code, Some(1));
}

#[test]
fn secrets_of_past_sessions_reach_no_byte_of_the_database() {
    let world = World::new();
    let key = ["ghp", "_", "16C7e42F292c6912E7710c838347Ae178B4a"].concat();
    let mut lines = Lines::new(&world);
    lines.user(&format!("Use {key} as the token"));
    lines.fails(
        "t1",
        &format!("curl -H 'Authorization: Bearer {key}' https://example.org"),
        &format!("Exit code 22\ntoken={key} refused"),
    );
    lines.says(&format!("The token {key} was refused."));
    world.write(&format!("{FOLDER}/{SESSION}.jsonl"), &lines.text);
    import(&world, &[]);
    for entry in fs::read_dir(world.home().join(".local/share/nmem")).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap_or_default();
        assert!(!bytes.windows(key.len()).any(|window| window == key.as_bytes()));
    }
}
