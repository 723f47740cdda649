//! Settings of language models and embedding models, and whether a request is allowed.

use super::environment;
use super::setting::{Setting, SettingSource, Wrong};
use crate::error::UserError;
use crate::files;
use crate::model::{
    EmbeddingModel, Endpoint, Files, LOCAL_MODEL, LocalModel, MODEL_PROGRAMS, ModelProgram, Platform, Program, Provider,
};
use anyhow::Result;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The occasion for calling the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At Stop, if a call is due.
    Stop,
    /// On `nmem distil` only.
    Manual,
}

impl When {
    /// Its name in the config file.
    pub fn name(self) -> &'static str {
        match self {
            When::Stop => "stop",
            When::Manual => "manual",
        }
    }
}

/// Maximum wait at Stop, in seconds: two less than the hook timeout that `nmem install` sets.
pub const STOP_SECONDS_MAX: u32 = 28;
/// Wait for a program, unless set: it starts, reads and writes more slowly than a server answers.
const PROGRAM_SECONDS: u32 = 25;

/// The table `[llm]`.
#[derive(Clone, Debug)]
pub struct Llm {
    pub provider: Setting<Provider>,
    pub base_url: Setting<String>,
    pub model: Setting<String>,
    /// Name of the environment variable with the key, never the key itself.
    pub api_key_env: Setting<String>,
    pub when: Setting<When>,
    pub stop_seconds: Setting<u32>,
    /// Tokens per 24 hours.
    pub daily_tokens: Setting<i64>,
}

impl Default for Llm {
    fn default() -> Llm {
        Llm {
            provider: Setting::default(Provider::None),
            base_url: Setting::default(String::new()),
            model: Setting::default(String::new()),
            api_key_env: Setting::default(String::new()),
            when: Setting::default(When::Stop),
            stop_seconds: Setting::default(8),
            daily_tokens: Setting::default(200_000),
        }
    }
}

impl Llm {
    /// Returns the maximum wait for the model at Stop.
    pub fn stop_limit(&self) -> Duration {
        let is_usual = matches!(self.stop_seconds.source, SettingSource::Default);
        let seconds = if is_usual && self.provider.value.is_program() { PROGRAM_SECONDS } else { self.stop_seconds.value };
        Duration::from_secs(u64::from(seconds))
    }

    /// Returns the endpoint for a session of a platform; `None` if no model is configured for it. `files` determines the
    /// folder in which a program may run.
    ///
    /// # Errors
    ///
    /// A [`UserError`] that names what is missing in the config file, the environment or PATH.
    pub fn endpoint(&self, files: &Files, platform: Platform) -> Result<Option<Endpoint>> {
        let provider = self.provider.value.of_session(platform);
        if let Some(kind) = provider.program() {
            return self.program(kind, files).map(Some);
        }
        let (url, model, key) = match provider {
            Provider::Anthropic => ("https://api.anthropic.com", "claude-haiku-5-5", "ANTHROPIC_API_KEY"),
            Provider::OpenAi => ("https://api.openai.com/v1", "", "OPENAI_API_KEY"),
            _ => return Ok(None),
        };
        let or = |own: &str, usual: &str| if own.is_empty() { usual.to_string() } else { own.to_string() };
        let base_url = or(&self.base_url.value, url).trim_end_matches('/').to_string();
        let is_loopback = is_loopback(&base_url);
        let model = or(&self.model.value, model);
        let endpoint = Endpoint { provider, base_url, model, key: None, proxy: None, is_loopback, program: None };
        if endpoint.model.is_empty() {
            return Err(UserError::new("[llm] has no `model`", "write `model = \"…\"` into [llm]").into());
        }
        let name = or(&self.api_key_env.value, key);
        let key = environment::secret(&name);
        if key.is_none() && !(provider == Provider::OpenAi && is_loopback) {
            let what = format!("no key for [llm]: {name} is not set, or is set by this project's settings, which nmem ignores");
            return Err(UserError::new(what, format!("set {name}, or name another variable in `api_key_env`")).into());
        }
        let proxy = if is_loopback { None } else { environment::proxy() };
        Ok(Some(Endpoint { key, proxy, ..endpoint }))
    }

