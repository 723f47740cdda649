//! Cursor: its hooks and tools, `past` (past sessions).
//!
//! The hooks were not tested with Cursor: names and fields are from its documentation and from payloads that others captured.

mod past;

use crate::model::Platform;
use crate::platforms::adapter::{Adapter, HookAnswer, Moment, Support, context_as, envelope, event_of};
use crate::platforms::past::{PastFormat, text_of};
use crate::platforms::settings_file::{McpForm, McpServers, Permission, Setup, Shape, Subscribed, WindowsShell, to};
use crate::platforms::translated::{self, HookCall, Translated, event_name, field, unpacked};
use past::{like, result};
use serde_json::{Value, json};

pub struct Cursor;

/// The subscribed events. `preToolUse` is not one: it records nothing, and Cursor accepts no context there.
const HOOKS: [Subscribed; 9] = [
    to("sessionStart", "context", 10),
    to("beforeSubmitPrompt", "record", 10),
    to("postToolUse", "record", 10),
    to("postToolUseFailure", "record", 10),
    to("subagentStart", "record", 10),
    to("subagentStop", "record", 10),
    to("preCompact", "record", 10),
    to("stop", "record", 30),
    to("sessionEnd", "record", 10),
];

const SETUP: Setup = Setup {
    programs: &["cursor-agent", "cursor"],
    folder: Some(".cursor"),
    user: "hooks.json",
    or_user: None,
    project: ".cursor/hooks.json",
    shape: Shape::Flat,
    hooks: &HOOKS,
    windows_shell: WindowsShell::Cmd,
    arguments: " --platform cursor",
    files: &[],
    permission: Permission::ByHand(
        "To let Cursor's CLI run nmem without a permission prompt, add \"Shell(nmem)\" to permissions.allow in ~/.cursor/cli-config.json. That allows every command of nmem.",
    ),
    mcp: McpServers::Json { user: "mcp.json", project: ".cursor/mcp.json", key: "mcpServers", form: McpForm::Plain },
    instructions: "AGENTS.md",
    status_line: &[],
    afterwards: &["Restart Cursor: it reads hooks when it starts."],
};

/// Cursor's events and their equivalents in Claude Code.
const EVENTS: [(&str, &str); 11] = [
    ("sessionstart", "SessionStart"),
    ("sessionend", "SessionEnd"),
    ("beforesubmitprompt", "UserPromptSubmit"),
    ("userpromptsubmit", "UserPromptSubmit"),
    ("pretooluse", "PreToolUse"),
    ("posttooluse", "PostToolUse"),
    ("posttoolusefailure", "PostToolUseFailure"),
    ("subagentstart", "SubagentStart"),
    ("subagentstop", "SubagentStop"),
    ("precompact", "PreCompact"),
    ("stop", "Stop"),
];

/// Converts Cursor's name of an event to Claude Code's.
fn event_like(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    EVENTS.iter().find(|(own, _)| *own == name).map(|(_, like)| *like)
}

impl Adapter for Cursor {
    fn platform(&self) -> Platform {
        Platform::Cursor
    }

    /// Returns true if a payload has Cursor's own fields. Cursor also runs the hooks in Claude Code's settings, and
    /// adds these fields.
    fn recognises(&self, payload: &Value) -> bool {
        ["cursor_version", "conversation_id", "generation_id"].iter().any(|key| payload[*key].is_string())
    }

    fn translate(&self, payload: &Value) -> Vec<Translated> {
        let Some(event) = event_like(event_name(payload)) else { return Vec::new() };
        // A background agent runs on another machine and accepts no context.
        if payload["is_background_agent"] == true {
            return Vec::new();
        }
        let mut head = translated::payload(event, payload);
        head["prompt_id"] = payload["generation_id"].clone();
        head["cwd"] = json!(translated::cwd(payload));
        head["agent_id"] = payload["subagent_id"].clone();
        match event {
            "PreToolUse" | "PostToolUse" | "PostToolUseFailure" => return translated::call(&head, call(payload, event)),
            "SubagentStart" | "SubagentStop" => {
                // The conversation is the one that asked for the subagent.
                head["session_id"] = field(payload, &["parent_conversation_id", "conversation_id", "session_id"]).clone();
                head["agent_type"] = payload["subagent_type"].clone();
                head["last_assistant_message"] = payload["summary"].clone();
            }
            "Stop" => {
                if matches!(payload["status"].as_str(), Some("error")) {
                    head["hook_event_name"] = json!("StopFailure");
                    head["error"] = field(payload, &["error_message", "status"]).clone();
                }
            }
            _ => {}
        }
        translated::event(head)
    }

