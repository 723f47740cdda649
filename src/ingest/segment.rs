//! Step 6: assigns stored rows to work units. `segmentation` decides; this module reads its input and saves its changes
//! in the event's transaction.

use super::stored::StoredRows;
use crate::model::{ClosedBy, Millis};
use crate::segmentation::{self, StepRow, StoredToolUse, is_due};
use crate::store::Tx;
use anyhow::Result;

/// Assigns the rows of an event to steps and units.
pub fn segment(tx: &Tx, stored: &StoredRows) -> Result<()> {
    match *stored {
        StoredRows::Nothing => Ok(()),
        StoredRows::Prompt { session, row, text, at } => {
            let rows = tx.last_steps(session)?;
            tx.save(session, &segmentation::begin_prompt(rows, row, text, at))
        }
        StoredRows::ToolUse { session, ref step, used } => tool_use(tx, session, step, used),
        StoredRows::TurnEnd { session, prompt, closing, is_new, at } => {
            let Some(step) = tx.steps_of_prompt(session, prompt, false)?.pop() else { return Ok(()) };
            if let Some(closing) = closing {
                tx.save(session, &segmentation::close_turn(step, closing, is_new, at))?;
            }
            judge(tx, session, at)
        }
        StoredRows::UnitClosed { session, by, at } => close(tx, session, by, at),
    }
}

/// Closes a session's last unit, provisionally.
pub fn close(tx: &Tx, session: i64, by: ClosedBy, at: Millis) -> Result<()> {
    let rows = tx.last_steps(session)?;
    tx.save(session, &segmentation::close(rows, by, at))
}

fn tool_use(tx: &Tx, session: i64, step: &StepRow, used: StoredToolUse) -> Result<()> {
    let cut = segmentation::cuts(step, used.tool) && tx.is_last_step(session, step.id)?;
    let changes = segmentation::add_tool_use(step.clone(), used, cut);
    tx.save(session, &changes)?;
    if changes.used.is_some_and(|used| is_due(&used.features)) { judge(tx, session, used.at) } else { Ok(()) }
}

fn judge(tx: &Tx, session: i64, at: Millis) -> Result<()> {
    let rows = tx.last_steps(session)?;
    tx.save(session, &segmentation::judge(rows, at))
}

/// Runs segmentation once more at the end of a recorded stream whose session continues elsewhere.
pub fn end_of_stream(tx: &Tx, session: i64, at: Millis) -> Result<()> {
    judge(tx, session, at)
}

/// Rebuilds a session's steps and units after some of its rows were forgotten.
pub fn recount(tx: &Tx, session: i64) -> Result<()> {
    for unit in tx.recount_steps(session)? {
        let recounted = unit.steps.into_iter().map(|(row, left)| {
            let step = segmentation::recount_step(row.step.clone(), left);
            StepRow { step, ..row }
        });
        tx.save(session, &segmentation::recount_unit(recounted.collect(), unit.unit, unit.over))?;
    }
    Ok(())
}
