//! Codex's hooks: its calls and their output.

use super::past::{PAST, Reader};
use super::script::{ScriptCall, script_calls};
use crate::model::{BackgroundEnd, Event, EventKind, Platform};
use crate::platforms::adapter::{Adapter, HookAnswer, Moment, Support, envelope, event_of};
use crate::platforms::claude;
use crate::platforms::past::{Found, PastCall, PastFormat, text_of};
use crate::platforms::payload::stored;
use crate::platforms::settings_file::{McpServers, OwnFile, Permission, Setup, Shape, Subscribed, WindowsShell, to};
use crate::platforms::translated::{self, HookCall, Translated, changes_like, command_result, event_name, files_of_patch, hunks};
use serde_json::{Value, json};
use std::borrow::Cow;

pub struct Codex;

/// The subscribed events. SessionEnd allows 3 s at most. PostCompact accepts no context, and SessionStart follows it.
const HOOKS: [Subscribed; 9] = [
    to("SessionStart", "context", 10),
    to("UserPromptSubmit", "record", 10),
    Subscribed { tools: Some("apply_patch"), ..to("PreToolUse", "record", 10) },
    to("PostToolUse", "record", 10),
    to("SubagentStart", "record", 10),
    to("SubagentStop", "record", 10),
    to("PreCompact", "record", 10),
    to("Stop", "record", 30),
    to("SessionEnd", "record", 3),
];

const SETUP: Setup = Setup {
    programs: &["codex"],
    folder: Some(".codex"),
    user: "hooks.json",
    or_user: None,
    project: ".codex/hooks.json",
    shape: Shape::Nested,
    hooks: &HOOKS,
    windows_shell: WindowsShell::PowerShell,
    arguments: " --platform codex",
    files: &[],
    permission: Permission::Own(OwnFile { user: "rules/nmem.rules", project: "", text: RULES }),
    mcp: McpServers::Toml { user: "config.toml", project: ".codex/config.toml" },
    instructions: "AGENTS.md",
    status_line: &[],
    afterwards: &[
        "Start Codex: it asks to review the new hooks. Choose \"Trust all\", or review them with /hooks. Until then it ignores them.",
    ],
};

/// Lets the agent run nmem searches without a permission prompt.
const RULES: &str = r#"# Lets Codex run nmem searches without a permission prompt. Added by `nmem install codex --allow-search`.
prefix_rule(pattern = ["nmem", ["search", "show", "context"]], decision = "allow")
"#;

impl Adapter for Codex {
    fn platform(&self) -> Platform {
        Platform::Codex
    }

    fn recognises(&self, payload: &Value) -> bool {
        let transcript = payload["transcript_path"].as_str().unwrap_or_default();
        let file = transcript.rsplit(['/', '\\']).next().unwrap_or_default();
        payload["turn_id"].is_string() || file.starts_with("rollout-")
    }

    fn translate(&self, payload: &Value) -> Vec<Translated> {
        let event = event_name(payload);
        let mut head = translated::payload(event, payload);
        head["prompt_id"] = payload["turn_id"].clone();
        match event {
            "PreToolUse" | "PostToolUse" => {}
            "SessionStart" | "UserPromptSubmit" | "Stop" | "StopFailure" | "SubagentStart" | "SubagentStop" | "PreCompact"
            | "SessionEnd" => {
                head["error"] = payload["error"].clone();
                return translated::event(head);
            }
            _ => return Vec::new(),
        }
        let (name, input) = (payload["tool_name"].as_str().unwrap_or("unknown"), &payload["tool_input"]);
        let response = &payload["tool_response"];
        let printed = read(response.as_str().unwrap_or_default());
        let (like, result) = match name {
            "apply_patch" => {
                let patch = input["command"].as_str().or_else(|| input["input"].as_str()).or(input.as_str()).unwrap_or_default();
                (changes_like(patch), command_result(&printed.text, printed.exit_code).map(|_| json!({})))
            }
            "Bash" => {
                let result = match (response.as_str(), printed.process) {
                    (Some(_), Some(process)) if printed.exit_code.is_none() => {
                        Ok(json!({"stdout": printed.text, "backgroundTaskId": process.to_string()}))
                    }
                    (Some(_), _) => command_result(&printed.text, printed.exit_code),
                    (None, _) => Ok(response.clone()),
                };
                (vec![("Bash".to_string(), input.clone())], result)
            }
            "update_plan" => (vec![("TodoWrite".to_string(), json!({"todos": tasks(&input["plan"])}))], Ok(response.clone())),
            _ => (vec![(name.to_string(), input.clone())], Ok(response.clone())),
        };
        let call = HookCall {
            id: &payload["tool_use_id"],
            name,
            like,
            result: (event == "PostToolUse").then_some(result),
            duration_ms: &payload["duration_ms"],
        };
        translated::call(&head, call)
    }

