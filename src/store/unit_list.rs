//! Lists work units with their totals.

use super::Store;
use crate::model::{BoundaryRow, Millis, PhaseRow, SearchScope, Tokens, UnitCommit, UnitFile, UnitRow};
use crate::segmentation::{PhaseRun, Step, fold};
use anyhow::Result;
use rusqlite::{OptionalExtension, Row, params};
use std::collections::{BTreeSet, HashMap};

/// Maximum phases per unit.
const PHASES: usize = 6;

const UNIT: &str = "SELECT u.id, u.session_id, s.agent_session_id, u.state, u.closed_by, u.started_at, u.ended_at, u.intent,
    u.outcome, u.evidence,
    (SELECT content FROM memories m WHERE m.session_id = u.session_id AND m.rule_key IN ('summary:u' || u.id, 'model-summary:u' || u.id)
      AND m.superseded_by IS NULL ORDER BY m.id DESC LIMIT 1), u.distilled_seq, u.title, s.platform FROM work_units u JOIN sessions s ON s.id = u.session_id";

/// The columns of a unit's own row, and its last distilled tool use.
fn unit(row: &Row) -> rusqlite::Result<(UnitRow, Option<i64>)> {
    let unit = UnitRow {
        id: row.get(0)?,
        session: row.get(1)?,
        agent_session_id: row.get(2)?,
        platform: row.get(13)?,
        state: row.get(3)?,
        closed_by: row.get(4)?,
        started_at: row.get(5)?,
        ended_at: row.get(6)?,
        active_ms: 0,
        intent: row.get(7)?,
        title: row.get(12)?,
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
        retracted: Vec::new(),
    };
    Ok((unit, row.get(11)?))
}

/// Selects the steps of units (`?2`) in sessions (`?1`), both as JSON.
const OF_UNITS: &str =
    "s.session_id IN (SELECT value FROM json_each(?1)) AND s.work_unit_id IN (SELECT value FROM json_each(?2))";

/// Units being assembled.
struct Units {
    units: Vec<UnitRow>,
    place: HashMap<i64, usize>,
    /// Their sessions and ids, as JSON.
    keys: [String; 2],
}

impl Units {
    fn unit(&mut self, id: i64) -> &mut UnitRow {
        &mut self.units[self.place[&id]]
    }
}

impl Store {
    /// The last units of projects with an event after `since`, newest first, and their total.
    pub fn units_of_projects(&self, scope: &SearchScope, since: Option<Millis>, limit: usize) -> Result<(Vec<UnitRow>, usize)> {
        let sql = format!(
            "{UNIT} WHERE (?1 IS NULL OR coalesce(u.project_id, s.project_id) IN (SELECT value FROM json_each(?1))) AND (?2 IS NULL OR u.ended_at >= ?2) ORDER BY u.started_at DESC, u.id DESC"
        );
        let mut statement = self.conn.prepare_cached(&sql)?;
        let found: Vec<_> = statement.query_map(params![scope.json(), since], unit)?.collect::<Result<_, _>>()?;
        let count = found.len();
        Ok((self.whole(found.into_iter().take(limit).collect())?, count))
    }

    /// The units of a session, in order.
    pub fn units_of_session(&self, session: i64) -> Result<Vec<UnitRow>> {
        let sql = format!("{UNIT} WHERE u.session_id = ?1 ORDER BY u.started_at, u.id");
        let found: Vec<_> = self.conn.prepare_cached(&sql)?.query_map([session], unit)?.collect::<Result<_, _>>()?;
        self.whole(found)
    }

    /// The last units of several sessions, newest first, only those of a project if one is given; without phases, tokens
    /// and boundaries.
    pub fn last_units(&self, sessions: &[i64], project: Option<i64>, limit: usize) -> Result<Vec<UnitRow>> {
        let of = "(?3 IS NULL OR coalesce(u.project_id, s.project_id) = ?3)";
        let sql = format!("{UNIT} WHERE u.session_id = ?1 AND {of} ORDER BY u.started_at DESC, u.id DESC LIMIT ?2");
        let mut statement = self.conn.prepare_cached(&sql)?;
        let mut found = Vec::new();
        for session in sessions {
            for row in statement.query_map(params![*session, limit as i64, project], unit)? {
                found.push(row?);
            }
        }
        self.brief(found).map(|all| all.units)
    }

    /// Reads one unit.
    pub fn unit_by_row(&self, id: i64) -> Result<Option<UnitRow>> {
        Ok(self.whole(self.own_row(id)?.into_iter().collect())?.pop())
    }

    /// Reads one unit without phases, tokens and boundaries.
    pub fn brief_unit(&self, id: i64) -> Result<Option<UnitRow>> {
        Ok(self.brief(self.own_row(id)?.into_iter().collect())?.units.pop())
    }

    fn own_row(&self, id: i64) -> Result<Option<(UnitRow, Option<i64>)>> {
        Ok(self.conn.prepare_cached(&format!("{UNIT} WHERE u.id = ?1"))?.query_row([id], unit).optional()?)
    }

