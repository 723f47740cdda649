//! Agents of which only past sessions are read: Aider, Amp, Continue, Crush, Goose, Zed, and Cline, Roo and Kilo in VS
//! Code.
//! Each format becomes the same records: `{session, cwd, role, id, at, content}` with Anthropic's blocks.

use super::message_sessions::{MessageFormat, MessageReader, counted, message_parts, millis_of};
use super::past::{PastDatabase, PastDocument, PastFormat, PastPart, PastReader, PastSource, Rows, path_of_url, stable_uuid};
use super::payload::document;
use super::translated::field;
use crate::files;
use crate::model::{Millis, Platform};
use anyhow::Result;
use ruzstd::decoding::StreamingDecoder;
use serde_json::{Value, json};
use std::io::Read;
use std::path::Path;

/// Maximum bytes of a document.
const DOCUMENT_BYTES: u64 = 256 << 20;

const RECORDS: MessageFormat = MessageFormat {
    identify: |record, session| {
        if let Some(id) = record["session"].as_str() {
            session.id = id.to_string();
        }
        session.cwd = record["cwd"].as_str().map(String::from).or(session.cwd.take());
    },
    parts: |record| {
        let tokens = counted(&record["usage"], ["input", "output", "cache_read", "cache_write"]);
        tokens.into_iter().chain(message_parts(record)).collect()
    },
    time: |record| record["at"].as_i64().filter(|at| *at > 0),
};

fn reader(platform: Platform, options: &super::past::PastOptions) -> Box<dyn PastReader> {
    Box::new(MessageReader::new(platform, &RECORDS, options))
}

const fn documents(is_file: fn(&Path) -> bool, records: fn(&Path) -> Result<Vec<Value>>) -> PastSource {
    PastSource::Document(PastDocument { is_file, records })
}

fn blocks(content: &Value) -> impl Iterator<Item = &Value> {
    content.as_array().into_iter().flatten()
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// The name of the folder in which a file is.
fn folder_name(path: &Path) -> &str {
    path.parent().map(name).unwrap_or_default()
}

fn prompt(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

/// Continue: a document for each session, without times: those of the list of sessions count.
pub const CONTINUE: PastFormat = PastFormat {
    platform: Platform::Continue,
    folders: &["sessions"],
    source: documents(
        |path| folder_name(path) == "sessions" && is_below(path, ".continue") && name(path) != LIST && is_json(path),
        continue_records,
    ),
    folder: |path| document(path, DOCUMENT_BYTES).ok()?["workspaceDirectory"].as_str().map(String::from),
    reader: |options| reader(Platform::Continue, options),
    ..PastFormat::LINES
};

/// Continue's list of sessions, next to them.
const LIST: &str = "sessions.json";

fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "json")
}

fn is_below(path: &Path, folder: &str) -> bool {
    path.components().any(|part| part.as_os_str() == folder)
}

