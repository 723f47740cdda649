//! Codex: its session files. Hooks are not installed for it yet.
//!
//! `past` reads session files, `output` what tools print, `token_totals` the tokens.

mod output;
mod past;
mod token_totals;

pub use past::PAST;
