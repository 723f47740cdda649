//! Units that are due for a language model, their leases, and the cost of calls.

use super::events::known_session;
use super::memory_rows::{Lease, MemoryScope};
use super::{Store, Tx};
use crate::model::{
    Budget, CallCost, Draft, Endpoint, Maker, Millis, Platform, Purpose, Source, Spend, Spent, TextKind, UnitStory,
};
use crate::redact::Clean;
use anyhow::Result;
use rusqlite::{Connection, OptionalExtension, Row, named_params, params};
use std::collections::BTreeSet;

/// Maximum calls per unit: a checkpoint call and a closing call.
const CALLS: i64 = 2;
/// Number of failed calls after which Stop leaves a unit to `nmem distil`.
const FAILURES: i64 = 3;
/// Minimum time before a checkpoint of an open unit; it also needs `GROWN` new tool uses or a commit.
const CHECKPOINT: Millis = 30 * 60_000;
const GROWN: i64 = 15;
/// Minimum tool uses that justify a call for a unit without rule memories (ADR/0017).
const LEAST: i64 = 3;
/// Number of a project's sessions that Stop searches.
const SESSIONS: i64 = 8;
const DAY: Millis = 86_400_000;

/// A unit that is due for a call.
#[derive(Clone, Debug)]
pub struct Due {
    pub unit: i64,
    pub session: i64,
    pub platform: Platform,
    /// Its session's working directory and all other folders that it used; they decide whether a model may see it.
    pub folders: Vec<String>,
    pub purpose: Purpose,
}

impl Due {
    /// Whether a model may see all of it. One forbidden folder excludes the whole unit.
    pub fn may_be_seen(&self, may_see: &dyn Fn(&str) -> bool) -> bool {
        !self.folders.is_empty() && self.folders.iter().all(|folder| may_see(folder))
    }

    /// Whether one call may be about both: ended units of one session and the same folders.
    pub fn shares_call_with(&self, other: &Due) -> bool {
        let same = |due: &Due| (due.session, due.purpose, due.folders.iter().cloned().collect::<BTreeSet<_>>());
        self.purpose != Purpose::Checkpoint && same(self) == same(other)
    }
}

/// A call in progress; no other process asks about its units.
#[derive(Clone, Debug)]
pub struct Call {
    /// In the order of the units asked about.
    pub leases: Vec<Lease>,
    /// Its row in `spend`.
    pub row: i64,
    pub purpose: Purpose,
    /// Name of the model.
    pub model: String,
}

/// Result of an attempt to start a call.
#[derive(Clone, Debug)]
pub enum CallStart {
    Leased(Call),
    /// Another process has leased the unit, or it is gone.
    Busy,
    /// The call would exceed the daily token budget.
    OverBudget,
}

/// Memories of a model, each with the rows it supersedes.
#[derive(Debug)]
pub struct Superseding {
    pub drafts: Clean<Vec<Draft>>,
    pub supersedes: Vec<Vec<i64>>,
    /// Rows that the model withdraws without a replacement.
    pub withdrawn: Vec<i64>,
}

