//! Past sessions of Copilot, of its CLI and of VS Code.

use crate::world::World;
use crate::world::session::{MINUTE, NINE};
use serde_json::{Value, json};

const SESSION: &str = "10fb4666-56f0-4352-90fc-715caf95b418";
const FILE: &str = "home/.copilot/session-state/10fb4666-56f0-4352-90fc-715caf95b418/events.jsonl";

/// Lines of a session file, one minute apart.
struct Lines {
    at: i64,
    text: String,
}

impl Lines {
    fn new(world: &World, version: Value) -> Lines {
        let mut lines = Lines { at: NINE - 100 * 24 * 60 * MINUTE, text: String::new() };
        let mut start = json!({"sessionId": SESSION, "version": 1, "producer": "copilot-agent"});
        start["context"] =
            json!({"cwd": world.project(), "branch": "main", "headCommit": "cbee02b54dc39c0c5333939d77d5c4bbe02d2d74"});
        start.as_object_mut().unwrap().extend(version.as_object().unwrap().clone());
        lines.add("session.start", start);
        lines
    }

    fn add(&mut self, kind: &str, data: Value) -> &mut Lines {
        self.at += MINUTE;
        let time = jiff::Timestamp::from_millisecond(self.at).unwrap().to_string();
        self.text +=
            &(json!({"type": kind, "data": data, "id": format!("line-{}", self.at), "timestamp": time}).to_string() + "\n");
        self
    }

    fn asks(&mut self, text: &str) -> &mut Lines {
        let injected = format!("<current_datetime>now</current_datetime>\n\n{text}\n\nmemory of another tool");
        self.add("user.message", json!({"content": text, "transformedContent": injected}))
    }

    fn calls(&mut self, id: &str, tool: &str, arguments: Value) -> &mut Lines {
        let request = json!([{"toolCallId": id, "name": tool, "arguments": arguments}]);
        self.add("assistant.message", json!({"messageId": id, "content": "", "toolRequests": request, "outputTokens": 10}));
        self.add("tool.execution_start", json!({"toolCallId": id, "toolName": tool, "arguments": arguments}))
    }

    fn answers(&mut self, id: &str, text: &str) -> &mut Lines {
        self.add("tool.execution_complete", json!({"toolCallId": id, "success": true, "result": {"content": text}}))
    }

    fn closes(&mut self, text: &str) -> &mut Lines {
        self.add(
            "assistant.message",
            json!({"messageId": "m", "model": "gpt-5", "content": text, "toolRequests": [], "outputTokens": 5}),
        )
    }

    fn work(&mut self, world: &World) -> &mut Lines {
        let file = world.project().join("src/login.rs");
        self.asks("Fix the login: tokens expire too early. Always round expiry up to the next minute.");
        self.calls("c1", "bash", json!({"command": "cargo test login"}));
        self.answers(
            "c1",
            "test login::expiry ... FAILED\nassertion failed: 59 != 60\n<shellId: 0 completed with exit code 101>",
        );
        self.calls("c2", "edit", json!({"path": file, "old_str": "floor", "new_str": "ceil"})).answers("c2", "Updated");
        self.calls("c3", "bash", json!({"command": "cargo test login"}));
        self.answers("c3", "test result: ok. 4 passed\n<shellId: 1 completed with exit code 0>");
        self.closes("Fixed. The root cause was that expiry was rounded down to the minute, so tokens expired early.")
    }
}

fn import(world: &World) -> Value {
    let out = world.nmem(&["import", "--json"]);
    assert_eq!((out.stderr.as_str(), out.code), ("", Some(0)));
    serde_json::from_str(&out.stdout).unwrap()
}

fn counts(report: &Value) -> (&str, u64, u64, u64) {
    let of = |key: &str| report["agents"][0][key].as_u64().unwrap();
    (report["agents"][0]["agent"].as_str().unwrap(), of("prompts"), of("tool_uses"), of("failures"))
}

#[test]
fn a_past_session_of_the_cli_becomes_units_and_goes_on_after_its_end() {
    let world = World::new();
    let mut lines = Lines::new(&world, json!({"copilotVersion": "1.0.68"}));
    lines.work(&world);
    let usage =
        json!({"inputTokens": 100, "outputTokens": 40, "cacheReadTokens": 60, "cacheWriteTokens": 10, "reasoningTokens": 3});
    lines.add("session.shutdown", json!({"modelMetrics": {"gpt-5": {"usage": usage}}}));
    world.write(FILE, &lines.text);
    assert_eq!(counts(&import(&world)), ("copilot-cli", 1, 3, 1));
    let unit = world.nmem(&["units", "--json"]).lines().remove(0);
    assert_eq!((unit["outcome"].as_str(), unit["files"][0]["path"].as_str()), (Some("done"), Some("src/login.rs")));
    let tokens = "SELECT input_tokens, output_tokens, cache_read_tokens, cache_write_tokens FROM sessions";
    assert_eq!(world.sql(tokens), "30|40|60|10");
    lines.add("session.resume", json!({"context": {"cwd": world.project(), "branch": "next"}}));
    lines.asks("commit it").calls("c9", "bash", json!({"command": "git commit -m 'Fix the expiry'"}));
    lines.answers("c9", "[next 1234567] Fix the expiry\n<shellId: 2 completed with exit code 0>").closes("Committed.");
    lines.add("session.shutdown", json!({"modelMetrics": {"gpt-5": {"usage": {"inputTokens": 7, "outputTokens": 15}}}}));
    world.write(FILE, &lines.text);
    assert_eq!(counts(&import(&world)), ("copilot-cli", 1, 1, 0));
    assert_eq!(world.sql(tokens), "37|55|60|10");
    assert_eq!(world.sql("SELECT count(*) FROM sessions"), "1");
}

