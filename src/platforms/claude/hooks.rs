//! The adapter of Claude Code: events that it takes, and its answers.

use super::decode;
use super::past::PAST;
use crate::model::{Event, Platform};
use crate::platforms::adapter::{Adapter, HookAnswer, Moment, Support, envelope, event_of};
use crate::platforms::past::PastFormat;
use crate::platforms::payload::DecodeContext;
use crate::platforms::settings_file::{McpForm, McpServers, Permission, Setup, Shape, Subscribed, WindowsShell, to};
use crate::platforms::translated::{self, Translated};
use serde_json::Value;

pub struct ClaudeCode;

/// The subscribed events. SessionEnd needs its own timeout: without one the client allows 1.5 s. PreToolUse covers only
/// tools that change files or start subagents.
const HOOKS: [Subscribed; 10] = [
    to("SessionStart", "context", 10),
    to("UserPromptSubmit", "record", 10),
    Subscribed { tools: Some("Edit|Write|MultiEdit|NotebookEdit|Agent|Task"), ..to("PreToolUse", "record", 10) },
    to("PostToolUse", "record", 10),
    to("PostToolUseFailure", "record", 10),
    to("SubagentStart", "record", 10),
    to("SubagentStop", "record", 10),
    to("Stop", "record", 30),
    to("StopFailure", "record", 10),
    to("SessionEnd", "record", 10),
];

const SETUP: Setup = Setup {
    programs: &["claude"],
    folder: Some(".claude"),
    user: "settings.json",
    or_user: None,
    project: ".claude/settings.json",
    shape: Shape::Nested,
    hooks: &HOOKS,
    windows_shell: WindowsShell::Bash,
    arguments: "",
    files: &[],
    permission: Permission::Listed {
        file: "settings.json",
        list: ["permissions", "allow"],
        entries: &[
            "Bash(nmem search:*)",
            "Bash(nmem show:*)",
            "Bash(nmem context:*)",
            // The reading tools of the MCP server.
            "mcp__nmem__memory_search",
            "mcp__nmem__memory_context",
            "mcp__nmem__memory_show",
            "mcp__nmem__memory_error",
            "mcp__nmem__memory_how",
        ],
    },
    mcp: McpServers::Json { user: ".claude.json", project: ".mcp.json", key: "mcpServers", form: McpForm::Stdio },
    instructions: "CLAUDE.md",
    status_line: &["statusLine"],
    afterwards: &[],
};

impl Adapter for ClaudeCode {
    fn platform(&self) -> Platform {
        Platform::ClaudeCode
    }

    /// Always true: a payload without another agent's marks is Claude Code's.
    fn recognises(&self, _payload: &Value) -> bool {
        true
    }

    fn translate(&self, payload: &Value) -> Vec<Translated> {
        translated::event(payload.clone())
    }

    fn decode(&self, payload: &Value, around: &DecodeContext) -> Result<Vec<Event>, String> {
        Ok(decode(payload, around)?.into_iter().collect())
    }

    fn encode(&self, _payload: &Value, answer: &HookAnswer) -> Option<String> {
        envelope(event_of(answer.point), answer)
    }

    fn support(&self) -> Support {
        Support {
            outcome: "an event of its own for a failure",
            failures: "`PostToolUseFailure`, with the exit code",
            tokens: "session file",
            start: Moment::Possible,
            prompt: Moment::Possible,
            edit: Moment::Possible,
            subagent: Moment::Possible,
            compaction: Moment::Possible,
            context_bytes: Some(9000),
            takes_results: false,
            keeps_start_context: true,
        }
    }

    fn setup(&self) -> Option<&'static Setup> {
        Some(&SETUP)
    }

    fn resume(&self) -> &'static [&'static str] {
        &["claude", "--resume", "{session}"]
    }

    fn past(&self) -> &'static [PastFormat] {
        &[PAST]
    }
}