/// SQL for the units due for a call; a query for their sessions replaces `SESSIONS`. A closed unit is due once its end
/// can no longer move: the next step is final, there is none, or the session is over. Imported units are excluded: a
/// person must request their distillation.
const DUE: &str = "WITH unit AS (
    SELECT u.id, u.session_id, u.state, u.started_at, u.ended_at, u.model_calls, u.model_at, u.distilled_seq, s.cwd, s.platform,
      (SELECT coalesce(sum(tool_uses), 0) FROM steps WHERE session_id = s.id AND work_unit_id = u.id) AS tools,
      (SELECT l.state FROM work_units l WHERE l.session_id = s.id ORDER BY l.id DESC LIMIT 1) <> 'open' AS over,
      (SELECT max(id) FROM steps WHERE session_id = s.id AND work_unit_id = u.id) AS last_step
    FROM work_units u JOIN sessions s ON s.id = u.session_id
    WHERE s.id IN (SESSIONS) AND s.muted = 0 AND u.ended_at >= :since AND u.ended_at > coalesce(s.imported_until, 0) AND u.model_calls < :calls
      AND (u.model_until IS NULL OR u.model_until <= :now OR u.model_until > :now + 120000))
  SELECT id, cwd, state,
      (SELECT json_group_array(DISTINCT t.cwd) FROM tool_uses t JOIN steps p ON p.id = t.step_id WHERE t.session_id = u.session_id AND p.work_unit_id = u.id AND t.cwd IS NOT NULL), session_id, platform FROM unit u
  WHERE (u.tools >= :least OR EXISTS (SELECT 1 FROM memories m WHERE m.session_id = u.session_id AND m.work_unit_id = u.id))
    AND (SELECT count(*) FROM spend d WHERE d.work_unit_id = u.id AND d.outcome <> 'ok') < :failures
    AND CASE u.state
      WHEN 'closed' THEN u.over OR coalesce((SELECT n.settled FROM steps n WHERE n.session_id = u.session_id AND n.id > u.last_step ORDER BY n.id LIMIT 1), 1)
      ELSE u.model_calls + (u.state = 'open') < :calls
        AND max(u.started_at, coalesce(u.model_at, 0), coalesce((SELECT max(o.model_at) FROM work_units o WHERE o.session_id = u.session_id), 0)) <= :now - :checkpoint
        AND (SELECT count(*) FROM tool_uses t JOIN steps p ON p.id = t.step_id WHERE t.session_id = u.session_id AND p.work_unit_id = u.id
              AND t.seq > coalesce(u.distilled_seq, 0)) >= CASE WHEN EXISTS
          (SELECT 1 FROM tool_uses t JOIN steps p ON p.id = t.step_id WHERE t.session_id = u.session_id AND p.work_unit_id = u.id
             AND t.seq > coalesce(u.distilled_seq, 0) AND t.command_kind = 'commit' AND t.succeeded) THEN 1 ELSE :grown END
      END
  ORDER BY (SELECT count(*) FROM spend d WHERE d.work_unit_id = u.id), u.state = 'open', (SELECT active_at FROM sessions WHERE id = u.session_id) DESC, u.session_id, u.id";

impl Store {
    /// Due units of a session, then of its project's last sessions; none that ended before `since`.
    pub fn model_due_at_stop(&self, platform: Platform, session: &str, since: Millis, now: Millis) -> Result<Vec<Due>> {
        let sessions = self.sessions_at_stop(platform, session)?;
        // Most turns end in a unit that has just begun. This cheap query detects that.
        let sql = "SELECT 1 FROM work_units WHERE session_id IN (SELECT value FROM json_each(?1)) AND model_calls < ?2 AND ended_at >= ?3
                     AND (state = 'closed' OR started_at <= ?4) LIMIT 1";
        let all = serde_json::to_string(&sessions)?;
        if !self.conn.prepare_cached(sql)?.exists(params![all, CALLS, since, now - CHECKPOINT])? {
            return Ok(Vec::new());
        }
        let Some((own, others)) = sessions.split_first() else { return Ok(Vec::new()) };
        let of = "SELECT value FROM json_each(?1)";
        let mut due = self.model_due(of, &[&serde_json::to_string(&[own])?], since, FAILURES, now)?;
        let others = self.model_due(of, &[&serde_json::to_string(others)?], since, FAILURES, now)?;
        // Other sessions distil their own open units.
        due.extend(others.into_iter().filter(|due| due.purpose == Purpose::Closing));
        Ok(due)
    }

