//! Work units, as their users see them: through the hooks, and through `nmem units`.

use crate::world::World;
use crate::world::session::{MINUTE, Session};
use insta::assert_snapshot;
use serde_json::{Value, json};

/// A login is fixed, tested, committed; then the user asks for something else, and goes on with it.
fn a_morning<'a, 'b>(session: &'b mut Session<'a>) -> &'b mut Session<'a> {
    session.ask("The login page rejects valid passwords with an umlaut, please find out why and fix the password hashing");
    session.edit("src/login/password.rs").edit("src/login/hash.rs");
    session.bash("cargo test login", "test result: ok. 12 passed");
    session.bash("git commit -am 'login: hash passwords as NFC'", "[main 1a2b3c4] login: hash passwords as NFC");
    session.close("Done: passwords are normalised before hashing, all tests pass. I committed it.");
    session.at += 40 * MINUTE;
    session.ask("Now let's write the release notes: collect the merged pull requests since version 2.3 and add a changelog section for customers");
    session.bash("gh pr list --state merged", "#41 faster export\n#44 darker theme");
    session.edit("docs/CHANGELOG.md").edit("docs/release-notes.md");
    session.close("The release notes for version 2.4 are written. Shall I also mention the darker theme?");
    session.ask("yes please");
    session.edit("docs/release-notes.md");
    session.close("Added the darker theme to the release notes.")
}

