//! Writes memories, entities of programs, and deletes old tool uses.

use super::{Store, Tx};
use crate::error::UserError;
use crate::model::{Deletion, Draft, Ending, Maker, MemoryFile, Millis, Provenance, Source, TextKind};
use crate::redact::Clean;
use anyhow::Result;
use rusqlite::{OptionalExtension, Row, named_params, params};
use std::collections::{BTreeSet, HashSet};

/// Duration of a lease in milliseconds.
const LEASE: Millis = 10_000;

/// A unit that only this process may distil until `until`.
#[derive(Clone, Copy, Debug)]
pub struct Lease {
    pub unit: i64,
    pub(super) until: Millis,
}

/// The scope of a memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryScope<'a> {
    pub project: Option<i64>,
    pub session: Option<i64>,
    pub unit: Option<i64>,
    /// A platform, or the name of a program.
    pub platform: Option<&'a str>,
}

impl Store {
    /// Leases the units that no other process has leased.
    pub fn lease(&mut self, units: &[i64], now: Millis) -> Result<Vec<Lease>> {
        let until = now + LEASE;
        self.write(|tx| {
            // A lease too far in the future comes from a clock that was set back.
            let sql = "UPDATE work_units SET leased_until = ?2, rules_due = 0
                       WHERE id = ?1 AND (leased_until IS NULL OR leased_until <= ?3 OR leased_until > ?2)";
            let mut statement = tx.tx.prepare_cached(sql)?;
            let mut leases = Vec::new();
            for unit in units {
                if statement.execute(params![unit, until, now])? == 1 {
                    leases.push(Lease { unit: *unit, until });
                }
            }
            Ok(leases)
        })
    }
}

