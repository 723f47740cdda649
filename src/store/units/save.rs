//! Writes the changes that segmentation decided, and assigns ids to new rows.

use super::super::Tx;
use crate::model::Millis;
use crate::segmentation::{BoundaryChange, Changes, Intent, Step, StepId, ToolUseInStep, UnitChange, UnitId};
use anyhow::{Context, Result};
use rusqlite::{named_params, params};

/// Maximum bytes of an intent.
const INTENT: i64 = 300;

/// Ids of the new rows.
struct Ids {
    units: Vec<i64>,
    step: Option<i64>,
}

impl Ids {
    fn unit(&self, unit: UnitId) -> Result<i64> {
        match unit {
            UnitId::Stored(id) => Ok(id),
            UnitId::New(at) => self.units.get(at).copied().context("a unit that was not opened"),
        }
    }

    fn step(&self, step: StepId) -> Result<i64> {
        match step {
            StepId::Stored(id) => Ok(id),
            StepId::New => self.step.context("a step that was not inserted"),
        }
    }
}

impl Tx<'_> {
    /// Writes a session's changes.
    pub fn save(&self, session: i64, changes: &Changes) -> Result<()> {
        let mut ids = Ids { units: Vec::new(), step: None };
        for at in &changes.opened {
            ids.units.push(self.open_unit(session, *at)?);
        }
        if let Some(new) = &changes.inserted {
            let sql = "INSERT INTO steps(session_id, work_unit_id, prompt_id, started_at, ended_at, settled, features)
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
            let unit = ids.unit(new.unit)?;
            let values = params![session, unit, new.prompt, new.step.at, new.step.until, new.settled, new.step.to_bytes()];
            self.tx.prepare_cached(sql)?.execute(values)?;
            ids.step = Some(self.tx.last_insert_rowid());
        }
        if let Some(used) = &changes.used {
            self.count_tool_use(ids.step(used.step)?, used)?;
        }
        for (step, features) in &changes.steps {
            self.save_features(ids.step(*step)?, features)?;
        }
        for (step, unit) in &changes.moved {
            let sql = "UPDATE steps SET work_unit_id = ?2 WHERE id = ?1";
            self.tx.prepare_cached(sql)?.execute([ids.step(*step)?, ids.unit(*unit)?])?;
        }
        for boundary in &changes.boundaries {
            self.save_boundary(ids.step(boundary.step)?, boundary)?;
        }
        for change in &changes.units {
            self.save_unit(ids.unit(change.unit)?, change)?;
        }
        for unit in &changes.emptied {
            self.unindex_unit(*unit)?;
            self.tx.prepare_cached("DELETE FROM work_units WHERE id = ?1")?.execute([unit])?;
        }
        for step in &changes.settled {
            self.tx.prepare_cached("UPDATE steps SET settled = 1 WHERE id = ?1")?.execute([ids.step(*step)?])?;
        }
        if let Some((unit, by)) = changes.closed {
            let sql = "UPDATE work_units SET closed_by = ?2 WHERE id = ?1 AND state <> 'distilled'";
            self.tx.prepare_cached(sql)?.execute(params![ids.unit(unit)?, by.name()])?;
        }
        if let Some(unit) = changes.said_in {
            self.tx.prepare_cached("UPDATE work_units SET rules_due = 1 WHERE id = ?1")?.execute([ids.unit(unit)?])?;
        }
        Ok(())
    }

    fn open_unit(&self, session: i64, at: Millis) -> Result<i64> {
        let sql = "INSERT INTO work_units(session_id, state, started_at, ended_at) VALUES (?1, 'open', ?2, ?2)";
        self.tx.prepare_cached(sql)?.execute([session, at])?;
        Ok(self.tx.last_insert_rowid())
    }

    fn save_features(&self, id: i64, step: &Step) -> Result<()> {
        let sql = "UPDATE steps SET features = ?2, ended_at = max(ended_at, ?3) WHERE id = ?1";
        self.tx.prepare_cached(sql)?.execute(params![id, step.to_bytes(), step.until])?;
        Ok(())
    }

    fn count_tool_use(&self, step: i64, used: &ToolUseInStep) -> Result<()> {
        if let Some(tool_use) = used.reassigned {
            self.tx.prepare_cached("UPDATE tool_uses SET step_id = ?2 WHERE id = ?1")?.execute([tool_use, step])?;
        }
        let sql = "UPDATE steps SET ended_at = max(ended_at, ?2), first_seq = coalesce(first_seq, ?3), last_seq = ?3,
                     tool_uses = tool_uses + 1, failures = failures + ?4, features = ?5 WHERE id = ?1";
        self.tx.prepare_cached(sql)?.execute(params![step, used.at, used.seq, used.failed, used.features.to_bytes()])?;
        if let Some(file) = &used.file {
            let sql = "INSERT INTO step_files(step_id, path, reads, edits) VALUES (?1, ?2, ?3, ?4)
                       ON CONFLICT DO UPDATE SET reads = reads + excluded.reads, edits = edits + excluded.edits";
            self.tx.prepare_cached(sql)?.execute(params![step, file.path, file.reads, file.edits])?;
        }
        Ok(())
    }

    fn save_boundary(&self, step: i64, boundary: &BoundaryChange) -> Result<()> {
        let sql = "INSERT INTO boundaries(step_id, reason, score, signals, at_prompt, active, history)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, json_array(json(?7)))
                   ON CONFLICT DO UPDATE SET reason = ?2, score = ?3, signals = ?4, active = ?6,
                     history = CASE WHEN ?7 IS NULL THEN history ELSE json_insert(history, '$[#]', json(?7)) END";
        self.tx.prepare_cached(sql)?.execute(params![
            step,
            boundary.reason,
            boundary.score,
            boundary.signals.as_ref().map(ToString::to_string),
            boundary.at_prompt,
            boundary.stands,
            boundary.history.as_ref().map(ToString::to_string),
        ])?;
        Ok(())
    }

    fn save_unit(&self, id: i64, change: &UnitChange) -> Result<()> {
        let intent = match change.intent {
            Intent::Unchanged => None,
            Intent::Prompt(prompt) => self.beginning_of_prompt(prompt)?,
            Intent::WorkFrom(step) => self.name_of_work(id, step)?,
        };
        let sql = "UPDATE work_units SET ended_at = max(:ended, CASE WHEN :before THEN ended_at ELSE 0 END),
                     started_at = CASE WHEN :before THEN started_at ELSE :started END,
                     intent = CASE WHEN :before THEN intent ELSE :intent END,
                     evidence = CASE WHEN :before AND outcome = 'done' AND :outcome IN ('answered', 'unknown') THEN evidence ELSE :evidence END,
                     outcome = CASE WHEN :before AND outcome = 'done' AND :outcome IN ('answered', 'unknown') THEN outcome ELSE :outcome END,
                     state = CASE WHEN state = 'distilled' THEN state WHEN :over THEN 'closed' ELSE 'open' END,
                     closed_by = CASE WHEN NOT :over THEN NULL WHEN closed_by IS NULL THEN 'boundary' ELSE closed_by END,
                     rules_due = rules_due OR outcome IS NOT :outcome OR evidence IS NOT :evidence WHERE id = :id";
        self.tx.prepare_cached(sql)?.execute(named_params! {
            ":id": id, ":before": !change.whole, ":started": change.started, ":ended": change.ended, ":intent": intent,
            ":outcome": change.outcome.name(), ":evidence": change.evidence, ":over": change.over,
        })?;
        Ok(())
    }

    fn beginning_of_prompt(&self, prompt: i64) -> Result<Option<String>> {
        let sql = "SELECT substr(text, 1, ?2) FROM prompts WHERE id = ?1";
        let mut statement = self.tx.prepare_cached(sql)?;
        Ok(statement.query_map([prompt, INTENT], |row| row.get(0))?.next().transpose()?)
    }

    /// A name for work without a prompt: the subject of its commit, or the description of its first command.
    fn name_of_work(&self, unit: i64, first_step: i64) -> Result<Option<String>> {
        let sql = "SELECT coalesce(t.metadata -> 'commit' ->> 'subject', t.metadata ->> 'description', t.content)
                   FROM steps s JOIN tool_uses t ON t.session_id = s.session_id AND t.seq BETWEEN s.first_seq AND s.last_seq
                     AND (t.kind IN ('edit', 'write', 'command') OR t.succeeded = 0) AND t.step_id = s.id
                   WHERE s.id >= ?1 AND s.session_id = (SELECT session_id FROM steps WHERE id = ?1) AND s.work_unit_id = ?2
                   ORDER BY t.metadata -> 'commit' ->> 'subject' IS NULL, t.seq LIMIT 1";
        let mut statement = self.tx.prepare_cached(sql)?;
        Ok(statement.query_map([first_step, unit], |row| row.get(0))?.next().transpose()?.flatten())
    }
}
