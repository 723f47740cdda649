//! The sessions of a project by day, and the texts that agents received, for people and programs.

use super::clean::line;
use super::count;
use super::session::heading;
use super::style::Style;
use super::time;
use super::units;
use crate::model::{InjectionPoint, InjectionRow, SessionOverview, SessionRow, SessionStatus};
use serde_json::{Value, json};

/// Sessions by day, newest first, each with its units.
pub fn for_person(sessions: &[SessionOverview], style: Style) -> String {
    let (mut out, mut day) = (String::new(), String::new());
    for overview in sessions {
        let on = time::day(overview.session.started_at);
        if on != day {
            let gap = if day.is_empty() { "" } else { "\n" };
            out += &format!("{gap}{}  {}\n", style.strong(&on), style.faint(&time::weekday(overview.session.started_at)));
            day = on;
        }
        let status = if overview.state == SessionStatus::Active { ", active" } else { "" };
        out += &format!("  {}{status}\n", style.faint(&length(overview)));
        for unit in &overview.units {
            out += &format!("    {}\n", units::one_line(&unit.unit, style));
        }
    }
    out
}

/// A session as JSON.
pub fn json(overview: &SessionOverview) -> Value {
    let session = &overview.session;
    let status = match overview.state {
        SessionStatus::Ended => "ended",
        SessionStatus::Active => "active",
        SessionStatus::Interrupted => "interrupted",
    };
    let unit = |unit: &crate::model::UnitOverview| {
        let unit = &unit.unit;
        json!({"id": units::id(unit), "title": unit.title.as_ref().or(unit.intent.as_ref()), "outcome": unit.outcome, "evidence": unit.evidence,
            "started_at": unit.started_at, "ended_at": unit.ended_at})
    };
    json!({
        "id": format!("s{}", session.id), "session": session.agent_session_id, "platform": session.platform,
        "branch": session.end_branch.as_ref().or(session.start_branch.as_ref()), "status": status,
        "started_at": session.started_at, "ended_at": session.ended_at, "last_event_at": overview.last_event_at,
        "units": overview.units.iter().map(unit).collect::<Vec<_>>(),
    })
}

/// Injections, newest first, with their texts.
pub fn injections(all: &[InjectionRow], session_of: &dyn Fn(i64) -> String, style: Style) -> String {
    let mut out = String::new();
    for injection in all {
        let point = match injection.point {
            InjectionPoint::Start => "session start",
            InjectionPoint::Compaction => "after a compaction",
            InjectionPoint::Prompt => "prompt",
            InjectionPoint::File => "before an edit",
            InjectionPoint::Subagent => "start of a subagent",
        };
        let used: Vec<&str> = injection.items.iter().filter(|(_, used)| *used).map(|(item, _)| item.as_str()).collect();
        let used = if used.is_empty() { "none used".to_string() } else { format!("used: {}", used.join(", ")) };
        let head = format!("{} {}  {point}", time::day(injection.at), time::clock(injection.at));
        let rest = format!("{}, {} items, {used}", session_of(injection.session), injection.items.len());
        out += &format!("{}  {}\n", style.strong(&head), style.faint(&rest));
        match &injection.text {
            Some(text) => text.lines().for_each(|text| out += &format!("  {}\n", indented(text))),
            None => out += &format!("  {}\n", style.faint("(the text is not stored)")),
        }
        out += "\n";
    }
    out
}

/// Returns a sanitised line with its own indent.
fn indented(text: &str) -> String {
    let indent = text.len() - text.trim_start_matches(' ').len();
    format!("{}{}", " ".repeat(indent), line(text, usize::MAX))
}

/// An injection as JSON; `session` is the agent's own id.
pub fn injection_json(injection: &InjectionRow, session: &SessionRow) -> Value {
    let items: Vec<Value> = injection.items.iter().map(|(id, used)| json!({"id": id, "used": used})).collect();
    json!({
        "at": injection.at, "point": injection.point, "session": session.agent_session_id, "bytes": injection.bytes,
        "text": injection.text, "items": items,
    })
}

/// `17:42, 38 min, branch fix/login, 24 tool uses (s14)`
fn length(overview: &SessionOverview) -> String {
    let heading = heading(overview, None, None);
    let heading = heading.split_once(' ').map_or("", |(_, rest)| rest);
    let uses = match overview.session.tool_uses {
        0 => String::new(),
        n => format!(", {}", count(n, "tool use", "tool uses")),
    };
    format!("{heading}{uses} (s{})", overview.session.id)
}
