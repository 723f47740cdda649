//! One prompt or tool use whole, for `nmem show`.

use super::clean::line;
use super::style::Style;
use super::{memory_text, time};
use crate::model::{CommandKind, MemoryRow, PromptKind, PromptRow, PromptSource, SessionRow, ToolUseRow};
use serde_json::{Value, json};

/// A session with its prompts, tool uses and memories, for a person.
pub fn session(
    session: &SessionRow,
    prompts: &[&PromptRow],
    tools: &[&ToolUseRow],
    memories: &[MemoryRow],
    style: Style,
) -> String {
    let mut out = format!(
        "{}  {}  {} {}\n",
        style.strong(&format!("session s{}", session.id)),
        style.faint(&moment(session.started_at)),
        session.platform,
        line(&session.agent_session_id, 80)
    );
    let mut fact = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            out += &format!("  {name}: {}\n", line(&value, 200));
        }
    };
    fact("project", session.project.clone());
    fact("folder", session.cwd.clone());
    fact("branch", session.end_branch.clone().or(session.start_branch.clone()));
    let commits = session.start_head.clone().zip(session.end_head.clone()).filter(|(a, b)| a != b);
    fact("commits", commits.map(|(from, to)| format!("{}..{}", &from[..7.min(from.len())], &to[..7.min(to.len())])));
    fact("ended", session.ended_at.map(|at| format!("{} ({})", moment(at), session.end_reason.clone().unwrap_or_default())));
    fact("model", session.model.clone());
    let tokens = session.input_tokens.zip(session.output_tokens);
    fact(
        "tokens",
        tokens.map(|(i, o)| {
            format!(
                "{i} in, {o} out, {} cache read, {} cache write",
                session.cache_read_tokens.unwrap_or(0),
                session.cache_write_tokens.unwrap_or(0)
            )
        }),
    );
    fact("cost", session.cost_usd.map(|c| format!("${c:.4}")));
    for prompt in prompts.iter().filter(|p| is_asked(p)) {
        out += &format!("\n{}", prompt_entry(prompt, style));
        for tool in tools.iter().filter(|t| t.prompt_id == Some(prompt.id)) {
            out += &format!("  {}\n", tool_line(tool, style));
        }
        for answer in prompts.iter().filter(|p| !is_asked(p) && p.kind != PromptKind::Thinking && p.number == prompt.number) {
            out += &format!("  {} {}\n{}", style.faint(&format!("p{}", answer.id)), who(answer), body(&answer.text));
        }
    }
    let asked = |number: i64| prompts.iter().any(|p| is_asked(p) && p.number == number);
    for answer in prompts.iter().filter(|p| matches!(p.kind, PromptKind::Answer | PromptKind::Closing) && !asked(p.number)) {
        out += &format!("\n{}", prompt_entry(answer, style));
    }
    let without: Vec<&&ToolUseRow> = tools.iter().filter(|t| t.prompt_id.is_none()).collect();
    if !without.is_empty() {
        out += "\n  before any prompt:\n";
        without.iter().for_each(|tool| out += &format!("  {}\n", tool_line(tool, style)));
    }
    out += &listed(memories, style);
    out.trim_end().to_string()
}

/// Returns true if the user asked something, even if they took it back.
fn is_asked(prompt: &PromptRow) -> bool {
    prompt.kind == PromptKind::Prompt || prompt.kind == PromptKind::TakenBack && prompt.source == PromptSource::User
}

fn who(prompt: &PromptRow) -> &'static str {
    match (prompt.source, prompt.kind, &prompt.agent_id) {
        (PromptSource::User, PromptKind::TakenBack, _) => "taken back by the user",
        (_, PromptKind::TakenBack, _) => "answered, and taken back by the user",
        (_, PromptKind::Answer, _) => "the user answered",
        (PromptSource::User, ..) => "asked",
        (_, PromptKind::Thinking, _) => "the agent thought",
        (_, _, Some(_)) => "a subagent answered",
        _ => "answered",
    }
}

/// A prompt or an agent's text, for a person.
pub fn prompt_entry(prompt: &PromptRow, style: Style) -> String {
    let head = format!("p{}", prompt.id);
    format!(
        "{}  {}  prompt {} of s{}, {}\n{}",
        style.strong(&head),
        style.faint(&moment(prompt.received_at)),
        prompt.number,
        prompt.session_id,
        who(prompt),
        body(&prompt.text)
    )
}

fn tool_line(tool: &ToolUseRow, style: Style) -> String {
    let kind = tool.command_kind.filter(|kind| *kind != CommandKind::Other).map_or(tool.kind.name(), CommandKind::name);
    let failed = if tool.succeeded == Some(false) { format!(" {}", style.bad("failed")) } else { String::new() };
    let what = tool.content.as_ref().or(tool.path.as_ref()).unwrap_or(&tool.tool_name);
    format!("{} {kind}{failed} {}", style.faint(&format!("t{}", tool.id)), line(what, 140.min(style.width.saturating_sub(24))))
}

