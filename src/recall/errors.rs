//! Use cases of `nmem error` and `nmem how`: what ended an error before, and how a program is called.

use crate::distil::commands::{Failure, did_not_run, failures, is_change, response, worked_after};
use crate::distil::signatures::{call, form, most_alike, signatures};
use crate::model::{CommandForm, ErrorEnding, MemoryKind, PastError, SearchScope, ToolUseRow};
use crate::rank;
use crate::store::Store;
use crate::store::full_text::StoredCommand;
use crate::text::is_in_project;
use anyhow::Result;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

/// Maximum error lines of a text to search for.
const LINES: usize = 5;
/// Number of failures to compare with each line.
const AMONG: usize = 300;
/// Minimum similarity of an error.
const ALIKE: f64 = 0.6;
/// Number of errors to examine for a resolution, for each one shown: resolved errors come first.
const FOLLOWED: usize = 4;
/// Number of tool uses after a failure in which it may be resolved.
const AFTER: usize = 120;
/// Minimum share of the error's words that a memory of its unit must have.
const FITS: f64 = 0.3;

/// Returns earlier errors similar to the ones in a text: resolved ones first, then the most similar, then the newest.
/// Returns `None` if no line of the text is specific enough.
pub fn past_errors(store: &Store, scope: &SearchScope, text: &str, limit: usize) -> Result<Option<Vec<PastError>>> {
    let asked = signatures(text, LINES);
    if asked.is_empty() {
        return Ok(None);
    }
    let mut found: Vec<(f64, String, String, StoredCommand)> = Vec::new();
    let mut known = HashSet::new();
    for (_, signature) in &asked {
        for command in store.failed_with(scope, signature.words(), AMONG)? {
            let Some((likeness, line, same)) = most_alike(response(&command.tool), signature) else { continue };
            if likeness >= ALIKE && known.insert(command.tool.id) {
                found.push((likeness, line, same.text(), command));
            }
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.3.tool.received_at.cmp(&a.3.tool.received_at)));
    // One error counts once per session, by its newest failure.
    let mut seen = HashSet::new();
    found.retain(|(_, _, same, command)| seen.insert((same.clone(), command.tool.session_id)));
    let mut errors = Vec::new();
    for (likeness, error, signature, command) in found.into_iter().take(limit.saturating_mul(FOLLOWED)) {
        let ended_by = ending(store, &command, &error)?;
        errors.push(PastError {
            signature,
            likeness,
            at: command.tool.received_at,
            session: command.agent_session_id,
            unit: command.unit,
            command: command.tool.content.unwrap_or_default(),
            error,
            ended_by,
        });
    }
    let order = |error: &PastError| (error.ended_by.is_some(), (error.likeness * 10.0) as i64, error.at);
    errors.sort_by_key(|error| std::cmp::Reverse(order(error)));
    errors.truncate(limit);
    Ok(Some(errors))
}

/// Returns the resolution of a failure in its session, if any.
pub(super) fn ending(store: &Store, failed: &StoredCommand, error: &str) -> Result<Option<ErrorEnding>> {
    let after = store.tool_uses_from(failed.tool.session_id, failed.tool.seq, AFTER)?;
    let after: Vec<&ToolUseRow> = after.iter().collect();
    let followed = failures(&after);
    let is_this = |failure: &&Failure| failure.failed.iter().any(|tool| tool.id == failed.tool.id);
    let instead = worked_after(&after).into_iter().find(|(tool, _)| tool.id == failed.tool.id);
    let passed = followed.iter().find(is_this).and_then(|failure| Some((failure.passed?, &failure.edits)));
    let (success, edits) = match (instead, passed) {
        (Some((_, worked)), _) => (worked, Vec::new()),
        (None, Some((passed, edits))) => (passed, edits.clone()),
        (None, None) => return Ok(None),
    };
    let mut files: Vec<String> = Vec::new();
    for path in
        edits.iter().filter(|tool| is_change(tool)).filter_map(|tool| tool.path.clone()).filter(|path| is_in_project(path))
    {
        if !files.contains(&path) {
            files.push(path);
        }
    }
    let commit = after.iter().filter(|tool| tool.seq >= success.seq && !files.is_empty()).find_map(|tool| {
        let commit = &tool.metadata["commit"];
        let sha = commit["sha"].as_str().map(|sha| format!("{} ", &sha[..sha.floor_char_boundary(7)])).unwrap_or_default();
        Some(format!("{sha}{}", commit["subject"].as_str()?))
    });
    let text = match failed.unit {
        Some(unit) if !files.is_empty() => explanation(store, failed.tool.session_id, unit, error, &files)?,
        _ => None,
    };
    Ok(Some(ErrorEnding { command: success.content.clone().unwrap_or_default(), files, commit, text }))
}

