//! What each event does to its session's steps and units: rows in, changes out.
//!
//! A prompt begins a step, and perhaps a unit. A tool use goes into its prompt's step, or into a new one where the work is
//! cut. A closing message, the end of a session and due parts of long work have the last places judged again.

use super::changes::{Changes, FileUse, NewStep, ToolUseInStep, UnitChange};
use super::rows::{StepId, StepRow, UnitId};
use super::session::Session;
use super::step::Step;
use super::substeps::begins_step;
use crate::model::{ClosedBy, Kind, Millis, ToolUse};

/// A prompt, stored under its row, after the last steps of its session.
pub fn begin_prompt(rows: Vec<StepRow>, prompt: i64, text: &str, at: Millis) -> Changes {
    let mut session = Session::new(rows, at);
    let (unit, reason) = match session.rows.last() {
        Some(last) if !last.cleared => (last.unit, None),
        Some(_) => (session.open_unit(at), Some("/clear")),
        None => (session.open_unit(at), Some("the session began")),
    };
    session.add_step(unit, Some(prompt), reason.is_some(), Step::asked(text, at));
    match reason {
        None => session.judge(false),
        Some(reason) => {
            session.begin_unit(reason);
            session.settle();
            session.sum_up(unit, false);
        }
    }
    session.changes
}

/// A tool use in a session without any step: nmem was installed, or the database set aside, while it was at work.
pub fn begin_at_work(prompt: Option<i64>, at: Millis) -> Changes {
    let mut session = Session::new(Vec::new(), at);
    let unit = session.open_unit(at);
    session.add_step(unit, prompt, true, Step::going_on(at));
    session.begin_unit("the session was met at work");
    session.changes
}

/// A tool use that was stored in a step.
#[derive(Clone, Copy, Debug)]
pub struct StoredToolUse<'a> {
    pub row: i64,
    /// Its number in the session, from 1.
    pub seq: i64,
    pub tool: &'a ToolUse,
    pub at: Millis,
}

/// Whether the work on a prompt is cut before a tool use, if its step is the session's last one.
pub fn cuts(row: &StepRow, tool: &ToolUse) -> bool {
    begins_step(&row.step, tool)
}

/// Takes a stored tool use into its step, or, where the work is `cut`, into a new one of the same unit.
pub fn add_tool_use(mut row: StepRow, used: StoredToolUse, cut: bool) -> Changes {
    let StoredToolUse { tool, at, .. } = used;
    let mut changes = Changes::default();
    if cut {
        let step = Step::going_on(row.step.until.max(row.step.at));
        changes.inserted = Some(NewStep { unit: row.unit, prompt: row.prompt, settled: false, step: step.clone() });
        row = StepRow { id: StepId::New, settled: false, step, ..row };
    }
    row.step.used(tool, at);
    let failed = tool.succeeded == Some(false);
    let edits = i64::from(matches!(tool.kind, Kind::Edit | Kind::Write) && !failed);
    let reads = i64::from(tool.kind == Kind::Read);
    changes.used = Some(ToolUseInStep {
        step: row.id,
        reassigned: cut.then_some(used.row),
        seq: used.seq,
        failed,
        at,
        file: tool.path.clone().filter(|_| edits + reads > 0).map(|path| FileUse { path, reads, edits }),
        features: row.step,
    });
    changes
}

/// The agent closes a turn: `closing` is what it said, `is_new` whether that was stored only now.
pub fn close_turn(mut row: StepRow, closing: &str, is_new: bool, at: Millis) -> Changes {
    row.step.closes(closing, at);
    Changes { steps: vec![(row.id, row.step)], said_in: is_new.then_some(row.unit), ..Changes::default() }
}

/// Judges the last places again, with what is known by now.
pub fn judge(rows: Vec<StepRow>, at: Millis) -> Changes {
    let mut session = Session::new(rows, at);
    if !session.rows.is_empty() {
        session.judge(true);
    }
    session.changes
}

/// Closes a session's last unit, for the time being: where the session goes on, so does the unit.
pub fn close(rows: Vec<StepRow>, by: ClosedBy, at: Millis) -> Changes {
    let mut session = Session::new(rows, at);
    if session.rows.is_empty() {
        return session.changes;
    }
    session.judge(true);
    let last = session.rows[session.rows.len() - 1].unit;
    session.changes.units.retain(|change: &UnitChange| change.unit != last);
    session.sum_up(last, true);
    session.changes.closed = Some((last, by));
    session.changes
}

/// A step of which tool uses were forgotten, by those that are left. The words that it was compared by go.
pub fn recount_step(old: Step, left: impl IntoIterator<Item = (ToolUse, Millis)>) -> Step {
    let (at, until) = (old.at, old.until);
    let said = Step { asked: old.asked, closed: old.closed, asks: old.asks, says_done: old.says_done, ..Step::default() };
    let mut step = Step { at, until: at, ..said };
    for (tool, at) in left {
        step.used(&tool, at);
    }
    step.until = step.until.max(until);
    step.fade();
    step
}

/// A unit whose steps were counted again: `rows` are all of them, in order.
pub fn recount_unit(rows: Vec<StepRow>, unit: i64, over: bool) -> Changes {
    let mut session = Session::new(rows, 0);
    session.changes.steps = session.rows.iter().map(|row| (row.id, row.step.clone())).collect();
    session.sum_up_steps(UnitId::Stored(unit), true, over);
    session.changes
}
