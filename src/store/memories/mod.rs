//! Memories of units. A new distillation replaces the memories that the same rules created before, and keeps those that
//! a person has changed.
//!
//! A unit is leased while it is distilled, so two processes never distil the same one, and no lock is held while files
//! are hashed or a model is asked. The lease of a killed process expires.
//!
//! Read in this order: `due` (units to distil), `story` (a complete unit), leases and writing, in this file,
//! `by_rules`, `llm_queue` (the queue of a language model), `entity`, `list`, `retention`.

mod by_rules;
mod due;
mod entity;
mod list;
mod llm_queue;
mod retention;
pub(super) mod story;

pub use by_rules::Gone;
pub use due::DueUnit;
pub use entity::Recorded;
pub use llm_queue::{Call, CallStart, Due, Superseding};

use super::index::INDEXED_MEMORY;
use super::{Store, Tx};
use crate::model::{Deletion, Draft, Maker, MemoryFile, Millis, Provenance, Source};
use crate::redact::Clean;
use anyhow::Result;
use rusqlite::{Row, named_params, params};
use std::collections::HashSet;

/// Duration of a lease in milliseconds.
const LEASE: Millis = 10_000;

/// A unit that only this process may distil until `until`.
#[derive(Clone, Copy, Debug)]
pub struct Lease {
    pub unit: i64,
    until: Millis,
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
    fn rewrite_memory(&self, id: i64, draft: &Draft, home: MemoryScope, made_by: &Maker) -> Result<()> {
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
    fn write_parts(&self, id: i64, draft: &Draft) -> Result<()> {
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
        let mut all = self.tx.prepare_cached("SELECT concept FROM memory_concepts WHERE memory_id = ?1 ORDER BY concept")?;
        let stored: Vec<String> = all.query_map([id], |row| row.get(0))?.collect::<Result<_, _>>()?;
        let mut wanted = draft.concepts.clone();
        wanted.sort();
        wanted.dedup();
        if stored != wanted {
            self.tx.prepare_cached("DELETE FROM memory_concepts WHERE memory_id = ?1")?.execute([id])?;
            let mut put = self.tx.prepare_cached("INSERT INTO memory_concepts(memory_id, concept) VALUES (?1, ?2)")?;
            wanted.iter().try_for_each(|concept| put.execute(params![id, concept]).map(|_| ()))?;
        }
        Ok(())
    }

    /// Deletes a memory and everything that belongs to it.
    pub(in crate::store) fn delete_memory(&self, id: i64) -> Result<()> {
        self.forget_vector(id)?;
        let task = self.task_of(id)?;
        self.unindex_unit(-id)?;
        self.unindex(id, INDEXED_MEMORY)?;
        for sql in [
            "DELETE FROM memory_files WHERE memory_id = ?1",
            "DELETE FROM memory_concepts WHERE memory_id = ?1",
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

fn content(draft: &Draft) -> String {
    serde_json::to_string(&draft.content).unwrap_or_else(|_| "{}".into())
}

fn sources(sources: &[Source]) -> String {
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
