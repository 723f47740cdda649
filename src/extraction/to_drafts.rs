//! Turns a model's answer into memories, and decides which rule memories they supersede (ADR/0024). A model explains;
//! what was done, by which tool uses and in which files, always comes from the blocks and the rules.

use super::answer::{ParsedAnswer, ParsedObservation, SECTIONS};
use super::blocks::EventBlock;
use super::prompt::RenderedQuestion;
use super::terms;
use crate::model::{Domain, Draft, Maker, MemoryFile, MemoryKind, MemoryRow, Provenance, SUBTITLE_WORDS, Source, UnitStory};
use crate::prompt_injection::{looks_like_prompt_injection, orders, repeats};
use crate::text::{alike, cut, cut_words};
use serde_json::{Map, Value};
use std::collections::HashSet;

/// Maximum characters of a title, fact, section and narrative; maximum facts, files and sources of a memory.
const TITLE: usize = 140;
const FACT: usize = 300;
const SECTION: usize = 700;
const BODY: usize = 1200;
const FACTS: usize = 8;
const FILES: usize = 40;
const SOURCES: usize = 24;
/// The key prefix under which rules store decisions.
const DECISION: &str = "decision";

/// A memory drafted by a model, and the rows it supersedes.
#[derive(Clone, Debug)]
pub struct LlmDraft {
    pub draft: Draft,
    pub supersedes: Vec<i64>,
}

/// Context of the unit besides the answer.
#[derive(Clone, Debug)]
pub struct UnitContext<'a> {
    pub story: &'a UnitStory,
    pub domain: &'a Domain,
    /// The unit's active memories.
    pub existing: &'a [MemoryRow],
    /// Memories of the unit that a person replaced.
    pub refused: &'a [MemoryRow],
    /// Titles that models have recorded for the session.
    pub recorded: &'a [String],
    /// Row of the call in `spend`; part of the memories' keys.
    pub call: i64,
}

/// Turns an answer into drafts.
pub fn to_drafts(answer: ParsedAnswer, question: &RenderedQuestion, unit: &UnitContext) -> Vec<LlmDraft> {
    let mut drafts: Vec<LlmDraft> = Vec::new();
    let mut taken: HashSet<i64> = HashSet::new();
    for observation in answer.observations {
        let Some(mut next) = draft_of(&observation, question, unit) else { continue };
        if drafts.iter().any(|other| alike(&other.draft.title, &next.title)) {
            continue;
        }
        let supersedes: Vec<i64> = unit
            .existing
            .iter()
            .filter(|old| old.kind == MemoryKind::Observation && may_be_superseded(old) && !taken.contains(&old.id))
            .filter(|old| covers(&next.sources, old) || is_part(&next, old) || alike(&next.title, &old.title))
            .map(|old| old.id)
            .collect();
        taken.extend(&supersedes);
        for old in unit.existing.iter().filter(|old| supersedes.contains(&old.id)) {
            take_over(&mut next, old, unit.domain);
        }
        next.key = Some(format!("model:u{}:{}:{}", unit.story.unit, unit.call, drafts.len() + 1));
        drafts.push(LlmDraft { draft: next, supersedes });
    }
    drafts.extend(summary(&answer.summary, question, unit));
    drafts
}

/// Drawn by rules, and untouched since.
fn may_be_superseded(old: &MemoryRow) -> bool {
    old.made_by == Maker::Rules && !old.by_hand && !old.pinned && old.superseded_by.is_none()
}

/// Whether the sources include half of a memory's own.
fn covers(sources: &[Source], old: &MemoryRow) -> bool {
    let among = old.sources.iter().filter(|id| sources.contains(id)).count();
    among > 0 && among * 2 >= old.sources.len()
}

/// Whether a draft of the same type has no sources beyond the old memory's.
fn is_part(draft: &Draft, old: &MemoryRow) -> bool {
    draft.kind_type == old.kind_type && draft.sources.iter().all(|source| old.sources.contains(source))
}

