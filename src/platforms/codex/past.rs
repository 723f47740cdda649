//! Codex's session files → events.
//!
//! `sessions/<date>/rollout-<time>-<id>.jsonl` holds a session. Events and response items say the same thing twice:
//! prompts and closing messages are taken from events, of which there are two generations, tool calls from response
//! items. Commands that go on are followed through `write_stdin` to their exit code, and stored as the command.

use super::output::{command_of, files_of_patch, hunks, read, says_failed, text_of};
use super::token_totals::TokenTotals;
use crate::model::{Event, EventKind, GitState, Millis, Platform, SessionStart, StartSource, TurnUsage};
use crate::platforms::past::{Found, PastFormat, PastOptions, PastReader, PastTurn};
use crate::platforms::transcript::time;
use crate::platforms::{DecodeContext, claude};
use serde_json::{Value, json};
use std::collections::HashMap;

/// The format. Raise the version when the reader finds more than before.
pub const PAST: PastFormat = PastFormat {
    platform: Platform::Codex,
    version: 1,
    folders: &["sessions", "archived_sessions"],
    is_line: |record| record["type"] == "session_meta" && record["payload"].is_object(),
    cwd: |record| record["payload"]["cwd"].as_str(),
    is_part: |_| false,
    reader: |options| Box::new(Reader::new(options)),
};

/// What editors put before a prompt.
const REQUEST: &str = "## My request for Codex:";

/// A tool call that waits for its result.
struct Call {
    name: String,
    input: Value,
}

struct Reader {
    options: PastOptions,
    session: String,
    /// The subagent whose thread the file is.
    agent: Option<String>,
    calls: HashMap<String, Call>,
    /// Commands that go on: their calls, by the number of the process.
    running: HashMap<i64, (String, Call)>,
    turn: PastTurn,
    turn_id: Option<String>,
    /// Number of prompts in the turn.
    asked: usize,
    prompt: Option<String>,
    cwd: Option<String>,
    branch: Option<String>,
    model: Option<String>,
    has_started: bool,
    closing: Option<(String, Millis)>,
    tokens: TokenTotals,
    last_at: Millis,
}

impl Reader {
    fn new(options: &PastOptions) -> Reader {
        let mut reader = Reader {
            options: options.clone(),
            session: String::new(),
            agent: None,
            calls: HashMap::new(),
            running: HashMap::new(),
            turn: PastTurn::default(),
            turn_id: None,
            asked: 0,
            prompt: None,
            cwd: None,
            branch: None,
            model: None,
            has_started: false,
            closing: None,
            tokens: TokenTotals::new(options.first.is_some()),
            last_at: 0,
        };
        if let Some(first) = &options.first {
            reader.starts(&first["payload"]);
            reader.turn.events().clear();
        }
        reader
    }

    fn event(&self, what: EventKind) -> Event {
        Event {
            platform: Platform::Codex,
            session: self.session.clone(),
            at: self.last_at,
            time: None,
            cwd: self.cwd.clone(),
            project: None,
            transcript: None,
            transcript_length: Some(self.options.length),
            usage: None,
            prompt: self.prompt.clone(),
            agent: self.agent.clone(),
            what,
        }
    }

    fn starts(&mut self, meta: &Value) {
        if self.has_started {
            return;
        }
        self.has_started = true;
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(String::from);
        let own = text(&meta["id"]).or_else(|| text(&meta["session_id"]));
        let parent = text(&meta["parent_thread_id"]);
        self.agent = if parent.is_some() { own.clone() } else { None };
        self.session = parent.or(own).unwrap_or_else(|| self.options.path.display().to_string());
        self.cwd = text(&meta["cwd"]);
        self.branch = text(&meta["git"]["branch"]);
        if self.agent.is_none() {
            let git = GitState { branch: self.branch.clone(), head: text(&meta["git"]["commit_hash"]) };
            let start = SessionStart { source: StartSource::Startup, model: None, client: None, git: Some(git) };
            self.turn.push(self.event(EventKind::SessionStarted(start)));
        }
    }

    fn said(&mut self, event: &Value, offset: u64, found: &mut Found) {
        match event["type"].as_str() {
            Some("task_started") => {
                self.turn_id = event["turn_id"].as_str().map(String::from);
                self.asked = 0;
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
            }
            Some("turn_aborted") => self.closing = None,
            Some("thread_rolled_back") => {
                // What was taken back was not done. Earlier turns are stored by now.
                found.counts.skip("turn that was rolled back");
                self.turn.events().clear();
                self.closing = None;
            }
            Some("token_count") => self.tokens.count(&event["info"]),
            Some("patch_apply_end") => self.patched(event, found),
            Some("mcp_tool_call_end") => self.mcp(event, found),
            Some("context_compacted") => {
                let start = SessionStart { source: StartSource::Compact, ..SessionStart::default() };
                self.turn.push(self.event(EventKind::SessionStarted(start)));
            }
            _ => {}
        }
    }