impl Tx<'_> {
    /// Rewrites a memory completely.
    pub(super) fn rewrite_memory(&self, id: i64, draft: &Draft, home: MemoryScope, made_by: &Maker) -> Result<()> {
        let sql = "UPDATE memories SET type = :type, title = :title, subtitle = :subtitle, body = :body, content = :content,
                     work_unit_id = :unit, prompt_number = :prompt, sources = :sources, provenance = :provenance, made_by = :made_by,
                     discovery_tokens = :tokens, tokens_estimated = :estimated, created_at = :at WHERE id = :id";
        self.tx.prepare_cached(sql)?.execute(named_params! {
            ":id": id, ":type": draft.kind_type, ":title": draft.title, ":subtitle": draft.subtitle, ":body": draft.body,
            ":content": content(draft), ":unit": home.unit, ":prompt": draft.prompt, ":sources": sources(&draft.sources),
            ":provenance": draft.provenance.name(), ":made_by": made_by.name(), ":tokens": draft.tokens.map(|(tokens, _)| tokens),
            ":estimated": draft.tokens.is_some_and(|(_, estimated)| estimated), ":at": draft.at,
        })?;
        self.write_parts(id, draft)?;
        self.index_memory_again(id)
    }

    /// Stores a memory and returns its row id.
    pub fn insert_memory(&self, draft: &Draft, home: MemoryScope, made_by: &Maker) -> Result<i64> {
        let sql = "INSERT INTO memories(uuid, kind, type, title, subtitle, body, content, project_id, session_id, work_unit_id,
                     prompt_number, sources, platform, provenance, made_by, rule_key, discovery_tokens, tokens_estimated, created_at, by_hand)
                   VALUES (:uuid, :kind, :type, :title, :subtitle, :body, :content, :project, :session, :unit,
                     :prompt, :sources, :platform, :provenance, :made_by, :key, :tokens, :estimated, :at, :by_hand)";
        self.tx.prepare_cached(sql)?.execute(named_params! {
            ":uuid": uuid(), ":kind": draft.kind.name(), ":type": draft.kind_type, ":title": draft.title,
            ":subtitle": draft.subtitle, ":body": draft.body, ":content": content(draft), ":project": home.project,
            ":session": home.session, ":unit": home.unit, ":prompt": draft.prompt, ":sources": sources(&draft.sources),
            ":platform": home.platform, ":provenance": draft.provenance.name(), ":made_by": made_by.name(), ":key": draft.key,
            ":tokens": draft.tokens.map(|(tokens, _)| tokens),
            ":estimated": draft.tokens.is_some_and(|(_, estimated)| estimated), ":at": draft.at, ":by_hand": *made_by == Maker::Hand,
        })?;
        let id = self.tx.last_insert_rowid();
        self.write_parts(id, draft)?;
        self.index_memory_again(id)?;
        Ok(id)
    }

    /// Writes files and concepts. A file without a new hash keeps the stored one.
    pub(super) fn write_parts(&self, id: i64, draft: &Draft) -> Result<()> {
        let sql = "INSERT INTO memory_files(memory_id, path, modified, hash) VALUES (?1, ?2, ?3, ?4)
                   ON CONFLICT DO UPDATE SET modified = excluded.modified, hash = coalesce(excluded.hash, hash)
                   WHERE modified <> excluded.modified OR hash IS NOT coalesce(excluded.hash, hash)";
        let mut put = self.tx.prepare_cached(sql)?;
        for MemoryFile { path, modified, hash } in &draft.files {
            put.execute(params![id, path, modified, hash])?;
        }
        let mut all = self.tx.prepare_cached("SELECT path FROM memory_files WHERE memory_id = ?1")?;
        for path in all.query_map([id], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()? {
            if !draft.files.iter().any(|file| file.path == path) {
                let sql = "DELETE FROM memory_files WHERE memory_id = ?1 AND path = ?2";
                self.tx.prepare_cached(sql)?.execute(params![id, path])?;
            }
        }
        let sql = "UPDATE memories SET concepts = ?2 WHERE id = ?1 AND concepts IS NOT ?2";
        self.tx.prepare_cached(sql)?.execute(params![id, concepts(draft.concepts.iter().map(String::as_str))])?;
        Ok(())
    }

    /// Deletes a memory and everything that belongs to it.
    pub(in crate::store) fn delete_memory(&self, id: i64) -> Result<()> {
        self.forget_vector(id)?;
        let task = self.task_of(id)?;
        self.unindex_unit(-id)?;
        self.unindex(TextKind::Memory, id)?;
        for sql in [
            "DELETE FROM memory_files WHERE memory_id = ?1",
            "UPDATE memories SET superseded_by = (SELECT superseded_by FROM memories WHERE id = ?1) WHERE superseded_by = ?1",
            "DELETE FROM memories WHERE id = ?1",
        ] {
            self.tx.prepare_cached(sql)?.execute([id])?;
        }
        // A task is found by the words of its parts.
        task.map_or(Ok(()), |task| self.index_lone(task))
    }

    /// Stores an edit by hand; rules and models never change the memory again. `words_of` is the new provenance; `None`
    /// if it did not change.
    pub fn edit_memory(&self, id: i64, draft: &Clean<Draft>, words_of: Option<Provenance>) -> Result<()> {
        let sql = "UPDATE memories SET type = ?2, title = ?3, subtitle = ?4, body = ?5, content = ?6,
                     provenance = coalesce(?7, provenance), by_hand = 1 WHERE id = ?1";
        let by = words_of.map(|words_of| words_of.name());
        let values = params![id, draft.kind_type, draft.title, draft.subtitle, draft.body, content(draft), by];
        self.tx.prepare_cached(sql)?.execute(values)?;
        self.write_parts(id, draft)?;
        self.index_memory_again(id)
    }

    /// Marks a memory as checked by a person: rules and models never change it again, and a memory that an agent added
    /// by hand counts as the person's own.
    pub fn keep_memory(&self, id: i64) -> Result<()> {
        let sql = "UPDATE memories SET by_hand = 1, provenance = iif(made_by = 'hand', 'user', provenance) WHERE id = ?1";
        self.tx.prepare_cached(sql)?.execute([id])?;
        Ok(())
    }

    /// Replaces the content and provenance of a memory with those from another machine or program.
    pub(in crate::store) fn overwrite_memory(&self, id: i64, draft: &Draft) -> Result<()> {
        let sql =
            "UPDATE memories SET type = ?2, title = ?3, subtitle = ?4, body = ?5, content = ?6, provenance = ?7 WHERE id = ?1";
        let values =
            params![id, draft.kind_type, draft.title, draft.subtitle, draft.body, content(draft), draft.provenance.name()];
        self.tx.prepare_cached(sql)?.execute(values)?;
        self.write_parts(id, draft)?;
        self.index_memory_again(id)
    }

    /// Assigns a decision or lesson to a task.
    pub fn belongs_to_task(&self, id: i64, task: &str) -> Result<()> {
        let sql = "UPDATE memories SET content = json_set(content, '$.task', ?2) WHERE id = ?1";
        self.tx.prepare_cached(sql)?.execute(params![id, task])?;
        self.unindex_unit(-id)?;
        self.index_lone(id)
    }

    /// A memory's uuid.
    pub fn uuid_of(&self, id: i64) -> Result<String> {
        Ok(self.tx.prepare_cached("SELECT uuid FROM memories WHERE id = ?1")?.query_row([id], |row| row.get(0))?)
    }

    /// Pins or unpins a memory.
    pub fn set_pinned(&self, id: i64, pinned: bool) -> Result<()> {
        self.tx.prepare_cached("UPDATE memories SET pinned = ?2 WHERE id = ?1")?.execute(params![id, pinned])?;
        Ok(())
    }

    /// Ends an open end, or opens it again.
    pub fn set_ended(&self, id: i64, ending: Option<Ending>) -> Result<()> {
        let sql = "UPDATE memories SET content = iif(?2 IS NULL, json_remove(content, '$.ended'), json_set(content, '$.ended', ?2)) WHERE id = ?1";
        self.tx.prepare_cached(sql)?.execute(params![id, ending.map(Ending::to_text)])?;
        self.index_memory_again(id)
    }

    /// Marks a memory as superseded by another.
    pub fn supersede(&self, old: i64, new: i64) -> Result<()> {
        self.tx.prepare_cached("UPDATE memories SET superseded_by = ?2, pinned = 0 WHERE id = ?1")?.execute([old, new])?;
        Ok(())
    }

    /// Deletes a memory so that rules never create it again. Deleting an LLM memory also deletes the rule memory that
    /// it replaced, and hides its sources from later LLM calls.
    pub(in crate::store) fn dismiss_memory(&self, id: i64) -> Result<()> {
        let replaced = "SELECT id FROM memories WHERE superseded_by = ?1 AND made_by = 'rules' AND NOT by_hand AND NOT pinned
                        AND (SELECT made_by NOT IN ('rules', 'hand') FROM memories WHERE id = ?1)";
        let replaced: Vec<i64> =
            self.tx.prepare_cached(replaced)?.query_map([id], |row| row.get(0))?.collect::<Result<_, _>>()?;
        replaced.into_iter().try_for_each(|id| self.dismiss_memory(id))?;
        for sql in [
            "INSERT INTO dismissed(session_id, rule_key) SELECT session_id, rule_key FROM memories
             WHERE id = ?1 AND session_id IS NOT NULL AND rule_key IS NOT NULL ON CONFLICT DO NOTHING",
            "INSERT INTO dismissed(session_id, rule_key) SELECT m.session_id, 'model:' || value FROM memories m, json_each(m.sources)
             WHERE m.id = ?1 AND m.session_id IS NOT NULL AND m.kind <> 'summary' AND m.made_by NOT IN ('rules', 'hand') ON CONFLICT DO NOTHING",
        ] {
            self.tx.prepare_cached(sql)?.execute([id])?;
        }
        self.delete_memory(id)
    }

    /// Deletes memories whose sources are being deleted; distillation recreates those that the remaining sources
    /// support. A person's memories are kept.
    pub(in crate::store) fn forget_drawn(&self, going: &Deletion) -> Result<()> {
        let prompts = going.prompts.iter().map(|id| Source::Prompt(*id).id());
        let gone: HashSet<String> = prompts.chain(going.tool_uses.iter().map(|id| Source::ToolUse(*id).id())).collect();
        let sql = "SELECT id, sources, by_hand FROM memories WHERE session_id = ?1";
        for session in &going.touched {
            let mut rows = self.tx.prepare_cached(sql)?;
            let row = |row: &Row| Ok((row.get(0)?, row.get::<_, String>(1)?, row.get(2)?));
            let memories: Vec<(i64, String, bool)> = rows.query_map([session], row)?.collect::<Result<_, _>>()?;
            for (id, sources, by_hand) in memories {
                let sources: Vec<String> = serde_json::from_str(&sources).unwrap_or_default();
                let (lost, left): (Vec<String>, Vec<String>) = sources.into_iter().partition(|source| gone.contains(source));
                if lost.is_empty() {
                    continue;
                }
                if !by_hand {
                    self.delete_memory(id)?;
                    continue;
                }
                // A free id may be reused for another row.
                let left = serde_json::to_string(&left)?;
                self.tx.prepare_cached("UPDATE memories SET sources = ?2 WHERE id = ?1")?.execute(params![id, left])?;
            }
        }
        Ok(())
    }
}

