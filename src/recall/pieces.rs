//! For a description: pieces of work and what programs recorded, in one order (ADR/0036). The routes and weights are those of
//! a prompt: what a piece is near by, without its age and without its kin.

use super::ranked::{Asked, found, routes};
use crate::model::{MemoryRow, UnitRow};
use crate::rank::{self, Weights};
use crate::store::Store;
use crate::store::recall::Effort;
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

/// From 0, where nothing is shared, to 1, and the higher the higher the score: s / (s + 0.5).
pub fn similarity(near: f64) -> f64 {
    let near = near.max(0.0);
    (near / (near + HALF) * 1000.0).round() / 1000.0
}

/// Pieces that are near a description, the nearest first, of a project; a memory that no longer holds is in none.
pub(super) fn pieces(store: &Store, asked: &Asked, limit: usize) -> Result<Vec<Piece>> {
    let sessions = store.sessions_in_time(asked.project, asked.own)?;
    let mut moment = routes(store, asked, &sessions, Effort::RELATED)?;
    let mut units: Vec<i64> = moment.found().collect();
    units.sort_unstable();
    units.dedup();
    let mut places = HashMap::new();
    for place in store.unit_places(&units, &sessions)? {
        moment.age.insert(place.unit, place.age);
        places.insert(place.unit, place);
    }
    // What stands for itself goes by its memory's id, below zero; its age counts no more here than that of others.
    moment.age.extend(units.into_iter().filter(|unit| *unit < 0).map(|lone| (lone, 0)));
    let mut near: Vec<(f64, rank::Scored)> =
        rank::fuse(&moment, &Weights::default()).into_iter().map(|scored| (scored.clarity(0.0).sum, scored)).collect();
    near.retain(|(near, _)| *near > 0.0);
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.unit.cmp(&a.1.unit)));
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
