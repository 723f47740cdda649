//! The story of a unit: everything that distillation reads.

use super::Store;
use super::history::{PROMPT, TOOL_USE, prompt, tool_use};
use super::rule_memories::mark_of;
use crate::model::{Millis, PromptRow, Reach, Source, Task, ToolUseRow, UnitStory};
use anyhow::Result;
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::collections::HashMap;

/// Maximum tool uses to read per unit: the last ones. Reading them takes 8 ms.
const TOOL_USES: i64 = 1000;

/// Number of tool uses that a unit ever had.
const COUNTED: &str = "SELECT coalesce(sum(tool_uses), 0) FROM steps WHERE session_id = ?1 AND work_unit_id = ?2";

impl Store {
    /// Reads a unit with all its prompts and tool uses; `None` if it is gone.
    pub fn unit_story(&self, unit: i64) -> Result<Option<UnitStory>> {
        story_of(&self.conn, unit)
    }

    /// The unit before another one: in its session, else the last one of the branch's session before.
    pub fn unit_before(&self, story: &UnitStory) -> Result<Option<i64>> {
        let sql = "SELECT coalesce(
                     (SELECT max(id) FROM work_units WHERE session_id = ?1 AND id < ?2),
                     (SELECT max(u.id) FROM work_units u WHERE u.session_id = (SELECT p.id FROM sessions p JOIN sessions s ON s.id = ?1
                        WHERE p.project_id = ?3 AND p.active_at < s.started_at AND coalesce(coalesce(p.end_branch, p.start_branch) = s.start_branch, 1)
                        ORDER BY p.active_at DESC LIMIT 1)))";
        let key = params![story.session, story.unit, story.project];
        Ok(self.conn.prepare_cached(sql)?.query_row(key, |row| row.get(0))?)
    }

    /// The agent's last closing message before a unit's first prompt. `None` if the session had used a folder outside
    /// `folders` before: the message may be about it.
    pub fn message_before(&self, unit: i64, folders: &[String]) -> Result<Option<(Source, String)>> {
        let sql = "SELECT p.id, p.text FROM prompts p JOIN work_units u ON u.session_id = p.session_id
                   WHERE u.id = ?1 AND p.kind = 'closing' AND p.source = 'agent' AND p.agent_id IS NULL AND p.number <
                     (SELECT min(f.number) FROM steps s JOIN prompts f ON f.id = s.prompt_id WHERE s.session_id = u.session_id AND s.work_unit_id = u.id)
                     AND NOT EXISTS (SELECT 1 FROM tool_uses t WHERE t.session_id = u.session_id
                       AND (t.received_at <= p.received_at OR t.prompt_id IN (SELECT q.id FROM prompts q WHERE q.session_id = u.session_id AND q.number <= p.number))
                       AND t.cwd IS NOT NULL AND t.cwd NOT IN (SELECT value FROM json_each(?2)))
                   ORDER BY p.number DESC, p.id DESC LIMIT 1";
        let row = |row: &Row| Ok((Source::Prompt(row.get(0)?), row.get(1)?));
        let values = params![unit, serde_json::to_string(folders)?];
        Ok(self.conn.prepare_cached(sql)?.query_row(values, row).optional()?)
    }

    /// The prompts and closing messages of a unit, in order.
    pub fn said_in_unit(&self, session: i64, unit: i64) -> Result<Vec<PromptRow>> {
        said_in_unit(&self.conn, [session, unit])
    }

    /// Content hashes in a unit's memories, by path.
    pub fn hashes_of_unit(&self, session: i64, unit: i64) -> Result<HashMap<String, String>> {
        let sql = "SELECT f.path, f.hash FROM memories m JOIN memory_files f ON f.memory_id = m.id
                   WHERE m.session_id = ?1 AND m.work_unit_id = ?2 AND f.hash IS NOT NULL ORDER BY m.created_at";
        let row = |row: &Row| Ok((row.get(0)?, row.get(1)?));
        Ok(self.conn.prepare_cached(sql)?.query_map([session, unit], row)?.collect::<Result<_, _>>()?)
    }
}

/// Reads a unit with all its prompts and tool uses; `None` if it is gone.
pub(in crate::store) fn story_of(conn: &Connection, unit: i64) -> Result<Option<UnitStory>> {
    let sql = "SELECT u.session_id, u.intent, u.outcome, u.evidence, u.rules_seq, s.platform, coalesce(u.project_id, s.project_id), s.cwd, s.tasks,
                 u.id = (SELECT max(id) FROM work_units WHERE session_id = s.id), d.name, d.config, s.ended_at IS NULL
               FROM work_units u JOIN sessions s ON s.id = u.session_id LEFT JOIN domains d ON d.id = s.domain_id WHERE u.id = ?1";
    let mut is_going_on = false;
    let row = |row: &Row| {
        // Nothing follows the last unit of a session that goes on.
        is_going_on = row.get::<_, bool>(9)? && row.get::<_, bool>(12)?;
        let tasks: Vec<Task> =
            row.get::<_, Option<String>>(8)?.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default();
        let open = tasks.into_iter().filter(|task| task.status != "completed").map(|task| task.subject);
        let domain: Option<String> = row.get(10)?;
        Ok(UnitStory {
            unit,
            session: row.get(0)?,
            intent: row.get(1)?,
            outcome: row.get(2)?,
            evidence: row.get(3)?,
            seen: row.get(4)?,
            platform: row.get(5)?,
            project: row.get(6)?,
            folder: row.get(7)?,
            open_tasks: if row.get(9)? { open.collect() } else { Vec::new() },
            domain: domain.map(|name| Ok::<_, rusqlite::Error>((name, row.get(11)?))).transpose()?,
            mark: None,
            followed_by: None,
            open_before: Vec::new(),
            prompts: Vec::new(),
            costs: Vec::new(),
            tools: Vec::new(),
            reach: Reach::Whole,
        })
    };
    let Some(mut story) = conn.prepare_cached(sql)?.query_row([unit], row).optional()? else { return Ok(None) };
    let key = [story.session, unit];
    story.mark = mark_of(conn, story.session, unit)?;
    story.prompts = said_in_unit(conn, key)?;
    story.costs = costs_of_unit(conn, key)?;
    story.tools = tools_of_unit(conn, key)?;
    story.followed_by = if is_going_on { None } else { followed_by(conn, &story)? };
    let counted: i64 = conn.prepare_cached(COUNTED)?.query_row(key, |row| row.get(0))?;
    story.reach = match story.tools.len() as i64 {
        TOOL_USES.. => Reach::End,
        read if read < counted => Reach::Trimmed,
        _ => Reach::Whole,
    };
    Ok(Some(story))
}

