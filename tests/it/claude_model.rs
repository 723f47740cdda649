//! The `claude` program as a model, which a script stands in for: how it is started, and that nothing is left of it.

use crate::world::World;
use crate::world::session::Session;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

const CONFIG: &str = "home/.config/nmem/config.toml";
const RESULT: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"<observation sources=\"1\"><type>feature</type><title>Rows are quoted</title><narrative>They are.</narrative></observation>","usage":{"input_tokens":10,"cache_creation_input_tokens":900,"cache_read_input_tokens":90,"output_tokens":50}}"#;

/// A world in which `claude` is a script.
fn with_script(script: &str) -> World {
    let mut world = World::new();
    world.write("bin/claude", &format!("#!/bin/sh\n{script}\n"));
    // A sleep whose command line names this world.
    std::fs::copy("/bin/sleep", world.folder.join("bin/nap")).unwrap();
    let path = world.folder.join("bin/claude");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    world.set("PATH", &format!("{}:/usr/bin:/bin", world.folder.join("bin").display()));
    world.write(CONFIG, "[llm]\nprovider = \"claude\"\nstop_seconds = 2\n");
    world
}

fn work(world: &World, id: &'static str) {
    let mut session = Session::new(world, id);
    session.ask("the exporter breaks rows with commas, fix it").edit("src/export.rs");
    session.bash("git commit -am 'fix: quote fields'", "[main 1a2b3c4] fix: quote fields\n 1 file changed");
    session.close("Fields with commas are quoted now.").end();
}

fn turn(world: &World, id: &'static str) {
    Session::again(world, id).ask("what is the version?").close("It is 1.2.");
}

/// Processes that name this world in their command line.
fn left(world: &World) -> Vec<String> {
    let mark = world.folder.display().to_string();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let commands = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let commands = commands.map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " "));
    commands.filter(|command| command.contains(&mark)).collect()
}

