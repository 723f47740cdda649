//! Scores of boundaries: Pk, WindowDiff, precision, recall and F1, as `../shared/bench/units/score.py` counts them.

/// A stream's truth.
#[derive(Clone, Debug)]
pub struct Truth {
    pub hand: bool,
    pub prompts: usize,
    pub boundaries: Vec<usize>,
    /// Places that could go either way: predictions there are not counted.
    pub optional: Vec<usize>,
}

/// Means over streams (macro), or shares of pooled counts (micro).
#[derive(Clone, Copy, Debug, Default)]
pub struct Scores {
    /// Share of windows whose ends are wrongly taken to be in one unit, or not (Beeferman et al. 1999). Lower is better.
    pub pk: f64,
    /// Share of windows with another number of boundaries (Pevzner & Hearst 2002). Lower is better.
    pub wd: f64,
    pub precision: f64,
    pub recall: f64,
    pub f1: f64,
    /// Within one prompt.
    pub precision1: f64,
    pub recall1: f64,
    pub f1_1: f64,
    pub predicted: usize,
    pub truth: usize,
}

impl Scores {
    /// Every figure of it, in one order.
    fn figures(&mut self) -> [&mut f64; 8] {
        let Scores { pk, wd, precision, recall, f1, precision1, recall1, f1_1, .. } = self;
        [pk, wd, precision, recall, f1, precision1, recall1, f1_1]
    }

    /// Adds another one's figures.
    pub fn add(&mut self, other: &Scores) {
        let mut other = *other;
        self.figures().into_iter().zip(other.figures()).for_each(|(own, more)| *own += *more);
        self.predicted += other.predicted;
        self.truth += other.truth;
    }

    /// The mean of so many that were added.
    pub fn over(mut self, n: usize) -> Scores {
        self.figures().into_iter().for_each(|figure| *figure /= n.max(1) as f64);
        self.predicted /= n.max(1);
        self.truth /= n.max(1);
        self
    }
}

/// Half the mean length of a unit, 2 at least: the window of Pk and WindowDiff.
pub fn half_unit(truths: &[&Truth]) -> usize {
    let units: usize = truths.iter().map(|t| t.boundaries.len() + 1).sum();
    let prompts: usize = truths.iter().map(|t| t.prompts).sum();
    ((prompts as f64 / units.max(1) as f64 / 2.0).round_ties_even() as usize).max(2)
}

/// Scores predictions for streams of one kind: macro, micro.
pub fn score(streams: &[(&Truth, Vec<usize>)], k: usize) -> (Scores, Scores) {
    let mut sum = Scores::default();
    let (mut windows, mut pk, mut wd) = (0, 0, 0);
    let (mut hits, mut hits1) = (0, 0);
    for (truth, predicted) in streams {
        let counts = |i: &usize| (truth.boundaries.contains(i) || !truth.optional.contains(i)) && (1..truth.prompts).contains(i);
        let predicted: Vec<usize> = predicted.iter().copied().filter(counts).collect();
        let (w, p, d) = window_errors(&truth.boundaries, &predicted, truth.prompts, k);
        let (exact, near) = (matches(&truth.boundaries, &predicted, 0), matches(&truth.boundaries, &predicted, 1));
        let of_exact = rates(exact, predicted.len(), truth.boundaries.len());
        let of_near = rates(near, predicted.len(), truth.boundaries.len());
        sum.pk += if w > 0 { p as f64 / w as f64 } else { 0.0 };
        sum.wd += if w > 0 { d as f64 / w as f64 } else { 0.0 };
        rate(&mut sum, of_exact, of_near);
        sum.predicted += predicted.len();
        sum.truth += truth.boundaries.len();
        windows += w;
        pk += p;
        wd += d;
        hits += exact;
        hits1 += near;
    }
    let counts = (sum.predicted, sum.truth);
    let sum = Scores { predicted: counts.0, truth: counts.1, ..sum.over(streams.len()) };
    let share = |errors: usize| errors as f64 / windows.max(1) as f64;
    let mut micro = Scores { pk: share(pk), wd: share(wd), predicted: sum.predicted, truth: sum.truth, ..Scores::default() };
    rate(&mut micro, rates(hits, sum.predicted, sum.truth), rates(hits1, sum.predicted, sum.truth));
    (sum, micro)
}

fn rate(sum: &mut Scores, exact: (f64, f64, f64), near: (f64, f64, f64)) {
    sum.precision += exact.0;
    sum.recall += exact.1;
    sum.f1 += exact.2;
    sum.precision1 += near.0;
    sum.recall1 += near.1;
    sum.f1_1 += near.2;
}

fn units(boundaries: &[usize], prompts: usize) -> Vec<usize> {
    let mut unit = 0;
    (0..prompts)
        .map(|i| {
            unit += usize::from(boundaries.contains(&i));
            unit
        })
        .collect()
}

fn window_errors(truth: &[usize], predicted: &[usize], prompts: usize, k: usize) -> (usize, usize, usize) {
    let k = k.min(prompts.saturating_sub(1));
    if k == 0 {
        return (0, 0, 0);
    }
    let (truth, predicted) = (units(truth, prompts), units(predicted, prompts));
    let ends = |i: usize| (truth[i + k] - truth[i], predicted[i + k] - predicted[i]);
    let pk = (0..prompts - k).filter(|i| (ends(*i).0 == 0) != (ends(*i).1 == 0)).count();
    let wd = (0..prompts - k).filter(|i| ends(*i).0 != ends(*i).1).count();
    (prompts - k, pk, wd)
}

/// One-to-one pairs at most `tolerance` prompts apart, the nearest first.
fn matches(truth: &[usize], predicted: &[usize], tolerance: usize) -> usize {
    let mut free = predicted.to_vec();
    let mut open = truth.to_vec();
    for distance in 0..=tolerance {
        open.retain(|at| {
            let near = |p: &usize| *p == at.wrapping_sub(distance) || *p == at + distance;
            // The one before is taken first.
            let hit = free.iter().enumerate().filter(|(_, p)| near(p)).min_by_key(|(_, p)| **p).map(|(i, _)| i);
            match hit {
                Some(i) => {
                    free.remove(i);
                    false
                }
                None => true,
            }
        });
    }
    truth.len() - open.len()
}

fn rates(hits: usize, predicted: usize, truth: usize) -> (f64, f64, f64) {
    let share = |of: usize, other: usize| if of > 0 { hits as f64 / of as f64 } else { f64::from(u8::from(other == 0)) };
    let (p, r) = (share(predicted, truth), share(truth, predicted));
    (p, r, if p + r > 0.0 { 2.0 * p * r / (p + r) } else { 0.0 })
}

/// Scores a small example and compares with what `../shared/bench/units/score.py` makes of it: run before every bench.
pub fn check() {
    let truth = |prompts, boundaries, optional| Truth { hand: true, prompts, boundaries, optional };
    let (a, b) = (truth(12, vec![3, 7], vec![5]), truth(6, Vec::new(), Vec::new()));
    let k = half_unit(&[&a, &b]);
    let (by_stream, pooled) = score(&[(&a, vec![4, 5, 7]), (&b, vec![2])], k);
    let round = |s: &Scores| [s.pk, s.wd, s.precision, s.recall, s.f1, s.f1_1].map(|x| (x * 1000.0).round() / 1000.0);
    assert_eq!(round(&by_stream), [0.35, 0.35, 0.25, 0.25, 0.25, 0.5]);
    assert_eq!(round(&pooled), [0.286, 0.286, 0.333, 0.5, 0.4, 0.8]);
    assert_eq!((pooled.predicted, pooled.truth), (3, 2));
}
