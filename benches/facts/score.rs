//! Scores memories against labelled facts, as `score.py` beside the labels does.

use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};

/// A fact stands in one line of a memory or in two that adjoin, at most so many characters apart.
const WINDOW: usize = 400;
/// Characters of a title that are read.
const TITLE: usize = 100;
/// Words that say that something no longer holds.
const UNLESS: [&str; 8] = ["revert", "instead", "no longer", "removed", "not ", "n't", "rejected", "dropped"];

/// Alternatives that a text must have one of each of.
type Must = Vec<Vec<String>>;

#[derive(Clone, Deserialize)]
pub struct Labels {
    pub facts: Vec<Fact>,
    traps: Vec<Trap>,
    titles: Vec<Title>,
}

#[derive(Clone, Deserialize)]
pub struct Fact {
    pub id: String,
    kind: String,
    pub must: Must,
    pub question: String,
    pub weight: f64,
    by: String,
    /// Events of the session that show it, from 0.
    pub evidence: Vec<usize>,
}

/// Statements that no longer hold.
#[derive(Clone, Deserialize)]
struct Trap {
    must: Must,
    #[serde(default)]
    unless: Vec<String>,
}

#[derive(Clone, Deserialize)]
struct Title {
    /// The first and the last prompt, from 0.
    prompts: Vec<usize>,
    must: Must,
}

impl Labels {
    /// Traps that memories hold, each with a memory that does.
    pub fn misleading<'a>(&'a self, memories: &'a [Kept]) -> impl Iterator<Item = (&'a Must, &'a str)> {
        let by = |trap: &Trap| memories.iter().find(|memory| misleads(&memory.text, trap));
        self.traps.iter().filter_map(move |trap| Some((&trap.must, by(trap)?.text.as_str())))
    }

    /// Work whose unit's title does not say what was done: their prompts, and what a title should hold.
    pub fn unnamed<'a>(&'a self, units: &'a Vec<Named>) -> impl Iterator<Item = (&'a Vec<usize>, &'a Must)> {
        self.titles.iter().filter(|title| !is_named(title, Some(units))).map(|title| (&title.prompts, &title.must))
    }
}

/// A memory of a session. Its parts (title, each fact, each sentence) are on lines of their own.
#[derive(Clone, Default)]
pub struct Kept {
    pub kind: String,
    pub is_users: bool,
    pub text: String,
}

/// A unit's prompts, from 0, and what lists call it.
pub struct Named {
    pub prompts: Vec<usize>,
    pub title: String,
}

fn flat(text: &str) -> String {
    let text = text.to_lowercase().replace('`', "").replace('’', "'");
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_whitespace() {
            true if out.ends_with(' ') => {}
            true => out.push(' '),
            false => out.push(c),
        }
    }
    out
}

fn has_all(flat_text: &str, must: &Must) -> bool {
    must.iter().all(|group| group.iter().any(|words| flat_text.contains(&flat(words))))
}

fn lines(text: &str) -> Vec<String> {
    text.split('\n').filter(|line| !line.trim().is_empty()).map(flat).collect()
}

/// Whether a line, or two that adjoin, hold a fact.
pub fn holds(text: &str, must: &Must) -> bool {
    let lines = lines(text);
    (0..lines.len()).any(|i| {
        let both = format!("{} {}", lines[i], lines.get(i + 1).map_or("", String::as_str)).trim().to_string();
        let both = Some(both).filter(|both| both.chars().count() <= WINDOW);
        parts(&lines[i]).iter().chain(&both).any(|part| has_all(part, must))
    })
}

/// A long line in overlapping pieces.
fn parts(line: &str) -> Vec<String> {
    let chars: Vec<char> = line.chars().collect();
    if chars.len() <= WINDOW {
        return vec![line.to_string()];
    }
    (0..chars.len() - WINDOW + 100).step_by(100).map(|at| chars[at..chars.len().min(at + WINDOW)].iter().collect()).collect()
}

fn misleads(text: &str, trap: &Trap) -> bool {
    sentences(text).any(|sentence| {
        let sentence = flat(&sentence);
        let excused = UNLESS.iter().any(|word| sentence.contains(word))
            || trap.unless.iter().any(|word| sentence.contains(&word.to_lowercase()));
        has_all(&sentence, &trap.must) && !excused
    })
}

/// Lines, cut behind the marks that end sentences.
pub fn sentences(text: &str) -> impl Iterator<Item = String> {
    let mut out = vec![String::new()];
    let mut before = ' ';
    for c in text.chars() {
        if c == '\n' || c.is_whitespace() && matches!(before, '.' | '!' | '?') {
            out.push(String::new());
        } else {
            out.last_mut().unwrap().push(c);
        }
        before = c;
    }
    out.into_iter().filter(|sentence| !sentence.trim().is_empty())
}