    /// Takes a message of the agent, which may be the last one.
    fn says(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.closing = Some((text.to_string(), self.last_at));
        }
    }

    fn asks(&mut self, said: &str, offset: u64, found: &mut Found) {
        let said = said.split_once(REQUEST).map_or(said, |(_, request)| request).trim();
        if said.is_empty() || said.starts_with("<turn_aborted>") || self.agent.is_some() {
            return;
        }
        self.end_turn();
        self.turn.flush(found);
        found.resume_at = offset;
        self.asked += 1;
        let turn = self.turn_id.clone().unwrap_or_else(|| format!("at-{}", self.last_at));
        self.prompt = Some(if self.asked < 2 { turn } else { format!("{turn}-{}", self.asked) });
        found.counts.prompts += 1;
        self.turn.push(self.event(EventKind::UserPrompt { text: said.to_string() }));
    }

    fn end_turn(&mut self) {
        let Some((closing, at)) = self.closing.take() else { return };
        let usage = self.usage();
        let what = match self.agent {
            Some(_) => EventKind::SubagentEnded { agent_type: "subagent".into(), closing: Some(closing) },
            None => EventKind::TurnEnded { closing: Some(closing), error: None },
        };
        self.turn.push(Event { usage, at, ..self.event(what) });
    }

    /// The tokens since the last turn.
    fn usage(&mut self) -> Option<Box<TurnUsage>> {
        self.tokens.take(self.model.clone()).filter(|_| self.agent.is_none()).map(Box::new)
    }

    fn item(&mut self, item: &mut Value, found: &mut Found) {
        let id = item["call_id"].as_str().unwrap_or_default().to_string();
        match item["type"].as_str() {
            Some("function_call" | "custom_tool_call" | "local_shell_call") => {
                let name = item["name"].as_str().unwrap_or("local_shell").to_string();
                let arguments = item["arguments"].as_str().and_then(|text| serde_json::from_str(text).ok());
                let input = arguments.unwrap_or_else(|| match item["input"].take() {
                    Value::Null => item["action"].take(),
                    input => input,
                });
                match self.agent {
                    Some(_) => found.counts.subagent_tool_uses += 1,
                    None => found.counts.tool_uses += 1,
                }
                self.calls.insert(id, Call { name, input });
            }
            Some("function_call_output" | "custom_tool_call_output" | "local_shell_call_output") => {
                let Some(call) = self.calls.remove(&id) else { return };
                self.result(id, call, &text_of(&item["output"]), found);
            }
            _ => {}
        }
    }

    fn result(&mut self, id: String, call: Call, output: &str, found: &mut Found) {
        let ended = read(output);
        let failed = ended.exit_code.is_some_and(|code| code != 0);
        match call.name.as_str() {
            "exec_command" | "shell" | "shell_command" | "local_shell" => match ended.process {
                Some(process) => drop(self.running.insert(process, (id, call))),
                None => self.command(id, &call, output, found),
            },
            "write_stdin" => {
                found.counts.failures += u64::from(failed && self.agent.is_none());
                found.counts.skip("tool that is not recorded");
                let process = call.input["session_id"].as_i64().unwrap_or_default();
                if ended.exit_code.is_some()
                    && let Some((id, call)) = self.running.remove(&process)
                {
                    let failures = found.counts.failures;
                    self.command(id, &call, output, found);
                    // One failure, at the call that showed it.
                    found.counts.failures = failures;
                }
            }
            "apply_patch" => {
                let patch = call.input.as_str().unwrap_or_default().to_string();
                let refused = failed || output.contains("verification failed");
                found.counts.failures += u64::from(refused && self.agent.is_none());
                let error = refused.then(|| output.to_string());
                for (n, (path, added)) in files_of_patch(&patch).into_iter().enumerate() {
                    self.change(&id, n, &path, added, json!({"patch": patch}), error.as_deref());
                }
            }
            name => {
                let refused = says_failed(output);
                found.counts.failures += u64::from(refused && self.agent.is_none());
                let response = json!(ended.text);
                self.tool(&id, (name, name), call.input.clone(), response, refused.then_some(ended.text), found);
            }
        }
    }

    fn command(&mut self, id: String, call: &Call, output: &str, found: &mut Found) {
        let ended = read(output);
        let failed = ended.exit_code.filter(|code| *code != 0);
        found.counts.failures += u64::from(failed.is_some() && self.agent.is_none());
        let error = failed.map(|code| format!("Exit code {code}\n{}", ended.text));
        let before = self.cwd.clone();
        if let Some(folder) = call.input["workdir"].as_str().filter(|folder| folder.starts_with('/')) {
            self.cwd = Some(folder.to_string());
        }
        let response = json!({"stdout": ended.text});
        self.tool(&id, ("Bash", &call.name), json!({"command": command_of(&call.input)}), response, error.as_deref(), found);
        self.cwd = before;
    }

    /// A patch that was applied, file by file.
    fn patched(&mut self, event: &Value, found: &mut Found) {
        let Some(id) = event["call_id"].as_str().map(String::from) else { return };
        if self.calls.remove(&id).is_none() {
            return;
        }
        let failed = event["success"] != true;
        found.counts.failures += u64::from(failed && self.agent.is_none());
        let error = failed.then(|| event["stderr"].as_str().unwrap_or_default().to_string());
        for (n, (path, change)) in event["changes"].as_object().into_iter().flatten().enumerate() {
            let diff = change["unified_diff"].as_str().unwrap_or_default();
            let content = change["content"].as_str().unwrap_or_default();
            let response = json!({"structuredPatch": hunks(diff), "content": content});
            self.change(&id, n, path, change["type"] == "add", response, error.as_deref());
        }
    }

    /// A change of one file, the `n`th of its call.
    fn change(&mut self, id: &str, n: usize, path: &str, added: bool, mut response: Value, error: Option<&str>) {
        let id = if n == 0 { id.to_string() } else { format!("{id}-{}", n + 1) };
        let mut input = json!({"file_path": path});
        if let Some(content) = response["content"].as_str().filter(|content| !content.is_empty()) {
            input["content"] = json!(content);
        }
        if let Some(patch) = response["patch"].as_str() {
            input["new_string"] = json!(patch);
        }
        response["type"] = json!(if added { "create" } else { "update" });
        let name = if added { "Write" } else { "Edit" };
        self.tool(&id, (name, "apply_patch"), input, response, error, &mut Found::default());
    }

    fn mcp(&mut self, event: &Value, found: &mut Found) {
        let Some(id) = event["call_id"].as_str() else { return };
        if self.calls.remove(id).is_none() {
            return;
        }
        let invocation = &event["invocation"];
        let of = |key: &str| invocation[key].as_str().unwrap_or("unknown");
        let name = format!("mcp__{}__{}", of("server"), of("tool"));
        let (result, error) = (&event["result"]["Ok"], &event["result"]["Err"]);
        let said = text_of(&result["content"]);
        let failed = !error.is_null() || result["isError"] == true || says_failed(&said);
        found.counts.failures += u64::from(failed && self.agent.is_none());
        let error = if error.is_null() { said.clone() } else { text_of(error) };
        let error = failed.then_some(error);
        self.tool(id, (&name, &name), invocation["arguments"].clone(), json!(said), error.as_deref(), found);
    }

    /// Stores a call under its own name, decoded as the tool of Claude Code that does the same.
    fn tool(
        &mut self,
        id: &str,
        (like, name): (&str, &str),
        input: Value,
        response: Value,
        error: Option<&str>,
        found: &mut Found,
    ) {
        let mut payload = json!({
            "hook_event_name": if error.is_some() { "PostToolUseFailure" } else { "PostToolUse" },
            "session_id": self.session, "prompt_id": self.prompt, "agent_id": self.agent, "cwd": self.cwd,
            "tool_use_id": id, "tool_name": like,
        });
        payload["tool_input"] = input;
        match error {
            Some(error) => payload["error"] = json!(error),
            None => payload["tool_response"] = response,
        }
        let mut skip_tools = self.options.skip_tools.clone();
        skip_tools.push("update_plan".into());
        let around = DecodeContext { now: self.last_at, skip_tools: &skip_tools };
        match claude::decode(&payload, &around) {
            Ok(Some(mut event)) => {
                event.platform = Platform::Codex;
                event.transcript_length = Some(self.options.length);
                if let EventKind::ToolUsed(tool) = &mut event.what {
                    tool.name = name.to_string();
                }
                self.turn.push(event);
            }
            _ => found.counts.skip("tool that is not recorded"),
        }
    }
}

