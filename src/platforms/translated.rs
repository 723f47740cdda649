//! Tool calls of other agents, and patches, as the calls of Claude Code that the rules know.

use super::claude;
use super::payload::DecodeContext;
pub use super::payload::{field, unpacked};
use crate::model::{Event, EventKind, Platform};
use serde_json::{Map, Value, json};

/// A payload in Claude Code's format.
#[derive(Clone, Debug, PartialEq)]
pub struct Translated {
    pub payload: Value,
    /// The tool's name on its own platform. The call is stored under this name.
    pub tool: Option<String>,
}

/// A tool call as an agent's hook reports it.
#[derive(Clone, Debug)]
pub struct HookCall<'a> {
    pub id: &'a Value,
    /// The tool's own name.
    pub name: &'a str,
    /// The equivalent Claude Code calls: names and inputs.
    pub like: Vec<(String, Value)>,
    /// `None` before the call; otherwise its response, or the reason why it failed.
    pub result: Option<Result<Value, String>>,
    pub duration_ms: &'a Value,
}

/// The name of a payload's event.
pub fn event_name(payload: &Value) -> &str {
    field(payload, &["hook_event_name", "hookEventName"]).as_str().unwrap_or_default()
}

/// The agent's working directory, under any platform's name for it.
pub fn cwd(payload: &Value) -> Option<&str> {
    payload["cwd"].as_str().filter(|cwd| !cwd.is_empty()).or_else(|| payload["workspace_roots"].get(0)?.as_str())
}

/// The agent's session id, under any platform's name for it.
pub fn session_id(payload: &Value) -> Option<&str> {
    field(payload, &["conversation_id", "session_id", "sessionId"]).as_str()
}

/// Converts a command's output: its text, or the error if the exit code is not 0.
pub fn command_result(text: &str, exit_code: Option<i64>) -> Result<Value, String> {
    match exit_code {
        Some(code) if code != 0 => Err(format!("Exit code {code}\n{text}")),
        _ => Ok(json!({"stdout": text})),
    }
}

/// Copies the fields that all payloads share, under Claude Code's name for the event. Copies nothing else: platforms
/// also send personal data.
pub fn payload(event: &str, from: &Value) -> Value {
    let mut payload = Map::new();
    payload.insert("hook_event_name".into(), json!(event));
    const FIELDS: [(&str, &[&str]); 13] = [
        ("session_id", &["conversation_id", "session_id", "sessionId"]),
        ("transcript_path", &["transcript_path", "transcriptPath"]),
        ("cwd", &["cwd"]),
        ("timestamp", &["timestamp"]),
        ("prompt_id", &["prompt_id"]),
        ("agent_id", &["agent_id", "agentId"]),
        ("agent_type", &["agent_type", "agentType", "agent_name", "agentName"]),
        ("source", &["source"]),
        ("model", &["model"]),
        ("prompt", &["prompt"]),
        ("reason", &["reason"]),
        ("trigger", &["trigger"]),
        ("last_assistant_message", &["last_assistant_message", "lastAssistantMessage"]),
    ];
    for (name, names) in FIELDS {
        let value = field(from, names);
        if !value.is_null() {
            payload.insert(name.into(), value.clone());
        }
    }
    Value::Object(payload)
}

/// Wraps the payload of an event without a tool.
pub fn event(payload: Value) -> Vec<Translated> {
    vec![Translated { payload, tool: None }]
}

/// Translates a tool call into one payload per equivalent Claude Code call. `from` is the agent's payload.
pub fn call(from: &Value, call: HookCall) -> Vec<Translated> {
    let event = match &call.result {
        None => "PreToolUse",
        Some(Ok(_)) => "PostToolUse",
        Some(Err(_)) => "PostToolUseFailure",
    };
    let head = payload(event, from);
    let one = |(n, (like, input)): (usize, (String, Value))| {
        let mut payload = head.clone();
        payload["tool_use_id"] = match call.id.as_str() {
            Some(id) if n > 0 => json!(format!("{id}-{}", n + 1)),
            _ => call.id.clone(),
        };
        payload["tool_name"] = json!(like);
        payload["tool_input"] = input;
        payload["duration_ms"] = call.duration_ms.clone();
        match &call.result {
            None => {}
            Some(Ok(response)) => payload["tool_response"] = response.clone(),
            Some(Err(error)) => payload["error"] = json!(error),
        }
        Translated { payload, tool: Some(call.name.to_string()) }
    };
    call.like.into_iter().enumerate().map(one).collect()
}

