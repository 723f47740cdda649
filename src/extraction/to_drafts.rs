//! Turns a parsed answer into drafts: sources, files, and the nearest terms of the domain.

use super::answer::{ParsedAnswer, ParsedObservation, ParsedUnit, SECTIONS};
use super::blocks::EventBlock;
use super::prompt::{self, RenderedQuestion, may_be_corrected};
use crate::model::{
    Domain, Draft, Finding, Maker, MemoryFile, MemoryKind, MemoryRow, Provenance, SUBTITLE_WORDS, Source, Term, UnitStory,
};
use crate::prompt_injection::{looks_like_prompt_injection, orders, repeats};
use crate::text::{alike, cut, cut_words, is_stop_word};
use serde_json::{Map, Value};
use strsim::osa_distance as distance;

/// Maximum characters of a title, fact, section and narrative; maximum facts, open ends, files and sources of a memory.
const TITLE: usize = 140;
const FACT: usize = 240;
const SECTION: usize = 400;
const BODY: usize = 400;
const FACTS: usize = 3;
const OPEN: usize = 4;
const FILES: usize = 40;
const SOURCES: usize = 24;
/// The types that make an observation a decision or a record of what did not help, and the type of that decision.
const DECISION: &str = "decision";
const TRIED: &str = "tried";
const DECISION_TYPE: &str = "approach";

/// A memory drafted by a model, and the rows it supersedes.
#[derive(Clone, Debug)]
pub struct LlmDraft {
    pub draft: Draft,
    pub supersedes: Vec<i64>,
}

/// Context of a unit besides the answer.
#[derive(Clone, Debug)]
pub struct UnitContext<'a> {
    pub story: &'a UnitStory,
    pub domain: &'a Domain,
    /// The unit's active memories.
    pub existing: &'a [MemoryRow],
    /// Memories of the unit that a person replaced.
    pub refused: &'a [MemoryRow],
    /// Active memories of the session that persons, the agent or models created.
    pub recorded: &'a [MemoryRow],
    /// Row of the call in `spend`; part of the memories' keys.
    pub call: i64,
}

/// Result of an answer for one unit.
#[derive(Clone, Debug, Default)]
pub struct LlmDrafts {
    pub drafts: Vec<LlmDraft>,
    /// Memories that the answer withdraws and no draft supersedes.
    pub withdrawn: Vec<i64>,
}

/// Turns an answer into drafts, for each unit of the question.
pub fn to_drafts(answer: ParsedAnswer, question: &RenderedQuestion, units: &[UnitContext]) -> Vec<LlmDrafts> {
    let record = |number: &usize| *question.records.get(number.checked_sub(1)?)?;
    let mut all: Vec<LlmDrafts> = vec![LlmDrafts::default(); units.len()];
    let Some(last) = (0..units.len()).rev().find(|at| question.entries[*at] > 0) else { return all };
    let mut corrected: Vec<i64> = Vec::new();
    for observation in &answer.observations {
        let cited = |at: &usize| observation.sources.iter().filter(|n| question.entries_of(*at).contains(n)).count();
        let at = (0..units.len()).rev().max_by_key(cited).filter(|at| cited(at) > 0).unwrap_or(last);
        let corrects: Vec<i64> = observation.corrects.iter().filter_map(record).filter(|id| !corrected.contains(id)).collect();
        let Some(mut next) = draft_of(observation, &corrects, question, &units[at], at) else { continue };
        if all.iter().flat_map(|of_unit| &of_unit.drafts).any(|other| alike(&other.draft.title, &next.title)) {
            continue;
        }
        let of_unit = &mut all[at].drafts;
        next.key = Some(format!("model:u{}:{}:{}", units[at].story.unit, units[at].call, of_unit.len() + 1));
        corrected.extend(&corrects);
        of_unit.push(LlmDraft { draft: next, supersedes: corrects });
    }
    for (at, unit) in units.iter().enumerate().filter(|(at, _)| question.entries[*at] > 0) {
        let numbered = answer.units.iter().rev().find(|said| said.number == Some(at + 1) || units.len() == 1);
        // Without numbers, they are in order.
        let in_order = answer.units.get(at).filter(|said| said.number.is_none() && answer.units.len() == units.len());
        if let Some(said) = numbered.or(in_order) {
            let open = open_ends(said, question, unit, at);
            let summary = summary(said, &open, question, unit, at);
            let open = open.into_iter().map(|draft| LlmDraft { draft, supersedes: Vec::new() });
            all[at].drafts.extend(open.chain(summary));
        }
        all[at].withdrawn = supersede_rules(&mut all[at].drafts, unit.existing);
    }
    // A withdrawn record leads to the draft about the same subject.
    for id in answer.withdraws.iter().filter_map(record).filter(|id| !corrected.contains(id)) {
        let old = units[last].recorded.iter().find(|memory| memory.id == id);
        match old.and_then(|old| nearest(&all[last].drafts, old)) {
            Some(at) => all[last].drafts[at].supersedes.push(id),
            None => all[last].withdrawn.push(id),
        }
    }
    all
}

