//! Use case: team memory. Each machine writes only its own numbered series of changes; the newest change of a memory by
//! (counter, machine) is its state everywhere. Nothing is merged in place, so nothing conflicts (ADR/0051).
//!
//! Read in this order: `identity` (keys and signatures), `projects` (shared projects), `outgoing` (changes to send),
//! `incoming` (changes received), `sync` (one sync), its two targets `server` (PostgreSQL, with `programs` for the RAD
//! tables) and `folder` (with `chunk`), `people` (trusted people); `tests` play random histories.

mod chunk;
mod folder;
mod identity;
mod incoming;
mod outgoing;
pub mod people;
mod programs;
pub mod projects;
mod server;
mod sync;
#[cfg(test)]
mod tests;

pub use sync::{SyncPlace, SyncResult, SyncTarget, due, sync};
