//! Full-text search fused with embedding search. Their scores are not comparable, so they are fused by rank (reciprocal
//! rank fusion, Cormack, Clarke and Büttcher 2009).

use crate::model::{Filter, Hit, Vector};
use crate::store::Store;
use anyhow::Result;

/// The constant k of the paper.
const K: f64 = 60.0;
/// Number of nearest memories by embedding.
const NEAR: usize = 30;

/// Merges the nearest memories into full-text hits, at most `limit`.
pub fn with_meaning(
    store: &Store,
    found: Vec<Hit>,
    filter: &Filter,
    model: &str,
    vector: &Vector,
    limit: usize,
) -> Result<Vec<Hit>> {
    let Some(project) = filter.project else { return Ok(found) };
    let near = store.nearest_memories(project, model, vector, NEAR)?;
    let ranked: Vec<(i64, f64)> =
        near.memories.iter().filter_map(|(id, cosine)| Some((*id, near.stands_out(*cosine)?))).collect();
    let near = store.memories_as_hits(&ranked, filter)?;
    let mut all: Vec<Hit> = Vec::new();
    for list in [found, near] {
        for (rank, hit) in list.into_iter().enumerate() {
            let adds = 1.0 / (K + rank as f64 + 1.0);
            match all.iter_mut().find(|known| known.kind == hit.kind && known.id == hit.id) {
                Some(known) => known.score += adds,
                None => all.push(Hit { score: adds, ..hit }),
            }
        }
    }
    all.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.at.cmp(&a.at)));
    all.truncate(limit);
    Ok(all)
}
