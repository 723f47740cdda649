//! A memory before its domain gives it a type and concepts.

use crate::choice::{Turn, capitalized};
use crate::model::{Domain, Draft, MemoryFile, MemoryKind, Provenance, Source};
use crate::rules::{Cue, Finding};
use crate::text::{alike, cut};
use serde_json::{Map, Value};

/// Characters of a title and of a fact.
const TITLE: usize = 160;
const FACT: usize = 400;
/// Bytes of title and facts together.
const BYTES: usize = 600;
const SOURCES: usize = 24;
const FILES: usize = 40;

/// A memory of one thing that was changed, found or decided.
#[derive(Clone, Debug)]
pub struct RuleMemory {
    /// Identifies it when the unit is distilled again.
    pub key: String,
    pub kind: MemoryKind,
    /// Of an observation: by what the domain finds its type.
    pub finding: Option<Finding>,
    /// Of other kinds: `warning`, `approach`, `bugfix`.
    pub kind_type: Option<String>,
    pub title: String,
    pub facts: Vec<String>,
    pub cues: Vec<Cue>,
    pub files: Vec<MemoryFile>,
    pub sources: Vec<Source>,
    pub provenance: Provenance,
    /// The turns that it is drawn from, as indexes; it belongs to the last one.
    pub turns: Vec<usize>,
    pub content: Map<String, Value>,
}

impl RuleMemory {
    /// An observation without facts.
    pub fn observation(key: String, finding: Finding, title: &str, turns: Vec<usize>) -> RuleMemory {
        RuleMemory {
            key,
            kind: MemoryKind::Observation,
            finding: Some(finding),
            kind_type: None,
            title: cut(title.trim_end_matches(['.', ' ', ':', ',']), TITLE),
            facts: Vec::new(),
            cues: Vec::new(),
            files: Vec::new(),
            sources: Vec::new(),
            provenance: Provenance::Agent,
            turns,
            content: Map::new(),
        }
    }

    /// A memory of another kind.
    pub fn of_kind(kind: MemoryKind, kind_type: Option<&str>, key: String, title: &str, turns: Vec<usize>) -> RuleMemory {
        let memory = RuleMemory::observation(key, Finding::Discovery, title, turns);
        RuleMemory { kind, finding: None, kind_type: kind_type.map(String::from), ..memory }
    }

    /// Adds a fact unless it repeats another or there is no room for it; returns whether it is there now.
    pub fn fact(&mut self, fact: &str) -> bool {
        let fact = cut(fact.trim(), FACT);
        let repeats = alike(&self.title, &fact) || self.facts.iter().any(|other| alike(other, &fact));
        let size: usize = self.title.len() + self.facts.iter().map(String::len).sum::<usize>();
        let fits = !fact.is_empty() && size + fact.len() <= BYTES;
        if fits && !repeats {
            self.facts.push(fact);
        }
        fits || repeats
    }

    /// Makes the draft, in the words of a domain.
    pub fn draft(mut self, domain: &Domain, turns: &[Turn], tokens: Option<(i64, bool)>) -> Draft {
        let turn = self.turns.last().and_then(|at| turns.get(*at));
        let happened = turn.and_then(|turn| {
            let said = turn.closing.or(turn.asked).map(|prompt| prompt.received_at);
            said.into_iter().chain(turn.tools.last().map(|tool| tool.received_at)).max()
        });
        if !self.facts.is_empty() {
            self.content.insert("facts".into(), Value::from(std::mem::take(&mut self.facts)));
        }
        let mut concepts: Vec<String> = Vec::new();
        for concept in self.cues.iter().filter_map(|cue| domain.concept_for(cue.name())) {
            if !concepts.iter().any(|known| known == concept) && concepts.len() < 5 {
                concepts.push(concept.to_string());
            }
        }
        self.sources.sort_unstable();
        self.sources.dedup();
        let mut files: Vec<MemoryFile> = Vec::new();
        for file in self.files {
            match files.iter().position(|known| known.path == file.path) {
                Some(at) => files[at].modified |= file.modified,
                None => files.push(file),
            }
        }
        files.truncate(FILES);
        Draft {
            key: Some(self.key),
            kind: self.kind,
            kind_type: match self.finding {
                Some(finding) => domain.type_for(finding.name()).map(String::from),
                None => self.kind_type,
            },
            title: capitalized(&self.title),
            subtitle: None,
            body: None,
            content: self.content,
            concepts,
            files,
            prompt: turn.map(|turn| turn.number).filter(|number| *number > 0),
            sources: thinned(self.sources),
            provenance: self.provenance,
            at: happened.unwrap_or(0),
            tokens,
        }
    }
}

/// Of many sources the first and the last.
fn thinned(sources: Vec<Source>) -> Vec<Source> {
    if sources.len() <= SOURCES {
        return sources;
    }
    let (head, tail) = (&sources[..SOURCES / 2], &sources[sources.len() - SOURCES / 2..]);
    [head, tail].concat()
}
