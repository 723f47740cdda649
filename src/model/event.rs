//! An agent's event, without platform-specific names, and the platforms.

use super::Millis;
use serde::{Deserialize, Serialize};

/// One event in an agent's session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub platform: Platform,
    /// The conversation id assigned by the agent.
    pub session: String,
    /// Time at which this process received it.
    pub at: Millis,
    /// Time at which it happened, if the platform reports it.
    #[serde(default)]
    pub time: Option<Millis>,
    /// The agent's working directory, absolute.
    pub cwd: Option<String>,
    /// The project, if the caller names it; otherwise it is derived from `cwd`.
    #[serde(default)]
    pub project: Option<ProjectId>,
    /// Remote URL of the repository, if a session's file names it. It counts if `cwd` is gone.
    #[serde(default)]
    pub repository_url: Option<String>,
    /// The transcript that the platform named, absolute. Open it only through `files`.
    pub transcript: Option<String>,
    /// Size of the transcript in bytes when nmem first saw the session. Earlier content is ignored.
    #[serde(default)]
    pub transcript_length: Option<u64>,
    /// Tokens and model of the turn or session that this event ends, if the event includes them. Hooks read them from
    /// the transcript.
    #[serde(default)]
    pub usage: Option<Box<TurnUsage>>,
    /// The platform's id of the prompt that this event belongs to.
    pub prompt: Option<String>,
    /// The subagent that raised it; `None` for the main thread.
    pub agent: Option<String>,
    pub what: EventKind,
}

/// Kind of an event, with its data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum EventKind {
    SessionStarted(SessionStart),
    UserPrompt {
        text: String,
    },
    /// The person's answers to questions that the agent asked by a tool. The call itself is not stored.
    Answered {
        /// The platform's id of the call.
        call: Option<String>,
        answers: Vec<UserAnswer>,
    },
    /// The person took prompts back, with all work on them: the agent continues from before them.
    TakenBack(TakenBack),
    /// A prompt that starts with `#nomem`. Neither it nor its turn is stored, so it carries no text.
    PrivatePrompt,
    ToolUsed(Box<ToolUse>),
    /// A file is about to be changed. The agent asks for context; nothing is stored.
    PreEdit {
        path: String,
        /// Root of the file's repository, if it is another one than that of the working directory.
        repository: Option<String>,
    },
    /// A command that ran in the background has ended. The call that started it gets the outcome.
    BackgroundEnded(BackgroundEnd),
    /// A tool on the skip list that changed the task list.
    TasksChanged(TaskChange),
    TurnEnded {
        /// The agent's closing message.
        closing: Option<String>,
        /// Reason for the failure, if the turn failed (`rate_limit`, `overloaded`, …).
        error: Option<String>,
    },
    /// A subagent is about to be started.
    Delegating {
        /// Files named in its task: absolute or as written. Absolute paths later become relative to the worktree.
        files: Vec<String>,
    },
    /// A subagent starts. The agent asks for context; nothing is stored.
    SubagentStarted,
    SubagentEnded {
        agent_type: String,
        closing: Option<String>,
    },
    /// The conversation is about to be compacted. Its units are distilled first.
    Compacting,
    SessionEnded {
        reason: String,
        git: Option<GitState>,
    },
}

impl EventKind {
    /// Whether the event only asks for context, so nothing is stored.
    pub fn is_question(&self) -> bool {
        matches!(self, EventKind::PreEdit { .. } | EventKind::SubagentStarted)
    }
}

/// Details of a session start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionStart {
    pub source: StartSource,
    pub model: Option<String>,
    pub client: Option<Client>,
    pub git: Option<GitState>,
}

/// A question of the agent, with the options that it offered, and what the person answered. As text:
///
/// ```text
/// Should it listen on a port or on a socket?
/// - on a port
/// - on a socket
/// > on a socket
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserAnswer {
    pub question: String,
    pub options: Vec<String>,
    /// The option that the person chose, or the text that they typed.
    pub text: String,
}

