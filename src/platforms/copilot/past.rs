//! Decodes Copilot's session files into events.
//!
//! `session-state/<id>/events.jsonl` holds a session of the CLI, `GitHub.copilot-chat/transcripts/<id>.jsonl` one of
//! VS Code, in the same format. A failed command is reported as a success: its exit code is in the last line of its
//! output. A command that keeps running is followed through the calls that read its output and the notification of its
//! end, and is stored as one command. Newer versions report the tokens of each response. In older ones, a message
//! reports its output tokens, and the line that ends the session reports the rest.

use super::{SKIPPED, is_about_command, is_command, like, printed};
use crate::model::{EventKind, GitState, Millis, Platform, SessionStart, StartSource, Tokens, TurnUsage};
use crate::platforms::claude;
use crate::platforms::past::{Found, PastCall, PastFormat, PastOptions, PastReader, PastSession, text_of};
use crate::platforms::transcript_tail::time;
use crate::platforms::translated::hunks;
use serde_json::{Value, json};
use std::collections::HashMap;

/// The CLI's format. Raise the version when the reader learns to find more than before.
pub const CLI: PastFormat = PastFormat {
    platform: Platform::CopilotCli,
    version: 2,
    folders: &["session-state"],
    kinds: &["abort", "assistant.", "hook.", "permission.", "session.", "subagent.", "system.", "tool.", "user."],
    is_line: |record| is_start(record) && !record["data"]["vscodeVersion"].is_string(),
    cwd: |record| record["data"]["context"]["cwd"].as_str(),
    session_file: |_| None,
    newest: |store, _| vec![store.to_path_buf()],
    reader: |options| Box::new(Reader::new(Platform::CopilotCli, options)),
    ..PastFormat::LINES
};

/// The format of VS Code.
pub const VS_CODE: PastFormat = PastFormat {
    platform: Platform::VsCode,
    folders: &["transcripts"],
    is_line: |record| is_start(record) && record["data"]["vscodeVersion"].is_string(),
    reader: |options| Box::new(Reader::new(Platform::VsCode, options)),
    ..CLI
};

fn is_start(record: &Value) -> bool {
    record["type"] == "session.start" && record["data"]["sessionId"].is_string()
}

struct Reader {
    session: PastSession,
    /// Calls that wait for their results.
    calls: HashMap<String, PastCall>,
    /// Running commands: their calls, by shell id.
    running: HashMap<String, (String, PastCall)>,
    model: Option<String>,
    /// The last message, and its time.
    closing: Option<(String, Millis)>,
    /// True if the last message requested no tool.
    is_complete: bool,
    /// True if the session has ended and was not resumed.
    has_ended: bool,
    /// Tokens of this turn, and (`output`) output tokens of messages since the session began or was resumed.
    turn: Tokens,
    output: i64,
    /// True if each response reports its tokens: then the session's end adds nothing new.
    has_records: bool,
    last_message: Option<String>,
}

impl Reader {
    fn new(platform: Platform, options: &PastOptions) -> Reader {
        let mut options = options.clone();
        options.skip_tools.extend(SKIPPED.map(String::from));
        let mut session = PastSession::new(platform, options.path.display().to_string(), &options);
        if let Some(first) = &options.first {
            identify(&mut session, &first["data"]);
        }
        Reader {
            session,
            calls: HashMap::new(),
            running: HashMap::new(),
            model: None,
            closing: None,
            is_complete: false,
            has_ended: false,
            turn: Tokens::default(),
            output: 0,
            has_records: false,
            last_message: None,
        }
    }

    fn asks(&mut self, record: &Value, offset: u64, found: &mut Found) {
        let data = &record["data"];
        // Skills, schedules and notices set their own `source`.
        let is_human = data["source"].as_str().is_none_or(|source| source == "user");
        let said = data["content"].as_str().map(str::trim).filter(|said| !said.is_empty() && is_human);
        let Some(said) = said.filter(|said| self.session.is_persons(said)) else { return };
        self.end_turn();
        self.session.flush(found);
        found.resume_at = offset;
        self.is_complete = false;
        self.session.prompt = record["id"].as_str().map(String::from).or_else(|| Some(format!("at-{}", self.session.at)));
        found.counts.prompts += 1;
        self.session.add(EventKind::UserPrompt { text: said.to_string() });
    }

