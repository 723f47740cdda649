//! Fits the weights: logistic regression with an L2 penalty on the places of labelled streams, each place in the units
//! as they truly are and in those that the model itself makes of the stream; then a threshold.

use super::score::{Scores, Truth, half_unit, score};
use super::streams::Stream;
use nmem::segmentation::{
    CandidateBoundaries, DecisionPhase, Judgment, SETTLED_AFTER, SIGNALS, Values, WINDOW, WORK, Weights, decide,
};
use std::collections::BTreeMap;

/// Strength of the penalty on a weight's square, halved.
const PENALTY: f64 = 30.0;
/// Label of a position that could go either way.
const OPTIONAL: f64 = 0.2;
/// Weight of a hand-labelled position relative to a spliced one.
const HAND: f64 = 2.0;
/// Log-odds by which a boundary is rarer inside the work on one prompt than at the prompts that were taken out of the
/// streams to learn it: one goal a prompt is the rule.
const RARER_INSIDE: f32 = 1.0;
/// Folds inside the training streams, on which the thresholds are chosen.
const INNER: usize = 5;
/// Ways to split the training streams into folds.
const SPLITS: usize = 4;

/// Signals of the prompt that help once the work is known.
const AFTER: &[&str] = &[
    "prompt_length",
    "shift_words",
    "pause",
    "committed_before",
    "pushed_before",
    "tests_passed_before",
    "unit_size",
    "new_words",
    "words_of_last_answer",
    "continues",
];

/// Signals that there are without a prompt.
const INSIDE: &[&str] = &["pause", "committed_before", "tests_passed_before", "unit_size"];

/// Whether the model of a moment uses a signal.
fn uses(moment: DecisionPhase, signal: usize) -> bool {
    match moment {
        DecisionPhase::Prompt => signal < WORK,
        DecisionPhase::Turn => signal >= WORK || AFTER.contains(&SIGNALS[signal].name),
        DecisionPhase::Inside => signal >= WORK || INSIDE.contains(&SIGNALS[signal].name),
    }
}

/// The signals of a stream at every place, for every beginning of the unit, with so many steps known from the place on.
pub struct Known<'a> {
    pub stream: &'a Stream,
    /// Kind of its positions once the work is known: turns, or work without a prompt.
    moment: DecisionPhase,
    values: BTreeMap<(usize, usize, usize), Values>,
}

impl Known<'_> {
    pub fn of(stream: &Stream) -> Known<'_> {
        let moment = if stream.steps[1].prompt_features.is_some() { DecisionPhase::Turn } else { DecisionPhase::Inside };
        let n = stream.truth.prompts;
        let mut values = BTreeMap::new();
        for known in 0..=SETTLED_AFTER + 1 {
            for at in 1..n {
                let visible = if known == 0 { at + 1 } else { (at + known).min(n) };
                let cut = visible.saturating_sub(WINDOW);
                let places = CandidateBoundaries::new(&stream.steps[cut..visible], known > 0);
                for from in 0..at {
                    let inside = from.max(cut) - cut;
                    if at - cut > inside {
                        values.insert((known, from, at), places.values(inside, at - cut).1);
                    }
                }
            }
        }
        Known { stream, moment, values }
    }

    fn at(&self, known: usize, from: usize, at: usize) -> Values {
        let known = known.min(SETTLED_AFTER + 1).min(self.stream.truth.prompts - at);
        self.values[&(known, from, at)]
    }

    /// The boundaries as they are decided when all is known at once.
    fn at_once(&self, weights: &Weights) -> Vec<usize> {
        let n = self.stream.truth.prompts;
        starts(&decide(weights, n, 0, 1, &|from, at| (self.moment, self.at(n - at, from, at)), &|_, _| false))
    }

    /// The boundaries as they are decided in life: after late evidence, and at the prompt.
    pub fn live(&self, weights: &Weights) -> (Vec<usize>, Vec<usize>) {
        let n = self.stream.truth.prompts;
        let (mut settled, mut inline) = (Vec::new(), Vec::new());
        let (mut from, mut open, mut unit) = (0, 1, 0);
        for prompt in 1..n {
            // The prompt comes: only its own place is judged, in the unit as it stands.
            let now =
                decide(weights, prompt + 1, unit, prompt, &|from, at| (DecisionPhase::Prompt, self.at(0, from, at)), &|_, _| {
                    false
                });
            inline.extend(starts(&now));
            // The turn is over.
            let place = |from: usize, at: usize| (self.moment, self.at(prompt + 1 - at, from, at));
            let now = decide(weights, prompt + 1, from, open, &place, &|_, _| false);
            unit = starts(&now).last().copied().unwrap_or(from);
            let last = prompt + 1 == n;
            for judgment in now.iter().take_while(|j| last || j.at + SETTLED_AFTER <= prompt) {
                if judgment.boundary {
                    settled.push(judgment.at);
                    from = judgment.at;
                }
                open = judgment.at + 1;
            }
        }
        (settled, inline)
    }
}

