//! Converts between agents' JSON and events. Only this module knows the field names of hooks.
//!
//! Each agent has a folder with its adapter; [`ADAPTERS`] lists them. An adapter never fails on unknown input: an event
//! without a use decodes to nothing, and a field of the wrong type counts as absent.
//!
//! Read in this order: `payload`, `bounded_json` and `json_repair` (arbitrary stdin), `adapter` (the trait),
//! `decode_context`, `translated`, `answers` and `setup` (common parts of adapters), `claude`, `codex`, `cursor`,
//! `copilot` (also VS Code), `gemini`, `opencode` and `custom` (the adapters), `transcript`, `past`, `past_source` and
//! `patch` (session files), `other_memory` and `claude_mem` (memories of other programs), `json_tree`, `settings` and
//! `mcp_servers` (hooks and nmem's tools in a settings file).

pub mod adapter;
mod answers;
mod bounded_json;
pub mod claude;
pub mod claude_mem;
mod codex;
mod copilot;
mod cursor;
mod custom;
mod decode_context;
mod gemini;
mod json_repair;
mod json_tree;
pub mod mcp_servers;
mod opencode;
pub mod other_memory;
pub mod past;
pub mod past_source;
mod patch;
pub mod payload;
pub mod settings;
pub mod setup;
pub mod transcript;
mod translated;

pub use decode_context::DecodeContext;
pub use translated::{cwd, session_id};

use crate::model::Platform;
use adapter::Adapter;
use past::PastFormat;
use serde_json::Value;

/// The adapters, in the order in which they are tried for a payload. Claude Code's is last: its format has no
/// distinctive field.
pub const ADAPTERS: [&dyn Adapter; 8] = [
    &custom::Custom,
    &cursor::Cursor,
    &codex::Codex,
    &gemini::Gemini,
    &opencode::OpenCode,
    &copilot::VsCode,
    &copilot::CopilotCli,
    &claude::ClaudeCode,
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
