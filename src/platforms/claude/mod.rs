//! Claude Code: payloads become events here; `hooks` is the adapter, `past` reads past sessions.

pub(crate) mod hooks;
pub mod past;

pub use hooks::ClaudeCode;

use super::author::{self, Author, author, without_client_blocks};
use super::payload::{DecodeContext, field};
use crate::command_kind;
use crate::model::{
    BackgroundEnd, CommandKind, Commit, Event, EventKind, Kind, Metadata, Millis, Platform, SessionStart, StartSource, TakenBack,
    Task, TaskChange, TaskPatch, ToolUse,
};
use crate::text::files_named;
use serde_json::Value;

/// Maximum bytes of a tool's text to assemble; redaction keeps less (`model::Limit`).
const TEXT: usize = 4 << 20;

/// Maximum bytes of a subagent's task to search for file names.
const TASK: usize = 64 << 10;

/// Longest path, in bytes, on any system.
const PATH_BYTES: usize = 4096;
/// Values of `source` and `prompt_source` for prompts that no person typed, in versions that send them.
const MACHINES: [&str; 6] = ["system", "loop_wakeup", "schedule_wakeup", "poll_event", "peer_message", "task_notification"];

/// Decodes an event; `None` if there is nothing to store. A payload without a session id is an error.
pub fn decode(payload: &Value, around: &DecodeContext) -> Result<Option<Event>, String> {
    let name = text(&payload["hook_event_name"]).ok_or("no hook_event_name")?;
    let Some(what) = happening(&name, payload, around) else { return Ok(None) };
    let session = match &payload["session_id"] {
        Value::Number(number) => Some(number.to_string()),
        other => text(other),
    };
    Ok(Some(Event {
        platform: Platform::ClaudeCode,
        session: session.ok_or_else(|| format!("{name} without session_id"))?,
        at: around.now,
        time: time(&payload["timestamp"]),
        cwd: text(&payload["cwd"]).filter(|cwd| cwd.len() <= PATH_BYTES),
        project: None,
        transcript: text(&payload["transcript_path"]),
        repository_url: None,
        transcript_length: None,
        usage: None,
        prompt: text(&payload["prompt_id"]),
        agent: text(&payload["agent_id"]),
        what,
    }))
}

/// Parses a timestamp. Claude Code sends none. Other agents that run its hooks send RFC 3339 or milliseconds.
fn time(value: &Value) -> Option<Millis> {
    let text = value.as_str().and_then(|t| t.parse::<jiff::Timestamp>().ok()).map(|t| t.as_millisecond());
    text.or_else(|| value.as_i64())
}

fn happening(name: &str, payload: &Value, around: &DecodeContext) -> Option<EventKind> {
    Some(match name {
        "SessionStart" => EventKind::SessionStarted(SessionStart {
            source: source(payload["source"].as_str()),
            model: text(&payload["model"]),
            client: None,
            git: None,
        }),
        "UserPromptSubmit" => match by_a_person(payload) {
            Some(text) => EventKind::UserPrompt { text },
            None => EventKind::BackgroundEnded(notified(payload["prompt"].as_str()?)?),
        },
        "PostToolUse" | "PostToolUseFailure" => return tool_event(name, payload, around),
        "PreToolUse" if ["Agent", "Task"].contains(&payload["tool_name"].as_str()?) => {
            let task = text(&payload["tool_input"]["prompt"])?;
            let files: Vec<String> = files_named(&task[..task.floor_char_boundary(TASK)]).into_iter().map(String::from).collect();
            EventKind::Delegating { files: Some(files).filter(|files| !files.is_empty())? }
        }
        "PreToolUse" => {
            let path = ["file_path", "notebook_path"].iter().find_map(|key| text(&payload["tool_input"][key]))?;
            let changes = ["Edit", "Write", "MultiEdit", "NotebookEdit"].contains(&payload["tool_name"].as_str()?);
            EventKind::PreEdit { path: Some(path).filter(|path| changes && path.len() <= PATH_BYTES)?, repository: None }
        }
        // Adapters of other agents send these events.
        "TakenBack" => EventKind::TakenBack(TakenBack::One(text(&payload["prompt_id"])?)),
        "BackgroundEnded" => EventKind::BackgroundEnded(background_end("TaskOutput", payload)?),
        "Stop" => EventKind::TurnEnded { closing: text(&payload["last_assistant_message"]), error: None },
        "StopFailure" => EventKind::TurnEnded {
            closing: text(&payload["last_assistant_message"]),
            error: Some(text(&payload["error"]).unwrap_or_else(|| "unknown".into())),
        },
        "SubagentStart" => EventKind::SubagentStarted,
        // A compaction's summariser ends as a subagent without a type.
        "SubagentStop" => EventKind::SubagentEnded {
            agent_type: text(&payload["agent_type"])?,
            closing: text(&payload["last_assistant_message"]),
        },
        "PreCompact" => EventKind::Compacting,
        "SessionEnd" => EventKind::SessionEnded { reason: text(&payload["reason"]).unwrap_or_else(|| "other".into()), git: None },
        _ => return None,
    })
}

