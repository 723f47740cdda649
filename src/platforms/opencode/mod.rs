//! OpenCode: a plugin that reports to nmem, and its session files.
//!
//! `hooks` is the adapter and `nmem.js` the plugin; `tools` maps its tools to Claude Code's, `past` reads sessions.

mod hooks;
mod past;
mod tools;

pub use hooks::OpenCode;
