//! `nmem doctor` finds what is wrong and says what to do; `--fix` repairs what is safe to repair.

use crate::world::World;
use serde_json::json;
use std::fs;

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
    problem: hooks: nmem is not installed for any agent
      run `nmem install --found`, or `nmem install claude-code`
    note: files: $WORLD/home/.local/share/nmem does not exist yet
      the first event creates it
    note: database: nothing is recorded yet
      recording starts with the first session after `nmem install`
    ok: events: none waiting, rejected or lost
    ok: hooks: no errors in the last day
    --- stderr
    nmem: 1 problem
      see the remedy above
    [exit 1]
    ");
    let world = worked();
    insta::assert_snapshot!(findings(&world, &[]), @"
    ok: settings: the defaults
    ok: hooks: installed for claude-code in $WORLD/home/.claude/settings.json
    ok: files: $WORLD/home/.local/share/nmem, private to you
    ok: database: $WORLD/home/.local/share/nmem/nmem.db: sound, 2 tool uses
    ok: search: every row is indexed
    ok: database: journal wal, on a local disk
    ok: events: none waiting, rejected or lost
    ok: secrets: none in stored texts
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
    assert!(said.contains("starts /nowhere/nmem, which does not exist\n  run `nmem install claude-code` again"), "{said}");
    assert!(said.ends_with("[exit 1]"), "{said}");
    world.write(settings, "{");
    assert!(findings(&world, &[]).contains("settings.json is not valid JSON"));
}

#[cfg(unix)]
#[test]
fn modes_are_tightened_and_what_killed_processes_left_goes() {
    use std::os::unix::fs::PermissionsExt;
    let world = worked();
    world.feed(&["record"], b"garbage");
    let log = world.data().join("nmem.db-log");
    fs::set_permissions(&log, fs::Permissions::from_mode(0o644)).unwrap();
    let temporary = world.data().join("nmem.db-new-0123");
    fs::write(&temporary, "half").unwrap();
    fs::File::open(&temporary).unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let said = findings(&world, &[]);
    assert!(said.contains("others may read $WORLD/home/.local/share/nmem/nmem.db-log\n  chmod 600, or --fix"), "{said}");
    assert!(said.contains("1 temporary file of a process that was killed"), "{said}");
    let said = findings(&world, &["--fix"]);
    assert!(said.contains("fixed: files: others may read") && said.ends_with("[exit 0]"), "{said}");
    assert_eq!(fs::metadata(&log).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!temporary.exists());
}

#[test]
fn tool_uses_are_indexed_when_their_turn_ends_or_somebody_searches() {
    let world = worked();
    let indexed = || world.count("SELECT count(*) FROM tool_index_docsize");
    assert_eq!(indexed(), 0);
    assert!(findings(&world, &[]).contains("ok: search: every row is indexed"), "what waits is not missing");
    world.silently(&["Stop"]);
    assert_eq!(indexed(), 2);
    // The next turn's wait again, until a search reads them first.
    world.hook_with("PostToolUse-Bash", &[("/tool_use_id", json!("t-3")), ("/tool_input/command", json!("make frobnicate"))]);
    assert_eq!(indexed(), 2);
    assert_eq!(world.nmem(&["search", "frobnicate", "--json"]).stdout.lines().count(), 1);
    assert_eq!(indexed(), 3);
}

#[test]
fn an_index_that_lacks_rows_is_rebuilt() {
    let world = worked();
    assert_eq!(world.nmem(&["search", "oops", "--json"]).stdout.lines().count(), 1, "indexed by the search");
    world.connect().execute_batch("DELETE FROM tool_index WHERE rowid = 1").unwrap();
    assert_eq!(world.nmem(&["search", "oops", "--json"]).stdout.lines().count(), 1);
    assert!(findings(&world, &[]).contains("problem: search: 1 row is missing from the index"));
    assert!(findings(&world, &["--fix"]).contains("fixed: search"));
    assert!(findings(&world, &[]).contains("ok: search: every row is indexed"));
    world.connect().execute_batch("UPDATE meta SET value = 0 WHERE key = 'index_text_version'").unwrap();
    assert!(findings(&world, &["--fix"]).contains("fixed: search: the index has version 0"));
}

/// Redefines an index behind SQLite's back, does something, and puts the old definition back.
fn with_another_index(world: &World, definition: (&str, &str), meanwhile: &str) {
    let change = |from: &str, to: &str| {
        let conn = world.connect();
        let sql = "UPDATE sqlite_schema SET sql = replace(sql, ?1, ?2) WHERE name = 'tool_uses_by_seq'";
        conn.execute_batch("PRAGMA writable_schema = ON").unwrap();
        assert_eq!(conn.execute(sql, [from, to]).unwrap(), 1);
    };
    change(definition.0, definition.1);
    world.connect().execute_batch(meanwhile).unwrap();
    if !meanwhile.is_empty() {
        change(definition.1, definition.0);
    }
}

#[test]
fn an_index_that_lost_an_entry_is_rebuilt_in_place() {
    let world = worked();
    let lost =
        "INSERT INTO tool_uses(session_id, seq, received_at, tool_name, kind, source_event) VALUES (1, 3, 0, 'T', 'other', 'E')";
    with_another_index(&world, ("(session_id, seq)", "(session_id, seq) WHERE seq > 100"), lost);
    let said = findings(&world, &[]);
    assert!(said.contains("nmem.db is damaged: ") && said.ends_with("[exit 1]"), "{said}");
    let said = findings(&world, &["--fix"]);
    assert!(said.contains("fixed: database") && !said.contains("set aside"), "{said}");
    assert_eq!(world.count("SELECT count(*) FROM tool_uses"), 3, "nothing of it is gone");
    assert!(findings(&world, &[]).ends_with("[exit 0]"));
}

#[test]
fn what_can_be_read_of_a_database_that_cannot_be_rebuilt_goes_into_a_new_one() {
    let world = worked();
    with_another_index(&world, ("(session_id, seq)", "(session_id)"), "");
    assert!(findings(&world, &[]).contains("nmem.db is damaged: "));
    let said = findings(&world, &["--fix"]);
    assert!(said.contains("it was set aside\n") && said.contains(" were copied into the current one\n"), "{said}");
    assert_eq!(world.count("SELECT count(*) FROM tool_uses"), 2);
    world.silently(&["PostToolUse-Edit"]);
    assert_eq!(world.count("SELECT count(*) FROM tool_uses"), 3);
    assert!(world.all_bytes().iter().any(|(p, _)| p.display().to_string().contains("nmem.db-broken-")));
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
    assert!(findings(&world, &[]).contains("note: events: 1 rejected, kept in"));
    world.connect().query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(())).unwrap();
    assert!(findings(&world, &[]).contains("the journal mode is truncate, but should be wal"));
    let said = findings(&world, &["--fix"]);
    assert!(said.contains("fixed: database: the journal mode is truncate"), "{said}");
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