    /// All endpoints that sessions may have: one, or with `agent` every program on PATH.
    ///
    /// # Errors
    ///
    /// As [`Llm::endpoint`]; with `agent`, if there is no program at all.
    pub fn endpoints(&self, files: &Files) -> Result<Vec<Endpoint>> {
        if self.provider.value != Provider::Agent {
            return Ok(self.endpoint(files, Platform::Custom)?.into_iter().collect());
        }
        let programs = MODEL_PROGRAMS.iter().map(|kind| self.program(kind, files));
        let found: Vec<Endpoint> = programs.filter_map(Result::ok).collect();
        let hint = "install an agent's program, or choose another `provider` in [llm]";
        if found.is_empty() { Err(UserError::new("no agent's program is on PATH", hint).into()) } else { Ok(found) }
    }

    /// The endpoint that a Stop may ask; `None` also for a program that answers `nmem distil` only.
    pub fn endpoint_at_stop(&self, files: &Files, platform: Platform) -> Option<Endpoint> {
        let answers = self.provider.value.of_session(platform).program().is_none_or(|program| program.at_stop);
        self.endpoint(files, platform).ok().flatten().filter(|_| answers)
    }

    /// The endpoint of an agent's program. `agent` has no model of its own choice: each program has its smallest.
    fn program(&self, kind: &'static ModelProgram, files: &Files) -> Result<Endpoint> {
        let own = Some(self.model.value.as_str()).filter(|_| self.provider.value != Provider::Agent);
        let program = program(kind, files)?;
        let users = (kind.users_model)(&program.settings);
        // A program without a small model of its own chooses one; the model then has the program's name.
        let choices = [own, users, Some(kind.model), Some(kind.name)];
        let model = choices.into_iter().flatten().find(|model| !model.is_empty()).unwrap_or_default().to_string();
        let (base_url, key, proxy) = (String::new(), None, None);
        Ok(Endpoint {
            provider: Provider::Program(kind),
            base_url,
            model,
            key,
            proxy,
            is_loopback: false,
            program: Some(program),
        })
    }

    /// Returns the destination of work units, for display: a host or the program.
    pub fn destination(&self) -> Option<String> {
        let endpoint = match self.provider.value {
            Provider::None => return None,
            Provider::Agent => return Some("each session's own agent".to_string()),
            provider if provider.is_program() => return Some(format!("the {provider} program")),
            Provider::Anthropic if self.base_url.value.is_empty() => "https://api.anthropic.com",
            Provider::OpenAi if self.base_url.value.is_empty() => "https://api.openai.com",
            _ => &self.base_url.value,
        };
        host(endpoint).map(String::from)
    }
}

/// Variables that would indicate to the program that it runs inside another session, and connect it to that session.
const OF_A_SESSION: [&str; 12] = [
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_SSE_PORT",
    "CLAUDE_CODE_SIMPLE",
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_ENV_FILE",
    "CLAUDE_PID",
    "CLAUDE_PROJECT_DIR",
    "CODEX_SANDBOX",
    "CODEX_THREAD_ID",
    "GEMINI_CLI",
];

/// Locates a program and what it needs to run independently.
fn program(kind: &ModelProgram, files: &Files) -> Result<Program> {
    let name = kind.name;
    let missing =
        || UserError::new(format!("the {name} program is not on PATH"), "install it, or choose another `provider` in [llm]");
    let set = environment::set_by_project();
    let doubtful = || {
        UserError::new("this project's .claude/settings.json cannot be read", "fix it; until then the model is not called here")
    };
    let hidden = set.ok_or_else(doubtful)?.into_iter().chain(OF_A_SESSION.map(String::from)).collect();
    let guard: PathBuf = std::env::current_exe()?;
    let agent_folder = environment::settings_folder(kind.platform(), environment::home().as_deref());
    Ok(Program {
        path: environment::program(name).ok_or_else(missing)?,
        guard,
        folder: files.folder().join(OBSERVER),
        home: files.folder().join(PROGRAMS).join(name),
        settings: users_settings(kind, agent_folder.as_deref()),
        agent_folder,
        hidden,
    })
}