impl UserAnswer {
    /// Formats answers as one text.
    pub fn to_text(answers: &[UserAnswer]) -> String {
        let line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let one = |answer: &UserAnswer| {
            let options = answer.options.iter().map(|option| format!("- {}\n", line(option)));
            let said = answer.text.lines().map(|said| format!("> {said}\n"));
            format!("{}\n{}{}", line(&answer.question), options.collect::<String>(), said.collect::<String>())
        };
        answers.iter().map(one).collect::<Vec<_>>().join("\n").trim_end().to_string()
    }

    /// Parses the text of answers.
    pub fn parse(text: &str) -> Vec<UserAnswer> {
        let mut answers: Vec<UserAnswer> = Vec::new();
        for line in text.lines() {
            let is_new = answers.last().is_none_or(|last| !last.text.is_empty());
            match (line.strip_prefix("> ").or((line == ">").then_some("")), line.strip_prefix("- "), answers.last_mut()) {
                (Some(said), _, Some(last)) => {
                    let gap = if last.text.is_empty() { "" } else { "\n" };
                    last.text = format!("{}{gap}{said}", last.text);
                }
                (_, Some(option), Some(last)) if !is_new => last.options.push(option.to_string()),
                _ if line.is_empty() => {}
                _ => answers.push(UserAnswer { question: line.to_string(), ..UserAnswer::default() }),
            }
        }
        answers
    }
}

/// Prompts that the person took back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TakenBack {
    /// The platform's id of the first one; all prompts after it, too, except the event's own.
    Since(String),
    /// The last ones before the event's own prompt.
    Last(u64),
    /// The platform's id of one.
    One(String),
    /// Time of the first one; all prompts after it, too, except the event's own.
    At(Millis),
}

spelled! {
/// Reason for a session start.
StartSource, default Startup {
    Startup = "startup",
    Resume = "resume",
    Clear = "clear",
    Compact = "compact",
    Fork = "fork",
}
}

/// The agent's process. Process ids are reused, so the start time is included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Client {
    pub pid: u32,
    /// Start time in clock ticks since boot (Linux, `/proc/PID/stat` field 22); `None` if unavailable.
    pub started: Option<u64>,
}

/// State of a git repository, read from `.git` without starting git.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitState {
    /// Branch name without `refs/heads/`; `None` on a detached head.
    pub branch: Option<String>,
    /// Commit id in hex; `None` before the first commit.
    pub head: Option<String>,
}

spelled! {
/// Kind of a tool call.
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
/// Kind of a shell command.
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

/// One tool call of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    /// The platform's id of the call.
    pub id: Option<String>,
    /// The tool's name on its platform.
    pub name: String,
    pub kind: Kind,
    /// Set if `kind` is `Command`.
    pub command: Option<CommandKind>,
    /// File or folder, relative to the root of the worktree if it is inside.
    pub path: Option<String>,
    /// Root of the repository in which it edited a file or ran a command; `None` if it is in none.
    #[serde(default)]
    pub repository: Option<String>,
    /// Command, pattern, query, URL or path: one line that describes the call.
    pub content: Option<String>,
    /// Further input: a hunk, a subagent's task, arguments.
    pub input: Option<String>,
    /// The tool's output.
    pub outcome: Option<String>,
    /// `None` if not known yet: a command that still runs in the background.
    pub succeeded: Option<bool>,
    /// Name of the hook event that reported it, as the platform spells it.
    pub source_event: String,
    pub metadata: Metadata,
    /// The change to the task list, for tools that keep one.
    pub tasks: Option<TaskChange>,
    /// The end of a background command, for tools that report it.
    #[serde(default)]
    pub ended: Option<BackgroundEnd>,
}