    fn encode(&self, _payload: &Value, answer: &HookAnswer) -> Option<String> {
        envelope(event_of(answer.point), answer)
    }

    fn support(&self) -> Support {
        Support {
            outcome: "exit codes from the session file, by the call's id",
            failures: "by the exit code; patches that do not apply, from the session file when a turn ends",
            tokens: "session file",
            start: Moment::Possible,
            prompt: Moment::Possible,
            edit: Moment::Possible,
            subagent: Moment::Possible,
            compaction: Moment::Possible,
            context_bytes: Some(9000),
            takes_results: false,
            keeps_start_context: true,
        }
    }

    fn setup(&self) -> Option<&'static Setup> {
        Some(&SETUP)
    }

    fn resume(&self) -> &'static [&'static str] {
        &["codex", "resume", "{session}"]
    }

    fn past(&self) -> &'static [PastFormat] {
        &[PAST]
    }

    fn reports_exit_codes_in_transcript(&self) -> bool {
        true
    }

    /// Finds the exit code in the session file, which has the ended command, with its call's id, before the hook
    /// starts.
    fn exit_code(&self, transcript: &[u8], call: &str) -> Option<i64> {
        let named = format!("\"{call}\"");
        let lines = transcript.rsplit(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
        let mut ended = lines.filter(|line| line.contains(&named)).filter_map(|line| {
            let record: Value = serde_json::from_str(line).ok()?;
            let item = &record["payload"]["item"];
            item["exit_code"].as_i64().filter(|_| item["id"] == call)
        });
        ended.next()
    }
}

/// Converts a plan's steps to a task list.
fn tasks(plan: &Value) -> Vec<Value> {
    let steps = plan.as_array().into_iter().flatten();
    steps.map(|step| json!({"content": step["step"], "status": step["status"]})).collect()
}

/// Id prefix of commands and patches that a script of the agent ran.
const OF_SCRIPT: &str = "exec-";

/// Returns true if a call runs a script, or waits for one.
fn is_script(call: &PastCall) -> bool {
    call.input.is_string() || call.input["cell_id"].is_string()
}

impl Reader {
    /// Reads a response item: a call or its result.
    pub(super) fn item(&mut self, item: &Value, found: &mut Found) {
        let id = item["call_id"].as_str().unwrap_or_default().to_string();
        match item["type"].as_str() {
            Some("function_call" | "custom_tool_call" | "local_shell_call") => {
                let name = item["name"].as_str().unwrap_or("local_shell").to_string();
                let arguments = item["arguments"].as_str().and_then(|text| stored(text.as_bytes()).ok());
                let input = arguments.unwrap_or_else(|| match &item["input"] {
                    Value::Null => item["action"].clone(),
                    input => input.clone(),
                });
                match self.session.agent {
                    Some(_) => found.counts.subagent_tool_uses += 1,
                    None => found.counts.tool_uses += 1,
                }
                self.calls.insert(id, PastCall { name, input });
            }
            Some("function_call_output" | "custom_tool_call_output" | "local_shell_call_output") => {
                let Some(call) = self.calls.remove(&id) else { return };
                match call.name.as_str() {
                    "exec" | "wait" if is_script(&call) => self.script(&id, &call, &item["output"], found),
                    _ => self.result(id, call, &text_of(&item["output"]), found),
                }
            }
            _ => {}
        }
    }

    fn result(&mut self, id: String, call: PastCall, output: &str, found: &mut Found) {
        let ended = read(output);
        let failed = ended.exit_code.is_some_and(|code| code != 0);
        match call.name.as_str() {
            "exec_command" | "shell" | "shell_command" | "local_shell" => {
                let is_unknown = ended.exit_code.is_none() && says_failed(output);
                self.count_failure(failed || is_unknown, found);
                match ended.process.filter(|_| !is_unknown) {
                    Some(process) => drop(self.running.insert(process, (id, call))),
                    None => self.command(&id, &call, Some(output), found),
                }
            }
            // This call reads the output of a running command. That command is stored with its result.
            "write_stdin" => {
                self.count_failure(failed, found);
                found.counts.skip("tool that is not recorded");
                let process = call.input["session_id"].as_i64().unwrap_or_default();
                match ended.exit_code.map(|code| (code, self.running.remove(&process))) {
                    Some((_, Some((id, call)))) => self.command(&id, &call, Some(output), found),
                    // The command began in a part of the file that was read before.
                    Some((code, None)) => {
                        let ended = BackgroundEnd {
                            id: process.to_string(),
                            succeeded: Some(code == 0),
                            exit_code: code.try_into().ok(),
                            output: Some(ended.text.to_string()),
                        };
                        self.session.add(EventKind::BackgroundEnded(ended));
                    }
                    None => {}
                }
            }
            "apply_patch" => {
                let patch = call.input.as_str().unwrap_or_default();
                let failed = failed || output.contains("verification failed") || says_failed(output);
                self.count_failure(failed, found);
                let error = failed.then_some(output);
                for (n, (path, added)) in files_of_patch(patch).into_iter().enumerate() {
                    self.change(&id, n, (&path, added), json!({"new_string": patch}), json!({}), error, found);
                }
            }
            name => {
                let failed = says_failed(output);
                self.count_failure(failed, found);
                let result = if failed { Err(&*ended.text) } else { Ok(json!(ended.text)) };
                self.tool(&id, (name, name), call.input.clone(), result, found);
            }
        }
    }