fn source(name: Option<&str>) -> StartSource {
    match name {
        Some("resume") => StartSource::Resume,
        Some("clear") => StartSource::Clear,
        Some("compact") => StartSource::Compact,
        Some("fork") => StartSource::Fork,
        _ => StartSource::Startup,
    }
}

fn by_a_person(payload: &Value) -> Option<String> {
    let prompt = text(&payload["prompt"])?;
    let is_machines = |source: &Value| source.as_str().is_some_and(|name| MACHINES.contains(&name));
    let is_persons = match payload["prompt_source"].as_str() {
        Some("user") => true,
        _ => author(&prompt) == Author::Person,
    };
    let is_machines = is_machines(&payload["source"])
        || is_machines(&payload["prompt_source"])
        || payload["origin"]["kind"].as_str().is_some_and(|kind| kind != "human");
    let typed = without_client_blocks(&prompt);
    let typed = if typed.is_empty() { prompt.as_str() } else { typed };
    (is_persons && !is_machines).then(|| typed.to_string())
}

fn tool_event(event: &str, payload: &Value, around: &DecodeContext) -> Option<EventKind> {
    let name = text(&payload["tool_name"]).unwrap_or_else(|| "unknown".into());
    if event == "PostToolUse" {
        let answers = author::answers(&name, &payload["tool_input"], &payload["tool_response"]);
        if !answers.is_empty() {
            return Some(EventKind::Answered { call: text(&payload["tool_use_id"]), answers });
        }
    }
    let tasks = if event == "PostToolUse" { task_change(&name, payload) } else { None };
    let ended = background_end(&name, payload).filter(|_| event == "PostToolUse");
    if around.skip_tools.contains(&name) {
        return tasks.map(EventKind::TasksChanged).or(ended.map(EventKind::BackgroundEnded));
    }
    let mut tool = tool_use(event, &name, payload);
    (tool.tasks, tool.ended) = (tasks, ended);
    Some(EventKind::ToolUsed(Box::new(tool)))
}

fn kind(name: &str) -> Kind {
    match name {
        "Read" | "NotebookRead" => Kind::Read,
        "Grep" | "Glob" | "LS" | "LSP" | "ToolSearch" => Kind::Search,
        "Edit" | "MultiEdit" | "NotebookEdit" => Kind::Edit,
        "Write" => Kind::Write,
        "Bash" | "PowerShell" => Kind::Command,
        "WebFetch" | "WebSearch" => Kind::Fetch,
        "Agent" | "Task" => Kind::Delegate,
        _ if name.starts_with("mcp__") => Kind::Mcp,
        _ => Kind::Other,
    }
}

