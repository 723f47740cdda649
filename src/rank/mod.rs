//! Ranking without I/O: `terms` (words of a request), `passage_score` (by words), `route` (units: fusion of rankings),
//! `contradiction` (memories that contradict each other).

mod contradiction;
pub mod passage_score;
mod route;
mod terms;

pub use contradiction::{contradicted, side_by_side, with_team};
pub use route::{CandidateFeatures, EditRates, RankWeights, Reason, Route, Scored, fit, fuse};
pub use terms::{QueryTerm, branch_terms, is_topic, stem, stem_of, subject, subject_of, terms};
