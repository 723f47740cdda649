//! A domain: the kind of work, which determines what to remember about it (the observation protocol).

use super::spelled::spelled;
use super::{Limit, MemoryKind, Texts};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
        let kind_type = || self.types.first().map(|term| term.name.clone());
        let first = || Becomes { kind: MemoryKind::Observation, kind_type: kind_type(), concepts: Vec::new() };
        self.findings.get(finding.name()).cloned().unwrap_or_else(first)
    }

    /// Whether observations have a field with this name.
    pub fn has_field(&self, name: &str) -> bool {
        self.fields.iter().any(|field| field.name == name)
    }
}