    /// A session, then the last ones of its project.
    fn sessions_at_stop(&self, platform: Platform, session: &str) -> Result<Vec<i64>> {
        let Some(own) = known_session(&self.conn, platform, session)? else { return Ok(Vec::new()) };
        let sql = "SELECT id FROM sessions WHERE project_id = ?1 AND id <> ?2 ORDER BY active_at DESC LIMIT ?3";
        let mut sessions = vec![own.id];
        let mut others = self.conn.prepare_cached(sql)?;
        for other in others.query_map(params![own.project, own.id, SESSIONS], |row| row.get(0))? {
            sessions.push(other?);
        }
        Ok(sessions)
    }

    /// Due units of a session, of a project, or of all.
    pub fn model_queue(&self, project: Option<i64>, session: Option<i64>, now: Millis) -> Result<Vec<Due>> {
        let of = "SELECT id FROM sessions WHERE (?1 IS NULL OR project_id = ?1) AND (?2 IS NULL OR id = ?2)";
        self.model_due(of, &[&project, &session], 0, i64::MAX, now)
    }

    fn model_due(
        &self,
        sessions: &str,
        own: &[&dyn rusqlite::ToSql],
        since: Millis,
        failures: i64,
        now: Millis,
    ) -> Result<Vec<Due>> {
        let sql = DUE.replace("SESSIONS", sessions);
        let mut statement = self.conn.prepare_cached(&sql)?;
        let named: &[(&str, &dyn rusqlite::ToSql)] = named_params! {
            ":since": since, ":calls": CALLS, ":now": now, ":least": LEAST, ":failures": failures,
            ":checkpoint": CHECKPOINT, ":grown": GROWN,
        };
        for (at, value) in (1..).zip(own) {
            statement.raw_bind_parameter(at, *value)?;
        }
        for (name, value) in named {
            let at = statement.parameter_index(name)?;
            at.map(|at| statement.raw_bind_parameter(at, *value)).transpose()?;
        }
        let mut rows = statement.raw_query();
        let mut due = Vec::new();
        while let Some(row) = rows.next()? {
            let open = row.get_ref(2)?.as_str()? != "closed";
            let purpose = if open { Purpose::Checkpoint } else { Purpose::Closing };
            let (session, platform) = (row.get(4)?, row.get(5)?);
            due.push(Due { unit: row.get(0)?, session, platform, folders: folders(row.get(1)?, row.get(3)?), purpose });
        }
        Ok(due)
    }

    /// All units with any work, to distil again at a person's request.
    pub fn units_to_redo(&self, project: Option<i64>, session: Option<i64>) -> Result<Vec<Due>> {
        let sql = "SELECT u.id, s.cwd,
                     (SELECT json_group_array(DISTINCT t.cwd) FROM tool_uses t JOIN steps p ON p.id = t.step_id WHERE t.session_id = u.session_id AND p.work_unit_id = u.id AND t.cwd IS NOT NULL), s.id, s.platform
                   FROM work_units u JOIN sessions s ON s.id = u.session_id
                   WHERE (?1 IS NULL OR s.project_id = ?1) AND (?2 IS NULL OR s.id = ?2) AND s.muted = 0
                     AND (EXISTS (SELECT 1 FROM memories m WHERE m.session_id = s.id AND m.work_unit_id = u.id)
                       OR (SELECT coalesce(sum(tool_uses), 0) FROM steps WHERE session_id = s.id AND work_unit_id = u.id) >= ?3)
                   ORDER BY s.active_at DESC, s.id DESC, u.started_at, u.id";
        let row = |row: &Row| {
            let (session, platform) = (row.get(3)?, row.get(4)?);
            Ok(Due { unit: row.get(0)?, session, platform, folders: folders(row.get(1)?, row.get(2)?), purpose: Purpose::Redo })
        };
        Ok(self.conn.prepare_cached(sql)?.query_map(params![project, session, LEAST], row)?.collect::<Result<_, _>>()?)
    }

