//! Servers of models: the Anthropic Messages API, OpenAI-compatible chat completions and embeddings. Below them: HTTP, its
//! failures as the user sees them, and the parts of a request that a server refused.

use crate::model::{Answer, Endpoint, LlmError, Passages, Question, Vector};
use crate::redact::{Clean, Redactor};
use serde_json::{Map, Value, json};
use std::time::Duration;
use ureq::{Agent, Error, Proxy};

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

/// Time limit for connecting.
const CONNECT: Duration = Duration::from_secs(1);
/// Longest `Retry-After`, in seconds, that is honoured; a longer one means no retry.
const PATIENCE: u64 = 3600;

/// Sends JSON and reads JSON.
///
/// # Errors
///
/// Returns the reason if there is no answer.
pub fn post(url: &str, headers: &[(&str, &str)], body: &Value, to: &Endpoint, limit: Duration) -> Result<Value, LlmError> {
    let proxy =
        to.proxy.as_deref().map(Proxy::new).transpose().map_err(|_| failure("proxy", "the proxy's address is invalid"))?;
    let agent: Agent = Agent::config_builder()
        .timeout_global(Some(limit))
        .timeout_connect(Some(CONNECT.min(limit)))
        .timeout_resolve(Some(CONNECT.min(limit)))
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .https_only(!to.is_loopback)
        .proxy(proxy)
        .user_agent(concat!("nmem/", env!("CARGO_PKG_VERSION")))
        .build()
        .into();
    let mut request = agent.post(url).header("content-type", "application/json").header("accept", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut response = request.send(body.to_string().as_bytes()).map_err(|error| transport_error(&error))?;
    let status = response.status().as_u16();
    let header = |name: &str| response.headers().get(name)?.to_str().ok()?.trim().parse::<u64>().ok();
    let wait = header("retry-after-ms").map(Duration::from_millis).or_else(|| header("retry-after").map(Duration::from_secs));
    let bytes = response.body_mut().with_config().limit(ANSWER_BYTES).read_to_vec().map_err(|error| transport_error(&error))?;
    let read: Result<Value, _> = serde_json::from_slice(&bytes);
    if !(200..300).contains(&status) {
        return Err(status_error(status, read.ok().as_ref(), wait.unwrap_or_default(), to));
    }
    let answer = read.map_err(|_| failure("no json", "the answer is not JSON: is `base_url` the address of an API?"))?;
    // Routers report errors of their upstream server in an answer of their own.
    let inner = [&answer["error"], &answer["choices"][0]["error"]].into_iter().find(|error| error.is_object());
    if let Some(error) = inner {
        let code = error["code"].as_u64().and_then(|code| u16::try_from(code).ok()).filter(|code| (400..600).contains(code));
        let error = json!({"error": error});
        return Err(match code {
            Some(code) => status_error(code, Some(&error), wait.unwrap_or_default(), to),
            None => failure("error", format!("the answer is an error: {}", shown(error_text(&error).unwrap_or("unnamed"), to))),
        });
    }
    Ok(answer)
}

/// Returns the error for an HTTP status: the server's message, and a hint for the user.
fn status_error(status: u16, json: Option<&Value>, wait: Duration, to: &Endpoint) -> LlmError {
    let error = json.map(|json| &json["error"]);
    // A retry does not help if the account is empty.
    let is_empty = error.is_some_and(|error| error["code"] == "insufficient_quota" || error["type"] == "insufficient_quota");
    // Rate limits and temporary server errors.
    let helps = matches!(status, 408 | 409 | 429 | 500..=599) && !is_empty;
    let why = json.and_then(error_text).map(|why| shown(why, to)).filter(|why| !why.is_empty());
    let hint = match status {
        401 => "; check the key in the variable that `api_key_env` names",
        402 => "; check the account's credit",
        403 => "; the key may not use this model",
        404 => "; check `model` and `base_url`",
        413 => "; the request is too large for this model",
        429 if is_empty => "; the account's quota is used up",
        429 => "; the rate limit is reached",
        529 | 503 => "; the server is overloaded",
        _ => "",
    };
    let why = why.map(|why| format!(": {}", if hint.is_empty() { &why } else { why.trim_end_matches('.') })).unwrap_or_default();
    LlmError {
        outcome: format!("http {status}"),
        what: format!("the server answered {status}{why}{hint}"),
        again: Some(wait).filter(|wait| helps && wait.as_secs() <= PATIENCE),
    }
}

/// The server's error text.
fn error_text(json: &Value) -> Option<&str> {
    let error = &json["error"];
    error["message"].as_str().or(error.as_str()).or(json["message"].as_str()).or(json["detail"].as_str())
}

fn transport_error(error: &Error) -> LlmError {
    let soon = Some(Duration::ZERO);
    let (outcome, what, again) = match error {
        Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => {
            ("connect", "connecting to the server timed out".to_string(), None)
        }
        Error::Timeout(_) => ("timeout", "the answer did not arrive in time".to_string(), None),
        Error::BodyExceedsLimit(_) => ("too large", "the answer is larger than 1 MB".to_string(), None),
        Error::HostNotFound => ("connect", "the server's name cannot be resolved".to_string(), None),
        Error::ConnectionFailed => ("connect", "the server cannot be reached".to_string(), soon),
        Error::Io(error) => ("connect", format!("the connection failed: {error}"), soon),
        Error::Protocol(_) | Error::Http(_) => ("broken", "the answer is not valid HTTP or was cut off".to_string(), soon),
        Error::RequireHttpsOnly(_) => ("https", "https is required, because the server is another machine".to_string(), None),
        other => ("failed", format!("the call failed: {}", Redactor::default().clean(other.to_string()).as_str()), None),
    };
    LlmError { outcome: outcome.to_string(), what, again }
}

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

/// The optional parts that a request has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionalParts {
    /// The form of the answer as a JSON Schema.
    pub schema: bool,
    /// OpenAI only.
    pub temperature: bool,
    /// A stop sequence; OpenAI only.
    pub stop: bool,
    /// Thinking effort; Anthropic only.
    pub effort: bool,
}

