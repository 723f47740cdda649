//! Syntax tree of a JSON file that may have comments. The tree keeps every byte.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstObject, CstRootNode};
use serde_json::Value;

/// The reason why a file cannot be edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotEditable(pub String);

/// Removes a leading byte order mark, which Windows programs write.
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Parses a text into a tree.
pub fn tree(text: &str) -> Result<CstRootNode, NotEditable> {
    CstRootNode::parse(text, &ParseOptions::default()).map_err(|e| NotEditable(format!("it is not JSON: {e}")))
}

/// Checks that no key occurs twice at the top level or in the object under the key `below`.
///
/// # Errors
///
/// A key that occurs twice: programs differ in which value they use.
pub fn once(text: &str, below: &str) -> Result<(), NotEditable> {
    let twice = |object: &CstObject| {
        let names = object.properties().into_iter().filter_map(|member| member.name()?.decoded_value().ok());
        let mut seen = std::collections::HashSet::new();
        names.into_iter().find(|name| !seen.insert(name.clone()))
    };
    let Some(top) = tree(text).ok().and_then(|root| root.object_value()) else { return Ok(()) };
    match twice(&top).or_else(|| twice(&top.object_value(below)?)) {
        Some(name) => Err(NotEditable(format!("`{name}` is in it twice"))),
        None => Ok(()),
    }
}

/// Parses JSON with comments.
pub fn lenient(text: &str) -> Result<Value, NotEditable> {
    let parsed = jsonc_parser::parse_to_value(text, &ParseOptions::default());
    match parsed.map_err(|e| NotEditable(format!("it is not JSON: {e}")))? {
        Some(value) => Ok(plain(value)),
        None => Err(NotEditable("it is not a JSON object".into())),
    }
}

fn plain(value: jsonc_parser::JsonValue) -> Value {
    use jsonc_parser::JsonValue;
    match value {
        JsonValue::String(text) => Value::from(text.into_owned()),
        JsonValue::Number(number) => serde_json::from_str(number).unwrap_or_default(),
        JsonValue::Boolean(truth) => truth.into(),
        JsonValue::Object(members) => members.into_iter().map(|(name, value)| (name.to_string(), plain(value))).collect(),
        JsonValue::Array(items) => items.into_iter().map(plain).collect(),
        JsonValue::Null => Value::Null,
    }
}
