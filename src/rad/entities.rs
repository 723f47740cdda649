//! Verbs that record and read entities.

use super::request::{ProtocolError, Request, RequestContext};
use super::sessions::{self, SESSION, stored_id};
use crate::distil::embed;
use crate::error::UserError;
use crate::knowledge::entity::{self, Entry};
use crate::lookup;
use crate::model::{Draft, Entity, Filter, Grade, Hit, HitKind, MemoryKind, Millis, SearchScope, StoredItem};
use crate::recall;
use crate::redact::Clean;
use crate::render::session_start::{for_agent, token_stats};
use crate::render::{memory_text, results, time};
use crate::store::memory_rows::{MemoryScope, Recorded};
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
    match find(context, id)? {
        StoredItem::Memory(memory) => Ok(memory_text::entity(&memory)),
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

/// Maximum observations and summaries of a context.
const MOST: usize = 200;

/// `context`: the project's last observations and summaries, their token economics, and the text that a session start
/// receives.
pub fn context(context: &RequestContext, request: Request) -> Result<Value, ProtocolError> {
    let (limit, summaries) = (request.count(&["limit"], 50, MOST)?, request.count(&["summary_limit"], 10, MOST)?);
    let store = context.store()?;
    let known = store.as_ref().map(|store| context.project(store, request)).transpose()?.flatten();
    let (Some(store), Some((project, name))) = (store, known) else {
        let name = request.name(&["project"])?;
        return Ok(
            json!({"project": name, "observations": [], "summaries": [], "tokenStats": token_stats(Default::default()), "text": ""}),
        );
    };
    let recalled = recall::at_start(&store, project, recall::SessionContext::default(), context.now)?;
    let given = for_agent(&recalled, context.settings.config.context_bytes.value);
    let observations = store.newest_memories(project, &[MemoryKind::Observation], limit)?;
    let observations: Vec<Value> = observations.iter().map(memory_text::json).collect();
    let summed_up = store.newest_memories(project, &[MemoryKind::Summary], summaries)?;
    Ok(json!({
        "project": name, "observations": observations, "summaries": summed_up.iter().map(memory_text::json).collect::<Vec<_>>(),
        "tokenStats": token_stats(given.tokens), "text": given.text,
    }))
}

/// `search`: the query language of `nmem search`.
pub fn search(context: &RequestContext, request: Request) -> Result<Value, ProtocolError> {
    let text = request.text(&["query"])?.unwrap_or_default();
    let limit = request.count(&["limit"], 10, 1000)?;
    let none = || Ok(json!({"query": text, "count": 0, "match": Grade::None.name(), "results": []}));
    let kinds = match request.name(&["type", "kind"])? {
        None | Some("all") => vec![HitKind::Memory, HitKind::Unit, HitKind::Prompt],
        Some("observations" | "observation" | "memory" | "memories" | "entities" | "entity") => vec![HitKind::Memory],
        Some("sessions" | "unit" | "units") => vec![HitKind::Unit],
        Some("prompts" | "prompt") => vec![HitKind::Prompt],
        Some("tools" | "tool") => vec![HitKind::Tool],
        Some(_) => return Err(ProtocolError::bad("`type` must be observations, entities, sessions, prompts, tools or all")),
    };
    let range = request.value(&["date_range"]).map(Request::of).transpose()?;
    let moment = |names: &[&str]| -> Result<Option<i64>, ProtocolError> {
        let Some(value) = range.and_then(|range| range.value(names)) else { return Ok(None) };
        let at = value.as_i64().or_else(|| time::parse(value.as_str()?, context.now).ok());
        at.map(Some).ok_or_else(|| {
            ProtocolError::bad(format!("`dateRange.{}` must be a time: 2026-11-01, 7d, Unix milliseconds", names[0]))
        })
    };
    let (since, until) = (moment(&["start", "since"])?, moment(&["end", "until"])?);
    let as_lines = match request.name(&["format"])? {
        None | Some("index" | "json" | "full") => false,
        Some("text" | "md") => true,
        Some(_) => return Err(ProtocolError::bad("`format` must be index, full, json, text or md")),
    };
    let kind_type = request.name(&["obs_type"])?.map(String::from);
    let (concept, file) = (request.name(&["concept"])?.map(String::from), request.name(&["file"])?.map(String::from));
    let named = request.name(&["project"])?;
    let Some(store) = context.store()? else { return none() };
    let project = match named {
        Some("*" | "all") => None,
        _ => match context.project(&store, request)? {
            Some((project, _)) => Some(project),
            None => return none(),
        },
    };
    let filter = Filter {
        scope: SearchScope::of_any(project),
        since,
        until,
        kind_type,
        concept,
        file,
        memories: match request.name(&["type", "kind"])? {
            Some("entities" | "entity") => vec![MemoryKind::Entity],
            _ => Vec::new(),
        },
        ..Filter::default()
    };
    let settings = context.settings;
    let found = recall::search(&store, text, &kinds, &filter, limit, &|text| {
        embed::of_query(&settings.config, &settings.redactor, text)
    })?;
    let words = crate::index_text::query_terms(text);
    let entry = |hit: &Hit| if as_lines { Value::from(results::markdown(hit, &words)) } else { results::json(hit, &words) };
    let results: Vec<Value> = found.hits.iter().map(entry).collect();
    Ok(json!({"query": text, "count": results.len(), "match": found.grade.map(Grade::name), "results": results}))
}

/// `observation`: a memory, by id or uuid.
pub fn observation(context: &RequestContext, request: Request) -> Result<Value, ProtocolError> {
    let id = id(request, 'm')?;
    match find(context, &id)? {
        StoredItem::Memory(memory) => Ok(memory_text::json(&memory)),
        _ => Err(ProtocolError::not_found(format!("{id} is not a memory"))),
    }
}

/// `session`: a session with its prompts, tool uses and memories.
pub fn session(context: &RequestContext, request: Request) -> Result<Value, ProtocolError> {
    let store = context.store()?.ok_or_else(|| ProtocolError::not_found("nothing is recorded"))?;
    let session = match request.value(&["id"]) {
        Some(_) => {
            let id = id(request, 's')?;
            match find(context, &id)? {
                StoredItem::Session(session) => *session,
                _ => return Err(ProtocolError::not_found(format!("{id} is not a session"))),
            }
        }
        None => {
            let id = request.needed(&SESSION)?;
            let known = store.sessions_by_id(&stored_id(context, id))?.pop();
            known.ok_or_else(|| ProtocolError::not_found(format!("unknown session {id:?}")))?
        }
    };
    let session = lookup::session(&store, session)?;
    let mut entry = session.json();
    entry["observations"] = session.memories.iter().map(memory_text::json).collect();
    Ok(entry)
}

/// `health`: whether the store is available; `uptime` in seconds.
pub fn health(context: &RequestContext, uptime: u64) -> Result<Value, ProtocolError> {
    let store = context.store()?;
    let memories = store.map(|store| store.memory_count()).transpose()?.unwrap_or(0);
    Ok(json!({
        "status": "ok", "version": env!("CARGO_PKG_VERSION"), "uptime": uptime, "database": context.settings.config.files.value.db, "memories": memories,
    }))
}

/// An id as nmem prints it, or its number alone.
fn id(request: Request, kind: char) -> Result<String, ProtocolError> {
    let value = request.value(&["id"]).ok_or_else(|| ProtocolError::bad("`id` is missing"))?;
    let id = value.as_i64().map(|number| number.to_string()).or_else(|| Some(value.as_str()?.trim().to_string()));
    let id = id.filter(|id| !id.is_empty() && id.len() <= 200).ok_or_else(|| ProtocolError::bad("`id` must be an id"))?;
    Ok(if id.bytes().all(|byte| byte.is_ascii_digit()) && id.len() < 19 { format!("{kind}{id}") } else { id })
}

pub fn find(context: &RequestContext, id: &str) -> Result<StoredItem, ProtocolError> {
    let missing = || ProtocolError::not_found(format!("nothing has the id {id:?}"));
    let store = context.store()?.ok_or_else(missing)?;
    let several = |error: anyhow::Error| match error.downcast::<UserError>() {
        Ok(failure) => ProtocolError::bad(failure.what),
        Err(error) => error.into(),
    };
    lookup::find(&store, id).map_err(several)?.ok_or_else(missing)
}
