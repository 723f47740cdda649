//! Which statements of a unit a later session should have: a linear score over features of each statement, and a choice
//! that prefers what is short and not said twice (ADR/0046).
//!
//! Read in this order: `turns` (a unit as turns), `said` (all that was said in it), `context` (what happened in each
//! turn), `words` and `features` (what the score looks at), `weights`, `later` (which statements no longer hold),
//! `title`.

mod context;
mod features;
mod later;
mod said;
mod title;
mod turns;
mod weights;
mod words;

pub use context::{Context, contexts, likeness, overlap};
pub use features::{FEATURES, Features, features};
use later::overtaken;
pub use said::{Said, Speaker, content_words, said};
pub use title::{TITLE, capitalized, short};
pub use turns::{Turn, commit, is_inside, is_project_change, turns};
pub use words::{Class, Lexicon};

use crate::model::Domain;
use crate::statements::StatementForm;
use crate::statements::word_lists::{Words, begins_with, holds};

/// A bias and a weight for each feature.
#[derive(Clone, Debug)]
pub struct ChoiceWeights {
    pub bias: f32,
    pub of: [f32; FEATURES.len()],
}

impl ChoiceWeights {
    /// The compiled weights.
    pub fn fitted() -> ChoiceWeights {
        ChoiceWeights { bias: weights::BIAS, of: weights::WEIGHTS }
    }

    fn probability(&self, features: &Features) -> f32 {
        let sum: f32 = self.of.iter().zip(features).map(|(weight, value)| weight * value).sum();
        1.0 / (1.0 + (-(self.bias + sum)).exp())
    }
}

/// The least gain of a statement that is chosen; `cargo bench --bench facts` shows how many bytes it makes.
const LEAST: f32 = 0.0333;
/// The same where the work is not coding: identifiers, commits and checks, by which the score goes there, are missing.
const LEAST_ELSEWHERE: f32 = 0.022;
/// A long statement must be worth more: the gain is divided by the square root of its length and this many characters.
const LENGTH: f32 = 80.0;
/// The part of its gain that a statement loses which repeats a chosen one.
const REPETITION: f32 = 0.6;

/// The least worth of a statement that names a cause in so many words.
const NAMED_CAUSE: f32 = 0.6;

fn names_cause(text: &str) -> bool {
    const NAMES: &str =
        "root cause|the bug was|the issue was|the problem was|was caused by|the cause was|the reason was|turned out that";
    let lower = text.to_lowercase();
    holds(NAMES, &lower) && !holds("maybe|might|likely|could|probably|not sure|?", &lower)
}

/// Whether a statement only announces what comes next: "Here's a summary of the changes", "Let me run the tests".
fn is_announcement(text: &str) -> bool {
    const SUMMARIES: &str =
        "here's a|here is a|here's the|here is the|here's what|here is what|here are the|below is|the following";
    let lower = text.to_lowercase();
    let of_rest = ["summary", "what was", "what i", "what changed", "changes", "breakdown", "overview"];
    begins_with(
        "let me|now let me|i'll now|i'll start|i will now|next, i'll|want me to|say the word|let me know|do you want|would you like|should i |shall i ",
        &lower,
    ) || begins_with(SUMMARIES, &lower) && of_rest.iter().any(|word| lower.contains(word)) && lower.len() < 120
}

/// Whether a statement only says that checks passed, or where commits are: that is a matter of the moment.
fn is_momentary(text: &str) -> bool {
    const CHECKS: Words = "tests pass|tests passed|test pass|tests passing|lint clean|lint is clean|lint passes|linter passes|lint and|checks pass|build passes|build succeeds|type check passes|compiles cleanly|tests still pass|all green|no lint|all pass|all clean|are clean|are green|still green|verified independently";
    const COMMITS: Words = "committed as |committed on `|committed and pushed|clean commits|squashed into `|and force-pushed|branch now sits|left uncommitted";
    const REASONS: Words = "because|since |unless|only if|require|need|must|fixed|added";
    const LONG: usize = 200;
    let lower = text.to_lowercase();
    let is_check = || holds(CHECKS, &lower) && !lower.contains("now ") && !holds(REASONS, &lower);
    text.len() < LONG && (is_check() || holds(COMMITS, &lower))
}

/// The statements of a unit, judged.
#[derive(Debug)]
pub struct Judged {
    pub said: Vec<Said>,
    pub contexts: Vec<Context>,
    pub lexicon: Lexicon,
    /// How likely a later session should have each statement.
    pub worth: Vec<f32>,
}

impl Judged {
    pub fn new(turns: &[Turn], weights: &ChoiceWeights) -> Judged {
        let said = said(turns);
        let contexts = context::contexts(turns);
        let lexicon = Lexicon::compiled();
        let features = features(&said, &contexts, &lexicon);
        let named = |(one, features): (&Said, &Features)| {
            let worth = weights.probability(features);
            if names_cause(one.english()) { worth.max(NAMED_CAUSE) } else { worth }
        };
        let worth = said.iter().zip(&features).map(named).collect();
        Judged { said, contexts, lexicon, worth }
    }

    /// Whether a statement may be remembered: it was said, not shown, and still holds. What
    /// a page may have put into the agent's mouth is not the agent's.
    pub fn may_stay(&self, at: usize) -> bool {
        let said = &self.said[at];
        if said.speaker == Speaker::Agent && self.contexts[said.turn].repeats_outside(&said.text) {
            return false;
        }
        let is_said = !matches!(said.form, StatementForm::Shown | StatementForm::Heading);
        let says = is_said && !is_announcement(said.english()) && !is_momentary(said.english());
        says && overtaken(at, &self.said, &self.contexts).is_none()
    }

    /// The statements worth their place beside what is already kept, in order.
    pub fn choose(&self, kept: &[usize], domain: &Domain) -> Vec<usize> {
        let least = if domain.name == "coding" { LEAST } else { LEAST_ELSEWHERE };
        let base = |at: &usize| self.worth[*at] / (self.said[*at].text.len() as f32 + LENGTH).sqrt();
        // Most are worth too little, whatever became of them later.
        let open = (0..self.said.len()).filter(|at| self.said[*at].is_report() && base(at) >= least && !kept.contains(at));
        let open = open.filter(|at| self.may_stay(*at));
        let mut open: Vec<(usize, f32, f32)> = open.map(|at| (at, base(&at), 0.0)).collect();
        let repeats = |open: &mut Vec<(usize, f32, f32)>, chosen: usize| {
            for (at, _, near) in open {
                *near = near.max(likeness(&self.said[*at].words, &self.said[chosen].words));
            }
        };
        kept.iter().for_each(|at| repeats(&mut open, *at));
        let mut chosen = Vec::new();
        let gain = |(_, base, near): &(usize, f32, f32)| base * (1.0 - REPETITION * near);
        while let Some(best) = (0..open.len()).max_by(|a, b| gain(&open[*a]).total_cmp(&gain(&open[*b]))) {
            if gain(&open[best]) < least {
                break;
            }
            let (at, ..) = open.swap_remove(best);
            repeats(&mut open, at);
            chosen.push(at);
        }
        chosen.sort_unstable();
        chosen
    }
}
