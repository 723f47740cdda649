//! Work units as text, JSON and Markdown.

use super::clean::{code, line};
use super::style::Style;
use super::{block, memory_text, time};
use crate::model::{BoundaryRow, MemoryRow, Millis, PhaseRow, UnitFile, UnitOutcome, UnitRow, UnitState};
use serde_json::{Value, json};

/// Maximum files in a list.
const FILES: usize = 3;
/// Maximum signals that explain a boundary, for and against.
const SIGNALS: usize = 4;

/// The meaning of a signal with a high and with a low value.
pub type SignalMeaning = fn(&str) -> Option<(&'static str, &'static str)>;

/// The short id that `nmem show` accepts.
pub fn id(unit: &UnitRow) -> String {
    format!("u{}", unit.id)
}

/// One unit as JSON.
pub fn json(unit: &UnitRow) -> Value {
    let phases: Vec<Value> =
        unit.phases.iter().map(|p| json!({"phase": p.phase, "tool_uses": p.tool_uses, "ms": p.ms})).collect();
    let files: Vec<Value> = unit.files.iter().map(|f| json!({"path": f.path, "reads": f.reads, "edits": f.edits})).collect();
    let commits: Vec<Value> = unit.commits.iter().map(|c| json!({"sha": c.sha, "subject": c.subject})).collect();
    let tokens = unit
        .tokens
        .map(|t| json!({"input": t.input, "output": t.output, "cache_read": t.cache_read, "cache_write": t.cache_write}));
    json!({
        "id": id(unit), "title": unit.title.as_ref().or(unit.intent.as_ref()), "session": unit.agent_session_id, "platform": unit.platform,
        "started_at": unit.started_at, "ended_at": unit.ended_at,
        "active_ms": unit.active_ms, "state": unit.state, "closed_by": unit.closed_by, "intent": unit.intent,
        "prompts": unit.prompts, "tool_uses": unit.tool_uses, "first_seq": unit.range.map(|r| r.0), "last_seq": unit.range.map(|r| r.1),
        "failures": unit.failures, "phases": phases, "files": files, "outcome": unit.outcome, "evidence": unit.evidence,
        "commits": commits, "tokens": tokens, "boundary": unit.boundary.as_ref().map(boundary),
        "taken_back": unit.retracted.iter().map(boundary).collect::<Vec<_>>(), "addendum": unit.addendum,
        "summary": unit.summary,
    })
}

fn boundary(b: &BoundaryRow) -> Value {
    json!({"reason": b.reason, "score": b.score, "prompt": b.prompt, "first_seq": b.first_seq, "signals": b.signals, "history": b.history})
}

/// One unit in a few lines; `names_agent` if the list has units of several agents.
pub fn text(unit: &UnitRow, names_agent: bool, style: Style) -> String {
    let mut head = vec![time::clock(unit.started_at), time::span(unit.active_ms)];
    head.extend(unit.known_outcome().map(|outcome| format!("{}{}", outcome_word(outcome, style), unfinished(unit))));
    if unit.state == UnitState::Open {
        head.push("open".to_string());
    }
    head.extend(names_agent.then(|| unit.platform.title().to_string()));
    let width = style.width.saturating_sub(6).clamp(40, 120);
    let mut out =
        format!("{}  {}\n    {}\n", style.strong(&id(unit)), style.faint(&head.join("  ")), block::for_person(unit, width));
    let mut facts = Vec::new();
    match unit.prompts.len() {
        0 => {}
        1 => facts.push(format!("prompt {}", unit.prompts[0])),
        n => facts.push(format!("{n} prompts ({})", ranges(&unit.prompts))),
    }
    if !unit.phases.is_empty() {
        facts.push(format!("tool uses: {}", phases(&unit.phases)));
    }
    if unit.failures > 0 {
        facts.push(style.bad(&count(unit.failures, "failure")));
    }
    facts.extend(unit.tokens.map(|t| format!("{} tokens out", thousands(t.output))));
    if !facts.is_empty() {
        out += &format!("    {}\n", style.faint(&facts.join(", ")));
    }
    if !unit.files.is_empty() {
        out += &format!("    {}\n", files(&unit.files, FILES, style));
    }
    // The title of a unit with one commit is often its subject.
    for commit in unit.commits.iter().filter(|commit| commit.sha.is_some() || unit.title.as_ref() != Some(&commit.subject)) {
        let sha = commit.sha.as_deref().map(|sha| format!("{} ", line(sha, 12))).unwrap_or_default();
        out += &format!("    {sha}{}\n", line(&commit.subject, width));
    }
    out
}