impl OptionalParts {
    /// Returns all parts.
    pub const fn all() -> OptionalParts {
        OptionalParts { schema: true, temperature: true, stop: true, effort: true }
    }

    const NONE: OptionalParts = OptionalParts { schema: false, temperature: false, stop: false, effort: false };

    /// Returns the parts to send after a refusal: without those that the error names, or without any if it names none;
    /// `None` if that would change nothing, or if something else failed.
    pub fn without_what_is_refused(self, failure: &LlmError) -> Option<OptionalParts> {
        let text = failure.what.to_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
        let may_be_refusal = match failure.outcome.as_str() {
            // The excluded words point to causes other than an optional part.
            "http 400" | "http 422" => {
                says(&["support"]) || !says(&["context", "too long", "too large", "credit", "quota", "model:"])
            }
            // A router finds no server that supports all parts.
            "http 404" | "http 501" => says(&["support"]),
            _ => false,
        };
        if !may_be_refusal {
            return None;
        }
        let sent = |is_sent: bool, words: &[&str]| is_sent && !says(words);
        let next = OptionalParts {
            schema: sent(
                self.schema,
                &["response_format", "output_config.format", "output_config:", "schema", "structured", "grammar"],
            ),
            temperature: sent(self.temperature, &["temperature"]),
            stop: sent(self.stop, &["stop"]),
            effort: sent(self.effort, &["effort"]),
        };
        // An error that names none of them may still be about one.
        let next = if next == self { OptionalParts::NONE } else { next };
        (next != self).then_some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_an_error_names_is_left_out() {
        let failure = |outcome: &str, what: &str| LlmError { outcome: outcome.into(), what: what.into(), again: None };
        let all = OptionalParts::all();
        for (outcome, what, next) in [
            ("http 400", "'response_format' of type json_schema is not supported", Some(OptionalParts { schema: false, ..all })),
            ("http 400", "'temperature' does not support 0 with this model", Some(OptionalParts { temperature: false, ..all })),
            ("http 400", "output_config.effort: not supported by this model", Some(OptionalParts { effort: false, ..all })),
            ("http 404", "No endpoints found that support the requested parameters", Some(OptionalParts::NONE)),
            ("http 422", "unprocessable", Some(OptionalParts::NONE)),
            ("http 404", "the model `x` does not exist", None),
            ("http 400", "this model's maximum context length is 4096 tokens", None),
            ("http 401", "response_format", None),
            ("timeout", "", None),
        ] {
            assert_eq!(all.without_what_is_refused(&failure(outcome, what)), next, "{what}");
        }
        assert_eq!(OptionalParts::NONE.without_what_is_refused(&failure("http 400", "no")), None, "it ends");
    }
}
