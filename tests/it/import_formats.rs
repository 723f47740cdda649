//! Past sessions of Gemini CLI, OpenCode, Cursor and VS Code: each in the form in which the agent keeps them, with the same
//! small task in it.

use crate::world::World;
use rusqlite::Connection;
use serde_json::{Value, json};
use std::fs;

/// 2026-11-20 09:00 UTC.
const BEGUN: i64 = 1_795_165_200_000;

fn at(seconds: i64) -> i64 {
    BEGUN + seconds * 1000
}

fn time(seconds: i64) -> String {
    jiff::Timestamp::from_millisecond(at(seconds)).unwrap().to_string()
}

fn lines(records: &[Value]) -> String {
    records.iter().map(|record| format!("{record}\n")).collect()
}

/// Content of every format below: a prompt, a read, a failing command, an edit, and an answer.
fn holds_the_work(world: &World, platform: &str) {
    let tools = "SELECT kind, coalesce(path, '-'), coalesce(content, '-'), succeeded FROM tool_uses ORDER BY id";
    let expected = "read|greet.py|greet.py|1\ncommand|-|ls /nonexistent|0\nedit|greet.py|greet.py|1";
    assert_eq!(world.sql(tools), expected, "{platform}");
    let said = world.sql("SELECT source, text FROM prompts ORDER BY id");
    assert_eq!(said, "user|Make the greeting friendlier\nagent|The greeting is friendlier now.", "{platform}");
    assert_eq!(world.sql("SELECT platform FROM sessions"), platform);
    assert_eq!(world.sql("SELECT p.name FROM sessions s JOIN projects p ON p.id = s.project_id"), "project", "{platform}");
    assert_eq!(world.count("SELECT metadata ->> '$.exit_code' FROM tool_uses WHERE kind = 'command'"), 2, "{platform}");
    assert_eq!(world.count("SELECT min(started_at) FROM work_units"), BEGUN, "{platform}: its own time");
}

