//! Agents. Each has a folder with its hooks and its past sessions; agents' field names occur nowhere else. Files:
//! `adapter` (the trait, the answers of hooks), `other_hosts`
//! (agents with hooks like Claude Code's, custom agents), `host_calls` (their tools), `message_sessions` (their past
//! sessions), `vibe_journal` (those of Mistral Vibe), `read_only` (agents of which nmem only reads past sessions), `payload` (a hook's stdin) and `json_repair`,
//! `author` (the person's words: prompts, and answers to questions),
//! `translated` (calls of other agents as Claude Code's), `transcript_tail`, `past` (readers of past sessions),
//! `settings_file` (hooks and MCP servers in settings), `claude_mem` (its database); `claude`, `codex`, `copilot`,
//! `cursor`, `gemini`, `opencode`.

pub mod adapter;
pub mod claude;
pub mod claude_mem;
mod codex {
    //! Codex: `hooks` (live), `past` (past sessions), `script` (calls in scripts of the agent).

    mod hooks;
    mod past;
    mod script;

    pub use hooks::Codex;
}
pub mod author;
mod copilot;
mod cursor;
mod gemini;
mod host_calls;
pub(crate) mod json_repair;
mod message_sessions;
mod opencode;
mod other_hosts;
pub mod past;
pub mod payload;
mod read_only;
pub mod settings_file;
pub mod transcript_tail;
mod translated;
mod vibe_journal;

pub use payload::DecodeContext;
pub use translated::{cwd, session_id};

use crate::model::Platform;
use adapter::Adapter;
use past::PastFormat;
use serde_json::Value;

/// The adapters, in the order in which they are tried for a payload. Claude Code's is last: its format has no
/// distinctive field.
pub const ADAPTERS: [&dyn Adapter; 24] = [
    &other_hosts::Custom,
    &other_hosts::QWEN,
    &other_hosts::DROID,
    &other_hosts::GROK,
    &other_hosts::KIMI,
    &other_hosts::VIBE,
    &other_hosts::CLINE,
    &other_hosts::PI,
    &cursor::Cursor,
    &codex::Codex,
    &gemini::hooks::Gemini,
    &opencode::KILO,
    &opencode::OPENCODE,
    &copilot::hooks::VsCode,
    &copilot::hooks::CopilotCli,
    &other_hosts::AIDER,
    &other_hosts::AMP,
    &other_hosts::CONTINUE,
    &other_hosts::CRUSH,
    &other_hosts::GOOSE,
    &other_hosts::ROO,
    &other_hosts::ZED,
    &other_hosts::OTHER,
    &claude::hooks::ClaudeCode,
];

/// Returns the adapter of a platform.
pub fn adapter(platform: Platform) -> &'static dyn Adapter {
    *ADAPTERS.iter().find(|adapter| adapter.platform() == platform).expect("each platform has an adapter")
}

/// Returns the adapter for a hook's payload. `named` is the platform on the hook's command line. Other agents run the
/// hooks in Claude Code's settings, so the name of Claude Code is ignored.
pub fn recognised(named: Option<Platform>, payload: &Value) -> &'static dyn Adapter {
    match named.filter(|named| *named != Platform::ClaudeCode) {
        Some(named) => adapter(named),
        None => *ADAPTERS.iter().find(|adapter| adapter.recognises(payload)).unwrap_or(&ADAPTERS[ADAPTERS.len() - 1]),
    }
}

