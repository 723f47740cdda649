//! Finds where one piece of work ends and the next begins (DESIGN §4). No I/O: the store keeps the steps between processes.

mod asked;
mod bag;
mod bytes;
mod cuts;
mod decide;
mod outcome;
mod phases;
mod reason;
mod signals;
mod step;
mod weights;
mod window;

pub use bag::Bag;
pub use cuts::{begins_step, is_due};
pub use decide::{Judgment, Moment, Places, SETTLED_AFTER, Told, WINDOW, Weights, decide};
pub use outcome::{Outcome, outcome};
pub use phases::{Phase, Run, fold};
pub use reason::reason;
pub use signals::{SIGNALS, Signal, Values, WORK};
pub use step::Step;
