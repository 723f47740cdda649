//! Whatever stands on stdin, the agent sees success and silence; what can be kept is kept.

use crate::world::World;
use serde_json::{Value, json};

fn taken(world: &World, bytes: &[u8]) {
    let output = world.feed(&["record"], bytes);
    assert_eq!(output.text(), "[exit 0]");
}

#[test]
fn garbage_is_logged_and_nothing_is_stored() {
    let world = World::new();
    for bytes in [
        &b"hello"[..],
        b"\x00\xff\xfe",
        b"[1,2]",
        b"{",
        b"{}",
        b"null",
        b"{\"hook_event_name\":\"Stop\"}",
        b"{\"hook_event_name\":7}",
        b"",
    ] {
        taken(&world, bytes);
    }
    assert!(!world.db().exists());
    let log = world.read("home/.local/share/nmem/nmem.db-log");
    assert!(log.contains("stdin was not a hook event") && log.contains("Stop without session_id"), "{log}");
    assert!(world.nmem(&["status"]).stdout.contains("recent errors"));
}

#[test]
fn a_payload_cut_anywhere_never_fails_and_keeps_its_ids() {
    let world = World::new();
    let whole = world.payload("PostToolUse-Write-update").to_string();
    for cut in (10..whole.len()).step_by(41) {
        taken(&world, &whole.as_bytes()[..cut]);
    }
    taken(&world, whole.as_bytes());
    assert_eq!(world.count("SELECT count(*) FROM tool_uses WHERE tool_use_id IS NOT NULL"), 1);
}

#[test]
fn wrong_types_in_every_field_are_as_good_as_absent() {
    let world = World::new();
    for name in [
        "PostToolUse-Edit",
        "PostToolUse-Bash",
        "PostToolUseFailure-Bash",
        "UserPromptSubmit",
        "Stop",
        "SessionStart-startup",
        "SessionEnd-other",
        "PostToolUse-Agent",
    ] {
        let payload = world.payload(name);
        for field in payload.as_object().unwrap().keys().filter(|f| *f != "hook_event_name") {
            for wrong in [Value::Null, json!(7), json!([["x"]]), json!({"a": {"b": []}}), json!("")] {
                let mut broken = payload.clone();
                broken[field] = wrong;
                let output = world.feed(&["record"], broken.to_string().as_bytes());
                assert_eq!((output.stderr.as_str(), output.code), ("", Some(0)), "{name} {field}");
            }
        }
    }
}

#[test]
fn an_output_of_a_hundred_megabytes_is_stored_as_an_excerpt_with_its_id() {
    let world = World::new();
    let mut payload = world.payload("PostToolUse-Bash");
    payload["tool_response"]["stdout"] = json!(format!("BEGIN{}END", "x".repeat(100 << 20)));
    taken(&world, payload.to_string().as_bytes());
    let row = world.sql("SELECT tool_use_id, substr(outcome, 1, 5), substr(outcome, -3), length(outcome) <= 600 FROM tool_uses");
    assert_eq!(row, "toolu_fake00102|BEGIN|END|1");
}

#[test]
fn a_byte_order_mark_nul_and_broken_utf8_are_no_obstacle() {
    let world = World::new();
    let text = world.payload("UserPromptSubmit").to_string().replace("SCENARIO:MAIN please", "caf~ \u{0}\u{1b}[31m");
    let mut bytes = b"\xEF\xBB\xBF".to_vec();
    bytes.extend(text.bytes().map(|b| if b == b'~' { 0xFF } else { b }));
    taken(&world, &bytes);
    assert_eq!(world.count("SELECT count(*) FROM prompts WHERE text LIKE 'caf\u{FFFD} %'"), 1);
    let mut payload = world.payload("UserPromptSubmit");
    payload["prompt_id"] = json!("p-2");
    payload["prompt"] = json!("nul \u{0} esc \u{1b}[31m bidi \u{202e} x");
    taken(&world, payload.to_string().as_bytes());
    assert_eq!(world.count("SELECT count(*) FROM prompts WHERE text LIKE 'nul %'"), 1);
    let shown = world.nmem(&["show", "p1"]).stdout + &world.nmem(&["show", "p2"]).stdout;
    assert!(!shown.contains('\u{1b}') && !shown.contains('\u{0}') && !shown.contains('\u{202e}'), "{shown:?}");
}

#[test]
fn deep_nesting_and_unknown_events_are_taken_in_silence() {
    let world = World::new();
    let mut payload = world.payload("PostToolUse-mcp__fake__echo").to_string();
    payload = payload.replace("\"hello mcp\"", &format!("{}1{}", "[".repeat(3000), "]".repeat(3000)));
    taken(&world, payload.as_bytes());
    assert_eq!(world.count("SELECT count(*) FROM tool_uses"), 1);
    let mut unknown = world.payload("Stop");
    unknown["hook_event_name"] = json!("SomethingNew");
    taken(&world, unknown.to_string().as_bytes());
}

