//! The work behind a line or a commit, as text and JSON.

use super::clean::{code, line};
use super::style::Style;
use super::{count, memory_text, time, unit_text};
use crate::model::{Certainty, Evidence, FilePart, MemoryRow, Origin, OriginOf, ToolUseRow, UnitRow};
use serde_json::{Value, json};

/// Maximum memories and checks to list.
const LISTED: usize = 5;
/// Characters of a commit's id.
const ID: usize = 10;

/// The first characters of a commit's id.
pub fn short(sha: &str) -> &str {
    sha.get(..ID).unwrap_or(sha)
}

/// The reason to name this work, as a sentence.
fn reason(origin: &Origin) -> String {
    let is_line = matches!(origin.subject, OriginOf::Line { .. });
    match (origin.certainty, is_line) {
        (Certainty::Edit, _) => "A recorded edit wrote this text.".into(),
        (Certainty::Commit, true) => {
            "A recorded session made the commit, but no recorded edit wrote this text: a command or a person did.".into()
        }
        (Certainty::Commit, false) => "A recorded command made this commit.".into(),
        (Certainty::SameChange, _) => {
            let id = origin.recorded_as.as_deref().map(short).unwrap_or_default();
            format!("This is the change of the recorded commit {id}, amended, rebased or squashed.")
        }
        (Certainty::Text, _) => {
            let (all, written) = origin.lines;
            format!("Recorded edits wrote {written} of its {all} lines. Nmem did not see who made the commit.")
        }
        (Certainty::Unknown, true) => {
            "No recorded edit wrote this text: a person did, or another machine, or it is older than the recording.".into()
        }
        (Certainty::Unknown, false) => {
            "Nothing recorded is behind this commit: a person made it, or another machine, or it is older than the recording."
                .into()
        }
    }
}

/// The result of a check: `passed`, or `failed (exit 1)`.
pub fn result_of(check: &ToolUseRow, style: Style) -> String {
    let code = check.metadata["exit_code"].as_i64();
    match (check.succeeded, code) {
        (Some(true), _) => style.good("passed"),
        (Some(false), Some(code)) => style.bad(&format!("failed (exit {code})")),
        (Some(false), None) => style.bad("failed"),
        (None, _) => "still running".to_string(),
    }
}

fn name_of(unit: &UnitRow) -> String {
    let name = unit.title.as_ref().or(unit.intent.as_ref());
    name.map_or_else(String::new, |name| line(name, 100))
}

/// An answer, for a person.
pub fn text(evidence: &Evidence, style: Style) -> String {
    match evidence {
        Evidence::Origin(origin) => origin_text(origin, style),
        Evidence::File { file, parts } => file_text(file, parts, style),
    }
}

/// An answer as JSON.
pub fn json(evidence: &Evidence) -> Value {
    match evidence {
        Evidence::Origin(origin) => origin_json(origin),
        Evidence::File { file, parts } => file_json(file, parts),
    }
}

/// The work behind a line or a commit.
fn origin_text(origin: &Origin, style: Style) -> String {
    let mut out = match &origin.subject {
        OriginOf::Line { file, number, text, .. } => {
            format!("{}  {}\n", style.strong(&format!("{}:{number}", line(file, 200))), code(text.trim(), 120))
        }
        OriginOf::Commit { sha, subject } => format!("{}  {}\n", style.strong(short(sha)), line(subject, 120)),
    };
    out += &format!("{}\n", style.faint(&reason(origin)));
    let mut fact = |name: &str, value: String| out += &format!("  {name:<9}{value}\n");
    if let Some(tool) = &origin.tool_use {
        let what = if tool.is_edit() { "edit" } else { "commit" };
        fact(what, format!("t{} on {} at {}", tool.id, time::day(tool.received_at), time::clock(tool.received_at)));
    }
    if let (OriginOf::Line { commit: Some(sha), .. }, Certainty::Edit | Certainty::Commit) = (&origin.subject, origin.certainty) {
        fact("commit", short(sha).to_string());
    }
    if let Some(unit) = &origin.unit {
        let outcome = unit.known_outcome().map(|outcome| format!(", {}", outcome.name())).unwrap_or_default();
        fact("unit", format!("{} {}{outcome}", unit_text::id(unit), name_of(unit)));
    }
    if let Some(session) = &origin.session {
        fact("session", format!("s{} of {}, {}", session.id, session.platform.title(), time::day(session.started_at)));
    }
    if let Some(prompt) = &origin.prompt {
        fact("asked", format!("p{} {}", prompt.id, line(&prompt.text, 200)));
    }
    for (name, memories) in [("decided", &origin.decisions), ("tried", &origin.tried)] {
        for memory in memories.iter().take(LISTED) {
            fact(name, format!("{} {}", memory_text::id(memory), line(&memory.title, 160)));
        }
    }
    for check in origin.checks.iter().rev().take(LISTED) {
        fact("check", format!("{} {}", line(check.content.as_deref().unwrap_or_default(), 100), result_of(check, style)));
    }
    for (unit, lines) in origin.others.iter().take(LISTED) {
        fact("also", format!("{} {} ({})", unit_text::id(unit), name_of(unit), count(*lines as i64, "line", "lines")));
    }
    out.trim_end().to_string()
}

