//! Reads steps for segmentation.

use super::super::Tx;
use crate::segmentation::{Step, StepId, StepRow, UnitId, WINDOW_STEPS};
use anyhow::Result;
use rusqlite::{OptionalExtension, Row, params};

/// Maximum parts of the work on a prompt to search for a subagent.
const PARTS: i64 = 64;

const STEP: &str = "SELECT id, work_unit_id, prompt_id, settled, started_at, features,
    (SELECT active FROM boundaries WHERE step_id = steps.id),
    (SELECT closed_by IS 'clear' FROM work_units WHERE id = steps.work_unit_id) FROM steps";
/// `STEP` without the columns for boundary decisions: every tool use runs this query.
const STEP_ALONE: &str = "SELECT id, work_unit_id, prompt_id, settled, started_at, features, NULL, NULL FROM steps";

fn step(row: &Row) -> rusqlite::Result<StepRow> {
    let features: Vec<u8> = row.get(5)?;
    Ok(StepRow {
        id: StepId::Stored(row.get(0)?),
        unit: UnitId::Stored(row.get(1)?),
        prompt: row.get(2)?,
        settled: row.get(3)?,
        // Features of an unknown version are ignored; the step itself remains.
        step: Step::from_bytes(&features).unwrap_or(Step::going_on(row.get(4)?)),
        boundary: row.get(6)?,
        cleared: row.get::<_, Option<bool>>(7)?.unwrap_or(false),
    })
}

impl Tx<'_> {
    /// The last steps of a session in order, enough for a window of whole turns.
    pub fn last_steps(&self, session: i64) -> Result<Vec<StepRow>> {
        let sql = format!("{STEP} WHERE session_id = ?1 ORDER BY prompt_id DESC, id DESC LIMIT ?2");
        let mut statement = self.tx.prepare_cached(&sql)?;
        let mut rows: Vec<StepRow> =
            statement.query_map(params![session, WINDOW_STEPS as i64], step)?.collect::<Result<_, _>>()?;
        rows.reverse();
        Ok(rows)
    }

    /// The last step of a prompt or, with `all`, its last 64, newest first. If it has none, the session's last step.
    pub fn steps_of_prompt(&self, session: i64, prompt: Option<i64>, all: bool) -> Result<Vec<StepRow>> {
        let sql = format!("{STEP_ALONE} WHERE session_id = ?1 AND prompt_id IS ?2 ORDER BY id DESC LIMIT ?3");
        let mut statement = self.tx.prepare_cached(&sql)?;
        let limit = if all { PARTS } else { 1 };
        let rows: Vec<StepRow> = statement.query_map(params![session, prompt, limit], step)?.collect::<Result<_, _>>()?;
        if !rows.is_empty() {
            return Ok(rows);
        }
        let sql = format!("{STEP_ALONE} WHERE session_id = ?1 ORDER BY prompt_id DESC, id DESC LIMIT 1");
        Ok(self.tx.prepare_cached(&sql)?.query_row([session], step).optional()?.into_iter().collect())
    }

    /// All steps of a unit, in order.
    pub(super) fn steps_of_unit(&self, session: i64, unit: i64) -> Result<Vec<StepRow>> {
        let sql = format!("{STEP} WHERE session_id = ?1 AND work_unit_id = ?2 ORDER BY prompt_id, id");
        Ok(self.tx.prepare_cached(&sql)?.query_map([session, unit], step)?.collect::<Result<_, _>>()?)
    }

    /// Whether a step is the session's last one.
    pub fn is_last_step(&self, session: i64, step: StepId) -> Result<bool> {
        let sql = "SELECT id FROM steps WHERE session_id = ?1 ORDER BY prompt_id DESC, id DESC LIMIT 1";
        let last: i64 = self.tx.prepare_cached(sql)?.query_row([session], |row| row.get(0))?;
        Ok(step == StepId::Stored(last))
    }
}
