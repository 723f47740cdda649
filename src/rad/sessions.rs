//! Events of a program's session: started, prompted, tool used, turn ended, session ended. Each becomes the event that
//! a hook would send.

use super::request::{ProtocolError, Request, RequestContext};
use crate::ingest::ingest;
use crate::model::{AgentSession, Event, EventKind, Platform, SessionStart};
use crate::platforms::{self, DecodeContext};
use anyhow::Result as Looked;
use serde_json::{Value, json};

/// Names of the session id in the two specifications and in agents.
pub const SESSION: [&str; 3] = ["agent_session_id", "claude_session_id", "session_id"];
/// Fields of a tool use; a limited number of others is kept.
const OF_USE: [&str; 12] = [
    "tool_name",
    "tool_input",
    "tool_response",
    "error",
    "tool_use_id",
    "timestamp",
    "cwd",
    "project",
    "repo_id",
    "platform",
    "source_client",
    "verb",
];
const OTHERS: usize = 16;
const PROMPT: [&str; 2] = ["user_prompt", "prompt"];

/// A session's row and its number of prompts.
struct RequestSession {
    id: i64,
    prompts: i64,
    ended: bool,
}

/// `sessions/ensure`: creates the session, and its prompt if one is given.
pub fn ensure(context: &RequestContext, request: Request) -> Result<Value, ProtocolError> {
    let before = request_session(context, request)?;
    let what = match request.text(&PROMPT)?.filter(|text| !text.trim().is_empty()) {
        Some(text) => EventKind::UserPrompt { text: text.to_string() },
        None => EventKind::SessionStarted(SessionStart::default()),
    };
    if before.is_none() || matches!(what, EventKind::UserPrompt { .. }) {
        ingest_event(context, request, what)?;
    }
    let now = ensure_recorded(context, request)?;
    Ok(json!({"id": now.id, "prompt_number": now.prompts, "created": before.is_none()}))
}

/// Returns the row of the session that a request names; a new session starts now.
pub fn begun(context: &RequestContext, request: Request) -> Result<i64, ProtocolError> {
    if let Some(request_session) = request_session(context, request)? {
        return Ok(request_session.id);
    }
    ingest_event(context, request, EventKind::SessionStarted(SessionStart::default()))?;
    Ok(ensure_recorded(context, request)?.id)
}

/// `sessions/init`: like `sessions/ensure`, with a required prompt.
pub fn init(context: &RequestContext, request: Request) -> Result<Value, ProtocolError> {
    let text = request.needed(&PROMPT)?.to_string();
    ingest_event(context, request, EventKind::UserPrompt { text })?;
    let now = ensure_recorded(context, request)?;
    Ok(json!({"sessionDbId": now.id, "promptNumber": now.prompts, "status": "initialized"}))
}

/// `observations`: one tool use.
pub fn observations(context: &RequestContext, request: Request) -> Result<Value, ProtocolError> {
    let tool = request.needed(&["tool_name"])?;
    session_id(request)?;
    if context.settings.config.skip_tools.value.iter().any(|skipped| skipped == tool) {
        return Ok(json!({"status": "skipped", "reason": "tool_in_skip_list"}));
    }
    // Uses the event that a hook for such a call would send.
    let failed = request.value(&["error"]).is_some();
    let payload = json!({
        "hook_event_name": if failed { "PostToolUseFailure" } else { "PostToolUse" },
        "session_id": session_id(request)?, "cwd": context.folder, "tool_name": tool,
        "tool_input": request.value(&["tool_input"]), "tool_response": request.value(&["tool_response"]),
        "error": request.value(&["error"]), "tool_use_id": request.value(&["tool_use_id"]), "timestamp": request.value(&["timestamp"]),
    });
    let around = DecodeContext { now: context.now, skip_tools: &context.settings.config.skip_tools.value };
    let events = platforms::adapter(Platform::Custom).decode(&payload, &around).map_err(ProtocolError::bad)?;
    let mut event = events.into_iter().next().ok_or_else(|| ProtocolError::bad("not a tool use"))?;
    if let EventKind::ToolUsed(tool) = &mut event.what {
        let others = request.others(&[&SESSION, &OF_USE]).take(OTHERS);
        tool.metadata.extra = others.map(|(name, value)| (name.clone(), value.clone())).collect();
    }
    ingest_one(context, Event { platform: platform(context, request)?, project: context.identity(request)?, ..event })?;
    let now = ensure_recorded(context, request)?;
    Ok(json!({"status": "queued", "id": now.id, "sessionDbId": now.id, "prompt_number": now.prompts}))
}

