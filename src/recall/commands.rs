//! Use case: the forms in which a program is called.

use crate::model::{CommandForm, ToolUseRow};
use crate::rules::failures::{did_not_run, response};
use crate::rules::forms::{call, form};
use crate::store::Store;
use anyhow::Result;
use std::cmp::Reverse;
use std::collections::HashMap;

/// Number of newest commands to look at.
const COMMANDS: usize = 3000;
/// Maximum tool uses between a form that failed and one that worked instead.
const NEAR: i64 = 6;
/// Maximum bytes of a call; longer calls are skipped.
const LONG: usize = 200;

/// Returns the forms in which a program is called, working forms first.
pub fn command_forms(store: &Store, project: Option<i64>, program: &str) -> Result<Vec<CommandForm>> {
    let program = program.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut forms: HashMap<String, CommandForm> = HashMap::new();
    let mut calls: Vec<(ToolUseRow, String)> = Vec::new();
    for command in store.commands_with(project, &program, COMMANDS)? {
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
        known.succeeded += usize::from(succeeded);
        known.failed += usize::from(!succeeded);
        calls.push((command.tool, key));
    }
    mark_working(&calls, &mut forms);
    let mut forms: Vec<CommandForm> = forms.into_values().collect();
    let order = |form: &CommandForm| (form.succeeded > 0, form.worked_instead, form.succeeded, form.last_at);
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