fn continue_records(path: &Path) -> Result<Vec<Value>> {
    let mut session = document(path, DOCUMENT_BYTES)?;
    let id = session["sessionId"].clone();
    let list = document(&path.with_file_name(LIST), DOCUMENT_BYTES).unwrap_or_default();
    let listed = blocks(&list).find(|one| one["sessionId"] == id);
    let began = listed.and_then(|one| one["dateCreated"].as_str()?.parse().ok());
    let began: Millis = began.or_else(|| files::changed_at(path)).unwrap_or_default();
    let mut records = vec![json!({"session": id, "cwd": session["workspaceDirectory"]})];
    for (n, turn) in blocks(&session["history"].take()).enumerate() {
        let message = &turn["message"];
        let id = json!(n.to_string());
        let at = began + n as Millis;
        let usage = &message["usage"];
        let cached = usage["prompt_tokens_details"]["cached_tokens"].as_i64().unwrap_or(0);
        let usage = json!({"input": usage["prompt_tokens"].as_i64().unwrap_or(0) - cached, "output": usage["completion_tokens"], "cache_read": cached});
        let said = super::payload::text_of(&message["content"]);
        let calls: Vec<Value> = blocks(&message["toolCalls"])
            .map(|call| {
                let input = call["function"]["arguments"].as_str().and_then(|text| serde_json::from_str(text).ok());
                json!({"type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": input.unwrap_or(Value::Null)})
            })
            .collect();
        let text = (!said.is_empty()).then(|| json!({"type": "text", "text": said}));
        let content: Vec<Value> = text.into_iter().chain(calls).collect();
        records.push(json!({"role": message["role"], "id": id, "at": at, "content": content, "usage": usage}));
        let result = |state: &Value| {
            let output: Vec<&str> = blocks(&state["output"]).filter_map(|part| part["content"].as_str()).collect();
            let is_error = matches!(state["status"].as_str(), Some("errored" | "canceled"));
            json!({"type": "tool_result", "tool_use_id": state["toolCallId"], "is_error": is_error, "content": with_exit_code(&output.join("\n"))})
        };
        let results: Vec<Value> = blocks(&turn["toolCallStates"]).map(result).collect();
        if !results.is_empty() {
            records.push(json!({"role": "user", "id": id, "at": at, "content": results}));
        }
    }
    Ok(records)
}

/// Writes the exit code in Continue's text of a failure as other agents do: `Error (exit code 2): no such file`.
fn with_exit_code(said: &str) -> String {
    let parts = said.split_once("Error (exit code ").and_then(|(_, rest)| rest.split_once("): "));
    match parts.filter(|(code, _)| code.parse::<i64>().is_ok()) {
        Some((code, text)) => format!("{}\nCommand exited with code {code}", text.trim_end()),
        None => said.to_string(),
    }
}

/// Amp: a document for each thread that was kept on this machine.
pub const AMP: PastFormat = PastFormat {
    platform: Platform::Amp,
    folders: &["threads"],
    source: documents(|path| folder_name(path) == "threads" && name(path).starts_with("T-") && is_json(path), amp_records),
    folder: |path| amp_folder(&document(path, DOCUMENT_BYTES).ok()?),
    reader: |options| reader(Platform::Amp, options),
    ..PastFormat::LINES
};

fn amp_folder(thread: &Value) -> Option<String> {
    path_of_url(thread["env"]["initial"]["trees"][0]["uri"].as_str()?)
}

fn amp_records(path: &Path) -> Result<Vec<Value>> {
    let thread = document(path, DOCUMENT_BYTES)?;
    let mut records = vec![json!({"session": thread["id"], "cwd": amp_folder(&thread)})];
    let mut at = thread["created"].as_i64().unwrap_or_default();
    for (n, message) in blocks(&thread["messages"]).enumerate() {
        at = message["meta"]["sentAt"].as_i64().unwrap_or(at);
        let content: Vec<Value> = blocks(&message["content"])
            .map(|block| match block["type"].as_str() {
                Some("tool_result") => {
                    let run = &block["run"];
                    json!({"type": "tool_result", "tool_use_id": block["toolUseID"], "is_error": run["status"] == "error",
                        "content": field(run, &["result", "error"])})
                }
                _ => block.clone(),
            })
            .collect();
        let usage = &message["usage"];
        let usage = json!({"input": usage["inputTokens"], "output": usage["outputTokens"],
            "cache_read": usage["cacheReadInputTokens"], "cache_write": usage["cacheCreationInputTokens"]});
        records.push(json!({"role": message["role"], "id": n.to_string(), "at": at, "content": content, "usage": usage}));
    }
    Ok(records)
}

