//! Lists memories.

use super::Store;
use crate::model::{Maker, MemoryFile, MemoryKind, MemoryRow, SettledHead, Source, UnitStory};
use anyhow::Result;
use rusqlite::{OptionalExtension, Row, ToSql, params};
use std::collections::HashMap;

const MEMORY: &str = "SELECT m.id, m.uuid, m.kind, m.type, m.title, m.subtitle, m.body, m.content, p.name, m.session_id,
    s.agent_session_id, m.work_unit_id, m.prompt_number, m.sources, m.platform, m.provenance, m.made_by, m.discovery_tokens,
    m.tokens_estimated, m.created_at, m.pinned, m.by_hand, m.superseded_by, m.project_id, m.concepts
  FROM memories m LEFT JOIN projects p ON p.id = m.project_id LEFT JOIN sessions s ON s.id = m.session_id WHERE m.id = ?1";
/// Lists choose ids, and one statement reads the rows: a hook reads several lists, and compiling the long statement for each
/// took a tenth of a session start.
const CHOSEN: &str = "SELECT m.id FROM memories m LEFT JOIN sessions s ON s.id = m.session_id";
/// Keys of rules whose sources are changes and commits.
const OF_CHANGES: [&str; 4] = ["commit:", "thing:", "fix:", "edits:"];

fn sources(json: &str) -> Vec<Source> {
    let ids: Vec<String> = serde_json::from_str(json).unwrap_or_default();
    ids.iter().filter_map(|id| Source::read(id)).collect()
}

fn memory(row: &Row) -> rusqlite::Result<MemoryRow> {
    let json = |i: usize| row.get::<_, String>(i);
    Ok(MemoryRow {
        id: row.get(0)?,
        uuid: row.get(1)?,
        kind: row.get(2)?,
        kind_type: row.get(3)?,
        title: row.get(4)?,
        subtitle: row.get(5)?,
        body: row.get(6)?,
        content: serde_json::from_str(&json(7)?).unwrap_or_default(),
        project_id: row.get(23)?,
        project: row.get(8)?,
        session: row.get(9)?,
        agent_session_id: row.get(10)?,
        unit: row.get(11)?,
        prompt: row.get(12)?,
        sources: sources(&json(13)?),
        platform: row.get(14)?,
        provenance: row.get(15)?,
        made_by: row.get(16)?,
        tokens: row.get(17)?,
        tokens_estimated: row.get(18)?,
        created_at: row.get(19)?,
        pinned: row.get(20)?,
        by_hand: row.get(21)?,
        superseded_by: row.get(22)?,
        concepts: row.get::<_, Option<String>>(24)?.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default(),
        files: Vec::new(),
        team: None,
    })
}

impl Store {
    /// Reads one memory.
    pub fn memory_by_row(&self, id: i64) -> Result<Option<MemoryRow>> {
        Ok(self.memories_by_rows(&[id])?.pop())
    }

    /// Memories by a prefix of their uuid.
    pub fn memories_by_uuid(&self, prefix: &str) -> Result<Vec<MemoryRow>> {
        let sql = format!("{CHOSEN} WHERE m.uuid >= ?1 AND m.uuid < ?1 || 'g' LIMIT 2");
        self.memories(&sql, &[&prefix.to_lowercase()])
    }

    /// Active decisions and lessons of a task.
    pub fn memories_of_task(&self, task: &str) -> Result<Vec<MemoryRow>> {
        let sql = format!(
            "{CHOSEN} WHERE m.content ->> '$.task' = ?1 AND m.kind IN ('decision', 'lesson') AND m.superseded_by IS NULL ORDER BY m.id"
        );
        self.memories(&sql, &[&task])
    }

    /// Memories of a unit, in chronological order of their sources.
    pub fn memories_of_unit(&self, session: i64, unit: i64) -> Result<Vec<MemoryRow>> {
        let sql = format!("{CHOSEN} WHERE m.session_id = ?1 AND m.work_unit_id = ?2 ORDER BY m.created_at, m.id");
        self.memories(&sql, &[&session, &unit])
    }

