//! Cursor's past sessions: its global database, chat databases, and transcripts.

use crate::files;
use crate::model::{EventKind, Millis, Platform};
use crate::platforms::json_repair::lenient;
use crate::platforms::past::{
    Columns, Found, PastDatabase, PastFormat, PastOptions, PastPart, PastReader, PastSession, PastSource, Rows, path_of_url,
    text_of, timestamp,
};
use crate::platforms::payload::stored;
use crate::platforms::transcript_tail::time;
use crate::platforms::translated::{self, HookCall, changes_like, command_result, field, unpacked};
use anyhow::Result;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Format of the IDE's chats. Raise the version when the reader learns to find more than before.
pub const IDE: PastFormat = PastFormat {
    platform: Platform::Cursor,
    version: 2,
    folders: &["globalStorage", "workspaceStorage"],
    source: PastSource::Database(PastDatabase {
        is_file: |path| is_named(path, "state.vscdb"),
        tables: &["cursorDiskKV"],
        foreign_table: "",
        sessions,
        records,
    }),
    reader: |options| Box::new(Reader::new(options)),
    ..PastFormat::LINES
};

/// Format of the chats of `cursor-agent`.
pub const CLI: PastFormat = PastFormat {
    folders: &["chats"],
    source: PastSource::Database(PastDatabase {
        is_file,
        tables: &["blobs", "meta"],
        foreign_table: "",
        sessions: chat_sessions,
        records: chat_records,
    }),
    ..IDE
};

/// Format of the transcripts of `cursor-agent`.
pub const TRANSCRIPTS: PastFormat =
    PastFormat { folders: &["projects"], source: PastSource::Lines, is_line, folder, session_file, ..IDE };

/// Returns the chat's folder and the subagent's id for a file `<chat>/subagents/<id>.jsonl`.
fn subagent_of(path: &Path) -> Option<(&Path, &str)> {
    let folder = path.parent().filter(|folder| is_named(folder, "subagents"))?;
    Some((folder.parent()?, path.file_stem()?.to_str()?))
}

fn session_file(path: &Path) -> Option<PathBuf> {
    let (chat, _) = subagent_of(path)?;
    Some(chat.join(chat.file_name()?).with_extension("jsonl"))
}

/// The table, its key column, and the key prefixes that are read.
const TABLE: &str = "cursorDiskKV";
const KEY: &str = "key";
const CHATS: &str = "composerData:";
const MESSAGES: &str = "bubbleId:";
/// The table of a workspace's database, and its keys that are read: the list of chats, which held the chats themselves
/// in older versions, and the chats of the first versions.
const ITEMS: &str = "ItemTable";
const LIST: &str = "composer.composerData";
const TABS: &str = "workbench.panel.aichat.view.aichat.chatdata";
/// Maximum bytes of `workspace.json`.
const WORKSPACE_BYTES: u64 = 1 << 20;

fn is_named(path: &Path, name: &str) -> bool {
    path.file_name().is_some_and(|own| own == name)
}

