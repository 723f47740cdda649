//! Past sessions of Codex: what stands in its files twice, in texts, compressed or in another folder.

use crate::world::World;
use crate::world::session::{MINUTE, NINE};
use serde_json::{Value, json};
use std::fs;

const SESSION: &str = "019ed917-1cf7-72a3-92f5-c0aa98fb134e";
const FILE: &str = "home/.codex/sessions/2026/06/18/rollout-2026-06-18T04-57-11-019ed917-1cf7-72a3-92f5-c0aa98fb134e.jsonl";

/// Lines of a session file, one minute apart.
struct Lines {
    cwd: String,
    at: i64,
    text: String,
}

impl Lines {
    fn new(world: &World) -> Lines {
        let cwd = world.project().display().to_string();
        let mut lines = Lines { cwd: cwd.clone(), at: NINE - 100 * 24 * 60 * MINUTE, text: String::new() };
        let git = json!({"branch": "main", "commit_hash": "3fa10617a9b3f29c7d1de54ab3a1f6de5d8d3c11"});
        lines.add("session_meta", json!({"id": SESSION, "cwd": cwd, "git": git, "cli_version": "0.142.2"}));
        lines
    }

    fn add(&mut self, kind: &str, payload: Value) -> &mut Lines {
        self.at += MINUTE;
        let time = jiff::Timestamp::from_millisecond(self.at).unwrap().to_string();
        self.text += &(json!({"timestamp": time, "type": kind, "payload": payload}).to_string() + "\n");
        self
    }

    fn event(&mut self, payload: Value) -> &mut Lines {
        self.add("event_msg", payload)
    }

    fn asks(&mut self, turn: &str, text: &str) -> &mut Lines {
        self.event(json!({"type": "task_started", "turn_id": turn}));
        let content = json!([{"type": "input_text", "text": text}]);
        self.add("response_item", json!({"type": "message", "role": "user", "content": content}));
        self.event(json!({"type": "user_message", "message": text}))
    }

    fn closes(&mut self, text: &str) -> &mut Lines {
        self.event(json!({"type": "agent_message", "message": text, "phase": "final"}));
        self.event(json!({"type": "task_complete", "last_agent_message": text}))
    }

    fn tokens(&mut self, input: i64, cached: i64, output: i64) -> &mut Lines {
        let total = json!({"input_tokens": input, "cached_input_tokens": cached, "output_tokens": output});
        let last = json!({"input_tokens": 10, "cached_input_tokens": 4, "output_tokens": 2});
        self.event(json!({"type": "token_count", "info": {"total_token_usage": total, "last_token_usage": last}}))
    }

    fn call(&mut self, id: &str, name: &str, arguments: &Value) -> &mut Lines {
        let arguments = arguments.to_string();
        self.add("response_item", json!({"type": "function_call", "name": name, "arguments": arguments, "call_id": id}))
    }

    fn output(&mut self, id: &str, head: &str, text: &str) -> &mut Lines {
        let output = format!("Chunk ID: 1\nWall time: 0.1 seconds\n{head}\nOriginal token count: 3\nOutput:\n{text}");
        self.add("response_item", json!({"type": "function_call_output", "call_id": id, "output": output}))
    }

    fn patch(&mut self, id: &str, file: &str) -> &mut Lines {
        let patch = format!("*** Begin Patch\n*** Update File: {file}\n@@\n-old\n+new\n*** End Patch");
        self.add("response_item", json!({"type": "custom_tool_call", "name": "apply_patch", "input": patch, "call_id": id}))
    }

    fn patched(&mut self, id: &str, file: &str) -> &mut Lines {
        let changes = json!({file: {"type": "update", "unified_diff": "@@ -1 +1 @@\n-old\n+new\n", "move_path": null}});
        self.event(json!({"type": "patch_apply_end", "call_id": id, "success": true, "changes": changes}));
        let output = "Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess.";
        self.add("response_item", json!({"type": "custom_tool_call_output", "call_id": id, "output": output}))
    }

