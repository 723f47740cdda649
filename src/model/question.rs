//! Questions to a language model and its answers, and embeddings.

use super::{Limit, Millis, Texts};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// The model provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Provider {
    /// None: rules only.
    #[default]
    None,
    /// The Anthropic Messages API.
    Anthropic,
    /// Any server with the OpenAI chat completions API: OpenRouter, Ollama, LM Studio, vLLM.
    OpenAi,
    /// The `claude` program, with the user's own subscription.
    Claude,
}

impl Provider {
    pub const ALL: [Provider; 4] = [Provider::None, Provider::Anthropic, Provider::OpenAi, Provider::Claude];

    /// Its name in the config file and in the database.
    pub fn name(self) -> &'static str {
        match self {
            Provider::None => "none",
            Provider::Anthropic => "anthropic",
            Provider::OpenAi => "openai",
            Provider::Claude => "claude",
        }
    }
}

/// The destination of a question, with credentials.
#[derive(Clone)]
pub struct Endpoint {
    pub provider: Provider,
    /// Base URL without the path of the call: `https://api.anthropic.com`.
    pub base_url: String,
    pub model: String,
    /// API key from the environment; a local server needs none.
    pub key: Option<String>,
    /// The proxy from the user's environment.
    pub proxy: Option<String>,
    /// The server is on this machine, so plain HTTP is allowed.
    pub is_loopback: bool,
    /// The program to start instead of calling a server.
    pub program: Option<Program>,
}

/// A program that answers questions.
#[derive(Clone, Debug)]
pub struct Program {
    pub path: PathBuf,
    /// nmem itself, which kills the program when the hook ends.
    pub guard: PathBuf,
    /// An empty folder to run in.
    pub folder: PathBuf,
    /// Environment variables to withhold: those a project has set, and those that mark a nested session.
    pub hidden: Vec<String>,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Endpoint { provider, base_url, model, .. } = self;
        f.debug_struct("Endpoint")
            .field("provider", provider)
            .field("base_url", base_url)
            .field("model", model)
            .finish_non_exhaustive()
    }
}

/// Maximum size of each text of a question, in bytes: more than any token budget allows.
const TEXT: Limit = Limit(256 * 1024);

/// A question to a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Instructions without the answer format. They are the same for all units of a domain and language.
    pub system: String,
    /// The answer format in plain language, for providers without structured output.
    pub form: String,
    /// The answer format as a JSON Schema.
    pub schema: Value,
    /// The record of the work.
    pub user: String,
    /// Maximum tokens of the answer.
    pub answer_tokens: u32,
}

impl Question {
    /// Returns the system prompt for a model without structured output.
    pub fn system_with_form(&self) -> String {
        format!("{}\n\n{}", self.system, self.form)
    }
}

impl Texts for Question {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut String, Limit)) {
        visit(&mut self.system, TEXT);
        visit(&mut self.form, TEXT);
        descriptions(&mut self.schema, visit);
        visit(&mut self.user, TEXT);
    }
}

/// Visits the descriptions in a schema, its only free-form texts from a domain's file.
fn descriptions(schema: &mut Value, visit: &mut dyn FnMut(&mut String, Limit)) {
    match schema {
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(text) if name == "description" => visit(text, TEXT),
                    value => descriptions(value, visit),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| descriptions(value, visit)),
        _ => {}
    }
}

/// A model's answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// XML in the format of the question, or JSON that matches its schema.
    pub text: String,
    /// The answer was cut off at the token limit.
    pub is_cut: bool,
    /// Token counts, if the provider reports them.
    pub input_tokens: Option<i64>,
    pub output_tokens: Option<i64>,
}

/// The reason for a missing answer.
#[derive(Clone, Debug, PartialEq)]
pub struct LlmError {
    /// The outcome as stored: `timeout`, `connect`, `http 429`, `no answer`, `refused`, `cut off`, `program`.
    pub outcome: String,
    /// A one-line message for the user.
    pub what: String,
    /// Delay before a retry, if a retry may help.
    pub again: Option<Duration>,
}

/// Purpose of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A long unit that is still open.
    Checkpoint,
    /// A closed unit.
    Closing,
    /// Requested by a person.
    Redo,
}

