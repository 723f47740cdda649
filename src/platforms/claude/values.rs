//! Converts Claude Code's JSON values to text.

use serde_json::Value;

/// Maximum entries of a task list, or results of a web search, to read.
pub const ENTRIES: usize = 50;

/// Returns a non-blank string.
pub fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|t| !t.trim().is_empty()).map(String::from)
}

/// Joins the strings of a list.
pub fn joined(list: &Value, with: &str) -> Option<String> {
    let items: Vec<&str> = list.as_array()?.iter().filter_map(Value::as_str).take(200).collect();
    Some(items.join(with)).filter(|t| !t.is_empty())
}

/// Converts a response of any shape to text: content blocks, strings, lists of them, or JSON.
pub fn readable(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(_) => text(value),
        Value::Array(items) => {
            let words =
                |item: &Value| text(&item["text"]).or_else(|| text(&item["title"])).or_else(|| readable_if_not_object(item));
            let parts: Vec<String> = items.iter().take(ENTRIES).filter_map(words).collect();
            Some(parts.join("\n")).filter(|t| !t.is_empty())
        }
        Value::Object(_) => text(&value["text"]).or_else(|| readable(&value["content"])).or_else(|| Some(value.to_string())),
        other => Some(other.to_string()),
    }
}

/// Like [`readable`], but returns `None` for an object.
pub fn readable_if_not_object(value: &Value) -> Option<String> {
    if value.is_object() { None } else { readable(value) }
}
