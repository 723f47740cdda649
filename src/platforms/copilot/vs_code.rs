//! VS Code's hooks: Claude Code's events with VS Code's own tools. It also runs the hooks in Claude Code's settings,
//! and ignores their matchers.
//!
//! This was not tested with VS Code: names and fields are from its sources and documentation.

use super::hooks::{call, closing, setup};
use crate::model::Platform;
use crate::platforms::adapter::{Adapter, HookAnswer, Moment, Support};
use crate::platforms::answers::{envelope, event_of};
use crate::platforms::past::PastFormat;
use crate::platforms::setup::{McpForm, McpServers, Setup};
use crate::platforms::translated::{self, Translated, event_name, field};
use serde_json::{Value, json};

pub struct VsCode;

impl Adapter for VsCode {
    fn platform(&self) -> Platform {
        Platform::VsCode
    }

    fn recognises(&self, payload: &Value) -> bool {
        let transcript = field(payload, &["transcript_path", "transcriptPath"]).as_str().unwrap_or_default();
        let states = |key: &str| payload.get(key).is_some();
        let is_own = payload["timestamp"].is_string() && (states("transcript_path") || states("hookEventName"));
        let of_others = transcript.contains("session-state") || transcript.contains("/.claude/") || states("permission_mode");
        (is_own && !of_others) || transcript.contains("GitHub.copilot-chat")
    }

    fn translate(&self, payload: &Value) -> Vec<Translated> {
        let event = event_name(payload);
        match event {
            "PreToolUse" | "PostToolUse" | "PostToolUseFailure" => call(payload, event),
            "SessionStart" | "UserPromptSubmit" | "Stop" | "SubagentStart" | "SubagentStop" | "PreCompact" | "SessionEnd" => {
                let mut head = translated::payload(event, payload);
                if payload["source"] == "new" {
                    head["source"] = json!("startup");
                }
                translated::event(head)
            }
            _ => Vec::new(),
        }
    }

    fn encode(&self, _payload: &Value, answer: &HookAnswer) -> Option<String> {
        envelope(event_of(answer.point), answer)
    }

    fn support(&self) -> Support {
        Support {
            outcome: "the last line of a command's output",
            failures: "exit codes of commands; no event for other failed calls",
            tokens: "not possible: hooks and session files state none",
            start: Moment::Possible,
            prompt: Moment::NotPossible("the answer is dropped"),
            edit: Moment::NotPossible("the hooks file is shared with Copilot CLI, where such a hook can deny calls"),
            subagent: Moment::Possible,
            compaction: Moment::NotPossible("no event after it"),
            context_bytes: None,
            keeps_start_context: true,
        }
    }

    fn setup(&self) -> Option<&'static Setup> {
        const SETUP: Setup = setup(
            &["code", "code-insiders", "codium"],
            McpServers::Json { user: "", project: ".vscode/mcp.json", key: "servers", form: McpForm::Stdio },
        );
        Some(&SETUP)
    }

    fn past(&self) -> &'static [PastFormat] {
        &[super::past::VS_CODE, super::chat::CHAT]
    }

    fn keeps_closing_in_transcript(&self) -> bool {
        true
    }

    fn closing(&self, transcript: &[u8]) -> Option<String> {
        closing(transcript)
    }
}