/// Lets drafts supersede the memories that rules drew from the unit, except for those that tools prove and no draft
/// repeats. Returns those that no draft supersedes.
fn supersede_rules(drafts: &mut [LlmDraft], existing: &[MemoryRow]) -> Vec<i64> {
    let mut withdrawn = Vec::new();
    for old in existing.iter().filter(|old| old.made_by == Maker::Rules && may_be_corrected(old)) {
        let repeats =
            |next: &LlmDraft| !next.draft.kind.is_summary() && prompt::covers(&text_of(&next.draft), &next.draft.sources, old);
        let successor = match drafts.iter().position(repeats) {
            _ if old.kind.is_summary() => drafts.iter().position(|next| next.draft.kind.is_summary()),
            Some(at) => Some(at),
            None if is_proved_by_tools(old) => continue,
            None => nearest(drafts, old),
        };
        match successor {
            Some(at) => {
                drafts[at].supersedes.push(old.id);
                take_over(&mut drafts[at].draft, old);
            }
            None if old.kind.is_summary() => {}
            None => withdrawn.push(old.id),
        }
    }
    withdrawn
}

/// Whether tools prove a memory of the rules: a command failed and was fixed, or works in another form.
fn is_proved_by_tools(memory: &MemoryRow) -> bool {
    memory.provenance == Provenance::Tool && !memory.kind.is_summary()
}

/// Returns the draft that shares most sources with a memory; the first one on a tie.
fn nearest(drafts: &[LlmDraft], old: &MemoryRow) -> Option<usize> {
    let shared = |at: &usize| old.sources.iter().filter(|id| drafts[*at].draft.sources.contains(id)).count();
    (0..drafts.len()).rev().max_by_key(shared)
}

/// Title and facts of a draft.
fn text_of(draft: &Draft) -> String {
    let facts = draft.content.get("facts").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    std::iter::once(draft.title.as_str()).chain(facts).collect::<Vec<_>>().join("\n")
}

/// Whether the sources include half of a memory's own.
fn covers(sources: &[Source], old: &MemoryRow) -> bool {
    let among = old.sources.iter().filter(|id| sources.contains(id)).count();
    among > 0 && among * 2 >= old.sources.len()
}