    /// The sessions of a project, or just the given one.
    pub fn sessions_of(&self, project: Option<i64>, session: Option<i64>) -> Result<Vec<i64>> {
        let sql = "SELECT id FROM sessions WHERE (?1 IS NULL OR project_id = ?1) AND (?2 IS NULL OR id = ?2)";
        Ok(self.conn.prepare_cached(sql)?.query_map([project, session], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }

    /// Makes all units of a project or session due for the rules again.
    pub fn rules_again(&mut self, project: Option<i64>, session: Option<i64>) -> Result<()> {
        self.write(|tx| {
            let sql = "UPDATE work_units SET rules_due = 1 WHERE session_id IN
                         (SELECT id FROM sessions WHERE (?1 IS NULL OR project_id = ?1) AND (?2 IS NULL OR id = ?2))";
            tx.tx.prepare_cached(sql)?.execute([project, session])?;
            Ok(())
        })
    }

    /// Sources of memories that a person forgot; models never see them again.
    pub fn dismissed_sources(&self, session: i64) -> Result<Vec<Source>> {
        let sql = "SELECT rule_key FROM dismissed WHERE session_id = ?1";
        let keys: Vec<String> =
            self.conn.prepare_cached(sql)?.query_map([session], |row| row.get(0))?.collect::<Result<_, _>>()?;
        Ok(keys.iter().flat_map(|key| key.split(':').skip(1)).filter_map(Source::read).collect())
    }

    /// The last tool use of a unit that a model has seen; 0 for none.
    pub fn shown_to_model(&self, unit: i64) -> Result<i64> {
        let sql = "SELECT coalesce(distilled_seq, 0) FROM work_units WHERE id = ?1";
        Ok(self.conn.prepare_cached(sql)?.query_row([unit], |row| row.get(0)).optional()?.unwrap_or(0))
    }

    /// Leases units for `limit` milliseconds and records the call, unless it would exceed the budget.
    pub fn begin_call(&mut self, due: &[&Due], to: &Endpoint, budget: Budget, now: Millis, limit: Millis) -> Result<CallStart> {
        let until = now + limit;
        self.write(|tx| {
            if tx.spent_since(now - DAY)?.tokens().saturating_add(budget.input + budget.output) > budget.daily {
                return Ok(CallStart::OverBudget);
            }
            let free = "SELECT 1 FROM work_units WHERE id = ?1 AND (model_until IS NULL OR model_until <= ?2 OR model_until > ?2 + 120000)";
            for due in due {
                if !tx.tx.prepare_cached(free)?.exists(params![due.unit, now])? {
                    return Ok(CallStart::Busy);
                }
            }
            let lease = "UPDATE work_units SET model_until = ?2 WHERE id = ?1";
            for due in due {
                tx.tx.prepare_cached(lease)?.execute(params![due.unit, until])?;
            }
            let Some(first) = due.first() else { return Ok(CallStart::Busy) };
            let row = tx.begin_call(first.unit, first.purpose, to, budget, now)?;
            let leases = due.iter().map(|due| Lease { unit: due.unit, until }).collect();
            Ok(CallStart::Leased(Call { leases, row, purpose: first.purpose, model: to.model.clone() }))
        })
    }
}

impl Tx<'_> {
    /// Releases a lease without storing memories. Without an answer the unit stays due; an unreadable answer counts as
    /// one of its calls.
    pub fn give_back(&self, leases: &[Lease], answered: bool) -> Result<()> {
        let sql = "UPDATE work_units SET model_until = NULL, model_calls = model_calls + ?3 WHERE id = ?1 AND model_until = ?2";
        for lease in leases {
            self.tx.prepare_cached(sql)?.execute(params![lease.unit, lease.until, answered])?;
        }
        Ok(())
    }

    /// Marks a unit as done because there is nothing to ask about it.
    pub fn nothing_to_ask(&self, unit: i64, seen: i64) -> Result<()> {
        let sql = "UPDATE work_units SET distilled_seq = ?2, model_calls = model_calls + 1,
                     state = CASE WHEN state = 'open' THEN state ELSE 'distilled' END WHERE id = ?1";
        self.tx.prepare_cached(sql)?.execute([unit, seen])?;
        Ok(())
    }

    /// Stores a model's memories of a unit and releases the lease. Writes nothing and returns false if another process
    /// has leased the unit meanwhile, or if part of it was forgotten.
    pub fn supersede_by_model(
        &self,
        call: &Call,
        lease: Lease,
        story: &UnitStory,
        values: &Superseding,
        now: Millis,
    ) -> Result<bool> {
        let sql = "UPDATE work_units SET model_until = NULL, model_at = ?3, distilled_seq = ?4,
                     model_calls = CASE WHEN ?5 THEN max(model_calls, 1) ELSE model_calls + 1 END,
                     state = CASE WHEN state = 'open' THEN state ELSE 'distilled' END WHERE id = ?1 AND model_until = ?2";
        let seen = story.tools.last().map(|tool| tool.seq).unwrap_or(0);
        let redo = call.purpose == Purpose::Redo;
        let made_by = Maker::Model(call.model.clone());
        if self.tx.prepare_cached(sql)?.execute(params![lease.unit, lease.until, now, seen, redo])? == 0 {
            return Ok(false);
        }
        // Make its steps final. If they moved later, the memories would belong to another unit.
        let sql = "UPDATE steps SET settled = 1 WHERE session_id = ?1 AND (work_unit_id = ?2 OR id =
                     (SELECT min(id) FROM steps WHERE session_id = ?1 AND id > (SELECT max(id) FROM steps WHERE session_id = ?1 AND work_unit_id = ?2)))";
        self.tx.prepare_cached(sql)?.execute([story.session, story.unit])?;
        let home = MemoryScope {
            project: story.project,
            session: Some(story.session),
            unit: Some(story.unit),
            platform: Some(story.platform.name()),
        };
        let mut going = if redo { self.untouched_of_models(home)? } else { Vec::new() };
        let stored = self.of_rules(home)?;
        if let Some(summary) = values.drafts.iter().find(|draft| draft.kind.is_summary()) {
            let sql = "UPDATE work_units SET title = ?2 WHERE id = ?1";
            self.tx.prepare_cached(sql)?.execute(params![story.unit, summary.title])?;
            self.wait_for_index(TextKind::Unit, story.unit)?;
        }
        for (draft, old) in values.drafts.iter().zip(&values.supersedes) {
            let Some(key) = &draft.key else { continue };
            let id = match stored.get(key) {
                Some(stored) if self.is_touched(stored.id)? => continue,
                Some(stored) => {
                    going.retain(|id| *id != stored.id);
                    self.rewrite_memory(stored.id, draft, home, &made_by)?;
                    stored.id
                }
                None if self.is_dismissed(home, key)? => continue,
                None => self.insert_memory(draft, home, &made_by)?,
            };
            let sql = "UPDATE memories SET superseded_by = ?2 WHERE id = ?1 AND superseded_by IS NULL AND NOT by_hand AND NOT pinned AND made_by NOT IN ('hand', 'custom')";
            let mut supersede = self.tx.prepare_cached(sql)?;
            old.iter().try_for_each(|old| supersede.execute([*old, id]).map(|_| ()))?;
        }
        let sql = "SELECT 1 FROM memories WHERE id = ?1 AND superseded_by IS NULL AND NOT by_hand AND NOT pinned AND made_by NOT IN ('hand', 'custom')";
        for old in &values.withdrawn {
            if self.tx.prepare_cached(sql)?.exists([old])? {
                self.dismiss_memory(*old)?;
            }
        }
        for old in &going {
            match self.successor(*old, &going, home)? {
                Some(successor) => self.supersede(*old, successor)?,
                None => self.delete_memory(*old)?,
            }
        }
        Ok(true)
    }

