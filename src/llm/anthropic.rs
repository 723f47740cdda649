//! The Anthropic Messages API (`POST /v1/messages`, version 2023-06-01).
//!
//! The instructions are the same for all units, so they are marked for the prompt cache. No temperature is sent, and no
//! tool is forced: models from 2026 on refuse both. `max_tokens` includes thinking.

use super::http::{OptionalParts, cut_off, post, refused};
use crate::model::{Answer, Endpoint, LlmError, Question};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Sends one request.
pub fn ask(question: &Question, to: &Endpoint, parts: OptionalParts, limit: Duration) -> Result<Answer, LlmError> {
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