#[test]
fn a_caller_that_never_closes_stdin_is_not_waited_for() {
    let world = World::new();
    let mut child = world.command(&["context"]).stdin(std::process::Stdio::piped()).spawn().unwrap();
    let pipe = child.stdin.take();
    let begun = std::time::Instant::now();
    let output = world.finish(child);
    assert!(begun.elapsed().as_secs() < 5);
    assert!(output.stdout.starts_with("Nothing is remembered"), "{}", output.text());
    drop(pipe);
}

#[test]
fn switched_off_means_nothing_at_all() {
    for (name, value) in [("NMEM_DISABLE", "1"), ("RAD_ENABLED", "false")] {
        let mut world = World::new();
        world.set(name, value);
        assert_eq!(world.hook("SessionStart-startup").text(), "[exit 0]");
        assert_eq!(world.hook("UserPromptSubmit").text(), "[exit 0]");
        assert!(!world.data().exists());
    }
    let world = World::new();
    world.write("home/.config/nmem/config.toml", "enabled = false\n");
    assert_eq!(world.hook("SessionStart-startup").text(), "[exit 0]");
    assert!(!world.data().exists());
}

#[test]
fn a_broken_config_records_nothing_and_the_next_start_says_so() {
    let world = World::new();
    world.write("home/.config/nmem/config.toml", "inject = \"all\"\nredact = [\"(\"]\n");
    assert_eq!(world.hook("UserPromptSubmit").text(), "[exit 0]");
    assert!(!world.db().exists());
    insta::assert_snapshot!(world.hook("SessionStart-startup").text(), @r#"
    {"systemMessage":"nmem is not recording: $WORLD/home/.config/nmem/config.toml: redact pattern \"(\": regex parse error: ( ^ error: unclosed group. Fix it, then run `nmem status`."}
    [exit 0]
    "#);
    insta::assert_snapshot!(world.nmem(&["status"]).text(), @r#"
    hooks  problem: nmem is not installed for any agent
      run `nmem install --found`, or `nmem install claude-code`

    database  $WORLD/home/.local/share/nmem/nmem.db (none yet)
      0 projects, 0 sessions, 0 prompts, 0 tool uses, 0 work units, 0 memories
      problem: nothing is recorded: $WORLD/home/.config/nmem/config.toml: redact pattern "(": regex parse error: ( ^ error: unclosed group

    settings  $WORLD/home/.config/nmem/config.toml
      inject = "all"  config file
      redact = ["("]  config file
      29 others have their defaults; --settings lists them

    recent errors  $WORLD/home/.local/share/nmem/nmem.db-log
      just now  nothing is recorded: $WORLD/home/.config/nmem/config.toml: redact pattern "(": regex parse error: ( ^ error: unclosed group
      just now  nothing is recorded: $WORLD/home/.config/nmem/config.toml: redact pattern "(": regex parse error: ( ^ error: unclosed group
    [exit 0]
    "#);
}

#[test]
fn a_project_cannot_steer_the_hooks_by_its_environment() {
    let mut world = World::new();
    world.write("project/evil.toml", "enabled = false\n");
    let inside = |name: &str| world.project().join(name).display().to_string();
    let (db, config) = (inside("evil.db"), inside("evil.toml"));
    world.set("NMEM_DB", &db);
    world.set("NMEM_CONFIG", &config);
    assert_eq!(world.hook("UserPromptSubmit").text(), "[exit 0]");
    assert!(!std::path::Path::new(&db).exists());
    assert_eq!(world.count("SELECT count(*) FROM prompts"), 1);
}

#[test]
fn a_config_that_is_named_and_not_there_stops_recording() {
    for path in ["/does/not/exist.toml", "relative.toml"] {
        let mut world = World::new();
        world.set("NMEM_CONFIG", path);
        assert_eq!(world.hook("UserPromptSubmit").text(), "[exit 0]");
        assert!(!world.db().exists(), "{path}");
        assert!(world.hook("SessionStart-startup").stdout.contains("nmem is not recording"), "{path}");
    }
}

#[cfg(unix)]
#[test]
fn a_config_that_is_a_pipe_is_not_waited_for() {
    let world = World::new();
    std::fs::create_dir_all(world.home().join(".config/nmem")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(world.home().join(".config/nmem/config.toml")).status();
    assert!(made.unwrap().success());
    assert_eq!(world.hook("UserPromptSubmit").text(), "[exit 0]");
}

#[test]
fn a_pipe_that_stays_open_behind_the_event_costs_no_time_and_no_event() {
    let world = World::new();
    let text = world.payload("SessionStart-startup").to_string();
    let mut child = world.command(&["context"]).stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut pipe, text.as_bytes()).unwrap();
    let begun = std::time::Instant::now();
    let output = world.finish(child);
    assert!(begun.elapsed().as_millis() < 900, "{:?}", begun.elapsed());
    assert!(output.stdout.starts_with("{\"systemMessage\""), "{}", output.text());
    drop(pipe);
}
