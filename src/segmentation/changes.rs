//! What segmentation changes: plain data that the store writes in the order of the fields, deciding nothing.

use super::rows::{StepId, UnitId};
use super::step::Step;
use crate::model::{ClosedBy, Millis, UnitOutcome};
use serde_json::Value;

/// Changes of one session's steps, units and boundaries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// When each new unit begins; [`UnitId::New`] counts them from 0.
    pub opened: Vec<Millis>,
    pub inserted: Option<NewStep>,
    pub used: Option<ToolUseInStep>,
    /// Steps of which the detector knows something else now.
    pub steps: Vec<(StepId, Step)>,
    /// Steps that go to another unit.
    pub moved: Vec<(StepId, UnitId)>,
    pub boundaries: Vec<BoundaryChange>,
    pub units: Vec<UnitChange>,
    /// Units that have lost all of their steps.
    pub emptied: Vec<i64>,
    /// Steps whose place is judged for good.
    pub settled: Vec<StepId>,
    pub closed: Option<(UnitId, ClosedBy)>,
    /// A unit in which the agent said something new: its memories are due.
    pub said_in: Option<UnitId>,
}

/// A step that begins.
#[derive(Clone, Debug, PartialEq)]
pub struct NewStep {
    pub unit: UnitId,
    pub prompt: Option<i64>,
    pub settled: bool,
    pub step: Step,
}

/// A stored tool use and what it adds to its step.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolUseInStep {
    pub step: StepId,
    /// The tool use's row, where it was stored with another step.
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

/// A boundary before a step, as it is judged now.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundaryChange {
    pub step: StepId,
    pub reason: &'static str,
    /// Log-odds and signals; `None` where nothing was weighed.
    pub score: Option<f64>,
    /// `{name: {value, weight, adds}}`
    pub signals: Option<Value>,
    pub at_prompt: bool,
    pub stands: bool,
    /// `{at, what, score}`, where the judgment differs from the one before.
    pub history: Option<Value>,
}

/// What a unit comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct UnitChange {
    pub unit: UnitId,
    /// Whether all of its steps were looked at; else its beginning and what was done in it stay.
    pub whole: bool,
    pub started: Millis,
    pub ended: Millis,
    pub intent: Intent,
    pub outcome: UnitOutcome,
    pub evidence: String,
    /// Another unit has begun after it, or its session has ended.
    pub over: bool,
}

/// What says what a unit is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// As it is stored.
    Unchanged,
    /// A prompt's text.
    Prompt(i64),
    /// Work without a prompt: its commit or its first command, from this step on.
    WorkFrom(i64),
}
