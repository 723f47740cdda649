//! The Claude Code events that nmem subscribes to (ADR/0004).

use crate::platforms::settings::Hook;

/// A subscription.
#[derive(Clone, Copy, Debug)]
pub struct Subscribed {
    pub event: &'static str,
    /// Tool names to match; `None` matches all, or does not apply.
    pub tools: Option<&'static str>,
    /// `record` or `context`.
    pub verb: &'static str,
    /// Seconds.
    timeout: u32,
}

impl Subscribed {
    /// The hook with the command that handles it.
    pub fn with(&self, command: String) -> Hook {
        Hook { event: self.event, matcher: self.tools, command, timeout: self.timeout }
    }
}

const fn to(event: &'static str, verb: &'static str, timeout: u32) -> Subscribed {
    Subscribed { event, tools: None, verb, timeout }
}

/// All subscriptions. SessionEnd needs its own timeout: without one the client allows 1.5 s. PreToolUse covers
/// tools that change files or start subagents only.
pub const HOOKS: [Subscribed; 11] = [
    to("SessionStart", "context", 10),
    to("UserPromptSubmit", "record", 10),
    Subscribed { event: "PreToolUse", tools: Some("Edit|Write|MultiEdit|NotebookEdit|Agent|Task"), verb: "record", timeout: 10 },
    to("PostToolUse", "record", 10),
    to("PostToolUseFailure", "record", 10),
    to("SubagentStart", "record", 10),
    to("SubagentStop", "record", 10),
    to("PreCompact", "record", 10),
    to("Stop", "record", 30),
    to("StopFailure", "record", 10),
    to("SessionEnd", "record", 10),
];
