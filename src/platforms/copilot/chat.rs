//! Decodes VS Code's own chat records into events.
//!
//! `workspaceStorage/<hash>/chatSessions/<id>.jsonl` is a change log, which is replayed as a whole; older versions
//! wrote one document `<id>.json`. `<hash>/workspace.json` names the folder. `inputState` holds the account's name and
//! is not read.

use super::{SKIPPED, is_command, like, printed};
use crate::files;
use crate::model::{EventKind, Millis, Platform};
use crate::platforms::past::{
    Found, PastDocument, PastFormat, PastOptions, PastReader, PastSession, PastSource, path_of_url, timestamp,
};
use crate::platforms::payload;
use crate::platforms::transcript_tail::time;
use crate::platforms::translated::{self, HookCall, command_result, unpacked};
use anyhow::Result;
use serde_json::{Value, json};
use std::io::{BufRead, Read};
use std::path::Path;

/// The format of the chat records. Raise the version when the reader learns to find more than before.
pub const CHAT: PastFormat = PastFormat {
    platform: Platform::VsCode,
    version: 2,
    folders: &["workspaceStorage", "globalStorage"],
    source: PastSource::Document(PastDocument { is_file, records }),
    folder,
    reader: |options| Box::new(Reader::new(options)),
    ..PastFormat::LINES
};

/// Maximum bytes of a session.
const BYTES: u64 = 256 << 20;
/// Maximum keys of a path: the state must not become deeper than the JSON parser allows.
const DEPTH: usize = 64;
/// Folders that hold sessions.
const FOLDERS: [&str; 3] = ["chatSessions", "emptyWindowChatSessions", "transferredChatSessions"];

fn is_file(path: &Path) -> bool {
    let above = path.parent().and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or_default();
    FOLDERS.contains(&above) && path.extension().is_some_and(|end| end == "json" || end == "jsonl")
}

/// Returns the folder of a session's workspace.
fn folder(path: &Path) -> Option<String> {
    let workspace = path.parent()?.parent()?.join("workspace.json");
    let mut text = String::new();
    files::reader(&workspace, 1 << 16).ok()?.read_to_string(&mut text).ok()?;
    let workspace: Value = serde_json::from_str(&text).ok()?;
    path_of_url(workspace["folder"].as_str()?)
}

/// Returns a record of the session itself, then one record per request.
fn records(path: &Path) -> Result<Vec<Value>> {
    let session =
        if path.extension().is_some_and(|end| end == "jsonl") { replayed(path)? } else { payload::document(path, BYTES)? };
    let begun = session["creationDate"].as_i64().unwrap_or_default();
    let mut records = vec![json!({"type": "session", "id": session["sessionId"], "timestamp": timestamp(begun)})];
    for request in session["requests"].as_array().into_iter().flatten() {
        let at = request["timestamp"].as_i64().unwrap_or(begun);
        records.push(json!({"type": "request", "timestamp": timestamp(at), "request": request}));
    }
    Ok(records)
}

/// Returns the state of a session after all changes in its log.
fn replayed(path: &Path) -> Result<Value> {
    let mut state = Value::Null;
    for line in files::reader(path, BYTES)?.split(b'\n') {
        let Some(change) = payload::line(&line?) else { continue };
        match change["kind"].as_i64() {
            Some(0) => state = change["v"].clone(),
            Some(1) => apply(&mut state, &change, |place, value| *place = value.clone()),
            Some(2) => {
                let end = change["i"].as_u64().and_then(|end| usize::try_from(end).ok());
                apply(&mut state, &change, |place, value| {
                    if !place.is_array() {
                        *place = json!([]);
                    }
                    if let Some(list) = place.as_array_mut() {
                        list.truncate(end.unwrap_or(list.len()));
                        list.extend(value.as_array().cloned().unwrap_or_default());
                    }
                });
            }
            Some(3) => {
                if let Some((last, parent)) = change["k"].as_array().and_then(|keys| keys.split_last()) {
                    let parent = json!({"k": parent, "v": last});
                    apply(&mut state, &parent, |place, key| {
                        if let (Some(members), Some(key)) = (place.as_object_mut(), key.as_str()) {
                            members.remove(key);
                        }
                    });
                }
            }
            _ => {}
        }
    }
    Ok(state)
}