    /// Active memories of several units, in chronological order of their sources.
    pub fn memories_of_units(&self, units: &[i64]) -> Result<Vec<MemoryRow>> {
        let sql = format!(
            "{CHOSEN} WHERE m.session_id IN (SELECT session_id FROM work_units WHERE id IN (SELECT value FROM json_each(?1)))
               AND m.work_unit_id IN (SELECT value FROM json_each(?1)) AND m.superseded_by IS NULL ORDER BY m.created_at, m.id"
        );
        self.memories(&sql, &[&serde_json::to_string(units)?])
    }

    /// Active memories of a session that a person, the agent or a model created, oldest first. Leaves out those that models
    /// created of units that are distilled again, and those of units that used a folder outside `folders`.
    pub fn recorded_in_session(&self, session: i64, redone: &[i64], folders: &[String]) -> Result<Vec<MemoryRow>> {
        let sql = format!(
            "{CHOSEN} WHERE m.session_id = ?1 AND m.made_by <> 'rules' AND m.superseded_by IS NULL AND NOT
               (m.made_by NOT IN ('agent', 'hand', 'custom') AND NOT m.by_hand AND NOT m.pinned
                AND coalesce(m.work_unit_id, 0) IN (SELECT value FROM json_each(?2)))
               AND NOT EXISTS (SELECT 1 FROM tool_uses t JOIN steps p ON p.id = t.step_id WHERE t.session_id = ?1
                 AND p.work_unit_id = m.work_unit_id AND t.cwd IS NOT NULL AND t.cwd NOT IN (SELECT value FROM json_each(?3)))
             ORDER BY m.created_at, m.id"
        );
        self.memories(&sql, &[&session, &serde_json::to_string(redone)?, &serde_json::to_string(folders)?])
    }

    /// The summary of a unit.
    pub fn summary_of_unit(&self, session: i64, unit: i64) -> Result<Option<MemoryRow>> {
        let sql = format!(
            "{CHOSEN} WHERE m.session_id = ?1 AND m.work_unit_id = ?2 AND m.kind = 'summary' AND m.superseded_by IS NULL ORDER BY m.id DESC LIMIT 1"
        );
        Ok(self.memories(&sql, &[&session, &unit])?.pop())
    }

    /// The summaries of several units, by unit id.
    pub fn summaries_of_units(&self, units: &[i64]) -> Result<HashMap<i64, MemoryRow>> {
        let sql = format!(
            "{CHOSEN} WHERE m.session_id IN (SELECT session_id FROM work_units WHERE id IN (SELECT value FROM json_each(?1)))
               AND m.work_unit_id IN (SELECT value FROM json_each(?1)) AND m.kind = 'summary' AND m.superseded_by IS NULL ORDER BY m.id"
        );
        let found = self.memories(&sql, &[&serde_json::to_string(units)?])?;
        Ok(found.into_iter().filter_map(|memory| Some((memory.unit?, memory))).collect())
    }

    /// Memories of a session, in chronological order of their sources.
    pub fn memories_of_session(&self, session: i64) -> Result<Vec<MemoryRow>> {
        self.memories(&format!("{CHOSEN} WHERE m.session_id = ?1 ORDER BY m.created_at, m.id"), &[&session])
    }

    /// The newest active memories of a project of the given kinds, pinned ones first.
    pub fn newest_memories(&self, project: i64, kinds: &[MemoryKind], limit: usize) -> Result<Vec<MemoryRow>> {
        let kinds: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
        let kinds = serde_json::to_string(&kinds)?;
        let sql = format!(
            "{CHOSEN} WHERE m.project_id = ?1 AND m.superseded_by IS NULL AND m.kind IN (SELECT value FROM json_each(?2))
             ORDER BY m.created_at DESC, m.id DESC LIMIT ?3"
        );
        self.memories(&sql, &[&project, &kinds, &(limit as i64)])
    }

