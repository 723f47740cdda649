//! Forgetting: deletes rows with everything that depends on them, and remembers keyed hashes.

use super::events::SAME_EVENT;
use super::events::StoredSession;
use super::index::FULL_TEXT;
use super::{Store, Tx};
use crate::model::{Deletion, Millis, TakenBack, TextKind};
use anyhow::{Context, Result, bail};
use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::collections::{BTreeSet, HashSet};
use std::time::{Duration, Instant};

/// Page cache in KiB. It is large because rows all over the file are accessed repeatedly.
const CACHE: i64 = 64 << 10;
/// Pages to merge per transaction.
const MERGED: i64 = 500;
/// Maximum wait for other processes until the log can be truncated.
const LOG_WAIT: Duration = Duration::from_secs(20);

/// Filter for the rows to delete: those that match every criterion. An empty filter matches nothing.
#[derive(Clone, Debug, Default)]
pub struct DeleteFilter {
    pub prompts: Vec<i64>,
    pub tool_uses: Vec<i64>,
    pub memories: Vec<i64>,
    pub session: Option<i64>,
    pub project: Option<i64>,
    pub before: Option<Millis>,
    /// Text that any text column of the row contains, ignoring case.
    pub text: Option<String>,
}

/// Registers the SQL function `holds(text)`, which returns true if a text contains the searched one, ignoring case in
/// any script.
fn register(conn: &Connection, text: Option<&str>) -> Result<()> {
    // JSON columns contain quotes and line ends as escapes.
    let escaped = |text: &str| serde_json::to_string(text).map(|json| json[1..json.len() - 1].to_lowercase()).unwrap_or_default();
    let wanted = text.map(|text| (text.to_lowercase(), escaped(text)));
    let holds = move |context: &rusqlite::functions::Context| {
        let text = context.get_raw(0).as_str_or_null().ok().flatten().map(str::to_lowercase);
        Ok(match (&wanted, text) {
            (Some((plain, escaped)), Some(text)) => text.contains(plain.as_str()) || text.contains(escaped.as_str()),
            (None, _) => true,
            (Some(_), None) => false,
        })
    };
    Ok(conn.create_scalar_function("holds", 1, FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_UTF8, holds)?)
}

const PROMPTS: &str = "SELECT p.id FROM prompts p JOIN sessions s ON s.id = p.session_id
    WHERE (?1 IS NULL OR s.id = ?1) AND (?2 IS NULL OR coalesce(p.project_id, s.project_id) = ?2) AND (?3 IS NULL OR p.received_at < ?3)
      AND holds(concat_ws(char(10), p.text, p.platform_prompt_id, p.agent_id))";
const TOOL_USES: &str = "SELECT t.id FROM tool_uses t JOIN sessions s ON s.id = t.session_id
    WHERE (?1 IS NULL OR s.id = ?1) AND (?2 IS NULL OR coalesce(t.project_id, s.project_id) = ?2) AND (?3 IS NULL OR t.received_at < ?3)
      AND holds(concat_ws(char(10), t.tool_name, t.content, t.path, t.input, t.outcome, t.cwd, t.tool_use_id,
        t.metadata, t.metadata ->> 'description', t.metadata ->> 'response', t.metadata -> 'commit' ->> 'subject'))";
/// Selects sessions to delete completely: those whose own fields contain the text, or whose last event was before the
/// time. Excludes the empty row of a session that was already forgotten.
const SESSIONS: &str = "SELECT s.id FROM sessions s
    WHERE (?1 IS NULL OR s.id = ?1) AND (?2 IS NULL OR s.project_id = ?2) AND (s.cwd IS NOT NULL OR s.prompts + s.tool_uses > 0)
      AND (?3 IS NULL OR max(s.active_at, coalesce((SELECT max(received_at) FROM tool_uses WHERE session_id = s.id), 0)) < ?3)
      AND holds(concat_ws(char(10), s.cwd, s.start_branch, s.end_branch, s.agent_session_id, s.model,
        s.end_reason, s.stop_reason, s.transcript_message, s.muted_prompt))";
const TASKS: &str = "SELECT s.id FROM sessions s WHERE (?1 IS NULL OR s.id = ?1) AND (?2 IS NULL OR s.project_id = ?2)
    AND (?3 IS NULL OR s.active_at < ?3) AND EXISTS (SELECT 1 FROM json_each(s.tasks) WHERE holds(concat_ws(char(10), value, value ->> 'subject')))";
