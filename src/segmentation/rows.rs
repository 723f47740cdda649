//! Stored steps of a session: the input of segmentation.

use super::step::Step;
use super::window::WINDOW;

/// Number of a session's last steps that segmentation needs: a window of whole turns, some of them split.
pub const WINDOW_STEPS: usize = WINDOW + WINDOW / 2;

/// A unit: a stored one by its row, or the n-th one that the same [`Changes`](super::Changes) open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnitId {
    Stored(i64),
    New(usize),
}

/// A step: a stored one by its row, or the one that the same [`Changes`](super::Changes) insert.
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