fn json_in(row: &crate::platforms::past::Columns) -> Value {
    row.get("value").and_then(Value::as_str).and_then(|text| stored(text.as_bytes()).ok()).unwrap_or_default()
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

/// The folder of a workspace, from the `workspace.json` next to its database.
fn workspace_folder(database: &Path) -> Option<String> {
    let text = files::whole_text(&database.parent()?.join("workspace.json"), WORKSPACE_BYTES).ok()?;
    let workspace: Value = serde_json::from_str(&text).ok()?;
    path_of(&workspace["folder"]).or_else(|| {
        // A workspace of several folders: the first one counts.
        let file = PathBuf::from(path_of(&workspace["workspace"]).or_else(|| path_of(&workspace["configuration"]))?);
        let text = files::whole_text(&file, WORKSPACE_BYTES).ok()?;
        let folders = lenient(&text).ok()?;
        Some(file.parent()?.join(folders["folders"].get(0)?["path"].as_str()?).display().to_string())
    })
}

/// The value of a key in a workspace's database.
fn item(rows: &dyn Rows, key: &str) -> Result<Value> {
    Ok(rows.with(ITEMS, KEY, key, &[])?.first().map(json_in).unwrap_or_default())
}

/// The chats that a workspace's database lists.
fn listed(rows: &dyn Rows) -> Result<Vec<Value>> {
    Ok(item(rows, LIST)?["allComposers"].as_array().cloned().unwrap_or_default())
}

/// The chats of the first versions, in the shape of later ones.
fn tabs(rows: &dyn Rows) -> Result<Vec<Value>> {
    let stored = item(rows, TABS)?;
    let tabs = stored["tabs"].as_array().into_iter().flatten();
    Ok(tabs
        .map(|tab| {
            let bubbles = tab["bubbles"].as_array().into_iter().flatten();
            let message = |bubble: &Value| {
                let typed = [&bubble["text"], &bubble["rawText"]].into_iter().filter_map(Value::as_str).find(|t| !t.is_empty());
                let typed = typed.map_or_else(|| editor_text(&unpacked(&bubble["initText"])), String::from);
                json!({"type": if bubble["type"] == "user" { 1 } else { 2 }, "bubbleId": bubble["id"], "text": typed})
            };
            let messages: Vec<Value> = bubbles.map(message).collect();
            json!({"composerId": tab["tabId"], "lastUpdatedAt": tab["lastSendTime"], "createdAt": tab["lastSendTime"], "conversation": messages})
        })
        .collect())
}

/// The text in an editor's state: its `text` fields, in order.
fn editor_text(state: &Value) -> String {
    match state {
        Value::Object(fields) => {
            let own = fields.get("text").and_then(Value::as_str).unwrap_or_default().to_string();
            own + &fields.values().filter(|value| !value.is_string()).map(editor_text).collect::<String>()
        }
        Value::Array(parts) => parts.iter().map(editor_text).collect(),
        _ => String::new(),
    }
}

/// The folders of chats that do not name their own, from the lists of all workspaces.
fn folders_of_chats(rows: &dyn Rows, database: &Path) -> HashMap<String, String> {
    let mut folders = HashMap::new();
    let Some(user) = database.ancestors().nth(2) else { return folders };
    for workspace in fs::read_dir(user.join("workspaceStorage")).into_iter().flatten().flatten() {
        let path = workspace.path().join("state.vscdb");
        let Some(folder) = workspace_folder(&path).filter(|_| path.is_file()) else { continue };
        let chats = rows.beside(&path).and_then(|rows| listed(&*rows)).unwrap_or_default();
        let ids = chats.iter().filter_map(|chat| chat["composerId"].as_str());
        folders.extend(ids.map(|id| (id.to_string(), folder.clone())));
    }
    folders
}

fn sessions(rows: &dyn Rows, path: &Path) -> Result<Vec<PastPart>> {
    let mut found = Vec::new();
    let own_folder = workspace_folder(path);
    for chat in listed(rows)?.into_iter().chain(tabs(rows)?) {
        let length = chat["conversation"].as_array().map_or(0, Vec::len);
        let (Some(id), 1..) = (chat["composerId"].as_str(), length) else { continue };
        let at = chat["lastUpdatedAt"].as_i64().or(chat["createdAt"].as_i64()).unwrap_or_default();
        found.push(PastPart { id: id.to_string(), size: length as u64, modified_at: at, cwd: own_folder.clone() });
    }
    rows.keyed(TABLE, KEY, CHATS, &mut |row| {
        let chat = json_in(&row);
        let id = row.get(KEY).and_then(Value::as_str).and_then(|key| key.strip_prefix(CHATS)).unwrap_or_default().to_string();
        let headers = chat["fullConversationHeadersOnly"].as_array();
        let length = headers.map_or(0, Vec::len) + chat["conversation"].as_array().map_or(0, Vec::len);
        if id.is_empty() || length == 0 || chat["subagentInfo"].is_object() || chat["isSubagent"] == true {
            return Ok(());
        }
        let first = headers.and_then(|headers| headers.first()?["bubbleId"].as_str());
        let message = match first {
            Some(message) => rows.with(TABLE, KEY, &format!("{MESSAGES}{id}:{message}"), &[])?.first().map(json_in),
            None => chat["conversation"].get(0).cloned(),
        };
        let at = chat["lastUpdatedAt"].as_i64().or(chat["createdAt"].as_i64()).unwrap_or_default();
        let cwd = message.as_ref().and_then(folder_of).or_else(|| own_folder.clone());
        found.push(PastPart { id, size: length as u64, modified_at: at, cwd });
        Ok(())
    })?;
    if found.iter().any(|part| part.cwd.is_none()) {
        let folders = folders_of_chats(rows, path);
        for part in found.iter_mut().filter(|part| part.cwd.is_none()) {
            part.cwd = folders.get(&part.id).cloned();
        }
    }
    Ok(found)
}

fn records(rows: &dyn Rows, part: &PastPart) -> Result<Vec<Value>> {
    let mut chat = rows.with(TABLE, KEY, &format!("{CHATS}{}", part.id), &[])?.first().map(json_in).unwrap_or_default();
    if chat.is_null() {
        let older = listed(rows)?.into_iter().chain(tabs(rows)?);
        chat = older.into_iter().find(|chat| chat["composerId"] == part.id.as_str()).unwrap_or_default();
    }
    let begin = format!("{MESSAGES}{}:", part.id);
    let mut by_id: HashMap<String, Value> = HashMap::new();
    rows.keyed(TABLE, KEY, &begin, &mut |row| {
        by_id.extend(row.get(KEY).and_then(|key| Some((key.as_str()?.strip_prefix(&begin)?.to_string(), json_in(&row)))));
        Ok(())
    })?;
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
    /// Calls of the turn without an outcome yet.
    running: Vec<Value>,
}

impl Reader {
    fn new(options: &PastOptions) -> Reader {
        let id = id(&options.path);
        let mut session = PastSession::new(Platform::Cursor, id, options);
        if options.path.extension().is_some_and(|end| end == "jsonl") {
            // Transcripts of some versions have no times.
            session.at = files::changed_at(&options.path).unwrap_or_default();
        }
        if let Some((chat, agent)) = subagent_of(&options.path) {
            session.id = chat.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_string();
            session.agent = Some(agent.to_string());
        }
        let has_database = has_database(&options.path);
        Reader {
            session,
            has_database,
            closing: None,
            usage: Default::default(),
            model: None,
            last_message: None,
            running: Vec::new(),
        }
    }

    fn asks(&mut self, record: &Value, at: u64, found: &mut Found) {
        let text = record["text"].as_str().unwrap_or_default().trim();
        if text.is_empty() || !self.session.is_persons(text) {
            return;
        }
        self.end_turn(found);
        self.session.flush(found);
        self.session.start(None);
        // The place in the file stays the same when the file grows.
        self.session.prompt = Some(record["id"].as_str().map_or_else(|| format!("prompt-{at}"), String::from));
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
            match call["status"].as_str() {
                Some("loading" | "pending" | "running" | "generating") => self.running.push(call.clone()),
                _ => self.call(call, found),
            }
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
            Some("unknown" | "loading" | "pending" | "running" | "generating") => Ok(json!({"status": "async_launched"})),
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

    /// Ends a turn; a call that has no outcome by then gets none.
    fn end_turn(&mut self, found: &mut Found) {
        let running = std::mem::take(&mut self.running);
        running.iter().for_each(|call| self.call(call, found));
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
        let record = if record["role"].is_string() { transcript_record(&record, at) } else { record };
        self.session.at = time(&record).unwrap_or(self.session.at);
        found.counts.known_lines += 1;
        match record["type"].as_str() {
            Some("session") => {
                self.session.id = record["id"].as_str().unwrap_or_default().to_string();
                self.session.cwd = record["cwd"].as_str().map(String::from).or(self.session.cwd.take());
            }
            Some("user") => {
                self.asks(&record, at, found);
                found.resume_at = at;
            }
            Some("assistant") => self.answers(&record, found),
            _ => {}
        }
    }

    fn end(&mut self, at: u64, is_over: bool, found: &mut Found) {
        if !is_over {
            // The turn is read again when the file changes.
            self.running.clear();
        }
        self.end_turn(found);
        if is_over && !self.has_database {
            self.session.end(None);
        }
        if is_over {
            found.resume_at = at;
        }
        self.session.flush(found);
    }
}

/// Maximum bytes of `meta.json`.
const META_BYTES: u64 = 1 << 20;
/// Length of a digest as hex.
const DIGEST: usize = 64;

/// Returns true if a path is that of a chat database: `chats/<folder>/<id>/store.db`.
pub fn is_file(path: &Path) -> bool {
    let above = |n| path.ancestors().nth(n).and_then(Path::file_name).and_then(|name| name.to_str());
    above(0) == Some("store.db") && above(3) == Some("chats")
}

fn text<'a>(row: &'a Columns, column: &str) -> &'a str {
    row.get(column).and_then(Value::as_str).unwrap_or_default()
}

