//! Ranks passages by the words of a query: their own, those of the messages around a short one, and those of the session.

use crate::model::{MessageSize, PassageId, SessionsAround, WithWord};
use std::collections::{HashMap, HashSet};

/// Number of passages whose neighbours and sessions are read.
pub const LOOKED_AT: usize = 300;
/// Weights of a word in the messages before, the nearest first, and in those after.
const BEFORE: [f64; 2] = [0.6, 0.3];
const AFTER: [f64; 2] = [0.4, 0.2];
/// Bytes up to which a message counts as short; the messages around it count fully. At twice that, they do not count.
const SHORT: f64 = 400.0;
/// Minimum score of a message without any of the words, beside one that has some, as a share of the best.
const BESIDE: f64 = 0.3;
/// Saturation of one word over several messages.
const ENOUGH: f64 = 1.5;
/// Maximum bonus from the session, as a share of the best passage's score.
const SESSION: f64 = 0.25;
/// BM25 parameters over sessions.
const K1: f64 = 1.2;
const B: f64 = 0.75;

/// BM25 score of the best passage with a word, as a multiple of its rarity; and the multiple below which the word was too
/// common for BM25.
const BEST: f64 = 1.7;
const TOO_COMMON: f64 = 0.2;

/// Rarity of a word that `count` of `all` passages have, as in BM25 but never negative.
pub fn rarity(count: i64, all: i64) -> f64 {
    let (count, all) = (count as f64, all as f64);
    (1.0 + (all - count + 0.5).max(0.0) / (count + 0.5)).ln()
}

/// Raises the scores of words for which BM25 is about zero, because half of the passages have them: in a young project
/// these are most words.
pub fn raise_common_words(by_word: &mut [WithWord], rarities: &[f64]) {
    for (held, rarity) in by_word.iter_mut().zip(rarities) {
        let most = held.values().copied().fold(0.0, f64::max);
        if most > 0.0 && most < TOO_COMMON * rarity {
            held.values_mut().for_each(|score| *score *= BEST * rarity / most);
        }
    }
}

/// The passages with the most of the words, best first, by their own scores alone.
pub fn best_alone(by_word: &[WithWord]) -> Vec<(PassageId, f64)> {
    let mut own: HashMap<PassageId, f64> = HashMap::new();
    for (id, score) in by_word.iter().flatten() {
        *own.entry(*id).or_default() += score;
    }
    let mut best: Vec<(PassageId, f64)> = own.into_iter().collect();
    sort(&mut best);
    best
}

