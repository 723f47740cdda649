//! The only reader of the environment, the config file and the clock. Everyone else is given values.
//!
//! A config file that can't be read is an error also for hooks: what the user forbade is then unknown, so nothing is
//! recorded until it is mended, and the next session's start says so.

use crate::error::Failure;
use crate::files;
use crate::model::{Files, LogLevel, Millis};
use anyhow::Result;
use std::io;
use std::path::{Path, PathBuf};

/// Bytes of a config file that are read.
const CONFIG_BYTES: u64 = 256 * 1024;
/// Most bytes that may be given to an agent: the largest platform cuts off at 10,000 characters.
pub const CONTEXT_BYTES_MAX: usize = 9000;

/// Where a setting's value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Default,
    File,
    Environment(&'static str),
}

/// A value and where it came from.
#[derive(Clone, Debug)]
pub struct Setting<T> {
    pub value: T,
    pub source: Source,
}

impl<T> Setting<T> {
    fn default(value: T) -> Setting<T> {
        Setting { value, source: Source::Default }
    }
}

/// What agents are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inject {
    None,
    Start,
    All,
}

impl Inject {
    /// Returns the word of the config file.
    pub fn name(self) -> &'static str {
        match self {
            Inject::None => "none",
            Inject::Start => "start",
            Inject::All => "all",
        }
    }
}

/// All settings of this run.
#[derive(Clone, Debug)]
pub struct Config {
    pub file: PathBuf,
    pub files: Setting<Files>,
    pub home: Option<PathBuf>,
    pub enabled: Setting<bool>,
    pub inject: Setting<Inject>,
    /// Bytes given to an agent at a session's start.
    pub context_bytes: Setting<usize>,
    pub skip_tools: Setting<Vec<String>>,
    /// The user's own patterns (`redact.rs` compiles them).
    pub redact: Setting<Vec<String>>,
    /// Keep up to 2 kB of the agent's thinking from the transcript.
    pub thinking: Setting<bool>,
    /// Keys of the config file that this version doesn't know.
    pub unknown: Vec<String>,
}

/// Tools that are not recorded unless the config says otherwise.
const SKIP_TOOLS: [&str; 5] = ["TodoWrite", "SlashCommand", "Skill", "AskUserQuestion", "ListMcpResourcesTool"];

#[expect(clippy::disallowed_methods, reason = "the one reader of the environment")]
fn env(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|v| !v.is_empty())
}

/// The time now, or where `NMEM_NOW` makes it stand.
#[expect(clippy::disallowed_methods, reason = "the one reader of the clock")]
pub fn now() -> Millis {
    if let Some(fixed) = env("NMEM_NOW").and_then(|v| v.parse().ok()) {
        return fixed;
    }
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_millis() as Millis)
}

/// Tells whether the environment switches hooks off.
pub fn switched_off() -> bool {
    env("NMEM_DISABLE").is_some_and(|v| v != "0") || env("RAD_ENABLED").is_some_and(|v| v == "false" || v == "0")
}

/// The agent's process id, where its hooks are told.
pub fn client_pid() -> Option<u32> {
    env("CLAUDE_PID")?.parse().ok()
}

/// Tells whether the user asks for no colour.
pub fn no_color() -> bool {
    env("NO_COLOR").is_some()
}

/// Claude Code's settings folder.
pub fn claude_folder(home: Option<&Path>) -> Option<PathBuf> {
    env("CLAUDE_CONFIG_DIR").map(PathBuf::from).or_else(|| Some(home?.join(".claude")))
}

/// Folders on `PATH`, in order.
pub fn path_folders() -> Vec<PathBuf> {
    env("PATH").map(|p| std::env::split_paths(&p).collect()).unwrap_or_default()
}

/// The home folder.
pub fn home() -> Option<PathBuf> {
    env("HOME")
        .map(PathBuf::from)
        .filter(|h| h.is_absolute())
        .or_else(|| Some(directories::BaseDirs::new()?.home_dir().to_path_buf()))
}

/// A path that a variable names; absolute, or it would be another one in each folder. One inside `project` doesn't count:
/// a project's own settings can set the variables of the hooks that run in it.
fn env_path(name: &'static str, project: Option<&Path>) -> Result<Option<PathBuf>> {
    let Some(path) = env(name).map(PathBuf::from) else { return Ok(None) };
    if !path.is_absolute() {
        let what = format!("{name}={} is not an absolute path", path.display());
        return Err(Failure::new(what, format!("set {name} to an absolute path, or unset it")).into());
    }
    Ok(Some(path).filter(|path| project.is_none_or(|project| !path.starts_with(project))))
}

/// Finds the database's files; needs no config file. `project` is the folder of work where a hook asks.
pub fn files(project: Option<&Path>) -> Result<Setting<Files>> {
    if let Some(db) = env_path("NMEM_DB", project)? {
        return Ok(Setting { value: Files::of(db, false), source: Source::Environment("NMEM_DB") });
    }
    let dirs = directories::ProjectDirs::from("", "", "nmem")
        .ok_or_else(|| Failure::new("no home folder is known", "set HOME, or NMEM_DB to an absolute path"))?;
    Ok(Setting::default(Files::of(dirs.data_dir().join("nmem.db"), true)))
}

/// How much the log says, by `NMEM_LOG`.
pub fn log_level() -> LogLevel {
    match env("NMEM_LOG").as_deref() {
        Some("off") => LogLevel::Off,
        Some("info") => LogLevel::Info,
        Some("debug") => LogLevel::Debug,
        _ => LogLevel::Error,
    }
}

