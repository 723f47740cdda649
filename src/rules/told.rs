//! What a rule has to say, before a domain gives it its type and concepts.

use super::finding::{Cue, Finding};
use super::prose::{cut, cut_words, plain_headline, word_count};
use super::turns::Turn;
use crate::model::{Domain, Draft, MemoryFile, MemoryKind, Provenance, SUBTITLE_WORDS, Source};
pub use crate::text::alike;
use serde_json::{Map, Value};

/// Characters of a title, of a fact, and of a narrative.
pub const TITLE: usize = 140;
const FACT: usize = 240;
const BODY: usize = 900;
/// Facts, and what they are drawn from, of one memory.
pub const FACTS: usize = 6;
const SOURCES: usize = 24;
const FILES: usize = 40;

/// What is said of the check that passed last.
pub const PASSED_BEFORE: &str = "passed before the commit";

/// What a rule has to say.
#[derive(Clone, Debug)]
pub struct Told {
    pub key: String,
    pub kind: MemoryKind,
    /// Of an observation.
    pub finding: Option<Finding>,
    /// Of other kinds: `warning`, `approach`, `bugfix`.
    pub kind_type: Option<String>,
    pub title: String,
    pub subtitle: Option<String>,
    pub facts: Vec<String>,
    pub body: Option<String>,
    pub cues: Vec<Cue>,
    pub files: Vec<MemoryFile>,
    pub sources: Vec<Source>,
    pub provenance: Provenance,
    /// Places of the turns that it is drawn from, the one that it belongs to last.
    pub turns: Vec<usize>,
    pub content: Map<String, Value>,
}

impl Told {
    /// An observation with nothing said yet.
    pub fn observation(key: String, finding: Finding, title: &str, turns: Vec<usize>) -> Told {
        Told {
            key,
            kind: MemoryKind::Observation,
            finding: Some(finding),
            kind_type: None,
            title: title.to_string(),
            subtitle: None,
            facts: Vec::new(),
            body: None,
            cues: Vec::new(),
            files: Vec::new(),
            sources: Vec::new(),
            provenance: Provenance::Agent,
            turns,
            content: Map::new(),
        }
    }

    /// A memory of another kind.
    pub fn of_kind(kind: MemoryKind, kind_type: Option<&str>, key: String, title: &str, turns: Vec<usize>) -> Told {
        let told = Told::observation(key, Finding::Discovery, title, turns);
        Told { kind, finding: None, kind_type: kind_type.map(String::from), ..told }
    }

    /// Adds a fact, unless it is there already or says what the title says.
    pub fn fact(&mut self, fact: &str) {
        let fact = cut(fact.trim(), FACT);
        let same = |other: &str| alike(other, &fact);
        if !fact.is_empty() && self.facts.len() < FACTS && !same(&self.title) && !self.facts.iter().any(|other| same(other)) {
            self.facts.push(fact);
        }
    }

    /// Adds a fact before the others: of many it is the one that stays.
    pub fn fact_first(&mut self, fact: &str) {
        let fact = cut(fact.trim(), FACT);
        if !self.facts.iter().any(|other| alike(other, &fact)) {
            self.facts.insert(0, fact);
            self.facts.truncate(FACTS);
        }
    }

    /// Makes the memory, in the words of a domain.
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
            title: title(&self.title),
            subtitle: self.subtitle.map(|text| cut_words(&text, SUBTITLE_WORDS)).filter(|text| !text.is_empty()),
            body: self.body.map(|text| cut(&text, BODY)).filter(|text| !text.is_empty()),
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

/// What was asked, quoted.
pub fn asked_for(prompt: &str) -> String {
    let request = plain_headline(prompt);
    if word_count(&request) < 2 { String::new() } else { format!("Asked: {}", cut(&request, TITLE)) }
}

/// A title: one line that begins with a capital and ends without a dot.
fn title(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = cut(text.trim_end_matches(['.', ' ', ':', ',']), TITLE);
    // A name in code, or one that is written small, keeps its form.
    let word = text.split([' ', '.', '(', ':', '/']).next().unwrap_or_default();
    let is_word = text.starts_with(|c: char| c.is_lowercase())
        && word.chars().all(char::is_lowercase)
        && text[word.len()..].starts_with([' ', ',']);
    let mut chars = text.chars();
    match chars.next() {
        Some(first) if is_word => first.to_uppercase().chain(chars).collect(),
        _ => text,
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