/// The end of a command that ran in the background.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackgroundEnd {
    /// The agent's id of the running command, as in [`Metadata::background`].
    pub id: String,
    /// `None` if it was stopped.
    pub succeeded: Option<bool>,
    pub exit_code: Option<i32>,
    pub output: Option<String>,
}

impl ToolUse {
    /// Applies an exit code that becomes known later.
    pub fn ended_with(&mut self, code: i64) {
        self.metadata.exit_code = i32::try_from(code).ok();
        if code != 0 {
            self.succeeded = Some(false);
            (self.metadata.failed, self.metadata.inferred, self.metadata.commit) = (true, false, None);
            self.metadata.response = Some(format!("Exit code {code}\n{}", self.outcome.take().unwrap_or_default()));
        }
    }
}

/// Optional facts about a tool use, stored in the JSON column `metadata`. Absent facts are omitted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Metadata {
    /// The agent's description of a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subagent_type: Option<String>,
    /// Set together with `response` on every failure.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// The call reported no failure; it was detected in the output.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub inferred: bool,
    /// Output of a failed call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<Commit>,
    /// Number of search hits, or of files that a glob found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub results: Option<i64>,
    /// Id of a command or subagent that continues in the background.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines_added: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines_removed: Option<i64>,
    /// Marks of the lines that an edit wrote, in order (`redact::LineMark`), in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written: Option<String>,
    /// The subagent that this call started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spawned_agent: Option<String>,
    /// Tokens that a subagent used, all kinds together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_tokens: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<i64>,
    /// The subagent that made the call; `None` for the main thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Other facts that a program recorded, under names that it chose.
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    pub extra: serde_json::Map<String, serde_json::Value>,
}

/// A git commit that a command made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Commit {
    pub sha: Option<String>,
    pub subject: Option<String>,
    /// Ids of further commits that the same command made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
}

/// A change to the agent's task list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum TaskChange {
    /// The complete list, as `TodoWrite` sends it.
    Replace(Vec<Task>),
    /// One task added or changed; absent fields keep their values.
    Upsert(TaskPatch),
}

/// One entry of an agent's task list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Task {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub subject: String,
    /// `pending`, `in_progress`, `completed`, or a platform-specific value.
    pub status: String,
}

/// A change to one task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskPatch {
    pub id: Option<String>,
    pub subject: Option<String>,
    pub status: Option<String>,
}

/// Data from a newly read part of a transcript.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TurnUsage {
    pub tokens: Option<Tokens>,
    pub model: Option<String>,
    pub stop_reason: Option<String>,
    pub cost_usd: Option<f64>,
    /// Tokens in the model's context after its last message on the main thread.
    pub context_tokens: Option<i64>,
    pub thinking: Option<String>,
    /// `message.id` of the last counted message. More blocks of it may follow in the next part.
    pub last_message: Option<String>,
}

/// Tokens as the provider counts them. `input` excludes cached tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    pub input: i64,
    pub output: i64,
    pub cache_read: i64,
    pub cache_write: i64,
}

impl Tokens {
    /// The sum of two counts.
    pub fn plus(self, other: Tokens) -> Tokens {
        Tokens {
            input: self.input + other.input,
            output: self.output + other.output,
            cache_read: self.cache_read + other.cache_read,
            cache_write: self.cache_write + other.cache_write,
        }
    }
}

/// Identity of the project that a folder belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectId {
    /// `under:<folder>` for the folder and each parent up to the root. `nmem project split` may have made one of them a
    /// separate project.
    pub places: Vec<String>,
    /// Keys, the most reliable first, never empty: `name:<set by the user>`, `repo:<normalised remote>`, `root:<first
    /// commit>`, `git:<common .git folder>` or `dir:<folder>`.
    pub keys: Vec<String>,
    /// Display name.
    pub name: String,
    /// Remote URL without credentials.
    pub repo_url: Option<String>,
    /// Root of the worktree, or the folder; empty if only the remote is known.
    pub root: String,
    /// The built-in domain that the repository's `.nmem.toml` names.
    pub domain: Option<String>,
    /// True for a linked worktree and for a folder that is gone: a known project keeps its root.
    #[serde(default)]
    pub is_secondary: bool,
}

