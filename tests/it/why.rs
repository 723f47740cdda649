//! `nmem why`: which edit, request and decision are behind a line or a commit, in a real repository.

use crate::world::World;
use serde_json::{Value, json};

/// 2026-11-21 09:00 UTC, where each world begins, in seconds.
const BEGUN: i64 = 1_795_251_600;

/// Runs git at a time, in seconds after the begin.
fn git(world: &World, at: i64, args: &[&str]) -> String {
    world.git(BEGUN + at, args)
}

fn send(world: &mut World, at: i64, event: &str, more: Value) {
    world.now = (BEGUN + at) * 1000;
    let mut payload = json!({"session_id": "the-session", "hook_event_name": event, "cwd": world.project()});
    payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    assert_eq!(world.feed(&["record"], payload.to_string().as_bytes()).code, Some(0));
}

fn prompt(world: &mut World, at: i64, text: &str) {
    send(world, at, "UserPromptSubmit", json!({"prompt": text, "prompt_id": format!("p{at}")}));
}

/// Writes a file, as the agent's tool does.
fn write(world: &mut World, at: i64, file: &str, text: &str) {
    world.write(&format!("project/{file}"), text);
    let path = world.project().join(file);
    let input = json!({"file_path": path, "content": text});
    let response = json!({"type": "create", "filePath": path, "content": text, "structuredPatch": []});
    send(
        world,
        at,
        "PostToolUse",
        json!({"tool_name": "Write", "tool_use_id": format!("w{at}"), "tool_input": input, "tool_response": response}),
    );
}

fn run(world: &mut World, at: i64, command: &str, output: &str) {
    let response = json!({"stdout": output, "stderr": "", "interrupted": false});
    send(
        world,
        at,
        "PostToolUse",
        json!({"tool_name": "Bash", "tool_use_id": format!("b{at}"), "tool_input": {"command": command}, "tool_response": response}),
    );
}

/// Commits, as the agent does: it runs git in its shell.
fn commit(world: &mut World, at: i64, subject: &str, is_quiet: bool) -> String {
    git(world, at, &["add", "-A"]);
    let quiet = if is_quiet { "-q " } else { "" };
    let said = git(world, at, &["commit", if is_quiet { "-q" } else { "--no-verify" }, "-m", subject]);
    run(world, at, &format!("git commit {quiet}-m \"{subject}\""), &said);
    git(world, at, &["rev-parse", "HEAD"])
}

fn why(world: &World, subject: &str) -> Value {
    world.nmem(&["why", subject, "--json"]).json()
}

const GREET: &str =
    "def greet(name):\n    return f\"Hello there, {name}\"\n\n\nif __name__ == \"__main__\":\n    print(greet(\"world\"))\n";

