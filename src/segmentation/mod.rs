//! Finds where one work unit ends and the next begins (DESIGN §4). No I/O: it takes the last steps of a session as rows and
//! gives [`Changes`] that the store writes.
//!
//! Read in this order: `step` (what is known of a prompt and the work on it; `bag`, `asked` and `phases` are parts of it,
//! `codec` its stored form, `codec_v1` that of older databases), `substeps` (where long work is cut), `window` and `signals`
//! (steps compared), `weights` and `decide` (the most likely boundaries), `rows`, `assign`, `session` and `changes` (from an event to what is written),
//! `outcome` and `reason` (what is said of it).

mod asked;
mod assign;
mod bag;
mod changes;
mod codec;
mod codec_v1;
mod decide;
mod outcome;
mod phases;
mod reason;
mod rows;
mod session;
mod signals;
mod step;
mod substeps;
mod weights;
mod window;

pub use assign::{
    StoredToolUse, add_tool_use, begin_at_work, begin_prompt, close, close_turn, cuts, judge, recount_step, recount_unit,
};
pub use bag::Bag;
pub use changes::{BoundaryChange, Changes, FileUse, Intent, NewStep, ToolUseInStep, UnitChange};
pub use decide::{Judgment, Moment, Places, SETTLED_AFTER, Told, Weights, decide};
pub use outcome::outcome;
pub use phases::{Phase, Run, fold};
pub use reason::reason;
pub use rows::{StepId, StepRow, UnitId, WINDOW_STEPS, step_of};
pub use signals::{SIGNALS, Signal, Values, WORK, signal_meaning};
pub use step::Step;
pub use substeps::is_due;
pub use window::WINDOW;
