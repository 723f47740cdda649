//! Units that are due for distillation by rules. A Stop hook runs this query at every turn, so two simple queries are
//! combined here; a single query would need three indexes of its own and cost a hook twice as much.

use super::super::Store;
use super::super::history::{PROMPT, prompt};
use super::super::sessions::known_session;
use crate::model::{Millis, Platform, PromptRow};
use anyhow::Result;
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::collections::HashMap;

/// Number of a project's sessions to search.
const SESSIONS: i64 = 8;

/// A unit due for distillation: it has new messages or changed steps, or the process that leased it may be gone.
#[derive(Clone, Copy, Debug)]
pub struct DueUnit {
    pub unit: i64,
    /// For a unit without tool uses and memories: its session, its first and its last prompt.
    talk: Option<[i64; 3]>,
}

/// Totals over the steps of a unit.
#[derive(Clone, Copy, Default)]
struct Steps {
    count: i64,
    tools: i64,
    last_seq: i64,
    prompts: Option<(i64, i64)>,
}

impl Steps {
    fn mark(self) -> String {
        format!("{} {} {}", self.count, self.last_seq, self.prompts.map_or(0, |(_, last)| last))
    }
}

fn steps_by_unit(conn: &Connection, session: i64) -> Result<HashMap<i64, Steps>> {
    let sql = "SELECT work_unit_id, tool_uses, last_seq, prompt_id FROM steps WHERE session_id = ?1";
    let mut units: HashMap<i64, Steps> = HashMap::new();
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query([session])?;
    while let Some(row) = rows.next()? {
        let steps = units.entry(row.get(0)?).or_default();
        steps.count += 1;
        steps.tools += row.get::<_, i64>(1)?;
        steps.last_seq = steps.last_seq.max(row.get::<_, Option<i64>>(2)?.unwrap_or(0));
        if let Some(prompt) = row.get::<_, Option<i64>>(3)? {
            let (first, last) = steps.prompts.unwrap_or((prompt, prompt));
            steps.prompts = Some((first.min(prompt), last.max(prompt)));
        }
    }
    Ok(units)
}

/// The current marker of a unit, for `rules_mark`: number of steps, last tool use, last prompt.
pub(super) fn mark_of(conn: &Connection, session: i64, unit: i64) -> Result<Option<String>> {
    Ok(steps_by_unit(conn, session)?.get(&unit).map(|steps| steps.mark()))
}

impl Store {
    /// Due units of a session.
    pub fn due_in_session(&self, platform: Platform, session: &str) -> Result<Vec<DueUnit>> {
        known_session(&self.conn, platform, session)?.map_or(Ok(Vec::new()), |session| self.due_of(session.id, false))
    }

    /// Due units of a project's last sessions, for example of a killed one. Excludes open units of sessions with an
    /// event since `heard`, which distil them themselves, and sessions that only an import stored, which
    /// [`Store::due_of_caught_up`] handles.
    pub fn due_in_project(&self, project: i64, heard: Millis) -> Result<Vec<DueUnit>> {
        let sql = "SELECT id, ended_at IS NULL AND active_at >= ?3 FROM
                     (SELECT * FROM sessions WHERE project_id = ?1 ORDER BY active_at DESC LIMIT ?2) WHERE imported_until IS NULL OR client_pid IS NOT NULL";
        let row = |row: &Row| Ok((row.get(0)?, row.get(1)?));
        let mut due = Vec::new();
        for session in self.conn.prepare_cached(sql)?.query_map(params![project, SESSIONS, heard], row)? {
            let (id, at_work) = session?;
            due.extend(self.due_of(id, at_work)?);
        }
        Ok(due)
    }

    /// A session whose events a session start has stored, with at most `most` due units; `None` if there is none.
    pub fn due_of_caught_up(&self, most: usize) -> Result<Option<(i64, Vec<DueUnit>)>> {
        let sql = "SELECT value FROM meta WHERE key >= 'caught_up:' AND key < 'caught_up;' LIMIT 1";
        let Some(session) = self.conn.prepare_cached(sql)?.query_row([], |row| row.get(0)).optional()? else { return Ok(None) };
        let mut due = self.due_of(session, false)?;
        due.truncate(most);
        Ok(Some((session, due)))
    }

    /// Due units of the given sessions.
    pub fn due_in_sessions(&self, sessions: &[i64]) -> Result<Vec<DueUnit>> {
        let mut due = Vec::new();
        for session in sessions {
            due.extend(self.due_of(*session, false)?);
        }
        Ok(due)
    }

    fn due_of(&self, session: i64, closed_only: bool) -> Result<Vec<DueUnit>> {
        let sql =
            "SELECT id, state = 'open', rules_due, rules_mark, leased_until IS NOT NULL FROM work_units WHERE session_id = ?1";
        let all = steps_by_unit(&self.conn, session)?;
        let mut due = Vec::new();
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query([session])?;
        while let Some(row) = rows.next()? {
            let unit: i64 = row.get(0)?;
            let Some(steps) = all.get(&unit) else { continue };
            let (is_open, flagged, leased): (bool, bool, bool) = (row.get(1)?, row.get(2)?, row.get(4)?);
            let changed = row.get_ref(3)?.as_str_or_null()? != Some(&steps.mark());
            if (flagged || changed || leased) && !(closed_only && is_open) {
                let (first, last) = steps.prompts.unwrap_or((0, -1));
                let is_talk = steps.tools == 0 && !leased && !self.is_remembered(session, unit)?;
                due.push(DueUnit { unit, talk: is_talk.then_some([session, first, last]) });
            }
        }
        Ok(due)
    }

    fn is_remembered(&self, session: i64, unit: i64) -> Result<bool> {
        let sql = "SELECT 1 FROM memories WHERE session_id = ?1 AND work_unit_id = ?2";
        Ok(self.conn.prepare_cached(sql)?.exists([session, unit])?)
    }

    /// The messages of a unit without tool uses and memories; `None` for any other. Without tool uses no turn is split,
    /// so all its turns belong to the unit.
    pub fn talk(&self, due: DueUnit) -> Result<Option<Vec<PromptRow>>> {
        let sql = format!(
            "{PROMPT} WHERE session_id = ?1 AND kind IN ('prompt', 'closing') AND agent_id IS NULL
               AND number BETWEEN (SELECT number FROM prompts WHERE id = ?2) AND (SELECT number FROM prompts WHERE id = ?3)"
        );
        let Some(key) = due.talk else { return Ok(None) };
        Ok(Some(self.conn.prepare_cached(&sql)?.query_map(key, prompt)?.collect::<Result<_, _>>()?))
    }
}
