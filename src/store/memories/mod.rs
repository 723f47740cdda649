//! Memories as rows: what rules draw from a unit replaces what they drew from it before, what a person touched stays.
//!
//! A unit is leased before it is distilled, so that two processes never do the same one, and nothing is locked while
//! files are hashed or a model is asked. A process that is killed loses its lease with time.
//!
//! Read in this order: `due` (units in which something happened), `story` (a unit whole), here leases and writing,
//! `model` (the queue of a language model), `entity`, `list`, `retention`.

mod due;
mod entity;
mod list;
mod model;
mod retention;
pub(super) mod story;

pub use due::DueUnit;
pub use entity::Recorded;
pub use model::{Begun, Call, Due, Replacing};

use super::index::INDEXED_MEMORY;
use super::{Store, Tx};
use crate::model::{Draft, Going, Maker, MemoryFile, Millis, Reach, Source, UnitStory};
use crate::redact::Clean;
use anyhow::Result;
use rusqlite::{Row, named_params, params};
use std::collections::{HashMap, HashSet};

/// How long a unit stays with a process that doesn't come back.
const LEASE: Millis = 10_000;

/// A unit that is being distilled by this process, and by no other until `until`.
#[derive(Clone, Copy, Debug)]
pub struct Lease {
    pub unit: i64,
    until: Millis,
}

/// Where a memory belongs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Home<'a> {
    pub project: Option<i64>,
    pub session: Option<i64>,
    pub unit: Option<i64>,
    /// A platform, or what a program calls itself.
    pub platform: Option<&'a str>,
}

/// A memory of a rule as it stands.
struct Standing {
    id: i64,
    /// A person or a model has touched it.
    fixed: bool,
    unit: Option<i64>,
    /// All that is written of it, to see whether anything is new.
    text: String,
    tokens: Option<i64>,
}

