//! Errors of model calls, and the maximum size of an answer.

use crate::model::LlmError;

/// Maximum bytes of an answer.
pub const ANSWER_BYTES: u64 = 1 << 20;

/// An error that a retry would not fix.
pub fn failure(outcome: &str, what: impl Into<String>) -> LlmError {
    LlmError { outcome: outcome.to_string(), what: what.into(), again: None }
}