    fn encode(&self, payload: &Value, answer: &HookAnswer) -> Option<String> {
        let event = event_name(payload);
        // A hook in Claude Code's settings answers in Claude Code's format.
        if event.starts_with(|c: char| c.is_ascii_uppercase()) {
            return envelope(event_of(answer.point), answer);
        }
        context_as("additional_context", answer)
    }

    fn support(&self) -> Support {
        let no_tool = Moment::NotPossible("before a call, an answer can only allow or deny it");
        Support {
            outcome: "`exitCode` in a call's output",
            failures: "an event of its own, and exit codes",
            tokens: "not possible by hooks; `nmem import` reads those of the IDE's chats",
            start: Moment::Unreliable("some versions of the IDE drop it"),
            prompt: Moment::Unreliable("works in 3.9, but is not documented"),
            edit: no_tool,
            subagent: Moment::NotPossible("an answer can only allow or deny it"),
            compaction: Moment::NotPossible("no event after it; the next prompt is the next moment"),
            context_bytes: None,
            takes_results: false,
            keeps_start_context: true,
        }
    }

    fn setup(&self) -> Option<&'static Setup> {
        Some(&SETUP)
    }

    fn resume(&self) -> &'static [&'static str] {
        &["cursor-agent", "--resume={session}"]
    }

    fn past(&self) -> &'static [PastFormat] {
        &[past::TRANSCRIPTS, past::IDE, past::CLI]
    }

    fn keeps_closing_in_transcript(&self) -> bool {
        true
    }

    /// Finds the agent's last text: the `stop` event does not have it.
    fn closing(&self, transcript: &[u8]) -> Option<String> {
        let lines = transcript.rsplit(|byte| *byte == b'\n');
        let records = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
        let mut texts = records
            .take_while(|record| record["role"] != "user")
            .filter(|record| record["role"] == "assistant")
            .map(|record| text_of(&record["message"]["content"]));
        texts.find(|text| !text.trim().is_empty())
    }
}

fn call<'a>(payload: &'a Value, event: &str) -> HookCall<'a> {
    let name = payload["tool_name"].as_str().unwrap_or("unknown");
    let input = unpacked(field(payload, &["tool_input"]));
    let output = unpacked(field(payload, &["tool_output", "tool_response", "result_json"]));
    let result = match event {
        "PreToolUse" => None,
        "PostToolUseFailure" => {
            let error = field(payload, &["error_message", "error", "failure_type"]);
            Some(Err(error.as_str().map_or_else(|| text_of(error), String::from)))
        }
        _ => Some(result(&output)),
    };
    HookCall {
        id: &payload["tool_use_id"],
        name,
        like: like(name, &input),
        result,
        duration_ms: field(payload, &["duration", "duration_ms"]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::InjectionPoint;

    #[test]
    fn an_answer_has_the_form_of_the_settings_that_asked() {
        let answer = HookAnswer { point: InjectionPoint::Start, context: Some("x".into()), message: None };
        let own = Cursor.encode(&json!({"hook_event_name": "sessionStart"}), &answer);
        assert_eq!(own.as_deref(), Some(r#"{"additional_context":"x"}"#));
        let claudes = Cursor.encode(&json!({"hook_event_name": "SessionStart"}), &answer).unwrap();
        assert!(claudes.contains("hookSpecificOutput"), "{claudes}");
    }

    #[test]
    fn the_closing_message_is_the_last_text_after_the_prompt() {
        let line =
            |role: &str, text: &str| json!({"role": role, "message": {"content": [{"type": "text", "text": text}]}}).to_string();
        let transcript =
            [line("assistant", "old"), line("user", "do it"), line("assistant", "done"), line("assistant", "")].join("\n");
        assert_eq!(Cursor.closing(transcript.as_bytes()).as_deref(), Some("done"));
    }
}
