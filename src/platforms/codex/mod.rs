//! Codex: its session files. Hooks are not installed for it yet.
//!
//! `past` reads a file, `calls` its tool calls; `output` reads what tools print, `token_totals` counts tokens by turn.

mod calls;
mod output;
mod past;
mod token_totals;

pub use past::PAST;
