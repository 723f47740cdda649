//! Field types of a domain's entities, written as a subset of JSON Schema: `type`, `required`, `properties`, `items`,
//! `enum`, `minimum`, `maximum`. `nmem domain check` refuses any other keyword, so that no rule is ignored silently
//! (ADR/0041).

use crate::model::Domain;
use serde_json::{Map, Value};

/// Maximum violations in a message.
const NAMED: usize = 5;
/// Keywords that are checked.
const CHECKED: [&str; 7] = ["type", "required", "properties", "items", "enum", "minimum", "maximum"];
/// Keywords that only describe.
const NOTES: [&str; 6] = ["title", "description", "$schema", "$id", "examples", "default"];
const TYPES: [&str; 7] = ["null", "boolean", "object", "array", "number", "integer", "string"];

/// Returns the reason why a text is not a valid schema.
pub(super) fn problem(schema: &str) -> Option<String> {
    match parse(schema) {
        Ok(schema) => invalid(&Value::Object(schema)),
        Err(why) => Some(why),
    }
}

/// Returns the violations of the type's schema in an entity's content, each with its field; none for a type without a
/// schema.
pub fn schema_violations(domain: &Domain, entity_type: &str, content: &Value) -> Vec<String> {
    let Some(known) = domain.entities.iter().find(|known| known.name == entity_type) else { return Vec::new() };
    match parse(&known.schema) {
        Ok(schema) => {
            let mut found = Vec::new();
            check(&schema, content, "content", &mut found);
            found.truncate(NAMED);
            found
        }
        Err(why) => vec![format!("the schema of {entity_type} in the domain {} is invalid: {why}", domain.name)],
    }
}

fn parse(schema: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(schema) {
        Ok(Value::Object(schema)) => Ok(schema),
        Ok(_) => Err("not a JSON object".into()),
        Err(error) => Err(format!("not valid JSON: {error}")),
    }
}

/// The first part of a schema that is not supported.
fn invalid(schema: &Value) -> Option<String> {
    let Value::Object(schema) = schema else { return Some("a schema must be a JSON object".into()) };
    schema.iter().find_map(|(keyword, value)| {
        let fits = match keyword.as_str() {
            "type" => types(value).is_some_and(|names| names.iter().all(|name| TYPES.contains(name))),
            "required" => types(value).is_some() && value.is_array(),
            "enum" => value.is_array(),
            "minimum" | "maximum" => value.is_number(),
            "items" => return invalid(value),
            "properties" => match value {
                Value::Object(fields) => return fields.values().find_map(invalid),
                _ => false,
            },
            other if NOTES.contains(&other) => true,
            other => return Some(format!("`{other}` is not supported; use {}", CHECKED.join(", "))),
        };
        (!fits).then(|| format!("`{keyword}` cannot be {value}"))
    })
}

/// One word or a list of words.
fn types(value: &Value) -> Option<Vec<&str>> {
    match value {
        Value::String(name) => Some(vec![name]),
        Value::Array(names) => names.iter().map(Value::as_str).collect(),
        _ => None,
    }
}

/// Adds the violations in a value. Messages never contain the value: it may be long or secret.
fn check(schema: &Map<String, Value>, value: &Value, at: &str, found: &mut Vec<String>) {
    if let Some(names) = schema.get("type").and_then(types).filter(|names| !names.iter().any(|name| is_of(value, name))) {
        found.push(format!("`{at}` is not of type {}", names.join(" or ")));
        return;
    }
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array).filter(|allowed| !allowed.contains(value)) {
        let allowed: Vec<String> = allowed.iter().map(Value::to_string).collect();
        found.push(format!("`{at}` is not one of {}", allowed.join(", ")));
    }
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64).zip(value.as_f64());
    if let Some((least, _)) = bound("minimum").filter(|(least, value)| value < least) {
        found.push(format!("`{at}` is less than {least}"));
    }
    if let Some((most, _)) = bound("maximum").filter(|(most, value)| value > most) {
        found.push(format!("`{at}` is greater than {most}"));
    }
    if let Value::Object(fields) = value {
        let required = schema.get("required").and_then(types).unwrap_or_default();
        found.extend(required.iter().filter(|name| !fields.contains_key(**name)).map(|name| format!("`{at}.{name}` is missing")));
    }
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    for (name, inner) in properties {
        if let (Value::Object(inner), Some(value)) = (inner, value.get(name)) {
            check(inner, value, &format!("{at}.{name}"), found);
        }
    }
    if let (Some(Value::Object(inner)), Value::Array(values)) = (schema.get("items"), value) {
        values.iter().enumerate().for_each(|(n, value)| check(inner, value, &format!("{at}.{n}"), found));
    }
}

fn is_of(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => value.is_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::EntityType;
    use serde_json::json;

    #[test]
    fn a_violation_is_named_by_its_field_and_its_value_is_never_shown() {
        let schema = json!({"required": ["severity"], "properties": {"severity": {"type": "integer", "maximum": 5},
            "who": {"type": "array", "items": {"type": "string"}}, "state": {"enum": ["open", "closed"]}}});
        let entities = vec![EntityType { name: "incident".into(), schema: schema.to_string() }];
        let domain = Domain { name: "ops".into(), entities, ..Domain::default() };
        let violations = |content: Value| schema_violations(&domain, "incident", &content).join("; ");
        assert_eq!(violations(json!({"severity": 2, "who": ["ann"], "state": "open", "more": true})), "");
        insta::assert_snapshot!(violations(json!({"who": ["ann", 7]})), @"`content.severity` is missing; `content.who.1` is not of type string");
        insta::assert_snapshot!(violations(json!({"severity": "hunter2-hunter2"})), @"`content.severity` is not of type integer");
        insta::assert_snapshot!(violations(json!({"severity": 9})), @"`content.severity` is greater than 5");
        insta::assert_snapshot!(violations(json!({"severity": 1, "state": "lost"})), @r#"`content.state` is not one of "open", "closed""#);
        assert!(schema_violations(&domain, "other", &json!({})).is_empty());
    }

    #[test]
    fn a_schema_with_an_unknown_keyword_is_refused() {
        for (schema, why) in [
            ("{", "not valid JSON"),
            ("[]", "not a JSON object"),
            (r#"{"type": 7}"#, "`type` cannot be 7"),
            (r#"{"type": "date"}"#, "`type` cannot be"),
            (r#"{"properties": {"a": {"pattern": "^x"}}}"#, "`pattern` is not supported"),
            (r#"{"$ref": "https://example.com/schema.json"}"#, "`$ref` is not supported"),
        ] {
            assert!(problem(schema).is_some_and(|found| found.contains(why)), "{schema}: {:?}", problem(schema));
        }
        assert_eq!(problem(r#"{"type": ["string", "null"], "description": "who"}"#), None);
    }
}
