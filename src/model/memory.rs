//! Memories: their kinds, the findings of the rules, drafts, and the domain that names their types.

use super::texts::each_field;
use super::{FAILURE, Limit, Millis, NAME, TeamOrigin, Texts};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

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
    /// A fix, a way or a choice that did not help.
    Tried = "tried",
    /// Something that is known to be left: open until it is done or dropped.
    Open = "open",
    Task = "task",
    /// A custom type that a program defines, named in `type`.
    Entity = "entity",
}
}

/// Properties of a memory kind, which code asks instead of comparing kinds.
#[derive(Clone, Copy, Debug)]
pub struct KindProperties {
    /// It holds for later work until something supersedes or contradicts it.
    pub is_lasting: bool,
    /// It reports a whole unit, so it repeats what the unit's other memories say.
    pub is_summary: bool,
    /// Readers know it by its type (`bugfix`), not by its kind.
    pub is_named_by_type: bool,
    /// Word for its origin, as in "decided by the user".
    pub origin: Option<&'static str>,
}

const PLAIN: KindProperties = KindProperties { is_lasting: false, is_summary: false, is_named_by_type: false, origin: None };

impl MemoryKind {
    /// Kinds that are lasting.
    pub const LASTING: [MemoryKind; 2] = [MemoryKind::Decision, MemoryKind::Lesson];

    /// Returns the properties of the kind.
    pub const fn properties(self) -> KindProperties {
        match self {
            MemoryKind::Observation => KindProperties { is_named_by_type: true, ..PLAIN },
            MemoryKind::Summary => KindProperties { is_summary: true, ..PLAIN },
            MemoryKind::Decision => KindProperties { is_lasting: true, origin: Some("decided"), ..PLAIN },
            MemoryKind::Lesson => KindProperties { is_lasting: true, origin: Some("learnt"), ..PLAIN },
            MemoryKind::Tried | MemoryKind::Open | MemoryKind::Task | MemoryKind::Entity => PLAIN,
        }
    }

    pub const fn is_lasting(self) -> bool {
        self.properties().is_lasting
    }

    pub const fn is_summary(self) -> bool {
        self.properties().is_summary
    }

    /// Whether it says something that was found, done, tried or left.
    pub const fn is_finding(self) -> bool {
        matches!(self, MemoryKind::Observation | MemoryKind::Tried | MemoryKind::Open)
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
    /// The agent, in the notes at the end of a message.
    Agent,
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
            Maker::Agent => "agent",
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
            "agent" => Maker::Agent,
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
    /// Notes of the agent.
    pub by_agent: Vec<Draft>,
    /// Summaries of earlier units, each with new notes that omit the checks that have passed since.
    pub notes: Vec<(i64, String)>,
    /// Open ends of earlier units that the unit's work has ended.
    pub ended: Vec<i64>,
}

impl Texts for UnitDrafts {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut String, Limit)) {
        self.title.iter_mut().for_each(|title| visit(title, TITLE));
        self.drafts.texts(visit);
        self.by_agent.texts(visit);
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

/// The way in which an open end ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The work of a unit did it.
    Unit(i64),
    /// A person says that it is done.
    Done,
    /// A person does not want it any more.
    Dropped,
}

impl Ending {
    /// Returns the text that is stored: `u12`, `done`, `dropped`.
    pub fn to_text(self) -> String {
        match self {
            Ending::Unit(unit) => format!("u{unit}"),
            Ending::Done => "done".into(),
            Ending::Dropped => "dropped".into(),
        }
    }
}

/// Trust in a memory's author, from the least. Blocks, search and the page show memories in its order where nothing else
/// decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trust {
    Rules,
    /// The agent's notes, a language model, another program.
    Agent,
    /// A person wrote, changed or pinned it.
    Person,
}

impl Trust {
    /// Factor for the score of a search hit.
    pub fn factor(self) -> f64 {
        match self {
            Trust::Rules => 1.0,
            Trust::Agent => 1.15,
            Trust::Person => 1.3,
        }
    }
}

impl Maker {
    /// Trust in what it creates.
    pub fn trust(&self) -> Trust {
        match self {
            Maker::Hand => Trust::Person,
            Maker::Agent | Maker::Model(_) | Maker::Program => Trust::Agent,
            Maker::Rules => Trust::Rules,
        }
    }
}

