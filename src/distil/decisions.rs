//! Memories of the user's decisions, each with the agent's reports of it and the files concerned.

use super::commands::acts;
use super::findings::{RuleMemory, worded};
use super::offers::{WORDS_ALONE, answers, choice};
use super::score::ScoredStatements;
use super::statements::{StatementForm, Words, begins_with, has_word_of, word_count};
use super::turns::{Speaker, Turn, WordSet, is_project_change, likeness};
use super::user_decisions::{Decided, answer_lasts, decided, forbids_what_was_said, is_of_design, settles, with_reason};
use crate::languages::{Language, in_english};
use crate::model::{Finding, IN_PLAN, MemoryFile, Provenance, STATED_IN, Source, ToolUseRow, UserAnswer};
use crate::text::{alike, cut, files_named, is_stop_word};
use serde_json::Value;
use std::cell::OnceCell;

/// Maximum number of the agent's reports in a decision.
const REPORTS: usize = 3;
/// Minimum score of each report but the first.
const FURTHER: f32 = 0.35;
/// Prefixes of what the user asks to remember.
const REMEMBER: [&str; 5] = ["remember", "keep in mind", "note that", "bear in mind", "for future"];

/// A decision and the statements that it consists of.
struct DecisionMemory {
    memory: RuleMemory,
    statements: Vec<usize>,
}

/// Returns the decisions in a unit's prompts, and the statements that they consist of.
pub fn decisions(turns: &[Turn], scored: &ScoredStatements) -> (Vec<RuleMemory>, Vec<usize>) {
    let (mut memories, mut used): (Vec<RuleMemory>, Vec<usize>) = (Vec::new(), Vec::new());
    let shown = ShownTexts { turns, texts: OnceCell::new() };
    for turn in 0..turns.len() {
        for decision in of_turn(turns, scored, turn, &used, &shown) {
            if !memories.iter().any(|known| alike(&known.title, &decision.memory.title)) {
                memories.push(decision.memory);
                used.extend(decision.statements);
            }
        }
    }
    (memories, used)
}

