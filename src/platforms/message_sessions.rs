//! Past sessions of agents that keep messages with texts, calls and results: one reader, and for each agent what a record
//! says.

use super::claude;
use super::host_calls::{like, result};
use super::past::{Found, PastCall, PastDocument, PastFormat, PastOptions, PastReader, PastSession, PastSource, text_of};
use super::payload::document;
use super::transcript_tail;
use super::translated::field;
use crate::model::{EventKind, Millis, Platform, Tokens, TurnUsage};
use anyhow::Result;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A part of a record.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    Prompt {
        id: String,
        text: String,
    },
    /// A text of the agent. The last one of a turn is its closing message.
    Text(String),
    /// A part of such a text.
    Chunk(String),
    Call {
        id: String,
        name: String,
        input: Value,
    },
    /// The responses to a call: one, or one for each thing that the call did.
    Result {
        id: String,
        responses: Vec<Value>,
        is_error: bool,
    },
    /// Tokens of one request.
    Tokens(Tokens),
    TurnEnd,
    Compaction,
}

/// The records of an agent's sessions.
pub struct MessageFormat {
    /// Takes the session's id, folder and branch from a record that has them.
    pub identify: fn(&Value, &mut PastSession),
    pub parts: fn(&Value) -> Vec<Part>,
    pub time: fn(&Value) -> Option<Millis>,
}

pub struct MessageReader {
    format: &'static MessageFormat,
    session: PastSession,
    /// Calls that wait for their results.
    calls: HashMap<String, PastCall>,
    /// The last text of the agent, and its time.
    closing: Option<(String, Millis)>,
    tokens: Tokens,
    is_complete: bool,
}

impl MessageReader {
    pub fn new(platform: Platform, format: &'static MessageFormat, options: &PastOptions) -> MessageReader {
        let session = PastSession::new(platform, options.path.display().to_string(), options);
        let (calls, closing, tokens) = Default::default();
        let mut reader = MessageReader { format, session, calls, closing, tokens, is_complete: false };
        options.first.iter().for_each(|first| (format.identify)(first, &mut reader.session));
        reader
    }

    fn take(&mut self, part: Part, at: u64, found: &mut Found) {
        match part {
            Part::Prompt { id, text } => self.prompt(&id, &text, at, found),
            Part::Text(text) => self.closing = Some((text, self.session.at)).filter(|(text, _)| !text.trim().is_empty()),
            Part::Chunk(text) => match &mut self.closing {
                Some((before, _)) => before.push_str(&text),
                None => self.closing = Some((text, self.session.at)),
            },
            Part::Call { id, name, input } => {
                self.closing = None;
                found.counts.tool_uses += 1;
                self.calls.insert(id, PastCall { name, input });
            }
            Part::Result { id, responses, is_error } => self.result(&id, &responses, is_error, found),
            Part::Tokens(more) => {
                self.tokens.input += more.input;
                self.tokens.output += more.output;
                self.tokens.cache_read += more.cache_read;
                self.tokens.cache_write += more.cache_write;
            }
            Part::TurnEnd => {
                self.end_turn();
                self.is_complete = true;
            }
            Part::Compaction => self.session.compact(),
        }
    }

    fn prompt(&mut self, id: &str, text: &str, at: u64, found: &mut Found) {
        let text = text.trim();
        if text.is_empty() || !self.session.is_persons(text) {
            return;
        }
        self.end_turn();
        self.session.flush(found);
        (found.resume_at, self.is_complete) = (at, false);
        found.counts.prompts += 1;
        self.session.prompt = Some(id.to_string());
        self.session.add(EventKind::UserPrompt { text: text.to_string() });
    }