/// The measures, by name.
pub fn score(
    labels: &BTreeMap<String, Labels>,
    kept: &BTreeMap<String, Vec<Kept>>,
    named: &BTreeMap<String, Vec<Named>>,
) -> Value {
    let nothing = Vec::new();
    let of = |session: &str| kept.get(session).unwrap_or(&nothing);
    let facts: Vec<(&String, &Fact)> =
        labels.iter().flat_map(|(id, labels)| labels.facts.iter().map(move |fact| (id, fact))).collect();
    let weight = |facts: &[&(&String, &Fact)]| facts.iter().map(|(_, fact)| fact.weight).sum::<f64>();
    let all: Vec<_> = facts.iter().collect();
    let remembered: Vec<_> =
        facts.iter().filter(|(id, fact)| of(id).iter().any(|memory| holds(&memory.text, &fact.must))).collect();
    let memories: Vec<(&String, &Kept)> = labels.keys().flat_map(|id| of(id).iter().map(move |memory| (id, memory))).collect();
    let bytes: usize = memories.iter().map(|(_, memory)| memory.text.len()).sum();
    let any_fact = |id: &String, text: &str| labels[id].facts.iter().any(|fact| holds(text, &fact.must));
    let said: Vec<(&String, String)> =
        memories.iter().flat_map(|(id, memory)| lines(&memory.text).into_iter().map(move |line| (*id, line))).collect();
    let useful = said.iter().filter(|(id, line)| any_fact(id, line)).count();
    let traps: Vec<(&String, &Trap)> =
        labels.iter().flat_map(|(id, labels)| labels.traps.iter().map(move |trap| (id, trap))).collect();
    let told = traps.iter().filter(|(id, trap)| of(id).iter().any(|memory| misleads(&memory.text, trap))).count();
    let is_users = |memory: &Kept| memory.is_users && matches!(memory.kind.as_str(), "decision" | "lesson");
    let stated: Vec<_> =
        facts.iter().filter(|(_, fact)| matches!(fact.kind.as_str(), "decision" | "constraint") && fact.by == "user").collect();
    let as_such: Vec<_> = stated
        .iter()
        .copied()
        .filter(|(id, fact)| of(id).iter().any(|memory| is_users(memory) && holds(&memory.text, &fact.must)))
        .collect();
    let standing: Vec<_> = memories.iter().filter(|(_, memory)| is_users(memory)).collect();
    let true_ones = standing.iter().filter(|(id, memory)| any_fact(id, &memory.text)).count();
    let titles: Vec<(&String, &Title)> =
        labels.iter().flat_map(|(id, labels)| labels.titles.iter().map(move |title| (id, title))).collect();
    let good = titles.iter().filter(|(id, title)| is_named(title, named.get(*id))).count();
    let mut kinds: BTreeMap<&str, [f64; 2]> = BTreeMap::new();
    for (_, fact) in &facts {
        kinds.entry(&fact.kind).or_default()[1] += fact.weight;
    }
    for (_, fact) in &remembered {
        kinds.entry(&fact.kind).or_default()[0] += fact.weight;
    }
    json!({
        "kept": round(weight(&remembered) / weight(&all)),
        "kept_by_kind": kinds,
        "memories": memories.len(),
        "bytes_a_session": bytes / labels.len().max(1),
        "lines_that_hold_a_fact": round(useful as f64 / said.len().max(1) as f64),
        "traps_told": [told, traps.len()],
        "users_decisions_as_such": round(weight(&as_such) / weight(&stated).max(1.0)),
        "users_decisions_that_are_facts": [true_ones, standing.len()],
        "titles_that_say_it": [good, titles.len()],
    })
}

/// Whether the unit that has most of a title's prompts is named so that one knows what was done.
fn is_named(title: &Title, units: Option<&Vec<Named>>) -> bool {
    let span: HashSet<usize> = (title.prompts[0]..=*title.prompts.last().unwrap()).collect();
    let shared = |unit: &&Named| unit.prompts.iter().filter(|prompt| span.contains(prompt)).count();
    // The first of those that share as many.
    let best = units.into_iter().flatten().rev().max_by_key(shared);
    best.is_some_and(|unit| has_all(&flat(&unit.title.chars().take(TITLE).collect::<String>()), &title.must))
}

pub fn round(share: f64) -> f64 {
    // No share is less than nothing, not even by its sign.
    ((share * 1000.0).round() / 1000.0).abs()
}

/// Checks the scorer on a case made by hand.
pub fn check() {
    let labels = r#"{"s": {"facts": [
        {"id": "s.1", "kind": "decision", "must": [["postgres"], ["redis", "cache"]], "question": "q", "weight": 2, "by": "user", "evidence": [0]},
        {"id": "s.2", "kind": "cause", "must": [["off by one"]], "question": "q", "weight": 1, "by": "agent", "evidence": [1]}],
        "traps": [{"must": [["mysql"]], "unless": ["before"]}], "titles": [{"prompts": [1, 2], "must": [["sessions"]]}]}}"#;
    let labels: BTreeMap<String, Labels> = serde_json::from_str(labels).unwrap();
    let memory = |kind: &str, is_users, text: &str| Kept { kind: kind.into(), is_users, text: text.into() };
    let kept =
        vec![memory("decision", true, "Sessions go to `Postgres`\nnot to Redis"), memory("observation", false, "It uses MySQL.")];
    let named = vec![Named { prompts: vec![0], title: "x".into() }, Named { prompts: vec![1, 2], title: "Move sessions".into() }];
    let scored = score(&labels, &BTreeMap::from([("s".into(), kept)]), &BTreeMap::from([("s".into(), named)]));
    assert_eq!(scored["kept"], json!(0.667));
    assert_eq!(scored["traps_told"], json!([1, 1]));
    assert_eq!(scored["users_decisions_as_such"], json!(1.0));
    assert_eq!(scored["users_decisions_that_are_facts"], json!([1, 1]));
    assert_eq!(scored["titles_that_say_it"], json!([1, 1]));
    assert_eq!(scored["lines_that_hold_a_fact"], json!(0.0), "the fact stands in two lines");
}
