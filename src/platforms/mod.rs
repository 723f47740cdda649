//! Agents. Each has a folder with its hooks and its past sessions; agents' field names occur nowhere else. Files:
//! `adapter` (the trait, the answers of hooks), `other_hosts`
//! (agents that run Claude Code's hooks, custom agents), `payload` (a hook's stdin) and `json_repair`,
//! `speaker` (the person's words: prompts, and answers to questions),
//! `translated` (calls of other agents as Claude Code's), `transcript_tail`, `past` (readers of past sessions),
//! `settings_file` (hooks and MCP servers in settings), `claude_mem` (its database); `claude`, `codex`, `copilot`,
//! `cursor`, `gemini`, `opencode`.

pub mod adapter;
pub mod claude;
pub mod claude_mem;
mod codex;
mod copilot;
mod cursor;
mod gemini;
pub(crate) mod json_repair;
mod opencode;
mod other_hosts;
pub mod past;
pub mod payload;
pub mod settings_file;
mod speaker;
pub mod transcript_tail;
mod translated;

pub use payload::DecodeContext;
pub use translated::{cwd, session_id};

use crate::model::Platform;
use adapter::Adapter;
use past::PastFormat;
use serde_json::Value;

/// The adapters, in the order in which they are tried for a payload. Claude Code's is last: its format has no
/// distinctive field.
pub const ADAPTERS: [&dyn Adapter; 12] = [
    &other_hosts::Custom,
    &other_hosts::QWEN,
    &other_hosts::DROID,
    &other_hosts::GROK,
    &cursor::hooks::Cursor,
    &codex::Codex,
    &gemini::hooks::Gemini,
    &opencode::hooks::OpenCode,
    &copilot::hooks::VsCode,
    &copilot::hooks::CopilotCli,
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
}
