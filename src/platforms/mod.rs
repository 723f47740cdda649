//! Agent JSON ⇄ events: the only place that knows a hook's field names.
//!
//! Each adapter has a folder. It never fails on unknown input: an event without a use decodes to `None`, and a field of
//! the wrong type counts as absent.
//!
//! Read in this order: `payload`, `bounded_json` and `json_repair` (stdin, whatever it contains), `decode_context`,
//! `claude`, `codex` and `copilot` (the adapters), `transcript`, `past` and `patch` (session files), `other_memory` and
//! `claude_mem` (memories of other programs), `settings` (hooks in a settings file).

mod bounded_json;
pub mod claude;
pub mod claude_mem;
mod codex;
mod copilot;
mod decode_context;
mod json_repair;
pub mod other_memory;
pub mod past;
mod patch;
pub mod payload;
pub mod settings;
pub mod transcript;

pub use decode_context::DecodeContext;
use past::PastFormat;

use crate::model::{Event, InjectionPoint, Platform};
use serde_json::{Value, json};

/// Formats of session files, in the order in which a file is matched against them.
pub const FORMATS: [PastFormat; 4] = [claude::PAST, codex::PAST, copilot::CLI, copilot::VS_CODE];

/// Decodes a hook's JSON; `None` if there is nothing to store. The error says what the payload lacks.
pub fn decode(platform: Platform, payload: &Value, around: &DecodeContext) -> Result<Option<Event>, String> {
    match platform {
        Platform::ClaudeCode => claude::decode(payload, around),
        // The others send Claude Code's format.
        _ => Ok(claude::decode(payload, around)?.map(|event| Event { platform, ..event })),
    }
}

/// A hook's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookAnswer {
    /// For the agent.
    pub context: Option<String>,
    /// One line for the person.
    pub message: Option<String>,
}

/// Encodes an answer in the platform's format; `None` if there is nothing to say, and then nothing may be printed.
pub fn encode(platform: Platform, point: InjectionPoint, answer: &HookAnswer) -> Option<String> {
    let (Platform::ClaudeCode | Platform::Codex | Platform::CopilotCli | Platform::VsCode | Platform::Custom) = platform;
    let event = match point {
        InjectionPoint::Start | InjectionPoint::Compaction => "SessionStart",
        InjectionPoint::Prompt => "UserPromptSubmit",
        InjectionPoint::File => "PreToolUse",
        InjectionPoint::Subagent => "SubagentStart",
    };
    let mut json = serde_json::Map::new();
    if let Some(message) = &answer.message {
        json.insert("systemMessage".into(), json!(message));
    }
    if let Some(context) = &answer.context {
        json.insert("hookSpecificOutput".into(), json!({"hookEventName": event, "additionalContext": context}));
    }
    (!json.is_empty()).then(|| Value::Object(json).to_string())
}