/// Decodes hex digits to bytes.
fn bytes(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks_exact(2);
    pairs.filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// Returns the chat's metadata: JSON, stored as text or as hex digits.
fn about(rows: &dyn Rows) -> Result<Value> {
    let all = rows.all("meta")?;
    let parsed = all.iter().map(|row| {
        let value = text(row, "value");
        serde_json::from_str(value).ok().filter(Value::is_object).or_else(|| serde_json::from_slice(&bytes(value)).ok())
    });
    Ok(parsed.flatten().find(Value::is_object).unwrap_or_default())
}

/// Creates the record that begins a session.
pub fn session_record(id: &str, folder: Option<&str>) -> Value {
    json!({"type": "session", "id": id, "cwd": folder})
}

/// Returns the one chat of a database. Its id is the name of the folder; `meta.json` next to it names the working
/// directory.
pub fn chat_sessions(rows: &dyn Rows, path: &Path) -> Result<Vec<PastPart>> {
    let about = about(rows)?;
    let folder = path.parent().unwrap_or(path);
    let id = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let beside = files::whole_text(&folder.join("meta.json"), META_BYTES).ok();
    let beside: Value = beside.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let at = beside["updatedAt"].as_i64().or(about["updatedAt"].as_i64()).or(about["createdAt"].as_i64()).unwrap_or_default();
    let cwd = beside["cwd"].as_str().or(about["cwd"].as_str()).map(String::from);
    let size = rows.all("blobs")?.len() as u64;
    Ok(vec![PastPart { id, size, modified_at: at, cwd }])
}

/// Returns the messages of the newest root.
pub fn chat_records(rows: &dyn Rows, part: &PastPart) -> Result<Vec<Value>> {
    let about = about(rows)?;
    let blobs: HashMap<String, String> =
        rows.all("blobs")?.iter().map(|row| (text(row, "id").to_lowercase(), text(row, "data").to_string())).collect();
    let root = about["latestRootBlobId"].as_str().unwrap_or_default().to_lowercase();
    let digests = blobs.get(&root).map(|data| digests(&bytes(data))).unwrap_or_default();
    let messages: Vec<Value> = digests.iter().filter_map(|digest| stored(blobs.get(digest)?.as_bytes()).ok()).collect();
    let mut results: HashMap<&str, &Value> = HashMap::new();
    for part in messages.iter().filter_map(|message| message["content"].as_array()).flatten() {
        if part["type"] == "tool-result" {
            results.extend(part["toolCallId"].as_str().map(|id| (id, part)));
        }
    }
    let mut at = about["createdAt"].as_i64().unwrap_or(part.modified_at);
    let mut records = vec![session_record(&part.id, part.cwd.as_deref())];
    for message in &messages {
        let Some(role @ ("user" | "assistant")) = message["role"].as_str() else { continue };
        at += 1;
        let said = message["content"].as_str().map_or_else(|| text_of(&message["content"]), String::from);
        let parts = message["content"].as_array().into_iter().flatten();
        let calls: Vec<Value> = parts.filter(|part| part["type"] == "tool-call").map(|call| called(call, &results)).collect();
        let said =
            said.split_once("<user_query>").and_then(|(_, rest)| Some(rest.split_once("</user_query>")?.0)).unwrap_or(&said);
        // The program's information about the machine is not a prompt.
        if role == "user" && said.trim_start().starts_with("<user_info>") {
            continue;
        }
        records.push(json!({"type": role, "timestamp": timestamp(at), "text": said, "calls": calls}));
    }
    Ok(records)
}

/// Combines a call with its result.
fn called(call: &Value, results: &HashMap<&str, &Value>) -> Value {
    let answer = call["toolCallId"].as_str().and_then(|id| results.get(id));
    let result = answer.map(|answer| if answer["result"].is_null() { &answer["output"] } else { &answer["result"] });
    let failed = answer.is_some_and(|answer| answer["isError"] == true);
    let status = match answer {
        None => "unknown",
        Some(_) if failed => "error",
        Some(_) => "completed",
    };
    let input = if call["args"].is_null() { &call["input"] } else { &call["args"] };
    json!({"id": call["toolCallId"], "name": call["toolName"], "input": input, "status": status, "result": result})
}

/// Returns the digests in a protobuf message: its repeated first field.
fn digests(message: &[u8]) -> Vec<String> {
    let (mut found, mut rest) = (Vec::new(), message);
    while let Some((tag, behind)) = varint(rest) {
        let Some((value, behind)) = varint(behind) else { break };
        rest = behind;
        match tag & 7 {
            0 => {}
            2 => {
                let length = usize::try_from(value).unwrap_or(usize::MAX);
                let Some((inside, behind)) = rest.split_at_checked(length) else { break };
                if tag >> 3 == 1 && length * 2 == DIGEST {
                    found.push(inside.iter().map(|byte| format!("{byte:02x}")).collect());
                }
                rest = behind;
            }
            _ => break,
        }
    }
    found
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    for (n, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f).checked_shl(7 * n as u32)?;
        if byte & 0x80 == 0 {
            return Some((value, &bytes[n + 1..]));
        }
    }
    None
}

