//! One session in a block: its last turns and units.

use super::block::Block;
use super::clean::{code, prose, quoted};
use super::name;
use super::time;
use crate::model::{SessionOverview, SessionStatus, UnitOverview, UnitRow};

/// Maximum files and commits per unit.
const FILES: usize = 8;
const COMMITS: usize = 5;

/// The last turns: prompts and answers.
pub(super) fn conversation(block: &mut Block, overview: &SessionOverview) {
    let before = overview.session.prompts - overview.turns.len() as i64;
    if before > 0 {
        block.push(&format!("  ({before} prompt{} before)", if before == 1 { "" } else { "s" }));
    }
    for (i, turn) in overview.turns.iter().enumerate() {
        let asked = |most: usize| format!("- asked: {}", quoted(&turn.prompt, most));
        if !block.push(&asked(240)) && !block.push(&asked(80)) {
            return;
        }
        if let Some(done) = &turn.answer {
            block.push(&format!("  answered: {}", quoted(&prose(done), if i + 1 == overview.turns.len() { 400 } else { 200 })));
        }
    }
    if overview.turns.is_empty() {
        block.push("- no prompt was recorded");
    }
}

/// The last units of a session, newest first: the first ones with details, the others in one line.
pub(super) fn units(block: &mut Block, overview: &SessionOverview, detailed: usize) {
    let worked = overview.units.iter().filter(|overview| overview.unit.tool_uses > 0 || overview.summary.is_some());
    for (i, overview) in worked.enumerate() {
        if i < detailed {
            unit_line(block, overview);
        } else {
            block.push(&format!("- before that{}", brief(overview)));
        }
    }
}

/// `, 38 min, done (u12): "Fix the login"`
pub(super) fn brief(overview: &UnitOverview) -> String {
    let unit = &overview.unit;
    let mut head = Vec::new();
    head.extend((unit.active_ms >= 60_000).then(|| time::span(unit.active_ms)));
    head.extend(unit.known_outcome().map(|outcome| outcome.name().to_string()));
    let head = if head.is_empty() { String::new() } else { format!(", {}", head.join(", ")) };
    format!("{head} (u{}): {}", unit.id, name::for_agent(unit, 140))
}

pub(super) fn summary<'a>(overview: &'a UnitOverview, section: &str) -> Option<&'a str> {
    overview.summary.as_ref()?.text(section)
}

fn unit_line(block: &mut Block, overview: &UnitOverview) {
    let unit = &overview.unit;
    if !block.push(&format!("- work unit{}", brief(overview))) {
        return;
    }
    block.units.push(unit.id);
    if let Some(memory) = &overview.summary {
        block.tells(memory);
    }
    let names: Vec<String> = unit.files.iter().filter(|f| f.edits > 0).take(FILES).map(|f| edited(&f.path, f.edits)).collect();
    let more = unit.files.iter().filter(|f| f.edits > 0).count().saturating_sub(names.len());
    if !names.is_empty() {
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        block.push(&format!("  changed: {}{more}", names.join(", ")));
    }
    // With a summary, the commits are among the memories.
    if overview.summary.is_none() {
        committed(block, unit);
    }
    for (name, section) in [("learned", "learned"), ("failures and notes", "notes"), ("next steps", "next_steps")] {
        if let Some(text) = summary(overview, section) {
            block.push(&format!("  {name}: {}", quoted(text, 300)));
        }
    }
    if unit.was_left() {
        block.push(&format!(
            "  unfinished ({}): {}",
            unit.outcome.unwrap_or_default(),
            unit.evidence.as_deref().unwrap_or_default()
        ));
    }
}

/// The last commits of a unit, one line each.
pub(super) fn committed(block: &mut Block, unit: &UnitRow) {
    for commit in unit.commits.iter().skip(unit.commits.len().saturating_sub(COMMITS)) {
        let sha = commit
            .sha
            .as_deref()
            .map(|sha| format!("{} ", code(&sha.chars().take(7).collect::<String>(), 12)))
            .unwrap_or_default();
        block.push(&format!("  committed: {sha}{}", quoted(&commit.subject, 120)));
    }
}

fn edited(path: &str, edits: i64) -> String {
    if edits > 1 { format!("{} ({edits} edits)", code(path, 100)) } else { code(path, 100) }
}

/// A session in one line.
pub(super) fn gist(overview: &SessionOverview) -> String {
    let mut parts: Vec<String> = overview.turns.last().map(|turn| quoted(&turn.prompt, 140)).into_iter().collect();
    if let Some(overview) = overview.units.first() {
        let name = overview.unit.title.as_ref().or(overview.unit.intent.as_ref()).map(|_| name::for_agent(&overview.unit, 140));
        parts.extend(name.filter(|name| !parts.contains(name)).map(|name| format!("working on {name}")));
        let names: Vec<String> = overview.unit.files.iter().filter(|f| f.edits > 0).take(3).map(|f| code(&f.path, 80)).collect();
        parts.extend((!names.is_empty()).then(|| format!("changed {}", names.join(", "))));
        parts.extend(summary(overview, "next_steps").map(|next| format!("next steps: {}", quoted(next, 160))));
    }
    parts.join("; ")
}

/// `2026-11-20 17:42, 38 min, branch fix/login, 24 tool uses (s14)`
pub(super) fn heading(overview: &SessionOverview) -> String {
    let session = &overview.session;
    let mut parts = vec![format!("{} {}", time::day(session.started_at), time::clock(session.started_at))];
    let length = overview.last_event_at - session.started_at;
    if length >= 60_000 {
        parts.push(time::span(length));
    }
    let branch = session.end_branch.as_ref().or(session.start_branch.as_ref());
    parts.extend(branch.map(|b| format!("branch {}", code(b, 60))));
    match session.tool_uses {
        0 => {}
        1 => parts.push("1 tool use".to_string()),
        n => parts.push(format!("{n} tool uses")),
    }
    if overview.state == SessionStatus::Interrupted {
        parts.push("broken off".to_string());
    }
    format!("{} (s{})", parts.join(", "), session.id)
}