/// Goose: a database with all sessions.
pub const GOOSE: PastFormat = PastFormat {
    platform: Platform::Goose,
    folders: &["sessions"],
    source: PastSource::Database(PastDatabase {
        is_file: |path| name(path) == "sessions.db" && is_below(path, "goose"),
        tables: &["sessions", "messages", "schema_version"],
        foreign_table: "",
        sessions: |rows, _| {
            let session = |row: &super::past::Columns| {
                let text = |key: &str| row.get(key)?.as_str().map(String::from);
                Some(PastPart {
                    id: text("id")?,
                    size: 0,
                    modified_at: time_of(row.get("updated_at")?)?,
                    cwd: text("working_dir"),
                })
            };
            Ok(rows.all("sessions")?.iter().filter_map(session).collect())
        },
        records: goose_records,
    }),
    reader: |options| reader(Platform::Goose, options),
    ..PastFormat::LINES
};

/// A time as a database has it: a number of seconds or milliseconds, or a text of SQLite (UTC).
fn time_of(value: &Value) -> Option<Millis> {
    let of_text = |text: &str| {
        let text = if text.contains('T') { text.to_string() } else { format!("{}Z", text.replace(' ', "T")) };
        text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond)
    };
    millis_of(value).or_else(|| of_text(value.as_str()?))
}

