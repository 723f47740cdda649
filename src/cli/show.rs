//! `nmem show`: one thing whole, with what it belongs to.

use super::{ProjectArgument, open, output, units};
use crate::error::Failure;
use crate::model::{Found, MemoryRow, PromptRow, SessionRow, ToolUseRow, UnitRow};
use crate::rank::Outcome;
use crate::recall::patterns::{Confidence, sure};
use crate::render::clean::line;
use crate::render::memories;
use crate::render::style::Style;
use crate::render::time;
use crate::store::Store;
use anyhow::Result;
use serde_json::{Value, json};

/// Show one memory, session, work unit, prompt or tool use whole
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem show m7\n\nIds are those that search and context print: m7 a memory, s14 a session, u3 a work unit, p12 a prompt, t345 a tool use.\nA session is found by the beginning of the agent's own id too, a memory by that of its uuid."
)]
pub struct Arguments {
    /// What to show
    #[arg(value_name = "ID")]
    id: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    project: ProjectArgument,
}

/// Runs the command.
pub fn run(args: &Arguments) -> Result<()> {
    let (_, config) = args.project.config()?;
    let unknown = || {
        Failure::new(
            format!("nothing has the id {}", line(&args.id, 80)),
            "`nmem search` prints ids; tool uses go after their time (`nmem status`: retention), memories stay",
        )
    };
    let store = open(&config)?.ok_or_else(unknown)?;
    let found = find(&store, &args.id)?.ok_or_else(unknown)?;
    let style = output::style();
    match (found, args.json) {
        (Found::Session(session), false) => output::say(&session_text(&store, &session, style)?),
        (Found::Session(session), true) => output::say(&session_json(&store, &session)?.to_string()),
        (Found::Unit(unit), false) => output::say(&unit_text(&store, &unit, style)?),
        (Found::Unit(unit), true) => output::say(&unit_json(&store, &unit)?.to_string()),
        (Found::Memory(memory), false) => {
            let sure = sure(&store, &memory)?.map(|sure| format!("  {}\n", style.faint(&surely(&sure)))).unwrap_or_default();
            output::say(format!("{}{sure}", memories::whole(&memory, style)).trim_end())
        }
        (Found::Memory(memory), true) => {
            let mut json = memories::json(&memory);
            if let Some(sure) = sure(&store, &memory)? {
                json["confidence_now"] = json!(sure.now);
                json["evidence"] = evidence(&sure);
            }
            output::say(&json.to_string())
        }
        (Found::Prompt(prompt), false) => output::say(&prompt_text(&prompt, style)),
        (Found::Prompt(prompt), true) => output::say(&prompt_json(&store, &prompt)?.to_string()),
        (Found::ToolUse(tool), false) => output::say(&tool_text(&store, &tool, style)?),
        (Found::ToolUse(tool), true) => output::say(&tool_json(&store, &tool)?.to_string()),
    }
}

/// Finds what an id names: nmem's own, or the beginning of the agent's id of a session or of a memory's uuid.
pub(super) fn find(store: &Store, id: &str) -> Result<Option<Found>> {
    match store.find(id)? {
        Some(found) => Ok(Some(found)),
        None => by_agents_id(store, id),
    }
}

fn by_agents_id(store: &Store, prefix: &str) -> Result<Option<Found>> {
    // A whole id comes before others that begin with it.
    let mut sessions = store.sessions_by_id(prefix)?;
    if sessions.is_empty() && prefix.len() >= 4 {
        sessions = store.sessions_by_prefix(prefix)?;
    }
    if sessions.is_empty() && prefix.len() < 4 {
        return Ok(None);
    }
    if sessions.is_empty() {
        let mut memories = store.memories_by_uuid(prefix)?;
        if memories.len() > 1 {
            return Err(Failure::new(format!("several memories begin with {}", line(prefix, 80)), "give more of the id").into());
        }
        return Ok(memories.pop().map(|memory| Found::Memory(Box::new(memory))));
    }
    if sessions.len() > 1 && sessions.iter().all(|s| s.agent_session_id != prefix) {
        return Err(Failure::new(format!("several sessions begin with {}", line(prefix, 80)), "give more of the id").into());
    }
    Ok(sessions.pop().map(|s| Found::Session(Box::new(s))))
}