    /// The newest active decisions and lessons of a project, at most `limit`: the user's own, or those of trusted members of
    /// the team, which cost nothing if nobody shares. `files` are those that they may be about.
    pub fn newest_settled(&self, project: i64, of_team: bool, limit: usize, files: &[String]) -> Result<Vec<SettledHead>> {
        if of_team && !self.conn.prepare_cached("SELECT 1 FROM machines LIMIT 1")?.exists([])? {
            return Ok(Vec::new());
        }
        let sql = "SELECT m.id, m.kind, m.title, m.provenance, m.made_by, m.by_hand, m.work_unit_id,
               EXISTS (SELECT 1 FROM memory_files f WHERE f.memory_id = m.id AND f.path IN (SELECT value FROM json_each(?4)))
             FROM memories m WHERE m.project_id = ?1 AND (m.provenance = 'team') = ?2 AND m.kind IN ('decision', 'lesson') AND m.superseded_by IS NULL
               AND (NOT ?2 OR EXISTS (SELECT 1 FROM shared h JOIN machines k ON k.id = h.machine WHERE h.uuid = m.uuid AND k.trusted))
             ORDER BY m.created_at DESC, m.id DESC LIMIT ?3";
        let head = |row: &Row| {
            Ok(SettledHead {
                id: row.get(0)?,
                kind: row.get(1)?,
                title: row.get(2)?,
                provenance: row.get(3)?,
                made_by: row.get(4)?,
                by_hand: row.get(5)?,
                unit: row.get(6)?,
                is_about_files: row.get(7)?,
            })
        };
        let files = serde_json::to_string(files)?;
        let mut statement = self.conn.prepare_cached(sql)?;
        Ok(statement.query_map(params![project, of_team, limit as i64, files], head)?.collect::<Result<_, _>>()?)
    }

