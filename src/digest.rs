//! What a session came to, drawn from its prompts and tool uses by plain rules: asked, done, changed, failed, next.
//!
//! Texts are passed on as they are stored; `render` cleans and shortens them.

use crate::model::{Change, Digest, Failed, Made, Millis, PromptRow, State, Story, ToolUseRow, Turn};

/// Draws a digest. `until` is when the session was last heard of.
pub fn digest(story: Story, state: State, until: Millis) -> Digest {
    let Story { session, prompts, tools } = story;
    let mut turns = turns(&prompts);
    let mut next = None;
    if let Some(done) = turns.last_mut().and_then(|turn| turn.done.as_mut())
        && let Some((before, left)) = split_left(done)
    {
        next = Some(left);
        *done = before;
    }
    Digest {
        state,
        until,
        turns,
        changed: changes(&tools),
        commits: tools.iter().filter_map(made).collect(),
        failed: failures(&tools),
        open_tasks: session.tasks.iter().filter(|t| t.status != "completed").map(|t| t.subject.clone()).collect(),
        next,
        session,
    }
}

fn turns(prompts: &[PromptRow]) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    for prompt in prompts {
        match (prompt.source.as_str(), turns.last_mut()) {
            // Broken off and asked again: one question.
            ("user", Some(turn)) if turn.done.is_none() && turn.asked == prompt.text => turn.number = prompt.number,
            ("user", _) => turns.push(Turn { number: prompt.number, asked: prompt.text.clone(), done: None }),
            // A turn may close several times (a stop hook goes on, a background task reports): the last word counts.
            (_, Some(turn)) if turn.number == prompt.number => turn.done = Some(prompt.text.clone()),
            _ => {}
        }
    }
    turns
}

fn changes(tools: &[ToolUseRow]) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    for tool in tools.iter().filter(|t| matches!(t.kind.as_str(), "edit" | "write") && t.succeeded != Some(false)) {
        let Some(path) = &tool.path else { continue };
        let standing = changes.iter().position(|c| c.path == *path).map(|at| changes.remove(at));
        let created = tool.outcome.as_deref() == Some("create") || standing.as_ref().is_some_and(|c| c.created);
        changes.push(Change { path: path.clone(), times: standing.map_or(0, |c| c.times) + 1, created });
    }
    changes.reverse();
    changes
}

fn made(tool: &ToolUseRow) -> Option<Made> {
    let commit = tool.metadata.get("commit")?;
    let text = |key: &str| commit[key].as_str().map(String::from);
    Some(Made { sha: text("sha").map(|sha| sha.chars().take(7).collect()), subject: text("subject").unwrap_or_default() })
}

fn failures(tools: &[ToolUseRow]) -> Vec<Failed> {
    let mut failed: Vec<Failed> = Vec::new();
    // A file that wasn't there to be read is part of looking around.
    for tool in tools.iter().filter(|t| !matches!(t.kind.as_str(), "read" | "search")) {
        let Some(content) = tool.content.clone().or_else(|| tool.path.clone()) else { continue };
        let what = if tool.kind == "command" { content } else { format!("{} {content}", tool.tool_name) };
        let standing = failed.iter().position(|f| f.what == what);
        match (tool.succeeded, standing) {
            (Some(false), standing) => {
                let times = standing.map_or(0, |at| failed.remove(at).times) + 1;
                failed.push(Failed { what, reason: reason(tool), times, passed_later: false });
            }
            (Some(true), Some(at)) => failed[at].passed_later = true,
            _ => {}
        }
    }
    failed
}

/// The line of a failure's answer that says most: one that names an error, else the last.
fn reason(tool: &ToolUseRow) -> String {
    let response = tool.metadata["response"].as_str().or(tool.outcome.as_deref()).unwrap_or_default();
    let exit = tool.metadata["exit_code"].as_i64();
    let lines: Vec<&str> = response
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty() && !l.starts_with("Exit code ") && !l.starts_with("[…"))
        .collect();
    let names_error = |line: &&&str| {
        let line = line.to_lowercase().replace("0 failed", "").replace("0 errors", "");
        ["error", "panicked", "failed", "fatal", "exception", "not found", "denied", "cannot"]
            .iter()
            .any(|word| line.contains(word))
    };
    let line = lines.iter().find(names_error).or(lines.last()).copied().unwrap_or_default();
    match exit {
        Some(code) if line.is_empty() => format!("exit {code}"),
        Some(code) => format!("exit {code}: {line}"),
        None => line.to_string(),
    }
}

