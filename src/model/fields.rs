//! Fields of JSON that programs name themselves: every text in them is visited, the names too, and each value behind the names
//! that stand above it, since a name may tell what the value is: `{"password": {"value": "…"}}`.

use super::{Limit, NAME};
use serde_json::{Map, Value};

/// Bytes of a name behind which a value is looked at: longer ones tell nothing.
const TELLING: usize = 64;
/// Bytes, and words, of a value that its name may tell to be a secret.
const SHORT: usize = 1024;
const WORDS: usize = 6;
/// How deep fields may stand inside one another. What is written must be readable: JSON is read to 128.
pub const DEPTH: usize = 64;

type Visit<'a> = &'a mut dyn FnMut(&mut String, Limit);

/// Visits fields, their names and all texts in them.
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

/// Visits the texts of a value that stands under names.
pub fn each_text(names: [&str; 2], value: &mut Value, limit: Limit, visit: Visit) {
    match value {
        Value::String(text) => {
            visit(text, limit);
            // What a name gives away is short; prose is looked at as it is.
            let is_short = text.len() <= SHORT && text.split_whitespace().nth(WORDS).is_none();
            for name in names.into_iter().filter(|name| is_short && !name.is_empty() && name.len() <= TELLING) {
                let lead = format!("\"{name}\": ");
                let mut named = format!("{lead}{}", Value::from(text.as_str()));
                let before = named.clone();
                // Escaped, a character is six at most; nothing is to be cut here.
                visit(&mut named, Limit(lead.len() + 6 * text.len() + 2));
                // What its name gives away goes whole: a mark stands for it.
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

/// How deep a value stands inside itself: 1 for what holds nothing.
pub fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 1,
    }
}
