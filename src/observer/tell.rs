//! What a model said → memories, and which of the rules' memories each takes the place of (ADR/0024). A model says why;
//! what was done, by which tool uses and in which files, is taken from the blocks and from the rules, never from its word.

use super::answer::{Heard, Observed, SECTIONS};
use super::blocks::Block;
use super::prompt::Asked;
use super::terms;
use crate::hostile::{is_hostile, orders, repeats};
use crate::model::{Domain, Draft, Maker, MemoryFile, MemoryKind, MemoryRow, Provenance, SUBTITLE_WORDS, Source, UnitStory};
use crate::words::{alike, cut, cut_words};
use serde_json::{Map, Value};
use std::collections::HashSet;

/// Characters of a title, a fact, a section and a narrative; facts, files and sources of one memory.
const TITLE: usize = 140;
const FACT: usize = 300;
const SECTION: usize = 700;
const BODY: usize = 1200;
const FACTS: usize = 8;
const FILES: usize = 40;
const SOURCES: usize = 24;
/// The name under which rules keep who may overrule whom: a choice.
const DECISION: &str = "decision";

/// A memory that a model drew, and the rows whose place it takes.
#[derive(Clone, Debug)]
pub struct Told {
    pub draft: Draft,
    pub supersedes: Vec<i64>,
}

/// What is known beside the answer.
#[derive(Clone, Debug)]
pub struct Known<'a> {
    pub story: &'a UnitStory,
    pub domain: &'a Domain,
    /// Memories of the unit that hold.
    pub standing: &'a [MemoryRow],
    /// Memories of the unit in whose place a person put others.
    pub refused: &'a [MemoryRow],
    /// Titles that models have recorded of the session.
    pub recorded: &'a [String],
    /// The call in `spend`: names what it tells.
    pub call: i64,
}

/// Turns an answer into memories.
pub fn tell(heard: Heard, asked: &Asked, known: &Known) -> Vec<Told> {
    let mut told: Vec<Told> = Vec::new();
    let mut taken: HashSet<i64> = HashSet::new();
    for observed in heard.observations {
        let Some(mut next) = observation(&observed, asked, known) else { continue };
        if told.iter().any(|other| alike(&other.draft.title, &next.title)) {
            continue;
        }
        let supersedes: Vec<i64> = known
            .standing
            .iter()
            .filter(|old| old.kind == MemoryKind::Observation && is_replaceable(old) && !taken.contains(&old.id))
            .filter(|old| covers(&next.sources, old) || is_part(&next, old) || alike(&next.title, &old.title))
            .map(|old| old.id)
            .collect();
        taken.extend(&supersedes);
        for old in known.standing.iter().filter(|old| supersedes.contains(&old.id)) {
            take_over(&mut next, old, known.domain);
        }
        next.key = Some(format!("model:u{}:{}:{}", known.story.unit, known.call, told.len() + 1));
        told.push(Told { draft: next, supersedes });
    }
    told.extend(summary(&heard.summary, asked, known));
    told
}

/// What rules drew and nobody has touched.
fn is_replaceable(old: &MemoryRow) -> bool {
    old.made_by == Maker::Rules && !old.by_hand && !old.pinned && old.superseded_by.is_none()
}

/// Whether half of what a memory is drawn from is among the sources.
fn covers(sources: &[Source], old: &MemoryRow) -> bool {
    let among = old.sources.iter().filter(|id| sources.contains(id)).count();
    among > 0 && among * 2 >= old.sources.len()
}

/// Whether a draft of the same type is drawn from nothing else.
fn is_part(draft: &Draft, old: &MemoryRow) -> bool {
    draft.kind_type == old.kind_type && draft.sources.iter().all(|source| old.sources.contains(source))
}

