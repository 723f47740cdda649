//! Copilot CLI's hooks. It names events, fields and tools either in its own way or in Claude Code's, depending on how
//! the settings spell the event. Calls have no ids; the platform's timestamp distinguishes them.

use super::hooks::{call, closing, setup};
use crate::model::Platform;
use crate::platforms::adapter::{Adapter, HookAnswer, Moment, Support};
use crate::platforms::answers::context_as;
use crate::platforms::past::PastFormat;
use crate::platforms::setup::{McpForm, McpServers, Setup};
use crate::platforms::translated::{self, Translated, event_name, field};
use serde_json::{Value, json};
use std::time::Duration;

pub struct CopilotCli;

/// Returns Claude Code's name for a payload's event. In Copilot's own format, the fields identify the event.
fn event(payload: &Value) -> Option<&'static str> {
    const EVENTS: [&str; 10] = [
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "SubagentStart",
        "SubagentStop",
        "PreCompact",
        "Stop",
        "SessionEnd",
    ];
    let name = event_name(payload);
    if !name.is_empty() {
        return EVENTS.into_iter().find(|event| *event == name);
    }
    let has = |key: &str| payload.get(key).is_some();
    Some(match () {
        () if has("hookName") || has("errorContext") || has("notification_type") => return None,
        () if has("toolResult") => "PostToolUse",
        () if has("toolName") && has("error") => "PostToolUseFailure",
        () if has("toolName") => "PreToolUse",
        () if has("prompt") => "UserPromptSubmit",
        () if has("source") || has("initialPrompt") => "SessionStart",
        () if has("agentName") && has("stopReason") => "SubagentStop",
        () if has("agentName") => "SubagentStart",
        () if has("stopReason") => "Stop",
        () if has("trigger") => "PreCompact",
        () if has("reason") => "SessionEnd",
        () => return None,
    })
}

impl Adapter for CopilotCli {
    fn platform(&self) -> Platform {
        Platform::CopilotCli
    }

    fn recognises(&self, payload: &Value) -> bool {
        let transcript = field(payload, &["transcript_path", "transcriptPath"]).as_str().unwrap_or_default();
        let is_own = payload["sessionId"].is_string() && payload["timestamp"].is_number();
        // VS Code always sends a transcript, or null; Claude Code sends no timestamp.
        let of_others = ["transcript_path", "permission_mode", "prompt_id", "tool_response", "tool_use_id"];
        let is_like_claude = payload["timestamp"].is_string() && of_others.iter().all(|key| payload.get(*key).is_none());
        is_own || is_like_claude || payload.get("tool_result").is_some() || transcript.contains("session-state")
    }

    fn translate(&self, payload: &Value) -> Vec<Translated> {
        let Some(event) = event(payload) else { return Vec::new() };
        let parent = field(payload, &["parent_agent_id", "parentAgentId"]).clone();
        let mut payload = payload.clone();
        if let (false, Some(fields)) = (parent.is_null(), payload.as_object_mut()) {
            // Inside a subagent, the session id is the subagent's, and its session is the parent. The subagent's prompt
            // is not from a person, and SubagentStop follows its end.
            if matches!(event, "UserPromptSubmit" | "Stop") {
                return Vec::new();
            }
            fields.insert("session_id".into(), parent);
        }
        if event.contains("ToolUse") {
            return call(&payload, event);
        }
        let mut head = translated::payload(event, &payload);
        if payload["source"] == "new" {
            head["source"] = json!("startup");
        }
        translated::event(head)
    }

    /// Encodes in Copilot's own format: the CLI ignores Claude Code's.
    fn encode(&self, _payload: &Value, answer: &HookAnswer) -> Option<String> {
        context_as("additionalContext", answer)
    }

    fn support(&self) -> Support {
        Support {
            outcome: "the last line of a command's output",
            failures: "an event of its own, and exit codes",
            tokens: "session file",
            start: Moment::Possible,
            prompt: Moment::Unreliable("versions 1.0.60 to 1.0.65 drop it"),
            edit: Moment::NotPossible("a hook that fails there denies the call, so nmem does not subscribe"),
            subagent: Moment::Possible,
            compaction: Moment::NotPossible("no event after it"),
            context_bytes: None,
            keeps_start_context: false,
        }
    }

    fn setup(&self) -> Option<&'static Setup> {
        const SETUP: Setup = setup(
            &["copilot"],
            McpServers::Json { user: "mcp-config.json", project: ".github/mcp.json", key: "mcpServers", form: McpForm::Local },
        );
        Some(&SETUP)
    }

    fn resume(&self) -> &'static [&'static str] {
        &["copilot", "--resume={session}"]
    }

    fn past(&self) -> &'static [PastFormat] {
        &[super::past::CLI]
    }

    fn keeps_closing_in_transcript(&self) -> bool {
        true
    }

    fn closing(&self, transcript: &[u8]) -> Option<String> {
        closing(transcript)
    }

    /// Measured: the last message was in the file after 11 to 54 ms, once in twenty runs after more than 100 ms.
    fn closing_wait(&self) -> Duration {
        Duration::from_millis(250)
    }
}
