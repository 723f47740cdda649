//! The formats in which agents accept an answer. An empty answer prints nothing: some agents show one as an error.

use super::adapter::HookAnswer;
use crate::model::InjectionPoint;
use serde_json::{Map, Value, json};

/// Claude Code's name for the event that accepts context at a point.
pub fn event_of(point: InjectionPoint) -> &'static str {
    match point {
        InjectionPoint::Start | InjectionPoint::Compaction => "SessionStart",
        InjectionPoint::Prompt => "UserPromptSubmit",
        InjectionPoint::File => "PreToolUse",
        InjectionPoint::Subagent => "SubagentStart",
    }
}

/// Encodes an answer in Claude Code's format, which several agents accept: context for the agent, and a message for the
/// person.
pub fn envelope(event: &str, answer: &HookAnswer) -> Option<String> {
    let mut json = Map::new();
    if let Some(message) = &answer.message {
        json.insert("systemMessage".into(), json!(message));
    }
    if let Some(context) = &answer.context {
        json.insert("hookSpecificOutput".into(), json!({"hookEventName": event, "additionalContext": context}));
    }
    (!json.is_empty()).then(|| Value::Object(json).to_string())
}

/// Encodes only the context, under one key.
pub fn context_as(key: &str, answer: &HookAnswer) -> Option<String> {
    answer.context.as_ref().map(|context| json!({ key: context }).to_string())
}
