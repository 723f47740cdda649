//! Ranks units and programs' records for a description (ADR/0036). Same routes and weights as recall, but without
//! often edited files: a task on the same file is not a similar one.

use super::ranked::{RecallQuery, found, memories_by_words, routes};
use crate::model::{MemoryRow, Relevance, UnitRow};
use crate::rank::{self, RankWeights, Scored};
use crate::store::Store;
use crate::store::recall::{Effort, UnitLocation};
use anyhow::Result;
use std::collections::HashMap;

/// Weight of a task's own words, which decide whether two tasks are similar.
const STATED: f64 = 1.0;
/// Score at which the similarity is one half.
const HALF: f64 = 0.5;

/// A unit, or a task with decisions and lessons that a program recorded without a session.
#[derive(Clone, Debug)]
pub struct RelatedUnit {
    /// Relevance; [`similarity`] maps it to a share.
    pub score: f64,
    pub unit: Option<UnitRow>,
    pub memories: Vec<MemoryRow>,
}

/// Relevance of memories by their own words, relative to the best: a memory of a related unit may be off-topic.
pub(super) fn by_own_words(store: &Store, query: &RecallQuery) -> Result<HashMap<i64, f64>> {
    let hits = memories_by_words(store, query)?;
    let most = hits.iter().map(|hit| hit.score).fold(0.0, f64::max);
    Ok(hits.into_iter().filter(|_| most > 0.0).map(|hit| (hit.id, hit.score / most)).collect())
}

/// Maps a score to a share from 0 to below 1: s / (s + 0.5).
pub fn similarity(score: f64) -> f64 {
    let score = score.max(0.0);
    (score / (score + HALF) * 1000.0).round() / 1000.0
}

/// Returns a project's units related to a description, best first, down to a share of the best score. Superseded
/// memories are excluded.
pub(super) fn related_units(store: &Store, query: &RecallQuery, limit: usize, share: f64) -> Result<Vec<RelatedUnit>> {
    let sessions = store.sessions_in_time(query.project, query.own)?;
    let mut features = routes(store, query, &sessions, Effort::RELATED)?;
    let mut units: Vec<i64> = features.found().collect();
    units.sort_unstable();
    units.dedup();
    let places: HashMap<i64, UnitLocation> =
        store.unit_places(&units, &sessions)?.into_iter().map(|place| (place.unit, place)).collect();
    // Records without a unit use their memory's id, negated.
    features.age = units.into_iter().filter(|unit| *unit < 0 || places.contains_key(unit)).map(|unit| (unit, 0)).collect();
    let scored = rank::fuse(&features, &RankWeights { stated: STATED, ..RankWeights::default() });
    let scored = scored.into_iter().map(|scored| (scored.relevance(0.0, &features), scored));
    let mut candidates: Vec<(Relevance, Scored)> = scored.filter(|(relevance, _)| relevance.sum > 0.0).collect();
    candidates.sort_by(|a, b| b.0.sum.total_cmp(&a.0.sum).then(b.1.unit.cmp(&a.1.unit)));
    let least = candidates.first().map_or(0.0, |(best, _)| best.sum * share);
    candidates.retain(|(relevance, _)| relevance.sum >= least);
    let mut related_units = Vec::new();
    for (relevance, scored) in candidates {
        let score = relevance.sum;
        if related_units.len() == limit {
            break;
        }
        if scored.unit < 0 {
            let Some(head) = store.memory_by_row(-scored.unit)?.filter(|memory| memory.superseded_by.is_none()) else { continue };
            let mut memories = store.memories_of_task(&head.uuid)?;
            memories.insert(0, head);
            related_units.push(RelatedUnit { score, unit: None, memories });
        } else if let Some(past) = found(store, &places, (scored, relevance))? {
            related_units.push(RelatedUnit { score, unit: Some(past.unit), memories: past.memories });
        }
    }
    Ok(related_units)
}
