//! The trait of a platform, and its answers to hooks.

use super::past::PastFormat;
use super::payload::DecodeContext;
use super::settings_file::Setup;
use super::translated::{self, Translated};
use crate::model::{Event, InjectionPoint, Platform};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An agent's interface: its hooks, its answers, its session files.
pub trait Adapter: Sync {
    fn platform(&self) -> Platform;

    /// Returns true if a payload came from this agent. This decides for hooks without `--platform`: some agents run the
    /// hooks in another agent's settings.
    fn recognises(&self, payload: &Value) -> bool;

    /// Translates a payload into Claude Code's format; empty if nothing is stored. A call that changes several files
    /// becomes several calls.
    fn translate(&self, payload: &Value) -> Vec<Translated>;

    /// Decodes a payload. The error names the missing field.
    fn decode(&self, payload: &Value, around: &DecodeContext) -> Result<Vec<Event>, String> {
        translated::decode(self.platform(), self.translate(payload), around)
    }

    /// Encodes an answer to a payload in a format that the agent accepts; `None` prints nothing.
    fn encode(&self, payload: &Value, answer: &HookAnswer) -> Option<String>;

    /// Returns false if a mode of the agent has no event for prompts: they are then read from the session's file.
    fn reports_prompts(&self) -> bool {
        true
    }

    /// Returns the id of a message if a record of the session's file says that the person went back to before it.
    fn rewound_to<'a>(&self, _record: &'a Value) -> Option<&'a str> {
        None
    }

    /// Describes what the agent reports, and when it accepts context.
    fn support(&self) -> Support;

    /// Describes how to install the agent's hooks; `None` if the agent has none.
    fn setup(&self) -> Option<&'static Setup>;

    /// The formats of its session files.
    fn past(&self) -> &'static [PastFormat] {
        &[]
    }

    /// The agent's own command that resumes a session: program and arguments, with `{session}` for its id. Empty if
    /// there is none.
    fn resume(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns true if exit codes must be read from the transcript, because hooks do not report them.
    fn reports_exit_codes_in_transcript(&self) -> bool {
        false
    }

    /// The exit code of a call, from the end of the transcript.
    fn exit_code(&self, _transcript: &[u8], _call: &str) -> Option<i64> {
        None
    }

    /// Returns true if the agent's last message must be read from the transcript, because hooks do not report it, or
    /// report it together with other text.
    fn keeps_closing_in_transcript(&self) -> bool {
        false
    }

    /// The agent's last message, from the end of the transcript.
    fn closing(&self, _transcript: &[u8]) -> Option<String> {
        None
    }

    /// Returns true if the session's file begins again with each turn.
    fn has_file_per_turn(&self) -> bool {
        false
    }

    /// The session's file below the agent's folder, if hooks do not name it.
    fn session_file(&self, _session: &str, _folder: &Path) -> Option<PathBuf> {
        None
    }

    /// Maximum time for which the transcript may lack that message after the turn's end is reported.
    fn closing_wait(&self) -> Duration {
        Duration::ZERO
    }
}

/// A hook's answer. It is empty if it has neither context nor message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookAnswer {
    pub point: InjectionPoint,
    /// Text for the agent.
    pub context: Option<String>,
    /// One line for the person.
    pub message: Option<String>,
}

impl HookAnswer {
    /// Creates an answer for the person only, at a session start.
    pub fn for_person(message: String) -> HookAnswer {
        HookAnswer { message: Some(message), ..HookAnswer::default() }
    }
}

/// An agent's support for context at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    Possible,
    /// The agent accepts context, but not reliably. Holds the known details.
    Unreliable(&'static str),
    /// Holds the reason, or an alternative.
    NotPossible(&'static str),
}

/// An agent's reports, and the moments at which it accepts context.
#[derive(Clone, Copy, Debug)]
pub struct Support {
    /// Source of a call's outcome.
    pub outcome: &'static str,
    /// Source of information about failed calls.
    pub failures: &'static str,
    /// Source of token counts.
    pub tokens: &'static str,
    pub start: Moment,
    pub prompt: Moment,
    pub edit: Moment,
    pub subagent: Moment,
    pub compaction: Moment,
    /// True if the agent accepts context with the result of a call, and not at a session start.
    pub takes_results: bool,
    /// True if a resumed session still has the context of its first start.
    pub keeps_start_context: bool,
    /// Maximum bytes of context that arrive uncut; `None` if no limit is known.
    pub context_bytes: Option<usize>,
}

impl Support {
    /// Returns true if the agent accepts context at a point.
    pub fn takes(&self, point: InjectionPoint) -> bool {
        !matches!(self.moment(point), Moment::NotPossible(_))
    }

    fn moment(&self, point: InjectionPoint) -> Moment {
        match point {
            InjectionPoint::Start => self.start,
            InjectionPoint::Compaction => self.compaction,
            InjectionPoint::Prompt => self.prompt,
            InjectionPoint::File => self.edit,
            InjectionPoint::Subagent => self.subagent,
        }
    }
}

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