    fn work(&mut self) -> &mut Lines {
        let file = format!("{}/src/login.rs", self.cwd);
        self.asks("turn-1", "Fix the login: tokens expire too early. Always round expiry up to the next minute.");
        self.call("c1", "exec_command", &json!({"cmd": "cargo test login"}));
        self.output("c1", "Process exited with code 101", "test login::expiry ... FAILED\nassertion failed: 59 != 60");
        self.patch("c2", &file).patched("c2", &file);
        self.call("c3", "exec_command", &json!({"cmd": "cargo test login"}));
        self.output("c3", "Process exited with code 0", "test result: ok. 4 passed");
        self.tokens(100, 40, 20);
        self.closes("Fixed. The root cause was that expiry was rounded down to the minute, so tokens expired early.")
    }
}

fn import(world: &World) -> Value {
    let out = world.nmem(&["import", "--json", "--agent", "codex"]);
    assert_eq!((out.stderr.as_str(), out.code), ("", Some(0)));
    serde_json::from_str(&out.stdout).unwrap()
}

fn counts(report: &Value) -> (u64, u64, u64) {
    let of = |key: &str| report["agents"][0][key].as_u64().unwrap();
    (of("prompts"), of("tool_uses"), of("failures"))
}

#[test]
fn a_past_session_becomes_units_and_what_has_grown_is_read_on() {
    let world = World::new();
    let mut lines = Lines::new(&world);
    lines.work();
    world.write(FILE, &lines.text);
    assert_eq!(counts(&import(&world)), (1, 3, 1));
    let unit = world.nmem(&["units", "--json"]).lines().remove(0);
    assert_eq!((unit["outcome"].as_str(), unit["state"].as_str()), (Some("done"), Some("closed")));
    assert_eq!(unit["files"][0]["path"], "src/login.rs");
    assert_eq!(unit["tokens"]["input"], 60, "without what came from the cache");
    lines.asks("turn-2", "commit it").call("c9", "exec_command", &json!({"cmd": "git commit -m 'Fix the expiry'"}));
    lines.output("c9", "Process exited with code 0", "[main 1234567] Fix the expiry").tokens(110, 44, 22).closes("Committed.");
    world.write(FILE, &lines.text);
    assert_eq!(counts(&import(&world)), (1, 1, 0));
    assert_eq!(world.sql("SELECT input_tokens, output_tokens FROM sessions"), "66|22");
    assert_eq!(world.sql("SELECT platform, agent_session_id, start_branch FROM sessions"), format!("codex|{SESSION}|main"));
    assert_eq!(world.sql("SELECT tool_name FROM tool_uses WHERE kind = 'command' LIMIT 1"), "exec_command");
}

#[test]
fn a_turn_that_was_open_at_an_import_is_not_doubled_when_it_goes_on() {
    let world = World::new();
    let mut lines = Lines::new(&world);
    lines.work().asks("turn-2", "commit it").call("c9", "exec_command", &json!({"cmd": "git commit -m 'Fix the expiry'"}));
    lines.output("c9", "Process exited with code 0", "[main 1234567] Fix the expiry");
    world.write(FILE, &lines.text);
    import(&world);
    lines.call("c10", "exec_command", &json!({"cmd": "git push"})).output("c10", "Process exited with code 0", "pushed");
    lines.closes("Committed and pushed.");
    world.write(FILE, &lines.text);
    import(&world);
    let prompts = world.sql("SELECT text FROM prompts WHERE kind = 'prompt' ORDER BY id");
    assert!(prompts.ends_with("next minute.\ncommit it"), "{prompts}");
    assert_eq!(world.count("SELECT count(*) FROM tool_uses"), 5);
    assert_eq!(world.count("SELECT count(*) FROM prompts WHERE kind = 'closing'"), 2);
}

