//! One session in a block: its last turns and pieces of work.

use super::block::Block;
use super::clean::{code, prose, quoted};
use super::name;
use super::time;
use crate::model::{SessionTold, State, UnitRow, UnitTold};

/// Files and commits that are named of one piece of work.
const FILES: usize = 8;
const COMMITS: usize = 5;

/// The last turns: what was asked and answered.
pub(super) fn conversation(block: &mut Block, told: &SessionTold) {
    let before = told.session.prompts - told.turns.len() as i64;
    if before > 0 {
        block.push(&format!("  ({before} prompt{} before)", if before == 1 { "" } else { "s" }));
    }
    for (i, turn) in told.turns.iter().enumerate() {
        let asked = |most: usize| format!("- asked: {}", quoted(&turn.asked, most));
        if !block.push(&asked(240)) && !block.push(&asked(80)) {
            return;
        }
        if let Some(done) = &turn.done {
            block.push(&format!("  answered: {}", quoted(&prose(done), if i + 1 == told.turns.len() { 400 } else { 200 })));
        }
    }
    if told.turns.is_empty() {
        block.push("- no prompt was recorded");
    }
}

/// The last pieces of work of a session, the newest first: the first ones in full, the others on a line.
pub(super) fn pieces(block: &mut Block, told: &SessionTold, detailed: usize) {
    let worked = told.units.iter().filter(|told| told.unit.tool_uses > 0 || told.summary.is_some());
    for (i, told) in worked.enumerate() {
        if i < detailed {
            piece(block, told);
        } else {
            block.push(&format!("- before that{}", brief(told)));
        }
    }
}

/// `, 38 min, done (u12): "Fix the login"`
pub(super) fn brief(told: &UnitTold) -> String {
    let unit = &told.unit;
    let mut head = Vec::new();
    head.extend((unit.active_ms >= 60_000).then(|| time::span(unit.active_ms)));
    head.extend(unit.known_outcome().map(|outcome| outcome.name().to_string()));
    let head = if head.is_empty() { String::new() } else { format!(", {}", head.join(", ")) };
    format!("{head} (u{}): {}", unit.id, name::for_agent(unit, 140))
}

pub(super) fn summary<'a>(told: &'a UnitTold, section: &str) -> Option<&'a str> {
    told.summary.as_ref()?.text(section)
}

fn piece(block: &mut Block, told: &UnitTold) {
    let unit = &told.unit;
    if !block.push(&format!("- piece of work{}", brief(told))) {
        return;
    }
    block.units.push(unit.id);
    if let Some(memory) = &told.summary {
        block.tells(memory);
    }
    let names: Vec<String> = unit.files.iter().filter(|f| f.edits > 0).take(FILES).map(|f| edited(&f.path, f.edits)).collect();
    let more = unit.files.iter().filter(|f| f.edits > 0).count().saturating_sub(names.len());
    if !names.is_empty() {
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        block.push(&format!("  changed: {}{more}", names.join(", ")));
    }
    // What is summed up has its commits among the memories.
    if told.summary.is_none() {
        committed(block, unit);
    }
    for (name, section) in [("learned", "learned"), ("failed, or to keep in mind", "notes"), ("left to do", "next_steps")] {
        if let Some(text) = summary(told, section) {
            block.push(&format!("  {name}: {}", quoted(text, 300)));
        }
    }
    if unit.was_left() {
        block.push(&format!(
            "  it was left {}: {}",
            unit.outcome.unwrap_or_default(),
            unit.evidence.as_deref().unwrap_or_default()
        ));
    }
}

/// The last commits of a piece of work, a line each.
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
pub(super) fn gist(told: &SessionTold) -> String {
    let mut parts: Vec<String> = told.turns.last().map(|turn| quoted(&turn.asked, 140)).into_iter().collect();
    if let Some(told) = told.units.first() {
        let name = told.unit.intent.as_ref().map(|_| name::for_agent(&told.unit, 140));
        parts.extend(name.filter(|name| !parts.contains(name)).map(|name| format!("working on {name}")));
        let names: Vec<String> = told.unit.files.iter().filter(|f| f.edits > 0).take(3).map(|f| code(&f.path, 80)).collect();
        parts.extend((!names.is_empty()).then(|| format!("changed {}", names.join(", "))));
        parts.extend(summary(told, "next_steps").map(|next| format!("left to do: {}", quoted(next, 160))));
    }
    parts.join("; ")
}

/// `2026-11-20 17:42, 38 min, branch fix/login, 24 tool uses (s14)`
pub(super) fn heading(told: &SessionTold) -> String {
    let session = &told.session;
    let mut parts = vec![format!("{} {}", time::day(session.started_at), time::clock(session.started_at))];
    let length = told.until - session.started_at;
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
    if told.state == State::BrokenOff {
        parts.push("broken off".to_string());
    }
    format!("{} (s{})", parts.join(", "), session.id)
}
