//! Claude Code: its hooks, its session files and its notes.
//!
//! `hooks` lists the subscribed events, `events` decodes them, `past` reads session files (`typed` finds prompts in
//! them), `notes` reads the agent's own notes, `commits_and_tasks` finds a call's commit and task list, `values`
//! converts JSON values to text.

mod commits_and_tasks;
mod events;
mod hooks;
pub mod notes;
mod past;
mod typed;
mod values;

pub use events::decode;
pub use hooks::ClaudeCode;
