//! Extraction of memories by a language model: builds the question ([`question`]), reads the answer ([`read`]) and
//! turns it into drafts ([`to_drafts()`]). No I/O; `llm` makes the call.
//!
//! The question contains text of tools, pages and programs, some of it possibly hostile. ADR/0025 says what keeps it
//! from steering the model.
//!
//! Read in this order: `prompt`, `blocks`, `block_priority` and `terms` (the question); `answer` with `lenient_xml`
//! (the answer); `to_drafts` (memories).

mod answer;
mod block_priority;
mod blocks;
mod lenient_xml;
mod prompt;
mod terms;
mod to_drafts;

pub use answer::{ParsedAnswer, ParsedObservation, read};
pub use blocks::EventBlock;
pub use prompt::{PromptRequest, RenderedQuestion, question};
pub use to_drafts::{LlmDraft, UnitContext, to_drafts};