fn nothing_is_left(world: &World) {
    let until = Instant::now() + Duration::from_secs(3);
    while !left(world).is_empty() {
        assert!(Instant::now() < until, "{:?}", left(world));
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn it_is_asked_in_an_empty_folder_without_tools_settings_or_a_transcript() {
    let mut world = with_script(&format!(
        "cat > \"$HOME/stdin\"; for a in \"$@\"; do echo \"<$a>\" | head -1; done > \"$HOME/args\"; env | sort > \"$HOME/env\"; pwd > \"$HOME/pwd\"; ls -A > \"$HOME/ls\"; cat <<'E'\n{RESULT}\nE"
    ));
    for (name, value) in [("CLAUDECODE", "1"), ("CLAUDE_CODE_SESSION_ID", "x"), ("CLAUDE_CONFIG_DIR", "/somewhere")] {
        world.set(name, value);
    }
    work(&world, "first");
    turn(&world, "second");
    assert_eq!(world.sql("SELECT title, made_by FROM memories WHERE made_by <> 'rules'"), "Rows are quoted|haiku");
    assert_eq!(world.sql("SELECT provider, input_tokens, output_tokens, outcome FROM spend"), "claude|1000|50|ok");
    assert!(world.read("home/stdin").starts_with("Folder: "));
    let args = world.read("home/args");
    insta::assert_snapshot!(args.replace("<You keep the memory", "<…\nYou keep").lines().filter(|l| !l.starts_with("You keep")).collect::<Vec<_>>().join(" "), @"<--print> <--output-format> <json> <--model> <haiku> <--system-prompt> <… <--tools> <> <--setting-sources> <> <--strict-mcp-config> <--disable-slash-commands> <--no-session-persistence>");
    let env = world.read("home/env");
    assert!(env.contains("NMEM_DISABLE=1") && env.contains("CLAUDE_CONFIG_DIR=/somewhere"), "{env}");
    assert!(!env.contains("CLAUDECODE") && !env.contains("SESSION_ID"), "{env}");
    assert_eq!(world.read("home/pwd").trim(), world.data().join("observer").display().to_string());
    assert_eq!(world.read("home/ls"), "");
}

#[test]
fn what_a_project_sets_does_not_reach_it_and_a_program_of_the_project_is_not_it() {
    let mut world = with_script(&format!("env > \"$HOME/env\"; cat > /dev/null; cat <<'E'\n{RESULT}\nE"));
    world.write(
        "project/.claude/settings.json",
        "{\"env\": {\"ANTHROPIC_BASE_URL\": \"http://evil.example\", \"NODE_OPTIONS\": \"--require x\"}}",
    );
    world.set("ANTHROPIC_BASE_URL", "http://evil.example");
    world.set("NODE_OPTIONS", "--require x");
    work(&world, "first");
    turn(&world, "second");
    let env = world.read("home/env");
    assert!(!env.contains("evil") && !env.contains("NODE_OPTIONS"), "{env}");

    let mut world = World::new();
    world.write("project/node_modules/.bin/claude", "#!/bin/sh\ntouch \"$HOME/ran\"\n");
    let path = world.project().join("node_modules/.bin/claude");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    world.set("PATH", &format!("{}:/usr/bin:/bin", path.parent().unwrap().display()));
    world.write(CONFIG, "[llm]\nprovider = \"claude\"\n");
    work(&world, "first");
    turn(&world, "second");
    assert!(!world.home().join("ran").exists());
}

#[test]
fn one_that_hangs_with_children_of_its_own_is_gone_at_the_limit() {
    let world = with_script("\"$HOME/../bin/nap\" 77 & sh -c '\"$HOME/../bin/nap\" 78; true' & wait");
    work(&world, "first");
    let begun = Instant::now();
    turn(&world, "second");
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    assert!(begun.elapsed() > Duration::from_secs(1), "it really hung");
    assert_eq!(world.sql("SELECT outcome FROM spend"), "timeout");
    nothing_is_left(&world);
}

#[test]
fn what_fails_or_says_nonsense_leaves_the_unit_in_the_queue() {
    for (script, outcome) in [
        ("exit 3", "program"),
        ("echo not logged in; exit 1", "program"),
        ("cat >/dev/null; echo '{\"is_error\": true, \"result\": \"Invalid API key\"}'", "program"),
        ("cat >/dev/null; echo '{\"result\": \"\"}'", "no answer"),
        ("head -c 3000000 /dev/zero", "too large"),
    ] {
        let world = with_script(script);
        work(&world, "first");
        turn(&world, "second");
        assert_eq!(world.sql("SELECT outcome FROM spend"), outcome, "{script}");
        assert_eq!(world.sql("SELECT state FROM work_units WHERE id = 1"), "closed", "{script}");
        nothing_is_left(&world);
    }
}

/// Messages for each of the program's worst answers, in its own wire format.
#[test]
fn what_the_program_answers_at_its_worst() {
    let result = |more: &str| format!("cat >/dev/null; cat <<'E'\n{{\"type\":\"result\",{more}}}\nE");
    let cases = [
        ("not logged in", "echo 'Invalid API key · Please run /login'; exit 1".to_string()),
        (
            "a login that has ended",
            result(r#""subtype":"success","is_error":true,"result":"OAuth token has expired · Please run /login""#),
        ),
        ("a usage limit", result(r#""subtype":"success","is_error":true,"result":"Claude AI usage limit reached|1795179600""#)),
        (
            "overload",
            result(
                r#""subtype":"success","is_error":true,"result":"API Error: 529 {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}""#,
            ),
        ),
        (
            "an unknown model",
            result(
                r#""subtype":"success","is_error":true,"result":"There's an issue with the selected model (nonesuch). It may not exist or you may not have access to it.""#,
            ),
        ),
        ("an error without a text", result(r#""subtype":"error_during_execution","is_error":true,"errors":["boom"]"#)),
        ("an empty answer", result(r#""subtype":"success","is_error":false,"result":"""#)),
        ("a refusal in words", result(r#""subtype":"success","is_error":false,"result":"I can't help with that.""#)),
        (
            "a cut answer",
            result(
                r#""subtype":"success","is_error":false,"stop_reason":"max_tokens","result":"<answer><observation sources=\"1\"><ti""#,
            ),
        ),
        ("a list of messages without a result", "cat >/dev/null; echo '[]'".to_string()),
        ("a crash", "cat >/dev/null; kill -9 $$".to_string()),
    ];
    let mut table = String::new();
    for (name, script) in cases {
        let world = with_script(&script);
        work(&world, "first");
        let text = world.nmem(&["distil"]).text();
        let seen = text.lines().find_map(|line| line.strip_prefix("nmem: ")).unwrap_or(&text);
        table += &format!("{name}\n    {} | {seen}\n", world.sql("SELECT outcome FROM spend"));
        assert!(world.count("SELECT count(*) FROM memories WHERE made_by = 'rules'") > 0, "{name}");
        nothing_is_left(&world);
    }
    insta::assert_snapshot!(table);
}

#[test]
fn a_hook_that_is_killed_takes_it_along_and_tells_nothing_by_half() {
    let world =
        with_script(&format!("\"$HOME/../bin/nap\" 0.05; cat > /dev/null; \"$HOME/../bin/nap\" 0.05; cat <<'E'\n{RESULT}\nE"));
    work(&world, "first");
    let before = world.sql("SELECT count(*) FROM memories");
    // A killed call is a failed one: these are not to be a pause, nor to be too many.
    let received = |world: &World| world.count("SELECT count(*) FROM memories WHERE made_by = 'haiku'");
    for n in 0..25_u64 {
        let mut child = world.command(&["distil"]).stdin(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(n * 7));
        let _ = child.kill();
        child.wait().unwrap();
        nothing_is_left(&world);
        assert!(matches!(received(&world), 0 | 1), "all or nothing");
        if received(&world) == 0 {
            assert_eq!(world.sql("SELECT count(*) FROM memories"), before);
        }
        world.connect().execute_batch("UPDATE work_units SET model_until = NULL").unwrap();
    }
    world.nmem(&["distil"]);
    assert_eq!(received(&world), 1, "once in the end");
    assert_eq!(world.sql("PRAGMA integrity_check"), "ok");
}

/// With `agent`, each session's own program is asked; another agent's units neither hold up nor go to it.
#[test]
fn units_of_an_agent_without_a_program_here_wait_and_hold_up_nobody() {
    let world = with_script(&format!("cat >/dev/null; echo x >> \"$HOME/asked\"; cat <<'E'\n{RESULT}\nE"));
    world.write(CONFIG, "");
    for id in ["first", "second", "third"] {
        work(&world, id);
    }
    world.connect().execute_batch("UPDATE sessions SET platform = 'codex' WHERE agent_session_id <> 'first'").unwrap();
    world.write(CONFIG, "[llm]\nprovider = \"agent\"\nstop_seconds = 2\n");
    turn(&world, "fourth");
    assert_eq!(world.sql("SELECT provider, model, outcome FROM spend"), "claude|haiku|ok");
    assert_eq!(world.read("home/asked"), "x\n");
    let said = world.nmem(&["distil"]).text();
    assert!(said.contains("2 units are of agents whose program is not on PATH"), "{said}");
}

/// A program whose version ignores `NMEM_DISABLE`, or keeps a transcript, leaves nothing in the store.
#[test]
fn nothing_that_happens_in_its_folder_is_kept() {
    let world = with_script("exit 1");
    work(&world, "first");
    let folder = world.data().join("observer");
    let event = |name: &str| serde_json::json!({"hook_event_name": name, "session_id": "asked", "cwd": folder, "prompt": "Record, 5 entries"});
    for name in ["SessionStart", "UserPromptSubmit", "Stop"] {
        world.feed(&["record"], event(name).to_string().as_bytes());
    }
    assert_eq!(world.sql("SELECT agent_session_id FROM sessions"), "first");
}

#[test]
fn answers_that_come_too_late_are_no_pause_and_refusals_are() {
    let world = with_script("\"$HOME/../bin/nap\" 9");
    world.write(CONFIG, "[llm]\nprovider = \"claude\"\nstop_seconds = 1\n");
    work(&world, "first");
    turn(&world, "second");
    let again = "INSERT INTO spend SELECT NULL, at, work_unit_id, provider, model, purpose, input_tokens, output_tokens, estimated, took, outcome FROM spend LIMIT 1";
    world.connect().execute_batch(again).unwrap();
    // A time in the future counts as now.
    world.connect().execute_batch("UPDATE spend SET at = 9000000000000").unwrap();
    assert_eq!(world.sql("SELECT outcome FROM spend"), "timeout\ntimeout");
    let paused = |world: &World| world.nmem(&["status", "--json"]).json()["spend"]["paused_until"].clone();
    assert!(paused(&world).is_null(), "{}", paused(&world));
    world.connect().execute_batch("UPDATE spend SET outcome = 'program'").unwrap();
    assert!(paused(&world).is_i64(), "{}", paused(&world));
}