#[test]
fn exit_codes_stand_in_texts_and_some_calls_have_no_end() {
    let world = World::new();
    let mut lines = Lines::new(&world);
    lines.asks("turn-1", "Run the slow tests and fix what fails, please");
    lines.call("c1", "exec_command", &json!({"cmd": "cargo test --release"}));
    lines.output("c1", "Process running with session ID 77", "Compiling");
    lines.call("c2", "write_stdin", &json!({"session_id": 77, "chars": ""}));
    lines.output("c2", "Process exited with code 101", "test slow ... FAILED");
    lines.patch("c3", "src/slow.rs");
    let refused = "apply_patch verification failed: Failed to find expected lines in src/slow.rs";
    lines.add("response_item", json!({"type": "custom_tool_call_output", "call_id": "c3", "output": refused}));
    lines.call("c4", "_fetch_pr", &json!({"number": 1}));
    let answer = "Wall time: 1 seconds\nOutput:\n{\"error\": \"not found\"}";
    lines.add("response_item", json!({"type": "function_call_output", "call_id": "c4", "output": answer}));
    lines.event(json!({"type": "turn_aborted", "turn_id": "turn-1", "reason": "interrupted"}));
    world.write(FILE, &lines.text);
    assert_eq!(counts(&import(&world)), (1, 4, 3));
    let failed = world.sql("SELECT content, succeeded FROM tool_uses ORDER BY id");
    assert!(failed.contains("cargo test --release|0"), "the command, not what asked for its end: {failed}");
    assert!(failed.contains("src/slow.rs|0"), "{failed}");
}

#[test]
fn both_generations_of_events_give_prompts_and_rolled_back_turns_give_none() {
    let world = World::new();
    let mut lines = Lines::new(&world);
    let item = |kind: &str, text: &str| json!({"type": "item_completed", "item": {"type": kind, "content": [{"type": "text", "text": text}]}});
    lines.event(json!({"type": "task_started", "turn_id": "turn-1"}));
    lines.event(item(
        "UserMessage",
        "# Context from my IDE\n\nOpen: a.rs\n\n## My request for Codex:\nWrite the manual of the exporter",
    ));
    lines.event(item("AgentMessage", "The manual is written."));
    lines.event(json!({"type": "task_complete", "last_agent_message": "The manual is written."}));
    lines.asks("turn-2", "Now translate everything into Latin").event(json!({"type": "thread_rolled_back", "num_turns": 1}));
    lines.asks("turn-3", "Now the index").closes("Added the index.");
    world.write(FILE, &lines.text);
    import(&world);
    let prompts = world.sql("SELECT text FROM prompts ORDER BY id");
    assert_eq!(prompts, "Write the manual of the exporter\nThe manual is written.\nNow the index\nAdded the index.");
}

#[test]
fn events_report_what_a_script_of_the_agent_did_and_unknown_tools_fail() {
    let world = World::new();
    let mut lines = Lines::new(&world);
    let file = world.project().join("src/login.rs").display().to_string();
    lines.asks("turn-1", "Fix the login with a script, please");
    lines.add("response_item", json!({"type": "custom_tool_call", "name": "exec", "call_id": "c1", "input": "await tools.exec_command({cmd: 'cargo test'})"}));
    let command = json!({"type": "CommandExecution", "id": "exec-1", "command": ["/bin/bash", "-lc", "cargo test"], "status": "failed",
        "cwd": format!("file://{}", lines.cwd), "aggregated_output": "test login ... FAILED", "exit_code": 101});
    lines.event(json!({"type": "item_completed", "item": command}));
    let changes = json!({file: {"type": "update", "unified_diff": "@@ -1 +1 @@\n-old\n+new\n"}});
    lines.event(json!({"type": "item_completed", "item": {"type": "FileChange", "id": "exec-2", "changes": changes, "status": "completed"}}));
    let output = json!([{"type": "input_text", "text": "Script completed\nOutput:\n"}, {"type": "input_text", "text": "{}"}]);
    lines.add("response_item", json!({"type": "custom_tool_call_output", "call_id": "c1", "output": output}));
    lines.call("c2", "shell_command", &json!({"command": "ls"}));
    lines.add(
        "response_item",
        json!({"type": "function_call_output", "call_id": "c2", "output": "unsupported call: shell_command"}),
    );
    lines.closes("Fixed by the script.");
    world.write(FILE, &lines.text);
    assert_eq!(counts(&import(&world)), (1, 2, 1));
    let stored = world.sql("SELECT kind, coalesce(content, path), succeeded FROM tool_uses ORDER BY id");
    assert_eq!(stored, "command|cargo test|0\nedit|src/login.rs|1\ncommand|ls|0");
}