fn starts(judgments: &[Judgment]) -> Vec<usize> {
    judgments.iter().filter(|j| j.boundary).map(|j| j.at).collect()
}

struct Row {
    values: Values,
    boundary: f64,
    weight: f64,
}

/// Fits the weights of some moments on streams, by the signals that `keeps`; thresholds are part of the bias.
///
/// A threshold is chosen on streams that the weights have not seen: the training streams are split into folds, each is
/// judged by weights fitted on the others. Seventeen boundaries make that choice jumpy, so it is made for several splits,
/// and the mean is taken.
pub fn fit(streams: &[&Known], moments: &[DecisionPhase], keeps: &dyn Fn(usize) -> bool) -> Weights {
    let mut whole: Option<Weights> = None;
    let mut splits: Vec<Split> = (0..SPLITS).map(|seed| Split::new(streams, seed)).collect();
    for _ in 0..2 {
        let mut next = round(streams, moments, whole.as_ref(), keeps);
        splits.iter_mut().for_each(|split| split.fit(streams, moments, keeps));
        for moment in moments.iter().copied() {
            let thresholds: f32 = splits.iter_mut().map(|split| split.choose(streams, moment)).sum();
            next.bias[moment as usize] -= thresholds / SPLITS as f32;
        }
        whole = Some(next);
    }
    whole.unwrap()
}

/// The training streams in folds, and for each fold weights that have not seen it.
struct Split {
    fold: Vec<usize>,
    weights: Vec<Option<Weights>>,
}

impl Split {
    /// Streams by their first source, so that each source's streams are mostly in one fold.
    fn new(streams: &[&Known], seed: usize) -> Split {
        let hash = |source: &String| source.bytes().fold(7 + 613 * seed, |h, b| (h * 31 + usize::from(b)) % 9973) % INNER;
        Split {
            fold: streams.iter().map(|s| s.stream.sources.iter().next().map_or(0, hash)).collect(),
            weights: vec![None; INNER],
        }
    }

    fn fit(&mut self, streams: &[&Known], moments: &[DecisionPhase], keeps: &dyn Fn(usize) -> bool) {
        for (fold, weights) in self.weights.iter_mut().enumerate() {
            let held = streams.iter().zip(&self.fold).filter(|(_, f)| **f == fold);
            let held: Vec<&String> = held.flat_map(|(s, _)| &s.stream.sources).collect();
            let apart = |s: &&Known| !s.stream.sources.iter().any(|source| held.contains(&source));
            let others: Vec<&Known> = streams.iter().copied().filter(apart).collect();
            *weights = Some(round(&others, moments, weights.as_ref(), keeps));
        }
    }

    /// Chooses a threshold, and makes it part of the folds' own weights.
    fn choose(&mut self, streams: &[&Known], moment: DecisionPhase) -> f32 {
        let mut weights: Vec<Weights> = self.weights.iter().flatten().cloned().collect();
        let bases: Vec<f32> = weights.iter().map(|w| w.bias[moment as usize]).collect();
        let at = |threshold: f32, weights: &mut Vec<Weights>| {
            weights.iter_mut().zip(&bases).for_each(|(w, base)| w.bias[moment as usize] = base - threshold);
        };
        let threshold = best_threshold(|threshold| {
            at(threshold, &mut weights);
            gain(streams, |i| match moment {
                DecisionPhase::Prompt => streams[i].live(&weights[self.fold[i]]).1,
                _ => streams[i].at_once(&weights[self.fold[i]]),
            })
        });
        at(threshold, &mut weights);
        self.weights = weights.into_iter().map(Some).collect();
        threshold
    }
}

