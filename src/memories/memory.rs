//! A memory before its domain gives it a type and concepts.

use crate::choice::{Turn, capitalized};
use crate::model::{Becomes, Domain, Draft, Finding, MemoryFile, MemoryKind, Provenance, Source};
use crate::text::{alike, cut};
use serde_json::{Map, Value};

/// Characters of a title and of a fact.
const TITLE: usize = 160;
const FACT: usize = 400;
/// Bytes of title and facts together.
const BYTES: usize = 600;
const SOURCES: usize = 24;
const FILES: usize = 40;

/// A memory of one thing that was changed, found or decided, or the summary of a unit.
#[derive(Clone, Debug)]
pub struct RuleMemory {
    /// Identifies it when the unit is distilled again.
    pub key: String,
    /// What the domain makes a memory of; `None` for a summary.
    pub finding: Option<Finding>,
    /// Of a summary: the kind of task.
    pub task_kind: Option<&'static str>,
    pub title: String,
    pub facts: Vec<String>,
    pub files: Vec<MemoryFile>,
    pub sources: Vec<Source>,
    pub provenance: Provenance,
    /// The turns that it is drawn from, as indexes; it belongs to the last one.
    pub turns: Vec<usize>,
    pub content: Map<String, Value>,
}

impl RuleMemory {
    /// A memory without facts.
    pub fn new(key: String, finding: Option<Finding>, title: &str, turns: Vec<usize>) -> RuleMemory {
        RuleMemory {
            key,
            finding,
            task_kind: None,
            title: cut(title.trim_end_matches(['.', ' ', ':', ',', '。', '：', '，', '；']), TITLE),
            facts: Vec::new(),
            files: Vec::new(),
            sources: Vec::new(),
            provenance: Provenance::Agent,
            turns,
            content: Map::new(),
        }
    }

    pub fn is_summary(&self) -> bool {
        self.finding.is_none()
    }

    /// Whether the user said it.
    pub fn is_decided(&self) -> bool {
        matches!(self.finding, Some(Finding::Decision | Finding::Constraint | Finding::Reminder))
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

    /// Takes over a commit: its subject titles what the agent reported, and is a fact of what the user decided.
    pub fn commit(&mut self, commit: RuleMemory) {
        if self.is_decided() {
            self.fact(&commit.title);
        } else {
            let (facts, reported) = (std::mem::take(&mut self.facts), std::mem::replace(&mut self.title, commit.title));
            self.finding = commit.finding.filter(|_| self.finding != Some(Finding::Fix)).or(self.finding);
            self.fact(&reported);
            for fact in facts {
                self.fact(&fact);
            }
        }
        self.content.extend(commit.content);
        self.files.extend(commit.files);
        self.sources.extend(commit.sources);
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
        let Becomes { kind, kind_type, concepts } = match self.finding {
            Some(finding) => domain.becomes(finding),
            None => {
                let kind_type = self.task_kind.map(String::from);
                Becomes { kind: MemoryKind::Summary, kind_type, concepts: Vec::new() }
            }
        };
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
            kind,
            kind_type,
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
