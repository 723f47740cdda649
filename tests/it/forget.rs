//! Recorded data can be forgotten: by id, session, project, time and text, from every file.

use crate::world::World;
use serde_json::{Value, json};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

fn send(world: &World, name: &str, changes: &[(&str, Value)]) {
    assert_eq!(world.hook_with(name, changes).text(), "[exit 0]", "{name}");
}

fn prompt(world: &World, session: &str, text: &str) {
    let changes = [("/session_id", json!(session)), ("/prompt_id", json!(format!("{session} {text}"))), ("/prompt", json!(text))];
    send(world, "UserPromptSubmit", &changes);
}

fn command(world: &World, session: &str, id: &str, line: &str, out: &str) {
    let changes = [
        ("/session_id", json!(session)),
        ("/tool_use_id", json!(id)),
        ("/tool_input/command", json!(line)),
        ("/tool_response/stdout", json!(out)),
    ];
    send(world, "PostToolUse-Bash", &changes);
}

fn files_with(world: &World, word: &str) -> Vec<String> {
    let holds = |bytes: &[u8]| bytes.to_ascii_lowercase().windows(word.len()).any(|w| w == word.to_ascii_lowercase().as_bytes());
    world.all_bytes().into_iter().filter(|(_, b)| holds(b)).map(|(p, _)| p.display().to_string()).collect()
}

#[test]
fn a_word_is_gone_from_every_byte_while_another_session_writes() {
    let world = World::new();
    // Enough that words lie in many pages, old index segments and the log.
    for n in 0..120 {
        let word = if n % 10 == 3 { "Zanzibar" } else { "nothing" };
        prompt(&world, "first-session", &format!("the {word} deal, number {n}"));
        command(&world, "first-session", &format!("t{n}"), &format!("grep {word} notes-{n}"), &format!("found {word}s"));
    }
    send(
        &world,
        "PostToolUse-TaskCreate",
        &[("/session_id", json!("first-session")), ("/tool_input/subject", json!("call ZANZIBAR"))],
    );
    fs::write(world.data().join("nmem.db-rejected"), "{\"v\":9,\"text\":\"zanzibar\"}\n{\"v\":9,\"text\":\"other\"}\n").unwrap();
    fs::write(world.data().join("nmem.db-log"), "{\"at\":1,\"level\":\"error\",\"message\":\"no zanzibar\"}\n").unwrap();
    fs::write(world.data().join("nmem.db-broken-12345678"), "SQLite format 3\0 zanzibar").unwrap();
    fs::write(world.data().join("nmem.db-broken-12345678-wal"), "zanzibar").unwrap();
    let lock = world.lock();
    prompt(&world, "first-session", "waiting for Zanzibar");
    drop(lock);
    assert!(files_with(&world, "zanzibar").len() >= 5, "{:?}", files_with(&world, "zanzibar"));

    let dry = world.nmem(&["forget", "--match", "zanzibar", "--all-projects", "--dry-run"]);
    insta::assert_snapshot!(dry.text(), @"
    This would be deleted:
      p4    the Zanzibar deal, number 3
      p14   the Zanzibar deal, number 13
      p24   the Zanzibar deal, number 23
      p34   the Zanzibar deal, number 33
      p44   the Zanzibar deal, number 43
      p54   the Zanzibar deal, number 53
      p64   the Zanzibar deal, number 63
      p74   the Zanzibar deal, number 73
      p84   the Zanzibar deal, number 83
      p94   the Zanzibar deal, number 93
            and 3 more
      t4    grep Zanzibar notes-3
      t14   grep Zanzibar notes-13
      t24   grep Zanzibar notes-23
      t34   grep Zanzibar notes-33
      t44   grep Zanzibar notes-43
      t54   grep Zanzibar notes-53
      t64   grep Zanzibar notes-63
      t74   grep Zanzibar notes-73
      t84   grep Zanzibar notes-83
      t94   grep Zanzibar notes-93
            and 3 more
      13 prompts and answers
      13 tool uses
      1 entry of a task list
      1 line of $WORLD/home/.local/share/nmem/nmem.db-rejected
      1 line of $WORLD/home/.local/share/nmem/nmem.db-log
      $WORLD/home/.local/share/nmem/nmem.db-broken-12345678 (a broken database that was set aside; its content cannot be examined)
    [exit 0]
    ");
    let unasked = world.nmem(&["forget", "--match", "zanzibar", "--all-projects"]);
    assert_eq!(unasked.code, Some(2), "{}", unasked.text());
    assert!(!files_with(&world, "zanzibar").is_empty());

    let done = AtomicBool::new(false);
    let written = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut n = 0;
            while !done.load(Ordering::Relaxed) || n < 20 {
                command(&world, "second-session", &format!("w{n}"), "cargo test", "fine");
                n += 1;
            }
            n
        });
        let forgotten = world.nmem(&["forget", "--match", "zanzibar", "--all-projects", "--yes"]).text();
        done.store(true, Ordering::Relaxed);
        assert!(forgotten.ends_with("Forgotten. The text is gone from every file of nmem.\n[exit 0]"), "{forgotten}");
        writer.join().unwrap()
    });
    world.nmem(&["status"]);
    assert_eq!(files_with(&world, "zanzibar"), [] as [String; 0]);
    assert_eq!(world.count("SELECT count(*) FROM tool_uses WHERE session_id = 2"), written);
    assert_eq!(world.sql("SELECT count(*), max(seq), count(DISTINCT seq) FROM tool_uses WHERE session_id = 1"), "108|108|108");
    assert_eq!(world.sql("SELECT tool_uses, json_extract(kinds, '$.command'), tasks FROM sessions WHERE id = 1"), "108|108|[]");
    assert_eq!(world.read("home/.local/share/nmem/nmem.db-rejected"), "{\"v\":9,\"text\":\"other\"}\n");
    assert_eq!(world.sql("PRAGMA integrity_check"), "ok");
    assert!(world.nmem(&["doctor"]).stdout.contains("every row is indexed"));
    // The session goes on, without a gap.
    command(&world, "first-session", "later", "ls", "x");
    assert_eq!(world.count("SELECT max(seq) FROM tool_uses WHERE session_id = 1"), 109);
}

