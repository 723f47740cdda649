//! All that is stored as rows for an export, and back (ADR/0038). What is made from rows (indexes, views) is not in it.
//!
//! `rows` reads them, `restore` writes them back, `fields` are values on the way.

mod fields;
mod restore;
mod rows;

pub use restore::{Restored, Restoring};