pub(super) fn content(draft: &Draft) -> String {
    serde_json::to_string(&draft.content).unwrap_or_else(|_| "{}".into())
}

/// Concepts as they are stored: JSON in order; `None` for none.
pub(super) fn concepts<'a>(all: impl Iterator<Item = &'a str>) -> Option<String> {
    let all: BTreeSet<&str> = all.collect();
    Some(all).filter(|all| !all.is_empty()).and_then(|all| serde_json::to_string(&all).ok())
}

pub(super) fn sources(sources: &[Source]) -> String {
    let ids: Vec<String> = sources.iter().map(|source| source.id()).collect();
    serde_json::to_string(&ids).unwrap_or_else(|_| "[]".into())
}

/// A random UUID (RFC 9562, version 4).
pub(super) fn uuid() -> String {
    let mut hex = crate::files::unique().into_bytes();
    hex[12] = b'4';
    hex[16] = b"89ab"[usize::from(hex[16] & 3)];
    let hex = String::from_utf8_lossy(&hex);
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// A stored entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    pub id: i64,
    pub uuid: String,
    /// True if it replaced an entity with the same uuid.
    pub replaced: bool,
}

impl Tx<'_> {
    /// Stores a program's entity, replacing an earlier one with the same uuid.
    ///
    /// # Errors
    ///
    /// Fails if the uuid belongs to a memory of somebody else, or to one that a person has changed.
    pub fn record_entity(
        &self,
        uuid: Option<&str>,
        draft: &Clean<Draft>,
        home: MemoryScope,
        made_by: &Maker,
    ) -> Result<Recorded> {
        let sql = "SELECT id, made_by = ?2 AND NOT by_hand AND NOT pinned AND superseded_by IS NULL AND project_id IS ?3 AND kind = ?4 AND platform IS ?5 FROM memories WHERE uuid = ?1";
        let values = params![uuid, made_by.name(), home.project, draft.kind.name(), home.platform];
        let known: Option<(i64, bool)> =
            self.tx.prepare_cached(sql)?.query_row(values, |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let (id, replaced) = match known {
            Some((id, false)) => {
                let what = format!("the id belongs to m{id}, which this program may not replace");
                return Err(UserError::usage(what, "omit `id`, or use another").into());
            }
            Some((id, true)) => {
                self.rewrite_memory(id, draft, home, made_by)?;
                (id, true)
            }
            None => (self.insert_memory(draft, home, made_by)?, false),
        };
        if let (Some(uuid), false) = (uuid, replaced) {
            self.tx.prepare_cached("UPDATE memories SET uuid = ?2 WHERE id = ?1")?.execute(params![id, uuid])?;
        }
        Ok(Recorded { id, uuid: self.uuid_of(id)?, replaced })
    }
}

