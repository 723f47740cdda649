//! The wire formats of providers: what a request has, what their documented errors come to, and what a person sees of
//! them. The bodies are those of the providers' own documentation.

use crate::world::models::{ANSWER, says, with_model, work};
use crate::world::server::{RenderedQuestion, Reply};
use serde_json::{Value, json};
use std::sync::Arc;

/// An answer after the schema.
const JSON_ANSWER: &str = r#"{"keep": [], "withdraw": [], "observations": [{"sources": [1, 2, 3, 4, 5], "corrects": [1], "type": "bugfix",
"title": "The exporter quotes commas", "subtitle": "", "facts": ["src/export.rs quotes a field that holds a comma"], "narrative": "They are quoted now.",
"concepts": ["gotcha"], "functions_touched": [], "classes_touched": [], "modules_affected": []}],
"summary": {"request": "Rows with commas are broken", "investigated": "", "learned": "", "completed": "Quotes were added.", "next_steps": "", "notes": ""}}"#;

/// Output of `nmem distil` about one unit, the number of requests, and the recorded call.
fn seen(provider: &str, reply: Reply) -> String {
    let (world, server) = with_model(reply, provider);
    work(&world, "first");
    let done = world.nmem(&["distil"]);
    let text = done.text();
    let line = text.lines().find_map(|line| line.strip_prefix("nmem: ")).or_else(|| text.lines().next()).unwrap();
    let line = line.split("; ").next().filter(|_| done.code == Some(0)).unwrap_or(line);
    // Whatever happened, the rules' memories are there, or the model's in their place.
    assert!(world.count("SELECT count(*) FROM memories WHERE superseded_by IS NULL AND kind = 'observation'") >= 1, "{text}");
    format!("{} | asked {} | {line}", world.sql("SELECT outcome FROM spend"), server.count())
}

fn table(provider: &str, cases: Vec<(&str, Reply)>) -> String {
    cases.into_iter().map(|(name, reply)| format!("{name}\n    {}\n", seen(provider, reply))).collect()
}

fn raw(status: u16, headers: &'static str, body: Value) -> Reply {
    Reply::Raw(status, headers, body.to_string())
}

/// Refuses requests that have a part, and answers those without it.
fn refuses(part: fn(&Value) -> bool, message: &'static str, answer: &'static str) -> Reply {
    Reply::Depends(Arc::new(move |asked: &RenderedQuestion| match part(&asked.body) {
        true => raw(400, "", json!({"error": {"message": message, "type": "invalid_request_error"}})),
        false => says(answer),
    }))
}

#[test]
fn what_anthropic_answers_at_its_worst() {
    let error = |kind: &str, message: &str| json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy"});
    let message = |content: Value, stop: &str| {
        json!({"id": "msg_1", "type": "message", "role": "assistant", "content": content, "stop_reason": stop,
               "usage": {"input_tokens": 40, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 1100, "output_tokens": 210}})
    };
    let half = &JSON_ANSWER[..JSON_ANSWER.find("\"summary\"").unwrap()];
    let cases = vec![
        ("a wrong key", raw(401, "", error("authentication_error", "invalid x-api-key"))),
        (
            "no credit",
            raw(
                400,
                "",
                error(
                    "invalid_request_error",
                    "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.",
                ),
            ),
        ),
        ("a bill that was not paid", raw(402, "", error("billing_error", "There is an issue with your billing."))),
        (
            "no permission",
            raw(403, "", error("permission_error", "Your API key does not have permission to use the specified resource.")),
        ),
        ("an unknown model", raw(404, "", error("not_found_error", "model: claude-nonesuch"))),
        ("too large", raw(413, "", error("request_too_large", "Request exceeds the maximum size"))),
        (
            "a rate limit, for a second",
            raw(
                429,
                "retry-after: 1\r\n",
                error(
                    "rate_limit_error",
                    "This request would exceed your organization's rate limit of 50,000 input tokens per minute.",
                ),
            ),
        ),
        (
            "a rate limit, for a day",
            raw(
                429,
                "retry-after: 86400\r\n",
                error("rate_limit_error", "Number of requests has exceeded your daily rate limit."),
            ),
        ),
        ("an error inside", raw(500, "", error("api_error", "Internal server error"))),
        ("overload", raw(529, "", error("overloaded_error", "Overloaded"))),
        ("a gateway's page", Reply::Raw(502, "", "<html><head><title>502 Bad Gateway</title></head></html>".into())),
        ("a refusal", raw(200, "", message(json!([]), "refusal"))),
        ("a cut answer, in its summary", raw(200, "", message(json!([{"type": "text", "text": half}]), "max_tokens"))),
        (
            "a cut answer that is thinking alone",
            raw(200, "", message(json!([{"type": "thinking", "thinking": "", "signature": "x"}]), "max_tokens")),
        ),
        (
            "effort, which an older model does not have",
            refuses(
                |body| body["output_config"]["effort"].is_string(),
                "output_config.effort: this model does not support the effort parameter.",
                JSON_ANSWER,
            ),
        ),
        (
            "no structured output at all",
            refuses(|body| !body["output_config"].is_null(), "output_config: Extra inputs are not permitted", ANSWER),
        ),
        (
            "a sound answer behind its thinking",
            raw(
                200,
                "",
                message(
                    json!([{"type": "thinking", "thinking": "", "signature": "x"}, {"type": "text", "text": JSON_ANSWER}]),
                    "end_turn",
                ),
            ),
        ),
    ];
    insta::assert_snapshot!(table("anthropic", cases));
}

