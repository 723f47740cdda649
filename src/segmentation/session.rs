//! The open units of a session, and the outcome of a unit.

use super::changes::{BoundaryChange, Changes, Intent, NewStep, StepId, StepRow, UnitChange, UnitId, WINDOW_STEPS};
use super::decide::{CandidateBoundaries, DecisionPhase, Judgment, SETTLED_AFTER, Weights, decide, reason};
use super::step::{Step, after, is_failing};
use super::window::WINDOW;
use crate::model::{Millis, UnitOutcome};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::ops::Range;

/// Minimum content words of a prompt that can serve as a unit's intent.
const MEANING: u16 = 3;

/// Steps in order, and the changes so far.
pub(super) struct SessionChanges {
    pub rows: Vec<StepRow>,
    pub changes: Changes,
    weights: Weights,
    at: Millis,
}

/// Steps decided as one: parts of the work on a prompt, with no boundary among them.
struct UnitGroup {
    rows: Range<usize>,
    step: Step,
}

impl SessionChanges {
    pub fn new(rows: Vec<StepRow>, at: Millis) -> SessionChanges {
        SessionChanges { rows, changes: Changes::default(), weights: Weights::default(), at }
    }

    pub fn open_unit(&mut self, at: Millis) -> UnitId {
        self.changes.opened.push(at);
        UnitId::New(self.changes.opened.len() - 1)
    }

    /// Appends a step.
    pub fn add_step(&mut self, unit: UnitId, prompt: Option<i64>, settled: bool, step: Step) {
        self.changes.inserted = Some(NewStep { unit, prompt, settled, step: step.clone() });
        self.rows.push(StepRow { id: StepId::New, unit, prompt, settled, boundary: None, cleared: false, step });
    }

    /// Begins a unit at the last step, without weighing signals.
    pub fn begin_unit(&mut self, reason: &'static str) {
        self.changes.boundaries.push(BoundaryChange {
            step: self.rows[self.rows.len() - 1].id,
            reason,
            score: None,
            signals: None,
            at_prompt: true,
            stands: true,
            history: Some(json!({"at": self.at, "what": "decided"})),
        });
    }

    /// Makes all decisions final.
    pub fn settle(&mut self) {
        let open = self.rows.iter().filter(|row| !row.settled && row.id != StepId::New);
        self.changes.settled.extend(open.map(|row| row.id));
    }

    /// Decides the open candidates and updates units and boundaries. `last_known`: the work on the last prompt is
    /// known, not only its text.
    pub fn judge(&mut self, last_known: bool) {
        let found = if last_known { self.inner_boundaries() } else { BTreeSet::new() };
        let mut groups = self.group(&found);
        let far = groups.len().saturating_sub(WINDOW);
        let near = groups.get(far).map_or(0, |group| group.rows.start);
        for row in self.rows[..near].iter().filter(|row| !row.step.is_faded()) {
            let mut step = row.step.clone();
            step.fade();
            self.changes.steps.push((row.id, step));
        }
        groups.drain(..far);
        let steps: Vec<Step> = groups.iter_mut().map(|group| std::mem::take(&mut group.step)).collect();
        let unit_of = |group: &UnitGroup| self.rows[group.rows.start].unit;
        // A prompt adds no information about earlier candidates; they were decided when their turn ended.
        let open = match groups.iter().rposition(|group| self.rows[group.rows.start].settled) {
            _ if !last_known => groups.len() - 1,
            settled => settled.map_or(0, |at| at + 1),
        };
        let open = open.max(1);
        let judgments = if open < groups.len() {
            let before = unit_of(&groups[open - 1]);
            let from = groups[..open].iter().rposition(|group| unit_of(group) != before).map_or(0, |at| at + 1);
            let places = CandidateBoundaries::new(&steps, last_known);
            decide(&self.weights, steps.len(), from, open, &|from, at| places.values(from, at), &|from, at| {
                places.is_elsewhere(from, at)
            })
        } else {
            Vec::new()
        };
        self.follow(&groups, &judgments);
        for judgment in judgments.iter().filter(|judgment| last_known && judgment.at + SETTLED_AFTER < groups.len()) {
            let rows = &self.rows[groups[judgment.at].rows.clone()];
            self.changes.settled.extend(rows.iter().map(|row| row.id));
        }
    }

    /// Open steps inside the work on a prompt that may begin a unit. Steps that do not, and have enough steps after
    /// them, become final: the work on one prompt may have hundreds of steps.
    fn inner_boundaries(&mut self) -> BTreeSet<usize> {
        let is_inner = |row: &StepRow| !row.settled && row.step.prompt_features.is_none();
        let first = self.rows.len().saturating_sub(WINDOW);
        let rows = &self.rows[first..];
        let Some(open) = rows.iter().position(is_inner).map(|at| at.max(1)) else { return BTreeSet::new() };
        let from = rows[..open].iter().rposition(|row| row.unit != rows[open - 1].unit).map_or(0, |at| at + 1);
        let steps: Vec<Step> = rows.iter().map(|row| row.step.clone()).collect();
        let places = CandidateBoundaries::new(&steps, true);
        let mut begins = BTreeSet::new();
        for judgment in decide(&self.weights, steps.len(), from, open, &|from, at| places.values(from, at), &|from, at| {
            places.is_elsewhere(from, at)
        }) {
            let row = &rows[judgment.at];
            if judgment.phase != DecisionPhase::Inside || !is_inner(row) {
                continue;
            }
            if judgment.boundary {
                begins.insert(first + judgment.at);
            } else if judgment.at + SETTLED_AFTER < rows.len() && rows[judgment.at - 1].unit == row.unit {
                self.changes.settled.push(row.id);
            }
        }
        begins
    }

