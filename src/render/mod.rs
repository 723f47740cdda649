//! Turns what was found into text: for an agent's context, for a terminal, for machines.

pub mod clean;
pub mod context;
pub mod hits;
pub mod style;
pub mod time;
