//! The two full-text indexes. Rows are indexed when inserted, can be reindexed, and are removed from the index when
//! deleted.
//!
//! The indexes store no text (contentless FTS5). All their content comes from one function of the stored row, so
//! indexing at insertion and rebuilding with `doctor --fix` give the same result.

use super::story::story_of;
use super::{Store, Tx};
use crate::index_text::{INDEX_TEXT_VERSION, index_text};
use crate::model::Kind;
use anyhow::Result;
use rusqlite::{Row, params};

/// Kinds of rows in `text_index`, in the two lowest bits of its rowid: `id * 4 + kind`.
pub(super) const INDEXED_PROMPT: i64 = 0;
pub(super) const INDEXED_MEMORY: i64 = 1;
const INDEXED_KINDS: i64 = 4;

/// The index's term for a project, which narrows a search inside the index.
pub(super) fn scope(project: Option<i64>) -> String {
    format!("project{}", project.unwrap_or(0))
}

/// The searched parts of a tool use.
pub(super) struct IndexedTool<'a> {
    pub kind: Kind,
    pub content: Option<&'a str>,
    pub path: Option<&'a str>,
    pub description: Option<&'a str>,
    pub error: Option<&'a str>,
}

const TOOL: &str = "SELECT t.id, coalesce(t.project_id, s.project_id), t.kind, t.content, t.path, t.metadata ->> 'description', t.metadata ->> 'response'
    FROM tool_uses t JOIN sessions s ON s.id = t.session_id";
const PROMPT: &str = "SELECT p.id, coalesce(p.project_id, s.project_id), p.text FROM prompts p JOIN sessions s ON s.id = p.session_id WHERE p.kind NOT IN ('thinking', 'taken-back')";
/// SQL for the indexed text of a memory: all its text, its concepts and its files.
const MEMORY: &str = "SELECT m.id, m.project_id, m.title, concat_ws(char(10), m.subtitle, m.body,
      (SELECT group_concat(value, char(10)) FROM json_tree(m.content) WHERE type = 'text'),
      (SELECT group_concat(concept, ' ') FROM memory_concepts WHERE memory_id = m.id),
      (SELECT group_concat(path, ' ') FROM memory_files WHERE memory_id = m.id)) FROM memories m";