/// Scores passages with the messages around them, best first: `alone`, and short messages next to them.
pub fn in_context(by_word: &[WithWord], alone: &[(PassageId, f64)], around: &SessionsAround) -> Vec<(PassageId, f64)> {
    let place: HashMap<_, (usize, usize)> = around
        .sessions
        .iter()
        .enumerate()
        .flat_map(|(session, messages)| messages.iter().enumerate().map(move |(at, message)| (message.text, (session, at))))
        .collect();
    let mut candidates: HashSet<PassageId> = alone.iter().map(|(id, _)| *id).collect();
    for (id, _) in alone {
        let Some((session, at)) = place.get(&id.text()) else { continue };
        let messages = &around.sessions[*session];
        let near = &messages[at.saturating_sub(BEFORE.len())..messages.len().min(at + 1 + AFTER.len())];
        candidates.extend(near.iter().filter(|message| shortness(message) == 1.0).map(|message| PassageId::new(message.text, 0)));
    }
    let mean = around.sessions.iter().map(Vec::len).sum::<usize>() as f64 / around.sessions.len().max(1) as f64;
    let mut of_session = vec![0.0; around.sessions.len()];
    let mut scores: HashMap<PassageId, f64> = candidates.iter().map(|id| (*id, 0.0)).collect();
    for held in by_word {
        let most = held.values().copied().fold(0.0, f64::max);
        let mut by_text: HashMap<_, f64> = HashMap::new();
        for (id, score) in held {
            let best = by_text.entry(id.text()).or_default();
            *best = best.max(*score);
        }
        let own = |message: &MessageSize| by_text.get(&message.text).copied();
        let counts: Vec<usize> =
            around.sessions.iter().map(|messages| messages.iter().filter(|message| own(message).is_some()).count()).collect();
        let with = counts.iter().filter(|count| **count > 0).count() as f64;
        let idf = (1.0 + (counts.len() as f64 - with + 0.5) / (with + 0.5)).ln();
        for (at, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let (count, length) = (*count as f64, around.sessions[at].len() as f64);
            of_session[at] += idf * count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length / mean));
        }
        for (id, score) in &mut scores {
            let mut sum = held.get(id).copied().unwrap_or(0.0);
            if let Some((session, at)) = place.get(&id.text()) {
                let messages = &around.sessions[*session];
                let before = BEFORE.iter().zip((0..*at).rev()).map(|(weight, i)| weight * own(&messages[i]).unwrap_or(0.0));
                let after = AFTER.iter().zip(&messages[at + 1..]).map(|(weight, next)| weight * own(next).unwrap_or(0.0));
                sum += shortness(&messages[*at]) * (before.sum::<f64>() + after.sum::<f64>());
            }
            *score += sum * (1.0 + ENOUGH) / (1.0 + ENOUGH * sum / most.max(f64::MIN_POSITIVE));
        }
    }
    let best = scores.values().copied().fold(0.0, f64::max);
    let best_session = of_session.iter().copied().fold(0.0, f64::max);
    for (id, score) in scores.iter_mut().filter(|(_, score)| **score > 0.0) {
        if let Some(session) = around.of.get(&id.text()).filter(|_| best_session > 0.0) {
            *score += SESSION * best * of_session[*session] / best_session;
        }
    }
    let has_word: HashSet<_> = by_word.iter().flat_map(|held| held.keys()).map(|id| id.text()).collect();
    let is_found = |(id, score): &(PassageId, f64)| *score > 0.0 && (*score >= BESIDE * best || has_word.contains(&id.text()));
    let mut all: Vec<(PassageId, f64)> = scores.into_iter().filter(is_found).collect();
    sort(&mut all);
    all
}

/// The weight of the messages around a message, from 0 to 1.
fn shortness(message: &MessageSize) -> f64 {
    (2.0 - message.bytes as f64 / SHORT).clamp(0.0, 1.0)
}

fn sort(all: &mut [(PassageId, f64)]) {
    all.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{TextId, TextKind};

    fn message(row: i64) -> TextId {
        TextId::new(TextKind::Message, row)
    }

    #[test]
    fn a_short_message_between_two_that_match_is_found_and_a_better_session_comes_first() {
        let word = |rows: &[i64]| rows.iter().map(|row| (PassageId::new(message(*row), 0), 1.0)).collect::<WithWord>();
        let sessions: Vec<Vec<i64>> = vec![vec![1, 2, 3], vec![4, 5, 6, 7]];
        let of = sessions.iter().enumerate().flat_map(|(at, rows)| rows.iter().map(move |row| (message(*row), at))).collect();
        let size = |row: &i64, bytes: usize| MessageSize { text: message(*row), bytes };
        let around = |bytes: usize| SessionsAround {
            sessions: sessions.iter().map(|rows| rows.iter().map(|row| size(row, bytes)).collect()).collect(),
            of: HashMap::clone(&of),
        };
        let by_word = [word(&[1, 3, 4]), word(&[3])];
        let order = |bytes: usize| -> Vec<i64> {
            in_context(&by_word, &best_alone(&by_word), &around(bytes)).iter().map(|(id, _)| id.text().row()).collect()
        };
        assert_eq!(order(80)[..3], [3, 2, 1]);
        assert!(order(80).contains(&5) && !order(80).contains(&7));
        assert_eq!(order(900), [3, 1, 4], "a long message speaks for itself");
    }
}
