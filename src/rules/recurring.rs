//! What recurs: the same failure, the same fix on a file, the same tag of lessons, in three pieces of work or more (ADR/0037).

use crate::model::{Case, Pattern, PatternKind};
use std::collections::{BTreeMap, HashSet};

/// Pieces of work, or recorded tasks, in which something must have happened.
pub const OFTEN: usize = 3;

/// One thing that happened, before it is known to recur.
#[derive(Clone, Debug)]
pub struct Recurs {
    pub kind: PatternKind,
    /// By what it is the same as another.
    pub key: String,
    /// What it is called: of the newest case.
    pub title: String,
    /// The piece of work; what belongs to none counts by itself.
    pub piece: String,
    pub case: Case,
}

/// Groups what happened; what happened in three pieces of work or more is a pattern. The most frequent first, of equals the
/// one that was last.
pub fn recurring(all: Vec<Recurs>) -> Vec<Pattern> {
    let mut groups: BTreeMap<(PatternKind, String), Vec<Recurs>> = BTreeMap::new();
    for one in all {
        groups.entry((one.kind, one.key.clone())).or_default().push(one);
    }
    let mut patterns: Vec<Pattern> = Vec::new();
    for ((kind, _), mut group) in groups {
        group.sort_by(|a, b| b.case.at.cmp(&a.case.at).then(b.case.id.cmp(&a.case.id)));
        let mut seen = HashSet::new();
        group.retain(|one| seen.insert(one.piece.clone()));
        if group.len() >= OFTEN {
            let title = group[0].title.clone();
            patterns.push(Pattern { kind, title, ended_by: None, cases: group.into_iter().map(|one| one.case).collect() });
        }
    }
    let newest = |pattern: &Pattern| pattern.cases.first().map_or(0, |case| case.at);
    patterns.sort_by(|a, b| b.cases.len().cmp(&a.cases.len()).then(newest(b).cmp(&newest(a))));
    patterns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_twice_is_no_pattern_and_one_piece_of_work_counts_once() {
        let case = |n: i64| Case { id: format!("t{n}"), unit: Some(n / 2), at: n, text: String::new(), repaired: None };
        let one = |n: i64| Recurs {
            kind: PatternKind::Failure,
            key: "k".into(),
            title: format!("case {n}"),
            piece: format!("u{}", n / 2),
            case: case(n),
        };
        assert!(recurring((0..4).map(one).collect()).is_empty());
        let found = recurring((0..6).map(one).collect());
        assert_eq!((found.len(), found[0].title.as_str(), found[0].cases.len()), (1, "case 5", 3));
    }
}
