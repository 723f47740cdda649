//! A search by words, and the second opinion of a model on what is near: fused by rank, since the scores of the two have
//! nothing in common (reciprocal rank fusion, Cormack, Clarke and Büttcher 2009).

use crate::model::{Filter, Hit, Vector};
use crate::store::Store;
use anyhow::Result;

/// What the first ranks count beside the next ones: the constant of the paper.
const K: f64 = 60.0;
/// Memories that are near in meaning.
const NEAR: usize = 30;

/// Puts memories that are near in meaning among what words found, at most `limit`.
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