/// How sure a decision is now, and what moved it.
fn surely(sure: &Confidence) -> String {
    let evidence: Vec<String> = sure.evidence.iter().map(|(outcome, by)| format!("{} ({by})", outcome.name())).collect();
    let since = if evidence.is_empty() { "nothing is known to have come of it".to_string() } else { evidence.join(", ") };
    let said = sure.said.map(|said| format!("{said} said, ")).unwrap_or_default();
    format!("sure: {said}{} now; {since}", sure.now)
}

/// What moved how sure a decision is, as JSON.
pub(super) fn evidence(sure: &Confidence) -> Value {
    let one = |(outcome, by): &(Outcome, String)| json!({"what": outcome.name(), "by": by, "counts": outcome.counts()});
    sure.evidence.iter().map(one).collect()
}

fn unit_text(store: &Store, unit: &UnitRow, style: Style) -> Result<String> {
    let drawn = store.memories_of_unit(unit.session, unit.id)?;
    Ok(format!("{}{}", units::whole(unit, style), listed(&drawn, style)).trim_end().to_string())
}

fn unit_json(store: &Store, unit: &UnitRow) -> Result<Value> {
    let mut out = crate::render::units::json(unit);
    out["memories"] = store.memories_of_unit(unit.session, unit.id)?.iter().map(memories::id).collect();
    Ok(out)
}

/// Memories, each on a line.
fn listed(drawn: &[MemoryRow], style: Style) -> String {
    let lines: Vec<String> = drawn.iter().map(|memory| format!("  {}\n", memories::entry(memory, style))).collect();
    if lines.is_empty() { String::new() } else { format!("\n  remembered of it:\n{}", lines.concat()) }
}

/// Every line of a text that was stored, each cleaned, indented.
fn body(text: &str) -> String {
    text.lines().map(|l| format!("    {}\n", line(l, usize::MAX))).collect()
}

fn moment(at: i64) -> String {
    format!("{} {}", time::day(at), time::clock(at))
}

fn session_text(store: &Store, session: &SessionRow, style: Style) -> Result<String> {
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
    let prompts = store.prompts_of(session.id)?;
    let tools = store.tool_uses_of(session.id)?;
    for prompt in prompts.iter().filter(|p| p.source == "user") {
        out += &format!("\n{}", prompt_text(prompt, style));
        for tool in tools.iter().filter(|t| t.prompt_id == Some(prompt.id)) {
            out += &format!("  {}\n", tool_line(tool, style));
        }
        for answer in prompts.iter().filter(|p| p.source == "agent" && p.kind == "closing" && p.number == prompt.number) {
            out += &format!("  {} {}\n{}", style.faint(&format!("p{}", answer.id)), who(answer), body(&answer.text));
        }
    }
    let asked = |number: i64| prompts.iter().any(|p| p.source == "user" && p.number == number);
    for answer in prompts.iter().filter(|p| p.kind == "closing" && !asked(p.number)) {
        out += &format!("\n{}", prompt_text(answer, style));
    }
    let without: Vec<&ToolUseRow> = tools.iter().filter(|t| t.prompt_id.is_none()).collect();
    if !without.is_empty() {
        out += "\n  before any prompt:\n";
        without.iter().for_each(|tool| out += &format!("  {}\n", tool_line(tool, style)));
    }
    out += &listed(&store.memories_of_session(session.id)?, style);
    Ok(out.trim_end().to_string())
}

fn who(prompt: &PromptRow) -> &'static str {
    match (prompt.source.as_str(), prompt.kind.as_str(), &prompt.agent_id) {
        ("user", ..) => "asked",
        (_, "thinking", _) => "the agent thought",
        (_, _, Some(_)) => "a subagent answered",
        _ => "answered",
    }
}

fn prompt_text(prompt: &PromptRow, style: Style) -> String {
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
    let kind = tool.command_kind.as_deref().filter(|k| *k != "other").unwrap_or(&tool.kind);
    let failed = if tool.succeeded == Some(false) { format!(" {}", style.bad("failed")) } else { String::new() };
    let what = tool.content.as_ref().or(tool.path.as_ref()).unwrap_or(&tool.tool_name);
    format!("{} {kind}{failed} {}", style.faint(&format!("t{}", tool.id)), line(what, 140.min(style.width.saturating_sub(24))))
}