/// Tool uses per transaction; takes 3 ms.
const BATCH: i64 = 100;

impl Store {
    /// Deletes at most `batches` batches of tool uses that nmem learnt of before a time, and returns how many.
    ///
    /// Past tool uses were learnt of when they were imported. Rows are stored in that order, so only the first ones are examined, up to the first one that is young
    /// enough to keep. The last row is always kept: new ids count from it, and memories refer to their sources by id.
    pub fn trim_tool_uses(&mut self, before: Millis, batches: usize) -> Result<usize> {
        let mut trimmed = 0;
        for _ in 0..batches {
            // Checked before locking the database: on most days there is nothing to do.
            let old = "SELECT t.id FROM (SELECT id, session_id, received_at FROM tool_uses ORDER BY id LIMIT ?2) t JOIN sessions s ON s.id = t.session_id
                       WHERE max(t.received_at, coalesce(s.imported_at, 0)) < ?1 AND t.id < (SELECT max(id) FROM tool_uses) ORDER BY t.id";
            let old: Vec<i64> =
                self.conn.prepare_cached(old)?.query_map(params![before, BATCH], |row| row.get(0))?.collect::<Result<_, _>>()?;
            if old.is_empty() {
                break;
            }
            trimmed += self.write(|tx| tx.trim(&old))?;
        }
        Ok(trimmed)
    }
}

