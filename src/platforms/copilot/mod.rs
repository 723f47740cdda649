//! Copilot: the session files of its CLI and of VS Code.
//!
//! `past` reads them, `tools` names what its tools do.

mod past;
mod tools;

pub use past::{CLI, VS_CODE};