    /// Time at which a model last distilled a unit; `None` if the unit has no memories of a model.
    pub(super) fn distilled_at(&self, session: i64, unit: i64) -> Result<Option<Millis>> {
        let sql = "SELECT model_at FROM work_units WHERE id = ?2 AND EXISTS (SELECT 1 FROM memories
                     WHERE session_id = ?1 AND work_unit_id = ?2 AND made_by NOT IN ('rules', 'agent', 'hand'))";
        Ok(self.tx.prepare_cached(sql)?.query_row([session, unit], |row| row.get(0)).optional()?.flatten())
    }

    fn is_touched(&self, memory: i64) -> Result<bool> {
        let sql = "SELECT by_hand OR pinned OR superseded_by IS NOT NULL FROM memories WHERE id = ?1";
        Ok(self.tx.prepare_cached(sql)?.query_row([memory], |row| row.get(0))?)
    }

    /// Memories that models created for a unit and that no person has changed.
    fn untouched_of_models(&self, home: MemoryScope) -> Result<Vec<i64>> {
        let sql =
            "SELECT id FROM memories WHERE session_id = ?1 AND work_unit_id = ?2 AND made_by NOT IN ('rules', 'agent', 'hand')
                     AND NOT by_hand AND NOT pinned AND superseded_by IS NULL";
        let values = params![home.session, home.unit];
        Ok(self.tx.prepare_cached(sql)?.query_map(values, |row| row.get(0))?.collect::<Result<_, _>>()?)
    }
}

