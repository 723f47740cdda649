//! The index of tool uses, and the upkeep of all full-text indexes. Tool uses wait until their turn ends, or until somebody
//! searches: indexing each one alone took a seventh of a hook's time. The highest id in the index says which wait.
//!
//! The indexes store no text (contentless FTS5). All their content comes from one function of the stored row, so
//! indexing and rebuilding with `doctor --fix` give the same result.

use super::story::story_of;
use super::{Store, Tx};
use crate::index_text::{INDEX_TEXT_VERSION, index_text};
use crate::model::{Kind, PassageId, SearchScope, TextKind};
use anyhow::Result;
use rusqlite::{Row, params};
use std::time::{Duration, Instant};

/// Pages to merge at a time in a hook, and in a command: 10 ms, so that hooks hardly wait.
const MERGED: i64 = 4;
const MERGED_AT_ONCE: i64 = 256;

/// The full-text indexes.
pub(super) const FULL_TEXT: [&str; 3] = ["passage_index", "tool_index", "unit_index"];

/// The index's term for a project, which narrows a search inside the index.
pub(super) fn scope(project: Option<i64>) -> String {
    format!("project{}", project.unwrap_or(0))
}

/// Restricts an expression of a full-text index to projects.
pub(super) fn within(expression: &str, wanted: &SearchScope) -> String {
    let terms: Vec<String> = wanted.projects.iter().map(|project| scope(Some(*project))).collect();
    if terms.is_empty() { expression.to_string() } else { format!("({expression}) AND scope : ({})", terms.join(" OR ")) }
}

const TOOL: &str = "SELECT t.id, coalesce(t.project_id, s.project_id), t.kind, t.content, t.path, t.metadata ->> 'description',
      coalesce(t.metadata ->> 'response', iif(t.succeeded = 0, t.outcome, NULL)) FROM tool_uses t JOIN sessions s ON s.id = t.session_id";

/// The highest id in the index of tool uses.
pub(super) const LAST_TOOL: &str = "SELECT coalesce(max(id), 0) FROM tool_index_docsize";

impl Tx<'_> {
    /// Notes that a memory's text or project changed. Its vector is dropped.
    pub(super) fn index_memory_again(&self, id: i64) -> Result<()> {
        self.forget_vector(id)?;
        self.wait_for_index(TextKind::Memory, id)?;
        self.index_lone(id)
    }

    /// Indexes tool uses that wait, at most `most`; returns how many.
    pub(super) fn index_waiting_tools(&self, most: usize) -> Result<usize> {
        let sql = format!("{TOOL} WHERE t.id > ({LAST_TOOL}) ORDER BY t.id LIMIT ?1");
        let mut statement = self.tx.prepare_cached(&sql)?;
        let mut rows = statement.query([most as i64])?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            self.index_tool_row(row)?;
            count += 1;
        }
        Ok(count)
    }

    /// The highest id of the index of tool uses; later ones wait.
    fn last_indexed_tool(&self) -> Result<i64> {
        Ok(self.tx.prepare_cached(LAST_TOOL)?.query_row([], |row| row.get(0))?)
    }

    /// Indexes a tool use again after its outcome or project changed; nothing if it waits.
    pub(super) fn index_tool_again(&self, id: i64) -> Result<()> {
        if id > self.last_indexed_tool()? {
            return Ok(());
        }
        self.unindex_tool(id)?;
        let mut statement = self.tx.prepare_cached(&format!("{TOOL} WHERE t.id = ?1"))?;
        let mut rows = statement.query([id])?;
        rows.next()?.map_or(Ok(()), |row| self.index_tool_row(row))
    }

    fn index_tool_row(&self, row: &Row) -> Result<()> {
        let text = |i: usize| row.get::<_, Option<String>>(i);
        let (kind, content, path) = (row.get::<_, Kind>(2)?, text(3)?, text(4)?);
        let index = |text: Option<&str>| text.map(index_text).unwrap_or_default();
        let sql = "INSERT INTO tool_index(rowid, command, description, path, error, scope) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        self.tx.prepare_cached(sql)?.execute(params![
            row.get::<_, i64>(0)?,
            index(content.as_deref().filter(|content| path.as_deref() != Some(content))),
            index(text(5)?.as_deref()),
            index(path.as_deref().filter(|_| kind != Kind::Command)),
            index(text(6)?.as_deref()),
            scope(row.get(1)?),
        ])?;
        Ok(())
    }

    /// Removes a deleted tool use from the indexes, with its commit message.
    pub(super) fn unindex_deleted_tool(&self, id: i64) -> Result<()> {
        self.unindex_tool(id)?;
        self.unindex(TextKind::Commit, id)
    }

    /// Removes a tool use from the index.
    pub(super) fn unindex_tool(&self, id: i64) -> Result<()> {
        self.tx.prepare_cached("DELETE FROM tool_index WHERE rowid = ?1")?.execute([id])?;
        Ok(())
    }

    /// Indexes the rows of a session again after its project changed.
    pub(super) fn index_again(&self, session: i64) -> Result<()> {
        self.wait_for_session(session)?;
        let mut tools = self.tx.prepare_cached(&format!("{TOOL} WHERE t.session_id = ?1 AND t.id <= ?2"))?;
        let mut rows = tools.query([session, self.last_indexed_tool()?])?;
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
        let mut memories = self.tx.prepare_cached("SELECT id FROM memories WHERE session_id = ?1")?;
        for memory in memories.query_map([session], |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()? {
            self.forget_vector(memory)?;
            self.index_lone(memory)?;
        }
        Ok(())
    }
}

