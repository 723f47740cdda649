//! `entities`: records an entity of any type (RADEntity), or reads one back.

use super::request::{ProtocolError, Request};
use super::request_context::RequestContext;
use super::sessions;
use crate::error::UserError;
use crate::knowledge::entity::{self, Entry};
use crate::model::{Draft, Entity, Millis, StoredItem};
use crate::redact::Clean;
use crate::render::memories;
use crate::store::memories::{MemoryScope, Recorded};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// Maximum length of a type's name: lower-case letters, digits, `-` and `_`.
const NAME: usize = 64;
/// Fields of a request that are not content; all others are kept in the content.
const OWN: [&[&str]; 19] = [
    &["id", "uuid"],
    &["entity_type"],
    &["source_client"],
    &["platform"],
    &["agent_session_id"],
    &["claude_session_id"],
    &["session_id"],
    &["created_at"],
    &["created_at_epoch"],
    &["title"],
    &["subtitle"],
    &["content"],
    &["concepts"],
    &["files_read"],
    &["files_modified"],
    &["discovery_tokens"],
    &["project", "repo_id", "repo"],
    &["cwd"],
    &["verb"],
];

/// Records an entity; with an `id` and no `entity_type`, reads one back.
pub fn entities(context: &RequestContext, request: Request) -> Result<Value, ProtocolError> {
    let uuid = request.name(&["id", "uuid"])?;
    match (request.name(&["entity_type"])?, uuid) {
        (Some(_), _) => {
            let group = vec![prepare(context, request).map(|prepared| (PathBuf::new(), prepared))];
            store(group, |_| *context).pop().unwrap_or_else(|| Err(ProtocolError::bad("no such entity")))
        }
        (None, Some(id)) => read(context, id),
        (None, None) => Err(ProtocolError::bad("`entity_type` is missing")),
    }
}

fn read(context: &RequestContext, id: &str) -> Result<Value, ProtocolError> {
    match super::reading::find(context, id)? {
        StoredItem::Memory(memory) => Ok(memories::entity(&memory)),
        _ => Err(ProtocolError::not_found(format!("{id} is not an entity"))),
    }
}

/// Whether a batched request records an entity.
pub fn is_record(value: &Value) -> bool {
    Request::of(value).is_ok_and(|request| request.value(&["entity_type"]).is_some())
}

/// A validated entity with its scope.
pub struct Prepared {
    draft: Clean<Draft>,
    uuid: Option<String>,
    project: i64,
    session: Option<i64>,
    client: Clean<String>,
}

/// Requests in order with the folders whose settings apply, including invalid ones.
pub type Group = Vec<Result<(PathBuf, Prepared), ProtocolError>>;

/// Validates a request; creates its session and project if they are new.
pub fn prepare(context: &RequestContext, request: Request) -> Result<Prepared, ProtocolError> {
    let uuid = request.name(&["id", "uuid"])?;
    let entity_type = request.needed(&["entity_type"])?;
    let sound = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    if entity_type.len() > NAME || !entity_type.chars().all(sound) {
        return Err(ProtocolError::bad(format!("`entity_type` must be lower-case letters, digits, - and _, {NAME} at most")));
    }
    if uuid.is_some_and(|uuid| !is_uuid(uuid)) {
        return Err(ProtocolError::bad("`id` must be a lower-case uuid"));
    }
    let mut content = match request.value(&["content"]) {
        None => Map::new(),
        Some(Value::Object(content)) => content.clone(),
        Some(_) => return Err(ProtocolError::bad("`content` must be an object")),
    };
    // Unknown fields are kept in the content, where search finds them.
    for (name, value) in request.others(&OWN) {
        content.entry(name.clone()).or_insert_with(|| value.clone());
    }
    let tokens = request.value(&["discovery_tokens"]);
    let tokens =
        tokens.map(|n| n.as_i64().ok_or_else(|| ProtocolError::bad("`discovery_tokens` must be a whole number"))).transpose()?;
    let entity = Entity {
        uuid: uuid.map(String::from),
        entity_type: entity_type.to_string(),
        title: request.text(&["title"])?.map(String::from).filter(|title| !title.trim().is_empty()),
        subtitle: request.text(&["subtitle"])?.map(String::from),
        content,
        concepts: request.list(&["concepts"])?,
        files_read: request.list(&["files_read"])?,
        files_modified: request.list(&["files_modified"])?,
        tokens,
        at: moment(request)?.unwrap_or(context.now),
    };
    let client = request.name(&["source_client", "platform"])?.unwrap_or("custom");
    let named = context.identity(request)?;
    context.may_record(None, named.as_ref())?;
    let session = match request.name(&sessions::SESSION)? {
        Some(_) => Some(sessions::begun(context, request)?),
        None => None,
    };
    let identity = named.or_else(|| context.own_identity());
    let identity = identity.ok_or_else(|| ProtocolError::bad("the home folder is not a project: name one in `project`"))?;
    let redactor = &context.settings.redactor;
    let identity = redactor.clean(identity);
    context.write(|store| {
        let project = match store.project_by_identity(&identity)? {
            Some(project) => project.id,
            None => store.ensure_project(&identity, context.now)?,
        };
        let domain = context.domain(store, project)?;
        let draft = redactor.clean(entity::draft(entity, &domain).map_err(wrong)?);
        Ok(Prepared { draft, uuid: uuid.map(String::from), project, session, client: redactor.clean(client.to_string()) })
    })
}

