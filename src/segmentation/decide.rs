//! Where units begin: the most likely cut of the last steps, given what is settled before them.
//!
//! Each place gets a score, the log-odds of a boundary there, from a linear model of its signals (`weights.rs`). The
//! signals depend on where the unit before began, so the places are not judged one by one: of all cuts of the open places
//! the most likely one is taken (Viterbi over the unit's beginning). A place stays open until [`SETTLED_AFTER`] more steps
//! are known; with each of them it is judged anew.

use super::signals::{SIGNALS, Values, signals};
use super::step::Step;
use super::weights::{BIAS, WEIGHTS};
use super::window::Window;

/// Steps that must follow a step, and be known, until the judgment of its place stands.
pub const SETTLED_AFTER: usize = 2;

/// What is known when a place is judged: each has weights of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The prompt has come, and nothing else.
    Prompt,
    /// The work on the prompt is known.
    Turn,
    /// There is no prompt: the place lies inside the work on one.
    Inside,
}

/// A linear model for each moment: `bias + Σ weight × (value − mean)`.
#[derive(Clone, Debug)]
pub struct Weights {
    /// For prompt, turn, inside.
    pub bias: [f32; 3],
    /// For each signal: its mean, and its weight for prompt, turn, inside.
    pub of: Vec<[f32; 4]>,
}

impl Default for Weights {
    /// Those that were fitted and compiled in.
    fn default() -> Weights {
        Weights { bias: BIAS, of: WEIGHTS.to_vec() }
    }
}

impl Weights {
    /// What each signal adds to a score.
    pub fn parts(&self, moment: Moment, values: &Values) -> Vec<f32> {
        self.of.iter().zip(values).map(|(row, value)| row[moment as usize + 1] * (value - row[0])).collect()
    }

    fn score(&self, moment: Moment, values: &Values) -> f32 {
        self.bias[moment as usize] + self.parts(moment, values).iter().sum::<f32>()
    }
}

/// The judgment of one place.
#[derive(Clone, Debug)]
pub struct Judgment {
    /// The step that a unit would begin with.
    pub at: usize,
    pub boundary: bool,
    /// Log-odds of a boundary; above 0 it is the more likely.
    pub score: f32,
    pub moment: Moment,
    pub values: Values,
}

/// What a signal said at a place.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    pub signal: &'static str,
    pub value: f32,
    /// What the value, less the signal's mean, is multiplied by; the product is what it adds to the score.
    pub weight: f32,
    pub adds: f32,
}

impl Judgment {
    /// The signals that weigh anything here, the heaviest first.
    pub fn told(&self, weights: &Weights) -> Vec<Told> {
        let column = self.moment as usize + 1;
        let rows = SIGNALS.iter().zip(self.values).zip(weights.of.iter().zip(weights.parts(self.moment, &self.values)));
        let told = rows.map(|((signal, value), (row, adds))| Told { signal: signal.name, value, weight: row[column], adds });
        let mut told: Vec<Told> = told.filter(|told| told.adds.abs() >= 0.005).collect();
        told.sort_by(|a, b| b.adds.abs().total_cmp(&a.adds.abs()));
        told
    }
}

/// Signals at the open places, for every beginning of the unit that is possible there.
pub struct Places<'a> {
    window: Window<'a>,
    last_known: bool,
}

impl<'a> Places<'a> {
    /// `last_known`: the work on the last step is known, not only its prompt.
    pub fn new(steps: &'a [Step], last_known: bool) -> Places<'a> {
        Places { window: Window::new(steps), last_known }
    }

    fn moment(&self, at: usize) -> Moment {
        match (&self.window.steps[at].asked, at + 1 == self.window.steps.len() && !self.last_known) {
            (None, _) => Moment::Inside,
            (Some(_), true) => Moment::Prompt,
            (Some(_), false) => Moment::Turn,
        }
    }

    /// What is known at a place, in a unit that begins with step `from`.
    pub fn values(&self, from: usize, at: usize) -> (Moment, Values) {
        let moment = self.moment(at);
        (moment, signals(&self.window, from, at, moment != Moment::Prompt))
    }
}

/// One way to cut the steps: where its last unit begins, how likely it is, its judgments.
struct Cut {
    from: usize,
    likelihood: f32,
    judgments: Vec<Judgment>,
}

/// Judges the places from `open` up to the last of `steps`; `from` is the step with which the unit before `open` begins.
/// `place` gives what is known of a place (its second argument) in a unit that begins with a step (its first).
pub fn decide(
    weights: &Weights,
    steps: usize,
    from: usize,
    open: usize,
    place: &dyn Fn(usize, usize) -> (Moment, Values),
) -> Vec<Judgment> {
    let mut cuts = vec![Cut { from, likelihood: 0.0, judgments: Vec::new() }];
    for at in open.max(1)..steps {
        let mut begun: Option<Cut> = None;
        for cut in &mut cuts {
            let (moment, values) = place(cut.from, at);
            let score = weights.score(moment, &values);
            let judged = |boundary: bool| Judgment { at, boundary, score, moment, values };
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