impl Tx<'_> {
    /// Indexes a prompt; its first line counts twice.
    pub(super) fn index_prompt(&self, id: i64, project: Option<i64>, text: &str) -> Result<()> {
        let (title, body) = text.split_once('\n').unwrap_or((text, ""));
        self.index_text(id, INDEXED_PROMPT, project, title, body)
    }

    /// Indexes a prompt again after its project changed.
    pub(super) fn index_prompt_again(&self, id: i64) -> Result<()> {
        self.unindex(id, INDEXED_PROMPT)?;
        let mut statement = self.tx.prepare_cached(&format!("{PROMPT} AND p.id = ?1"))?;
        let mut rows = statement.query([id])?;
        rows.next()?.map_or(Ok(()), |row| self.index_prompt(row.get(0)?, row.get(1)?, &row.get::<_, String>(2)?))
    }

    fn index_text(&self, id: i64, kind: i64, project: Option<i64>, title: &str, body: &str) -> Result<()> {
        let sql = "INSERT INTO text_index(rowid, title, body, scope) VALUES (?1, ?2, ?3, ?4)";
        let values = params![id * INDEXED_KINDS + kind, index_text(title), index_text(body), scope(project)];
        self.tx.prepare_cached(sql)?.execute(values)?;
        Ok(())
    }

    /// Indexes a memory again after its text or project changed. Its vector is dropped.
    pub(super) fn index_memory_again(&self, id: i64) -> Result<()> {
        self.forget_vector(id)?;
        self.unindex(id, INDEXED_MEMORY)?;
        let mut statement = self.tx.prepare_cached(&format!("{MEMORY} WHERE m.id = ?1"))?;
        let mut rows = statement.query([id])?;
        rows.next()?.map_or(Ok(()), |row| self.index_memory_row(row))?;
        self.index_lone(id)
    }

    fn index_memory_row(&self, row: &Row) -> Result<()> {
        let (title, body): (String, String) = (row.get(2)?, row.get(3)?);
        self.index_text(row.get(0)?, INDEXED_MEMORY, row.get(1)?, &title, &body)
    }

    /// Indexes a tool use.
    pub(super) fn index_tool(&self, id: i64, project: Option<i64>, tool: &IndexedTool) -> Result<()> {
        let text = |text: Option<&str>| text.map(index_text).unwrap_or_default();
        let sql = "INSERT INTO tool_index(rowid, command, description, path, error, scope) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        self.tx.prepare_cached(sql)?.execute(params![
            id,
            text(tool.content.filter(|content| tool.path != Some(content))),
            text(tool.description),
            text(tool.path.filter(|_| tool.kind != Kind::Command)),
            text(tool.error),
            scope(project),
        ])?;
        Ok(())
    }

    /// Indexes a tool use again after its outcome changed.
    pub(super) fn index_tool_again(&self, id: i64) -> Result<()> {
        self.unindex_tool(id)?;
        let mut statement = self.tx.prepare_cached(&format!("{TOOL} WHERE t.id = ?1"))?;
        let mut rows = statement.query([id])?;
        rows.next()?.map_or(Ok(()), |row| self.index_tool_row(row))
    }

    fn index_tool_row(&self, row: &Row) -> Result<()> {
        let text = |i: usize| row.get::<_, Option<String>>(i);
        let (kind, content, path) = (row.get(2)?, text(3)?, text(4)?);
        let (description, error) = (text(5)?, text(6)?);
        let tool = IndexedTool {
            kind,
            content: content.as_deref(),
            path: path.as_deref(),
            description: description.as_deref(),
            error: error.as_deref(),
        };
        self.index_tool(row.get(0)?, row.get(1)?, &tool)
    }

    /// Removes a prompt or memory from the index.
    pub(super) fn unindex(&self, id: i64, kind: i64) -> Result<()> {
        let rowid = id * INDEXED_KINDS + kind;
        self.tx.prepare_cached("DELETE FROM text_index WHERE rowid = ?1")?.execute([rowid])?;
        Ok(())
    }

    /// Removes a tool use from the index.
    pub(super) fn unindex_tool(&self, id: i64) -> Result<()> {
        self.tx.prepare_cached("DELETE FROM tool_index WHERE rowid = ?1")?.execute([id])?;
        Ok(())
    }

    /// Indexes the rows of a session again after its project changed.
    pub(super) fn index_again(&self, session: i64) -> Result<()> {
        let mut prompts = self.tx.prepare_cached(&format!("{PROMPT} AND p.session_id = ?1"))?;
        let mut rows = prompts.query([session])?;
        while let Some(row) = rows.next()? {
            self.unindex(row.get(0)?, INDEXED_PROMPT)?;
            self.index_prompt(row.get(0)?, row.get(1)?, &row.get::<_, String>(2)?)?;
        }
        let mut tools = self.tx.prepare_cached(&format!("{TOOL} WHERE t.session_id = ?1"))?;
        let mut rows = tools.query([session])?;
        while let Some(row) = rows.next()? {
            self.unindex_tool(row.get(0)?)?;
            self.index_tool_row(row)?;
        }
        let mut units = self.tx.prepare_cached("SELECT id FROM work_units WHERE session_id = ?1 AND rules_mark IS NOT NULL")?;
        for unit in units.query_map([session], |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()? {
            if let Some(story) = story_of(&self.tx, unit)? {
                self.index_unit(&story)?;
            }
        }
        let mut memories = self.tx.prepare_cached(&format!("{MEMORY} WHERE m.session_id = ?1"))?;
        let mut rows = memories.query([session])?;
        while let Some(row) = rows.next()? {
            self.forget_vector(row.get(0)?)?;
            self.unindex(row.get(0)?, INDEXED_MEMORY)?;
            self.index_memory_row(row)?;
            self.index_lone(row.get(0)?)?;
        }
        Ok(())
    }
}

impl Store {
    /// Merges index segments, about `pages` pages of each index at most. Every commit adds a segment, and a query reads
    /// all of them. The rest is merged next time (FTS5, "the merge command").
    pub fn merge_indexes(&mut self, pages: i64) -> Result<()> {
        self.write(|tx| {
            for index in ["text_index", "tool_index", "unit_index"] {
                let sql = format!("INSERT INTO {index}({index}, rank) VALUES ('merge', ?1)");
                tx.tx.prepare_cached(&sql)?.execute([pages])?;
            }
            Ok(())
        })
    }
}

impl Store {
    /// The version of the text function that filled the index.
    pub fn index_text_version(&self) -> Result<i64> {
        Ok(self.conn.query_row("SELECT value FROM meta WHERE key = 'index_text_version'", [], |row| row.get(0))?)
    }

    /// Number of rows that are missing from the indexes, or superfluous.
    pub fn unindexed(&self) -> Result<i64> {
        let sql = "SELECT abs((SELECT count(*) FROM prompts WHERE kind NOT IN ('thinking', 'taken-back')) - (SELECT count(*) FROM text_index_docsize WHERE id % ?1 = ?2))
                        + abs((SELECT count(*) FROM memories) - (SELECT count(*) FROM text_index_docsize WHERE id % ?1 = ?3))
                        + abs((SELECT count(*) FROM work_units WHERE rules_mark IS NOT NULL) - (SELECT count(*) FROM unit_index_docsize WHERE id > 0))
                        + abs((SELECT count(*) FROM tool_uses) - (SELECT count(*) FROM tool_index_docsize))";
        Ok(self.conn.query_row(sql, [INDEXED_KINDS, INDEXED_PROMPT, INDEXED_MEMORY], |row| row.get(0))?)
    }

