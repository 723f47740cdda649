//! A domain: the kind of work, and so what is worth remembering about it (the observation protocol).

use super::{Limit, Texts};
use serde::{Deserialize, Serialize};

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
    /// How to recognise it, or an example.
    #[serde(default)]
    pub hint: String,
    /// Names of rule findings that get this type or concept: `fix`, `mechanism`, … (ADR/0019).
    #[serde(default)]
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
    /// The type for a rule finding; the first type if none claims it.
    pub fn type_for(&self, found: &str) -> Option<&str> {
        let named = self.types.iter().find(|term| term.rules.iter().any(|rule| rule == found));
        named.or(self.types.first()).map(|term| term.name.as_str())
    }

    /// The concept for a rule finding.
    pub fn concept_for(&self, found: &str) -> Option<&str> {
        let named = self.concepts.iter().find(|term| term.rules.iter().any(|rule| rule == found));
        named.map(|term| term.name.as_str())
    }

    /// Whether observations have a field with this name.
    pub fn has_field(&self, name: &str) -> bool {
        self.fields.iter().any(|field| field.name == name)
    }
}
