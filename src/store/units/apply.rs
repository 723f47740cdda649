//! Has units and boundaries follow the judgments, and keeps what a unit came to.

use super::super::Tx;
use super::judge::Group;
use super::steps::{STEPS_AT_HAND, StepRow};
use crate::model::{Kind, Millis, ToolUse};
use crate::units::{Judgment, Moment, Step, Weights, outcome, reason};
use anyhow::Result;
use rusqlite::{OptionalExtension, named_params, params};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Bytes of an intent.
const INTENT: i64 = 300;
/// Words of a prompt that must say something, for it to tell what a unit is about.
const MEANING: u16 = 3;

impl Tx<'_> {
    /// Moves steps to the units that the judgments make of them; writes down what was decided and what was taken back.
    pub(super) fn follow(
        &self,
        session: i64,
        rows: &mut [StepRow],
        groups: &[Group],
        judgments: &[Judgment],
        weights: &Weights,
        at: Millis,
    ) -> Result<()> {
        let mut touched: BTreeSet<i64> = rows.last().map(|row| row.unit).into_iter().collect();
        for judgment in judgments {
            let first = groups[judgment.at].rows.start;
            let before = rows[first - 1].unit;
            let was = rows[first].unit;
            let began = was != before && !rows[..first].iter().any(|row| row.unit == was);
            let unit = match (judgment.boundary, began) {
                (false, _) => before,
                (true, true) => was,
                (true, false) => self.open_unit(session, rows[first].step.at)?,
            };
            touched.extend([before, was, unit]);
            self.write_down(rows[first].id, judgment, weights, at)?;
            for row in &mut rows[groups[judgment.at].rows.clone()] {
                if row.unit != unit {
                    row.unit = unit;
                    self.tx.prepare_cached("UPDATE steps SET work_unit_id = ?2 WHERE id = ?1")?.execute([row.id, unit])?;
                }
            }
        }
        let last = rows.last().map(|row| row.unit);
        for unit in touched {
            if rows.iter().any(|row| row.unit == unit) {
                let whole = rows[0].unit != unit || rows.len() < STEPS_AT_HAND;
                self.refresh_unit(unit, rows, whole, Some(unit) != last)?;
            } else {
                self.unindex_unit(unit)?;
                self.tx.prepare_cached("DELETE FROM work_units WHERE id = ?1")?.execute([unit])?;
            }
        }
        Ok(())
    }

    /// A unit that begins where nothing has to be weighed.
    pub(super) fn begin_without_judgment(&self, step: i64, reason: &str, at: Millis) -> Result<()> {
        let sql = "INSERT INTO boundaries(step_id, reason, at_prompt, standing, history) VALUES (?1, ?2, 1, 1, ?3)";
        let history = json!([{"at": at, "what": "decided"}]).to_string();
        self.tx.prepare_cached(sql)?.execute(params![step, reason, history])?;
        Ok(())
    }

    fn write_down(&self, step: i64, judgment: &Judgment, weights: &Weights, at: Millis) -> Result<()> {
        let sql = "SELECT standing, history FROM boundaries WHERE step_id = ?1";
        let known = self.tx.prepare_cached(sql)?.query_row([step], |row| Ok((row.get::<_, bool>(0)?, row.get::<_, String>(1)?)));
        let known = known.optional()?;
        let what = match (&known, judgment.boundary) {
            (None, false) => return Ok(()),
            (None, true) if judgment.moment == Moment::Prompt => Some("decided"),
            (None, true) => Some("found by what followed"),
            (Some((true, _)), false) => Some("taken back by what followed"),
            (Some((false, _)), true) => Some("found again"),
            _ => None,
        };
        let rounded = |x: f32| (f64::from(x) * 1000.0).round() / 1000.0;
        let mut history: Vec<Value> = known.and_then(|(_, json)| serde_json::from_str(&json).ok()).unwrap_or_default();
        history.extend(what.map(|what| json!({"at": at, "what": what, "score": rounded(judgment.score)})));
        let told = judgment.told(weights).into_iter();
        let signals: Map<String, Value> = told
            .map(|t| {
                (t.signal.to_string(), json!({"value": rounded(t.value), "weight": rounded(t.weight), "adds": rounded(t.adds)}))
            })
            .collect();
        let sql = "INSERT INTO boundaries(step_id, reason, score, signals, at_prompt, standing, history) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                   ON CONFLICT DO UPDATE SET reason = ?2, score = ?3, signals = ?4, standing = ?6, history = ?7";
        self.tx.prepare_cached(sql)?.execute(params![
            step,
            reason(judgment, weights),
            rounded(judgment.score),
            Value::from(signals).to_string(),
            judgment.moment == Moment::Prompt,
            judgment.boundary,
            Value::from(history).to_string(),
        ])?;
        Ok(())
    }

    /// Writes what a unit came to, by its steps at hand; `over`: another one has begun after it, or its session has ended.
    /// Where they may not be the `whole` of it, its beginning stays as it stands, and so does what was done.
    pub(super) fn refresh_unit(&self, unit: i64, rows: &[StepRow], whole: bool, over: bool) -> Result<()> {
        let steps: Vec<&StepRow> = rows.iter().filter(|row| row.unit == unit).collect();
        let (outcome, evidence) = outcome(&steps.iter().map(|row| &row.step).collect::<Vec<_>>(), over);
        let says = |least: u16| {
            let asked =
                steps.iter().filter(|row| row.step.asked.as_ref().is_some_and(|asked| asked.meaning >= least || asked.command));
            asked.filter_map(|row| row.prompt).next()
        };
        let intent = match says(MEANING).or_else(|| says(0)) {
            _ if !whole => None,
            Some(prompt) => self.text_of(prompt)?,
            None => self.name_of_work(unit, &steps)?,
        };
        let sql = "UPDATE work_units SET ended_at = max(:ended, CASE WHEN :before THEN ended_at ELSE 0 END),
                     started_at = CASE WHEN :before THEN started_at ELSE :started END,
                     intent = CASE WHEN :before THEN intent ELSE :intent END,
                     evidence = CASE WHEN :before AND outcome = 'done' AND :outcome IN ('answered', 'unknown') THEN evidence ELSE :evidence END,
                     outcome = CASE WHEN :before AND outcome = 'done' AND :outcome IN ('answered', 'unknown') THEN outcome ELSE :outcome END,
                     state = CASE WHEN state = 'distilled' THEN state WHEN :over THEN 'closed' ELSE 'open' END,
                     closed_by = CASE WHEN NOT :over THEN NULL WHEN closed_by IS NULL THEN 'boundary' ELSE closed_by END,
                     rules_due = rules_due OR outcome IS NOT :outcome OR evidence IS NOT :evidence WHERE id = :id";
        let (started, ended) = (steps.iter().map(|row| row.step.at).min(), steps.iter().map(|row| row.step.until).max());
        self.tx.prepare_cached(sql)?.execute(named_params! {
            ":id": unit, ":before": !whole, ":started": started.unwrap_or(0), ":ended": ended.unwrap_or(0), ":intent": intent,
            ":outcome": outcome.name(), ":evidence": evidence, ":over": over,
        })?;
        Ok(())
    }

    /// What is left of a session's units after rows of it were forgotten. A step without a prompt and without tool uses
    /// goes, and a unit without steps.
    pub(in crate::store) fn recount_units(&self, session: i64) -> Result<()> {
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
        let mut units = self.tx.prepare_cached("SELECT id, state <> 'open' FROM work_units WHERE session_id = ?1")?;
        let units: Vec<(i64, bool)> =
            units.query_map([session], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
        for (unit, over) in units {
            let mut rows = self.steps_of_unit(session, unit)?;
            for row in &mut rows {
                self.recount_step(session, row)?;
            }
            self.tx.execute("UPDATE work_units SET intent = NULL WHERE id = ?1", [unit])?;
            self.refresh_unit(unit, &rows, true, over)?;
        }
        Ok(())
    }

    /// Counts a step's tool uses anew; what it was compared by goes.
    fn recount_step(&self, session: i64, row: &mut StepRow) -> Result<()> {
        let old = std::mem::take(&mut row.step);
        let said = Step { asked: old.asked, closed: old.closed, asks: old.asks, says_done: old.says_done, ..Step::default() };
        row.step = Step { at: old.at, until: old.at, ..said };
        let sql = "SELECT kind, command_kind, succeeded, metadata, content, received_at FROM tool_uses
                   WHERE session_id = ?1 AND step_id = ?2 ORDER BY seq";
        let word = |word: Option<String>| Value::from(word.unwrap_or_default());
        let mut statement = self.tx.prepare_cached(sql)?;
        let tools = statement.query_map([session, row.id], |row| {
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
            Ok((tool, row.get::<_, Millis>(5)?))
        })?;
        for tool in tools {
            let (tool, at) = tool?;
            row.step.used(&tool, at);
        }
        row.step.until = row.step.until.max(old.until);
        row.step.fade();
        self.update_sketch(row.id, &row.step)
    }

    fn text_of(&self, prompt: i64) -> Result<Option<String>> {
        let sql = "SELECT substr(text, 1, ?2) FROM prompts WHERE id = ?1";
        Ok(self.tx.prepare_cached(sql)?.query_row([prompt, INTENT], |row| row.get(0)).optional()?)
    }

    /// What work without a prompt is called: the subject of its commit, or what its first command was said to do.
    fn name_of_work(&self, unit: i64, steps: &[&StepRow]) -> Result<Option<String>> {
        let Some(first) = steps.first() else { return Ok(None) };
        let sql = "SELECT coalesce(t.metadata -> 'commit' ->> 'subject', t.metadata ->> 'description', t.content)
                   FROM steps s JOIN tool_uses t ON t.session_id = s.session_id AND t.seq BETWEEN s.first_seq AND s.last_seq
                     AND (t.kind IN ('edit', 'write', 'command') OR t.succeeded = 0) AND t.step_id = s.id
                   WHERE s.id >= ?1 AND s.session_id = (SELECT session_id FROM steps WHERE id = ?1) AND s.work_unit_id = ?2
                   ORDER BY t.metadata -> 'commit' ->> 'subject' IS NULL, t.seq LIMIT 1";
        Ok(self.tx.prepare_cached(sql)?.query_row([first.id, unit], |row| row.get(0)).optional()?.flatten())
    }
}