/// An observation, checked against the blocks; `None` where it can't be believed or is known.
fn observation(observed: &Observed, asked: &Asked, known: &Known) -> Option<Draft> {
    let named: Vec<&Block> = observed.sources.iter().filter_map(|n| asked.blocks.get(n.checked_sub(1)?)).collect();
    // Numbers that are no block's name nothing: then it is the whole unit's.
    let all: Vec<&Block> = if named.is_empty() { asked.blocks.iter().collect() } else { named.clone() };
    // Whoever names no block can't say that it was the person's.
    let by_user = named.iter().any(|block| block.by_user);
    let is_bad = |text: &str| repeats(text, &asked.withheld) || is_hostile(text) || !by_user && orders(text);
    let title = cut(observed.title.trim_end_matches('.'), TITLE);
    if title.chars().filter(|c| c.is_alphanumeric()).count() < 2 || is_bad(&observed.title) {
        return None;
    }
    let sources = thinned(all.iter().map(|block| block.source).collect());
    // A summary and a task are of the whole unit: they stand beside what is told of a part of it.
    let is_whole = |memory: &&MemoryRow| memory.kind == MemoryKind::Summary || memory.kind == MemoryKind::Task;
    let is_fixed = |memory: &&MemoryRow| {
        memory.by_hand || memory.pinned || memory.kind == MemoryKind::Decision || memory.kind == MemoryKind::Lesson
    };
    let fixed = known.standing.iter().filter(is_fixed).chain(known.refused).filter(|memory| !is_whole(memory));
    let is_told = fixed.clone().any(|memory| {
        let same = memory.sources.iter().filter(|id| sources.contains(id)).count();
        alike(&memory.title, &title) || !named.is_empty() && same > 0 && same * 2 >= sources.len()
    });
    if is_told || known.recorded.iter().any(|recorded| alike(recorded, &title)) {
        return None;
    }
    let kind_type = terms::kind_type(observed.kind_type.as_deref(), known.domain);
    // What a program or a page says is nobody's decision.
    let messages = named.iter().any(|block| matches!(block.source, Source::Prompt(_)));
    let kind_type = match kind_type {
        Some(chosen) if chosen == DECISION && !messages => known.domain.type_for("discovery").map(String::from),
        other => other,
    };
    let mut facts: Vec<String> = Vec::new();
    for fact in observed.facts.iter().filter(|fact| !is_bad(fact)).map(|fact| cut(fact, FACT)) {
        if facts.len() < FACTS && !alike(&fact, &title) && !facts.iter().any(|other| alike(other, &fact)) {
            facts.push(fact);
        }
    }
    let text = |text: &Option<String>| text.clone().filter(|text| !is_bad(text) && !alike(text, &title));
    let mut content = fields(observed, known.domain, &is_bad);
    if !facts.is_empty() {
        content.insert("facts".into(), Value::from(facts));
    }
    let last = all.iter().max_by_key(|block| block.at);
    Some(Draft {
        key: None,
        kind: MemoryKind::Observation,
        kind_type,
        subtitle: text(&observed.subtitle).map(|text| cut_words(&text, SUBTITLE_WORDS)),
        body: text(&observed.narrative).map(|text| cut(&text, BODY)),
        title,
        content,
        concepts: terms::concepts(&observed.concepts, known.domain),
        files: files(observed, &all, !named.is_empty()),
        prompt: last.and_then(|block| block.prompt),
        sources,
        provenance: provenance(&all),
        at: last.map_or(0, |block| block.at),
        tokens: None,
    })
}

/// The least trusted of the blocks; a model's words are never the person's own.
fn provenance(blocks: &[&Block]) -> Provenance {
    if blocks.iter().any(|block| block.from_outside) { Provenance::Tool } else { Provenance::Agent }
}

/// Fields of the domain's own, by their kind.
fn fields(observed: &Observed, domain: &Domain, is_bad: &dyn Fn(&str) -> bool) -> Map<String, Value> {
    let mut content = Map::new();
    for field in &domain.fields {
        let Some(texts) = observed.fields.get(&field.name.replace('-', "_")) else { continue };
        let texts: Vec<String> = texts.iter().filter(|text| !is_bad(text)).map(|text| cut(text, FACT)).collect();
        let Some(first) = texts.first() else { continue };
        let value = match field.kind.as_str() {
            "list" => Value::from(texts.iter().take(FILES).cloned().collect::<Vec<_>>()),
            "numbers" => {
                let numbers =
                    texts.iter().flat_map(|text| text.split([',', ' ', ';'])).filter_map(|n| n.trim().parse::<f64>().ok());
                // A whole number is written as one.
                let number = |n: f64| if n.fract() == 0.0 && n.abs() < 1e15 { Value::from(n as i64) } else { Value::from(n) };
                let numbers: Vec<Value> = numbers.filter(|n| n.is_finite()).take(FILES).map(number).collect();
                if numbers.is_empty() { continue } else { Value::from(numbers) }
            }
            "date" => match first.parse::<jiff::civil::Date>() {
                Ok(date) => Value::from(date.to_string()),
                Err(_) => continue,
            },
            _ => Value::from(texts.join(" ")),
        };
        content.insert(field.name.clone(), value);
    }
    content
}

