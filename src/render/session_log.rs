//! Sessions: the log by day, and one session whole.

use super::block::{self, Block};
use super::clean::{code, line, prose, quoted};
use super::style::Style;
use super::{count, time, unit_text};
use crate::model::{
    InjectedItem, InjectionPoint, InjectionRow, Platform, SessionOverview, SessionRow, SessionStatus, UnitOutcome, UnitOverview,
    UnitRow,
};
use crate::text::{alike, headline, is_in_project, is_stop_word, without_type, words};
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
            let width = style.width.saturating_sub(4);
            out += &format!("    {}\n", unit_text::one_line(&unit.unit, Style { width, ..style }));
        }
    }
    out
}

/// A session in one line: its start, its number of units, and the name of the newest.
pub fn one_line(overview: &SessionOverview, style: Style) -> String {
    let id = format!("s{}", overview.session.id);
    let began = format!("{} {}", time::day(overview.session.started_at), time::clock(overview.session.started_at));
    let units = count(overview.units.len() as i64, "unit", "units");
    let width = style.width.saturating_sub(id.len() + began.len() + units.len() + 6).clamp(20, 120);
    let name = overview.units.first().map(|newest| block::for_person(&newest.unit, width)).unwrap_or_default();
    format!("{}  {}  {}  {name}", style.strong(&id), style.faint(&began), style.faint(&units)).trim_end().to_string()
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
        json!({"id": unit_text::id(unit), "title": unit.title.as_ref().or(unit.intent.as_ref()), "outcome": unit.outcome, "evidence": unit.evidence,
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
        let used: Vec<String> = injection.items.iter().filter_map(used).collect();
        let used = if used.is_empty() { "none used".to_string() } else { format!("used: {}", used.join("; ")) };
        let head = format!("{} {}  {point}", time::day(injection.at), time::clock(injection.at));
        let rest = format!("{}, {}, {used}", session_of(injection.session), count(injection.items.len() as i64, "item", "items"));
        out += &format!("{}  {}\n", style.strong(&head), style.faint(&rest));
        match &injection.text {
            Some(text) => text.lines().for_each(|text| out += &format!("  {}\n", indented(text))),
            None => out += &format!("  {}\n", style.faint("(the text is not stored)")),
        }
        out += "\n";
    }
    out
}

/// `m12 ("unicode", "bytes" in t40)`
fn used(item: &InjectedItem) -> Option<String> {
    let evidence = item.used.as_ref()?;
    let words: Vec<String> = evidence.words.iter().map(|word| quoted(word, 40)).collect();
    Some(format!("{} ({} in {})", item.id, words.join(", "), evidence.source))
}

/// Returns a sanitised line with its own indent.
fn indented(text: &str) -> String {
    let indent = text.len() - text.trim_start_matches(' ').len();
    format!("{}{}", " ".repeat(indent), line(text, usize::MAX))
}

/// An injection as JSON; `session` is the agent's own id.
pub fn injection_json(injection: &InjectionRow, session: &SessionRow) -> Value {
    let item = |item: &InjectedItem| match &item.used {
        Some(evidence) => json!({"id": item.id, "used": true, "words": evidence.words, "in": evidence.source}),
        None => json!({"id": item.id, "used": false}),
    };
    let items: Vec<Value> = injection.items.iter().map(item).collect();
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

/// Maximum characters of a question.
const QUESTION: usize = 200;
/// Maximum files and commits per unit.
const FILES: usize = 5;
const COMMITS: usize = 2;

/// Adds the question with which the agent's last message ends.
pub(super) fn question(block: &mut Block, overview: &SessionOverview) {
    let Some(answer) = overview.turns.last().and_then(|turn| turn.answer.as_deref()) else { return };
    let last = answer.trim_end().rsplit(['\n', '.', '!']).next().unwrap_or_default().trim();
    if last.ends_with(['?', '？']) {
        block.push(&format!("  the agent asked: {}", quoted(&prose(last), QUESTION)));
    }
}

fn paths(block: &mut Block, label: &str, paths: &[&str]) {
    let names: Vec<String> = paths.iter().take(FILES).map(|path| code(path, 100)).collect();
    let more = paths.len() - names.len();
    if !names.is_empty() {
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        block.push(&format!("  {label}: {}{more}", names.join(", ")));
    }
}

/// Adds the last unit of a session: with details, or in one line.
pub(super) fn last_unit(block: &mut Block, overview: &SessionOverview, not_committed: &[String], is_brief: bool) {
    match worked(overview).next() {
        Some(last) if is_brief => finished(block, last),
        Some(last) => unit_line(block, last, not_committed),
        None => {}
    }
}

/// Adds a finished unit with its files.
fn finished(block: &mut Block, overview: &UnitOverview) {
    let unit = &overview.unit;
    let outcome = unit.known_outcome().map(|outcome| format!("{}, ", outcome.name())).unwrap_or_default();
    let edited = edited(unit);
    let names: Vec<String> = edited.iter().take(CHANGED).map(|path| code(path, 80)).collect();
    let more = if edited.len() > names.len() { format!(" and {} more", edited.len() - names.len()) } else { String::new() };
    let place = if names.is_empty() { String::new() } else { format!(" in {}{more}", names.join(", ")) };
    if block.push(&format!("- {} ({outcome}u{}){place}", block::for_agent(unit, 140), unit.id)) {
        block.units.push(unit.id);
        details(block, overview);
    }
}

/// Adds the parts of a unit's summary that say what to know and what comes next.
fn details(block: &mut Block, overview: &UnitOverview) {
    if let Some(memory) = &overview.summary {
        block.tells(memory);
    }
    for (name, section) in [("learned", "learned"), ("failures and notes", "notes"), ("next steps", "next_steps")] {
        if let Some(text) = summary(overview, section) {
            block.push(&format!("  {name}: {}", quoted(text, 300)));
        }
    }
}

/// The files of the project that a unit edited.
fn edited(unit: &UnitRow) -> Vec<&str> {
    unit.files.iter().filter(|file| file.edits > 0).map(|file| file.path.as_str()).filter(|path| is_in_project(path)).collect()
}

/// Adds at most `limit` units of a session before its last one, in one line each.
pub(super) fn earlier_units(block: &mut Block, overview: &SessionOverview, limit: usize) {
    for overview in worked(overview).skip(1).take(limit) {
        block.push(&format!("- before that{}", brief(overview)));
    }
}

fn worked(overview: &SessionOverview) -> impl Iterator<Item = &UnitOverview> {
    overview.units.iter().filter(|overview| overview.unit.tool_uses > 0 || overview.summary.is_some())
}

/// `, 38 min, done (u12): "Fix the login"`
pub(super) fn brief(overview: &UnitOverview) -> String {
    let unit = &overview.unit;
    let mut head = Vec::new();
    head.extend((unit.active_ms >= 60_000).then(|| time::span(unit.active_ms)));
    head.extend(unit.known_outcome().map(|outcome| outcome.name().to_string()));
    let head = if head.is_empty() { String::new() } else { format!(", {}", head.join(", ")) };
    format!("{head} (u{}): {}", unit.id, block::for_agent(unit, 140))
}

pub(super) fn summary<'a>(overview: &'a UnitOverview, section: &str) -> Option<&'a str> {
    overview.summary.as_ref()?.text(section)
}

