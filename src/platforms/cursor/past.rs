//! Decodes Cursor's sessions into events.
//!
//! The IDE keeps them in `state.vscdb`, under the key prefixes `composerData:` and `bubbleId:`. The database also holds
//! credentials of the user's account, so no other key is read. `cursor-agent` keeps one database per chat,
//! `chats/<folder>/<id>/store.db`, and a transcript without times and results,
//! `projects/<folder>/agent-transcripts/<id>.jsonl`, which is read only if there is no database. All become messages
//! with a role, a text and calls.
//!
//! Written from descriptions of the formats: no real Cursor file was available.

use super::store_db::{self, session_record};
use super::tools::{like, result};
use super::transcripts;
use crate::model::{EventKind, Millis, Platform};
use crate::platforms::past::{Found, PastFormat, PastOptions, PastReader, PastSession, text_of};
use crate::platforms::past_source::{PastDatabase, PastPart, PastSource, Rows, path_of_url, timestamp};
use crate::platforms::transcript::time;
use crate::platforms::translated::{self, HookCall, field, unpacked};
use anyhow::Result;
use serde_json::{Value, json};
use std::path::Path;

/// Format of the IDE's chats. Raise the version when the reader learns to find more than before.
pub const IDE: PastFormat = PastFormat {
    platform: Platform::Cursor,
    version: 1,
    folders: &["globalStorage", "workspaceStorage"],
    source: PastSource::Database(PastDatabase { is_file: |path| is_named(path, "state.vscdb"), sessions, records }),
    reader: |options| Box::new(Reader::new(options)),
    ..PastFormat::LINES
};

/// Format of the chats of `cursor-agent`.
pub const CLI: PastFormat = PastFormat {
    folders: &["chats"],
    source: PastSource::Database(PastDatabase {
        is_file: store_db::is_file,
        sessions: store_db::sessions,
        records: store_db::records,
    }),
    ..IDE
};

/// Format of the transcripts of `cursor-agent`.
pub const TRANSCRIPTS: PastFormat = PastFormat {
    folders: &["projects"],
    source: PastSource::Lines,
    is_line: transcripts::is_line,
    folder: transcripts::folder,
    ..IDE
};

/// The table, its key column, and the key prefixes that are read.
const TABLE: &str = "cursorDiskKV";
const KEY: &str = "key";
const CHATS: &str = "composerData:";
const MESSAGES: &str = "bubbleId:";

fn is_named(path: &Path, name: &str) -> bool {
    path.file_name().is_some_and(|own| own == name)
}

