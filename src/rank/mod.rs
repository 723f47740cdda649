//! Ranking of work units for the current task (ADR/0027). Several routes lead to units: words, branch name, files in
//! play, recency, same branch, files shared with other hits. Their scores are weighted by how certain each route is,
//! added up, and kept with reasons. No I/O: `store` runs each route, `recall` asks.
//!
//! Read in this order: `terms` (words of a request), `route` (fusion), `contradiction`, `confidence`.

mod confidence;
mod contradiction;
mod route;
mod terms;

pub use confidence::{DecisionOutcome, confidence};
pub use contradiction::{contradicted, side_by_side};
pub use route::{
    CandidateFeatures, FileNeighbours, RankWeights, Reason, RecencyPrior, Route, Scored, alike_by_files, fuse, with_neighbours,
};
pub use terms::{QueryTerm, branch_terms, is_topic, terms};