fn memories_json(memories: &[MemoryRow]) -> Vec<Value> {
    memories
        .iter()
        .map(|memory| json!({"id": memory_text::id(memory), "type": memory_text::word(memory), "title": memory.title}))
        .collect()
}

/// The work behind a line or a commit.
fn origin_json(origin: &Origin) -> Value {
    let (at, commit) = match &origin.subject {
        OriginOf::Line { file, number, text, commit } => (json!({"file": file, "number": number, "text": text}), commit.clone()),
        OriginOf::Commit { sha, .. } => (Value::Null, Some(sha.clone())),
    };
    let tool = origin.tool_use.as_ref();
    let edit = tool
        .filter(|tool| tool.is_edit())
        .map(|tool| json!({"id": format!("t{}", tool.id), "at": tool.received_at, "path": tool.path}));
    let unit = origin.unit.as_ref().map(
        |unit| json!({"id": unit_text::id(unit), "title": unit.title.as_ref().or(unit.intent.as_ref()), "outcome": unit.outcome}),
    );
    let checks: Vec<Value> = origin.checks.iter().map(check_json).collect();
    let others: Vec<Value> = origin
        .others
        .iter()
        .map(|(unit, lines)| json!({"id": unit_text::id(unit), "title": unit.title, "lines": lines}))
        .collect();
    json!({
        "line": at, "commit": commit, "recorded_as": origin.recorded_as,
        "command": tool.filter(|tool| !tool.is_edit()).map(|tool| format!("t{}", tool.id)),
        "edit": edit, "unit": unit,
        "session": origin.session.as_ref().map(|session| &session.agent_session_id),
        "platform": origin.session.as_ref().map(|session| session.platform),
        "prompt": origin.prompt.as_ref().map(|prompt| json!({"id": format!("p{}", prompt.id), "text": prompt.text})),
        "decisions": memories_json(&origin.decisions), "tried": memories_json(&origin.tried), "checks": checks,
        "others": others, "certainty": origin.certainty.name(),
    })
}

/// A run of a check.
pub fn check_json(check: &ToolUseRow) -> Value {
    json!({
        "id": format!("t{}", check.id), "command": check.content, "passed": check.succeeded,
        "exit_code": check.metadata["exit_code"], "at": check.received_at,
    })
}

/// The units that wrote a file, those with most lines first.
fn file_text(file: &str, parts: &[FilePart], style: Style) -> String {
    let all: usize = parts.iter().map(|part| part.lines).sum();
    let mut out = format!("{}  {}\n", style.strong(&line(file, 200)), count(all as i64, "line", "lines"));
    for part in parts {
        let who = part.unit.as_ref().map_or_else(
            || style.faint("not recorded"),
            |unit| {
                format!("{} {} {}", style.strong(&unit_text::id(unit)), style.faint(&time::day(unit.started_at)), name_of(unit))
            },
        );
        out += &format!("{:>7}  {who}\n", part.lines);
    }
    out.trim_end().to_string()
}

/// The units that wrote a file.
fn file_json(file: &str, parts: &[FilePart]) -> Value {
    let part = |part: &FilePart| {
        let title = part.unit.as_ref().and_then(|unit| unit.title.as_ref().or(unit.intent.as_ref()));
        json!({"unit": part.unit.as_ref().map(unit_text::id), "title": title, "lines": part.lines, "first": part.first})
    };
    json!({"file": file, "units": parts.iter().map(part).collect::<Vec<_>>()})
}
