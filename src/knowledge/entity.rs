//! Use case: stores entities that programs record (the RAD protocol's flexible model). Each becomes a memory. If its
//! type is the name of one of nmem's kinds, it gets that kind; otherwise it is stored as an entity of its type.

use super::kind_type;
use crate::domains::schema::schema_violations;
use crate::error::UserError;
use crate::model::{
    Domain, Draft, ENTITY_TEXT, Entity, Maker, MemoryFile, MemoryKind, Millis, NAME, Provenance, SUBTITLE, TITLE,
};
use crate::redact::Clean;
use crate::store::Store;
use crate::store::memory_rows::{MemoryScope, Recorded};
use anyhow::Result;
use serde_json::Value;

/// Maximum concepts and files of an entity.
const CONCEPTS: usize = 50;
const FILES: usize = 500;
/// Maximum bytes of its content as JSON.
const CONTENT: usize = 1 << 20;
/// Latest accepted time: the end of the year 9999, in Unix milliseconds.
const LATEST: Millis = 253_402_300_799_999;
/// Content fields that can serve as the title, in order.
const CALLED_BY: [&str; 9] = ["title", "name", "chosen", "question", "finding", "problem", "request", "description", "narrative"];
/// Maximum characters of such a title.
const CALLED: usize = 160;

/// A validated entity and its scope.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    pub uuid: Option<&'a str>,
    pub draft: &'a Clean<Draft>,
    pub home: MemoryScope<'a>,
}

/// Stores entities in one transaction and returns the result for each. A storage error rolls all of them back.
pub fn record<'a>(store: &mut Store, entries: impl Iterator<Item = Entry<'a>>) -> Result<Vec<Result<Recorded>>> {
    store.write(|tx| {
        let one = |entry: Entry| match tx.record_entity(entry.uuid, entry.draft, entry.home, &Maker::Program) {
            Err(error) if !error.is::<UserError>() => Err(error),
            recorded => Ok(recorded),
        };
        entries.map(one).collect()
    })
}

/// Drafts a memory from an entity.
///
/// # Errors
///
/// A [`UserError`] that names the invalid field.
pub fn draft(entity: Entity, domain: &Domain) -> Result<Draft> {
    let Entity { entity_type, subtitle, mut content, concepts, files_read, files_modified, tokens, at, .. } = entity;
    let size = Value::Object(content.clone()).to_string().len();
    fits("content", size, CONTENT)?;
    longest(&Value::Object(content.clone())).map_or(Ok(()), |length| fits("a text of `content`", length, ENTITY_TEXT.0))?;
    fits("subtitle", subtitle.as_deref().unwrap_or_default().len(), SUBTITLE.0)?;
    fits("title", entity.title.as_deref().unwrap_or_default().len(), TITLE.0)?;
    if concepts.len() > CONCEPTS || concepts.iter().any(|concept| !is_line(concept)) {
        return wrong("concepts", format!("must be a list of at most {CONCEPTS} lines of text"));
    }
    for (name, files) in [("files_read", &files_read), ("files_modified", &files_modified)] {
        if files.len() > FILES || files.iter().any(|path| !is_path(path)) {
            return wrong(name, format!("must be a list of at most {FILES} paths without `..` or control characters"));
        }
    }
    if tokens.is_some_and(|tokens| tokens < 0) {
        return wrong("discovery_tokens", "must be a number, 0 or greater".into());
    }
    if !(0..=LATEST).contains(&at) {
        return wrong("created_at", "must be between the years 1970 and 9999".into());
    }
    let violations = schema_violations(domain, &entity_type, &Value::Object(content.clone()));
    if !violations.is_empty() {
        return Err(UserError::usage(violations.join("; "), format!("`nmem domain show` has the schema of {entity_type}")).into());
    }
    let called = |name: &&str| content.get(*name)?.as_str().map(str::trim).filter(|text| !text.is_empty());
    let called = || CALLED_BY.iter().find_map(called).map(|text| crate::text::cut(text, CALLED));
    let title = entity.title.or_else(called).unwrap_or_else(|| entity_type.clone());
    let (kind, kind_type, body) = match MemoryKind::from_name(&entity_type).filter(|kind| *kind != MemoryKind::Entity) {
        None => (MemoryKind::Entity, Some(entity_type), None),
        Some(kind) => {
            let mut text = |name: &str| match content.remove(name) {
                None | Some(Value::Null) => Ok(None),
                Some(Value::String(text)) => Ok(Some(text)),
                Some(_) => wrong(&format!("content.{name}"), "must be a text".into()),
            };
            let (given, narrative) = (text("type")?, text("narrative")?);
            (kind, kind_type(kind, given, domain)?, narrative)
        }
    };
    super::check_confidence(&content)?;
    let file = |modified: bool| move |path: String| MemoryFile { path, modified, hash: None };
    let mut files: Vec<MemoryFile> = files_modified.into_iter().map(file(true)).collect();
    let read = files_read.into_iter().filter(|path| !files.iter().any(|file| file.path == *path)).collect::<Vec<_>>();
    files.extend(read.into_iter().map(file(false)));
    Ok(Draft {
        key: None,
        kind,
        kind_type,
        title,
        subtitle,
        body,
        content,
        concepts,
        files,
        prompt: None,
        sources: Vec::new(),
        provenance: Provenance::Agent,
        at,
        tokens: tokens.map(|tokens| (tokens, false)),
    })
}

fn fits(what: &str, length: usize, most: usize) -> Result<()> {
    if length <= most {
        return Ok(());
    }
    let hint = "record less of it, or the path of a file";
    Err(UserError::usage(format!("{what} has {length} bytes; the maximum is {most}"), hint).into())
}

fn wrong<T>(name: &str, must: String) -> Result<T> {
    Err(UserError::usage(format!("`{name}` {must}"), "nothing was stored").into())
}

/// Returns the bytes of the longest text in a value.
fn longest(value: &Value) -> Option<usize> {
    match value {
        Value::String(text) => Some(text.len()),
        Value::Array(items) => items.iter().filter_map(longest).max(),
        Value::Object(fields) => fields.iter().flat_map(|(name, field)| [Some(name.len()), longest(field)]).flatten().max(),
        _ => None,
    }
}

fn is_line(text: &str) -> bool {
    !text.trim().is_empty() && text.len() <= NAME.0 && !text.chars().any(char::is_control)
}

fn is_path(path: &str) -> bool {
    is_line(path) && !path.split(['/', '\\']).any(|part| part == "..")
}
