//! Fuses rankings of units by rank and weight, and selects the passages that answer.

use super::terms::{stem, terms};
use crate::model::Relevance;
use std::collections::{HashMap, HashSet};

/// A way to find a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Route {
    /// Words of the request.
    Words,
    /// Words of the request in the unit's memories.
    Stated,
    /// Words of the branch name.
    BranchName,
    /// Embedding of the request.
    Embedding,
    /// Files being read or edited.
    Files,
    /// Files that the request names.
    Named,
    /// Work on the same branch.
    Branch,
    /// Edits to files that recent sessions often edit.
    OftenEdited,
}

impl Route {
    /// Its name in `--why`.
    pub fn name(self) -> &'static str {
        match self {
            Route::Words => "words",
            Route::Stated => "its memories",
            Route::BranchName => "branch name",
            Route::Embedding => "meaning",
            Route::Files => "files in play",
            Route::Named => "files named",
            Route::Branch => "same branch",
            Route::OftenEdited => "files often edited",
        }
    }
}

/// Weights of the routes, chosen by hand on the queries of two projects and rounded. Results hardly change near these
/// values (ADR/0027).
#[derive(Clone, Copy, Debug)]
pub struct RankWeights {
    pub words: f64,
    pub stated: f64,
    pub branch_name: f64,
    /// Multiplied by the amount by which a memory exceeds the mean, since the range of cosines depends on the model.
    pub embedding: f64,
    pub files: f64,
    pub named: f64,
    pub branch: f64,
    pub often_edited: f64,
    /// The BM25 score at which a route is half certain.
    pub half_sure: f64,
}

impl Default for RankWeights {
    fn default() -> RankWeights {
        RankWeights {
            words: 1.0,
            stated: 0.5,
            branch_name: 1.0,
            embedding: 0.8,
            files: 1.2,
            named: 0.2,
            branch: 0.4,
            often_edited: 0.4,
            half_sure: 4.0,
        }
    }
}

/// Probability that the next session edits a file: the share of recent sessions that did, with more weight on newer
/// ones. Work returns to the same files, whether or not the newest session edited them.
#[derive(Clone, Debug, Default)]
pub struct EditRates {
    rates: HashMap<String, f64>,
}

impl EditRates {
    /// Learns from the files that each session edited, newest first.
    pub fn of(sessions: &[Vec<String>]) -> EditRates {
        /// Number of sessions after which the weight of a session is halved.
        const HALF_LIFE: f64 = 8.0;
        /// Number of sessions without edits that are assumed in addition, so that a young project predicts nothing.
        const DOUBT: f64 = 2.0;
        let mut rates: HashMap<String, f64> = HashMap::new();
        let mut all = DOUBT;
        for (age, files) in sessions.iter().filter(|files| !files.is_empty()).enumerate() {
            let counts = 0.5_f64.powf(age as f64 / HALF_LIFE);
            all += counts;
            for file in files {
                *rates.entry(file.clone()).or_default() += counts;
            }
        }
        rates.values_mut().for_each(|rate| *rate /= all);
        EditRates { rates }
    }

    /// The probability that any of the files is edited next.
    pub fn any_of(&self, files: &[String]) -> f64 {
        1.0 - files.iter().map(|file| 1.0 - self.rates.get(file).copied().unwrap_or(0.0)).product::<f64>()
    }
}

/// Results of each route by unit: BM25 scores, or shares between 0 and 1.
#[derive(Clone, Debug)]
pub struct CandidateFeatures {
    pub words: HashMap<i64, f64>,
    /// Kept separately, since a long unit contains many words, but its memories contain only those that matter.
    pub stated: HashMap<i64, f64>,
    pub branch_name: HashMap<i64, f64>,
    /// Between 0 and 1: 0 is average, 1 identical.
    pub embedding: HashMap<i64, f64>,
    pub files: HashMap<i64, f64>,
    pub named: HashMap<i64, f64>,
    pub same_branch: Vec<i64>,
    /// Probability that the next session edits a file of the unit.
    pub often_edited: HashMap<i64, f64>,
    /// Number of later sessions in the project.
    pub age: HashMap<i64, usize>,
}

impl CandidateFeatures {
    /// Returns units found by words, embedding or files, possibly with duplicates.
    pub fn found(&self) -> impl Iterator<Item = i64> {
        [&self.words, &self.stated, &self.branch_name, &self.embedding, &self.files, &self.named]
            .into_iter()
            .flat_map(|route| route.keys().copied())
    }
}

/// Contribution of one route to a score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reason {
    pub route: Route,
    pub adds: f64,
}

/// A unit with score and reasons.
#[derive(Clone, Debug)]
pub struct Scored {
    pub unit: i64,
    pub score: f64,
    /// Strongest first.
    pub reasons: Vec<Reason>,
}