#[test]
fn single_rows_go_by_the_ids_that_are_printed() {
    let world = World::new();
    prompt(&world, "a-session", "keep this");
    prompt(&world, "a-session", "drop this");
    command(&world, "a-session", "t1", "drop that", "");
    command(&world, "a-session", "t2", "keep that", "");
    insta::assert_snapshot!(world.nmem(&["forget", "p2", "t1", "--yes"]).text(), @"
    This will be deleted:
      p2    drop this
      t1    drop that
      1 prompt or answer
      1 tool use
    Forgotten.
    [exit 0]
    ");
    assert_eq!(world.sql("SELECT group_concat(text) FROM prompts"), "keep this");
    assert_eq!(world.sql("SELECT seq, content, prompt_id FROM tool_uses"), "1|keep that|-");
    assert_eq!(world.nmem(&["search", "drop", "--all"]).stdout, "");
    insta::assert_snapshot!(world.nmem(&["forget", "p2"]).text(), @"
    --- stderr
    nmem: nothing has the id p2
      `nmem search` prints ids
    [exit 1]
    ");
    insta::assert_snapshot!(world.nmem(&["forget"]).text(), @"
    --- stderr
    nmem: no data selected
      give an id, --session, --project, --before or --match
    [exit 2]
    ");
    insta::assert_snapshot!(world.nmem(&["forget", "--match", "x", "--all-projects"]).text(), @"
    --- stderr
    nmem: --match needs at least three characters
      shorter texts occur almost everywhere
    [exit 2]
    ");
}

#[test]
fn a_session_goes_whole_and_does_not_come_back_from_its_transcript() {
    let world = World::new();
    let transcript = "home/.claude/projects/-p/session.jsonl";
    let path = json!(world.folder.join(transcript));
    let at_work = |name: &str, more: &[(&str, Value)]| {
        let mut changes = vec![("/session_id", json!("secret-session")), ("/transcript_path", path.clone())];
        changes.extend(more.iter().cloned());
        send(&world, name, &changes);
    };
    let thought = json!({"id": "m1", "model": "m", "usage": {"input_tokens": 7, "output_tokens": 1}, "content": [{"type": "thinking", "thinking": "about quinces"}]});
    world.write(transcript, "");
    at_work("UserPromptSubmit", &[("/prompt", json!("about quinces"))]);
    world.write(transcript, &format!("{}\n", json!({"type": "assistant", "message": thought})));
    prompt(&world, "other-session", "about pears");
    let by_prefix = world.nmem(&["forget", "--session", "secret-s", "--yes"]).text();
    assert!(by_prefix.starts_with("This will be deleted:\n  1 whole session: s1\n  1 prompt or answer\n"), "{by_prefix}");
    at_work("Stop", &[("/last_assistant_message", json!("quinces are done"))]);
    assert_eq!(files_with(&world, "quinces"), [] as [String; 0], "the turn that was forgotten stays so to its end");
    at_work("UserPromptSubmit", &[("/prompt", json!("next question")), ("/prompt_id", json!("p-2"))]);
    at_work("Stop", &[("/last_assistant_message", json!("next answer"))]);
    assert_eq!(world.sql("SELECT group_concat(text) FROM prompts"), "about pears,next question,next answer");
    assert_eq!(files_with(&world, "quinces"), [] as [String; 0]);
}

#[test]
fn a_project_goes_with_its_name_and_old_things_go_by_time() {
    let mut world = World::new();
    let other = world.git_project("falcon", "https://example.org/dev/falcon.git");
    let falcon = [("/cwd", json!(other)), ("/session_id", json!("falcon-session"))];
    send(&world, "UserPromptSubmit", &falcon);
    send(&world, "Stop", &falcon);
    prompt(&world, "old-session", "old things");
    world.minutes_later(60 * 24 * 10);
    prompt(&world, "new-session", "new things");
    insta::assert_snapshot!(world.nmem(&["forget", "--before", "5d", "--project", "--dry-run"]).text(), @"
    This would be deleted:
      1 whole session: s2
      1 prompt or answer
    [exit 0]
    ");
    world.nmem(&["forget", "--before", "5d", "--project", "--yes"]);
    assert_eq!(
        world.sql("SELECT group_concat(text, ',') FROM (SELECT text FROM prompts WHERE text LIKE '%things')"),
        "new things"
    );
    assert!(!files_with(&world, "falcon").is_empty());
    let folder = other.display().to_string();
    let gone = world.nmem(&["forget", "--project", &folder, "--yes"]).text();
    assert!(gone.contains("1 whole project: falcon\n  1 whole session: s1\n  2 prompts and answers\n"), "{gone}");
    assert_eq!(files_with(&world, "dev/falcon"), [] as [String; 0]);
    assert_eq!(world.sql("SELECT group_concat(name) FROM projects"), "project");
    // By text, a project goes whole whose name or folder holds it.
    send(&world, "UserPromptSubmit", &falcon);
    world.nmem(&["forget", "--match", "FALCON", "--all-projects", "--yes"]);
    assert_eq!(files_with(&world, "falcon"), [] as [String; 0]);
}

#[test]
fn a_word_goes_from_every_database_that_a_rule_names_and_quotes_are_found_in_what_is_kept_as_json() {
    let world = World::new();
    let rule = format!("[[folder]]\nmatch = \"{0}/acme\"\ndatabase = \"{0}/acme/.nmem/nmem.db\"\n", world.folder.display());
    world.write("home/.config/nmem/config.toml", &rule);
    fs::create_dir_all(world.folder.join("acme")).unwrap();
    let acme = json!(world.folder.join("acme"));
    send(&world, "UserPromptSubmit", &[("/cwd", acme), ("/session_id", json!("acme-session")), ("/prompt", json!("ask falcon"))]);
    send(&world, "PostToolUse-mcp__fake__echo", &[("/tool_input/text", json!("say \"falcon\"\nloud"))]);
    let said = world.nmem(&["forget", "--match", "say \"Falcon\"", "--all-projects", "--yes"]).text();
    assert!(said.contains("1 tool use\n"), "{said}");
    send(&world, "PostToolUse-Bash", &[("/tool_input/command", json!("ls falcon"))]);
    let said = world.nmem(&["forget", "--match", "falcon", "--all-projects", "--yes"]).text();
    assert!(
        said.contains("acme/.nmem/nmem.db:\n  p1    ask falcon\n") && said.contains("nmem.db:\n  t1    ls falcon\n"),
        "{said}"
    );
    for name in ["nmem.db", "nmem.db-wal"] {
        let bytes = fs::read(world.folder.join("acme/.nmem").join(name)).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("falcon"), "{name}");
    }
    assert_eq!(files_with(&world, "falcon"), [] as [String; 0]);
}

#[test]
fn text_is_forgotten_in_this_project_alone_unless_all_are_asked_for() {
    let world = World::new();
    let other = world.folder.join("dev/other");
    std::fs::create_dir_all(&other).unwrap();
    for (folder, id) in [(world.project(), "here"), (other, "there")] {
        let prompt = serde_json::json!({"hook_event_name": "UserPromptSubmit", "session_id": id, "cwd": folder, "prompt": "ask about falcons"});
        world.feed(&["record"], prompt.to_string().as_bytes());
    }
    let here = world.nmem(&["forget", "--match", "falcons", "--yes"]).text();
    assert!(here.contains("  p1    ask about falcons\n") && here.contains("Other data may still contain the text"), "{here}");
    assert_eq!(world.sql("SELECT text FROM prompts"), "ask about falcons");
    let all = world.nmem(&["forget", "--match", "falcons", "--all-projects", "--yes"]).text();
    assert!(all.contains("The text is gone from every file of nmem."), "{all}");
}