/// Checks an observation against the blocks; `None` if it is not credible or already known.
fn draft_of(
    observation: &ParsedObservation,
    corrects: &[i64],
    question: &RenderedQuestion,
    unit: &UnitContext,
    at: usize,
) -> Option<Draft> {
    let named: Vec<&EventBlock> = observation.sources.iter().filter_map(|n| question.blocks.get(n.checked_sub(1)?)).collect();
    // Unknown block numbers count as none: then the whole unit is the source.
    let of_unit = || question.entries_of(at).filter_map(|n| question.blocks.get(n - 1)).collect();
    let all: Vec<&EventBlock> = if named.is_empty() { of_unit() } else { named.clone() };
    // Without naming a block, a model cannot attribute anything to the user.
    let by_user = named.iter().any(|block| block.by_user);
    let is_bad = |text: &str| repeats(text, &question.withheld) || looks_like_prompt_injection(text) || !by_user && orders(text);
    let title = cut(observation.title.trim_end_matches('.'), TITLE);
    if title.chars().filter(|c| c.is_alphanumeric()).count() < 2 || is_bad(&observation.title) {
        return None;
    }
    let sources = thinned(all.iter().map(|block| block.source).collect());
    // Summaries and tasks cover the whole unit, so they do not make an observation redundant.
    let is_whole = |memory: &&MemoryRow| memory.kind.is_summary() || memory.kind == MemoryKind::Task;
    let is_touched = |memory: &&MemoryRow| memory.by_hand || memory.pinned;
    let fixed = unit.existing.iter().filter(is_touched).chain(unit.refused).filter(|memory| !is_whole(memory));
    // A message may make several points, a tool use only one.
    let of_messages = sources.iter().all(|source| matches!(source, Source::Prompt(_)));
    let is_known = fixed.into_iter().any(|memory| {
        let same = memory.sources.iter().filter(|id| sources.contains(id)).count();
        let same_subject = !of_messages || words(&title).iter().any(|word| words(&memory.title).contains(word));
        alike(&memory.title, &title) || !named.is_empty() && same > 0 && same * 2 >= sources.len() && same_subject
    });
    if is_known || unit.recorded.iter().any(|record| !corrects.contains(&record.id) && alike(&record.title, &title)) {
        return None;
    }
    let given = observation.kind_type.as_deref().map(bare);
    // A statement of a program or page is nobody's decision.
    let messages = named.iter().any(|block| matches!(block.source, Source::Prompt(_)));
    let kind = match given.as_deref() {
        Some(TRIED) => MemoryKind::Tried,
        Some(DECISION) if messages => MemoryKind::Decision,
        _ => MemoryKind::Observation,
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
    let mut body = text(&observation.narrative).map(|text| cut(&text, BODY));
    if let Some(reasoning) = body.take_if(|_| kind == MemoryKind::Decision) {
        content.insert("reasoning".into(), Value::from(reasoning));
    }
    let is_of_user = matches!(kind, MemoryKind::Decision | MemoryKind::Tried) && is_of_user(observation, &title, &named);
    Some(Draft {
        key: None,
        kind,
        kind_type: match kind {
            MemoryKind::Decision => Some(DECISION_TYPE.into()),
            MemoryKind::Tried => None,
            _ => kind_type(given.as_deref().filter(|given| *given != DECISION), unit.domain),
        },
        subtitle: text(&observation.subtitle).map(|text| cut_words(&text, SUBTITLE_WORDS)),
        body,
        provenance: if is_of_user { Provenance::User } else { provenance(&all) },
        title,
        content,
        concepts: concepts(&observation.concepts, unit.domain),
        files: files(observation, &all, !named.is_empty()),
        prompt: last.and_then(|block| block.prompt),
        sources,
        at: last.map_or(0, |block| block.at),
        tokens: None,
    })
}

/// Whether a decision is the user's: the model says so and cites a message of the user, or, if it says nothing of who
/// decided, cites such messages only. A third of its words must stand in the cited messages, since a tool's output may
/// not put words into the user's mouth.
fn is_of_user(observation: &ParsedObservation, title: &str, cited: &[&EventBlock]) -> bool {
    let by_user = match observation.by.as_deref().map(bare).as_deref() {
        Some("user" | "person" | "human") => cited.iter().any(|block| block.by_user),
        Some("agent" | "assistant") => false,
        _ => !cited.is_empty() && cited.iter().all(|block| block.by_user),
    };
    let messages = cited.iter().filter(|block| matches!(block.source, Source::Prompt(_)));
    let said: Vec<String> = messages.filter_map(|block| block.outcome.as_deref()).flat_map(words).collect();
    let own = words(&text_with_facts(title, observation));
    let shared = own.iter().filter(|word| said.contains(word)).count();
    by_user && shared > 0 && shared * 3 >= own.len()
}

fn text_with_facts(title: &str, observation: &ParsedObservation) -> String {
    std::iter::once(title).chain(observation.facts.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
}

/// The words of a text without stop words.
fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty() && !is_stop_word(word));
    words.map(String::from).collect()
}

/// Returns the provenance of the least trusted block.
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

/// Returns the files that occur in a source. Tool uses, not the answer, determine which were changed.
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
        for block in blocks.iter().filter(|block| !block.failed && (block.edits || block.reads)) {
            if let Some(path) = &block.path {
                add(path, block.edits);
            }
        }
    }
    files
}

/// Whether a name is a plausible path inside the project.
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

/// Takes over from a superseded memory only what tools showed: its commit and its outcome, its token cost, and, if the
/// draft is about the same work, its files. None of its text is taken over.
fn take_over(draft: &mut Draft, old: &MemoryRow) {
    let is_summary = draft.kind.is_summary();
    // The request of a summary is what the user said.
    for name in ["commit", "success"].into_iter().chain(Some("request").filter(|_| is_summary)) {
        if let Some(value) = old.content.get(name) {
            draft.content.entry(name).or_insert_with(|| value.clone());
        }
    }
    if is_summary && old.kind.is_summary() {
        draft.kind_type = draft.kind_type.take().or_else(|| old.kind_type.clone());
    }
    if is_summary || covers(&draft.sources, old) {
        for file in &old.files {
            match draft.files.iter_mut().find(|known| known.path == file.path) {
                Some(known) => *known = MemoryFile { modified: known.modified || file.modified, ..file.clone() },
                None => draft.files.push(file.clone()),
            }
        }
    }
    draft.tokens = match (draft.tokens, old.tokens) {
        (Some((a, rough)), Some(b)) => Some((a + b, rough || old.tokens_estimated)),
        (None, Some(b)) => Some((b, old.tokens_estimated)),
        (unit, None) => unit,
    };
}