impl PastReader for Reader {
    fn line(&mut self, mut record: Value, at: u64, found: &mut Found) {
        self.last_at = time(&record).unwrap_or(self.last_at);
        let mut payload = record["payload"].take();
        match record["type"].as_str() {
            Some("session_meta") => self.starts(&payload),
            Some("turn_context") => {
                self.cwd = payload["cwd"].as_str().map(String::from).or(self.cwd.take());
                self.model = payload["model"].as_str().map(String::from).or(self.model.take());
            }
            Some("event_msg") => self.said(&payload, at, found),
            Some("response_item") => self.item(&mut payload, found),
            _ => {}
        }
    }

    fn end(&mut self, at: u64, is_over: bool, found: &mut Found) {
        if is_over {
            for (_, (id, call)) in std::mem::take(&mut self.running) {
                self.command(id, &call, "", found);
            }
            self.end_turn();
            found.resume_at = at;
            if self.agent.is_none() && self.has_started {
                let git = self.branch.clone().map(|branch| GitState { branch: Some(branch), head: None });
                let usage = self.usage();
                let event = self.event(EventKind::SessionEnded { reason: "other".into(), git });
                self.turn.push(Event { usage, prompt: None, ..event });
            }
            for _ in self.calls.drain() {
                found.counts.skip("call without a result");
            }
        }
        self.turn.flush(found);
    }
}
