//! Decodes Gemini CLI's session files into events.
//!
//! `tmp/<project>/chats/session-<time>-<id>.jsonl` holds a session. A message is written again with each change, under
//! the same id, and `$rewindTo` removes messages. So a file is read to its end before its messages become events.
//! `$set.messages` holds the messages that the model still sees: after a compaction only some of them, after a resume
//! all of them but without tool calls. So it only adds messages, and never replaces any. Older files are one JSON
//! document with the same messages. The working directory is in a file next to them, or in the session's first message.

use super::{like, result, without_hook_context};
use crate::files;
use crate::model::{EventKind, Millis, Platform, Tokens, TurnUsage};
use crate::platforms::past::{Found, PastDocument, PastFormat, PastOptions, PastReader, PastSession, PastSource, text_of};
use crate::platforms::payload::document;
use crate::platforms::transcript_tail::time;
use crate::platforms::translated::{self, HookCall};
use anyhow::Result;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// The format of the session files. Raise the version when the reader learns to find more than before.
pub const PAST: PastFormat = PastFormat {
    platform: Platform::Gemini,
    version: 2,
    folders: &["tmp"],
    is_line: |record| record["sessionId"].is_string() && record["projectHash"].is_string(),
    cwd: |record| workspace(record["messages"].get(0).or_else(|| record["$set"]["messages"].get(0))?),
    folder: project_root,
    is_of_folder,
    newest: |store, _| vec![store.to_path_buf()],
    reader: |options| Box::new(Reader::new(options)),
    ..PastFormat::LINES
};

/// The older format: the same messages in one document.
pub const DOCUMENT: PastFormat =
    PastFormat { source: PastSource::Document(PastDocument { is_file: is_document, records }), ..PAST };

/// Maximum bytes of a document.
const DOCUMENT_BYTES: u64 = 256 << 20;
/// Maximum bytes of a path in a file, and of `projects.json`.
const PATH_BYTES: u64 = 4096;
const REGISTRY_BYTES: u64 = 4 << 20;
/// Length of a path's SHA-256 in hex.
const HASH: usize = 64;
/// Prefix of a session's first message.
const CONTEXT: &str = "<session_context>";
/// Prefix of the summary after a compaction.
const SNAPSHOT: &str = "<state_snapshot>";
const WORKSPACES: &str = "**Workspace Directories:**";

/// Returns true if a file is an older session: `chats/session-….json`.
fn is_document(path: &Path) -> bool {
    let text = |part: Option<&std::ffi::OsStr>| part.and_then(|part| part.to_str()).unwrap_or_default().to_string();
    let (name, folder) = (text(path.file_name()), text(path.parent().and_then(Path::file_name)));
    folder == "chats" && name.starts_with("session-") && name.ends_with(".json")
}

fn records(path: &Path) -> Result<Vec<Value>> {
    Ok(vec![document(path, DOCUMENT_BYTES)?])
}

/// The folder below `tmp` that holds a project's chats.
fn project_folder(path: &Path) -> Option<&Path> {
    path.ancestors().find(|folder| folder.file_name().is_some_and(|name| name == "chats"))?.parent()
}

/// Returns the working directory: from `.project_root`, next to the folder of the chats, or from `projects.json`, which
/// maps paths to the names of these folders.
fn project_root(path: &Path) -> Option<String> {
    let project = project_folder(path)?;
    let written = files::whole_text(&project.join(".project_root"), PATH_BYTES).unwrap_or_default();
    if !written.trim().is_empty() {
        return Some(written.trim().to_string());
    }
    let name = project.file_name()?.to_str()?;
    let registry = files::whole_text(&project.parent()?.parent()?.join("projects.json"), REGISTRY_BYTES).ok()?;
    let registry: Value = serde_json::from_str(&registry).ok()?;
    let of_name = |(_, own): &(&String, &Value)| own.as_str() == Some(name);
    let named = registry["projects"].as_object()?.iter().find(of_name).map(|(path, _)| path.clone());
    let hashed = || registry["projects"].as_object()?.keys().find(|path| hash(path) == name).cloned();
    named.or_else(hashed)
}

/// Returns true if a session's folder has the hash of a path as its name, as older versions named it.
fn is_of_folder(path: &Path, folder: &str) -> bool {
    let name = project_folder(path).and_then(|project| project.file_name()?.to_str());
    name.is_some_and(|name| name.len() == HASH && name == hash(folder))
}

