//! Rows as they are read from the store: tool uses, prompts, commands and errors, and rows of an export.

use super::texts::each_text;
use super::{Client, CommandKind, Kind, Limit, MemoryKind, MemoryRow, Millis, Platform, Task, TeamOrigin, Texts, UnitRow};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Facts about a repository, read from its files (`repo_metadata` of the RAD memory specification).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// `workspace`, `web application`, `application`, `library`, `documents`
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub project_type: Option<String>,
    /// Most used first.
    pub languages: Vec<String>,
    pub frameworks: Vec<String>,
}

/// A project as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct ProjectRow {
    pub id: i64,
    pub name: String,
    pub repo_url: Option<String>,
    /// The worktree in which it was last seen.
    pub root: String,
    pub created_at: Millis,
    /// Facts about it, and the time at which they were read.
    pub about: Option<(About, Millis)>,
}

/// A session as stored.
#[derive(Clone, Debug)]
pub struct SessionRow {
    pub id: i64,
    pub project: Option<String>,
    pub platform: Platform,
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

spelled! {
/// Author of a text.
PromptSource, default Agent {
    User = "user",
    Agent = "agent",
}
}

spelled! {
/// Kind of a text.
PromptKind, default Thinking {
    Prompt = "prompt",
    /// Answers of the user to questions of the agent.
    Answer = "answer",
    /// A prompt that the user took back, or a text that belongs to one.
    TakenBack = "taken-back",
    Closing = "closing",
    Thinking = "thinking",
}
}

/// A prompt, or a text of the agent, as stored.
#[derive(Clone, Debug)]
pub struct PromptRow {
    pub id: i64,
    pub session_id: i64,
    pub number: i64,
    pub source: PromptSource,
    pub kind: PromptKind,
    pub agent_id: Option<String>,
    pub text: String,
    pub received_at: Millis,
}

/// A tool use as stored.
#[derive(Clone, Debug)]
pub struct ToolUseRow {
    pub id: i64,
    pub session_id: i64,
    pub seq: i64,
    pub prompt_id: Option<i64>,
    pub tool_use_id: Option<String>,
    pub received_at: Millis,
    pub tool_name: String,
    pub kind: Kind,
    pub command_kind: Option<CommandKind>,
    pub path: Option<String>,
    pub content: Option<String>,
    pub input: Option<String>,
    pub outcome: Option<String>,
    pub succeeded: Option<bool>,
    /// The JSON of [`Metadata`](super::Metadata).
    pub metadata: serde_json::Value,
}

impl ToolUseRow {
    /// Whether it changes files.
    pub fn is_edit(&self) -> bool {
        matches!(self.kind, Kind::Edit | Kind::Write)
    }

    /// Whether it is a test, a build or a linter.
    pub fn is_check(&self) -> bool {
        matches!(self.command_kind, Some(CommandKind::Test | CommandKind::Build | CommandKind::Lint))
    }
}

/// A stored item that a short id refers to.
#[derive(Clone, Debug)]
pub enum StoredItem {
    Session(Box<SessionRow>),
    Unit(Box<UnitRow>),
    Prompt(PromptRow),
    ToolUse(Box<ToolUseRow>),
    Memory(Box<MemoryRow>),
}

/// Ids of rows to delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deletion {
    pub prompts: Vec<i64>,
    pub tool_uses: Vec<i64>,
    /// Requested memories. Memories derived from deleted rows are distilled again.
    pub memories: Vec<i64>,
    /// The memories were named individually, so rules must not create them again.
    pub dismissed: bool,
    /// Number of memories derived from deleted rows; they are distilled again from what remains.
    pub drawn: usize,
    /// Sessions to delete completely, and the ids that agents assigned to them.
    pub sessions: Vec<i64>,
    pub session_ids: Vec<String>,
    /// Sessions that lose some of their rows.
    pub touched: Vec<i64>,
    /// Sessions that lose entries of their task list.
    pub task_lists: Vec<i64>,
    pub projects: Vec<i64>,
    pub project_names: Vec<String>,
}

