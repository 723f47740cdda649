//! Decodes OpenCode's sessions into events.
//!
//! There are three generations: files in `storage/`; the tables `session`, `message` and `part`; and the tables
//! `session_v2` and `session_message`, next to the unchanged older tables. All become the same records: a session, then
//! its messages with their parts.

use crate::model::{EventKind, Millis, Platform, Tokens, TurnUsage};
use crate::platforms::past::{
    Columns, Found, PastDatabase, PastDocument, PastFormat, PastOptions, PastPart, PastReader, PastSession, PastSource, Rows,
    text_of, timestamp,
};
use crate::platforms::payload::{document, stored};
use crate::platforms::transcript_tail::time;
use crate::platforms::translated::{self, HookCall, changes_like, command_result, field};
use anyhow::Result;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Format of sessions in databases. Raise the version when the reader learns to find more than before.
pub const DATABASE: PastFormat = PastFormat {
    platform: Platform::OpenCode,
    version: 2,
    folders: &["."],
    // Copies of whole repositories are next to the databases.
    depth: 1,
    source: PastSource::Database(PastDatabase {
        is_file: is_database,
        tables: &["session", "message", "part"],
        foreign_table: "kilo_board",
        sessions,
        records,
    }),
    reader: |options| Box::new(Reader::new(Platform::OpenCode, options)),
    ..PastFormat::LINES
};

/// Sessions of Kilo CLI, in the same tables.
pub const KILO: PastFormat = PastFormat {
    platform: Platform::Kilo,
    version: 1,
    source: PastSource::Database(PastDatabase {
        is_file: |path| name(Some(path)) == "kilo.db",
        tables: &["session", "message", "part", "kilo_board"],
        foreign_table: "",
        sessions,
        records,
    }),
    reader: |options| Box::new(Reader::new(Platform::Kilo, options)),
    ..DATABASE
};

/// Format of sessions in files, as the first versions wrote them.
pub const FILES: PastFormat = PastFormat {
    folders: &["storage/session"],
    depth: 2,
    source: PastSource::Document(PastDocument { is_file: is_session_file, records: records_of_files }),
    ..DATABASE
};

/// Maximum bytes of a JSON file.
const FILE_BYTES: u64 = 64 << 20;

fn name(path: Option<&Path>) -> &str {
    path.and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or_default()
}

/// Returns true if a file is a database: `opencode.db` or `opencode-<channel>.db`.
fn is_database(path: &Path) -> bool {
    let name = name(Some(path));
    name == "opencode.db" || name.starts_with("opencode-") && name.ends_with(".db")
}

/// Returns true if a file is a session: `storage/session/<project>/<session>.json`.
fn is_session_file(path: &Path) -> bool {
    let above = |n| name(path.ancestors().nth(n));
    above(2) == "session" && above(3) == "storage" && above(0).ends_with(".json")
}

fn text<'a>(row: &'a Columns, column: &str) -> &'a str {
    row.get(column).and_then(Value::as_str).unwrap_or_default()
}

fn number(row: &Columns, column: &str) -> i64 {
    row.get(column).and_then(Value::as_i64).unwrap_or_default()
}

/// Returns the sessions of a database. A session in the newer tables hides the same session in the older ones.
fn sessions(rows: &dyn Rows, _: &Path) -> Result<Vec<PastPart>> {
    let mut found: Vec<PastPart> = Vec::new();
    for table in ["session_v2", "session"] {
        for row in rows.all(table)? {
            let updated = number(&row, "time_updated");
            let part = PastPart {
                id: text(&row, "id").to_string(),
                size: 0,
                modified_at: updated,
                cwd: Some(text(&row, "directory").to_string()).filter(|folder| !folder.is_empty()),
            };
            if text(&row, "parent_id").is_empty() && !part.id.is_empty() && !found.iter().any(|known| known.id == part.id) {
                found.push(part);
            }
        }
    }
    Ok(found)
}

/// Parses the JSON in a row's `data` column.
fn data(row: &Columns) -> Value {
    stored(text(row, "data").as_bytes()).unwrap_or_default()
}

fn session_record(id: &str, folder: &str) -> Value {
    json!({"type": "session", "id": id, "directory": folder})
}

