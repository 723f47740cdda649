//! Codex: its hooks and session files.
//!
//! `hooks` translates hook events, `past` reads a session file, `calls` reads its tool calls, `output` parses tool
//! output, `token_totals` counts tokens per turn.

mod calls;
mod hooks;
mod output;
mod past;
mod token_totals;

pub use hooks::Codex;
