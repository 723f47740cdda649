//! Chat completions through the OpenAI API (`POST /chat/completions`), which many servers offer.
//!
//! Instructions come first and never change, which is all that these servers need to cache them.

use super::failure::{cut_off, refused};
use super::http::post;
use super::optional_parts::OptionalParts;
use crate::model::{Answer, Endpoint, LlmError, Question};
use serde_json::{Value, json};
use std::time::Duration;

/// End of an answer in XML.
const END: &str = "</answer>";

/// Sends one request.
pub fn ask(question: &Question, to: &Endpoint, parts: OptionalParts, limit: Duration) -> Result<Answer, LlmError> {
    let key = to.key.as_ref().map(|key| format!("Bearer {key}"));
    let headers: Vec<(&str, &str)> = key.iter().map(|key| ("authorization", key.as_str())).collect();
    // Newer OpenAI models reject the parameter name that all other servers expect.
    let most = if to.base_url.contains("://api.openai.com") { "max_completion_tokens" } else { "max_tokens" };
    let system = if parts.schema { question.system.clone() } else { question.system_with_form() };
    let mut body = json!({
        "model": to.model,
        most: question.answer_tokens,
        "messages": [{"role": "system", "content": system}, {"role": "user", "content": question.user}],
    });
    if parts.temperature {
        body["temperature"] = json!(0);
    }
    if parts.schema {
        let schema = json!({"name": "record", "strict": true, "schema": question.schema});
        body["response_format"] = json!({"type": "json_schema", "json_schema": schema});
    } else if parts.stop {
        body["stop"] = json!([END]);
    }
    let answer = post(&format!("{}/chat/completions", to.base_url), &headers, &body, to, limit)?;
    let choice = &answer["choices"][0];
    let text = content(&choice["message"]["content"]);
    let is_cut = choice["finish_reason"] == "length";
    if let Some(refusal) = choice["message"]["refusal"].as_str().filter(|refusal| !refusal.trim().is_empty()) {
        return Err(refused(refusal, to));
    }
    if choice["finish_reason"] == "content_filter" {
        return Err(refused("its content filter stopped the answer", to));
    }
    if is_cut && text.trim().is_empty() {
        return Err(cut_off());
    }
    let usage = |name: &str| answer["usage"][name].as_i64().filter(|n| *n >= 0);
    Ok(Answer { text, is_cut, input_tokens: usage("prompt_tokens"), output_tokens: usage("completion_tokens") })
}

/// Returns the text of a string, or of a list of parts.
fn content(content: &Value) -> String {
    let texts = content.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
    content.as_str().map_or_else(|| texts.collect(), String::from)
}
