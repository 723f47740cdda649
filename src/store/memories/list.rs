//! Reads memories: of a unit, of a session, the newest of a project, one.

use super::super::Store;
use crate::model::{MemoryFile, MemoryKind, MemoryRow};
use anyhow::Result;
use rusqlite::{Row, ToSql};

const MEMORY: &str = "SELECT m.id, m.uuid, m.kind, m.type, m.title, m.subtitle, m.body, m.content, p.name, m.session_id,
    s.agent_session_id, m.work_unit_id, m.prompt_number, m.sources, m.platform, m.provenance, m.made_by, m.discovery_tokens,
    m.tokens_estimated, m.created_at, m.pinned, m.by_hand, m.superseded_by, m.project_id
  FROM memories m LEFT JOIN projects p ON p.id = m.project_id LEFT JOIN sessions s ON s.id = m.session_id";

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
        sources: serde_json::from_str(&json(13)?).unwrap_or_default(),
        platform: row.get(14)?,
        provenance: row.get(15)?,
        made_by: row.get(16)?,
        tokens: row.get(17)?,
        tokens_estimated: row.get(18)?,
        created_at: row.get(19)?,
        pinned: row.get(20)?,
        by_hand: row.get(21)?,
        superseded_by: row.get(22)?,
        concepts: Vec::new(),
        files: Vec::new(),
    })
}

impl Store {
    /// Reads one memory.
    pub fn memory_by_row(&self, id: i64) -> Result<Option<MemoryRow>> {
        Ok(self.memories(&format!("{MEMORY} WHERE m.id = ?1"), &[&id])?.pop())
    }

    /// The memories whose uuid begins so.
    pub fn memories_by_uuid(&self, prefix: &str) -> Result<Vec<MemoryRow>> {
        let sql = format!("{MEMORY} WHERE m.uuid >= ?1 AND m.uuid < ?1 || 'g' LIMIT 2");
        self.memories(&sql, &[&prefix.to_lowercase()])
    }

    /// The memories of a unit, in the order of what they tell of.
    pub fn memories_of_unit(&self, session: i64, unit: i64) -> Result<Vec<MemoryRow>> {
        let sql = format!("{MEMORY} WHERE m.session_id = ?1 AND m.work_unit_id = ?2 ORDER BY m.created_at, m.id");
        self.memories(&sql, &[&session, &unit])
    }

    /// The summary of a unit.
    pub fn summary_of_unit(&self, session: i64, unit: i64) -> Result<Option<MemoryRow>> {
        let sql = format!(
            "{MEMORY} WHERE m.session_id = ?1 AND m.work_unit_id = ?2 AND m.kind = 'summary' AND m.superseded_by IS NULL ORDER BY m.id DESC LIMIT 1"
        );
        Ok(self.memories(&sql, &[&session, &unit])?.pop())
    }

    /// The memories of a session, in the order of what they tell of.
    pub fn memories_of_session(&self, session: i64) -> Result<Vec<MemoryRow>> {
        self.memories(&format!("{MEMORY} WHERE m.session_id = ?1 ORDER BY m.created_at, m.id"), &[&session])
    }

    /// The newest memories of a project that still hold, of the given kinds; pinned ones first.
    pub fn newest_memories(&self, project: i64, kinds: &[MemoryKind], limit: usize) -> Result<Vec<MemoryRow>> {
        let kinds: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
        let kinds = serde_json::to_string(&kinds)?;
        let sql = format!(
            "{MEMORY} WHERE m.project_id = ?1 AND m.superseded_by IS NULL AND m.kind IN (SELECT value FROM json_each(?2))
             ORDER BY m.created_at DESC, m.id DESC LIMIT ?3"
        );
        self.memories(&sql, &[&project, &kinds, &(limit as i64)])
    }

    /// Pinned memories of a project, the newest first.
    pub fn pinned_memories(&self, project: i64, limit: usize) -> Result<Vec<MemoryRow>> {
        // In an order of their own, the few that are pinned would be looked for among all.
        let sql = format!(
            "{MEMORY} WHERE m.id IN (SELECT id FROM memories WHERE project_id = ?1 AND pinned) AND m.superseded_by IS NULL
             ORDER BY m.created_at DESC LIMIT ?2"
        );
        self.memories(&sql, &[&project, &(limit as i64)])
    }

    fn memories(&self, sql: &str, values: &[&dyn ToSql]) -> Result<Vec<MemoryRow>> {
        let mut found: Vec<MemoryRow> = self.conn.prepare_cached(sql)?.query_map(values, memory)?.collect::<Result<_, _>>()?;
        let mut concepts =
            self.conn.prepare_cached("SELECT concept FROM memory_concepts WHERE memory_id = ?1 ORDER BY concept")?;
        let mut files = self
            .conn
            .prepare_cached("SELECT path, modified, hash FROM memory_files WHERE memory_id = ?1 ORDER BY modified DESC, path")?;
        for memory in &mut found {
            memory.concepts = concepts.query_map([memory.id], |row| row.get(0))?.collect::<Result<_, _>>()?;
            let file = |row: &Row| Ok(MemoryFile { path: row.get(0)?, modified: row.get(1)?, hash: row.get(2)? });
            memory.files = files.query_map([memory.id], file)?.collect::<Result<_, _>>()?;
        }
        Ok(found)
    }
}
