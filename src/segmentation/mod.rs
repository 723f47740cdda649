//! Segmentation: splits a session into work units. `decide` is the judgment at one position; `assign` applies it to
//! events.
//!
//! Read in this order: `step` (a prompt with its work; `prompt_features` and `phases`), `window` (terms
//! of the last steps) and `signals`, `boundary_weights` (fitted), `decide` (and the reason of a boundary), `session`
//! (a session's open units, and the outcome of one), `assign`, `changes` (for the store to write). No I/O. ADR/0016,
//! ADR/0018.

mod assign;
mod boundary_weights;
mod changes;
mod decide;
mod phases;
mod prompt_features;
mod session;
mod signals;
mod step;
mod window;

pub use assign::{
    StoredToolUse, add_tool_use, begin_at_work, begin_prompt, close, close_turn, cuts, end_background, is_due, judge,
    recount_step, recount_unit,
};
pub use changes::{
    BoundaryChange, Changes, FileUse, Intent, NewStep, StepId, StepRow, ToolUseInStep, UnitChange, UnitId, WINDOW_STEPS, step_of,
};
pub use decide::{CandidateBoundaries, DecisionPhase, Judgment, SETTLED_AFTER, SignalContribution, Weights, decide, reason};
pub use phases::{Phase, PhaseRun, fold};
pub use prompt_features::TermCounts;
pub use session::outcome;
pub use signals::{SIGNALS, Signal, Values, WORK, signal_meaning};
pub use step::Step;
pub use window::WINDOW;