fn message_record(id: &str, at: i64, info: Value, parts: Vec<Value>) -> Value {
    json!({"type": "message", "id": id, "timestamp": timestamp(at), "info": info, "parts": parts})
}

fn records(rows: &dyn Rows, part: &PastPart) -> Result<Vec<Value>> {
    let id = part.id.as_str();
    let mut records = vec![session_record(id, part.cwd.as_deref().unwrap_or_default())];
    let messages = rows.with("session_message", "session_id", id, &["seq", "time_created"])?;
    if !messages.is_empty() {
        records.extend(messages.iter().filter_map(message_v2));
        return Ok(records);
    }
    let mut parts = rows.with("part", "session_id", id, &["time_created", "id"])?.into_iter().fold(
        std::collections::HashMap::<String, Vec<Value>>::new(),
        |mut all, row| {
            all.entry(text(&row, "message_id").to_string()).or_default().push(data(&row));
            all
        },
    );
    for row in rows.with("message", "session_id", id, &["time_created", "id"])? {
        let id = text(&row, "id");
        records.push(message_record(id, number(&row, "time_created"), data(&row), parts.remove(id).unwrap_or_default()));
    }
    Ok(records)
}

/// Converts a message of the newer tables to the format of the older ones.
fn message_v2(row: &Columns) -> Option<Value> {
    let data = data(row);
    let (role, parts) = match text(row, "type") {
        "user" => ("user", vec![json!({"type": "text", "text": data["text"]})]),
        "assistant" => ("assistant", data["content"].as_array().cloned().unwrap_or_default()),
        "compaction" => ("user", vec![json!({"type": "compaction"})]),
        _ => return None,
    };
    let parts = parts.into_iter().map(|mut part| {
        if part["type"] == "tool" {
            let id = translated::field(&part, &["callID", "id"]).clone();
            let name = translated::field(&part, &["tool", "name"]).clone();
            (part["callID"], part["tool"]) = (id, name);
        }
        part
    });
    let (model, tokens) = (&data["model"], &data["tokens"]);
    let model = model["id"].as_str().or(model["modelID"].as_str()).or(model.as_str());
    let info = json!({"role": role, "modelID": model, "tokens": tokens, "time": data["time"]});
    Some(message_record(text(row, "id"), number(row, "time_created"), info, parts.collect()))
}

/// Returns the records of a session in files: the session, then its messages with their parts.
fn records_of_files(path: &Path) -> Result<Vec<Value>> {
    let session: Value = document(path, FILE_BYTES)?;
    let id = session["id"].as_str().unwrap_or_default();
    let storage = path.ancestors().nth(3).unwrap_or(path);
    if session["parentID"].is_string() || id.is_empty() || id.contains(['/', '\\', '.']) {
        return Ok(Vec::new());
    }
    let mut records = vec![session_record(id, session["directory"].as_str().unwrap_or_default())];
    for info in documents(&storage.join("message").join(id)) {
        let message = info["id"].as_str().unwrap_or_default().to_string();
        if !message.is_empty() && !message.contains(['/', '\\', '.']) {
            let parts = documents(&storage.join("part").join(&message));
            records.push(message_record(&message, info["time"]["created"].as_i64().unwrap_or_default(), info, parts));
        }
    }
    Ok(records)
}

/// Returns the JSON files of a folder, sorted by name: ids are in chronological order.
fn documents(folder: &Path) -> Vec<Value> {
    if folder.is_symlink() {
        return Vec::new();
    }
    let mut files: Vec<_> = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.sort();
    files.iter().filter_map(|path| document(path, FILE_BYTES).ok()).collect()
}

struct Reader {
    platform: Platform,
    session: PastSession,
    closing: Option<(String, Millis)>,
    tokens: Tokens,
    model: Option<String>,
    last_message: Option<String>,
    has_ended: bool,
}

impl Reader {
    fn new(platform: Platform, options: &PastOptions) -> Reader {
        let session = PastSession::new(platform, options.path.display().to_string(), options);
        Reader { platform, session, closing: None, tokens: Tokens::default(), model: None, last_message: None, has_ended: true }
    }

