//! Use case: what recorded work says about a line, a commit, the working tree or a unit. `git_program` (questions to git),
//! `origin` (the edit and the unit behind a line or a commit), `verify` (checks since the last edit), `handoff` (the state of
//! a unit for somebody else, and a pull request's text).

mod git_program;
mod origin;

pub use git_program::Git;
pub use origin::{ProjectRecords, evidence_of};
