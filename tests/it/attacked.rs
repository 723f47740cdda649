//! Findings of an attack, each with what must happen now.

use crate::world::World;
use crate::world::models::{CONFIG, turn, with_model, work};
use crate::world::server::Reply;
use serde_json::json;
use std::fs;
use std::time::{Duration, Instant};

/// A tool use whose output is `{"a":0}` many times.
fn of_small_objects(world: &World, id: &str, count: usize) -> Vec<u8> {
    let mut payload = world.payload("PostToolUse-Bash");
    payload["tool_use_id"] = json!(id);
    payload["tool_response"] = json!("HERE");
    let list = format!("[{}0]", "{\"a\":0},".repeat(count));
    payload.to_string().replace("\"HERE\"", &list).into_bytes()
}

#[test]
fn a_long_list_of_small_objects_is_taken_in_linear_time() {
    let world = World::new();
    let took = |id: &str, count| {
        let payload = of_small_objects(&world, id, count);
        let begun = Instant::now();
        assert_eq!(world.feed(&["record"], &payload).text(), "[exit 0]");
        begun.elapsed()
    };
    let (short, long) = (took("short", 250_000), took("long", 2_000_000));
    assert!(long < short * 20 + Duration::from_secs(1), "2 MB: {short:?}, 16 MB: {long:?}");
    assert_eq!(world.sql("SELECT tool_use_id FROM tool_uses ORDER BY id"), "short\nlong");
}

#[cfg(target_os = "linux")]
#[test]
fn a_payload_of_a_hundred_megabytes_needs_little_memory_whatever_is_in_it() {
    let world = World::new();
    let many = |item: &str| item.repeat((100 << 20) / item.len());
    let head = "{\"hook_event_name\":\"PostToolUse\",\"session_id\":\"s\",\"cwd\":\"/x\",\"tool_name\":\"Bash\",\"tool_use_id\":";
    let inputs = [
        format!("{head}\"t1\",\"tool_response\":[{}0]}}", many("{\"a\":0},")),
        format!("{head}\"t3\",\"tool_response\":{{{}\"z\":0}}}}", many("\"key\":\"v\",")),
        format!("{head}\"t4\",{}\"tool_response\":{{}}}}", many("\"key\":0,")),
        format!("[{}0]", many("{\"a\":0},")),
    ];
    for (n, input) in inputs.iter().enumerate() {
        // The address space of a test build is 100 MB larger than its memory.
        let limited = format!("ulimit -v 300000; exec '{}' record", env!("CARGO_BIN_EXE_nmem"));
        let mut child = world.program("/bin/sh", &["-c", &limited]).stdin(std::process::Stdio::piped()).spawn().unwrap();
        let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes());
        let output = world.finish(child);
        assert_eq!((output.stderr.as_str(), output.code), ("", Some(0)), "input {n}");
    }
    assert_eq!(world.sql("SELECT tool_use_id FROM tool_uses ORDER BY id"), "t1\nt3\nt4");
}

#[test]
fn a_replay_reads_regular_files_of_a_bounded_size() {
    let world = World::new();
    world.write("project/long.jsonl", &format!("{{\"event\":\"UserPromptSubmit\",\"prompt\":\"{}\"}}\n", "x".repeat(17 << 20)));
    let output = world.nmem(&["units", "--replay", "long.jsonl"]);
    assert_eq!(output.code, Some(0), "{}", output.text());
    let output = world.nmem(&["units", "--replay", "/dev/zero"]);
    assert!(output.stderr.contains("not a regular file"), "{}", output.stderr);
}

#[cfg(unix)]
#[test]
fn no_database_is_made_in_a_project_by_a_link_or_by_dots() {
    let mut world = World::new();
    std::os::unix::fs::symlink(world.project(), world.folder.join("link")).unwrap();
    for (n, path) in ["link/mine.db", "home/../project/mine.db", "link/new/mine.db"].into_iter().enumerate() {
        world.set("NMEM_DB", &world.folder.join(path).display().to_string());
        let changes = [("/session_id", json!(format!("s{n}"))), ("/prompt_id", json!(format!("p{n}")))];
        assert_eq!(world.hook_with("UserPromptSubmit", &changes).text(), "[exit 0]");
        assert!(!world.project().join("mine.db").exists() && !world.project().join("new").exists(), "{path}");
    }
    assert_eq!(world.count("SELECT count(*) FROM prompts"), 3);
}

#[test]
fn a_relative_home_is_refused() {
    let mut world = World::new();
    world.set("HOME", "home");
    let output = world.nmem(&["units"]);
    assert!(output.stderr.contains("HOME=home is not an absolute path"), "{}", output.stderr);
    world.hook("UserPromptSubmit");
    let left: Vec<_> = fs::read_dir(world.project()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [".git"]);
}

#[cfg(unix)]
#[test]
fn distil_starts_no_program_of_the_project() {
    use std::os::unix::fs::PermissionsExt;
    let mut world = World::new();
    world.write("project/node_modules/.bin/claude", "#!/bin/sh\ntouch \"$HOME/ran\"\n");
    let path = world.project().join("node_modules/.bin/claude");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    world.set("PATH", &format!("{}:/usr/bin:/bin", path.parent().unwrap().display()));
    world.write(CONFIG, "[llm]\nprovider = \"claude\"\n");
    work(&world, "first");
    let output = world.nmem(&["distil"]);
    assert!(output.stderr.contains("the claude program is not on PATH"), "{}", output.text());
    assert!(!world.home().join("ran").exists());
}

#[test]
fn no_password_of_a_url_is_printed() {
    let world = World::new();
    for url in ["https://me:hunter2pw@example.org/v1", "ftp://me:hunter2pw@example.org", "https://example.org/v1?key=hunter2pw"] {
        world.write(CONFIG, &format!("[llm]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"{url}\"\n"));
        for command in [&["status"][..], &["status", "--settings"], &["status", "--json"], &["doctor"], &["distil"]] {
            let said = world.nmem(command).text();
            assert!(!said.contains("hunter2pw"), "{command:?}: {said}");
        }
    }
}

#[test]
fn a_key_that_a_server_repeats_is_not_printed_or_logged() {
    let said =
        json!({"error": {"message": "Incorrect API key provided: key-of-the-user. You sent 'key-of-the-us…'"}}).to_string();
    let (world, server) = with_model(Reply::Raw(401, "", said), "openai");
    work(&world, "first");
    let output = world.nmem(&["distil"]).text();
    assert!(server.count() > 0 && output.contains("the server answered 401: Incorrect API key provided: [key]"), "{output}");
    turn(&world, "second");
    for text in [output, world.nmem(&["status"]).text(), world.nmem(&["doctor"]).text()] {
        assert!(!text.contains("key-of-the-us"), "{text}");
    }
    for (path, bytes) in world.all_bytes() {
        assert!(!bytes.windows(13).any(|part| part == b"key-of-the-us"), "{}", path.display());
    }
}