    fn says(&mut self, data: &Value, of_subagent: bool) {
        let output = data["outputTokens"].as_i64().unwrap_or(0).max(0);
        if !self.has_records {
            (self.turn.output, self.output) = (self.turn.output + output, self.output + output);
        }
        if of_subagent {
            return;
        }
        self.model = data["model"].as_str().map(String::from).or(self.model.take());
        self.last_message = data["messageId"].as_str().map(String::from).or(self.last_message.take());
        self.is_complete = data["toolRequests"].as_array().is_none_or(Vec::is_empty);
        if let Some(said) = data["content"].as_str().filter(|said| !said.trim().is_empty()) {
            self.closing = Some((said.to_string(), self.session.at));
        }
    }

    fn end_turn(&mut self) {
        if let Some((closing, at)) = self.closing.take() {
            let turn = std::mem::take(&mut self.turn);
            let usage = self.usage(turn);
            self.session.end_turn(closing, at, usage);
        }
    }

    fn usage(&self, tokens: Tokens) -> Option<TurnUsage> {
        let usage = TurnUsage {
            tokens: Some(tokens),
            model: self.model.clone(),
            last_message: self.last_message.clone(),
            ..TurnUsage::default()
        };
        Some(usage).filter(|_| tokens != Tokens::default())
    }

    /// Adds the tokens of one response.
    fn responds(&mut self, usage: &Value) {
        if !std::mem::replace(&mut self.has_records, true) {
            self.turn = Tokens::default();
        }
        let used = tokens(usage);
        self.turn.input += used.input;
        self.turn.output += used.output;
        self.turn.cache_read += used.cache_read;
        self.turn.cache_write += used.cache_write;
        self.last_message = Some(format!("response-{}", self.session.at));
    }

    /// Ends the session. Its last line reports the tokens since it began or was resumed.
    fn shuts_down(&mut self, data: &Value) {
        self.end_turn();
        let mut all = std::mem::take(&mut self.turn);
        if !self.has_records {
            let unstated = all.output;
            all = Tokens::default();
            for model in data["modelMetrics"].as_object().into_iter().flat_map(|models| models.values()) {
                let used = tokens(&model["usage"]);
                all.input += used.input;
                all.output += used.output;
                all.cache_read += used.cache_read;
                all.cache_write += used.cache_write;
            }
            all.output = (all.output - self.output + unstated).max(0);
        }
        self.last_message = Some(format!("shutdown-{}", self.session.at));
        let usage = self.usage(all);
        self.session.end(usage);
        (self.output, self.has_ended) = (0, true);
    }

    fn goes_on(&mut self, data: &Value) {
        identify(&mut self.session, data);
        let start = SessionStart { source: StartSource::Resume, git: git(data), ..SessionStart::default() };
        self.session.add(EventKind::SessionStarted(start)).prompt = None;
        self.has_ended = false;
    }

    fn calls(&mut self, data: &Value, agent: Option<&str>, found: &mut Found) {
        let Some(id) = data["toolCallId"].as_str() else { return };
        let of = |key: &str| data[key].as_str().filter(|name| !name.is_empty());
        let name = match of("mcpServerName").zip(of("mcpToolName")) {
            Some((server, tool)) => format!("mcp__{server}__{tool}"),
            None => of("toolName").unwrap_or("unknown").to_string(),
        };
        let text = data["arguments"].as_str().and_then(|text| serde_json::from_str::<Value>(text).ok()).filter(Value::is_object);
        let call = PastCall { name, input: text.unwrap_or_else(|| data["arguments"].clone()) };
        if self.calls.insert(id.to_string(), call).is_none() {
            match agent {
                Some(_) => found.counts.subagent_tool_uses += 1,
                None => found.counts.tool_uses += 1,
            }
        }
        if agent.is_none() {
            self.closing = None;
        }
    }