/// Bytes of an agent's settings.
const SETTINGS_BYTES: u64 = 256 * 1024;

/// The user's settings of an agent, in TOML or JSON with comments; null if there are none that can be read.
fn users_settings(kind: &ModelProgram, folder: Option<&Path>) -> Value {
    let read = |name: &'static str| Some((name, files::whole_text(&folder?.join(name), SETTINGS_BYTES).ok()?));
    let Some((name, text)) = kind.settings.iter().copied().find_map(read) else { return Value::Null };
    let parsed = match name.ends_with(".toml") {
        true => toml::from_str(&text).ok(),
        false => jsonc_parser::parse_to_serde_value(&text, &Default::default()).ok(),
    };
    parsed.unwrap_or_default()
}

/// Name of the empty folder in which programs run. Sessions there are never kept.
pub const OBSERVER: &str = "observer";

/// Name of the folder with the homes of programs.
const PROGRAMS: &str = "programs";

/// Parses a provider's name.
pub fn provider(key: &str, value: &toml::Value) -> Result<Provider, Wrong> {
    value.as_str().and_then(Provider::from_name).ok_or_else(|| {
        let names = Provider::all().map(|provider| format!("\"{provider}\"")).collect::<Vec<_>>().join(", ");
        format!("`{key}` must be one of {names}")
    })
}

/// Accepts https for any host and http for this machine only. The URL must not contain a password, which belongs in
/// `api_key_env`.
pub(super) fn check_url(url: &str) -> Result<(), String> {
    let host = host(url).ok_or_else(|| format!("must begin with https://, not {:?}", without_credentials(url)))?;
    if url.split("://").nth(1).unwrap_or("").split(['/', '?', '#']).next().unwrap_or("").contains('@') {
        return Err("must not contain a user or password: name the key in `api_key_env`".into());
    }
    if host.is_empty() {
        return Err(format!("has no host: {:?}", without_credentials(url)));
    }
    if url.starts_with("http://") && !is_loopback(url) {
        return Err(format!("must be https://, since {host} is another machine"));
    }
    Ok(())
}

/// Returns a URL for display: without user, password and query, even if it is malformed.
pub(super) fn without_credentials(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or("");
    let (scheme, rest) = url.split_once("//").map_or(("", url), |(scheme, rest)| (scheme, rest));
    let rest = rest.rsplit('@').next().unwrap_or("");
    if scheme.is_empty() { rest.to_string() } else { format!("{scheme}//{rest}") }
}

/// Returns the host of a URL, without port.
pub(super) fn host(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or("");
    let authority = authority.rsplit('@').next().unwrap_or("");
    match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next(),
        None => authority.split(':').next(),
    }
}

/// Whether a URL points to this machine.
pub(super) fn is_loopback(url: &str) -> bool {
    let Some(host) = host(url) else { return false };
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Parses the occasion for calling the model.
pub(super) fn when(key: &str, value: &toml::Value) -> Result<When, Wrong> {
    let known = [When::Stop, When::Manual].into_iter().find(|when| value.as_str() == Some(when.name()));
    known.ok_or_else(|| format!("`{key}` must be \"stop\" or \"manual\""))
}

/// Parses the seconds that a Stop waits.
pub(super) fn stop_seconds(key: &str, value: &toml::Value) -> Result<u32, Wrong> {
    let seconds = value.as_integer().and_then(|n| u32::try_from(n).ok()).filter(|n| (1..=STOP_SECONDS_MAX).contains(n));
    seconds.ok_or_else(|| format!("`{key}` must be a number from 1 to {STOP_SECONDS_MAX}"))
}

/// Parses the tokens of a day.
pub(super) fn daily_tokens(key: &str, value: &toml::Value) -> Result<i64, Wrong> {
    let tokens = value.as_integer().filter(|n| *n >= 0);
    tokens.ok_or_else(|| format!("`{key}` must be a number of tokens; 0 never calls the model"))
}

/// The kind of an embedding model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmbeddingProvider {
    /// The server at `base_url`, if there is one.
    Server,
    /// A model in this process.
    Local,
}

