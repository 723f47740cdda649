//! Use case: knowledge that is told and not drawn from work: by a person, by a program; and what is known of it.
//!
//! Here what a person tells; `entity` what a program does; `mend` edits.

pub mod entity;
mod mend;

pub use mend::{edit, editable, pin, supersede};

use crate::error::Failure;
use crate::model::{
    DECISION_TYPES, DEPTH, Domain, Draft, LESSON_TYPES, Maker, MemoryFile, MemoryKind, Millis, Platform, Provenance,
    SUBTITLE_WORDS, TASK_KINDS, depth,
};
use crate::redact::Redactor;
use crate::store::Store;
use crate::store::memories::Home;
use anyhow::Result;
use serde_json::{Map, Value};

/// Concepts of one memory.
const CONCEPTS: usize = 5;
/// Characters of a title that is given as one text with the rest.
const TITLE: usize = 160;
/// Fields that are not the content's.
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

/// What nmem keeps of a memory itself.
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

/// What is told, by the names of the observation protocol and of the RAD memory specification.
pub type Told = Map<String, Value>;

/// Makes a memory of what a person tells.
///
/// # Errors
/// A field that is missing, of the wrong form, or not one of the domain's; it is named, with what to give instead.
pub fn draft(told: &Told, domain: &Domain, at: Millis) -> Result<Draft> {
    let kind = match text(told, "kind")? {
        None => MemoryKind::Observation,
        Some(name) => MemoryKind::from_name(&name).ok_or_else(|| {
            let known = MemoryKind::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
            Failure::usage(format!("kind {name:?} is not known"), format!("give one of {known}"))
        })?,
    };
    let title = text(told, "title")?.filter(|title| !title.trim().is_empty());
    let title = title.ok_or_else(|| Failure::usage("a memory needs a title", "say in one line what is to be remembered"))?;
    let (title, rest) = headed(&title);
    if let Some(name) = told.keys().find(|name| RESERVED.contains(&name.as_str())) {
        return Err(Failure::usage(
            format!("{name} is not for you to say"),
            "nmem keeps it itself; `pin` and `supersede` are commands",
        )
        .into());
    }
    if told.values().any(|value| depth(value) > DEPTH) {
        let what = format!("fields stand more than {DEPTH} deep inside one another");
        return Err(Failure::usage(what, "say it more flatly").into());
    }
    let mut content = Map::new();
    for (name, value) in told.iter().filter(|(name, value)| !OWN.contains(&name.as_str()) && !value.is_null()) {
        fits_its_field(name, value, domain)?;
        content.insert(name.clone(), value.clone());
    }
    let facts = list(told, "facts")?;
    if !facts.is_empty() {
        content.insert("facts".into(), Value::from(facts));
    }
    check_content(kind, &mut content, &title)?;
    let concepts = list(told, "concepts")?;
    if concepts.len() > CONCEPTS {
        return Err(
            Failure::usage(format!("{} concepts are too many", concepts.len()), format!("give at most {CONCEPTS}")).into()
        );
    }
    for concept in &concepts {
        if !domain.concepts.iter().any(|term| term.name == *concept) {
            let known: Vec<&str> = domain.concepts.iter().map(|term| term.name.as_str()).collect();
            return Err(unknown("concept", concept, domain, &known).into());
        }
    }
    let file = |modified: bool| move |path: String| MemoryFile { path, modified, hash: None };
    let read = list(told, "files_read")?.into_iter().map(file(false));
    let modified = list(told, "files_modified")?.into_iter().map(file(true));
    let subtitle = text(told, "subtitle")?;
    if subtitle.as_deref().is_some_and(|text| text.split_whitespace().count() > SUBTITLE_WORDS) {
        let what = format!("the subtitle has more than {SUBTITLE_WORDS} words");
        return Err(Failure::usage(what, "shorten it, or put the rest into the narrative").into());
    }
    Ok(Draft {
        key: None,
        kind,
        kind_type: kind_type(kind, text(told, "type")?, domain)?,
        title,
        subtitle,
        body: text(told, "narrative")?.or(rest),
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

/// Refuses a value that is not of the kind of which the domain says that its field is.
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
        Err(Failure::usage(format!("{name} is {value}"), format!("the domain {} says: {wanted}", domain.name)).into())
    }
}

/// Of a text of several lines the first is its title; of a long one the first words.
fn headed(text: &str) -> (String, Option<String>) {
    let text = text.trim();
    let (first, rest) = text.split_once('\n').map_or((text, ""), |(first, rest)| (first.trim(), rest.trim()));
    if first.chars().count() > TITLE {
        return (crate::rules::cut(first, TITLE), Some(text.to_string()));
    }
    (first.to_string(), Some(rest.to_string()).filter(|rest| !rest.is_empty()))
}

fn kind_type(kind: MemoryKind, given: Option<String>, domain: &Domain) -> Result<Option<String>> {
    let known: Vec<&str> = match kind {
        MemoryKind::Observation => domain.types.iter().map(|term| term.name.as_str()).collect(),
        MemoryKind::Decision => DECISION_TYPES.to_vec(),
        MemoryKind::Lesson => LESSON_TYPES.to_vec(),
        MemoryKind::Task => TASK_KINDS.to_vec(),
        MemoryKind::Summary | MemoryKind::Entity => return Ok(given),
    };
    match given {
        Some(given) if !known.contains(&given.as_str()) => Err(unknown("type", &given, domain, &known).into()),
        Some(given) => Ok(Some(given)),
        None => Ok(match kind {
            MemoryKind::Observation => domain.type_for("discovery").map(String::from),
            MemoryKind::Decision => Some("approach".into()),
            MemoryKind::Lesson => Some("warning".into()),
            _ => None,
        }),
    }
}

/// What a decision, a lesson and a task must hold (RAD memory specification).
fn check_content(kind: MemoryKind, content: &mut Map<String, Value>, title: &str) -> Result<()> {
    check_confidence(content)?;
    if let Some(success) = content.get("success").filter(|success| !success.is_boolean()) {
        return Err(Failure::usage(format!("success is {success}"), "give true or false").into());
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
        MemoryKind::Observation | MemoryKind::Entity => {}
    }
    Ok(())
}

fn check_confidence(content: &Map<String, Value>) -> Result<()> {
    let Some(confidence) = content.get("confidence") else { return Ok(()) };
    match confidence.as_f64().filter(|sure| (0.0..=1.0).contains(sure)) {
        Some(_) => Ok(()),
        None => Err(Failure::usage(format!("confidence is {confidence}"), "give a number from 0 to 1").into()),
    }
}

fn unknown(what: &str, given: &str, domain: &Domain, known: &[&str]) -> Failure {
    Failure::usage(
        format!("{what} {given:?} is not known in the domain {}", domain.name),
        format!("give one of {}; `nmem domain show` tells what they mean", known.join(", ")),
    )
}

fn text(told: &Told, name: &str) -> Result<Option<String>> {
    match told.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.trim().to_string()).filter(|text| !text.is_empty())),
        Some(other) => Err(Failure::usage(format!("{name} is {other}"), "give a text").into()),
    }
}