    fn result(&mut self, data: &Value, agent: Option<&str>, found: &mut Found) {
        let id = data["toolCallId"].as_str().unwrap_or_default().to_string();
        let Some(call) = self.calls.remove(&id) else { return found.counts.skip("result without a call") };
        let said = match data["error"]["message"].as_str() {
            Some(error) => error.to_string(),
            None => text_of(&data["result"]["content"]),
        };
        let is_command = is_command(&call.name);
        let ended = printed(&said);
        let exit_code = ended.exit_code.filter(|_| is_command || is_about_command(&call.name));
        let failed = data["success"] == false || exit_code.is_some_and(|code| code != 0);
        found.counts.failures += u64::from(failed && agent.is_none());
        if matches!(data["error"]["code"].as_str(), Some("denied" | "rejected")) {
            return found.counts.skip("declined by the user");
        }
        if is_about_command(&call.name) {
            found.counts.skip("tool that is not recorded");
            let shell = call.input["shellId"].as_str().unwrap_or_default();
            let is_over = exit_code.is_some() || call.name.starts_with("stop_");
            if let Some((id, call)) = self.running.remove(shell).filter(|_| is_over) {
                self.command(&id, &call, Some(&said), agent, found);
            }
            return;
        }
        if is_command {
            let shell = ended.shell.filter(|_| !failed).map(String::from);
            return match shell {
                Some(shell) => drop(self.running.insert(shell, (id, call))),
                None if failed && exit_code.is_none() => self.tool(&id, &call, Err(&said), agent, found),
                None => self.command(&id, &call, Some(&said), agent, found),
            };
        }
        let detailed = data["result"]["detailedContent"].as_str().unwrap_or_default();
        let response = match hunks(detailed) {
            Value::Array(hunks) if !hunks.is_empty() => json!({"structuredPatch": hunks}),
            _ => json!(said),
        };
        self.tool(&id, &call, if failed { Err(&said) } else { Ok(response) }, agent, found);
    }

    /// Stores a command. Without an output, its outcome is unknown.
    fn command(&mut self, id: &str, call: &PastCall, output: Option<&str>, agent: Option<&str>, found: &mut Found) {
        let ended = printed(output.unwrap_or_default());
        let error = ended.exit_code.filter(|code| *code != 0).map(|code| format!("Exit code {code}\n{}", ended.text));
        let response = match output {
            Some(_) => json!({"stdout": ended.text}),
            None => json!({"backgroundTaskId": id}),
        };
        self.tool(id, call, error.as_deref().map_or(Ok(response), Err), agent, found);
    }

    /// Stores a call under its own name, decoded as the equivalent Claude Code tools.
    fn tool(&mut self, id: &str, call: &PastCall, result: Result<Value, &str>, agent: Option<&str>, found: &mut Found) {
        for (n, (like, input)) in like(&call.name, &call.input).into_iter().enumerate() {
            let id = if n == 0 { id.to_string() } else { format!("{id}-{}", n + 1) };
            // The patch of a created file is its whole text.
            let result = if like == "Write" { result.clone().map(|_| json!({"type": "create"})) } else { result.clone() };
            let mut payload = self.session.payload(&id, &like, input, result);
            payload["agent_id"] = json!(agent);
            match claude::decode(&payload, &self.session.decode_context()) {
                Ok(Some(event)) => {
                    if let EventKind::ToolUsed(tool) = &mut self.session.add_decoded(event).what {
                        tool.name.clone_from(&call.name);
                    }
                }
                _ => found.counts.skip("tool that is not recorded"),
            }
        }
    }

    /// Stores a running command that has ended without a call that read its output.
    fn notified(&mut self, kind: &Value, found: &mut Found) {
        let (Some(shell), Some(code)) = (kind["shellId"].as_str(), kind["exitCode"].as_i64()) else { return };
        if let Some((id, call)) = self.running.remove(shell) {
            self.command(&id, &call, Some(&format!("\n<exited with exit code {code}>")), None, found);
        }
    }
}

