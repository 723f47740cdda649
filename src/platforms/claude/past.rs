//! Claude Code's session files → events.
//!
//! `projects/<folder>/<session>.jsonl` holds a session, `<session>/subagents/agent-<id>.jsonl` what its subagents did.
//! Every tool call becomes the payload that a hook would have received, and is decoded by the same function. Prompts that
//! were typed while the agent worked stand only in the queue's lines in some versions; messages of the client itself
//! (task notifications, local commands, summaries of a compaction) look like prompts and are none.

use super::decode;
use super::typed::{is_command, typed};
use super::values::text;
use crate::model::{Event, EventKind, GitState, Millis, Platform, SessionStart, StartSource};
use crate::platforms::DecodeContext;
use crate::platforms::past::{Found, PastFormat, PastOptions, PastReader, PastTurn, line_id};
use crate::platforms::transcript::{UsageCounter, time};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;

/// The format. Raise the version when the reader finds more than before.
pub const PAST: PastFormat = PastFormat {
    platform: Platform::ClaudeCode,
    version: 1,
    folders: &["projects"],
    is_line: |record| record["sessionId"].is_string() && record["type"].is_string(),
    cwd: |record| record["cwd"].as_str(),
    is_part: |path| agent_of(path).is_some(),
    reader: |options| Box::new(Reader::new(options)),
};

/// Beginnings of messages about a call that a person declined.
const DECLINED: [&str; 2] = ["The user doesn't want to ", "[Request interrupted"];

/// A tool call that waits for its result.
struct Call {
    name: String,
    input: Value,
}

struct Reader {
    options: PastOptions,
    session: String,
    /// The subagent to which the file belongs.
    agent: Option<String>,
    calls: HashMap<String, Call>,
    /// Prompts that wait.
    queue: Vec<String>,
    turn: PastTurn,
    usage: UsageCounter,
    /// The current prompt's id.
    prompt: Option<String>,
    cwd: Option<String>,
    branch: Option<String>,
    has_started: bool,
    /// Text of the last message: its id, the text, its time.
    closing: Option<(String, String, Millis)>,
    /// Whether the last message is complete.
    is_complete: bool,
    last_at: Millis,
}

/// The subagent of a file, by its name.
fn agent_of(path: &Path) -> Option<&str> {
    path.file_stem()?.to_str()?.strip_prefix("agent-")
}

impl Reader {
    fn new(options: &PastOptions) -> Reader {
        let agent = agent_of(&options.path).map(String::from);
        let name = |path: Option<&Path>| path.and_then(|path| path.file_stem()?.to_str().map(String::from));
        let session = match agent {
            Some(_) => name(options.path.parent().and_then(Path::parent)),
            None => name(Some(&options.path)),
        };
        Reader {
            options: options.clone(),
            session: session.unwrap_or_default(),
            agent,
            calls: HashMap::new(),
            queue: Vec::new(),
            turn: PastTurn::default(),
            usage: UsageCounter::default(),
            prompt: None,
            cwd: None,
            branch: None,
            has_started: options.first.is_some(),
            closing: None,
            is_complete: false,
            last_at: 0,
        }
    }

    fn event(&self, at: Millis, what: EventKind) -> Event {
        Event {
            platform: Platform::ClaudeCode,
            session: self.session.clone(),
            at,
            time: None,
            cwd: self.cwd.clone(),
            project: None,
            transcript: None,
            // What a hook reads of this file later begins after it.
            transcript_length: Some(self.options.length),
            usage: None,
            prompt: self.prompt.clone(),
            agent: self.agent.clone(),
            what,
        }
    }

    fn assistant(&mut self, record: &Value, found: &mut Found) {
        let message = &record["message"];
        let is_own = record["isSidechain"] != true || self.agent.is_some();
        if is_own && self.agent.is_none() {
            self.usage.record(record, self.options.thinking);
        }
        // The client's own notes ("API Error …").
        if message["model"] == "<synthetic>" || record["isApiErrorMessage"] == true {
            return;
        }
        for block in message["content"].as_array().into_iter().flatten() {
            match block["type"].as_str() {
                Some("text") if is_own => self.says(message, block),
                Some("tool_use") => {
                    self.calls(block, found);
                    self.closing = None;
                }
                _ => {}
            }
        }
        if is_own {
            self.is_complete = message["stop_reason"] == "end_turn" || message["stop_reason"] == "stop_sequence";
        }
    }

    fn says(&mut self, message: &Value, block: &Value) {
        let (Some(said), Some(id)) = (text(&block["text"]), message["id"].as_str()) else { return };
        self.closing = match self.closing.take() {
            Some((of, before, _)) if of == id => Some((of, format!("{before}\n{said}"), self.last_at)),
            _ => Some((id.to_string(), said, self.last_at)),
        };
    }

    fn calls(&mut self, block: &Value, found: &mut Found) {
        let (Some(id), Some(name)) = (block["id"].as_str(), block["name"].as_str()) else { return };
        let call = Call { name: name.to_string(), input: block["input"].clone() };
        if self.calls.insert(id.to_string(), call).is_none() && self.agent.is_none() {
            found.counts.tool_uses += 1;
        }
    }

