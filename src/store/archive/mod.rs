//! All that is stored as rows for an export, and back (ADR/0038). What is made from rows (indexes, views) is not in it.

mod fields;
mod restore;
mod rows;

pub use restore::{Restored, Restoring};
