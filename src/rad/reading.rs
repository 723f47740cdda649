//! Queries: a project's context, a search, a memory or session, and health.

use super::request::{ProtocolError, Request};
use super::request_context::RequestContext;
use super::sessions::{SESSION, stored_id};
use crate::error::UserError;
use crate::lookup;
use crate::model::{Filter, Hit, HitKind, MemoryKind, StoredItem};
use crate::recall;
use crate::render::context::{for_agent, token_stats};
use crate::render::{hits, memories, time};
use crate::store::search::Query;
use serde_json::{Value, json};

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
    let recalled = recall::at_start(&store, project, recall::SessionContext::default(), limit, context.now)?;
    let given = for_agent(&recalled, context.settings.config.context_bytes.value);
    let observations = store.newest_memories(project, &[MemoryKind::Observation], limit)?;
    let observations: Vec<Value> = observations.iter().map(memories::json).collect();
    let summed_up = store.newest_memories(project, &[MemoryKind::Summary], summaries)?;
    Ok(json!({
        "project": name, "observations": observations, "summaries": summed_up.iter().map(memories::json).collect::<Vec<_>>(),
        "tokenStats": token_stats(given.tokens), "text": given.text,
    }))
}

/// `search`: the query language of `nmem search`.
pub fn search(context: &RequestContext, request: Request) -> Result<Value, ProtocolError> {
    let text = request.text(&["query"])?.unwrap_or_default();
    let limit = request.count(&["limit"], 10, 1000)?;
    let none = || Ok(json!({"query": text, "count": 0, "results": []}));
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
        project,
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
    let found: Vec<Hit> = store.search(&Query::parse(text), &kinds, &filter, limit)?;
    let words = crate::index_text::query_terms(text);
    let entry = |hit: &Hit| if as_lines { Value::from(hits::markdown(hit, &words)) } else { hits::json(hit, &words) };
    let results: Vec<Value> = found.iter().map(entry).collect();
    Ok(json!({"query": text, "count": results.len(), "results": results}))
}

/// `observation`: a memory, by id or uuid.
pub fn observation(context: &RequestContext, request: Request) -> Result<Value, ProtocolError> {
    let id = id(request, 'm')?;
    match find(context, &id)? {
        StoredItem::Memory(memory) => Ok(memories::json(&memory)),
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
    entry["observations"] = session.memories.iter().map(memories::json).collect();
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