#[test]
fn the_commands_of_scripts_are_found_where_no_event_reports_them() {
    let world = World::new();
    let mut lines = Lines::new(&world);
    let script = |lines: &mut Lines, id: &str, input: String, output: Value| {
        lines.add("response_item", json!({"type": "custom_tool_call", "name": "exec", "call_id": id, "input": input}));
        lines.add("response_item", json!({"type": "custom_tool_call_output", "call_id": id, "output": output}));
    };
    let said = |head: &str, texts: &[&str]| {
        let parts = [head].into_iter().chain(texts.iter().copied()).map(|text| json!({"type": "input_text", "text": text}));
        Value::Array(parts.collect())
    };
    let done = "Script completed\nWall time 0.1 seconds\nOutput:\n";
    lines.asks("turn-1", "Fix the login with scripts, please");
    let result = |code: i64, output: &str| {
        json!({"chunk_id": "a", "wall_time_seconds": 0.1, "exit_code": code, "output": output}).to_string()
    };
    let both = "const a = await tools.exec_command({cmd: 'cargo build'}); const b = await tools.exec_command({\"cmd\": \"cargo test\"}); text(a); text(b);";
    script(&mut lines, "c1", both.into(), said(done, &[&result(0, "Finished"), &result(101, "test login ... FAILED")]));
    script(&mut lines, "c2", "text((await tools.exec_command({cmd: `git log`})).output)".into(), said(done, &["abc first"]));
    let patch = "await tools.apply_patch(\"*** Begin Patch\\n*** Update File: src/login.rs\\n@@\\n-old\\n+new\\n*** End Patch\")";
    script(&mut lines, "c3", patch.into(), said(done, &["Success. Updated the following files:\nM src/login.rs\n"]));
    script(
        &mut lines,
        "c4",
        "text(await tools.exec_command({cmd: 'make all'}))".into(),
        said("Script running with cell ID 28\nOutput:\n", &[]),
    );
    lines.call("c5", "wait", &json!({"cell_id": "28"}));
    lines.add(
        "response_item",
        json!({"type": "function_call_output", "call_id": "c5", "output": said(done, &[&result(0, "all made")])}),
    );
    lines.closes("Fixed by scripts.");
    world.write(FILE, &lines.text);
    import(&world);
    let stored = world.sql("SELECT kind, coalesce(content, path), coalesce(succeeded, 'unknown') FROM tool_uses ORDER BY id");
    let expected =
        "command|cargo build|1\ncommand|cargo test|0\ncommand|git log|unknown\nedit|src/login.rs|1\ncommand|make all|1";
    assert_eq!(stored, expected);
}

