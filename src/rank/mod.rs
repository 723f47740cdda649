//! Ranking of work units for the current task (ADR/0027). Several routes lead to units: words, branch name, files of
//! the task, same branch, files that recent sessions often edit. Their scores are weighted by the certainty of each
//! route, added up, and kept with reasons. No I/O: `store` runs each route, at the request of `recall`.
//!
//! Read in this order: `terms` (words of a request), `route` (fusion), `passages` (statements that answer), `contradiction`.

mod contradiction;
mod passages;
mod route;
mod terms;

pub use contradiction::{contradicted, side_by_side, with_team};
pub use passages::fit;
pub use route::{CandidateFeatures, EditRates, RankWeights, Reason, Route, Scored, fuse};
pub use terms::{QueryTerm, branch_terms, is_topic, stem, subject, subject_of, terms};
