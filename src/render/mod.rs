//! Turns what was found into text: for an agent's context, for a terminal, for machines.
//!
//! Read in this order: `clean` (nothing reaches a reader without it), `style` and `time`; `context`, `block`, `pick`,
//! `session`, `standing`, `past` and `name` (what agents are given); `memories`, `units`, `hits`, `patterns` and `whole`
//! (what people and programs read).

mod block;
pub mod clean;
pub mod context;
pub mod hits;
pub mod memories;
mod name;
pub mod past;
pub mod patterns;
mod pick;
mod session;
pub mod standing;
pub mod style;
pub mod time;
pub mod units;
pub mod whole;

/// `1 session`, `3 sessions`.
pub fn count(n: impl Into<i64>, one: &str, many: &str) -> String {
    match n.into() {
        1 => format!("1 {one}"),
        n => format!("{n} {many}"),
    }
}
