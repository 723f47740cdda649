//! All settings of a run, with their defaults. `table` has a row for each: who may set it, and how.

use super::folders::{Rule, Wishes};
use super::llm::{Embeddings, Llm};
use super::pauses::Switches;
use super::setting::{Inject, Setting, Wrong, text, wrong};
use crate::languages::MEASURED;
use crate::model::Files;
use std::path::{Path, PathBuf};

/// Tools that are not recorded by default.
const SKIP_TOOLS: [&str; 5] = ["TodoWrite", "SlashCommand", "Skill", "AskUserQuestion", "ListMcpResourcesTool"];
/// Files whose contents are not recorded by default; those of key stores never are (`redact`).
const IGNORE: [&str; 2] = ["**/.env*", "**/secrets/**"];

/// All settings of a run.
#[derive(Clone, Debug)]
pub struct Config {
    pub file: PathBuf,
    pub switches_file: PathBuf,
    pub files: Setting<Files>,
    /// The file with the key for redaction marks (`redact`).
    pub mark_key: PathBuf,
    pub home: Option<PathBuf>,
    pub enabled: Setting<bool>,
    pub inject: Setting<Inject>,
    /// Maximum bytes injected at a session start.
    pub context_bytes: Setting<usize>,
    /// Maximum bytes injected at a prompt and before an edit; 0 turns that injection off.
    pub prompt_bytes: Setting<usize>,
    pub file_bytes: Setting<usize>,
    pub skip_tools: Setting<Vec<String>>,
    /// Globs of files that are recorded by path only.
    pub ignore: Setting<Vec<String>>,
    /// The user's patterns, compiled by `redact`.
    pub redact: Setting<Vec<String>>,
    /// Keep up to 2 kB of the agent's thinking from the transcript.
    pub thinking: Setting<bool>,
    /// Language of memories: a tag such as `de`, or `auto` for the language of the prompts.
    pub language: Setting<String>,
    /// Languages whose cue words the rules use. English is always included.
    pub rule_languages: Setting<Vec<String>>,
    /// The language model.
    pub llm: Llm,
    /// The embedding model.
    pub embeddings: Embeddings,
    /// Ask the agent for notes, and read them (`[agent_notes] ask`).
    pub agent_notes: Setting<bool>,
    /// When a turn ends, a line for the person if the agent claims what no check shows (`[verify] at_stop`).
    pub verify_at_stop: Setting<bool>,
    /// Team memory.
    pub team: Team,
    /// Days to keep raw tool uses; 0: forever.
    pub tool_uses_days: Setting<u32>,
    /// The project's name, if set by hand.
    pub project: Setting<Option<String>>,
    /// The domain that the repository's file names.
    pub domain: Setting<Option<String>>,
    pub switches: Switches,
    /// The repository's `.nmem.toml` files.
    pub wishes: Vec<Wishes>,
    /// Keys in the config file that this version does not know.
    pub unknown: Vec<String>,
    pub(super) folders: Vec<Rule>,
}

impl Config {
    /// Settings for tests; no file is read.
    #[cfg(test)]
    pub fn without_files(files: Files, data: &Path) -> Config {
        Config::defaults(data.join("config.toml"), Setting::default(files), data, None)
    }

    /// Returns the settings that apply if no file sets anything.
    pub(super) fn defaults(file: PathBuf, files: Setting<Files>, data: &Path, home: Option<PathBuf>) -> Config {
        Config {
            file,
            files,
            home,
            mark_key: data.join("mark-key"),
            switches_file: Switches::file(data),
            enabled: Setting::default(true),
            inject: Setting::default(Inject::All),
            context_bytes: Setting::default(4000),
            prompt_bytes: Setting::default(900),
            file_bytes: Setting::default(700),
            skip_tools: Setting::default(SKIP_TOOLS.map(String::from).to_vec()),
            ignore: Setting::default(IGNORE.map(String::from).to_vec()),
            redact: Setting::default(Vec::new()),
            thinking: Setting::default(true),
            language: Setting::default("auto".to_string()),
            rule_languages: Setting::default(MEASURED.map(String::from).to_vec()),
            llm: Llm::default(),
            embeddings: Embeddings::default(),
            agent_notes: Setting::default(false),
            verify_at_stop: Setting::default(false),
            team: Team::default(),
            tool_uses_days: Setting::default(180),
            project: Setting::default(None),
            domain: Setting::default(None),
            switches: Switches::default(),
            wishes: Vec::new(),
            unknown: Vec::new(),
            folders: Vec::new(),
        }
    }
}

/// Longest name of a person, in characters.
const NAME: usize = 40;

/// The occasions for a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncWhen {
    /// Only `nmem sync`.
    Manual,
    /// Also at session starts and at Stop.
    Session,
}

impl SyncWhen {
    /// Its name in the config file.
    pub fn name(self) -> &'static str {
        match self {
            SyncWhen::Manual => "manual",
            SyncWhen::Session => "session",
        }
    }
}

/// Settings of the team memory.
#[derive(Clone, Debug)]
pub struct Team {
    pub when: Setting<SyncWhen>,
    /// Name under which this person shares; `None` for the login name.
    pub name: Setting<Option<String>>,
    /// The shared folder that `nmem sync` uses without an argument.
    pub folder: Setting<Option<PathBuf>>,
    /// URL of the team's PostgreSQL. It may contain a password and is never printed.
    pub url: Setting<Option<String>>,
}

impl Default for Team {
    fn default() -> Team {
        Team {
            when: Setting::default(SyncWhen::Manual),
            name: Setting::default(None),
            folder: Setting::default(None),
            url: Setting::default(None),
        }
    }
}

impl Team {
    /// Whether a session start or a Stop syncs.
    pub fn syncs_in_sessions(&self) -> bool {
        self.when.value == SyncWhen::Session && (self.url.value.is_some() || self.folder.value.is_some())
    }

    /// Returns the host of the PostgreSQL, for display: without user and password.
    pub fn host(&self) -> Option<String> {
        let url = self.url.value.as_deref()?;
        let rest = url.split_once("://").map_or("", |(_, rest)| rest);
        let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
        let host: String = host.split(['/', '?']).next().unwrap_or_default().chars().take(200).collect();
        Some(if host.is_empty() { "on this machine".to_string() } else { host })
    }
}

/// Parses the occasions for a sync.
pub(super) fn sync_when(key: &str, value: &toml::Value) -> Result<SyncWhen, Wrong> {
    let known = [SyncWhen::Manual, SyncWhen::Session].into_iter().find(|when| value.as_str() == Some(when.name()));
    known.ok_or_else(|| wrong(key, "\"manual\" or \"session\"", value))
}

/// Parses a person's name.
pub(super) fn person(key: &str, value: &toml::Value) -> Result<Option<String>, Wrong> {
    let given = text(key, value)?;
    if given.chars().count() > NAME || given.chars().any(char::is_control) {
        return Err(wrong(key, "a name of at most 40 characters", value));
    }
    Ok(Some(given.trim().to_string()).filter(|given| !given.is_empty()))
}
