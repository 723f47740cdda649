//! The Anthropic Messages API (`POST /v1/messages`, version 2023-06-01).

use super::http::post;
use crate::model::{Answer, Endpoint, LlmError, Question};
use serde_json::json;
use std::time::Duration;

/// Sends one request.
pub fn ask(question: &Question, to: &Endpoint, limit: Duration) -> Result<Answer, LlmError> {
    let base = to.base_url.trim_end_matches("/v1");
    let headers = [("anthropic-version", "2023-06-01"), ("x-api-key", to.key.as_deref().unwrap_or_default())];
    let body = json!({
        "model": to.model,
        "max_tokens": question.answer_tokens,
        "system": question.system_with_form(),
        "messages": [{"role": "user", "content": question.user}],
    });
    let answer = post(&format!("{base}/v1/messages"), &headers, &body, to, limit)?;
    let texts = answer["content"].as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
    let usage = |name: &str| answer["usage"][name].as_i64().filter(|n| *n >= 0);
    let read = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"].into_iter().filter_map(usage);
    Ok(Answer {
        is_cut: false,
        text: texts.collect::<Vec<_>>().join("\n"),
        input_tokens: usage("input_tokens").map(|_| read.fold(0, i64::saturating_add)),
        output_tokens: usage("output_tokens"),
    })
}
