//! The title of a unit: the last commit's subject, a plan's heading, the agent's best report, or the request.

use super::commits::conventional;
use super::score::{Class, ScoredStatements};
use super::statements::{StatementForm, Words, begins_with, capitalized, word_count};
use super::summary;
use super::turns::{Speaker, Turn, commit};
use crate::model::UnitStory;
use crate::text::{cut, is_stop_word};
use std::collections::HashMap;

/// Characters of a title.
pub const TITLE: usize = 100;
/// Words of a statement that are compared with the rest of the unit, the most frequent ones.
const WORDS: usize = 4;

/// Returns the title of a unit: the last commit's subject, else the heading of a plan, else the best report of a change,
/// else the request.
pub fn title(story: &UnitStory, turns: &[Turn], scored: &ScoredStatements) -> Option<String> {
    let subject = turns.iter().rev().flat_map(|turn| turn.tools.iter().rev()).find_map(|tool| commit(tool)?.1);
    let subject = subject.map(|subject| conventional(subject).1);
    let plan = (0..turns.len()).find_map(|turn| scored.plan(turn));
    let plan = plan.map(|at| scored.statements[at].text.trim_start_matches("Plan: "));
    let report = scored.best_report().map(|at| scored.statements[at].text.as_str());
    let text = subject.or(plan).or(report).map(|text| short(text, TITLE)).filter(|text| word_count(text) >= 2);
    text.or_else(|| summary::request(story, turns).map(|text| short(&text, TITLE))).filter(|text| !text.is_empty())
}

impl ScoredStatements {
    /// Returns the heading of a plan that the user ordered in a turn.
    pub fn plan(&self, turn: usize) -> Option<usize> {
        self.statements.iter().position(|statement| {
            statement.turn == turn
                && statement.speaker == Speaker::Plan
                && statement.form == StatementForm::Heading
                && word_count(&statement.text) >= 3
        })
    }

    /// Returns the report of a change that has most of the words that the unit repeats.
    fn best_report(&self) -> Option<usize> {
        let mut counts: HashMap<&str, f32> = HashMap::new();
        for one in &self.statements {
            let weight = if one.speaker == Speaker::User { 2.0 } else { 1.0 };
            one.words.iter().filter(|word| !is_stop_word(word)).for_each(|word| *counts.entry(word).or_default() += weight);
        }
        let score = |at: usize| {
            let one = &self.statements[at];
            let mut words: Vec<f32> = one.words.iter().filter_map(|word| counts.get(word.as_str()).copied()).collect();
            words.sort_by(|a, b| b.total_cmp(a));
            let kinds = self.lexicon.count(&one.text);
            let factors = [
                (self.facts[one.turn].edits > 0, 2.0),
                (kinds.has(Class::Change), 1.3),
                (kinds.has(Class::Check), 0.7),
                (one.text.ends_with([':', '：']), 0.7),
            ];
            let factor: f32 = factors.iter().filter(|(holds, _)| *holds).map(|(_, factor)| factor).product();
            words.iter().take(WORDS).sum::<f32>() * factor
        };
        let is_report = |at: &usize| {
            let one = &self.statements[*at];
            matches!(one.speaker, Speaker::Agent | Speaker::Plan)
                && one.form != StatementForm::Heading
                && one.words.len() >= 3
                && !one.text.ends_with(['?', '？'])
        };
        let mut reports: Vec<(usize, f32)> = (0..self.statements.len()).filter(is_report).map(|at| (at, score(at))).collect();
        // Of equals the last.
        reports.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
        reports.into_iter().map(|(at, _)| at).find(|at| self.is_current(*at))
    }
}

/// First words that say nothing.
const LEADS: [&str; 25] = [
    "ok, ",
    "ok ",
    "okay, ",
    "so ",
    "hmm, ",
    "hm, ",
    "yeah ",
    "yes, ",
    "done. ",
    "now ",
    "i've ",
    "i have ",
    "also ",
    "i ",
    "can you ",
    "could you ",
    "can we ",
    "could we ",
    "please ",
    "let's ",
    "lets ",
    "one more thing, ",
    "then ",
    "and ",
    "now, ",
];
/// Marks behind which a further clause begins.
const CLAUSES: [&str; 11] =
    [" - ", " — ", " – ", "; ", " so that ", " because ", ", so ", " since ", ", which ", " where ", ", "];

/// Words that begin the object of a German sentence, behind a comma.
const OBJECTS: Words = "dass|ob|wie|was|wo|warum";

/// A statement in one line of at most `most` characters: without first words that say nothing, and, as far as its length
/// demands it, without parentheses and further clauses.
pub fn short(text: &str, most: usize) -> String {
    let mut rest = text.trim().trim_end_matches(['.', ':', ';', '!', ' ', ',', '。', '：', '；', '！', '，']);
    for lead in LEADS {
        if rest.get(..lead.len()).is_some_and(|head| head.eq_ignore_ascii_case(lead)) {
            rest = rest[lead.len()..].trim_start();
        }
    }
    let mut text = rest.to_string();
    let is_long = |text: &str| text.chars().count() > most;
    while is_long(&text)
        && let Some(open) = text.find(" (")
        && let Some(close) = text[open..].find(')')
    {
        text.replace_range(open..=open + close, "");
    }
    for mark in CLAUSES {
        if is_long(&text)
            && let Some(at) = text.find(mark).filter(|at| *at >= most / 3 && text[..*at].split(' ').count() > 2)
            && !begins_with(OBJECTS, &text[at + mark.len()..])
        {
            text.truncate(at);
        }
    }
    capitalized(&cut(text.trim_end_matches([',', ' ', ':', '-']), most))
}