/// Checks an observation against the blocks; `None` if it is not credible or already known.
fn draft_of(observation: &ParsedObservation, question: &RenderedQuestion, unit: &UnitContext) -> Option<Draft> {
    let named: Vec<&EventBlock> = observation.sources.iter().filter_map(|n| question.blocks.get(n.checked_sub(1)?)).collect();
    // Unknown block numbers count as none: then the whole unit is the source.
    let all: Vec<&EventBlock> = if named.is_empty() { question.blocks.iter().collect() } else { named.clone() };
    // Without naming a block, a model cannot attribute anything to the user.
    let by_user = named.iter().any(|block| block.by_user);
    let is_bad = |text: &str| repeats(text, &question.withheld) || looks_like_prompt_injection(text) || !by_user && orders(text);
    let title = cut(observation.title.trim_end_matches('.'), TITLE);
    if title.chars().filter(|c| c.is_alphanumeric()).count() < 2 || is_bad(&observation.title) {
        return None;
    }
    let sources = thinned(all.iter().map(|block| block.source).collect());
    // Summaries and tasks cover the whole unit, so they do not make an observation redundant.
    let is_whole = |memory: &&MemoryRow| memory.kind == MemoryKind::Summary || memory.kind == MemoryKind::Task;
    let is_fixed = |memory: &&MemoryRow| {
        memory.by_hand || memory.pinned || memory.kind == MemoryKind::Decision || memory.kind == MemoryKind::Lesson
    };
    let fixed = unit.existing.iter().filter(is_fixed).chain(unit.refused).filter(|memory| !is_whole(memory));
    let is_known = fixed.clone().any(|memory| {
        let same = memory.sources.iter().filter(|id| sources.contains(id)).count();
        alike(&memory.title, &title) || !named.is_empty() && same > 0 && same * 2 >= sources.len()
    });
    if is_known || unit.recorded.iter().any(|recorded| alike(recorded, &title)) {
        return None;
    }
    let kind_type = terms::kind_type(observation.kind_type.as_deref(), unit.domain);
    // What a program or page says is nobody's decision.
    let messages = named.iter().any(|block| matches!(block.source, Source::Prompt(_)));
    let kind_type = match kind_type {
        Some(chosen) if chosen == DECISION && !messages => unit.domain.type_for("discovery").map(String::from),
        other => other,
    };
    let mut facts: Vec<String> = Vec::new();
    for fact in observation.facts.iter().filter(|fact| !is_bad(fact)).map(|fact| cut(fact, FACT)) {
        if facts.len() < FACTS && !alike(&fact, &title) && !facts.iter().any(|other| alike(other, &fact)) {
            facts.push(fact);
        }
    }
    let text = |text: &Option<String>| text.clone().filter(|text| !is_bad(text) && !alike(text, &title));
    let mut content = fields(observation, unit.domain, &is_bad);
    if !facts.is_empty() {
        content.insert("facts".into(), Value::from(facts));
    }
    let last = all.iter().max_by_key(|block| block.at);
    Some(Draft {
        key: None,
        kind: MemoryKind::Observation,
        kind_type,
        subtitle: text(&observation.subtitle).map(|text| cut_words(&text, SUBTITLE_WORDS)),
        body: text(&observation.narrative).map(|text| cut(&text, BODY)),
        title,
        content,
        concepts: terms::concepts(&observation.concepts, unit.domain),
        files: files(observation, &all, !named.is_empty()),
        prompt: last.and_then(|block| block.prompt),
        sources,
        provenance: provenance(&all),
        at: last.map_or(0, |block| block.at),
        tokens: None,
    })
}

/// The least trusted of the blocks; a model's words are never the user's own.
fn provenance(blocks: &[&EventBlock]) -> Provenance {
    if blocks.iter().any(|block| block.from_outside) { Provenance::Tool } else { Provenance::Agent }
}

