//! A domain: what kind of work it is, and so what is worth remembering of it (DESIGN §1, the observation protocol).

use super::{Limit, Texts};
use serde::{Deserialize, Serialize};

/// A domain, as its preset file says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Domain {
    pub name: String,
    /// What the work is, in one line.
    pub about: String,
    /// Tools whose calls say nothing about the work.
    #[serde(default)]
    pub skip_tools: Vec<String>,
    /// Globs of files that are not worth remembering.
    #[serde(default)]
    pub ignore: Vec<String>,
    /// What an observation can be; each is of one type.
    #[serde(rename = "type")]
    pub types: Vec<Term>,
    /// Under what it is filed; each observation has 2 to 5.
    #[serde(rename = "concept")]
    pub concepts: Vec<Term>,
    /// Fields of an observation beyond those that all domains have.
    #[serde(default, rename = "field")]
    pub fields: Vec<Field>,
    /// What entities of a type of one's own hold.
    #[serde(default, rename = "entity")]
    pub entities: Vec<EntityType>,
    /// What each section of a summary tells.
    pub summary: Sections,
    pub prompts: Prompts,
}

/// A type or a concept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Term {
    pub name: String,
    pub meaning: String,
    /// How one is recognised, or an example.
    #[serde(default)]
    pub hint: String,
    /// What rules find that is filed here: `fix`, `mechanism`, … (ADR/0019).
    #[serde(default)]
    pub rules: Vec<String>,
}

/// A field of a domain's own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    pub name: String,
    /// `text`, `list`, `numbers` or `date`.
    pub kind: String,
    pub meaning: String,
}

/// A type of entities that programs record (RAD protocol).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntityType {
    pub name: String,
    /// JSON Schema of its content, as JSON.
    pub schema: String,
}

/// What each section of a summary tells in this domain.
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

/// What a model is told (DESIGN §6). The form of its answer is nmem's own and stands in no preset.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prompts {
    /// Who the observer is and what is worth recording.
    pub observer: String,
    /// The same for later units of a session, shorter.
    pub continuation: String,
    /// What a summary is for.
    pub summary: String,
}

/// A domain's file, as it is stored.
#[derive(Clone, Debug)]
pub struct DomainText(pub String);

impl Texts for DomainText {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut String, Limit)) {
        visit(&mut self.0, Limit(64 * 1024));
    }
}

impl Domain {
    /// The type that what rules found is filed under; the first one where none asks for it.
    pub fn type_for(&self, found: &str) -> Option<&str> {
        let named = self.types.iter().find(|term| term.rules.iter().any(|rule| rule == found));
        named.or(self.types.first()).map(|term| term.name.as_str())
    }

    /// The concept that what rules found is filed under.
    pub fn concept_for(&self, found: &str) -> Option<&str> {
        let named = self.concepts.iter().find(|term| term.rules.iter().any(|rule| rule == found));
        named.map(|term| term.name.as_str())
    }

    /// Whether observations have a field of this name.
    pub fn has_field(&self, name: &str) -> bool {
        self.fields.iter().any(|field| field.name == name)
    }
}
