//! What nmem needs to know of an agent. Each adapter implements it in its own folder, and `platforms::ADAPTERS` lists them.

use super::decode_context::DecodeContext;
use super::past::PastFormat;
use super::setup::Setup;
use super::translated::{self, Translated};
use crate::model::{Event, InjectionPoint, Platform};
use serde_json::Value;
use std::time::Duration;

/// An agent's interface: its hooks, its answers, its session files.
pub trait Adapter: Sync {
    fn platform(&self) -> Platform;

    /// Whether a payload came from this agent. It decides for hooks without `--platform`: some agents run the hooks in
    /// another agent's settings.
    fn recognises(&self, payload: &Value) -> bool;

    /// Translates a payload into Claude Code's form; empty if nothing is stored. One call may change several files, and
    /// then it is several calls.
    fn translate(&self, payload: &Value) -> Vec<Translated>;

    /// Decodes a payload. The error says what it lacks.
    fn decode(&self, payload: &Value, around: &DecodeContext) -> Result<Vec<Event>, String> {
        translated::decode(self.platform(), self.translate(payload), around)
    }

    /// Encodes an answer to a payload in a form that the agent accepts; `None` prints nothing.
    fn encode(&self, payload: &Value, answer: &HookAnswer) -> Option<String>;

    /// What the agent reports, and when it takes context.
    fn support(&self) -> Support;

    /// How hooks are installed; `None` if the agent has none.
    fn setup(&self) -> Option<&'static Setup>;

    /// The formats of its session files.
    fn past(&self) -> &'static [PastFormat] {
        &[]
    }

    /// The agent's own command that opens a session again: program and arguments, with `{session}` for its id. Empty if
    /// there is none.
    fn resume(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether exit codes must be read from the transcript, because hooks do not report them.
    fn reports_exit_codes_in_transcript(&self) -> bool {
        false
    }

    /// The exit code of a call, from the end of the transcript.
    fn exit_code(&self, _transcript: &[u8], _call: &str) -> Option<i64> {
        None
    }

    /// Whether the agent's last message must be read from the transcript, because hooks do not report it, or not alone.
    fn keeps_closing_in_transcript(&self) -> bool {
        false
    }

    /// The agent's last message, from the end of the transcript.
    fn closing(&self, _transcript: &[u8]) -> Option<String> {
        None
    }

    /// How long the transcript may lack that message when the turn's end is reported.
    fn closing_wait(&self) -> Duration {
        Duration::ZERO
    }
}

/// A hook's answer. Without context and message it is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookAnswer {
    pub point: InjectionPoint,
    /// For the agent.
    pub context: Option<String>,
    /// One line for the person.
    pub message: Option<String>,
}

impl HookAnswer {
    /// An answer for the person alone, at a session start.
    pub fn for_person(message: String) -> HookAnswer {
        HookAnswer { message: Some(message), ..HookAnswer::default() }
    }
}

/// Whether an agent takes context at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    Possible,
    /// It takes context, but not reliably. Holds what is known.
    Unreliable(&'static str),
    /// Holds the reason, or what to do instead.
    NotPossible(&'static str),
}

/// What an agent reports, and when it takes context.
#[derive(Clone, Copy, Debug)]
pub struct Support {
    /// How the outcome of a call is known.
    pub outcome: &'static str,
    /// How failed calls are known.
    pub failures: &'static str,
    /// Where tokens are counted.
    pub tokens: &'static str,
    pub start: Moment,
    pub prompt: Moment,
    pub edit: Moment,
    pub subagent: Moment,
    pub compaction: Moment,
    /// Whether a resumed session still has the context of its first start.
    pub keeps_start_context: bool,
    /// Maximum bytes of context that pass whole; `None` if no limit is known.
    pub context_bytes: Option<usize>,
}

impl Support {
    /// Whether the agent takes context at a point.
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
