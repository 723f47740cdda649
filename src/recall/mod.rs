//! Use case: selects the memories that matter now.
//!
//! Read in this order: `ranked` (work units in order of relevance), `start` with `sessions` and `known_elsewhere`, `during_session` and
//! `session_state` (injection), `stale` (changed files), `search`, `related_knowledge` with `related_units` (queries by programs),
//! `patterns`; `domain_concepts` (names of findings in a domain), `tests`.

mod domain_concepts;
mod during_session;
mod known_elsewhere;
pub mod patterns;
mod ranked;
pub mod related_knowledge;
mod related_units;
mod search;
mod session_state;
mod sessions;
mod stale;
mod start;

pub use during_session::{AtPrompt, Prompt, at_file, at_prompt};
pub use ranked::{RecallQuery, ranked, ranked_by};
pub use search::with_meaning;
pub use session_state::{cleared, session_state};
pub use sessions::overviews;
pub use stale::stale;
pub use start::{SessionContext, at_start};

#[cfg(test)]
mod tests;
