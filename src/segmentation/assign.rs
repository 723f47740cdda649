//! Assigns events to steps and units: where a step begins, and when long work is split.

use super::changes::{Changes, FileUse, NewStep, StepId, StepRow, ToolUseInStep, UnitChange, UnitId};
use super::phases::Phase;
use super::session::SessionChanges;
use super::step::Step;
use crate::model::{ClosedBy, CommandKind, Kind, Millis, ToolUse};

/// Adds the step of a stored prompt after the session's last steps.
pub fn begin_prompt(rows: Vec<StepRow>, prompt: i64, text: &str, at: Millis) -> Changes {
    let mut session = SessionChanges::new(rows, at);
    let (unit, reason) = match session.rows.last() {
        Some(last) if !last.cleared => (last.unit, None),
        Some(_) => (session.open_unit(at), Some("/clear")),
        None => (session.open_unit(at), Some("the session began")),
    };
    session.add_step(unit, Some(prompt), reason.is_some(), Step::from_prompt(text, at));
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

/// Begins a session at a tool use, without earlier steps: nmem was installed, or the database replaced, during the
/// session.
pub fn begin_at_work(prompt: Option<i64>, at: Millis) -> Changes {
    let mut session = SessionChanges::new(Vec::new(), at);
    let unit = session.open_unit(at);
    session.add_step(unit, prompt, true, Step::going_on(at));
    session.begin_unit("nmem first saw the session here");
    session.changes
}

/// A tool use stored in a step.
#[derive(Clone, Copy, Debug)]
pub struct StoredToolUse<'a> {
    pub row: i64,
    /// Its number in the session, from 1.
    pub seq: i64,
    pub tool: &'a ToolUse,
    /// The project of its repository; `None` is the session's.
    pub project: Option<i64>,
    pub at: Millis,
}

/// Whether a tool use begins a new step; only the session's last step is ever split.
pub fn cuts(row: &StepRow, tool: &ToolUse) -> bool {
    begins_step(&row.step, tool)
}

