//! Copilot: its CLI and VS Code, which share tools, session files and the user's hooks file.
//!
//! `cli` and `vs_code` are the adapters, `hooks` is their common part; `past` reads session files, `chat` reads VS
//! Code's own chat records; `tools` maps tools to Claude Code's.

mod chat;
mod cli;
mod hooks;
mod past;
mod tools;
mod vs_code;

pub use cli::CopilotCli;
pub use vs_code::VsCode;