    /// Reads the result of a script, or of waiting for one. The script itself is not stored. Its commands and patches are
    /// in the events; in versions without such events, they are found in its text, and their results in its output.
    pub(super) fn script(&mut self, id: &str, call: &PastCall, output: &Value, found: &mut Found) {
        let parts: Vec<&str> = match output {
            Value::String(text) => vec![text],
            output => output.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str()).collect(),
        };
        let head = parts.first().map_or("", |part| part.trim_start());
        let failed = head.starts_with("Script failed");
        self.count_failure(failed, found);
        found.counts.skip("tool that is not recorded");
        let waited = call.input["cell_id"].as_str().map(|cell| self.cells.remove(cell));
        let (id, call) = match waited {
            Some(Some((id, call))) => (id, call),
            // The script began in a part of the file that was read before.
            Some(None) => return,
            None => (id.to_string(), call.clone()),
        };
        if let Some(cell) = head.strip_prefix("Script running with cell ID ").and_then(|rest| rest.split_whitespace().next()) {
            self.cells.insert(cell.to_string(), (id, call));
            return;
        }
        if self.reports_scripts {
            return;
        }
        let mut calls = script_calls(call.input.as_str().unwrap_or_default());
        calls.retain(|call| !matches!(call, ScriptCall::Command(input) if command_of(input).is_empty()));
        let said = parts
            .iter()
            .skip(usize::from(parts.len() > 1))
            .map(|text| text.split_once("Output:\n").map_or(*text, |(_, text)| text));
        let said: Vec<&str> = said.filter(|text| !text.is_empty()).collect();
        for (n, run) in calls.iter().enumerate() {
            let own = said.get(n).copied().filter(|_| said.len() >= calls.len());
            let own = own.or_else(|| said.first().copied().filter(|_| calls.len() == 1));
            self.ran_by_script(&format!("{id}-{}", n + 1), run, own, failed, found);
        }
    }

    /// Stores a command or a patch that a script ran, with what the script printed of its result.
    fn ran_by_script(&mut self, id: &str, run: &ScriptCall, said: Option<&str>, failed: bool, found: &mut Found) {
        let result: Value = said.and_then(|said| serde_json::from_str(said).ok()).unwrap_or_default();
        let output = result["output"].as_str().or(said).unwrap_or_default();
        match run {
            ScriptCall::Patch(patch) => {
                let is_refused = failed || says_failed(output) || output.contains("verification failed");
                let error = is_refused.then_some(output);
                for (n, (path, added)) in files_of_patch(patch).into_iter().enumerate() {
                    self.change(id, n, (&path, added), json!({"new_string": patch}), json!({}), error, found);
                }
            }
            ScriptCall::Command(input) => {
                let call = PastCall { name: "exec_command".into(), input: input.clone() };
                let code = result["exit_code"].as_i64();
                self.count_failure(code.is_some_and(|code| code != 0), found);
                let head = code.map_or(String::new(), |code| format!("Process exited with code {code}"));
                self.command(id, &call, Some(&format!("{head}\nOutput:\n{output}")), found);
                // A script that prints only the output does not tell how the command ended.
                if let (None, Some(Event { what: EventKind::ToolUsed(tool), .. })) = (code, self.session.turn().last_mut())
                    && tool.succeeded == Some(true)
                {
                    tool.succeeded = None;
                }
            }
        }
    }

    /// Stores a command. Without an output, its outcome is unknown.
    pub(super) fn command(&mut self, id: &str, call: &PastCall, output: Option<&str>, found: &mut Found) {
        let ended = read(output.unwrap_or_default());
        let error = ended.exit_code.filter(|code| *code != 0).map(|code| format!("Exit code {code}\n{}", ended.text));
        let unknown =
            || Some(ended.text.to_string()).filter(|_| ended.exit_code.is_none() && says_failed(output.unwrap_or_default()));
        let error = error.or_else(unknown);
        let folder = call.input["workdir"].as_str().filter(|folder| folder.starts_with('/')).map(String::from);
        let before = self.session.cwd.clone();
        self.session.cwd = folder.or(self.session.cwd.take());
        let response = match output {
            Some(_) => json!({"stdout": ended.text}),
            None => json!({"backgroundTaskId": id}),
        };
        let result = error.as_deref().map_or(Ok(response), Err);
        self.tool(id, ("Bash", &call.name), json!({"command": command_of(&call.input)}), result, found);
        self.session.cwd = before;
    }

    /// Handles the end of a command. Stores it if a script of the agent ran it, or if it kept running after its call;
    /// otherwise the call's result stores it.
    pub(super) fn executed(&mut self, item: &Value, found: &mut Found) {
        let id = item["id"].as_str().unwrap_or_default();
        if self.calls.contains_key(id) {
            return;
        }
        let running_as = self.running.iter().find(|(_, (call, _))| call == id).map(|(process, _)| *process);
        if running_as.is_none() && !id.starts_with(OF_SCRIPT) {
            return;
        }
        self.reports_scripts |= id.starts_with(OF_SCRIPT);
        let before = running_as.and_then(|process| self.running.remove(&process));
        let folder = item["cwd"].as_str().map(|folder| folder.strip_prefix("file://").unwrap_or(folder));
        let input = json!({"cmd": command_of(item), "workdir": folder});
        let call = before.map_or(PastCall { name: "exec_command".into(), input }, |(_, call)| call);
        let code = item["exit_code"].as_i64().unwrap_or_default();
        let output = item["aggregated_output"].as_str().unwrap_or_default();
        self.command(id, &call, Some(&format!("Process exited with code {code}\nOutput:\n{output}")), found);
    }

    /// Stores a patch, file by file, that a call or a script of the agent tried to apply.
    pub(super) fn patched(&mut self, id: &str, event: &Value, succeeded: bool, found: &mut Found) {
        if self.calls.remove(id).is_some() {
            self.count_failure(!succeeded, found);
        } else if !id.starts_with(OF_SCRIPT) {
            return;
        }
        self.reports_scripts |= id.starts_with(OF_SCRIPT);
        let failed = !succeeded;
        let error = failed.then(|| event["stderr"].as_str().unwrap_or_default());
        for (n, (path, change)) in event["changes"].as_object().into_iter().flatten().enumerate() {
            let input = json!({"content": change["content"].as_str().unwrap_or_default()});
            let response = json!({"structuredPatch": hunks(change["unified_diff"].as_str().unwrap_or_default())});
            self.change(id, n, (path, change["type"] == "add"), input, response, error, found);
        }
    }

    /// Stores the change to one file, the `n`th of its call.
    #[expect(clippy::too_many_arguments, reason = "each is a part of the payload")]
    fn change(
        &mut self,
        id: &str,
        n: usize,
        (path, added): (&str, bool),
        mut input: Value,
        mut response: Value,
        error: Option<&str>,
        found: &mut Found,
    ) {
        let id = if n == 0 { id.to_string() } else { format!("{id}-{}", n + 1) };
        input["file_path"] = json!(path);
        response["type"] = json!(if added { "create" } else { "update" });
        let like = if added { "Write" } else { "Edit" };
        self.tool(&id, (like, "apply_patch"), input, error.map_or(Ok(response), Err), found);
    }

    pub(super) fn mcp(&mut self, event: &Value, found: &mut Found) {
        let Some(id) = event["call_id"].as_str().filter(|id| self.calls.remove(*id).is_some()) else { return };
        let invocation = &event["invocation"];
        let of = |key: &str| invocation[key].as_str().unwrap_or("unknown");
        let name = format!("mcp__{}__{}", of("server"), of("tool"));
        let (answer, error) = (&event["result"]["Ok"], &event["result"]["Err"]);
        let said = if error.is_null() { text_of(&answer["content"]) } else { text_of(error) };
        let failed = !error.is_null() || answer["isError"] == true || says_failed(&said);
        self.count_failure(failed, found);
        let result = if failed { Err(said.as_str()) } else { Ok(json!(said)) };
        self.tool(id, (&name, &name), invocation["arguments"].clone(), result, found);
    }

    /// Stores a call under its own name, decoded as the equivalent Claude Code tool.
    fn tool(&mut self, id: &str, (like, name): (&str, &str), input: Value, result: Result<Value, &str>, found: &mut Found) {
        let payload = self.session.payload(id, like, input, result);
        match claude::decode(&payload, &self.session.decode_context()) {
            Ok(Some(event)) => {
                if let EventKind::ToolUsed(tool) = &mut self.session.add_decoded(event).what {
                    tool.name = name.to_string();
                }
            }
            _ => found.counts.skip("tool that is not recorded"),
        }
    }
}

