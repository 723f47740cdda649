//! Priority of a tool use in the question to a model: failures, changes and decisions are kept, repeated reads dropped.

use crate::model::{CommandKind, Kind, ToolUseRow};

/// Returns a priority from 0 (always dropped) to 89; messages rank higher.
pub fn block_priority(tool: &ToolUseRow, failed: bool, again: bool) -> u8 {
    if failed {
        return 80;
    }
    match tool.kind {
        Kind::Edit | Kind::Write => 70,
        Kind::Command if tool.command_kind == Some(CommandKind::Commit) => 78,
        Kind::Command if tool.is_check() => 60,
        Kind::Fetch | Kind::Mcp => 45,
        // Its result may differ, its text does not.
        Kind::Command if again => 15,
        Kind::Command => 40,
        Kind::Read | Kind::Search if again => 0,
        Kind::Search => 20,
        Kind::Read => 25,
        _ => 35,
    }
}