/// The decisions of a turn. Reports that are `reported` belong to earlier ones.
fn of_turn(turns: &[Turn], scored: &ScoredStatements, at: usize, reported: &[usize], shown: &ShownTexts) -> Vec<DecisionMemory> {
    let Some(asked) = turns[at].asked else { return Vec::new() };
    let offer = at.checked_sub(1).and_then(|before| turns[before].closing);
    let follows = (at..at + 3).find(|at| scored.facts.get(*at).is_some_and(|context| context.edits > 0));
    let follows = follows.or_else(|| (at..at + 3).find(|at| turns.get(*at).is_some_and(acts)));
    let own = scored.of_turn(at).filter(|i| scored.statements[*i].speaker == Speaker::User);
    let language = Language::of(&asked.text);
    let of_user = |i: usize| scored.statements.get(i).filter(|one| one.turn == at && one.speaker == Speaker::User);
    let forbidden = |i: usize| {
        let (before, text) = (of_user(i.checked_sub(1)?)?, &scored.statements[i].text);
        let said = format!("{} {}", before.text, text.trim_end_matches(['.', '!']));
        let rule = Decided { said, alternatives: Vec::new(), reason: None, is_rule: true, lasts: true, is_definite: true };
        forbids_what_was_said(text).then_some(rule)
    };
    let said = own.filter_map(|i| Some((i, forbidden(i).or_else(|| decided(&scored.statements[i].text, language))?)));
    let said: Vec<(usize, Decided)> = said.filter(|(i, _)| !shown.before(at, &scored.statements[*i].text)).collect();
    let (rules, wishes): (Vec<_>, Vec<_>) = said.into_iter().partition(|(_, decided)| decided.is_rule);

    let mut all: Vec<DecisionMemory> = Vec::new();
    let answered = offer.map(|offer| answers(&offer.text, &asked.text)).unwrap_or_default();
    let chosen = offer.filter(|_| answered.is_empty()).and_then(|offer| choice(&offer.text, &asked.text));
    if let Some(choice) = chosen {
        let verb = if choice.is_refusal { "Not" } else { "Chosen" };
        let mut memory = new(format!("choice:p{}", asked.id), &format!("{verb}: {}", plainly(&choice.chosen)), at);
        set(&mut memory, "alternatives", choice.alternatives.iter().map(|option| plainly(option)).collect());
        choice.reason.into_iter().for_each(|reason| drop(memory.content.insert("reasoning".into(), Value::from(reason))));
        all.push(DecisionMemory { memory, statements: Vec::new() });
    } else if let [first, rest @ ..] = answered.as_slice() {
        let mut memory = new(format!("answers:p{}", asked.id), &answer(first), at);
        for other in rest {
            memory.fact(&answer(other));
        }
        all.push(DecisionMemory { memory, statements: Vec::new() });
    }
    for row in &turns[at].answers {
        let settled: Vec<UserAnswer> = UserAnswer::parse(&row.text).into_iter().filter(settles_design).collect();
        let Some((first, rest)) = settled.split_first() else { continue };
        let mut memory = answer_memory(format!("answer:p{}", row.id), first, at);
        if !rest.is_empty() {
            memory.content.clear();
        }
        // The questions of one form belong together.
        for (n, other) in rest.iter().enumerate() {
            if !memory.fact(&answer_title(&other.question, &plainly(&other.text).replace('\n', " "))) {
                let memory = answer_memory(format!("answer:p{}:{n}", row.id), other, at);
                all.push(DecisionMemory { memory, statements: Vec::new() });
            }
        }
        memory.sources.push(Source::Prompt(row.id));
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
    let definite = wishes.iter().any(|(_, wish)| wish.is_definite);
    let best = wishes.iter().max_by_key(|(at, wish)| (wish.lasts, wish.is_definite, std::cmp::Reverse(*at)));
    let wish = best.filter(|_| follows.is_some()).map(|(_, best)| {
        let mut memory = new(format!("wish:p{}", asked.id), &best.said, at);
        for (_, wish) in &wishes {
            memory.fact(&wish.said);
        }
        DecisionMemory { memory, statements: wishes.iter().map(|(statement, _)| *statement).collect() }
    });
    let plan = all.is_empty() && wish.is_none() && follows.is_some();
    all.extend(wish);
    let settled = if plan { settled_by_plan(scored, at) } else { Vec::new() };
    if let Some(first) = settled.first() {
        let heading = scored.plan(at).map(|plan| scored.statements[plan].text.trim_start_matches("Plan: "));
        let first = worded(scored, *first);
        let title = heading.map_or(first.clone(), |heading| format!("{heading}: {first}"));
        let mut memory = new(format!("plan:p{}", asked.id), &title, at);
        memory.content.insert(STATED_IN.into(), Value::from(IN_PLAN));
        for other in &settled[1..] {
            memory.fact(&worded(scored, *other));
        }
        let reason = reason_of_plan(scored, at).map(|reason| Value::from(scored.statements[reason].text.as_str()));
        reason.into_iter().for_each(|reason| drop(memory.content.insert("reasoning".into(), reason)));
        all.push(DecisionMemory { memory, statements: settled });
    }
    let mut used: Vec<usize> = reported.to_vec();
    all.retain_mut(|decision| {
        let DecisionMemory { memory, statements } = decision;
        memory.sources.push(Source::Prompt(asked.id));
        let is_choice = memory.key.starts_with("choice:");
        memory
            .sources
            .extend(offer.filter(|_| is_choice || memory.key.starts_with("answers:")).map(|offer| Source::Prompt(offer.id)));
        let own = statements.len();
        let mut reported = Vec::new();
        if !is_choice {
            reported.extend(acknowledged(scored, at, &memory.title));
        }
        if !is_choice || follows.is_some() {
            reported.extend(reports(scored, at, follows, is_choice, memory));
        }
        for report in reported {
            if !used.contains(&report) && memory.fact(&worded(scored, report)) {
                statements.push(report);
                used.push(report);
                memory.sources.push(scored.statements[report].source);
            }
        }
        !memory.key.starts_with("wish:") || statements.len() > own || definite
    });
    all
}

/// Headings of a plan above what it settles.
const SETTLED: Words = "decision|decisions|constraint|constraints|non-goals|out of scope|scope|key insight|insight|principle|principles|rules|requirements|trade-offs|no changes|what stays";
/// Words of a sentence that says how something shall be and shall not be.
const SETTLES: Words = " not |n't | only |only | instead of |rather than|keep |keeps |kept |never |always |must |without |no |default|unless|prefer|backward";
/// Maximum decisions of a plan.
const OF_PLAN: usize = 4;

/// Returns what a plan that the user ordered settles, besides listing the work: at most four statements, the best first.
fn settled_by_plan(scored: &ScoredStatements, turn: usize) -> Vec<usize> {
    let worth = |at: usize| {
        let said = &scored.statements[at];
        let (text, under) = (&said.lower, said.under.to_lowercase());
        let heading = if has_word_of(SETTLED, &under) { 0.5 } else { 0.0 };
        let words = if has_word_of(SETTLES, text) { 0.3 } else { 0.0 };
        (heading + words > 0.0).then_some(heading + words + scored.scores[at])
    };
    let settles = |at: &usize| {
        let said = &scored.statements[*at];
        let lower = said.text.to_lowercase();
        !begins_with("run |verify|check |test |currently|add |create |update |implement |write |build |extend |modify ", &lower)
            && !has_word_of(
                "already |: verify|→ verify|test with|tests for|appears |seems |are not the |is not the |unused",
                &lower,
            )
            && !begins_with("verification|testing|test plan|tests|unit tests", &scored.headings[*at])
            && !said.under.rsplit(" > ").next().is_some_and(|above| above.contains(".test."))
            && !is_of_before(&said.under)
            && scored.is_current(*at)
    };
    let mut all: Vec<(usize, f32)> = of_plan(scored, turn).filter(settles).filter_map(|at| Some((at, worth(at)?))).collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut kept: Vec<usize> = Vec::new();
    for (at, _) in all {
        let repeats = |other: &usize| likeness(&scored.statements[at].words, &scored.statements[*other].words) >= 0.5;
        if kept.len() < OF_PLAN && !kept.iter().any(repeats) {
            kept.push(at);
        }
    }
    // The first one names the decision: it is the one that the plan's heading and reasons speak of most.
    let why: WordSet = of_plan_reasons(scored, turn);
    let spoken = |at: &usize| scored.statements[*at].words.intersection(&why).filter(|word| !is_stop_word(word)).count();
    if let Some(first) = (0..kept.len()).rev().max_by_key(|at| spoken(&kept[*at])) {
        let first = kept.remove(first);
        kept.insert(0, first);
    }
    kept
}

/// The words of a plan's heading and of what it says about the time before it.
fn of_plan_reasons(scored: &ScoredStatements, turn: usize) -> WordSet {
    let before = of_plan(scored, turn).filter(|at| is_of_before(&scored.statements[*at].under));
    scored.plan(turn).into_iter().chain(before).flat_map(|at| scored.statements[at].words.iter().cloned()).collect()
}

/// Headings of a plan above what was so before it.
const BEFORE: Words = "context|problem|background|current|issue|why|motivation|root cause|cause";

/// Whether a heading of a plan above a statement, below the plan's title, announces what was so before it.
fn is_of_before(under: &str) -> bool {
    let under = in_english(under).to_lowercase();
    under.split_once(" > ").is_some_and(|(_, below)| below.split(" > ").any(|heading| begins_with(BEFORE, heading)))
}

/// Returns the reason for a plan: of what it says about the time before it, the statement that scores best.
fn reason_of_plan(scored: &ScoredStatements, turn: usize) -> Option<usize> {
    let before = of_plan(scored, turn).filter(|at| {
        let said = &scored.statements[*at];
        // A description of the time before is no reason, and no longer true.
        begins_with(BEFORE, &scored.headings[*at]) && !has_word_of("current|the existing|already ", &said.lower)
    });
    before.max_by(|a, b| scored.scores[*a].total_cmp(&scored.scores[*b]))
}

/// The sentences and items of a plan that the user ordered in a turn.
fn of_plan(scored: &ScoredStatements, turn: usize) -> impl Iterator<Item = usize> {
    let states = move |at: &usize| {
        let said = &scored.statements[*at];
        said.speaker == Speaker::Plan
            && !matches!(said.form, StatementForm::Heading | StatementForm::Shown)
            && word_count(&said.text) >= 4
            && !said.text.ends_with(['?', '？'])
    };
    scored.of_turn(turn).filter(states)
}

/// Marks of an option that the agent recommends.
const RECOMMENDED: [&str; 2] = [" (Recommended)", " (recommended)"];

/// Whether an answer says how something shall be.
fn settles_design(answer: &UserAnswer) -> bool {
    settles(&answer.text) && (is_of_design(&answer.question) || answer_lasts(&answer.text))
}

/// An option's text without the agent's mark.
fn plainly(text: &str) -> String {
    RECOMMENDED.iter().fold(text.to_string(), |text, mark| text.replace(mark, "")).trim().to_string()
}

/// Returns the decision in an answer to a question that the agent asked by a tool.
fn answer_memory(key: String, answered: &UserAnswer, at: usize) -> RuleMemory {
    let text = plainly(&answered.text);
    let mut memory = new(key, &answer_title(&answered.question, &text.replace('\n', " ")), at);
    if !answered.options.contains(&answered.text) && answer_lasts(&text) {
        memory.finding = Some(Finding::Constraint);
    }
    if !memory.title.starts_with(&answered.question) {
        memory.content.insert("question".into(), Value::from(answered.question.as_str()));
    }
    // Several options may be chosen at once, with commas between them.
    let is_chosen = |option: &String| {
        text == *option
            || text.split([',', '\n']).any(|part| part.trim() == option)
            || option.contains(',') && text.contains(option)
    };
    let options = answered.options.iter().map(|option| plainly(option));
    set(&mut memory, "alternatives", options.filter(|option| !is_chosen(option)).collect());
    with_reason(&text).1.into_iter().for_each(|reason| drop(memory.content.insert("reasoning".into(), Value::from(reason))));
    memory
}

/// Combines an answer with its question; a long question comes last.
fn answer_title(question: &str, said: &str) -> String {
    const QUESTION: usize = 100;
    let asked = question.rsplit(". ").find(|sentence| sentence.ends_with('?')).unwrap_or(question);
    match word_count(said) {
        WORDS_ALONE.. => said.to_string(),
        _ if asked.chars().count() <= QUESTION => format!("{asked} {said}"),
        _ => format!("{said} (asked: {})", cut(asked, QUESTION)),
    }
}

/// An answer that says something by itself, or with its question.
fn answer((question, answer): &(String, String)) -> String {
    if word_count(answer) >= WORDS_ALONE { answer.clone() } else { format!("{} {answer}", cut(question, 120)) }
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

/// Selects the agent's reports of a decision: statements of its turn and of the one that carries it out, by their score and
/// the words that they share with it.
fn reports(scored: &ScoredStatements, turn: usize, follows: Option<usize>, is_choice: bool, memory: &RuleMemory) -> Vec<usize> {
    let decision = format!("{} {}", memory.title, memory.facts.join(" "));
    let words = super::turns::content_words(&decision).into_iter().filter(|word| !is_stop_word(word)).collect();
    let shared = |i: usize| scored.statements[i].words.intersection(&words).count();
    // An order that has nothing to do with the work of its turn stands by itself.
    let is_report = |i: &usize| {
        let said = &scored.statements[*i];
        said.speaker == Speaker::Agent
            && !said.text.ends_with(['?', '？'])
            && !scored.facts[said.turn].offers(&said.text)
            && scored.is_current(*i)
    };
    let later = follows.filter(|later| *later > turn).map(|later| scored.of_turn(later));
    let mut reports: Vec<usize> = scored
        .of_turn(turn)
        .chain(later.into_iter().flatten())
        .filter(is_report)
        .filter(|i| is_choice || shared(*i) > 0)
        .collect();
    let gain = |i: usize| scored.scores[i] + 0.1 * shared(i).min(4) as f32 - scored.statements[i].text.len() as f32 / 1500.0;
    // A rule holds whatever was done in its turn; only what is about little else belongs to it.
    let is_rule = memory.key.starts_with("decision:") || memory.key.starts_with("lesson:");
    reports
        .retain(|i| !is_rule || shared(*i) * 2 >= scored.statements[*i].words.iter().filter(|word| !is_stop_word(word)).count());
    reports.sort_by(|a, b| gain(*b).total_cmp(&gain(*a)));
    let mut kept: Vec<usize> = Vec::new();
    for report in reports {
        let is_worth = kept.is_empty() || scored.scores[report] >= FURTHER;
        if is_worth
            && kept.iter().all(|other| likeness(&scored.statements[report].words, &scored.statements[*other].words) < 0.5)
            && kept.len() < REPORTS
        {
            kept.push(report);
        }
    }
    kept.sort_unstable();
    kept
}

/// The agent's words for what it understood: "Got it, no mascot. Just a line with the name."
fn acknowledged(scored: &ScoredStatements, turn: usize, decision: &str) -> Vec<usize> {
    const BEGINS: Words = "got it|understood|agreed|makes sense|good call|fair point|will do";
    let mut said = scored.of_turn(turn).filter(|i| {
        let one = &scored.statements[*i];
        one.speaker == Speaker::Agent && one.form == StatementForm::Sentence
    });
    let Some(first) = said.next().filter(|i| begins_with(BEGINS, &scored.statements[*i].lower)) else {
        return Vec::new();
    };
    let words = super::turns::content_words(decision);
    let shares = |at: usize| scored.statements[at].words.intersection(&words).any(|word| !is_stop_word(word));
    let next = said.next().filter(|next| *next == first + 1 && shares(*next));
    [Some(first).filter(|i| word_count(&scored.statements[*i].text) > 3), next].into_iter().flatten().collect()
}

/// Words that tools printed and the agent said in each turn. A user who repeats them pasted them, and decided nothing.
struct ShownTexts<'a> {
    turns: &'a [Turn<'a>],
    texts: OnceCell<Vec<Vec<String>>>,
}