/// The open ends of a unit that are not recorded yet.
fn open_ends(said: &ParsedUnit, question: &RenderedQuestion, unit: &UnitContext, at: usize) -> Vec<Draft> {
    let blocks: Vec<&EventBlock> = question.entries_of(at).filter_map(|n| question.blocks.get(n - 1)).collect();
    let is_bad = |text: &str| repeats(text, &question.withheld) || looks_like_prompt_injection(text) || orders(text);
    let is_known = |text: &str| unit.recorded.iter().chain(unit.refused).any(|record| alike(&record.title, text));
    let mut open: Vec<Draft> = Vec::new();
    for text in said.open.iter().filter(|text| !is_nothing(text) && !is_bad(text)).map(|text| cut(text, TITLE)) {
        if open.len() == OPEN || is_known(&text) || open.iter().any(|other| alike(&other.title, &text)) {
            continue;
        }
        open.push(Draft {
            key: Some(format!("open:u{}:{}:{}", unit.story.unit, unit.call, open.len() + 1)),
            kind: MemoryKind::Open,
            kind_type: None,
            title: text.trim_end_matches('.').to_string(),
            subtitle: None,
            body: None,
            content: Map::new(),
            concepts: Vec::new(),
            files: Vec::new(),
            prompt: blocks.last().and_then(|block| block.prompt),
            sources: blocks.last().map(|block| block.source).into_iter().collect(),
            provenance: provenance(&blocks),
            at: blocks.iter().map(|block| block.at).max().unwrap_or(0),
            tokens: None,
        });
    }
    open
}