/// Returns the formats of session files, in the order in which a file is matched against them.
pub fn formats() -> impl Iterator<Item = PastFormat> {
    ADAPTERS.iter().rev().flat_map(|adapter| adapter.past()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Event, EventKind};
    use serde_json::json;

    #[test]
    fn a_host_is_named_by_its_own_marks_and_claude_code_by_its_own() {
        for (payload, platform) in [
            (json!({"transcript_path": "/home/dev/.qwen/projects/p/chats/1.jsonl"}), Platform::QwenCode),
            (json!({"transcript_path": "/home/dev/.factory/sessions/p/1.jsonl"}), Platform::Droid),
            (json!({"transcriptPath": "/home/dev/.grok/sessions/p/1/updates.jsonl"}), Platform::GrokBuild),
            (
                json!({"workspaceRoot": "/p", "hookEventName": "session_start", "timestamp": "2026-11-25T14:08:31Z"}),
                Platform::GrokBuild,
            ),
            (json!({"transcript_path": "/Users/dev/.auggie/sessions/1.json"}), Platform::Other),
            (json!({"transcript_path": "C:\\Users\\dev\\.auggie\\sessions\\1.json"}), Platform::Other),
            (json!({"transcript_path": "/home/dev/.claude/projects/p/1.jsonl"}), Platform::ClaudeCode),
            (json!({"transcript_path": "/home/dev/.claude-work/projects/p/1.jsonl"}), Platform::ClaudeCode),
            (json!({"transcript_path": "/home/dev/.config/claude/projects/p/1.jsonl"}), Platform::ClaudeCode),
            (json!({"transcript_path": "/home/dev/.work/projects/p/1.jsonl"}), Platform::ClaudeCode),
            (json!({"transcript_path": "/work/.hidden/t.jsonl"}), Platform::ClaudeCode),
            (json!({"hook_event_name": "Stop"}), Platform::ClaudeCode),
        ] {
            assert_eq!(recognised(None, &payload).platform(), platform, "{payload}");
        }
    }

    /// A text that stands where a prompt does, and whether it is a person's.
    const SAID: [(&str, bool); 14] = [
        ("Use Redis", true),
        ("<my-button> does not render", true),
        ("<div>\nwhy is this empty?", true),
        ("<pasted-log>\nerror\n</pasted-log>\nFix this", true),
        ("<agent-message from=\"a1\">\nNever call the billing API directly\n</agent-message>", false),
        ("<cross-session-message from=\"b\">Push it</cross-session-message>", false),
        ("<teammate-message teammate_id=\"x\">Push it</teammate-message>", false),
        ("<subagent_notification>\n{\"status\":\"done\"}\n</subagent_notification>", false),
        ("Another Claude session sent a message:\nPush it", false),
        ("[Subagent hand-back] The report", false),
        ("<task-notification>\n<task-id>b1</task-id>\n<status>running</status>\n</task-notification>", false),
        ("[SYSTEM NOTIFICATION - NOT USER INPUT]\nIt ended", false),
        ("2 background agents were stopped by the user.", false),
        ("<scheduled-run id=\"4\">\nNever deploy\n</scheduled-run>", false),
    ];

    /// A hook's payload with a prompt, for each agent.
    fn payloads(said: &str) -> Vec<(Platform, Value)> {
        let like_claude = |transcript: &str| json!({"hook_event_name": "UserPromptSubmit", "session_id": "s", "transcript_path": transcript, "prompt": said, "cwd": "/p"});
        let with = |mut payload: Value, key: &str, value: Value| {
            payload[key] = value;
            payload
        };
        vec![
            (Platform::ClaudeCode, like_claude("/home/dev/.claude/projects/p/s.jsonl")),
            (Platform::Codex, with(like_claude("/home/dev/.codex/sessions/rollout-1.jsonl"), "turn_id", json!("t"))),
            (Platform::QwenCode, like_claude("/home/dev/.qwen/projects/p/chats/s.jsonl")),
            (Platform::Droid, like_claude("/home/dev/.factory/sessions/p/s.jsonl")),
            (Platform::Other, like_claude("/home/dev/.auggie/sessions/s.json")),
            (
                Platform::GrokBuild,
                json!({"hookEventName": "user_prompt_submit", "sessionId": "s", "workspaceRoot": "/p", "cwd": "/p", "prompt": said}),
            ),
            (
                Platform::Gemini,
                with(like_claude("/home/dev/.gemini/tmp/p/chats/s.jsonl"), "hook_event_name", json!("BeforeAgent")),
            ),
            (Platform::CopilotCli, json!({"sessionId": "s", "timestamp": 1, "cwd": "/p", "prompt": said})),
            (Platform::OpenCode, with(like_claude(""), "agent", json!("opencode"))),
            (
                Platform::Cursor,
                json!({"hook_event_name": "beforeSubmitPrompt", "conversation_id": "s", "generation_id": "g", "workspace_roots": ["/p"], "prompt": said, "cursor_version": "3"}),
            ),
        ]
    }

    /// Lines of a session file with a prompt, for formats of lines.
    fn session_lines(said: &str) -> Vec<(Platform, Vec<Value>)> {
        let at = "2026-11-20T09:00:00Z";
        let claude = json!({"type": "user", "sessionId": "s", "uuid": "u", "promptId": "p", "cwd": "/p", "timestamp": at, "message": {"role": "user", "content": said}});
        let codex = |kind: &str, payload: Value| json!({"timestamp": at, "type": kind, "payload": payload});
        vec![
            (Platform::ClaudeCode, vec![claude]),
            (
                Platform::Codex,
                vec![
                    codex("session_meta", json!({"id": "s", "cwd": "/p"})),
                    codex("event_msg", json!({"type": "task_started", "turn_id": "t"})),
                    codex("event_msg", json!({"type": "user_message", "message": said})),
                ],
            ),
            (
                Platform::CopilotCli,
                vec![
                    json!({"type": "session.start", "timestamp": at, "data": {"sessionId": "s", "context": {"cwd": "/p"}}}),
                    json!({"type": "user.message", "id": "m", "timestamp": at, "data": {"content": said}}),
                ],
            ),
            (
                Platform::Gemini,
                vec![
                    json!({"sessionId": "s", "projectHash": "h", "startTime": at, "lastUpdated": at, "kind": "main"}),
                    json!({"id": "m", "timestamp": at, "type": "user", "content": [{"text": said}]}),
                ],
            ),
        ]
    }

    fn prompts(events: impl IntoIterator<Item = Event>) -> usize {
        events.into_iter().filter(|event| matches!(event.what, EventKind::UserPrompt { .. })).count()
    }

    #[test]
    fn only_a_persons_words_are_prompts_in_each_agents_hooks_and_files() {
        let mut rows = 0;
        for (said, is_persons) in SAID {
            for (platform, payload) in payloads(said) {
                let adapter = recognised(None, &payload);
                assert_eq!(adapter.platform(), platform, "{payload}");
                let events = adapter.decode(&payload, &DecodeContext { now: 1, skip_tools: &[] }).unwrap();
                assert_eq!(prompts(events), usize::from(is_persons), "hook of {platform:?}: {said}");
                rows += 1;
            }
            for (platform, lines) in session_lines(said) {
                let options = past::PastOptions { path: "/home/dev/s.jsonl".into(), ..past::PastOptions::default() };
                let (mut reader, mut found) = ((adapter(platform).past()[0].reader)(&options), past::Found::default());
                lines.into_iter().enumerate().for_each(|(at, line)| reader.line(line, at as u64, &mut found));
                reader.end(9, true, &mut found);
                assert_eq!(prompts(found.events), usize::from(is_persons), "file of {platform:?}: {said}");
                rows += 1;
            }
        }
        assert_eq!(rows, 196);
    }

    #[test]
    fn each_format_has_a_mark_that_no_other_has() {
        let of_claude = json!({"type": "user", "sessionId": "s", "cwd": "/p", "message": {"role": "user", "content": "Fix it"}});
        let of_droid = json!({"type": "session_start", "id": "s", "hostId": "h", "cwd": "/p"});
        let start = json!({"type": "session.start", "data": {"sessionId": "s", "context": {"cwd": "/p"}}});
        let mut of_code = start.clone();
        of_code["data"]["vscodeVersion"] = json!("1.110");
        let blocks = json!([{"type": "text", "text": "Fix it"}]);
        let known = [
            (Some(Platform::ClaudeCode), of_claude),
            (
                Some(Platform::ClaudeCode),
                json!({"type": "assistant", "sessionId": "s", "message": {"role": "assistant", "content": blocks}}),
            ),
            (Some(Platform::Codex), json!({"type": "session_meta", "payload": {"id": "s", "cwd": "/p"}})),
            (Some(Platform::Codex), json!({"id": "s", "timestamp": "2025-06-18T04:57:11Z", "instructions": null})),
            (Some(Platform::Gemini), json!({"sessionId": "s", "projectHash": "ab", "kind": "main"})),
            (Some(Platform::CopilotCli), start),
            (Some(Platform::VsCode), of_code),
            (Some(Platform::Cursor), json!({"role": "user", "message": {"content": blocks}})),
            (Some(Platform::Droid), of_droid),
            // Agents whose files nmem does not read.
            (
                Some(Platform::QwenCode),
                json!({"type": "user", "sessionId": "s", "uuid": "u", "cwd": "/p", "provenance": "real_user", "message": {"role": "user", "parts": [{"text": "Fix it"}]}}),
            ),
            (
                Some(Platform::Pi),
                json!({"type": "session", "version": 3, "id": "s", "timestamp": "2026-11-25T14:11:57Z", "cwd": "/p"}),
            ),
            (None, json!({"type": "message", "id": "a", "message": {"role": "user", "content": blocks}})),
            (Some(Platform::KimiCode), json!({"type": "metadata", "protocol_version": "1.5", "created_at": 1})),
            (None, json!({"ts": "2026-11-25T14:08:31Z", "type": "turn_started", "session_id": "s"})),
            (Some(Platform::GrokBuild), json!({"timestamp": 1, "method": "session/update", "params": {"sessionId": "s"}})),
            (None, json!({"version": 1, "sessionId": "s", "timestamp": 1, "project": "/p"})),
            (None, json!({"sessionId": "s", "sessionDir": "/d", "workDir": "/p"})),
        ];
        for (expected, line) in known {
            let found: Vec<Platform> = formats().filter(|format| (format.is_line)(&line)).map(|format| format.platform).collect();
            // Formats of one agent may share a mark: its documents hold the same messages.
            assert!(found.iter().all(|platform| Some(*platform) == expected), "{found:?}: {line}");
            assert_eq!(found.first().copied(), expected, "{line}");
        }
    }

    #[test]
    fn structure_counts_before_the_text() {
        let of_client = |key: &str, value: Value| {
            let mut payload = json!({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "Deploy every Friday"});
            payload[key] = value;
            payload
        };
        for (payload, is_persons) in [
            (of_client("origin", json!({"kind": "task-notification"})), false),
            (of_client("origin", json!({"kind": "peer"})), false),
            (of_client("origin", json!({"kind": "human"})), true),
            (of_client("prompt_source", json!("schedule_wakeup")), false),
            (of_client("prompt_source", json!("peer_message")), false),
            (of_client("source", json!("loop_wakeup")), false),
            (of_client("prompt_source", json!("user")), true),
            (
                json!({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt_source": "user", "prompt": "<a-frame>\nx\n</a-frame>"}),
                true,
            ),
            // A subagent's prompt comes from its parent.
            (
                json!({"hook_event_name": "UserPromptSubmit", "session_id": "s", "turn_id": "t", "agent_id": "a", "prompt": "Do it"}),
                false,
            ),
            (json!({"sessionId": "c", "timestamp": 1, "parentAgentId": "s", "prompt": "Do it"}), false),
        ] {
            let events = recognised(None, &payload).decode(&payload, &DecodeContext { now: 1, skip_tools: &[] }).unwrap();
            assert_eq!(prompts(events), usize::from(is_persons), "{payload}");
        }
    }
}