/// Maximum number of folders between the filesystem root and a project.
const LEVELS: usize = 12;

/// Returns true if a line belongs to a transcript.
pub fn is_line(record: &Value) -> bool {
    let is_said = matches!(record["role"].as_str(), Some("user" | "assistant"));
    is_said && record["type"].is_null() && record["message"]["content"].is_array()
}

/// The chat's id: the name of the file.
pub fn id(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Finds the working directory. `projects/<folder>` is its path with some characters replaced, so this searches the
/// disk.
pub fn folder(path: &Path) -> Option<String> {
    let mut above = path.ancestors();
    let transcripts = above.find(|folder| folder.file_name().is_some_and(|name| name == "agent-transcripts"))?;
    let name = transcripts.parent()?.file_name()?.to_str()?.to_string();
    below(Path::new("/"), &name, LEVELS).map(|folder| folder.display().to_string())
}

/// Finds the folder below `folder` whose path is encoded as `name`.
fn below(folder: &Path, name: &str, levels: usize) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let written = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().replace(['.', '/', '_', ' '], "-");
    let fitting: Vec<(String, PathBuf)> = entries
        .map(|entry| (written(&entry), entry.path()))
        .filter(|(own, _)| name == own || name.starts_with(&format!("{own}-")))
        .collect();
    if let Some((_, path)) = fitting.iter().find(|(own, _)| own == name) {
        return Some(path.clone());
    }
    let deeper = |(own, path): &(String, PathBuf)| below(path, &name[own.len() + 1..], levels.checked_sub(1)?);
    fitting.iter().find_map(deeper)
}

