//! Questions to a language model and its answers, and embeddings.

use super::{Limit, Millis, Platform, Texts};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// The model provider.
#[derive(Clone, Copy, Debug, Default)]
pub enum Provider {
    /// None: rules only.
    #[default]
    None,
    /// The program of the session's own agent.
    Agent,
    /// The Anthropic Messages API.
    Anthropic,
    /// Any server with the OpenAI chat completions API: OpenRouter, Ollama, LM Studio, vLLM.
    OpenAi,
    /// An agent's program, with the user's own sign-in.
    Program(&'static ModelProgram),
}

/// An agent's program as a model; measured with the versions in ADR/0060.
#[derive(Debug)]
pub struct ModelProgram {
    /// Name of the program and of the provider.
    pub name: &'static str,
    /// Name of the platform whose sessions it answers for.
    platform: &'static str,
    /// The smallest model of its kind; empty if it has none of its own.
    pub model: &'static str,
    /// The model that the user's settings name, if it goes before.
    pub users_model: fn(&Value) -> Option<&str>,
    /// Files of the user's settings, of which the first one that exists counts.
    pub settings: &'static [&'static str],
    /// Tokens that the program adds to each request.
    own_tokens: i64,
    /// It answers within a Stop and leaves nothing of the user's behind; others answer `nmem distil` only.
    pub at_stop: bool,
}

/// A program that the user's settings name no model for.
const PROGRAM: ModelProgram =
    ModelProgram { name: "", platform: "", model: "", users_model: |_| None, settings: &[], own_tokens: 0, at_stop: false };

/// The programs that can answer.
pub static MODEL_PROGRAMS: [ModelProgram; 5] = [
    ModelProgram { name: "claude", platform: "claude-code", model: "haiku", own_tokens: 470, at_stop: true, ..PROGRAM },
    ModelProgram {
        name: "codex",
        platform: "codex",
        model: "gpt-5.4-mini",
        // Another provider than the usual one may have any models.
        users_model: |settings| {
            settings["model"].as_str().filter(|_| settings["model_provider"].as_str().is_some_and(|own| own != "openai"))
        },
        settings: &["config.toml"],
        own_tokens: 450,
        at_stop: true,
    },
    // It sometimes waits 13 s before it asks, and its sessions hold the prompt until nmem removes them.
    ModelProgram {
        name: "gemini",
        platform: "gemini",
        model: "gemini-2.5-flash-lite",
        settings: &["settings.json"],
        own_tokens: 180,
        ..PROGRAM
    },
    ModelProgram {
        name: "opencode",
        platform: "opencode",
        users_model: |settings| settings["small_model"].as_str().or(settings["model"].as_str()),
        settings: &["opencode.jsonc", "opencode.json", "config.json"],
        own_tokens: 120,
        at_stop: true,
        ..PROGRAM
    },
    // It takes no system prompt, and its sign-in may not hold in a folder of nmem's own.
    ModelProgram { name: "copilot", platform: "copilot-cli", model: "claude-haiku-4.5", own_tokens: 2_100, ..PROGRAM },
];

impl ModelProgram {
    /// The platform whose sessions it answers for.
    pub fn platform(&self) -> Platform {
        Platform::from_name(self.platform).unwrap_or_default()
    }
}

impl Provider {
    /// All providers.
    pub fn all() -> impl Iterator<Item = Provider> {
        let others = [Provider::None, Provider::Agent, Provider::Anthropic, Provider::OpenAi];
        others.into_iter().chain(MODEL_PROGRAMS.iter().map(Provider::Program))
    }

    /// Its name in the config file and in the database.
    pub fn name(self) -> &'static str {
        match self {
            Provider::None => "none",
            Provider::Agent => "agent",
            Provider::Anthropic => "anthropic",
            Provider::OpenAi => "openai",
            Provider::Program(program) => program.name,
        }
    }

    /// Finds a provider by its name.
    pub fn from_name(name: &str) -> Option<Provider> {
        Provider::all().find(|provider| provider.name() == name)
    }

    /// The program that answers, if one does.
    pub fn program(self) -> Option<&'static ModelProgram> {
        if let Provider::Program(program) = self { Some(program) } else { None }
    }

    /// Whether a program answers; for `agent`, each session's own.
    pub fn is_program(self) -> bool {
        matches!(self, Provider::Agent | Provider::Program(_))
    }

    /// The provider for sessions of a platform: `agent` becomes the program of that agent, or none.
    pub fn of_session(self, platform: Platform) -> Provider {
        let own = || MODEL_PROGRAMS.iter().find(|program| program.platform() == platform);
        if matches!(self, Provider::Agent) { own().map_or(Provider::None, Provider::Program) } else { self }
    }

    /// Tokens that it adds to each request.
    pub fn own_tokens(self) -> i64 {
        self.program().map_or(0, |program| program.own_tokens)
    }
}

impl PartialEq for Provider {
    fn eq(&self, other: &Provider) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Provider {}

impl std::fmt::Display for Provider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
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

/// The model that computes embeddings.
#[derive(Clone, Debug)]
pub enum EmbeddingModel {
    Server(Box<Endpoint>),
    Local(LocalModel),
}

impl EmbeddingModel {
    /// The name under which vectors are stored.
    pub fn name(&self) -> &str {
        match self {
            EmbeddingModel::Server(to) => &to.model,
            EmbeddingModel::Local(model) => &model.name,
        }
    }
}

/// The local model that is used unless another one is named.
pub const LOCAL_MODEL: &str = "all-MiniLM-L6-v2";

/// A model that runs in this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalModel {
    pub name: String,
    /// The folder with its files.
    pub folder: PathBuf,
}

/// A program that answers questions.
#[derive(Clone, Debug)]
pub struct Program {
    pub path: PathBuf,
    /// nmem itself, which kills the program when the hook ends.
    pub guard: PathBuf,
    /// An empty folder to run in.
    pub folder: PathBuf,
    /// A folder of nmem's own that takes the place of the agent's.
    pub home: PathBuf,
    /// The agent's folder, with the user's sign-in.
    pub agent_folder: Option<PathBuf>,
    /// The user's settings of the agent, of which a call needs the provider.
    pub settings: Value,
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
    fn every_program_answers_for_a_platform() {
        for program in &MODEL_PROGRAMS {
            assert_ne!(program.platform(), Platform::Custom, "{}", program.name);
            assert_eq!(Provider::from_name(program.name).and_then(Provider::program).map(|p| p.name), Some(program.name));
            assert_eq!(Provider::Agent.of_session(program.platform()).name(), program.name);
        }
        assert_eq!(Provider::Agent.of_session(Platform::Cursor), Provider::None);
    }

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
