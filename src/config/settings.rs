//! All settings with their defaults, the config file, and the list that `nmem status` shows.

use super::folders::{Rule, Wishes};
use super::llm::{Embeddings, Llm, without_credentials};
use super::pauses::Switches;
use super::setting::{
    Inject, Setting, SettingSource, Wrong, boolean, context_bytes, inject, injected_bytes, is_language, rule_languages, strings,
    wrong,
};
use super::sharing::Team;
use crate::languages::MEASURED;
use crate::model::Files;
use serde_json::{Value, json};
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
    /// Maximum observations at a session start (`[context]`); usually fewer are relevant.
    pub observations: Setting<usize>,
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
            observations: Setting::default(50),
            skip_tools: Setting::default(SKIP_TOOLS.map(String::from).to_vec()),
            ignore: Setting::default(IGNORE.map(String::from).to_vec()),
            redact: Setting::default(Vec::new()),
            thinking: Setting::default(true),
            language: Setting::default("auto".to_string()),
            rule_languages: Setting::default(MEASURED.map(String::from).to_vec()),
            llm: Llm::default(),
            embeddings: Embeddings::default(),
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

/// A setting for display.
#[derive(Clone, Debug)]
pub struct ListedSetting {
    /// Name as in the config file, with its table: `llm.model`.
    pub name: &'static str,
    pub value: Value,
    pub source: SettingSource,
}

impl Config {
    /// Returns every setting, in the order of the documentation. Add new settings here.
    pub fn listed(&self) -> Vec<ListedSetting> {
        let listed = |name, value, source: &SettingSource| ListedSetting { name, value, source: source.clone() };
        vec![
            listed("database", json!(self.files.value.db), &self.files.source),
            listed("enabled", json!(self.enabled.value), &self.enabled.source),
            listed("inject", json!(self.inject.value.name()), &self.inject.source),
            listed("context_bytes", json!(self.context_bytes.value), &self.context_bytes.source),
            listed("prompt_bytes", json!(self.prompt_bytes.value), &self.prompt_bytes.source),
            listed("file_bytes", json!(self.file_bytes.value), &self.file_bytes.source),
            listed("context.observations", json!(self.observations.value), &self.observations.source),
            listed("thinking", json!(self.thinking.value), &self.thinking.source),
            listed("skip_tools", json!(self.skip_tools.value), &self.skip_tools.source),
            listed("ignore", json!(self.ignore.value), &self.ignore.source),
            listed("redact", json!(self.redact.value), &self.redact.source),
            listed("language", json!(self.language.value), &self.language.source),
            listed("rule_languages", json!(self.rule_languages.value), &self.rule_languages.source),
            listed("llm.provider", json!(self.llm.provider.value.name()), &self.llm.provider.source),
            listed("llm.base_url", json!(without_credentials(&self.llm.base_url.value)), &self.llm.base_url.source),
            listed("llm.model", json!(self.llm.model.value), &self.llm.model.source),
            listed("llm.api_key_env", json!(self.llm.api_key_env.value), &self.llm.api_key_env.source),
            listed("llm.when", json!(self.llm.when.value.name()), &self.llm.when.source),
            listed("llm.stop_seconds", json!(self.llm.stop_seconds.value), &self.llm.stop_seconds.source),
            listed("llm.daily_tokens", json!(self.llm.daily_tokens.value), &self.llm.daily_tokens.source),
            listed(
                "embeddings.base_url",
                json!(without_credentials(&self.embeddings.base_url.value)),
                &self.embeddings.base_url.source,
            ),
            listed("embeddings.model", json!(self.embeddings.model.value), &self.embeddings.model.source),
            listed("embeddings.api_key_env", json!(self.embeddings.api_key_env.value), &self.embeddings.api_key_env.source),
            listed("team.sync", json!(self.team.when.value.name()), &self.team.when.source),
            listed("team.name", json!(self.team.name.value.as_deref().unwrap_or_default()), &self.team.name.source),
            listed("team.folder", json!(self.team.folder.value.as_deref().unwrap_or(Path::new(""))), &self.team.folder.source),
            listed("retention.tool_uses_days", json!(self.tool_uses_days.value), &self.tool_uses_days.source),
            listed("project", json!(self.project.value), &self.project.source),
            listed("domain", json!(self.domain.value), &self.domain.source),
        ]
    }
}