fn tool_use(event: &str, name: &str, payload: &Value) -> ToolUse {
    let (input, response) = (&payload["tool_input"], &payload["tool_response"]);
    let kind = kind(name);
    let path = ["file_path", "notebook_path", "path"].iter().find_map(|key| text(&input[*key]));
    let content = content(name, kind, input).or_else(|| path.clone());
    let failed = event == "PostToolUseFailure";
    let said = said(name, input, response);
    let mut tool = ToolUse {
        id: text(&payload["tool_use_id"]),
        name: name.to_string(),
        kind,
        command: content.as_deref().filter(|_| kind == Kind::Command).map(command_kind::classify),
        path,
        repository: None,
        content,
        input: said.input,
        outcome: said.outcome.filter(|_| !failed),
        succeeded: if failed { Some(false) } else { succeeded(response) },
        source_event: event.to_string(),
        metadata: Metadata {
            description: text(&input["description"]),
            subagent_type: text(&input["subagent_type"]),
            duration_ms: payload["duration_ms"].as_i64(),
            agent_id: text(&payload["agent_id"]),
            background: text(&response["backgroundTaskId"])
                .or_else(|| text(&response["outputFile"]).and(text(&response["agentId"]))),
            interrupted: payload["is_interrupt"] == true || response["interrupted"] == true,
            spawned_agent: text(&response["agentId"]),
            agent_tokens: response["totalTokens"].as_i64(),
            ..said.metadata
        },
        tasks: None,
        ended: None,
    };
    if failed {
        let error = text(&payload["error"]).or_else(|| readable(response)).unwrap_or_default();
        tool.metadata.failed = true;
        tool.metadata.exit_code = error.strip_prefix("Exit code ").and_then(|rest| rest.split('\n').next()?.trim().parse().ok());
        tool.metadata.response = Some(error);
    } else if let (Kind::Command, Some(line), Some(command)) = (kind, &tool.content, tool.command) {
        if tool.succeeded == Some(true) && command_kind::failed_unseen(line, command, tool.outcome.as_deref().unwrap_or_default())
        {
            tool.succeeded = Some(false);
            tool.metadata.inferred = true;
        }
        tool.metadata.commit = commit(tool.content.as_deref().unwrap_or_default(), tool.command, response);
    }
    tool
}

/// Returns a short text that identifies the call, such as its command, pattern or URL.
fn content(name: &str, kind: Kind, input: &Value) -> Option<String> {
    let key = match kind {
        Kind::Command => "command",
        Kind::Search => "pattern",
        Kind::Delegate => "description",
        Kind::Fetch if name == "WebSearch" => "query",
        Kind::Fetch => "url",
        Kind::Read | Kind::Edit | Kind::Write => return None,
        Kind::Mcp | Kind::Other => "",
    };
    if let Some(text) = text(&input[key]) {
        return Some(text);
    }
    match name {
        "TaskCreate" => text(&input["subject"]),
        "TaskUpdate" => Some(format!("{} {}", text(&input["taskId"])?, text(&input["status"]).unwrap_or_default())),
        _ => input.as_object().filter(|o| !o.is_empty()).map(|_| input.to_string()),
    }
}

/// Returns whether a call succeeded, according to its response; `None` if it still runs. The call reported no failure.
fn succeeded(response: &Value) -> Option<bool> {
    let no = response["interrupted"] == true
        || response["success"] == false
        || response["is_error"] == true
        || response["isError"] == true;
    let goes_on = response["backgroundTaskId"].is_string() || response["status"] == "async_launched";
    match (no, goes_on) {
        (true, _) => Some(false),
        (false, true) => None,
        (false, false) => Some(true),
    }
}

/// Input and output of a call as text.
#[derive(Default)]
struct Said {
    input: Option<String>,
    outcome: Option<String>,
    metadata: Metadata,
}