/// The output of a command.
#[derive(Debug, PartialEq, Eq)]
pub struct Output<'a> {
    pub text: Cow<'a, str>,
    /// The exit code; `None` if the output has none.
    pub exit_code: Option<i64>,
    /// The number of a process that keeps running.
    pub process: Option<i64>,
}

/// Parses an output: a few lines about the process, `Output:`, and the text; in early versions a JSON object.
pub fn read(output: &str) -> Output<'_> {
    if output.starts_with('{')
        && output.contains("\"metadata\"")
        && let Ok(Value::Object(mut early)) = serde_json::from_str(output)
        && let Some(Value::String(text)) = early.remove("output")
    {
        let exit_code = early.get("metadata").and_then(|metadata| metadata["exit_code"].as_i64());
        return Output { text: text.into(), exit_code, process: None };
    }
    let (head, text) = output.split_once("\nOutput:\n").unwrap_or(("", output));
    let number = |label: &str| head.lines().find_map(|line| line.trim().strip_prefix(label)?.trim().parse().ok());
    let exit_code = number("Process exited with code").or_else(|| number("Exit code:"));
    Output { text: text.into(), exit_code, process: number("Process running with session ID") }
}

/// Returns true if the output of a tool other than a command reports a failure.
pub fn says_failed(output: &str) -> bool {
    let ended = read(output);
    let text = ended.text.trim_start();
    let is_error = match serde_json::from_str::<Value>(text) {
        Ok(answer) => answer.get("error").is_some_and(|error| !error.is_null()),
        // A long answer may be cut, so it may not be valid JSON.
        Err(_) => text.starts_with("{\"error\""),
    };
    is_error
        || ["aborted by user", "unsupported call: ", "unsupported custom tool call: "].iter().any(|begin| text.starts_with(begin))
}

