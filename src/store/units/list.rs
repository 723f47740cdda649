//! Reads units: of a project, of a session, one.

use super::super::Store;
use crate::model::{BoundaryRow, Made, Millis, PhaseRow, Tokens, UnitFile, UnitRow};
use crate::segmentation::{Run, Step, fold};
use anyhow::Result;
use rusqlite::{OptionalExtension, Row, params};

/// Phases that are told of a unit.
const PHASES: usize = 6;

const UNIT: &str = "SELECT u.id, u.session_id, s.agent_session_id, u.state, u.closed_by, u.started_at, u.ended_at, u.intent,
    u.outcome, u.evidence,
    (SELECT content FROM memories m WHERE m.session_id = u.session_id AND m.rule_key IN ('summary:u' || u.id, 'model-summary:u' || u.id)
      AND m.superseded_by IS NULL ORDER BY m.id DESC LIMIT 1), u.distilled_seq FROM work_units u JOIN sessions s ON s.id = u.session_id";

/// What of a unit stands in its own row, and the last tool use that was distilled.
fn unit(row: &Row) -> rusqlite::Result<(UnitRow, Option<i64>)> {
    let unit = UnitRow {
        id: row.get(0)?,
        session: row.get(1)?,
        agent_session_id: row.get(2)?,
        state: row.get(3)?,
        closed_by: row.get(4)?,
        started_at: row.get(5)?,
        ended_at: row.get(6)?,
        active_ms: 0,
        intent: row.get(7)?,
        outcome: row.get(8)?,
        evidence: row.get(9)?,
        summary: row.get::<_, Option<String>>(10)?.and_then(|json| serde_json::from_str(&json).ok()),
        prompts: Vec::new(),
        tool_uses: 0,
        failures: 0,
        range: None,
        addendum: 0,
        phases: Vec::new(),
        files: Vec::new(),
        commits: Vec::new(),
        tokens: None,
        boundary: None,
        taken_back: Vec::new(),
    };
    Ok((unit, row.get(11)?))
}

/// One of a unit's steps, as far as it is told of.
struct StepFacts {
    started_at: Millis,
    ended_at: Millis,
    range: Option<(i64, i64)>,
    tool_uses: i64,
    failures: i64,
    prompt: Option<i64>,
    phases: Vec<Run>,
}

impl Store {
    /// The last units of a project (`None`: of all) that were at work after `since`, newest first; and how many there are.
    pub fn units_of_project(&self, project: Option<i64>, since: Option<Millis>, limit: usize) -> Result<(Vec<UnitRow>, usize)> {
        let sql = format!(
            "{UNIT} WHERE (?1 IS NULL OR s.project_id = ?1) AND (?2 IS NULL OR u.ended_at >= ?2) ORDER BY u.started_at DESC, u.id DESC"
        );
        let mut statement = self.conn.prepare_cached(&sql)?;
        let found: Vec<_> = statement.query_map(params![project, since], unit)?.collect::<Result<_, _>>()?;
        let count = found.len();
        Ok((found.into_iter().take(limit).map(|unit| self.whole(unit)).collect::<Result<_>>()?, count))
    }

    /// The units of a session, in order.
    pub fn units_of_session(&self, session: i64) -> Result<Vec<UnitRow>> {
        let sql = format!("{UNIT} WHERE u.session_id = ?1 ORDER BY u.started_at, u.id");
        let found: Vec<_> = self.conn.prepare_cached(&sql)?.query_map([session], unit)?.collect::<Result<_, _>>()?;
        found.into_iter().map(|unit| self.whole(unit)).collect()
    }

    /// The last units of a session, the newest first.
    pub fn last_units(&self, session: i64, limit: usize) -> Result<Vec<UnitRow>> {
        let sql = format!("{UNIT} WHERE u.session_id = ?1 ORDER BY u.id DESC LIMIT ?2");
        let found: Vec<_> =
            self.conn.prepare_cached(&sql)?.query_map([session, limit as i64], unit)?.collect::<Result<_, _>>()?;
        found.into_iter().map(|unit| self.whole(unit)).collect()
    }

    /// Reads one unit.
    pub fn unit_by_row(&self, id: i64) -> Result<Option<UnitRow>> {
        let sql = format!("{UNIT} WHERE u.id = ?1");
        let found = self.conn.prepare_cached(&sql)?.query_row([id], unit).optional()?;
        found.map(|unit| self.whole(unit)).transpose()
    }

    /// The unit that a tool use belongs to; `None` for one from before there were units.
    pub fn unit_of_tool_use(&self, id: i64) -> Result<Option<i64>> {
        let sql = "SELECT s.work_unit_id FROM tool_uses t JOIN steps s ON s.id = t.step_id WHERE t.id = ?1";
        Ok(self.conn.prepare_cached(sql)?.query_row([id], |row| row.get(0)).optional()?)
    }