fn said(name: &str, input: &Value, response: &Value) -> Said {
    match kind(name) {
        Kind::Command => {
            let parts = [text(&response["stdout"]), text(&response["stderr"]), text(&response["returnCodeInterpretation"])];
            let joined = parts.into_iter().flatten().collect::<Vec<_>>().join("\n");
            Said {
                outcome: Some(joined).filter(|t| !t.is_empty()).or_else(|| readable_if_not_object(response)),
                ..Said::default()
            }
        }
        Kind::Read => {
            let file = &response["file"];
            let lines = file["numLines"].as_i64().zip(file["totalLines"].as_i64());
            let first = file["startLine"].as_i64().unwrap_or(1);
            Said { outcome: lines.map(|(n, total)| format!("{n} lines from {first} of {total}")), ..Said::default() }
        }
        Kind::Edit | Kind::Write => change(input, response),
        Kind::Search => {
            let names = joined(&response["filenames"], "\n");
            let counts = if response["mode"] == "content" { &response["numLines"] } else { &response["numFiles"] };
            Said {
                outcome: text(&response["content"]).or(names).or_else(|| readable_if_not_object(response)),
                metadata: Metadata { results: counts.as_i64(), ..Metadata::default() },
                ..Said::default()
            }
        }
        Kind::Delegate => Said { input: text(&input["prompt"]), outcome: readable(&response["content"]), ..Said::default() },
        Kind::Fetch => {
            let results = response["results"].as_array();
            let outcome = text(&response["result"]).or_else(|| results.and_then(|r| readable(&Value::Array(r.clone()))));
            Said {
                input: text(&input["prompt"]),
                outcome: outcome.or_else(|| readable_if_not_object(response)),
                metadata: Metadata { results: response["searchCount"].as_i64(), ..Metadata::default() },
            }
        }
        Kind::Mcp | Kind::Other => Said { outcome: readable(response), ..Said::default() },
    }
}

/// Returns a file change: its hunks, and the number of lines added and removed.
fn change(input: &Value, response: &Value) -> Said {
    let mut hunks = String::new();
    let (mut added, mut removed) = (0, 0);
    for hunk in response["structuredPatch"].as_array().into_iter().flatten() {
        let start = |key: &str| hunk[key].as_i64().unwrap_or(0);
        hunks += &format!("@@ -{} +{} @@\n", start("oldStart"), start("newStart"));
        for line in hunk["lines"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            added += i64::from(line.starts_with('+'));
            removed += i64::from(line.starts_with('-'));
            if hunks.len() < TEXT {
                hunks = hunks + line + "\n";
            }
        }
    }
    let new = ["content", "new_string", "new_source"].iter().find_map(|key| input[*key].as_str()).unwrap_or_default();
    if hunks.is_empty() {
        added = new.lines().count() as i64;
    }
    // Without a patch, or if a transcript holds only a part of it, the call's own input has more text.
    if hunks.len() < new.len().min(TEXT) {
        hunks = match input["old_string"].as_str() {
            Some(old) => {
                let removed = old.lines().map(|line| format!("-{line}\n"));
                removed.chain(new.lines().map(|line| format!("+{line}\n"))).collect()
            }
            None => new.to_string(),
        };
    }
    let metadata = Metadata {
        lines_added: Some(added).filter(|n| *n > 0),
        lines_removed: Some(removed).filter(|n| *n > 0),
        ..Metadata::default()
    };
    Said { input: Some(hunks).filter(|h| !h.is_empty()), outcome: text(&response["type"]), metadata }
}

/// Maximum further commits of one command to keep.
const COMMITS: usize = 16;

/// Returns the commit that a command made: from the client's own record, from git's line `[branch sha] subject`, or, if
/// git was quiet, from the message in the command.
pub fn commit(command: &str, kind: Option<CommandKind>, response: &Value) -> Option<Commit> {
    let noted = &response["gitOperation"]["commit"];
    if kind != Some(CommandKind::Commit) && !noted.is_object() {
        return None;
    }
    let printed: Vec<Commit> = response["stdout"].as_str().unwrap_or_default().lines().filter_map(printed_commit).collect();
    let also = printed.iter().skip(1).take(COMMITS).filter_map(|commit| commit.sha.clone()).collect();
    let printed = printed.into_iter().next().unwrap_or_default();
    let sha = text(&noted["sha"]).or(printed.sha);
    // If git printed no commit, there must be no sign that the commit failed.
    let sure =
        noted.is_object() || sha.is_some() || response["stdout"].as_str().is_none_or(|out| !out.contains("nothing to commit"));
    let subject = printed.subject.or_else(|| command_kind::commit_message(command).filter(|_| sure));
    Some(Commit { sha, subject, also }).filter(|c| c.sha.is_some() || c.subject.is_some())
}

