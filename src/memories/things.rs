//! One memory for each thing that was changed or found: the chosen statements of a turn, and its commits.

use super::memory::RuleMemory;
use super::wording::worded;
use crate::choice::{Class, Judged, Speaker, Turn, commit, is_project_change};
use crate::model::{Domain, Finding, MemoryFile, Source, ToolUseRow};
use crate::rules::{by_first_word, conventional};
use crate::statements::word_lists::begins_with;
use serde_json::{Value, json};

/// First words that point at something said before.
const POINTING: &str = "it|it's|this|that|these|those|they|both|he|there|all|one|same|so|but|and|also|which|then";
/// Characters of a statement that is better a fact than a title.
const LONG: usize = 140;

/// Memories of the chosen statements, in the order of their turns.
pub fn things(turns: &[Turn], judged: &Judged, chosen: &[usize], domain: &Domain) -> Vec<RuleMemory> {
    let mut memories = Vec::new();
    // "This meant …" says nothing without the sentence before it.
    let stands = |i: &usize| {
        let said = &judged.said[*i];
        let follows = *i > 0 && judged.said[*i - 1].source == said.source && chosen.contains(&(*i - 1));
        follows || !begins_with("this|that|these|those|they|it|both", &said.text.to_lowercase())
    };
    for (at, turn) in turns.iter().enumerate() {
        let of_turn: Vec<usize> = chosen.iter().copied().filter(|i| judged.said[*i].turn == at && stands(i)).collect();
        let commits: Vec<&ToolUseRow> = turn.tools.iter().copied().filter(|tool| commit(tool).is_some()).collect();
        match commits.as_slice() {
            [] => memories.extend(thing(turns, judged, at, &of_turn, None, "", domain)),
            // What the message closes with belongs to the last commit; each commit has its own message.
            [earlier @ .., last] => {
                for made in earlier {
                    let own: Vec<usize> =
                        of_turn.iter().copied().filter(|i| judged.said[*i].source == Source::ToolUse(made.id)).collect();
                    memories.extend(thing(turns, judged, at, &own, Some(made), "", domain));
                }
                let of_earlier = |i: &usize| earlier.iter().any(|made| judged.said[*i].source == Source::ToolUse(made.id));
                let own: Vec<usize> = of_turn.iter().copied().filter(|i| !of_earlier(i)).collect();
                memories.extend(thing(turns, judged, at, &own, Some(last), "", domain));
            }
        }
    }
    memories
}

