//! Use case: turns work units into memories. Rules always run when a turn, a session or a conversation ends; a model
//! runs if one is configured and a call is due.
//!
//! Read in this order: `rules`; `llm` (one call of a language model) and `llm_at_stop` (when a hook calls the model);
//! `embed_memories` and `embedding`; `tests`.

mod embed_memories;
pub mod embedding;
mod llm;
mod llm_at_stop;
mod rules;

pub use embed_memories::{BATCH, EmbeddingClient, shown};
pub use embedding::embed_at_stop;
pub use llm::{DistilOutcome, Observer};
pub use llm_at_stop::{llm_at_stop, llm_may_see, llm_note};
pub use rules::{Distiller, settle};

#[cfg(test)]
mod tests;