impl Store {
    /// Merges segments of one index, for about `time`. Every commit adds a segment, and a query reads all of them. The rest is
    /// merged next time (FTS5, "the merge command"). `turn`: a number that chooses the index.
    pub fn merge_index(&mut self, turn: usize, time: Duration) -> Result<()> {
        self.write(|tx| {
            let begun = Instant::now();
            while tx.merge_segments(FULL_TEXT[turn % FULL_TEXT.len()], MERGED)? && begun.elapsed() < time {}
            Ok(())
        })
    }

    /// Merges what can be merged in all indexes, in short transactions.
    pub fn merge_indexes(&mut self) -> Result<()> {
        for index in FULL_TEXT {
            while self.write(|tx| tx.merge_segments(index, MERGED_AT_ONCE))? {}
        }
        Ok(())
    }
}

impl Tx<'_> {
    /// Merges segments of an index, for about so many pages; returns false if there was nothing to merge.
    fn merge_segments(&self, index: &str, pages: i64) -> Result<bool> {
        let before = self.tx.total_changes();
        let sql = format!("INSERT INTO {index}({index}, rank) VALUES ('merge', ?1)");
        self.tx.prepare_cached(&sql)?.execute([pages])?;
        // Nothing left to merge counts as one change.
        Ok(self.tx.total_changes() - before >= 2)
    }
}

impl Store {
    /// Number of tool uses: those in the index, and those that wait for it. Counting all of them takes 5 ms at 300,000.
    pub(super) fn tool_uses_counted(&self) -> Result<i64> {
        let sql = format!("SELECT count(*) FROM tool_uses WHERE id > ({LAST_TOOL})");
        let waiting: i64 = self.conn.query_row(&sql, [], |row| row.get(0))?;
        Ok(waiting + self.rows_indexed("tool_index")?)
    }

    /// The version of the text function that filled the index.
    pub fn index_text_version(&self) -> Result<i64> {
        Ok(self.conn.query_row("SELECT value FROM meta WHERE key = 'index_text_version'", [], |row| row.get(0))?)
    }

