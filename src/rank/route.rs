//! Fuses the results of all routes into one ranking with reasons.

use crate::model::Relevance;
use std::collections::HashMap;

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
    /// Recent work.
    Recent,
    /// Edits to the same files as other hits.
    FileNeighbours,
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
            Route::Recent => "recent",
            Route::FileNeighbours => "same files as the best matches",
        }
    }
}

/// Weights of the routes. Chosen by hand on 24 queries and rounded; results are flat around them (ADR/0027).
#[derive(Clone, Copy, Debug)]
pub struct RankWeights {
    pub words: f64,
    pub stated: f64,
    pub branch_name: f64,
    /// Multiplied by how far a memory stands out, since the range of cosines depends on the model.
    pub embedding: f64,
    pub files: f64,
    pub named: f64,
    pub branch: f64,
    /// Multiplied by the odds that the newest sessions were the relevant ones in this project so far.
    pub recent: f64,
    pub neighbours: f64,
    /// The BM25 score at which a route is half certain.
    pub half_sure: f64,
    /// Number of sessions after which recency is halved.
    pub half_life: f64,
}

impl Default for RankWeights {
    fn default() -> RankWeights {
        RankWeights {
            words: 1.0,
            stated: 1.0,
            branch_name: 1.0,
            embedding: 0.8,
            files: 1.2,
            named: 0.2,
            branch: 0.4,
            recent: 0.3,
            neighbours: 0.7,
            half_sure: 4.0,
            half_life: 4.0,
        }
    }
}

/// How well recency predicts relevance: recall@5 of newest-first over a project's last sessions, where the edited files
/// define relevance. Between 0 and 1, shrunk towards one half for little data.
#[derive(Clone, Copy, Debug)]
pub struct RecencyPrior(pub f64);

impl RecencyPrior {
    /// Learns from the files that each session edited, oldest first.
    pub fn of(sessions: &[Vec<u64>]) -> RecencyPrior {
        const SEEN: usize = 5;
        const DOUBT: f64 = 4.0;
        let shares = |a: &[u64], b: &[u64]| a.iter().any(|file| b.contains(file));
        let (mut sum, mut count) = (0.5 * DOUBT, DOUBT);
        for (at, session) in sessions.iter().enumerate().skip(SEEN + 1) {
            let mattered = (0..at).filter(|earlier| shares(&sessions[*earlier], session)).count();
            let among_newest = (at - SEEN..at).filter(|earlier| shares(&sessions[*earlier], session)).count();
            if mattered > 0 {
                sum += among_newest as f64 / mattered.min(SEEN) as f64;
                count += 1.0;
            }
        }
        RecencyPrior(sum / count)
    }

    fn odds(self) -> f64 {
        (self.0 / (1.0 - self.0).max(0.05)).min(4.0)
    }
}

/// Results of each route by unit: BM25 scores, or shares between 0 and 1.
#[derive(Clone, Debug)]
pub struct CandidateFeatures {
    pub words: HashMap<i64, f64>,
    /// Used when comparing tasks: a long unit contains many words, its task only a few.
    pub stated: HashMap<i64, f64>,
    pub branch_name: HashMap<i64, f64>,
    /// Between 0 and 1: 0 is average, 1 identical.
    pub embedding: HashMap<i64, f64>,
    pub files: HashMap<i64, f64>,
    pub named: HashMap<i64, f64>,
    pub same_branch: Vec<i64>,
    /// Number of later sessions in the project.
    pub age: HashMap<i64, usize>,
    pub trace: RecencyPrior,
}

impl CandidateFeatures {
    /// Units found by words or files, possibly with duplicates.
    pub fn found(&self) -> impl Iterator<Item = i64> {
        [&self.words, &self.stated, &self.branch_name, &self.embedding, &self.files, &self.named]
            .into_iter()
            .flat_map(|route| route.keys().copied())
    }
}

/// What one route adds to a score.
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
    let recent = weights.recent * features.trace.odds();
    for scored in &mut all {
        if features.same_branch.contains(&scored.unit) {
            scored.add(Route::Branch, weights.branch);
        }
        let age = features.age[&scored.unit] as f64;
        scored.add(Route::Recent, recent * 0.5_f64.powf(age / weights.half_life));
    }
    order(&mut all, &features.age);
    all
}

/// Units that share edited files with a hit, and the session of the hit.
#[derive(Clone, Debug)]
pub struct FileNeighbours {
    pub of: i64,
    /// Units of other sessions with their similarity, between 0 and 1.
    pub units: HashMap<i64, f64>,
}

