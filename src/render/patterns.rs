//! Patterns for people and programs.

use super::clean::{code, line};
use super::style::Style;
use super::time;
use crate::model::{Case, Pattern, PatternKind};
use serde_json::{Value, json};

/// Maximum cases per pattern.
const CASES: usize = 5;

/// Describes what recurs in a pattern.
fn what(pattern: &Pattern) -> String {
    let times = pattern.cases.len();
    let title = code(&pattern.title, 100);
    match pattern.kind {
        PatternKind::Failure => {
            let error = pattern.cases.first().map(|case| line(&case.text, 120)).unwrap_or_default();
            format!("{title} failed in {times} work units: {error}")
        }
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
        if let Some(command) = &pattern.ended_by {
            out += &format!("  what worked: {}\n", style.good(&line(command, width)));
        }
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
        "kind": pattern.kind, "title": pattern.title, "count": pattern.cases.len(), "ended_by": pattern.ended_by,
        "cases": pattern.cases.iter().map(case).collect::<Vec<_>>(),
    })
}