fn printed_commit(line: &str) -> Option<Commit> {
    let (head, subject) = line.strip_prefix('[')?.split_once("] ")?;
    let sha = head.rsplit(' ').next()?;
    let hex = (7..=64).contains(&sha.len()) && sha.bytes().all(|b| b.is_ascii_hexdigit());
    hex.then(|| Commit { sha: Some(sha.to_string()), subject: Some(subject.to_string()), also: Vec::new() })
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

/// Returns the end of a background command from a call that reads its output, or stops it.
fn background_end(name: &str, payload: &Value) -> Option<BackgroundEnd> {
    let (input, response) = (&payload["tool_input"], &payload["tool_response"]);
    let task = if response["task"].is_object() { &response["task"] } else { response };
    let id = field(task, &["task_id", "shellId", "shell_id"]).as_str();
    let id = id.or_else(|| field(input, &["task_id", "bash_id", "shell_id"]).as_str())?;
    let status = match name {
        "TaskOutput" | "BashOutput" => task["status"].as_str()?,
        "TaskStop" | "KillShell" | "KillBash" => "killed",
        _ => return None,
    };
    let said = [text(&task["output"]), text(&task["stdout"]), text(&task["stderr"])];
    let output = Some(said.into_iter().flatten().collect::<Vec<_>>().join("\n")).filter(|output| !output.is_empty());
    end_of(id, status, field(task, &["exitCode", "exit_code"]).as_i64(), output)
}

/// Returns the end of a background command from a notification of the client, which stands in place of a prompt.
pub fn notified(prompt: &str) -> Option<BackgroundEnd> {
    let inside = prompt.trim_start().strip_prefix("<task-notification>")?;
    let of = |tag: &str| Some(inside.split_once(&format!("<{tag}>"))?.1.split_once(&format!("</{tag}>"))?.0.trim());
    let summary = of("summary").unwrap_or_default();
    let code = summary.rsplit_once("exit code ").and_then(|(_, code)| code.trim_end_matches([')', '.']).parse().ok());
    end_of(of("task-id")?, of("status")?, code, None)
}

/// Returns the end of a command by the client's word for its state; `None` if it still runs.
fn end_of(id: &str, status: &str, code: Option<i64>, output: Option<String>) -> Option<BackgroundEnd> {
    let succeeded = match (status, code) {
        ("killed" | "stopped" | "cancelled", _) => None,
        ("running" | "pending", None) => return None,
        (_, Some(code)) => Some(code == 0),
        (status, None) => Some(status != "failed"),
    };
    Some(BackgroundEnd { id: id.to_string(), succeeded, exit_code: code.and_then(|code| code.try_into().ok()), output })
}

/// Returns true if a text is a command that the client itself ran.
pub fn is_command(said: &str) -> bool {
    said.trim_start().starts_with("<command-name>") || said.trim_start().starts_with("<local-command")
}

/// Returns the part of a line's text that a person typed; `None` if the client wrote it.
pub fn typed(said: &str) -> Option<String> {
    let said = without_client_blocks(said);
    // A user-defined command: its name and arguments. The client's own commands begin with their name instead.
    if said.starts_with("<command-message>") {
        let part = |tag: &str| {
            let (_, behind) = said.split_once(&format!("<{tag}>"))?;
            Some(behind.split_once(&format!("</{tag}>"))?.0.trim())
        };
        let name = part("command-name")?;
        return Some(format!("{name} {}", part("command-args").unwrap_or_default()).trim().to_string());
    }
    let is_persons = !said.starts_with("<command-name>") && author(said) == Author::Person;
    Some(said.to_string()).filter(|said| !said.is_empty() && is_persons)
}

/// Maximum entries of a task list, or results of a web search, to read.
pub const ENTRIES: usize = 50;

/// Returns a non-blank string.
pub fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|t| !t.trim().is_empty()).map(String::from)
}

