//! Past sessions of Mistral Vibe: a folder for each session, with chunks of its history and a journal of what came after.
//! Format: `mistral.vibe.unified-session-store/v1`, seen in 3.0.2 (minor 9).

use super::message_sessions::{MessageFormat, MessageReader, Part, counted_with_cache, text};
use super::past::{PastDocument, PastFormat, PastOptions, PastReader, PastSource, text_of};
use super::payload::{self, document};
use crate::files;
use crate::model::{Millis, Platform};
use anyhow::Result;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Maximum bytes of a document.
const DOCUMENT_BYTES: u64 = 256 << 20;

/// The folder with the sessions, below the agent's own.
const SESSIONS: &str = "logs/session/unified";

/// The journal of the current turn: hooks name its folder, and `nmem import` reads it as a part of [`SESSION`].
pub const JOURNAL: PastFormat = PastFormat { platform: Platform::MistralVibe, reader, ..PastFormat::LINES };

pub const SESSION: PastFormat = PastFormat {
    platform: Platform::MistralVibe,
    folders: &[SESSIONS],
    depth: 2,
    source: PastSource::Document(PastDocument {
        is_file: |path| path.ends_with("meta.json") && path.ancestors().nth(2).is_some_and(|above| above.ends_with(SESSIONS)),
        records,
    }),
    folder: |path| working_folder(&document(path, DOCUMENT_BYTES).ok()?),
    reader,
    ..PastFormat::LINES
};

fn reader(options: &PastOptions) -> Box<dyn PastReader> {
    Box::new(MessageReader::new(Platform::MistralVibe, &RECORDS, options))
}

fn working_folder(about: &Value) -> Option<String> {
    about["environment"]["working_directory"].as_str().map(String::from)
}

const RECORDS: MessageFormat = MessageFormat {
    identify: |record, session| {
        if let Some(id) = record["session_id"].as_str() {
            session.id = id.to_string();
            session.cwd = working_folder(record);
            session.branch = record["git_branch"].as_str().map(String::from);
            // A subagent's work belongs to the session that started it.
            if let Some(parent) = record["parent_session_id"].as_str() {
                session.agent = Some(std::mem::replace(&mut session.id, parent.to_string()));
            }
        }
    },
    parts: |record| match record["entry"].is_object() {
        true => of_entry(record),
        false => of_journal(record),
    },
    time: |record| {
        let times = [&record["entry"]["createdAt"], &record["payload"]["input"]["determinism"]["time_unix_ms"]];
        let appended = || appended(record).find_map(|entry| entry["createdAt"].as_i64());
        times.iter().find_map(|at| at.as_i64()).or_else(appended).filter(|at: &Millis| *at > 0)
    },
};

/// The entries that a line of the journal adds to the history.
fn appended(record: &Value) -> impl Iterator<Item = &Value> {
    let changes = record["payload"]["delta"].as_array().into_iter().flatten();
    changes.filter(|change| change["op"] == "append_entry").map(|change| &change["entry"])
}

/// The parts of a line of the journal. Requests and results have the ids of calls; entries of the history have not.
fn of_journal(record: &Value) -> Vec<Part> {
    let payload = &record["payload"];
    let request = &payload["request"];
    match (record["type"].as_str(), payload["kind"].as_str()) {
        (Some("action_intent"), Some("tool")) => {
            let call = &request["call"];
            vec![Part::Call { id: text(&request["call_id"]), name: own_name(&call["name"]), input: call["arguments"].clone() }]
        }
        // The closing message, before the history has it: hooks run first.
        (Some("action_intent"), Some("hook")) if request["hook"] == "post_agent_turn" => vec![Part::Text(closing_of(request))],
        (Some("action_result"), _) => {
            let result = &payload["result"];
            let usage = counted_with_cache(&result["result"]["usage"], USAGE);
            let call = result["call_id"].as_str().map(|id| result_of(id, &result["result"]));
            usage.into_iter().chain(call).collect()
        }
        _ => appended(record).flat_map(message).collect(),
    }
}

/// A tool's name without its group: `file_system.bash`.
pub fn own_name(name: &Value) -> String {
    text(name).trim_start_matches("file_system.").to_string()
}

const USAGE: [&str; 4] = ["input_tokens", "output_tokens", "cached_input_tokens", ""];

fn closing_of(request: &Value) -> String {
    text_of(&request["input"]["candidate"]["message"]["content"])
}

fn result_of(id: &str, result: &Value) -> Part {
    let response = match result["error"]["message"].as_str() {
        Some(error) => json!(error),
        None => result["structured_content"].clone(),
    };
    Part::Result { id: id.to_string(), responses: vec![response], is_error: result["type"] == "failure" }
}

