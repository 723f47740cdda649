//! The last steps of a session, prepared for comparison: words are weighted by how rare they are in it.

use super::prompt_features::{TermCounts, is_name};
use super::step::Step;
use std::cell::OnceCell;
use std::ops::Range;

/// Number of last steps to compare.
pub const WINDOW: usize = 16;

/// Terms by their index in the window's vocabulary, with counts.
pub(super) type Terms = Vec<(u32, f32)>;

/// Weights of words in the prompt, the work and the answer.
const PARTS: [f32; 3] = [1.0, 0.7, 0.5];
/// Number of steps on each side of a candidate that are compared for its valley.
const SIDE: usize = 3;
/// Number of last candidates whose sides are compared; all open ones are among them.
const NEAR: usize = 12;

/// The prepared steps.
pub(super) struct Window<'a> {
    pub steps: &'a [Step],
    vocabulary: Vec<u32>,
    /// Inverse document frequency over the window: ln(1 + (n + 1) / (df + ½)).
    rarity: Vec<f32>,
    /// For each step: all words, its names, its prompt's words and names, its answer's words.
    pub words: Vec<Terms>,
    pub names: Vec<Terms>,
    pub prompt_words: Vec<Terms>,
    pub prompt_names: Vec<Terms>,
    pub answer_words: Vec<Terms>,
    /// Similarity of both sides of each candidate (0 has none), and of each step to its predecessors. Computed only if
    /// work is known.
    sides: OnceCell<Vec<f32>>,
    to_recent: OnceCell<Vec<f32>>,
}