/// Similarity of units by edited files: the cosine, where a file weighs more the fewer of `all` units edited it.
pub fn alike_by_files(edited: &HashMap<i64, Vec<String>>, all: usize) -> impl Fn(i64, i64) -> f64 {
    let mut known: HashMap<&str, f64> = HashMap::new();
    for file in edited.values().flatten() {
        *known.entry(file).or_default() += 1.0;
    }
    let all = all.max(edited.len()) as f64;
    let weight = |file: &str| (1.0 + all / known[file]).ln().powi(2);
    let length = |files: &[String]| files.iter().map(|file| weight(file)).sum::<f64>().sqrt();
    let weights: HashMap<String, f64> = known.keys().map(|file| (file.to_string(), weight(file))).collect();
    let lengths: HashMap<i64, f64> = edited.iter().map(|(unit, files)| (*unit, length(files))).collect();
    let edited = edited.clone();
    move |a, b| {
        let (Some(of_a), Some(of_b)) = (edited.get(&a), edited.get(&b)) else { return 0.0 };
        let shared: f64 = of_a.iter().filter(|file| of_b.contains(file)).map(|file| weights[file]).sum();
        if shared > 0.0 { shared / (lengths[&a] * lengths[&b]) } else { 0.0 }
    }
}

/// Adds similarity to the best hits: pseudo relevance feedback by files instead of words.
pub fn with_neighbours(
    mut all: Vec<Scored>,
    neighbours: &[FileNeighbours],
    features: &CandidateFeatures,
    weights: &RankWeights,
) -> Vec<Scored> {
    let score = |unit: i64| all.iter().find(|scored| scored.unit == unit).map_or(0.0, |scored| scored.score);
    let stated: Vec<(f64, &FileNeighbours)> = neighbours.iter().map(|neighbours| (score(neighbours.of), neighbours)).collect();
    let sum: f64 = stated.iter().map(|(score, _)| score).sum();
    if sum <= 0.0 {
        return all;
    }
    for scored in &mut all {
        let shared: f64 =
            stated.iter().map(|(score, neighbours)| score * neighbours.units.get(&scored.unit).copied().unwrap_or(0.0)).sum();
        scored.add(Route::FileNeighbours, weights.neighbours * shared / sum);
    }
    order(&mut all, &features.age);
    all
}

impl Scored {
    /// Its relevance if `more` is added to the score.
    pub fn relevance(&self, more: f64) -> Relevance {
        let sum = self.score + more - self.by(Route::Recent) - self.by(Route::FileNeighbours);
        let words = self.by(Route::Words) + self.by(Route::Embedding);
        Relevance { sum, words, is_enough: sum >= Relevance::ENOUGH && words >= Relevance::WORDS }
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
            trace: RecencyPrior(0.5),
        }
    }

    #[test]
    fn strong_words_beat_the_newest_and_weak_words_do_not() {
        let ages = [(1, 9), (2, 0)];
        let first = |words: &[(i64, f64)]| fuse(&features(words, &ages), &RankWeights::default())[0].unit;
        assert_eq!(first(&[(1, 12.0)]), 1);
        assert_eq!(first(&[(1, 0.8)]), 2);
    }

    #[test]
    fn what_changed_the_files_of_the_best_follows_it() {
        let features = features(&[(1, 12.0)], &[(1, 9), (2, 5), (3, 8)]);
        let neighbours = [FileNeighbours { of: 1, units: HashMap::from([(3, 1.0)]) }];
        let all = with_neighbours(fuse(&features, &RankWeights::default()), &neighbours, &features, &RankWeights::default());
        assert_eq!(all.iter().map(|scored| scored.unit).collect::<Vec<_>>(), [1, 3, 2]);
        assert_eq!(all[1].reasons[0].route, Route::FileNeighbours);
    }

    #[test]
    fn a_project_in_which_work_goes_on_from_session_to_session_trusts_the_newest_more() {
        let chain: Vec<Vec<u64>> = (0..20).map(|n| vec![n, n + 1]).collect();
        let apart: Vec<Vec<u64>> = (0..20).map(|n| vec![n % 9]).collect();
        assert!(
            RecencyPrior::of(&chain).0 > 0.8 && RecencyPrior::of(&apart).0 < 0.3,
            "{:?} {:?}",
            RecencyPrior::of(&chain),
            RecencyPrior::of(&apart)
        );
        assert!((RecencyPrior::of(&[]).0 - 0.5).abs() < 1e-9);
    }
}
