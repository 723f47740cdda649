//! Use case: resolves an id and reads everything that belongs to it.

use crate::error::UserError;
use crate::model::{MemoryRow, PromptRow, SessionRow, StoredItem, ToolUseRow};
use crate::render::clean::line;
use crate::render::style::Style;
use crate::render::{details, memory_text, unit_text};
use crate::segmentation::signal_meaning;
use crate::store::Store;
use anyhow::Result;
use serde_json::Value;

/// A prompt or an agent's text, with its session and unit.
#[derive(Clone, Debug)]
pub struct PromptWhole {
    pub prompt: PromptRow,
    /// The agent's own id of its session.
    pub session: Option<String>,
    pub unit: Option<i64>,
}

/// A tool use, with its session and unit.
#[derive(Clone, Debug)]
pub struct ToolUseWhole {
    pub tool_use: ToolUseRow,
    /// The agent's own id of its session.
    pub session: Option<String>,
    pub unit: Option<i64>,
    pub prompt: Option<PromptRow>,
}

/// A session with its prompts, tool uses, units and memories.
#[derive(Clone, Debug)]
pub struct SessionWhole {
    pub session: SessionRow,
    pub prompts: Vec<PromptWhole>,
    pub tool_uses: Vec<ToolUseWhole>,
    pub memories: Vec<MemoryRow>,
}

impl PromptWhole {
    pub fn json(&self) -> Value {
        details::prompt_json(&self.prompt, self.session.as_deref(), self.unit)
    }
}

impl ToolUseWhole {
    pub fn json(&self) -> Value {
        details::tool_use_json(&self.tool_use, self.session.as_deref(), self.unit)
    }

    pub fn text(&self, style: Style) -> String {
        details::tool_use(&self.tool_use, self.unit, self.prompt.as_ref(), style)
    }
}

impl SessionWhole {
    pub fn json(&self) -> Value {
        let prompts = self.prompts.iter().map(PromptWhole::json).collect();
        details::session_json(&self.session, prompts, self.tool_uses.iter().map(ToolUseWhole::json).collect())
    }

    pub fn text(&self, style: Style) -> String {
        let prompts: Vec<&PromptRow> = self.prompts.iter().map(|whole| &whole.prompt).collect();
        let tools: Vec<&ToolUseRow> = self.tool_uses.iter().map(|whole| &whole.tool_use).collect();
        details::session(&self.session, &prompts, &tools, &self.memories, style)
    }
}

/// Returns everything about an item, as text for the user; with `why`, also the weights behind a unit's boundaries, and what
/// a memory cost.
pub fn text(store: &Store, item: StoredItem, why: bool, style: Style) -> Result<String> {
    Ok(match item {
        StoredItem::Session(found) => session(store, *found)?.text(style),
        StoredItem::Unit(unit) => {
            let drawn = store.memories_of_unit(unit.session, unit.id)?;
            format!("{}{}", unit_text::whole(&unit, why.then_some(signal_meaning), style), details::listed(&drawn, style))
        }
        StoredItem::Memory(memory) => {
            let call = store.call_of_memory(memory.id)?;
            memory_text::whole(&memory, call.as_ref(), why, style)
        }
        StoredItem::Prompt(prompt) => details::prompt_entry(&prompt, style),
        StoredItem::ToolUse(tool) => tool_use(store, *tool)?.text(style),
    })
}

/// Returns everything about an item, as JSON.
pub fn json(store: &Store, item: StoredItem) -> Result<Value> {
    Ok(match item {
        StoredItem::Session(found) => session(store, *found)?.json(),
        StoredItem::Unit(unit) => unit_text::whole_json(&unit, &store.memories_of_unit(unit.session, unit.id)?),
        StoredItem::Memory(memory) => {
            let mut json = memory_text::json(&memory);
            if let Some(call) = store.call_of_memory(memory.id)? {
                json["model_call"] = memory_text::call_json(&call);
            }
            json
        }
        StoredItem::Prompt(found) => prompt(store, found)?.json(),
        StoredItem::ToolUse(tool) => tool_use(store, *tool)?.json(),
    })
}

/// Resolves one of nmem's ids, or a prefix of an agent's session id or of a memory's uuid.
pub fn find(store: &Store, id: &str) -> Result<Option<StoredItem>> {
    // `M5` means `m5`; agents' ids keep their case.
    let lower = id.to_lowercase();
    let is_own = lower.len() > 1 && lower.is_char_boundary(1) && lower[1..].bytes().all(|b| b.is_ascii_digit());
    let id = if is_own { &lower } else { id };
    match store.find(id)? {
        Some(found) => Ok(Some(found)),
        None => by_agents_id(store, id),
    }
}