/// Returns true if a transcript's chat has a database: `chats/<folder>/<id>/store.db`.
pub fn has_database(path: &Path) -> bool {
    let id = id(path);
    let own = path.ancestors().find(|folder| folder.file_name().is_some_and(|name| name == "projects")).and_then(Path::parent);
    if path.extension().is_none_or(|end| end != "jsonl") || id.is_empty() {
        return false;
    }
    let chats = own.map(|own| own.join("chats"));
    let folders = chats.iter().flat_map(fs::read_dir).flatten().flatten();
    folders.map(|folder| folder.path().join(&id).join("store.db")).any(|database| database.is_file())
}

/// Converts a line to a message record; `at` is the line's offset.
pub fn transcript_record(line: &Value, at: u64) -> Value {
    let content = &line["message"]["content"];
    let text = text_of(content);
    let parts = content.as_array().into_iter().flatten();
    let calls: Vec<Value> = parts
        .filter(|part| part["type"] == "tool_use")
        .enumerate()
        .map(|(n, part)| {
            let id = if part["id"].is_string() { part["id"].clone() } else { json!(format!("at-{at}-{n}")) };
            // The outcome of the call is unknown.
            json!({"id": id, "name": part["name"], "input": part["input"], "status": "unknown", "result": null})
        })
        .collect();
    let (said_at, text) = prompt(&text);
    json!({"type": line["role"], "timestamp": said_at.and_then(timestamp), "text": text, "calls": calls})
}

