//! Reads settings from a TOML file. An error names the line, or the key and its valid values.

use super::folders::Rule;
use super::setting::{Setting, SettingSource};
use super::settings::Config;
use super::value::{Wrong, boolean, context_bytes, inject, injected_bytes, is_language, rule_languages, strings, wrong};

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