    /// Number of rows that are missing from the indexes, or superfluous. What waits is not missing.
    pub fn unindexed(&self) -> Result<i64> {
        let texts = |table: &str, kind: TextKind| {
            let first = format!("(t.id * 4 + {}) * {}", kind as i64, PassageId::MAX);
            let (docs, kinds) = ("passage_index_docsize", format!("id / {} % 4 = {}", PassageId::MAX, kind as i64));
            format!(
                "(SELECT count(*) FROM {table} AND NOT EXISTS (SELECT 1 FROM {docs} WHERE id = {first})
                    AND NOT EXISTS (SELECT 1 FROM waiting WHERE text = t.id * 4 + {kind})) +
                 (SELECT count(*) FROM {docs} WHERE id % {max} = 0 AND {kinds} AND id / {max} / 4 NOT IN (SELECT t.id FROM {table}))",
                kind = kind as i64,
                max = PassageId::MAX,
            )
        };
        let sql = format!(
            "SELECT {} + {} + {}
               + abs((SELECT count(*) FROM work_units WHERE rules_mark IS NOT NULL) - (SELECT count(*) FROM unit_index_docsize WHERE id > 0))
               + abs((SELECT count(*) FROM tool_uses WHERE id <= ({LAST_TOOL})) - (SELECT count(*) FROM tool_index_docsize))",
            texts("prompts t WHERE kind NOT IN ('thinking', 'taken-back')", TextKind::Message),
            texts("memories t WHERE true", TextKind::Memory),
            texts("work_units t WHERE rules_mark IS NOT NULL", TextKind::Unit),
        );
        Ok(self.conn.query_row(&sql, [], |row| row.get(0))?)
    }

    /// Rebuilds SQLite's own indexes.
    pub fn reindex(&self) -> Result<()> {
        Ok(self.conn.execute_batch("REINDEX")?)
    }

    /// Rebuilds the full-text indexes; `progress` receives the rows done and the total.
    pub fn rebuild_index(&mut self, progress: &mut dyn FnMut(i64, i64)) -> Result<()> {
        let tables = [Indexed::Tools, Indexed::Units];
        let mut last = Vec::new();
        for table in tables {
            let sql = format!("SELECT coalesce(max(id), 0) FROM {}", table.name());
            last.push(self.conn.query_row(&sql, [], |row| row.get::<_, i64>(0))?);
        }
        self.write(|tx| {
            // The index of versions before 20.
            tx.tx.execute_batch("DROP TABLE IF EXISTS text_index; DELETE FROM waiting")?;
            for index in FULL_TEXT {
                tx.tx.execute(&format!("INSERT INTO {index}({index}) VALUES ('delete-all')"), [])?;
            }
            tx.wait_for_all([0; 4])
        })?;
        let waiting = self.texts_waiting()?;
        let all = last.iter().sum::<i64>() + waiting;
        self.index_waiting(usize::MAX, &mut |done| progress(done as i64, all))?;
        let mut done = waiting;
        for (table, last_id) in tables.into_iter().zip(&last) {
            for from in (0..*last_id).step_by(table.batch()) {
                self.write(|tx| tx.index_stretch(table, from, (from + table.batch() as i64).min(*last_id)))?;
                progress(done + from, all);
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
    Tools,
    Units,
}

impl Indexed {
    fn name(self) -> &'static str {
        match self {
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
        self.wait_for_all([prompts, memories, tools, units])?;
        let mut lone = self.tx.prepare("SELECT id FROM memories WHERE id > ?1")?;
        for memory in lone.query_map([memories], |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()? {
            self.index_lone(memory)?;
        }
        self.index_stretch(Indexed::Tools, tools.min(self.last_indexed_tool()?), i64::MAX)?;
        self.index_stretch(Indexed::Units, units, i64::MAX)
    }

    fn index_stretch(&self, table: Indexed, from: i64, to: i64) -> Result<()> {
        let sql = match table {
            Indexed::Tools => format!("{TOOL} WHERE t.id > ?1 AND t.id <= ?2"),
            Indexed::Units => "SELECT id FROM work_units WHERE rules_mark IS NOT NULL AND id > ?1 AND id <= ?2".to_string(),
        };
        let mut statement = self.tx.prepare_cached(&sql)?;
        let mut rows = statement.query([from, to])?;
        while let Some(row) = rows.next()? {
            // A concurrent hook has already indexed its own row.
            match table {
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
