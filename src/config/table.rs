//! The table of settings: a row per setting. The config file, folder rules, repositories, `nmem status --settings` and the
//! check of the documentation follow from it. To add a setting, add a field with its default in `settings` and a row here.

use super::folders::{Rule, WITHOUT_APPROVAL, Wishes, expanded};
use super::llm::{check_url, daily_tokens, embedding_provider, provider, stop_seconds, when, without_credentials};
use super::setting::{
    Setting, SettingSource, Wrong, boolean, context_bytes, inject, injected_bytes, language, rule_languages, share, strings, text,
};
use super::settings::{self, Config};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Origins that may set a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    /// The user's config file.
    File,
    /// A `[[folder]]` of it.
    Folder,
    /// A repository's `.nmem.toml` that the user trusts.
    Trusted,
}

const FILE: &[Who] = &[Who::File];
const ANYBODY: &[Who] = &[Who::File, Who::Folder, Who::Trusted];
const FILE_AND_TRUSTED: &[Who] = &[Who::File, Who::Trusted];

type Set = fn(&mut Config, &str, &toml::Value, SettingSource) -> Result<(), Wrong>;

/// A setting.
#[derive(Debug)]
pub struct SettingRow {
    /// Name as in the config file, with its table: `llm.model`.
    pub name: &'static str,
    /// One line for the documentation.
    pub doc: &'static str,
    who: &'static [Who],
    get: fn(&Config) -> (Value, &SettingSource),
    set: Set,
}

/// A row for a field: who may set it, how its value is parsed, and how it is shown.
macro_rules! row {
    ($name:literal, $doc:literal, $who:expr, $($field:ident).+, $parse:expr, $show:expr) => {
        SettingRow {
            name: $name,
            doc: $doc,
            who: $who,
            get: |config| ($show(&config.$($field).+.value), &config.$($field).+.source),
            set: |config, key, value, source| {
                config.$($field).+ = Setting { value: $parse(key, value)?, source };
                Ok(())
            },
        }
    };
}

/// All settings, in the order of the documentation.
#[rustfmt::skip]
pub const SETTINGS: &[SettingRow] = &[
    SettingRow { name: "database", doc: "the database file", who: &[], get: |c| (json!(c.files.value.db), &c.files.source), set: |_, _, _, _| Ok(()) },
    row!("enabled", "record; false: only where a folder rule or a project opts in", ANYBODY, enabled, boolean, |v| json!(v)),
    row!("inject", "injections: none, start or all", ANYBODY, inject, inject, |v: &super::setting::Inject| json!(v.name())),
    row!("context_bytes", "most bytes at a session start", ANYBODY, context_bytes, context_bytes, |v| json!(v)),
    row!("prompt_bytes", "most bytes at a prompt; 0: none", ANYBODY, prompt_bytes, injected_bytes, |v| json!(v)),
    row!("file_bytes", "most bytes before an edit; 0: none", ANYBODY, file_bytes, injected_bytes, |v| json!(v)),
    row!("thinking", "keep up to 2 kB of the agent's thinking", FILE, thinking, boolean, |v| json!(v)),
    row!("skip_tools", "tools that are not recorded", FILE_AND_TRUSTED, skip_tools, strings, |v| json!(v)),
    row!("ignore", "globs of files that are recorded by path only", FILE_AND_TRUSTED, ignore, strings, |v| json!(v)),
    row!("redact", "patterns of secrets", FILE_AND_TRUSTED, redact, strings, |v| json!(v)),
    row!("language", "language of memories, or auto", FILE, language, language, |v| json!(v)),
    row!("rule_languages", "languages whose cue words the rules use", FILE, rule_languages, rule_languages, |v| json!(v)),
    row!("llm.provider", "language model", FILE, llm.provider, provider, |v: &crate::model::Provider| json!(v.name())),
    row!("llm.base_url", "server of the language model", FILE, llm.base_url, url, |v: &String| json!(without_credentials(v))),
    row!("llm.model", "name of the language model", FILE, llm.model, trimmed, |v| json!(v)),
    row!("llm.api_key_env", "environment variable with the key", FILE, llm.api_key_env, trimmed, |v| json!(v)),
    row!("llm.when", "stop or manual", FILE, llm.when, when, |v: &super::llm::When| json!(v.name())),
    row!("llm.stop_seconds", "most seconds that a Stop waits", FILE, llm.stop_seconds, stop_seconds, |v| json!(v)),
    row!("llm.daily_tokens", "most tokens in 24 hours", FILE, llm.daily_tokens, daily_tokens, |v| json!(v)),
    row!("embeddings.provider", "local: a model in this process; empty: the server at `base_url`", FILE, embeddings.provider, embedding_provider, |v: &super::llm::EmbeddingProvider| json!(v.name())),
    row!("embeddings.base_url", "server of the embedding model", FILE, embeddings.base_url, url, |v: &String| json!(without_credentials(v))),
    row!("embeddings.model", "name of the embedding model", FILE, embeddings.model, trimmed, |v| json!(v)),
    row!("embeddings.api_key_env", "environment variable with the key", FILE, embeddings.api_key_env, trimmed, |v| json!(v)),
    row!("verify.at_stop", "a line for you when the agent says that checks pass, and none shows it", FILE, verify_at_stop, boolean, |v| json!(v)),
    row!("agent_notes.ask", "ask the agent for `memo:` lines, and read them", FILE, agent_notes, boolean, |v| json!(v)),
    row!("team.sync", "manual or session", FILE, team.when, settings::sync_when, |v: &settings::SyncWhen| json!(v.name())),
    row!("team.name", "your name for the team", FILE, team.name, settings::person, |v: &Option<String>| json!(v.as_deref().unwrap_or_default())),
    SettingRow { name: "team.folder", doc: "the shared folder", who: FILE, get: |c| (json!(c.team.folder.value.as_deref().unwrap_or(Path::new(""))), &c.team.folder.source), set: team_folder },
    row!("retention.tool_uses_days", "days to keep tool uses; 0: forever", FILE, tool_uses_days, days, |v| json!(v)),
    row!("project", "the project's name", &[Who::Trusted], project, |key, value| text(key, value).map(Some), |v| json!(v)),
    SettingRow { name: "domain", doc: "the domain that the repository names", who: &[], get: |c| (json!(c.domain.value), &c.domain.source), set: |_, _, _, _| Ok(()) },
];