/// The JSON in a column.
fn parsed(value: Option<&Value>) -> Value {
    value.and_then(Value::as_str).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

fn goose_records(rows: &dyn Rows, part: &PastPart) -> Result<Vec<Value>> {
    let mut records = vec![json!({"session": part.id, "cwd": part.cwd})];
    for (n, row) in rows.with("messages", "session_id", &part.id, &["created_timestamp", "id"])?.iter().enumerate() {
        let content = parsed(row.get("content_json"));
        let block = |block: &Value| match block["type"].as_str() {
            Some("toolRequest") => {
                let call = &block["toolCall"]["value"];
                json!({"type": "tool_use", "id": block["id"], "name": call["name"], "input": call["arguments"]})
            }
            Some("toolResponse") => {
                let result = &block["toolResult"];
                let value = &result["value"];
                let content = if value["content"].is_array() { &value["content"] } else { field(result, &["value", "error"]) };
                let is_error = result["status"] == "error" || value["isError"] == true;
                json!({"type": "tool_result", "tool_use_id": block["id"], "is_error": is_error, "content": content})
            }
            _ => block.clone(),
        };
        let content: Vec<Value> = blocks(&content).map(block).collect();
        let at = row.get("created_timestamp").and_then(time_of);
        records.push(json!({"role": row.get("role"), "id": n.to_string(), "at": at, "content": content}));
    }
    Ok(records)
}

/// Crush: a database in each project.
pub const CRUSH: PastFormat = PastFormat {
    platform: Platform::Crush,
    in_project: Some(".crush/crush.db"),
    source: PastSource::Database(PastDatabase {
        is_file: |path| name(path) == "crush.db",
        tables: &["sessions", "messages", "files", "goose_db_version"],
        foreign_table: "",
        sessions: |rows, path| {
            let cwd = path.parent().and_then(Path::parent).and_then(Path::to_str).map(String::from);
            let session = |row: &super::past::Columns| {
                let modified_at = time_of(row.get("updated_at")?)?;
                Some(PastPart { id: row.get("id")?.as_str()?.to_string(), size: 0, modified_at, cwd: cwd.clone() })
            };
            // A session with a parent is a subagent's: its work is in the parent's calls.
            let all = rows.all("sessions")?;
            Ok(all.iter().filter(|row| row.get("parent_session_id").is_none_or(Value::is_null)).filter_map(session).collect())
        },
        records: crush_records,
    }),
    reader: |options| reader(Platform::Crush, options),
    ..PastFormat::LINES
};

fn crush_records(rows: &dyn Rows, part: &PastPart) -> Result<Vec<Value>> {
    let mut records = vec![json!({"session": part.id, "cwd": part.cwd})];
    for row in rows.with("messages", "session_id", &part.id, &["created_at", "id"])? {
        let parts = parsed(row.get("parts"));
        let block = |part: &Value| {
            let data = &part["data"];
            Some(match part["type"].as_str()? {
                "text" => json!({"type": "text", "text": data["text"]}),
                "tool_call" => {
                    json!({"type": "tool_use", "id": data["id"], "name": data["name"], "input": parsed(data.get("input"))})
                }
                "tool_result" => {
                    json!({"type": "tool_result", "tool_use_id": data["tool_call_id"], "is_error": data["is_error"], "content": data["content"]})
                }
                _ => return None,
            })
        };
        let content: Vec<Value> = blocks(&parts).filter_map(block).collect();
        // Results are messages of a role of their own.
        let role = row.get("role").and_then(Value::as_str).map(|role| if role == "tool" { "user" } else { role });
        records
            .push(json!({"role": role, "id": row.get("id"), "at": row.get("created_at").and_then(time_of), "content": content}));
    }
    Ok(records)
}

/// Zed: a database with all threads, each a compressed document without times: those of the thread count.
pub const ZED: PastFormat = PastFormat {
    platform: Platform::Zed,
    folders: &["threads"],
    source: PastSource::Database(PastDatabase {
        is_file: |path| name(path) == "threads.db",
        tables: &["threads"],
        foreign_table: "messages",
        sessions: |rows, _| {
            // A thread with a parent is a subagent's: its work is in the parent's calls.
            let own = |row: &&super::past::Columns| row.get("parent_id").is_none_or(Value::is_null);
            let all = rows.all_of("threads", &["id", "parent_id", "folder_paths", "updated_at"])?;
            let thread = |row: &super::past::Columns| {
                let cwd = row.get("folder_paths").and_then(|paths| paths.as_str()?.lines().next()).map(String::from);
                let modified_at = time_of(row.get("updated_at")?)?;
                Some(PastPart { id: row.get("id")?.as_str()?.to_string(), size: 0, modified_at, cwd })
            };
            Ok(all.iter().filter(own).filter_map(thread).collect())
        },
        records: zed_records,
    }),
    reader: |options| reader(Platform::Zed, options),
    ..PastFormat::LINES
};

fn zed_records(rows: &dyn Rows, part: &PastPart) -> Result<Vec<Value>> {
    let rows = rows.with("threads", "id", &part.id, &[])?;
    let Some(row) = rows.first() else { return Ok(Vec::new()) };
    let thread = unpacked_thread(row.get("data").and_then(Value::as_str).unwrap_or_default())?;
    let worktree = &thread["initial_project_snapshot"]["worktree_snapshots"][0];
    let cwd = part.cwd.as_deref().or(worktree["worktree_path"].as_str());
    let began = row.get("created_at").and_then(time_of).unwrap_or(part.modified_at);
    Ok(zed_messages(&thread, &part.id, began.min(part.modified_at), cwd))
}

/// The document of a thread: JSON, or bytes of zstd in hexadecimal digits.
fn unpacked_thread(data: &str) -> Result<Value> {
    if data.starts_with('{') {
        return Ok(serde_json::from_str(data)?);
    }
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap_or_default(), 16);
    let bytes = data.as_bytes().chunks(2).map(byte).collect::<Result<Vec<u8>, _>>()?;
    let decoder = StreamingDecoder::new(bytes.as_slice())?;
    Ok(serde_json::from_reader(decoder.take(DOCUMENT_BYTES))?)
}