/// The weights of prompt and turn, and those of the inside, in one table.
pub fn merged(prompts: Weights, inside: Weights) -> Weights {
    let mut out = prompts;
    let at = DecisionPhase::Inside as usize;
    out.bias[at] = inside.bias[at] - RARER_INSIDE;
    for (row, other) in out.of.iter_mut().zip(&inside.of) {
        row[at + 1] = other[at + 1];
        // One mean a signal.
        out.bias[at] += other[at + 1] * (row[0] - other[0]);
    }
    out
}

/// The table as `src/segmentation/boundary_weights.rs` holds it.
pub fn as_source(weights: &Weights) -> String {
    let mut out = String::from(
        "//! The fitted weights: `cargo bench --bench units -- --fit` writes this file. ADR/0018 describes how they are chosen.\n\n\
         use super::signals::SIGNALS;\n\n",
    );
    let [prompt, turn, inside] = weights.bias;
    out += "/// Log-odds of a boundary with average signals: at the prompt, after the turn, inside the work on one prompt.\n";
    out += &format!("pub const BIAS: [f32; 3] = [{prompt:.4}, {turn:.4}, {inside:.4}];\n\n");
    out += "/// For each signal: its mean, and its weight at the prompt, after the turn, inside.\n#[rustfmt::skip]\n";
    out += "pub const WEIGHTS: [[f32; 4]; SIGNALS.len()] = [\n";
    for (row, signal) in weights.of.iter().zip(SIGNALS) {
        let [mean, prompt, turn, inside] = row;
        out += &format!("    [{mean:7.4}, {prompt:8.4}, {turn:8.4}, {inside:8.4}], // {}\n", signal.name);
    }
    out + "];\n"
}

fn round(streams: &[&Known], moments: &[DecisionPhase], before: Option<&Weights>, keeps: &dyn Fn(usize) -> bool) -> Weights {
    let mut weights = Weights { bias: [0.0; 3], of: vec![[0.0; 4]; SIGNALS.len()] };
    let own: Vec<Option<Vec<usize>>> = streams.iter().map(|s| before.map(|w| s.live(w).0)).collect();
    for moment in moments {
        let knowns = if *moment == DecisionPhase::Prompt { &[0][..] } else { &[1, 3] };
        regress(&mut weights, *moment, &rows(streams, &own, knowns), keeps);
    }
    weights
}

fn rows(streams: &[&Known], own: &[Option<Vec<usize>>], knowns: &[usize]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (known, own) in streams.iter().zip(own) {
        let truth = &known.stream.truth;
        let cuts: Vec<&Vec<usize>> = std::iter::once(&truth.boundaries).chain(own).collect();
        let weight = if truth.hand { HAND } else { 1.0 } / (cuts.len() * knowns.len()) as f64;
        for cut in cuts {
            let mut from = 0;
            for at in 1..truth.prompts {
                let boundary = match (truth.boundaries.contains(&at), truth.optional.contains(&at)) {
                    (true, _) => 1.0,
                    (false, true) => OPTIONAL,
                    (false, false) => 0.0,
                };
                rows.extend(knowns.iter().map(|n| Row { values: known.at(*n, from, at), boundary, weight }));
                if cut.contains(&at) {
                    from = at;
                }
            }
        }
    }
    rows
}