impl EmbeddingProvider {
    /// Its name in the config file.
    pub fn name(self) -> &'static str {
        match self {
            EmbeddingProvider::Server => "",
            EmbeddingProvider::Local => "local",
        }
    }
}

/// Parses the kind of an embedding model.
pub(super) fn embedding_provider(key: &str, value: &toml::Value) -> Result<EmbeddingProvider, Wrong> {
    let all = [EmbeddingProvider::Server, EmbeddingProvider::Local];
    let known = all.into_iter().find(|provider| value.as_str() == Some(provider.name()));
    known.ok_or_else(|| format!("`{key}` must be \"local\", or empty for the server at `embeddings.base_url`"))
}

/// The table `[embeddings]`.
#[derive(Clone, Debug)]
pub struct Embeddings {
    pub provider: Setting<EmbeddingProvider>,
    pub base_url: Setting<String>,
    pub model: Setting<String>,
    /// Name of the environment variable with the key, never the key itself.
    pub api_key_env: Setting<String>,
}

impl Default for Embeddings {
    fn default() -> Embeddings {
        let nothing = || Setting::default(String::new());
        let provider = Setting::default(EmbeddingProvider::Server);
        Embeddings { provider, base_url: nothing(), model: nothing(), api_key_env: nothing() }
    }
}

impl Embeddings {
    /// Switches embeddings off for a folder.
    pub(super) fn switch_off(&mut self, source: SettingSource) {
        self.provider = Setting { value: EmbeddingProvider::Server, source: source.clone() };
        self.base_url = Setting { value: String::new(), source };
    }

    /// Whether the model runs in this process.
    pub fn is_local(&self) -> bool {
        self.provider.value == EmbeddingProvider::Local
    }

    /// Whether a model is configured.
    pub fn is_on(&self) -> bool {
        cfg!(feature = "embeddings") && (self.is_local() || !self.base_url.value.is_empty())
    }

    /// The name of the model; empty if none is named.
    pub fn name(&self) -> &str {
        match self.model.value.as_str() {
            "" if self.is_local() => LOCAL_MODEL,
            name => name,
        }
    }

    /// Returns the model; `None` if embeddings are off.
    ///
    /// # Errors
    ///
    /// A [`UserError`] that names what is missing in the config file or the environment.
    pub fn model(&self) -> Result<Option<EmbeddingModel>> {
        if !self.is_on() {
            return Ok(None);
        }
        if self.is_local() {
            let name = self.name().to_string();
            return Ok(Some(EmbeddingModel::Local(LocalModel { folder: environment::models_folder()?.join(&name), name })));
        }
        self.server().map(|server| Some(EmbeddingModel::Server(Box::new(server))))
    }

    fn server(&self) -> Result<Endpoint> {
        let base_url = self.base_url.value.trim_end_matches('/').to_string();
        if self.model.value.is_empty() {
            return Err(UserError::new("[embeddings] has no `model`", "write `model = \"…\"` into [embeddings]").into());
        }
        let is_loopback = is_loopback(&base_url);
        let name = Some(self.api_key_env.value.as_str()).filter(|name| !name.is_empty()).unwrap_or("OPENAI_API_KEY");
        let key = environment::secret(name);
        if key.is_none() && !is_loopback {
            let what =
                format!("no key for [embeddings]: {name} is not set, or is set by this project's settings, which nmem ignores");
            return Err(UserError::new(what, format!("set {name}, or name another variable in `api_key_env`")).into());
        }
        let proxy = if is_loopback { None } else { environment::proxy() };
        let model = self.model.value.clone();
        Ok(Endpoint { provider: Provider::OpenAi, base_url, model, key, proxy, is_loopback, program: None })
    }

