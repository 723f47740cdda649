//! Replaces the memories that rules created of a unit; those changed by a person or a model stay.

use super::Tx;
use super::memory_rows::{Lease, MemoryScope, content, sources};
use crate::model::{Draft, Ending, Maker, RULES_VERSION, Reach, UnitDrafts, UnitStory};
use crate::redact::Clean;
use anyhow::Result;
use rusqlite::{OptionalExtension, Row, params};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// Treatment of a memory that rules no longer create.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gone {
    #[default]
    Deleted,
    /// The memory is kept and leads to the one that replaced it, because an agent may know its id.
    Superseded,
}

/// A rule memory as stored.
pub(super) struct StoredRuleMemory {
    pub(super) id: i64,
    /// True if a person or a model has changed or replaced it.
    fixed: bool,
    /// True if rules have replaced it by another memory of the unit.
    replaced: bool,
    unit: Option<i64>,
    /// All its content, to detect changes.
    text: String,
    tokens: Option<i64>,
    /// For an open end: what ended it.
    ended: Option<String>,
}

impl Tx<'_> {
    /// Replaces a unit's rule memories and releases the lease. Memories that rules no longer create are deleted or,
    /// depending on `gone`, superseded. Writes nothing and returns false if another process has leased the unit
    /// meanwhile.
    pub fn replace_by_rules(&self, lease: Lease, story: &UnitStory, drawn: &Clean<UnitDrafts>, gone: Gone) -> Result<bool> {
        let sql = "UPDATE work_units SET leased_until = NULL, rules_mark = ?3, rules_seq = ?4, rules_version = ?6,
               title = CASE WHEN model_at IS NULL THEN ?5 ELSE coalesce(title, ?5) END WHERE id = ?1 AND leased_until = ?2";
        let seen = story.tools.last().map(|tool| tool.seq).or(story.seen);
        if self.tx.prepare_cached(sql)?.execute(params![lease.unit, lease.until, story.mark, seen, drawn.title, RULES_VERSION])?
            == 0
        {
            return Ok(false);
        }
        self.index_unit(story)?;
        let (project, platform) = (story.project, Some(story.platform.name()));
        let home = MemoryScope { project, session: Some(story.session), unit: Some(story.unit), platform };
        let mut stored = self.of_rules(home)?;
        let distilled_at = self.distilled_at(story.session, lease.unit)?;
        for draft in &drawn.drafts {
            let Some(key) = &draft.key else { continue };
            match stored.remove(key) {
                // Memories from the complete unit are better than new ones from its remaining rows.
                Some(_) if story.reach == Reach::Trimmed => {}
                Some(old) => match &old.ended {
                    // What was ended stays so.
                    Some(ended) => {
                        let mut draft = draft.clone();
                        draft.content.insert("ended".into(), Value::from(ended.as_str()));
                        self.renew(&old, &draft, home)?;
                    }
                    None => self.renew(&old, draft, home)?,
                },
                None if self.is_dismissed(home, key)? => {}
                // A model has already distilled this part of the unit.
                None if distilled_at.is_some_and(|at| draft.at <= at) => {}
                // The same call works in every session: one lesson says so.
                None if key.starts_with("works:") && self.is_known_lesson(home, &draft.title)? => {}
                None => drop(self.insert_memory(draft, home, &Maker::Rules)?),
            }
        }
        for draft in &drawn.by_agent {
            let Some(key) = &draft.key else { continue };
            // A note does not change; a person, a model or a later turn may have replaced it.
            if stored.remove(key).is_none() && !self.is_dismissed(home, key)? {
                self.insert_memory(draft, home, &Maker::Agent)?;
            }
        }
        let read: HashSet<String> = story.tools.iter().map(|tool| format!("edits:t{}", tool.id)).collect();
        let is_gone = |(key, old): &(&String, &StoredRuleMemory)| {
            let seen = match story.reach {
                Reach::Whole => true,
                Reach::End => read.contains(*key),
                Reach::Trimmed => false,
            };
            // A memory that was replaced before stays replaced.
            seen && !old.fixed && !(old.replaced && gone == Gone::Deleted) && old.unit == home.unit
        };
        let going: Vec<i64> = stored.iter().filter(is_gone).map(|(_, old)| old.id).collect();
        for old in &going {
            match if gone == Gone::Superseded { self.successor(*old, &going, home)? } else { None } {
                Some(successor) => self.supersede(*old, successor)?,
                None => self.delete_memory(*old)?,
            }
        }
        for end in &drawn.ended {
            self.set_ended(*end, Some(Ending::Unit(story.unit)))?;
        }
        for (summary, notes) in &drawn.notes {
            self.set_notes(*summary, notes)?;
        }
        self.forget_orphans(home)?;
        Ok(true)
    }

    fn is_known_lesson(&self, home: MemoryScope, title: &str) -> Result<bool> {
        let sql = "SELECT 1 FROM memories WHERE project_id = ?1 AND kind = 'lesson' AND title = ?2 AND superseded_by IS NULL";
        Ok(self.tx.prepare_cached(sql)?.exists(params![home.project, title])?)
    }

    fn set_notes(&self, summary: i64, notes: &str) -> Result<()> {
        let sql = match notes.is_empty() {
            true => "UPDATE memories SET content = json_remove(content, '$.notes') WHERE id = ?1 AND ?2 = ''",
            false => "UPDATE memories SET content = json_set(content, '$.notes', ?2) WHERE id = ?1",
        };
        self.tx.prepare_cached(sql)?.execute(params![summary, notes])?;
        // A summary that was made for its notes alone says nothing without them.
        let says = "SELECT 1 FROM memories m, json_each(m.content) c WHERE m.id = ?1 AND c.key NOT IN ('request', 'success')";
        if notes.is_empty() && !self.tx.prepare_cached(says)?.exists([summary])? {
            return self.delete_memory(summary);
        }
        self.index_memory_again(summary)
    }

    /// The current memory of a unit that shares most sources with an old one; `None` if all current memories of the
    /// unit are `going`.
    pub(super) fn successor(&self, old: i64, going: &[i64], home: MemoryScope) -> Result<Option<i64>> {
        let sql = "SELECT id FROM memories m WHERE session_id = ?2 AND work_unit_id = ?3 AND superseded_by IS NULL AND id NOT IN (SELECT value FROM json_each(?4))
                   ORDER BY (SELECT count(*) FROM json_each(m.sources) WHERE value IN
                     (SELECT value FROM json_each((SELECT sources FROM memories WHERE id = ?1)))) DESC, id LIMIT 1";
        let values = params![old, home.session, home.unit, serde_json::to_string(going)?];
        Ok(self.tx.prepare_cached(sql)?.query_row(values, |row| row.get(0)).optional()?)
    }

    /// The rule memories of a session, by key.
    pub(super) fn of_rules(&self, home: MemoryScope) -> Result<HashMap<String, StoredRuleMemory>> {
        let sql = "SELECT m.rule_key, m.id, m.by_hand OR m.pinned OR m.made_by <> 'rules', m.work_unit_id,
                     concat_ws(char(0), m.type, m.title, m.subtitle, m.body, m.content, m.sources, m.provenance, m.work_unit_id),
                     m.discovery_tokens, m.superseded_by IS NOT NULL, coalesce(n.made_by = 'rules' AND n.work_unit_id = m.work_unit_id, 0),
                     iif(m.kind = 'open', m.content ->> '$.ended', NULL)
                   FROM memories m LEFT JOIN memories n ON n.id = m.superseded_by
                   WHERE m.session_id = ?1 AND m.rule_key IS NOT NULL";
        let row = |row: &Row| {
            let (superseded, by_rules): (bool, bool) = (row.get(6)?, row.get(7)?);
            let stored = StoredRuleMemory {
                id: row.get(1)?,
                fixed: row.get::<_, bool>(2)? || superseded && !by_rules,
                replaced: superseded && by_rules,
                unit: row.get(3)?,
                text: row.get(4)?,
                tokens: row.get(5)?,
                ended: row.get(8)?,
            };
            Ok((row.get::<_, String>(0)?, stored))
        };
        Ok(self.tx.prepare_cached(sql)?.query_map([home.session], row)?.collect::<Result<_, _>>()?)
    }

    pub(super) fn is_dismissed(&self, home: MemoryScope, key: &str) -> Result<bool> {
        let sql = "SELECT 1 FROM dismissed WHERE session_id = ?1 AND rule_key = ?2";
        Ok(self.tx.prepare_cached(sql)?.exists(params![home.session, key])?)
    }

    /// Rewrites a rule memory if its content has changed. If a person or a model has changed it, only its unit is
    /// updated.
    fn renew(&self, old: &StoredRuleMemory, draft: &Draft, home: MemoryScope) -> Result<()> {
        if old.fixed {
            let sql = "UPDATE memories SET work_unit_id = ?2 WHERE id = ?1 AND work_unit_id IS NOT ?2";
            self.tx.prepare_cached(sql)?.execute(params![old.id, home.unit])?;
            return Ok(());
        }
        if old.replaced {
            self.tx.prepare_cached("UPDATE memories SET superseded_by = NULL WHERE id = ?1")?.execute([old.id])?;
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

    /// Deletes rule memories of units that have lost all their steps. Those that a person has changed remain with the
    /// session.
    fn forget_orphans(&self, home: MemoryScope) -> Result<()> {
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

/// All content of a draft, in the form that `of_rules` reads.
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
