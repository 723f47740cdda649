//! Secrets of every family, planted in the session files of every agent and in other memories: none reaches the disk.

use crate::families::samples::{Sample, leaks, samples};
use crate::world::World;
use crate::world::transcript::{FOLDER, Lines, SESSION, import};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Keys that look like the hashes of which code is full. Hooks do not find them either.
const LIKE_HASHES: [&str; 2] = ["mailgun", "settlemint"];

/// Writes one sample as a prompt, a command with its output, a failure, an edit and a closing message.
type Plant = fn(&World, &[(String, &Sample)]);

fn claude(world: &World, texts: &[(String, &Sample)]) {
    let mut lines = Lines::new(world);
    for (n, (text, _)) in texts.iter().enumerate() {
        lines.user(&format!("{n} {text}"));
        lines.uses(
            &format!("a{n}"),
            "Bash",
            json!({"command": text, "description": text}),
            json!({"stdout": text, "stderr": ""}),
        );
        lines.fails(&format!("b{n}"), "make", text);
        let file = format!("{}/src/a{n}.rs", lines.cwd);
        lines.uses(&format!("c{n}"), "Edit", json!({"file_path": file, "old_string": "x", "new_string": text}), json!({}));
        lines.says(text);
    }
    world.write(&format!("{FOLDER}/{SESSION}.jsonl"), &lines.text);
}

fn line(n: usize, more: Value) -> String {
    let at = jiff::Timestamp::from_millisecond(1_790_000_000_000 + n as i64 * 1000).unwrap().to_string();
    let mut line = json!({"timestamp": at, "id": format!("line-{n}")});
    line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    format!("{line}\n")
}

fn codex(world: &World, texts: &[(String, &Sample)]) {
    let mut all = line(0, json!({"type": "session_meta", "payload": {"id": SESSION, "cwd": world.project()}}));
    let mut add = |kind: &str, payload: Value| all += &line(1, json!({"type": kind, "payload": payload}));
    for (n, (text, _)) in texts.iter().enumerate() {
        add("event_msg", json!({"type": "task_started", "turn_id": format!("turn-{n}")}));
        add("event_msg", json!({"type": "user_message", "message": format!("{n} {text}")}));
        for (id, code) in [("ok", 0), ("no", 2)] {
            let (id, arguments) = (format!("{id}{n}"), json!({"cmd": text}).to_string());
            add("response_item", json!({"type": "function_call", "name": "exec_command", "call_id": id, "arguments": arguments}));
            let output = format!("Process exited with code {code}\nOutput:\n{text}");
            add("response_item", json!({"type": "function_call_output", "call_id": id, "output": output}));
        }
        let id = format!("patch{n}");
        add("response_item", json!({"type": "custom_tool_call", "name": "apply_patch", "call_id": id, "input": text}));
        let changes = json!({format!("src/a{n}.rs"): {"type": "add", "content": text}});
        add("event_msg", json!({"type": "patch_apply_end", "call_id": id, "success": true, "changes": changes}));
        add("event_msg", json!({"type": "task_complete", "last_agent_message": text}));
    }
    world.write(&format!("home/.codex/sessions/2026/06/18/rollout-2026-06-18T04-57-11-{SESSION}.jsonl"), &all);
}

fn copilot_lines(world: &World, texts: &[(String, &Sample)], version: &str, shell: &str) -> String {
    let mut all = line(
        0,
        json!({"type": "session.start", "data": {"sessionId": SESSION, version: "1.1", "context": {"cwd": world.project()}}}),
    );
    let mut count = 0;
    let mut add = |kind: &str, data: Value| {
        count += 1;
        all += &line(count, json!({"type": kind, "data": data}));
    };
    for (n, (text, _)) in texts.iter().enumerate() {
        add("user.message", json!({"content": format!("{n} {text}")}));
        let edit = json!({"path": format!("src/a{n}.rs"), "old_str": "x", "new_str": text});
        let calls =
            [("ok", shell, json!({"command": text}), 0), ("no", shell, json!({"command": text}), 1), ("edit", "edit", edit, 0)];
        for (id, tool, arguments, code) in calls {
            let id = format!("{id}{n}");
            add("tool.execution_start", json!({"toolCallId": id, "toolName": tool, "arguments": arguments}));
            let content = format!("{text}\n<exited with exit code {code}>");
            add("tool.execution_complete", json!({"toolCallId": id, "success": true, "result": {"content": content}}));
        }
        add("assistant.message", json!({"messageId": format!("m{n}"), "content": text, "toolRequests": []}));
    }
    all
}

fn copilot(world: &World, texts: &[(String, &Sample)]) {
    world.write(
        &format!("home/.copilot/session-state/{SESSION}/events.jsonl"),
        &copilot_lines(world, texts, "copilotVersion", "bash"),
    );
}