/// Adds a stored tool use to its step, or with `cut` to a new step of the same unit.
pub fn add_tool_use(mut row: StepRow, used: StoredToolUse, cut: bool) -> Changes {
    let StoredToolUse { tool, at, .. } = used;
    let mut changes = Changes::default();
    if cut {
        let step = Step::going_on(row.step.until.max(row.step.at));
        changes.inserted = Some(NewStep { unit: row.unit, prompt: row.prompt, settled: false, step: step.clone() });
        row = StepRow { id: StepId::New, settled: false, step, ..row };
    }
    row.step.used(tool, used.project, at);
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

/// Counts the outcome of a background command that has ended in the session's last step.
pub fn end_background(mut row: StepRow, command: CommandKind, succeeded: bool, at: Millis) -> Changes {
    row.step.background_ended(command, succeeded, at);
    Changes { steps: vec![(row.id, row.step)], said_in: Some(row.unit), ..Changes::default() }
}

/// Ends the agent's turn with the message `closing`; `is_new` if it was stored just now.
pub fn close_turn(mut row: StepRow, closing: &str, is_new: bool, at: Millis) -> Changes {
    row.step.closes(closing, at);
    Changes { steps: vec![(row.id, row.step)], said_in: is_new.then_some(row.unit), ..Changes::default() }
}

/// Decides the latest boundaries again.
pub fn judge(rows: Vec<StepRow>, at: Millis) -> Changes {
    let mut session = SessionChanges::new(rows, at);
    if !session.rows.is_empty() {
        session.judge(true);
    }
    session.changes
}

/// Closes a session's last unit, provisionally: if the session continues, so does the unit.
pub fn close(rows: Vec<StepRow>, by: ClosedBy, at: Millis) -> Changes {
    let mut session = SessionChanges::new(rows, at);
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

/// Rebuilds a step from its remaining tool uses after others were forgotten. Its words are dropped.
pub fn recount_step(old: Step, left: impl IntoIterator<Item = (ToolUse, Millis)>) -> Step {
    let (at, until) = (old.at, old.until);
    let said = Step {
        prompt_features: old.prompt_features,
        closed: old.closed,
        asks: old.asks,
        says_done: old.says_done,
        ..Step::default()
    };
    let mut step = Step { at, until: at, ..said };
    for (tool, at) in left {
        step.used(&tool, None, at);
    }
    step.edited_in = old.edited_in;
    step.until = step.until.max(until);
    step.fade();
    step
}

/// Rebuilds a unit after its steps were rebuilt: `rows` are all of them, in order.
pub fn recount_unit(rows: Vec<StepRow>, unit: i64, over: bool) -> Changes {
    let mut session = SessionChanges::new(rows, 0);
    session.changes.steps = session.rows.iter().map(|row| (row.id, row.step.clone())).collect();
    session.sum_up_steps(UnitId::Stored(unit), true, over);
    session.changes
}

/// Minimum tool uses of a step before it can be split; fewer are not enough evidence.
const LEAST: u32 = 4;

/// Counts of tool uses at which a step without a prompt is decided: early, and again with more evidence.
const JUDGED_AT: [u32; 4] = [6, 12, 24, 48];

/// Whether a tool use begins a new step: the previous ones committed, or checked their edits, and this one explores
/// again.
pub fn begins_step(step: &Step, tool: &ToolUse) -> bool {
    if step.tool_uses < LEAST || tool.metadata.agent_id.is_some() || belongs_to_commit(tool) {
        return false;
    }
    let checked = step.edits > 0 && !step.edited_since_check && step.check_passed == Some(true);
    step.committed_last || (checked && !step.looked_since_check && Phase::of(tool) == Some(Phase::Investigation))
}

/// Whether a step inside a prompt's work should be decided now.
pub fn is_due(step: &Step) -> bool {
    step.prompt_features.is_none() && JUDGED_AT.contains(&step.tool_uses)
}

/// Whether a tool use belongs to the preceding commit: showing it, pushing it, committing the rest.
fn belongs_to_commit(tool: &ToolUse) -> bool {
    tool.kind == Kind::Command && matches!(tool.command, Some(CommandKind::Git | CommandKind::Commit))
        || tool.content.as_deref().is_some_and(|command| tool.kind == Kind::Command && command.starts_with("gh "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::UnitOutcome;
    use crate::model::testing::tool;
    use crate::segmentation::changes::Intent;

    const MINUTE: Millis = 60_000;

    /// The steps of a session, in a store that simply applies changes.
    #[derive(Default)]
    struct Kept {
        rows: Vec<StepRow>,
        units: i64,
        /// The latest summary of each unit.
        said: Vec<UnitChange>,
        boundaries: Vec<&'static str>,
        closed: Option<ClosedBy>,
    }

    impl Kept {
        fn apply(&mut self, changes: Changes) {
            let before = self.units;
            let stored = |unit: UnitId| match unit {
                UnitId::New(n) => UnitId::Stored(before + n as i64),
                stored => stored,
            };
            self.units += changes.opened.len() as i64;
            if let Some(NewStep { unit, prompt, settled, step }) = changes.inserted {
                let id = StepId::Stored(self.rows.len() as i64);
                self.rows.push(StepRow { id, unit: stored(unit), prompt, settled, boundary: None, cleared: false, step });
            }
            let last = self.rows.len() - 1;
            let at = |id: StepId| match id {
                StepId::Stored(id) => id as usize,
                StepId::New => last,
            };
            if let Some(used) = changes.used {
                self.rows[at(used.step)].step = used.features;
            }
            changes.steps.into_iter().for_each(|(id, step)| self.rows[at(id)].step = step);
            changes.moved.into_iter().for_each(|(id, unit)| self.rows[at(id)].unit = stored(unit));
            for boundary in changes.boundaries {
                let known = self.rows[at(boundary.step)].boundary.replace(boundary.stands);
                self.boundaries.extend((boundary.stands && known != Some(true)).then_some(boundary.reason));
            }
            changes.settled.into_iter().for_each(|id| self.rows[at(id)].settled = true);
            for change in changes.units {
                let change = UnitChange { unit: stored(change.unit), ..change };
                self.said.retain(|known| known.unit != change.unit);
                self.said.push(change);
            }
            self.closed = changes.closed.map(|(_, by)| by);
        }

        /// A prompt and the work on it.
        fn turn(&mut self, minute: Millis, text: &str, work: &[(Kind, &str)], closing: &str) {
            let at = minute * MINUTE;
            self.apply(begin_prompt(self.rows.clone(), minute, text, at));
            for (n, (kind, what)) in work.iter().enumerate() {
                let row = self.rows.last().unwrap().clone();
                let tool = tool(*kind, what, true);
                self.apply(add_tool_use(
                    row,
                    StoredToolUse { row: 1, seq: n as i64, tool: &tool, project: None, at: at + 1000 },
                    false,
                ));
            }
            self.apply(close_turn(self.rows.last().unwrap().clone(), closing, true, at + 2000));
            self.apply(judge(self.rows.clone(), at + 2000));
        }

        fn units(&self) -> Vec<UnitId> {
            self.rows.iter().map(|row| row.unit).collect()
        }
    }

    const LOGIN: &[(Kind, &str)] =
        &[(Kind::Read, "src/login.rs"), (Kind::Edit, "src/login.rs"), (Kind::Command, "cargo test login")];

    const INVOICE: &[(Kind, &str)] =
        &[(Kind::Read, "billing/invoice.py"), (Kind::Edit, "billing/invoice.py"), (Kind::Command, "pytest billing")];

    #[test]
    fn a_session_begins_with_a_unit_and_going_on_stays_in_it() {
        let mut kept = Kept::default();
        kept.turn(1, "Fix the login: tokens expire too early", LOGIN, "Fixed the expiry; the tests pass.");
        kept.turn(2, "yes, and do the same for refresh tokens", LOGIN, "Refresh tokens are done as well.");
        assert_eq!(kept.units(), [UnitId::Stored(0), UnitId::Stored(0)]);
        assert_eq!(kept.boundaries, ["the session began"]);
    }

    #[test]
    fn another_task_on_other_files_after_a_commit_and_a_pause_begins_a_unit() {
        let mut kept = Kept::default();
        kept.turn(1, "Fix the login: tokens expire too early", LOGIN, "Fixed the expiry; the tests pass.");
        kept.turn(5, "commit it", &[(Kind::Command, "git commit -m 'Fix the expiry'")], "Committed.");
        kept.turn(180, "Add the customer's tax number to each invoice as a new column", INVOICE, "The column is there.");
        assert_eq!(kept.units(), [UnitId::Stored(0), UnitId::Stored(0), UnitId::Stored(1)]);
        assert_eq!(kept.boundaries.len(), 2);
    }

    #[test]
    fn after_a_clear_whatever_comes_is_another_unit() {
        let mut kept = Kept::default();
        kept.turn(1, "Fix the login: tokens expire too early", LOGIN, "Fixed.");
        kept.rows[0].cleared = true;
        kept.turn(2, "yes, and do the same for refresh tokens", LOGIN, "Done.");
        assert_eq!(kept.units(), [UnitId::Stored(0), UnitId::Stored(1)]);
        assert_eq!(kept.boundaries, ["the session began", "/clear"]);
        assert!(kept.rows[0].settled, "what lies before a clear is not judged again");
    }

    #[test]
    fn the_end_of_a_session_closes_the_last_unit_and_says_how_it_went() {
        let mut kept = Kept::default();
        kept.turn(1, "Fix the login: tokens expire too early", LOGIN, "Fixed the expiry; the tests pass.");
        kept.apply(close(kept.rows.clone(), ClosedBy::SessionEnd, 9 * MINUTE));
        assert_eq!(kept.closed, Some(ClosedBy::SessionEnd));
        let [unit] = kept.said.as_slice() else { panic!("{:?}", kept.said) };
        assert_eq!((unit.over, unit.outcome, unit.intent), (true, UnitOutcome::Done, Intent::Prompt(1)));
        assert_eq!(close(Vec::new(), ClosedBy::SessionEnd, 0), Changes::default(), "a session without work");
    }

    #[test]
    fn a_cut_puts_a_tool_use_into_a_step_of_its_own_in_the_same_unit() {
        let mut kept = Kept::default();
        kept.turn(1, "Port the parser", LOGIN, "Ported.");
        let tool = tool(Kind::Edit, "src/parser.rs", true);
        let used = StoredToolUse { row: 7, seq: 9, tool: &tool, project: None, at: 50 * MINUTE };
        let changes = add_tool_use(kept.rows[0].clone(), used, true);
        let new = changes.inserted.as_ref().expect("a step");
        assert_eq!((new.unit, new.prompt, new.settled), (UnitId::Stored(0), Some(1), false));
        let used = changes.used.expect("the tool use");
        assert_eq!((used.step, used.reassigned), (StepId::New, Some(7)));
        assert_eq!(used.file, Some(FileUse { path: "src/parser.rs".into(), reads: 0, edits: 1 }));
    }

    #[test]
    fn a_failed_edit_changes_no_file() {
        let mut kept = Kept::default();
        kept.turn(1, "Port the parser", &[], "");
        let tool = tool(Kind::Edit, "src/parser.rs", false);
        let changes =
            add_tool_use(kept.rows[0].clone(), StoredToolUse { row: 1, seq: 1, tool: &tool, project: None, at: MINUTE }, false);
        let used = changes.used.expect("the tool use");
        assert!(used.failed);
        assert_eq!(used.file, None);
        assert_eq!(changes.inserted, None);
    }
}
