//! Codex's session files → events.
//!
//! `sessions/<date>/rollout-<time>-<id>.jsonl` holds a session. Events and response items say the same thing twice:
//! prompts and closing messages are taken from events, of which there are two generations, tool calls from response
//! items. Commands that go on are followed through `write_stdin` to their exit code, and stored as the command.

use super::output::{command_of, read, says_failed};
use super::token_totals::TokenTotals;
use crate::model::{EventKind, Millis, Platform, TurnUsage};
use crate::platforms::claude;
use crate::platforms::past::{Found, PastCall, PastFormat, PastOptions, PastReader, PastSession, text_of};
use crate::platforms::patch::{files_of_patch, hunks};
use crate::platforms::transcript::time;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The format. Raise the version when the reader finds more than before.
pub const PAST: PastFormat = PastFormat {
    platform: Platform::Codex,
    version: 1,
    folders: &["sessions", "archived_sessions"],
    is_line: |record| record["type"] == "session_meta" && record["payload"].is_object(),
    cwd: |record| record["payload"]["cwd"].as_str(),
    session_file: |_| None,
    newest: |store, _| newest_days(store),
    reader: |options| Box::new(Reader::new(options)),
};

/// What editors put before a prompt.
const REQUEST: &str = "## My request for Codex:";

/// The folders of the newest two days: `sessions/2026/11/24`.
fn newest_days(store: &Path) -> Vec<PathBuf> {
    let mut newest = vec![store.to_path_buf()];
    for _ in ["year", "month", "day"] {
        let below = newest.iter().flat_map(fs::read_dir).flatten().flatten().map(|entry| entry.path());
        let mut below: Vec<PathBuf> = below.filter(|path| path.is_dir()).collect();
        below.sort();
        newest = below.split_off(below.len().saturating_sub(2));
    }
    newest
}

struct Reader {
    session: PastSession,
    /// Calls that wait for their results.
    calls: HashMap<String, PastCall>,
    /// Commands that go on: their calls, by the number of the process.
    running: HashMap<i64, (String, PastCall)>,
    turn_id: Option<String>,
    /// Number of prompts in the turn.
    asked: usize,
    model: Option<String>,
    /// The last message, and its time.
    closing: Option<(String, Millis)>,
    /// Whether the last turn has ended.
    is_complete: bool,
    tokens: TokenTotals,
}

impl Reader {
    fn new(options: &PastOptions) -> Reader {
        let mut options = options.clone();
        options.skip_tools.push("update_plan".into());
        let mut session = PastSession::new(Platform::Codex, options.path.display().to_string(), &options);
        if let Some(first) = &options.first {
            identify(&mut session, &first["payload"]);
        }
        Reader {
            session,
            calls: HashMap::new(),
            running: HashMap::new(),
            turn_id: None,
            asked: 0,
            model: None,
            closing: None,
            is_complete: false,
            tokens: TokenTotals::new(options.first.is_some()),
        }
    }

    fn said(&mut self, event: &Value, offset: u64, found: &mut Found) {
        match event["type"].as_str() {
            Some("task_started") => {
                self.turn_id = event["turn_id"].as_str().map(String::from);
                self.asked = 0;
                self.is_complete = false;
            }
            Some("user_message") => self.asks(event["message"].as_str().unwrap_or_default(), offset, found),
            // The second generation.
            Some("item_completed") => {
                let text = text_of(&event["item"]["content"]);
                match event["item"]["type"].as_str() {
                    Some("UserMessage") => self.asks(&text, offset, found),
                    Some("AgentMessage") => self.says(&text),
                    _ => {}
                }
            }
            Some("agent_message") => self.says(event["message"].as_str().unwrap_or_default()),
            Some("task_complete") => {
                self.says(event["last_agent_message"].as_str().unwrap_or_default());
                self.end_turn();
                self.is_complete = true;
            }
            Some("turn_aborted") => self.closing = None,
            Some("thread_rolled_back") => {
                // What was taken back was not done. Earlier turns are stored by now.
                found.counts.skip("turn that was rolled back");
                self.session.turn().clear();
                self.closing = None;
            }
            Some("token_count") => self.tokens.count(&event["info"]),
            Some("patch_apply_end") => self.patched(event, found),
            Some("mcp_tool_call_end") => self.mcp(event, found),
            Some("context_compacted") => self.session.compact(),
            _ => {}
        }
    }