impl<'a> Window<'a> {
    pub fn new(steps: &'a [Step]) -> Window<'a> {
        let bags = |step: &'a Step| [&step.prompt, &step.work, &step.answer];
        let mut vocabulary: Vec<u32> =
            steps.iter().flat_map(bags).flat_map(|term_counts| term_counts.terms().iter().map(|t| t.0)).collect();
        vocabulary.sort_unstable();
        vocabulary.dedup();
        let mut window = Window {
            steps,
            rarity: vec![0.0; vocabulary.len()],
            vocabulary,
            words: Vec::new(),
            names: Vec::new(),
            prompt_words: Vec::new(),
            prompt_names: Vec::new(),
            answer_words: Vec::new(),
            sides: OnceCell::new(),
            to_recent: OnceCell::new(),
        };
        for step in steps {
            let parts = bags(step).map(|term_counts| window.terms(term_counts));
            let whole = parts.iter().zip(PARTS).fold(Terms::new(), |sum, (part, weight)| merged(&sum, part, weight));
            whole.iter().for_each(|(id, _)| window.rarity[*id as usize] += 1.0);
            let of = |terms: &Terms, name: bool| -> Terms {
                terms.iter().filter(|(id, _)| is_name(window.vocabulary[*id as usize]) == name).copied().collect()
            };
            let made = [of(&whole, false), of(&whole, true), of(&parts[0], false), of(&parts[0], true), of(&parts[2], false)];
            let [words, names, prompt_words, prompt_names, answer_words] = made;
            window.words.push(words);
            window.names.push(names);
            window.prompt_words.push(prompt_words);
            window.prompt_names.push(prompt_names);
            window.answer_words.push(answer_words);
        }
        let n = steps.len() as f32;
        window.rarity.iter_mut().for_each(|df| *df = (1.0 + (n + 1.0) / (*df + 0.5)).ln());
        window
    }

    fn near(&self) -> usize {
        self.steps.len().saturating_sub(NEAR).max(1)
    }

    fn all_sides(&self) -> &[f32] {
        let compare = |place| if place < self.near() { 0.0 } else { self.compare_sides(place) };
        self.sides.get_or_init(|| (0..self.steps.len()).map(compare).collect())
    }

    fn terms(&self, term_counts: &TermCounts) -> Terms {
        let number = |term: &u32| self.vocabulary.binary_search(term).unwrap_or(0) as u32;
        term_counts.terms().iter().map(|(term, count)| (number(term), f32::from(*count) / 10.0)).collect()
    }

    fn compare_sides(&self, place: usize) -> f32 {
        let left = sum(&self.words, place.saturating_sub(SIDE)..place);
        let right = sum(&self.words, place..self.steps.len().min(place + SIDE));
        self.alike(&left, &right).unwrap_or(0.0)
    }

    fn compare_to_recent(&self, at: usize) -> f32 {
        self.alike(&self.words[at], &sum(&self.words, at.saturating_sub(SIDE)..at)).unwrap_or(0.0)
    }

    /// Similarity of both sides of a candidate, 0 to 1.
    pub fn sides(&self, place: usize) -> f32 {
        self.all_sides()[place]
    }

    /// The mean of [`Window::sides`] over the last candidates.
    pub fn usual_sides(&self) -> f32 {
        let places = &self.all_sides()[self.near().min(self.steps.len())..];
        places.iter().sum::<f32>() / places.len().max(1) as f32
    }

    /// Depth of a candidate between the peaks on both sides: the depth score of TextTiling (Hearst 1997), three
    /// candidates wide.
    pub fn valley(&self, place: usize) -> f32 {
        let (sides, bottom) = (self.all_sides(), self.sides(place));
        let climb = |places: &mut dyn Iterator<Item = usize>| {
            let mut height = bottom;
            for at in places.take(SIDE) {
                if sides[at] < height {
                    break;
                }
                height = sides[at];
            }
            height - bottom
        };
        climb(&mut (self.near()..place).rev()) + climb(&mut (place + 1..sides.len()))
    }

    /// Similarity of a step to its predecessors, 0 to 1.
    pub fn to_recent(&self, at: usize) -> f32 {
        let compare = |at| if at < self.near() { 0.0 } else { self.compare_to_recent(at) };
        self.to_recent.get_or_init(|| (0..self.steps.len()).map(compare).collect())[at]
    }

    /// Cosine of term counts, each term weighted by √count × rarity; `None` if one is empty.
    pub fn alike(&self, a: &Terms, b: &Terms) -> Option<f32> {
        let square = |terms: &Terms| terms.iter().map(|(id, count)| count * self.rarity[*id as usize].powi(2)).sum::<f32>();
        let (norm_a, norm_b) = (square(a), square(b));
        if norm_a == 0.0 || norm_b == 0.0 {
            return None;
        }
        let mut product = 0.0;
        let (mut i, mut j) = (0, 0);
        while i < a.len() && j < b.len() {
            let (in_a, in_b) = (a[i], b[j]);
            if in_a.0 == in_b.0 {
                product += (in_a.1 * in_b.1).sqrt() * self.rarity[in_a.0 as usize].powi(2);
            }
            i += usize::from(in_a.0 <= in_b.0);
            j += usize::from(in_b.0 <= in_a.0);
        }
        Some(product / (norm_a * norm_b).sqrt())
    }

    /// Share of the weight of known terms; `None` if there are no terms.
    pub fn known(&self, terms: &Terms, known: impl Fn(u32) -> bool) -> Option<f32> {
        let (mut of_it, mut all) = (0.0, 0.0);
        for (id, count) in terms {
            let weight = count.sqrt() * self.rarity[*id as usize];
            all += weight;
            if known(*id) {
                of_it += weight;
            }
        }
        (all > 0.0).then_some(of_it / all)
    }

    /// Terms that occur in a range of steps.
    pub fn seen(&self, range: Range<usize>) -> Vec<bool> {
        let mut seen = vec![false; self.vocabulary.len()];
        for terms in self.words[range.clone()].iter().chain(&self.names[range]) {
            terms.iter().for_each(|(id, _)| seen[*id as usize] = true);
        }
        seen
    }
}

/// Sum of the terms of a range of steps.
pub(super) fn sum(steps: &[Terms], range: Range<usize>) -> Terms {
    steps[range].iter().fold(Terms::new(), |sum, terms| merged(&sum, terms, 1.0))
}

/// Returns `a` plus `b` times `weight`.
pub(super) fn merged(a: &Terms, b: &Terms, weight: f32) -> Terms {
    let mut out = Terms::with_capacity(a.len() + b.len());
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        let next_a = a.get(i).map_or(u32::MAX, |t| t.0);
        let next_b = b.get(j).map_or(u32::MAX, |t| t.0);
        let id = next_a.min(next_b);
        let mut count = 0.0;
        if next_a == id {
            count += a[i].1;
            i += 1;
        }
        if next_b == id {
            count += b[j].1 * weight;
            j += 1;
        }
        out.push((id, count));
    }
    out
}
