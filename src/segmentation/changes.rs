//! Changes to steps and units for the store to write, and the rows that it reads them from.

use super::step::Step;
use super::window::WINDOW;
use crate::model::{ClosedBy, Millis, UnitOutcome};
use serde_json::Value;

/// Changes to one session's steps, units and boundaries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Start of each new unit; [`UnitId::New`] counts from 0.
    pub opened: Vec<Millis>,
    pub inserted: Option<NewStep>,
    pub used: Option<ToolUseInStep>,
    /// Steps whose features have changed.
    pub steps: Vec<(StepId, Step)>,
    /// Steps that move to another unit.
    pub moved: Vec<(StepId, UnitId)>,
    pub boundaries: Vec<BoundaryChange>,
    pub units: Vec<UnitChange>,
    /// Units that have lost all their steps.
    pub emptied: Vec<i64>,
    /// Steps whose boundaries are final.
    pub settled: Vec<StepId>,
    pub closed: Option<(UnitId, ClosedBy)>,
    /// The unit with a new message of the agent, so that its distillation is due.
    pub said_in: Option<UnitId>,
}

/// A new step.
#[derive(Clone, Debug, PartialEq)]
pub struct NewStep {
    pub unit: UnitId,
    pub prompt: Option<i64>,
    pub settled: bool,
    pub step: Step,
}

/// A stored tool use, and its contribution to its step.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolUseInStep {
    pub step: StepId,
    /// The tool use's row, if it moves from another step.
    pub reassigned: Option<i64>,
    pub seq: i64,
    pub failed: bool,
    pub at: Millis,
    pub file: Option<FileUse>,
    pub features: Step,
}

/// A file that a tool use read or edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileUse {
    pub path: String,
    pub reads: i64,
    pub edits: i64,
}

/// The current decision about the boundary before a step.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundaryChange {
    pub step: StepId,
    pub reason: &'static str,
    /// Log-odds and signals; `None` if nothing was weighed.
    pub score: Option<f64>,
    /// `{name: {value, weight, adds}}`
    pub signals: Option<Value>,
    pub at_prompt: bool,
    pub stands: bool,
    /// `{at, what, score}`, if the decision has changed.
    pub history: Option<Value>,
}

/// The current state of a unit.
#[derive(Clone, Debug, PartialEq)]
pub struct UnitChange {
    pub unit: UnitId,
    /// Whether all its steps were examined; otherwise the stored start and intent are kept.
    pub whole: bool,
    pub started: Millis,
    pub ended: Millis,
    pub intent: Intent,
    pub outcome: UnitOutcome,
    pub evidence: String,
    /// Another unit has begun after it, or its session has ended.
    pub over: bool,
}

/// Source of a unit's intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// As stored.
    Unchanged,
    /// A prompt's text.
    Prompt(i64),
    /// Work without a prompt: its commit or first command, from this step on.
    WorkFrom(i64),
}

/// Number of a session's last steps that segmentation needs: a window of whole turns, some of them split.
pub const WINDOW_STEPS: usize = WINDOW + WINDOW / 2;

/// A unit: a stored one by its row, or the n-th one that the same [`Changes`] open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnitId {
    Stored(i64),
    New(usize),
}

/// A step: a stored one by its row, or the one that the same [`Changes`] insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepId {
    Stored(i64),
    New,
}

/// A step and its unit.
#[derive(Clone, Debug, PartialEq)]
pub struct StepRow {
    pub id: StepId,
    pub unit: UnitId,
    /// The prompt's row; `None` for work before any prompt.
    pub prompt: Option<i64>,
    /// Whether the decision about its boundary is final.
    pub settled: bool,
    /// Whether the boundary before it is active; `None` if there never was one.
    pub boundary: Option<bool>,
    /// The user cleared the conversation after its unit.
    pub cleared: bool,
    pub step: Step,
}

/// The step that a tool use continues, among the steps of its prompt, newest first: the last one, or the one that
/// started its subagent.
pub fn step_of(mut newest_first: Vec<StepRow>, agent: Option<&str>) -> Option<StepRow> {
    let own = agent.and_then(|agent| newest_first.iter().position(|row| row.step.knows_agent(agent)));
    let at = own.unwrap_or(0);
    (at < newest_first.len()).then(|| newest_first.swap_remove(at))
}