/// Reads all settings. `project` is the folder of work where a hook asks, `None` where a person does.
pub fn load(project: Option<&Path>) -> Result<Config> {
    let (config, problem) = load_what_can_be(project)?;
    problem.map_or(Ok(config), Err)
}

/// Reads all settings; where the file can't be read, the defaults and why. Reading commands go on with those.
pub fn load_what_can_be(project: Option<&Path>) -> Result<(Config, Option<anyhow::Error>)> {
    let named = env_path("NMEM_CONFIG", project)?;
    let file = match &named {
        Some(path) => path.clone(),
        None => directories::ProjectDirs::from("", "", "nmem")
            .map(|d| d.config_dir().join("config.toml"))
            .ok_or_else(|| Failure::new("no home folder is known", "set HOME, or NMEM_CONFIG to a file"))?,
    };
    let mut config = Config {
        files: files(project)?,
        home: home(),
        enabled: Setting::default(true),
        inject: Setting::default(Inject::All),
        context_bytes: Setting::default(4000),
        skip_tools: Setting::default(SKIP_TOOLS.map(String::from).to_vec()),
        redact: Setting::default(Vec::new()),
        thinking: Setting::default(true),
        unknown: Vec::new(),
        file,
    };
    let read = match files::whole_text(&config.file, CONFIG_BYTES) {
        Ok(text) => apply(&mut config, &text),
        Err(e) if named.is_none() && matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(()),
        Err(e) => Err(e.to_string()),
    };
    let problem = read.err().map(|e| {
        let what = format!("{}: {}", config.file.display(), e.split_whitespace().collect::<Vec<_>>().join(" "));
        Failure::new(what, "mend it; until then hooks record nothing").into()
    });
    Ok((config, problem))
}

fn apply(config: &mut Config, text: &str) -> std::result::Result<(), String> {
    let table: toml::Table = text.parse().map_err(|e: toml::de::Error| {
        let line = e.span().map_or(1, |s| text[..s.start.min(text.len())].matches('\n').count() + 1);
        format!("line {line}: {}", e.message())
    })?;
    for (key, value) in table {
        let wrong = |wanted: &str| format!("`{key}` must be {wanted}, not {}", shown(&value));
        let strings = || {
            let list = value.as_array().and_then(|a| a.iter().map(|v| v.as_str().map(String::from)).collect());
            list.ok_or_else(|| wrong("a list of strings"))
        };
        let boolean = || value.as_bool().ok_or_else(|| wrong("true or false"));
        match key.as_str() {
            "enabled" => config.enabled = from_file(boolean()?),
            "thinking" => config.thinking = from_file(boolean()?),
            "inject" => {
                let inject = [Inject::None, Inject::Start, Inject::All].into_iter().find(|i| value.as_str() == Some(i.name()));
                config.inject = from_file(inject.ok_or_else(|| wrong("\"none\", \"start\" or \"all\""))?);
            }
            "context_bytes" => {
                let bytes =
                    value.as_integer().and_then(|n| usize::try_from(n).ok()).filter(|n| (500..=CONTEXT_BYTES_MAX).contains(n));
                config.context_bytes = from_file(bytes.ok_or_else(|| wrong("a number from 500 to 9000"))?);
            }
            "skip_tools" => config.skip_tools = from_file(strings()?),
            "redact" => {
                let patterns: Vec<String> = strings()?;
                crate::redact::Redactor::new(&patterns)?;
                config.redact = from_file(patterns);
            }
            _ => config.unknown.push(key),
        }
    }
    Ok(())
}

fn shown(value: &toml::Value) -> String {
    match value {
        toml::Value::Integer(n) => n.to_string(),
        toml::Value::String(text) => format!("{text:?}"),
        toml::Value::Boolean(b) => b.to_string(),
        other => format!("a {}", other.type_str()),
    }
}

fn from_file<T>(value: T) -> Setting<T> {
    Setting { value, source: Source::File }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(text: &str) -> std::result::Result<Config, String> {
        let mut config = Config {
            file: PathBuf::new(),
            files: Setting::default(Files::of(PathBuf::from("/x/nmem.db"), false)),
            home: None,
            enabled: Setting::default(true),
            inject: Setting::default(Inject::All),
            context_bytes: Setting::default(4000),
            skip_tools: Setting::default(Vec::new()),
            redact: Setting::default(Vec::new()),
            thinking: Setting::default(true),
            unknown: Vec::new(),
        };
        apply(&mut config, text).map(|()| config)
    }

    #[test]
    fn what_the_file_says_counts_and_is_known_to_come_from_it() {
        let config = applied("inject = \"start\"\nskip_tools = [\"A\"]\n[llm]\nprovider = \"none\"\n").unwrap();
        assert_eq!((config.inject.value, config.inject.source), (Inject::Start, Source::File));
        assert_eq!(config.enabled.source, Source::Default);
        assert_eq!(config.unknown, ["llm"]);
    }

    #[test]
    fn errors_name_the_line_or_the_key_and_what_it_must_be() {
        assert!(applied("enabled = true\ninject =").unwrap_err().starts_with("line 2: "));
        assert_eq!(applied("enabled = 1").unwrap_err(), "`enabled` must be true or false, not 1");
        assert!(applied("context_bytes = 90000").unwrap_err().contains("from 500 to 9000"));
        assert!(applied("redact = [\"(\"]").unwrap_err().contains("redact pattern"));
    }
}
