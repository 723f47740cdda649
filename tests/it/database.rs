//! Nothing is lost and nothing stored twice: locks, crashes, many writers, a database that is newer, read-only or gone.

use crate::world::World;
use serde_json::json;
use std::fs;
use std::time::{Duration, Instant};

fn tool(world: &World, id: usize) -> String {
    let mut payload = world.payload("PostToolUse-Bash");
    payload["tool_use_id"] = json!(format!("toolu_{id:05}"));
    payload.to_string()
}

#[test]
fn a_locked_database_costs_a_quarter_of_a_second_and_no_event() {
    let world = World::new();
    world.hook("UserPromptSubmit");
    let lock = world.lock();
    for id in 0..3 {
        let begun = Instant::now();
        assert_eq!(world.feed(&["record"], tool(&world, id).as_bytes()).text(), "[exit 0]");
        assert!(begun.elapsed() < Duration::from_millis(900), "{:?}", begun.elapsed());
    }
    assert_eq!(fs::read_to_string(world.data().join("nmem.db-spool")).unwrap().lines().count(), 3);
    drop(lock);
    world.feed(&["record"], tool(&world, 3).as_bytes());
    assert_eq!(
        world.sql("SELECT group_concat(tool_use_id, ' ') FROM (SELECT * FROM tool_uses ORDER BY seq)"),
        "toolu_00000 toolu_00001 toolu_00002 toolu_00003"
    );
    assert!(!world.data().join("nmem.db-spool").exists());
    let status = world.nmem(&["status"]).text();
    assert!(status.contains("kept in the spool: database is locked"), "{status}");
}

#[test]
fn sixty_four_processes_at_once_lose_nothing_and_store_nothing_twice() {
    let world = World::new();
    let (processes, events) = (64, 6);
    std::thread::scope(|scope| {
        for process in 0..processes {
            let world = &world;
            scope.spawn(move || {
                for event in 0..events {
                    // Every third event is delivered twice.
                    for _ in 0..1 + usize::from(event % 3 == 0) {
                        assert_eq!(world.feed(&["record"], tool(world, process * events + event).as_bytes()).text(), "[exit 0]");
                    }
                }
            });
        }
    });
    world.nmem(&["status"]);
    let expected = (processes * events) as i64;
    assert_eq!(
        world.sql("SELECT count(*), count(DISTINCT tool_use_id), min(seq), max(seq) FROM tool_uses"),
        format!("{expected}|{expected}|1|{expected}")
    );
}

#[test]
fn a_killed_hook_leaves_a_sound_database_with_every_acknowledged_event() {
    let world = World::new();
    world.hook("UserPromptSubmit");
    let mut acknowledged = Vec::new();
    for id in 0..60 {
        let mut child = world.start(&["record"], tool(&world, id).as_bytes());
        std::thread::sleep(Duration::from_micros((id as u64 * 137) % 4000));
        let _ = child.kill();
        if child.wait().unwrap().success() {
            acknowledged.push(format!("toolu_{id:05}"));
        }
    }
    assert_eq!(world.sql("PRAGMA integrity_check"), "ok");
    let stored = world.sql("SELECT tool_use_id FROM tool_uses");
    for id in &acknowledged {
        assert_eq!(stored.lines().filter(|l| l == id).count(), 1, "{id}");
    }
    assert_eq!(world.count("SELECT count(*) - coalesce(max(seq), 0) FROM tool_uses"), 0);
}

