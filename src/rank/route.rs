//! From what each route found to one order, with the reasons.

use crate::model::Clarity;
use std::collections::HashMap;

/// A way in which a piece of work was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Route {
    /// The words of the request.
    Words,
    /// What is remembered of it, by the words of the request.
    Told,
    /// The words of the branch's name.
    BranchName,
    /// What the request means, as a model says.
    Meaning,
    /// Files that are being read or edited now.
    Files,
    /// Files that the request names.
    Named,
    /// It was done on the same branch.
    Branch,
    /// It was done lately.
    Recent,
    /// It changed the same files as what was found by the other routes.
    Kin,
}

impl Route {
    /// The word that `--why` prints.
    pub fn name(self) -> &'static str {
        match self {
            Route::Words => "words",
            Route::Told => "what is told of it",
            Route::BranchName => "branch name",
            Route::Meaning => "meaning",
            Route::Files => "files in play",
            Route::Named => "files named",
            Route::Branch => "same branch",
            Route::Recent => "recent",
            Route::Kin => "same files as the best",
        }
    }
}

/// What each route counts for. Chosen by hand and rounded, on 24 queries; flat around these values (ADR/0027).
#[derive(Clone, Copy, Debug)]
pub struct Weights {
    pub words: f64,
    pub told: f64,
    pub branch_name: f64,
    /// Times how far it stands out of all memories: a model's cosines begin where it pleases.
    pub meaning: f64,
    pub files: f64,
    pub named: f64,
    pub branch: f64,
    /// Times the odds that newest-first has led to the same files in this project so far.
    pub recent: f64,
    pub kin: f64,
    /// A BM25 score at which a route is half sure.
    pub half_sure: f64,
    /// Sessions after which recency counts half.
    pub half_life: f64,
}

impl Default for Weights {
    fn default() -> Weights {
        Weights {
            words: 1.0,
            told: 1.0,
            branch_name: 1.0,
            meaning: 0.8,
            files: 1.2,
            named: 0.2,
            branch: 0.4,
            recent: 0.3,
            kin: 0.7,
            half_sure: 4.0,
            half_life: 4.0,
        }
    }
}

/// How far the newest sessions have led so far: recall@5 of newest-first over a project's last sessions, where a session's
/// own edited files say which earlier ones mattered to it. Between 0 and 1, drawn towards a half while little is known.
#[derive(Clone, Copy, Debug)]
pub struct Trace(pub f64);

impl Trace {
    /// Learns from the files that each session edited, the oldest first.
    pub fn of(sessions: &[Vec<u64>]) -> Trace {
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
        Trace(sum / count)
    }

    fn odds(self) -> f64 {
        (self.0 / (1.0 - self.0).max(0.05)).min(4.0)
    }
}

/// What each route found, by unit: BM25 scores, or a share between 0 and 1.
#[derive(Clone, Debug)]
pub struct Moment {
    pub words: HashMap<i64, f64>,
    /// Asked for where tasks are compared: a long piece of work holds many words, and its task few.
    pub told: HashMap<i64, f64>,
    pub branch_name: HashMap<i64, f64>,
    /// Between 0 and 1: 0 is as near as any, 1 says the same.
    pub meaning: HashMap<i64, f64>,
    pub files: HashMap<i64, f64>,
    pub named: HashMap<i64, f64>,
    pub same_branch: Vec<i64>,
    /// How many sessions of the project ended after the one that a unit is of.
    pub age: HashMap<i64, usize>,
    pub trace: Trace,
}