    fn asks(&mut self, record: &Value, found: &mut Found) {
        if record["parts"].as_array().is_some_and(|parts| parts.iter().any(|part| part["type"] == "compaction")) {
            return self.session.compact();
        }
        let parts = record["parts"].as_array().into_iter().flatten();
        let texts: Vec<&str> = parts.filter(|part| part["synthetic"] != true).filter_map(|part| part["text"].as_str()).collect();
        let text = texts.join("\n");
        if text.trim().is_empty() || !self.session.is_persons(&text) {
            return;
        }
        self.end_turn();
        self.session.flush(found);
        self.session.start(None);
        self.session.prompt = record["id"].as_str().map(String::from);
        found.counts.prompts += 1;
        self.session.add(EventKind::UserPrompt { text: quoted_once(&text).to_string() });
        self.has_ended = false;
    }

    fn answers(&mut self, record: &Value, found: &mut Found) {
        let info = &record["info"];
        let of = |value: &Value| value.as_i64().unwrap_or(0).max(0);
        let tokens = &info["tokens"];
        self.tokens = self.tokens.plus(Tokens {
            input: of(&tokens["input"]),
            output: of(&tokens["output"]) + of(&tokens["reasoning"]),
            cache_read: of(&tokens["cache"]["read"]),
            cache_write: of(&tokens["cache"]["write"]),
        });
        self.model = info["modelID"].as_str().map(String::from).or(self.model.take());
        self.last_message = record["id"].as_str().map(String::from);
        let done = info["time"]["completed"].as_i64();
        for part in record["parts"].as_array().into_iter().flatten() {
            match part["type"].as_str() {
                Some("text") => {
                    if let Some(said) = part["text"].as_str().filter(|said| !said.trim().is_empty()) {
                        self.closing = Some((said.to_string(), done.unwrap_or(self.session.at)));
                    }
                }
                Some("tool") => {
                    self.closing = None;
                    self.call(part, found);
                }
                _ => {}
            }
        }
    }

    fn call(&mut self, part: &Value, found: &mut Found) {
        let (name, state) = (part["tool"].as_str().unwrap_or("unknown"), &part["state"]);
        let failed = match state["status"].as_str() {
            Some("completed") => false,
            Some("error") => true,
            _ => return found.counts.skip("call without a result"),
        };
        found.counts.tool_uses += 1;
        let exit = translated::field(&state["metadata"], &["exit"]);
        let exit = if exit.is_null() { &state["output"]["exit"] } else { exit };
        let output = state["output"].as_str().or(state["output"]["output"].as_str());
        let output = output.map_or_else(|| crate::platforms::past::text_of(&state["content"]), String::from);
        let payload = json!({
            "hook_event_name": if failed { "PostToolUseFailure" } else { "PostToolUse" },
            "session_id": self.session.id, "cwd": self.session.cwd, "prompt_id": self.session.prompt,
            "tool_response": {"output": output, "exit": exit}, "error": state["error"],
        });
        let ended = result(name, &payload);
        found.counts.failures += u64::from(ended.is_err());
        let (started, ended_at) = (state["time"]["start"].as_i64(), state["time"]["end"].as_i64());
        let duration = json!(started.zip(ended_at).map(|(start, end)| end - start));
        let call = HookCall {
            id: &part["callID"],
            name,
            like: like(name, &state["input"]),
            result: Some(ended),
            duration_ms: &duration,
        };
        let events = translated::decode(self.platform, translated::call(&payload, call), &self.session.decode_context());
        let events = events.unwrap_or_default();
        if events.is_empty() {
            found.counts.skip("tool that is not recorded");
        }
        for event in events {
            let at = ended_at.unwrap_or(self.session.at);
            self.session.add_decoded(event).at = at;
        }
    }

    fn end_turn(&mut self) {
        let tokens = std::mem::take(&mut self.tokens);
        let usage = TurnUsage {
            tokens: Some(tokens),
            model: self.model.clone(),
            last_message: self.last_message.take(),
            ..TurnUsage::default()
        };
        if let Some((closing, at)) = self.closing.take() {
            self.session.end_turn(closing, at, Some(usage).filter(|_| tokens != Tokens::default()));
        }
        self.has_ended = true;
    }
}

