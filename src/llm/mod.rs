//! The edge to language models: a question goes out, redacted, and an answer comes back within a limit of time (DESIGN §6).
//! What comes back is text of somebody else's; `observer` reads it.
//!
//! Read in this order: here one question and its retry; `refusal`; `http` with `anthropic` and `openai`; `claude` (the
//! program) and `guard` (which ends it with the hook); `embed` (vectors).

mod anthropic;
mod claude;
pub mod embed;
pub mod guard;
mod http;
mod openai;
mod refusal;

use crate::model::{Answer, Endpoint, Provider, Question, Refusal};
use crate::redact::Clean;
use refusal::refusal;
use std::time::{Duration, Instant};

/// Tokens of one call at most: more than any model reads.
const TOKENS: i64 = 10_000_000;
/// Time below which nothing is asked: no answer comes so soon.
pub const LEAST: Duration = Duration::from_millis(500);
/// How long a server that says nothing of it is left alone before the one retry.
const AGAIN: Duration = Duration::from_millis(500);

/// Asks, once more where that may help and fits into the limit.
///
/// # Errors
/// Why there is no answer.
pub fn ask(question: &Clean<Question>, to: &Endpoint, limit: Duration) -> Result<Answer, Refusal> {
    let until = Instant::now() + limit;
    let refusal = match once(question, to, limit) {
        Ok(answer) => return Ok(answer),
        Err(refusal) => refusal,
    };
    let Some(wait) = refusal.again else { return Err(refusal) };
    let wait = wait.max(AGAIN);
    if until.saturating_duration_since(Instant::now()) < wait + LEAST {
        return Err(refusal);
    }
    std::thread::sleep(wait);
    once(question, to, until.saturating_duration_since(Instant::now()))
}

fn once(question: &Question, to: &Endpoint, limit: Duration) -> Result<Answer, Refusal> {
    let answer = match to.provider {
        Provider::None => return Err(refusal("none", "no provider is configured")),
        Provider::Anthropic => anthropic::ask(question, to, limit),
        Provider::OpenAi => openai::ask(question, to, limit),
        Provider::Claude => claude::ask(question, to, limit),
    }?;
    // A count that no call can come to is none.
    let count = |tokens: Option<i64>| tokens.filter(|tokens| (0..=TOKENS).contains(tokens));
    let answer = Answer { input_tokens: count(answer.input_tokens), output_tokens: count(answer.output_tokens), ..answer };
    match answer.text.trim().is_empty() {
        true => Err(refusal("no answer", "the answer holds no text")),
        false => Ok(answer),
    }
}
