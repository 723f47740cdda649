//! Steps of a session as they are stored: what segmentation is given. The store reads and writes them and decides nothing.

use super::step::Step;
use super::window::WINDOW;

/// How many of a session's last steps segmentation needs: a window of whole turns, some of them in parts.
pub const WINDOW_STEPS: usize = WINDOW + WINDOW / 2;

/// A work unit: a stored one by its row, or the n-th that the same [`Changes`](super::Changes) open.
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

/// A step and where it belongs.
#[derive(Clone, Debug, PartialEq)]
pub struct StepRow {
    pub id: StepId,
    pub unit: UnitId,
    /// The prompt's row; `None` for work that was met before any prompt.
    pub prompt: Option<i64>,
    /// Whether a unit begins here is not asked again.
    pub settled: bool,
    /// Whether the boundary before it stands; `None` where there never was one.
    pub boundary: Option<bool>,
    /// The user cleared the conversation after its unit.
    pub cleared: bool,
    pub step: Step,
}

/// Picks the step that a tool use continues, of the steps of its prompt, the newest first: the last one, or the one that its
/// subagent was started from.
pub fn step_of(mut newest_first: Vec<StepRow>, agent: Option<&str>) -> Option<StepRow> {
    let own = agent.and_then(|agent| newest_first.iter().position(|row| row.step.knows_agent(agent)));
    let at = own.unwrap_or(0);
    (at < newest_first.len()).then(|| newest_first.swap_remove(at))
}