impl Purpose {
    /// Its name in the database.
    pub fn name(self) -> &'static str {
        match self {
            Purpose::Checkpoint => "checkpoint",
            Purpose::Closing => "closing",
            Purpose::Redo => "redo",
        }
    }
}

/// Tokens that a call may use.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    pub input: i64,
    pub output: i64,
    /// Limit for all calls within 24 hours.
    pub daily: i64,
}

/// Cost of a call.
#[derive(Clone, Copy, Debug)]
pub struct CallCost {
    pub input_tokens: i64,
    pub output_tokens: i64,
    /// The provider did not report the token counts.
    pub estimated: bool,
    pub took: Millis,
}

/// One call of a model, as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Spend {
    pub at: Millis,
    pub provider: String,
    pub model: String,
    /// `checkpoint`, `closing` or `redo`.
    pub purpose: String,
    pub input_tokens: i64,
    pub output_tokens: i64,
    /// The provider did not report them.
    pub estimated: bool,
    /// Duration in milliseconds.
    pub took: Millis,
    /// `ok`, or the reason for a missing answer ([`LlmError::outcome`]).
    pub outcome: String,
}

/// Cost of the calls in a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    pub calls: i64,
    pub failed: i64,
    pub input_tokens: i64,
    pub output_tokens: i64,
}

impl Spent {
    /// Input and output tokens together.
    pub fn tokens(&self) -> i64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

/// Estimates the number of tokens at four bytes each. English text and code have between 3 and 4.5.
pub fn estimated_tokens(bytes: usize) -> i64 {
    bytes.div_ceil(4) as i64
}

/// Maximum dimension.
pub const LENGTH_MAX: usize = 4096;
/// Maximum bytes of a text to embed: the smallest limit among models.
const EMBEDDED_TEXT: Limit = Limit(2000);

/// A unit vector: `numbers[i] * scale` is its i-th number.
#[derive(Clone, Debug, PartialEq)]
pub struct Vector {
    pub scale: f32,
    pub numbers: Vec<i8>,
}

impl Vector {
    /// Packs a model's vector; `None` if it has no direction: empty, zero or not finite.
    pub fn of(numbers: &[f32]) -> Option<Vector> {
        let length = numbers.iter().map(|n| f64::from(*n) * f64::from(*n)).sum::<f64>().sqrt() as f32;
        let most = numbers.iter().fold(0.0_f32, |most, n| most.max(n.abs()));
        let sound = length.is_finite() && length > 0.0 && (1..=LENGTH_MAX).contains(&numbers.len());
        sound.then(|| {
            let packed = numbers.iter().map(|n| (n / most * 127.0).round() as i8).collect();
            Vector { scale: most / 127.0 / length, numbers: packed }
        })
    }

    /// Returns the cosine with another vector of the same dimension, given as bytes.
    pub fn cosine(&self, scale: f32, numbers: &[u8]) -> f32 {
        let sum: i32 = self.numbers.iter().zip(numbers).map(|(a, b)| i32::from(*a) * i32::from(*b as i8)).sum();
        sum as f32 * self.scale * scale
    }
}

/// Texts to embed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Passages(pub Vec<String>);

impl Texts for Passages {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut String, Limit)) {
        self.0.iter_mut().for_each(|text| visit(text, EMBEDDED_TEXT));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_no_direction_is_no_vector() {
        for numbers in [&[][..], &[0.0, 0.0], &[f32::NAN, 1.0], &[f32::INFINITY, 1.0]] {
            assert_eq!(Vector::of(numbers), None, "{numbers:?}");
        }
    }

    proptest! {
        #[test]
        fn bytes_keep_the_angle(a in prop::collection::vec(-1.0_f32..1.0, 64), b in prop::collection::vec(-1.0_f32..1.0, 64)) {
            let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
            let cosine = dot(&a, &b) / (dot(&a, &a) * dot(&b, &b)).sqrt();
            let (a, b) = (Vector::of(&a).unwrap(), Vector::of(&b).unwrap());
            let bytes: Vec<u8> = b.numbers.iter().map(|n| *n as u8).collect();
            prop_assert!((a.cosine(b.scale, &bytes) - cosine).abs() < 0.02);
        }
    }
}
