//! Use case: selects the memories that matter now.
//!
//! Read in this order: `ranked` (work units in order of relevance), `start` with `sessions` and `known_elsewhere`, `for_task`, `during_session` and
//! `session_state` (injection), `stale` (changed files), `search`, `related_knowledge` with `related_units` (queries by programs),
//! `errors` and `commands` (what people ask about commands); `domain_concepts` (names of findings in a domain), `tests`.

mod commands;
mod domain_concepts;
mod during_session;
mod errors;
mod for_task;
mod known_elsewhere;
mod ranked;
pub mod related_knowledge;
mod related_units;
mod search;
mod session_state;
mod sessions;
mod stale;
mod start;

pub use commands::command_forms;
pub use during_session::{AtPrompt, Prompt, at_file, at_prompt, at_subagent};
pub use errors::past_errors;
pub use for_task::{CurrentTask, for_new_session, for_task};
pub use ranked::{RecallQuery, ranked, ranked_by};
pub use search::{Searched, search};
pub use session_state::{cleared, session_state};
pub use sessions::overviews;
pub use stale::stale;
pub use start::{SessionContext, at_start};

#[cfg(test)]
mod tests;
