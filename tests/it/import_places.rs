//! Places of session files: folders that a file does not name, databases in unusual places, large and broken ones.

use crate::world::World;
use crate::world::session::NINE;
use rusqlite::Connection;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};

fn time(seconds: i64) -> String {
    jiff::Timestamp::from_millisecond(NINE + seconds * 1000).unwrap().to_string()
}

/// The number of sessions, and the names of their projects.
fn projects(world: &World) -> String {
    world.sql("SELECT coalesce(p.name, 'none'), count(*) FROM sessions s LEFT JOIN projects p ON p.id = s.project_id GROUP BY 1 ORDER BY 1")
}

fn gemini_chat(world: &World, folder: &str, id: &str) {
    let lines = [
        json!({"sessionId": id, "projectHash": "ab", "startTime": time(0), "lastUpdated": time(9), "kind": "main"}),
        json!({"id": "m1", "timestamp": time(1), "type": "user", "content": [{"text": format!("Make the greeting of {id} friendlier")}]}),
        json!({"id": "m2", "timestamp": time(3), "type": "gemini", "content": "Friendlier now.", "model": "gemini-3-pro"}),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    world.write(&format!("home/.gemini/tmp/{folder}/chats/session-2026-11-20T09-00-{id}.jsonl"), &text);
}

#[cfg(unix)]
#[test]
fn an_agents_folder_may_be_a_link_and_links_below_it_are_not_followed() {
    let world = World::new();
    let folder = world.project().display().to_string().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    for disk in ["disk", "other-disk"] {
        let prompt = json!({"type": "user", "sessionId": disk, "uuid": disk, "timestamp": time(0), "cwd": world.project(),
            "message": {"role": "user", "content": "Make the greeting friendlier"}});
        world.write(&format!("{disk}/{folder}/{disk}.jsonl"), &format!("{prompt}\n"));
    }
    let disk = world.project().parent().unwrap().join("disk");
    fs::create_dir_all(world.home().join(".claude")).unwrap();
    std::os::unix::fs::symlink(&disk, world.home().join(".claude/projects")).unwrap();
    std::os::unix::fs::symlink(disk.with_file_name("other-disk"), disk.join("link")).unwrap();
    std::os::unix::fs::symlink(&disk, disk.join("itself")).unwrap();
    world.nmem(&["import"]);
    assert_eq!(world.sql("SELECT agent_session_id FROM sessions"), "disk");
}

#[test]
fn geminis_folders_are_in_its_registry_or_are_hashes_of_known_folders() {
    let world = World::new();
    let hash =
        |path: &Path| Sha256::digest(path.display().to_string()).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let other = world.git_project("other", "git@github.com:Team/other.git");
    let registry = json!({"projects": {world.project().display().to_string(): "project-slug"}});
    world.write("home/.gemini/projects.json", &registry.to_string());
    gemini_chat(&world, "project-slug", "11111111");
    gemini_chat(&world, &hash(&world.project()), "22222222");
    // Only a session of another agent names this folder.
    gemini_chat(&world, &hash(&other), "33333333");
    let asked = json!({"type": "user", "sessionId": "s", "uuid": "u", "timestamp": time(0), "cwd": other, "message": {"role": "user", "content": "Fix it"}});
    world.write("home/.claude/projects/o/s.jsonl", &format!("{asked}\n"));
    gemini_chat(&world, &hash(Path::new("/nobody/knows")), "44444444");
    world.nmem(&["import"]);
    assert_eq!(projects(&world), "none|1\nother|2\nproject|2");
}

#[test]
fn sessions_of_another_account_are_found() {
    let world = World::new();
    for (n, folder) in [".claude", ".claude-work", ".claudette"].iter().enumerate() {
        let id = n.to_string().repeat(8);
        let said = json!({"type": "user", "sessionId": id, "uuid": id, "timestamp": time(0), "cwd": world.project(), "message": {"role": "user", "content": format!("Fix the login {n}")}});
        world.write(&format!("home/{folder}/projects/p/{id}.jsonl"), &format!("{said}\n"));
    }
    world.nmem(&["import"]);
    assert_eq!(world.sql("SELECT text FROM prompts ORDER BY text"), "Fix the login 0\nFix the login 1");
}

fn opencode(path: &Path, folder: &Path) -> Connection {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let database = Connection::open(path).unwrap();
    let tables = "CREATE TABLE session(id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT, time_created INTEGER, time_updated INTEGER);
         CREATE TABLE message(id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
         CREATE TABLE part(id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);";
    database.execute_batch(tables).unwrap();
    database.execute("INSERT INTO session VALUES ('ses_1', NULL, ?1, ?2, ?2)", (folder.display().to_string(), NINE)).unwrap();
    let info = json!({"role": "user", "time": {"created": NINE}}).to_string();
    database.execute("INSERT INTO message VALUES ('m1', 'ses_1', ?1, ?1, ?2)", (NINE, info)).unwrap();
    let part = json!({"type": "text", "text": "Make the greeting friendlier"}).to_string();
    database.execute("INSERT INTO part VALUES ('p1', 'm1', 'ses_1', ?1, ?1, ?2)", (NINE, part)).unwrap();
    database
}

#[test]
fn a_database_is_found_by_its_variable_or_known_by_its_tables() {
    let mut world = World::new();
    let path = world.folder.join("x/mine.db");
    drop(opencode(&path, &world.project()));
    let by_name = world.nmem(&["import", &path.display().to_string(), "--json"]).json();
    assert_eq!((&by_name["agents"][0]["agent"], projects(&world).as_str()), (&json!("opencode"), "project|1"), "{by_name}");
    let unknown = world.folder.join("x/other.db");
    Connection::open(&unknown).unwrap().execute_batch("CREATE TABLE session(id TEXT)").unwrap();
    let refused = world.nmem(&["import", &unknown.display().to_string()]).text();
    assert!(refused.contains("of no known format"), "{refused}");
    // Another agent with the same tables and one of its own.
    let alike = world.folder.join("x/kilo.db");
    opencode(&alike, &world.project()).execute_batch("CREATE TABLE kilo_board(id TEXT)").unwrap();
    let of_kilo = world.nmem(&["import", &alike.display().to_string(), "--json"]).json();
    assert_eq!(of_kilo["agents"][0]["agent"], "kilo", "{of_kilo}");
    let other = World::new();
    fs::create_dir_all(other.folder.join("y")).unwrap();
    drop(opencode(&other.folder.join("y/mine.db"), &other.project()));
    world.set("OPENCODE_DB", &other.folder.join("y/mine.db").display().to_string());
    let by_variable = world.nmem(&["import", "--json"]).json();
    assert_eq!(by_variable["agents"][0]["agent"], "opencode", "{by_variable}");
}

const USER: &str = "home/.config/Cursor/User";

/// A database of Cursor with a key and a value in a table.
fn cursor(path: PathBuf, rows: &[(&str, &str, Value)]) -> Connection {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let database = Connection::open(path).unwrap();
    let tables = "CREATE TABLE IF NOT EXISTS ItemTable(key TEXT UNIQUE, value BLOB); CREATE TABLE IF NOT EXISTS cursorDiskKV(key TEXT UNIQUE, value BLOB);";
    database.execute_batch(tables).unwrap();
    for (table, key, value) in rows {
        database.execute(&format!("INSERT INTO {table} VALUES (?1, ?2)"), (key, value.to_string())).unwrap();
    }
    database
}

fn chat(id: &str, said: &str) -> Vec<(&'static str, String, Value)> {
    let bubbles = [json!({"bubbleId": "b1", "type": 1, "text": said}), json!({"bubbleId": "b2", "type": 2, "text": "Done."})];
    let headers: Vec<Value> =
        bubbles.iter().map(|bubble| json!({"bubbleId": bubble["bubbleId"], "type": bubble["type"]})).collect();
    let chat = json!({"composerId": id, "createdAt": NINE, "lastUpdatedAt": NINE + 5000, "fullConversationHeadersOnly": headers});
    let mut rows = vec![("cursorDiskKV", format!("composerData:{id}"), chat)];
    rows.extend(
        bubbles
            .into_iter()
            .map(|bubble| ("cursorDiskKV", format!("bubbleId:{id}:{}", bubble["bubbleId"].as_str().unwrap()), bubble)),
    );
    rows
}

fn put(path: PathBuf, rows: &[(&'static str, String, Value)]) -> Connection {
    let rows: Vec<(&str, &str, Value)> = rows.iter().map(|(table, key, value)| (*table, key.as_str(), value.clone())).collect();
    cursor(path, &rows)
}

#[test]
fn cursors_workspaces_name_the_folders_of_chats_and_hold_those_of_older_versions() {
    let world = World::new();
    drop(put(world.folder.join(USER).join("globalStorage/state.vscdb"), &chat("new-chat", "Make the greeting friendlier")));
    let listed = json!({"allComposers": [
        {"composerId": "new-chat", "name": "Greeting"},
        {"composerId": "old-chat", "createdAt": NINE, "conversation": [
            {"bubbleId": "c1", "type": 1, "text": "Now the farewell"}, {"bubbleId": "c2", "type": 2, "text": "The farewell is done."}]},
    ]});
    let editor = json!({"root": {"children": [{"text": "And the "}, {"text": "manual"}]}}).to_string();
    let tabs = json!({"tabs": [{"tabId": "first-chat", "lastSendTime": NINE, "bubbles": [
        {"id": "t1", "type": "user", "text": "", "initText": editor}, {"id": "t2", "type": "ai", "rawText": "The manual is written."}]}]});
    let workspace = world.folder.join(USER).join("workspaceStorage/abcd");
    let rows = [
        ("ItemTable", "composer.composerData", listed),
        ("ItemTable", "workbench.panel.aichat.view.aichat.chatdata", tabs),
        ("ItemTable", "cursorAuth/accessToken", json!("a token of the account")),
    ];
    drop(cursor(workspace.join("state.vscdb"), &rows));
    fs::write(workspace.join("workspace.json"), json!({"folder": format!("file://{}", world.project().display())}).to_string())
        .unwrap();
    world.nmem(&["import"]);
    assert_eq!(projects(&world), "project|3");
    let said = world.sql("SELECT text FROM prompts WHERE source = 'user' ORDER BY text");
    assert_eq!(said, "And the manual\nMake the greeting friendlier\nNow the farewell");
    assert!(
        !world
            .all_bytes()
            .iter()
            .any(|(path, bytes)| path.starts_with(world.data()) && bytes.windows(20).any(|part| part == b"a token of the accou"))
    );
}

#[test]
fn a_log_without_its_program_is_read_without_copying_the_database() {
    let world = World::new();
    let path = world.folder.join(USER).join("globalStorage/state.vscdb");
    let running = put(path.clone(), &[]);
    running.execute_batch("PRAGMA journal_mode = wal; PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let mut rows = chat("c1", "Make the greeting friendlier");
    rows[1].2["workspaceProjectDir"] = json!(world.project());
    for (table, key, value) in &rows {
        running.execute(&format!("INSERT INTO {table} VALUES (?1, ?2)"), (key, value.to_string())).unwrap();
    }
    // The program was killed, and the files were copied without its shared memory.
    let kept = world.folder.join("kept");
    fs::create_dir_all(&kept).unwrap();
    for end in ["", "-wal"] {
        fs::copy(format!("{}{end}", path.display()), kept.join(format!("state.vscdb{end}"))).unwrap();
    }
    drop(running);
    for end in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{end}", path.display()));
    }
    for end in ["", "-wal"] {
        fs::rename(kept.join(format!("state.vscdb{end}")), format!("{}{end}", path.display())).unwrap();
    }
    let listed = || {
        let files = fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<(PathBuf, Vec<u8>)> = files.map(|file| (file.clone(), fs::read(file).unwrap())).collect();
        files.sort();
        files
    };
    let before = listed();
    assert_eq!(before.len(), 2);
    world.nmem(&["import"]);
    assert_eq!(world.sql("SELECT text FROM prompts WHERE source = 'user'"), "Make the greeting friendlier");
    assert!(listed() == before, "not a byte of another program's files changes");
    let left: Vec<PathBuf> =
        fs::read_dir(world.data()).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    assert!(left.iter().all(|folder| !folder.display().to_string().contains("import-")), "{left:?}");
    // Nothing new: the database is not even opened, so nobody sees that it has become unreadable.
    let changed_at = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, vec![0x5A; before[0].1.len()]).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(changed_at).unwrap();
    let again = world.nmem(&["import", "--json"]).json();
    assert_eq!((&again["agents"][0]["unchanged"], &again["agents"][0]["unreadable"]), (&json!(1), &json!([])), "{again}");
    fs::write(&path, vec![0x5A; before[0].1.len()]).unwrap();
    assert!(world.nmem(&["import"]).text().contains("cannot read"), "it has changed");
}
