//! What an agent told us, freed of the platform's own names.
//!
//! Every text here is visited by `texts.rs`, or it would escape redaction: a new field is added there first.

use super::Millis;
use super::spelled::spelled;
use serde::{Deserialize, Serialize};

spelled! {
/// Where the work happens.
Platform, default Custom {
    ClaudeCode = "claude-code",
    /// A program of one's own, by the protocol.
    Custom = "custom",
}
}

/// One thing that happened in an agent's session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub platform: Platform,
    /// The agent's own id of the conversation.
    pub session: String,
    /// When this process read it.
    pub at: Millis,
    /// When it happened, where the platform says so.
    #[serde(default)]
    pub time: Option<Millis>,
    /// The agent's working directory, absolute.
    pub cwd: Option<String>,
    /// The project, where the caller names it: then the directory is not asked for one.
    #[serde(default)]
    pub project: Option<ProjectId>,
    /// The transcript that the platform named, absolute. Never opened without the checks of `files`.
    pub transcript: Option<String>,
    /// Bytes that the transcript held when a session was met: what came before is not counted to it.
    #[serde(default)]
    pub transcript_length: Option<u64>,
    /// The platform's own id of the prompt that this belongs to.
    pub prompt: Option<String>,
    /// The subagent in which it happened; `None` in the main thread.
    pub agent: Option<String>,
    pub what: Happening,
}

/// What happened, by kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Happening {
    SessionStarted(SessionStart),
    Prompted {
        text: String,
    },
    /// A prompt that begins with `#nomem`: of it and its turn nothing is kept, and so nothing is here.
    Muted,
    ToolUsed(Box<ToolUse>),
    /// A file is about to be changed. A question, and nothing to store.
    AboutToEdit {
        path: String,
    },
    /// A tool on the skip list that nevertheless says how the task list stands.
    TasksChanged(TaskChange),
    TurnEnded {
        /// The agent's closing text.
        closing: Option<String>,
        /// Why the turn failed, where it did (`rate_limit`, `overloaded`, …).
        error: Option<String>,
    },
    SubagentEnded {
        agent_type: String,
        closing: Option<String>,
    },
    /// The conversation is about to be cut: what it was is drawn together before.
    Compacting,
    SessionEnded {
        reason: String,
        git: Option<GitState>,
    },
}

impl Happening {
    /// Whether the agent only asks: it is answered, and nothing is stored.
    pub fn is_question(&self) -> bool {
        matches!(self, Happening::AboutToEdit { .. })
    }
}

/// How a session began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionStart {
    pub source: StartSource,
    pub model: Option<String>,
    pub client: Option<Client>,
    pub git: Option<GitState>,
}

spelled! {
/// Why the platform says that a session starts now.
StartSource, default Startup {
    Startup = "startup",
    Resume = "resume",
    Clear = "clear",
    Compact = "compact",
    Fork = "fork",
}
}

/// The agent's process. Process ids are used again, so its start time goes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Client {
    pub pid: u32,
    /// Start time in clock ticks since boot (Linux, `/proc/PID/stat` field 22); `None` where it can't be had.
    pub started: Option<u64>,
}

/// What `.git` says at one moment, read without starting git.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitState {
    /// Branch name without `refs/heads/`; `None` on a detached head.
    pub branch: Option<String>,
    /// Commit id in hex; `None` before the first commit.
    pub head: Option<String>,
}

spelled! {
/// What a tool call was for.
Kind, default Other {
    Read = "read",
    Search = "search",
    Edit = "edit",
    Write = "write",
    Command = "command",
    Fetch = "fetch",
    Delegate = "delegate",
    Mcp = "mcp",
    Other = "other",
}
}

spelled! {
/// What a shell command was for.
CommandKind, default Other {
    Build = "build",
    Test = "test",
    Lint = "lint",
    Git = "git",
    Commit = "commit",
    Install = "install",
    Other = "other",
}
}