/// The folder of a session and those of its tool uses, from JSON.
fn folders(own: Option<String>, others: String) -> Vec<String> {
    let others: Vec<String> = serde_json::from_str(&others).unwrap_or_default();
    own.into_iter().chain(others).collect()
}

/// Outcome of a call in progress, or of one whose process was killed.
const UNFINISHED: &str = "unfinished";
/// Outcome of a call whose answer did not arrive in time.
const TIMEOUT: &str = "timeout";
/// Number of consecutive failures after which Stop pauses its calls, and for how long.
const FAILED_CALLS: usize = 2;
const PAUSE: Millis = 30 * 60_000;

impl Store {
    /// Costs since a time.
    pub fn spent_since(&self, since: Millis) -> Result<Spent> {
        spent_since(&self.conn, since)
    }

    /// End of the pause after consecutive failures; `None` if there is none.
    pub fn paused_until(&self, now: Millis) -> Result<Option<Millis>> {
        let last = self.last_calls(FAILED_CALLS)?;
        // A time in the future comes from a clock that was set back.
        let until = last.first().map(|call| call.at.min(now) + PAUSE).filter(|until| *until > now);
        // A call that took too long is asked again in fewer words; it is no reason to stop asking.
        let is_refusal = |call: &Spend| !matches!(call.outcome.as_str(), "ok" | TIMEOUT);
        Ok(until.filter(|_| last.len() == FAILED_CALLS && last.iter().all(is_refusal)))
    }

    /// Number of the last calls that took too long, up to `most`.
    pub fn timeouts_in_a_row(&self, most: usize) -> Result<usize> {
        Ok(self.last_calls(most)?.iter().take_while(|call| call.outcome == TIMEOUT).count())
    }

    /// The last calls, newest first.
    pub fn last_calls(&self, limit: usize) -> Result<Vec<Spend>> {
        self.calls("?1 IS NULL", None, limit)
    }

    /// The last calls about work of a project (`None`: all calls), newest first.
    pub fn calls_about(&self, project: Option<i64>, limit: usize) -> Result<Vec<Spend>> {
        let about =
            "work_unit_id IN (SELECT u.id FROM work_units u JOIN sessions s ON s.id = u.session_id WHERE s.project_id = ?1)";
        self.calls(if project.is_some() { about } else { "?1 IS NULL" }, project, limit)
    }

