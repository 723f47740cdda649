//! An unusable data folder: full, read-only, not a folder, links in it; and nothing at all.

#![allow(clippy::disallowed_macros, reason = "a test says what it could not show")]

use crate::world::{NOW, World};
use serde_json::json;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

fn tool(world: &World, id: usize) -> String {
    let mut payload = world.payload("PostToolUse-Bash");
    payload["tool_use_id"] = json!(format!("toolu_{id:05}"));
    payload.to_string()
}

fn record(world: &World, ids: std::ops::Range<usize>) {
    for id in ids {
        assert_eq!(world.feed(&["record"], tool(world, id).as_bytes()).text(), "[exit 0]");
    }
}

const IN_ORDER: &str = "SELECT group_concat(substr(tool_use_id, -1), '') FROM (SELECT * FROM tool_uses ORDER BY seq)";

fn user() -> u32 {
    let id = Command::new("id").arg("-u").output().unwrap().stdout;
    String::from_utf8(id).unwrap().trim().parse().unwrap()
}

/// Puts a file where the data folder must be, so that nothing can be made there.
fn block(world: &World) {
    fs::create_dir_all(world.data().parent().unwrap()).unwrap();
    fs::write(world.data(), "in the way").unwrap();
}

fn unblock(world: &World) {
    fs::remove_file(world.data()).unwrap();
}

#[test]
fn events_wait_in_the_runtime_folder_when_the_data_folder_takes_nothing() {
    let world = World::new();
    block(&world);
    record(&world, 0..3);
    let waiting: Vec<_> = fs::read_dir(world.folder.join("run/nmem")).unwrap().map(|e| e.unwrap()).collect();
    assert_eq!(waiting.len(), 1);
    assert_eq!(waiting[0].metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(world.folder.join("run/nmem")).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::read_to_string(waiting[0].path()).unwrap().lines().count(), 3);
    let status = world.nmem(&["status"]).text();
    assert!(status.contains("3 events are waiting in $WORLD/run/nmem/"), "{status}");
    unblock(&world);
    record(&world, 3..4);
    assert_eq!(world.sql(IN_ORDER), "0123");
    assert_eq!(fs::read_dir(world.folder.join("run/nmem")).unwrap().count(), 0);
}

#[test]
fn nobody_overtakes_what_waits_in_a_later_place() {
    let world = World::new();
    world.hook("UserPromptSubmit");
    let lock = world.lock();
    record(&world, 0..1);
    // The data folder is gone for a while, and back again while the database is still locked.
    fs::rename(world.data(), world.folder.join("away")).unwrap();
    block(&world);
    record(&world, 1..2);
    unblock(&world);
    fs::rename(world.folder.join("away"), world.data()).unwrap();
    record(&world, 2..3);
    drop(lock);
    record(&world, 3..4);
    assert_eq!(world.sql(IN_ORDER), "0123");
}

#[test]
fn a_spare_folder_of_somebody_elses_or_behind_a_link_is_not_used() {
    let world = World::new();
    block(&world);
    let elsewhere = world.folder.join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, world.folder.join("run/nmem")).unwrap();
    record(&world, 0..1);
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    let temporary = world.folder.join(format!("tmp/nmem-{}", user()));
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 1);
    // Only root can give a folder away.
    if user() == 0 {
        std::os::unix::fs::chown(&temporary, Some(65534), None).unwrap();
        record(&world, 1..2);
        assert_eq!(fs::read_dir(&temporary).unwrap().count(), 1, "nothing was added");
    }
}

#[test]
fn losses_are_counted_where_nothing_can_be_written_and_said_at_the_next_start() {
    let world = World::new();
    block(&world);
    fs::write(world.folder.join("run/nmem"), "").unwrap();
    fs::write(world.folder.join(format!("tmp/nmem-{}", user())), "").unwrap();
    record(&world, 0..2);
    let start = world.hook("SessionStart-startup").text();
    assert!(start.contains("nothing is writable, so events are being lost"), "{start}");
    // With a place for the count it is kept until it was reported. A link in the spool's place is not written to.
    unblock(&world);
    fs::create_dir_all(world.data()).unwrap();
    symlink("/dev/full", world.data().join("nmem.db")).unwrap();
    symlink("/dev/full", world.data().join("nmem.db-spool")).unwrap();
    record(&world, 2..5);
    assert_eq!(fs::metadata(world.data().join("nmem.db-spool-lost")).unwrap().len(), 3);
    fs::remove_file(world.data().join("nmem.db")).unwrap();
    fs::remove_file(world.data().join("nmem.db-spool")).unwrap();
    assert!(world.nmem(&["status"]).text().contains("3 events were lost"));
    let start = world.hook("SessionStart-startup").text();
    assert!(start.contains("nmem: 3 events were lost: neither the database nor a spool folder could be written."), "{start}");
    assert!(!world.hook("SessionStart-startup").text().contains("lost"));
}