/// Returns the statement about the changed files that shares the most words with the error, and its memory's id.
fn explanation(store: &Store, session: i64, unit: i64, error: &str, files: &[String]) -> Result<Option<(String, i64)>> {
    let memories = store.memories_of_unit(session, unit)?;
    let of_files = |path: &str| files.iter().any(|file| file == path);
    let about = memories.iter().filter(|memory| {
        memory.superseded_by.is_none()
            && memory.kind == MemoryKind::Observation
            && memory.files.iter().any(|file| of_files(&file.path))
    });
    let said: Vec<(i64, &str)> = about
        .flat_map(|memory| {
            std::iter::once(memory.title.as_str()).chain(memory.list("facts")).map(|text| (memory.id, text)).collect::<Vec<_>>()
        })
        .filter(|(_, text)| !text.contains(error))
        .collect();
    let asked = rank::subject(error);
    let shared = |text: &str| rank::subject(text).intersection(&asked).count() as f64 / asked.len().max(1) as f64;
    let best = said.iter().map(|(id, text)| (shared(text), *id, *text)).max_by(|a, b| a.0.total_cmp(&b.0));
    Ok(best.filter(|(fit, ..)| *fit >= FITS).map(|(_, id, text)| (text.to_string(), id)))
}

/// Number of newest commands to look at.
const COMMANDS: usize = 3000;
/// Maximum tool uses between a form that failed and one that worked instead.
const NEAR: i64 = 6;
/// Maximum bytes of a call; longer calls are skipped.
const LONG: usize = 200;

/// Successes that a form is credited with which worked where another failed.
const INSTEAD: usize = 3;

/// Returns the forms in which a program is called, working forms first.
pub fn command_forms(store: &Store, scope: &SearchScope, program: &str) -> Result<Vec<CommandForm>> {
    let program = program.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut forms: HashMap<String, CommandForm> = HashMap::new();
    let mut calls: Vec<(ToolUseRow, String)> = Vec::new();
    for command in store.commands_with(scope, &program, COMMANDS)? {
        let Some(call) = command.tool.content.as_deref().and_then(|line| call(line, &program)) else { continue };
        if call.len() > LONG {
            continue;
        }
        let key = form(&call);
        let succeeded = command.tool.succeeded == Some(true);
        let known = forms.entry(key.clone()).or_insert_with(|| CommandForm {
            command: call.clone(),
            succeeded: 0,
            failed: 0,
            worked_instead: false,
            last_at: command.tool.received_at,
            unit: command.unit,
        });
        if succeeded && known.succeeded == 0 {
            (known.command, known.unit) = (call, command.unit);
        }
        // Imported sessions are not stored in the order of time.
        if command.tool.received_at > known.last_at {
            known.last_at = command.tool.received_at;
            known.unit = if succeeded || known.succeeded == 0 { command.unit } else { known.unit };
        }
        known.succeeded += usize::from(succeeded);
        known.failed += usize::from(!succeeded);
        calls.push((command.tool, key));
    }
    mark_working(&calls, &mut forms);
    let mut forms: Vec<CommandForm> = forms.into_values().collect();
    // A form that worked where another failed counts as several, but not as more than one of daily use.
    let worth = |form: &CommandForm| form.succeeded + if form.worked_instead { INSTEAD } else { 0 };
    let order = |form: &CommandForm| (form.succeeded > 0, worth(form), form.last_at);
    forms.sort_by_key(|form| Reverse(order(form)));
    Ok(forms)
}

/// Marks the forms that succeeded soon after another form did not run.
fn mark_working(calls: &[(ToolUseRow, String)], forms: &mut HashMap<String, CommandForm>) {
    // Newest first.
    for (at, (worked, key)) in calls.iter().enumerate().filter(|(_, (tool, _))| tool.succeeded == Some(true)) {
        let before = calls[at + 1..].iter().take(NEAR as usize);
        let mut before = before.take_while(|(tool, _)| tool.session_id == worked.session_id && worked.seq - tool.seq <= NEAR);
        let fails = |(tool, other): &(ToolUseRow, String)| {
            tool.succeeded == Some(false) && other != key && (!tool.is_check() || did_not_run(response(tool)))
        };
        if before.any(fails)
            && let Some(form) = forms.get_mut(key)
        {
            form.worked_instead = true;
        }
    }
}
