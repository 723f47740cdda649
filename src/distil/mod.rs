//! Use case: work units → memories. By rules always, when a turn, a session or a conversation ends; by a model where the
//! user's config names one and a call is due (DESIGN §2, §6).
//!
//! Read in this order: `rules`; `model` (one call of a language model) and `llm_at_stop` (when a hook makes one);
//! `embed_memories` and `embedding` (vectors of memories and of a request); `tests`.

mod embed_memories;
pub mod embedding;
mod llm_at_stop;
mod model;
mod rules;

pub use embed_memories::{BATCH, Meaning, shown};
pub use embedding::embed_at_stop;
pub use llm_at_stop::{llm_at_stop, llm_may_see, llm_note};
pub use model::{Observer, Outcome};
pub use rules::Distiller;

#[cfg(test)]
mod tests;