#[test]
fn links_and_pipes_in_the_data_folder_are_not_followed() {
    let world = World::new();
    let victim = world.folder.join("victim");
    fs::write(&victim, "precious").unwrap();
    fs::create_dir_all(world.data()).unwrap();
    for name in ["nmem.db", "nmem.db-spool", "nmem.db-log", "nmem.db-rejected", "nmem.db-spool-lost", "mark-key"] {
        symlink(&victim, world.data().join(name)).unwrap();
    }
    record(&world, 0..2);
    world.feed(&["record"], b"garbage");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert_eq!(fs::metadata(&victim).unwrap().len(), 8);
    for name in ["nmem.db", "nmem.db-spool", "nmem.db-log"] {
        fs::remove_file(world.data().join(name)).unwrap();
    }
    let made = Command::new("mkfifo").arg(world.data().join("nmem.db-spool")).status();
    assert!(made.unwrap().success());
    let lock = {
        record(&world, 2..3);
        world.lock()
    };
    record(&world, 3..4);
    drop(lock);
    fs::remove_file(world.data().join("nmem.db-spool")).unwrap();
    record(&world, 4..5);
    assert_eq!(world.sql(IN_ORDER), "01234");
}

#[test]
fn whatever_the_umask_the_files_are_private_and_usable() {
    for umask in ["000", "777", "277"] {
        let world = World::new();
        let payload = world.folder.join("payload");
        fs::write(&payload, tool(&world, 0)).unwrap();
        let script = format!("umask {umask}; '{}' record < '{}'", env!("CARGO_BIN_EXE_nmem"), payload.display());
        let status = Command::new("sh")
            .args(["-c", &script])
            .env_clear()
            .env("HOME", world.home())
            .env("NMEM_NOW", NOW.to_string())
            .status();
        assert!(status.unwrap().success());
        record(&world, 1..2);
        assert_eq!(world.sql(IN_ORDER), "01", "umask {umask}");
        for (path, _) in world.all_bytes() {
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "umask {umask}: {}", path.display());
        }
    }
}

/// Runs a script where a small disk is mounted as the data folder's parent; `None` where this user may not mount.
fn on_a_small_disk(world: &World, size: &str, script: &str) -> Option<String> {
    let parent = world.data().parent().unwrap().to_path_buf();
    fs::create_dir_all(&parent).unwrap();
    for id in 0..40 {
        fs::write(world.folder.join(format!("event-{id}")), tool(world, id)).unwrap();
    }
    fs::write(world.folder.join("start"), world.payload("SessionStart-startup").to_string()).unwrap();
    let text = format!(
        "mount -t tmpfs -o size={size},mode=700 tmpfs '{disk}' || exit 77\nN='{binary}'; W='{world}'; D='{disk}'\n{script}\ncp -r '{data}' '{world}/kept'",
        disk = parent.display(),
        binary = env!("CARGO_BIN_EXE_nmem"),
        world = world.folder.display(),
        data = world.data().display(),
    );
    let out = world.program("unshare", &["-m", "-r", "sh", "-c", &text]).output().ok()?;
    if out.status.code() == Some(77) || String::from_utf8_lossy(&out.stderr).contains("unshare") {
        eprintln!("not shown here: this user may not mount a small disk ({})", String::from_utf8_lossy(&out.stderr).trim());
        return None;
    }
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let kept = world.folder.join("kept");
    fs::create_dir_all(world.data().parent().unwrap()).unwrap();
    fs::rename(kept, world.data()).unwrap();
    Some(String::from_utf8_lossy(&out.stdout).into_owned())
}

const RECORD_ALL: &str = "i=0; while [ $i -lt 40 ]; do $N record < $W/event-$i || echo failed; i=$((i+1)); done";