#[test]
fn a_database_from_the_future_is_left_alone_and_the_events_wait() {
    let world = World::new();
    world.hook("UserPromptSubmit");
    world.connect().execute_batch("PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let before = fs::read(world.db()).unwrap();
    assert_eq!(world.hook("PostToolUse-Bash").text(), "[exit 0]");
    assert_eq!(fs::read(world.db()).unwrap(), before);
    insta::assert_snapshot!(world.hook("SessionStart-startup").text(), @r#"
    {"systemMessage":"nmem: $WORLD/home/.local/share/nmem/nmem.db was written by a newer nmem (schema 99, this one supports 23); events are kept and stored later. See `nmem status`."}
    [exit 0]
    "#);
    insta::assert_snapshot!(world.nmem(&["search", "x"]).text(), @"
    --- stderr
    nmem: 2 waiting events could not be stored: $WORLD/home/.local/share/nmem/nmem.db was written by a newer nmem (schema 99, this one supports 23)
    nmem: $WORLD/home/.local/share/nmem/nmem.db was written by a newer nmem (schema 99, this one supports 23)
      install that version of nmem; the database was not changed
    [exit 1]
    ");
}

#[cfg(unix)]
#[test]
fn the_folder_and_all_files_are_private_whatever_stood_there() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    fs::create_dir_all(world.data()).unwrap();
    fs::set_permissions(world.data(), fs::Permissions::from_mode(0o777)).unwrap();
    fs::write(world.db(), "").unwrap();
    fs::set_permissions(world.db(), fs::Permissions::from_mode(0o666)).unwrap();
    fs::remove_file(world.db()).unwrap();
    world.silently(&["UserPromptSubmit", "PostToolUse-Bash"]);
    world.feed(&["record"], b"garbage");
    for (path, _) in world.all_bytes() {
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{}", path.display());
    }
    assert_eq!(fs::metadata(world.data()).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn another_database_is_another_world() {
    let mut world = World::new();
    world.set("NMEM_DB", &world.folder.join("other/mem.db").display().to_string());
    world.silently(&["UserPromptSubmit"]);
    assert!(world.folder.join("other/mem.db").exists() && !world.db().exists());
    world.set("NMEM_DB", "relative.db");
    insta::assert_snapshot!(world.nmem(&["search", "x"]).text(), @"
    --- stderr
    nmem: NMEM_DB=relative.db is not an absolute path
      set NMEM_DB to an absolute path, or unset it
    [exit 1]
    ");
    assert_eq!(world.hook("UserPromptSubmit").text(), "[exit 0]");
}

#[test]
fn a_broken_database_is_kept_aside_and_recording_goes_on() {
    type Harm = fn(&mut Vec<u8>);
    let breaks: [(&str, Harm); 4] = [
        ("header", |bytes| bytes[..100].fill(0)),
        ("schema", |bytes| bytes[100..4096].fill(0x5A)),
        ("cut short", |bytes| bytes.truncate(5000)),
        ("pages", |bytes| bytes[4096..].iter_mut().for_each(|b| *b = 0xA5)),
    ];
    for (what, harm) in breaks {
        let world = World::new();
        for id in 0..30 {
            world.feed(&["record"], tool(&world, id).as_bytes());
        }
        world.hook("Stop");
        let mut bytes = fs::read(world.db()).unwrap();
        harm(&mut bytes);
        fs::write(world.db(), &bytes).unwrap();
        assert_eq!(world.feed(&["record"], tool(&world, 100).as_bytes()).text(), "[exit 0]", "{what}");
        assert_eq!(world.feed(&["record"], tool(&world, 101).as_bytes()).text(), "[exit 0]", "{what}");
        assert_eq!(world.sql("SELECT group_concat(tool_use_id, ' ') FROM tool_uses"), "toolu_00100 toolu_00101", "{what}");
        let aside: Vec<_> =
            world.all_bytes().into_iter().filter(|(path, _)| path.display().to_string().contains("-broken-")).collect();
        assert!(aside.iter().any(|(_, kept)| *kept == bytes), "{what}: the broken file is gone");
        assert!(world.nmem(&["status"]).stdout.contains("a broken database was set aside"), "{what}");
    }
}

#[test]
fn a_file_that_is_no_database_is_left_alone_and_the_event_waits() {
    let mut world = World::new();
    world.write("mine/notes.txt", "my own notes, longer than a header of SQLite would be");
    let notes = world.folder.join("mine/notes.txt");
    world.set("NMEM_DB", &notes.display().to_string());
    assert_eq!(world.hook("UserPromptSubmit").text(), "[exit 0]");
    assert_eq!(world.read("mine/notes.txt"), "my own notes, longer than a header of SQLite would be");
    assert_eq!(world.read("mine/notes.txt-spool").lines().count(), 1);
}

#[test]
fn an_event_without_an_id_is_recognized_by_the_platforms_time_however_late_it_is_delivered_again() {
    let mut world = World::new();
    let received = |world: &World, name: &str, time: serde_json::Value| {
        let mut payload = world.payload(name);
        for id in ["tool_use_id", "prompt_id"] {
            payload.as_object_mut().unwrap().remove(id);
        }
        payload["timestamp"] = time;
        assert_eq!(world.feed(&["record"], payload.to_string().as_bytes()).text(), "[exit 0]");
    };
    // Five equal calls stay five, each delivered twice, the second time much later.
    for _ in 0..2 {
        received(&world, "UserPromptSubmit", json!("2026-11-21T09:00:00Z"));
        for second in 0..5 {
            received(&world, "PostToolUse-Bash", json!(format!("2026-11-21T09:00:0{second}.250Z")));
        }
        world.minutes_later(60);
    }
    assert_eq!(world.sql("SELECT prompts, tool_uses FROM sessions"), "1|5");
    // Without a time two within two seconds are one.
    for minute in [0, 0, 1] {
        world.minutes_later(minute);
        received(&world, "PostToolUse-Edit", serde_json::Value::Null);
    }
    assert_eq!(world.count("SELECT count(*) FROM tool_uses WHERE kind = 'edit'"), 2);
}

#[test]
fn one_session_recorded_by_the_hooks_of_two_platforms_is_one() {
    let world = World::new();
    world.silently(&["UserPromptSubmit", "PostToolUse-Bash"]);
    // As another platform's adapter would have met it first.
    world.connect().execute_batch("UPDATE sessions SET platform = 'cursor'").unwrap();
    world.silently(&["UserPromptSubmit", "PostToolUse-Bash", "PostToolUse-Edit"]);
    let ids = world.sql("SELECT count(DISTINCT session_id), count(*) FROM tool_uses");
    assert_eq!((ids.as_str(), world.sql("SELECT platform, prompts FROM sessions").as_str()), ("1|2", "cursor|1"));
    // A short id may be anybody's.
    for platform in ["cursor", "claude-code"] {
        let short = [("/session_id", json!("42")), ("/tool_use_id", json!(format!("by {platform}")))];
        world.hook_with("PostToolUse-Bash", &short);
        world
            .connect()
            .execute("UPDATE sessions SET platform = ?1 WHERE agent_session_id = '42' AND platform = 'claude-code'", [platform])
            .unwrap();
    }
    assert_eq!(world.count("SELECT count(*) FROM sessions WHERE agent_session_id = '42'"), 2);
}
