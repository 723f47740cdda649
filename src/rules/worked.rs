//! Commands that worked after others of the same program failed, with nothing changed in between: how something is run
//! here.

use super::failures::{did_not_run, is_look, program, response};
use crate::model::{Kind, ToolUseRow};

/// Tool uses between the two at most.
const NEAR: usize = 6;
/// Characters of a command that says how to run something.
const LONG: usize = 160;

/// Pairs of a command that failed and the one that worked instead, in order.
pub fn worked_after<'a>(tools: &[&'a ToolUseRow]) -> Vec<(&'a ToolUseRow, &'a ToolUseRow)> {
    let mut pairs: Vec<(&ToolUseRow, &ToolUseRow)> = Vec::new();
    for (at, failed) in tools.iter().enumerate().filter(|(_, tool)| tool.kind == Kind::Command && tool.succeeded == Some(false)) {
        // A check that found something says nothing about how it is run.
        if failed.is_check() && !did_not_run(response(failed)) {
            continue;
        }
        let Some(line) = failed.content.as_deref().filter(|line| !is_look(line)) else { continue };
        let name = named(line);
        let next = tools[at + 1..].iter().take(NEAR).take_while(|tool| !tool.is_edit());
        let worked = next.filter(|tool| tool.kind == Kind::Command && tool.succeeded == Some(true)).find(|tool| {
            let other = tool.content.as_deref().unwrap_or_default();
            other.len() < LONG && named(other) == name && arguments(other) != arguments(line)
        });
        let is_known = |tool: &ToolUseRow| pairs.iter().any(|(_, known)| known.id == tool.id);
        pairs.extend(worked.filter(|tool| !name.is_empty() && !is_known(tool)).map(|tool| (*failed, *tool)));
    }
    pairs
}

/// A program with its verb: `go test`.
fn named(line: &str) -> String {
    program(line).split(' ').take(2).collect::<Vec<_>>().join(" ")
}

/// A line without what only shortens its output.
fn arguments(line: &str) -> String {
    line.split(['|', '>']).next().unwrap_or_default().split_whitespace().filter(|word| *word != "2").collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::failures::testing::tool;
    use super::*;

    #[test]
    fn the_command_that_works_is_found_unless_something_was_changed() {
        let lines = |tools: &[ToolUseRow]| {
            let pairs = worked_after(&tools.iter().collect::<Vec<_>>());
            pairs.iter().map(|(_, worked)| worked.content.clone().unwrap()).collect::<Vec<_>>()
        };
        let failed = || ToolUseRow {
            metadata: serde_json::json!({"response": "build constraints exclude all Go files"}),
            ..tool(1, "command", "go test ./e2e", false)
        };
        let worked = || tool(3, "command", "go test -tags=e2e ./e2e", true);
        assert_eq!(lines(&[failed(), tool(2, "read", "a.go", true), worked()]), ["go test -tags=e2e ./e2e"]);
        assert!(lines(&[failed(), tool(2, "edit", "a.go", true), worked()]).is_empty());
        assert!(lines(&[failed(), tool(3, "command", "go test ./e2e 2>&1 | tail", true)]).is_empty());
        let found = tool(1, "command", "bun run lint", false);
        assert!(lines(&[found, tool(2, "command", "bun run lint --fix", true)]).is_empty(), "a check that found something");
        assert!(lines(&[tool(1, "command", "grep a b", false), tool(2, "command", "grep a c", true)]).is_empty());
    }
}
