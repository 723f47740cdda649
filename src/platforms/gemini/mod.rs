//! Gemini CLI: its hooks and session files.
//!
//! `hooks` is the adapter, `tools` names what its tools do and reads what they answer, `past` reads a session file.

mod hooks;
mod past;
mod tools;

pub use hooks::Gemini;