fn hash(path: &str) -> String {
    Sha256::digest(path).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the working directory from the first message of a session.
fn workspace(message: &Value) -> Option<&str> {
    let text = message["content"].get(0).map_or(&message["content"], |part| &part["text"]).as_str()?;
    let behind = text.split_once(WORKSPACES)?.1;
    let line = behind.lines().map(str::trim).find(|line| line.starts_with("- "))?;
    Some(line[2..].trim())
}

struct Reader {
    session: PastSession,
    /// The messages in order.
    messages: Vec<Value>,
    /// Message indexes by id, and the role and text of each message.
    by_id: HashMap<String, usize>,
    said: HashSet<(String, String)>,
    is_subagent: bool,
    /// Start time of the part that is read: older messages were read before.
    since: Option<Millis>,
    is_continued: bool,
    /// Offset and time of the last prompt.
    last_prompt: Option<(u64, Millis)>,
}

impl Reader {
    fn new(options: &PastOptions) -> Reader {
        let mut session = PastSession::new(Platform::Gemini, options.path.display().to_string(), options);
        session.cwd = session.cwd.take().or_else(|| project_root(&options.path));
        let mut reader = Reader {
            session,
            messages: Vec::new(),
            by_id: HashMap::new(),
            said: HashSet::new(),
            is_subagent: false,
            since: None,
            is_continued: options.first.is_some(),
            last_prompt: None,
        };
        if let Some(first) = &options.first {
            reader.identify(first);
        }
        reader
    }

    fn identify(&mut self, record: &Value) {
        if let Some(id) = record["sessionId"].as_str() {
            self.session.id = id.to_string();
        }
        self.is_subagent = record["kind"] == "subagent";
        self.session.cwd = self.session.cwd.take().or_else(|| record["directories"].get(0)?.as_str().map(String::from));
    }

    /// Adds a message, or replaces the one with its id.
    fn put(&mut self, message: Value) {
        let id = message["id"].as_str().unwrap_or_default().to_string();
        self.said.insert(said(&message));
        match self.by_id.get(&id) {
            Some(at) if !id.is_empty() => self.messages[*at] = message,
            _ => {
                self.by_id.insert(id, self.messages.len());
                self.messages.push(message);
            }
        }
    }

    /// Adds a message of a list, unless the messages `before` the list have it under this id or another. Within the
    /// list, a person may say the same twice.
    fn put_new(&mut self, message: &Value, before: &HashSet<(String, String)>) {
        let said = said(message);
        let is_known = before.contains(&said) || message["id"].as_str().is_some_and(|id| self.by_id.contains_key(id));
        let is_answer = message["content"].get(0).is_some_and(|part| part["functionResponse"].is_object());
        if !is_answer && !said.1.starts_with(SNAPSHOT) && !is_known {
            self.put(message.clone());
        }
    }

    /// Removes a message and all later ones; removes all messages if the id is unknown.
    fn rewind_to(&mut self, id: &Value) {
        let from = id.as_str().and_then(|id| self.by_id.get(id)).copied().unwrap_or(0);
        self.messages.truncate(from);
        self.by_id.retain(|_, at| *at < from);
        self.said = self.messages.iter().map(said).collect();
    }

    /// Converts the messages to events; returns true if the last turn has its answer.
    fn add_events(&mut self, found: &mut Found) -> bool {
        let messages = std::mem::take(&mut self.messages);
        (self.by_id, self.said) = Default::default();
        let mut turn = Turn::default();
        for message in &messages {
            let at = time(message).unwrap_or(self.session.at);
            if self.since.is_some_and(|since| at < since) {
                continue;
            }
            self.session.at = at;
            match message["type"].as_str() {
                Some("user") => self.asks(message, &mut turn, found),
                Some("gemini") => self.answers(message, &mut turn, found),
                _ => {}
            }
        }
        let is_answered = turn.closing.is_some() || turn.is_empty();
        self.end_turn(&mut turn);
        is_answered
    }

    fn asks(&mut self, message: &Value, turn: &mut Turn, found: &mut Found) {
        let text = text_of(&message["content"]);
        if self.session.cwd.is_none() {
            self.session.cwd = workspace(message).map(String::from);
        }
        let text = without_hook_context(&text);
        let is_machine = text.is_empty() || text.starts_with(CONTEXT) || text.starts_with(SNAPSHOT);
        if is_machine || self.is_subagent || !self.session.is_persons(text) {
            return;
        }
        self.end_turn(turn);
        self.session.start(None);
        self.session.prompt = message["id"].as_str().map(String::from);
        found.counts.prompts += 1;
        self.session.add(EventKind::UserPrompt { text: text.to_string() });
        turn.has_begun = true;
    }

    fn answers(&mut self, message: &Value, turn: &mut Turn, found: &mut Found) {
        turn.has_begun = true;
        let tokens = &message["tokens"];
        let of = |key: &str| tokens[key].as_i64().unwrap_or(0).max(0);
        // Input includes cached tokens; thoughts are output tokens that are counted separately.
        let used = Tokens {
            input: (of("input") - of("cached")).max(0),
            output: of("output") + of("thoughts"),
            cache_read: of("cached"),
            cache_write: 0,
        };
        turn.tokens = turn.tokens.plus(used);
        turn.model = message["model"].as_str().map(String::from).or(turn.model.take());
        turn.last_message = message["id"].as_str().map(String::from);
        let calls = message["toolCalls"].as_array();
        if let Some(text) = Some(text_of(&message["content"])).filter(|text| !text.trim().is_empty()) {
            turn.closing = Some((text, self.session.at)).filter(|_| calls.is_none_or(Vec::is_empty));
        }
        for call in calls.into_iter().flatten() {
            turn.closing = None;
            self.call(call, found);
        }
    }

    fn call(&mut self, call: &Value, found: &mut Found) {
        let Some(name) = call["name"].as_str() else { return };
        let at = time(call).unwrap_or(self.session.at);
        let ended = match call["status"].as_str() {
            Some("cancelled") => return found.counts.skip("declined by the user"),
            Some("success" | "error") => outcome(name, call),
            _ => return found.counts.skip("call without a result"),
        };
        match self.is_subagent {
            true => found.counts.subagent_tool_uses += 1,
            false => found.counts.tool_uses += 1,
        }
        if self.is_subagent {
            return;
        }
        found.counts.failures += u64::from(ended.is_err());
        let from = json!({"session_id": self.session.id, "cwd": self.session.cwd, "prompt_id": self.session.prompt});
        let hook =
            HookCall { id: &call["id"], name, like: like(name, &call["args"]), result: Some(ended), duration_ms: &Value::Null };
        let translated = translated::call(&from, hook);
        let events = translated::decode(Platform::Gemini, translated, &self.session.decode_context()).unwrap_or_default();
        if events.is_empty() {
            found.counts.skip("tool that is not recorded");
        }
        for event in events {
            self.session.add_decoded(event).at = at;
        }
    }

    fn end_turn(&mut self, turn: &mut Turn) {
        let turn = std::mem::take(turn);
        let usage =
            TurnUsage { tokens: Some(turn.tokens), model: turn.model, last_message: turn.last_message, ..TurnUsage::default() };
        let usage = Some(usage).filter(|_| turn.tokens != Tokens::default());
        if let Some((closing, at)) = turn.closing.filter(|_| !self.is_subagent) {
            self.session.end_turn(closing, at, usage);
        }
    }
}

/// Returns the role of a message and its text, or the ids of its calls if it has no text.
fn said(message: &Value) -> (String, String) {
    let mut text = text_of(&message["content"]);
    if text.is_empty() {
        let calls = message["toolCalls"].as_array().into_iter().flatten();
        text = calls.filter_map(|call| call["id"].as_str()).collect();
    }
    (message["type"].as_str().unwrap_or_default().to_string(), text)
}

/// The turn that is being read.
#[derive(Default)]
struct Turn {
    closing: Option<(String, Millis)>,
    tokens: Tokens,
    model: Option<String>,
    last_message: Option<String>,
    has_begun: bool,
}

impl Turn {
    fn is_empty(&self) -> bool {
        !self.has_begun
    }
}

/// Returns the result of a call in a session file: its response as the model saw it.
fn outcome(name: &str, call: &Value) -> std::result::Result<Value, String> {
    let response = &call["result"].get(0).unwrap_or(&Value::Null)["functionResponse"]["response"];
    let said = response["output"].as_str().or(response["error"].as_str());
    if call["status"] == "error" || response["error"].is_string() {
        return Err(said.map_or_else(|| text_of(&call["resultDisplay"]), String::from));
    }
    result(name, &json!({"llmContent": said, "returnDisplay": call["resultDisplay"]}))
}

impl PastReader for Reader {
    fn line(&mut self, record: Value, at: u64, found: &mut Found) {
        let said_at = time(&record);
        if self.is_continued && self.since.is_none() {
            self.since = said_at;
        }
        if record["sessionId"].is_string() && record["projectHash"].is_string() {
            self.identify(&record);
        }
        let all = record.pointer("/$set/messages").or_else(|| record.get("messages")).and_then(Value::as_array);
        if let Some(all) = all {
            found.counts.known_lines += 1;
            let before = self.said.clone();
            all.iter().for_each(|message| self.put_new(message, &before));
        } else if let Some(id) = record.get("$rewindTo") {
            let id = id.clone();
            self.rewind_to(&id);
        } else if record["type"].is_string() && record["id"].is_string() {
            found.counts.known_lines += 1;
            let asks = record["type"] == "user" && record["content"].get(0).is_none_or(|part| part["functionResponse"].is_null());
            if let Some(said_at) = said_at.filter(|_| asks) {
                self.last_prompt = Some((at, said_at));
            }
            self.put(record);
        }
    }

    fn end(&mut self, at: u64, is_over: bool, found: &mut Found) {
        let is_answered = self.add_events(found);
        if is_over || is_answered {
            found.resume_at = at;
        } else if let Some((begun, said_at)) = self.last_prompt {
            // The unfinished turn is read again.
            found.resume_at = begun;
            self.session.turn().retain(|event| event.at < said_at);
        }
        if is_over && !self.is_subagent {
            self.session.end(None);
        }
        self.session.flush(found);
    }
}