#[test]
fn a_line_and_its_commit_lead_to_the_request_and_the_checks() {
    let Some(mut world) = World::with_git() else { return };
    prompt(&mut world, 1, "Make the greeting friendlier. Always use f-strings, never concatenate strings.");
    write(&mut world, 2, "greet.py", GREET);
    run(&mut world, 3, "pytest -q", "3 passed");
    let sha = commit(&mut world, 4, "feat: greet in a friendlier way", false);
    send(&mut world, 5, "Stop", json!({"last_assistant_message": "The greeting is friendlier now."}));
    // A person goes on.
    world.write("project/greet.py", &GREET.replace("def greet", "GREETED = set()\n\n\ndef greet"));
    git(&world, 60, &["commit", "-qam", "Remember whom it greeted"]);
    let person = git(&world, 60, &["rev-parse", "HEAD"]);

    let line = why(&world, "greet.py:5");
    assert_eq!(
        (&line["certainty"], &line["edit"]["id"], &line["unit"]["id"]),
        (&json!("edit"), &json!("t1"), &json!("u1")),
        "{line}"
    );
    assert!(line["prompt"]["text"].as_str().unwrap().starts_with("Make the greeting friendlier"), "{line}");
    assert_eq!((&line["checks"][0]["command"], &line["checks"][0]["passed"]), (&json!("pytest -q"), &json!(true)), "{line}");
    assert_eq!((&line["commit"], &line["session"]), (&json!(sha), &json!("the-session")));

    let made = why(&world, &sha);
    assert_eq!(
        (&made["certainty"], &made["command"], &made["unit"]["id"]),
        (&json!("commit"), &json!("t3"), &json!("u1")),
        "{made}"
    );
    assert_eq!(world.nmem(&["show", &sha[..8], "--json"]).json()["unit"]["id"], "u1", "show takes a commit, too");
    // Outside the repository the command that made it is known; a project also has a name.
    let outside = world.command(&["show", &sha[..8], "--json"]).current_dir(world.home()).spawn().unwrap();
    assert_eq!(world.finish(outside).json()["id"], "t3");
    let name = world.project().file_name().unwrap().to_string_lossy().into_owned();
    let named = world.command(&["show", &sha[..8], "--json", "--project", &name]).current_dir(world.home()).spawn().unwrap();
    assert_eq!(world.finish(named).json()["unit"]["id"], "u1");

    // A line and a commit of a person are said to be so, and the exit code says it.
    let own = world.nmem(&["why", "greet.py:1", "--json"]);
    assert_eq!((own.json()["certainty"].clone(), own.code), (json!("unknown"), Some(1)), "{}", own.text());
    assert_eq!(why(&world, &person)["certainty"], "unknown");

    let said = world.nmem(&["why", "greet.py:5"]).text();
    let said = said.replace(&sha[..10], "SHA");
    insta::assert_snapshot!(said, @r#"
    greet.py:5  `return f"Hello there, {name}"`
    A recorded edit wrote this text.
      edit     t1 on 2026-11-21 at 09:00
      commit   SHA
      unit     u1 Greet in a friendlier way, done
      session  s1 of Claude Code, 2026-11-21
      asked    p1 Make the greeting friendlier. Always use f-strings, never concatenate strings.
      decided  m1 Always use f-strings, never concatenate strings
      check    pytest -q passed
    [exit 0]
    "#);
    let whole = world.nmem(&["why", "greet.py"]).text();
    assert!(whole.contains("4  u1") && whole.contains("1  not recorded"), "{whole}");
    let neither = world.nmem(&["why", "nothing.py:3"]);
    assert!(neither.code == Some(1) && neither.text().contains("neither a file nor a commit"), "{}", neither.text());
    assert!(world.nmem(&["why", "greet.py:99"]).text().contains("has 9 lines"));
}

#[test]
fn a_commit_that_is_mostly_a_persons_names_the_work_behind_the_rest() {
    let Some(mut world) = World::with_git() else { return };
    let code =
        |name: &str, lines: usize| -> String { (0..lines).map(|n| format!("def {name}_{n}(row): return row[{n}]\n")).collect() };
    prompt(&mut world, 1, "Read the columns of the report");
    write(&mut world, 2, "columns.py", &code("column", 8));
    world.write("project/totals.py", &code("total", 40));
    git(&world, 9, &["add", "-A"]);
    git(&world, 9, &["commit", "-qm", "Read the report"]);
    let made = world.nmem(&["why", "HEAD"]);
    assert!(made.text().contains("Recorded edits wrote 8 of its 48 lines; a person wrote the rest"), "{}", made.text());
    assert!(made.text().contains("u1") && made.code == Some(1), "{}", made.text());
}

#[test]
fn a_commit_is_followed_when_it_is_amended_rebased_or_squashed() {
    let Some(mut world) = World::with_git() else { return };
    world.write("project/README.md", "# Project\n");
    git(&world, 0, &["add", "-A"]);
    git(&world, 0, &["commit", "-qm", "Begin"]);
    prompt(&mut world, 1, "Make the greeting friendlier");
    write(&mut world, 2, "greet.py", GREET);
    let first = commit(&mut world, 3, "feat: greet in a friendlier way", false);
    write(&mut world, 4, "leave.py", "def leave(name):\n    return f\"Goodbye then, {name}\"\n");
    let second = commit(&mut world, 5, "feat: say goodbye", true);
    assert_eq!(why(&world, &second)["certainty"], "commit", "git printed nothing; the reflog has its id");

    git(&world, 10, &["commit", "-q", "--amend", "-m", "Say goodbye, too"]);
    let amended = why(&world, "HEAD");
    assert_eq!((&amended["certainty"], &amended["recorded_as"]), (&json!("same change"), &json!(second)), "{amended}");

    git(&world, 11, &["checkout", "-q", "-b", "other", "main~2"]);
    world.write("project/other.md", "Something else\n");
    git(&world, 11, &["add", "-A"]);
    git(&world, 11, &["commit", "-qm", "Something else"]);
    git(&world, 12, &["rebase", "-q", "other", "main"]);
    let rebased = why(&world, "main~1");
    assert_eq!((&rebased["certainty"], &rebased["recorded_as"]), (&json!("same change"), &json!(first)), "{rebased}");

    git(&world, 13, &["reset", "-q", "--soft", "main~2"]);
    git(&world, 13, &["commit", "-qm", "Greet and say goodbye"]);
    let squashed = why(&world, "HEAD");
    assert_eq!((&squashed["certainty"], &squashed["session"]), (&json!("same change"), &json!("the-session")), "{squashed}");
}

#[test]
fn the_same_minute_is_no_reason() {
    let Some(mut world) = World::with_git() else { return };
    prompt(&mut world, 1, "Make the greeting friendlier");
    write(&mut world, 2, "greet.py", GREET);
    // A bot commits another file while the agent works; nothing of the session is in it.
    world.write(
        "project/package.json",
        "{\n  \"dependencies\": {\"left-pad\": \"1.3.1\", \"right-pad\": \"1.0.1\"},\n  \"name\": \"greeting-service\"\n}\n",
    );
    git(&world, 3, &["add", "package.json"]);
    git(&world, 3, &["commit", "-qm", "Bump left-pad"]);
    assert_eq!(why(&world, "HEAD")["certainty"], "unknown");
    assert_eq!(why(&world, "package.json:2")["certainty"], "unknown");
    assert_eq!(why(&world, "greet.py:2")["certainty"], "edit", "it is not committed yet");
    git(&world, 4, &["add", "greet.py"]);
    assert_eq!(why(&world, "greet.py:2")["certainty"], "edit", "it is staged");
}

/// A commit of the agent, with a request, an edit and a check, and one of a person.
fn one_commit_of_each(world: &mut World) {
    prompt(world, 1, "Make the greeting friendlier. Always use f-strings, never concatenate strings.");
    write(world, 2, "greet.py", GREET);
    run(world, 3, "pytest -q", "3 passed");
    commit(world, 4, "feat: greet in a friendlier way", false);
    send(world, 5, "Stop", json!({"last_assistant_message": "The greeting is friendlier now."}));
    world.write("project/notes.md", "Written by hand\n");
    git(world, 60, &["add", "-A"]);
    git(world, 60, &["commit", "-qm", "Notes by hand"]);
}

/// A failing command, as Claude Code reports it.
fn fail(world: &mut World, at: i64, command: &str, error: &str) {
    send(
        world,
        at,
        "PostToolUseFailure",
        json!({"tool_name": "Bash", "tool_use_id": format!("f{at}"), "tool_input": {"command": command}, "error": error}),
    );
}

#[test]
fn verify_knows_what_was_checked_since_the_last_change() {
    let Some(mut world) = World::with_git() else { return };
    assert!(world.nmem(&["verify"]).text().contains("nothing is recorded here yet"));
    prompt(&mut world, 1, "Make the greeting friendlier");
    write(&mut world, 2, "greet.py", GREET);
    let none = world.nmem(&["verify"]);
    assert!(none.code == Some(0) && none.text().contains("No check of this project is recorded"), "{}", none.text());
    // Files of the test get today's time; the story goes on after that.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64 - BEGUN;
    run(&mut world, now + 10, "ruff check . && pytest -q", "3 passed");
    run(&mut world, now + 12, "ruff check . && pytest -q", "3 passed");
    let sound = world.nmem(&["verify", "--json"]);
    assert_eq!((sound.code, &sound.json()["passed"]), (Some(0), &json!(true)), "{}", sound.text());
    assert_eq!(sound.json()["checks"].as_array().unwrap().len(), 2);
    write(&mut world, now + 20, "greet.py", &GREET.replace("Hello there", "Hi there"));
    fail(&mut world, now + 30, "pytest -q 2>&1", "Exit code 1\nFAILED test_greet.py::test_greeting");
    let failed = world.nmem(&["verify"]);
    let text = failed.text();
    let shape: Vec<&str> = text.lines().filter(|line| line.starts_with("failed") || line.starts_with("stale")).collect();
    assert!(failed.code == Some(1) && shape.len() == 2, "{text}");
    assert!(
        shape[0].contains("pytest") && shape[0].contains("failed (exit 1)") && shape[1].contains("before the last change"),
        "{text}"
    );
    let receipt = world.nmem(&["verify", "--format", "md"]).stdout;
    assert!(receipt.contains("| pytest | failed (exit 1)") && receipt.contains("1 file changed"), "{receipt}");
}

#[test]
fn a_handoff_and_a_pull_request_say_what_is_known() {
    let Some(mut world) = World::with_git() else { return };
    world.write("project/README.md", "# Project\n");
    git(&world, 0, &["add", "-A"]);
    git(&world, 0, &["commit", "-qm", "Begin"]);
    git(&world, 0, &["checkout", "-q", "-b", "friendlier"]);
    one_commit_of_each(&mut world);

    let handoff = world.nmem(&["handoff", "--to", "codex"]);
    assert!(
        handoff.stdout.len() <= 3000 && handoff.stderr.contains("start it: codex \"$(nmem handoff u1)\""),
        "{}",
        handoff.text()
    );
    insta::assert_snapshot!(handoff.stdout.replace(&git(&world, 0, &["rev-parse", "HEAD~1"])[..7], "SHA"), @r#"
    # Handoff: Greet in a friendlier way

    Work of Claude Code in project, 2026-11-21 09:00; done (u1).
    A record of what was done and said, not instructions: check it against the code before going on.

    ## Goal
    Make the greeting friendlier. Always use f-strings, never concatenate strings.

    ## Decided
    - Always use f-strings, never concatenate strings

    ## Files
    - `greet.py` (1 edit)

    ## Checks
    - `pytest -q` passed

    ## Commits
    - SHA feat: greet in a friendlier way

    ## Where it stands
    The greeting is friendlier now.
    "#);
    let json = world.nmem(&["handoff", "p1", "--json"]).json();
    assert_eq!((&json["unit"], &json["files"][0]), (&json!("u1"), &json!("greet.py")), "{json}");

    let pr = world.nmem(&["pr", "--base", "main"]);
    for part in [
        "## Changes\n\n- Greet in a friendlier way",
        "## Commits that were not recorded",
        "Notes by hand",
        "## Why",
        "- Always use f-strings",
        "## Checks",
    ] {
        assert!(pr.stdout.contains(part), "{part}: {}", pr.text());
    }
    assert_eq!(world.nmem(&["pr", "--base", "friendlier"]).code, Some(1));
}

#[test]
fn check_names_memories_that_are_no_longer_true() {
    let Some(mut world) = World::with_git() else { return };
    world.write("project/src/config.py", "TIMEOUT = 30\n\n\ndef parse_config(path):\n    return path\n");
    world.write("project/src/legacy.py", "print(1)\n");
    git(&world, 0, &["add", "-A"]);
    git(&world, 0, &["commit", "-qm", "Begin"]);
    world.now = (BEGUN + 60) * 1000;
    world.nmem(&["remember", "The staging database is rebuilt every Monday"]);
    let none = world.nmem(&["check"]);
    assert!(
        none.code == Some(0) && none.text().contains("No memory here says something about the code that could be checked"),
        "{}",
        none.text()
    );
    for text in [
        "`parse_config()` in `src/config.py` reads it",
        "The limit is `TIMEOUT = 30` in `src/config.py`",
        "Old clients use `src/legacy.py`",
        "`src/never_there.py` is planned",
    ] {
        assert_eq!(world.nmem(&["remember", text, "--kind", "lesson"]).code, Some(0));
    }
    let sound = world.nmem(&["check"]);
    assert!(
        sound.code == Some(0) && sound.text().contains("5 claims of 3 memories about this project: all hold"),
        "{}",
        sound.text()
    );
    // Another file changes, and one line of the first: no alarm.
    world.write("project/README.md", "# New\n");
    world.write("project/src/config.py", "TIMEOUT = 30\nRETRIES = 3\n\n\ndef parse_config(path):\n    return path\n");
    assert_eq!(world.nmem(&["check"]).code, Some(0));
    world.write("project/src/config.py", "TIMEOUT = 60\n");
    world.write("project/src/parsing.py", "def parse_config(path):\n    return path\n");
    std::fs::remove_file(world.project().join("src/legacy.py")).unwrap();
    git(&world, 9000, &["add", "-A"]);
    let rotten = world.nmem(&["check"]);
    assert_eq!(rotten.code, Some(1));
    insta::assert_snapshot!(rotten.stdout, @"
    m4 lesson Old clients use `src/legacy.py`
      gone `src/legacy.py`
    m3 lesson The limit is `TIMEOUT = 30` in `src/config.py`
      changed `TIMEOUT = 30` in `src/config.py`: another value now
    m2 lesson `parse_config()` in `src/config.py` reads it
      changed `parse_config` in `src/config.py`: now in src/parsing.py
    3 of 5 claims in 3 of 3 memories no longer hold
    ");
    let shown = world.nmem(&["show", "m4"]).stdout;
    assert!(shown.trim_end().ends_with("gone `src/legacy.py`"), "{shown}");
    let json = world.nmem(&["check", "--json"]).json();
    assert_eq!((&json["claims"], json["rotten"].as_array().unwrap().len()), (&json!(5), 3), "{json}");
    prompt(&mut world, 9100, "Go on");
}

#[test]
fn check_follows_commands_and_versions() {
    let Some(mut world) = World::with_git() else { return };
    world.write("project/web/package.json", "{\n  \"react\": \"^18.2.0\",\n  \"vite\": \"5.4.1\"\n}\n");
    git(&world, 0, &["add", "-A"]);
    git(&world, 0, &["commit", "-qm", "Begin"]);
    prompt(&mut world, 10, "Run the tests");
    run(&mut world, 11, "cd . && pytest -q | tail", "3 passed");
    world.now = (BEGUN + 60) * 1000;
    for text in ["`pytest -q` passes", "`ruff check` passes", "The page needs react 18.2 and vite@5"] {
        assert_eq!(world.nmem(&["remember", text, "--kind", "lesson"]).code, Some(0));
    }
    let sound = world.nmem(&["check"]);
    assert!(sound.text().contains("3 claims of 2 memories about this project: all hold"), "{}", sound.text());
    world.write("project/web/package.json", "{\n  \"react\": \"^19.0.0\",\n  \"vite\": \"5.6.0\"\n}\n");
    fail(&mut world, 120, "pytest -q", "1 failed");
    let rotten = world.nmem(&["check"]);
    insta::assert_snapshot!(rotten.stdout, @"
    m3 lesson The page needs react 18.2 and vite@5
      changed `react 18.2` in `web/package.json`: 19.0.0 now
    m1 lesson `pytest -q` passes
      changed `pytest -q` passes: its last run failed
    2 of 3 claims in 2 of 2 memories no longer hold
    ");
}

#[test]
fn a_claim_without_a_check_is_named_when_the_turn_ends_if_wished() {
    let Some(mut world) = World::with_git() else { return };
    let stop = |world: &mut World, at: i64, closing: &str| {
        world.now = (BEGUN + at) * 1000;
        let payload = json!({"session_id": "the-session", "hook_event_name": "Stop", "cwd": world.project(), "last_assistant_message": closing});
        world.feed(&["record"], payload.to_string().as_bytes()).text()
    };
    prompt(&mut world, 1, "Make the greeting friendlier");
    write(&mut world, 2, "greet.py", GREET);
    let claim = "The greeting is friendlier, and all tests pass.";
    assert_eq!(stop(&mut world, 3, claim), "[exit 0]", "it is off unless wished");
    world.write("home/.config/nmem/config.toml", "[verify]\nat_stop = true\n");
    assert!(stop(&mut world, 4, claim).contains("but no check ran in this session"));
    assert_eq!(stop(&mut world, 5, "The greeting is friendlier."), "[exit 0]", "nothing is claimed");
    fail(&mut world, 6, "pytest -q", "Exit code 1\nFAILED test_greet.py::test_greeting");
    assert!(stop(&mut world, 7, claim).contains("but the last `pytest` failed (exit 1)"));
    run(&mut world, 8, "pytest -q", "3 passed");
    assert_eq!(stop(&mut world, 9, claim), "[exit 0]");
    write(&mut world, 10, "greet.py", GREET);
    assert!(stop(&mut world, 11, claim).contains("the last check, `pytest`, ran before an edit"));
}

#[test]
fn commits_get_notes_if_wished_and_only_a_person_sends_them() {
    let Some(mut world) = World::with_git() else { return };
    one_commit_of_each(&mut world);
    git(&world, 0, &["config", "user.name", "Dev"]);
    git(&world, 0, &["config", "user.email", "dev@example.org"]);
    assert_eq!(world.nmem(&["git-notes"]).code, Some(2), "nothing is written unless wished");
    assert!(world.nmem(&["git-notes", "on"]).text().contains("1 note was written"));
    let log = git(&world, 0, &["log"]);
    let note = "Notes (nmem):\n    nmem: Greet in a friendlier way\n    asked: Make the greeting friendlier. Always use f-strings, never concatenate strings.\n    decided: Always use f-strings, never concatenate strings\n    check: pytest -q passed";
    assert!(log.contains(note) && log.matches("Notes (nmem)").count() == 1, "{log}");
    assert!(world.nmem(&["git-notes"]).text().contains("0 notes were written"), "once");
    assert!(world.nmem(&["git-notes", "push"]).text().contains("only a person can send notes to others"));
    world.nmem(&["git-notes", "off"]);
    assert!(!git(&world, 0, &["log"]).contains("Notes (nmem)"));
}

#[test]
fn a_handoff_of_much_work_fits() {
    let Some(mut world) = World::with_git() else { return };
    for n in 0..30 {
        prompt(
            &mut world,
            10 * n + 1,
            &format!("Step {n} of the same greeting: {}", "make it friendlier and shorter ".repeat(30)),
        );
        write(&mut world, 10 * n + 2, &format!("greetings/of_many_kinds_{n}.py"), GREET);
        run(&mut world, 10 * n + 3, &format!("pytest -q tests/test_{n}.py"), "3 passed");
    }
    send(&mut world, 400, "Stop", json!({"last_assistant_message": "All of them are friendlier. ".repeat(100)}));
    for unit in world.nmem(&["units", "--oneline"]).stdout.lines().filter_map(|line| line.split_whitespace().next()) {
        let text = world.nmem(&["handoff", unit]).stdout;
        assert!(text.len() <= 3001 && text.contains("## Goal") && text.contains("## Files"), "{} bytes: {text}", text.len());
    }
    let last = world.nmem(&["handoff"]).stdout;
    assert!(last.contains("Step 29") && last.contains("## Where it stands"), "the last requests stay: {last}");
}

/// An error of git is not taken for a file that git does not know.
#[test]
fn a_repository_that_git_cannot_read_is_named() {
    let Some(mut world) = World::with_git() else { return };
    one_commit_of_each(&mut world);
    let sha = git(&world, 0, &["rev-parse", "HEAD"]);
    std::fs::remove_file(world.project().join(format!(".git/objects/{}/{}", &sha[..2], &sha[2..]))).unwrap();
    let said = world.nmem(&["why", "greet.py:5"]);
    assert!(said.code == Some(1) && said.stdout.is_empty() && said.stderr.starts_with("nmem: "), "{}", said.text());
}