fn trimmed(key: &str, value: &toml::Value) -> Result<String, Wrong> {
    Ok(text(key, value)?.trim().to_string())
}

fn url(key: &str, value: &toml::Value) -> Result<String, Wrong> {
    let url = trimmed(key, value)?;
    match url.is_empty() {
        true => Ok(url),
        false => check_url(&url).map(|()| url).map_err(|why| format!("`{key}` {why}")),
    }
}

fn days(key: &str, value: &toml::Value) -> Result<u32, Wrong> {
    let days = value.as_integer().and_then(|days| u32::try_from(days).ok()).filter(|days| *days <= 36_500);
    days.ok_or_else(|| super::setting::wrong(key, "a number of days, or 0 for forever", value))
}

fn team_folder(config: &mut Config, key: &str, value: &toml::Value, source: SettingSource) -> Result<(), Wrong> {
    let given = text(key, value)?;
    let folder = PathBuf::from(expanded(&given, config.home.as_deref()));
    if !given.is_empty() && !folder.is_absolute() {
        return Err(super::setting::wrong(key, "an absolute path or begin with ~/", value));
    }
    config.team.folder = Setting { value: (!given.is_empty()).then_some(folder), source };
    Ok(())
}

impl SettingRow {
    /// Names the origins that may set it, for the documentation; empty if no file may.
    pub fn set_by(&self) -> String {
        let name = |who: &Who| match who {
            Who::File => "config file",
            Who::Folder => "`[[folder]]`",
            Who::Trusted => "trusted `.nmem.toml`",
        };
        self.who.iter().map(name).collect::<Vec<_>>().join(", ")
    }
}

fn row(name: &str, who: Who) -> Option<&'static SettingRow> {
    SETTINGS.iter().find(|row| row.name == name && row.who.contains(&who))
}

/// Parses a file.
pub fn parsed(text: &str) -> Result<toml::Table, Wrong> {
    text.parse().map_err(|e: toml::de::Error| {
        let line = e.span().map_or(1, |s| text[..s.start.min(text.len())].matches('\n').count() + 1);
        format!("line {line}: {}", e.message())
    })
}

/// Applies the user's file to the settings. Unknown keys are added to `config.unknown`.
pub fn apply(config: &mut Config, text: &str) -> Result<(), Wrong> {
    for (key, value) in parsed(text)? {
        if key == "folder" {
            for rule in value.as_array().ok_or("`folder` must be written as [[folder]]")? {
                let rule = read_rule(config, rule)?;
                config.folders.push(rule);
            }
        } else if SETTINGS.iter().any(|row| row.name.strip_prefix(&key).is_some_and(|rest| rest.starts_with('.'))) {
            for (inner, value) in value.as_table().ok_or_else(|| format!("`{key}` must be written as [{key}]"))? {
                set(config, &format!("{key}.{inner}"), value)?;
            }
        } else {
            set(config, &key, &value)?;
        }
    }
    Ok(())
}