    /// A line of the user: results of calls, or text.
    fn user(&mut self, mut record: Value, offset: u64, found: &mut Found) {
        let content = record["message"]["content"].take();
        let Value::Array(blocks) = content else {
            return if let Value::String(said) = content {
                self.text(&record, &said, offset, found)
            };
        };
        let mut said = Vec::new();
        for mut block in blocks {
            match block["type"].as_str() {
                Some("tool_result") => {
                    let response = record["toolUseResult"].take();
                    self.result(&mut block, response, found, self.agent.clone());
                }
                Some("text") => said.extend(text(&block["text"])),
                _ => {}
            }
        }
        if !said.is_empty() {
            self.text(&record, &said.join("\n"), offset, found);
        }
    }

    /// The result of a call.
    fn result(&mut self, block: &mut Value, response: Value, found: &mut Found, agent: Option<String>) {
        let id = block["tool_use_id"].as_str().unwrap_or_default().to_string();
        let Some(call) = self.calls.remove(&id) else { return found.counts.skip("result without a call") };
        let said = super::readable(&block["content"]).unwrap_or_default();
        let failed = block["is_error"] == true;
        if agent.is_none() {
            found.counts.failures += u64::from(failed);
        } else {
            found.counts.subagent_tool_uses += 1;
        }
        if failed && DECLINED.iter().any(|declined| said.starts_with(declined)) {
            return found.counts.skip("declined by the user");
        }
        let error = said.strip_prefix("<tool_use_error>").map(|said| said.trim_end_matches("</tool_use_error>"));
        let mut payload = json!({
            "hook_event_name": if failed { "PostToolUseFailure" } else { "PostToolUse" },
            "session_id": self.session, "prompt_id": self.prompt, "agent_id": agent, "cwd": self.cwd,
            "tool_use_id": id, "tool_name": call.name,
        });
        payload["tool_input"] = call.input;
        match failed {
            true => payload["error"] = json!(error.unwrap_or(&said)),
            // A subagent's lines have the text only.
            false if response.is_null() && matches!(call.name.as_str(), "Bash" | "PowerShell") => {
                payload["tool_response"] = json!({"stdout": said});
            }
            false => payload["tool_response"] = if response.is_null() { block["content"].take() } else { response },
        }
        let around = DecodeContext { now: self.last_at, skip_tools: &self.options.skip_tools };
        match decode(&payload, &around) {
            Ok(Some(event)) => {
                self.turn.push(Event { transcript_length: Some(self.options.length), ..event });
            }
            _ => found.counts.skip("tool that is not recorded"),
        }
    }

    /// Text in a line of the user, which may be a prompt.
    fn text(&mut self, record: &Value, said: &str, offset: u64, found: &mut Found) {
        let is_own =
            ["isMeta", "isCompactSummary", "isSidechain", "isVisibleInTranscriptOnly"].iter().all(|key| record[*key] != true);
        if !is_own || self.agent.is_some() {
            return;
        }
        if said.trim_start().starts_with("[Request interrupted") {
            self.closing = None;
            return;
        }
        let is_machine_made = record["origin"]["kind"].as_str().is_some_and(|kind| kind != "human");
        match typed(said).filter(|_| !is_machine_made) {
            Some(prompt) => {
                // In some versions a queued prompt has a line of its own later.
                let is_queued = |event: &Event| matches!(&event.what, EventKind::UserPrompt { text } if *text == prompt);
                let events = self.turn.events();
                if let Some(at) = events.iter().rposition(is_queued).filter(|at| *at > 0 || events.len() == 1) {
                    events.remove(at);
                    found.counts.prompts -= 1;
                }
                self.end_turn();
                self.turn.flush(found);
                found.resume_at = offset;
                let id = text(&record["promptId"]).or_else(|| text(&record["uuid"]));
                self.prompts(prompt, id, found);
            }
            None if is_command(said) => {}
            None => self.end_turn(),
        }
    }

    fn prompts(&mut self, prompt: String, id: Option<String>, found: &mut Found) {
        self.queue.retain(|queued| *queued != prompt);
        // The same file gives the same id when it is read again.
        self.prompt = id.or_else(|| Some(format!("queued-{}", self.last_at)));
        found.counts.prompts += 1;
        self.turn.push(self.event(self.last_at, EventKind::UserPrompt { text: prompt }));
    }

    /// Ends the turn with the agent's last text, if that is how it ended.
    fn end_turn(&mut self) {
        let Some((_, closing, at)) = self.closing.take() else { return };
        let what = match self.agent {
            Some(_) => EventKind::SubagentEnded { agent_type: "subagent".into(), closing: Some(closing) },
            None => EventKind::TurnEnded { closing: Some(closing), error: None },
        };
        let usage = if self.agent.is_none() { Some(Box::new(self.usage.take())) } else { None };
        self.turn.push(Event { usage, ..self.event(at, what) });
    }

