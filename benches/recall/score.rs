//! Scores of a ranking of sessions, as the study's `score.py` has them.

use std::collections::{HashMap, HashSet};

/// A question and its right answers.
pub struct Query {
    pub id: String,
    /// The session that asks.
    pub session: String,
    pub text: String,
    pub branch: String,
    /// Its text names a subject.
    pub specific: bool,
    /// Earlier sessions that share edited files and topic, by how much.
    pub relevant: HashMap<String, f64>,
    /// Sessions that had ended, the newest first.
    pub past: Vec<String>,
    /// Files that its session went on to edit.
    pub edited: Vec<String>,
}

/// Recall@5, MRR, nDCG@5.
pub type Measures = [f64; 3];

/// Means over all queries, over the specific ones, and over the sessions but the last five.
#[derive(Clone, Copy, Debug)]
pub struct Scores {
    pub all: Measures,
    pub specific: Measures,
    pub older: Measures,
}

fn measures(relevant: &HashMap<&str, f64>, ranked: &[&str]) -> Measures {
    let hits: Vec<bool> = ranked.iter().map(|session| relevant.contains_key(session)).collect();
    let recall = hits.iter().take(5).filter(|hit| **hit).count() as f64 / relevant.len().min(5) as f64;
    let first = hits.iter().position(|hit| *hit).map_or(0.0, |at| 1.0 / (at + 1) as f64);
    let gain = |weights: &[f64]| weights.iter().take(5).enumerate().map(|(at, w)| w / ((at + 2) as f64).log2()).sum::<f64>();
    let found: Vec<f64> = ranked.iter().map(|session| relevant.get(session).copied().unwrap_or(0.0)).collect();
    let mut ideal: Vec<f64> = relevant.values().copied().collect();
    ideal.sort_by(|a, b| b.total_cmp(a));
    [recall, first, gain(&found) / gain(&ideal)]
}

/// Scores rankings, one a query, in the order of the queries.
pub fn score(queries: &[&Query], rankings: &[Vec<String>]) -> Scores {
    let (mut all, mut specific, mut older) = (Vec::new(), Vec::new(), Vec::new());
    for (query, ranked) in queries.iter().zip(rankings) {
        let mut seen = HashSet::new();
        let ranked: Vec<&str> = ranked.iter().map(String::as_str).filter(|s| seen.insert(*s)).collect();
        assert!(ranked.iter().all(|session| query.past.iter().any(|past| past == session)), "{}: from the future", query.id);
        let relevant: HashMap<&str, f64> = query.relevant.iter().map(|(session, weight)| (session.as_str(), *weight)).collect();
        let found = measures(&relevant, &ranked);
        all.push(found);
        if query.specific {
            specific.push(found);
        }
        let last: Vec<&str> = query.past.iter().take(5).map(String::as_str).collect();
        let left: HashMap<&str, f64> = relevant.into_iter().filter(|(session, _)| !last.contains(session)).collect();
        if !left.is_empty() {
            let ranked: Vec<&str> = ranked.into_iter().filter(|session| !last.contains(session)).collect();
            older.push(measures(&left, &ranked));
        }
    }
    let mean = |rows: Vec<Measures>| [0, 1, 2].map(|i| rows.iter().map(|row| row[i]).sum::<f64>() / rows.len().max(1) as f64);
    Scores { all: mean(all), specific: mean(specific), older: mean(older) }
}

/// The scorer against figures that were worked out by hand.
pub fn check() {
    let relevant = HashMap::from([("a", 1.0), ("b", 0.5)]);
    let [recall, mrr, ndcg] = measures(&relevant, &["x", "b", "a"]);
    let ideal = 1.0 + 0.5 / 3_f64.log2();
    assert!((recall - 1.0).abs() < 1e-9 && (mrr - 0.5).abs() < 1e-9);
    assert!((ndcg - (0.5 / 3_f64.log2() + 0.5) / ideal).abs() < 1e-9);
}