fn set(config: &mut Config, name: &str, value: &toml::Value) -> Result<(), Wrong> {
    match row(name, Who::File) {
        Some(row) => (row.set)(config, name, value, SettingSource::File),
        None => {
            config.unknown.push(name.to_string());
            Ok(())
        }
    }
}

/// Reads a folder rule, and checks its values.
fn read_rule(config: &mut Config, value: &toml::Value) -> Result<Rule, Wrong> {
    let table = value.as_table().ok_or("`folder` must be written as [[folder]]")?;
    let mut rule = Rule::default();
    // A wrong value is an error wherever the rule applies, so each is tried on settings that nobody reads.
    let mut tried: Option<Config> = None;
    for (key, value) in table {
        let home = config.home.as_deref();
        match key.as_str() {
            "match" => rule.pattern = expanded(&text(key, value)?, home),
            "project" => rule.project = Some(text(key, value)?).filter(|name| !name.trim().is_empty()),
            "database" => rule.database = Some(PathBuf::from(expanded(&text(key, value)?, home))),
            "share" => rule.share = Some(share(key, value)?),
            "provider" => rule.provider = Some(provider(key, value)?),
            _ => match row(key, Who::Folder) {
                Some(row) => {
                    (row.set)(tried.get_or_insert_with(|| config.clone()), key, value, SettingSource::File)?;
                    rule.settings.push((row.name, value.clone()));
                }
                None => config.unknown.push(format!("folder.{key}")),
            },
        }
    }
    rule.checked()
}

impl Config {
    /// Applies what a folder rule sets.
    pub(super) fn apply_rule(&mut self, rule: &Rule) -> Result<(), Wrong> {
        for (name, value) in &rule.settings {
            if let Some(row) = row(name, Who::Folder) {
                (row.set)(self, name, value, rule.source())?;
            }
        }
        Ok(())
    }

    /// Applies a trusted repository file. Its lists extend the user's lists.
    pub(super) fn apply_trusted(&mut self, file: &Wishes, table: &toml::Table) -> Result<(), Wrong> {
        let own = (self.skip_tools.value.clone(), self.ignore.value.clone(), self.redact.value.clone());
        for (key, value) in table {
            if let Some(row) = row(key, Who::Trusted) {
                (row.set)(self, key, value, SettingSource::Repository(file.path.clone()))?;
            }
        }
        for (list, own) in [(&mut self.skip_tools, own.0), (&mut self.ignore, own.1), (&mut self.redact, own.2)] {
            if list.value != own {
                list.value.splice(0..0, own);
            }
        }
        Ok(())
    }

    /// Returns every setting for display, in the order of the documentation.
    pub fn listed(&self) -> Vec<ListedSetting> {
        let listed = |row: &SettingRow| {
            let (value, source) = (row.get)(self);
            ListedSetting { name: row.name, value, source: source.clone() }
        };
        SETTINGS.iter().map(listed).collect()
    }
}

impl Wishes {
    /// Keys that no repository may set, even with approval.
    pub fn ignored(&self) -> Vec<&str> {
        let known = |key: &&String| row(key, Who::Trusted).is_some() || WITHOUT_APPROVAL.contains(&key.as_str());
        self.table.iter().flat_map(|table| table.keys()).filter(|key| !known(key)).map(String::as_str).collect()
    }

    /// Returns the keys that wait for approval. Unknown keys are omitted, because their names are the repository's
    /// text.
    pub fn waiting(&self) -> Vec<&'static str> {
        let Ok(table) = &self.table else { return Vec::new() };
        if self.trusted {
            return Vec::new();
        }
        let asks = |key: &&str| table.contains_key(*key) && (!WITHOUT_APPROVAL.contains(key) || *key == "enabled" && !self.off());
        let may_be_trusted = SETTINGS.iter().filter(|row| row.who.contains(&Who::Trusted)).map(|row| row.name);
        may_be_trusted.filter(asks).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_setting_of_the_file_can_be_set() {
        for (at, row) in SETTINGS.iter().enumerate() {
            assert!(SETTINGS[..at].iter().all(|other| other.name != row.name), "{}", row.name);
            assert!(!row.doc.is_empty(), "{}", row.name);
        }
        assert!(SETTINGS.iter().filter(|row| row.who.contains(&Who::Folder)).all(|row| row.who.contains(&Who::File)));
    }
}