    /// Returns the host to which texts would be sent, for display; `None` also for a model in this process.
    pub fn destination(&self) -> Option<&str> {
        host(&self.base_url.value).filter(|_| self.is_on() && !self.is_local())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::settings::Config;
    use crate::config::table::apply;

    fn applied(text: &str) -> Result<Config, Wrong> {
        let files = Setting::default(Files::of("/x/nmem.db".into(), false));
        let mut config = Config::defaults(PathBuf::new(), files, std::path::Path::new("/x"), None);
        apply(&mut config, text).map(|()| config)
    }

    fn read(text: &str) -> Result<Llm, Wrong> {
        applied(&format!("[llm]\n{text}")).map(|config| config.llm)
    }

    #[test]
    fn addresses_are_https_or_of_this_machine() {
        for url in ["https://openrouter.ai/api/v1", "http://127.0.0.1:11434/v1", "http://localhost:1234", "http://[::1]:8080/v1"]
        {
            assert!(read(&format!("base_url = {url:?}")).is_ok(), "{url}");
        }
        for url in [
            "http://example.com/v1",
            "example.com",
            "ftp://x",
            "https://",
            "https://user:key@example.com",
            "http://localhost.example.com",
            "http://127.0.0.1@evil.example/",
            "http://evil.example\\@127.0.0.1",
        ] {
            assert!(read(&format!("base_url = {url:?}")).is_err(), "{url}");
        }
    }

    #[test]
    fn errors_name_the_key_and_what_it_must_be() {
        let error = |text: &str| read(text).map(|_| ()).unwrap_err();
        assert_eq!(
            error("provider = \"gpt\""),
            "`llm.provider` must be one of \"none\", \"agent\", \"anthropic\", \"openai\", \"claude\", \"codex\", \"gemini\", \"opencode\", \"copilot\""
        );
        assert_eq!(error("stop_seconds = 60"), "`llm.stop_seconds` must be a number from 1 to 28");
        assert_eq!(error("when = \"always\""), "`llm.when` must be \"stop\" or \"manual\"");
        assert_eq!(error("daily_tokens = -1"), "`llm.daily_tokens` must be a number of tokens; 0 never calls the model");
    }

    #[test]
    fn nothing_is_asked_unless_a_provider_is_named() {
        let files = Files::of("/nowhere/nmem.db".into(), true);
        assert!(Llm::default().endpoint(&files, Platform::ClaudeCode).unwrap().is_none());
        assert!(
            read("model = \"x\"\nbase_url = \"http://127.0.0.1:1\"")
                .unwrap()
                .endpoint(&files, Platform::ClaudeCode)
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn a_local_server_needs_no_key() {
        let llm =
            read("provider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:1/v1/\"\napi_key_env = \"NMEM_NO_SUCH\"")
                .unwrap();
        let endpoint = llm.endpoint(&Files::of("/nowhere/nmem.db".into(), true), Platform::Codex).unwrap().unwrap();
        assert_eq!((endpoint.base_url.as_str(), endpoint.key), ("http://127.0.0.1:1/v1", None));
    }

    fn read_embeddings(text: &str) -> Result<Embeddings, Wrong> {
        applied(&format!("[embeddings]\n{text}")).map(|config| config.embeddings)
    }

    #[test]
    fn it_is_off_until_an_address_and_a_model_are_named() {
        assert!(read_embeddings("model = \"m\"").unwrap().model().unwrap().is_none());
        assert!(read_embeddings("base_url = \"http://127.0.0.1:1/v1\"").unwrap().model().is_err());
        let local =
            read_embeddings("base_url = \"http://127.0.0.1:1/v1/\"\nmodel = \"m\"\napi_key_env = \"NMEM_NO_SUCH\"").unwrap();
        assert_eq!(local.server().unwrap().base_url, "http://127.0.0.1:1/v1");
        let far =
            read_embeddings("base_url = \"https://example.com/v1\"\nmodel = \"m\"\napi_key_env = \"NMEM_NO_SUCH\"").unwrap();
        assert!(far.model().err().unwrap().to_string().contains("NMEM_NO_SUCH is not set"));
        assert!(
            read_embeddings("base_url = \"http://example.com\"").unwrap_err().starts_with("`embeddings.base_url` must be https")
        );
    }
}