impl Tx<'_> {
    /// Deletes tool uses; returns how many there were.
    fn trim(&self, ids: &[i64]) -> Result<usize> {
        let mut gone = 0;
        for id in ids {
            self.unindex_deleted_tool(*id)?;
            gone += self.tx.prepare_cached("DELETE FROM tool_uses WHERE id = ?1")?.execute([id])?;
        }
        Ok(gone)
    }
}

#[cfg(test)]
mod tests {
    use crate::model::{Event, EventKind, Kind, Metadata, ToolUse};
    use crate::redact::Redactor;
    use crate::store::testing::{self, Scratch, prompt};

    #[test]
    fn the_oldest_go_first_and_a_young_one_ends_it() {
        let scratch = Scratch::new("retention");
        let mut store = scratch.open();
        store
            .write(|tx| {
                testing::store_event(tx, &prompt("s", 0, "count to three hundred"))?;
                (1..=300).try_for_each(|at| {
                    let tool = ToolUse {
                        id: Some(format!("t{at}")),
                        name: "Bash".into(),
                        kind: Kind::Command,
                        command: None,
                        path: None,
                        repository: None,
                        content: Some(format!("echo {at}")),
                        input: None,
                        outcome: None,
                        succeeded: Some(true),
                        source_event: "PostToolUse".into(),
                        metadata: Metadata::default(),
                        tasks: None,
                        ended: None,
                    };
                    let event = Event { at, what: EventKind::ToolUsed(Box::new(tool)), ..(*prompt("s", 0, "")).clone() };
                    testing::store_event(tx, &Redactor::default().clean(event))
                })
            })
            .unwrap();
        assert_eq!(store.trim_tool_uses(251, 2).unwrap(), 200, "two batches");
        assert_eq!(store.trim_tool_uses(251, 9).unwrap(), 50, "what is young stays");
        assert_eq!(store.trim_tool_uses(251, 9).unwrap(), 0);
        assert_eq!(store.unindexed().unwrap(), 0);
        let counted: i64 = store.conn.query_row("SELECT sum(tool_uses) FROM steps", [], |row| row.get(0)).unwrap();
        assert_eq!(counted, 300, "what a unit came to is not forgotten");
    }
}