    /// The unit of a tool use; `None` for one older than units.
    pub fn unit_of_tool_use(&self, id: i64) -> Result<Option<i64>> {
        let sql = "SELECT s.work_unit_id FROM tool_uses t JOIN steps s ON s.id = t.step_id WHERE t.id = ?1";
        Ok(self.conn.prepare_cached(sql)?.query_row([id], |row| row.get(0)).optional()?)
    }

    /// The unit of a user's prompt.
    pub fn unit_of_prompt(&self, session: i64, id: i64) -> Result<Option<i64>> {
        let sql = "SELECT work_unit_id FROM steps WHERE session_id = ?1 AND prompt_id = ?2 ORDER BY id LIMIT 1";
        Ok(self.conn.prepare_cached(sql)?.query_row([session, id], |row| row.get(0)).optional()?)
    }

    /// Completes units from other tables, with one statement per table.
    fn whole(&self, found: Vec<(UnitRow, Option<i64>)>) -> Result<Vec<UnitRow>> {
        let mut all = self.brief(found)?;
        if all.units.is_empty() {
            return Ok(all.units);
        }
        self.add_phases(&mut all)?;
        self.add_tokens(&mut all)?;
        self.add_boundaries(&mut all)?;
        Ok(all.units)
    }

    /// Completes units with steps, files and commits only.
    fn brief(&self, found: Vec<(UnitRow, Option<i64>)>) -> Result<Units> {
        let mut units: Vec<UnitRow> = Vec::with_capacity(found.len());
        for (mut unit, distilled) in found {
            if let Some(last) = distilled {
                unit.addendum = self.tool_uses_after(&unit, last)?;
            }
            units.push(unit);
        }
        let list = |id: fn(&UnitRow) -> i64| serde_json::to_string(&units.iter().map(id).collect::<BTreeSet<_>>());
        let keys = [list(|unit| unit.session)?, list(|unit| unit.id)?];
        let mut all = Units { place: units.iter().enumerate().map(|(at, unit)| (unit.id, at)).collect(), units, keys };
        if !all.units.is_empty() {
            self.add_steps(&mut all)?;
            self.add_files(&mut all)?;
            self.add_commits(&mut all)?;
        }
        Ok(all)
    }

    fn tool_uses_after(&self, unit: &UnitRow, last: i64) -> Result<i64> {
        let sql = "SELECT count(*) FROM tool_uses WHERE session_id = ?1 AND seq > ?3
                     AND step_id IN (SELECT id FROM steps WHERE session_id = ?1 AND work_unit_id = ?2)";
        Ok(self.conn.prepare_cached(sql)?.query_row([unit.session, unit.id, last], |row| row.get(0))?)
    }

    fn add_steps(&self, all: &mut Units) -> Result<()> {
        let sql = format!(
            "SELECT s.work_unit_id, s.started_at, s.ended_at, s.first_seq, s.last_seq, s.tool_uses, s.failures, p.number
             FROM steps s LEFT JOIN prompts p ON p.id = s.prompt_id WHERE {OF_UNITS} ORDER BY s.prompt_id, s.id"
        );
        let mut statement = self.conn.prepare_cached(&sql)?;
        let mut rows = statement.query([&all.keys[0], &all.keys[1]])?;
        while let Some(row) = rows.next()? {
            let unit = all.unit(row.get(0)?);
            let (started, ended): (Millis, Millis) = (row.get(1)?, row.get(2)?);
            unit.active_ms += (ended - started).max(0);
            let range = row.get::<_, Option<i64>>(3)?.zip(row.get::<_, Option<i64>>(4)?);
            unit.range = match (unit.range, range) {
                (Some((first, last)), Some((from, to))) => Some((first.min(from), last.max(to))),
                (known, new) => known.or(new),
            };
            unit.tool_uses += row.get::<_, i64>(5)?;
            unit.failures += row.get::<_, i64>(6)?;
            let prompt: Option<i64> = row.get(7)?;
            unit.prompts.extend(prompt.filter(|prompt| unit.prompts.last() != Some(prompt)));
        }
        Ok(())
    }

    fn add_phases(&self, all: &mut Units) -> Result<()> {
        let sql = format!("SELECT s.work_unit_id, s.features FROM steps s WHERE {OF_UNITS} ORDER BY s.prompt_id, s.id");
        let mut phases: HashMap<i64, Vec<PhaseRun>> = HashMap::new();
        let mut statement = self.conn.prepare_cached(&sql)?;
        let mut rows = statement.query([&all.keys[0], &all.keys[1]])?;
        while let Some(row) = rows.next()? {
            let step = Step::from_bytes(row.get_ref(1)?.as_blob()?).unwrap_or_default();
            phases.entry(row.get(0)?).or_default().extend(step.phases);
        }
        for unit in &mut all.units {
            let phase = |run: PhaseRun| PhaseRow { phase: run.phase.name(), tool_uses: run.tool_uses, ms: run.ms };
            unit.phases = fold(phases.remove(&unit.id).unwrap_or_default(), PHASES).into_iter().map(phase).collect();
        }
        Ok(())
    }

