//! Use case: knowledge recorded by hand or by a program. Files: `entity` (drafts of entities), `corrections` (edit,
//! pin, supersede).

mod corrections;
pub mod entity;

pub use corrections::{edit, editable, keep, pin, supersede};

use crate::error::UserError;
use crate::model::{
    DECISION_TYPES, DEPTH, Domain, Draft, Finding, LESSON_TYPES, Maker, MemoryFile, MemoryKind, Millis, Platform, Provenance,
    SUBTITLE_WORDS, TASK_KINDS, depth,
};
use crate::redact::Redactor;
use crate::store::Store;
use crate::store::memory_rows::MemoryScope;
use anyhow::Result;
use serde_json::{Map, Value};

/// Maximum concepts of a memory.
const CONCEPTS: usize = 5;
/// Maximum characters of a title that is part of a longer text.
const TITLE: usize = 160;
/// Field names that are not part of the content.
const OWN: [&str; 14] = [
    "id",
    "uuid",
    "kind",
    "type",
    "title",
    "subtitle",
    "narrative",
    "facts",
    "concepts",
    "files_read",
    "files_modified",
    "pin",
    "project",
    "session",
];

/// Field names that nmem sets itself.
const RESERVED: [&str; 16] = [
    "id",
    "uuid",
    "pinned",
    "created_at",
    "sources",
    "provenance",
    "made_by",
    "by_hand",
    "unit",
    "prompt_number",
    "superseded_by",
    "hashes",
    "discovery_tokens",
    "tokens_estimated",
    "platform",
    "session",
];

/// Fields of a memory, named as in the observation protocol and the RAD memory specification.
pub type MemoryFields = Map<String, Value>;

/// Drafts a memory from its fields.
///
/// # Errors
///
/// A missing or malformed field, or a value that the domain does not have; the error names it and the valid values.
pub fn draft(fields: &MemoryFields, domain: &Domain, at: Millis) -> Result<Draft> {
    let kind = match text(fields, "kind")? {
        None => MemoryKind::Observation,
        Some(name) => MemoryKind::from_name(&name).ok_or_else(|| {
            let valid = MemoryKind::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
            UserError::usage(format!("unknown kind {name:?}"), format!("use one of {valid}"))
        })?,
    };
    let title = text(fields, "title")?.filter(|title| !title.trim().is_empty());
    let title = title.ok_or_else(|| UserError::usage("a memory needs a title", "give a title of one line"))?;
    let (title, rest) = headed(&title);
    if let Some(name) = fields.keys().find(|name| RESERVED.contains(&name.as_str())) {
        return Err(UserError::usage(format!("{name} cannot be set"), "nmem sets it; use `nmem pin` and `nmem supersede`").into());
    }
    if fields.values().any(|value| depth(value) > DEPTH) {
        let what = format!("fields are nested more than {DEPTH} levels deep");
        return Err(UserError::usage(what, "use fewer levels").into());
    }
    let mut content = Map::new();
    for (name, value) in fields.iter().filter(|(name, value)| !OWN.contains(&name.as_str()) && !value.is_null()) {
        fits_its_field(name, value, domain)?;
        content.insert(name.clone(), value.clone());
    }
    let facts = list(fields, "facts")?;
    if !facts.is_empty() {
        content.insert("facts".into(), Value::from(facts));
    }
    check_content(kind, &mut content, &title)?;
    let concepts = list(fields, "concepts")?;
    if concepts.len() > CONCEPTS {
        return Err(UserError::usage(format!("too many concepts: {}", concepts.len()), format!("use at most {CONCEPTS}")).into());
    }
    for concept in &concepts {
        if !domain.concepts.iter().any(|term| term.name == *concept) {
            let valid: Vec<&str> = domain.concepts.iter().map(|term| term.name.as_str()).collect();
            return Err(unknown("concept", concept, domain, &valid).into());
        }
    }
    let file = |modified: bool| move |path: String| MemoryFile { path, modified, hash: None };
    let read = list(fields, "files_read")?.into_iter().map(file(false));
    let modified = list(fields, "files_modified")?.into_iter().map(file(true));
    let subtitle = text(fields, "subtitle")?;
    if subtitle.as_deref().is_some_and(|text| text.split_whitespace().count() > SUBTITLE_WORDS) {
        let what = format!("the subtitle has more than {SUBTITLE_WORDS} words");
        return Err(UserError::usage(what, "shorten it, or move the rest to the narrative").into());
    }
    Ok(Draft {
        key: None,
        kind,
        kind_type: kind_type(kind, text(fields, "type")?, domain)?,
        title,
        subtitle,
        body: text(fields, "narrative")?.or(rest),
        content,
        concepts,
        files: read.chain(modified).collect(),
        prompt: None,
        sources: Vec::new(),
        provenance: Provenance::User,
        at,
        tokens: None,
    })
}

