//! A domain: the kind of work, and so what is worth remembering about it (the observation protocol).

use super::spelled::spelled;
use super::{Limit, MemoryKind, Texts};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

spelled! {
/// What rules find in a session. A domain's preset says what kind of memory each becomes.
Finding, default Discovery {
    /// The user chose something, perhaps over something else.
    Decision = "decision",
    /// The user wants it so from now on.
    Constraint = "constraint",
    /// The user wants it remembered.
    Reminder = "reminder",
    /// A problem, its cause, and what ended it.
    Fix = "fix",
    Feature = "feature",
    Refactor = "refactor",
    Change = "change",
    /// Why something is as it is; nothing was changed.
    Cause = "cause",
    /// A trap or a known limit.
    Limit = "limit",
    Discovery = "discovery",
    /// A command that failed several times and never passed.
    FailedApproach = "failed-approach",
    /// A command that works after another of its program failed.
    WorkingCommand = "working-command",
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
    /// A type of the domain if it is an observation, else one of the kind's own.
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
    /// What the work is, in one line.
    pub about: String,
    /// Tools whose calls are not recorded.
    #[serde(default)]
    pub skip_tools: Vec<String>,
    /// Globs of files that are not worth remembering.
    #[serde(default)]
    pub ignore: Vec<String>,
    /// Types of observations. Each observation has one.
    #[serde(rename = "type")]
    pub types: Vec<Term>,
    /// Concepts to tag observations with. Each has 2 to 5.
    #[serde(rename = "concept")]
    pub concepts: Vec<Term>,
    /// What each finding of the rules becomes, by [`Finding::name`].
    #[serde(default)]
    pub findings: BTreeMap<String, Becomes>,
    /// Fields of an observation in addition to the common ones.
    #[serde(default, rename = "field")]
    pub fields: Vec<Field>,
    /// Schemas of custom entity types.
    #[serde(default, rename = "entity")]
    pub entities: Vec<EntityType>,
    /// What each section of a summary contains.
    pub summary: Sections,
    pub prompts: Prompts,
}

/// A type or a concept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Term {
    pub name: String,
    pub meaning: String,
    /// Domain files from before ADR/0055: an example, which models no longer get.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hint: String,
    /// Presets from before `[findings]`: names of what gets this type or concept.
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

/// What each section of a summary contains in this domain.
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

/// Instructions for the model. The form of its answer is fixed and not part of a preset.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prompts {
    /// The model's role and what is worth recording.
    pub observer: String,
    /// The same, shorter, for later units of a session.
    pub continuation: String,
    /// What a summary is for.
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
    /// What a finding becomes; an observation of the first type if the preset does not say.
    pub fn becomes(&self, finding: Finding) -> Becomes {
        let kind_type = || self.types.first().map(|term| term.name.clone());
        let first = || Becomes { kind: MemoryKind::Observation, kind_type: kind_type(), concepts: Vec::new() };
        self.findings.get(finding.name()).cloned().unwrap_or_else(first)
    }

    /// Whether observations have a field with this name.
    pub fn has_field(&self, name: &str) -> bool {
        self.fields.iter().any(|field| field.name == name)
    }
}