/// Imports twice: the second time nothing is new. Nothing is written beside the sources.
fn imported_once(world: &World, platform: &str, source: &str) {
    let folder = world.folder.join(source);
    let listed = || {
        let mut names: Vec<_> = fs::read_dir(folder.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.sort();
        names
    };
    let before = (listed(), fs::read(&folder).unwrap());
    let first = world.nmem(&["import", "--json"]).json();
    assert_eq!(first["agents"][0]["agent"], platform, "{first}");
    holds_the_work(world, platform);
    let again = world.nmem(&["import", "--json"]).json();
    assert_eq!((&again["agents"][0]["files"], &again["agents"][0]["unchanged"]), (&json!(0), &json!(1)), "{again}");
    holds_the_work(world, platform);
    assert_eq!((listed(), fs::read(&folder).unwrap()), before, "the source is as it was");
}

fn gemini_call(id: &str, name: &str, args: Value, output: &str) -> Value {
    let response = json!({"functionResponse": {"id": id, "name": name, "response": {"output": output}}});
    json!({"id": id, "name": name, "args": args, "result": [response], "status": "success", "timestamp": time(2)})
}

fn gemini_messages(world: &World) -> Vec<Value> {
    let file = world.project().join("greet.py");
    let calls = [
        gemini_call("c1", "read_file", json!({"file_path": file}), "def greet"),
        gemini_call(
            "c2",
            "run_shell_command",
            json!({"command": "ls /nonexistent"}),
            "Output: no such file\nExit Code: 2\nProcess Group PGID: 7",
        ),
        gemini_call(
            "c3",
            "replace",
            json!({"file_path": file, "old_string": "a", "new_string": "b"}),
            "Successfully modified file",
        ),
    ];
    let tokens = json!({"input": 150, "output": 10, "cached": 50, "thoughts": 5, "tool": 0, "total": 165});
    let context = format!("<session_context>\n- **Workspace Directories:**\n  - {}\n", world.project().display());
    vec![
        json!({"id": "m0", "timestamp": time(0), "type": "user", "content": [{"text": context}]}),
        json!({"id": "m1", "timestamp": time(0), "type": "user", "content": [{"text": "<hook_context>x</hook_context>\n\nMake the greeting friendlier"}]}),
        json!({"id": "m2", "timestamp": time(1), "type": "gemini", "content": "", "tokens": tokens, "model": "gemini-2.5-pro", "toolCalls": calls}),
        json!({"id": "m3", "timestamp": time(3), "type": "user", "content": [{"functionResponse": {"id": "c1"}}]}),
        json!({"id": "m4", "timestamp": time(4), "type": "gemini", "content": "The greeting is friendlier now.", "tokens": tokens, "model": "gemini-2.5-pro"}),
    ]
}

fn gemini_head() -> Value {
    json!({"sessionId": "11111111-aaaa-4000-8000-000000000001", "projectHash": "ab", "startTime": time(0), "kind": "main"})
}

#[test]
fn gemini_cli_lines_with_repeated_messages_and_a_checkpoint() {
    let world = World::new();
    let messages = gemini_messages(&world);
    let mut without_calls = messages[2].clone();
    without_calls["toolCalls"] = json!([]);
    // A resumed session repeats what the model sees, without tool calls and with other times.
    let checkpoint: Vec<Value> = [&messages[1], &without_calls, &messages[4]]
        .iter()
        .map(|message| json!({"id": message["id"], "timestamp": time(9000), "type": message["type"], "content": message["content"]}))
        .collect();
    let records = [
        gemini_head(),
        json!({"$set": {"messages": [messages[0]]}}),
        messages[1].clone(),
        without_calls,
        messages[2].clone(),
        messages[3].clone(),
        messages[4].clone(),
        json!({"$set": {"messages": checkpoint}}),
        json!({"id": "m9", "timestamp": time(9001), "type": "user", "content": [{"text": "undone"}]}),
        json!({"$rewindTo": "m9"}),
    ];
    let file = "home/.gemini/tmp/project/chats/session-2026-11-20T09-00-11111111.jsonl";
    world.write(file, &lines(&records));
    imported_once(&world, "gemini", file);
    assert_eq!(
        world.nmem(&["units", "--json"]).json()["tokens"],
        json!({"input": 200, "output": 30, "cache_read": 100, "cache_write": 0})
    );
}

#[test]
fn gemini_cli_documents_of_older_versions() {
    let world = World::new();
    let mut session = gemini_head();
    session["messages"] = json!(gemini_messages(&world));
    let file = "home/.gemini/tmp/ab/chats/session-2026-11-20T09-00-11111111.json";
    world.write(file, &serde_json::to_string_pretty(&session).unwrap());
    imported_once(&world, "gemini", file);
}

#[test]
fn a_list_of_gemini_cli_may_say_the_same_twice_and_work_without_a_word() {
    let world = World::new();
    let says = |id: &str, kind: &str, n: i64, text: &str| json!({"id": id, "timestamp": time(n), "type": kind, "content": text});
    let runs = |id: &str, n: i64, call: &str, command: &str| {
        let mut message = says(id, "gemini", n, "");
        message["toolCalls"] =
            json!([gemini_call(call, "run_shell_command", json!({"command": command}), "Output: ok\nExit Code: 0")]);
        message
    };
    let messages = [
        says("m1", "user", 1, "Make the greeting friendlier"),
        runs("m2", 2, "c1", "npm test"),
        runs("m3", 3, "c2", "npm run build"),
        says("m4", "gemini", 4, "Done."),
        says("m5", "user", 5, "continue"),
        says("m6", "gemini", 6, "Done."),
        says("m7", "user", 7, "continue"),
        runs("m8", 8, "c3", "npm publish"),
        says("m9", "gemini", 9, "Published."),
    ];
    let mut session = gemini_head();
    session["messages"] = json!(messages);
    world.write("home/.gemini/tmp/ab/chats/session-2026-11-20T09-00-11111111.json", &session.to_string());
    world.nmem(&["import"]);
    let said = world.sql("SELECT text FROM prompts ORDER BY id");
    assert_eq!(said, "Make the greeting friendlier\nDone.\ncontinue\nDone.\ncontinue\nPublished.");
    assert_eq!(world.sql("SELECT content FROM tool_uses ORDER BY id"), "npm test\nnpm run build\nnpm publish");
}

/// The messages of an OpenCode session: id, time, info and parts.
fn opencode_messages(world: &World) -> Vec<(String, i64, Value, Vec<Value>)> {
    let file = world.project().join("greet.py");
    let done = |output: &str, metadata: Value| json!({"status": "completed", "output": output, "metadata": metadata, "time": {"start": at(2), "end": at(3)}});
    let call = |id: &str, tool: &str, input: Value, state: Value| {
        let mut state = state;
        state["input"] = input;
        json!({"type": "tool", "tool": tool, "callID": id, "state": state})
    };
    let parts = vec![
        json!({"type": "step-start"}),
        call("o1", "read", json!({"filePath": file}), done("def greet", json!({}))),
        call("o2", "bash", json!({"command": "ls /nonexistent"}), done("no such file", json!({"exit": 2}))),
        call("o3", "edit", json!({"filePath": file, "oldString": "a", "newString": "b"}), done("Edit applied", json!({}))),
        json!({"type": "text", "text": "The greeting is friendlier now."}),
    ];
    let tokens = json!({"input": 100, "output": 10, "reasoning": 0, "cache": {"read": 50, "write": 0}});
    let asked = vec![
        json!({"type": "text", "text": "\"Make the greeting friendlier\""}),
        json!({"type": "text", "text": "injected", "synthetic": true}),
    ];
    vec![
        ("msg_1".into(), at(0), json!({"role": "user", "time": {"created": at(0)}}), asked),
        (
            "msg_2".into(),
            at(1),
            json!({"role": "assistant", "modelID": "m", "tokens": tokens, "time": {"created": at(1), "completed": at(4)}}),
            parts,
        ),
    ]
}

const OPENCODE: &str = "home/.local/share/opencode/opencode.db";

fn opencode_database(world: &World) -> Connection {
    world.write(OPENCODE, "");
    fs::remove_file(world.folder.join(OPENCODE)).unwrap();
    let database = Connection::open(world.folder.join(OPENCODE)).unwrap();
    database
        .execute_batch(
            "CREATE TABLE session(id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, directory TEXT, title TEXT, time_created INTEGER, time_updated INTEGER);
             CREATE TABLE message(id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
             CREATE TABLE part(id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);",
        )
        .unwrap();
    database
}

fn add_opencode_session(database: &Connection, world: &World, table: &str, id: &str, parent: Option<&str>) {
    let sql = format!("INSERT INTO {table}(id, parent_id, directory, time_created, time_updated) VALUES (?1, ?2, ?3, ?4, ?5)");
    database.execute(&sql, rusqlite::params![id, parent, world.project().display().to_string(), at(0), at(4)]).unwrap();
}

fn add_opencode_messages(database: &Connection, world: &World, session: &str) {
    for (id, at, info, parts) in opencode_messages(world) {
        let row = rusqlite::params![format!("{session}{id}"), session, at, info.to_string()];
        database.execute("INSERT INTO message VALUES (?1, ?2, ?3, ?3, ?4)", row).unwrap();
        for (n, part) in parts.iter().enumerate() {
            let row = rusqlite::params![format!("{session}{id}{n}"), format!("{session}{id}"), session, at, part.to_string()];
            database.execute("INSERT INTO part VALUES (?1, ?2, ?3, ?4, ?4, ?5)", row).unwrap();
        }
    }
}

#[test]
fn opencode_tables_of_the_first_generation_without_subagents() {
    let world = World::new();
    let database = opencode_database(&world);
    add_opencode_session(&database, &world, "session", "ses_1", None);
    add_opencode_messages(&database, &world, "ses_1");
    add_opencode_session(&database, &world, "session", "ses_child", Some("ses_1"));
    add_opencode_messages(&database, &world, "ses_child");
    drop(database);
    imported_once(&world, "opencode", OPENCODE);
}

#[test]
fn opencode_tables_of_the_second_generation_hide_the_first() {
    let world = World::new();
    let database = opencode_database(&world);
    add_opencode_session(&database, &world, "session", "ses_1", None);
    add_opencode_messages(&database, &world, "ses_1");
    database
        .execute_batch(
            "CREATE TABLE session_v2(id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT, time_created INTEGER, time_updated INTEGER);
             CREATE TABLE session_message(id TEXT PRIMARY KEY, session_id TEXT, type TEXT, seq INTEGER, time_created INTEGER, time_updated INTEGER, data TEXT);",
        )
        .unwrap();
    add_opencode_session(&database, &world, "session_v2", "ses_1", None);
    let file = world.project().join("greet.py");
    let state = |input: Value, output: Value| json!({"status": "completed", "input": input, "output": output});
    let content = json!([
        {"type": "reasoning", "text": "hm"},
        {"type": "tool", "id": "o1", "name": "read", "state": state(json!({"filePath": file}), json!("def greet"))},
        {"type": "tool", "id": "o2", "name": "shell", "state": state(json!({"command": "ls /nonexistent"}), json!({"output": "no", "exit": 2}))},
        {"type": "tool", "id": "o3", "name": "edit", "state": state(json!({"filePath": file, "oldString": "a", "newString": "b"}), json!("ok"))},
        {"type": "text", "text": "The greeting is friendlier now."},
    ]);
    let tokens = json!({"input": 100, "output": 10, "cache": {"read": 50, "write": 0}});
    let model = json!({"providerID": "loop", "id": "m"});
    let messages = [
        ("user", json!({"text": "Make the greeting friendlier"})),
        ("model-switched", json!({})),
        (
            "assistant",
            json!({"agent": "build", "model": model, "content": content, "tokens": tokens, "time": {"completed": at(4)}}),
        ),
        ("idle", json!({})),
    ];
    for (n, (kind, data)) in messages.iter().enumerate() {
        let row = rusqlite::params![format!("m{n}"), kind, n as i64, at(n as i64), data.to_string()];
        database.execute("INSERT INTO session_message VALUES (?1, 'ses_1', ?2, ?3, ?4, ?4, ?5)", row).unwrap();
    }
    drop(database);
    imported_once(&world, "opencode", OPENCODE);
}

#[test]
fn opencode_files_of_the_first_versions() {
    let world = World::new();
    let storage = "home/.local/share/opencode/storage";
    let session = json!({"id": "ses_1", "directory": world.project(), "time": {"created": at(0), "updated": at(4)}});
    let file = format!("{storage}/session/p1/ses_1.json");
    world.write(&file, &session.to_string());
    for (id, _, mut info, parts) in opencode_messages(&world) {
        info["id"] = json!(id);
        world.write(&format!("{storage}/message/ses_1/{id}.json"), &info.to_string());
        for (n, part) in parts.iter().enumerate() {
            world.write(&format!("{storage}/part/{id}/prt_{n}.json"), &part.to_string());
        }
    }
    imported_once(&world, "opencode", &file);
}

#[test]
fn a_session_that_has_grown_in_a_database_brings_only_what_is_new() {
    let world = World::new();
    let database = opencode_database(&world);
    add_opencode_session(&database, &world, "session", "ses_1", None);
    add_opencode_messages(&database, &world, "ses_1");
    world.nmem(&["import"]);
    let asked = json!({"type": "text", "text": "Now the farewell"});
    database.execute("INSERT INTO message VALUES ('z1', 'ses_1', ?1, ?1, '{\"role\":\"user\"}')", [at(60)]).unwrap();
    database
        .execute("INSERT INTO part VALUES ('z1p', 'z1', 'ses_1', ?1, ?1, ?2)", rusqlite::params![at(60), asked.to_string()])
        .unwrap();
    database.execute("UPDATE session SET time_updated = ?1", [at(60)]).unwrap();
    // The database is open, and has a log: it is copied.
    let report = world.nmem(&["import", "--json"]).json();
    assert_eq!((&report["agents"][0]["prompts"], &report["agents"][0]["tool_uses"]), (&json!(1), &json!(0)), "{report}");
    assert_eq!(world.count("SELECT count(*) FROM tool_uses"), 3);
    let said = world.sql("SELECT source, text FROM prompts ORDER BY id");
    assert_eq!(said, "user|Make the greeting friendlier\nagent|The greeting is friendlier now.\nuser|Now the farewell");
}

const CURSOR: &str = "home/.config/Cursor/User/globalStorage/state.vscdb";

#[test]
fn cursors_chats_and_no_other_key_of_its_database() {
    let world = World::new();
    world.write(CURSOR, "");
    fs::remove_file(world.folder.join(CURSOR)).unwrap();
    let database = Connection::open(world.folder.join(CURSOR)).unwrap();
    database.execute_batch("CREATE TABLE ItemTable(key TEXT PRIMARY KEY, value BLOB); CREATE TABLE cursorDiskKV(key TEXT PRIMARY KEY, value BLOB);").unwrap();
    let file = world.project().join("greet.py");
    let put = |key: &str, value: &str| {
        database.execute("INSERT INTO cursorDiskKV VALUES (?1, ?2)", rusqlite::params![key, value.as_bytes()]).unwrap();
    };
    let tool = |name: &str, id: &str, args: Value, result: Value| json!({"name": name, "toolCallId": id, "status": "completed", "rawArgs": args.to_string(), "result": result.to_string()});
    let mut bubbles = [
        json!({"type": 1, "text": "Make the greeting friendlier", "createdAt": time(0), "workspaceProjectDir": world.project()}),
        json!({"type": 2, "text": "", "createdAt": time(1), "toolFormerData": tool("read_file_v2", "t1", json!({"path": file}), json!({"contents": "x"}))}),
        json!({"type": 2, "text": "", "createdAt": time(2), "toolFormerData": tool("run_terminal_command_v2", "t2", json!({"command": "ls /nonexistent"}), json!({"output": "no", "exitCode": 2}))}),
        json!({"type": 2, "text": "", "createdAt": time(3), "toolFormerData": tool("search_replace", "t3", json!({"file_path": file, "old_string": "a", "new_string": "b"}), json!({}))}),
        json!({"type": 2, "text": "The greeting is friendlier now.", "createdAt": time(4), "tokenCount": {"inputTokens": 100, "outputTokens": 10}}),
    ];
    for (n, bubble) in bubbles.iter_mut().enumerate() {
        bubble["bubbleId"] = json!(format!("b{n}"));
        put(&format!("bubbleId:c1:b{n}"), &bubble.to_string());
    }
    let headers: Vec<Value> = (0..5).map(|n| json!({"bubbleId": format!("b{n}"), "type": if n == 0 { 1 } else { 2 }})).collect();
    let chat = json!({"composerId": "c1", "name": "Greeting", "createdAt": at(0), "lastUpdatedAt": at(4), "fullConversationHeadersOnly": headers});
    put("composerData:c1", &chat.to_string());
    put("composerData:empty", "{\"composerId\":\"empty\"}");
    // Its neighbours, and what nobody may read.
    put("bubbleId:c10:b0", &json!({"type": 1, "text": "of another chat"}).to_string());
    put("cursorAuth/accessToken", "not json: a token of the account");
    database.execute("INSERT INTO ItemTable VALUES ('cursorAuth/refreshToken', 'another token')", []).unwrap();
    drop(database);
    imported_once(&world, "cursor", CURSOR);
}

#[test]
fn cursor_agents_database_before_its_transcript() {
    let world = World::new();
    let file = world.project().join("greet.py");
    let id = "22222222-aaaa-4000-8000-000000000002";
    let store = format!("home/.cursor/chats/0f0f/{id}/store.db");
    world.write(&store, "");
    fs::remove_file(world.folder.join(&store)).unwrap();
    let database = Connection::open(world.folder.join(&store)).unwrap();
    database
        .execute_batch("CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT); CREATE TABLE blobs(id TEXT PRIMARY KEY, data BLOB);")
        .unwrap();
    let call = |id: &str, name: &str, args: Value| json!({"type": "tool-call", "toolCallId": id, "toolName": name, "args": args});
    let answer = |id: &str, result: Value| json!({"role": "tool", "content": [{"type": "tool-result", "toolCallId": id, "result": result}]});
    let messages = [
        json!({"role": "user", "content": "<user_info>\nOS: linux\n</user_info>"}),
        json!({"role": "user", "content": [{"type": "text", "text": "<user_query>Make the greeting friendlier</user_query>"}]}),
        json!({"role": "assistant", "content": [call("t1", "Read", json!({"path": file})), call("t2", "Shell", json!({"command": "ls /nonexistent"}))]}),
        answer("t1", json!("def greet")),
        answer("t2", json!({"output": "no", "exitCode": 2})),
        json!({"role": "assistant", "content": [call("t3", "StrReplace", json!({"path": file, "old_string": "a", "new_string": "b"}))]}),
        answer("t3", json!("ok")),
        json!({"role": "assistant", "content": [{"type": "text", "text": "The greeting is friendlier now."}]}),
    ];
    let mut root = Vec::new();
    for (n, message) in messages.iter().enumerate() {
        let digest = [n as u8 + 200; 32];
        root.extend([0x0a, 32]);
        root.extend(digest);
        let id: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        database.execute("INSERT INTO blobs VALUES (?1, ?2)", rusqlite::params![id, message.to_string().into_bytes()]).unwrap();
    }
    database.execute("INSERT INTO blobs VALUES ('f00d', ?1)", [root]).unwrap();
    let about = json!({"agentId": id, "latestRootBlobId": "f00d", "createdAt": BEGUN - 2}).to_string();
    let hex: String = about.bytes().map(|byte| format!("{byte:02x}")).collect();
    database.execute("INSERT INTO meta VALUES ('0', ?1)", [hex]).unwrap();
    drop(database);
    world.write(&format!("home/.cursor/chats/0f0f/{id}/meta.json"), &json!({"cwd": world.project()}).to_string());
    let transcript =
        [json!({"role": "user", "message": {"content": [{"type": "text", "text": "Make the greeting friendlier"}]}})];
    world.write(&format!("home/.cursor/projects/x/agent-transcripts/{id}/{id}.jsonl"), &lines(&transcript));
    world.nmem(&["import"]);
    holds_the_work(&world, "cursor");
}

#[test]
fn cursor_agents_transcript_alone_leaves_outcomes_open() {
    let world = World::new();
    let id = "22222222-aaaa-4000-8000-000000000002";
    let slug = world.project().display().to_string().trim_start_matches('/').replace(['/', '.'], "-");
    let asked =
        "<timestamp>Friday, Nov 20, 2026, 9:00 AM (UTC)</timestamp>\n<user_query>\nMake the greeting friendlier\n</user_query>";
    let records = [
        json!({"role": "user", "message": {"content": [{"type": "text", "text": asked}]}}),
        json!({"role": "assistant", "message": {"content": [{"type": "tool_use", "name": "Shell", "input": {"command": "ls"}}]}}),
        json!({"role": "assistant", "message": {"content": [{"type": "text", "text": "The greeting is friendlier now."}]}}),
    ];
    world.write(&format!("home/.cursor/projects/{slug}/agent-transcripts/{id}/{id}.jsonl"), &lines(&records));
    world.nmem(&["import"]);
    assert_eq!(world.sql("SELECT kind, content, succeeded FROM tool_uses"), "command|ls|-");
    assert_eq!(
        world.sql("SELECT text FROM prompts ORDER BY id"),
        "Make the greeting friendlier\nThe greeting is friendlier now."
    );
    assert_eq!(
        world.sql("SELECT p.name, s.started_at FROM sessions s JOIN projects p ON p.id = s.project_id"),
        format!("project|{BEGUN}")
    );
}

#[test]
fn vs_codes_log_of_a_chat() {
    let world = World::new();
    let file = world.project().join("greet.py");
    let call = |id: &str, name: &str, arguments: Value| json!({"id": id, "name": name, "arguments": arguments.to_string()});
    let calls = [
        call("v1", "read_file", json!({"filePath": file})),
        call("v2", "run_in_terminal", json!({"command": "ls /nonexistent"})),
        call("v3", "replace_string_in_file", json!({"filePath": file, "oldString": "a", "newString": "b"})),
    ];
    let part = |id: &str, tool: &str| json!({"kind": "toolInvocationSerialized", "toolCallId": id, "toolId": tool});
    let failed = json!({"content": [{"value": "no such file\nCommand exited with code 2"}]});
    let metadata = json!({"toolCallRounds": [{"toolCalls": calls}], "toolCallResults": {"v2": failed}});
    let request = json!({
        "requestId": "r1", "timestamp": at(0), "message": {"text": "Make the greeting friendlier"},
        "response": [{"value": "I look."}, part("v1", "copilot_readFile"), part("v2", "run_in_terminal"), part("v3", "copilot_replaceString"), {"value": "The greeting "}],
        "result": {"metadata": metadata, "timings": {"totalElapsed": 4000}},
    });
    let id = "33333333-aaaa-4000-8000-000000000003";
    let records = [
        json!({"kind": 0, "v": {"version": 3, "sessionId": id, "creationDate": at(0), "requests": [], "inputState": {"account": "someone.private"}}}),
        json!({"kind": 2, "k": ["requests"], "v": [request]}),
        json!({"kind": 2, "k": ["requests", 0, "response"], "v": [{"value": "is friendlier now."}]}),
        json!({"kind": 1, "k": ["customTitle"], "v": "Greeting"}),
    ];
    let workspace = "home/.config/Code/User/workspaceStorage/abc";
    world.write(
        &format!("{workspace}/workspace.json"),
        &json!({"folder": format!("file://{}", world.project().display())}).to_string(),
    );
    let file = format!("{workspace}/chatSessions/{id}.jsonl");
    world.write(&file, &lines(&records));
    imported_once(&world, "vscode", &file);
    let bytes: Vec<u8> = world.all_bytes().into_iter().flat_map(|(_, bytes)| bytes).collect();
    assert!(!String::from_utf8_lossy(&bytes).contains("someone.private"));
}

#[test]
fn what_hooks_recorded_without_ids_is_not_imported_again() {
    let world = World::new();
    let session = "11111111-aaaa-4000-8000-000000000001";
    let file = world.project().join("greet.py");
    let hook = |event: &str, seconds: i64, more: Value| {
        let mut payload =
            json!({"hook_event_name": event, "session_id": session, "cwd": world.project(), "timestamp": time(seconds)});
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        world.feed(&["record", "--platform", "gemini"], payload.to_string().as_bytes());
    };
    hook("SessionStart", 0, json!({"source": "startup"}));
    hook("BeforeAgent", 0, json!({"prompt": "Make the greeting friendlier"}));
    let tool = |name: &str, input: Value, output: &str| json!({"tool_name": name, "tool_input": input, "tool_response": {"llmContent": output}});
    hook("AfterTool", 2, tool("read_file", json!({"file_path": file}), "def greet"));
    hook(
        "AfterTool",
        2,
        tool("run_shell_command", json!({"command": "ls /nonexistent"}), "Output: no\nExit Code: 2\nProcess Group PGID: 7"),
    );
    hook("AfterTool", 3, tool("replace", json!({"file_path": file, "old_string": "a", "new_string": "b"}), "ok"));
    hook("AfterAgent", 4, json!({"prompt_response": "The greeting is friendlier now."}));
    let mut records = vec![gemini_head()];
    records.extend(gemini_messages(&world));
    world.write("home/.gemini/tmp/project/chats/session-2026-11-20T09-00-11111111.jsonl", &lines(&records));
    world.nmem(&["import"]);
    assert_eq!(world.count("SELECT count(*) FROM tool_uses"), 3);
    assert_eq!(
        world.sql("SELECT source, text FROM prompts ORDER BY id"),
        "user|Make the greeting friendlier\nagent|The greeting is friendlier now."
    );
}

#[test]
fn a_database_that_cannot_be_read_is_named_and_the_others_are_imported() {
    let world = World::new();
    world.write(
        "home/.local/share/opencode/opencode-beta.db",
        "not a database, but long enough to look like one ".repeat(30).as_str(),
    );
    let database = opencode_database(&world);
    add_opencode_session(&database, &world, "session", "ses_1", None);
    add_opencode_messages(&database, &world, "ses_1");
    drop(database);
    let report = world.nmem(&["import"]).text();
    assert!(report.contains("not readable: $WORLD/home/.local/share/opencode/opencode-beta.db"), "{report}");
    holds_the_work(&world, "opencode");
}

#[test]
fn a_chat_that_was_made_to_be_too_deep_ends_no_import() {
    let world = World::new();
    let deep: Vec<Value> = (0..3000).map(|n| json!({"kind": 1, "k": vec!["a"; n], "v": {}})).collect();
    let mut records = vec![json!({"kind": 0, "v": {"sessionId": "deep", "requests": []}})];
    records.extend(deep);
    world.write("home/.config/Code/User/globalStorage/emptyWindowChatSessions/deep.jsonl", &lines(&records));
    let mut session = gemini_head();
    session["messages"] = json!(gemini_messages(&world));
    world.write("home/.gemini/tmp/ab/chats/session-2026-11-20T09-00-11111111.json", &session.to_string());
    let output = world.nmem(&["import"]);
    assert_eq!(output.code, Some(0), "{}", output.text());
    assert_eq!(world.count("SELECT count(*) FROM tool_uses"), 3);
}

/// The work as messages of Anthropic's blocks, with the agent's own names for tools.
fn messages(read: (&str, Value), command: (&str, Value), edit: (&str, Value)) -> Vec<(&'static str, Value)> {
    let call = |id: &str, (name, input): (&str, Value)| json!({"type": "tool_use", "id": id, "name": name, "input": input});
    let result = |id: &str, is_error: bool, said: &str| json!({"type": "tool_result", "tool_use_id": id, "is_error": is_error, "content": said});
    vec![
        ("user", json!([{"type": "text", "text": "Make the greeting friendlier"}])),
        ("assistant", json!([call("c1", read)])),
        ("user", json!([result("c1", false, "def greet(): pass")])),
        ("assistant", json!([call("c2", command)])),
        ("user", json!([result("c2", true, "no such file\nCommand exited with code 2")])),
        ("assistant", json!([call("c3", edit)])),
        ("user", json!([result("c3", false, "done")])),
        ("assistant", json!([{"type": "text", "text": "The greeting is friendlier now."}])),
    ]
}

fn edited(path: &Value) -> Value {
    json!({"path": path, "file_path": path, "old_str": "Hello", "new_str": "Hello there"})
}

#[test]
fn amp_threads() {
    let world = World::new();
    let file = json!(world.project().join("greet.py"));
    let all =
        messages(("Read", json!({"path": file})), ("Bash", json!({"cmd": "ls /nonexistent"})), ("edit_file", edited(&file)));
    let message = |(n, (role, content)): (usize, (&str, Value))| {
        let block = |block: &Value| match block["type"] == "tool_result" {
            true => {
                let status = if block["is_error"] == true { "error" } else { "done" };
                json!({"type": "tool_result", "toolUseID": block["tool_use_id"], "run": {"status": status, "result": block["content"]}})
            }
            false => block.clone(),
        };
        let content: Vec<Value> = content.as_array().unwrap().iter().map(block).collect();
        json!({"role": role, "content": content, "meta": {"sentAt": at(n as i64)}})
    };
    let tree = json!([{"uri": format!("file://{}", world.project().display())}]);
    let thread = json!({"v": 3, "id": "T-1", "created": BEGUN, "env": {"initial": {"trees": tree}},
        "messages": all.into_iter().enumerate().map(message).collect::<Vec<_>>()});
    let source = "home/.local/share/amp/threads/T-1.json";
    world.write(source, &thread.to_string());
    imported_once(&world, "amp", source);
}

#[test]
fn goose_database() {
    let world = World::new();
    let file = json!(world.project().join("greet.py"));
    let text_editor = |command: &str, mut input: Value| {
        input["command"] = json!(command);
        ("developer__text_editor", input)
    };
    let command = ("developer__shell", json!({"command": "ls /nonexistent"}));
    let all = messages(text_editor("view", json!({"path": file})), command, text_editor("str_replace", edited(&file)));
    let source = "home/.local/share/goose/sessions/sessions.db";
    world.write(source, "");
    let database = Connection::open(world.folder.join(source)).unwrap();
    database
        .execute_batch(
            "CREATE TABLE sessions (id TEXT PRIMARY KEY, working_dir TEXT, updated_at TIMESTAMP);
             CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content_json TEXT, created_timestamp INTEGER);
             CREATE TABLE schema_version (version INTEGER);",
        )
        .unwrap();
    database
        .execute("INSERT INTO sessions VALUES ('20261120_1', ?1, '2026-11-20 09:01:00')", [world.project().display().to_string()])
        .unwrap();
    for (n, (role, content)) in all.into_iter().enumerate() {
        let block = |block: &Value| match block["type"].as_str().unwrap() {
            "tool_use" => {
                let value = json!({"name": block["name"], "arguments": block["input"]});
                json!({"type": "toolRequest", "id": block["id"], "toolCall": {"status": "success", "value": value}})
            }
            "tool_result" => {
                let value = json!({"content": [{"type": "text", "text": block["content"]}], "isError": block["is_error"]});
                json!({"type": "toolResponse", "id": block["tool_use_id"], "toolResult": {"status": "success", "value": value}})
            }
            _ => block.clone(),
        };
        let content: Vec<Value> = content.as_array().unwrap().iter().map(block).collect();
        let values = (role, json!(content).to_string(), at(n as i64) / 1000);
        database
            .execute(
                "INSERT INTO messages (session_id, role, content_json, created_timestamp) VALUES ('20261120_1', ?1, ?2, ?3)",
                values,
            )
            .unwrap();
    }
    drop(database);
    imported_once(&world, "goose", source);
}

#[test]
fn crush_database_of_the_project() {
    let world = World::new();
    let file = json!(world.project().join("greet.py"));
    let edit = json!({"file_path": file, "old_string": "Hello", "new_string": "Hello there"});
    let all = messages(("view", json!({"file_path": file})), ("bash", json!({"command": "ls /nonexistent"})), ("edit", edit));
    let source = "project/.crush/crush.db";
    world.write(source, "");
    let database = Connection::open(world.folder.join(source)).unwrap();
    database
        .execute_batch(
            "CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT, updated_at INTEGER, created_at INTEGER);
             CREATE TABLE messages (id TEXT PRIMARY KEY, session_id TEXT, role TEXT, parts TEXT, created_at INTEGER);
             CREATE TABLE files (id TEXT); CREATE TABLE goose_db_version (id INTEGER);",
        )
        .unwrap();
    let session = ("INSERT INTO sessions VALUES ('s1', NULL, 'x', ?1, ?1)", [at(60) / 1000]);
    database.execute(session.0, session.1).unwrap();
    for (n, (role, content)) in all.into_iter().enumerate() {
        let part = |block: &Value| match block["type"].as_str().unwrap() {
            "tool_use" => {
                let data =
                    json!({"id": block["id"], "name": block["name"], "input": block["input"].to_string(), "finished": true});
                json!({"type": "tool_call", "data": data})
            }
            "tool_result" => {
                let data =
                    json!({"tool_call_id": block["tool_use_id"], "content": block["content"], "is_error": block["is_error"]});
                json!({"type": "tool_result", "data": data})
            }
            _ => json!({"type": "text", "data": {"text": block["text"]}}),
        };
        let parts: Vec<Value> = content.as_array().unwrap().iter().map(part).collect();
        let role = if parts[0]["type"] == "tool_result" { "tool" } else { role };
        let values = (format!("m{n}"), role, json!(parts).to_string(), at(n as i64) / 1000);
        database.execute("INSERT INTO messages VALUES (?1, 's1', ?2, ?3, ?4)", values).unwrap();
    }
    drop(database);
    imported_once(&world, "crush", source);
}

/// Zed's types are public; no real database was at hand.
#[test]
fn zed_threads() {
    let world = World::new();
    let path = json!("project/greet.py");
    let all = messages(
        ("read_file", json!({"path": path})),
        ("terminal", json!({"command": "ls /nonexistent", "cd": "project"})),
        ("edit_file", json!({"path": path, "display_description": "Friendlier", "mode": "edit"})),
    );
    let said = |text: &str| {
        text.replace(
            "no such file\nCommand exited with code 2",
            "Command \"ls /nonexistent\" failed with exit code 2.\n\nno such file",
        )
    };
    let mut thread: Vec<Value> = Vec::new();
    for (role, content) in all {
        for block in content.as_array().unwrap() {
            match (role, block["type"].as_str().unwrap()) {
                ("user", "text") => thread.push(json!({"User": {"id": "u", "content": [{"Text": block["text"]}]}})),
                ("assistant", "text") => thread.push(
                    json!({"Agent": {"content": [{"Thinking": {"text": "hm"}}, {"Text": block["text"]}], "tool_results": {}}}),
                ),
                (_, "tool_use") => {
                    let call = json!({"id": block["id"], "name": block["name"], "raw_input": "", "input": block["input"], "is_input_complete": true});
                    thread.push(json!({"Agent": {"content": [{"ToolUse": call}], "tool_results": {}}}));
                }
                _ => {
                    let id = block["tool_use_id"].as_str().unwrap();
                    let result = json!({"tool_use_id": id, "tool_name": "x", "is_error": false, "content": [{"Text": said(block["content"].as_str().unwrap())}], "output": null});
                    thread.last_mut().unwrap()["Agent"]["tool_results"][id] = result;
                }
            }
        }
    }
    thread.push(json!("Resume"));
    let document =
        json!({"title": "x", "messages": thread, "updated_at": "2026-11-20T09:01:00Z", "version": "0.3.0"}).to_string();
    let source = "home/.local/share/zed/threads/threads.db";
    world.write(source, "");
    let database = Connection::open(world.folder.join(source)).unwrap();
    database
        .execute_batch(
            "CREATE TABLE threads (id TEXT PRIMARY KEY, summary TEXT NOT NULL, updated_at TEXT NOT NULL, data_type TEXT NOT NULL,
             data BLOB NOT NULL, parent_id TEXT, folder_paths TEXT, folder_paths_order TEXT, created_at TEXT);",
        )
        .unwrap();
    let packed = ruzstd::encoding::compress_to_vec(document.as_bytes(), ruzstd::encoding::CompressionLevel::Fastest);
    let add = "INSERT INTO threads VALUES (?1, 'x', '2026-11-20T09:01:00Z', 'zstd', ?2, ?3, ?4, '0', '2026-11-20T09:00:00Z')";
    let folder = world.project().display().to_string();
    database.execute(add, (("the-thread"), &packed, None::<&str>, &folder)).unwrap();
    // A subagent's work is in the calls of its parent.
    database.execute(add, ("a-subagent", &packed, Some("the-thread"), &folder)).unwrap();
    drop(database);
    imported_once(&world, "zed", source);
}
