//! Splits long work on one prompt into steps after something was completed, so that a unit can begin in its middle. A
//! split is not a boundary yet.

use super::phases::Phase;
use super::step::Step;
use crate::model::{CommandKind, Kind, ToolUse};

/// Minimum tool uses of a step before it can be split; fewer are not enough evidence.
const LEAST: u32 = 4;

/// Counts of tool uses at which a step without a prompt is decided: early, and again with more evidence.
const JUDGED_AT: [u32; 4] = [6, 12, 24, 48];

/// Whether a tool use begins a new step: the previous ones committed, or checked their edits, and this one explores
/// again.
pub fn begins_step(step: &Step, tool: &ToolUse) -> bool {
    if step.tool_uses < LEAST || tool.metadata.agent_id.is_some() || belongs_to_commit(tool) {
        return false;
    }
    let checked = step.edits > 0 && !step.edited_since_check && step.check_passed == Some(true);
    step.committed_last || (checked && !step.looked_since_check && Phase::of(tool) == Some(Phase::Investigation))
}

/// Whether a step inside a prompt's work should be decided now.
pub fn is_due(step: &Step) -> bool {
    step.prompt_features.is_none() && JUDGED_AT.contains(&step.tool_uses)
}

/// Whether a tool use belongs to the preceding commit: showing it, pushing it, committing the rest.
fn belongs_to_commit(tool: &ToolUse) -> bool {
    tool.kind == Kind::Command && matches!(tool.command, Some(CommandKind::Git | CommandKind::Commit))
        || tool.content.as_deref().is_some_and(|command| tool.kind == Kind::Command && command.starts_with("gh "))
}