    fn calls(&self, wanted: &str, project: Option<i64>, limit: usize) -> Result<Vec<Spend>> {
        let sql = format!(
            "SELECT at, provider, model, purpose, input_tokens, output_tokens, estimated, took, outcome FROM spend
             WHERE {wanted} ORDER BY id DESC LIMIT ?2"
        );
        let row = |row: &rusqlite::Row| {
            Ok(Spend {
                at: row.get(0)?,
                provider: row.get(1)?,
                model: row.get(2)?,
                purpose: row.get(3)?,
                input_tokens: row.get(4)?,
                output_tokens: row.get(5)?,
                estimated: row.get(6)?,
                took: row.get(7)?,
                outcome: row.get(8)?,
            })
        };
        Ok(self.conn.prepare_cached(&sql)?.query_map(params![project, limit as i64], row)?.collect::<Result<_, _>>()?)
    }

    /// The call that a model created a memory in.
    pub fn call_of_memory(&self, memory: i64) -> Result<Option<Spend>> {
        let sql = "SELECT rule_key FROM memories WHERE id = ?1 AND made_by NOT IN ('rules', 'agent', 'hand', 'custom')";
        let key: Option<String> = self.conn.prepare_cached(sql)?.query_row([memory], |row| row.get(0)).optional()?.flatten();
        // `model:UNIT:CALL:NUMBER`, `open:UNIT:CALL:NUMBER`
        let call = key.as_deref().and_then(|key| key.split(':').nth(2)).and_then(|call| call.parse::<i64>().ok());
        call.map_or(Ok(None), |call| Ok(self.calls("id = ?1", Some(call), 1)?.pop()))
    }

    /// Tokens spent on some units.
    pub fn spent_on(&self, units: &[i64]) -> Result<i64> {
        let sql = "SELECT coalesce(sum(input_tokens + output_tokens), 0) FROM spend WHERE work_unit_id IN (SELECT value FROM json_each(?1))";
        Ok(self.conn.prepare_cached(sql)?.query_row([serde_json::to_string(units)?], |row| row.get(0))?)
    }
}

fn spent_since(conn: &Connection, since: Millis) -> Result<Spent> {
    let sql =
        "SELECT count(*), coalesce(sum(outcome <> 'ok'), 0), coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0)
               FROM spend WHERE at > ?1";
    let row = |row: &rusqlite::Row| {
        Ok(Spent { calls: row.get(0)?, failed: row.get(1)?, input_tokens: row.get(2)?, output_tokens: row.get(3)? })
    };
    Ok(conn.prepare_cached(sql)?.query_row([since], row)?)
}

impl Tx<'_> {
    pub(super) fn spent_since(&self, since: Millis) -> Result<Spent> {
        spent_since(&self.tx, since)
    }

    /// Records the start of a call with its expected tokens; returns its row id.
    pub(super) fn begin_call(&self, unit: i64, purpose: Purpose, to: &Endpoint, budget: Budget, now: Millis) -> Result<i64> {
        let sql =
            "INSERT INTO spend(at, work_unit_id, provider, model, purpose, input_tokens, output_tokens, estimated, took, outcome)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 1, 0, ?8)";
        let values = params![now, unit, to.provider.name(), to.model, purpose.name(), budget.input, budget.output, UNFINISHED];
        self.tx.prepare_cached(sql)?.execute(values)?;
        Ok(self.tx.last_insert_rowid())
    }

    /// Records the end of a call.
    pub fn end_call(&self, call: i64, cost: CallCost, outcome: &str) -> Result<()> {
        let sql = "UPDATE spend SET input_tokens = ?2, output_tokens = ?3, estimated = ?4, took = ?5, outcome = ?6 WHERE id = ?1";
        self.tx.prepare_cached(sql)?.execute(params![
            call,
            cost.input_tokens,
            cost.output_tokens,
            cost.estimated,
            cost.took,
            outcome
        ])?;
        Ok(())
    }
}