    fn result(&mut self, id: &str, responses: &[Value], is_error: bool, found: &mut Found) {
        let Some(call) = self.calls.remove(id) else { return found.counts.skip("result without a call") };
        let outcome = |response: &Value| match result(&call.name, response) {
            Ok(_) if is_error => Err(text_of(response).trim_start_matches("Error: ").to_string()),
            outcome => outcome,
        };
        let outcomes: Vec<Result<Value, String>> = responses.iter().map(outcome).collect();
        found.counts.failures += u64::from(outcomes.iter().any(Result::is_err));
        for (n, (name, input)) in like(&call.name, &call.input).into_iter().enumerate() {
            let id = if n == 0 { id.to_string() } else { format!("{id}-{}", n + 1) };
            let outcome = match outcomes.get(n).or(outcomes.last()) {
                Some(Err(error)) => Err(error.as_str()),
                Some(Ok(response)) => Ok(response.clone()),
                None => Ok(Value::Null),
            };
            let payload = self.session.payload(&id, &name, input, outcome);
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

    fn end_turn(&mut self) {
        if let Some((closing, at)) = self.closing.take() {
            let tokens = Some(std::mem::take(&mut self.tokens)).filter(|tokens| *tokens != Tokens::default());
            let usage = tokens.map(|tokens| TurnUsage { tokens: Some(tokens), ..TurnUsage::default() });
            self.session.end_turn(closing, at, usage);
        }
    }
}

impl PastReader for MessageReader {
    fn line(&mut self, record: Value, at: u64, found: &mut Found) {
        self.session.at = (self.format.time)(&record).unwrap_or(self.session.at);
        (self.format.identify)(&record, &mut self.session);
        let parts = (self.format.parts)(&record);
        found.counts.known_lines += u64::from(!parts.is_empty());
        if !parts.is_empty() && self.session.at > 0 {
            self.session.start(None);
        }
        parts.into_iter().for_each(|part| self.take(part, at, found));
    }

    fn end(&mut self, at: u64, is_over: bool, found: &mut Found) {
        if is_over || self.is_complete && self.calls.is_empty() {
            self.end_turn();
            found.resume_at = at;
        }
        if is_over {
            self.session.end(None);
            (0..self.calls.drain().count()).for_each(|_| found.counts.skip("call without a result"));
        }
        self.session.flush(found);
    }
}

/// The text of a value that is one.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_string()
}

fn owned(value: &Value) -> Option<String> {
    value.as_str().map(String::from)
}

fn millis(value: &Value) -> Option<Millis> {
    value.as_i64().filter(|at| *at > 0)
}

/// The tokens of a request, under an agent's names for them.
pub fn counted(usage: &Value, [input, output, cache_read, cache_write]: [&str; 4]) -> Option<Part> {
    let of = |key: &str| usage[key].as_i64().unwrap_or(0).max(0);
    let tokens = Tokens { input: of(input), output: of(output), cache_read: of(cache_read), cache_write: of(cache_write) };
    Some(Part::Tokens(tokens)).filter(|_| tokens != Tokens::default())
}

/// The same, where the input includes what the cache had.
pub fn counted_with_cache(usage: &Value, names: [&str; 4]) -> Option<Part> {
    match counted(usage, names)? {
        Part::Tokens(tokens) => {
            let input = (tokens.input - tokens.cache_read - tokens.cache_write).max(0);
            Some(Part::Tokens(Tokens { input, ..tokens }))
        }
        part => Some(part),
    }
}

fn blocks(content: &Value) -> impl Iterator<Item = &Value> {
    content.as_array().into_iter().flatten()
}

/// The name of a folder in which an agent keeps a project's sessions: its path with `-` for each separator.
fn dashed(cwd: &str) -> String {
    cwd.replace(['/', '\\'], "-")
}

/// Droid: lines with messages of Anthropic's blocks.
pub const DROID: PastFormat = PastFormat {
    platform: Platform::Droid,
    folders: &["sessions"],
    kinds: &["agent_turn_outcome", "compaction_state", "message", "session_end", "session_start", "todo_state"],
    states_version: |record| (record["type"] == "session_start").then_some(&record["version"]),
    versions: &["2"],
    is_line: |record| record["type"] == "session_start" && record["id"].is_string() && record["hostId"].is_string(),
    cwd: |record| record["cwd"].as_str(),
    newest: |store, cwd| vec![store.join(dashed(cwd))],
    reader: |options| Box::new(MessageReader::new(Platform::Droid, &DROID_MESSAGES, options)),
    ..PastFormat::LINES
};

const DROID_MESSAGES: MessageFormat = MessageFormat {
    identify: |record, session| {
        if record["type"] == "session_start" && !session.has_started {
            session.id = text(&record["id"]);
            session.cwd = owned(&record["cwd"]);
        }
    },
    parts: |record| {
        if record["type"] == "agent_turn_outcome" {
            return vec![Part::TurnEnd];
        }
        let (id, message) = (text(&record["id"]), &record["message"]);
        // Notes of the client: reminders, and records of hooks.
        if record["type"] != "message" || id.starts_with("context-") || message["visibility"] == "user_only" {
            return Vec::new();
        }
        blocks(&message["content"]).filter_map(|block| anthropic(&message["role"], block, &id)).collect()
    },
    time: transcript_tail::time,
};

/// Adds the end of the turn to a message of the agent that has texts only.
fn ended(mut parts: Vec<Part>) -> Vec<Part> {
    if !parts.is_empty() && parts.iter().all(|part| matches!(part, Part::Text(_))) {
        parts.push(Part::TurnEnd);
    }
    parts
}

/// A block of Anthropic's messages.
fn anthropic(role: &Value, block: &Value, id: &str) -> Option<Part> {
    Some(match (role.as_str()?, block["type"].as_str()?) {
        ("user", "text") => Part::Prompt { id: id.to_string(), text: text(&block["text"]) },
        ("user", "tool_result") => Part::Result {
            id: text(&block["tool_use_id"]),
            responses: responses(&block["content"]),
            is_error: block["is_error"] == true,
        },
        ("assistant", "text") => Part::Text(text(&block["text"])),
        ("assistant", "tool_use") => {
            Part::Call { id: text(&block["id"]), name: text(&block["name"]), input: block["input"].clone() }
        }
        _ => return None,
    })
}

/// The responses of a result: those that say themselves whether they succeeded, or the text of all.
fn responses(content: &Value) -> Vec<Value> {
    match content.as_array() {
        Some(all) if all.iter().any(|one| one["success"].is_boolean()) => all.clone(),
        _ => vec![json!(text_of(content))],
    }
}

/// Any agent: lines with messages of Anthropic's blocks, which only a person can tell apart (`nmem import --as other`).
pub const OTHER: PastFormat = PastFormat {
    platform: Platform::Other,
    cwd: |record| record["cwd"].as_str(),
    reader: |options| Box::new(MessageReader::new(Platform::Other, &OTHER_MESSAGES, options)),
    ..PastFormat::LINES
};

const OTHER_MESSAGES: MessageFormat = MessageFormat {
    identify: |record, session| {
        if let Some(id) = owned(field(record, &["sessionId", "session_id"])) {
            session.id = id;
        }
        session.cwd = owned(&record["cwd"]).or(session.cwd.take());
    },
    parts: message_parts,
    time: |record| {
        let at = field(record, &["timestamp", "created_at", "time", "ts"]);
        millis_of(at).or_else(|| transcript_tail::time(&json!({"timestamp": at})))
    },
};

/// The parts of a message with Anthropic's blocks, or with a text only.
pub fn message_parts(record: &Value) -> Vec<Part> {
    let message = if record["message"].is_object() { &record["message"] } else { record };
    let id = text(field(record, &["uuid", "id"]));
    let (role, content) = (&message["role"], &message["content"]);
    match (role.as_str(), content.as_str()) {
        (Some("user"), Some(said)) => vec![Part::Prompt { id, text: said.to_string() }],
        (Some("assistant"), Some(said)) => vec![Part::Text(said.to_string()), Part::TurnEnd],
        _ => ended(blocks(content).filter_map(|block| anthropic(role, block, &id)).collect()),
    }
}

/// A time in seconds or milliseconds.
pub fn millis_of(at: &Value) -> Option<Millis> {
    millis(at).map(|at| if at < 100_000_000_000 { at * 1000 } else { at })
}

/// Qwen Code: lines with Gemini's parts.
pub const QWEN: PastFormat = PastFormat {
    platform: Platform::QwenCode,
    folders: &["projects"],
    kinds: &["assistant", "system", "tool_result", "user"],
    is_line: |record| record["provenance"].is_string() && record["sessionId"].is_string() && record["uuid"].is_string(),
    cwd: |record| record["cwd"].as_str(),
    newest: |store, cwd| vec![store.join(dashed(cwd)).join("chats")],
    reader: |options| Box::new(MessageReader::new(Platform::QwenCode, &QWEN_MESSAGES, options)),
    ..PastFormat::LINES
};

const QWEN_MESSAGES: MessageFormat = MessageFormat {
    identify: |record, session| {
        if let Some(id) = owned(&record["sessionId"]) {
            (session.id, session.cwd, session.branch) = (id, owned(&record["cwd"]), owned(&record["gitBranch"]));
        }
    },
    parts: |record| {
        let parts = blocks(&record["message"]["parts"]);
        match record["type"].as_str() {
            Some("user") if record["provenance"] == "real_user" => {
                // Context of hooks follows the prompt.
                let own: Vec<&str> =
                    parts.filter_map(|part| part["text"].as_str()).filter(|text| !text.starts_with("<qwen:")).collect();
                vec![Part::Prompt { id: text(&record["uuid"]), text: own.join("\n") }]
            }
            Some("assistant") => {
                let part = |part: &Value| match (&part["functionCall"], part["text"].as_str()) {
                    (Value::Null, Some(said)) if part["thought"] != true => Some(Part::Text(said.to_string())),
                    (Value::Null, _) => None,
                    (call, _) => {
                        Some(Part::Call { id: text(&call["id"]), name: text(&call["name"]), input: call["args"].clone() })
                    }
                };
                let names = ["promptTokenCount", "candidatesTokenCount", "cachedContentTokenCount", ""];
                let tokens = counted_with_cache(&record["usageMetadata"], names);
                tokens.into_iter().chain(ended(parts.filter_map(part).collect())).collect()
            }
            Some("tool_result") => {
                let part = |part: &Value| {
                    let (id, response) = (&part["functionResponse"]["id"], &part["functionResponse"]["response"]);
                    let is_error = !response["error"].is_null();
                    let said = field(response, &["error", "output"]).clone();
                    id.is_string().then(|| Part::Result { id: text(id), responses: vec![said], is_error })
                };
                parts.filter_map(part).collect()
            }
            _ => Vec::new(),
        }
    },
    time: transcript_tail::time,
};

/// Pi: lines with messages, which form a tree. All its branches are read, also those that the person left.
pub const PI: PastFormat = PastFormat {
    platform: Platform::Pi,
    folders: &["agent/sessions"],
    kinds: &[
        "branch_summary",
        "compaction",
        "custom",
        "custom_message",
        "label",
        "message",
        "model_change",
        "session",
        "session_info",
        "thinking_level_change",
    ],
    states_version: |record| (record["type"] == "session").then_some(&record["version"]),
    versions: &["3"],
    is_line: |record| record["type"] == "session" && record["version"].is_number() && record["cwd"].is_string(),
    cwd: |record| record["cwd"].as_str(),
    newest: |store, cwd| vec![store.join(format!("-{}--", dashed(cwd)))],
    reader: |options| Box::new(MessageReader::new(Platform::Pi, &PI_MESSAGES, options)),
    ..PastFormat::LINES
};

const PI_MESSAGES: MessageFormat = MessageFormat {
    identify: |record, session| {
        if record["type"] == "session" {
            (session.id, session.cwd) = (text(&record["id"]), owned(&record["cwd"]));
        }
    },
    parts: |record| {
        let message = &record["message"];
        match (record["type"].as_str(), message["role"].as_str()) {
            (Some("compaction"), _) => vec![Part::Compaction],
            (Some("message"), Some("user")) => {
                vec![Part::Prompt { id: text(&record["id"]), text: text_of(&message["content"]) }]
            }
            (Some("message"), Some("toolResult")) => vec![Part::Result {
                id: text(&message["toolCallId"]),
                responses: vec![json!(text_of(&message["content"]))],
                is_error: message["isError"] == true,
            }],
            (Some("message"), Some("assistant")) => {
                let part = |block: &Value| match block["type"].as_str() {
                    Some("text") => Some(Part::Text(text(&block["text"]))),
                    Some("toolCall") => {
                        Some(Part::Call { id: text(&block["id"]), name: text(&block["name"]), input: block["arguments"].clone() })
                    }
                    _ => None,
                };
                let ends = (message["stopReason"] == "stop").then_some(Part::TurnEnd);
                let tokens = counted(&message["usage"], ["input", "output", "cacheRead", "cacheWrite"]);
                tokens.into_iter().chain(blocks(&message["content"]).filter_map(part)).chain(ends).collect()
            }
            _ => Vec::new(),
        }
    },
    time: transcript_tail::time,
};

/// Kimi Code: lines of events, a file for each agent of a session.
pub const KIMI: PastFormat = PastFormat {
    platform: Platform::KimiCode,
    folders: &["sessions"],
    kinds: &[
        "agent.",
        "context.",
        "file_history.",
        "llm.",
        "metadata",
        "permission.",
        "plugin.",
        "profile.",
        "prompt.",
        "runtime.",
        "token_counting.",
        "tools.",
        "turn.",
        "usage.",
    ],
    states_version: |record| (record["type"] == "metadata").then_some(&record["protocol_version"]),
    versions: &["\"1.5\""],
    is_line: |record| record["type"] == "metadata" && record["protocol_version"].is_string(),
    cwd: |record| record["environmentDisclosure"]["cwd"].as_str(),
    session_file: |path| {
        let agent = path.parent()?;
        let own = agent.parent()?.join("main").join(path.file_name()?);
        (own != path).then_some(own)
    },
    reader: |options| {
        let mut reader = MessageReader::new(Platform::KimiCode, &KIMI_MESSAGES, options);
        let name = |up: usize| options.path.ancestors().nth(up)?.file_name()?.to_str().map(String::from);
        reader.session.agent = name(1).filter(|agent| agent != "main");
        reader.session.id = name(3).unwrap_or(reader.session.id);
        Box::new(reader)
    },
    ..PastFormat::LINES
};

const KIMI_MESSAGES: MessageFormat = MessageFormat {
    identify: |record, session| {
        if let Some(cwd) = owned(&record["environmentDisclosure"]["cwd"]) {
            session.cwd = Some(cwd);
        }
    },
    parts: |record| {
        let event = &record["event"];
        match (record["type"].as_str(), event["type"].as_str()) {
            (Some("turn.prompt"), _) if record["origin"]["kind"] == "user" => {
                vec![Part::Prompt { id: text(&record["promptId"]), text: text_of(&record["input"]) }]
            }
            (Some("turn.ended"), _) => vec![Part::TurnEnd],
            (Some("context.append_loop_event"), Some("tool.call")) => {
                vec![Part::Call { id: text(&event["toolCallId"]), name: text(&event["name"]), input: event["args"].clone() }]
            }
            (Some("context.append_loop_event"), Some("tool.result")) => vec![Part::Result {
                id: text(&event["toolCallId"]),
                responses: vec![json!(text_of(&event["result"]["output"]))],
                is_error: event["result"]["isError"] == true,
            }],
            (Some("context.append_loop_event"), Some("content.part")) if event["part"]["type"] == "text" => {
                vec![Part::Text(text(&event["part"]["text"]))]
            }
            (Some("context.append_loop_event"), Some("step.end")) => {
                let names = ["inputOther", "output", "inputCacheRead", "inputCacheCreation"];
                counted(&event["usage"], names).into_iter().collect()
            }
            _ => Vec::new(),
        }
    },
    time: |record| millis(&record["time"]),
};

/// Grok Build: lines of the Agent Client Protocol.
pub const GROK: PastFormat = PastFormat {
    platform: Platform::GrokBuild,
    folders: &["sessions"],
    is_line: |record| {
        record["method"].as_str().is_some_and(|method| method.ends_with("session/update"))
            && record["params"]["sessionId"].is_string()
    },
    // The folder of a project has its encoded path as its name.
    folder: |path| decoded(path.ancestors().nth(2)?.file_name()?.to_str()?),
    reader: |options| Box::new(MessageReader::new(Platform::GrokBuild, &GROK_MESSAGES, options)),
    ..PastFormat::LINES
};

const GROK_MESSAGES: MessageFormat = MessageFormat {
    identify: |record, session| {
        if let Some(id) = owned(&record["params"]["sessionId"]) {
            session.id = id;
        }
    },
    parts: |record| {
        let (update, meta) = (&record["params"]["update"], &record["params"]["_meta"]);
        match update["sessionUpdate"].as_str() {
            Some("user_message_chunk") => {
                vec![Part::Prompt { id: text(&meta["eventId"]), text: text_of(&update["content"]["text"]) }]
            }
            Some("agent_message_chunk") => vec![Part::Chunk(text(&update["content"]["text"]))],
            Some("tool_call") => {
                vec![Part::Call {
                    id: text(&update["toolCallId"]),
                    name: text(&update["title"]),
                    input: update["rawInput"].clone(),
                }]
            }
            Some("tool_call_update") if matches!(update["status"].as_str(), Some("completed" | "failed")) => {
                let own = &update["rawOutput"];
                let responses = vec![if own.is_null() { json!(text_of(&update["content"][0]["content"])) } else { own.clone() }];
                vec![Part::Result { id: text(&update["toolCallId"]), responses, is_error: update["status"] == "failed" }]
            }
            Some("turn_completed") => {
                let names = ["inputTokens", "outputTokens", "cachedReadTokens", "cacheCreationTokens"];
                counted_with_cache(&update["usage"], names).into_iter().chain([Part::TurnEnd]).collect()
            }
            _ => Vec::new(),
        }
    },
    time: |record| millis(&record["params"]["_meta"]["agentTimestampMs"]),
};

/// Decodes `%2F` and the like.
fn decoded(name: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = name.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let code = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok();
        match more.get(..2).filter(|_| *first == b'%').and_then(code) {
            Some(byte) => {
                bytes.push(byte);
                rest = &more[2..];
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8(bytes).ok().filter(|path| Path::new(path).is_absolute())
}

/// Maximum bytes of a document.
const DOCUMENT_BYTES: u64 = 256 << 20;

/// Cline: a document with the messages, and one about the session next to it.
pub const CLINE: PastFormat = PastFormat {
    platform: Platform::Cline,
    folders: &["data/sessions"],
    source: PastSource::Document(PastDocument {
        is_file: |path| path.to_str().is_some_and(|path| path.ends_with(".messages.json")),
        records: cline_records,
    }),
    folder: |path| owned(&cline_session(path)?["cwd"]),
    reader: |options| Box::new(MessageReader::new(Platform::Cline, &CLINE_MESSAGES, options)),
    ..PastFormat::LINES
};

/// The messages of a session that is running.
pub fn cline_messages(session: &str, folder: &Path) -> Option<PathBuf> {
    let file = folder.join("data/sessions").join(session).join(format!("{session}.messages.json"));
    Some(file).filter(|file| file.is_file())
}

/// The document about a session.
fn cline_session(messages: &Path) -> Option<Value> {
    let name = messages.file_name()?.to_str()?.strip_suffix(".messages.json")?;
    document(&messages.with_file_name(format!("{name}.json")), DOCUMENT_BYTES).ok()
}

fn cline_records(path: &Path) -> Result<Vec<Value>> {
    let mut document = document(path, DOCUMENT_BYTES)?;
    let about = cline_session(path).unwrap_or_default();
    let (id, cwd, branch) = (&document["sessionId"], &about["cwd"], &about["metadata"]["git"]["branch"]);
    let first = json!({"sessionId": id, "cwd": cwd, "branch": branch});
    let messages = document["messages"].take();
    Ok(std::iter::once(first).chain(blocks(&messages).cloned()).collect())
}

const CLINE_MESSAGES: MessageFormat = MessageFormat {
    identify: |record, session| {
        if let Some(id) = owned(&record["sessionId"]) {
            (session.id, session.cwd, session.branch) = (id, owned(&record["cwd"]), owned(&record["branch"]));
        }
    },
    parts: |record| {
        let id = text(&record["id"]);
        let own = |part: Part| match part {
            // Context of hooks and notes of the client are messages of the user, too.
            Part::Prompt { id, text } => Some(Part::Prompt { id, text: user_input(&text)?.to_string() }),
            part => Some(part),
        };
        let parts = blocks(&record["content"]).filter_map(|block| anthropic(&record["role"], block, &id));
        let names = ["inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens"];
        counted_with_cache(&record["metrics"], names).into_iter().chain(parts.filter_map(own)).collect()
    },
    time: |record| millis(&record["ts"]),
};

/// The person's words in a message: `<user_input mode="act">…</user_input>`.
fn user_input(text: &str) -> Option<&str> {
    let inside = text.trim().strip_prefix("<user_input")?.split_once('>')?.1;
    Some(inside.rsplit_once("</user_input>").map_or(inside, |(inside, _)| inside))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_file_of_droid_has_what_its_hooks_leave_out() {
        let message = |id: &str, role: &str, content: Value| json!({"type": "message", "id": id, "timestamp": "2026-11-25T14:12:54Z", "message": {"role": role, "content": content}});
        let lines = [
            json!({"type": "session_start", "id": "the-session", "cwd": "/p", "hostId": "h", "version": 2}),
            message("context-1", "user", json!([{"type": "text", "text": "Tools are listed below"}])),
            message("m1", "user", json!([{"type": "text", "text": "Make it friendlier"}])),
            message(
                "m2",
                "assistant",
                json!([{"type": "tool_use", "id": "c1", "name": "Execute", "input": {"command": "ls /nonexistent"}}]),
            ),
            message(
                "m3",
                "user",
                json!([{"type": "tool_result", "tool_use_id": "c1", "is_error": true, "content": "Error: no\n\n[Process exited with code 2]"}]),
            ),
            message("m4", "assistant", json!([{"type": "text", "text": "It is friendlier now."}])),
            json!({"type": "agent_turn_outcome", "turnId": "m1", "reason": "completed"}),
        ];
        let options = PastOptions { path: "/home/dev/.factory/sessions/-p/s.jsonl".into(), ..PastOptions::default() };
        let (mut reader, mut found) = (MessageReader::new(Platform::Droid, &DROID_MESSAGES, &options), Found::default());
        lines.into_iter().enumerate().for_each(|(at, line)| reader.line(line, at as u64, &mut found));
        reader.end(7, true, &mut found);
        let kinds: Vec<String> = found
            .events
            .iter()
            .map(|event| match &event.what {
                EventKind::UserPrompt { text } => format!("prompt {text}"),
                EventKind::ToolUsed(tool) => format!("{} {:?} {:?}", tool.name, tool.succeeded, tool.metadata.exit_code),
                EventKind::TurnEnded { closing, .. } => format!("closing {}", closing.as_deref().unwrap_or_default()),
                EventKind::SessionStarted(_) => "start".into(),
                EventKind::SessionEnded { .. } => "end".into(),
                other => format!("{other:?}"),
            })
            .collect();
        assert_eq!(
            kinds,
            ["start", "prompt Make it friendlier", "Execute Some(false) Some(2)", "closing It is friendlier now.", "end"]
        );
        assert!(found.events.iter().all(|event| event.session == "the-session"));
        assert_eq!((found.counts.prompts, found.counts.tool_uses, found.counts.failures), (1, 1, 1));
    }

    #[test]
    fn a_folder_name_is_a_path_again() {
        assert_eq!(decoded("%2Fhome%2Fdev%2Fproject").as_deref(), Some("/home/dev/project"));
        assert_eq!((decoded("relative"), decoded("%zz")), (None, None));
    }
}