/// Splits a prompt into its time and the text that the person typed.
fn prompt(text: &str) -> (Option<i64>, &str) {
    let stated = text.trim_start().strip_prefix("<timestamp>").and_then(|rest| rest.split_once("</timestamp>"));
    let (at, rest) = stated.map_or((None, text), |(at, rest)| (line_time(at), rest));
    let query = rest.split_once("<user_query>").and_then(|(_, rest)| rest.split_once("</user_query>"));
    (at, query.map_or(rest, |(query, _)| query).trim())
}

/// Parses a time such as `Sunday, Jul 26, 2026, 1:06 PM (UTC+3)`; returns Unix milliseconds.
fn line_time(text: &str) -> Option<i64> {
    let (clock, zone) = text.split_once(" (UTC").map_or((text, ""), |(clock, zone)| (clock, zone.trim_end_matches(')')));
    let behind_day = clock.split_once(", ")?.1;
    let at = jiff::civil::DateTime::strptime("%b %d, %Y, %I:%M %p", behind_day).ok()?;
    let (hours, minutes) = zone.split_once(':').unwrap_or((zone, "0"));
    let hours: i64 = if hours.is_empty() { 0 } else { hours.parse().ok()? };
    let offset = hours * 60 + minutes.parse::<i64>().ok()? * hours.signum();
    let utc = at.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_millisecond();
    Some(utc - offset * 60_000)
}