fn units(world: &World, args: &[&str]) -> Vec<Value> {
    let said = world.nmem(&[&["units", "--json", "--limit", "0"], args].concat());
    said.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_new_goal_begins_a_unit_and_a_yes_goes_on_with_it() {
    let world = World::new();
    a_morning(&mut Session::new(&world, "morning-of-two-things")).end();
    assert_snapshot!(world.nmem(&["units"]).text(), @"
    2026-11-20
    u2  09:49  9 min
        Write the release notes: collect the merged pull requests
        2 prompts (2-3), tool uses: investigation 2 → execution 1 → investigation 1 → execution 1 → investigation 1 → execution 1
        docs/release-notes.md (2 edits), docs/CHANGELOG.md (1 edit)
    u1  09:01  7 min  done
        login: hash passwords as NFC
        prompt 1, tool uses: investigation 1 → execution 1 → investigation 1 → execution 1 → verification 1 → completion 1
        src/login/hash.rs (1 edit), src/login/password.rs (1 edit)
        1a2b3c4 login: hash passwords as NFC
    [exit 0]
    ");
    let units = units(&world, &[]);
    assert_eq!(units.iter().map(|unit| unit["prompts"].clone()).collect::<Vec<_>>(), [json!([2, 3]), json!([1])]);
    assert_eq!(units[0]["boundary"]["prompt"], 2);
    assert!(units[0]["boundary"]["score"].as_f64().unwrap() > 0.0);
    let signal = &units[0]["boundary"]["signals"]["committed_before"];
    assert!(signal["value"] == 1.0 && signal["weight"].as_f64().unwrap() > 0.0, "{signal}");
    assert_eq!(units[1]["commits"], json!([{"sha": "1a2b3c4", "subject": "login: hash passwords as NFC"}]));
    assert_eq!(units[1]["files"][0], json!({"path": "src/login/hash.rs", "reads": 1, "edits": 1}));
}

#[test]
fn why_explains_in_words_and_a_report_can_be_sent() {
    let world = World::new();
    a_morning(&mut Session::new(&world, "morning-of-two-things")).end();
    let why = world.nmem(&["units", "--why"]).text();
    assert!(why.contains("begins at prompt 2: ") && why.contains("a commit right before it (committed_before 1.00 × "), "{why}");
    assert_snapshot!(world.nmem(&["units", "--format", "md"]).text(), @"
    # project: 2026-11-14 to 2026-11-21

    2 work units in 16 min: 1 commit, 4 files changed.

    ## Friday, 2026-11-20

    - **login: hash passwords as NFC** (done, 7 min)
      - `1a2b3c4` login: hash passwords as NFC
      - changed `src/login/hash.rs`, `src/login/password.rs`
    - **Write the release notes: collect the merged pull requests** (9 min)
      - changed `docs/release-notes.md`, `docs/CHANGELOG.md`
    [exit 0]
    ");
    assert_snapshot!(world.nmem(&["show", "u1"]).text(), @"
    u1  09:01  7 min  done  Claude Code
        login: hash passwords as NFC
        prompt 1, tool uses: investigation 1 → execution 1 → investigation 1 → execution 1 → verification 1 → completion 1
        src/login/hash.rs (1 edit), src/login/password.rs (1 edit)
        1a2b3c4 login: hash passwords as NFC
        session s1

      memories:
      m1 change login: hash passwords as NFC
    [exit 0]
    ");
}

#[test]
fn what_a_unit_was_is_in_the_next_session_s_context() {
    let world = World::new();
    a_morning(&mut Session::new(&world, "morning-of-two-things")).end();
    let text: Value = world.nmem(&["context", "--json"]).json();
    let text = text["text"].as_str().unwrap();
    assert!(text.contains("- \"Write the release notes: collect the merged pull requests\" (u2)"), "{text}");
}

#[test]
fn a_resumed_session_goes_on_with_its_unit_and_clear_begins_one() {
    let world = World::new();
    let mut session = Session::new(&world, "resumed-and-cleared");
    session.ask("Please add a dark theme to the settings page").edit("src/theme.rs").close("Half of it is there.").end();
    assert_eq!(units(&world, &[])[0]["closed_by"], "session end");
    session.send(json!({"hook_event_name": "SessionStart", "source": "resume"}));
    session.ask("go on").edit("src/theme.rs").close("The dark theme is there.");
    let one = units(&world, &[]);
    assert_eq!((one.len(), &one[0]["state"], &one[0]["prompts"]), (1, &json!("open"), &json!([1, 2])));
    session.send(json!({"hook_event_name": "SessionStart", "source": "clear"}));
    session.ask("go on").edit("src/theme.rs").close("More of the theme.");
    let two = units(&world, &[]);
    assert_eq!((two.len(), &two[0]["boundary"]["reason"], &two[1]["closed_by"]), (2, &json!("/clear"), &json!("clear")));
}

#[test]
fn compaction_is_no_boundary_and_sessions_beside_each_other_stay_apart() {
    let world = World::new();
    let (mut a, mut b) = (Session::new(&world, "session-a-of-two"), Session::new(&world, "session-b-of-two"));
    a.ask("Please make the export of large tables faster").edit("src/export.rs");
    b.ask("Write a test for the importer").edit("tests/import.rs");
    a.send(json!({"hook_event_name": "SessionStart", "source": "compact"}));
    a.edit("src/export.rs").close("The export streams now.");
    b.edit("tests/import.rs").close("The importer has a test.");
    let files = |id: &str| {
        let units = units(&world, &["--session", id]);
        assert_eq!(units.len(), 1);
        units[0]["files"].as_array().unwrap().iter().map(|f| f["path"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(files("session-a-of-two"), [json!("src/export.rs")]);
    assert_eq!(files("session-b-of-two"), [json!("tests/import.rs")]);
}

#[test]
fn a_unit_is_closed_when_its_client_is_gone_or_silent() {
    let world = World::new();
    let mut left = Session::new(&world, "left-open-by-its-client");
    left.ask("Please look into the flaky test").edit("tests/flaky.rs");
    assert_eq!(units(&world, &[])[0]["state"], "open");
    let mut next = Session::new(&world, "the-next-session-here");
    next.send(json!({"hook_event_name": "SessionStart", "source": "startup"}));
    assert_eq!(units(&world, &[])[0]["state"], "open", "another session is no reason");
    next.at += 13 * 60 * MINUTE;
    next.send(json!({"hook_event_name": "SessionStart", "source": "startup"}));
    assert_eq!(units(&world, &[])[0]["closed_by"], "silence");
    left.at = next.at;
    left.ask("and now?").close("It is flaky because of the clock.");
    assert_eq!(units(&world, &["--session", "left-open-by-its-client"]).len(), 1, "its unit goes on");
}

#[test]
fn a_subagent_s_work_belongs_to_the_unit_that_started_it_also_when_it_reports_late() {
    let world = World::new();
    let mut session = Session::new(&world, "with-a-late-subagent");
    a_morning(&mut session);
    let late = json!({"hook_event_name": "PostToolUse", "tool_name": "Read", "tool_use_id": "late", "agent_id": "a1",
        "tool_input": {"file_path": world.project().join("src/login/late.rs")}, "tool_response": {"type": "text"}});
    session.asked = 1;
    session.send(late);
    let login = &units(&world, &[])[1];
    assert!(login["files"].as_array().unwrap().iter().any(|file| file["path"] == "src/login/late.rs"), "{login}");
}

#[test]
fn what_comes_for_a_distilled_unit_is_its_addendum() {
    let world = World::new();
    let mut session = Session::new(&world, "with-a-distilled-unit");
    a_morning(&mut session);
    // What distilling writes.
    let distilled = "UPDATE work_units SET state = 'distilled', distilled_seq = 6 WHERE id = 1; UPDATE steps SET settled = 1";
    world.connect().execute_batch(distilled).unwrap();
    session.asked = 1;
    session.edit("src/login/late.rs");
    let login = &units(&world, &[])[1];
    assert_eq!((&login["state"], &login["addendum"], &login["tool_uses"]), (&json!("distilled"), &json!(2), &json!(8)));
}

#[test]
fn a_slash_command_names_its_unit() {
    let world = World::new();
    let mut session = Session::new(&world, "begun-by-a-command");
    session.ask("/review").edit("src/a.rs").close("Reviewed.").ask("does the migration create a new branch?").close("Yes.");
    assert_eq!(units(&world, &[])[0]["intent"], "/review");
}

#[test]
fn what_is_forgotten_is_in_no_unit() {
    let world = World::new();
    a_morning(&mut Session::new(&world, "morning-of-two-things")).end();
    world.nmem(&["forget", "--match", "umlaut", "--all-projects", "--yes"]);
    assert!(!world.nmem(&["units", "--json", "--limit", "0"]).text().contains("umlaut"));
    let commit = world.count("SELECT id FROM tool_uses WHERE command_kind = 'commit'");
    world.nmem(&["forget", &format!("t{commit}"), "--yes"]);
    let login = &units(&world, &["u1"])[0];
    assert_eq!((&login["commits"], &login["evidence"]), (&json!([]), &json!("checks passed after the last change")));
    assert_eq!(login["phases"].as_array().unwrap().iter().map(|p| p["tool_uses"].as_i64().unwrap()).sum::<i64>(), 5);
    world.nmem(&["forget", "u2", "--yes"]);
    let left = units(&world, &[]);
    assert!(left.iter().all(|unit| unit["id"] != "u2") && !left.is_empty(), "{left:?}");
    Session::new(&world, "another-session-later").ask("Design a new front page").close("Here is a design.");
    assert_eq!(units(&world, &[]).iter().filter(|unit| unit["id"] == "u2").count(), 0, "an id is given once");
}

#[test]
fn a_long_unit_keeps_its_end_when_a_part_of_it_is_forgotten() {
    let world = World::new();
    let mut session = Session::new(&world, "a-long-unit-of-one-goal");
    session.ask("Please refactor the parser step by step").edit("src/parser.rs");
    for _ in 0..30 {
        session.ask("go on").close("One more step is there.");
    }
    let before = &units(&world, &[])[0];
    assert_eq!(before["prompts"].as_array().unwrap().len(), 31, "{before}");
    world.nmem(&["forget", "t1", "--yes"]);
    let after = &units(&world, &[])[0];
    assert_eq!((&after["ended_at"], &after["intent"], &after["tool_uses"]), (&before["ended_at"], &before["intent"], &json!(1)));
}

#[test]
fn streams_are_replayed_and_lines_that_are_no_events_are_passed_over() {
    let world = World::new();
    let stream = world.project().join("stream.jsonl");
    let events = [
        json!({"event": "UserPromptSubmit", "prompt": "Fix the login of customers with two accounts", "ts": "2026-01-16T18:00:00Z"}),
        json!({"event": "Stop", "last_assistant_message": "Fixed.", "ts": "2026-01-16T18:05:00Z"}),
        json!({"event": "UserPromptSubmit", "prompt": "ok, thanks", "ts": "2026-01-16T18:06:00Z"}),
    ];
    let lines: Vec<String> = events.iter().map(Value::to_string).chain(["half a li".to_string()]).collect();
    std::fs::write(&stream, lines.join("\n")).unwrap();
    let said = world.nmem(&["units", "--replay", stream.to_str().unwrap()]).text();
    assert!(said.contains(r#""inline":[],"inner":[],"starts":[]"#) && said.contains("1 lines are not hook events"), "{said}");
    // Prompts are counted as the file has them, stored or not; another session in it begins a unit.
    let prompt =
        |session: &str, text: &str| json!({"event": "UserPromptSubmit", "session_id": session, "prompt": text}).to_string();
    let two = [prompt("a", "Fix the login"), prompt("a", "#nomem of this nothing"), prompt("b", "Write the manual")].join("\n");
    std::fs::write(&stream, two).unwrap();
    let said = world.nmem(&["units", "--replay", stream.to_str().unwrap()]).text();
    assert!(said.contains(r#""starts":[2]"#), "{said}");
    let said = world.nmem(&["units", "--replay", "nowhere.jsonl"]).text();
    assert!(said.contains("cannot read nowhere.jsonl") && said.contains("[exit 1]"), "{said}");
    assert!(world.nmem(&["units", "u99"]).text().contains("nothing is recorded yet"));
    world.silently(&["UserPromptSubmit"]);
    assert!(world.nmem(&["units", "u99"]).text().contains("u99 is not a work unit"));
}

#[test]
fn a_commit_in_another_repository_is_none_of_the_units() {
    let mut world = World::new();
    world.git_project("project", "https://example.org/dev/project.git");
    let other = world.git_project("other", "https://example.org/dev/other.git");
    world.set("CLAUDE_PROJECT_DIR", world.project().to_str().unwrap());
    let mut session = Session::new(&world, "two-repositories");
    session.ask("Add the export, and bump the version in ../other").edit("src/export.rs");
    session.bash("git commit -am 'feat: export of invoices'", "[main 1a2b3c4] feat: export of invoices");
    let line = format!("cd {} && git commit -am 'chore: bump the version'", other.display());
    session.bash(&line, "[main 2b3c4d5] chore: bump the version");
    session.bash("git -C ../other commit -am 'chore: bump it again'", "[main 3c4d5e6] chore: bump it again");
    session.close("The export is there.").end();
    let units = world.nmem(&["units", "--json"]).lines();
    assert_eq!(units[0]["commits"], json!([{"sha": "1a2b3c4", "subject": "feat: export of invoices"}]));
    assert_eq!(units[0]["title"], "Export of invoices");
}
