//! The form of the answer, from one list of fields: XML in words for models that only write text, and a JSON Schema for
//! providers with structured output.

use super::answer::SECTIONS;
use crate::model::Domain;
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// Shape of the values of a field.
enum Shape {
    Text,
    /// One of these words.
    OneOf(Vec<String>),
    /// Several values; in XML each has a tag of this name.
    List(&'static str),
    /// Several of these words.
    SomeOf(&'static str, Vec<String>),
    /// Numbers of entries or notes; in XML an attribute or a text.
    Numbers,
}

struct FormField {
    name: String,
    shape: Shape,
    meaning: String,
}

impl FormField {
    fn new(name: &str, shape: Shape, meaning: &str) -> FormField {
        FormField { name: name.to_string(), shape, meaning: meaning.to_string() }
    }
}

/// Verdicts on the notes that rules created.
fn verdicts() -> Vec<FormField> {
    vec![
        FormField::new("keep", Shape::Numbers, "numbers of notes that stay as they are, such as r1, r4"),
        FormField::new("withdraw", Shape::Numbers, "numbers of notes to withdraw"),
    ]
}

/// Citations of an observation, in XML as attributes.
fn citations() -> Vec<FormField> {
    vec![
        FormField::new("sources", Shape::Numbers, "numbers of the entries that show it, such as 3, 7"),
        FormField::new("corrects", Shape::Numbers, "numbers of notes that it replaces"),
    ]
}

fn observation(domain: &Domain) -> Vec<FormField> {
    let names = |terms: &[crate::model::Term]| terms.iter().map(|term| term.name.clone()).collect();
    let mut fields = vec![
        FormField::new("type", Shape::OneOf(names(&domain.types)), "one of the types"),
        FormField::new("title", Shape::Text, "one line that says what is the case, understood without the conversation"),
        FormField::new("subtitle", Shape::Text, "at most 24 words: what it means for whoever continues the work"),
        FormField::new("facts", Shape::List("fact"), "one checkable statement, with names, numbers and paths"),
        FormField::new("narrative", Shape::Text, "two to four sentences: what, why, and how it is known"),
        FormField::new("concepts", Shape::SomeOf("concept", names(&domain.concepts)), "one of the concepts"),
    ];
    for field in &domain.fields {
        let (shape, more) = match field.kind.as_str() {
            "list" => (Shape::List("item"), ""),
            "numbers" => (Shape::Text, ": numbers, separated by commas"),
            "date" => (Shape::Text, ": YYYY-MM-DD"),
            _ => (Shape::Text, ""),
        };
        let meaning = format!("{}{more}", field.meaning);
        fields.push(FormField { name: field.name.clone(), shape, meaning });
    }
    fields
}

fn summary(domain: &Domain) -> Vec<FormField> {
    let sections = &domain.summary;
    let meanings = [
        &sections.request,
        &sections.investigated,
        &sections.learned,
        &sections.completed,
        &sections.next_steps,
        &sections.notes,
    ];
    SECTIONS.iter().zip(meanings).map(|(name, meaning)| FormField::new(name, Shape::Text, meaning)).collect()
}

/// The form as XML with the meaning of each field as its content.
pub fn xml(domain: &Domain) -> String {
    let mut form = String::from("# Form of the answer\nThis XML alone; leave out a tag that has nothing to say.\n<answer>\n");
    let write = |form: &mut String, field: &FormField| {
        let FormField { name, shape, meaning } = field;
        let _ = match shape {
            Shape::List(item) | Shape::SomeOf(item, _) => writeln!(form, "<{name}><{item}>{meaning}</{item}></{name}>"),
            _ => writeln!(form, "<{name}>{meaning}</{name}>"),
        };
    };
    verdicts().iter().for_each(|field| write(&mut form, field));
    let attributes: Vec<String> =
        citations().iter().map(|FormField { name, meaning, .. }| format!("{name}=\"{meaning}\"")).collect();
    let _ = writeln!(form, "<observation {}>", attributes.join(" "));
    observation(domain).iter().for_each(|field| write(&mut form, field));
    form += "</observation>\n<summary>\n";
    summary(domain).iter().for_each(|field| write(&mut form, field));
    form + "</summary>\n</answer>\nIf there is nothing to record: <none/> and, if anything was done at all, the summary."
}

/// Returns the form as a JSON Schema. Every property is required, as strict servers demand, and there are no
/// alternatives, since some servers accept only a few.
pub fn json_schema(domain: &Domain) -> Value {
    let mut answer = properties(&verdicts());
    let fields: Vec<FormField> = citations().into_iter().chain(observation(domain)).collect();
    answer.insert("observations".into(), json!({"type": "array", "items": object(properties(&fields))}));
    answer.insert("summary".into(), object(properties(&summary(domain))));
    object(answer)
}

fn properties(fields: &[FormField]) -> Map<String, Value> {
    let of = |field: &FormField| {
        let meaning = &field.meaning;
        let list = |items: Value| json!({"type": "array", "description": meaning, "items": items});
        match &field.shape {
            Shape::Text if field.name == "title" => json!({"type": "string", "description": meaning}),
            Shape::Text => json!({"type": "string", "description": format!("{meaning}; empty if none")}),
            Shape::OneOf(words) => json!({"type": "string", "enum": words}),
            Shape::List(_) => list(json!({"type": "string"})),
            Shape::SomeOf(_, words) => list(json!({"type": "string", "enum": words})),
            Shape::Numbers => list(json!({"type": "integer"})),
        }
    };
    fields.iter().map(|field| (field.name.replace('-', "_"), of(field))).collect()
}

fn object(properties: Map<String, Value>) -> Value {
    let required: Vec<&String> = properties.keys().collect();
    let required = json!(required);
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_have_the_same_fields() {
        let domain = crate::domains::of(None, None);
        let (xml, schema) = (xml(&domain), json_schema(&domain));
        let observation = &schema["properties"]["observations"]["items"];
        let names = observation["properties"].as_object().unwrap().keys();
        let of_summary = schema["properties"]["summary"]["properties"].as_object().unwrap().keys();
        let all: Vec<&String> = names.chain(of_summary).collect();
        assert!(all.len() > 15, "{all:?}");
        for name in all {
            assert!(xml.contains(&format!("<{name}>")) || xml.contains(&format!("{name}=\"")), "{name} is missing in {xml}");
        }
        assert!(xml.contains("<keep>") && schema["properties"]["withdraw"].is_object());
        assert_eq!(observation["required"].as_array().unwrap().len(), observation["properties"].as_object().unwrap().len());
    }
}
