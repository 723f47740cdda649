//! Rows of steps and units.

use super::super::Tx;
use crate::model::Millis;
use crate::units::{Step, WINDOW};
use anyhow::Result;
use rusqlite::{OptionalExtension, Row, params};

/// A step as it is stored.
#[derive(Debug)]
pub struct StepRow {
    pub id: i64,
    pub unit: i64,
    pub prompt: Option<i64>,
    pub settled: bool,
    pub step: Step,
}

/// Steps that are read for a judgment: a window of whole turns, some of them in parts.
pub(super) const STEPS_AT_HAND: usize = WINDOW + WINDOW / 2;

const STEP: &str = "SELECT id, work_unit_id, prompt_id, settled, started_at, sketch FROM steps";

fn step(row: &Row) -> rusqlite::Result<StepRow> {
    let sketch: Vec<u8> = row.get(5)?;
    // A sketch of another version tells nothing, and the step is still there.
    let step = Step::from_bytes(&sketch).unwrap_or(Step::going_on(row.get(4)?));
    Ok(StepRow { id: row.get(0)?, unit: row.get(1)?, prompt: row.get(2)?, settled: row.get(3)?, step })
}

impl Tx<'_> {
    /// The last steps of a session, in order; enough of them that a window of whole turns is among them.
    pub(super) fn last_steps(&self, session: i64) -> Result<Vec<StepRow>> {
        let sql = format!("{STEP} WHERE session_id = ?1 ORDER BY prompt_id DESC, id DESC LIMIT ?2");
        let mut statement = self.tx.prepare_cached(&sql)?;
        let mut rows: Vec<StepRow> =
            statement.query_map(params![session, STEPS_AT_HAND as i64], step)?.collect::<Result<_, _>>()?;
        rows.reverse();
        Ok(rows)
    }

    /// All steps of a unit, in order.
    pub(super) fn steps_of_unit(&self, session: i64, unit: i64) -> Result<Vec<StepRow>> {
        let sql = format!("{STEP} WHERE session_id = ?1 AND work_unit_id = ?2 ORDER BY prompt_id, id");
        Ok(self.tx.prepare_cached(&sql)?.query_map([session, unit], step)?.collect::<Result<_, _>>()?)
    }

    /// The step that goes on with a prompt: its last part, or the one that a subagent was started from. Where the prompt
    /// has no step, the session's last one.
    pub(super) fn step_of(&self, session: i64, prompt: Option<i64>, agent: Option<&str>) -> Result<Option<StepRow>> {
        let sql = format!("{STEP} WHERE session_id = ?1 AND prompt_id IS ?2 ORDER BY id DESC LIMIT 64");
        let mut statement = self.tx.prepare_cached(&sql)?;
        let mut parts = statement.query_map(params![session, prompt], step)?;
        let Some(last) = parts.next().transpose()? else {
            let sql = format!("{STEP} WHERE session_id = ?1 ORDER BY prompt_id DESC, id DESC LIMIT 1");
            return Ok(self.tx.prepare_cached(&sql)?.query_row([session], step).optional()?);
        };
        let Some(agent) = agent else { return Ok(Some(last)) };
        let mut earlier: Vec<StepRow> = parts.collect::<Result<_, _>>()?;
        let own = earlier.iter().rposition(|part| part.step.knows_agent(agent));
        Ok(Some(own.map_or(last, |at| earlier.swap_remove(at))))
    }

    /// Whether nothing came after a step: only the last one is cut.
    pub(super) fn is_last_step(&self, session: i64, step: i64) -> Result<bool> {
        let sql = "SELECT id FROM steps WHERE session_id = ?1 ORDER BY prompt_id DESC, id DESC LIMIT 1";
        let last: i64 = self.tx.prepare_cached(sql)?.query_row([session], |row| row.get(0))?;
        Ok(last == step)
    }

    pub(super) fn insert_step(&self, session: i64, unit: i64, prompt: Option<i64>, step: &Step, settled: bool) -> Result<i64> {
        let sql = "INSERT INTO steps(session_id, work_unit_id, prompt_id, started_at, ended_at, settled, sketch)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let values = params![session, unit, prompt, step.at, step.until, settled, step.to_bytes()];
        self.tx.prepare_cached(sql)?.execute(values)?;
        Ok(self.tx.last_insert_rowid())
    }

    pub(super) fn update_sketch(&self, id: i64, step: &Step) -> Result<()> {
        let sql = "UPDATE steps SET sketch = ?2, ended_at = max(ended_at, ?3) WHERE id = ?1";
        self.tx.prepare_cached(sql)?.execute(params![id, step.to_bytes(), step.until])?;
        Ok(())
    }

    /// What is far behind keeps its counts, and loses the words it was compared by.
    pub(super) fn fade(&self, row: &StepRow) -> Result<()> {
        let mut step = row.step.clone();
        step.fade();
        self.update_sketch(row.id, &step)
    }

    pub(super) fn settle(&self, id: i64) -> Result<()> {
        self.tx.prepare_cached("UPDATE steps SET settled = 1 WHERE id = ?1")?.execute([id])?;
        Ok(())
    }

    pub(super) fn settle_all(&self, session: i64) -> Result<()> {
        self.tx.prepare_cached("UPDATE steps SET settled = 1 WHERE session_id = ?1 AND settled = 0")?.execute([session])?;
        Ok(())
    }

    pub(super) fn open_unit(&self, session: i64, at: Millis) -> Result<i64> {
        let sql = "INSERT INTO work_units(session_id, state, started_at, ended_at) VALUES (?1, 'open', ?2, ?2)";
        self.tx.prepare_cached(sql)?.execute([session, at])?;
        Ok(self.tx.last_insert_rowid())
    }

    /// Whether the person cleared the conversation after this unit.
    pub(super) fn was_cleared(&self, unit: i64) -> Result<bool> {
        let sql = "SELECT 1 FROM work_units WHERE id = ?1 AND closed_by = 'clear'";
        Ok(self.tx.prepare_cached(sql)?.exists([unit])?)
    }
}