#[test]
fn what_servers_of_the_openai_kind_answer_at_their_worst() {
    let error = |message: &str, kind: &str, code: Value| json!({"error": {"message": message, "type": kind, "param": null, "code": code}});
    let choice = |message: Value, finish: &str| {
        json!({"id": "chatcmpl-1", "object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": finish}],
               "usage": {"prompt_tokens": 1140, "completion_tokens": 210, "prompt_tokens_details": {"cached_tokens": 1024}}})
    };
    let half = &JSON_ANSWER[..JSON_ANSWER.find("\"summary\"").unwrap()];
    let cases = vec![
        (
            "OpenAI: a wrong key, repeated in part",
            raw(
                401,
                "",
                error(
                    "Incorrect API key provided: key-of-t********user. You can find your API key at https://platform.openai.com/account/api-keys.",
                    "invalid_request_error",
                    json!("invalid_api_key"),
                ),
            ),
        ),
        (
            "OpenAI: an empty account",
            raw(
                429,
                "",
                error(
                    "You exceeded your current quota, please check your plan and billing details.",
                    "insufficient_quota",
                    json!("insufficient_quota"),
                ),
            ),
        ),
        (
            "OpenAI: a rate limit, in milliseconds",
            raw(
                429,
                "retry-after-ms: 20\r\nretry-after: 1\r\n",
                error(
                    "Rate limit reached for gpt-5-mini on tokens per min (TPM): Limit 200000, Used 199500.",
                    "tokens",
                    json!("rate_limit_exceeded"),
                ),
            ),
        ),
        (
            "OpenAI: an unknown model",
            raw(
                404,
                "",
                error(
                    "The model `gpt-nonesuch` does not exist or you do not have access to it.",
                    "invalid_request_error",
                    json!("model_not_found"),
                ),
            ),
        ),
        (
            "OpenAI: a context that is too small",
            raw(
                400,
                "",
                error(
                    "This model's maximum context length is 4096 tokens. However, your messages resulted in 5120 tokens.",
                    "invalid_request_error",
                    json!("context_length_exceeded"),
                ),
            ),
        ),
        (
            "OpenAI: overload",
            raw(503, "", error("The engine is currently overloaded, please try again later.", "server_error", Value::Null)),
        ),
        (
            "OpenAI: a refusal",
            raw(
                200,
                "",
                choice(
                    json!({"role": "assistant", "content": null, "refusal": "I'm sorry, I cannot assist with that request."}),
                    "stop",
                ),
            ),
        ),
        ("OpenAI: a filter", raw(200, "", choice(json!({"role": "assistant", "content": ""}), "content_filter"))),
        ("OpenAI: a cut answer, in its summary", raw(200, "", choice(json!({"role": "assistant", "content": half}), "length"))),
        (
            "OpenAI: a cut answer that is reasoning alone",
            raw(200, "", choice(json!({"role": "assistant", "content": ""}), "length")),
        ),
        (
            "OpenAI: a temperature that the model does not take",
            refuses(
                |body| !body["temperature"].is_null(),
                "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported.",
                JSON_ANSWER,
            ),
        ),
        (
            "OpenAI: no structured output",
            refuses(
                |body| !body["response_format"].is_null(),
                "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
                ANSWER,
            ),
        ),
        (
            "OpenAI: neither, nor a stop sequence",
            refuses(
                |body| ["response_format", "temperature", "stop"].iter().any(|name| !body[name].is_null()),
                "Unsupported parameter.",
                ANSWER,
            ),
        ),
        (
            "OpenRouter: no credit",
            raw(
                402,
                "",
                json!({"error": {"code": 402, "message": "Insufficient credits. Add more using https://openrouter.ai/credits"}}),
            ),
        ),
        (
            "OpenRouter: an error of the provider in a sound answer",
            raw(
                200,
                "",
                json!({"id": "gen-1", "error": {"code": 429, "message": "Provider returned error", "metadata": {"provider_name": "X"}}}),
            ),
        ),
        (
            "a router: an error without a status",
            raw(200, "", json!({"error": {"code": "upstream", "message": "Upstream failed"}})),
        ),
        (
            "OpenRouter: an error in a choice",
            raw(
                200,
                "",
                json!({"choices": [{"error": {"code": 502, "message": "Provider disconnected"}, "message": {"content": ""}, "finish_reason": "error"}]}),
            ),
        ),
        (
            "Ollama: a model that is not there",
            raw(
                404,
                "",
                json!({"error": {"message": "model \"llama9\" not found, try pulling it first", "type": "api_error", "param": null, "code": null}}),
            ),
        ),
        (
            "vLLM: a bad request, in its own form",
            raw(
                400,
                "",
                json!({"object": "error", "message": "[{'type': 'extra_forbidden', 'loc': ('body', 'stop')}]", "type": "BadRequestError", "code": 400}),
            ),
        ),
        ("a page, not an API", Reply::Raw(200, "", "<!doctype html><title>Welcome</title>".into())),
    ];
    insta::assert_snapshot!(table("openai", cases));
}