/// Changes the value at a change's path. A path that does not exist changes nothing, but its last key may be new.
fn apply(state: &mut Value, change: &Value, set: impl FnOnce(&mut Value, &Value)) {
    let Some(keys) = change["k"].as_array().filter(|keys| keys.len() <= DEPTH) else { return };
    let mut place = state;
    for (n, key) in keys.iter().enumerate() {
        let is_last = n + 1 == keys.len();
        place = match (place, key) {
            (Value::Object(members), Value::String(name)) => {
                if !is_last && !members.contains_key(name) {
                    return;
                }
                members.entry(name.clone()).or_insert(Value::Null)
            }
            (Value::Array(items), Value::Number(at)) => {
                let at = at.as_u64().and_then(|at| usize::try_from(at).ok()).unwrap_or(usize::MAX);
                if is_last && at == items.len() {
                    items.push(Value::Null);
                }
                match items.get_mut(at) {
                    Some(place) => place,
                    None => return,
                }
            }
            _ => return,
        };
    }
    set(place, &change["v"]);
}

struct Reader {
    session: PastSession,
}

impl Reader {
    fn new(options: &PastOptions) -> Reader {
        let mut options = options.clone();
        options.skip_tools.extend(SKIPPED.map(String::from));
        let mut session = PastSession::new(Platform::VsCode, options.path.display().to_string(), &options);
        session.cwd = folder(&options.path);
        Reader { session }
    }

    fn asks(&mut self, request: &Value, found: &mut Found) {
        let text = request["message"]["text"].as_str().or(request["message"].as_str()).unwrap_or_default().trim();
        if text.is_empty() {
            return;
        }
        self.session.flush(found);
        self.session.start(None);
        let at = self.session.at;
        if self.session.is_persons(text) {
            self.session.prompt = Some(request["requestId"].as_str().map_or_else(|| format!("at-{at}"), String::from));
            found.counts.prompts += 1;
            self.session.add(EventKind::UserPrompt { text: text.to_string() });
        }
        let mut said: Vec<&str> = Vec::new();
        for part in request["response"].as_array().into_iter().flatten() {
            match part["kind"].as_str() {
                Some("toolInvocationSerialized") => {
                    said.clear();
                    self.call(part, request, found);
                }
                None | Some("markdownContent") => {
                    said.extend(part["value"].as_str().or(part["value"]["value"].as_str()).or(part["content"]["value"].as_str()));
                }
                Some("inlineReference") => said.extend(part["name"].as_str()),
                _ => {}
            }
        }
        let closing = said.concat();
        if !closing.trim().is_empty() {
            let took = request["result"]["timings"]["totalElapsed"].as_i64().filter(|took| (0..DAY).contains(took)).unwrap_or(0);
            self.session.end_turn(closing.trim().to_string(), at + took, None);
        }
    }

