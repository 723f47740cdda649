//! What a tool use is worth to somebody who has to sum the work up: failures, changes and decisions stay, repeated reads go.

use crate::model::ToolUseRow;

/// From 0 (goes in any case) to 89; messages are worth more.
pub fn worth(tool: &ToolUseRow, failed: bool, again: bool) -> u8 {
    if failed {
        return 80;
    }
    match (tool.kind.as_str(), tool.command_kind.as_deref()) {
        ("edit" | "write", _) => 70,
        ("command", Some("commit")) => 78,
        ("command", Some("test" | "build" | "lint")) => 60,
        ("fetch" | "mcp", _) => 45,
        // Its result may differ; its text is the same.
        ("command", _) if again => 15,
        ("command", _) => 40,
        ("read" | "search", _) if again => 0,
        ("search", _) => 20,
        ("read", _) => 25,
        _ => 35,
    }
}