/// Adds up all routes, best first; ties go to the newer unit.
pub fn fuse(features: &CandidateFeatures, weights: &RankWeights) -> Vec<Scored> {
    let mut all: Vec<Scored> = features.age.keys().map(|unit| Scored { unit: *unit, score: 0.0, reasons: Vec::new() }).collect();
    all.sort_by_key(|scored| scored.unit);
    for (route, found, weight, half) in [
        (Route::Words, &features.words, weights.words, weights.half_sure),
        (Route::Stated, &features.stated, weights.stated, weights.half_sure),
        (Route::BranchName, &features.branch_name, weights.branch_name, weights.half_sure),
        (Route::Files, &features.files, weights.files, 1.0),
        (Route::Named, &features.named, weights.named, 1.0),
    ] {
        let most = found.values().copied().fold(0.0, f64::max);
        if most > 0.0 {
            let sure = weight * most / (most + half);
            for scored in &mut all {
                scored.add(route, found.get(&scored.unit).map_or(0.0, |score| sure * score / most));
            }
        }
    }
    for scored in &mut all {
        scored.add(Route::Embedding, weights.embedding * features.embedding.get(&scored.unit).copied().unwrap_or(0.0));
    }
    for scored in &mut all {
        if features.same_branch.contains(&scored.unit) {
            scored.add(Route::Branch, weights.branch);
        }
        scored.add(Route::OftenEdited, weights.often_edited * features.often_edited.get(&scored.unit).copied().unwrap_or(0.0));
    }
    order(&mut all, &features.age);
    all
}

impl Scored {
    /// Its relevance if `more` is added to the score.
    pub fn relevance(&self, more: f64, features: &CandidateFeatures) -> Relevance {
        let often_edited = features.often_edited.get(&self.unit).copied().unwrap_or(0.0);
        let sum = self.score + more - self.by(Route::OftenEdited);
        let words = self.by(Route::Words) + self.by(Route::Embedding);
        Relevance { sum, words, often_edited }
    }

    fn by(&self, route: Route) -> f64 {
        self.reasons.iter().find(|reason| reason.route == route).map_or(0.0, |reason| reason.adds)
    }

    fn add(&mut self, route: Route, adds: f64) {
        if adds > 0.0005 {
            self.score += adds;
            self.reasons.push(Reason { route, adds });
        }
    }
}

fn order(all: &mut [Scored], age: &HashMap<i64, usize>) {
    for scored in all.iter_mut() {
        scored.reasons.sort_by(|a, b| b.adds.total_cmp(&a.adds).then(a.route.cmp(&b.route)));
    }
    all.sort_by(|a, b| b.score.total_cmp(&a.score).then(age[&a.unit].cmp(&age[&b.unit])).then(b.unit.cmp(&a.unit)));
}

/// Returns for each text its share of the request's words, relative to the best text, between 0 and 1. A word weighs
/// more if fewer of the texts have it. Words that no text has do not count.
pub fn fit(request: &str, texts: &[&str]) -> Vec<f64> {
    let asked: HashSet<String> = terms(request).iter().map(|term| stem(term)).collect();
    let shared = |text: &&str| terms(text).iter().map(|term| stem(term)).filter(|stem| asked.contains(stem)).collect();
    let shared: Vec<HashSet<String>> = texts.iter().map(shared).collect();
    let mut known: HashMap<&str, f64> = HashMap::new();
    for stem in shared.iter().flatten() {
        *known.entry(stem).or_default() += 1.0;
    }
    let weight = |stem: &String| (1.0 + texts.len() as f64 / known[stem.as_str()]).ln();
    let sums: Vec<f64> = shared.iter().map(|stems| stems.iter().map(weight).sum()).collect();
    let most = sums.iter().copied().fold(0.0, f64::max);
    sums.into_iter().map(|sum| if most > 0.0 { sum / most } else { 0.0 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(words: &[(i64, f64)], ages: &[(i64, usize)]) -> CandidateFeatures {
        CandidateFeatures {
            words: words.iter().copied().collect(),
            stated: HashMap::new(),
            branch_name: HashMap::new(),
            embedding: HashMap::new(),
            files: HashMap::new(),
            named: HashMap::new(),
            same_branch: Vec::new(),
            age: ages.iter().copied().collect(),
            often_edited: HashMap::new(),
        }
    }

    #[test]
    fn strong_words_beat_files_often_edited_and_weak_words_do_not() {
        let ages = [(1, 9), (2, 0)];
        let first = |words: &[(i64, f64)]| {
            let features = CandidateFeatures { often_edited: HashMap::from([(2, 0.6)]), ..features(words, &ages) };
            fuse(&features, &RankWeights::default())[0].unit
        };
        assert_eq!(first(&[(1, 12.0)]), 1);
        assert_eq!(first(&[(1, 0.8)]), 2);
    }

    #[test]
    fn files_that_many_sessions_edit_are_likely_to_be_edited_next() {
        let session = |files: &[&str]| files.iter().map(|file| file.to_string()).collect::<Vec<_>>();
        let rates = EditRates::of(&[session(&["a", "b"]), session(&["a"]), session(&["a", "c"]), session(&["d"])]);
        let [a, b, c, none] = ["a", "b", "c", "e"].map(|file| rates.any_of(&session(&[file])));
        assert!(a > 0.45 && a > b && b > c && c > none && none == 0.0, "{a} {b} {c}");
        assert!(rates.any_of(&session(&["b", "c"])) > b);
        assert_eq!(EditRates::of(&[]).any_of(&session(&["a"])), 0.0);
    }

    #[test]
    fn a_statement_fits_by_the_rare_words_that_it_shares_with_the_request() {
        let texts = ["The parser skips tabs", "The parser renames sessions", "Nothing else"];
        let [tabs, sessions, nothing] = fit("why are sessions renamed by the parser?", &texts)[..] else { panic!() };
        assert!(sessions == 1.0 && tabs > 0.0 && tabs < 0.5 && nothing == 0.0, "{tabs} {sessions} {nothing}");
        assert_eq!(fit("", &texts), [0.0; 3]);
    }
}
