//! Export of all stored rows, and restore (ADR/0038). Derived data (indexes, views) is not exported.
//!
//! `rows` reads them, `restore` writes them, `fields` decodes their fields.

mod fields;
mod restore;
mod rows;

pub use restore::{Restored, Restoring};
