//! What is certain without a score: evidence of commands and the grammar of decisions (DESIGN §6 "by rules", ADR/0019,
//! ADR/0046).
//!
//! Read in this order: `failures` (commands that failed, and whether they passed again), `worked` (commands that worked
//! after others failed), `signature` (which errors are the same), `forms` (how a program is called), `decisions` and `choices` (the user's words), `subject` (what kind of change),
//! `recurring` and `reverts` (for patterns).

pub mod choices;
pub mod decisions;
pub mod failures;
pub mod forms;
mod signature;
mod subject;
mod worked;

pub use failures::reason;
pub use signature::{failure_signatures, most_alike, signatures};
pub use subject::{by_first_word, conventional, of_request};
pub use worked::worked_after;