#[test]
fn files_from_before_september_2025_are_read() {
    let world = World::new();
    let folder = world.project().display().to_string();
    let said =
        |role: &str, text: &str| json!({"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]});
    let call = json!({"type": "function_call", "name": "shell", "call_id": "c1", "arguments": json!({"command": ["bash", "-lc", "cargo test"]}).to_string()});
    let output = json!({"output": "test login ... FAILED", "metadata": {"exit_code": 101, "duration_seconds": 0.2}}).to_string();
    let lines = [
        json!({"id": SESSION, "timestamp": "2025-06-18T04:57:11.000Z", "instructions": null, "git": {"branch": "main"}}),
        json!({"record_type": "state"}),
        said(
            "user",
            &format!(
                "<environment_context>\nCurrent working directory: {folder}\nApproval policy: never\n</environment_context>"
            ),
        ),
        said("user", "Fix the login, please"),
        call,
        json!({"type": "function_call_output", "call_id": "c1", "output": output}),
        said("assistant", "The login is fixed."),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    world.write(FILE, &text);
    assert_eq!(counts(&import(&world)), (1, 1, 1));
    assert_eq!(world.sql("SELECT text FROM prompts ORDER BY id"), "Fix the login, please\nThe login is fixed.");
    assert_eq!(world.sql("SELECT content, succeeded FROM tool_uses"), "cargo test|0");
    assert_eq!(world.count("SELECT count(*) FROM sessions WHERE cwd LIKE '%/project'"), 1);
}

#[test]
fn turns_that_were_undone_are_no_work() {
    let world = World::new();
    let mut lines = Lines::new(&world);
    lines.asks("turn-1", "Write the manual of the exporter").closes("Written.");
    lines.asks("turn-2", "Translate it into Latin").closes("Done.").asks("turn-3", "And into Greek").closes("Done, too.");
    lines.event(json!({"type": "thread_rolled_back", "num_turns": 2})).asks("turn-4", "Add an index").closes("Added.");
    let ordinals = |text: &str, from: i64| -> String {
        let numbered =
            text.lines().zip(from..).map(|(line, ordinal)| line.replacen('{', &format!("{{\"ordinal\":{ordinal},"), 1) + "\n");
        numbered.collect()
    };
    let length = lines.text.lines().count() as i64;
    lines.asks("turn-5", "Print it on paper").closes("Printed.");
    world.write(FILE, &ordinals(&lines.text, 0));
    // A later file of the session continues from before the last turn.
    let mut later = Lines { at: lines.at, text: String::new(), ..Lines::new(&world) };
    let base = json!({"thread_id": SESSION, "end_ordinal_exclusive": length});
    later.add("session_meta", json!({"id": SESSION, "cwd": later.cwd, "history_base": base}));
    later.asks("turn-6", "Print it on screen").closes("It is on the screen.");
    let name = FILE.replace("04-57-11", "05-57-11").replace(".jsonl", "_01a20cfe-435d-7a52-b30b-b168de70c06d.jsonl");
    world.write(&name, &ordinals(&later.text, length));
    import(&world);
    let prompts = world.sql("SELECT text FROM prompts WHERE source = 'user' ORDER BY id");
    assert_eq!(prompts, "Write the manual of the exporter\nAdd an index\nPrint it on screen");
    assert_eq!(world.sql("SELECT count(*) FROM sessions"), "1");
}

#[test]
fn compressed_and_archived_sessions_are_read_once() {
    let world = World::new();
    let mut lines = Lines::new(&world);
    lines.work();
    let name = FILE.rsplit('/').next().unwrap();
    let packed = ruzstd::encoding::compress_to_vec(lines.text.as_bytes(), ruzstd::encoding::CompressionLevel::Fastest);
    world.write(&format!("home/.codex/archived_sessions/{name}"), &lines.text);
    let archived = world.home().join(format!(".codex/archived_sessions/{name}"));
    fs::write(archived.with_extension("jsonl.zst"), &packed).unwrap();
    let plain = import(&world);
    assert_eq!((plain["agents"][0]["files"].clone(), counts(&plain)), (json!(1), (1, 3, 1)));
    let other = World::new();
    let folder = other.home().join(".codex/sessions/2026/06/18");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(format!("{name}.zst")), &packed).unwrap();
    assert_eq!(counts(&import(&other)), (1, 3, 1));
    assert_eq!(import(&other)["agents"][0]["unchanged"], 1);
}
