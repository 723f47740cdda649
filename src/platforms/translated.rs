//! Payloads in Claude Code's format, the only format that nmem decodes. Adapters of other agents translate into it.

use super::claude;
use super::decode_context::DecodeContext;
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

/// Returns the first field of `names` that has a value: platforms spell the same name in different ways.
pub fn field<'a>(payload: &'a Value, names: &[&str]) -> &'a Value {
    names.iter().map(|name| &payload[*name]).find(|value| !value.is_null()).unwrap_or(&Value::Null)
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

/// Parses JSON inside a string; returns any other value as it is.
pub fn unpacked(value: &Value) -> Value {
    let parsed = value.as_str().filter(|text| text.trim_start().starts_with(['{', '['])).map(serde_json::from_str);
    match parsed {
        Some(Ok(inside)) => inside,
        _ => value.clone(),
    }
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
