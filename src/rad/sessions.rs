//! What a program tells of its session: begun, asked, used, answered, ended. Each becomes the event that a hook would send.

use super::here::Here;
use super::request::{Problem, Request};
use crate::ingest::{Input, ingest};
use crate::model::{AgentSession, Event, Happening, Platform, SessionStart};
use crate::platforms::{self, Surroundings};
use anyhow::Result as Looked;
use serde_json::{Value, json};

/// The names of a session's id, as the two documents have it and as agents say it.
pub const SESSION: [&str; 3] = ["agent_session_id", "claude_session_id", "session_id"];
/// Fields of a use of a tool; of others so many are kept.
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

/// A session's row and how many prompts it has.
struct Standing {
    id: i64,
    prompts: i64,
    ended: bool,
}

/// `sessions/ensure`: the session is there, and its prompt, if one is given.
pub fn ensure(here: &Here, request: Request) -> Result<Value, Problem> {
    let before = standing(here, request)?;
    let what = match request.text(&PROMPT)?.filter(|text| !text.trim().is_empty()) {
        Some(text) => Happening::Prompted { text: text.to_string() },
        None => Happening::SessionStarted(SessionStart::default()),
    };
    if before.is_none() || matches!(what, Happening::Prompted { .. }) {
        tell(here, request, what)?;
    }
    let now = stands(here, request)?;
    Ok(json!({"id": now.id, "prompt_number": now.prompts, "created": before.is_none()}))
}

/// The row of the session that a request names; it begins now, if it has not yet.
pub fn begun(here: &Here, request: Request) -> Result<i64, Problem> {
    if let Some(standing) = standing(here, request)? {
        return Ok(standing.id);
    }
    tell(here, request, Happening::SessionStarted(SessionStart::default()))?;
    Ok(stands(here, request)?.id)
}

/// `sessions/init`: the same, with a prompt.
pub fn init(here: &Here, request: Request) -> Result<Value, Problem> {
    let text = request.needed(&PROMPT)?.to_string();
    tell(here, request, Happening::Prompted { text })?;
    let now = stands(here, request)?;
    Ok(json!({"sessionDbId": now.id, "promptNumber": now.prompts, "status": "initialized"}))
}

/// `observations`: one use of a tool.
pub fn observations(here: &Here, request: Request) -> Result<Value, Problem> {
    let tool = request.needed(&["tool_name"])?;
    session_id(request)?;
    if here.settings.config.skip_tools.value.iter().any(|skipped| skipped == tool) {
        return Ok(json!({"status": "skipped", "reason": "tool_in_skip_list"}));
    }
    // In the words of the hook that such a call would have sent.
    let failed = request.value(&["error"]).is_some();
    let payload = json!({
        "hook_event_name": if failed { "PostToolUseFailure" } else { "PostToolUse" },
        "session_id": session_id(request)?, "cwd": here.folder, "tool_name": tool,
        "tool_input": request.value(&["tool_input"]), "tool_response": request.value(&["tool_response"]),
        "error": request.value(&["error"]), "tool_use_id": request.value(&["tool_use_id"]), "timestamp": request.value(&["timestamp"]),
    });
    let around = Surroundings { now: here.now, skip_tools: &here.settings.config.skip_tools.value };
    let event = platforms::decode(Platform::Custom, &payload, &around).map_err(Problem::bad)?;
    let mut event = event.ok_or_else(|| Problem::bad("it is no use of a tool"))?;
    if let Happening::ToolUsed(tool) = &mut event.what {
        let others = request.others(&[&SESSION, &OF_USE]).take(OTHERS);
        tool.metadata.extra = others.map(|(name, value)| (name.clone(), value.clone())).collect();
    }
    keep(here, Event { platform: platform(here, request)?, project: here.identity(request)?, ..event })?;
    let now = stands(here, request)?;
    Ok(json!({"status": "queued", "id": now.id, "sessionDbId": now.id, "prompt_number": now.prompts}))
}

