//! Memories, as drafts and as stored rows.

use super::fields::each_field;
use super::spelled::spelled;
use super::{FAILURE, Limit, Millis, NAME, TeamOrigin, Texts};
use serde::Serialize;
use serde_json::{Map, Value};

/// Maximum size of a title, which is one line.
pub const TITLE: Limit = Limit(300);
/// Maximum size of a subtitle, which has at most 24 words.
pub const SUBTITLE: Limit = Limit(400);
/// Maximum words of a subtitle (the observation protocol).
pub const SUBTITLE_WORDS: usize = 24;

/// Maximum size of a text in an entity. Longer texts are rejected, not truncated.
pub const ENTITY_TEXT: Limit = Limit(64 * 1024);

/// Types of decisions, lessons and tasks (RAD memory specification).
pub const DECISION_TYPES: [&str; 3] = ["approach", "technology", "architecture"];
pub const LESSON_TYPES: [&str; 4] = ["success", "failure", "optimization", "warning"];
pub const TASK_KINDS: [&str; 4] = ["feature", "bugfix", "refactor", "research"];

spelled! {
/// Kind of a memory.
MemoryKind, default Entity {
    /// Something worth remembering, extracted from tool uses.
    Observation = "observation",
    /// A checkpoint of a unit: what was requested, found and done, and what remains.
    Summary = "summary",
    Decision = "decision",
    Lesson = "lesson",
    Task = "task",
    /// A custom type that a program defines, named in `type`.
    Entity = "entity",
}
}

spelled! {
/// Origin of a memory's text. Tool output carries less weight than a user's statement.
Provenance, default Tool {
    User = "user",
    Agent = "agent",
    Tool = "tool",
    Team = "team",
}
}

/// The creator of a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Maker {
    Rules,
    /// A person.
    Hand,
    /// A program, through the RAD protocol.
    Program,
    /// A language model, by name.
    Model(String),
}

impl Maker {
    /// Returns its name in the database and in output.
    pub fn name(&self) -> &str {
        match self {
            Maker::Rules => "rules",
            Maker::Hand => "hand",
            Maker::Program => "custom",
            Maker::Model(name) => name,
        }
    }

    /// Whether it is a language model.
    pub fn is_model(&self) -> bool {
        matches!(self, Maker::Model(_))
    }
}

impl Serialize for Maker {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

impl From<String> for Maker {
    fn from(name: String) -> Maker {
        match name.as_str() {
            "rules" => Maker::Rules,
            "hand" => Maker::Hand,
            "custom" => Maker::Program,
            _ => Maker::Model(name),
        }
    }
}

/// A row that serves as evidence for a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    ToolUse(i64),
    Prompt(i64),
}

impl Source {
    /// Parses a short id.
    pub fn read(id: &str) -> Option<Source> {
        let (kind, number) = id.split_at_checked(1)?;
        let number = number.parse().ok()?;
        match kind {
            "t" => Some(Source::ToolUse(number)),
            "p" => Some(Source::Prompt(number)),
            _ => None,
        }
    }

    /// Row id, if it is a tool use.
    pub fn tool_use(self) -> Option<i64> {
        match self {
            Source::ToolUse(id) => Some(id),
            Source::Prompt(_) => None,
        }
    }

    /// The short id that `nmem show` accepts.
    pub fn id(self) -> String {
        match self {
            Source::ToolUse(id) => format!("t{id}"),
            Source::Prompt(id) => format!("p{id}"),
        }
    }
}

impl Serialize for Source {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.id())
    }
}

/// A file that a memory is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryFile {
    /// Relative to the root of the worktree.
    pub path: String,
    pub modified: bool,
    /// SHA-256 of its content after the unit's last edit: the first 16 bytes in hex.
    pub hash: Option<String>,
}

