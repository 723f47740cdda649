//! TOML values as settings. An error names the key and what it must be.

use super::setting::{CONTEXT_BYTES_MAX, Inject};

/// Why a file can't be taken as it is.
pub type Wrong = String;

/// BCP 47, roughly, or a language's name in one word: it becomes part of what a model is told, so it can be no sentence.
pub fn is_language(tag: &str) -> bool {
    let parts: Vec<&str> = tag.split('-').collect();
    let letters = |part: &&str| (2..=12).contains(&part.len()) && part.chars().all(|c| c.is_ascii_alphanumeric());
    parts.len() <= 3 && parts.iter().all(letters)
}

/// An error that names the key, what it must be, and what it is.
pub fn wrong(key: &str, wanted: &str, value: &toml::Value) -> Wrong {
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
