//! Turns results into text: context for agents, output for terminals, JSON for programs.
//!
//! Read in this order: `clean` (sanitises all text), `style`, `wrap` and `time`; `context`, `block`, `budget`, `session`,
//! `session_state`, `ranked_units`, `memory_list` and `name` (context for agents); `agents_file` (decisions for an
//! `AGENTS.md`); `memories`, `units`, `hits`, `log`, `commands`, `command_line`, `team` and
//! `whole` (output for people and programs).

pub mod agents_file;
mod block;
mod budget;
pub mod clean;
pub mod command_line;
pub mod commands;
pub mod context;
pub mod hits;
pub mod log;
pub mod memories;
pub mod memory_list;
mod name;
pub mod ranked_units;
mod session;
pub mod session_state;
pub mod style;
pub mod team;
pub mod time;
pub mod units;
pub mod whole;
pub mod wrap;

/// `1 session`, `3 sessions`.
pub fn count(n: impl Into<i64>, one: &str, many: &str) -> String {
    match n.into() {
        1 => format!("1 {one}"),
        n => format!("{n} {many}"),
    }
}