/// One unit in one line: `u3  done  38 min  Fix the login`, with the evidence of an unfinished one.
pub fn one_line(unit: &UnitRow, style: Style) -> String {
    let outcome = unit.known_outcome().map_or_else(|| "unknown".to_string(), |outcome| outcome_word(outcome, style));
    let span = time::span(unit.active_ms);
    let evidence = unfinished(unit);
    let taken = id(unit).len() + span.len() + evidence.chars().count() + 16;
    let name = block::for_person(unit, style.width.saturating_sub(taken).clamp(20, 120));
    format!("{}  {outcome}  {}  {name}{evidence}", style.strong(&id(unit)), style.faint(&span))
}

/// Returns the evidence for an unfinished unit: `; 3 failures, and the last check did not pass`.
fn unfinished(unit: &UnitRow) -> String {
    let evidence = unit.evidence.as_deref().filter(|_| unit.was_left());
    evidence.map(|evidence| format!("; {}", line(evidence, 120))).unwrap_or_default()
}

fn outcome_word(outcome: UnitOutcome, style: Style) -> String {
    match outcome {
        UnitOutcome::Done => style.good(outcome.name()),
        UnitOutcome::Failing | UnitOutcome::Struggling | UnitOutcome::Abandoned => style.bad(outcome.name()),
        other => other.to_string(),
    }
}

/// Returns the reasons for the start of a unit, in words.
pub fn why(unit: &UnitRow, meaning: SignalMeaning, style: Style) -> String {
    let mut out = String::new();
    if let Some(boundary) = &unit.boundary {
        out += &explained("begins", boundary, meaning, style);
    }
    for boundary in &unit.retracted {
        out += &explained("first thought to begin", boundary, meaning, style);
    }
    if let Some(evidence) = &unit.evidence {
        out += &format!("    {}: {evidence}\n", unit.outcome.unwrap_or_default());
    }
    out
}

fn explained(verb: &str, boundary: &BoundaryRow, meaning: SignalMeaning, style: Style) -> String {
    let place = match (boundary.prompt, boundary.first_seq) {
        (Some(prompt), _) => format!("at prompt {prompt}"),
        (None, Some(seq)) => format!("inside a prompt's work, at tool use {seq}"),
        (None, None) => "before anything else".to_string(),
    };
    let likely = boundary.score.map(|score| format!(", {:.0}% likely", 100.0 / (1.0 + (-score).exp()))).unwrap_or_default();
    let mut out = format!("    {verb} {place}: {}{likely}\n", boundary.reason);
    let mut parts: Vec<(&str, f64, f64)> = Vec::new();
    for (name, parts_text) in boundary.signals.as_object().into_iter().flatten() {
        parts.push((name, parts_text["value"].as_f64().unwrap_or(0.0), parts_text["adds"].as_f64().unwrap_or(0.0)));
    }
    parts.sort_by(|a, b| b.2.abs().total_cmp(&a.2.abs()));
    for (sign, word) in [(1.0, "for"), (-1.0, "against")] {
        for (name, value, adds) in parts.iter().filter(|part| part.2 * sign > 0.0).take(SIGNALS) {
            let (high, low) = meaning(name).unwrap_or((name, name));
            let weight = weight(boundary, name);
            let said = if adds * weight >= 0.0 { high } else { low };
            out += &format!("      {}\n", style.faint(&format!("{word:7} {adds:+.2}  {said} ({name} {value:.2} × {weight:.2})")));
        }
    }
    let history = boundary.history.as_array().map(Vec::as_slice).unwrap_or_default();
    if history.len() > 1 || verb != "begins" {
        let parts_text: Vec<String> = history
            .iter()
            .map(|entry| {
                let score = entry["score"].as_f64().map(|score| format!(" ({score:+.2})")).unwrap_or_default();
                format!("{} {}{score}", time::clock(entry["at"].as_i64().unwrap_or(0)), entry["what"].as_str().unwrap_or(""))
            })
            .collect();
        out += &format!("      {}\n", style.faint(&parts_text.join(", then ")));
    }
    out
}

fn weight(boundary: &BoundaryRow, name: &str) -> f64 {
    boundary.signals[name]["weight"].as_f64().unwrap_or(0.0)
}

