//! All settings of a run, and their defaults.

use super::embeddings::Embeddings;
use super::folders::Rule;
use super::llm::Llm;
use super::repository::Wishes;
use super::setting::{Inject, Setting};
use super::switches::Switches;
use crate::model::Files;
use std::path::{Path, PathBuf};

/// Tools that are not recorded unless the config says otherwise.
const SKIP_TOOLS: [&str; 5] = ["TodoWrite", "SlashCommand", "Skill", "AskUserQuestion", "ListMcpResourcesTool"];
/// Files of which the contents are not recorded unless the config says otherwise; key stores are never (`redact`).
const IGNORE: [&str; 2] = ["**/.env*", "**/secrets/**"];

/// All settings of this run.
#[derive(Clone, Debug)]
pub struct Config {
    pub file: PathBuf,
    pub switches_file: PathBuf,
    pub files: Setting<Files>,
    /// The key of marks (`redact`), in a file of its own.
    pub mark_key: PathBuf,
    pub home: Option<PathBuf>,
    pub enabled: Setting<bool>,
    pub inject: Setting<Inject>,
    /// Bytes given to an agent at a session's start.
    pub context_bytes: Setting<usize>,
    /// Bytes given at a prompt, and before a file is changed; 0: nothing is said then.
    pub prompt_bytes: Setting<usize>,
    pub file_bytes: Setting<usize>,
    /// Observations, and summaries of pieces of work, that a session's start is told at most (`[context]`); the room may
    /// hold fewer.
    pub observations: Setting<usize>,
    pub summaries: Setting<usize>,
    pub skip_tools: Setting<Vec<String>>,
    /// Files that are recorded by path only, as globs.
    pub ignore: Setting<Vec<String>>,
    /// The user's own patterns (`redact` compiles them).
    pub redact: Setting<Vec<String>>,
    /// Keep up to 2 kB of the agent's thinking from the transcript.
    pub thinking: Setting<bool>,
    /// In which language memories are written: a tag such as `de`, or `auto`: as the prompts are.
    pub language: Setting<String>,
    /// Which model is asked.
    pub llm: Llm,
    /// Which model says what texts mean.
    pub embeddings: Embeddings,
    /// Days that raw tool uses are kept; 0: for ever.
    pub tool_uses_days: Setting<u32>,
    /// The project's name, where it was set by hand for the place.
    pub project: Setting<Option<String>>,
    /// The domain that a repository's file asks for.
    pub domain: Setting<Option<String>>,
    pub switches: Switches,
    /// What the repository asks for.
    pub wishes: Vec<Wishes>,
    /// Keys of the config file that this version doesn't know.
    pub unknown: Vec<String>,
    pub(super) folders: Vec<Rule>,
}

impl Config {
    /// The settings of a test: no file is read.
    #[cfg(test)]
    pub fn without_files(files: Files, data: &Path) -> Config {
        Config::defaults(data.join("config.toml"), Setting::default(files), data, None)
    }

    /// The settings where no file says anything.
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
            observations: Setting::default(50),
            summaries: Setting::default(10),
            skip_tools: Setting::default(SKIP_TOOLS.map(String::from).to_vec()),
            ignore: Setting::default(IGNORE.map(String::from).to_vec()),
            redact: Setting::default(Vec::new()),
            thinking: Setting::default(true),
            language: Setting::default("auto".to_string()),
            llm: Llm::default(),
            embeddings: Embeddings::default(),
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
