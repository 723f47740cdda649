//! Common parts of Copilot CLI's and VS Code's hooks. Both read `~/.copilot/hooks`, so its commands name no platform.

use super::tools::{is_command, like, printed};
use crate::platforms::past::text_of;
use crate::platforms::setup::{McpServers, Permission, Setup, Shape, Subscribed, WindowsShell, to};
use crate::platforms::translated::{self, HookCall, Translated, command_result, field, unpacked};
use serde_json::{Value, json};

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
        user: "hooks/nmem.json",
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
    let result = match event {
        "PreToolUse" => None,
        "PostToolUseFailure" => {
            let error = field(payload, &["error", "error_message", "errorMessage"]);
            Some(Err(error["message"].as_str().or(error.as_str()).map_or(text, String::from)))
        }
        _ if kind.is_some_and(|kind| kind != "success") => Some(Err(text)),
        _ if is_command(name) || name == "Bash" => {
            let ended = printed(&text);
            Some(command_result(ended.text, ended.exit_code))
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

#[cfg(test)]
mod tests {
    use super::*;

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
