//! JSON with field names that programs choose. Every text in it is visited, names included. A value is visited together
//! with the names above it, since a name can reveal a secret: `{"password": {"value": "…"}}`.

use super::{Limit, NAME};
use serde_json::{Map, Value};

/// Longest name, in bytes, that can mark its value as a secret.
const TELLING: usize = 64;
/// Longest value, in bytes, that a name can mark as a secret.
const SHORT: usize = 1024;
const WORDS: usize = 6;
/// Maximum nesting. nmem must be able to read back what it writes, and JSON parsing stops at 128.
pub const DEPTH: usize = 64;

type Visit<'a> = &'a mut dyn FnMut(&mut String, Limit);

/// Visits the fields, their names and all texts in them.
pub fn each_field(fields: &mut Map<String, Value>, above: &str, limit: Limit, visit: Visit) {
    let mut names: Vec<(String, String)> = Vec::new();
    for (name, value) in fields.iter_mut() {
        let mut cleaned = name.clone();
        visit(&mut cleaned, NAME);
        if cleaned != *name {
            names.push((name.clone(), cleaned));
        }
        each_text([above, name], value, limit, visit);
    }
    for (name, cleaned) in names {
        if let Some(value) = fields.remove(&name) {
            fields.insert(cleaned, value);
        }
    }
}

/// Visits the texts of a value below the given names.
pub fn each_text(names: [&str; 2], value: &mut Value, limit: Limit, visit: Visit) {
    match value {
        Value::String(text) => {
            visit(text, limit);
            // A secret that follows a name is short; longer prose is visited without the name.
            let is_short = text.len() <= SHORT && text.split_whitespace().nth(WORDS).is_none();
            for name in names.into_iter().filter(|name| is_short && !name.is_empty() && name.len() <= TELLING) {
                let lead = format!("\"{name}\": ");
                let mut named = format!("{lead}{}", Value::from(text.as_str()));
                let before = named.clone();
                // An escaped character takes at most six bytes. Nothing may be cut here.
                visit(&mut named, Limit(lead.len() + 6 * text.len() + 2));
                // If the name marks it as a secret, the whole value becomes a mark.
                if let Some(mark) = named.strip_prefix(&lead).filter(|_| named != before).and_then(mark) {
                    *text = mark.to_string();
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(names, item, limit, visit)),
        Value::Object(fields) => each_field(fields, names[1], limit, visit),
        _ => {}
    }
}

fn mark(text: &str) -> Option<&str> {
    let from = text.find("[redacted:")?;
    let to = text[from..].find(']')?;
    Some(&text[from..=from + to])
}

/// Nesting depth of a value: 1 for a scalar or an empty container.
pub fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 1,
    }
}
