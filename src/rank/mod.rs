//! Which past work matters now: one ranking for all moments (DESIGN §5, ADR/0027). Several routes lead to pieces of work
//! (words, the branch's name, files in play, recency, the same branch, files shared with what is found already); their
//! scores are weighed by how sure each route is, added, and kept with the reasons. Values in, values out: `store` finds
//! what each route leads to, `recall` puts the question.
//!
//! Read in this order: `terms` (words of a request), `route` (the fusion), `contradiction`, `confidence`.

mod confidence;
mod contradiction;
mod route;
mod terms;

pub use confidence::{Outcome, confidence};
pub use contradiction::{contradicted, side_by_side};
pub use route::{Kin, Moment, Reason, Route, Scored, Trace, Weights, alike_by_files, fuse, with_kin};
pub use terms::{Term, branch_terms, is_topic, terms};
