//! The events of Claude Code that are subscribed, and what answers them (ADR/0004).

use crate::platforms::settings::Hook;

/// A subscription.
#[derive(Clone, Copy, Debug)]
pub struct Subscribed {
    pub event: &'static str,
    /// The tools that it is about; `None`: all, or none.
    pub tools: Option<&'static str>,
    /// `record` or `context`.
    pub verb: &'static str,
    /// Seconds.
    timeout: u32,
}

impl Subscribed {
    /// The hook, with the command that answers it.
    pub fn with(&self, command: String) -> Hook {
        Hook { event: self.event, matcher: self.tools, command, timeout: self.timeout }
    }
}

const fn to(event: &'static str, verb: &'static str, timeout: u32) -> Subscribed {
    Subscribed { event, tools: None, verb, timeout }
}

/// All of them. SessionEnd needs a timeout of its own: without one the client gives it 1.5 s. Before a tool is used, only
/// those that change files are asked about.
pub const HOOKS: [Subscribed; 10] = [
    to("SessionStart", "context", 10),
    to("UserPromptSubmit", "record", 10),
    Subscribed { event: "PreToolUse", tools: Some("Edit|Write|MultiEdit|NotebookEdit"), verb: "record", timeout: 10 },
    to("PostToolUse", "record", 10),
    to("PostToolUseFailure", "record", 10),
    to("SubagentStop", "record", 10),
    to("PreCompact", "record", 10),
    to("Stop", "record", 30),
    to("StopFailure", "record", 10),
    to("SessionEnd", "record", 10),
];