const MEMORIES: &str = "SELECT m.id FROM memories m WHERE (?1 IS NULL OR m.session_id = ?1) AND (?2 IS NULL OR m.project_id = ?2)
    AND (?3 IS NULL OR m.created_at < ?3)
    AND holds(concat_ws(char(10), m.title, m.subtitle, m.body, m.content, (SELECT group_concat(value, char(10)) FROM json_tree(m.content) WHERE type = 'text'),
      m.type, m.made_by, m.platform, (SELECT group_concat(value, char(10)) FROM json_each(m.concepts)),
      (SELECT group_concat(path, char(10)) FROM memory_files WHERE memory_id = m.id)))";
const PROJECTS: &str = "SELECT p.id FROM projects p WHERE (?1 IS NULL OR p.id = ?1)
    AND holds(concat_ws(char(10), p.name, p.repo_url, p.root, (SELECT group_concat(key, char(10)) FROM project_keys WHERE project_id = p.id)))";

/// Rebuilds the remaining units of a session, inside the transaction.
pub type Recount<'a> = &'a dyn Fn(&Tx, i64) -> Result<()>;

impl Store {
    /// Determines the rows that would be deleted.
    pub fn what_would_go(&self, wanted: &DeleteFilter) -> Result<Deletion> {
        let mut going = Deletion {
            prompts: wanted.prompts.clone(),
            tool_uses: wanted.tool_uses.clone(),
            memories: wanted.memories.clone(),
            dismissed: !wanted.memories.is_empty(),
            ..Deletion::default()
        };
        if wanted.session.is_none() && wanted.project.is_none() && wanted.before.is_none() && wanted.text.is_none() {
            return self.within(going);
        }
        register(&self.conn, wanted.text.as_deref())?;
        let ids = |sql: &str, values: &[&dyn rusqlite::ToSql]| -> Result<Vec<i64>> {
            Ok(self.conn.prepare(sql)?.query_map(values, |row| row.get(0))?.collect::<Result<_, _>>()?)
        };
        let scope: [&dyn rusqlite::ToSql; 3] = [&wanted.session, &wanted.project, &wanted.before];
        if wanted.session.is_none() && wanted.before.is_none() {
            going.projects = ids(PROJECTS, &[&wanted.project])?;
        }
        let mut sessions: BTreeSet<i64> = ids(SESSIONS, &scope)?.into_iter().collect();
        for project in &going.projects {
            sessions.extend(ids("SELECT id FROM sessions WHERE project_id = ?1", &[project])?);
        }
        going.prompts.extend(ids(PROMPTS, &scope)?);
        going.tool_uses.extend(ids(TOOL_USES, &scope)?);
        going.memories.extend(ids(MEMORIES, &scope)?);
        if wanted.text.is_some() {
            going.task_lists = ids(TASKS, &scope)?.into_iter().filter(|id| !sessions.contains(id)).collect();
        }
        going.sessions = sessions.into_iter().collect();
        self.within(going)
    }

    /// Decisions and lessons of the given tasks, which are deleted with them.
    fn parts_of_tasks(&self, memories: &[i64]) -> Result<Vec<i64>> {
        let sql =
            "SELECT p.id FROM memories t JOIN memories p ON p.content ->> '$.task' = t.uuid AND p.kind IN ('decision', 'lesson')
               WHERE t.id = ?1 AND t.kind = 'task'";
        let mut statement = self.conn.prepare(sql)?;
        let mut parts = Vec::new();
        for id in memories {
            parts.extend(statement.query_map([id], |row| row.get::<_, i64>(0))?.collect::<Result<Vec<_>, _>>()?);
        }
        Ok(parts)
    }

