//! Earlier errors and forms of commands, for people and programs.

use super::clean::line;
use super::style::Style;
use super::{count, time};
use crate::model::{CommandForm, ErrorEnding, PastError};
use serde_json::{Value, json};

/// Maximum files to name.
const FILES: usize = 5;
/// Maximum characters of a command, and of a memory's text.
const COMMAND: usize = 160;
const TEXT: usize = 240;

/// Returns an earlier error with its resolution, for a person.
pub fn error_text(error: &PastError, style: Style) -> String {
    let unit = error.unit.map(|unit| format!(" u{unit}")).unwrap_or_default();
    let place = style.faint(&format!("{}{unit}", time::day(error.at)));
    let mut out = format!("{}\n  {place} {}\n", style.bad(&line(&error.error, TEXT)), line(&error.command, COMMAND));
    match &error.ended_by {
        Some(ending) => out += &ending_text(ending, style),
        None => out += &format!("  {}\n", style.faint("not ended in that session")),
    }
    out
}

fn ending_text(ending: &ErrorEnding, style: Style) -> String {
    let mut parts = Vec::new();
    if !ending.files.is_empty() {
        let names: Vec<String> = ending.files.iter().take(FILES).map(|path| style.path(&line(path, 100))).collect();
        let more = ending.files.len() - names.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        parts.push(format!("changed {}{more}", names.join(", ")));
    }
    parts.push(format!("{} succeeded", style.good(&line(&ending.command, COMMAND))));
    let mut out = format!("  ended by: {}\n", parts.join(", then "));
    if let Some(commit) = &ending.commit {
        out += &format!("  committed: {}\n", line(commit, COMMAND));
    }
    if let Some((text, memory)) = &ending.text {
        out += &format!("  {} {}\n", style.faint(&format!("m{memory}")), line(text, TEXT));
    }
    out
}

/// An earlier error as JSON.
pub fn error_json(error: &PastError) -> Value {
    let ending = |ending: &ErrorEnding| json!({"command": ending.command, "files": ending.files, "commit": ending.commit, "text": ending.text.as_ref().map(|(text, _)| text)});
    json!({
        "signature": error.signature, "at": error.at, "session": error.session, "unit": error.unit.map(|unit| format!("u{unit}")),
        "command": error.command, "error": error.error, "ended_by": error.ended_by.as_ref().map(ending),
    })
}

/// Returns a form of a command with its outcomes, for a person.
pub fn form_text(form: &CommandForm, style: Style) -> String {
    let command = line(&form.command, COMMAND);
    let command = if form.succeeded > 0 { style.good(&command) } else { style.bad(&command) };
    let mut outcome = Vec::new();
    outcome.extend((form.succeeded > 0).then(|| format!("succeeded {}", count(form.succeeded as i64, "time", "times"))));
    outcome.extend((form.failed > 0).then(|| format!("failed {}", count(form.failed as i64, "time", "times"))));
    outcome.extend(form.worked_instead.then(|| "worked where another form failed".to_string()));
    outcome.push(format!("last {}", time::day(form.last_at)));
    outcome.extend(form.unit.map(|unit| format!("u{unit}")));
    format!("{command}\n  {}\n", style.faint(&outcome.join(", ")))
}

/// A form of a command as JSON.
pub fn form_json(form: &CommandForm) -> Value {
    json!({
        "command": form.command, "succeeded": form.succeeded, "failed": form.failed, "last_at": form.last_at,
        "unit": form.unit.map(|unit| format!("u{unit}")),
    })
}
