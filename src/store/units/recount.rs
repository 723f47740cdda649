//! Recounts a session's steps after some of its rows were forgotten.

use super::super::Tx;
use crate::model::{Kind, Millis, ToolUse};
use crate::segmentation::{StepId, StepRow};
use anyhow::Result;
use rusqlite::Row;
use serde_json::Value;

/// A unit to rebuild: its steps in order, each with its remaining tool uses.
#[derive(Debug)]
pub struct UnitToRecount {
    pub unit: i64,
    /// True if another unit has begun after it, or its session has ended.
    pub over: bool,
    pub steps: Vec<(StepRow, Vec<(ToolUse, Millis)>)>,
}

impl Tx<'_> {
    /// Updates the counts and files of a session's steps. Deletes steps without prompt and tool uses, and units without
    /// steps. Returns the remaining units.
    pub fn recount_steps(&self, session: i64) -> Result<Vec<UnitToRecount>> {
        let steps = "SELECT id FROM steps WHERE session_id = ?1";
        self.tx.execute(&format!("DELETE FROM step_files WHERE step_id IN ({steps})"), [session])?;
        let sql = "INSERT INTO step_files(step_id, path, reads, edits)
                   SELECT step_id, path, sum(kind = 'read'), sum(kind IN ('edit', 'write') AND succeeded IS NOT 0) FROM tool_uses
                   WHERE session_id = ?1 AND step_id IS NOT NULL AND path IS NOT NULL AND kind IN ('read', 'edit', 'write') GROUP BY 1, 2";
        self.tx.execute(sql, [session])?;
        let sql = "UPDATE steps SET (tool_uses, failures, first_seq, last_seq) =
                     (SELECT count(*), count(*) FILTER (WHERE succeeded = 0), min(seq), max(seq) FROM tool_uses t
                      WHERE t.session_id = ?1 AND t.step_id = steps.id) WHERE session_id = ?1";
        self.tx.execute(sql, [session])?;
        let gone = "session_id = ?1 AND tool_uses = 0 AND NOT EXISTS (SELECT 1 FROM prompts WHERE prompts.id = steps.prompt_id)";
        self.tx.execute(&format!("DELETE FROM boundaries WHERE step_id IN (SELECT id FROM steps WHERE {gone})"), [session])?;
        self.tx.execute(&format!("DELETE FROM steps WHERE {gone}"), [session])?;
        let sql =
            "DELETE FROM work_units WHERE session_id = ?1 AND id NOT IN (SELECT work_unit_id FROM steps WHERE session_id = ?1)";
        self.tx.execute(sql, [session])?;
        // Intent and title are derived again from the remaining rows.
        self.tx.execute("UPDATE work_units SET intent = NULL, title = NULL WHERE session_id = ?1", [session])?;
        let mut units = self.tx.prepare_cached("SELECT id, state <> 'open' FROM work_units WHERE session_id = ?1")?;
        let units: Vec<(i64, bool)> =
            units.query_map([session], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
        let whole = |(unit, over)| {
            let rows = self.steps_of_unit(session, unit)?;
            let steps = rows.into_iter().map(|row| self.tool_uses_of_step(session, row.id).map(|tools| (row, tools)));
            Ok(UnitToRecount { unit, over, steps: steps.collect::<Result<_>>()? })
        };
        units.into_iter().map(whole).collect()
    }

    fn tool_uses_of_step(&self, session: i64, step: StepId) -> Result<Vec<(ToolUse, Millis)>> {
        let StepId::Stored(step) = step else { return Ok(Vec::new()) };
        let sql = "SELECT kind, command_kind, succeeded, metadata, content, received_at FROM tool_uses
                   WHERE session_id = ?1 AND step_id = ?2 ORDER BY seq";
        let mut statement = self.tx.prepare_cached(sql)?;
        Ok(statement.query_map([session, step], tool_use)?.collect::<Result<_, _>>()?)
    }
}

/// The parts of a tool use that its step counts.
fn tool_use(row: &Row) -> rusqlite::Result<(ToolUse, Millis)> {
    let word = |word: Option<String>| Value::from(word.unwrap_or_default());
    let metadata: Option<String> = row.get(3)?;
    let tool = ToolUse {
        id: None,
        name: String::new(),
        kind: serde_json::from_value(word(row.get(0)?)).unwrap_or(Kind::Other),
        command: serde_json::from_value(word(row.get(1)?)).ok(),
        path: None,
        content: row.get(4)?,
        input: None,
        outcome: None,
        succeeded: row.get(2)?,
        source_event: String::new(),
        metadata: metadata.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default(),
        tasks: None,
    };
    Ok((tool, row.get(5)?))
}
