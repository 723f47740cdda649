//! Ranking without I/O: `terms` (words of a request), `passage_score` (by words), `route` (units: fusion of rankings),
//! here memories that contradict each other: decisions or lessons, by their words alone. One chooses what the other
//! rejected, or one forbids what the other requires. A missed contradiction costs two lines; a false one misleads, so the match
//! must be strong (ADR/0029).

pub mod passage_score;
mod route;
mod terms;

pub use route::{CandidateFeatures, EditRates, RankWeights, Reason, Route, Scored, fit, fuse};
pub use terms::{QueryTerm, branch_terms, is_topic, is_trunk, stem, stem_of, subject, subject_of, terms};

use crate::model::MemoryRow;
use crate::text::words;
use std::collections::HashMap;

/// Negations, after punctuation is removed.
const REFUSALS: [&str; 9] = ["never", "not", "don", "dont", "avoid", "without", "stop", "no", "cannot"];
/// Words that express strength rather than content.
const FORCE: [&str; 8] = ["never", "always", "chosen", "avoid", "without", "stop", "should", "must"];
/// Minimum content words that two sentences must share, and their minimum percentage of the shorter sentence.
const SHARED: usize = 2;
const PART: usize = 75;

/// The position of a memory: its subject, whether it refuses it, and the rejected alternatives.
struct Stand {
    refuses: bool,
    about: Vec<String>,
    over: Vec<Vec<String>>,
}

impl Stand {
    fn of(memory: &MemoryRow) -> Stand {
        let lower = memory.title.to_lowercase();
        let refuses = words(&lower).any(|word| REFUSALS.contains(&word));
        Stand { refuses, about: about(&memory.title), over: memory.list("alternatives").into_iter().map(about).collect() }
    }

    /// Returns true if it chooses what the other rejected, and is about little else: "the tests need a database" does
    /// not choose tests.
    fn takes_what_is_refused_by(&self, other: &Stand) -> bool {
        let takes = |over: &Vec<String>| {
            !over.is_empty() && over.len() * 2 >= self.about.len() && over.iter().all(|word| self.about.contains(word))
        };
        !self.refuses && self.about != other.about && other.over.iter().any(takes)
    }

    /// Returns true if it states the opposite in nearly the same words.
    fn turns_round(&self, other: &Stand) -> bool {
        let shared = self.about.iter().filter(|word| other.about.contains(word)).count();
        let shorter = self.about.len().min(other.about.len());
        self.refuses != other.refuses && shared >= SHARED && shared * 100 >= shorter * PART
    }
}

fn about(text: &str) -> Vec<String> {
    let stem = |word: String| {
        word.strip_suffix('s').filter(|stem| stem.len() > 2 && !stem.ends_with('s')).map(String::from).unwrap_or(word)
    };
    terms(text).into_iter().filter(|word| !FORCE.contains(&word.as_str())).map(stem).collect()
}

/// Returns the contradicted memories, each with the newest one that contradicts it. Only the older memory of each pair
/// is a key. Only decisions and lessons count.
pub fn contradicted(memories: &[MemoryRow]) -> HashMap<i64, i64> {
    let settling = memories.iter().filter(|memory| memory.kind.is_lasting());
    let mut newest: Vec<(&MemoryRow, Stand)> = settling.map(|memory| (memory, Stand::of(memory))).collect();
    newest.sort_by_key(|(memory, _)| std::cmp::Reverse((memory.created_at, memory.id)));
    let mut against = HashMap::new();
    for (at, (old, stand)) in newest.iter().enumerate() {
        let contradicts = |(_, new): &&(&MemoryRow, Stand)| {
            new.turns_round(stand) || new.takes_what_is_refused_by(stand) || stand.takes_what_is_refused_by(new)
        };
        if let Some((new, _)) = newest[..at].iter().find(contradicts) {
            against.insert(old.id, new.id);
        }
    }
    against
}

/// Reorders memories so that a contradicted one directly follows the one that contradicts it.
pub fn side_by_side(memories: Vec<MemoryRow>, against: &HashMap<i64, i64>) -> Vec<MemoryRow> {
    let (mut old, mut ordered): (Vec<MemoryRow>, Vec<MemoryRow>) =
        memories.into_iter().partition(|memory| against.contains_key(&memory.id));
    // Newest first, so that each memory of a chain finds its predecessor already in the list.
    old.sort_by_key(|memory| std::cmp::Reverse((memory.created_at, memory.id)));
    for memory in old {
        let behind = ordered.iter().position(|new| against.get(&memory.id) == Some(&new.id)).map_or(ordered.len(), |at| at + 1);
        ordered.insert(behind, memory);
    }
    ordered
}

/// Adds memories of the team to the user's own, which keep their order. A memory that contradicts one of the user's own
/// directly follows it; at most `limit` others come last.
pub fn with_team(mut own: Vec<MemoryRow>, of_team: Vec<MemoryRow>, against: &HashMap<i64, i64>, limit: usize) -> Vec<MemoryRow> {
    let contradict =
        |one: &MemoryRow, other: &MemoryRow| against.get(&one.id) == Some(&other.id) || against.get(&other.id) == Some(&one.id);
    let mut others = Vec::new();
    for memory in of_team {
        match own.iter().position(|own| !own.is_of_team() && contradict(own, &memory)) {
            Some(at) => own.insert(at + 1, memory),
            None => others.push(memory),
        }
    }
    others.truncate(limit);
    own.extend(side_by_side(others, against));
    own
}