/// Converts a call to one or more Claude Code calls: names and inputs.
pub fn like(name: &str, input: &Value) -> Vec<(String, Value)> {
    let of = |names: &[&str]| field(input, names).clone();
    let path = || of(&["file_path", "path", "target_file", "filePath", "relative_workspace_path"]);
    let one = |like: &str, input: Value| vec![(like.to_string(), input)];
    match name {
        "Shell" | "Bash" | "run_terminal_cmd" | "run_terminal_command_v2" | "run_terminal_command" => {
            one("Bash", json!({"command": of(&["command"]), "description": of(&["description", "explanation"])}))
        }
        "Read" | "read_file" | "read_file_v2" => one("Read", json!({"file_path": path()})),
        "Write" | "write" | "create_file" if input["old_string"].is_null() => {
            one("Write", json!({"file_path": path(), "content": of(&["content", "contents", "file_text"])}))
        }
        "Write" | "StrReplace" | "Edit" | "MultiEdit" | "edit_file" | "edit_file_v2" | "search_replace" => {
            let new = of(&["new_string", "code_edit", "streamingContent", "contents"]);
            one("Edit", json!({"file_path": path(), "old_string": of(&["old_string"]), "new_string": new}))
        }
        "Delete" | "delete_file" => one("Edit", json!({"file_path": path()})),
        "ApplyPatch" | "apply_patch" => {
            let patch = input.as_str().map_or_else(|| of(&["patch", "input"]), Value::from);
            changes_like(patch.as_str().unwrap_or_default())
        }
        "Grep" | "grep" | "grep_search" | "rg" | "ripgrep_raw_search" => {
            one("Grep", json!({"pattern": of(&["pattern", "query"]), "path": path()}))
        }
        "SemanticSearch" | "codebase_search" | "semantic_search_full" => one("Grep", json!({"pattern": of(&["query"])})),
        "Glob" | "file_search" | "glob_file_search" => {
            one("Glob", json!({"pattern": of(&["pattern", "glob_pattern", "globPattern", "query"]), "path": path()}))
        }
        "LS" | "list_dir" | "list_dir_v2" => {
            one("LS", json!({"path": of(&["path", "target_directory", "relative_workspace_path"])}))
        }
        "WebFetch" | "web_fetch" => one("WebFetch", json!({"url": of(&["url"])})),
        "WebSearch" | "web_search" => one("WebSearch", json!({"query": of(&["query", "search_term", "searchTerm"])})),
        "Task" | "Subagent" | "task_v2" => one(
            "Agent",
            json!({"description": of(&["description"]), "prompt": of(&["prompt"]), "subagent_type": of(&["subagent_type"])}),
        ),
        "TodoWrite" | "todo_write" => one("TodoWrite", input.clone()),
        name => match name.strip_prefix("MCP:") {
            Some(tool) => one(&format!("mcp__cursor__{tool}"), input.clone()),
            None => one(name, input.clone()),
        },
    }
}

/// Returns the result of a call that Cursor reports as done. Commands report their exit code.
pub fn result(output: &Value) -> Result<Value, String> {
    let code = field(output, &["exitCode", "exit_code"]).as_i64();
    let text = field(output, &["output", "stdout", "content"]);
    let text = text.as_str().map_or_else(|| text_of(output), String::from);
    match (code, output) {
        (Some(_), _) | (None, Value::String(_)) => command_result(&text, code),
        _ => Ok(output.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_subagents_transcript_belongs_to_its_chat() {
        let path = Path::new("/t/chat/subagents/other.jsonl");
        assert_eq!(subagent_of(path), Some((Path::new("/t/chat"), "other")));
        assert_eq!(session_file(path), Some("/t/chat/chat.jsonl".into()));
        assert_eq!(session_file(Path::new("/t/chat/chat.jsonl")), None);
    }

    #[test]
    fn the_first_field_holds_the_digests() {
        let mut message = vec![0x08, 0x01, 0x12, 0x02, 1, 2];
        message.extend([&[0x0a, 32][..], &[0xab; 32]].concat());
        assert_eq!(digests(&message), ["ab".repeat(32)]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(message in proptest::collection::vec(any::<u8>(), 0..100)) {
            digests(&message);
        }
    }

    #[test]
    fn a_prompt_begins_with_its_time() {
        let (at, text) =
            prompt("<timestamp>Sunday, Jul 26, 2026, 1:06 PM (UTC+3)</timestamp>\n<user_query>\nfix it\n</user_query>");
        assert_eq!(timestamp(at.unwrap()).as_deref(), Some("2026-07-26T10:06:00Z"));
        assert_eq!(text, "fix it");
        assert_eq!(prompt("no time"), (None, "no time"));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(<timestamp>)?.{0,60}(</timestamp>)?.{0,20}") {
            prompt(&text);
            let _ = line_time(&text);
        }
    }
}
