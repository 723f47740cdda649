//! TOML → settings. An error names the line, or the key and what it must be.

use super::folders::Rule;
use super::{CONTEXT_BYTES_MAX, Config, Inject, Setting, Source};

/// Why a file can't be taken as it is.
pub type Wrong = String;

/// Parses a file.
pub fn table(text: &str) -> Result<toml::Table, Wrong> {
    text.parse().map_err(|e: toml::de::Error| {
        let line = e.span().map_or(1, |s| text[..s.start.min(text.len())].matches('\n').count() + 1);
        format!("line {line}: {}", e.message())
    })
}

/// Puts what the user's file says into the settings.
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
        } else if key == "llm" {
            config.llm.read(&value, &mut config.unknown)?;
        } else if !set(config, &key, &value, Source::File)? {
            config.unknown.push(key);
        }
    }
    Ok(())
}

/// Sets one key; false where it isn't known.
pub fn set(config: &mut Config, key: &str, value: &toml::Value, source: Source) -> Result<bool, Wrong> {
    match key {
        "enabled" => config.enabled = Setting { value: boolean(key, value)?, source },
        "thinking" => config.thinking = Setting { value: boolean(key, value)?, source },
        "inject" => config.inject = Setting { value: inject(key, value)?, source },
        "context_bytes" => config.context_bytes = Setting { value: context_bytes(key, value)?, source },
        "prompt_bytes" => config.prompt_bytes = Setting { value: moment_bytes(key, value)?, source },
        "file_bytes" => config.file_bytes = Setting { value: moment_bytes(key, value)?, source },
        "language" => {
            let tag = value.as_str().filter(|tag| is_language(tag));
            let tag = tag.ok_or_else(|| wrong(key, "\"auto\", or a tag such as \"de\" or \"pt-BR\"", value))?;
            config.language = Setting { value: tag.to_string(), source };
        }
        "skip_tools" => config.skip_tools = Setting { value: strings(key, value)?, source },
        "ignore" => config.ignore = Setting { value: strings(key, value)?, source },
        "redact" => config.redact = Setting { value: strings(key, value)?, source },
        _ => return Ok(false),
    }
    Ok(true)
}

/// `[retention]`
fn retention(config: &mut Config, value: &toml::Value) -> Result<(), Wrong> {
    for (key, value) in value.as_table().ok_or("`retention` must be written as [retention]")? {
        if key != "tool_uses_days" {
            config.unknown.push(format!("retention.{key}"));
            continue;
        }
        let days = value.as_integer().and_then(|days| u32::try_from(days).ok()).filter(|days| *days <= 36_500);
        let days = days.ok_or_else(|| wrong("retention.tool_uses_days", "a number of days, or 0 for ever", value))?;
        config.tool_uses_days = Setting { value: days, source: Source::File };
    }
    Ok(())
}

/// `[context]`
fn context(config: &mut Config, value: &toml::Value) -> Result<(), Wrong> {
    for (key, value) in value.as_table().ok_or("`context` must be written as [context]")? {
        let (setting, most) = match key.as_str() {
            "observations" => (&mut config.observations, 200),
            "summaries" => (&mut config.summaries, 50),
            _ => {
                config.unknown.push(format!("context.{key}"));
                continue;
            }
        };
        let count = value.as_integer().and_then(|count| usize::try_from(count).ok()).filter(|count| *count <= most);
        let count = count.ok_or_else(|| wrong(&format!("context.{key}"), &format!("a number from 0 to {most}"), value))?;
        *setting = Setting { value: count, source: Source::File };
    }
    Ok(())
}

/// BCP 47, roughly, or a language's name in one word: it becomes part of what a model is told, so it can be no sentence.
pub fn is_language(tag: &str) -> bool {
    let parts: Vec<&str> = tag.split('-').collect();
    let letters = |part: &&str| (2..=12).contains(&part.len()) && part.chars().all(|c| c.is_ascii_alphanumeric());
    parts.len() <= 3 && parts.iter().all(letters)
}

fn wrong(key: &str, wanted: &str, value: &toml::Value) -> Wrong {
    let shown = match value {
        toml::Value::Integer(n) => n.to_string(),
        toml::Value::String(text) => format!("{text:?}"),
        toml::Value::Boolean(b) => b.to_string(),
        other => format!("a {}", other.type_str()),
    };
    format!("`{key}` must be {wanted}, not {shown}")
}

/// A list of strings.
pub fn strings(key: &str, value: &toml::Value) -> Result<Vec<String>, Wrong> {
    let list = value.as_array().and_then(|a| a.iter().map(|v| v.as_str().map(String::from)).collect());
    list.ok_or_else(|| wrong(key, "a list of strings", value))
}

/// True or false.
pub fn boolean(key: &str, value: &toml::Value) -> Result<bool, Wrong> {
    value.as_bool().ok_or_else(|| wrong(key, "true or false", value))
}

/// A string.
pub fn text(key: &str, value: &toml::Value) -> Result<String, Wrong> {
    value.as_str().map(String::from).ok_or_else(|| wrong(key, "a string", value))
}

/// Bytes that a session's start is given.
pub fn context_bytes(key: &str, value: &toml::Value) -> Result<usize, Wrong> {
    let bytes = value.as_integer().and_then(|n| usize::try_from(n).ok()).filter(|n| (500..=CONTEXT_BYTES_MAX).contains(n));
    bytes.ok_or_else(|| wrong(key, "a number from 500 to 9000", value))
}

/// Bytes that are given in the middle of work.
pub fn moment_bytes(key: &str, value: &toml::Value) -> Result<usize, Wrong> {
    let bytes = value.as_integer().and_then(|n| usize::try_from(n).ok()).filter(|n| *n == 0 || (300..=4000).contains(n));
    bytes.ok_or_else(|| wrong(key, "0 for silence, or a number from 300 to 4000", value))
}

/// How much agents are given.
pub fn inject(key: &str, value: &toml::Value) -> Result<Inject, Wrong> {
    let known = [Inject::None, Inject::Start, Inject::All].into_iter().find(|i| value.as_str() == Some(i.name()));
    known.ok_or_else(|| wrong(key, "\"none\", \"start\" or \"all\"", value))
}