#[test]
fn a_request_asks_for_structure_and_marks_what_never_changes() {
    let (world, server) = with_model(says(JSON_ANSWER), "anthropic");
    work(&world, "first");
    world.nmem(&["distil"]);
    let body = server.last().body;
    let cached = &body["system"][0];
    assert_eq!(cached["cache_control"]["type"], "ephemeral");
    assert!(!cached["text"].as_str().unwrap().contains("<answer>"), "the schema says the form");
    assert_eq!(body["output_config"]["format"]["schema"]["type"], "object");
    assert!(body["temperature"].is_null() && body["tool_choice"].is_null(), "models from 2026 on refuse them");

    let (world, server) = with_model(says(JSON_ANSWER), "openai");
    work(&world, "first");
    world.nmem(&["distil"]);
    let body = server.last().body;
    assert_eq!(body["messages"][0]["role"], "system", "instructions come first");
    assert_eq!((&body["response_format"]["json_schema"]["strict"], &body["temperature"]), (&json!(true), &json!(0)));
    let superseded = "SELECT (SELECT title FROM memories n WHERE n.id = m.superseded_by) FROM memories m WHERE made_by = 'rules' AND kind = 'observation'";
    assert_eq!(world.sql(superseded), "The exporter quotes commas", "the note is corrected");
}

#[test]
fn tokens_are_counted_as_the_provider_counts_them() {
    let usage = json!({"content": [{"type": "text", "text": ANSWER}], "stop_reason": "end_turn",
        "usage": {"input_tokens": 40, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 1000, "output_tokens": 210}});
    let (world, _server) = with_model(raw(200, "", usage), "anthropic");
    work(&world, "first");
    world.nmem(&["distil"]);
    assert_eq!(world.sql("SELECT input_tokens, output_tokens, estimated FROM spend"), "1140|210|0", "cached ones, too");
}