impl Deletion {
    /// Whether nothing would be deleted.
    pub fn is_empty(&self) -> bool {
        *self == Deletion::default()
    }
}

/// Counts for `nmem status`.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    pub projects: i64,
    pub sessions: i64,
    pub prompts: i64,
    pub tool_uses: i64,
    pub work_units: i64,
    pub memories: i64,
}

/// A platform's last event.
#[derive(Clone, Debug)]
pub struct LastEvent {
    pub platform: Platform,
    pub at: Millis,
}

/// The projects that a question is about: those of a folder, or all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchScope {
    /// Empty: all projects.
    pub projects: Vec<i64>,
}

impl SearchScope {
    /// One project.
    pub fn of(project: i64) -> SearchScope {
        SearchScope { projects: vec![project] }
    }

    /// One project; `None` is all.
    pub fn of_any(project: Option<i64>) -> SearchScope {
        SearchScope { projects: project.into_iter().collect() }
    }

    /// Whether it is not restricted.
    pub fn is_all(&self) -> bool {
        self.projects.is_empty()
    }

    /// The projects as JSON, for a query; `None` is all.
    pub fn json(&self) -> Option<String> {
        (!self.is_all()).then(|| serde_json::to_string(&self.projects).unwrap_or_default())
    }
}

/// Restricts a search.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub scope: SearchScope,
    pub platform: Option<String>,
    pub since: Option<Millis>,
    pub until: Option<Millis>,
    /// A path, or a suffix of one.
    pub file: Option<String>,
    /// A memory's type and concept.
    pub kind_type: Option<String>,
    pub concept: Option<String>,
    /// Memory kinds; empty: all.
    pub memories: Vec<MemoryKind>,
    /// The agent's id of a session to leave out.
    pub without_session: Option<String>,
    /// Time of the question: a prompt that is being answered then is left out, since it asks the same.
    pub asked_at: Option<Millis>,
}

/// Kind of a search hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HitKind {
    Memory,
    /// A work unit.
    Unit,
    Prompt,
    Tool,
}

impl HitKind {
    pub const ALL: [HitKind; 4] = [HitKind::Memory, HitKind::Unit, HitKind::Prompt, HitKind::Tool];

    /// Whether rows of this kind can pass the filter at all.
    pub fn passes(self, filter: &Filter) -> bool {
        match self {
            HitKind::Memory => true,
            HitKind::Prompt => filter.file.is_none() && filter.kind_type.is_none() && filter.concept.is_none(),
            HitKind::Unit | HitKind::Tool => filter.kind_type.is_none() && filter.concept.is_none(),
        }
    }
}

/// Kind of text that has passages in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextKind {
    /// A prompt or a closing message.
    Message,
    Memory,
    /// The message of a commit, under its tool use.
    Commit,
    /// The title of a unit.
    Unit,
}

impl TextKind {
    pub const ALL: [TextKind; 4] = [TextKind::Message, TextKind::Memory, TextKind::Commit, TextKind::Unit];

    /// The kind of a hit in such a text.
    pub fn hit(self) -> HitKind {
        match self {
            TextKind::Message => HitKind::Prompt,
            TextKind::Memory => HitKind::Memory,
            TextKind::Commit => HitKind::Tool,
            TextKind::Unit => HitKind::Unit,
        }
    }
}

/// A text that has passages: its kind and its row, as `row * 4 + kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextId(pub i64);

impl TextId {
    pub fn new(kind: TextKind, row: i64) -> TextId {
        TextId(row * TextKind::ALL.len() as i64 + kind as i64)
    }

    pub fn kind(self) -> TextKind {
        TextKind::ALL[(self.0 % TextKind::ALL.len() as i64) as usize]
    }

    pub fn row(self) -> i64 {
        self.0 / TextKind::ALL.len() as i64
    }
}

