//! A setting: value, source, and the checks of values.

use crate::languages::LANGUAGES;
use crate::model::Share;
use std::fmt;
use std::path::PathBuf;

/// Maximum bytes to inject: the strictest platform cuts off at 10,000 characters.
pub const CONTEXT_BYTES_MAX: usize = 9000;

/// Origin of a setting's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingSource {
    Default,
    File,
    Environment(&'static str),
    /// A folder rule, by its pattern.
    Folder(String),
    /// A repository's `.nmem.toml` file.
    Repository(PathBuf),
}

impl fmt::Display for SettingSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingSource::Default => f.write_str("default"),
            SettingSource::File => f.write_str("config file"),
            SettingSource::Environment(name) => f.write_str(name),
            SettingSource::Folder(pattern) => write!(f, "[[folder]] {pattern}"),
            SettingSource::Repository(path) => write!(f, "{}", path.display()),
        }
    }
}

/// A value and its origin.
#[derive(Clone, Debug)]
pub struct Setting<T> {
    pub value: T,
    pub source: SettingSource,
}

impl<T> Setting<T> {
    /// A default value.
    pub(super) fn default(value: T) -> Setting<T> {
        Setting { value, source: SettingSource::Default }
    }
}

/// The injections that are enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inject {
    None,
    Start,
    All,
}

impl Inject {
    /// Its name in the config file.
    pub fn name(self) -> &'static str {
        match self {
            Inject::None => "none",
            Inject::Start => "start",
            Inject::All => "all",
        }
    }
}

/// Reason for rejecting a file.
pub type Wrong = String;

/// Returns true for a tag that is roughly BCP 47, or a language's name in one word. The tag becomes part of a model's
/// instructions, so it must not be a sentence.
pub fn is_language(tag: &str) -> bool {
    let parts: Vec<&str> = tag.split('-').collect();
    let letters = |part: &&str| (2..=12).contains(&part.len()) && part.chars().all(|c| c.is_ascii_alphanumeric());
    parts.len() <= 3 && parts.iter().all(letters)
}

/// Creates an error with the key, the valid values and the actual value.
pub fn wrong(key: &str, wanted: &str, value: &toml::Value) -> Wrong {
    let shown = match value {
        toml::Value::Integer(n) => n.to_string(),
        toml::Value::String(text) => format!("{text:?}"),
        toml::Value::Boolean(b) => b.to_string(),
        other => format!("a {}", other.type_str()),
    };
    format!("`{key}` must be {wanted}, not {shown}")
}

/// Parses tags of languages that have a file of cue words.
pub fn rule_languages(key: &str, value: &toml::Value) -> Result<Vec<String>, Wrong> {
    let tags = strings(key, value)?;
    let is_known = |tag: &String| tag == "en" || LANGUAGES.contains(&tag.as_str());
    match tags.iter().find(|tag| !is_known(tag)) {
        Some(tag) => Err(format!("`{key}` has {tag:?}: use en, {}", LANGUAGES.join(", "))),
        None => Ok(tags),
    }
}

/// Parses a list of strings.
pub fn strings(key: &str, value: &toml::Value) -> Result<Vec<String>, Wrong> {
    let list = value.as_array().and_then(|a| a.iter().map(|v| v.as_str().map(String::from)).collect());
    list.ok_or_else(|| wrong(key, "a list of strings", value))
}

/// Parses `true` or `false`.
pub fn boolean(key: &str, value: &toml::Value) -> Result<bool, Wrong> {
    value.as_bool().ok_or_else(|| wrong(key, "true or false", value))
}

/// Parses a string.
pub fn text(key: &str, value: &toml::Value) -> Result<String, Wrong> {
    value.as_str().map(String::from).ok_or_else(|| wrong(key, "a string", value))
}

/// Parses the maximum bytes for a session start.
pub fn context_bytes(key: &str, value: &toml::Value) -> Result<usize, Wrong> {
    let bytes = value.as_integer().and_then(|n| usize::try_from(n).ok()).filter(|n| (500..=CONTEXT_BYTES_MAX).contains(n));
    bytes.ok_or_else(|| wrong(key, "a number from 500 to 9000", value))
}

/// Parses the maximum bytes for a prompt or an edit.
pub fn injected_bytes(key: &str, value: &toml::Value) -> Result<usize, Wrong> {
    let bytes = value.as_integer().and_then(|n| usize::try_from(n).ok()).filter(|n| *n == 0 || (300..=4000).contains(n));
    bytes.ok_or_else(|| wrong(key, "0 to turn it off, or a number from 300 to 4000", value))
}

/// Parses the injections that are enabled.
pub fn inject(key: &str, value: &toml::Value) -> Result<Inject, Wrong> {
    let known = [Inject::None, Inject::Start, Inject::All].into_iter().find(|i| value.as_str() == Some(i.name()));
    known.ok_or_else(|| wrong(key, "\"none\", \"start\" or \"all\"", value))
}

/// Parses the audience to share with.
pub fn share(key: &str, value: &toml::Value) -> Result<Share, Wrong> {
    match (value.as_bool(), value.as_str()) {
        (Some(true), _) => Ok(Share::Team),
        (Some(false), _) => Ok(Share::None),
        (_, Some("mine")) => Ok(Share::Mine),
        _ => Err(wrong(key, "true, false or \"mine\"", value)),
    }
}

/// Parses a tag for the language of memories.
pub fn language(key: &str, value: &toml::Value) -> Result<String, Wrong> {
    let tag = value.as_str().filter(|tag| is_language(tag));
    tag.map(String::from).ok_or_else(|| wrong(key, "\"auto\", or a tag such as \"de\" or \"pt-BR\"", value))
}