fn unit_line(block: &mut Block, overview: &UnitOverview, not_committed: &[String]) {
    let unit = &overview.unit;
    let outcome = unit.known_outcome().map(|outcome| format!("{}, ", outcome.name())).unwrap_or_default();
    let name = block::for_agent(unit, 140);
    if !block.push(&format!("- {name} ({outcome}u{})", unit.id)) {
        return;
    }
    block.units.push(unit.id);
    let (open, committed_files): (Vec<&str>, Vec<&str>) =
        edited(unit).into_iter().partition(|path| not_committed.iter().any(|open| open == path));
    paths(block, "changed", &committed_files);
    let others = not_committed.iter().map(String::as_str).filter(|path| !open.contains(path));
    paths(block, "changed and not committed", &open.iter().copied().chain(others).collect::<Vec<_>>());
    details(block, overview);
    // The notes name the check that fails.
    let is_said = summary(overview, "notes").is_some();
    if unit.was_left() && unit.outcome != Some(UnitOutcome::Abandoned) && !is_said {
        block.push(&format!(
            "  unfinished ({}): {}",
            unit.outcome.unwrap_or_default(),
            unit.evidence.as_deref().unwrap_or_default()
        ));
    }
}

/// The last commits of a unit, one line each.
pub(super) fn committed(block: &mut Block, unit: &UnitRow) {
    let mut commits = unit.commits.clone();
    commits.dedup_by(|a, b| a.subject == b.subject);
    for commit in commits.iter().skip(commits.len().saturating_sub(COMMITS)) {
        let sha = commit
            .sha
            .as_deref()
            .map(|sha| format!("{} ", code(&sha.chars().take(7).collect::<String>(), 12)))
            .unwrap_or_default();
        let subject = &commit.subject;
        let is_title = unit.title.as_deref().is_some_and(|title| alike(title, without_type(subject)) || alike(title, subject));
        // The name of the unit says it already.
        if !is_title {
            block.push(&format!("  committed: {sha}{}", quoted(subject, 120)));
        }
    }
}