/// Decodes translated payloads.
pub fn decode(platform: Platform, translated: Vec<Translated>, around: &DecodeContext) -> Result<Vec<Event>, String> {
    let mut events = Vec::new();
    for Translated { payload, tool } in translated {
        if tool.as_ref().is_some_and(|tool| around.skip_tools.contains(tool)) {
            continue;
        }
        let Some(mut event) = claude::decode(&payload, around)? else { continue };
        event.platform = platform;
        // A subagent's prompt was not typed by a person.
        if matches!(event.what, EventKind::UserPrompt { .. }) && event.agent.is_some() {
            continue;
        }
        if let (EventKind::ToolUsed(used), Some(tool)) = (&mut event.what, tool) {
            used.name = tool;
        }
        events.push(event);
    }
    Ok(events)
}

/// Returns the files that a patch's headers name, each with true if it is added.
pub fn files_of_patch(patch: &str) -> Vec<(String, bool)> {
    patch.lines().filter_map(file_of_header).collect()
}

/// Returns the file that a header line names, with true if it is added.
fn file_of_header(line: &str) -> Option<(String, bool)> {
    let named = |header: &str| line.strip_prefix(header).map(|path| path.trim().to_string());
    let added = named("*** Add File: ").map(|path| (path, true));
    added.or_else(|| Some((named("*** Update File: ").or_else(|| named("*** Delete File: "))?, false)))
}

/// Converts a patch to Claude Code calls that change its files: names and inputs, with the lines of each file.
pub fn changes_like(patch: &str) -> Vec<(String, Value)> {
    let mut changes: Vec<(String, bool, [String; 2])> = Vec::new();
    for line in patch.lines() {
        if let Some((path, added)) = file_of_header(line) {
            changes.push((path, added, Default::default()));
        } else if let Some((_, _, [old, new])) = changes.last_mut() {
            let side = match line.bytes().next() {
                Some(b'-') => old,
                Some(b'+') => new,
                _ => continue,
            };
            *side += &line[1..];
            side.push('\n');
        }
    }
    let call = |(path, added, [old, new]): (String, bool, [String; 2])| match added {
        true => ("Write".to_string(), json!({"file_path": path, "content": new})),
        false => ("Edit".to_string(), json!({"file_path": path, "old_string": old, "new_string": new})),
    };
    changes.into_iter().map(call).collect()
}

/// Converts the hunks of a unified diff to a structured patch.
pub fn hunks(diff: &str) -> Value {
    let mut hunks: Vec<Value> = Vec::new();
    for line in diff.lines() {
        let numbers = line.strip_prefix("@@ -").and_then(|head| head.split_once(" +"));
        match (numbers, hunks.last_mut()) {
            (Some((old, new)), _) => {
                let start = |text: &str| text.split([',', ' ']).next().and_then(|n| n.parse::<i64>().ok()).unwrap_or(0);
                hunks.push(json!({"oldStart": start(old), "newStart": start(new), "lines": []}));
            }
            (None, Some(hunk)) => {
                if let Some(lines) = hunk["lines"].as_array_mut() {
                    lines.push(Value::from(line));
                }
            }
            (None, None) => {}
        }
    }
    Value::Array(hunks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_patch_names_its_files_and_a_diff_has_hunks() {
        let patch = "*** Begin Patch\n*** Add File: a.rs\n+fn a() {}\n*** Update File: /p/b.rs\n@@\n-x\n+y\n*** End Patch";
        assert_eq!(files_of_patch(patch), [("a.rs".to_string(), true), ("/p/b.rs".to_string(), false)]);
        let changes = changes_like(patch);
        assert_eq!(changes[0].1, json!({"file_path": "a.rs", "content": "fn a() {}\n"}));
        assert_eq!(changes[1].1, json!({"file_path": "/p/b.rs", "old_string": "x\n", "new_string": "y\n"}));
        let hunks = hunks("@@ -4,2 +5,3 @@ fn a\n-x\n+y\n z\n@@ -9 +9 @@\n+w");
        assert_eq!(hunks[0]["lines"].as_array().unwrap().len(), 3);
        assert_eq!((&hunks[0]["newStart"], &hunks[1]["oldStart"]), (&Value::from(5), &Value::from(9)));
    }

    proptest! {
        #[test]
        fn any_patch_is_read(patch in "(?s).{0,300}") {
            let _ = (files_of_patch(&patch), changes_like(&patch), hunks(&patch));
        }
    }
}
