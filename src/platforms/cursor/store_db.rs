//! Chat databases of `cursor-agent`: `meta` names the newest root, whose digests name the messages in order.

use crate::files;
use crate::platforms::past::text_of;
use crate::platforms::past_source::{Columns, PastPart, Rows, timestamp};
use anyhow::Result;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;

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
pub fn sessions(rows: &dyn Rows, path: &Path) -> Result<Vec<PastPart>> {
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
pub fn records(rows: &dyn Rows, part: &PastPart) -> Result<Vec<Value>> {
    let about = about(rows)?;
    let blobs: HashMap<String, String> =
        rows.all("blobs")?.iter().map(|row| (text(row, "id").to_lowercase(), text(row, "data").to_string())).collect();
    let root = about["latestRootBlobId"].as_str().unwrap_or_default().to_lowercase();
    let digests = blobs.get(&root).map(|data| digests(&bytes(data))).unwrap_or_default();
    let messages: Vec<Value> = digests.iter().filter_map(|digest| serde_json::from_str(blobs.get(digest)?).ok()).collect();
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
}