/// Minimum words of subject of a prompt to quote, and maximum files to name, in one line on a session.
const SAYS: usize = 2;
const CHANGED: usize = 3;

/// A session in one line: what was asked last if it names its subject, the work, and the files that it changed.
pub(super) fn gist(overview: &SessionOverview) -> String {
    let says = |prompt: &&str| words(prompt).filter(|word| word.len() > 3 && !is_stop_word(&word.to_lowercase())).count() >= SAYS;
    let prompt = overview.turns.last().map(|turn| turn.prompt.as_str()).filter(says);
    let mut parts: Vec<String> = prompt.map(|prompt| quoted(&headline(prompt), 140)).into_iter().collect();
    if let Some(overview) = overview.units.first() {
        let name = overview.unit.title.as_ref().or(overview.unit.intent.as_ref()).map(|_| block::for_agent(&overview.unit, 140));
        parts.extend(name.filter(|name| !parts.contains(name)).map(|name| format!("working on {name}")));
        parts.extend(summary(overview, "next_steps").map(|next| format!("next steps: {}", quoted(next, 160))));
    }
    let mut edited: Vec<&str> = Vec::new();
    let units = overview.units.iter().flat_map(|overview| &overview.unit.files);
    for file in units.filter(|file| file.edits > 0 && is_in_project(&file.path)) {
        if !edited.contains(&file.path.as_str()) {
            edited.push(&file.path);
        }
    }
    let names: Vec<String> = edited.into_iter().take(CHANGED).map(|path| code(path, 80)).collect();
    parts.extend((!names.is_empty()).then(|| format!("changed {}", names.join(", "))));
    parts.join("; ")
}

/// `2026-11-20 17:42, 38 min, in Codex, branch fix/login`; agent and branch only if they differ from the reader's.
pub(super) fn heading(overview: &SessionOverview, current: Option<&str>, agent: Option<Platform>) -> String {
    let session = &overview.session;
    let mut parts = vec![format!("{} {}", time::day(session.started_at), time::clock(session.started_at))];
    let length = overview.last_event_at - session.started_at;
    if length >= 60_000 {
        parts.push(time::span(length));
    }
    let other = agent.filter(|agent| *agent != session.platform).map(|_| session.platform);
    parts.extend(other.map(|other| format!("in {}", other.title())));
    let branch = session.end_branch.as_ref().or(session.start_branch.as_ref());
    parts.extend(branch.filter(|branch| Some(branch.as_str()) != current).map(|b| format!("branch {}", code(b, 60))));
    let is_done = overview.units.first().is_some_and(|last| last.unit.outcome == Some(UnitOutcome::Done));
    if overview.state == SessionStatus::Interrupted && !is_done {
        parts.push("broken off".to_string());
    }
    parts.join(", ")
}
