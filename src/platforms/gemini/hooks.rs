//! Gemini CLI's hooks.

use super::{like, result, without_hook_context};
use crate::model::Platform;
use crate::platforms::adapter::{Adapter, HookAnswer, Moment, Support, envelope};
use crate::platforms::past::{PastFormat, text_of};
use crate::platforms::settings_file::{McpForm, McpServers, OwnFile, Permission, Setup, Shape, Subscribed, WindowsShell, to};
use crate::platforms::translated::{self, HookCall, Translated, event_name};
use serde_json::{Value, json};

pub struct Gemini;

/// The subscribed events. AfterTool also reports failures. PreCompress is not one: it comes before every request, even
/// if nothing is compressed.
const HOOKS: [Subscribed; 5] = [
    to("SessionStart", "context", 10),
    to("BeforeAgent", "record", 10),
    to("AfterTool", "record", 10),
    to("AfterAgent", "record", 30),
    to("SessionEnd", "record", 10),
];

/// The setup. In the user's scope, hooks are installed as an extension, so the user's own settings file is not changed.
const SETUP: Setup = Setup {
    programs: &["gemini"],
    folder: Some(".gemini"),
    user: "extensions/nmem/hooks/hooks.json",
    or_user: None,
    project: ".gemini/settings.json",
    shape: Shape::NestedMillis,
    hooks: &HOOKS,
    windows_shell: WindowsShell::PowerShell,
    // PowerShell 5 does not support `||`.
    arguments: if cfg!(windows) { " --platform gemini 2>$null; exit 0" } else { " --platform gemini 2>/dev/null || true" },
    files: &[OwnFile { user: "extensions/nmem/gemini-extension.json", project: "", text: EXTENSION }],
    permission: Permission::Own(OwnFile { user: "policies/nmem.toml", project: "", text: POLICY }),
    mcp: McpServers::Json { user: "settings.json", project: ".gemini/settings.json", key: "mcpServers", form: McpForm::Plain },
    instructions: "GEMINI.md",
    status_line: &[],
    afterwards: &["Restart Gemini CLI: it reads hooks when it starts."],
};

const EXTENSION: &str = r#"{
  "name": "nmem",
  "version": "1.0.0",
  "description": "Memory across sessions: records what was done and gives it to the next session"
}
"#;

/// Lets the agent run nmem searches without a permission prompt.
const POLICY: &str = r#"# Lets Gemini CLI run nmem searches without a permission prompt. Added by `nmem install gemini --allow-search`.
[[rule]]
toolName = "run_shell_command"
commandPrefix = ["nmem search", "nmem show", "nmem context"]
decision = "allow"
priority = 100
"#;

/// Converts Gemini CLI's name of an event to Claude Code's.
fn event_like(name: &str) -> Option<&'static str> {
    Some(match name {
        "SessionStart" => "SessionStart",
        "BeforeAgent" => "UserPromptSubmit",
        "BeforeTool" => "PreToolUse",
        "AfterTool" => "PostToolUse",
        "AfterAgent" => "Stop",
        "SessionEnd" => "SessionEnd",
        _ => return None,
    })
}

impl Adapter for Gemini {
    fn platform(&self) -> Platform {
        Platform::Gemini
    }

    fn recognises(&self, payload: &Value) -> bool {
        let transcript = payload["transcript_path"].as_str().unwrap_or_default().replace('\\', "/");
        let own = ["BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent", "PreCompress"];
        own.contains(&event_name(payload)) || transcript.contains("/.gemini/")
    }

    fn translate(&self, payload: &Value) -> Vec<Translated> {
        let Some(event) = event_like(event_name(payload)) else { return Vec::new() };
        if matches!(event, "PreToolUse" | "PostToolUse") {
            let name = payload["tool_name"].as_str().unwrap_or("unknown");
            let call = HookCall {
                id: &Value::Null,
                name,
                like: like(name, &payload["tool_input"]),
                result: (event == "PostToolUse").then(|| result(name, &payload["tool_response"])),
                duration_ms: &Value::Null,
            };
            return translated::call(payload, call);
        }
        let mut head = translated::payload(event, payload);
        if let Some(prompt) = payload["prompt"].as_str() {
            head["prompt"] = json!(without_hook_context(prompt));
        }
        if event == "Stop" {
            head["last_assistant_message"] = payload["prompt_response"].clone();
        }
        if payload["reason"] == "exit" {
            head["reason"] = json!("other");
        }
        translated::event(head)
    }

    /// Encodes an answer as JSON: Gemini CLI shows any other output to the person.
    fn encode(&self, payload: &Value, answer: &HookAnswer) -> Option<String> {
        envelope(event_name(payload), answer)
    }

    fn support(&self) -> Support {
        Support {
            outcome: "`Exit Code` in a command's output",
            failures: "`error` in a call's response, and exit codes",
            tokens: "session file",
            start: Moment::Possible,
            prompt: Moment::Possible,
            edit: Moment::NotPossible("`BeforeTool` takes no context"),
            subagent: Moment::NotPossible("no event"),
            compaction: Moment::NotPossible("no event after it; the next prompt is the next moment"),
            context_bytes: None,
            takes_results: false,
            keeps_start_context: true,
        }
    }

    fn setup(&self) -> Option<&'static Setup> {
        Some(&SETUP)
    }

    fn keeps_closing_in_transcript(&self) -> bool {
        true
    }

    /// Finds the last message, if it requests no tool. (`prompt_response` joins all texts of the turn.)
    fn closing(&self, transcript: &[u8]) -> Option<String> {
        let lines = transcript.rsplit(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
        let mut said = lines.filter(|record| record["type"] == "gemini").take(1);
        let last = said.find(|record| record["toolCalls"].as_array().is_none_or(Vec::is_empty))?;
        Some(text_of(&last["content"])).filter(|text| !text.trim().is_empty())
    }

    fn rewound_to<'a>(&self, record: &'a Value) -> Option<&'a str> {
        record["$rewindTo"].as_str()
    }

    fn resume(&self) -> &'static [&'static str] {
        &["gemini", "--resume", "{session}"]
    }

    fn past(&self) -> &'static [PastFormat] {
        &[super::past::PAST, super::past::DOCUMENT]
    }
}
