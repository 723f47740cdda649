//! The request to a language model about a unit, and its answer as drafts. Files: `prompt` (the request; `blocks`
//! are its numbered events), `answer` (an answer and its JSON form), `xml_answer`, `to_drafts`.

mod answer;
mod blocks;
mod prompt;
mod to_drafts;
mod xml_answer;

pub use answer::{ParsedAnswer, ParsedObservation, ParsedUnit};
pub use blocks::EventBlock;
pub use prompt::{PromptRequest, RECORD_TOKENS, RenderedQuestion, RequestedUnit, question, shared_bytes, size};
pub use to_drafts::{LlmDraft, LlmDrafts, UnitContext, to_drafts};

use crate::model::Domain;

/// Parses an answer in either form.
pub fn read(text: &str, domain: &Domain) -> ParsedAnswer {
    answer::read(text).unwrap_or_else(|| xml_answer::read(text, domain))
}
