//! Ranks prompts with their context. A message matches by its own words and, with less weight, by the words of its
//! neighbours. It scores higher the more of the query its whole session contains (ADR/0028).

use super::super::Store;
use anyhow::Result;
use std::collections::{BTreeMap, HashMap};

/// Number of hits whose neighbours and sessions are read.
const LOOKED_AT: usize = 300;
/// Weights of a word in the messages before, the nearest first, and in those after.
const BEFORE: [f64; 2] = [0.6, 0.3];
const AFTER: [f64; 2] = [0.4, 0.2];
/// Saturation of one word over several messages.
const ENOUGH: f64 = 1.5;
/// Maximum bonus from the session, as a multiple of a message's own score.
const SESSION: f64 = 2.0;
/// BM25 parameters over sessions.
const K1: f64 = 1.2;
const B: f64 = 0.75;

/// Messages that contain a query word, with scores, for each of the words.
pub(super) type ByWord = Vec<HashMap<i64, f64>>;

impl Store {
    /// Ranks messages, best first.
    pub(super) fn in_context(&self, by_word: &ByWord) -> Result<Vec<(i64, f64)>> {
        let mut own: HashMap<i64, f64> = HashMap::new();
        for (id, score) in by_word.iter().flatten() {
            *own.entry(*id).or_default() += score;
        }
        let mut best: Vec<(i64, f64)> = own.into_iter().collect();
        best.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
        let rest = best.split_off(best.len().min(LOOKED_AT));
        let sessions = self.messages_around(&best)?;
        let scored = scored(by_word, &sessions);
        // Messages without context keep their own score, below all others.
        let floor = scored.last().map_or(0.0, |(_, score)| *score);
        let known: std::collections::HashSet<i64> = scored.iter().map(|(id, _)| *id).collect();
        let rest = rest.into_iter().filter(|(id, _)| !known.contains(id)).map(|(id, score)| (id, score.min(floor)));
        Ok(scored.iter().copied().chain(rest).collect())
    }

    /// All messages of the sessions of some hits, in order.
    fn messages_around(&self, hits: &[(i64, f64)]) -> Result<Vec<Vec<i64>>> {
        let mut sessions: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
        let mut of = self.conn.prepare_cached("SELECT session_id FROM prompts WHERE id = ?1")?;
        for (id, _) in hits {
            sessions.entry(of.query_row([id], |row| row.get(0))?).or_default();
        }
        let sql = "SELECT id FROM prompts WHERE session_id = ?1 AND kind <> 'thinking' ORDER BY number, id";
        let mut all = self.conn.prepare_cached(sql)?;
        for (session, messages) in &mut sessions {
            *messages = all.query_map([session], |row| row.get(0))?.collect::<Result<_, _>>()?;
        }
        Ok(sessions.into_values().collect())
    }
}

/// Scores of all matching messages of some sessions, best first.
fn scored(by_word: &ByWord, sessions: &[Vec<i64>]) -> Vec<(i64, f64)> {
    let mean = sessions.iter().map(Vec::len).sum::<usize>() as f64 / sessions.len().max(1) as f64;
    let mut of_session = vec![0.0; sessions.len()];
    let mut scores: Vec<Vec<f64>> = sessions.iter().map(|messages| vec![0.0; messages.len()]).collect();
    for held in by_word {
        let most = held.values().copied().fold(0.0, f64::max);
        let counts: Vec<usize> =
            sessions.iter().map(|messages| messages.iter().filter(|id| held.contains_key(id)).count()).collect();
        let with = counts.iter().filter(|count| **count > 0).count() as f64;
        let idf = (1.0 + (sessions.len() as f64 - with + 0.5) / (with + 0.5)).ln();
        for (at, messages) in sessions.iter().enumerate().filter(|(at, _)| counts[*at] > 0) {
            let count = counts[at] as f64;
            of_session[at] += idf * count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * messages.len() as f64 / mean));
            let own = |i: usize| messages.get(i).and_then(|id| held.get(id)).copied().unwrap_or(0.0);
            for (i, score) in scores[at].iter_mut().enumerate() {
                let before = BEFORE.iter().zip((0..i).rev()).map(|(weight, i)| weight * own(i));
                let after = AFTER.iter().zip(i + 1..).map(|(weight, i)| weight * own(i));
                let around = own(i) + before.sum::<f64>() + after.sum::<f64>();
                *score += around * (1.0 + ENOUGH) / (1.0 + ENOUGH * around / most.max(f64::MIN_POSITIVE));
            }
        }
    }
    let best = of_session.iter().copied().fold(0.0, f64::max);
    let mut all = Vec::new();
    for ((messages, scores), session) in sessions.iter().zip(scores).zip(of_session) {
        let times = 1.0 + SESSION * if best > 0.0 { session / best } else { 0.0 };
        all.extend(messages.iter().copied().zip(scores).filter(|(_, score)| *score > 0.0).map(|(id, score)| (id, score * times)));
    }
    all.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_between_two_that_match_is_found_and_one_of_a_better_session_comes_first() {
        let word = |ids: &[i64]| ids.iter().map(|id| (*id, 1.0)).collect::<HashMap<i64, f64>>();
        let sessions = [vec![1, 2, 3], vec![4, 5, 6, 7]];
        let ranked = scored(&vec![word(&[1, 3, 4]), word(&[3])], &sessions);
        let order: Vec<i64> = ranked.iter().map(|(id, _)| *id).collect();
        assert_eq!(order[..3], [3, 2, 1], "{ranked:?}");
        assert!(order.contains(&6) && !order.contains(&7));
    }
}