/// `sessions/summarize`: ends the turn with this message. Its units are distilled at once.
pub fn summarize(context: &RequestContext, request: Request) -> Result<Value, ProtocolError> {
    known_session(context, request)?;
    let closing = request.text(&["last_assistant_message"])?.map(String::from);
    ingest_event(context, request, EventKind::TurnEnded { closing, error: None })?;
    let now = ensure_recorded(context, request)?;
    Ok(json!({"status": "queued", "id": now.id, "sessionDbId": now.id, "prompt_number": now.prompts}))
}

/// `sessions/complete`: ends the session.
pub fn complete(context: &RequestContext, request: Request) -> Result<Value, ProtocolError> {
    let Some(before) = request_session(context, request)?.filter(|request_session| !request_session.ended) else {
        return Ok(json!({"status": "no_active_session"}));
    };
    let reason = request.name(&["reason"])?.unwrap_or("other").to_string();
    ingest_event(context, request, EventKind::SessionEnded { reason, git: None })?;
    Ok(json!({"status": "completed", "sessionDbId": before.id}))
}

fn session_id<'a>(request: Request<'a>) -> Result<&'a str, ProtocolError> {
    request.name(&SESSION)?.ok_or_else(|| ProtocolError::bad(format!("`{}` is missing", SESSION[0])))
}

/// The stored form of an id: a hash if it looks like a secret.
pub fn stored_id(context: &RequestContext, id: &str) -> String {
    context.settings.redactor.clean(AgentSession(id.to_string())).0.clone()
}

/// Returns the platform that a request names, or else that of its session, or else `custom`.
fn platform(context: &RequestContext, request: Request) -> Result<Platform, ProtocolError> {
    if let Some(name) = request.name(&["platform", "source_client"])? {
        return Ok(Platform::from_name(name).unwrap_or(Platform::Custom));
    }
    let id = stored_id(context, session_id(request)?);
    let known_session = context.look(|store| {
        let known_session = |platform: Platform| store.session_row(platform, &id).map(|row| row.is_some());
        Platform::ALL.iter().copied().map(|platform| Ok((platform, known_session(platform)?))).collect::<Looked<Vec<_>>>()
    })?;
    let known_session = known_session.into_iter().flatten().find(|(_, known_session)| *known_session);
    Ok(known_session.map_or(Platform::Custom, |(platform, _)| platform))
}

fn ingest_event(context: &RequestContext, request: Request, what: EventKind) -> Result<(), ProtocolError> {
    let event = Event {
        platform: platform(context, request)?,
        session: session_id(request)?.to_string(),
        at: context.now,
        time: None,
        cwd: Some(context.folder.display().to_string()),
        project: context.identity(request)?,
        transcript: None,
        repository_url: None,
        transcript_length: None,
        usage: None,
        prompt: None,
        agent: None,
        what,
    };
    ingest_one(context, event)
}

/// Runs the event pipeline.
fn ingest_one(context: &RequestContext, event: Event) -> Result<(), ProtocolError> {
    context.may_record(Some((event.platform, &event.session)), event.project.as_ref())?;
    match ingest(&context.run(), vec![event])?.not_stored {
        None => Ok(()),
        Some(why) => Err(ProtocolError { code: "unavailable", message: why }),
    }
}

fn request_session(context: &RequestContext, request: Request) -> Result<Option<RequestSession>, ProtocolError> {
    let id = session_id(request)?;
    let (platform, id) = (platform(context, request)?, stored_id(context, id));
    let session = context.look(|store| store.session_by_agent_id(platform, &id))?.flatten();
    Ok(session.map(|row| RequestSession { id: row.id, prompts: row.prompts, ended: row.ended_at.is_some() }))
}

fn ensure_recorded(context: &RequestContext, request: Request) -> Result<RequestSession, ProtocolError> {
    request_session(context, request)?
        .ok_or_else(|| ProtocolError { code: "unavailable", message: "the event is kept and stored later: `nmem status`".into() })
}

fn known_session(context: &RequestContext, request: Request) -> Result<RequestSession, ProtocolError> {
    let id = session_id(request)?;
    request_session(context, request)?
        .ok_or_else(|| ProtocolError::not_found(format!("unknown session {id:?}: `sessions/ensure` creates one")))
}