impl Store {
    /// Takes units, as far as no other process has them at hand.
    pub fn lease(&mut self, units: &[i64], now: Millis) -> Result<Vec<Lease>> {
        let until = now + LEASE;
        self.write(|tx| {
            // A lease that lies further ahead than any could is of a clock that was set back.
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
    /// Puts what rules drew from a unit in the place of what they drew before, and gives the lease back. Where another
    /// process has the unit by now, nothing is written.
    pub fn tell_unit(&self, lease: Lease, story: &UnitStory, drafts: &Clean<Vec<Draft>>) -> Result<bool> {
        let sql =
            "UPDATE work_units SET leased_until = NULL, rules_mark = ?3, rules_seq = ?4 WHERE id = ?1 AND leased_until = ?2";
        let seen = story.tools.last().map(|tool| tool.seq).or(story.seen);
        if self.tx.prepare_cached(sql)?.execute(params![lease.unit, lease.until, story.mark, seen])? == 0 {
            return Ok(false);
        }
        self.index_unit(story)?;
        let (project, platform) = (story.project, Some(story.platform.name()));
        let home = Home { project, session: Some(story.session), unit: Some(story.unit), platform };
        let mut standing = self.of_rules(home)?;
        for draft in drafts.iter() {
            let Some(key) = &draft.key else { continue };
            match standing.remove(key) {
                // What was drawn when all was there is better than what can be drawn now.
                Some(_) if story.reach == Reach::Trimmed => {}
                Some(old) => self.renew(&old, draft, home)?,
                None if self.is_dismissed(home, key)? => {}
                None => drop(self.insert_memory(draft, home, &Maker::Rules)?),
            }
        }
        let read: HashSet<String> = story.tools.iter().map(|tool| format!("edits:t{}", tool.id)).collect();
        let gone = |(key, old): &(&String, &Standing)| {
            let seen = match story.reach {
                Reach::Whole => true,
                Reach::End => read.contains(*key),
                Reach::Trimmed => false,
            };
            seen && !old.fixed && old.unit == home.unit
        };
        for (_, old) in standing.iter().filter(gone) {
            self.delete_memory(old.id)?;
        }
        self.forget_orphans(home)?;
        Ok(true)
    }

    /// What rules made in a session, by their keys.
    fn of_rules(&self, home: Home) -> Result<HashMap<String, Standing>> {
        let sql = "SELECT rule_key, id, by_hand OR pinned OR superseded_by IS NOT NULL OR made_by <> 'rules', work_unit_id,
                     concat_ws(char(0), type, title, subtitle, body, content, sources, provenance, work_unit_id), discovery_tokens
                   FROM memories WHERE session_id = ?1 AND rule_key IS NOT NULL";
        let row = |row: &Row| {
            let standing =
                Standing { id: row.get(1)?, fixed: row.get(2)?, unit: row.get(3)?, text: row.get(4)?, tokens: row.get(5)? };
            Ok((row.get::<_, String>(0)?, standing))
        };
        Ok(self.tx.prepare_cached(sql)?.query_map([home.session], row)?.collect::<Result<_, _>>()?)
    }

    fn is_dismissed(&self, home: Home, key: &str) -> Result<bool> {
        let sql = "SELECT 1 FROM dismissed WHERE session_id = ?1 AND rule_key = ?2";
        Ok(self.tx.prepare_cached(sql)?.exists(params![home.session, key])?)
    }

    /// Writes a rule's memory anew where it says something else now; where a person has touched it, it only follows its unit.
    fn renew(&self, old: &Standing, draft: &Draft, home: Home) -> Result<()> {
        if old.fixed {
            let sql = "UPDATE memories SET work_unit_id = ?2 WHERE id = ?1 AND work_unit_id IS NOT ?2";
            self.tx.prepare_cached(sql)?.execute(params![old.id, home.unit])?;
            return Ok(());
        }
        let tokens = draft.tokens.map(|(tokens, _)| tokens);
        if old.text == written(draft, home.unit) {
            if old.tokens != tokens {
                let sql = "UPDATE memories SET discovery_tokens = ?2, tokens_estimated = ?3 WHERE id = ?1";
                let estimated = draft.tokens.is_some_and(|(_, estimated)| estimated);
                self.tx.prepare_cached(sql)?.execute(params![old.id, tokens, estimated])?;
            }
            return self.write_parts(old.id, draft);
        }
        self.rewrite_memory(old.id, draft, home, &Maker::Rules)
    }

    /// Writes a memory anew, all of it.
    fn rewrite_memory(&self, id: i64, draft: &Draft, home: Home, made_by: &Maker) -> Result<()> {
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

    /// Stores a memory; returns its row.
    pub fn insert_memory(&self, draft: &Draft, home: Home, made_by: &Maker) -> Result<i64> {
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

    /// Writes files and concepts. A file whose hash isn't known now keeps the one that stands.
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
        let standing: Vec<String> = all.query_map([id], |row| row.get(0))?.collect::<Result<_, _>>()?;
        let mut wanted = draft.concepts.clone();
        wanted.sort();
        wanted.dedup();
        if standing != wanted {
            self.tx.prepare_cached("DELETE FROM memory_concepts WHERE memory_id = ?1")?.execute([id])?;
            let mut put = self.tx.prepare_cached("INSERT INTO memory_concepts(memory_id, concept) VALUES (?1, ?2)")?;
            wanted.iter().try_for_each(|concept| put.execute(params![id, concept]).map(|_| ()))?;
        }
        Ok(())
    }

    /// Takes a memory out, with all that belongs to it.
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
        // A task is found by what belongs to it.
        task.map_or(Ok(()), |task| self.index_lone(task))
    }

    /// Writes a memory as a person wants it; nobody else touches it again.
    pub fn edit_memory(&self, id: i64, draft: &Clean<Draft>, own_words: bool) -> Result<()> {
        let sql = "UPDATE memories SET type = ?2, title = ?3, subtitle = ?4, body = ?5, content = ?6,
                     provenance = CASE WHEN ?7 THEN 'user' ELSE provenance END, by_hand = 1 WHERE id = ?1";
        let values = params![id, draft.kind_type, draft.title, draft.subtitle, draft.body, content(draft), own_words];
        self.tx.prepare_cached(sql)?.execute(values)?;
        self.write_parts(id, draft)?;
        self.index_memory_again(id)
    }

    /// Says to which task a decision or a lesson belongs.
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

    /// Sets or takes the pin.
    pub fn set_pinned(&self, id: i64, pinned: bool) -> Result<()> {
        self.tx.prepare_cached("UPDATE memories SET pinned = ?2 WHERE id = ?1")?.execute(params![id, pinned])?;
        Ok(())
    }

    /// Puts one memory in the place of another, which doesn't come back.
    pub fn supersede(&self, old: i64, new: i64) -> Result<()> {
        self.tx.prepare_cached("UPDATE memories SET superseded_by = ?2, pinned = 0 WHERE id = ?1")?.execute([old, new])?;
        Ok(())
    }

    /// Takes a memory out for good: no rule makes it again. With one of a model goes what it stood in the place of, and no
    /// model is shown again what it was drawn from.
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

    /// Takes out what rules drew from rows that go; it is drawn anew from what is left. What a person wrote stays.
    pub(in crate::store) fn forget_drawn(&self, going: &Going) -> Result<()> {
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
                // An id that is free may be given to another row.
                let left = serde_json::to_string(&left)?;
                self.tx.prepare_cached("UPDATE memories SET sources = ?2 WHERE id = ?1")?.execute(params![id, left])?;
            }
        }
        Ok(())
    }

    /// What rules made of units that late evidence has emptied goes; what a person touched stays, with its session.
    fn forget_orphans(&self, home: Home) -> Result<()> {
        let stray = "session_id = ?1 AND work_unit_id NOT IN (SELECT id FROM work_units WHERE session_id = ?1)";
        let sql = format!(
            "SELECT id FROM memories WHERE {stray} AND made_by = 'rules' AND NOT by_hand AND NOT pinned AND superseded_by IS NULL"
        );
        let gone: Vec<i64> =
            self.tx.prepare_cached(&sql)?.query_map([home.session], |row| row.get(0))?.collect::<Result<_, _>>()?;
        gone.into_iter().try_for_each(|id| self.delete_memory(id))?;
        let sql = format!("UPDATE memories SET work_unit_id = NULL WHERE {stray}");
        self.tx.prepare_cached(&sql)?.execute([home.session])?;
        Ok(())
    }
}

/// All that is written of a draft, as `of_rules` reads it.
fn written(draft: &Draft, unit: Option<i64>) -> String {
    let parts = [
        draft.kind_type.clone(),
        Some(draft.title.clone()),
        draft.subtitle.clone(),
        draft.body.clone(),
        Some(content(draft)),
        Some(sources(&draft.sources)),
        Some(draft.provenance.name().to_string()),
        unit.map(|unit| unit.to_string()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("\0")
}

fn content(draft: &Draft) -> String {
    serde_json::to_string(&draft.content).unwrap_or_else(|_| "{}".into())
}

fn sources(sources: &[Source]) -> String {
    let ids: Vec<String> = sources.iter().map(|source| source.id()).collect();
    serde_json::to_string(&ids).unwrap_or_else(|_| "[]".into())
}

/// A random UUID (RFC 9562, version 4).
fn uuid() -> String {
    let mut hex = crate::files::unique().into_bytes();
    hex[12] = b'4';
    hex[16] = b"89ab"[usize::from(hex[16] & 3)];
    let hex = String::from_utf8_lossy(&hex);
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}