#[test]
fn a_full_disk_loses_nothing_while_another_place_takes_the_events() {
    let world = World::new();
    let script = format!("{RECORD_ALL}\n$N context < $W/start\nmount -o remount,size=20m $D\n$N status >/dev/null");
    let Some(said) = on_a_small_disk(&world, "284k", &script) else { return };
    assert!(said.contains("the disk is full; events are kept and stored later"), "{said}");
    assert_eq!(world.sql("SELECT count(*), count(DISTINCT tool_use_id), max(seq) FROM tool_uses"), "40|40|40");
    assert_eq!(world.sql("SELECT count(*) FROM tool_uses WHERE tool_use_id <> printf('toolu_%05d', seq - 1)"), "0", "in order");
    assert_eq!(world.sql("PRAGMA integrity_check"), "ok");
}

#[test]
fn a_full_disk_with_nothing_beside_it_counts_what_it_loses() {
    let mut world = World::new();
    let disk = world.data().parent().unwrap().display().to_string();
    world.set("XDG_RUNTIME_DIR", &disk);
    world.set("TMPDIR", &disk);
    let script =
        format!("{RECORD_ALL}\nstat -c %s $D/nmem/nmem.db-spool-lost\nmount -o remount,size=20m $D\n$N context < $W/start");
    let Some(said) = on_a_small_disk(&world, "284k", &script) else { return };
    let lost: i64 = said.lines().next().unwrap().parse().unwrap();
    assert!(said.contains(&format!("{lost} events were lost")), "{said}");
    assert_eq!(world.count("SELECT count(*) FROM tool_uses") + lost, 40);
    assert_eq!(world.sql("PRAGMA integrity_check"), "ok");
}

#[test]
fn a_disk_too_full_for_a_new_database_gets_none_rather_than_half_of_one() {
    for size in ["20k", "60k", "100k", "120k", "160k"] {
        let world = World::new();
        let script = format!("{RECORD_ALL}\nmount -o remount,size=20m $D\n$N status >/dev/null; ls $D/nmem");
        let Some(said) = on_a_small_disk(&world, size, &script) else { return };
        assert!(!said.contains("broken"), "{size}: {said}");
        assert_eq!(world.sql("SELECT count(*), max(seq) FROM tool_uses"), "40|40", "{size}");
    }
}

#[test]
fn a_read_only_disk_sends_events_elsewhere_and_back() {
    let world = World::new();
    let script = format!(
        "$N record < $W/event-0\nmount -o remount,ro $D\n{RECORD_ALL}\n$N context < $W/start\nmount -o remount,rw $D\n$N status >/dev/null"
    );
    let Some(said) = on_a_small_disk(&world, "20m", &script) else { return };
    assert!(said.contains("events are kept and stored later"), "{said}");
    assert_eq!(world.sql("SELECT count(*), max(seq) FROM tool_uses"), "40|40");
}

/// `nmem mcp` writes more than once on a connection.
#[test]
fn a_write_after_a_checkpoint_waits_as_the_first_did() {
    let world = World::new();
    world.silently(&["UserPromptSubmit"]);
    let files = nmem::model::Files::of(world.db(), true);
    let mut store = nmem::store::Store::open(&files, std::time::Duration::from_secs(5)).unwrap();
    store.write(|_| Ok(())).unwrap();
    store.checkpoint();
    let lock = world.lock();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(300));
            drop(lock);
        });
        store.write(|_| Ok(())).unwrap();
    });
}

/// Measured by an attack: of 52 hooks with a reader's index cut under it, 10 events were lost and nobody knew.
#[cfg(unix)]
#[test]
fn an_index_of_the_log_that_is_cut_under_a_reader_loses_nothing() {
    let world = World::new();
    let hook = |n: usize| {
        let changes = [("/prompt", json!(format!("prompt {n}"))), ("/prompt_id", json!(format!("p{n}")))];
        assert_eq!(world.hook_with("UserPromptSubmit", &changes).text(), "[exit 0]");
    };
    (0..5).for_each(hook);
    let uri = format!("file:{}?mode=ro", world.db().display());
    let reader = rusqlite::Connection::open(uri).unwrap();
    let count = || reader.query_row("SELECT count(*) FROM prompts", [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count(), 5);
    let index = std::fs::OpenOptions::new().write(true).open(world.data().join("nmem.db-shm")).unwrap();
    for (round, length) in [16_384, 4_096, 100].into_iter().enumerate() {
        index.set_len(length).unwrap();
        (0..5).for_each(|n| hook(5 + 5 * round + n));
    }
    // They wait until the reader is gone, which closed the index.
    drop(reader);
    let status = world.nmem(&["status"]);
    assert_eq!(status.code, Some(0), "{}", status.text());
    assert_eq!(world.count("SELECT count(DISTINCT text) FROM prompts"), 20);
}