/// Files that stand in a source. What was changed is told by the tool uses, not by the answer.
fn files(observed: &Observed, blocks: &[&Block], named: bool) -> Vec<MemoryFile> {
    let mut files: Vec<MemoryFile> = Vec::new();
    let mut add = |path: &str, modified: bool| match files.iter().position(|file| file.path == path) {
        Some(at) => files[at].modified |= modified,
        None if files.len() < FILES => files.push(MemoryFile { path: path.to_string(), modified, hash: None }),
        None => {}
    };
    for said in observed.files_modified.iter().take(FILES).chain(observed.files_read.iter().take(FILES)) {
        let said = said.trim_start_matches("./");
        let same = |path: &str| path == said || said.ends_with(&format!("/{path}")) || path.ends_with(&format!("/{said}"));
        let is_there = |block: &&&Block| block.path.as_deref().is_some_and(same);
        match blocks.iter().find(is_there).and_then(|block| block.path.as_deref()) {
            Some(path) => add(path, blocks.iter().any(|block| block.edits && block.path.as_deref() == Some(path))),
            None if is_path(said) && blocks.iter().any(|block| stands_in(said, block)) => add(said, false),
            None => {}
        }
    }
    if named {
        blocks
            .iter()
            .filter(|block| block.edits && !block.failed)
            .filter_map(|block| block.path.as_deref())
            .for_each(|path| add(path, true));
    }
    files
}

/// A path inside the project that could be meant by it.
fn is_path(said: &str) -> bool {
    said.contains(['/', '.']) && !said.contains(char::is_whitespace) && !said.starts_with(['/', '~']) && !said.contains("..")
}

fn stands_in(said: &str, block: &Block) -> bool {
    [&block.parameters, &block.outcome].into_iter().flatten().any(|text| {
        text.match_indices(said).any(|(at, _)| {
            let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
            !text[..at].ends_with(is_part) && !text[at + said.len()..].starts_with(is_part)
        })
    })
}

/// Puts into a memory what the one that it replaces has and it lacks: facts with their evidence are not lost.
fn take_over(draft: &mut Draft, old: &MemoryRow, domain: &Domain) {
    let mut facts: Vec<Value> = draft.content.get("facts").and_then(Value::as_array).cloned().unwrap_or_default();
    let said = |facts: &[Value], fact: &str, draft: &Draft| {
        alike(fact, &draft.title)
            || draft.body.as_deref().is_some_and(|body| body.contains(fact))
            || facts.iter().filter_map(Value::as_str).any(|other| alike(other, fact))
    };
    // What a commit is called stands with the commit.
    let title = Some(old.title.as_str()).filter(|_| !old.content.contains_key("commit"));
    for fact in old.list("facts").into_iter().chain(title) {
        if !said(&facts, fact, draft) {
            facts.push(Value::from(fact));
        }
    }
    draft.content.insert("facts".into(), Value::from(facts));
    for (name, value) in old.content.iter().filter(|(name, _)| *name != "facts") {
        draft.content.entry(name.clone()).or_insert_with(|| value.clone());
    }
    for file in &old.files {
        match draft.files.iter_mut().find(|known| known.path == file.path) {
            Some(known) => *known = MemoryFile { modified: known.modified || file.modified, ..file.clone() },
            None => draft.files.push(file.clone()),
        }
    }
    for concept in old.concepts.iter().filter(|concept| domain.concepts.iter().any(|term| term.name == **concept)) {
        if draft.concepts.len() < 5 && !draft.concepts.contains(concept) {
            draft.concepts.push(concept.clone());
        }
    }
    draft.sources.extend(&old.sources);
    draft.sources = thinned(std::mem::take(&mut draft.sources));
    draft.tokens = match (draft.tokens, old.tokens) {
        (Some((a, rough)), Some(b)) => Some((a + b, rough || old.tokens_estimated)),
        (None, Some(b)) => Some((b, old.tokens_estimated)),
        (known, None) => known,
    };
    if old.provenance == Provenance::Tool {
        draft.provenance = Provenance::Tool;
    }
}