/// Joins the strings of a list.
pub fn joined(list: &Value, with: &str) -> Option<String> {
    let items: Vec<&str> = list.as_array()?.iter().filter_map(Value::as_str).take(200).collect();
    Some(items.join(with)).filter(|t| !t.is_empty())
}

/// Converts a response of any shape to text: content blocks, strings, lists of them, or JSON.
pub fn readable(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(_) => text(value),
        Value::Array(items) => {
            let words =
                |item: &Value| text(&item["text"]).or_else(|| text(&item["title"])).or_else(|| readable_if_not_object(item));
            let parts: Vec<String> = items.iter().take(ENTRIES).filter_map(words).collect();
            Some(parts.join("\n")).filter(|t| !t.is_empty())
        }
        Value::Object(_) => text(&value["text"]).or_else(|| readable(&value["content"])).or_else(|| Some(value.to_string())),
        other => Some(other.to_string()),
    }
}

/// Like [`readable`], but returns `None` for an object.
pub fn readable_if_not_object(value: &Value) -> Option<String> {
    if value.is_object() { None } else { readable(value) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_kind;
    use serde_json::json;

    #[test]
    fn the_end_of_a_background_command_is_read_from_each_source() {
        let task = |status: &str, code: Option<i64>| json!({"task": {"task_id": "b1", "status": status, "exitCode": code, "output": "out"}});
        let tool = |name: &str, input: Value, response: Value| json!({"hook_event_name": "PostToolUse", "session_id": "s", "tool_name": name, "tool_input": input, "tool_response": response});
        let note = |status: &str, summary: &str| {
            let prompt = format!(
                "<task-notification>\n<task-id>b1</task-id>\n<status>{status}</status>\n<summary>{summary}</summary>\n</task-notification>"
            );
            json!({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": prompt})
        };
        for (payload, end) in [
            (tool("TaskOutput", json!({"task_id": "b1"}), task("failed", Some(101))), Some((Some(false), Some(101)))),
            (tool("TaskOutput", json!({"task_id": "b1"}), task("completed", Some(0))), Some((Some(true), Some(0)))),
            (tool("TaskOutput", json!({"task_id": "b1"}), task("running", None)), None),
            (
                tool("BashOutput", json!({"bash_id": "b1"}), json!({"status": "failed", "exitCode": 1})),
                Some((Some(false), Some(1))),
            ),
            (tool("BashOutput", json!({"bash_id": "b1"}), json!({"status": "completed"})), Some((Some(true), None))),
            (tool("KillShell", json!({"shell_id": "b1"}), json!({"message": "killed"})), Some((None, None))),
            (tool("TaskStop", json!({"task_id": "b1"}), json!({"task_type": "local_bash"})), Some((None, None))),
            (tool("Read", json!({"task_id": "b1"}), task("failed", Some(101))), None),
            (note("completed", "Background command \"t\" completed (exit code 0)"), Some((Some(true), Some(0)))),
            (note("failed", "Background command \"t\" failed with exit code 2"), Some((Some(false), Some(2)))),
            (note("killed", "Background command \"t\" was stopped"), Some((None, None))),
        ] {
            let around = DecodeContext { now: 1, skip_tools: &[] };
            let found = match decode(&payload, &around).unwrap().map(|event| event.what) {
                Some(EventKind::ToolUsed(tool)) => tool.ended,
                Some(EventKind::BackgroundEnded(ended)) => Some(ended),
                _ => None,
            };
            assert!(found.iter().all(|ended| ended.id == "b1"));
            assert_eq!(found.map(|ended| (ended.succeeded, ended.exit_code)), end, "{payload}");
        }
    }

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