fn by_agents_id(store: &Store, prefix: &str) -> Result<Option<StoredItem>> {
    // An exact match takes precedence over prefixes.
    let mut sessions = store.sessions_by_id(prefix)?;
    if sessions.is_empty() && prefix.len() >= 4 {
        sessions = store.sessions_by_prefix(prefix)?;
    }
    if sessions.is_empty() && prefix.len() < 4 {
        return Ok(None);
    }
    if sessions.is_empty() {
        let mut memories = store.memories_by_uuid(prefix)?;
        if memories.len() > 1 {
            return Err(UserError::new(
                format!("several memories start with {}", line(prefix, 80)),
                "use more characters of the id",
            )
            .into());
        }
        return Ok(memories.pop().map(|memory| StoredItem::Memory(Box::new(memory))));
    }
    if sessions.len() > 1 && sessions.iter().all(|s| s.agent_session_id != prefix) {
        return Err(
            UserError::new(format!("several sessions start with {}", line(prefix, 80)), "use more characters of the id").into()
        );
    }
    Ok(sessions.pop().map(|s| StoredItem::Session(Box::new(s))))
}

/// Returns the session with an id.
///
/// # Errors
///
/// A [`UserError`] if the id is unknown or is not a session's id.
pub fn session_by_id(store: &Store, id: &str) -> Result<SessionRow> {
    match find(store, id)? {
        Some(StoredItem::Session(session)) => Ok(*session),
        _ => Err(UserError::new(format!("{} is not a session", line(id, 80)), "`nmem log` and `nmem search` print ids").into()),
    }
}

/// Returns the session that a stored item belongs to.
///
/// # Errors
///
/// A [`UserError`] for a memory without a session.
pub fn session_of(store: &Store, item: StoredItem) -> Result<SessionRow> {
    let (name, session) = match item {
        StoredItem::Session(session) => return Ok(*session),
        StoredItem::Unit(unit) => (format!("u{}", unit.id), Some(unit.session)),
        StoredItem::Prompt(prompt) => (format!("p{}", prompt.id), Some(prompt.session_id)),
        StoredItem::ToolUse(tool) => (format!("t{}", tool.id), Some(tool.session_id)),
        StoredItem::Memory(memory) => (format!("m{}", memory.id), memory.session),
    };
    let session = session.map(|id| store.session_by_row(id)).transpose()?.flatten();
    let lone = || UserError::new(format!("{name} was not made in a session"), "`nmem log` prints the ids of sessions");
    Ok(session.ok_or_else(lone)?)
}

/// Reads a prompt with its session and unit.
pub fn prompt(store: &Store, prompt: PromptRow) -> Result<PromptWhole> {
    let session = agent_session(store, prompt.session_id)?;
    let unit = store.unit_of_prompt(prompt.session_id, prompt.id)?;
    Ok(PromptWhole { prompt, session, unit })
}

/// Reads a tool use with its session, unit and prompt.
pub fn tool_use(store: &Store, tool_use: ToolUseRow) -> Result<ToolUseWhole> {
    let session = agent_session(store, tool_use.session_id)?;
    let unit = store.unit_of_tool_use(tool_use.id)?;
    let prompt = tool_use.prompt_id.map(|id| store.prompt_by_row(id)).transpose()?.flatten();
    Ok(ToolUseWhole { tool_use, session, unit, prompt })
}

/// Reads a complete session.
pub fn session(store: &Store, session: SessionRow) -> Result<SessionWhole> {
    let own = Some(session.agent_session_id.clone());
    let prompts = store.prompts_of(session.id)?.into_iter().map(|prompt| {
        let unit = store.unit_of_prompt(prompt.session_id, prompt.id)?;
        Ok(PromptWhole { prompt, session: own.clone(), unit })
    });
    let prompts = prompts.collect::<Result<_>>()?;
    let tool_uses = store.tool_uses_of(session.id)?.into_iter().map(|tool_use| {
        let unit = store.unit_of_tool_use(tool_use.id)?;
        Ok(ToolUseWhole { tool_use, session: own.clone(), unit, prompt: None })
    });
    let tool_uses = tool_uses.collect::<Result<_>>()?;
    let memories = store.memories_of_session(session.id)?;
    Ok(SessionWhole { session, prompts, tool_uses, memories })
}

/// Returns the session id assigned by the agent, the value of `session` in all JSON output.
fn agent_session(store: &Store, id: i64) -> Result<Option<String>> {
    Ok(store.session_by_row(id)?.map(|s| s.agent_session_id))
}
