//! Cursor: its hooks, which are those of the IDE and of `cursor-agent`, and its chats.
//!
//! `hooks` is the adapter, `tools` names what its tools do; `past` reads chats, with `store_db` and `transcripts` those of
//! the CLI.

mod hooks;
mod past;
mod store_db;
mod tools;
mod transcripts;

pub use hooks::Cursor;
