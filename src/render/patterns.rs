//! Patterns for people and programs, and suggestions for agents.

use super::clean::{code, line, quoted};
use super::style::Style;
use super::time;
use crate::model::{Case, Pattern, PatternKind, Suggestion};
use serde_json::{Value, json};

/// Maximum cases per pattern, and maximum files per suggestion.
const CASES: usize = 5;
const NAMED: usize = 4;

/// What recurs.
fn what(pattern: &Pattern) -> String {
    let times = pattern.cases.len();
    let title = code(&pattern.title, 100);
    match pattern.kind {
        PatternKind::Failure => format!("{title} failed for the same reason in {times} work units"),
        PatternKind::Fix => format!("{title} was fixed in {times} work units"),
        PatternKind::Lesson => format!("{times} lessons are about {title}"),
    }
}

/// Patterns with their cases, for a person.
pub fn for_person(all: &[Pattern], style: Style) -> String {
    let width = style.width.saturating_sub(30).clamp(40, 140);
    let mut out = String::new();
    for pattern in all {
        out += &format!("{}\n", style.strong(&what(pattern)));
        for case in pattern.cases.iter().take(CASES) {
            let repaired = case.repaired.as_ref().map(|by| style.faint(&format!(" (fixed: {by})"))).unwrap_or_default();
            let place = case.unit.map_or(case.id.clone(), |unit| format!("u{unit} {}", case.id));
            out += &format!("  {} {} {}{repaired}\n", time::day(case.at), style.faint(&place), line(&case.text, width));
        }
        if pattern.cases.len() > CASES {
            out += &style.faint(&format!("  and {} more\n", pattern.cases.len() - CASES));
        }
    }
    out
}

/// A pattern as JSON.
pub fn json(pattern: &Pattern) -> Value {
    let case = |case: &Case| json!({"id": case.id, "unit": case.unit.map(|unit| format!("u{unit}")), "at": case.at, "text": case.text, "fixed_by": case.repaired});
    json!({
        "kind": pattern.kind, "title": pattern.title, "count": pattern.cases.len(),
        "cases": pattern.cases.iter().map(case).collect::<Vec<_>>(),
    })
}

/// Heading of suggestions.
pub(super) const SUGGESTED: &str = "\nSuggestions, derived by rules from earlier work (nobody stated them; use your judgment):";

/// Appends suggestions to a block as far as they fit into `budget` bytes.
pub fn beside(mut block: String, suggestions: &[Suggestion], budget: usize) -> String {
    let mut begin = format!("{SUGGESTED}\n");
    for suggestion in suggestions {
        let line = format!("{begin}- {}\n", suggested(suggestion));
        if !block.is_empty() && block.len() + line.len() <= budget {
            block += &line;
            begin.clear();
        }
    }
    block
}

/// A suggestion with its evidence.
pub(super) fn suggested(suggestion: &Suggestion) -> String {
    match suggestion {
        Suggestion::Recurs(pattern) => recurs(pattern),
        Suggestion::Doubtful { decision, now, why, by } => {
            format!("{} was decided (m{}), but {why} ({by}): confidence now {now:.2}", quoted(&decision.title, 120), decision.id)
        }
    }
}

/// A suggestion as JSON.
pub fn suggestion_json(suggestion: &Suggestion) -> Value {
    let text = suggested(suggestion);
    match suggestion {
        Suggestion::Recurs(pattern) => json!({"text": text, "pattern": json(pattern)}),
        Suggestion::Doubtful { decision, now, by, .. } => {
            json!({"text": text, "decision": format!("m{}", decision.id), "confidence": now, "by": by})
        }
    }
}

/// A pattern for an agent: what recurred, where, and what to look at, but no tool output.
fn recurs(pattern: &Pattern) -> String {
    let mut seen: Vec<String> = Vec::new();
    for case in &pattern.cases {
        let id = case.unit.map_or(case.id.clone(), |unit| format!("u{unit}"));
        if !seen.contains(&id) && seen.len() < NAMED {
            seen.push(id);
        }
    }
    let repaired = pattern.cases.iter().find_map(|case| case.repaired.as_ref());
    let look = repaired.or(seen.first()).map(|id| format!("; last fix: `nmem show {id}`")).unwrap_or_default();
    format!("{} ({}){look}", what(pattern), seen.join(", "))
}
