//! Turns a parsed answer into drafts: sources, files, and the nearest terms of the domain.

use super::answer::{ParsedAnswer, ParsedObservation, SECTIONS};
use super::blocks::EventBlock;
use super::prompt::{self, RenderedQuestion, Verdict, may_be_superseded};
use crate::model::{
    Domain, Draft, Finding, Maker, MemoryFile, MemoryKind, MemoryRow, Provenance, SUBTITLE_WORDS, Source, Term, UnitStory,
};
use crate::prompt_injection::{looks_like_prompt_injection, orders, repeats};
use crate::text::{alike, cut, cut_words, is_stop_word};
use serde_json::{Map, Value};
use strsim::osa_distance as distance;

/// Maximum characters of a title, fact, section and narrative; maximum facts, files and sources of a memory.
const TITLE: usize = 140;
const FACT: usize = 300;
const SECTION: usize = 700;
const BODY: usize = 1200;
const FACTS: usize = 8;
const FILES: usize = 40;
const SOURCES: usize = 24;
/// The type that makes an observation a decision, and the type of that decision.
const DECISION: &str = "decision";
const DECISION_TYPE: &str = "approach";

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

/// Result of an answer.
#[derive(Clone, Debug, Default)]
pub struct LlmDrafts {
    pub drafts: Vec<LlmDraft>,
    /// Memories that the answer withdraws and no draft supersedes.
    pub withdrawn: Vec<i64>,
}

/// Turns an answer into drafts.
pub fn to_drafts(answer: ParsedAnswer, question: &RenderedQuestion, unit: &UnitContext) -> LlmDrafts {
    let mut drafts: Vec<LlmDraft> = Vec::new();
    let mut verdicts = vec![Verdict::None; question.notes.len()];
    let mut judge = |numbers: &[usize], verdict: Verdict| {
        for number in numbers {
            if let Some(note) = number.checked_sub(1).and_then(|at| verdicts.get_mut(at)) {
                *note = verdict;
            }
        }
    };
    judge(&answer.withdraws, Verdict::Withdraw);
    judge(&answer.keeps, Verdict::Keep);
    for observation in answer.observations {
        let Some(mut next) = draft_of(&observation, question, unit) else { continue };
        if drafts.iter().any(|other| alike(&other.draft.title, &next.title)) {
            continue;
        }
        judge(&observation.corrects, Verdict::Corrected(drafts.len()));
        next.key = Some(format!("model:u{}:{}:{}", unit.story.unit, unit.call, drafts.len() + 1));
        drafts.push(LlmDraft { draft: next, supersedes: Vec::new() });
    }
    drafts.extend(summary(&answer.summary, question, unit));
    let withdrawn = supersede(&mut drafts, unit.existing, &question.notes, &verdicts);
    LlmDrafts { drafts, withdrawn }
}

/// Lets drafts supersede the notes that the answer corrects or withdraws, the notes that a draft repeats, and the
/// rules' summary. Returns the withdrawn notes that no draft supersedes.
fn supersede(drafts: &mut [LlmDraft], existing: &[MemoryRow], notes: &[i64], verdicts: &[Verdict]) -> Vec<i64> {
    let mut withdrawn = Vec::new();
    for old in existing.iter().filter(|old| may_be_superseded(old)) {
        let verdict = notes.iter().position(|id| *id == old.id).map_or(Verdict::None, |at| verdicts[at]);
        let successor = match verdict {
            _ if old.kind.is_summary() => drafts.iter().position(|next| next.draft.kind.is_summary()),
            Verdict::Corrected(at) => Some(at),
            Verdict::Withdraw => nearest(drafts, old),
            Verdict::Keep => drafts.iter().position(|next| alike(&next.draft.title, &old.title)),
            Verdict::None => drafts.iter().position(|next| {
                !next.draft.kind.is_summary() && prompt::covers(&text_of(&next.draft), &next.draft.sources, old)
            }),
        };
        match successor {
            Some(at) => {
                drafts[at].supersedes.push(old.id);
                take_over(&mut drafts[at].draft, old);
            }
            None if verdict == Verdict::Withdraw => withdrawn.push(old.id),
            None => {}
        }
    }
    withdrawn
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
    if is_known || unit.recorded.iter().any(|recorded| alike(recorded, &title)) {
        return None;
    }
    let kind_type = kind_type(observation.kind_type.as_deref(), unit.domain);
    // A statement of a program or page is nobody's decision.
    let messages = named.iter().any(|block| matches!(block.source, Source::Prompt(_)));
    let kind_type = match kind_type {
        Some(chosen) if chosen == DECISION && !messages => unit.domain.becomes(Finding::Discovery).kind_type,
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
    let mut body = text(&observation.narrative).map(|text| cut(&text, BODY));
    let is_decision = kind_type.as_deref() == Some(DECISION);
    if let Some(reasoning) = body.take_if(|_| is_decision) {
        content.insert("reasoning".into(), Value::from(reasoning));
    }
    Some(Draft {
        key: None,
        kind: if is_decision { MemoryKind::Decision } else { MemoryKind::Observation },
        kind_type: if is_decision { Some(DECISION_TYPE.into()) } else { kind_type },
        subtitle: text(&observation.subtitle).map(|text| cut_words(&text, SUBTITLE_WORDS)),
        body,
        provenance: if is_decision && is_of_user(&title, &named) { Provenance::User } else { provenance(&all) },
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

/// Whether a decision is the user's: it cites only messages of the user, and half of its words are theirs.
fn is_of_user(title: &str, cited: &[&EventBlock]) -> bool {
    let said = |block: &&EventBlock| [&block.parameters, &block.outcome].into_iter().flatten().cloned().collect::<Vec<_>>();
    let said: Vec<String> = cited.iter().flat_map(said).flat_map(|text| words(&text)).collect();
    let own = words(title);
    let shared = own.iter().filter(|word| said.contains(word)).count();
    !cited.is_empty() && cited.iter().all(|block| block.by_user) && shared > 0 && shared * 2 >= own.len()
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
    for name in ["commit", "success"] {
        if let Some(value) = old.content.get(name) {
            draft.content.entry(name).or_insert_with(|| value.clone());
        }
    }
    let is_summary = draft.kind.is_summary();
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

/// Returns the summary from the model's sections, which also titles the unit: the request, else the completed or
/// learned work.
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
    let existing = unit.existing.iter().filter(|old| old.kind.is_summary() && old.superseded_by.is_none());
    if existing.clone().any(|old| old.by_hand || old.pinned) {
        return None;
    }
    let blocks: Vec<&EventBlock> = question.blocks.iter().collect();
    let of = |name: &str| content.get(name).and_then(Value::as_str).map(String::from);
    let title = of("request").or_else(|| of("completed")).or_else(|| of("learned")).or_else(|| of("next_steps"));
    let title = title.or_else(|| of("notes"))?;
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
