//! Codex: its hooks and session files.
//!
//! `hooks` translates hook events, `past` reads a session file, `calls` its tool calls; `output` reads what tools print,
//! `token_totals` counts tokens by turn.

mod calls;
mod hooks;
mod output;
mod past;
mod token_totals;

pub use hooks::Codex;
