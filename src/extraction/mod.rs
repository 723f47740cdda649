//! Extraction of memories by a language model: builds the question ([`question`]), reads the answer ([`read`]) and
//! turns it into drafts ([`to_drafts()`]). No I/O; `llm` makes the call.
//!
//! The question contains text of tools, pages and programs, some of it possibly hostile. ADR/0025 describes how it is
//! kept from steering the model.
//!
//! Read in this order: `prompt`, `blocks`, `hunk`, `block_priority`, `notes` (memories created by rules) and `form`
//! (the question); `answer` from `json_answer` or from `xml_answer` with `lenient_xml`; `to_drafts` and `terms`
//! (memories).

mod answer;
mod block_priority;
mod blocks;
mod form;
mod hunk;
mod json_answer;
mod lenient_xml;
mod notes;
mod prompt;
mod terms;
mod to_drafts;
mod xml_answer;

pub use answer::{ParsedAnswer, ParsedObservation};
pub use blocks::EventBlock;
pub use prompt::{PromptRequest, RenderedQuestion, question};
pub use to_drafts::{LlmDraft, LlmDrafts, UnitContext, to_drafts};

use crate::model::Domain;

/// Parses an answer in either form.
pub fn read(text: &str, domain: &Domain) -> ParsedAnswer {
    json_answer::read(text).unwrap_or_else(|| xml_answer::read(text, domain))
}
