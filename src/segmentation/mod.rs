//! Segmentation: finds where one work unit ends and the next begins. No I/O: it takes a session's last steps as rows
//! and returns [`Changes`] for the store.
//!
//! Read in this order: `step` (features of a prompt and the work on it, composed of `term_counts`, `prompt_features`
//! and `phases`; `codec` is its binary form), `substeps` (splitting long work), `window` and `signals`
//! (comparing steps), `weights` and `decide` (the most likely boundaries), `rows`, `assign`, `session` and `changes`
//! (from an event to its changes), `outcome` and `reason`.

mod assign;
mod changes;
mod codec;
mod decide;
mod outcome;
mod phases;
mod prompt_features;
mod reason;
mod rows;
mod session;
mod signals;
mod step;
mod substeps;
mod term_counts;
mod weights;
mod window;

pub use assign::{
    StoredToolUse, add_tool_use, begin_at_work, begin_prompt, close, close_turn, cuts, judge, recount_step, recount_unit,
};
pub use changes::{BoundaryChange, Changes, FileUse, Intent, NewStep, ToolUseInStep, UnitChange};
pub use decide::{CandidateBoundaries, DecisionPhase, Judgment, SETTLED_AFTER, SignalContribution, Weights, decide};
pub use outcome::outcome;
pub use phases::{Phase, PhaseRun, fold};
pub use reason::reason;
pub use rows::{StepId, StepRow, UnitId, WINDOW_STEPS, step_of};
pub use signals::{SIGNALS, Signal, Values, WORK, signal_meaning};
pub use step::Step;
pub use substeps::is_due;
pub use term_counts::TermCounts;
pub use window::WINDOW;
