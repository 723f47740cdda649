//! Decides about a boundary before a step, and names its main reason.

use super::boundary_weights::{BIAS, WEIGHTS};
use super::signals::{SIGNALS, Values, WORK, signals};
use super::step::Step;
use super::window::Window;

/// Number of later steps after which a decision is final.
pub const SETTLED_AFTER: usize = 2;

/// Information that is available when a candidate is decided; each phase has its own weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionPhase {
    /// The prompt only.
    Prompt,
    /// The prompt and the work on it.
    Turn,
    /// A candidate inside the work on one prompt.
    Inside,
}

/// A linear model for each phase: `bias + Σ weight × (value − mean)`.
#[derive(Clone, Debug)]
pub struct Weights {
    /// For the phases prompt, turn, inside.
    pub bias: [f32; 3],
    /// For each signal: its mean, and its weights for prompt, turn, inside.
    pub of: Vec<[f32; 4]>,
}

impl Default for Weights {
    /// The fitted weights that are compiled in.
    fn default() -> Weights {
        Weights { bias: BIAS, of: WEIGHTS.to_vec() }
    }
}

impl Weights {
    /// Returns the contribution of each signal to a score.
    pub fn parts(&self, phase: DecisionPhase, values: &Values) -> Vec<f32> {
        self.of.iter().zip(values).map(|(row, value)| row[phase as usize + 1] * (value - row[0])).collect()
    }

    fn score(&self, phase: DecisionPhase, values: &Values) -> f32 {
        self.bias[phase as usize] + self.parts(phase, values).iter().sum::<f32>()
    }
}

/// The decision about one candidate boundary.
#[derive(Clone, Debug)]
pub struct Judgment {
    /// The step that would begin the unit.
    pub at: usize,
    pub boundary: bool,
    /// Log-odds; a boundary is more likely than not above 0.
    pub score: f32,
    pub phase: DecisionPhase,
    pub values: Values,
}

/// Contribution of a signal to a decision.
#[derive(Clone, Copy, Debug)]
pub struct SignalContribution {
    pub signal: &'static str,
    pub value: f32,
    /// Multiplied by the value minus the signal's mean; the product is `adds`.
    pub weight: f32,
    pub adds: f32,
}

impl Judgment {
    /// Returns the signals with any effect, strongest first.
    pub fn contributions(&self, weights: &Weights) -> Vec<SignalContribution> {
        let column = self.phase as usize + 1;
        let rows = SIGNALS.iter().zip(self.values).zip(weights.of.iter().zip(weights.parts(self.phase, &self.values)));
        let contributions = rows.map(|((signal, value), (row, adds))| SignalContribution {
            signal: signal.name,
            value,
            weight: row[column],
            adds,
        });
        let mut contributions: Vec<SignalContribution> =
            contributions.filter(|contributions| contributions.adds.abs() >= 0.005).collect();
        contributions.sort_by(|a, b| b.adds.abs().total_cmp(&a.adds.abs()));
        contributions
    }
}

/// Signals at the open candidates, for every possible start of the current unit.
pub struct CandidateBoundaries<'a> {
    window: Window<'a>,
    last_known: bool,
}

impl<'a> CandidateBoundaries<'a> {
    /// `last_known`: the work on the last step is known, not only its prompt.
    pub fn new(steps: &'a [Step], last_known: bool) -> CandidateBoundaries<'a> {
        CandidateBoundaries { window: Window::new(steps), last_known }
    }

    fn phase(&self, at: usize) -> DecisionPhase {
        match (&self.window.steps[at].prompt_features, at + 1 == self.window.steps.len() && !self.last_known) {
            (None, _) => DecisionPhase::Inside,
            (Some(_), true) => DecisionPhase::Prompt,
            (Some(_), false) => DecisionPhase::Turn,
        }
    }

    /// Signals at a candidate, for a unit that begins with step `from`.
    pub fn values(&self, from: usize, at: usize) -> (DecisionPhase, Values) {
        let phase = self.phase(at);
        (phase, signals(&self.window, from, at, phase != DecisionPhase::Prompt))
    }
}

impl CandidateBoundaries<'_> {
    /// Whether a candidate edits another repository than the unit before it, which begins with step `from`.
    pub fn is_elsewhere(&self, from: usize, at: usize) -> bool {
        let edited = |step: &Step| Some(step.edited_in).filter(|project| *project != 0);
        let before = self.window.steps[from..at].iter().rev().find_map(edited);
        before.zip(edited(&self.window.steps[at])).is_some_and(|(before, now)| before != now)
    }
}

