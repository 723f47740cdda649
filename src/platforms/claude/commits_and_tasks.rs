//! Effects of a tool call other than its output: a commit, a change to the task list.

use super::values::{ENTRIES, text};
use crate::command_kind;
use crate::model::{CommandKind, Commit, Task, TaskChange, TaskPatch};
use serde_json::Value;

/// Returns the commit that a command made: from the client's own record, from git's line `[branch sha] subject`, or, if
/// git was quiet, from the message in the command.
pub fn commit(command: &str, kind: Option<CommandKind>, response: &Value) -> Option<Commit> {
    let noted = &response["gitOperation"]["commit"];
    if kind != Some(CommandKind::Commit) && !noted.is_object() {
        return None;
    }
    let printed = text(&response["stdout"]).and_then(|out| out.lines().find_map(printed_commit)).unwrap_or_default();
    let sha = text(&noted["sha"]).or(printed.sha);
    // If git printed no commit, there must be no sign that the commit failed.
    let sure =
        noted.is_object() || sha.is_some() || response["stdout"].as_str().is_none_or(|out| !out.contains("nothing to commit"));
    let subject = printed.subject.or_else(|| command_kind::commit_message(command).filter(|_| sure));
    Some(Commit { sha, subject }).filter(|c| c.sha.is_some() || c.subject.is_some())
}

fn printed_commit(line: &str) -> Option<Commit> {
    let (head, subject) = line.strip_prefix('[')?.split_once("] ")?;
    let sha = head.rsplit(' ').next()?;
    let hex = (7..=64).contains(&sha.len()) && sha.bytes().all(|b| b.is_ascii_hexdigit());
    hex.then(|| Commit { sha: Some(sha.to_string()), subject: Some(subject.to_string()) })
}

pub fn task_change(name: &str, payload: &Value) -> Option<TaskChange> {
    let (input, response) = (&payload["tool_input"], &payload["tool_response"]);
    match name {
        "TodoWrite" => {
            let list = input["todos"].as_array()?;
            let task = |todo: &Value| Task {
                id: None,
                subject: text(&todo["content"]).unwrap_or_default(),
                status: text(&todo["status"]).unwrap_or_else(|| "pending".into()),
            };
            Some(TaskChange::Replace(list.iter().take(ENTRIES).map(task).collect()))
        }
        "TaskCreate" => Some(TaskChange::Upsert(TaskPatch {
            id: text(&response["task"]["id"]),
            subject: text(&input["subject"]),
            status: Some("pending".into()),
        })),
        "TaskUpdate" => Some(TaskChange::Upsert(TaskPatch {
            id: Some(text(&input["taskId"])?),
            subject: text(&input["subject"]),
            status: text(&input["status"]),
        })),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_commit_is_known_from_what_git_printed_or_from_the_command() {
        let made = |command: &str, stdout: &str| {
            let commit = commit(command, Some(command_kind::classify(command)), &json!({"stdout": stdout}))?;
            Some((commit.sha.unwrap_or_default(), commit.subject.unwrap_or_default()))
        };
        let printed = made("git commit -m 'a: b'", "[main 3fa106e] a: b\n 1 file changed");
        assert_eq!(printed, Some(("3fa106e".into(), "a: b".into())));
        for (command, subject) in [
            ("git add -A; git commit -qm 'say \"hi\"' && git log", "say \"hi\""),
            ("git commit -am \"one\ntwo\"", "one"),
            ("git commit -m \"$(cat <<'EOF'\nfix: it; and | that\n\nbody\nEOF\n)\"", "fix: it; and | that"),
            ("git -C x commit --message=word", "word"),
        ] {
            assert_eq!(made(command, ""), Some((String::new(), subject.into())), "{command}");
        }
        for command in [
            "git commit --dry-run -m 'never made'",
            "git commit -qm init; echo ok",
            "git commit -m x || true",
            "git commit --amend --no-edit && git grep 'git commit -m \"fake\"'",
            "python -m black . && git commit -q --amend --no-edit",
        ] {
            assert_eq!(made(command, ""), None, "{command}");
        }
        assert_eq!(made("git commit -m 'a'", "nothing to commit, working tree clean"), None);
        assert_eq!(made("echo '[main 3fa106e] no commit'", "[main 3fa106e] no commit"), None);
        assert_eq!(made("git commit --amend --no-edit", ""), None);
    }
}