    /// Returns the newest memories of a project (`None` for all projects), at most `limit`, and all pinned ones,
    /// superseded ones included; and the total number of memories.
    pub fn all_memories(&self, project: Option<i64>, limit: usize) -> Result<(Vec<MemoryRow>, usize)> {
        let of = if project.is_some() { "project_id = ?1" } else { "?1 IS NULL" };
        let all: i64 = self.conn.query_row(&format!("SELECT count(*) FROM memories WHERE {of}"), [project], |row| row.get(0))?;
        let sql = format!(
            "{CHOSEN} WHERE m.id IN (SELECT id FROM (SELECT id FROM memories WHERE {of} ORDER BY created_at DESC, id DESC LIMIT ?2)
                                     UNION SELECT id FROM memories WHERE {of} AND pinned)
             ORDER BY m.created_at DESC, m.id DESC"
        );
        Ok((self.memories(&sql, &[&project, &(limit as i64)])?, all as usize))
    }

    /// Pinned memories of a project, newest first.
    pub fn pinned_memories(&self, project: i64, limit: usize) -> Result<Vec<MemoryRow>> {
        // With a plain ORDER BY SQLite would scan all memories for the few pinned ones.
        let sql = format!(
            "{CHOSEN} WHERE m.id IN (SELECT id FROM memories WHERE project_id = ?1 AND pinned) AND m.superseded_by IS NULL
             ORDER BY m.created_at DESC LIMIT ?2"
        );
        self.memories(&sql, &[&project, &(limit as i64)])
    }

    /// Whether any memory has a type.
    pub fn has_memory_type(&self, kind_type: &str) -> Result<bool> {
        Ok(self.conn.prepare("SELECT 1 FROM memories WHERE type = ?1 LIMIT 1")?.exists([kind_type])?)
    }

    /// Whether any memory, of any project, is about a file with this name.
    pub fn has_memories_about(&self, path: &str) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM memory_files WHERE path = ?1)";
        Ok(self.conn.prepare_cached(sql)?.query_row([path], |row| row.get(0))?)
    }

    /// Memories about an edited file by the user, the agent or a trusted person: active decisions and lessons, and
    /// observations that are pinned or have one of two concepts. Pinned ones come first, then the newest.
    pub fn memories_about(&self, project: i64, path: &str, concepts: [&str; 2], limit: usize) -> Result<Vec<MemoryRow>> {
        // For a file with very many memories, only the newest are read.
        let sql = "SELECT f.memory_id FROM (SELECT memory_id FROM memory_files WHERE path = ?2 AND modified ORDER BY memory_id DESC LIMIT 400) f
                     JOIN memories m ON m.id = f.memory_id
                   WHERE m.project_id = ?1 AND m.superseded_by IS NULL AND (m.provenance = 'user' OR m.provenance = 'agent' OR m.pinned OR m.provenance = 'team'
                       AND EXISTS (SELECT 1 FROM shared h JOIN machines k ON k.id = h.machine WHERE h.uuid = m.uuid AND k.trusted))
                     AND (m.kind IN ('decision', 'lesson', 'tried') OR m.kind = 'observation' AND (m.pinned
                       OR EXISTS (SELECT 1 FROM json_each(m.concepts) WHERE value = ?3 OR value = ?4)))
                   ORDER BY m.pinned DESC, m.id DESC LIMIT ?5";
        let mut statement = self.conn.prepare_cached(sql)?;
        let ids = statement.query_map(params![project, path, concepts[0], concepts[1], limit as i64], |row| row.get(0))?;
        self.memories_by_rows(&ids.collect::<Result<Vec<i64>, _>>()?)
    }

    /// Rule summaries with notes, of earlier units of a session.
    pub fn notes_before(&self, story: &UnitStory) -> Result<Vec<MemoryRow>> {
        let sql = format!(
            "{CHOSEN} WHERE m.session_id = ?1 AND m.rule_key GLOB 'summary:u*' AND m.work_unit_id < ?2 AND m.made_by = 'rules'
             AND NOT m.by_hand AND m.superseded_by IS NULL AND m.content ->> '$.notes' IS NOT NULL"
        );
        self.memories(&sql, &[&story.session, &story.unit])
    }

    /// Open ends that nothing has ended, newest first: of a project or of all, on a branch or on all. One whose branch is not known
    /// is on every branch.
    pub fn open_ends(&self, project: Option<i64>, branch: Option<&str>, limit: usize) -> Result<Vec<MemoryRow>> {
        let of = if project.is_some() { "m.project_id = ?1" } else { "?1 IS NULL" };
        let sql = format!(
            "{CHOSEN} WHERE {of} AND m.kind = 'open' AND m.superseded_by IS NULL AND m.content ->> '$.ended' IS NULL
             AND coalesce(coalesce(s.end_branch, s.start_branch) = ?2, 1) ORDER BY m.created_at DESC, m.id DESC LIMIT ?3"
        );
        self.memories(&sql, &[&project, &branch, &i64::try_from(limit).unwrap_or(i64::MAX)])
    }

    /// Counts the open ends of a branch, and of a project without one.
    pub fn open_end_count(&self, project: i64, branch: Option<&str>) -> Result<i64> {
        let sql = "SELECT count(*) FROM memories m JOIN sessions s ON s.id = m.session_id WHERE m.project_id = ?1 AND m.kind = 'open'
             AND m.superseded_by IS NULL AND m.content ->> '$.ended' IS NULL AND coalesce(coalesce(s.end_branch, s.start_branch) = ?2, 1)";
        Ok(self.conn.prepare_cached(sql)?.query_row(params![project, branch], |row| row.get(0))?)
    }

    /// Open ends that a unit may have ended: those of earlier units of its branch, newest first.
    pub fn open_ends_before(&self, story: &UnitStory, limit: usize) -> Result<Vec<MemoryRow>> {
        // Most projects have none, and the whole query takes longer to compile.
        let any = "SELECT 1 FROM memories WHERE project_id = ?1 AND kind = 'open' AND work_unit_id IS NOT ?2";
        if !self.conn.prepare_cached(any)?.exists(params![story.project, story.unit])? {
            return Ok(Vec::new());
        }
        let sql = format!(
            "{CHOSEN} WHERE m.project_id = ?1 AND m.kind = 'open' AND m.superseded_by IS NULL AND m.content ->> '$.ended' IS NULL
             AND m.work_unit_id IS NOT ?2 AND m.created_at <= ?3
             AND coalesce(s.id = ?4 OR coalesce(s.end_branch, s.start_branch) = (SELECT coalesce(end_branch, start_branch) FROM sessions WHERE id = ?4), 1)
             ORDER BY m.created_at DESC, m.id DESC LIMIT ?5"
        );
        let last = story.prompts.iter().map(|prompt| prompt.received_at).max().unwrap_or(0);
        let last = story.tools.last().map_or(last, |tool| tool.received_at.max(last));
        self.memories(&sql, &[&story.project, &story.unit, &last, &story.session, &(limit as i64)])
    }

    /// Whether an agent's statement is backed by its work: one of its sources is a change, a check or a commit.
    /// Fetched, read or printed text proves nothing. If retention has deleted such a tool use, the rule's kind decides.
    pub fn is_proven(&self, memory: &MemoryRow) -> Result<bool> {
        let key: Option<String> =
            self.conn.prepare_cached("SELECT rule_key FROM memories WHERE id = ?1")?.query_row([memory.id], |row| row.get(0))?;
        let of_changes = key.is_some_and(|key| OF_CHANGES.iter().any(|rule| key.starts_with(rule)));
        let sql = "SELECT kind IN ('edit', 'write') OR command_kind IN ('test', 'build', 'lint', 'commit') FROM tool_uses WHERE id = ?1";
        let mut statement = self.conn.prepare_cached(sql)?;
        for source in memory.sources.iter().filter_map(|source| source.tool_use()) {
            let known = statement.query_row([source], |row| row.get::<_, Option<bool>>(0)).optional()?;
            if known.map_or(of_changes && memory.made_by == Maker::Rules, |proves| proves.unwrap_or(false)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The memories whose ids a statement chooses, in its order.
    fn memories(&self, chosen: &str, values: &[&dyn ToSql]) -> Result<Vec<MemoryRow>> {
        let ids = self.conn.prepare_cached(chosen)?.query_map(values, |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()?;
        self.memories_by_rows(&ids)
    }

    /// Reads memories, in the order of their ids.
    pub fn memories_by_rows(&self, ids: &[i64]) -> Result<Vec<MemoryRow>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut load = self.conn.prepare_cached(MEMORY)?;
        let mut found = Vec::new();
        for id in ids {
            found.extend(load.query_row([id], memory).optional()?);
        }
        let place: HashMap<i64, usize> = found.iter().enumerate().map(|(at, memory)| (memory.id, at)).collect();
        let ids = serde_json::to_string(ids)?;
        let sql = "SELECT memory_id, path, modified, hash FROM memory_files WHERE memory_id IN (SELECT value FROM json_each(?1))
                   ORDER BY modified DESC, path";
        let mut files = self.conn.prepare_cached(sql)?;
        let file =
            |row: &Row| Ok((row.get::<_, i64>(0)?, MemoryFile { path: row.get(1)?, modified: row.get(2)?, hash: row.get(3)? }));
        for row in files.query_map([&ids], file)? {
            let (id, file) = row?;
            if let Some(at) = place.get(&id) {
                found[*at].files.push(file);
            }
        }
        let of_team: Vec<&str> = found.iter().filter(|memory| memory.is_of_team()).map(|memory| memory.uuid.as_str()).collect();
        if !of_team.is_empty() {
            let mut origins = self.team_origins(&of_team)?;
            found.iter_mut().for_each(|memory| memory.team = origins.remove(&memory.uuid));
        }
        Ok(found)
    }
}