/// Custom fields of the domain, by kind.
fn fields(observation: &ParsedObservation, domain: &Domain, is_bad: &dyn Fn(&str) -> bool) -> Map<String, Value> {
    let mut content = Map::new();
    for field in &domain.fields {
        let Some(texts) = observation.fields.get(&field.name.replace('-', "_")) else { continue };
        let texts: Vec<String> = texts.iter().filter(|text| !is_bad(text)).map(|text| cut(text, FACT)).collect();
        let Some(first) = texts.first() else { continue };
        let value = match field.kind.as_str() {
            "list" => Value::from(texts.iter().take(FILES).cloned().collect::<Vec<_>>()),
            "numbers" => {
                let numbers =
                    texts.iter().flat_map(|text| text.split([',', ' ', ';'])).filter_map(|n| n.trim().parse::<f64>().ok());
                // Whole numbers are written without a fraction.
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

/// Files that occur in a source. Tool uses, not the answer, say what was changed.
fn files(observation: &ParsedObservation, blocks: &[&EventBlock], named: bool) -> Vec<MemoryFile> {
    let mut files: Vec<MemoryFile> = Vec::new();
    let mut add = |path: &str, modified: bool| match files.iter().position(|file| file.path == path) {
        Some(at) => files[at].modified |= modified,
        None if files.len() < FILES => files.push(MemoryFile { path: path.to_string(), modified, hash: None }),
        None => {}
    };
    for named in observation.files_modified.iter().take(FILES).chain(observation.files_read.iter().take(FILES)) {
        let named = named.trim_start_matches("./");
        let same = |path: &str| path == named || named.ends_with(&format!("/{path}")) || path.ends_with(&format!("/{named}"));
        let is_there = |block: &&&EventBlock| block.path.as_deref().is_some_and(same);
        match blocks.iter().find(is_there).and_then(|block| block.path.as_deref()) {
            Some(path) => add(path, blocks.iter().any(|block| block.edits && block.path.as_deref() == Some(path))),
            None if is_path(named) && blocks.iter().any(|block| stands_in(named, block)) => add(named, false),
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

/// A plausible path inside the project.
fn is_path(named: &str) -> bool {
    named.contains(['/', '.']) && !named.contains(char::is_whitespace) && !named.starts_with(['/', '~']) && !named.contains("..")
}

fn stands_in(named: &str, block: &EventBlock) -> bool {
    [&block.parameters, &block.outcome].into_iter().flatten().any(|text| {
        text.match_indices(named).any(|(at, _)| {
            let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
            !text[..at].ends_with(is_part) && !text[at + named.len()..].starts_with(is_part)
        })
    })
}

/// Adds what the replaced memory has and the new one lacks, so that facts and evidence survive.
fn take_over(draft: &mut Draft, old: &MemoryRow, domain: &Domain) {
    let mut facts: Vec<Value> = draft.content.get("facts").and_then(Value::as_array).cloned().unwrap_or_default();
    let named = |facts: &[Value], fact: &str, draft: &Draft| {
        alike(fact, &draft.title)
            || draft.body.as_deref().is_some_and(|body| body.contains(fact))
            || facts.iter().filter_map(Value::as_str).any(|other| alike(other, fact))
    };
    // A commit's subject is already in its commit.
    let title = Some(old.title.as_str()).filter(|_| !old.content.contains_key("commit"));
    for fact in old.list("facts").into_iter().chain(title) {
        if !named(&facts, fact, draft) {
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
        (unit, None) => unit,
    };
    if old.provenance == Provenance::Tool {
        draft.provenance = Provenance::Tool;
    }
}

/// The summary from the model's sections. Its title is the request in the model's words, else in the rules' words, else
/// what was completed or learned.
fn summary(
    sections: &std::collections::BTreeMap<String, String>,
    question: &RenderedQuestion,
    unit: &UnitContext,
) -> Option<LlmDraft> {
    let is_bad = |text: &str| repeats(text, &question.withheld) || looks_like_prompt_injection(text);
    let mut content = Map::new();
    for name in SECTIONS {
        // A request may be an order; next steps may not.
        let orders = |text: &&String| name != "request" && orders(text);
        let text = sections.get(name).filter(|text| !text.is_empty() && !is_bad(text) && !is_nothing(text));
        if let Some(text) = text.filter(|text| !orders(text)) {
            content.insert(name.into(), Value::from(cut(text, SECTION)));
        }
    }
    if content.keys().all(|name| name == "request" || name == "investigated") {
        return None;
    }
    let mut existing = unit.existing.iter().filter(|old| old.kind == MemoryKind::Summary && old.superseded_by.is_none());
    if existing.clone().any(|old| old.by_hand || old.pinned) {
        return None;
    }
    let old: Vec<&MemoryRow> = existing.by_ref().collect();
    let blocks: Vec<&EventBlock> = question.blocks.iter().collect();
    let of = |name: &str| content.get(name).and_then(Value::as_str).map(String::from);
    let intent = unit.story.intent.as_deref().map(|intent| intent.split_whitespace().collect::<Vec<_>>().join(" "));
    let request = of("request").or_else(|| old.first().map(|old| old.title.clone())).or(intent);
    let title = request.or_else(|| of("completed")).or_else(|| of("learned"))?;
    let mut draft = Draft {
        key: Some(format!("model-summary:u{}", unit.story.unit)),
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
    let supersedes = old.iter().filter(|old| may_be_superseded(old)).map(|old| old.id).collect();
    Some(LlmDraft { draft, supersedes })
}

/// "None.", "n/a": a section that should have been left out.
fn is_nothing(text: &str) -> bool {
    let bare: String = text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    matches!(bare.as_str(), "" | "none" | "na" | "nothing" | "notapplicable" | "nonenoted" | "nothingnotable" | "unknown")
}

/// The first and last of many sources, in order, without duplicates.
fn thinned(mut sources: Vec<Source>) -> Vec<Source> {
    sources.sort_unstable();
    sources.dedup();
    if sources.len() <= SOURCES {
        return sources;
    }
    [&sources[..SOURCES / 2], &sources[sources.len() - SOURCES / 2..]].concat()
}
