//! Ranking without I/O: `terms` (words of a request), `route` (fusion of rankings, passages), `contradiction`
//! (memories that contradict each other).

mod contradiction;
mod route;
mod terms;

pub use contradiction::{contradicted, side_by_side, with_team};
pub use route::{CandidateFeatures, EditRates, RankWeights, Reason, Route, Scored, fit, fuse};
pub use terms::{QueryTerm, branch_terms, is_topic, stem, subject, subject_of, terms};
