//! Gemini CLI: its hooks and session files.
//!
//! `hooks` is the adapter, `tools` maps its tools to Claude Code's and reads their responses, `past` reads session
//! files.

mod hooks;
mod past;
mod tools;

pub use hooks::Gemini;