/// A passage of a text, as `text * 64 + number`: the row of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PassageId(pub i64);

impl PassageId {
    /// Maximum passages of a text.
    pub const MAX: usize = 64;

    pub fn new(text: TextId, number: usize) -> PassageId {
        PassageId(text.0 * PassageId::MAX as i64 + number as i64)
    }

    pub fn text(self) -> TextId {
        TextId(self.0 / PassageId::MAX as i64)
    }

    /// Its number in its text, from 0.
    pub fn number(self) -> usize {
        (self.0 % PassageId::MAX as i64) as usize
    }
}

/// A message of a session, as ranking needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageSize {
    pub text: TextId,
    pub bytes: usize,
}

/// The sessions of some texts.
#[derive(Clone, Debug, Default)]
pub struct SessionsAround {
    /// The messages of each session, in order.
    pub sessions: Vec<Vec<MessageSize>>,
    /// Index of a text's session.
    pub of: HashMap<TextId, usize>,
}

spelled! {
/// The fit of an answer to its question.
Grade, default None {
    Strong = "strong",
    Weak = "weak",
    None = "none",
}
}

/// Passages with a word, with their BM25 scores.
pub type WithWord = HashMap<PassageId, f64>;

/// A search hit.
#[derive(Clone, Debug)]
pub struct Hit {
    pub kind: HitKind,
    pub id: i64,
    /// `user` or `agent` for prompts; the tool's kind for tool uses; a memory's type.
    pub what: String,
    /// The prompt's text; the command, pattern or path; a memory's title.
    pub text: String,
    /// Other searched text: description and error of a tool use.
    pub more: String,
    pub path: Option<String>,
    pub succeeded: Option<bool>,
    pub project: Option<String>,
    /// The session id assigned by the agent.
    pub session: String,
    pub platform: String,
    pub at: Millis,
    pub unit: Option<i64>,
    pub concepts: Vec<String>,
    pub files: Vec<String>,
    /// The creator of a memory: rules, a person or a model. `None` for a team's memory.
    pub made_by: Option<String>,
    /// The member of the team who shared a memory.
    pub team: Option<TeamOrigin>,
    /// `prompt`, `tool`, or the memory's kind.
    pub name: String,
    /// The passage that matches, if the query had words.
    pub passage: Option<String>,
    /// Higher is better; comparable within one search only.
    pub score: f64,
}

/// Minimum likeness of a past error to one that is asked for, to be the same one.
const SAME_ERROR: f64 = 0.8;

impl PastError {
    /// Strong if it is the same error, whatever its paths and numbers.
    pub fn grade(&self) -> Grade {
        if self.likeness >= SAME_ERROR { Grade::Strong } else { Grade::Weak }
    }
}

impl CommandForm {
    /// Strong if a call of this form has succeeded.
    pub fn grade(&self) -> Grade {
        if self.succeeded > 0 { Grade::Strong } else { Grade::Weak }
    }
}

/// An error that occurred before.
#[derive(Clone, Debug, PartialEq)]
pub struct PastError {
    /// Normalised text by which equal errors are recognised: without paths, numbers and quoted names.
    pub signature: String,
    /// Similarity to the error in question; 1 if both have the same words.
    pub likeness: f64,
    pub at: Millis,
    /// The session id assigned by the agent.
    pub session: String,
    pub unit: Option<i64>,
    pub command: String,
    /// The output line that reports the error.
    pub error: String,
    /// The resolution; `None` if the session did not resolve the error.
    pub ended_by: Option<ErrorEnding>,
}

/// The resolution of an error.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ErrorEnding {
    /// The command that succeeded afterwards.
    pub command: String,
    /// Files changed before that command, relative to the project.
    pub files: Vec<String>,
    /// Id and subject of the next commit.
    pub commit: Option<String>,
    /// Text about the error in a memory of the same unit, with the memory's id.
    pub text: Option<(String, i64)>,
}

