//! `nmem doctor` finds what is wrong and says what to do; `--fix` mends what is safe to mend.

mod world;

use serde_json::json;
use std::fs;
use world::World;

fn findings(world: &World, args: &[&str]) -> String {
    let mut all = vec!["doctor"];
    all.extend(args);
    world.nmem(&all).text()
}

fn worked() -> World {
    let world = World::new();
    world.nmem(&["install", "claude-code"]);
    world.silently(&["UserPromptSubmit", "PostToolUse-Bash", "PostToolUseFailure-Bash"]);
    world
}

#[test]
fn a_sound_installation_has_nothing_to_complain_about() {
    let world = World::new();
    insta::assert_snapshot!(findings(&world, &[]), @"
    ok: settings: the defaults
    problem: hooks: no agent calls nmem
      run `nmem install claude-code`
    note: files: $WORLD/home/.local/share/nmem does not exist yet
      it is made with the first event
    note: database: nothing is recorded yet
      recording begins with the first session after `nmem install claude-code`
    ok: events: none waits, none was rejected, none was lost
    ok: hooks: no errors in the last day
    --- stderr
    nmem: 1 problem
      the line above says what to do
    [exit 1]
    ");
    let world = worked();
    insta::assert_snapshot!(findings(&world, &[]), @"
    ok: settings: the defaults
    ok: hooks: claude-code calls nmem
    ok: files: $WORLD/home/.local/share/nmem, for you alone
    ok: database: $WORLD/home/.local/share/nmem/nmem.db: sound, 2 tool uses
    ok: search: every row is in the index
    ok: database: journal wal, on a local disk
    ok: events: none waits, none was rejected, none was lost
    ok: hooks: no errors in the last day
    [exit 0]
    ");
    let json = world.nmem(&["doctor", "--json"]).json();
    assert!(json["findings"].as_array().unwrap().iter().all(|f| f["level"] == "ok" && f["fixed"] == false), "{json}");
}

#[test]
fn hooks_that_lead_nowhere_are_found() {
    let world = worked();
    let settings = "home/.claude/settings.json";
    let gone = world.read(settings).replace(env!("CARGO_BIN_EXE_nmem"), "/nowhere/nmem");
    world.write(settings, &gone.replace("\"Stop\"", "\"Stopped\""));
    let said = findings(&world, &[]);
    assert!(said.contains("problem: hooks: $WORLD/home/.claude/settings.json has no hook for Stop\n"), "{said}");
    assert!(said.contains("starts /nowhere/nmem, which is not there\n  run `nmem install claude-code` again"), "{said}");
    assert!(said.ends_with("[exit 1]"), "{said}");
    world.write(settings, "{");
    assert!(findings(&world, &[]).contains("settings.json is no sound JSON"));
}

#[cfg(unix)]
#[test]
fn modes_are_tightened_and_what_killed_processes_left_goes() {
    use std::os::unix::fs::PermissionsExt;
    let world = worked();
    world.feed(&["record"], b"garbage");
    let log = world.data().join("nmem.db-log");
    fs::set_permissions(&log, fs::Permissions::from_mode(0o644)).unwrap();
    let draft = world.data().join("nmem.db-new-0123");
    fs::write(&draft, "half").unwrap();
    fs::File::open(&draft).unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let said = findings(&world, &[]);
    assert!(said.contains("others may read $WORLD/home/.local/share/nmem/nmem.db-log\n  chmod 600, or --fix"), "{said}");
    assert!(said.contains("1 draft of a process that was killed"), "{said}");
    let said = findings(&world, &["--fix"]);
    assert!(said.contains("mended: files: others may read") && said.ends_with("[exit 0]"), "{said}");
    assert_eq!(fs::metadata(&log).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!draft.exists());
}

#[test]
fn an_index_that_lacks_rows_is_made_anew() {
    let world = worked();
    world.connect().execute_batch("DELETE FROM tool_index WHERE rowid = 1").unwrap();
    assert_eq!(world.nmem(&["search", "oops", "--json"]).stdout.lines().count(), 1);
    assert!(findings(&world, &[]).contains("problem: search: 1 row is missing from the index"));
    assert!(findings(&world, &["--fix"]).contains("mended: search"));
    assert!(findings(&world, &[]).contains("ok: search: every row is in the index"));
    world.connect().execute_batch("UPDATE meta SET value = 0 WHERE key = 'index_text_version'").unwrap();
    assert!(findings(&world, &["--fix"]).contains("mended: search: the index was made by version 0"));
}

#[test]
fn a_damaged_index_is_rebuilt_and_a_hopeless_database_set_aside() {
    let world = worked();
    // An index that disagrees with its table, as a torn write would leave it.
    let harm = "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, '(session_id, seq)', '(session_id, kind)') WHERE name = 'tool_uses_by_seq'";
    world.connect().execute_batch(harm).unwrap();
    let said = findings(&world, &[]);
    assert!(said.contains("nmem.db is damaged: "), "{said}");
    let said = findings(&world, &["--fix"]);
    assert!(said.contains("mended: database"), "{said}");
    assert!(findings(&world, &[]).ends_with("[exit 0]"));
}

#[test]
fn rejected_events_get_another_try_and_the_journal_fits_its_disk() {
    let world = worked();
    let lock = world.lock();
    let mut payload = world.payload("PostToolUse-Bash");
    payload["tool_use_id"] = json!("toolu_again");
    world.feed(&["record"], payload.to_string().as_bytes());
    drop(lock);
    // An older nmem would have rejected it.
    fs::rename(world.data().join("nmem.db-spool"), world.data().join("nmem.db-rejected")).unwrap();
    assert!(findings(&world, &[]).contains("note: events: 1 could not be stored and lie in"));
    world.connect().query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(())).unwrap();
    assert!(findings(&world, &[]).contains("the journal is truncate, and should be wal"));
    let said = findings(&world, &["--fix"]);
    assert!(said.contains("mended: database: the journal is truncate"), "{said}");
    assert_eq!(world.count("SELECT count(*) FROM tool_uses WHERE tool_use_id = 'toolu_again'"), 1);
    assert!(!world.data().join("nmem.db-rejected").exists());
}

#[test]
fn without_a_log_recording_works_as_it_must_on_a_network_file_system() {
    let world = worked();
    world.connect().query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(())).unwrap();
    world.silently(&["PostToolUse-Edit", "PostToolUse-Read", "Stop"]);
    assert_eq!(world.count("SELECT count(*) FROM tool_uses"), 4);
    assert!(!world.data().join("nmem.db-wal").exists());
    assert!(world.nmem(&["search", "oops"]).stdout.contains("oops"));
}