/// Stores a group with one transaction per store; returns the answers in order.
pub fn store<'a>(group: Group, context: impl Fn(&PathBuf) -> RequestContext<'a>) -> Vec<Result<Value, ProtocolError>> {
    let mut answers: Vec<Result<Value, ProtocolError>> = Vec::new();
    let mut group = group.into_iter().peekable();
    while let Some(first) = group.next() {
        let (folder, prepared) = match first {
            Ok(first) => first,
            Err(problem) => {
                answers.push(Err(problem));
                continue;
            }
        };
        let mut all = vec![prepared];
        while let Some(Ok((_, next))) = group.next_if(|next| next.as_ref().is_ok_and(|(other, _)| *other == folder)) {
            all.push(next);
        }
        let recorded = context(&folder).write(|store| Ok(entity::record(store, all.iter().map(Prepared::entry))?));
        match recorded {
            Ok(recorded) => answers.extend(recorded.into_iter().map(answer)),
            Err(problem) => answers.extend(all.iter().map(|_| Err(problem.clone()))),
        }
    }
    answers
}

fn answer(recorded: anyhow::Result<Recorded>) -> Result<Value, ProtocolError> {
    let recorded = recorded.map_err(wrong)?;
    let status = if recorded.replaced { "replaced" } else { "recorded" };
    Ok(json!({"id": recorded.uuid, "memory": format!("m{}", recorded.id), "status": status}))
}

impl Prepared {
    fn entry(&self) -> Entry<'_> {
        let home = MemoryScope {
            project: Some(self.project),
            session: self.session,
            platform: Some(&self.client),
            ..MemoryScope::default()
        };
        Entry { uuid: self.uuid.as_deref(), draft: &self.draft, home }
    }
}

/// Errors in the request are the program's own; all others are the store's.
fn wrong(error: anyhow::Error) -> ProtocolError {
    match error.downcast_ref::<UserError>() {
        Some(failure) => ProtocolError::bad(failure.to_string()),
        None => error.into(),
    }
}

/// Returns the time of an entity: ISO 8601 or Unix milliseconds; if both are given, they must agree to the second.
fn moment(request: Request) -> Result<Option<Millis>, ProtocolError> {
    let epoch = request.value(&["created_at_epoch"]);
    let epoch = epoch
        .map(|n| n.as_i64().ok_or_else(|| ProtocolError::bad("`created_at_epoch` must be Unix milliseconds")))
        .transpose()?;
    let iso = match request.value(&["created_at"]) {
        Some(Value::Number(number)) => Some(
            number.as_i64().ok_or_else(|| ProtocolError::bad("`created_at` must be a time of ISO 8601, or Unix milliseconds"))?,
        ),
        Some(value) => {
            let time = value.as_str().and_then(|text| text.parse::<jiff::Timestamp>().ok()).map(|time| time.as_millisecond());
            Some(time.ok_or_else(|| ProtocolError::bad("`created_at` must be a time of ISO 8601: 2026-11-20T09:00:00Z"))?)
        }
        None => None,
    };
    match (epoch, iso) {
        (Some(epoch), Some(iso)) if (epoch - iso).abs() > 1000 => {
            Err(ProtocolError::bad("`created_at` and `created_at_epoch` are not the same time"))
        }
        (epoch, iso) => Ok(epoch.or(iso)),
    }
}

fn is_uuid(text: &str) -> bool {
    let dashes = [8, 13, 18, 23];
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| {
            if dashes.contains(&at) { byte == b'-' } else { byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte) }
        })
}