fn thing(
    turns: &[Turn],
    judged: &Judged,
    at: usize,
    statements: &[usize],
    made: Option<&ToolUseRow>,
    part: &str,
    domain: &Domain,
) -> Vec<RuleMemory> {
    let turn = &turns[at];
    let subject = made.and_then(|tool| commit(tool)?.1).map(conventional).filter(|(_, subject)| !subject.is_empty());
    let lead = statements.iter().copied().max_by(|a, b| lead(judged, *a).total_cmp(&lead(judged, *b)));
    let finding = lead.map_or(Finding::Change, |lead| found(judged, turn, lead));
    let (title, finding) = match (subject, lead) {
        (Some((named, subject)), _) => (subject.to_string(), named.unwrap_or_else(|| kind_of_change(subject, turn, domain))),
        (None, Some(lead)) => (
            worded(judged, lead),
            if finding == Finding::Change { kind_of_change(&judged.said[lead].text, turn, domain) } else { finding },
        ),
        (None, None) => return Vec::new(),
    };
    let key = match (made, turn.closing.or(turn.asked)) {
        (Some(tool), _) => format!("commit:t{}", tool.id),
        (None, Some(said)) => format!("thing:p{}{part}", said.id),
        (None, None) => return Vec::new(),
    };
    let mut memory = RuleMemory::new(key, Some(finding), &title, vec![at]);
    let mut left = Vec::new();
    for statement in statements.iter().copied().filter(|i| subject.is_some() || Some(*i) != lead) {
        // The first line of a commit's message is the title.
        if made.is_some() && judged.said[statement].text.ends_with(&memory.title) {
            continue;
        }
        if !memory.fact(&worded(judged, statement)) {
            left.push(statement);
        }
    }
    if lead.is_some_and(|lead| judged.said[lead].speaker == Speaker::Agent && is_own_choice(&judged.said[lead].text))
        && made.is_none()
    {
        memory.finding = Some(Finding::Decision);
    }
    if let Some((sha, subject)) = made.and_then(commit) {
        let mut note = json!({});
        if let Some(sha) = sha {
            note["sha"] = Value::from(sha.chars().take(12).collect::<String>());
        }
        // The title has the subject, except for the type of a conventional commit.
        if let Some(subject) = subject.filter(|subject| !subject.ends_with(&memory.title)) {
            note["subject"] = Value::from(subject);
        }
        memory.content.insert("commit".into(), note);
    }
    let edits = turn.tools.iter().filter(|tool| is_project_change(tool));
    memory.files = edits.filter_map(|tool| Some(MemoryFile { path: tool.path.clone()?, modified: true, hash: None })).collect();
    memory.sources = turn.said();
    memory.sources.extend(statements.iter().map(|i| judged.said[*i].source));
    memory.sources.extend(turn.tools.iter().filter(|tool| is_project_change(tool)).map(|tool| Source::ToolUse(tool.id)));
    memory.sources.extend(made.map(|tool| Source::ToolUse(tool.id)));
    let mut memories = vec![memory];
    // What has no room in one memory is another thing.
    if !left.is_empty() {
        memories.extend(thing(turns, judged, at, &left, None, &format!("{part}+"), domain));
    }
    memories
}

/// How well a statement can stand as a title.
fn lead(judged: &Judged, at: usize) -> f32 {
    let said = &judged.said[at];
    let points = begins_with(POINTING, &said.text.to_lowercase());
    let change = judged.contexts[said.turn].edits > 0 && judged.lexicon.count(&said.text).has(Class::Change);
    let long = said.text.chars().count() > LONG;
    judged.worth[at] + if change { 0.2 } else { 0.0 } - if points { 0.3 } else { 0.0 } - if long { 0.3 } else { 0.0 }
}

/// What kind of thing a statement is about.
fn found(judged: &Judged, turn: &Turn, at: usize) -> Finding {
    let said = &judged.said[at];
    let words = judged.lexicon.count(&said.text);
    let edits = turn.tools.iter().any(|tool| is_project_change(tool));
    let is_fixed = worded(judged, at).starts_with("Fixed");
    let cause = is_fixed || said.under.to_lowercase().contains("cause") || words.has(Class::Cause) && words.has(Class::Problem);
    match (edits, cause) {
        (true, true) => Finding::Fix,
        (true, false) if words.has(Class::Limit) && !words.has(Class::Change) => Finding::Limit,
        (true, false) => Finding::Change,
        // Who only read may quote what a page wants of its reader, so nothing of it is filed as a trap or a remedy.
        (false, true) => Finding::Cause,
        (false, false) => Finding::Discovery,
    }
}

/// Whether the agent tells of its own choice: "I chose X because Y".
fn is_own_choice(text: &str) -> bool {
    const CHOSE: &str = "i chose|i've chosen|i went with|i opted for|i decided|i picked|i settled on";
    begins_with(CHOSE, &text.to_lowercase())
}

/// The kind of a change by its first words. Where code is the work, documents are neither fixed nor given abilities.
fn kind_of_change(text: &str, turn: &Turn, domain: &Domain) -> Finding {
    let is_document = |path: &str| path.ends_with(".md") || path.ends_with(".txt") || path.starts_with("docs/");
    let mut paths = turn.tools.iter().filter(|tool| is_project_change(tool)).filter_map(|tool| tool.path.as_deref()).peekable();
    match domain.name == "coding" && paths.peek().is_some() && paths.all(is_document) {
        true => Finding::Change,
        false => by_first_word(text),
    }
}
