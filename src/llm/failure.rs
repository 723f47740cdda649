//! Errors of model calls, and the maximum size of an answer.

use crate::model::{Endpoint, LlmError};
use crate::redact::Redactor;

/// Maximum bytes of an answer.
pub const ANSWER_BYTES: u64 = 1 << 20;
/// Bytes of the key that a word of a server's text must contain to count as repeating the key.
const KEY_PART: usize = 8;
/// Maximum characters of a server's text in an error.
const TEXT: usize = 200;

/// An error that a retry would not fix.
pub fn failure(outcome: &str, what: impl Into<String>) -> LlmError {
    LlmError { outcome: outcome.to_string(), what: what.into(), again: None }
}

/// Returns the error for a model that declines to answer.
pub fn refused(why: &str, to: &Endpoint) -> LlmError {
    let why = shown(why, to);
    let more = if why.is_empty() { String::new() } else { format!(": {why}") };
    failure("refused", format!("the model refused to answer{more}"))
}

/// Returns the error for an answer that reached its token limit before any text.
pub fn cut_off() -> LlmError {
    failure("cut off", "the answer was cut off at its limit of tokens before it said anything; choose a model that thinks less")
}

/// Returns a server's text in one short line, without secrets: it may repeat the key, whole or in part.
pub fn shown(text: &str, to: &Endpoint) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(TEXT).collect();
    let parts = to.key.iter().flat_map(|key| key.as_bytes().windows(KEY_PART.min(key.len()))).collect::<Vec<_>>();
    let repeats = |word: &str| parts.iter().any(|part| word.as_bytes().windows(part.len()).any(|own| own == *part));
    let words = text.trim().split(' ').map(|word| if repeats(word) { "[key]" } else { word }).collect::<Vec<_>>();
    Redactor::default().clean(words.join(" ")).to_string()
}