/// One segmentation: the start of its last unit, its likelihood and its decisions.
struct Cut {
    from: usize,
    likelihood: f32,
    judgments: Vec<Judgment>,
}

/// Score of a boundary between edits in two repositories: the work on each is a unit of its own.
const OTHER_REPOSITORY: f32 = 30.0;

/// Decides the candidates from `open` to the last of `steps`. `from` is the first step of the unit before `open`.
/// `place` returns the signals of a candidate (second argument) in a unit that begins at a step (first argument), and
/// `is_elsewhere` whether it edits another repository than that unit.
pub fn decide(
    weights: &Weights,
    steps: usize,
    from: usize,
    open: usize,
    place: &dyn Fn(usize, usize) -> (DecisionPhase, Values),
    is_elsewhere: &dyn Fn(usize, usize) -> bool,
) -> Vec<Judgment> {
    let mut cuts = vec![Cut { from, likelihood: 0.0, judgments: Vec::new() }];
    for at in open.max(1)..steps {
        let mut begun: Option<Cut> = None;
        for cut in &mut cuts {
            let (phase, values) = place(cut.from, at);
            let is_elsewhere = phase != DecisionPhase::Inside && is_elsewhere(cut.from, at);
            let score = if is_elsewhere { OTHER_REPOSITORY } else { weights.score(phase, &values) };
            let judged = |boundary: bool| Judgment { at, boundary, score, phase, values };
            let likelihood = cut.likelihood + log_sigmoid(score);
            if begun.as_ref().is_none_or(|best| likelihood > best.likelihood) {
                let judgments = cut.judgments.iter().cloned().chain([judged(true)]).collect();
                begun = Some(Cut { from: at, likelihood, judgments });
            }
            cut.likelihood += log_sigmoid(-score);
            cut.judgments.push(judged(false));
        }
        cuts.extend(begun);
    }
    let best = cuts.into_iter().max_by(|a, b| a.likelihood.total_cmp(&b.likelihood));
    best.map(|cut| cut.judgments).unwrap_or_default()
}

fn log_sigmoid(x: f32) -> f32 {
    -(-x).exp().ln_1p()
}

/// Signals grouped by meaning.
const REASONS: &[(&str, &[&str])] = &[
    ("a new request", &["prompt_length", "continues"]),
    ("announced", &["shift_words"]),
    ("after a pause", &["pause"]),
    ("after something was completed", &["committed_before", "pushed_before", "tests_passed_before"]),
    ("after much work", &["unit_size"]),
];

/// Names the reason of a boundary.
pub fn reason(judgment: &Judgment, weights: &Weights) -> &'static str {
    let contributions = judgment.contributions(weights);
    let sum = |of: &dyn Fn(&str) -> bool| contributions.iter().filter(|one| of(one.signal)).map(|one| one.adds).sum::<f32>();
    let in_work = |name: &str| SIGNALS[WORK..].iter().any(|signal| signal.name == name);
    let grouped = |name: &str| REASONS.iter().any(|(_, names)| names.contains(&name));
    let mut reasons: Vec<(&str, f32)> =
        REASONS.iter().map(|(reason, names)| (*reason, sum(&|name| names.contains(&name)))).collect();
    reasons.push(("other work", sum(&|name| in_work(name) && !grouped(name))));
    reasons.push(("another subject", sum(&|name| !in_work(name) && !grouped(name))));
    reasons.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or("another subject", |(reason, _)| reason)
}