impl PastReader for Reader {
    fn line(&mut self, record: Value, _at: u64, found: &mut Found) {
        match record["type"].as_str() {
            Some("session") => {
                self.session.id = record["id"].as_str().unwrap_or_default().to_string();
                let folder = record["directory"].as_str().filter(|folder| !folder.is_empty()).map(String::from);
                self.session.cwd = folder.or(self.session.cwd.take());
            }
            Some("message") => {
                found.counts.known_lines += 1;
                self.session.at = time(&record).unwrap_or(self.session.at);
                match record["info"]["role"].as_str() {
                    Some("user") => self.asks(&record, found),
                    Some("assistant") => self.answers(&record, found),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, at: u64, is_over: bool, found: &mut Found) {
        self.end_turn();
        if is_over {
            self.session.end(None);
        }
        found.resume_at = at;
        self.session.flush(found);
    }
}

/// Converts a call to one or more Claude Code calls: names and inputs.
pub fn like(name: &str, input: &Value) -> Vec<(String, Value)> {
    let of = |names: &[&str]| field(input, names).clone();
    let path = || of(&["filePath", "file_path", "path"]);
    let one = |like: &str, input: Value| vec![(like.to_string(), input)];
    match name {
        "bash" | "shell" => one("Bash", json!({"command": of(&["command"]), "description": of(&["description"])})),
        "read" => one("Read", json!({"file_path": path()})),
        "write" => one("Write", json!({"file_path": path(), "content": of(&["content"])})),
        "patch" | "apply_patch" => changes_like(of(&["patchText", "patch", "input"]).as_str().unwrap_or_default()),
        // The second generation writes, edits and patches with one tool.
        "edit" => match (field(input, &["patchText", "patch"]).as_str(), field(input, &["oldString", "old_string"])) {
            (Some(patch), _) => changes_like(patch),
            (None, Value::Null) if !input["content"].is_null() => {
                one("Write", json!({"file_path": path(), "content": of(&["content"])}))
            }
            (None, old) => {
                one("Edit", json!({"file_path": path(), "old_string": old, "new_string": of(&["newString", "new_string"])}))
            }
        },
        "multiedit" => {
            let edits = input["edits"].as_array().into_iter().flatten();
            let edit = |edit: &Value| {
                let (old, new) = (field(edit, &["oldString"]), field(edit, &["newString"]));
                ("Edit".to_string(), json!({"file_path": path(), "old_string": old, "new_string": new}))
            };
            edits.map(edit).collect()
        }
        "grep" => one("Grep", json!({"pattern": of(&["pattern"]), "path": path()})),
        "glob" => one("Glob", json!({"pattern": of(&["pattern"]), "path": path()})),
        "list" => one("LS", json!({"path": path()})),
        "webfetch" => one("WebFetch", json!({"url": of(&["url"])})),
        "websearch" => one("WebSearch", json!({"query": of(&["query"])})),
        "task" | "subagent" => {
            let kind = of(&["subagent_type", "agent"]);
            one("Agent", json!({"description": of(&["description"]), "prompt": of(&["prompt"]), "subagent_type": kind}))
        }
        "todowrite" => one("TodoWrite", input.clone()),
        name => one(name, input.clone()),
    }
}

/// Removes the quotes that `opencode run` puts around a prompt.
pub fn quoted_once(prompt: &str) -> &str {
    let inside = prompt.trim().strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inside.filter(|inside| !inside.contains('"')).unwrap_or(prompt)
}

/// Returns the result of a call. Its status is `completed` even for a failed command, so exit codes are checked.
pub fn result(name: &str, payload: &Value) -> Result<Value, String> {
    let response = &payload["tool_response"];
    if payload["hook_event_name"] == "PostToolUseFailure" || name == "invalid" {
        let error = field(payload, &["error"]);
        return Err(error["message"].as_str().map_or_else(|| text_of(error), String::from));
    }
    let text = response["output"].as_str().map_or_else(|| text_of(response), String::from);
    match name {
        "bash" | "shell" => command_result(&text, response["exit"].as_i64()),
        _ => Ok(json!(text)),
    }
}
