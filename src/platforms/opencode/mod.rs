//! OpenCode: a plugin that reports to nmem, and session files.
//!
//! `hooks` is the adapter and `nmem.js` the plugin; `tools` names what the tools do, `past` reads sessions.

mod hooks;
mod past;
mod tools;

pub use hooks::OpenCode;