/// Logistic regression by iteratively reweighted least squares, on standardised signals; the bias is not penalised.
fn regress(weights: &mut Weights, moment: DecisionPhase, rows: &[Row], keeps: &dyn Fn(usize) -> bool) {
    let used: Vec<usize> = (0..SIGNALS.len()).filter(|signal| uses(moment, *signal) && keeps(*signal)).collect();
    let n = rows.len() as f64;
    let mean: Vec<f64> = used.iter().map(|s| rows.iter().map(|r| f64::from(r.values[*s])).sum::<f64>() / n).collect();
    let variance = |(s, mean): (&usize, &f64)| rows.iter().map(|r| (f64::from(r.values[*s]) - mean).powi(2)).sum::<f64>() / n;
    let spread: Vec<f64> = used.iter().zip(&mean).map(|x| variance(x).sqrt().max(1e-3)).collect();
    let standard = |row: &Row| -> Vec<f64> {
        let of = used.iter().zip(mean.iter().zip(&spread)).map(|(s, (mean, spread))| (f64::from(row.values[*s]) - mean) / spread);
        std::iter::once(1.0).chain(of).collect()
    };
    let x: Vec<Vec<f64>> = rows.iter().map(standard).collect();
    let d = used.len() + 1;
    let mut w = vec![0.0; d];
    for _ in 0..15 {
        let mut hessian = vec![vec![0.0; d + 1]; d];
        for (x, row) in x.iter().zip(rows) {
            let z: f64 = x.iter().zip(&w).map(|(a, b)| a * b).sum();
            let p = 1.0 / (1.0 + (-z).exp());
            let curve = (p * (1.0 - p)).max(1e-6) * row.weight;
            let pull = (row.boundary - p) * row.weight;
            for a in 0..d {
                for b in 0..=a {
                    hessian[a][b] += curve * x[a] * x[b];
                }
                hessian[a][d] += pull * x[a];
            }
        }
        for a in 0..d {
            let (upper, lower) = hessian.split_at_mut(a + 1);
            lower.iter().enumerate().for_each(|(b, row)| upper[a][a + 1 + b] = row[a]);
            if a > 0 {
                hessian[a][a] += PENALTY;
                hessian[a][d] -= PENALTY * w[a];
            }
        }
        let step = solve(hessian);
        w.iter_mut().zip(&step).for_each(|(w, s)| *w += s);
        if step.iter().all(|s| s.abs() < 1e-7) {
            break;
        }
    }
    weights.bias[moment as usize] = w[0] as f32;
    for (i, signal) in used.iter().enumerate() {
        // One mean a signal: what another moment's mean differs goes into the bias.
        let row = &mut weights.of[*signal];
        let weight = w[i + 1] / spread[i];
        if row[0] == 0.0 {
            row[0] = mean[i] as f32;
        }
        weights.bias[moment as usize] += (weight * (f64::from(row[0]) - mean[i])) as f32;
        row[moment as usize + 1] = weight as f32;
    }
}

/// Solves a symmetric positive system; the right side is the last column.
fn solve(mut m: Vec<Vec<f64>>) -> Vec<f64> {
    let n = m.len();
    for a in 0..n {
        let pivot = m[a].clone();
        for row in m.iter_mut().skip(a + 1) {
            let factor = row[a] / pivot[a];
            row.iter_mut().zip(&pivot).skip(a).for_each(|(x, p)| *x -= factor * p);
        }
    }
    let mut out = vec![0.0; n];
    for a in (0..n).rev() {
        let rest: f64 = (a + 1..n).map(|b| m[a][b] * out[b]).sum();
        out[a] = (m[a][n] - rest) / m[a][a];
    }
    out
}

/// The threshold with the best mean gain among itself and its two neighbours.
fn best_threshold(mut gain: impl FnMut(f32) -> f64) -> f32 {
    let thresholds: Vec<f32> = (-12..=8).map(|t| t as f32 * 0.25).collect();
    let gains: Vec<f64> = thresholds.iter().map(|t| gain(*t)).collect();
    let smooth = |at: usize| {
        let around = &gains[at.saturating_sub(1)..(at + 2).min(gains.len())];
        around.iter().sum::<f64>() / around.len() as f64
    };
    let best = (0..gains.len()).max_by(|a, b| smooth(*a).total_cmp(&smooth(*b))).unwrap();
    thresholds[best]
}

/// Measure by which a threshold is chosen: F1 within one prompt less Pk, of both kinds, less what the number of boundaries is off.
fn gain(streams: &[&Known], predict: impl Fn(usize) -> Vec<usize>) -> f64 {
    let (hand, spliced) = by_kind(&streams.iter().enumerate().map(|(i, s)| (&s.stream.truth, predict(i))).collect::<Vec<_>>());
    let off = |s: &Scores| (((s.predicted as f64 + 0.5) / (s.truth as f64 + 0.5)).ln().abs() - 0.1).max(0.0);
    [hand, spliced].iter().map(|s| s.f1_1 - s.pk - off(s)).sum()
}

/// Macro scores of hand-labelled and of spliced streams.
pub fn by_kind(predicted: &[(&Truth, Vec<usize>)]) -> (Scores, Scores) {
    let of = |hand: bool| {
        let streams: Vec<_> = predicted.iter().filter(|(truth, _)| truth.hand == hand).cloned().collect();
        let k = half_unit(&streams.iter().map(|(truth, _)| *truth).collect::<Vec<_>>());
        score(&streams, k).0
    };
    (of(true), of(false))
}
