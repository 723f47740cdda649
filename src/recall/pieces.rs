//! For a description: pieces of work and what programs recorded, in one order (ADR/0036). It is that of recall, by the
//! same routes and weights, without a piece's age and its kin: a task is not more like another for being young.

use super::ranked::{Asked, found, memories_by_words, routes};
use crate::model::{MemoryRow, UnitRow};
use crate::rank::{self, Scored, Weights};
use crate::store::Store;
use crate::store::recall::{Effort, UnitPlace};
use anyhow::Result;
use std::collections::HashMap;

/// A score at which a similarity is a half.
const HALF: f64 = 0.5;

/// A piece of work, or a task with its decisions and lessons that no session was recorded of.
#[derive(Clone, Debug)]
pub struct Piece {
    /// How near it is: [`similarity`] makes a share of it.
    pub near: f64,
    pub unit: Option<UnitRow>,
    pub memories: Vec<MemoryRow>,
}

/// How near memories are by their own words, as shares of the nearest one's: what is told of a near piece of work may be about
/// something else.
pub(super) fn by_own_words(store: &Store, asked: &Asked) -> Result<HashMap<i64, f64>> {
    let hits = memories_by_words(store, asked)?;
    let most = hits.iter().map(|hit| hit.score).fold(0.0, f64::max);
    Ok(hits.into_iter().filter(|_| most > 0.0).map(|hit| (hit.id, hit.score / most)).collect())
}

/// From 0, where nothing is shared, to 1, and the higher the higher the score: s / (s + 0.5).
pub fn similarity(near: f64) -> f64 {
    let near = near.max(0.0);
    (near / (near + HALF) * 1000.0).round() / 1000.0
}

/// Pieces that are near a description, the nearest first, of a project, down to a share of the best score; a memory that no
/// longer holds is in none.
pub(super) fn pieces(store: &Store, asked: &Asked, limit: usize, share: f64) -> Result<Vec<Piece>> {
    let sessions = store.sessions_in_time(asked.project, asked.own)?;
    let mut moment = routes(store, asked, &sessions, Effort::RELATED)?;
    let mut units: Vec<i64> = moment.found().collect();
    units.sort_unstable();
    units.dedup();
    let places: HashMap<i64, UnitPlace> =
        store.unit_places(&units, &sessions)?.into_iter().map(|place| (place.unit, place)).collect();
    // What stands for itself goes by its memory's id, below zero.
    moment.age = units.into_iter().filter(|unit| *unit < 0 || places.contains_key(unit)).map(|unit| (unit, 0)).collect();
    let scored = rank::fuse(&moment, &Weights::default());
    let mut near: Vec<(f64, Scored)> = scored.into_iter().map(|scored| (scored.clarity(0.0).sum, scored)).collect();
    near.retain(|(near, _)| *near > 0.0);
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.unit.cmp(&a.1.unit)));
    let least = near.first().map_or(0.0, |(best, _)| best * share);
    near.retain(|(near, _)| *near >= least);
    let mut pieces = Vec::new();
    for (near, scored) in near {
        if pieces.len() == limit {
            break;
        }
        if scored.unit < 0 {
            let Some(head) = store.memory_by_row(-scored.unit)?.filter(|memory| memory.superseded_by.is_none()) else { continue };
            let mut memories = store.memories_of_task(&head.uuid)?;
            memories.insert(0, head);
            pieces.push(Piece { near, unit: None, memories });
        } else if let Some(past) = found(store, &places, scored)? {
            pieces.push(Piece { near, unit: Some(past.unit), memories: past.memories });
        }
    }
    Ok(pieces)
}