fn list(told: &Told, name: &str) -> Result<Vec<String>> {
    told.get(name).filter(|value| !value.is_null()).map_or(Ok(Vec::new()), |value| strings(name, value))
}

fn strings(name: &str, value: &Value) -> Result<Vec<String>> {
    let items =
        value.as_array().map(|items| items.iter().map(|item| item.as_str().map(String::from)).collect::<Option<Vec<_>>>());
    match (items.flatten(), value.as_str()) {
        (Some(items), _) => Ok(items),
        (None, Some(one)) => Ok(vec![one.to_string()]),
        (None, None) => Err(Failure::usage(format!("{name} is {value}"), "give a list of texts").into()),
    }
}

/// Stores what a person tells; returns its row.
pub fn remember(store: &mut Store, redactor: &Redactor, draft: Draft, project: Option<i64>, pin: bool) -> Result<i64> {
    if draft.kind == MemoryKind::Entity && draft.kind_type.is_none() {
        return Err(Failure::usage("an entity needs a type", "programs record them: `nmem rad entities`").into());
    }
    let draft = redactor.clean(draft);
    store.write(|tx| {
        let id = tx.insert_memory(&draft, Home { project, ..Home::default() }, &Maker::Hand)?;
        if pin {
            tx.set_pinned(id, true)?;
        }
        Ok(id)
    })
}

/// Stores what a program tells: a task first, and behind it the decisions and lessons that belong to it and go with it;
/// returns the task's row and uuid.
pub fn record(store: &mut Store, redactor: &Redactor, drafts: Vec<Draft>, project: i64) -> Result<(i64, String)> {
    let drafts = redactor.clean(drafts);
    let home = Home { project: Some(project), platform: Some(Platform::Custom.name()), ..Home::default() };
    store.write(|tx| {
        let mut task: Option<(i64, String)> = None;
        for draft in drafts.iter() {
            let id = tx.insert_memory(draft, home, &Maker::Program)?;
            match &task {
                Some((_, task)) => tx.belongs_to_task(id, task)?,
                None => task = Some((id, tx.uuid_of(id)?)),
            }
        }
        task.ok_or_else(|| Failure::usage("there is no task", "tell what was to be done").into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domains;
    use serde_json::json;

    fn drafted(told: Value) -> std::result::Result<Draft, String> {
        let domain = domains::built_in("coding").unwrap();
        draft(told.as_object().unwrap(), &domain, 7).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_told_becomes_a_memory_of_its_kind() {
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
        for (told, named) in [
            (json!({}), "a memory needs a title"),
            (json!({"title": 7}), "title is 7"),
            (json!({"title": "a", "kind": "thought"}), "kind \"thought\" is not known"),
            (json!({"title": "a", "type": "bug"}), "type \"bug\" is not known in the domain coding"),
            (json!({"title": "a", "concepts": ["magic"]}), "concept \"magic\" is not known"),
            (json!({"title": "a", "kind": "decision", "confidence": 7}), "confidence is 7"),
            (json!({"title": "a", "kind": "lesson", "type": "bugfix"}), "type \"bugfix\" is not known"),
            (json!({"title": "a", "subtitle": "word ".repeat(25)}), "the subtitle has more than 24 words"),
        ] {
            assert!(drafted(told.clone()).unwrap_err().contains(named), "{told}");
        }
    }
}
