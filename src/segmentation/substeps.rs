//! Where long work on one prompt is cut into steps, so that a unit may begin in its middle: behind what completes
//! something. A cut is no boundary yet.

use super::phases::Phase;
use super::step::Step;
use crate::model::{CommandKind, Kind, ToolUse};

/// Tool uses that a step has before it is cut: fewer say too little to be judged.
const LEAST: u32 = 4;

/// Numbers of tool uses at which a step without a prompt is judged: soon, and again when more is known.
const JUDGED_AT: [u32; 4] = [6, 12, 24, 48];

/// Whether a tool use begins a new step: the one before committed, or checked its edits and now looks for something again.
pub fn begins_step(step: &Step, tool: &ToolUse) -> bool {
    if step.tool_uses < LEAST || tool.metadata.agent_id.is_some() || belongs_to_commit(tool) {
        return false;
    }
    let checked = step.edits > 0 && !step.edited_since_check && step.check_passed == Some(true);
    step.committed_last || (checked && !step.looked_since_check && Phase::of(tool) == Some(Phase::Investigation))
}

/// Whether a step inside the work on a prompt is to be judged now.
pub fn is_due(step: &Step) -> bool {
    step.asked.is_none() && JUDGED_AT.contains(&step.tool_uses)
}

/// What people do right after a commit: look at it, push it, commit the rest.
fn belongs_to_commit(tool: &ToolUse) -> bool {
    tool.kind == Kind::Command && matches!(tool.command, Some(CommandKind::Git | CommandKind::Commit))
        || tool.content.as_deref().is_some_and(|command| tool.kind == Kind::Command && command.starts_with("gh "))
}