fn json_in(row: &crate::platforms::past_source::Columns) -> Value {
    row.get("value").and_then(Value::as_str).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// Returns a folder's path, given as a URL or as a path.
fn path_of(folder: &Value) -> Option<String> {
    let folder = folder.as_str().or(folder["fsPath"].as_str()).or(folder["path"].as_str()).or(folder["external"].as_str())?;
    path_of_url(folder).or_else(|| Some(folder.to_string())).filter(|folder| !folder.is_empty())
}

/// The folder in which a message was written.
fn folder_of(message: &Value) -> Option<String> {
    path_of(&message["workspaceProjectDir"]).or_else(|| path_of(message["workspaceUris"].get(0)?))
}

fn sessions(rows: &dyn Rows, _: &Path) -> Result<Vec<PastPart>> {
    let mut found = Vec::new();
    for row in rows.keyed(TABLE, KEY, CHATS)? {
        let chat = json_in(&row);
        let id = row.get(KEY).and_then(Value::as_str).and_then(|key| key.strip_prefix(CHATS)).unwrap_or_default().to_string();
        let headers = chat["fullConversationHeadersOnly"].as_array();
        let length = headers.map_or(0, Vec::len) + chat["conversation"].as_array().map_or(0, Vec::len);
        if id.is_empty() || length == 0 || chat["subagentInfo"].is_object() || chat["isSubagent"] == true {
            continue;
        }
        let first = headers.and_then(|headers| headers.first()?["bubbleId"].as_str());
        let message = match first {
            Some(message) => rows.with(TABLE, KEY, &format!("{MESSAGES}{id}:{message}"), &[])?.first().map(json_in),
            None => chat["conversation"].get(0).cloned(),
        };
        let at = chat["lastUpdatedAt"].as_i64().or(chat["createdAt"].as_i64()).unwrap_or_default();
        found.push(PastPart { id, size: length as u64, modified_at: at, cwd: message.as_ref().and_then(folder_of) });
    }
    Ok(found)
}

fn records(rows: &dyn Rows, part: &PastPart) -> Result<Vec<Value>> {
    let chat = rows.with(TABLE, KEY, &format!("{CHATS}{}", part.id), &[])?.first().map(json_in).unwrap_or_default();
    let begin = format!("{MESSAGES}{}:", part.id);
    let by_id: std::collections::HashMap<String, Value> = rows
        .keyed(TABLE, KEY, &begin)?
        .iter()
        .filter_map(|row| Some((row.get(KEY)?.as_str()?.strip_prefix(&begin)?.to_string(), json_in(row))))
        .collect();
    let headers = chat["fullConversationHeadersOnly"].as_array().into_iter().flatten();
    let ordered: Vec<&Value> = headers.filter_map(|header| by_id.get(header["bubbleId"].as_str()?)).collect();
    let inside = chat["conversation"].as_array().into_iter().flatten();
    let mut records = vec![session_record(&part.id, part.cwd.as_deref())];
    let begun = chat["createdAt"].as_i64().unwrap_or(part.modified_at);
    let model = &chat["modelConfig"]["modelName"];
    let mut at = begun;
    for message in ordered.into_iter().chain(inside) {
        // Older messages have no timestamp: each gets the previous one's time plus 1 ms.
        at = message["createdAt"].as_str().and_then(|t| t.parse::<jiff::Timestamp>().ok()).map_or(at + 1, |t| t.as_millisecond());
        records.extend(message_of(message, at, model));
    }
    Ok(records)
}

/// Converts a message of the IDE to a record.
fn message_of(message: &Value, at: Millis, model: &Value) -> Option<Value> {
    let role = match message["type"].as_i64()? {
        1 => "user",
        2 => "assistant",
        _ => return None,
    };
    let text = field(message, &["text", "rawText"]);
    let tool = &message["toolFormerData"];
    let call = tool["name"].as_str().map(|name| {
        let input = unpacked(field(tool, &["rawArgs", "params"]));
        let id = field(tool, &["toolCallId", "modelCallId"]).clone();
        let id = if id.is_null() { message["bubbleId"].clone() } else { id };
        json!({"id": id, "name": name, "input": input, "status": tool["status"], "result": unpacked(&tool["result"])})
    });
    let tokens = &message["tokenCount"];
    let usage = json!({"input": tokens["inputTokens"], "output": tokens["outputTokens"]});
    let id = field(message, &["bubbleId"]);
    Some(json!({
        "type": role, "id": id, "timestamp": timestamp(at), "text": text, "calls": call.into_iter().collect::<Vec<_>>(),
        "usage": usage, "model": model,
    }))
}

struct Reader {
    session: PastSession,
    /// True if the chat has a database, so its transcript is skipped.
    has_database: bool,
    closing: Option<(String, Millis)>,
    usage: crate::model::Tokens,
    model: Option<String>,
    last_message: Option<String>,
    prompts: u64,
}

impl Reader {
    fn new(options: &PastOptions) -> Reader {
        let id = transcripts::id(&options.path);
        let mut session = PastSession::new(Platform::Cursor, id, options);
        session.cwd = transcripts::folder(&options.path);
        let has_database = transcripts::has_database(&options.path);
        Reader { session, has_database, closing: None, usage: Default::default(), model: None, last_message: None, prompts: 0 }
    }

    fn asks(&mut self, record: &Value, found: &mut Found) {
        let text = record["text"].as_str().unwrap_or_default().trim();
        if text.is_empty() {
            return;
        }
        self.end_turn();
        self.session.flush(found);
        self.session.start(None);
        self.prompts += 1;
        let number = self.prompts;
        self.session.prompt = Some(record["id"].as_str().map_or_else(|| format!("prompt-{number}"), String::from));
        found.counts.prompts += 1;
        self.session.add(EventKind::UserPrompt { text: text.to_string() });
    }

    fn answers(&mut self, record: &Value, found: &mut Found) {
        let of = |key: &str| record["usage"][key].as_i64().unwrap_or(0).max(0);
        (self.usage.input, self.usage.output) = (self.usage.input + of("input"), self.usage.output + of("output"));
        self.model = record["model"].as_str().map(String::from).or(self.model.take());
        self.last_message = record["id"].as_str().map(String::from).or(self.last_message.take());
        if let Some(text) = record["text"].as_str().filter(|text| !text.trim().is_empty()) {
            self.closing = Some((text.to_string(), self.session.at));
        }
        for call in record["calls"].as_array().into_iter().flatten() {
            self.closing = None;
            self.call(call, found);
        }
    }

    fn call(&mut self, call: &Value, found: &mut Found) {
        let name = call["name"].as_str().unwrap_or("unknown");
        let ended = match call["status"].as_str() {
            Some("cancelled" | "rejected") => return found.counts.skip("declined by the user"),
            Some("error") => {
                let error = field(&call["result"], &["error", "message"]);
                Err(error.as_str().map_or_else(|| text_of(&call["result"]), String::from))
            }
            Some("unknown") => Ok(json!({"status": "async_launched"})),
            _ => result(&call["result"]),
        };
        found.counts.tool_uses += 1;
        found.counts.failures += u64::from(ended.is_err());
        let from = json!({"session_id": self.session.id, "cwd": self.session.cwd, "prompt_id": self.session.prompt});
        let hook =
            HookCall { id: &call["id"], name, like: like(name, &call["input"]), result: Some(ended), duration_ms: &Value::Null };
        let events = translated::decode(Platform::Cursor, translated::call(&from, hook), &self.session.decode_context());
        let events = events.unwrap_or_default();
        if events.is_empty() {
            found.counts.skip("tool that is not recorded");
        }
        for event in events {
            self.session.add_decoded(event);
        }
    }

    fn end_turn(&mut self) {
        let tokens = std::mem::take(&mut self.usage);
        let usage = crate::model::TurnUsage {
            tokens: Some(tokens),
            model: self.model.clone(),
            last_message: self.last_message.take(),
            ..Default::default()
        };
        if let Some((closing, at)) = self.closing.take() {
            self.session.end_turn(closing, at, Some(usage).filter(|_| tokens != Default::default()));
        }
    }
}

impl PastReader for Reader {
    fn line(&mut self, record: Value, at: u64, found: &mut Found) {
        if self.has_database {
            return found.counts.skip("read from the chat's database");
        }
        let record = if record["role"].is_string() { transcripts::record(&record, at) } else { record };
        self.session.at = time(&record).unwrap_or(self.session.at);
        found.counts.known_lines += 1;
        match record["type"].as_str() {
            Some("session") => {
                self.session.id = record["id"].as_str().unwrap_or_default().to_string();
                self.session.cwd = record["cwd"].as_str().map(String::from);
            }
            Some("user") => {
                self.asks(&record, found);
                found.resume_at = at;
            }
            Some("assistant") => self.answers(&record, found),
            _ => {}
        }
    }

    fn end(&mut self, at: u64, is_over: bool, found: &mut Found) {
        self.end_turn();
        if is_over && !self.has_database {
            self.session.end(None);
        }
        if is_over {
            found.resume_at = at;
        }
        self.session.flush(found);
    }
}