/// `sessions/summarize`: the turn is over, and this is what the agent said at its end. Memories are drawn at once.
pub fn summarize(here: &Here, request: Request) -> Result<Value, Problem> {
    known(here, request)?;
    let closing = request.text(&["last_assistant_message"])?.map(String::from);
    tell(here, request, Happening::TurnEnded { closing, error: None })?;
    let now = stands(here, request)?;
    Ok(json!({"status": "queued", "id": now.id, "sessionDbId": now.id, "prompt_number": now.prompts}))
}

/// `sessions/complete`
pub fn complete(here: &Here, request: Request) -> Result<Value, Problem> {
    let Some(before) = standing(here, request)?.filter(|standing| !standing.ended) else {
        return Ok(json!({"status": "no_active_session"}));
    };
    let reason = request.name(&["reason"])?.unwrap_or("other").to_string();
    tell(here, request, Happening::SessionEnded { reason, git: None })?;
    Ok(json!({"status": "completed", "sessionDbId": before.id}))
}

fn session_id<'a>(request: Request<'a>) -> Result<&'a str, Problem> {
    request.name(&SESSION)?.ok_or_else(|| Problem::bad(format!("`{}` is missing", SESSION[0])))
}

/// The id as it is stored: of one that looks like a secret a hash.
pub fn stored_id(here: &Here, id: &str) -> String {
    here.settings.redactor.clean(AgentSession(id.to_string())).0.clone()
}

/// The platform that a request names; where it names none, that of the session; a program of one's own is `custom`.
fn platform(here: &Here, request: Request) -> Result<Platform, Problem> {
    if let Some(name) = request.name(&["platform", "source_client"])? {
        return Ok(Platform::from_name(name).unwrap_or(Platform::Custom));
    }
    let id = stored_id(here, session_id(request)?);
    let known = here.look(|store| {
        let known = |platform: Platform| store.session_row(platform, &id).map(|row| row.is_some());
        Platform::ALL.iter().copied().map(|platform| Ok((platform, known(platform)?))).collect::<Looked<Vec<_>>>()
    })?;
    let known = known.into_iter().flatten().find(|(_, known)| *known);
    Ok(known.map_or(Platform::Custom, |(platform, _)| platform))
}

fn tell(here: &Here, request: Request, what: Happening) -> Result<(), Problem> {
    let event = Event {
        platform: platform(here, request)?,
        session: session_id(request)?.to_string(),
        at: here.now,
        time: None,
        cwd: Some(here.folder.display().to_string()),
        project: here.identity(request)?,
        transcript: None,
        transcript_length: None,
        prompt: None,
        agent: None,
        what,
    };
    keep(here, event)
}

/// The way of hooks: switches, redaction, the store or the spool, and what is due afterwards.
fn keep(here: &Here, event: Event) -> Result<(), Problem> {
    here.may_record(Some((event.platform, &event.session)), event.project.as_ref())?;
    match ingest(&here.run(), Input::Events(vec![event]))?.not_stored {
        None => Ok(()),
        Some(why) => Err(Problem { code: "unavailable", message: why }),
    }
}

fn standing(here: &Here, request: Request) -> Result<Option<Standing>, Problem> {
    let id = session_id(request)?;
    let (platform, id) = (platform(here, request)?, stored_id(here, id));
    let session = here.look(|store| store.session_by_agent_id(platform, &id))?.flatten();
    Ok(session.map(|row| Standing { id: row.id, prompts: row.prompts, ended: row.ended_at.is_some() }))
}

fn stands(here: &Here, request: Request) -> Result<Standing, Problem> {
    standing(here, request)?
        .ok_or_else(|| Problem { code: "unavailable", message: "the event is kept and stored later: `nmem status`".into() })
}

fn known(here: &Here, request: Request) -> Result<Standing, Problem> {
    let id = session_id(request)?;
    standing(here, request)?
        .ok_or_else(|| Problem::not_found(format!("no session {id:?} is known: `sessions/ensure` begins one")))
}