    /// A line of the queue. What leaves it for a line of its own is found there.
    fn queue(&mut self, record: &Value, found: &mut Found) {
        let said = text(&record["content"]);
        match record["operation"].as_str() {
            Some("enqueue") => {
                let is_note = |said: &String| serde_json::from_str::<Value>(said).is_ok_and(|note| note.is_object());
                self.queue.extend(said.filter(|said| !is_note(said)).and_then(|said| typed(&said)));
            }
            // The agent has read it in the middle of its work, and in some versions no other line has it.
            Some("remove") if said.is_none() && !self.queue.is_empty() => {
                let prompt = self.queue.remove(0);
                self.only_queued(prompt, found);
            }
            Some("remove") => {
                let prompt = said.and_then(|said| typed(&said));
                self.queue.retain(|queued| Some(queued) != prompt.as_ref());
            }
            Some("popAll") => self.queue.clear(),
            _ => {}
        }
    }

    /// A prompt that no other line has.
    fn only_queued(&mut self, prompt: String, found: &mut Found) {
        // A command of the client itself is none.
        if !prompt.starts_with('/') {
            self.prompts(prompt, None, found);
        }
    }

    /// A prompt that was typed during work, in versions that give it a line of its own.
    fn queued_command(&mut self, record: &Value, found: &mut Found) {
        let attachment = &record["attachment"];
        let is_human = attachment["origin"]["kind"].as_str().is_none_or(|kind| kind == "human");
        let said = text(&attachment["prompt"]).or_else(|| super::readable(&attachment["prompt"]));
        if let Some(prompt) = said.and_then(|said| typed(&said)).filter(|_| is_human) {
            let is_same = |event: &Event| matches!(&event.what, EventKind::UserPrompt { text } if *text == prompt);
            if !self.turn.events().iter().any(is_same) {
                let id = text(&record["uuid"]);
                self.prompts(prompt, id, found);
            }
        }
    }

    /// What a subagent does, in versions that report it in the main file.
    fn progress(&mut self, mut record: Value, found: &mut Found) {
        let Some(agent) = text(&record["data"]["agentId"]) else { return };
        let content = record["data"]["message"]["message"]["content"].take();
        for mut block in content.as_array().cloned().unwrap_or_default() {
            match block["type"].as_str() {
                Some("tool_use") => {
                    let (Some(id), Some(name)) = (block["id"].as_str(), block["name"].as_str()) else { continue };
                    let call = Call { name: name.to_string(), input: block["input"].clone() };
                    self.calls.insert(id.to_string(), call);
                }
                Some("tool_result") => self.result(&mut block, Value::Null, found, Some(agent.clone())),
                _ => {}
            }
        }
    }

    fn starts(&mut self, record: &Value) {
        let branch = text(&record["gitBranch"]).filter(|branch| branch != "HEAD");
        if self.agent.is_none() && !self.has_started && self.cwd.is_some() && self.last_at > 0 {
            self.has_started = true;
            let git = branch.clone().map(|branch| GitState { branch: Some(branch), head: None });
            let start = SessionStart { source: StartSource::Startup, model: None, client: None, git };
            let event = self.event(self.last_at, EventKind::SessionStarted(start));
            self.turn.push(Event { prompt: None, ..event });
        }
        self.branch = branch.or(self.branch.take());
    }
}

impl PastReader for Reader {
    fn line(&mut self, record: Value, at: u64, found: &mut Found) {
        if line_id(&record).is_some_and(|id| self.options.copied.contains(&id)) {
            return found.counts.skip("copied from another session");
        }
        self.last_at = time(&record).unwrap_or(self.last_at);
        self.cwd = text(&record["cwd"]).or(self.cwd.take());
        self.starts(&record);
        if self.agent.is_some() {
            self.prompt = text(&record["promptId"]).or(self.prompt.take());
        }
        match record["type"].as_str() {
            Some("assistant") => self.assistant(&record, found),
            Some("user") => self.user(record, at, found),
            Some("queue-operation") => self.queue(&record, found),
            Some("attachment") if record["attachment"]["type"] == "queued_command" => self.queued_command(&record, found),
            Some("progress") if record["data"]["type"] == "agent_progress" => self.progress(record, found),
            Some("system") if record["subtype"] == "compact_boundary" => {
                let start = SessionStart { source: StartSource::Compact, ..SessionStart::default() };
                self.turn.push(self.event(self.last_at, EventKind::SessionStarted(start)));
            }
            _ => {}
        }
    }

    fn end(&mut self, at: u64, is_over: bool, found: &mut Found) {
        if is_over {
            std::mem::take(&mut self.queue).into_iter().for_each(|prompt| self.only_queued(prompt, found));
        }
        if is_over || self.is_complete && self.calls.is_empty() {
            self.end_turn();
            found.resume_at = at;
        }
        if is_over && self.agent.is_none() && self.has_started {
            let git = self.branch.clone().map(|branch| GitState { branch: Some(branch), head: None });
            let usage = Some(Box::new(self.usage.take()));
            let event = self.event(self.last_at, EventKind::SessionEnded { reason: "other".into(), git });
            self.turn.push(Event { usage, prompt: None, ..event });
        }
        for _ in self.calls.drain().filter(|_| is_over) {
            found.counts.skip("call without a result");
        }
        self.turn.flush(found);
    }
}
