//! Use case: work units → memories. By rules always, when a turn, a session or a conversation ends; by a model where the
//! user's config names one and a call is due (DESIGN §2, §6).

mod meaning;
mod model;
mod rules;

pub use meaning::{BATCH, Meaning, shown};
pub use model::{Observer, Outcome};
pub use rules::Distiller;