    /// Reads a tool call. The model's input is in the request's metadata; the part itself holds what the person saw.
    fn call(&mut self, part: &Value, request: &Value, found: &mut Found) {
        let id = &part["toolCallId"];
        let rounds = request["result"]["metadata"]["toolCallRounds"].as_array().into_iter().flatten();
        let mut calls = rounds.filter_map(|round| round["toolCalls"].as_array()).flatten();
        let known = calls.find(|call| !id.is_null() && call["id"] == *id);
        let name = known.and_then(|call| call["name"].as_str()).or(part["toolId"].as_str()).unwrap_or("unknown");
        let name = name.strip_prefix("copilot_").map_or_else(|| name.to_string(), snake);
        let line = part["toolSpecificData"]["commandLine"].clone();
        let command = line["original"].as_str().or(line["userEdited"].as_str()).or(line.as_str());
        let command = command.or(part["toolSpecificData"]["command"].as_str());
        let input = match (known, command) {
            (Some(call), _) => unpacked(&call["arguments"]),
            (None, Some(command)) => json!({ "command": command }),
            (None, None) => return found.counts.skip("call without its input"),
        };
        found.counts.tool_uses += 1;
        let results = &request["result"]["metadata"]["toolCallResults"][id.as_str().unwrap_or_default()];
        let blocks = if results["content"].is_array() { &results["content"] } else { &part["resultDetails"]["output"] };
        let blocks = blocks.as_array().into_iter().flatten();
        let texts: Vec<&str> = blocks.filter_map(|block| block["value"].as_str().or(block["text"].as_str())).collect();
        let said = texts.join("\n");
        let code = part["toolSpecificData"]["terminalCommandState"]["exitCode"].as_i64();
        let ended = printed(&said);
        let result = if is_command(&name) {
            command_result(ended.text, code.or(ended.exit_code))
        } else if part["resultDetails"]["isError"] == true {
            Err(said.clone())
        } else {
            Ok(json!(said))
        };
        found.counts.failures += u64::from(result.is_err());
        let from = json!({"session_id": self.session.id, "cwd": self.session.cwd, "prompt_id": self.session.prompt});
        let call = HookCall { id, name: &name, like: like(&name, &input), result: Some(result), duration_ms: &Value::Null };
        let events = translated::decode(Platform::VsCode, translated::call(&from, call), &self.session.decode_context());
        let events = events.unwrap_or_default();
        if events.is_empty() {
            found.counts.skip("tool that is not recorded");
        }
        for event in events {
            self.session.add_decoded(event);
        }
    }
}

/// Maximum duration of a turn, in milliseconds: a longer value is not valid.
const DAY: Millis = 24 * 3_600_000;

/// Converts camel case to snake case: `readFile` to `read_file`.
fn snake(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}

impl PastReader for Reader {
    fn line(&mut self, record: Value, _at: u64, found: &mut Found) {
        self.session.at = time(&record).unwrap_or(self.session.at);
        match record["type"].as_str() {
            Some("session") => {
                if let Some(id) = record["id"].as_str() {
                    self.session.id = id.to_string();
                }
            }
            Some("request") => {
                found.counts.known_lines += 1;
                self.asks(&record["request"], found);
            }
            _ => {}
        }
    }

    fn end(&mut self, at: u64, is_over: bool, found: &mut Found) {
        if is_over {
            self.session.end(None);
        }
        found.resume_at = at;
        self.session.flush(found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_log_of_changes_is_replayed() {
        let folder = std::env::temp_dir().join(format!("nmem-chat-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("log.jsonl");
        let lines = [
            json!({"kind": 0, "v": {"sessionId": "s", "requests": [], "inputState": {"who": "x"}}}),
            json!({"kind": 2, "k": ["requests"], "v": [{"message": {"text": "a"}, "response": [1, 2]}]}),
            json!({"kind": 2, "k": ["requests", 0, "response"], "v": [3], "i": 1}),
            json!({"kind": 1, "k": ["customTitle"], "v": "t"}),
            json!({"kind": 3, "k": ["inputState"]}),
            json!({"kind": 1, "k": ["requests", 7, "x"], "v": 1}),
        ];
        std::fs::write(&path, lines.map(|line| line.to_string()).join("\n")).unwrap();
        let state = replayed(&path).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        let requests = json!([{"message": {"text": "a"}, "response": [1, 3]}]);
        assert_eq!(state, json!({"sessionId": "s", "requests": requests, "customTitle": "t"}));
    }

    #[test]
    fn names_are_in_snake_case() {
        assert_eq!(snake("replaceString"), "replace_string");
    }

    proptest! {
        #[test]
        fn any_change_is_taken(keys in proptest::collection::vec(prop_oneof![Just(json!("a")), Just(json!(0)), Just(json!(null))], 0..4)) {
            let mut state = json!({"a": [{"a": 1}]});
            apply(&mut state, &json!({"k": keys, "v": 2}), |place, value| *place = value.clone());
        }
    }
}