    /// The unit in which a user's prompt stands.
    pub fn unit_of_prompt(&self, session: i64, id: i64) -> Result<Option<i64>> {
        let sql = "SELECT work_unit_id FROM steps WHERE session_id = ?1 AND prompt_id = ?2 ORDER BY id LIMIT 1";
        Ok(self.conn.prepare_cached(sql)?.query_row([session, id], |row| row.get(0)).optional()?)
    }

    /// Adds what a unit's steps, files, commits and boundaries say.
    fn whole(&self, (mut unit, distilled): (UnitRow, Option<i64>)) -> Result<UnitRow> {
        let key = [unit.session, unit.id];
        let steps = self.facts(key)?;
        unit.active_ms = steps.iter().map(|step| (step.ended_at - step.started_at).max(0)).sum();
        unit.tool_uses = steps.iter().map(|step| step.tool_uses).sum();
        unit.failures = steps.iter().map(|step| step.failures).sum();
        unit.prompts = steps.iter().filter_map(|step| step.prompt).collect();
        unit.prompts.dedup();
        let ranges = || steps.iter().filter_map(|step| step.range);
        unit.range = ranges().map(|range| range.0).min().zip(ranges().map(|range| range.1).max());
        let told = |run: Run| PhaseRow { phase: run.phase.name(), tool_uses: run.tool_uses, ms: run.ms };
        unit.phases = fold(steps.iter().flat_map(|step| step.phases.iter().copied()), PHASES).into_iter().map(told).collect();
        let sql = "SELECT f.path, sum(f.reads), sum(f.edits) FROM steps s JOIN step_files f ON f.step_id = s.id
                   WHERE s.session_id = ?1 AND s.work_unit_id = ?2 GROUP BY f.path ORDER BY 3 DESC, 2 DESC, 1";
        let file = |row: &Row| Ok(UnitFile { path: row.get(0)?, reads: row.get(1)?, edits: row.get(2)? });
        unit.files = self.conn.prepare_cached(sql)?.query_map(key, file)?.collect::<Result<_, _>>()?;
        unit.commits = self.commits_of(&unit)?;
        unit.tokens = self.tokens_of(&unit)?;
        if let Some(last) = distilled {
            let sql = "SELECT count(*) FROM tool_uses WHERE session_id = ?1 AND seq > ?3
                         AND step_id IN (SELECT id FROM steps WHERE session_id = ?1 AND work_unit_id = ?2)";
            unit.addendum = self.conn.prepare_cached(sql)?.query_row([unit.session, unit.id, last], |row| row.get(0))?;
        }
        self.boundaries(&mut unit)?;
        Ok(unit)
    }

    fn facts(&self, key: [i64; 2]) -> Result<Vec<StepFacts>> {
        let sql = "SELECT s.started_at, s.ended_at, s.first_seq, s.last_seq, s.tool_uses, s.failures, p.number, s.sketch
                   FROM steps s LEFT JOIN prompts p ON p.id = s.prompt_id WHERE s.session_id = ?1 AND s.work_unit_id = ?2
                   ORDER BY s.prompt_id, s.id";
        let facts = |row: &Row| {
            let sketch: Vec<u8> = row.get(7)?;
            Ok(StepFacts {
                started_at: row.get(0)?,
                ended_at: row.get(1)?,
                range: row.get::<_, Option<i64>>(2)?.zip(row.get(3)?),
                tool_uses: row.get(4)?,
                failures: row.get(5)?,
                prompt: row.get(6)?,
                phases: Step::from_bytes(&sketch).unwrap_or_default().phases,
            })
        };
        Ok(self.conn.prepare_cached(sql)?.query_map(key, facts)?.collect::<Result<_, _>>()?)
    }

    fn commits_of(&self, unit: &UnitRow) -> Result<Vec<Made>> {
        let Some((first, last)) = unit.range else { return Ok(Vec::new()) };
        let sql = "SELECT metadata -> 'commit' ->> 'sha', metadata -> 'commit' ->> 'subject' FROM tool_uses
                   WHERE session_id = ?1 AND seq BETWEEN ?3 AND ?4 AND command_kind = 'commit' AND metadata -> 'commit' IS NOT NULL
                     AND step_id IN (SELECT id FROM steps WHERE session_id = ?1 AND work_unit_id = ?2) ORDER BY seq";
        let made = |row: &Row| Ok(Made { sha: row.get(0)?, subject: row.get::<_, Option<String>>(1)?.unwrap_or_default() });
        Ok(self.conn.prepare_cached(sql)?.query_map([unit.session, unit.id, first, last], made)?.collect::<Result<_, _>>()?)
    }