    /// Groups the parts of the work on each prompt. A part that already begins a unit, or is newly found to, stays
    /// separate, so that its boundary is decided and a retraction is recorded.
    fn group(&self, found: &BTreeSet<usize>) -> Vec<UnitGroup> {
        let mut groups: Vec<UnitGroup> = Vec::new();
        for (at, row) in self.rows.iter().enumerate() {
            let begins_unit = at > 0 && self.rows[at - 1].unit != row.unit;
            match groups.last_mut() {
                Some(group) if row.step.prompt_features.is_none() && !begins_unit && !found.contains(&at) => {
                    group.rows.end = at + 1;
                    group.step.join(&row.step);
                }
                _ => groups.push(UnitGroup { rows: at..at + 1, step: row.step.clone() }),
            }
        }
        groups
    }

    /// Moves steps between units according to the decisions; records boundaries and retractions.
    fn follow(&mut self, groups: &[UnitGroup], judgments: &[Judgment]) {
        let mut touched: BTreeSet<UnitId> = self.rows.last().map(|row| row.unit).into_iter().collect();
        for judgment in judgments {
            let first = groups[judgment.at].rows.start;
            let before = self.rows[first - 1].unit;
            let was = self.rows[first].unit;
            let began = was != before && !self.rows[..first].iter().any(|row| row.unit == was);
            let unit = match (judgment.boundary, began) {
                (false, _) => before,
                (true, true) => was,
                (true, false) => self.open_unit(self.rows[first].step.at),
            };
            touched.extend([before, was, unit]);
            self.write_down(first, judgment);
            for at in groups[judgment.at].rows.clone() {
                self.move_step(at, unit);
            }
        }
        let last = self.rows.last().map(|row| row.unit);
        for unit in touched {
            match unit {
                UnitId::Stored(id) if self.rows.iter().all(|row| row.unit != unit) => self.changes.emptied.push(id),
                _ => self.sum_up(unit, Some(unit) != last),
            }
        }
    }

    fn move_step(&mut self, at: usize, unit: UnitId) {
        let row = &mut self.rows[at];
        if row.unit == unit {
            return;
        }
        row.unit = unit;
        match (row.id, &mut self.changes.inserted) {
            (StepId::New, Some(inserted)) => inserted.unit = unit,
            (id, _) => self.changes.moved.push((id, unit)),
        }
    }

    fn write_down(&mut self, at: usize, judgment: &Judgment) {
        let row = &mut self.rows[at];
        let what = match (row.boundary, judgment.boundary) {
            (None, false) => return,
            (None, true) if judgment.phase == DecisionPhase::Prompt => Some("decided"),
            (None, true) => Some("found by what followed"),
            (Some(true), false) => Some("taken back by what followed"),
            (Some(false), true) => Some("found again"),
            _ => None,
        };
        row.boundary = Some(judgment.boundary);
        let rounded = |x: f32| (f64::from(x) * 1000.0).round() / 1000.0;
        let signals: Map<String, Value> = judgment
            .contributions(&self.weights)
            .into_iter()
            .map(|t| {
                (t.signal.to_string(), json!({"value": rounded(t.value), "weight": rounded(t.weight), "adds": rounded(t.adds)}))
            })
            .collect();
        self.changes.boundaries.push(BoundaryChange {
            step: row.id,
            reason: reason(judgment, &self.weights),
            score: Some(rounded(judgment.score)),
            signals: Some(signals.into()),
            at_prompt: judgment.phase == DecisionPhase::Prompt,
            stands: judgment.boundary,
            history: what.map(|what| json!({"at": self.at, "what": what, "score": rounded(judgment.score)})),
        });
    }

    /// Updates a unit's state from those of its steps that are among the last ones.
    pub fn sum_up(&mut self, unit: UnitId, over: bool) {
        let whole = self.rows.first().is_some_and(|first| first.unit != unit) || self.rows.len() < WINDOW_STEPS;
        self.sum_up_steps(unit, whole, over);
    }

    /// Updates a unit's state; `whole`: all its steps are here.
    pub fn sum_up_steps(&mut self, unit: UnitId, whole: bool, over: bool) {
        let steps: Vec<&StepRow> = self.rows.iter().filter(|row| row.unit == unit).collect();
        let (outcome, evidence) = outcome(&steps.iter().map(|row| &row.step).collect::<Vec<_>>(), over);
        self.changes.units.push(UnitChange {
            unit,
            whole,
            started: steps.iter().map(|row| row.step.at).min().unwrap_or(0),
            ended: steps.iter().map(|row| row.step.until).max().unwrap_or(0),
            intent: if whole { intent(&steps) } else { Intent::Unchanged },
            outcome,
            evidence,
            over,
        });
    }
}