/// Parses token counts. Copilot's input tokens include cache reads and writes.
fn tokens(usage: &Value) -> Tokens {
    let of = |key: &str| usage[key].as_i64().unwrap_or(0).max(0);
    let (cache_read, cache_write) = (of("cacheReadTokens"), of("cacheWriteTokens"));
    Tokens { input: (of("inputTokens") - cache_read - cache_write).max(0), output: of("outputTokens"), cache_read, cache_write }
}

fn git(data: &Value) -> Option<GitState> {
    let text = |key: &str| data["context"][key].as_str().filter(|text| !text.is_empty()).map(String::from);
    Some(GitState { branch: text("branch"), head: text("headCommit") }).filter(|git| git.branch.is_some())
}

/// Sets a session's id, folder and branch from a line.
fn identify(session: &mut PastSession, data: &Value) {
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(String::from);
    session.id = text(&data["sessionId"]).unwrap_or_else(|| std::mem::take(&mut session.id));
    session.cwd = text(&data["context"]["cwd"]).or(session.cwd.take());
    session.branch = text(&data["context"]["branch"]).or(session.branch.take());
    let on_github = text(&data["context"]["repository"]).filter(|name| {
        let parts: Vec<&str> = name.split('/').collect();
        parts.len() == 2 && parts.iter().all(|part| part.contains(char::is_alphanumeric))
    });
    session.repository_url = on_github.map(|name| format!("https://github.com/{name}")).or(session.repository_url.take());
}

impl PastReader for Reader {
    fn line(&mut self, record: Value, at: u64, found: &mut Found) {
        self.session.at = time(&record).unwrap_or(self.session.at);
        let data = &record["data"];
        let agent = data["parentToolCallId"].as_str().or_else(|| record["agentId"].as_str()).filter(|id| !id.is_empty());
        let kind = record["type"].as_str().unwrap_or_default();
        found.counts.known_lines += u64::from(matches!(kind, "user.message" | "assistant.message" | "tool.execution_start"));
        match kind {
            "session.start" if !self.session.has_started => {
                identify(&mut self.session, data);
                self.session.start(git(data).and_then(|git| git.head));
            }
            "session.resume" => self.goes_on(data),
            "session.context_changed" => {
                let of = |key: &str| data[key].as_str().map(String::from);
                self.session.cwd = of("cwd").or(self.session.cwd.take());
                self.session.branch = of("branch").or(self.session.branch.take());
            }
            "user.message" => self.asks(&record, at, found),
            "assistant.message" => self.says(data, agent.is_some()),
            "tool.execution_start" => self.calls(data, agent, found),
            "tool.execution_complete" => self.result(data, agent, found),
            "system.notification" if data["kind"]["type"] == "shell_completed" => self.notified(&data["kind"], found),
            "session.compaction_complete" if data["success"] != false => self.session.compact(),
            "session.snapshot_rewind" => {
                // Undone turns do not count as work. Earlier ones are already stored.
                found.counts.skip("turn that was undone");
                self.session.turn().clear();
                self.closing = None;
            }
            "abort" => self.closing = None,
            "session.usage_record" => self.responds(&data["usage"]),
            "session.shutdown" => self.shuts_down(data),
            _ => {}
        }
    }

    fn end(&mut self, at: u64, is_over: bool, found: &mut Found) {
        if is_over {
            for (_, (id, call)) in std::mem::take(&mut self.running) {
                self.command(&id, &call, None, None, found);
            }
        }
        let is_idle = self.calls.is_empty() && self.running.is_empty();
        if is_over || is_idle && (self.is_complete || self.has_ended) {
            self.end_turn();
            found.resume_at = at;
        }
        if is_over && !self.has_ended {
            self.session.end(None);
        }
        for _ in self.calls.drain().filter(|_| is_over) {
            found.counts.skip("call without a result");
        }
        self.session.flush(found);
    }
}