/// A report for a team in Markdown: by day, with outcomes, commits and files.
pub fn report(units: &[UnitRow], project: &str, since: Millis, now: Millis) -> String {
    let worked: i64 = units.iter().map(|unit| unit.active_ms).sum();
    let commits: usize = units.iter().map(|unit| unit.commits.len()).sum();
    let mut edited: Vec<&str> =
        units.iter().flat_map(|unit| unit.files.iter().filter(|f| f.edits > 0).map(|f| f.path.as_str())).collect();
    edited.sort_unstable();
    edited.dedup();
    let mut out = format!("# {}: {} to {}\n\n", line(project, 80), time::day(since), time::day(now));
    out += &format!(
        "{} in {}: {}, {} changed.\n",
        count(units.len() as i64, "work unit"),
        time::span(worked),
        count(commits as i64, "commit"),
        count(edited.len() as i64, "file"),
    );
    let mut day = String::new();
    for unit in units.iter().rev() {
        let on = time::day(unit.started_at);
        if on != day {
            out += &format!("\n## {}, {on}\n\n", time::weekday(unit.started_at));
            day = on;
        }
        let outcome = unit.known_outcome().map(|outcome| format!("{outcome}, ")).unwrap_or_default();
        out += &format!("- **{}** ({outcome}{})\n", code_free(&block::for_person(unit, 100)), time::span(unit.active_ms));
        for commit in &unit.commits {
            let sha = commit.sha.as_deref().map(|sha| format!("{} ", code(sha, 12))).unwrap_or_default();
            out += &format!("  - {sha}{}\n", code_free(&line(&commit.subject, 120)));
        }
        let changed: Vec<String> = unit.files.iter().filter(|f| f.edits > 0).take(5).map(|f| code(&f.path, 100)).collect();
        let more = unit.files.iter().filter(|f| f.edits > 0).count().saturating_sub(changed.len());
        if !changed.is_empty() {
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            out += &format!("  - changed {}{more}\n", changed.join(", "));
        }
        if unit.was_left() {
            out += &format!("  - {}\n", unit.evidence.as_deref().unwrap_or_default());
        }
    }
    out.trim_end().to_string()
}

/// Escapes Markdown characters in plain text.
fn code_free(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '*' | '_' | '`' | '[' | ']' | '<' | '>' | '#' | '|') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

fn phases(runs: &[PhaseRow]) -> String {
    runs.iter().map(|run| format!("{} {}", run.phase, run.tool_uses)).collect::<Vec<_>>().join(" → ")
}

fn files(files: &[UnitFile], most: usize, style: Style) -> String {
    let named: Vec<String> = files
        .iter()
        .take(most)
        .map(|file| {
            let edits = if file.edits > 0 { format!(" ({})", count(file.edits, "edit")) } else { String::new() };
            format!("{}{edits}", style.path(&line(&file.path, 80)))
        })
        .collect();
    let more = files.len().saturating_sub(most);
    format!("{}{}", named.join(", "), if more > 0 { format!(" and {more} more") } else { String::new() })
}

/// `1-3, 5`
fn ranges(numbers: &[i64]) -> String {
    let runs = numbers.chunk_by(|a, b| b - a <= 1);
    let parts_text: Vec<String> = runs
        .map(|run| match (run[0], run[run.len() - 1]) {
            (first, last) if first == last => first.to_string(),
            (first, last) => format!("{first}-{last}"),
        })
        .collect();
    parts_text.join(", ")
}

fn thousands(n: i64) -> String {
    if n < 1000 { n.to_string() } else { format!("{:.1}k", n as f64 / 1000.0) }
}

fn count(n: i64, what: &str) -> String {
    let plural = format!("{what}s");
    if n == 1 { format!("1 {what}") } else { format!("{n} {plural}") }
}

/// One unit with the reasons of its boundary, for a person.
pub fn whole(unit: &UnitRow, meaning: Option<SignalMeaning>, style: Style) -> String {
    let why = meaning.map(|meaning| why(unit, meaning, style)).unwrap_or_default();
    format!("{}{why}    {}\n", text(unit, true, style), style.faint(&format!("session s{}", unit.session)))
}

/// One unit as JSON, with the ids of its memories.
pub fn whole_json(unit: &UnitRow, drawn: &[MemoryRow]) -> Value {
    let mut out = json(unit);
    out["memories"] = drawn.iter().map(memory_text::id).collect();
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_a_row_are_a_range() {
        assert_eq!(ranges(&[1, 2, 3, 5]), "1-3, 5");
    }
}