/// Parses a file.
pub fn table(text: &str) -> Result<toml::Table, Wrong> {
    text.parse().map_err(|e: toml::de::Error| {
        let line = e.span().map_or(1, |s| text[..s.start.min(text.len())].matches('\n').count() + 1);
        format!("line {line}: {}", e.message())
    })
}

/// Applies the user's file to the settings.
pub fn apply(config: &mut Config, text: &str) -> Result<(), Wrong> {
    for (key, value) in table(text)? {
        if key == "folder" {
            let rules = value.as_array().ok_or("`folder` must be written as [[folder]]")?;
            for rule in rules {
                config.folders.push(Rule::read(rule, config.home.as_deref(), &mut config.unknown)?);
            }
        } else if key == "retention" {
            retention(config, &value)?;
        } else if key == "context" {
            context(config, &value)?;
        } else if key == "embeddings" {
            config.embeddings.read(&value, &mut config.unknown)?;
        } else if key == "team" {
            config.team.read(&value, config.home.as_deref(), &mut config.unknown)?;
        } else if key == "llm" {
            config.llm.read(&value, &mut config.unknown)?;
        } else if !set(config, &key, &value, SettingSource::File)? {
            config.unknown.push(key);
        }
    }
    Ok(())
}

/// Sets one key; returns false if it is unknown.
pub fn set(config: &mut Config, key: &str, value: &toml::Value, source: SettingSource) -> Result<bool, Wrong> {
    match key {
        "enabled" => config.enabled = Setting { value: boolean(key, value)?, source },
        "thinking" => config.thinking = Setting { value: boolean(key, value)?, source },
        "inject" => config.inject = Setting { value: inject(key, value)?, source },
        "context_bytes" => config.context_bytes = Setting { value: context_bytes(key, value)?, source },
        "prompt_bytes" => config.prompt_bytes = Setting { value: injected_bytes(key, value)?, source },
        "file_bytes" => config.file_bytes = Setting { value: injected_bytes(key, value)?, source },
        "language" => {
            let tag = value.as_str().filter(|tag| is_language(tag));
            let tag = tag.ok_or_else(|| wrong(key, "\"auto\", or a tag such as \"de\" or \"pt-BR\"", value))?;
            config.language = Setting { value: tag.to_string(), source };
        }
        "rule_languages" => config.rule_languages = Setting { value: rule_languages(key, value)?, source },
        "skip_tools" => config.skip_tools = Setting { value: strings(key, value)?, source },
        "ignore" => config.ignore = Setting { value: strings(key, value)?, source },
        "redact" => config.redact = Setting { value: strings(key, value)?, source },
        _ => return Ok(false),
    }
    Ok(true)
}

/// Reads `[retention]`.
fn retention(config: &mut Config, value: &toml::Value) -> Result<(), Wrong> {
    for (key, value) in value.as_table().ok_or("`retention` must be written as [retention]")? {
        if key != "tool_uses_days" {
            config.unknown.push(format!("retention.{key}"));
            continue;
        }
        let days = value.as_integer().and_then(|days| u32::try_from(days).ok()).filter(|days| *days <= 36_500);
        let days = days.ok_or_else(|| wrong("retention.tool_uses_days", "a number of days, or 0 for forever", value))?;
        config.tool_uses_days = Setting { value: days, source: SettingSource::File };
    }
    Ok(())
}

/// Reads `[context]`.
fn context(config: &mut Config, value: &toml::Value) -> Result<(), Wrong> {
    for (key, value) in value.as_table().ok_or("`context` must be written as [context]")? {
        let (setting, most) = match key.as_str() {
            "observations" => (&mut config.observations, 200),
            _ => {
                config.unknown.push(format!("context.{key}"));
                continue;
            }
        };
        let count = value.as_integer().and_then(|count| usize::try_from(count).ok()).filter(|count| *count <= most);
        let count = count.ok_or_else(|| wrong(&format!("context.{key}"), &format!("a number from 0 to {most}"), value))?;
        *setting = Setting { value: count, source: SettingSource::File };
    }
    Ok(())
}
