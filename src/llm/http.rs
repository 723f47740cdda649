//! One POST of JSON: https unless loopback, no redirects, one time limit for everything.

use super::failure::{ANSWER_BYTES, failure};
use crate::model::{Endpoint, LlmError};
use crate::redact::Redactor;
use serde_json::Value;
use std::time::Duration;
use ureq::{Agent, Error, Proxy};

/// Time limit for connecting.
const CONNECT: Duration = Duration::from_secs(1);
/// Longest `Retry-After`, in seconds, that is honoured; a longer one means no retry.
const PATIENCE: u64 = 3600;

/// Bytes of the key in a word of a server's text from which on the word repeats the key.
const KEY_PART: usize = 8;

/// Sends JSON and reads JSON.
///
/// # Errors
///
/// Why there is no answer.
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
    let again =
        response.headers().get("retry-after").and_then(|value| value.to_str().ok()).and_then(|value| value.trim().parse().ok());
    let bytes = response.body_mut().with_config().limit(ANSWER_BYTES).read_to_vec().map_err(|error| transport_error(&error))?;
    let read: Result<Value, _> = serde_json::from_slice(&bytes);
    if (200..300).contains(&status) {
        return read.map_err(|_| failure("no json", "the answer is not JSON: is `base_url` the address of an API?"));
    }
    // Rate limits and temporary server errors.
    let helps = matches!(status, 408 | 409 | 429 | 500..=599);
    let wait = Duration::from_secs(again.unwrap_or(0));
    let why = read.ok().and_then(|json| error_text(&json)).map(|why| format!(": {}", without_key(&why, to))).unwrap_or_default();
    Err(LlmError {
        outcome: format!("http {status}"),
        what: format!("the server answered {status}{why}"),
        again: Some(wait).filter(|wait| helps && wait.as_secs() <= PATIENCE),
    })
}

/// A server may repeat the key, whole or in part: what looks like a secret goes from its text.
fn without_key(text: &str, to: &Endpoint) -> String {
    let parts = to.key.iter().flat_map(|key| key.as_bytes().windows(KEY_PART.min(key.len()))).collect::<Vec<_>>();
    let repeats = |word: &str| parts.iter().any(|part| word.as_bytes().windows(part.len()).any(|own| own == *part));
    let words = text.split(' ').map(|word| if repeats(word) { "[key]" } else { word }).collect::<Vec<_>>();
    Redactor::default().clean(words.join(" ")).to_string()
}

/// The server's error text, in one short line.
fn error_text(json: &Value) -> Option<String> {
    let error = &json["error"];
    let text = error["message"].as_str().or(error.as_str()).or(json["message"].as_str())?;
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect();
    Some(text.trim().to_string()).filter(|text| !text.is_empty())
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