impl Moment {
    /// Units that words or files have led to; some of them twice.
    pub fn found(&self) -> impl Iterator<Item = i64> {
        [&self.words, &self.told, &self.branch_name, &self.meaning, &self.files, &self.named]
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

/// A unit with its score and why.
#[derive(Clone, Debug)]
pub struct Scored {
    pub unit: i64,
    pub score: f64,
    /// What counts most first.
    pub reasons: Vec<Reason>,
}

/// Adds up what the routes found, the best first; of equals the youngest.
pub fn fuse(moment: &Moment, weights: &Weights) -> Vec<Scored> {
    let mut all: Vec<Scored> = moment.age.keys().map(|unit| Scored { unit: *unit, score: 0.0, reasons: Vec::new() }).collect();
    all.sort_by_key(|scored| scored.unit);
    for (route, found, weight, half) in [
        (Route::Words, &moment.words, weights.words, weights.half_sure),
        (Route::Told, &moment.told, weights.told, weights.half_sure),
        (Route::BranchName, &moment.branch_name, weights.branch_name, weights.half_sure),
        (Route::Files, &moment.files, weights.files, 1.0),
        (Route::Named, &moment.named, weights.named, 1.0),
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
        scored.add(Route::Meaning, weights.meaning * moment.meaning.get(&scored.unit).copied().unwrap_or(0.0));
    }
    let recent = weights.recent * moment.trace.odds();
    for scored in &mut all {
        if moment.same_branch.contains(&scored.unit) {
            scored.add(Route::Branch, weights.branch);
        }
        let age = moment.age[&scored.unit] as f64;
        scored.add(Route::Recent, recent * 0.5_f64.powf(age / weights.half_life));
    }
    order(&mut all, &moment.age);
    all
}

/// Units that share edited files with one that was found, by how much, and the unit's session.
#[derive(Clone, Debug)]
pub struct Kin {
    pub of: i64,
    /// Units of other sessions, with the share of the files, between 0 and 1.
    pub units: HashMap<i64, f64>,
}

/// How alike two units are by the files that they edited: the cosine of their files, a file weighing the more the fewer of
/// `all` units edited it.
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

/// Adds what the best have in common with others: pseudo relevance feedback, by files in place of words.
pub fn with_kin(mut all: Vec<Scored>, kin: &[Kin], moment: &Moment, weights: &Weights) -> Vec<Scored> {
    let score = |unit: i64| all.iter().find(|scored| scored.unit == unit).map_or(0.0, |scored| scored.score);
    let told: Vec<(f64, &Kin)> = kin.iter().map(|kin| (score(kin.of), kin)).collect();
    let sum: f64 = told.iter().map(|(score, _)| score).sum();
    if sum <= 0.0 {
        return all;
    }
    for scored in &mut all {
        let shared: f64 = told.iter().map(|(score, kin)| score * kin.units.get(&scored.unit).copied().unwrap_or(0.0)).sum();
        scored.add(Route::Kin, weights.kin * shared / sum);
    }
    order(&mut all, &moment.age);
    all
}

impl Scored {
    /// How clearly it is relevant, if `more` is yet to be added.
    pub fn clarity(&self, more: f64) -> Clarity {
        let sum = self.score + more - self.by(Route::Recent) - self.by(Route::Kin);
        let words = self.by(Route::Words) + self.by(Route::Meaning);
        Clarity { sum, words, is_enough: sum >= Clarity::ENOUGH && words >= Clarity::WORDS }
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

    fn moment(words: &[(i64, f64)], ages: &[(i64, usize)]) -> Moment {
        Moment {
            words: words.iter().copied().collect(),
            told: HashMap::new(),
            branch_name: HashMap::new(),
            meaning: HashMap::new(),
            files: HashMap::new(),
            named: HashMap::new(),
            same_branch: Vec::new(),
            age: ages.iter().copied().collect(),
            trace: Trace(0.5),
        }
    }

    #[test]
    fn strong_words_beat_the_newest_and_weak_words_do_not() {
        let ages = [(1, 9), (2, 0)];
        let first = |words: &[(i64, f64)]| fuse(&moment(words, &ages), &Weights::default())[0].unit;
        assert_eq!(first(&[(1, 12.0)]), 1);
        assert_eq!(first(&[(1, 0.8)]), 2);
    }

    #[test]
    fn what_changed_the_files_of_the_best_follows_it() {
        let moment = moment(&[(1, 12.0)], &[(1, 9), (2, 5), (3, 8)]);
        let kin = [Kin { of: 1, units: HashMap::from([(3, 1.0)]) }];
        let all = with_kin(fuse(&moment, &Weights::default()), &kin, &moment, &Weights::default());
        assert_eq!(all.iter().map(|scored| scored.unit).collect::<Vec<_>>(), [1, 3, 2]);
        assert_eq!(all[1].reasons[0].route, Route::Kin);
    }

    #[test]
    fn a_project_in_which_work_goes_on_from_session_to_session_trusts_the_newest_more() {
        let chain: Vec<Vec<u64>> = (0..20).map(|n| vec![n, n + 1]).collect();
        let apart: Vec<Vec<u64>> = (0..20).map(|n| vec![n % 9]).collect();
        assert!(Trace::of(&chain).0 > 0.8 && Trace::of(&apart).0 < 0.3, "{:?} {:?}", Trace::of(&chain), Trace::of(&apart));
        assert!((Trace::of(&[]).0 - 0.5).abs() < 1e-9);
    }
}
