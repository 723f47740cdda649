//! Reads a unit with all that was said and done in it.

use super::super::Store;
use super::super::events::THIS_SESSION;
use super::super::history::{PROMPT, TOOL_USE, prompt, tool_use};
use crate::model::{Platform, Task, UnitStory};
use anyhow::Result;
use rusqlite::{OptionalExtension, params};
use std::collections::HashMap;

/// Tool uses of one unit that are read: the last ones. Reading 1,000 takes 8 ms.
const TOOL_USES: i64 = 2000;
/// Sessions of a project in which due units are looked for.
const SESSIONS: i64 = 8;

impl Store {
    /// Units of a session in which something happened since rules last looked.
    pub fn due_in_session(&self, platform: Platform, session: &str) -> Result<Vec<i64>> {
        let sql = format!(
            "SELECT u.id FROM work_units u WHERE u.session_id = (SELECT s.id FROM sessions s WHERE {THIS_SESSION})
               AND (u.rules_due OR u.leased_until IS NOT NULL) ORDER BY u.id"
        );
        let mut statement = self.conn.prepare_cached(&sql)?;
        Ok(statement.query_map(params![platform.name(), session], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }

    /// Such units of some sessions.
    pub fn due_in_sessions(&self, sessions: &[i64]) -> Result<Vec<i64>> {
        let sql = "SELECT id FROM work_units WHERE session_id IN (SELECT value FROM json_each(?1)) AND (rules_due OR leased_until IS NOT NULL)";
        let sessions = serde_json::to_string(sessions)?;
        Ok(self.conn.prepare_cached(sql)?.query_map([sessions], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }

    /// Such units of the last sessions of a project: who was killed left them.
    pub fn due_in_project(&self, project: i64) -> Result<Vec<i64>> {
        let sql = "SELECT u.id FROM work_units u WHERE u.session_id IN
                     (SELECT id FROM sessions WHERE project_id = ?1 ORDER BY active_at DESC LIMIT ?2)
                     AND (u.rules_due OR u.leased_until IS NOT NULL) ORDER BY u.id";
        Ok(self.conn.prepare_cached(sql)?.query_map([project, SESSIONS], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }

    /// Reads a unit with all that was said and done in it; `None` where it is gone.
    pub fn unit_story(&self, unit: i64) -> Result<Option<UnitStory>> {
        let Some(unit) = self.unit_by_row(unit)? else { return Ok(None) };
        let key = [unit.session, unit.id];
        let sql = "SELECT s.platform, s.project_id, s.cwd, s.tasks, (SELECT rules_seq FROM work_units WHERE id = ?2),
                     ?2 = (SELECT max(id) FROM work_units WHERE session_id = ?1) FROM sessions s WHERE s.id = ?1";
        let row = |row: &rusqlite::Row| {
            let tasks: Option<String> = row.get(3)?;
            let tasks: Vec<Task> = tasks.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default();
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, tasks, row.get(4)?, row.get::<_, bool>(5)?))
        };
        let session = self.conn.prepare_cached(sql)?.query_row(key, row).optional()?;
        let Some((platform, project, folder, tasks, seen, is_last)) = session else { return Ok(None) };
        let open = tasks.into_iter().filter(|task| task.status != "completed").map(|task| task.subject);
        let tools = self.tools_of_unit(key)?;
        Ok(Some(UnitStory {
            prompts: self.said_in_unit(key)?,
            costs: self.costs_of_unit(key)?,
            is_whole: (tools.len() as i64) < TOOL_USES,
            tools,
            open_tasks: if is_last { open.collect() } else { Vec::new() },
            platform,
            project,
            folder,
            seen,
            unit,
        }))
    }

    /// A closing text belongs to the unit in which its turn ended.
    fn said_in_unit(&self, key: [i64; 2]) -> Result<Vec<crate::model::PromptRow>> {
        let sql = format!(
            "{PROMPT} WHERE session_id = ?1 AND kind IN ('prompt', 'closing') AND agent_id IS NULL AND CASE source
               WHEN 'user' THEN id IN (SELECT prompt_id FROM steps WHERE session_id = ?1 AND work_unit_id = ?2)
               ELSE number IN (SELECT p.number FROM steps s JOIN prompts p ON p.id = s.prompt_id WHERE s.session_id = ?1 AND s.work_unit_id = ?2
                 AND s.id = (SELECT max(id) FROM steps l WHERE l.session_id = ?1 AND l.prompt_id = s.prompt_id)) END ORDER BY number, id"
        );
        Ok(self.conn.prepare_cached(&sql)?.query_map(key, prompt)?.collect::<Result<_, _>>()?)
    }

    fn costs_of_unit(&self, key: [i64; 2]) -> Result<Vec<(i64, i64)>> {
        let sql = "SELECT a.number, sum(a.input_tokens + coalesce(a.output_tokens, 0) + coalesce(a.cache_write_tokens, 0)) FROM prompts a
                   WHERE a.session_id = ?1 AND a.source = 'agent' AND a.input_tokens IS NOT NULL AND a.number IN
                     (SELECT p.number FROM steps s JOIN prompts p ON p.id = s.prompt_id WHERE s.session_id = ?1 AND s.work_unit_id = ?2)
                   GROUP BY a.number";
        Ok(self.conn.prepare_cached(sql)?.query_map(key, |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?)
    }

    fn tools_of_unit(&self, key: [i64; 2]) -> Result<Vec<crate::model::ToolUseRow>> {
        let sql = format!(
            "{TOOL_USE} WHERE session_id = ?1 AND seq BETWEEN (SELECT min(first_seq) FROM steps WHERE session_id = ?1 AND work_unit_id = ?2)
               AND (SELECT max(last_seq) FROM steps WHERE session_id = ?1 AND work_unit_id = ?2)
               AND step_id IN (SELECT id FROM steps WHERE session_id = ?1 AND work_unit_id = ?2) ORDER BY seq DESC LIMIT {TOOL_USES}"
        );
        let mut tools: Vec<_> = self.conn.prepare_cached(&sql)?.query_map(key, tool_use)?.collect::<Result<_, _>>()?;
        tools.reverse();
        Ok(tools)
    }

    /// Content hashes that memories of a unit hold, by path.
    pub fn hashes_of_unit(&self, session: i64, unit: i64) -> Result<HashMap<String, String>> {
        let sql = "SELECT f.path, f.hash FROM memories m JOIN memory_files f ON f.memory_id = m.id
                   WHERE m.session_id = ?1 AND m.work_unit_id = ?2 AND f.hash IS NOT NULL ORDER BY m.created_at";
        let row = |row: &rusqlite::Row| Ok((row.get(0)?, row.get(1)?));
        Ok(self.conn.prepare_cached(sql)?.query_map([session, unit], row)?.collect::<Result<_, _>>()?)
    }
}