fn vs_code(world: &World, texts: &[(String, &Sample)]) {
    let folder = "home/.config/Code/User/workspaceStorage/0a1b/GitHub.copilot-chat/transcripts";
    world.write(&format!("{folder}/{SESSION}.jsonl"), &copilot_lines(world, texts, "vscodeVersion", "run_in_terminal"));
}

fn notes(world: &World, texts: &[(String, &Sample)]) {
    let mut lines = Lines::new(world);
    world.write(&format!("{FOLDER}/{SESSION}.jsonl"), &lines.work().text);
    let note = |(text, _): &(String, &Sample)| format!("## Access\n{text}\n");
    let all: String = texts.iter().map(note).collect();
    world.write(&format!("{FOLDER}/memory/MEMORY.md"), &all);
    for (n, (text, _)) in texts.iter().enumerate() {
        world.write(
            &format!("{FOLDER}/memory/note-{n}.md"),
            &format!("---\ndescription: {}\n---\n{text}\n", text.replace('\n', " ")),
        );
    }
}

fn claude_mem(world: &World, texts: &[(String, &Sample)]) {
    let mut lines = Lines::new(world);
    world.write(&format!("{FOLDER}/{SESSION}.jsonl"), &lines.work().text);
    world.write("home/.claude-mem/claude-mem.db", "");
    let conn = world.connect_to(&world.home().join(".claude-mem/claude-mem.db"));
    conn.execute_batch(
        "CREATE TABLE sdk_sessions (content_session_id TEXT, memory_session_id TEXT);
         CREATE TABLE observations (id INTEGER PRIMARY KEY, memory_session_id TEXT, project TEXT, type TEXT, title TEXT, subtitle TEXT, facts TEXT, narrative TEXT, created_at_epoch INTEGER);
         CREATE TABLE session_summaries (id INTEGER PRIMARY KEY, memory_session_id TEXT, project TEXT, request TEXT, learned TEXT, next_steps TEXT, created_at_epoch INTEGER);",
    )
    .unwrap();
    conn.execute("INSERT INTO sdk_sessions VALUES (?1, 'own')", [SESSION]).unwrap();
    for (text, _) in texts {
        let facts = json!([text]).to_string();
        conn.execute(
            "INSERT INTO observations VALUES (NULL, 'own', 'project', 'change', ?1, ?1, ?2, ?1, 1790000000000)",
            [text, &facts],
        )
        .unwrap();
        conn.execute("INSERT INTO session_summaries VALUES (NULL, 'own', 'project', ?1, ?1, ?1, 1790000000000)", [text]).unwrap();
    }
}

/// The rules of which some file of nmem's holds a secret after an import.
fn leaked(samples: &[&Sample], plant: Plant) -> BTreeSet<String> {
    let world = World::new();
    let texts: Vec<(String, &Sample)> =
        samples.iter().map(|sample| (format!("one line before\n{}\n\none line after", sample.text), *sample)).collect();
    plant(&world, &texts);
    let report = import(&world, &[]);
    let hidden = report["agents"].as_array().unwrap().iter().map(|agent| agent["secrets_hidden"].as_u64().unwrap()).sum::<u64>();
    assert!(hidden as usize > samples.len(), "{report}");
    let stored = world.count(
        "SELECT (SELECT count(*) FROM prompts WHERE text LIKE '%one line after%')
        + (SELECT count(*) FROM memories WHERE concat(body, content) LIKE '%one line after%')",
    );
    assert!(stored as usize >= samples.len() * 9 / 10, "{stored} of {}: the surroundings are kept", samples.len());
    let own: Vec<String> = std::fs::read_dir(world.data())
        .unwrap()
        .map(|entry| String::from_utf8_lossy(&std::fs::read(entry.unwrap().path()).unwrap()).into_owned())
        .collect();
    samples.iter().filter(|sample| own.iter().any(|text| leaks(text, &sample.secret))).map(|sample| sample.rule.clone()).collect()
}

#[test]
fn no_family_of_secrets_gets_through_any_format() {
    let all = samples(11, 1);
    let fixed: Vec<&Sample> = all.iter().filter(|sample| sample.group == "fixed form").collect();
    let families: BTreeSet<&str> = fixed.iter().map(|sample| sample.rule.as_str()).collect();
    assert!(families.len() >= 60, "{} families", families.len());
    let formats: [(&str, Plant); 6] = [
        ("Claude Code", claude),
        ("Codex", codex),
        ("Copilot CLI", copilot),
        ("VS Code", vs_code),
        ("notes", notes),
        ("claude-mem", claude_mem),
    ];
    for (format, plant) in formats {
        let leaked = leaked(&fixed, plant);
        println!("{format}: {} families planted, leaked: {leaked:?}", families.len());
        assert!(leaked.iter().all(|rule| LIKE_HASHES.contains(&rule.as_str())), "{format}: {leaked:?}");
    }
}