/// Messages of a thread. Before version 0.3.0 they had roles and segments.
fn zed_messages(thread: &Value, session: &str, began: Millis, cwd: Option<&str>) -> Vec<Value> {
    let mut records = vec![json!({"session": session, "cwd": cwd})];
    for (n, message) in blocks(&thread["messages"]).enumerate() {
        let (id, at) = (n.to_string(), began + n as Millis * 1000);
        let user = field(message, &["User"]);
        let (agent, older) = (field(message, &["Agent"]), &message["segments"]);
        let said = |content: &Value| {
            let texts = blocks(content).filter_map(|part| field(part, &["Text", "text"]).as_str());
            texts.collect::<Vec<_>>().join("\n")
        };
        if message["role"] == "user" || user.is_object() {
            let content = if older.is_array() { older } else { &user["content"] };
            records.push(json!({"role": "user", "id": id, "at": at, "content": prompt(&said(content))}));
            continue;
        }
        let content = if older.is_array() { older } else { &agent["content"] };
        let uses = blocks(content).map(|part| &part["ToolUse"]).chain(blocks(&message["tool_uses"]));
        let uses: Vec<&Value> = uses.filter(|call| call.is_object()).collect();
        let text = Some(said(content)).filter(|text| !text.trim().is_empty()).map(|text| json!({"type": "text", "text": text}));
        let calls = uses.iter().map(|call| {
            json!({"type": "tool_use", "id": call["id"], "name": call["name"], "input": with_absolute_path(&call["input"], cwd)})
        });
        let answer: Vec<Value> = text.into_iter().chain(calls).collect();
        records.push(json!({"role": "assistant", "id": id, "at": at, "content": answer}));
        let results = agent["tool_results"].as_object().into_iter().flat_map(|all| all.values());
        let result = |result: &Value| {
            let content = &result["content"];
            let text = content.as_str().map_or_else(|| said(content), String::from);
            let text = if content.is_object() { said(&json!([content])) } else { text };
            json!({"type": "tool_result", "tool_use_id": result["tool_use_id"], "is_error": result["is_error"], "content": with_exit_code_of_zed(&text)})
        };
        let results: Vec<Value> = results.chain(blocks(&message["tool_results"])).map(result).collect();
        if !results.is_empty() {
            records.push(json!({"role": "user", "id": id, "at": at, "content": results}));
        }
    }
    records
}

/// Writes a failed command's exit code as other agents do: `Command "ls x" failed with exit code 2.`, then the output.
fn with_exit_code_of_zed(said: &str) -> String {
    let failed = said.strip_prefix("Command \"").and_then(|rest| rest.split_once(" failed with exit code "));
    let code = failed.and_then(|(_, rest)| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<i64>().ok());
    code.map_or_else(|| said.to_string(), |code| format!("{said}\nCommand exited with code {code}"))
}

/// Zed's paths begin with the name of the project's folder.
fn with_absolute_path(input: &Value, cwd: Option<&str>) -> Value {
    let mut input = input.clone();
    let above = cwd.map(Path::new).and_then(|cwd| Some((cwd.parent()?, cwd.file_name()?)));
    if let (Some((above, folder)), Some(path)) = (above, input["path"].as_str())
        && Path::new(path).starts_with(folder)
    {
        input["path"] = json!(above.join(path));
    }
    input
}

/// Aider: one Markdown file in each project. Of the calls it has only the files that were edited.
pub const AIDER: PastFormat = PastFormat {
    platform: Platform::Aider,
    in_project: Some(AIDER_FILE),
    source: documents(|path| name(path) == AIDER_FILE, aider_records),
    folder: |path| path.parent()?.to_str().map(String::from),
    reader: |options| reader(Platform::Aider, options),
    ..PastFormat::LINES
};

const AIDER_FILE: &str = ".aider.chat.history.md";

fn aider_records(path: &Path) -> Result<Vec<Value>> {
    let text = String::from_utf8_lossy(&files::part(path, 0..DOCUMENT_BYTES)?).into_owned();
    Ok(aider_messages(&text, &path.display().to_string(), path.parent().and_then(Path::to_str)))
}

