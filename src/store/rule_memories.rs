//! Units that are due for rules, and the memories that rules created: they are replaced, but those changed by a person or
//! a model stay.

use super::events::known_session;
use super::history::{PROMPT, prompt};
use super::memory_rows::{Lease, MemoryScope, content, sources};
use super::{Store, Tx};
use crate::model::{Draft, Ending, Maker, Millis, Platform, PromptRow, RULES_VERSION, Reach, UnitDrafts, UnitStory};
use crate::redact::Clean;
use anyhow::Result;
use rusqlite::{Connection, OptionalExtension, Row, params};
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

/// Number of a project's sessions to search.
const SESSIONS: i64 = 8;

/// A unit due for distillation: it has new messages or changed steps, or the process that leased it may be gone.
#[derive(Clone, Copy, Debug)]
pub struct DueUnit {
    pub unit: i64,
    /// For a unit without tool uses and memories: its session, its first and its last prompt.
    talk: Option<[i64; 3]>,
}

/// Totals over the steps of a unit.
#[derive(Clone, Copy, Default)]
struct Steps {
    count: i64,
    tools: i64,
    last_seq: i64,
    prompts: Option<(i64, i64)>,
}

impl Steps {
    fn mark(self) -> String {
        format!("{} {} {}", self.count, self.last_seq, self.prompts.map_or(0, |(_, last)| last))
    }
}

fn steps_by_unit(conn: &Connection, session: i64) -> Result<HashMap<i64, Steps>> {
    let sql = "SELECT work_unit_id, tool_uses, last_seq, prompt_id FROM steps WHERE session_id = ?1";
    let mut units: HashMap<i64, Steps> = HashMap::new();
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query([session])?;
    while let Some(row) = rows.next()? {
        let steps = units.entry(row.get(0)?).or_default();
        steps.count += 1;
        steps.tools += row.get::<_, i64>(1)?;
        steps.last_seq = steps.last_seq.max(row.get::<_, Option<i64>>(2)?.unwrap_or(0));
        if let Some(prompt) = row.get::<_, Option<i64>>(3)? {
            let (first, last) = steps.prompts.unwrap_or((prompt, prompt));
            steps.prompts = Some((first.min(prompt), last.max(prompt)));
        }
    }
    Ok(units)
}

/// The current marker of a unit, for `rules_mark`: number of steps, last tool use, last prompt.
pub(super) fn mark_of(conn: &Connection, session: i64, unit: i64) -> Result<Option<String>> {
    Ok(steps_by_unit(conn, session)?.get(&unit).map(|steps| steps.mark()))
}

impl Store {
    /// Due units of a session.
    pub fn due_in_session(&self, platform: Platform, session: &str) -> Result<Vec<DueUnit>> {
        known_session(&self.conn, platform, session)?.map_or(Ok(Vec::new()), |session| self.due_of(session.id, false))
    }

    /// Due units of a project's last sessions, for example of a killed one. Excludes open units of sessions with an
    /// event since `heard`, which distil them themselves, and sessions that only an import stored, which
    /// [`Store::due_of_caught_up`] handles.
    pub fn due_in_project(&self, project: i64, heard: Millis) -> Result<Vec<DueUnit>> {
        let sql = "SELECT id, ended_at IS NULL AND active_at >= ?3 FROM
                     (SELECT id, ended_at, active_at, imported_until, client_pid FROM sessions WHERE project_id = ?1 ORDER BY active_at DESC LIMIT ?2)
                   WHERE imported_until IS NULL OR client_pid IS NOT NULL";
        let row = |row: &Row| Ok((row.get(0)?, row.get(1)?));
        let mut due = Vec::new();
        for session in self.conn.prepare_cached(sql)?.query_map(params![project, SESSIONS, heard], row)? {
            let (id, at_work) = session?;
            due.extend(self.due_of(id, at_work)?);
        }
        Ok(due)
    }

    /// A session whose events a session start has stored, with at most `most` due units; `None` if there is none.
    pub fn due_of_caught_up(&self, most: usize) -> Result<Option<(i64, Vec<DueUnit>)>> {
        let sql = "SELECT value FROM meta WHERE key >= 'caught_up:' AND key < 'caught_up;' LIMIT 1";
        let Some(session) = self.conn.prepare_cached(sql)?.query_row([], |row| row.get(0)).optional()? else { return Ok(None) };
        let mut due = self.due_of(session, false)?;
        due.truncate(most);
        Ok(Some((session, due)))
    }

    /// Due units of the given sessions.
    pub fn due_in_sessions(&self, sessions: &[i64]) -> Result<Vec<DueUnit>> {
        let mut due = Vec::new();
        for session in sessions {
            due.extend(self.due_of(*session, false)?);
        }
        Ok(due)
    }

    fn due_of(&self, session: i64, closed_only: bool) -> Result<Vec<DueUnit>> {
        let sql =
            "SELECT id, state = 'open', rules_due, rules_mark, leased_until IS NOT NULL FROM work_units WHERE session_id = ?1";
        let all = steps_by_unit(&self.conn, session)?;
        let mut due = Vec::new();
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query([session])?;
        while let Some(row) = rows.next()? {
            let unit: i64 = row.get(0)?;
            let Some(steps) = all.get(&unit) else { continue };
            let (is_open, flagged, leased): (bool, bool, bool) = (row.get(1)?, row.get(2)?, row.get(4)?);
            let changed = row.get_ref(3)?.as_str_or_null()? != Some(&steps.mark());
            if (flagged || changed || leased) && !(closed_only && is_open) {
                let (first, last) = steps.prompts.unwrap_or((0, -1));
                let is_talk = steps.tools == 0 && !leased && !self.is_remembered(session, unit)?;
                due.push(DueUnit { unit, talk: is_talk.then_some([session, first, last]) });
            }
        }
        Ok(due)
    }

    fn is_remembered(&self, session: i64, unit: i64) -> Result<bool> {
        let sql = "SELECT 1 FROM memories WHERE session_id = ?1 AND work_unit_id = ?2";
        Ok(self.conn.prepare_cached(sql)?.exists([session, unit])?)
    }

    /// The messages of a unit without tool uses and memories; `None` for any other. Without tool uses no turn is split,
    /// so all its turns belong to the unit.
    pub fn talk(&self, due: DueUnit) -> Result<Option<Vec<PromptRow>>> {
        let sql = format!(
            "{PROMPT} WHERE session_id = ?1 AND kind IN ('prompt', 'closing') AND agent_id IS NULL
               AND number BETWEEN (SELECT number FROM prompts WHERE id = ?2) AND (SELECT number FROM prompts WHERE id = ?3)"
        );
        let Some(key) = due.talk else { return Ok(None) };
        Ok(Some(self.conn.prepare_cached(&sql)?.query_map(key, prompt)?.collect::<Result<_, _>>()?))
    }
}
