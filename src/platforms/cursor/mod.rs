//! Cursor: its hooks, shared by the IDE and `cursor-agent`, and its chats.
//!
//! `hooks` is the adapter, `tools` maps its tools to Claude Code's; `past` reads chats, `store_db` and `transcripts`
//! read those of the CLI.

mod hooks;
mod past;
mod store_db;
mod tools;
mod transcripts;

pub use hooks::Cursor;