    /// Rebuilds SQLite's own indexes.
    pub fn reindex(&self) -> Result<()> {
        Ok(self.conn.execute_batch("REINDEX")?)
    }

    /// Rebuilds both full-text indexes; `progress` receives the rows done and the total.
    pub fn rebuild_index(&mut self, progress: &mut dyn FnMut(i64, i64)) -> Result<()> {
        let tables = [Indexed::Prompts, Indexed::Memories, Indexed::Tools, Indexed::Units];
        let mut last = Vec::new();
        for table in tables {
            let sql = format!("SELECT coalesce(max(id), 0) FROM {}", table.name());
            last.push(self.conn.query_row(&sql, [], |row| row.get::<_, i64>(0))?);
        }
        self.write(|tx| {
            tx.tx.execute_batch(
                "INSERT INTO text_index(text_index) VALUES ('delete-all'); INSERT INTO tool_index(tool_index) VALUES ('delete-all');
                 INSERT INTO unit_index(unit_index) VALUES ('delete-all')",
            )?;
            Ok(())
        })?;
        let mut done = 0;
        for (table, last_id) in tables.into_iter().zip(&last) {
            for from in (0..*last_id).step_by(table.batch()) {
                self.write(|tx| tx.index_stretch(table, from, (from + table.batch() as i64).min(*last_id)))?;
                progress(done + from, last.iter().sum());
            }
            done += last_id;
        }
        self.write(|tx| {
            tx.tx.execute("UPDATE meta SET value = ?1 WHERE key = 'index_text_version'", [INDEX_TEXT_VERSION])?;
            Ok(())
        })
    }
}

/// A table with indexed rows.
#[derive(Clone, Copy)]
enum Indexed {
    Prompts,
    Memories,
    Tools,
    Units,
}

impl Indexed {
    fn name(self) -> &'static str {
        match self {
            Indexed::Prompts => "prompts",
            Indexed::Memories => "memories",
            Indexed::Tools => "tool_uses",
            Indexed::Units => "work_units",
        }
    }

    /// Rows to reindex per transaction: 0.1 s, so that hooks hardly wait.
    fn batch(self) -> usize {
        if matches!(self, Indexed::Units) { 50 } else { 1000 }
    }
}

impl Tx<'_> {
    /// Indexes all rows after the given ids: prompts, memories, tool uses, units.
    pub(super) fn index_behind(&self, [prompts, memories, tools, units]: [i64; 4]) -> Result<()> {
        for (table, from) in
            [(Indexed::Prompts, prompts), (Indexed::Memories, memories), (Indexed::Tools, tools), (Indexed::Units, units)]
        {
            self.index_stretch(table, from, i64::MAX)?;
        }
        Ok(())
    }

    fn index_stretch(&self, table: Indexed, from: i64, to: i64) -> Result<()> {
        let sql = match table {
            Indexed::Prompts => format!("{PROMPT} AND p.id > ?1 AND p.id <= ?2"),
            Indexed::Memories => format!("{MEMORY} WHERE m.id > ?1 AND m.id <= ?2"),
            Indexed::Tools => format!("{TOOL} WHERE t.id > ?1 AND t.id <= ?2"),
            Indexed::Units => "SELECT id FROM work_units WHERE rules_mark IS NOT NULL AND id > ?1 AND id <= ?2".to_string(),
        };
        let mut statement = self.tx.prepare_cached(&sql)?;
        let mut rows = statement.query([from, to])?;
        while let Some(row) = rows.next()? {
            // A concurrent hook has already indexed its own row.
            match table {
                Indexed::Prompts => {
                    self.unindex(row.get(0)?, INDEXED_PROMPT)?;
                    self.index_prompt(row.get(0)?, row.get(1)?, &row.get::<_, String>(2)?)?;
                }
                Indexed::Memories => {
                    self.unindex(row.get(0)?, INDEXED_MEMORY)?;
                    self.index_memory_row(row)?;
                    self.index_lone(row.get(0)?)?;
                }
                Indexed::Tools => {
                    self.unindex_tool(row.get(0)?)?;
                    self.index_tool_row(row)?;
                }
                Indexed::Units => {
                    if let Some(story) = story_of(&self.tx, row.get(0)?)? {
                        self.index_unit(&story)?;
                    }
                }
            }
        }
        Ok(())
    }
}