/// A tool use, for a person.
pub fn tool_use(tool: &ToolUseRow, unit: Option<i64>, prompt: Option<&PromptRow>, style: Style) -> String {
    let outcome = match tool.succeeded {
        Some(true) => "succeeded".to_string(),
        Some(false) => style.bad("failed"),
        None => "outcome unknown".to_string(),
    };
    let kind =
        [Some(tool.kind.name()), tool.command_kind.map(CommandKind::name)].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let mut out = format!(
        "{}  {}  {} ({kind}), {outcome}, number {} of s{}\n",
        style.strong(&format!("t{}", tool.id)),
        style.faint(&moment(tool.received_at)),
        line(&tool.tool_name, 80),
        tool.seq,
        tool.session_id
    );
    if let Some(unit) = unit {
        out += &format!("  in u{unit}\n");
    }
    if let Some(prompt) = prompt {
        out += &format!("  for p{}: {}\n", prompt.id, line(&prompt.text, 120));
    }
    let response = tool.metadata["response"].as_str().map(String::from);
    let description = tool.metadata["description"].as_str().map(String::from);
    let path = tool.path.clone().filter(|p| Some(p) != tool.content.as_ref());
    for (name, text) in [
        ("what", &tool.content),
        ("path", &path),
        ("why", &description),
        ("input", &tool.input),
        ("outcome", &tool.outcome),
        ("failure", &response),
    ] {
        if let Some(text) = text {
            out += &format!("  {name}:\n{}", body(text));
        }
    }
    out.trim_end().to_string()
}

/// Memories, one line each.
pub fn listed(drawn: &[MemoryRow], style: Style) -> String {
    let lines: Vec<String> = drawn.iter().map(|memory| format!("  {}\n", memory_text::entry(memory, style))).collect();
    if lines.is_empty() { String::new() } else { format!("\n  memories:\n{}", lines.concat()) }
}

/// Returns every line of a stored text, sanitised and indented. Lines keep their own indent, so that carets still point
/// to the right column.
fn body(text: &str) -> String {
    let indent = |text: &str| text.chars().take_while(|c| c.is_whitespace()).map(|c| if c == '\t' { 4 } else { 1 }).sum();
    text.lines().map(|l| format!("    {:indent$}{}\n", "", line(l, usize::MAX), indent = indent(l))).collect()
}

fn moment(at: i64) -> String {
    format!("{} {}", time::day(at), time::clock(at))
}

/// A prompt as JSON; `session` is the agent's own id of its session.
pub fn prompt_json(prompt: &PromptRow, session: Option<&str>, unit: Option<i64>) -> Value {
    json!({
        "id": format!("p{}", prompt.id), "kind": "prompt", "source": prompt.source, "type": prompt.kind, "number": prompt.number,
        "session": session, "unit": unit.map(|id| format!("u{id}")), "agent_id": prompt.agent_id, "text": prompt.text,
        "created_at": prompt.received_at,
    })
}

/// A tool use as JSON; `session` is the agent's own id of its session.
pub fn tool_use_json(tool: &ToolUseRow, session: Option<&str>, unit: Option<i64>) -> Value {
    // Marks of lines mean nothing outside of this machine.
    let mut metadata = tool.metadata.clone();
    metadata.as_object_mut().map(|metadata| metadata.remove("written"));
    json!({
        "id": format!("t{}", tool.id), "kind": "tool", "session": session, "seq": tool.seq, "unit": unit.map(|id| format!("u{id}")),
        "prompt": tool.prompt_id.map(|id| format!("p{id}")), "tool_use_id": tool.tool_use_id, "tool_name": tool.tool_name, "type": tool.kind,
        "command": tool.command_kind, "path": tool.path, "content": tool.content, "input": tool.input, "outcome": tool.outcome,
        "succeeded": tool.succeeded, "metadata": metadata, "created_at": tool.received_at,
    })
}

/// A session as JSON, with its prompts and tool uses as given.
pub fn session_json(session: &SessionRow, prompts: Vec<Value>, tool_uses: Vec<Value>) -> Value {
    let kinds: Value = serde_json::from_str(&session.kinds).unwrap_or_default();
    let tokens = json!({"input": session.input_tokens, "output": session.output_tokens, "cache_read": session.cache_read_tokens, "cache_write": session.cache_write_tokens});
    json!({
        "id": format!("s{}", session.id), "kind": "session", "platform": session.platform, "session": session.agent_session_id,
        "project": session.project, "cwd": session.cwd, "started_at": session.started_at, "ended_at": session.ended_at, "end_reason": session.end_reason,
        "branch": {"start": session.start_branch, "end": session.end_branch}, "head": {"start": session.start_head, "end": session.end_head},
        "counts": {"prompts": session.prompts, "tool_uses": session.tool_uses, "failures": session.failures, "kinds": kinds},
        "tasks": session.tasks, "model": session.model, "stop_reason": session.stop_reason, "tokens": tokens,
        "context_tokens": session.context_tokens, "cost_usd": session.cost_usd, "prompts": prompts, "tool_uses": tool_uses,
    })
}