/// A form in which a program is called.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandForm {
    /// The newest successful call of this form, or the newest call if none succeeded.
    pub command: String,
    pub succeeded: usize,
    pub failed: usize,
    /// True if it succeeded right after another form had failed.
    pub worked_instead: bool,
    pub last_at: Millis,
    pub unit: Option<i64>,
}

/// Version of the export format. A reader rejects later versions.
pub const ARCHIVE: i64 = 2;
/// Maximum bytes of a text in a row. Texts were already truncated when they were first stored.
const WHOLE: Limit = Limit(4 << 20);

/// Exported tables, in the order in which they are written: a row comes after the rows it refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    Domains,
    /// Projects, each with its keys.
    Projects,
    Sessions,
    Prompts,
    WorkUnits,
    /// Steps, each with its files.
    Steps,
    Boundaries,
    ToolUses,
    Dismissed,
    Injections,
    /// Entities of the RAD protocol; columns specific to nmem are in `row`.
    Memories,
    Spend,
}

impl Table {
    pub const ALL: [Table; 12] = [
        Table::Domains,
        Table::Projects,
        Table::Sessions,
        Table::Prompts,
        Table::WorkUnits,
        Table::Steps,
        Table::Boundaries,
        Table::ToolUses,
        Table::Dismissed,
        Table::Injections,
        Table::Memories,
        Table::Spend,
    ];

    /// Returns the table's name in the database, which is also the value of the JSON key `table`.
    pub fn name(self) -> &'static str {
        match self {
            Table::Domains => "domains",
            Table::Projects => "projects",
            Table::Sessions => "sessions",
            Table::Prompts => "prompts",
            Table::WorkUnits => "work_units",
            Table::Steps => "steps",
            Table::Boundaries => "boundaries",
            Table::ToolUses => "tool_uses",
            Table::Dismissed => "dismissed",
            Table::Injections => "injections",
            Table::Memories => "memories",
            Table::Spend => "spend",
        }
    }

    /// Finds a table by its current name, or by its name in version 1 of the format.
    pub fn from_name(name: &str) -> Option<Table> {
        let name = if name == "told" { "injections" } else { name };
        Table::ALL.into_iter().find(|table| table.name() == name)
    }

    /// Returns true for a column that identifies a row or contains one of a few fixed values. Such columns contain
    /// nothing private, and a redaction mark could make two rows equal.
    fn is_plain(name: &str) -> bool {
        matches!(
            name,
            "table"
                | "id"
                | "uuid"
                | "platform"
                | "agent_session_id"
                | "source_client"
                | "kind"
                | "type"
                | "state"
                | "outcome"
                | "source"
                | "features"
                | "hash"
                | "hashes"
                | "rule_key"
                | "item"
                | "point"
                | "tool_use_id"
                | "platform_prompt_id"
                | "agent_id"
                | "command_kind"
                | "source_event"
                | "made_by"
                | "provenance"
                | "entity_type"
                | "created_at"
                | "sources"
                | "superseded_by"
                | "vector"
                | "rules_mark"
                | "reason"
                | "signals"
                | "history"
                | "start_head"
                | "end_head"
                | "transcript_message"
                | "purpose"
        )
    }
}

/// A row of an export.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub table: Table,
    pub values: Map<String, Value>,
}

impl Texts for Row {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut String, Limit)) {
        // The outcome of a tool use is the tool's output, not one of nmem's fixed values.
        let is_outcome = |name: &str| self.table == Table::ToolUses && name == "outcome";
        for (name, value) in self.values.iter_mut().filter(|(name, _)| !Table::is_plain(name) || is_outcome(name)) {
            match value {
                Value::Object(own) if name == "row" => {
                    let own = own.iter_mut().filter(|(name, _)| !Table::is_plain(name));
                    own.for_each(|(name, value)| each_text(["", name], value, WHOLE, visit));
                }
                value => each_text(["", name], value, WHOLE, visit),
            }
        }
    }
}
