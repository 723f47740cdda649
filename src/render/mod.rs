//! Text and JSON for people and agents, without I/O. Everything passes `clean`. Files: `style` (colours, wrapping),
//! `time`, `block` (lines within a budget), `session_start` (the injected context), `ranked_units` (context for a
//! query or prompt), `results` (search, errors, forms of commands), `session_log`, `memory_text`, `unit_text`,
//! `details` (`nmem show`), `evidence_text` (the work behind a line or a commit, checks, a unit for somebody else).

mod block;
pub mod clean;
pub mod details;
pub mod evidence_text;
pub mod memory_text;
pub mod ranked_units;
pub mod results;
pub mod session_log;
pub mod session_start;
pub mod style;
pub mod time;
pub mod unit_text;

/// `1 session`, `3 sessions`.
pub fn count(n: impl Into<i64>, one: &str, many: &str) -> String {
    match n.into() {
        1 => format!("1 {one}"),
        n => format!("{n} {many}"),
    }
}