#[test]
fn commands_that_go_on_end_where_they_are_read_and_no_machine_is_a_person() {
    let world = World::new();
    let mut lines = Lines::new(&world, json!({"copilotVersion": "1.0.68"}));
    lines.asks("Run the slow tests and tell me what fails, please");
    lines.calls("c1", "bash", json!({"command": "cargo test --release"}));
    lines.answers("c1", "Compiling\n<command with shellId: 7 is still running after 30 seconds. Use read_bash to continue.>");
    lines.calls("c2", "read_bash", json!({"shellId": "7", "delay": 30}));
    lines.answers("c2", "test slow ... FAILED\n<shellId: 7 completed with exit code 101>");
    lines.calls("c3", "bash", json!({"command": "sleep 100"}));
    lines.answers("c3", "<command with shellId: 8 is still running after 30 seconds.>");
    lines.add(
        "system.notification",
        json!({"content": "done", "kind": {"type": "shell_completed", "shellId": "8", "exitCode": 0}}),
    );
    lines.add("user.message", json!({"content": "the text of a skill", "source": "skill-pdf"}));
    let denied = json!({"toolCallId": "c4", "success": false, "error": {"message": "The user rejected this tool call.", "code": "rejected"}});
    lines.calls("c4", "bash", json!({"command": "rm -rf target"})).add("tool.execution_complete", denied);
    let of_subagent =
        json!({"toolCallId": "s1", "parentToolCallId": "c5", "toolName": "view", "arguments": {"path": "src/slow.rs"}});
    lines.add("tool.execution_start", of_subagent);
    lines.add(
        "tool.execution_complete",
        json!({"toolCallId": "s1", "parentToolCallId": "c5", "success": true, "result": {"content": "fn"}}),
    );
    world.write(FILE, &lines.text);
    let report = import(&world);
    assert_eq!(counts(&report), ("copilot-cli", 1, 4, 2));
    assert_eq!(report["agents"][0]["subagent_tool_uses"], 1);
    assert_eq!(report["agents"][0]["skipped"]["declined by the user"], 1);
    let stored = world.sql("SELECT content, succeeded FROM tool_uses WHERE kind = 'command' ORDER BY id");
    assert_eq!(stored, "cargo test --release|0\nsleep 100|1");
    assert_eq!(world.sql("SELECT text FROM prompts"), "Run the slow tests and tell me what fails, please");
}

#[test]
fn newer_versions_state_the_tokens_of_each_response() {
    let world = World::new();
    let mut lines = Lines::new(&world, json!({"copilotVersion": "1.0.102"}));
    let usage = json!({"inputTokens": 50, "outputTokens": 20, "cacheReadTokens": 30});
    lines.work(&world).add("session.usage_record", json!({"usage": usage}));
    // Totals since the session began, also after it was resumed.
    let total = |n: i64| json!({"modelMetrics": {"gpt-5": {"usage": {"inputTokens": 50 * n, "outputTokens": 20 * n, "cacheReadTokens": 30 * n}}}});
    lines.add("session.shutdown", total(1)).add("session.resume", json!({}));
    lines.asks("and the logout").closes("There is none.").add("session.usage_record", json!({"usage": usage}));
    lines.add("session.shutdown", total(2));
    world.write(FILE, &lines.text);
    import(&world);
    assert_eq!(world.sql("SELECT input_tokens, output_tokens, cache_read_tokens FROM sessions"), "40|40|60");
}

#[test]
fn vs_code_keeps_the_same_form_in_its_workspaces() {
    let world = World::new();
    let mut lines = Lines::new(&world, json!({"copilotVersion": "0.40", "vscodeVersion": "1.110"}));
    let file = world.project().join("src/login.rs");
    lines.asks("Fix the login: tokens expire too early. Always round expiry up to the next minute.");
    lines.calls("c1", "run_in_terminal", json!({"command": "cargo test login", "explanation": "Run the tests"}));
    lines.answers("c1", "test login::expiry ... FAILED\n\nCommand exited with code 101");
    let edit = json!({"filePath": file, "oldString": "floor", "newString": "ceil"});
    lines.calls("c2", "replace_string_in_file", edit).answers("c2", "The file was edited.");
    lines.calls("c3", "manage_todo_list", json!({"todoList": []})).answers("c3", "ok").closes("Fixed the expiry.");
    let folder = "home/.config/Code/User/workspaceStorage/0a1b/GitHub.copilot-chat/transcripts";
    world.write(&format!("{folder}/{SESSION}.jsonl"), &lines.text);
    assert_eq!(counts(&import(&world)), ("vscode", 1, 3, 1));
    let kinds = world.sql("SELECT kind, tool_name, path FROM tool_uses ORDER BY id");
    assert_eq!(kinds, "command|run_in_terminal|-\nedit|replace_string_in_file|src/login.rs");
}
