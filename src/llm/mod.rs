//! Language models and embedding models, each call blocking and bounded. Files: `servers`, `programs` (of agents),
//! `guard` (kills a child with its parent), `local` (embeddings in this process).

pub mod guard;
pub mod local;
mod programs;
pub mod servers;

use crate::model::{Answer, EmbeddingModel, Endpoint, LlmError, Passages, Provider, Question, Vector};
use crate::redact::Clean;
use servers::{OptionalParts, failure};
use std::time::{Duration, Instant};

/// Upper bound for the tokens of one call, beyond any real model.
const TOKENS: i64 = 10_000_000;
/// Minimum time left for a call; with less, none is made.
pub const LEAST: Duration = Duration::from_millis(500);
/// Minimum wait before the one retry; the server may ask for more.
const AGAIN: Duration = Duration::from_millis(500);

/// Asks the model, and retries once if that may help and fits into the limit.
///
/// # Errors
///
/// Returns the reason if there is no answer.
pub fn ask(question: &Clean<Question>, to: &Endpoint, limit: Duration) -> Result<Answer, LlmError> {
    let until = Instant::now() + limit;
    let failure = match once(question, to, limit) {
        Ok(answer) => return Ok(answer),
        Err(failure) => failure,
    };
    let Some(wait) = failure.again else { return Err(failure) };
    let wait = wait.max(AGAIN);
    if until.saturating_duration_since(Instant::now()) < wait + LEAST {
        return Err(failure);
    }
    std::thread::sleep(wait);
    once(question, to, until.saturating_duration_since(Instant::now()))
}

/// Asks for one answer. The request is sent again without the optional parts that the server refuses.
fn once(question: &Question, to: &Endpoint, limit: Duration) -> Result<Answer, LlmError> {
    let until = Instant::now() + limit;
    let mut parts = OptionalParts::all();
    let answer = loop {
        let left = until.saturating_duration_since(Instant::now());
        let asked = match to.provider {
            Provider::None | Provider::Agent => Err(failure("none", "no provider is configured")),
            Provider::Anthropic => servers::ask_anthropic(question, to, parts, left),
            Provider::OpenAi => servers::ask_openai(question, to, parts, left),
            Provider::Program(_) => programs::ask(question, to, left),
        };
        match asked {
            Ok(answer) => break answer,
            Err(failure) => parts = parts.without_what_is_refused(&failure).ok_or(failure)?,
        }
    };
    // Impossible token counts are ignored.
    let count = |tokens: Option<i64>| tokens.filter(|tokens| (0..=TOKENS).contains(tokens));
    let answer = Answer { input_tokens: count(answer.input_tokens), output_tokens: count(answer.output_tokens), ..answer };
    match answer.text.trim().is_empty() {
        true => Err(failure("no answer", "the answer contains no text")),
        false => Ok(answer),
    }
}

/// Returns the vectors of some texts, in order and all of one dimension.
///
/// # Errors
///
/// Returns the reason if there are none.
pub fn embed(texts: &Clean<Passages>, model: &EmbeddingModel, limit: Duration) -> Result<Vec<Vector>, LlmError> {
    match model {
        EmbeddingModel::Server(to) => servers::embed(texts, to, limit),
        EmbeddingModel::Local(model) => local::embed(&texts.0, model),
    }
}