    /// Takes a message of the agent, which may be the last one.
    fn says(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.closing = Some((text.to_string(), self.session.at));
        }
    }

    fn asks(&mut self, said: &str, offset: u64, found: &mut Found) {
        let said = said.split_once(REQUEST).map_or(said, |(_, request)| request).trim();
        if said.is_empty() || said.starts_with("<turn_aborted>") || self.session.agent.is_some() {
            return;
        }
        self.end_turn();
        self.session.flush(found);
        found.resume_at = offset;
        self.asked += 1;
        self.is_complete = false;
        let turn = self.turn_id.clone().unwrap_or_else(|| format!("at-{}", self.session.at));
        self.session.prompt = Some(if self.asked < 2 { turn } else { format!("{turn}-{}", self.asked) });
        found.counts.prompts += 1;
        self.session.add(EventKind::UserPrompt { text: said.to_string() });
    }

    fn end_turn(&mut self) {
        if let Some((closing, at)) = self.closing.take() {
            let usage = self.usage();
            self.session.end_turn(closing, at, usage);
        }
    }

    /// The tokens since the last turn.
    fn usage(&mut self) -> Option<TurnUsage> {
        self.tokens.take(self.model.clone()).filter(|_| self.session.agent.is_none())
    }

    /// Counts a call that has failed.
    fn count_failure(&self, failed: bool, found: &mut Found) {
        found.counts.failures += u64::from(failed && self.session.agent.is_none());
    }

    fn item(&mut self, item: &Value, found: &mut Found) {
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
                self.count_failure(failed, found);
                match ended.process {
                    Some(process) => drop(self.running.insert(process, (id, call))),
                    None => self.command(&id, &call, Some(output), found),
                }
            }
            // It ends a command that went on: that command is stored, with what came of it.
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
            "apply_patch" => {
                let patch = call.input.as_str().unwrap_or_default();
                let failed = failed || output.contains("verification failed");
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

    /// Stores a command; without an output, nobody knows how it ended.
    fn command(&mut self, id: &str, call: &PastCall, output: Option<&str>, found: &mut Found) {
        let ended = read(output.unwrap_or_default());
        let error = ended.exit_code.filter(|code| *code != 0).map(|code| format!("Exit code {code}\n{}", ended.text));
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

    /// A patch that was applied, file by file.
    fn patched(&mut self, event: &Value, found: &mut Found) {
        let Some(id) = event["call_id"].as_str().filter(|id| self.calls.remove(*id).is_some()) else { return };
        let failed = event["success"] != true;
        self.count_failure(failed, found);
        let error = failed.then(|| event["stderr"].as_str().unwrap_or_default());
        for (n, (path, change)) in event["changes"].as_object().into_iter().flatten().enumerate() {
            let input = json!({"content": change["content"].as_str().unwrap_or_default()});
            let response = json!({"structuredPatch": hunks(change["unified_diff"].as_str().unwrap_or_default())});
            self.change(id, n, (path, change["type"] == "add"), input, response, error, found);
        }
    }

    /// A change of one file, the `n`th of its call.
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

    fn mcp(&mut self, event: &Value, found: &mut Found) {
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

    /// Stores a call under its own name, decoded as the tool of Claude Code that does the same.
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

/// Takes from a session's first line what it is; a subagent's thread names the session that started it.
fn identify(session: &mut PastSession, meta: &Value) {
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(String::from);
    let own = text(&meta["id"]).or_else(|| text(&meta["session_id"]));
    let parent = text(&meta["parent_thread_id"]);
    session.agent = own.clone().filter(|_| parent.is_some());
    if let Some(id) = parent.or(own) {
        session.id = id;
    }
    session.cwd = text(&meta["cwd"]);
    session.branch = text(&meta["git"]["branch"]);
}

impl PastReader for Reader {
    fn line(&mut self, record: Value, at: u64, found: &mut Found) {
        self.session.at = time(&record).unwrap_or(self.session.at);
        let payload = &record["payload"];
        found.counts.known_lines += u64::from(matches!(record["type"].as_str(), Some("event_msg" | "response_item")));
        match record["type"].as_str() {
            Some("session_meta") if !self.session.has_started => {
                identify(&mut self.session, payload);
                self.session.start(payload["git"]["commit_hash"].as_str().map(String::from));
            }
            Some("turn_context") => {
                self.session.cwd = payload["cwd"].as_str().map(String::from).or(self.session.cwd.take());
                self.model = payload["model"].as_str().map(String::from).or(self.model.take());
            }
            Some("event_msg") => self.said(payload, at, found),
            Some("response_item") => self.item(payload, found),
            _ => {}
        }
    }

    fn end(&mut self, at: u64, is_over: bool, found: &mut Found) {
        if is_over {
            for (_, (id, call)) in std::mem::take(&mut self.running) {
                self.command(&id, &call, None, found);
            }
            self.end_turn();
        }
        if is_over || self.is_complete && self.calls.is_empty() && self.running.is_empty() {
            found.resume_at = at;
        }
        if is_over {
            let usage = self.usage();
            self.session.end(usage);
        }
        for _ in self.calls.drain().filter(|_| is_over) {
            found.counts.skip("call without a result");
        }
        self.session.flush(found);
    }
}