/// Events for tests; every field not given is empty.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// An event in a Claude Code session.
    pub fn event(session: &str, at: Millis, what: EventKind) -> Event {
        Event {
            platform: Platform::ClaudeCode,
            session: session.into(),
            at,
            time: None,
            cwd: None,
            project: None,
            repository_url: None,
            transcript: None,
            transcript_length: None,
            usage: None,
            prompt: None,
            agent: None,
            what,
        }
    }

    /// A tool use with a command's text or a file's path.
    pub fn tool(kind: Kind, what: &str, succeeded: bool) -> ToolUse {
        let is_command = kind == Kind::Command;
        ToolUse {
            id: None,
            name: "Tool".into(),
            kind,
            command: is_command.then(|| crate::command_kind::classify(what)),
            path: (!is_command).then(|| what.to_string()),
            repository: None,
            content: is_command.then(|| what.to_string()),
            input: None,
            outcome: None,
            succeeded: Some(succeeded),
            source_event: "PostToolUse".into(),
            metadata: Metadata::default(),
            tasks: None,
            ended: None,
        }
    }
}

spelled! {
/// The agent or editor in which the work happens.
Platform, default Custom {
    ClaudeCode = "claude-code",
    Codex = "codex",
    Cursor = "cursor",
    VsCode = "vscode",
    CopilotCli = "copilot-cli",
    Gemini = "gemini",
    OpenCode = "opencode",
    QwenCode = "qwen-code",
    Droid = "droid",
    GrokBuild = "grok-build",
    Kilo = "kilo",
    Pi = "pi",
    KimiCode = "kimi-code",
    Cline = "cline",
    MistralVibe = "mistral-vibe",
    Aider = "aider",
    Amp = "amp",
    Continue = "continue",
    Crush = "crush",
    Goose = "goose",
    Roo = "roo",
    Zed = "zed",
    /// Any other agent that runs Claude Code's hooks.
    Other = "other",
    /// Any other program, through the RAD protocol.
    Custom = "custom",
}
}

impl Platform {
    /// Returns the display name.
    pub fn title(self) -> &'static str {
        match self {
            Platform::ClaudeCode => "Claude Code",
            Platform::Codex => "Codex",
            Platform::Cursor => "Cursor",
            Platform::VsCode => "VS Code",
            Platform::CopilotCli => "Copilot CLI",
            Platform::Gemini => "Gemini CLI",
            Platform::OpenCode => "OpenCode",
            Platform::QwenCode => "Qwen Code",
            Platform::Droid => "Droid",
            Platform::GrokBuild => "Grok Build",
            Platform::Kilo => "Kilo CLI",
            Platform::Pi => "Pi",
            Platform::KimiCode => "Kimi Code",
            Platform::Cline => "Cline",
            Platform::MistralVibe => "Mistral Vibe",
            Platform::Aider => "Aider",
            Platform::Amp => "Amp",
            Platform::Continue => "Continue",
            Platform::Crush => "Crush",
            Platform::Goose => "Goose",
            Platform::Roo => "Roo",
            Platform::Zed => "Zed",
            Platform::Other => "another agent",
            Platform::Custom => "another program",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_text_of_answers_holds_them(given in proptest::collection::vec(("[a-z?]{1,9}( [a-z]{1,5})?", proptest::collection::vec("[a-z,-]{1,9}", 0..4), "[a-z][a-z> -]{0,18}[a-z](\n[a-z]{1,9})?"), 0..4)) {
            let answers: Vec<UserAnswer> =
                given.into_iter().map(|(question, options, text)| UserAnswer { question, options, text }).collect();
            prop_assert_eq!(UserAnswer::parse(&UserAnswer::to_text(&answers)), answers);
        }
    }
}
