//! Memories of the user's decisions, each with the agent's reports of it and the files concerned.

use super::findings::{RuleMemory, worded};
use super::offers::{answers, choice};
use super::score::ScoredStatements;
use super::statements::{StatementForm, plain, word_count};
use super::turns::{Speaker, Turn, is_project_change, likeness};
use super::user_decisions::{Decided, decided};
use crate::languages::in_english;
use crate::model::{Finding, MemoryFile, Provenance, Source};
use crate::text::{alike, cut, files_named, is_stop_word};
use serde_json::Value;

/// Reports of the agent beside a decision.
const REPORTS: usize = 3;
/// How much each but the first must be worth.
const FURTHER: f32 = 0.3;
/// Beginnings of what the user wants remembered.
const REMEMBER: [&str; 5] = ["remember", "keep in mind", "note that", "bear in mind", "for future"];

/// A decision, and the statements that went into it.
pub struct DecisionMemory {
    pub memory: RuleMemory,
    pub statements: Vec<usize>,
}

/// The decisions of a unit's prompts.
pub fn decisions(turns: &[Turn], judged: &ScoredStatements) -> Vec<DecisionMemory> {
    let mut all: Vec<DecisionMemory> = Vec::new();
    for decision in (0..turns.len()).flat_map(|at| of_turn(turns, judged, at)) {
        if !all.iter().any(|known| alike(&known.memory.title, &decision.memory.title)) {
            all.push(decision);
        }
    }
    all
}

fn of_turn(turns: &[Turn], judged: &ScoredStatements, at: usize) -> Vec<DecisionMemory> {
    let Some(asked) = turns[at].asked else { return Vec::new() };
    let offer = at.checked_sub(1).and_then(|before| turns[before].closing);
    let follows = (at..at + 3).find(|at| judged.contexts.get(*at).is_some_and(|context| context.edits > 0));
    let own = (0..judged.said.len()).filter(|i| judged.said[*i].turn == at && judged.said[*i].speaker == Speaker::User);
    let said = own.filter_map(|i| Some((i, decided(&judged.said[i].text, &asked.text)?)));
    let said: Vec<(usize, Decided)> = said.filter(|(i, _)| !was_shown(&turns[..at], &judged.said[*i].text)).collect();
    let (rules, wishes): (Vec<_>, Vec<_>) = said.into_iter().partition(|(_, decided)| decided.is_rule);

    let mut all: Vec<DecisionMemory> = Vec::new();
    let answered = offer.map(|offer| answers(&offer.text, &asked.text)).unwrap_or_default();
    let chosen = offer.filter(|_| answered.is_empty()).and_then(|offer| choice(&offer.text, &asked.text));
    if let Some(choice) = chosen {
        let verb = if choice.is_refusal { "Not" } else { "Chosen" };
        let mut memory = new(format!("choice:p{}", asked.id), &format!("{verb}: {}", choice.chosen), at);
        set(&mut memory, "alternatives", choice.alternatives);
        choice.reason.into_iter().for_each(|reason| drop(memory.content.insert("reasoning".into(), Value::from(reason))));
        all.push(DecisionMemory { memory, statements: Vec::new() });
    } else if let [first, rest @ ..] = answered.as_slice() {
        let mut memory = new(format!("answers:p{}", asked.id), &answer(first), at);
        for other in rest {
            memory.fact(&answer(other));
        }
        all.push(DecisionMemory { memory, statements: Vec::new() });
    }
    for (n, (statement, rule)) in rules.into_iter().enumerate() {
        let mut memory = new(format!("decision:p{}:{n}", asked.id), &rule.said, at);
        let lower = in_english(&rule.said).to_lowercase();
        if REMEMBER.iter().any(|begin| lower.starts_with(begin)) {
            memory.key = format!("lesson:p{}:{n}", asked.id);
            memory.finding = Some(Finding::Reminder);
        }
        if rule.lasts && memory.finding == Some(Finding::Decision) {
            memory.finding = Some(Finding::Constraint);
        }
        set(&mut memory, "alternatives", rule.alternatives);
        rule.reason.into_iter().for_each(|reason| drop(memory.content.insert("reasoning".into(), Value::from(reason))));
        all.push(DecisionMemory { memory, statements: vec![statement] });
    }
    // A wish is a decision where work followed it, and somebody reports on it.
    let wish = wishes.first().filter(|_| follows.is_some()).map(|(_, first)| {
        let mut memory = new(format!("wish:p{}", asked.id), &first.said, at);
        for (_, wish) in &wishes {
            memory.fact(&wish.said);
        }
        DecisionMemory { memory, statements: wishes.iter().map(|(statement, _)| *statement).collect() }
    });
    let plan = plan(judged, at).filter(|_| all.is_empty() && wish.is_none()).map(|plan| {
        let title = plain(&judged.said[plan].text);
        let memory = new(format!("plan:p{}", asked.id), title.trim_start_matches("Plan: "), at);
        DecisionMemory { memory, statements: vec![plan] }
    });
    all.extend(wish);
    all.extend(plan);
    let mut used: Vec<usize> = Vec::new();
    all.retain_mut(|decision| {
        let DecisionMemory { memory, statements } = decision;
        memory.sources.push(Source::Prompt(asked.id));
        let is_choice = memory.key.starts_with("choice:");
        memory
            .sources
            .extend(offer.filter(|_| is_choice || memory.key.starts_with("answers:")).map(|offer| Source::Prompt(offer.id)));
        let own = statements.len();
        for report in reports(judged, follows.unwrap_or(at), is_choice, memory) {
            if !used.contains(&report) && memory.fact(&worded(judged, report)) {
                statements.push(report);
                used.push(report);
                memory.sources.push(judged.said[report].source);
            }
        }
        !memory.key.starts_with("wish:") && !memory.key.starts_with("plan:") || statements.len() > own
    });
    all
}