/// Rejects a value that does not match its field's kind in the domain.
fn fits_its_field(name: &str, value: &Value, domain: &Domain) -> Result<()> {
    let Some(field) = domain.fields.iter().find(|field| field.name == name) else { return Ok(()) };
    let fits = match field.kind.as_str() {
        "list" => value.is_string() || value.as_array().is_some_and(|items| items.iter().all(Value::is_string)),
        "numbers" => value.is_number() || value.as_array().is_some_and(|items| items.iter().all(Value::is_number)),
        _ => value.is_string(),
    };
    let wanted = if field.kind == "list" { "a list of texts" } else { field.kind.as_str() };
    if fits {
        Ok(())
    } else {
        Err(UserError::usage(format!("{name} is {value}"), format!("the domain {} requires: {wanted}", domain.name)).into())
    }
}

/// Splits a text into title and rest. The title is the first line, or the first words of a long line.
fn headed(text: &str) -> (String, Option<String>) {
    let text = text.trim();
    let (first, rest) = text.split_once('\n').map_or((text, ""), |(first, rest)| (first.trim(), rest.trim()));
    if first.chars().count() > TITLE {
        return (crate::text::cut(first, TITLE), Some(text.to_string()));
    }
    (first.to_string(), Some(rest.to_string()).filter(|rest| !rest.is_empty()))
}

fn kind_type(kind: MemoryKind, given: Option<String>, domain: &Domain) -> Result<Option<String>> {
    let valid: Vec<&str> = match kind {
        MemoryKind::Observation => domain.types.iter().map(|term| term.name.as_str()).collect(),
        MemoryKind::Decision => DECISION_TYPES.to_vec(),
        MemoryKind::Lesson => LESSON_TYPES.to_vec(),
        MemoryKind::Task => TASK_KINDS.to_vec(),
        MemoryKind::Summary | MemoryKind::Tried | MemoryKind::Open | MemoryKind::Entity => return Ok(given),
    };
    match given {
        Some(given) if !valid.contains(&given.as_str()) => Err(unknown("type", &given, domain, &valid).into()),
        Some(given) => Ok(Some(given)),
        None => Ok(match kind {
            MemoryKind::Observation => domain.becomes(Finding::Discovery).kind_type,
            MemoryKind::Decision => Some("approach".into()),
            MemoryKind::Lesson => Some("warning".into()),
            _ => None,
        }),
    }
}

/// Checks and completes the required content of decisions, lessons and tasks (RAD memory specification).
fn check_content(kind: MemoryKind, content: &mut Map<String, Value>, title: &str) -> Result<()> {
    check_confidence(content)?;
    if let Some(success) = content.get("success").filter(|success| !success.is_boolean()) {
        return Err(UserError::usage(format!("success is {success}"), "use true or false").into());
    }
    for name in ["alternatives", "tags"] {
        if let Some(value) = content.get(name) {
            let items = strings(name, value)?;
            content.insert(name.into(), Value::from(items));
        }
    }
    let mut must = |name: &str| {
        content.entry(name).or_insert_with(|| Value::from(title));
    };
    match kind {
        MemoryKind::Decision => must("chosen"),
        MemoryKind::Lesson => must("description"),
        MemoryKind::Task => must("task_description"),
        MemoryKind::Summary => must("request"),
        MemoryKind::Observation | MemoryKind::Tried | MemoryKind::Open | MemoryKind::Entity => {}
    }
    Ok(())
}

fn check_confidence(content: &Map<String, Value>) -> Result<()> {
    let Some(confidence) = content.get("confidence") else { return Ok(()) };
    match confidence.as_f64().filter(|sure| (0.0..=1.0).contains(sure)) {
        Some(_) => Ok(()),
        None => Err(UserError::usage(format!("confidence is {confidence}"), "use a number from 0 to 1").into()),
    }
}