/// One tool call of an agent: the raw fact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    /// The platform's id of the call.
    pub id: Option<String>,
    /// The tool's name as the platform has it.
    pub name: String,
    pub kind: Kind,
    /// Set where `kind` is `Command`.
    pub command: Option<CommandKind>,
    /// The file or folder, relative to the worktree's root where it lies inside.
    pub path: Option<String>,
    /// Command, pattern, query, URL or path: the one line that says what was done.
    pub content: Option<String>,
    /// What went in beyond `content`: a hunk, a task for a subagent, arguments.
    pub input: Option<String>,
    /// What came out.
    pub outcome: Option<String>,
    /// `None` where nobody knows yet: a command still running in the background.
    pub succeeded: Option<bool>,
    /// The hook event that told of it, as the platform calls it.
    pub source_event: String,
    pub metadata: Metadata,
    /// The task list after this call, where the tool is one that keeps it.
    pub tasks: Option<TaskChange>,
}

/// Sparse facts about a tool use: the `metadata` JSON of ADR-009. What is absent is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Metadata {
    /// The agent's own words for what a command does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subagent_type: Option<String>,
    /// Set with `response` on every failure.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// The call raised no failure: that it failed was read from its output.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub inferred: bool,
    /// What a failed call answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<Commit>,
    /// How many hits a search had, or files a glob.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub results: Option<i64>,
    /// Id of a command or an agent that goes on in the background.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines_added: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines_removed: Option<i64>,
    /// The subagent that this call started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spawned_agent: Option<String>,
    /// Tokens that a subagent spent, all kinds together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_tokens: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<i64>,
    /// The subagent in which the call was made; `None` in the main thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// What else a program said of it, by names of its own.
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    pub extra: serde_json::Map<String, serde_json::Value>,
}

/// A git commit that a command made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Commit {
    pub sha: Option<String>,
    pub subject: Option<String>,
}

/// What a task-list tool says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum TaskChange {
    /// The whole list, as `TodoWrite` gives it.
    Replace(Vec<Task>),
    /// One task added or changed; fields that are absent stay.
    Upsert(TaskPatch),
}

/// One entry of an agent's task list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Task {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub subject: String,
    /// `pending`, `in_progress`, `completed`, or the platform's own word.
    pub status: String,
}

/// A change of one task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskPatch {
    pub id: Option<String>,
    pub subject: Option<String>,
    pub status: Option<String>,
}

/// What a transcript says of the stretch that was read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TurnUsage {
    pub tokens: Option<Tokens>,
    pub model: Option<String>,
    pub stop_reason: Option<String>,
    pub cost_usd: Option<f64>,
    /// Tokens in the model's context after its last main-thread message.
    pub context_tokens: Option<i64>,
    pub thinking: Option<String>,
    /// `message.id` of the last message counted: its other blocks may come in the next stretch.
    pub last_message: Option<String>,
}

/// Tokens as the provider counts them. `input` excludes what came from the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    pub input: i64,
    pub output: i64,
    pub cache_read: i64,
    pub cache_write: i64,
}

/// What belongs together: the identity of a folder of work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectId {
    /// `under:<folder>` for the folder and those above it, up to the root: `nmem project split` made one of them a project
    /// of its own, or none.
    pub places: Vec<String>,
    /// What it is known by, the surest first, never empty: `name:<by hand>`, `repo:<normalised remote>`, `root:<first
    /// commit>`, `git:<common .git folder>` or `dir:<folder>`.
    pub keys: Vec<String>,
    /// What people call it.
    pub name: String,
    /// Remote URL without credentials.
    pub repo_url: Option<String>,
    /// The worktree's root, or the folder.
    pub root: String,
    /// The built-in domain that the repository's own file names.
    pub domain: Option<String>,
}

/// Events for tests: what is not given is left out.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// Something that happens in a session of Claude Code.
    pub fn event(session: &str, at: Millis, what: Happening) -> Event {
        Event {
            platform: Platform::ClaudeCode,
            session: session.into(),
            at,
            time: None,
            cwd: None,
            project: None,
            transcript: None,
            transcript_length: None,
            prompt: None,
            agent: None,
            what,
        }
    }

    /// A tool use: a command's text, or a file's path.
    pub fn tool(kind: Kind, what: &str, succeeded: bool) -> ToolUse {
        let is_command = kind == Kind::Command;
        ToolUse {
            id: None,
            name: "Tool".into(),
            kind,
            command: is_command.then(|| crate::command_kind::classify(what)),
            path: (!is_command).then(|| what.to_string()),
            content: is_command.then(|| what.to_string()),
            input: None,
            outcome: None,
            succeeded: Some(succeeded),
            source_event: "PostToolUse".into(),
            metadata: Metadata::default(),
            tasks: None,
        }
    }
}