/// Returns the command line of a call: a string, or a list of words such as `bash -lc COMMAND`.
pub fn command_of(input: &Value) -> String {
    let words = |list: &Value| {
        let words: Vec<&str> = list.as_array()?.iter().filter_map(Value::as_str).collect();
        Some(if words.len() == 3 && words[1].starts_with('-') { words[2].to_string() } else { words.join(" ") })
    };
    let said = |key: &str| input[key].as_str().map(String::from).or_else(|| words(&input[key]));
    said("cmd").or_else(|| said("command")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_session_file_says_how_a_command_ended() {
        let line = |id: &str, code: i64| {
            json!({"type": "event_msg", "payload": {"type": "item_completed", "item": {"type": "CommandExecution", "id": id, "exit_code": code}}})
                .to_string()
        };
        let transcript = format!("cut line\"call_2\"}}\n{}\n{}\n", line("call_1", 0), line("call_2", 3));
        assert_eq!(Codex.exit_code(transcript.as_bytes(), "call_2"), Some(3));
        assert_eq!(Codex.exit_code(transcript.as_bytes(), "call_1"), Some(0));
        assert_eq!(Codex.exit_code(transcript.as_bytes(), "call_3"), None);
    }

    #[test]
    fn exit_codes_and_processes_stand_before_the_output() {
        let ended =
            "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 2\nOriginal token count: 3\nOutput:\nerror: no";
        assert_eq!(read(ended), Output { text: "error: no".into(), exit_code: Some(2), process: None });
        let goes_on = "Chunk ID: 1\nProcess running with session ID 77\nOutput:\nProcess exited with code 1";
        assert_eq!(read(goes_on), Output { text: "Process exited with code 1".into(), exit_code: None, process: Some(77) });
        let words = serde_json::json!({"command": ["bash", "-lc", "cargo test"]});
        assert_eq!((command_of(&words), command_of(&Value::Null)), ("cargo test".into(), String::new()));
        assert!(says_failed("Wall time: 1 seconds\nOutput:\n{\"error\": \"not found\"}"));
        assert!(!says_failed("Wall time: 1 seconds\nOutput:\n{\"error\": null, \"result\": 1}"));
    }

    proptest! {
        #[test]
        fn any_output_is_read(output in "(?s).{0,300}") {
            let _ = (read(&output), says_failed(&output));
        }
    }
}