/// The first prompt with content words, else any prompt, else the work's own name.
fn intent(steps: &[&StepRow]) -> Intent {
    let says = |least: u16| {
        let prompt_features = |row: &&&StepRow| {
            row.step
                .prompt_features
                .as_ref()
                .is_some_and(|prompt_features| prompt_features.content_words >= least || prompt_features.command)
        };
        steps.iter().filter(prompt_features).find_map(|row| row.prompt)
    };
    match (says(MEANING).or_else(|| says(0)), steps.first().map(|row| row.id)) {
        (Some(prompt), _) => Intent::Prompt(prompt),
        (None, Some(StepId::Stored(first))) => Intent::WorkFrom(first),
        _ => Intent::Unchanged,
    }
}

/// Number of failures that make a unit a struggle.
const STRUGGLE: u32 = 3;

/// The outcome of a unit from its steps, in order; `over`: another unit has begun or the session has ended.
pub fn outcome(steps: &[&Step], over: bool) -> (UnitOutcome, String) {
    let sum = |count: fn(&Step) -> u32| steps.iter().map(|step| count(step)).fold(0, u32::saturating_add);
    let (edits, failures, commits) = (sum(|s| s.edits), sum(|s| s.failures), sum(|s| s.commits));
    let Some(last) = steps.last() else { return (UnitOutcome::Unknown, "unknown".into()) };
    let times = |n: u32, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    // The last check, and whether files were changed after it.
    let checked = steps.iter().rposition(|step| step.check_passed.is_some());
    let passed = checked.and_then(|at| steps[at].check_passed);
    let edited_since = checked.is_none_or(|at| steps[at].edited_since_check || steps[at + 1..].iter().any(|s| s.edits > 0));
    // Steps of earlier versions know only their last check.
    let checks = steps.iter().fold(0, |checks, step| after(checks, step.checks));
    let is_failing = if checks > 0 { is_failing(checks) } else { passed == Some(false) };
    if failures >= STRUGGLE && (is_failing || last.failed_last) {
        let how = if is_failing { "the last check did not pass" } else { "the last tool use failed" };
        return (UnitOutcome::Struggling, format!("{}, and {how}", times(failures, "failure")));
    }
    if is_failing && edits > 0 {
        let what = if commits > 0 { times(commits, "commit") } else { "changes".into() };
        return (UnitOutcome::Failing, format!("{what}, and the last check did not pass"));
    }
    if commits > 0 {
        let since = steps.iter().rposition(|step| step.commits > 0).is_some_and(|at| steps[at + 1..].iter().any(|s| s.edits > 0));
        let open = if since { ", and changes since" } else { "" };
        return (UnitOutcome::Done, format!("{}{open}", times(commits, "commit")));
    }
    if edits > 0 && passed == Some(true) && !edited_since {
        return (UnitOutcome::Done, "checks passed after the last change".into());
    }
    if edits > 0 && last.closed && last.says_done && !last.failed_last {
        return (UnitOutcome::Done, "the agent said that it is done".into());
    }
    if edits == 0 && sum(|s| s.plans) > 0 {
        return (UnitOutcome::Answered, "a plan was written, and nothing else was changed".into());
    }
    match (edits > 0, last.closed, over) {
        (true, false, true) => (UnitOutcome::Abandoned, "changes, and its last turn was broken off".into()),
        (false, true, _) => (UnitOutcome::Answered, "nothing was changed, and the agent answered".into()),
        _ => (
            UnitOutcome::Unknown,
            if edits > 0 { "changes, and nothing that completes them" } else { "no closing message" }.into(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(steps: &[Step]) -> (&'static str, String) {
        let (outcome, evidence) = outcome(&steps.iter().collect::<Vec<_>>(), true);
        (outcome.name(), evidence)
    }

    #[test]
    fn what_the_tools_did_decides() {
        let answered = Step { closed: true, ..Step::default() };
        assert_eq!(described(&[answered]), ("answered", "nothing was changed, and the agent answered".into()));
        let committed = Step { edits: 2, commits: 1, closed: true, ..Step::default() };
        assert_eq!(described(&[committed]), ("done", "1 commit".into()));
        let green = Step { edits: 2, check_passed: Some(true), ..Step::default() };
        assert_eq!(described(std::slice::from_ref(&green)).0, "done");
        let red = Step { edits: 1, failures: 4, check_passed: Some(false), closed: true, says_done: true, ..Step::default() };
        assert_eq!(described(std::slice::from_ref(&red)), ("struggling", "4 failures, and the last check did not pass".into()));
        assert_eq!(described(&[red, green]).0, "done", "it passed in the end");
        let broken_off = Step { edits: 1, ..Step::default() };
        assert_eq!(described(&[broken_off]).0, "abandoned");
        let planned = Step { plans: 2, ..Step::default() };
        assert_eq!(described(&[planned]), ("answered", "a plan was written, and nothing else was changed".into()));
        assert_eq!(described(&[Step::default()]).0, "unknown");
    }
}