/// A decision or lesson, without what takes long to read.
#[derive(Clone, Debug)]
pub struct SettledHead {
    pub id: i64,
    pub kind: MemoryKind,
    pub title: String,
    pub provenance: Provenance,
    pub made_by: Maker,
    pub by_hand: bool,
    pub unit: Option<i64>,
    /// It is about one of the files that were asked for.
    pub is_about_files: bool,
}

/// Field of a decision's content with the kind of text that states it, and its value for a plan.
pub const STATED_IN: &str = "stated_in";
pub const IN_PLAN: &str = "plan";

impl MemoryRow {
    /// Whether it is an open end that nothing has ended.
    pub fn is_open(&self) -> bool {
        self.kind == MemoryKind::Open && self.superseded_by.is_none() && !self.has_ended()
    }

    /// Whether it is an open end that a unit or a person has ended.
    pub fn has_ended(&self) -> bool {
        self.kind == MemoryKind::Open && self.content.contains_key("ended")
    }

    /// Whether it says what was decided, or what the user wants.
    pub fn is_decision(&self) -> bool {
        self.kind == MemoryKind::Decision || self.finds(Finding::Decision) || self.finds(Finding::Constraint)
    }

    /// Whether it says what was tried in vain.
    pub fn is_tried(&self) -> bool {
        self.finds(Finding::Tried) || self.finds(Finding::FailedApproach)
    }

    fn finds(&self, finding: Finding) -> bool {
        self.kind_type.as_deref() == Some(finding.name())
    }

    /// Trust in its author. What another person shared is trusted as its team settings say, not by its author here.
    pub fn trust(&self) -> Trust {
        if self.by_hand || self.pinned { Trust::Person } else { self.made_by.trust() }
    }

    /// Whether somebody shared it whom the user does not trust.
    pub fn is_of_stranger(&self) -> bool {
        self.is_of_team() && !self.team.as_ref().is_some_and(|team| team.is_trusted)
    }

    /// Whether another person shared it with the team.
    pub fn is_of_team(&self) -> bool {
        self.provenance == Provenance::Team
    }

    /// Whether it is part of a plan that the user ordered: the agent may have written the words.
    pub fn is_from_plan(&self) -> bool {
        self.text(STATED_IN) == Some(IN_PLAN)
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
/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingLevel {
    Good,
    /// Worth knowing; nothing is broken.
    Note,
    Problem,
}

impl FindingLevel {
    /// Returns the word that is printed.
    pub fn name(self) -> &'static str {
        match self {
            FindingLevel::Good => "ok",
            FindingLevel::Note => "note",
            FindingLevel::Problem => "problem",
        }
    }
}

/// The result of one check.
#[derive(Clone, Debug)]
pub struct DoctorFinding {
    pub about: &'static str,
    pub level: FindingLevel,
    pub what: String,
    /// The suggested action, if any.
    pub remedy: Option<String>,
    pub fixed: bool,
}

impl DoctorFinding {
    /// A check that passed.
    pub fn good(about: &'static str, what: impl Into<String>) -> DoctorFinding {
        DoctorFinding { about, level: FindingLevel::Good, what: what.into(), remedy: None, fixed: false }
    }