fn tool_text(store: &Store, tool: &ToolUseRow, style: Style) -> Result<String> {
    let outcome = match tool.succeeded {
        Some(true) => "succeeded".to_string(),
        Some(false) => style.bad("failed"),
        None => "outcome unknown".to_string(),
    };
    let kind = [Some(tool.kind.as_str()), tool.command_kind.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let mut out = format!(
        "{}  {}  {} ({kind}), {outcome}, number {} of s{}\n",
        style.strong(&format!("t{}", tool.id)),
        style.faint(&moment(tool.received_at)),
        line(&tool.tool_name, 80),
        tool.seq,
        tool.session_id
    );
    if let Some(unit) = store.unit_of_tool_use(tool.id)? {
        out += &format!("  in u{unit}\n");
    }
    if let Some(prompt) = tool.prompt_id.map(|id| store.prompt_by_row(id)).transpose()?.flatten() {
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
    Ok(out.trim_end().to_string())
}

/// The agent's own id of a session, as every JSON of nmem has it under `session`.
fn agent_session(store: &Store, id: i64) -> Result<Option<String>> {
    Ok(store.session_by_row(id)?.map(|s| s.agent_session_id))
}

fn prompt_json(store: &Store, prompt: &PromptRow) -> Result<Value> {
    Ok(json!({
        "id": format!("p{}", prompt.id), "kind": "prompt", "source": prompt.source, "type": prompt.kind, "number": prompt.number,
        "session": agent_session(store, prompt.session_id)?, "unit": store.unit_of_prompt(prompt.session_id, prompt.id)?.map(|id| format!("u{id}")), "agent_id": prompt.agent_id, "text": prompt.text, "created_at": prompt.received_at,
    }))
}

fn tool_json(store: &Store, tool: &ToolUseRow) -> Result<Value> {
    Ok(json!({
        "id": format!("t{}", tool.id), "kind": "tool", "session": agent_session(store, tool.session_id)?, "seq": tool.seq,
        "unit": store.unit_of_tool_use(tool.id)?.map(|id| format!("u{id}")),
        "prompt": tool.prompt_id.map(|id| format!("p{id}")), "tool_use_id": tool.tool_use_id, "tool_name": tool.tool_name, "type": tool.kind,
        "command": tool.command_kind, "path": tool.path, "content": tool.content, "input": tool.input, "outcome": tool.outcome,
        "succeeded": tool.succeeded, "metadata": tool.metadata, "created_at": tool.received_at,
    }))
}

pub(super) fn session_json(store: &Store, session: &SessionRow) -> Result<Value> {
    let prompts: Vec<Value> = store.prompts_of(session.id)?.iter().map(|p| prompt_json(store, p)).collect::<Result<_>>()?;
    let tools: Vec<Value> = store.tool_uses_of(session.id)?.iter().map(|t| tool_json(store, t)).collect::<Result<_>>()?;
    let kinds: Value = serde_json::from_str(&session.kinds).unwrap_or_default();
    let tokens = json!({"input": session.input_tokens, "output": session.output_tokens, "cache_read": session.cache_read_tokens, "cache_write": session.cache_write_tokens});
    Ok(json!({
        "id": format!("s{}", session.id), "kind": "session", "platform": session.platform, "session": session.agent_session_id,
        "project": session.project, "cwd": session.cwd, "started_at": session.started_at, "ended_at": session.ended_at, "end_reason": session.end_reason,
        "branch": {"start": session.start_branch, "end": session.end_branch}, "head": {"start": session.start_head, "end": session.end_head},
        "counts": {"prompts": session.prompts, "tool_uses": session.tool_uses, "failures": session.failures, "kinds": kinds},
        "tasks": session.tasks, "model": session.model, "stop_reason": session.stop_reason, "tokens": tokens,
        "context_tokens": session.context_tokens, "cost_usd": session.cost_usd, "prompts": prompts, "tool_uses": tools,
    }))
}
