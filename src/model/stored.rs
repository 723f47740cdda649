//! What comes back out of the store.

use super::{Client, Millis, Task, UnitRow};

/// A project as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct ProjectRow {
    pub id: i64,
    pub name: String,
    pub repo_url: Option<String>,
    /// The worktree in which it was last seen.
    pub root: String,
    pub created_at: Millis,
}

/// A session as it is stored.
#[derive(Clone, Debug)]
pub struct SessionRow {
    pub id: i64,
    pub project: Option<String>,
    pub platform: String,
    pub agent_session_id: String,
    pub started_at: Millis,
    pub active_at: Millis,
    pub ended_at: Option<Millis>,
    pub end_reason: Option<String>,
    pub start_branch: Option<String>,
    pub end_branch: Option<String>,
    pub start_head: Option<String>,
    pub end_head: Option<String>,
    pub client: Option<Client>,
    pub cwd: Option<String>,
    pub prompts: i64,
    pub tool_uses: i64,
    pub failures: i64,
    pub kinds: String,
    pub tasks: Vec<Task>,
    pub model: Option<String>,
    pub stop_reason: Option<String>,
    pub input_tokens: Option<i64>,
    pub output_tokens: Option<i64>,
    pub cache_read_tokens: Option<i64>,
    pub cache_write_tokens: Option<i64>,
    pub context_tokens: Option<i64>,
    pub cost_usd: Option<f64>,
}

/// A prompt, or an agent's text, as it is stored.
#[derive(Clone, Debug)]
pub struct PromptRow {
    pub id: i64,
    pub session_id: i64,
    pub number: i64,
    pub source: String,
    pub kind: String,
    pub agent_id: Option<String>,
    pub text: String,
    pub received_at: Millis,
}

/// A tool use as it is stored.
#[derive(Clone, Debug)]
pub struct ToolUseRow {
    pub id: i64,
    pub session_id: i64,
    pub seq: i64,
    pub prompt_id: Option<i64>,
    pub tool_use_id: Option<String>,
    pub received_at: Millis,
    pub tool_name: String,
    pub kind: String,
    pub command_kind: Option<String>,
    pub path: Option<String>,
    pub content: Option<String>,
    pub input: Option<String>,
    pub outcome: Option<String>,
    pub succeeded: Option<bool>,
    /// ADR-009's metadata, as JSON.
    pub metadata: serde_json::Value,
}

/// A session with what its context needs.
#[derive(Clone, Debug)]
pub struct Story {
    pub session: SessionRow,
    /// The user's first prompt, and then the last ones of both sides, in order. No thinking.
    pub prompts: Vec<PromptRow>,
    /// Edits, writes, commands and failures, in order.
    pub tools: Vec<ToolUseRow>,
}

/// What a short id names.
#[derive(Clone, Debug)]
pub enum Found {
    Session(Box<SessionRow>),
    Unit(Box<UnitRow>),
    Prompt(PromptRow),
    ToolUse(Box<ToolUseRow>),
}

/// Rows that are to be forgotten, by their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Going {
    pub prompts: Vec<i64>,
    pub tool_uses: Vec<i64>,
    /// Sessions that go whole, and what their agents call them.
    pub sessions: Vec<i64>,
    pub session_ids: Vec<String>,
    /// Sessions that lose some of their rows.
    pub touched: Vec<i64>,
    /// Sessions of which entries of the task list go.
    pub task_lists: Vec<i64>,
    pub projects: Vec<i64>,
    pub project_names: Vec<String>,
}

impl Going {
    /// Whether nothing would go.
    pub fn is_empty(&self) -> bool {
        *self == Going::default()
    }
}

/// What `nmem status` counts.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    pub projects: i64,
    pub sessions: i64,
    pub prompts: i64,
    pub tool_uses: i64,
}

/// When a platform was last heard of.
#[derive(Clone, Debug)]
pub struct LastEvent {
    pub platform: String,
    pub at: Millis,
}

/// Which rows count at all.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// `None`: all projects.
    pub project: Option<i64>,
    pub platform: Option<String>,
    pub since: Option<Millis>,
    pub until: Option<Millis>,
    /// A path, or the end of one.
    pub file: Option<String>,
}

/// A kind of row that can be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HitKind {
    Prompt,
    Tool,
}

/// A row that was found.
#[derive(Clone, Debug)]
pub struct Hit {
    pub kind: HitKind,
    pub id: i64,
    /// `user` or `agent` for prompts; the tool's kind for tool uses.
    pub what: String,
    /// The prompt's text; the command, pattern or path.
    pub text: String,
    /// What else was searched: description and error of a tool use.
    pub more: String,
    pub path: Option<String>,
    pub succeeded: Option<bool>,
    pub project: Option<String>,
    /// The agent's own id of the session.
    pub session: String,
    pub platform: String,
    pub at: Millis,
    /// Higher is better; comparable within one search only.
    pub score: f64,
}