    /// Something worth knowing.
    pub fn note(about: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> DoctorFinding {
        DoctorFinding { about, level: FindingLevel::Note, what: what.into(), remedy: Some(remedy.into()), fixed: false }
    }

    /// Something broken.
    pub fn problem(about: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> DoctorFinding {
        DoctorFinding { level: FindingLevel::Problem, ..DoctorFinding::note(about, what, remedy) }
    }

    /// Marks a problem as fixed.
    pub fn fixed(mut self) -> DoctorFinding {
        self.fixed = true;
        self
    }
}

spelled! {
/// A finding of the rules in a session. A domain's preset defines the kind of memory that each finding becomes.
Finding, default Discovery {
    /// The user chose something, possibly over an alternative.
    Decision = "decision",
    /// The user wants something done this way from now on.
    Constraint = "constraint",
    /// The user wants something remembered.
    Reminder = "reminder",
    /// A problem, its cause and its solution.
    Fix = "fix",
    Feature = "feature",
    Refactor = "refactor",
    Change = "change",
    /// The reason for the current state; nothing was changed.
    Cause = "cause",
    /// A pitfall or a known limit.
    Limit = "limit",
    Discovery = "discovery",
    /// A command that failed several times and never succeeded.
    FailedApproach = "failed-approach",
    /// A command that succeeded after another command of the same program had failed.
    WorkingCommand = "working-command",
    /// A fix or a choice that did not help. The same kind in every domain.
    Tried = "tried",
    /// Something that is left to do or to check. The same kind in every domain.
    Open = "open",
}
}

impl Finding {
    /// The kind of memory that it becomes in every domain; `None` if the domain's preset says so.
    pub fn own_kind(self) -> Option<MemoryKind> {
        match self {
            Finding::Tried => Some(MemoryKind::Tried),
            Finding::Open => Some(MemoryKind::Open),
            _ => None,
        }
    }
}

fn observation() -> MemoryKind {
    MemoryKind::Observation
}

/// The memory that a finding becomes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Becomes {
    /// `observation`, `decision` or `lesson`.
    #[serde(default = "observation")]
    pub kind: MemoryKind,
    /// A type of the domain for an observation, otherwise a type of the kind.
    #[serde(default, rename = "type")]
    pub kind_type: Option<String>,
    #[serde(default)]
    pub concepts: Vec<String>,
}

/// A domain as its preset file defines it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Domain {
    pub name: String,
    /// One-line description of the work.
    pub about: String,
    /// Tools whose calls are not recorded.
    #[serde(default)]
    pub skip_tools: Vec<String>,
    /// Globs of files that distilling ignores.
    #[serde(default)]
    pub ignore: Vec<String>,
    /// Types of observations. Each observation has one.
    #[serde(rename = "type")]
    pub types: Vec<Term>,
    /// Concepts to tag observations with. Each has 2 to 5.
    #[serde(rename = "concept")]
    pub concepts: Vec<Term>,
    /// The memory that each finding of the rules becomes, by [`Finding::name`].
    #[serde(default)]
    pub findings: BTreeMap<String, Becomes>,
    /// Fields of an observation in addition to the common ones.
    #[serde(default, rename = "field")]
    pub fields: Vec<Field>,
    /// Schemas of custom entity types.
    #[serde(default, rename = "entity")]
    pub entities: Vec<EntityType>,
    /// The contents of each section of a summary.
    pub summary: Sections,
    pub prompts: Prompts,
}

/// A type or a concept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Term {
    pub name: String,
    pub meaning: String,
    /// An example, in domain files from before ADR/0055. Models no longer receive it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hint: String,
    /// In presets from before `[findings]`: names of the rule results that get this type or concept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
}

/// A field that this domain adds to observations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    pub name: String,
    /// `text`, `list`, `numbers` or `date`.
    pub kind: String,
    pub meaning: String,
}

/// An entity type that programs record (RAD protocol).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntityType {
    pub name: String,
    /// JSON Schema of its content, as JSON.
    pub schema: String,
}

/// The contents of each section of a summary in this domain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sections {
    pub request: String,
    pub investigated: String,
    pub learned: String,
    pub completed: String,
    pub next_steps: String,
    pub notes: String,
}

/// Instructions for the model. The answer format is fixed and not part of a preset.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prompts {
    /// The model's role and what to record.
    pub observer: String,
    /// A shorter version of `observer`, for later units of a session.
    pub continuation: String,
    /// The purpose of a summary.
    pub summary: String,
}

/// A domain's TOML file, as stored.
#[derive(Clone, Debug)]
pub struct DomainText(pub String);

impl Texts for DomainText {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut String, Limit)) {
        visit(&mut self.0, Limit(64 * 1024));
    }
}

impl Domain {
    /// Returns the memory that a finding becomes; by default an observation of the first type.
    pub fn becomes(&self, finding: Finding) -> Becomes {
        if let Some(kind) = finding.own_kind() {
            return Becomes { kind, kind_type: None, concepts: Vec::new() };
        }
        let kind_type = || self.types.first().map(|term| term.name.clone());
        let first = || Becomes { kind: MemoryKind::Observation, kind_type: kind_type(), concepts: Vec::new() };
        self.findings.get(finding.name()).cloned().unwrap_or_else(first)
    }

    /// Whether observations have a field with this name.
    pub fn has_field(&self, name: &str) -> bool {
        self.fields.iter().any(|field| field.name == name)
    }
}