/// Messages in the text of Aider's history. `####` is a line of the person, `>` one of the program.
fn aider_messages(text: &str, path: &str, cwd: Option<&str>) -> Vec<Value> {
    let mut records = vec![json!({"session": stable_uuid(path), "cwd": cwd})];
    let (mut at, mut said, mut answer): (Millis, Vec<&str>, Vec<&str>) = (0, Vec::new(), Vec::new());
    let add = |role: &str, content: Value, at: &mut Millis, records: &mut Vec<Value>| {
        *at += 1000;
        records.push(json!({"role": role, "id": records.len().to_string(), "at": *at, "content": content}));
    };
    for line in text.lines().chain(["#### "]) {
        let prompt_line = line.strip_prefix("####").map(str::trim);
        if prompt_line.is_none() && !said.is_empty() {
            // A command is no request.
            let request = std::mem::take(&mut said).join("\n");
            if !request.trim().is_empty() && !request.starts_with('/') {
                add("user", prompt(&request), &mut at, &mut records);
            }
        }
        let edited = line.strip_prefix("> Applied edit to ");
        // The edits of an answer come after it, and before its end for a reader.
        if prompt_line.is_some() && answer.iter().any(|line| !line.trim().is_empty()) {
            add("assistant", prompt(std::mem::take(&mut answer).join("\n").trim()), &mut at, &mut records);
        }
        if let Some(started) = line.strip_prefix("# aider chat started at ") {
            // Local time.
            let civil = started.trim().replace(' ', "T").parse::<jiff::civil::DateTime>();
            let zoned = civil.ok().and_then(|civil| civil.to_zoned(jiff::tz::TimeZone::system()).ok());
            at = zoned.map_or(at, |zoned| zoned.timestamp().as_millisecond());
        } else if let Some(line) = prompt_line {
            said.push(line);
        } else if let Some(file) = edited {
            let id = format!("edit-{}", records.len());
            let file = cwd.map_or(file.trim().to_string(), |cwd| format!("{cwd}/{}", file.trim()));
            add(
                "assistant",
                json!([{"type": "tool_use", "id": id, "name": "Edit", "input": {"file_path": file}}]),
                &mut at,
                &mut records,
            );
            add("user", json!([{"type": "tool_result", "tool_use_id": id, "content": "Applied"}]), &mut at, &mut records);
        } else if !line.starts_with('>') {
            answer.push(line);
        }
    }
    records
}

/// Cline, Roo and Kilo as extensions of VS Code: a folder for each task, with the messages to the model.
pub const CLINE_CODE: PastFormat = PastFormat {
    platform: Platform::Cline,
    folders: &["globalStorage/saoudrizwan.claude-dev/tasks"],
    source: documents(|path| is_task(path, "saoudrizwan.claude-dev"), task_records),
    folder: task_folder,
    reader: |options| reader(Platform::Cline, options),
    ..PastFormat::LINES
};

pub const KILO_CODE: PastFormat = PastFormat {
    platform: Platform::Kilo,
    folders: &["globalStorage/kilocode.kilo-code/tasks"],
    source: documents(|path| is_task(path, "kilocode.kilo-code"), task_records),
    reader: |options| reader(Platform::Kilo, options),
    ..CLINE_CODE
};

/// Roo, and any task outside of an extension's folder.
pub const ROO: PastFormat = PastFormat {
    platform: Platform::Roo,
    folders: &["globalStorage/rooveterinaryinc.roo-cline/tasks"],
    source: documents(
        |path| is_task(path, "") && !is_below(path, "saoudrizwan.claude-dev") && !is_below(path, "kilocode.kilo-code"),
        task_records,
    ),
    reader: |options| reader(Platform::Roo, options),
    ..CLINE_CODE
};

fn is_task(path: &Path, extension: &str) -> bool {
    name(path) == "api_conversation_history.json" && (extension.is_empty() || is_below(path, extension))
}

/// The folder that the notes about the environment name.
fn task_folder(path: &Path) -> Option<String> {
    let messages = document(path, DOCUMENT_BYTES).ok()?;
    let texts =
        blocks(&messages).take(4).flat_map(|message| blocks(&message["content"])).filter_map(|block| block["text"].as_str());
    texts.filter_map(workspace).next()
}

fn workspace(text: &str) -> Option<String> {
    let named =
        ["# Current Workspace Directory (", "# Current Working Directory ("].into_iter().find_map(|head| text.split_once(head));
    Some(named?.1.split_once(')')?.0.to_string())
}