/// Words with which agents head what they leave undone.
const LEFT: [&str; 11] = [
    "next",
    "next step",
    "next steps",
    "remaining",
    "still to do",
    "still open",
    "todo",
    "to do",
    "not done",
    "left to do",
    "follow-up",
];

/// Cuts a closing message in two: what was done, and what the agent says is left to do. That is a line `Next: …`, or a
/// heading and the list below it; finished boxes are no work left.
fn split_left(closing: &str) -> Option<(String, String)> {
    let lines: Vec<&str> = closing.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    let at = lines.iter().rposition(|line| label(line).is_some()).filter(|at| *at > 0)?;
    let behind = label(lines[at])?;
    let items = lines[at + 1..].iter().map_while(|line| item(line)).filter(|item| !item.is_empty());
    let left = if behind.is_empty() { items.collect::<Vec<_>>().join("; ") } else { behind };
    (!left.is_empty()).then(|| (lines[..at].join("\n"), left))
}

/// What stands behind a label (`**Next:** a` → `a`); empty for a heading (`## Next steps`).
fn label(line: &str) -> Option<String> {
    let plain = line.trim_start_matches(['#', '*', '-', '>', ' ']);
    let (name, behind) = match plain.split_once(':') {
        Some((name, behind)) => (name, behind.trim_matches(['*', ' '])),
        None => (plain, ""),
    };
    let name = name.trim_matches(['*', ' ']).to_lowercase();
    LEFT.contains(&name.as_str()).then(|| behind.to_string())
}

/// The text of a list item, empty for a finished box; `None` for a line that is none.
fn item(line: &str) -> Option<&str> {
    let numbered =
        line.split_once(['.', ')']).filter(|(n, _)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit())).map(|(_, rest)| rest);
    let text = line.strip_prefix(['-', '*', '•']).or(numbered)?.trim();
    match text.get(..3) {
        Some("[x]" | "[X]") => Some(""),
        Some("[ ]") => Some(text[3..].trim()),
        _ => Some(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(kind: &str, what: &str, succeeded: bool, metadata: serde_json::Value) -> ToolUseRow {
        let is_file = kind != "command";
        ToolUseRow {
            id: 1,
            session_id: 1,
            seq: 1,
            prompt_id: None,
            tool_use_id: None,
            received_at: 0,
            tool_name: String::new(),
            kind: kind.into(),
            command_kind: None,
            path: is_file.then(|| what.to_string()),
            content: Some(what.into()),
            input: None,
            outcome: None,
            succeeded: Some(succeeded),
            metadata,
        }
    }

    #[test]
    fn a_command_that_went_through_later_is_said_to_have() {
        let error = json!({"exit_code": 101, "response": "Exit code 101\nrunning 3 tests\nassertion failed: a == b\ndone"});
        let tools = [
            tool("command", "cargo test", false, error.clone()),
            tool("command", "make", false, json!({"exit_code": 2})),
            tool("command", "cargo test", true, json!(null)),
        ];
        let failed = failures(&tools);
        assert_eq!((failed[0].what.as_str(), failed[0].passed_later), ("cargo test", true));
        assert_eq!(failed[0].reason, "exit 101: assertion failed: a == b");
        assert_eq!((failed[1].reason.as_str(), failed[1].passed_later), ("exit 2", false));
    }

    #[test]
    fn files_stand_once_with_the_last_change_first() {
        let tools = [
            tool("edit", "a", true, json!(null)),
            tool("write", "b", true, json!(null)),
            tool("edit", "a", true, json!(null)),
            tool("edit", "c", false, json!(null)),
        ];
        let changed: Vec<(String, usize)> = changes(&tools).into_iter().map(|c| (c.path, c.times)).collect();
        assert_eq!(changed, [("a".to_string(), 2), ("b".to_string(), 1)]);
    }

    #[test]
    fn what_is_left_is_taken_from_its_line_or_from_below_its_heading() {
        let left = |text: &str| split_left(text).map(|(_, left)| left);
        assert_eq!(split_left("All done.\n\nNext: bump it"), Some(("All done.".into(), "bump it".into())));
        assert_eq!(left("Done.\n## Next steps\n- a\n- b").as_deref(), Some("a; b"));
        assert_eq!(left("Done.\n**Remaining:**\n1. docs\n2. tests\n\nLet me know!").as_deref(), Some("docs; tests"));
        assert_eq!(left("Done.\n## Next steps\n- [x] notes\n- [ ] publish\n| a | b |").as_deref(), Some("publish"));
        assert_eq!(left("Done.\nNext to the parser there is a helper."), None);
        assert_eq!(left("Everything passes."), None);
        assert_eq!(left("Next: all of it"), None, "a message that is nothing else is what was answered");
    }
}
