//! Use case: choosing from what is known what matters at a moment (DESIGN §5).
//!
//! Read in this order: `ranked` (work units by all that speaks for them), `start`, `moments` and `standing` (what a
//! session is given, and when), `stale` (files that changed since), `search`, `related` with `pieces` (knowledge that a
//! program asks for), `patterns` (what recurs); `tests`.

mod moments;
pub mod patterns;
mod pieces;
mod ranked;
pub mod related;
mod search;
mod stale;
mod standing;
mod start;

pub use moments::{Prompt, at_file, at_prompt};
pub use ranked::{Asked, ranked, ranked_by};
pub use search::with_meaning;
pub use stale::stale;
pub use standing::{cleared, standing};
pub use start::{Here, Most, at_start};

#[cfg(test)]
mod tests;
