//! All settings by name, for display.

use super::llm::without_credentials;
use super::setting::SettingSource;
use super::settings::Config;
use serde_json::{Value, json};
use std::path::Path;

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