/// A memory before it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// Identifies the memory to its rule within a session; `None` for memories added by hand.
    pub key: Option<String>,
    pub kind: MemoryKind,
    pub kind_type: Option<String>,
    pub title: String,
    pub subtitle: Option<String>,
    pub body: Option<String>,
    /// `facts`, and the fields of its kind and domain.
    pub content: Map<String, Value>,
    pub concepts: Vec<String>,
    pub files: Vec<MemoryFile>,
    /// Number of the prompt in its session.
    pub prompt: Option<i64>,
    pub sources: Vec<Source>,
    pub provenance: Provenance,
    pub at: Millis,
    /// Tokens that the discovery cost, and whether they are estimated.
    pub tokens: Option<(i64, bool)>,
}

impl Texts for Draft {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut String, Limit)) {
        visit(&mut self.title, TITLE);
        for (text, limit) in [(&mut self.subtitle, SUBTITLE), (&mut self.body, FAILURE), (&mut self.kind_type, NAME)] {
            if let Some(text) = text {
                visit(text, limit);
            }
        }
        let limit = if self.kind == MemoryKind::Entity { ENTITY_TEXT } else { FAILURE };
        each_field(&mut self.content, "", limit, visit);
        self.concepts.iter_mut().for_each(|concept| visit(concept, NAME));
        self.files.iter_mut().for_each(|file| visit(&mut file.path, NAME));
    }
}

/// The drafts that result from distilling a unit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UnitDrafts {
    /// The result of the unit in one line, or the request if there is no result.
    pub title: Option<String>,
    pub drafts: Vec<Draft>,
    /// Summaries of earlier units, each with new notes that omit the checks that have passed since.
    pub notes: Vec<(i64, String)>,
}

impl Texts for UnitDrafts {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut String, Limit)) {
        self.title.iter_mut().for_each(|title| visit(title, TITLE));
        self.drafts.texts(visit);
        self.notes.iter_mut().for_each(|(_, notes)| visit(notes, FAILURE));
    }
}

impl<T: Texts> Texts for Vec<T> {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut String, Limit)) {
        self.iter_mut().for_each(|item| item.texts(visit));
    }
}

/// A record of a program (RADEntity of the RAD protocol).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entity {
    /// The uuid assigned by the program. Recording it again replaces the entity.
    pub uuid: Option<String>,
    /// A memory kind, or a name that the program chose.
    pub entity_type: String,
    pub title: Option<String>,
    pub subtitle: Option<String>,
    pub content: Map<String, Value>,
    pub concepts: Vec<String>,
    pub files_read: Vec<String>,
    pub files_modified: Vec<String>,
    pub tokens: Option<i64>,
    pub at: Millis,
}

/// A memory as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryRow {
    pub id: i64,
    pub uuid: String,
    pub kind: MemoryKind,
    pub kind_type: Option<String>,
    pub title: String,
    pub subtitle: Option<String>,
    pub body: Option<String>,
    pub content: Map<String, Value>,
    pub project_id: Option<i64>,
    pub project: Option<String>,
    pub session: Option<i64>,
    /// The session id assigned by the agent.
    pub agent_session_id: Option<String>,
    pub unit: Option<i64>,
    pub prompt: Option<i64>,
    pub sources: Vec<Source>,
    /// A platform, or the name of a program.
    pub platform: Option<String>,
    pub provenance: Provenance,
    pub made_by: Maker,
    pub tokens: Option<i64>,
    pub tokens_estimated: bool,
    pub created_at: Millis,
    pub pinned: bool,
    pub by_hand: bool,
    pub superseded_by: Option<i64>,
    pub concepts: Vec<String>,
    pub files: Vec<MemoryFile>,
    /// The origin of a team memory; `None` for other memories.
    pub team: Option<TeamOrigin>,
}

impl MemoryRow {
    /// Whether another person shared it with the team.
    pub fn is_of_team(&self) -> bool {
        self.provenance == Provenance::Team
    }

    /// A text field of its content.
    pub fn text(&self, field: &str) -> Option<&str> {
        self.content.get(field)?.as_str().filter(|text| !text.is_empty())
    }

    /// A list field of its content.
    pub fn list(&self, field: &str) -> Vec<&str> {
        self.content.get(field).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    }
}
