//! Why there is no answer, and how long one may be.

use crate::model::Refusal;

/// Bytes of an answer at most.
pub const ANSWER_BYTES: u64 = 1 << 20;

/// A refusal that asking again would not change.
pub fn refusal(outcome: &str, what: impl Into<String>) -> Refusal {
    Refusal { outcome: outcome.to_string(), what: what.into(), again: None }
}