    /// Adds the rows of whole sessions, and lists the sessions that lose only some rows.
    fn within(&self, mut going: Deletion) -> Result<Deletion> {
        let mut touched = BTreeSet::new();
        for (table, ids) in [("prompts", &mut going.prompts), ("tool_uses", &mut going.tool_uses)] {
            let mut all: BTreeSet<i64> = ids.iter().copied().collect();
            let mut of = self.conn.prepare(&format!("SELECT id FROM {table} WHERE session_id = ?1"))?;
            for session in &going.sessions {
                all.extend(of.query_map([session], |row| row.get::<_, i64>(0))?.collect::<Result<Vec<_>, _>>()?);
            }
            let mut session = self.conn.prepare(&format!("SELECT session_id FROM {table} WHERE id = ?1"))?;
            for id in &all {
                touched.extend(session.query_row([id], |row| row.get::<_, i64>(0)).ok());
            }
            *ids = all.into_iter().collect();
        }
        let mut of = self.conn.prepare("SELECT id FROM memories WHERE session_id = ?1")?;
        for session in &going.sessions {
            going.memories.extend(of.query_map([session], |row| row.get::<_, i64>(0))?.collect::<Result<Vec<_>, _>>()?);
        }
        going.memories.extend(self.parts_of_tasks(&going.memories)?);
        going.memories.sort_unstable();
        going.memories.dedup();
        going.touched = touched.into_iter().filter(|id| !going.sessions.contains(id)).collect();
        let gone: BTreeSet<String> =
            going.prompts.iter().map(|id| format!("p{id}")).chain(going.tool_uses.iter().map(|id| format!("t{id}"))).collect();
        let mut sources = self.conn.prepare("SELECT value FROM memories m, json_each(m.sources) WHERE m.id = ?1")?;
        let mut of = self.conn.prepare("SELECT id FROM memories WHERE session_id = ?1 AND NOT by_hand")?;
        for session in &going.touched {
            let others = of.query_map([session], |row| row.get::<_, i64>(0))?.collect::<Result<Vec<_>, _>>()?;
            for id in others.into_iter().filter(|id| going.memories.binary_search(id).is_err()) {
                let drawn = sources.query_map([id], |row| row.get::<_, String>(0))?;
                going.drawn += usize::from(drawn.filter_map(Result::ok).any(|source| gone.contains(&source)));
            }
        }
        let mut name = self.conn.prepare("SELECT name FROM projects WHERE id = ?1")?;
        for project in &going.projects {
            going.project_names.extend(name.query_row([project], |row| row.get::<_, String>(0)).ok());
        }
        let mut name = self.conn.prepare("SELECT agent_session_id FROM sessions WHERE id = ?1")?;
        for session in &going.sessions {
            going.session_ids.extend(name.query_row([session], |row| row.get::<_, String>(0)).ok());
        }
        Ok(going)
    }

    /// Deletes the rows and records their hashes; `recount` rebuilds the remaining units of a session. The text is gone
    /// from every page only after [`Store::scrub`].
    pub fn forget(&mut self, going: &Deletion, text: Option<&str>, hash: HashIdentity, recount: Recount) -> Result<()> {
        self.delete_securely()?;
        self.conn.pragma_update(None, "cache_size", -CACHE)?;
        // References are deleted or cleared here; with foreign keys SQLite would scan all tool uses for each prompt.
        self.conn.pragma_update(None, "foreign_keys", false)?;
        register(&self.conn, text)?;
        self.write(|tx| {
            tx.note_forgotten(going, hash)?;
            if going.dismissed || text.is_some() {
                tx.note_shared_forgotten(&going.memories)?;
            }
            for id in &going.memories {
                if going.dismissed { tx.dismiss_memory(*id)? } else { tx.delete_memory(*id)? }
            }
            tx.forget_drawn(going)?;
            tx.forget_injected_texts()?;
            for id in &going.tool_uses {
                tx.unindex_deleted_tool(*id)?;
                tx.tx.prepare_cached("DELETE FROM tool_uses WHERE id = ?1")?.execute([id])?;
            }
            for id in &going.prompts {
                tx.unindex(TextKind::Message, *id)?;
                tx.tx.prepare_cached("UPDATE tool_uses SET prompt_id = NULL WHERE prompt_id = ?1 AND session_id = (SELECT session_id FROM prompts WHERE id = ?1)")?.execute([id])?;
                tx.tx.prepare_cached("DELETE FROM prompts WHERE id = ?1")?.execute([id])?;
            }
            going.task_lists.iter().try_for_each(|id| tx.forget_tasks(*id))?;
            going.touched.iter().try_for_each(|id| tx.count_again(*id))?;
            tx.forget_in_units(going, recount)?;
            going.sessions.iter().try_for_each(|id| tx.forget_session(*id, text.is_some()))?;
            for id in &going.projects {
                for table in ["sessions", "work_units", "prompts", "tool_uses"] {
                    tx.tx.execute(&format!("UPDATE {table} SET project_id = NULL WHERE project_id = ?1"), [id])?;
                }
                tx.tx.execute("DELETE FROM project_keys WHERE project_id = ?1", [id])?;
                tx.tx.execute("DELETE FROM projects WHERE id = ?1", [id])?;
            }
            Ok(())
        })
    }