fn task_records(path: &Path) -> Result<Vec<Value>> {
    let messages = document(path, DOCUMENT_BYTES)?;
    let id = folder_name(path);
    // A task's folder is named after its time, or by a UUID.
    let began = id.parse().ok().or_else(|| files::changed_at(path)).unwrap_or_default();
    Ok(task_messages(&messages, id, began, task_folder(path)))
}

/// Messages of a task. Older versions write calls as XML in texts, and their results as texts that name the call.
fn task_messages(messages: &Value, session: &str, began: Millis, cwd: Option<String>) -> Vec<Value> {
    let mut records = vec![json!({"session": session, "cwd": cwd})];
    let mut open: Option<String> = None;
    for (n, message) in blocks(messages).enumerate() {
        let at = message["ts"].as_i64().unwrap_or(began + n as Millis * 1000);
        let mut content = Vec::new();
        let texts = message["content"].as_str().map(|text| json!({"type": "text", "text": text}));
        let own: Vec<Value> = texts.into_iter().chain(blocks(&message["content"]).cloned()).collect();
        for block in own {
            match (message["role"].as_str(), block["text"].as_str()) {
                (Some("assistant"), Some(text)) => {
                    let (said, call) = xml_call(text);
                    content.extend((!said.is_empty()).then(|| json!({"type": "text", "text": said})));
                    if let Some((name, input)) = call {
                        let id = format!("call-{n}");
                        content.push(json!({"type": "tool_use", "id": id, "name": name, "input": input}));
                        open = Some(id);
                    }
                }
                (Some("user"), Some(text)) => {
                    let text = without_details(text);
                    if let Some(id) = open.as_ref().filter(|_| text.starts_with('[') && text.contains("] Result:")) {
                        let said = text.split_once("] Result:").map_or(text.as_str(), |(_, said)| said);
                        content.push(json!({"type": "tool_result", "tool_use_id": id, "content": said, "is_error": said.contains("<error>") || is_failure(said)}));
                        open = None;
                    } else if let Some(request) =
                        ["task", "user_message", "feedback", "answer"].iter().find_map(|tag| inside(&text, tag))
                    {
                        content.push(json!({"type": "text", "text": request}));
                    } else if open.is_none() && !text.trim().is_empty() && !text.starts_with(['[', '<']) {
                        content.push(json!({"type": "text", "text": text}));
                    }
                }
                _ => content.push(block),
            }
        }
        records.push(json!({"role": message["role"], "id": n.to_string(), "at": at, "content": content}));
    }
    records
}

