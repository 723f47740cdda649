//! Agent JSON ⇄ events: the only place that knows the names of a hook's fields.
//!
//! An adapter has a room of its own. It never fails on what it doesn't know: an event it has no use for is `None`, a field
//! of the wrong type is as good as absent.
//!
//! Read in this order: `intake` and `slimmer` (stdin, whatever it holds), `surroundings`, `claude` (the adapter),
//! `transcript`, `settings` (hooks in a settings file).

pub mod claude;
pub mod intake;
pub mod settings;
mod slimmer;
mod surroundings;
pub mod transcript;

pub use surroundings::Surroundings;

use crate::model::{Event, Moment, Platform};
use serde_json::{Value, json};

/// Makes an event of a hook's JSON; `None` where there is nothing to store. The error says what the payload lacks.
pub fn decode(platform: Platform, payload: &Value, around: &Surroundings) -> Result<Option<Event>, String> {
    match platform {
        Platform::ClaudeCode => claude::decode(payload, around),
        // A program of one's own speaks as Claude Code does.
        Platform::Custom => Ok(claude::decode(payload, around)?.map(|event| Event { platform, ..event })),
    }
}

/// What a hook may answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// For the agent.
    pub context: Option<String>,
    /// One line for the person.
    pub message: Option<String>,
}

/// Writes the answer to a session's start, a prompt, or a file that is about to be changed, as the platform accepts it;
/// `None` where there is nothing to say: then nothing may be printed.
pub fn encode(platform: Platform, moment: Moment, answer: &Answer) -> Option<String> {
    let (Platform::ClaudeCode | Platform::Custom) = platform;
    let event = match moment {
        Moment::Start | Moment::Compaction => "SessionStart",
        Moment::Prompt => "UserPromptSubmit",
        Moment::File => "PreToolUse",
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