/// A message in the history.
fn message(entry: &Value) -> Option<Part> {
    let content = &entry["content"];
    let is_injected = || content.as_array().into_iter().flatten().any(|part| part["_meta"]["vibe.injected"] == true);
    match (entry["type"].as_str(), entry["role"].as_str()) {
        (Some("message"), Some("user")) if !is_injected() => {
            Some(Part::Prompt { id: text(&entry["id"]), text: text_of(content) })
        }
        (Some("message"), Some("assistant")) => Some(Part::Text(text_of(content))),
        _ => None,
    }
}

/// The parts of an entry of the history: a message, or a call with its result.
fn of_entry(record: &Value) -> Vec<Part> {
    let entry = &record["entry"];
    let (call, state) = (&entry["detail"], &entry["state"]);
    if call["kind"] != "tool" || !matches!(state["status"].as_str(), Some("completed" | "failed")) {
        return message(entry).into_iter().collect();
    }
    let id = text(&record["call"]);
    let result = result_of(&id, &state["output"]);
    vec![Part::Call { id, name: own_name(&call["toolName"]), input: call["input"].clone() }, result]
}

/// Reads a session, named by the document about it: the history of the last generation, then its journal.
fn records(about: &Path) -> Result<Vec<Value>> {
    let folder = about.parent().unwrap_or(about);
    let current = document(&folder.join("CURRENT"), DOCUMENT_BYTES)?;
    let generation = folder.join("generations").join(one_name(&current["generation"]));
    let manifest = document(&generation.join("manifest.json"), DOCUMENT_BYTES)?;
    let mut history = Vec::new();
    for chunk in manifest["projection_state"]["chunks"].as_array().into_iter().flatten() {
        let mut chunk = document(&folder.join("chunks").join(format!("{}.json", one_name(chunk))), DOCUMENT_BYTES)?;
        history.extend(chunk.as_array_mut().map(std::mem::take).unwrap_or_default());
    }
    let mut records = vec![document(about, DOCUMENT_BYTES)?];
    records.extend(with_call_ids(history));
    let journal = folder.join("journal").join(one_name(&json!(format!("{:0>16}.jsonl", first_line_of(&manifest)))));
    let lines = files::part(&journal, 0..DOCUMENT_BYTES).unwrap_or_default();
    records.extend(lines.split(|byte| *byte == b'\n').filter_map(payload::line));
    Ok(records)
}

fn first_line_of(manifest: &Value) -> i64 {
    manifest["recovery_journal_segment"]["first_sequence"].as_i64().unwrap_or_default()
}

/// A file name from a document; one that leads elsewhere names nothing.
fn one_name(name: &Value) -> &str {
    name.as_str().filter(|name| !name.contains(['/', '\\']) && *name != "..").unwrap_or_default()
}

/// Adds the id of its call to each entry of the history. Only notes about hooks state it, while the call runs; a call
/// without a hook keeps the entry's id.
fn with_call_ids(history: Vec<Value>) -> Vec<Value> {
    let stated = |note: &Value| Some((note["detail"]["toolCallId"].as_str()?.to_string(), note["createdAt"].as_i64()?));
    let mut notes: Vec<(String, Millis)> = history.iter().filter(|entry| entry["type"] == "notice").filter_map(stated).collect();
    let record = |entry: Value| {
        let at = |key: &str| entry[key].as_i64().unwrap_or_default();
        let while_it_runs = at("createdAt")..=at("updatedAt");
        let note = notes.iter().find(|(_, time)| entry["type"] == "effect" && while_it_runs.contains(time));
        let call = note.map_or_else(|| text(&entry["id"]), |(call, _)| call.clone());
        notes.retain(|(known, _)| *known != call);
        json!({"entry": entry, "call": call})
    };
    history.into_iter().map(record).collect()
}

/// The journal of a session's current turn: the newest one that is not empty.
pub fn journal(session: &str, folder: &Path) -> Option<PathBuf> {
    let files = std::fs::read_dir(folder.join(SESSIONS).join(session).join("journal")).ok()?.flatten();
    let of_session = files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
    of_session.filter(|path| files::length(path).is_some_and(|bytes| bytes > 0)).max()
}

/// Finds the closing message at the end of a journal, where the hook of the turn's end is called.
pub fn closing(journal: &[u8]) -> Option<String> {
    let called = journal.rsplit(|byte| *byte == b'\n').filter_map(payload::line);
    let mut requests = called.map(|mut line| line["payload"]["request"].take());
    let last = requests.find(|request| request["hook"].is_string() || request["call_id"].is_string())?;
    Some(closing_of(&last)).filter(|said| last["hook"] == "post_agent_turn" && !said.trim().is_empty())
}
