//! Codex's tool calls and their results, including the calls of the agent's scripts.

use super::output::{command_of, read, says_failed};
use super::past::Reader;
use crate::model::EventKind;
use crate::platforms::claude;
use crate::platforms::past::{Found, PastCall, text_of};
use crate::platforms::patch::{files_of_patch, hunks};
use serde_json::{Value, json};

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
                let arguments = item["arguments"].as_str().and_then(|text| serde_json::from_str(text).ok());
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
                self.result(id, call, &text_of(&item["output"]), found);
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
                if ended.exit_code.is_some()
                    && let Some((id, call)) = self.running.remove(&process)
                {
                    self.command(&id, &call, Some(output), found);
                }
            }
            // The script's calls are in the events; the script itself is not stored.
            "exec" | "wait" if is_script(&call) => {
                self.count_failure(output.trim_start().starts_with("Script failed"), found);
                found.counts.skip("tool that is not recorded");
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
                let result = if failed { Err(ended.text) } else { Ok(json!(ended.text)) };
                self.tool(&id, (name, name), call.input.clone(), result, found);
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
        let before = running_as.and_then(|process| self.running.remove(&process));
        let input = json!({"cmd": command_of(item), "workdir": item["cwd"].as_str().and_then(|url| url.strip_prefix("file://"))});
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