    /// Makes SQLite overwrite the content of deleted rows from now on.
    pub fn delete_securely(&self) -> Result<()> {
        Ok(self.conn.pragma_update(None, "secure_delete", true)?)
    }

    /// Rewrites the whole database without deleted data, and truncates its log.
    ///
    /// # Errors
    ///
    /// Fails if there is no disk space for a second copy, or if other processes keep the log open for too long.
    pub fn scrub(&mut self) -> Result<()> {
        for index in FULL_TEXT {
            // A negative number starts a full merge (FTS5, "the merge command").
            let mut pages = -MERGED;
            loop {
                let before = self.conn.total_changes();
                self.write(|tx| {
                    Ok(tx.tx.execute(&format!("INSERT INTO {index}({index}, rank) VALUES ('merge', ?1)"), [pages])?)
                })?;
                if self.conn.total_changes() - before < 2 {
                    break;
                }
                pages = MERGED;
            }
        }
        self.conn
            .execute_batch("VACUUM")
            .context("the database could not be rewritten, so its free pages may still contain the text")?;
        let begun = Instant::now();
        loop {
            let busy: bool = self.conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
            if !busy {
                return Ok(());
            }
            if begun.elapsed() > LOG_WAIT {
                bail!(
                    "another program keeps the database open, so its log ({}) may still contain the text",
                    self.files.wal().display()
                );
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whether table or column names contain a text. Deleting rows cannot remove it there.
    pub fn schema_holds(&self, text: &str) -> Result<bool> {
        register(&self.conn, Some(text))?;
        Ok(self
            .conn
            .query_row("SELECT count(*) FROM sqlite_schema WHERE holds(sql) OR holds(name)", [], |r| r.get::<_, i64>(0))?
            > 0)
    }
}

impl Tx<'_> {
    /// Marks prompts that the user took back, and their texts; removes their work from units, and the memories of units
    /// that have no other work. `own` is the prompt from which the session continues.
    pub fn take_back(&self, session: &StoredSession, own: Option<&str>, taken: &TakenBack) -> Result<()> {
        let number = |prompt: &str| {
            let sql = "SELECT number FROM prompts WHERE session_id = ?1 AND platform_prompt_id = ?2 AND source = 'user' AND kind = 'prompt'";
            self.tx.prepare_cached(sql)?.query_row(params![session.id, prompt], |row| row.get::<_, i64>(0)).optional()
        };
        // Where the event's own prompt has no id, it is the last one, or not stored yet.
        let next = if matches!(taken, TakenBack::At(_)) { session.prompts } else { session.prompts + 1 };
        let end = own.map(number).transpose()?.flatten().unwrap_or(next);
        let first = match taken {
            TakenBack::Since(prompt) | TakenBack::One(prompt) => number(prompt)?,
            TakenBack::At(at) => {
                let sql = "SELECT min(number) FROM prompts WHERE session_id = ?1 AND received_at >= ?2 AND source = 'user' AND kind = 'prompt'";
                self.tx.prepare_cached(sql)?.query_row(params![session.id, at - SAME_EVENT], |row| row.get(0))?
            }
            TakenBack::Last(count) => Some(end.saturating_sub_unsigned(*count).max(1)),
        };
        let end = if let (TakenBack::One(_), Some(first)) = (taken, first) { first + 1 } else { end };
        let Some(first) = first.filter(|first| *first < end) else { return Ok(()) };
        let range = [session.id, first, end];
        let taken = "session_id = ?1 AND number >= ?2 AND number < ?3 AND kind IN ('prompt', 'answer', 'closing')";
        let ids = |sql: &str| -> Result<Vec<i64>> {
            Ok(self.tx.prepare(sql)?.query_map(range, |row| row.get(0))?.collect::<Result<_, _>>()?)
        };
        for id in ids(&format!("SELECT id FROM prompts WHERE {taken}"))? {
            self.unindex(TextKind::Message, id)?;
        }
        let steps = format!(
            "SELECT id FROM steps WHERE session_id = ?1 AND prompt_id IN (SELECT id FROM prompts WHERE {taken} AND kind = 'prompt')"
        );
        let units = ids(&format!("SELECT DISTINCT work_unit_id FROM steps WHERE id IN ({steps})"))?;
        self.tx.execute(&format!("DELETE FROM step_files WHERE step_id IN ({steps})"), range)?;
        self.tx.execute(&format!("UPDATE tool_uses SET step_id = NULL WHERE session_id = ?1 AND step_id IN ({steps})"), range)?;
        self.tx.execute(&format!("DELETE FROM steps WHERE id IN ({steps})"), range)?;
        self.tx.execute(&format!("UPDATE prompts SET kind = 'taken-back' WHERE {taken}"), range)?;
        for unit in units {
            if self
                .tx
                .prepare_cached("SELECT 1 FROM steps WHERE session_id = ?1 AND work_unit_id = ?2")?
                .exists([session.id, unit])?
            {
                self.tx.execute("UPDATE work_units SET rules_due = 1 WHERE id = ?1", [unit])?;
                continue;
            }
            let sql = "SELECT id FROM memories WHERE session_id = ?1 AND work_unit_id = ?2 AND NOT by_hand AND NOT pinned";
            let memories =
                self.tx.prepare_cached(sql)?.query_map([session.id, unit], |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()?;
            memories.into_iter().try_for_each(|id| self.delete_memory(id))?;
            let sql = "UPDATE memories SET work_unit_id = NULL WHERE session_id = ?1 AND work_unit_id = ?2";
            self.tx.execute(sql, [session.id, unit])?;
            self.unindex_unit(unit)?;
            self.unindex(TextKind::Unit, unit)?;
            self.tx.execute("DELETE FROM work_units WHERE id = ?1", [unit])?;
        }
        Ok(())
    }

    /// Renumbers a session's remaining tool uses and updates its counts.
    fn count_again(&self, session: i64) -> Result<()> {
        // Numbers only decrease, so in this order they never collide.
        let mut rows = self.tx.prepare_cached("SELECT id, seq FROM tool_uses WHERE session_id = ?1 ORDER BY seq")?;
        let rows: Vec<(i64, i64)> = rows.query_map([session], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
        let mut renumber = self.tx.prepare_cached("UPDATE tool_uses SET seq = ?2 WHERE id = ?1")?;
        for (rank, (id, seq)) in (1..).zip(rows) {
            if seq != rank {
                renumber.execute([id, rank])?;
            }
        }
        let sql = "UPDATE sessions SET task_files = NULL,
            tool_uses = (SELECT count(*) FROM tool_uses WHERE session_id = ?1),
            failures = (SELECT count(*) FROM tool_uses WHERE session_id = ?1 AND succeeded = 0),
            kinds = coalesce((SELECT json_group_object(kind, n) FROM (SELECT kind, count(*) AS n FROM tool_uses WHERE session_id = ?1 GROUP BY kind)), '{}'),
            last_prompt_id = (SELECT max(id) FROM prompts WHERE session_id = ?1 AND source = 'user' AND kind = 'prompt') WHERE id = ?1";
        self.tx.prepare_cached(sql)?.execute([session])?;
        Ok(())
    }

    /// Removes forgotten text from units: intents and files are recomputed, word hashes dropped.
    fn forget_in_units(&self, going: &Deletion, recount: Recount) -> Result<()> {
        for session in going.sessions.iter().chain(&going.touched) {
            // The remaining parts of a unit are indexed again after the next distillation.
            self.unindex_titles(*session)?;
            self.tx
                .execute("DELETE FROM unit_index WHERE rowid IN (SELECT id FROM work_units WHERE session_id = ?1)", [session])?;
        }
        for session in &going.sessions {
            let steps = "SELECT id FROM steps WHERE session_id = ?1";
            self.tx.execute(&format!("DELETE FROM step_files WHERE step_id IN ({steps})"), [session])?;
            self.tx.execute("DELETE FROM steps WHERE session_id = ?1", [session])?;
            self.tx.execute("DELETE FROM work_units WHERE session_id = ?1", [session])?;
            self.tx.execute("DELETE FROM dismissed WHERE session_id = ?1", [session])?;
            self.tx.execute("DELETE FROM injections WHERE session_id = ?1", [session])?;
        }
        for session in &going.touched {
            recount(self, *session)?;
            // Makes the units due again. Renumbered tool uses do not count as new. The answer of a model call in
            // progress is discarded.
            let sql = "UPDATE work_units SET rules_due = 1, model_until = NULL, rules_seq = CASE WHEN rules_seq IS NOT NULL THEN
                         (SELECT max(last_seq) FROM steps WHERE session_id = ?1 AND work_unit_id = work_units.id) END WHERE session_id = ?1";
            self.tx.execute(sql, [session])?;
        }
        Ok(())
    }

    /// Deletes a session, but keeps the empty row of one that may still be active, so that its transcript is not read
    /// again from the start.
    fn forget_session(&self, session: i64, by_text: bool) -> Result<()> {
        let sql = "DELETE FROM sessions WHERE id = ?1 AND (ended_at IS NOT NULL OR ?2 AND holds(agent_session_id))";
        if self.tx.prepare_cached(sql)?.execute(params![session, by_text])? > 0 {
            return Ok(());
        }
        let sql = "UPDATE sessions SET project_id = NULL, cwd = NULL, muted = 1, start_branch = NULL, start_head = NULL, end_branch = NULL,
            end_head = NULL, prompts = 0, tool_uses = 0, failures = 0, kinds = '{}', last_prompt_id = NULL, tasks = NULL, task_files = NULL, turn_offset = NULL,
            model = NULL, stop_reason = NULL, transcript_message = NULL, muted_prompt = NULL, input_tokens = NULL, output_tokens = NULL, cache_read_tokens = NULL,
            cache_write_tokens = NULL, context_tokens = NULL, cost_usd = NULL WHERE id = ?1";
        self.tx.execute(sql, [session])?;
        Ok(())
    }

    /// Removes matching entries from a session's task list.
    fn forget_tasks(&self, session: i64) -> Result<()> {
        let kept = "SELECT json_group_array(json(value)) FROM json_each(tasks) WHERE NOT holds(concat_ws(char(10), value, value ->> 'subject'))";
        self.tx.execute(&format!("UPDATE sessions SET tasks = ({kept}) WHERE id = ?1"), params![session])?;
        Ok(())
    }
}

/// Minimum characters of an id that counts as unique across sessions.
const UNIQUE: usize = 16;

/// Hashes an identity: platform, session, and the event's id, which is empty for a whole session.
pub type HashIdentity<'a> = &'a dyn Fn(&str, &str, &str) -> Vec<u8>;

impl Store {
    /// The hashes of everything that was forgotten.
    pub fn forgotten(&self) -> Result<HashSet<Vec<u8>>> {
        Ok(self.conn.prepare("SELECT hash FROM forgotten")?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }

    /// Whether a session is the empty row that remains of one that was forgotten while it was active.
    pub fn is_emptied(&self, session: i64) -> Result<bool> {
        let sql =
            "SELECT 1 FROM sessions WHERE id = ?1 AND muted AND cwd IS NULL AND project_id IS NULL AND prompts + tool_uses = 0";
        Ok(self.conn.prepare(sql)?.exists([session])?)
    }
}

impl Tx<'_> {
    /// Records hashes of the rows that are about to be deleted. For an event without an id, the hash of its whole
    /// session is recorded.
    pub(super) fn note_forgotten(&self, going: &Deletion, hash: HashIdentity) -> Result<()> {
        let row = |row: &Row| Ok((row.get(0)?, row.get(1)?, row.get::<_, Option<String>>(2)?));
        let sessions = serde_json::to_string(&going.sessions)?;
        let of = "SELECT platform, agent_session_id, '' FROM sessions WHERE id IN (SELECT value FROM json_each(?1))";
        let mut all: BTreeSet<(String, String, Option<String>)> =
            self.tx.prepare(of)?.query_map([&sessions], row)?.collect::<Result<_, _>>()?;
        let of = "SELECT '', '', uuid FROM memories WHERE id IN (SELECT value FROM json_each(?1)) AND made_by = 'custom'";
        let memories = serde_json::to_string(&going.memories)?;
        all.extend(self.tx.prepare(of)?.query_map([memories], row)?.collect::<Result<Vec<_>, _>>()?);
        let answer = "iif(e.source = 'user', e.platform_prompt_id, 'answer ' || e.platform_prompt_id)";
        let tables = [
            ("prompts", "e.platform_prompt_id", answer, &going.prompts),
            ("tool_uses", "e.tool_use_id", "e.tool_use_id", &going.tool_uses),
        ];
        for (table, id, identity, ids) in tables {
            let ids = serde_json::to_string(ids)?;
            // If a whole session is forgotten, its events need only hashes without the session: a continued session has
            // copies of them under its own id.
            let sql = format!(
                "SELECT s.platform, s.agent_session_id, {identity} FROM {table} e JOIN sessions s ON s.id = e.session_id
                 WHERE e.id IN (SELECT value FROM json_each(?1)) AND s.id NOT IN (SELECT value FROM json_each(?2))
                 UNION ALL SELECT s.platform, '', {identity} FROM {table} e JOIN sessions s ON s.id = e.session_id
                 WHERE e.id IN (SELECT value FROM json_each(?1)) AND length({id}) >= {UNIQUE}"
            );
            let found = self.tx.prepare(&sql)?.query_map([&ids, &sessions], row)?.collect::<Result<Vec<_>, _>>()?;
            all.extend(found);
        }
        let mut insert = self.tx.prepare("INSERT OR IGNORE INTO forgotten(hash) VALUES (?1)")?;
        for (platform, session, id) in all {
            insert.execute([hash(&platform, &session, &id.unwrap_or_default())])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing::{self, Scratch, prompt};

    #[test]
    fn after_forgetting_and_scrubbing_no_byte_holds_the_word() {
        let scratch = Scratch::new("forget");
        let mut store = scratch.open();
        for n in 0..400 {
            let word = if n % 7 == 0 { "Zwetschgenkuchen" } else { "cake" };
            store
                .write(|tx| testing::store_event(tx, &prompt("s", n, &format!("{word} number {n}\nand the {word} again"))))
                .unwrap();
        }
        let holds = |scratch: &Scratch| {
            let entries = std::fs::read_dir(&scratch.0).unwrap().map(|e| e.unwrap().path());
            entries
                .filter(|p| {
                    let bytes = std::fs::read(p).unwrap().to_ascii_lowercase();
                    // The index contains the stem.
                    bytes.windows(9).any(|w| w == b"zwetschge")
                })
                .count()
        };
        assert!(holds(&scratch) > 0);
        let wanted = DeleteFilter { text: Some("zwetschgenKUCHEN".into()), ..DeleteFilter::default() };
        let going = store.what_would_go(&wanted).unwrap();
        assert_eq!((going.prompts.len(), going.sessions.len(), going.touched.len()), (58, 0, 1));
        store.forget(&going, wanted.text.as_deref(), &|_, _, _| Vec::new(), &crate::ingest::persist::recount).unwrap();
        store.scrub().unwrap();
        assert_eq!(holds(&scratch), 0);
        assert_eq!(store.counts().unwrap().prompts, 342);
        assert!(store.what_would_go(&wanted).unwrap().is_empty());
    }

    #[test]
    fn nothing_said_is_nothing_wanted_and_a_session_goes_whole() {
        let scratch = Scratch::new("forget-session");
        let mut store = scratch.open();
        store.write(|tx| testing::store_event(tx, &prompt("a", 1, "one"))).unwrap();
        store.write(|tx| testing::store_event(tx, &prompt("b", 2, "two"))).unwrap();
        assert!(store.what_would_go(&DeleteFilter::default()).unwrap().is_empty());
        let going = store.what_would_go(&DeleteFilter { session: Some(1), ..DeleteFilter::default() }).unwrap();
        assert_eq!(
            (going.sessions.as_slice(), going.prompts.as_slice(), going.session_ids.as_slice()),
            (&[1][..], &[1][..], &["a".to_string()][..])
        );
        store.forget(&going, None, &|_, _, _| Vec::new(), &crate::ingest::persist::recount).unwrap();
        let old = store.what_would_go(&DeleteFilter { before: Some(2), ..DeleteFilter::default() }).unwrap();
        assert_eq!(old.prompts, [] as [i64; 0]);
        assert_eq!(store.counts().unwrap().prompts, 1);
    }
}