/// Returns true if a command's result states an exit code other than 0.
fn is_failure(said: &str) -> bool {
    said.split_once("Exit code: ")
        .is_some_and(|(_, rest)| !rest.trim_start().starts_with('0') && rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn without_details(text: &str) -> String {
    let end = text.find("<environment_details>").unwrap_or(text.len());
    text[..end].trim().to_string()
}

fn inside(text: &str, tag: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("<{tag}>"))?;
    Some(rest.split_once(&format!("</{tag}>"))?.0.trim().to_string())
}

/// Splits an agent's text from the call in it: `<execute_command><command>ls</command></execute_command>`.
fn xml_call(text: &str) -> (String, Option<(&'static str, Value)>) {
    /// Tools and their parameters.
    const TOOLS: [(&str, &[&str]); 8] = [
        ("execute_command", &["command"]),
        ("read_file", &["path"]),
        ("write_to_file", &["path", "content"]),
        ("replace_in_file", &["path", "diff"]),
        ("apply_diff", &["path", "diff"]),
        ("search_files", &["path", "regex"]),
        ("list_files", &["path"]),
        ("attempt_completion", &["result"]),
    ];
    for (tool, parameters) in TOOLS {
        let Some((before, rest)) = text.split_once(&format!("<{tool}>")) else { continue };
        let Some((call, _)) = rest.rsplit_once(&format!("</{tool}>")) else { continue };
        let said = before.split_once("</thinking>").map_or(before, |(_, said)| said).trim();
        if tool == "attempt_completion" {
            return (inside(call, "result").unwrap_or_else(|| said.to_string()), None);
        }
        let input = parameters.iter().filter_map(|name| Some((name.to_string(), json!(inside(call, name)?)))).collect();
        return (said.to_string(), Some((tool, Value::Object(input))));
    }
    (text.trim().to_string(), None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::EventKind;
    use crate::platforms::past::{Found, PastOptions};

    fn story(platform: Platform, records: Vec<Value>) -> Vec<String> {
        let options = PastOptions { path: "/home/dev/x".into(), ..PastOptions::default() };
        let (mut reader, mut found) = (reader(platform, &options), Found::default());
        records.into_iter().enumerate().for_each(|(at, record)| reader.line(record, at as u64, &mut found));
        reader.end(99, true, &mut found);
        let events = found.events.iter().map(|event| match &event.what {
            EventKind::UserPrompt { text } => format!("prompt {text}"),
            EventKind::ToolUsed(tool) => {
                format!("{} {} {:?}", tool.name, tool.content.as_deref().unwrap_or("-"), tool.succeeded.unwrap_or_default())
            }
            EventKind::TurnEnded { closing, .. } => format!("closing {}", closing.as_deref().unwrap_or_default()),
            EventKind::SessionStarted(_) => format!("start in {}", event.cwd.as_deref().unwrap_or_default()),
            EventKind::SessionEnded { .. } => "end".into(),
            other => format!("{other:?}"),
        });
        events.collect()
    }

    #[test]
    fn aiders_history_is_requests_answers_and_edited_files() {
        let text = "# aider chat started at 2026-11-20 10:00:00\n\n> aider --model x\n\n#### /add a.py\n\n> Added a.py\n\n#### Make it friendlier.\n#### Use f-strings.\n\nI will change it.\n\n> Applied edit to a.py  \n> Commit 1234567 feat: friendlier  \n\n#### thanks\n\nYou are welcome.\n";
        assert_eq!(
            story(Platform::Aider, aider_messages(text, "/p/.aider.chat.history.md", Some("/p"))),
            [
                "start in /p",
                "prompt Make it friendlier.\nUse f-strings.",
                "Edit /p/a.py true",
                "closing I will change it.",
                "prompt thanks",
                "closing You are welcome.",
                "end"
            ]
        );
    }

    #[test]
    fn a_task_of_an_extension_has_its_calls_in_texts() {
        let user = |text: &str| json!({"role": "user", "content": [{"type": "text", "text": text}]});
        let agent = |text: &str| json!({"role": "assistant", "content": [{"type": "text", "text": text}]});
        let details = "<environment_details>\n# Current Workspace Directory (/p) Files\na.py\n</environment_details>";
        let messages = json!([
            {"role": "user", "content": [{"type": "text", "text": "<task>\nMake it friendlier\n</task>"}, {"type": "text", "text": details}]},
            agent("<thinking>x</thinking>\nFirst a look.\n<execute_command>\n<command>ls /nonexistent</command>\n</execute_command>"),
            user("[execute_command for 'ls /nonexistent'] Result:\nExit code: 2\nOutput:\nno such file"),
            agent("<write_to_file>\n<path>a.py</path>\n<content>print(1)</content>\n</write_to_file>"),
            user("[write_to_file for 'a.py'] Result:\nThe content was saved."),
            agent("<attempt_completion>\n<result>It is friendlier now.</result>\n</attempt_completion>"),
        ]);
        assert_eq!(workspace(details).as_deref(), Some("/p"));
        assert_eq!(
            story(Platform::Roo, task_messages(&messages, "1795251600000", 1_795_251_600_000, Some("/p".into()))),
            [
                "start in /p",
                "prompt Make it friendlier",
                "execute_command ls /nonexistent false",
                "write_to_file a.py true",
                "closing It is friendlier now.",
                "end"
            ]
        );
    }
}
