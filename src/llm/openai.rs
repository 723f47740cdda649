//! Chat completions through the OpenAI API (`POST /chat/completions`), which many servers offer.

use super::http::post;
use crate::model::{Answer, Endpoint, LlmError, Question};
use serde_json::{Value, json};
use std::time::Duration;

/// Sends one request.
pub fn ask(question: &Question, to: &Endpoint, limit: Duration) -> Result<Answer, LlmError> {
    let key = to.key.as_ref().map(|key| format!("Bearer {key}"));
    let headers: Vec<(&str, &str)> = key.iter().map(|key| ("authorization", key.as_str())).collect();
    // Newer OpenAI models reject the parameter name that all other servers expect.
    let most = if to.base_url.contains("://api.openai.com") { "max_completion_tokens" } else { "max_tokens" };
    let body = json!({
        "model": to.model,
        most: question.answer_tokens,
        "messages": [{"role": "system", "content": question.system_with_form()}, {"role": "user", "content": question.user}],
    });
    let answer = post(&format!("{}/chat/completions", to.base_url), &headers, &body, to, limit)?;
    let usage = |name: &str| answer["usage"][name].as_i64().filter(|n| *n >= 0);
    Ok(Answer {
        is_cut: false,
        text: content(&answer["choices"][0]["message"]["content"]),
        input_tokens: usage("prompt_tokens"),
        output_tokens: usage("completion_tokens"),
    })
}

/// A string, or a list of parts.
fn content(content: &Value) -> String {
    let parts = content.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
    content.as_str().map_or_else(|| parts.collect(), String::from)
}