impl ShownTexts<'_> {
    /// Whether a sentence of a turn was shown before it.
    fn before(&self, turn: usize, said: &str) -> bool {
        let said = bare(said);
        let texts = || self.texts.get_or_init(|| self.turns.iter().map(texts_shown).collect());
        word_count(&said) >= 4 && texts()[..turn].iter().flatten().any(|text| text.contains(&said))
    }
}

/// The outputs and the closing message of a turn, bare.
fn texts_shown(turn: &Turn) -> Vec<String> {
    let printed = turn.tools.iter().flat_map(|tool| [tool.outcome.as_deref(), tool.metadata["response"].as_str()]).flatten();
    printed.chain(turn.closing.map(|closing| closing.text.as_str())).map(bare).collect()
}

/// The words of a text in lower case with single blanks.
fn bare(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut is_after_gap = false;
    for c in text.chars() {
        if !c.is_alphanumeric() {
            is_after_gap = !out.is_empty();
            continue;
        }
        if is_after_gap {
            out.push(' ');
            is_after_gap = false;
        }
        match c.is_ascii() {
            true => out.push(c.to_ascii_lowercase()),
            false => out.extend(c.to_lowercase()),
        }
    }
    out
}

/// Maximum number of changed files for a decision that names none: with more, it concerns none in particular.
const FEW: usize = 4;

/// Gives decisions and lessons their files.
pub fn add_files(memories: &mut [RuleMemory], turns: &[Turn]) {
    let settles = |memory: &&mut RuleMemory| {
        (memory.is_decided() || memory.finding == Some(Finding::WorkingCommand)) && memory.files.is_empty()
    };
    let edited: Vec<&str> = edits(turns).filter_map(|tool| tool.path.as_deref()).collect();
    for memory in memories.iter_mut().filter(settles) {
        let file = |path: String| MemoryFile { modified: edited.contains(&path.as_str()), path, hash: None };
        memory.files = about(memory, turns).into_iter().map(file).collect();
    }
}

fn edits<'a>(turns: &'a [Turn]) -> impl Iterator<Item = &'a ToolUseRow> {
    turns.iter().flat_map(|turn| turn.tools.iter().copied()).filter(|tool| is_project_change(tool))
}

/// The files that a memory names, else those that were changed in its turn or the next one.
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
    let changed = |turn: &Turn| distinct(edits(std::slice::from_ref(turn)).filter_map(|tool| tool.path.clone()));
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