    fn add_files(&self, all: &mut Units) -> Result<()> {
        let sql = format!(
            "SELECT s.work_unit_id, f.path, sum(f.reads), sum(f.edits) FROM steps s JOIN step_files f ON f.step_id = s.id
             WHERE {OF_UNITS} GROUP BY s.work_unit_id, f.path ORDER BY 4 DESC, 3 DESC, 2"
        );
        let mut statement = self.conn.prepare_cached(&sql)?;
        let mut rows = statement.query([&all.keys[0], &all.keys[1]])?;
        while let Some(row) = rows.next()? {
            let file = UnitFile { path: row.get(1)?, reads: row.get(2)?, edits: row.get(3)? };
            all.unit(row.get(0)?).files.push(file);
        }
        Ok(())
    }

    fn add_commits(&self, all: &mut Units) -> Result<()> {
        let sql = "SELECT (SELECT work_unit_id FROM steps WHERE id = t.step_id), t.metadata -> 'commit' ->> 'sha',
                     t.metadata -> 'commit' ->> 'subject' FROM tool_uses t
                   WHERE t.session_id IN (SELECT value FROM json_each(?1)) AND t.command_kind = 'commit'
                     AND t.metadata -> 'commit' IS NOT NULL ORDER BY t.session_id, t.seq";
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query([&all.keys[0]])?;
        while let Some(row) = rows.next()? {
            if let Some(at) = row.get::<_, Option<i64>>(0)?.and_then(|unit| all.place.get(&unit)) {
                let subject = row.get::<_, Option<String>>(2)?.unwrap_or_default();
                all.units[*at].commits.push(UnitCommit { sha: row.get(1)?, subject });
            }
        }
        Ok(())
    }

    /// Adds the tokens of the units' turns. A turn that spans two units counts for the one in which it began.
    fn add_tokens(&self, all: &mut Units) -> Result<()> {
        let sql = format!(
            "SELECT s.work_unit_id, sum(a.input_tokens), sum(a.output_tokens), sum(a.cache_read_tokens), sum(a.cache_write_tokens)
             FROM steps s JOIN prompts p ON p.id = s.prompt_id
               JOIN prompts a ON a.session_id = s.session_id AND a.number = p.number AND a.source = 'agent' AND a.input_tokens IS NOT NULL
             WHERE {OF_UNITS} AND s.id = (SELECT min(id) FROM steps f WHERE f.session_id = s.session_id AND f.prompt_id = s.prompt_id)
             GROUP BY s.work_unit_id"
        );
        let mut statement = self.conn.prepare_cached(&sql)?;
        let mut rows = statement.query([&all.keys[0], &all.keys[1]])?;
        while let Some(row) = rows.next()? {
            let count = |i: usize| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(i)?.unwrap_or(0));
            let tokens = Tokens { input: count(1)?, output: count(2)?, cache_read: count(3)?, cache_write: count(4)? };
            all.unit(row.get(0)?).tokens = Some(tokens);
        }
        Ok(())
    }

    fn add_boundaries(&self, all: &mut Units) -> Result<()> {
        let sql = format!(
            "SELECT s.work_unit_id, boundary ->> '$.active', p.number, s.first_seq, boundary ->> '$.reason', boundary ->> '$.score',
               boundary -> '$.signals', boundary -> '$.history',
               s.id = (SELECT min(id) FROM steps f WHERE f.session_id = s.session_id AND f.prompt_id IS s.prompt_id)
             FROM steps s LEFT JOIN prompts p ON p.id = s.prompt_id
             WHERE {OF_UNITS} AND boundary IS NOT NULL ORDER BY s.prompt_id, s.id"
        );
        let json = |text: Option<String>| text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let mut statement = self.conn.prepare_cached(&sql)?;
        let mut rows = statement.query([&all.keys[0], &all.keys[1]])?;
        while let Some(row) = rows.next()? {
            let at_prompt: bool = row.get(8)?;
            let boundary = BoundaryRow {
                prompt: row.get::<_, Option<i64>>(2)?.filter(|_| at_prompt),
                first_seq: row.get(3)?,
                reason: row.get(4)?,
                score: row.get(5)?,
                signals: json(row.get(6)?),
                history: json(row.get(7)?),
            };
            let unit = all.unit(row.get(0)?);
            match row.get(1)? {
                true if unit.boundary.is_none() => unit.boundary = Some(boundary),
                true => {}
                false => unit.retracted.push(boundary),
            }
        }
        Ok(())
    }

    /// The prompts, answers and tool uses of a unit. Prompts shared with another unit are left out.
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

    /// Numbers of the prompts at which a unit began according to the first decision.
    pub fn inline_starts(&self, session: i64) -> Result<Vec<i64>> {
        let sql = "SELECT p.number FROM steps s JOIN prompts p ON p.id = s.prompt_id WHERE s.session_id = ?1
                     AND boundary ->> '$.at_prompt' AND boundary ->> '$.score' IS NOT NULL ORDER BY p.number";
        Ok(self.conn.prepare_cached(sql)?.query_map([session], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }
}
