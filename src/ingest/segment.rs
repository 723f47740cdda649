//! Step 6: what was stored goes into work units. Rows are read from the store, `segmentation` decides, its changes are
//! saved: all in the transaction of the event.

use super::stored::Stored;
use crate::model::{ClosedBy, Millis};
use crate::segmentation::{self, StepRow, StoredToolUse, is_due};
use crate::store::Tx;
use anyhow::Result;

/// Assigns what was stored of an event to steps and units.
pub fn segment(tx: &Tx, stored: &Stored) -> Result<()> {
    match *stored {
        Stored::Nothing => Ok(()),
        Stored::Prompt { session, row, text, at } => {
            let rows = tx.last_steps(session)?;
            tx.save(session, &segmentation::begin_prompt(rows, row, text, at))
        }
        Stored::ToolUse { session, ref step, used } => tool_use(tx, session, step, used),
        Stored::TurnEnd { session, prompt, closing, is_new, at } => {
            let Some(step) = tx.steps_of_prompt(session, prompt, false)?.pop() else { return Ok(()) };
            if let Some(closing) = closing {
                tx.save(session, &segmentation::close_turn(step, closing, is_new, at))?;
            }
            judge(tx, session, at)
        }
        Stored::UnitClosed { session, by, at } => close(tx, session, by, at),
    }
}

/// Closes a session's last unit, for the time being.
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

/// A recorded stream is over, and its session goes on somewhere else: what is known is judged once more.
pub fn end_of_stream(tx: &Tx, session: i64, at: Millis) -> Result<()> {
    judge(tx, session, at)
}

/// Rows of a session were forgotten: its steps and units are counted and summed up again.
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
