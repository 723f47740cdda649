//! Codex: `hooks` (live), `past` (past sessions).

mod hooks;
mod past;

pub use hooks::Codex;