fn unknown(what: &str, given: &str, domain: &Domain, valid: &[&str]) -> UserError {
    UserError::usage(
        format!("unknown {what} {given:?} in the domain {}", domain.name),
        format!("use one of {}; `nmem domain show` explains them", valid.join(", ")),
    )
}

fn text(fields: &MemoryFields, name: &str) -> Result<Option<String>> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.trim().to_string()).filter(|text| !text.is_empty())),
        Some(other) => Err(UserError::usage(format!("{name} is {other}"), "give a text").into()),
    }
}

fn list(fields: &MemoryFields, name: &str) -> Result<Vec<String>> {
    fields.get(name).filter(|value| !value.is_null()).map_or(Ok(Vec::new()), |value| strings(name, value))
}

fn strings(name: &str, value: &Value) -> Result<Vec<String>> {
    let items =
        value.as_array().map(|items| items.iter().map(|item| item.as_str().map(String::from)).collect::<Option<Vec<_>>>());
    match (items.flatten(), value.as_str()) {
        (Some(items), _) => Ok(items),
        (None, Some(one)) => Ok(vec![one.to_string()]),
        (None, None) => Err(UserError::usage(format!("{name} is {value}"), "use a list of texts").into()),
    }
}

/// Stores a person's memory; returns its row id.
pub fn remember(store: &mut Store, redactor: &Redactor, draft: Draft, project: Option<i64>, pin: bool) -> Result<i64> {
    if draft.kind == MemoryKind::Entity && draft.kind_type.is_none() {
        return Err(UserError::usage("an entity needs a type", "programs record them: `nmem rad entities`").into());
    }
    let draft = redactor.clean(draft);
    store.write(|tx| {
        let id = tx.insert_memory(&draft, MemoryScope { project, ..MemoryScope::default() }, &Maker::Hand)?;
        if pin {
            tx.set_pinned(id, true)?;
        }
        Ok(id)
    })
}

/// Stores a program's task with its decisions and lessons; returns the task's row id and uuid.
pub fn record(store: &mut Store, redactor: &Redactor, drafts: Vec<Draft>, project: i64) -> Result<(i64, String)> {
    let drafts = redactor.clean(drafts);
    let home = MemoryScope { project: Some(project), platform: Some(Platform::Custom.name()), ..MemoryScope::default() };
    store.write(|tx| {
        let mut task: Option<(i64, String)> = None;
        for draft in drafts.iter() {
            let id = tx.insert_memory(draft, home, &Maker::Program)?;
            match &task {
                Some((_, task)) => tx.belongs_to_task(id, task)?,
                None => task = Some((id, tx.uuid_of(id)?)),
            }
        }
        task.ok_or_else(|| UserError::usage("the task is missing", "describe the task").into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domains;
    use serde_json::json;

    fn drafted(fields: Value) -> std::result::Result<Draft, String> {
        let domain = domains::built_in("coding").unwrap();
        draft(fields.as_object().unwrap(), &domain, 7).map_err(|error| error.to_string())
    }

    #[test]
    fn fields_become_a_memory_of_their_kind() {
        let note = drafted(json!({"title": "The cache is per process\nSo restart both."})).unwrap();
        assert_eq!((note.title.as_str(), note.body.as_deref()), ("The cache is per process", Some("So restart both.")));
        assert_eq!((note.kind, note.kind_type.as_deref()), (MemoryKind::Observation, Some("discovery")));
        let decision =
            drafted(json!({"kind": "decision", "title": "sqlite", "alternatives": "json files", "confidence": 0.8})).unwrap();
        assert_eq!(decision.content["chosen"], "sqlite");
        assert_eq!(decision.content["alternatives"], json!(["json files"]));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (fields, named) in [
            (json!({}), "a memory needs a title"),
            (json!({"title": 7}), "title is 7"),
            (json!({"title": "a", "kind": "thought"}), "unknown kind \"thought\""),
            (json!({"title": "a", "type": "bug"}), "unknown type \"bug\" in the domain coding"),
            (json!({"title": "a", "concepts": ["magic"]}), "unknown concept \"magic\""),
            (json!({"title": "a", "kind": "decision", "confidence": 7}), "confidence is 7"),
            (json!({"title": "a", "kind": "lesson", "type": "bugfix"}), "unknown type \"bugfix\""),
            (json!({"title": "a", "subtitle": "word ".repeat(25)}), "the subtitle has more than 24 words"),
        ] {
            assert!(drafted(fields.clone()).unwrap_err().contains(named), "{fields}");
        }
    }
}
