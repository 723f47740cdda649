//! What passes between nmem and a language model.

use super::{Limit, Millis, Texts};
use std::path::PathBuf;
use std::time::Duration;

/// Who is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Provider {
    /// Nobody: rules alone.
    #[default]
    None,
    /// The Anthropic Messages API.
    Anthropic,
    /// Any server with the chat completions of OpenAI: OpenRouter, Ollama, LM Studio, vLLM.
    OpenAi,
    /// The `claude` program, with the person's own subscription.
    Claude,
}

impl Provider {
    pub const ALL: [Provider; 4] = [Provider::None, Provider::Anthropic, Provider::OpenAi, Provider::Claude];

    /// The word of the config file, which is stored too.
    pub fn name(self) -> &'static str {
        match self {
            Provider::None => "none",
            Provider::Anthropic => "anthropic",
            Provider::OpenAi => "openai",
            Provider::Claude => "claude",
        }
    }
}

/// Where a question goes, and what it is asked with.
#[derive(Clone)]
pub struct Endpoint {
    pub provider: Provider,
    /// Without the path of the call: `https://api.anthropic.com`.
    pub base_url: String,
    pub model: String,
    /// From the environment; a local server needs none.
    pub key: Option<String>,
    /// A proxy that the user's environment names.
    pub proxy: Option<String>,
    /// The server is on this machine: it may be asked without TLS.
    pub is_loopback: bool,
    /// What is started in place of a server.
    pub program: Option<Program>,
}

/// A program that is asked.
#[derive(Clone, Debug)]
pub struct Program {
    pub path: PathBuf,
    /// nmem itself, which ends it with the hook.
    pub guard: PathBuf,
    /// An empty folder to run in.
    pub folder: PathBuf,
    /// Variables that it is not given: what a project has set, and what would tell it that it runs inside itself.
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

/// Bytes of each of a question's two texts: more than any budget of tokens leaves.
const TEXT: Limit = Limit(256 * 1024);

/// What a model is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Who it is and how it answers.
    pub system: String,
    /// What happened.
    pub user: String,
    /// Tokens of the answer at most.
    pub answer_tokens: u32,
}

impl Texts for Question {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut String, Limit)) {
        visit(&mut self.system, TEXT);
        visit(&mut self.user, TEXT);
    }
}

/// What a model answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    pub text: String,
    /// Tokens, where the provider counts them.
    pub input_tokens: Option<i64>,
    pub output_tokens: Option<i64>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The word that is stored: `timeout`, `connect`, `http 429`, `no answer`, `program`.
    pub outcome: String,
    /// For a person, in one line.
    pub what: String,
    /// Asking again may help, and how long to wait first.
    pub again: Option<Duration>,
}

/// What a call was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A long unit that goes on.
    Checkpoint,
    /// A unit that is closed.
    Closing,
    /// A person wanted it again.
    Redo,
}

impl Purpose {
    /// The word that is stored.
    pub fn name(self) -> &'static str {
        match self {
            Purpose::Checkpoint => "checkpoint",
            Purpose::Closing => "closing",
            Purpose::Redo => "redo",
        }
    }
}

/// Tokens that a call may take.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    pub input: i64,
    pub output: i64,
    /// Of all calls in 24 hours.
    pub daily: i64,
}

/// What a call cost.
#[derive(Clone, Copy, Debug)]
pub struct CallCost {
    pub input_tokens: i64,
    pub output_tokens: i64,
    /// The tokens were not counted by the provider.
    pub estimated: bool,
    pub took: Millis,
}

/// One call of a model, as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Spend {
    pub at: Millis,
    pub provider: String,
    pub model: String,
    /// `checkpoint`, `closing` or `redo`.
    pub purpose: String,
    pub input_tokens: i64,
    pub output_tokens: i64,
    /// The provider did not count them.
    pub estimated: bool,
    /// How long it took, in milliseconds.
    pub took: Millis,
    /// `ok`, or why there was no answer ([`Refusal::outcome`]).
    pub outcome: String,
}

/// What calls cost in some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    pub calls: i64,
    pub failed: i64,
    pub input_tokens: i64,
    pub output_tokens: i64,
}

impl Spent {
    /// All tokens.
    pub fn tokens(&self) -> i64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

/// Four bytes are a token, or so: English text and code lie between 3 and 4.5.
pub fn estimated_tokens(bytes: usize) -> i64 {
    bytes.div_ceil(4) as i64
}
