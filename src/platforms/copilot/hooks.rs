//! Hooks of Copilot CLI and of VS Code: two payload forms, one set of tools.

use super::{is_about_command, is_command, like, printed};
use crate::model::Platform;
use crate::platforms::adapter::{Adapter, HookAnswer, Moment, Support, context_as, envelope, event_of};
use crate::platforms::past::{PastFormat, text_of};
use crate::platforms::settings_file::{McpForm, McpServers, Permission, Setup, Shape, Subscribed, WindowsShell, to};
use crate::platforms::translated::{self, HookCall, Translated, command_result, event_name, field, unpacked};
use serde_json::{Value, json};
use std::time::Duration;

/// The subscribed events, under the names for which payloads have Claude Code's fields. VS Code skips unknown events.
const HOOKS: [Subscribed; 9] = [
    to("SessionStart", "context", 10),
    to("UserPromptSubmit", "record", 10),
    to("PostToolUse", "record", 10),
    to("PostToolUseFailure", "record", 10),
    to("SubagentStart", "record", 10),
    to("SubagentStop", "record", 10),
    to("PreCompact", "record", 10),
    to("Stop", "record", 30),
    to("SessionEnd", "record", 10),
];

/// Returns the setup of either agent, given the programs that identify it and the file that lists its MCP servers.
pub(super) const fn setup(programs: &'static [&'static str], mcp: McpServers) -> Setup {
    Setup {
        programs,
        folder: Some(".copilot"),
        user: "hooks/nmem.json",
        or_user: None,
        project: ".github/hooks/nmem.json",
        shape: Shape::Flat,
        hooks: &HOOKS,
        windows_shell: WindowsShell::PowerShell,
        arguments: "",
        files: &[],
        permission: Permission::ByHand(
            "To let Copilot CLI run nmem without a permission prompt, start it with --allow-tool='shell(nmem)'. That allows every command of nmem. VS Code asks, and remembers the answer.",
        ),
        mcp,
        instructions: "AGENTS.md",
        status_line: &[],
        afterwards: &["Copilot CLI and VS Code share this file: both record now."],
    }
}

/// Translates a tool call of either agent; `event` is Claude Code's name.
pub(super) fn call(payload: &Value, event: &str) -> Vec<Translated> {
    let name = field(payload, &["tool_name", "toolName"]).as_str().unwrap_or("unknown");
    let input = unpacked(field(payload, &["tool_input", "toolArgs", "toolInput"]));
    let answer = field(payload, &["tool_result", "toolResult", "tool_response"]);
    let kind = field(answer, &["result_type", "resultType"]).as_str();
    let said = field(answer, &["text_result_for_llm", "textResultForLlm"]);
    let text = if said.is_null() { text_of(answer) } else { text_of(said) };
    if is_about_command(name) {
        let ended = printed(&text);
        let status = if name.starts_with("stop_") { "killed" } else { "running" };
        let task = json!({"task_id": input["shellId"], "status": status, "exitCode": ended.exit_code, "output": ended.text});
        let mut head = translated::payload("BackgroundEnded", payload);
        head["tool_response"] = json!({"task": task});
        return if event == "PostToolUse" { translated::event(head) } else { Vec::new() };
    }
    let result = match event {
        "PreToolUse" => None,
        "PostToolUseFailure" => {
            let error = field(payload, &["error", "error_message", "errorMessage"]);
            Some(Err(error["message"].as_str().or(error.as_str()).map_or(text, String::from)))
        }
        _ if kind.is_some_and(|kind| kind != "success") => Some(Err(text)),
        _ if is_command(name) || name == "Bash" => {
            let ended = printed(&text);
            Some(match ended.shell {
                Some(shell) => Ok(json!({"stdout": ended.text, "backgroundTaskId": shell})),
                None => command_result(ended.text, ended.exit_code),
            })
        }
        _ => Some(Ok(json!(text))),
    };
    let call = HookCall {
        id: field(payload, &["tool_use_id", "toolUseId", "toolCallId"]),
        name,
        like: like(name, &input),
        result,
        duration_ms: &Value::Null,
    };
    translated::call(payload, call)
}

/// Finds the message that ended the turn, at the end of a session file: the last one without a tool request. Both
/// agents write the same lines.
pub(super) fn closing(transcript: &[u8]) -> Option<String> {
    let lines = transcript.rsplit(|byte| *byte == b'\n');
    let records = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let mut texts = records
        .take_while(|record| record["type"] != "user.message")
        .filter(|record| record["type"] == "assistant.message" && record["data"]["parentToolCallId"].is_null())
        .filter(|record| record["data"]["toolRequests"].as_array().is_none_or(Vec::is_empty))
        .filter_map(|record| record["data"]["content"].as_str().map(String::from));
    texts.find(|text| !text.trim().is_empty())
}

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
            takes_results: false,
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
        &[crate::platforms::copilot::past::CLI]
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
            takes_results: false,
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
        &[crate::platforms::copilot::past::VS_CODE, crate::platforms::copilot::chat::CHAT]
    }

    fn keeps_closing_in_transcript(&self) -> bool {
        true
    }

    fn closing(&self, transcript: &[u8]) -> Option<String> {
        closing(transcript)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::EventKind;
    use crate::platforms::DecodeContext;

    #[test]
    fn a_command_goes_on_until_its_shell_has_ended() {
        let hook = |name: &str, input: Value, text: &str| {
            let result = json!({"resultType": "success", "textResultForLlm": text});
            json!({"sessionId": "s", "timestamp": 1, "toolName": name, "toolArgs": input, "toolResult": result})
        };
        let around = DecodeContext { now: 1, skip_tools: &[] };
        let decoded = |payload: Value| CopilotCli.decode(&payload, &around).unwrap().pop().map(|event| event.what);
        let begun = decoded(hook(
            "bash",
            json!({"command": "npm test"}),
            "<command with shellId: 22 is still running after 30 seconds.>",
        ));
        let Some(EventKind::ToolUsed(begun)) = begun else { panic!("{begun:?}") };
        assert_eq!((begun.succeeded, begun.metadata.background.as_deref()), (None, Some("22")));
        let read = |text: &str| decoded(hook("read_bash", json!({"shellId": "22"}), text));
        assert_eq!(read("<command with shellId: 22 is still running after 9 seconds.>"), None);
        let ended = read("1 failed\n<shellId: 22 completed with exit code 1>");
        let Some(EventKind::BackgroundEnded(ended)) = ended else { panic!("{ended:?}") };
        assert_eq!((ended.id.as_str(), ended.succeeded, ended.exit_code), ("22", Some(false), Some(1)));
    }

    #[test]
    fn the_closing_message_is_the_last_text_of_the_main_thread() {
        let line = |kind: &str, data: Value| json!({"type": kind, "data": data}).to_string();
        let transcript = [
            line("assistant.message", json!({"content": "old"})),
            line("user.message", json!({"content": "do it"})),
            line("assistant.message", json!({"content": "done"})),
            line("assistant.message", json!({"content": "a subagent's", "parentToolCallId": "call_1"})),
        ];
        assert_eq!(closing(transcript.join("\n").as_bytes()).as_deref(), Some("done"));
        assert_eq!(closing(b"not json\n"), None);
    }
}