/// The summary: a model's sections. Its title is the request as the model puts it, else as the rules did, else what was
/// completed or learnt.
fn summary(sections: &std::collections::BTreeMap<String, String>, asked: &Asked, known: &Known) -> Option<Told> {
    let is_bad = |text: &str| repeats(text, &asked.withheld) || is_hostile(text);
    let mut content = Map::new();
    for name in SECTIONS {
        // What was asked for may be put as an order; what is left to do may not.
        let orders = |text: &&String| name != "request" && orders(text);
        let text = sections.get(name).filter(|text| !text.is_empty() && !is_bad(text) && !is_nothing(text));
        if let Some(text) = text.filter(|text| !orders(text)) {
            content.insert(name.into(), Value::from(cut(text, SECTION)));
        }
    }
    if content.keys().all(|name| name == "request" || name == "investigated") {
        return None;
    }
    let mut standing = known.standing.iter().filter(|old| old.kind == MemoryKind::Summary && old.superseded_by.is_none());
    if standing.clone().any(|old| old.by_hand || old.pinned) {
        return None;
    }
    let old: Vec<&MemoryRow> = standing.by_ref().collect();
    let blocks: Vec<&Block> = asked.blocks.iter().collect();
    let of = |name: &str| content.get(name).and_then(Value::as_str).map(String::from);
    let intent = known.story.intent.as_deref().map(|intent| intent.split_whitespace().collect::<Vec<_>>().join(" "));
    let request = of("request").or_else(|| old.first().map(|old| old.title.clone())).or(intent);
    let title = request.or_else(|| of("completed")).or_else(|| of("learned"))?;
    let mut draft = Draft {
        key: Some(format!("model-summary:u{}", known.story.unit)),
        kind: MemoryKind::Summary,
        kind_type: None,
        title: cut(title.trim_end_matches('.'), TITLE),
        subtitle: of("completed").or_else(|| of("learned")).map(|text| cut_words(&text, SUBTITLE_WORDS)),
        body: None,
        content,
        concepts: Vec::new(),
        files: Vec::new(),
        prompt: blocks.last().and_then(|block| block.prompt),
        sources: thinned(blocks.iter().map(|block| block.source).collect()),
        provenance: provenance(&blocks),
        at: blocks.iter().map(|block| block.at).max().unwrap_or(0),
        tokens: None,
    };
    for old in &old {
        for (name, value) in &old.content {
            draft.content.entry(name.clone()).or_insert_with(|| value.clone());
        }
        for file in &old.files {
            if !draft.files.iter().any(|known| known.path == file.path) {
                draft.files.push(file.clone());
            }
        }
        draft.tokens = draft.tokens.or(old.tokens.map(|tokens| (tokens, old.tokens_estimated)));
        draft.at = draft.at.max(old.created_at);
    }
    let supersedes = old.iter().filter(|old| is_replaceable(old)).map(|old| old.id).collect();
    Some(Told { draft, supersedes })
}

/// "None.", "n/a": a section that was to be left out.
fn is_nothing(text: &str) -> bool {
    let bare: String = text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    matches!(bare.as_str(), "" | "none" | "na" | "nothing" | "notapplicable" | "nonenoted" | "nothingnotable" | "unknown")
}

/// Of many sources the first and the last, in order, each once.
fn thinned(mut sources: Vec<Source>) -> Vec<Source> {
    sources.sort_unstable();
    sources.dedup();
    if sources.len() <= SOURCES {
        return sources;
    }
    [&sources[..SOURCES / 2], &sources[sources.len() - SOURCES / 2..]].concat()
}
