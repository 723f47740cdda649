//! What recurs, for a person and for machines; and the few suggestions that an agent is given.

use super::clean::{code, line, quoted};
use super::style::Style;
use super::time;
use crate::model::{Case, Pattern, PatternKind, Suggestion};
use serde_json::{Value, json};

/// Cases that are shown of a pattern, and named in a suggestion.
const CASES: usize = 5;
const NAMED: usize = 4;

/// What it is that recurs.
fn what(pattern: &Pattern) -> String {
    let times = pattern.cases.len();
    let title = code(&pattern.title, 100);
    match pattern.kind {
        PatternKind::Failure => format!("{title} failed for the same reason in {times} pieces of work"),
        PatternKind::Fix => format!("{title} was mended in {times} pieces of work"),
        PatternKind::Lesson => format!("{times} lessons are about {title}"),
    }
}

/// The patterns with their cases, for a person.
pub fn for_person(all: &[Pattern], style: Style) -> String {
    let width = style.width.saturating_sub(30).clamp(40, 140);
    let mut out = String::new();
    for pattern in all {
        out += &format!("{}\n", style.strong(&what(pattern)));
        for case in pattern.cases.iter().take(CASES) {
            let mended = case.mended.as_ref().map(|by| style.faint(&format!(" (mended: {by})"))).unwrap_or_default();
            let place = case.unit.map_or(case.id.clone(), |unit| format!("u{unit} {}", case.id));
            out += &format!("  {} {} {}{mended}\n", time::day(case.at), style.faint(&place), line(&case.said, width));
        }
        if pattern.cases.len() > CASES {
            out += &style.faint(&format!("  and {} more\n", pattern.cases.len() - CASES));
        }
    }
    out
}

/// A pattern as JSON.
pub fn json(pattern: &Pattern) -> Value {
    let case = |case: &Case| json!({"id": case.id, "unit": case.unit.map(|unit| format!("u{unit}")), "at": case.at, "said": case.said, "mended": case.mended});
    json!({
        "kind": pattern.kind, "title": pattern.title, "count": pattern.cases.len(),
        "cases": pattern.cases.iter().map(case).collect::<Vec<_>>(),
    })
}

/// What stands above suggestions.
pub(super) const SUGGESTED: &str = "\nSuggestions, drawn by rules from what came before (nobody said them; weigh them):";

/// A block with the suggestions behind it that fit into `budget` bytes.
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

/// A suggestion, with what it rests on.
pub(super) fn suggested(suggestion: &Suggestion) -> String {
    match suggestion {
        Suggestion::Recurs(pattern) => recurs(pattern),
        Suggestion::Doubtful { decision, now, why, by } => {
            format!("{} was decided (m{}), but {why} ({by}): {now:.2} sure now", quoted(&decision.title, 120), decision.id)
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

/// What an agent is told of a pattern. What a tool printed is not said: only what recurred, where, and what to look at.
fn recurs(pattern: &Pattern) -> String {
    let mut seen: Vec<String> = Vec::new();
    for case in &pattern.cases {
        let id = case.unit.map_or(case.id.clone(), |unit| format!("u{unit}"));
        if !seen.contains(&id) && seen.len() < NAMED {
            seen.push(id);
        }
    }
    let mended = pattern.cases.iter().find_map(|case| case.mended.as_ref());
    let look = mended.or(seen.first()).map(|id| format!("; how it was met last: `nmem show {id}`")).unwrap_or_default();
    format!("{} ({}){look}", what(pattern), seen.join(", "))
}