    /// What its turns cost. A turn in which two units meet is counted to the one that it began in.
    fn tokens_of(&self, unit: &UnitRow) -> Result<Option<Tokens>> {
        let sql = "SELECT sum(a.input_tokens), sum(a.output_tokens), sum(a.cache_read_tokens), sum(a.cache_write_tokens)
                   FROM prompts a WHERE a.session_id = ?1 AND a.source = 'agent' AND a.input_tokens IS NOT NULL AND a.number IN
                     (SELECT p.number FROM steps s JOIN prompts p ON p.id = s.prompt_id WHERE s.session_id = ?1 AND s.work_unit_id = ?2
                        AND s.id = (SELECT min(id) FROM steps f WHERE f.session_id = ?1 AND f.prompt_id = s.prompt_id))";
        let tokens = |row: &Row| {
            let count = |i: usize| row.get::<_, Option<i64>>(i);
            Ok(count(0)?.map(|input| {
                Ok::<_, rusqlite::Error>(Tokens {
                    input,
                    output: count(1)?.unwrap_or(0),
                    cache_read: count(2)?.unwrap_or(0),
                    cache_write: count(3)?.unwrap_or(0),
                })
            }))
        };
        let found = self.conn.prepare_cached(sql)?.query_row([unit.session, unit.id], tokens)?;
        Ok(found.transpose()?)
    }

    fn boundaries(&self, unit: &mut UnitRow) -> Result<()> {
        let sql = "SELECT b.standing, p.number, s.first_seq, b.reason, b.score, b.signals, b.history,
                     s.id = (SELECT min(id) FROM steps f WHERE f.session_id = ?1 AND f.prompt_id IS s.prompt_id)
                   FROM steps s JOIN boundaries b ON b.step_id = s.id LEFT JOIN prompts p ON p.id = s.prompt_id
                   WHERE s.session_id = ?1 AND s.work_unit_id = ?2 ORDER BY s.prompt_id, s.id";
        let json = |text: Option<String>| text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let read = |row: &Row| {
            let at_prompt: bool = row.get(7)?;
            let boundary = BoundaryRow {
                prompt: row.get::<_, Option<i64>>(1)?.filter(|_| at_prompt),
                first_seq: row.get(2)?,
                reason: row.get(3)?,
                score: row.get(4)?,
                signals: json(row.get(5)?),
                history: json(row.get(6)?),
            };
            Ok((row.get::<_, bool>(0)?, boundary))
        };
        let mut statement = self.conn.prepare_cached(sql)?;
        for found in statement.query_map([unit.session, unit.id], read)? {
            match found? {
                (true, boundary) if unit.boundary.is_none() => unit.boundary = Some(boundary),
                (true, _) => {}
                (false, boundary) => unit.taken_back.push(boundary),
            }
        }
        Ok(())
    }

    /// The prompts and answers of a unit, and its tool uses. A prompt whose work it shares with another unit is not among them.
    pub fn rows_of_unit(&self, unit: &UnitRow) -> Result<(Vec<i64>, Vec<i64>)> {
        let ids = |sql: &str| -> Result<Vec<i64>> {
            let mut statement = self.conn.prepare(sql)?;
            Ok(statement.query_map([unit.session, unit.id], |row| row.get(0))?.collect::<Result<_, _>>()?)
        };
        let prompts = ids("SELECT a.id FROM prompts a WHERE a.session_id = ?1 AND a.number IN
                     (SELECT p.number FROM steps s JOIN prompts p ON p.id = s.prompt_id WHERE s.session_id = ?1
                      GROUP BY p.number HAVING min(s.work_unit_id) = ?2 AND max(s.work_unit_id) = ?2)")?;
        let tool_uses = ids("SELECT id FROM tool_uses WHERE session_id = ?1
                     AND step_id IN (SELECT id FROM steps WHERE session_id = ?1 AND work_unit_id = ?2)")?;
        Ok((prompts, tool_uses))
    }

    /// The numbers of the prompts at which a unit was said to begin when they came.
    pub fn inline_starts(&self, session: i64) -> Result<Vec<i64>> {
        let sql = "SELECT p.number FROM steps s JOIN boundaries b ON b.step_id = s.id JOIN prompts p ON p.id = s.prompt_id
                   WHERE s.session_id = ?1 AND b.at_prompt AND b.score IS NOT NULL ORDER BY p.number";
        Ok(self.conn.prepare_cached(sql)?.query_map([session], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }
}