/// Milliseconds after a session within which the branch's next one may speak of it.
const NEXT_SESSION: Millis = 14 * 24 * 3_600_000;

/// Reads the user's next prompt after a unit: in its session, else the first one of the next session on the same branch of the
/// project.
fn followed_by(conn: &Connection, story: &UnitStory) -> Result<Option<PromptRow>> {
    let Some(last) = story.prompts.last() else { return Ok(None) };
    let own = format!(
        "{PROMPT} WHERE session_id = ?1 AND number > ?2 AND kind = 'prompt' AND source = 'user' AND agent_id IS NULL ORDER BY number LIMIT 1"
    );
    let next = conn.prepare_cached(&own)?.query_row([story.session, last.number], prompt).optional()?;
    if next.is_some() || story.project.is_none() {
        return Ok(next);
    }
    let later = "SELECT n.id FROM sessions n JOIN sessions s ON s.id = ?1
                 WHERE n.project_id = ?2 AND n.active_at > ?3 AND n.started_at > ?3 AND n.started_at < ?3 + ?4 AND coalesce(n.start_branch = coalesce(s.end_branch, s.start_branch), 1)
                 ORDER BY n.active_at LIMIT 1";
    let key = params![story.session, story.project, last.received_at, NEXT_SESSION];
    let Some(session): Option<i64> = conn.prepare_cached(later)?.query_row(key, |row| row.get(0)).optional()? else {
        return Ok(None);
    };
    Ok(conn.prepare_cached(&own)?.query_row([session, 0], prompt).optional()?)
}

/// Reads the prompts and closing messages of a unit. A closing message belongs to the unit in which its turn ended.
fn said_in_unit(conn: &Connection, key: [i64; 2]) -> Result<Vec<PromptRow>> {
    let sql = format!(
        "{PROMPT} WHERE session_id = ?1 AND kind IN ('prompt', 'answer', 'closing') AND agent_id IS NULL AND CASE kind
           WHEN 'prompt' THEN id IN (SELECT prompt_id FROM steps WHERE session_id = ?1 AND work_unit_id = ?2)
           ELSE number IN (SELECT p.number FROM steps s JOIN prompts p ON p.id = s.prompt_id WHERE s.session_id = ?1 AND s.work_unit_id = ?2
             AND s.id = (SELECT max(id) FROM steps l WHERE l.session_id = ?1 AND l.prompt_id = s.prompt_id)) END ORDER BY number, id"
    );
    Ok(conn.prepare_cached(&sql)?.query_map(key, prompt)?.collect::<Result<_, _>>()?)
}

fn costs_of_unit(conn: &Connection, key: [i64; 2]) -> Result<Vec<(i64, i64)>> {
    let sql = "SELECT a.number, sum(a.input_tokens + coalesce(a.output_tokens, 0) + coalesce(a.cache_write_tokens, 0)) FROM prompts a
               WHERE a.session_id = ?1 AND a.source = 'agent' AND a.input_tokens IS NOT NULL AND a.number IN
                 (SELECT p.number FROM steps s JOIN prompts p ON p.id = s.prompt_id WHERE s.session_id = ?1 AND s.work_unit_id = ?2)
               GROUP BY a.number";
    Ok(conn.prepare_cached(sql)?.query_map(key, |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?)
}

fn tools_of_unit(conn: &Connection, key: [i64; 2]) -> Result<Vec<ToolUseRow>> {
    let sql = format!(
        "{TOOL_USE} WHERE session_id = ?1 AND seq BETWEEN (SELECT min(first_seq) FROM steps WHERE session_id = ?1 AND work_unit_id = ?2)
           AND (SELECT max(last_seq) FROM steps WHERE session_id = ?1 AND work_unit_id = ?2)
           AND step_id IN (SELECT id FROM steps WHERE session_id = ?1 AND work_unit_id = ?2) ORDER BY seq DESC LIMIT {TOOL_USES}"
    );
    let mut tools: Vec<_> = conn.prepare_cached(&sql)?.query_map(key, tool_use)?.collect::<Result<_, _>>()?;
    tools.reverse();
    Ok(tools)
}
