//! Servers of models: the Anthropic Messages API, OpenAI-compatible chat completions and embeddings.

use super::http::{OptionalParts, cut_off, failure, post, refused};
use crate::model::{Answer, Endpoint, LlmError, Passages, Question, Vector};
use crate::redact::Clean;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Sends one request to the Anthropic Messages API (`POST /v1/messages`, version 2023-06-01).
///
/// The instructions are the same for all units, so they are marked for the prompt cache. No temperature is sent, and no
/// tool is forced: models from 2026 on refuse both. `max_tokens` includes thinking.
pub fn ask_anthropic(question: &Question, to: &Endpoint, parts: OptionalParts, limit: Duration) -> Result<Answer, LlmError> {
    let base = to.base_url.trim_end_matches("/v1");
    let headers = [("anthropic-version", "2023-06-01"), ("x-api-key", to.key.as_deref().unwrap_or_default())];
    let system = if parts.schema { question.system.clone() } else { question.system_with_form() };
    let mut body = json!({
        "model": to.model,
        "max_tokens": question.answer_tokens,
        "system": [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": question.user}],
    });
    let mut output = Map::new();
    if parts.schema {
        output.insert("format".into(), json!({"type": "json_schema", "schema": question.schema}));
    }
    if parts.effort {
        output.insert("effort".into(), json!("low"));
    }
    if !output.is_empty() {
        body["output_config"] = Value::Object(output);
    }
    let answer = post(&format!("{base}/v1/messages"), &headers, &body, to, limit)?;
    // Thinking is a separate part, without `text`.
    let texts = answer["content"].as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
    let text = texts.collect::<Vec<_>>().join("\n");
    let is_cut = answer["stop_reason"] == "max_tokens";
    if answer["stop_reason"] == "refusal" {
        return Err(refused(&text, to));
    }
    if is_cut && text.trim().is_empty() {
        return Err(cut_off());
    }
    let usage = |name: &str| answer["usage"][name].as_i64().filter(|n| *n >= 0);
    let read = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"].into_iter().filter_map(usage);
    Ok(Answer {
        text,
        is_cut,
        input_tokens: usage("input_tokens").map(|_| read.fold(0, i64::saturating_add)),
        output_tokens: usage("output_tokens"),
    })
}

/// End of an answer in XML.
const END: &str = "</answer>";

/// Sends one request for a chat completion to an OpenAI-compatible server.
pub fn ask_openai(question: &Question, to: &Endpoint, parts: OptionalParts, limit: Duration) -> Result<Answer, LlmError> {
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

/// Returns the vectors of some texts, in order and all of one dimension.
///
/// # Errors
///
/// Returns the reason if there are none, including a wrong number of vectors or mixed dimensions.
pub fn embed(texts: &Clean<Passages>, to: &Endpoint, limit: Duration) -> Result<Vec<Vector>, LlmError> {
    let key = to.key.as_ref().map(|key| format!("Bearer {key}"));
    let headers: Vec<(&str, &str)> = key.iter().map(|key| ("authorization", key.as_str())).collect();
    let body = json!({"model": to.model, "input": texts.0, "encoding_format": "float"});
    let answer = post(&format!("{}/embeddings", to.base_url), &headers, &body, to, limit)?;
    let broken = || failure("no vectors", "the answer does not contain a vector for each text: is `model` an embedding model?");
    let data = answer["data"].as_array().filter(|data| data.len() == texts.0.len()).ok_or_else(broken)?;
    let mut vectors: Vec<Option<Vector>> = vec![None; data.len()];
    for (at, entry) in data.iter().enumerate() {
        let numbers = entry["embedding"].as_array().ok_or_else(broken)?;
        let numbers: Option<Vec<f32>> = numbers.iter().map(|n: &Value| n.as_f64().map(|n| n as f32)).collect();
        // `index` gives the order, if present.
        let place = entry["index"].as_u64().map_or(at, |index| index as usize);
        *vectors.get_mut(place).ok_or_else(broken)? = numbers.and_then(|numbers| Vector::of(&numbers));
    }
    let vectors: Vec<Vector> = vectors.into_iter().collect::<Option<_>>().ok_or_else(broken)?;
    let length = vectors.first().map_or(0, |vector| vector.numbers.len());
    if vectors.iter().any(|vector| vector.numbers.len() != length) {
        return Err(broken());
    }
    Ok(vectors)
}