/// An answer that says something by itself, or with its question.
fn answer((question, answer): &(String, String)) -> String {
    const WORDS: usize = 6;
    if word_count(answer) >= WORDS { answer.clone() } else { format!("{} {answer}", cut(question, 120)) }
}

fn new(key: String, title: &str, at: usize) -> RuleMemory {
    let mut memory = RuleMemory::new(key, Some(Finding::Decision), title, vec![at]);
    memory.provenance = Provenance::User;
    memory
}

fn set(memory: &mut RuleMemory, field: &str, values: Vec<String>) {
    if !values.is_empty() {
        memory.content.insert(field.into(), Value::from(values));
    }
}

/// The heading of a plan that the user ordered.
pub fn plan(judged: &ScoredStatements, at: usize) -> Option<usize> {
    (0..judged.said.len()).find(|i| {
        let said = &judged.said[*i];
        said.turn == at && said.speaker == Speaker::Plan && said.form == StatementForm::Heading && word_count(&said.text) >= 3
    })
}

/// What the agent reports of a decision: statements of the turn that followed it, by their worth and the words that they
/// share with it.
fn reports(judged: &ScoredStatements, turn: usize, is_choice: bool, memory: &RuleMemory) -> Vec<usize> {
    let decision = format!("{} {}", memory.title, memory.facts.join(" "));
    let words = crate::distil::turns::content_words(&decision).into_iter().filter(|word| !is_stop_word(word)).collect();
    let shared = |i: usize| judged.said[i].words.intersection(&words).count();
    // An order that has nothing to do with the work of its turn stands by itself.
    let is_report = |i: &usize| {
        let said = &judged.said[*i];
        said.turn == turn && said.speaker == Speaker::Agent && !said.text.ends_with(['?', '？']) && judged.may_stay(*i)
    };
    let mut reports: Vec<usize> = (0..judged.said.len()).filter(is_report).filter(|i| is_choice || shared(*i) > 0).collect();
    let gain = |i: usize| judged.worth[i] + 0.1 * shared(i).min(4) as f32 - judged.said[i].text.len() as f32 / 1500.0;
    // A rule holds whatever was done in its turn; only what is about little else belongs to it.
    let is_rule = memory.key.starts_with("decision:") || memory.key.starts_with("lesson:");
    reports.retain(|i| !is_rule || shared(*i) * 2 >= judged.said[*i].words.iter().filter(|word| !is_stop_word(word)).count());
    reports.sort_by(|a, b| gain(*b).total_cmp(&gain(*a)));
    let mut kept: Vec<usize> = Vec::new();
    for report in reports {
        let is_worth = kept.is_empty() || judged.worth[report] >= FURTHER;
        if is_worth
            && kept.iter().all(|other| likeness(&judged.said[report].words, &judged.said[*other].words) < 0.5)
            && kept.len() < REPORTS
        {
            kept.push(report);
        }
    }
    kept.sort_unstable();
    kept
}

/// Whether a tool printed the words before, or the agent said them: then they were pasted, and are nobody's decision.
fn was_shown(before: &[Turn], said: &str) -> bool {
    let bare = |text: &str| {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
    };
    let said = bare(said);
    let printed = before.iter().flat_map(|turn| &turn.tools);
    let mut printed = printed.flat_map(|tool| [tool.outcome.as_deref(), tool.metadata["response"].as_str()]).flatten();
    let mut closings = before.iter().filter_map(|turn| turn.closing).map(|closing| closing.text.as_str());
    word_count(&said) >= 4 && (printed.any(|text| bare(text).contains(&said)) || closings.any(|text| bare(text).contains(&said)))
}

/// What was said with more changed files than these is about none of them in particular.
const FEW: usize = 4;

/// Gives decisions and lessons their files.
pub fn add_files(memories: &mut [RuleMemory], turns: &[Turn]) {
    let settles = |memory: &&mut RuleMemory| {
        (memory.is_decided() || memory.finding == Some(Finding::WorkingCommand)) && memory.files.is_empty()
    };
    for memory in memories.iter_mut().filter(settles) {
        let paths = about(memory, turns);
        memory.files = paths.into_iter().map(|path| MemoryFile { path, modified: true, hash: None }).collect();
    }
}

fn about(memory: &RuleMemory, turns: &[Turn]) -> Vec<String> {
    let touched: Vec<&str> = turns.iter().flat_map(|turn| &turn.tools).filter_map(|tool| tool.path.as_deref()).collect();
    let named = files_named(&memory.title);
    if !named.is_empty() {
        // `parser.rs` is `src/parser.rs` if that was edited or read.
        let whole = |name: &str| {
            let ends = |path: &&&str| path.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with('/'));
            touched.iter().find(ends).map_or(name, |path| path).to_string()
        };
        return distinct(named.into_iter().map(whole));
    }
    let Some(&at) = memory.turns.last() else { return Vec::new() };
    let changed =
        |turn: &Turn| distinct(turn.tools.iter().filter(|tool| is_project_change(tool)).filter_map(|tool| tool.path.clone()));
    // What is decided in one turn may be done in the next.
    let paths = turns[at..].iter().take(2).map(changed).find(|paths| !paths.is_empty()).unwrap_or_default();
    if paths.len() > FEW { Vec::new() } else { paths }
}

fn distinct(paths: impl Iterator<Item = String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for path in paths {
        if !all.contains(&path) {
            all.push(path);
        }
    }
    all
}
