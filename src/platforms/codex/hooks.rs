//! Codex's hooks: Claude Code's format with Codex's own tools, and without exit codes.

use super::output::read;
use super::past::PAST;
use crate::model::Platform;
use crate::platforms::adapter::{Adapter, HookAnswer, Moment, Support};
use crate::platforms::answers::{envelope, event_of};
use crate::platforms::past::PastFormat;
use crate::platforms::patch::changes_like;
use crate::platforms::setup::{McpServers, OwnFile, Permission, Setup, Shape, Subscribed, WindowsShell, to};
use crate::platforms::translated::{self, HookCall, Translated, command_result, event_name};
use serde_json::{Value, json};

pub struct Codex;

/// The subscribed events. SessionEnd allows 3 s at most. PostCompact accepts no context, and SessionStart follows it.
const HOOKS: [Subscribed; 9] = [
    to("SessionStart", "context", 10),
    to("UserPromptSubmit", "record", 10),
    Subscribed { tools: Some("apply_patch"), ..to("PreToolUse", "record", 10) },
    to("PostToolUse", "record", 10),
    to("SubagentStart", "record", 10),
    to("SubagentStop", "record", 10),
    to("PreCompact", "record", 10),
    to("Stop", "record", 30),
    to("SessionEnd", "record", 3),
];

const SETUP: Setup = Setup {
    programs: &["codex"],
    user: "hooks.json",
    project: ".codex/hooks.json",
    shape: Shape::Nested,
    hooks: &HOOKS,
    windows_shell: WindowsShell::PowerShell,
    arguments: " --platform codex",
    files: &[],
    permission: Permission::Own(OwnFile { user: "rules/nmem.rules", project: "", text: RULES }),
    mcp: McpServers::Toml { user: "config.toml", project: ".codex/config.toml" },
    instructions: "AGENTS.md",
    afterwards: &["Start Codex and approve the hooks with /hooks. Until then it silently ignores them."],
};

/// Lets the agent run nmem searches without a permission prompt.
const RULES: &str = r#"# Lets Codex run nmem searches without a permission prompt. Added by `nmem install codex --allow-search`.
prefix_rule(pattern = ["nmem", ["search", "show", "context"]], decision = "allow")
"#;

impl Adapter for Codex {
    fn platform(&self) -> Platform {
        Platform::Codex
    }

    fn recognises(&self, payload: &Value) -> bool {
        let transcript = payload["transcript_path"].as_str().unwrap_or_default();
        let file = transcript.rsplit(['/', '\\']).next().unwrap_or_default();
        payload["turn_id"].is_string() || file.starts_with("rollout-")
    }

    fn translate(&self, payload: &Value) -> Vec<Translated> {
        let event = event_name(payload);
        let mut head = translated::payload(event, payload);
        head["prompt_id"] = payload["turn_id"].clone();
        match event {
            "PreToolUse" | "PostToolUse" => {}
            "SessionStart" | "UserPromptSubmit" | "Stop" | "StopFailure" | "SubagentStart" | "SubagentStop" | "PreCompact"
            | "SessionEnd" => {
                head["error"] = payload["error"].clone();
                return translated::event(head);
            }
            _ => return Vec::new(),
        }
        let (name, input) = (payload["tool_name"].as_str().unwrap_or("unknown"), &payload["tool_input"]);
        let response = &payload["tool_response"];
        let printed = read(response.as_str().unwrap_or_default());
        let (like, result) = match name {
            "apply_patch" => {
                let patch = input["command"].as_str().or_else(|| input["input"].as_str()).or(input.as_str()).unwrap_or_default();
                (changes_like(patch), command_result(printed.text, printed.exit_code).map(|_| json!({})))
            }
            "Bash" => {
                let result = match response.as_str() {
                    Some(_) => command_result(printed.text, printed.exit_code),
                    None => Ok(response.clone()),
                };
                (vec![("Bash".to_string(), input.clone())], result)
            }
            "update_plan" => (vec![("TodoWrite".to_string(), json!({"todos": tasks(&input["plan"])}))], Ok(response.clone())),
            _ => (vec![(name.to_string(), input.clone())], Ok(response.clone())),
        };
        let call = HookCall {
            id: &payload["tool_use_id"],
            name,
            like,
            result: (event == "PostToolUse").then_some(result),
            duration_ms: &payload["duration_ms"],
        };
        translated::call(&head, call)
    }

    fn encode(&self, _payload: &Value, answer: &HookAnswer) -> Option<String> {
        envelope(event_of(answer.point), answer)
    }

    fn support(&self) -> Support {
        Support {
            outcome: "exit codes from the session file, by the call's id",
            failures: "by the exit code; a patch that does not apply is seen by `nmem import` alone",
            tokens: "session file",
            start: Moment::Possible,
            prompt: Moment::Possible,
            edit: Moment::Possible,
            subagent: Moment::Possible,
            compaction: Moment::Possible,
            context_bytes: Some(9000),
            keeps_start_context: true,
        }
    }

    fn setup(&self) -> Option<&'static Setup> {
        Some(&SETUP)
    }

    fn resume(&self) -> &'static [&'static str] {
        &["codex", "resume", "{session}"]
    }

    fn past(&self) -> &'static [PastFormat] {
        &[PAST]
    }

    fn reports_exit_codes_in_transcript(&self) -> bool {
        true
    }

    /// Finds the exit code in the session file, which has the ended command, with its call's id, before the hook
    /// starts.
    fn exit_code(&self, transcript: &[u8], call: &str) -> Option<i64> {
        let named = format!("\"{call}\"");
        let lines = transcript.rsplit(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
        let mut ended = lines.filter(|line| line.contains(&named)).filter_map(|line| {
            let record: Value = serde_json::from_str(line).ok()?;
            let item = &record["payload"]["item"];
            item["exit_code"].as_i64().filter(|_| item["id"] == call)
        });
        ended.next()
    }
}

/// Converts a plan's steps to a task list.
fn tasks(plan: &Value) -> Vec<Value> {
    let steps = plan.as_array().into_iter().flatten();
    steps.map(|step| json!({"content": step["step"], "status": step["status"]})).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_file_says_how_a_command_ended() {
        let line = |id: &str, code: i64| {
            json!({"type": "event_msg", "payload": {"type": "item_completed", "item": {"type": "CommandExecution", "id": id, "exit_code": code}}})
                .to_string()
        };
        let transcript = format!("cut line\"call_2\"}}\n{}\n{}\n", line("call_1", 0), line("call_2", 3));
        assert_eq!(Codex.exit_code(transcript.as_bytes(), "call_2"), Some(3));
        assert_eq!(Codex.exit_code(transcript.as_bytes(), "call_1"), Some(0));
        assert_eq!(Codex.exit_code(transcript.as_bytes(), "call_3"), None);
    }
}