/// Returns the summary, which also titles the unit.
fn summary(said: &ParsedUnit, open: &[Draft], question: &RenderedQuestion, unit: &UnitContext, at: usize) -> Option<LlmDraft> {
    let is_bad = |text: &str| repeats(text, &question.withheld) || looks_like_prompt_injection(text);
    let mut content = Map::new();
    for name in SECTIONS {
        // A request may be an order; next steps may not.
        let orders = |text: &&String| name != "request" && orders(text);
        let text = said.sections.get(name).filter(|text| !text.is_empty() && !is_bad(text) && !is_nothing(text));
        if let Some(text) = text.filter(|text| !orders(text)) {
            content.insert(name.into(), Value::from(cut(text, SECTION)));
        }
    }
    let open: Vec<&str> = open.iter().map(|draft| draft.title.as_str()).collect();
    if !open.is_empty() {
        content.entry("next_steps").or_insert_with(|| Value::from(cut(&open.join("; "), SECTION)));
    }
    let existing = unit.existing.iter().filter(|old| old.kind.is_summary() && old.superseded_by.is_none());
    if existing.clone().any(|old| old.by_hand || old.pinned) {
        return None;
    }
    let given =
        Some(said.title.as_str()).filter(|title| !title.is_empty() && !is_bad(title) && !is_nothing(title)).map(String::from);
    // Without a title, what was done is one. A request alone says nothing.
    let of = |name: &str| content.get(name).and_then(Value::as_str).map(String::from);
    let of_section = || ["completed", "learned", "next_steps", "notes"].iter().find_map(|name| of(name));
    let title = given.or_else(|| Some(of("request").filter(|_| of_section().is_some()).unwrap_or(of_section()?)))?;
    let blocks: Vec<&EventBlock> = question.entries_of(at).filter_map(|n| question.blocks.get(n - 1)).collect();
    let mut draft = Draft {
        key: Some(format!("model-summary:u{}", unit.story.unit)),
        kind: MemoryKind::Summary,
        kind_type: None,
        title: cut(title.trim_end_matches('.'), TITLE),
        subtitle: None,
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
    // A call about the rest of a unit may omit what an earlier call reported.
    for old in existing.filter(|old| old.made_by != Maker::Rules) {
        for (name, value) in &old.content {
            draft.content.entry(name.clone()).or_insert_with(|| value.clone());
        }
        draft.files.extend(old.files.clone());
        draft.tokens = old.tokens.map(|tokens| (tokens, old.tokens_estimated));
    }
    Some(LlmDraft { draft, supersedes: Vec::new() })
}

/// Whether a section should have been left out: "None.", "n/a".
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

/// Synonyms that models use for a fix, a feature, …; each list maps to the type that the domain uses for that finding.
const MEANT: [(Finding, &[&str]); 5] = [
    (Finding::Fix, &["bug", "fix", "bug-fix", "bugfixes", "hotfix", "fixed", "problem", "error", "issue", "defect"]),
    (Finding::Feature, &["new-feature", "enhancement", "improvement", "addition", "implementation", "feat", "added"]),
    (Finding::Refactor, &["refactoring", "cleanup", "clean-up", "restructure", "rename", "restructuring"]),
    (
        Finding::Change,
        &[
            "changed",
            "update",
            "modification",
            "docs",
            "documentation",
            "config",
            "configuration",
            "chore",
            "test",
            "tests",
            "dependency",
            "removal",
        ],
    ),
    (
        Finding::Discovery,
        &[
            "finding",
            "insight",
            "learning",
            "learned",
            "investigation",
            "analysis",
            "research",
            "observation",
            "how-it-works",
            "gotcha",
            "note",
        ],
    ),
];

/// The type of an observation: exact, near, or the one for discoveries.
pub fn kind_type(given: Option<&str>, domain: &Domain) -> Option<String> {
    let fallback = || domain.becomes(Finding::Discovery).kind_type;
    let Some(given) = given.map(bare).filter(|given| !given.is_empty()) else { return fallback() };
    if let Some(term) = nearest_term(&given, &domain.types) {
        return Some(term.to_string());
    }
    let meant = MEANT.iter().find(|(_, words)| words.contains(&given.as_str())).map(|(found, _)| *found);
    meant.and_then(|finding| domain.becomes(finding).kind_type).or_else(fallback)
}

/// The domain's concepts among the given ones, five at most; others are dropped.
pub fn concepts(given: &[String], domain: &Domain) -> Vec<String> {
    let mut term: Vec<String> = Vec::new();
    for concept in
        given.iter().map(|given| bare(given)).filter_map(|given| nearest_term(&given, &domain.concepts).map(String::from))
    {
        if !term.contains(&concept) && term.len() < 5 {
            term.push(concept);
        }
    }
    term
}

/// Returns a name in lower case, with words joined by `-`.
fn bare(given: &str) -> String {
    let given = given.trim().trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    given.split(|c: char| c.is_whitespace() || c == '_').filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}

/// The term with that name, or the only one with a near spelling.
fn nearest_term<'a>(given: &str, terms: &'a [Term]) -> Option<&'a str> {
    if let Some(term) = terms.iter().find(|term| bare(&term.name) == given) {
        return Some(&term.name);
    }
    let within = given.len() / 4;
    let mut near = terms.iter().filter(|term| distance(&bare(&term.name), given) <= within.min(2));
    match (near.next(), near.next()) {
        (Some(term), None) => Some(&term.name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Becomes, MemoryKind};

    fn domain() -> Domain {
        let term = |name: &str| Term { name: name.into(), ..Term::default() };
        let findings = [("fix", "bugfix"), ("feature", "feature"), ("discovery", "discovery")];
        let becomes =
            |kind_type: &str| Becomes { kind: MemoryKind::Observation, kind_type: Some(kind_type.into()), concepts: vec![] };
        Domain {
            findings: findings.map(|(name, kind_type)| (name.into(), becomes(kind_type))).into(),
            types: vec![term("bugfix"), term("feature"), term("discovery")],
            concepts: vec![term("how-it-works"), term("gotcha"), term("trade-off")],
            ..Domain::default()
        }
    }

    #[test]
    fn a_type_that_is_not_the_domains_goes_to_the_nearest() {
        for (given, expected) in [
            ("bugfix", "bugfix"),
            ("Bug Fix", "bugfix"),
            ("bug", "bugfix"),
            ("enhancement", "feature"),
            ("featur", "feature"),
            ("documentation", "bugfix"), // No type asks for changes: the first one.
            ("poem", "discovery"),
        ] {
            assert_eq!(kind_type(Some(given), &domain()).as_deref(), Some(expected), "{given}");
        }
        assert_eq!(kind_type(None, &domain()).as_deref(), Some("discovery"));
    }

    #[test]
    fn concepts_are_the_domains_or_none() {
        let given = ["How it works", "gotchas", "tradeoff", "bugfix", "how-it-works"].map(String::from);
        assert_eq!(concepts(&given, &domain()), ["how-it-works", "gotcha", "trade-off"]);
    }
}
