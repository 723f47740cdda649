//! Judges the last places of a session and has the units follow: what late evidence says is taken over, and written down.

use super::super::Tx;
use super::steps::StepRow;
use crate::model::Millis;
use crate::units::{Judgment, Moment, Places, SETTLED_AFTER, Step, WINDOW, Weights, decide};
use anyhow::Result;
use std::collections::BTreeSet;
use std::ops::Range;

/// Steps that are judged as one: the parts of the work on a prompt, where no unit begins among them.
pub(super) struct Group {
    pub rows: Range<usize>,
    step: Step,
}

impl Tx<'_> {
    /// Judges what is open. `last_known`: the work on the last prompt is known, not only its text.
    pub(super) fn judge(&self, session: i64, mut rows: Vec<StepRow>, last_known: bool, at: Millis) -> Result<()> {
        let weights = Weights::default();
        let found = if last_known { self.inner_boundaries(&weights, &rows)? } else { BTreeSet::new() };
        let mut groups = group(&rows, &found);
        let far = groups.len().saturating_sub(WINDOW);
        for row in &rows[..groups.get(far).map_or(0, |group| group.rows.start)] {
            if !row.step.is_faded() {
                self.fade(row)?;
            }
        }
        groups.drain(..far);
        let steps: Vec<Step> = groups.iter_mut().map(|group| std::mem::take(&mut group.step)).collect();
        let unit_of = |group: &Group| rows[group.rows.start].unit;
        // A prompt tells nothing about the places before it: those were judged when their turn was over.
        let open = match groups.iter().rposition(|group| rows[group.rows.start].settled) {
            _ if !last_known => groups.len() - 1,
            settled => settled.map_or(0, |at| at + 1),
        };
        let open = open.max(1);
        if open >= groups.len() {
            return self.follow(session, &mut rows, &groups, &[], &weights, at);
        }
        let before = unit_of(&groups[open - 1]);
        let from = groups[..open].iter().rposition(|group| unit_of(group) != before).map_or(0, |at| at + 1);
        let places = Places::new(&steps, last_known);
        let judgments = decide(&weights, steps.len(), from, open, &|from, at| places.values(from, at));
        self.follow(session, &mut rows, &groups, &judgments, &weights, at)?;
        let settled = |judgment: &&Judgment| last_known && judgment.at + SETTLED_AFTER < groups.len();
        for judgment in judgments.iter().filter(settled) {
            for row in &rows[groups[judgment.at].rows.clone()] {
                self.settle(row.id)?;
            }
        }
        Ok(())
    }

    /// Open steps in the middle of the work on a prompt that look like the beginning of a unit. Those that don't, with
    /// enough behind them, are settled: the work on one prompt may have hundreds of steps.
    fn inner_boundaries(&self, weights: &Weights, rows: &[StepRow]) -> Result<BTreeSet<i64>> {
        let is_inner = |row: &StepRow| !row.settled && row.step.asked.is_none();
        let rows = &rows[rows.len().saturating_sub(WINDOW)..];
        let Some(open) = rows.iter().position(is_inner).map(|at| at.max(1)) else { return Ok(BTreeSet::new()) };
        let from = rows[..open].iter().rposition(|row| row.unit != rows[open - 1].unit).map_or(0, |at| at + 1);
        let steps: Vec<Step> = rows.iter().map(|row| row.step.clone()).collect();
        let places = Places::new(&steps, true);
        let mut begins = BTreeSet::new();
        for judgment in decide(weights, steps.len(), from, open, &|from, at| places.values(from, at)) {
            let row = &rows[judgment.at];
            if judgment.moment != Moment::Inside || !is_inner(row) {
                continue;
            }
            if judgment.boundary {
                begins.insert(row.id);
            } else if judgment.at + SETTLED_AFTER < rows.len() && rows[judgment.at - 1].unit == row.unit {
                self.settle(row.id)?;
            }
        }
        Ok(begins)
    }
}

/// Puts the parts of the work on a prompt together. A part with which a unit begins as it stands stays apart, so that its
/// place is judged, and what is taken back is written down; so does one that is newly found to begin one.
fn group(rows: &[StepRow], found: &BTreeSet<i64>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let begins_unit = at > 0 && rows[at - 1].unit != row.unit;
        match groups.last_mut() {
            Some(group) if row.step.asked.is_none() && !begins_unit && !found.contains(&row.id) => {
                group.rows.end = at + 1;
                group.step.join(&row.step);
            }
            _ => groups.push(Group { rows: at..at + 1, step: row.step.clone() }),
        }
    }
    groups
}
