//! Transcripts of `cursor-agent`: messages without timestamps and results. A prompt's text begins with its time.

use crate::platforms::past::text_of;
use crate::platforms::past_source::timestamp;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

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
pub fn record(line: &Value, at: u64) -> Value {
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
    let (at, rest) = stated.map_or((None, text), |(at, rest)| (time(at), rest));
    let query = rest.split_once("<user_query>").and_then(|(_, rest)| rest.split_once("</user_query>"));
    (at, query.map_or(rest, |(query, _)| query).trim())
}

/// Parses a time such as `Sunday, Jul 26, 2026, 1:06 PM (UTC+3)`; returns Unix milliseconds.
fn time(text: &str) -> Option<i64> {
    let (clock, zone) = text.split_once(" (UTC").map_or((text, ""), |(clock, zone)| (clock, zone.trim_end_matches(')')));
    let behind_day = clock.split_once(", ")?.1;
    let at = jiff::civil::DateTime::strptime("%b %d, %Y, %I:%M %p", behind_day).ok()?;
    let (hours, minutes) = zone.split_once(':').unwrap_or((zone, "0"));
    let hours: i64 = if hours.is_empty() { 0 } else { hours.parse().ok()? };
    let offset = hours * 60 + minutes.parse::<i64>().ok()? * hours.signum();
    let utc = at.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_millisecond();
    Some(utc - offset * 60_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
            let _ = time(&text);
        }
    }
}
