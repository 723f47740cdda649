//! Copilot: its CLI and VS Code, which share tools, session files and the user's hooks file.
//!
//! `cli` and `vs_code` are the adapters, `hooks` what they share; `past` reads session files, `chat` VS Code's own record
//! of a chat; `tools` names what the tools do.

mod chat;
mod cli;
mod hooks;
mod past;
mod tools;
mod vs_code;

pub use cli::CopilotCli;
pub use vs_code::VsCode;
