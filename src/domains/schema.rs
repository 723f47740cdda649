//! JSON Schemas of a domain's entity types (json-schema.org, draft 2020-12 unless the schema names another). Nothing is
//! fetched: a `$ref` must point inside the schema.

use crate::model::Domain;
use jsonschema::Validator;
use serde_json::Value;

/// Maximum violations in a message.
const NAMED: usize = 5;

/// Returns the reason why a text is not a valid schema.
pub(super) fn problem(schema: &str) -> Option<String> {
    compile(schema).err()
}

/// Returns the violations of the type's schema in an entity's content, each with its field; none for a type without a
/// schema.
pub fn misfits(domain: &Domain, entity_type: &str, content: &Value) -> Vec<String> {
    let Some(known) = domain.entities.iter().find(|known| known.name == entity_type) else { return Vec::new() };
    let schema = match compile(&known.schema) {
        Ok(schema) => schema,
        Err(why) => return vec![format!("the schema of {entity_type} in the domain {} is invalid: {why}", domain.name)],
    };
    let named = schema.iter_errors(content).take(NAMED).map(|error| {
        let field = error.instance_path().to_string().trim_start_matches('/').replace('/', ".");
        let field = if field.is_empty() { "content".to_string() } else { format!("content.{field}") };
        // Do not print the value: it may be long or secret.
        format!("`{field}`: {}", error.masked())
    });
    named.collect()
}

fn compile(schema: &str) -> Result<Validator, String> {
    let schema: Value = serde_json::from_str(schema).map_err(|error| format!("not valid JSON: {error}"))?;
    if !schema.is_object() {
        return Err("not a JSON object".into());
    }
    jsonschema::validator_for(&schema).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::EntityType;
    use serde_json::json;

    #[test]
    fn what_does_not_fit_is_named_by_its_field_and_never_shown() {
        let schema = json!({"required": ["severity"], "properties": {"severity": {"type": "integer", "maximum": 5},
            "who": {"type": "array", "items": {"type": "string"}}}});
        let entities = vec![EntityType { name: "incident".into(), schema: schema.to_string() }];
        let domain = Domain { name: "ops".into(), entities, ..Domain::default() };
        let misfits = |content: Value| misfits(&domain, "incident", &content).join("; ");
        assert_eq!(misfits(json!({"severity": 2, "who": ["ann"], "more": true})), "");
        insta::assert_snapshot!(misfits(json!({"who": ["ann", 7]})), @r#"`content`: "severity" is a required property; `content.who.1`: value is not of type "string""#);
        insta::assert_snapshot!(misfits(json!({"severity": "hunter2-hunter2"})), @r#"`content.severity`: value is not of type "integer""#);
        insta::assert_snapshot!(misfits(json!({"severity": 9})), @"`content.severity`: value is greater than the maximum of 5");
        assert!(super::misfits(&domain, "other", &json!({})).is_empty());
    }

    #[test]
    fn a_schema_that_is_none_is_refused_and_nothing_is_fetched() {
        for (schema, why) in [("{", "not valid JSON"), ("[]", "not a JSON object"), (r#"{"type": 7}"#, "7")] {
            assert!(problem(schema).is_some_and(|found| found.contains(why)), "{schema}: {:?}", problem(schema));
        }
        assert!(problem(r#"{"$ref": "https://example.com/schema.json"}"#).is_some());
    }
}
