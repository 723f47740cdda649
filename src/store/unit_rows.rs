//! Reads and writes the steps and units of segmentation: last steps, changes, orphans, counts.

use super::events::known_session;
use super::{Store, Tx};
use crate::model::{Client, ClosedBy, Kind, Millis, Platform, TextKind, ToolUse};
use crate::segmentation::{
    BoundaryChange, Changes, Intent, Step, StepId, StepRow, ToolUseInStep, UnitChange, UnitId, WINDOW_STEPS,
};
use anyhow::{Context, Result};
use rusqlite::{OptionalExtension, Row, named_params, params};
use serde_json::Value;

/// Maximum bytes of an intent.
const INTENT: i64 = 300;

/// Ids of the new rows.
struct Ids {
    units: Vec<i64>,
    step: Option<i64>,
}

impl Ids {
    fn unit(&self, unit: UnitId) -> Result<i64> {
        match unit {
            UnitId::Stored(id) => Ok(id),
            UnitId::New(at) => self.units.get(at).copied().context("a unit that was not opened"),
        }
    }

    fn step(&self, step: StepId) -> Result<i64> {
        match step {
            StepId::Stored(id) => Ok(id),
            StepId::New => self.step.context("a step that was not inserted"),
        }
    }
}

impl Tx<'_> {
    /// Writes a session's changes.
    pub fn save(&self, session: i64, changes: &Changes) -> Result<()> {
        let mut ids = Ids { units: Vec::new(), step: None };
        for at in &changes.opened {
            ids.units.push(self.open_unit(session, *at)?);
        }
        if let Some(new) = &changes.inserted {
            let sql = "INSERT INTO steps(session_id, work_unit_id, prompt_id, started_at, ended_at, settled, features)
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
            let unit = ids.unit(new.unit)?;
            let values = params![session, unit, new.prompt, new.step.at, new.step.until, new.settled, new.step.to_bytes()];
            self.tx.prepare_cached(sql)?.execute(values)?;
            ids.step = Some(self.tx.last_insert_rowid());
        }
        if let Some(used) = &changes.used {
            self.count_tool_use(ids.step(used.step)?, used)?;
        }
        for (step, features) in &changes.steps {
            self.save_features(ids.step(*step)?, features)?;
        }
        for (step, unit) in &changes.moved {
            let sql = "UPDATE steps SET work_unit_id = ?2 WHERE id = ?1";
            self.tx.prepare_cached(sql)?.execute([ids.step(*step)?, ids.unit(*unit)?])?;
        }
        for boundary in &changes.boundaries {
            self.save_boundary(ids.step(boundary.step)?, boundary)?;
        }
        for change in &changes.units {
            self.save_unit(ids.unit(change.unit)?, change)?;
        }
        for unit in &changes.emptied {
            self.unindex_unit(*unit)?;
            self.unindex(TextKind::Unit, *unit)?;
            self.tx.prepare_cached("DELETE FROM work_units WHERE id = ?1")?.execute([unit])?;
        }
        for step in &changes.settled {
            self.tx.prepare_cached("UPDATE steps SET settled = 1 WHERE id = ?1")?.execute([ids.step(*step)?])?;
        }
        if let Some((unit, by)) = changes.closed {
            let sql = "UPDATE work_units SET closed_by = ?2 WHERE id = ?1 AND state <> 'distilled'";
            self.tx.prepare_cached(sql)?.execute(params![ids.unit(unit)?, by.name()])?;
        }
        if let Some(unit) = changes.said_in {
            self.tx.prepare_cached("UPDATE work_units SET rules_due = 1 WHERE id = ?1")?.execute([ids.unit(unit)?])?;
        }
        Ok(())
    }

    fn open_unit(&self, session: i64, at: Millis) -> Result<i64> {
        let sql = "INSERT INTO work_units(session_id, state, started_at, ended_at) VALUES (?1, 'open', ?2, ?2)";
        self.tx.prepare_cached(sql)?.execute([session, at])?;
        Ok(self.tx.last_insert_rowid())
    }

    fn save_features(&self, id: i64, step: &Step) -> Result<()> {
        let sql = "UPDATE steps SET features = ?2, ended_at = max(ended_at, ?3) WHERE id = ?1";
        self.tx.prepare_cached(sql)?.execute(params![id, step.to_bytes(), step.until])?;
        Ok(())
    }

    fn count_tool_use(&self, step: i64, used: &ToolUseInStep) -> Result<()> {
        if let Some(tool_use) = used.reassigned {
            self.tx.prepare_cached("UPDATE tool_uses SET step_id = ?2 WHERE id = ?1")?.execute([tool_use, step])?;
        }
        let sql = "UPDATE steps SET ended_at = max(ended_at, ?2), first_seq = coalesce(first_seq, ?3), last_seq = ?3,
                     tool_uses = tool_uses + 1, failures = failures + ?4, features = ?5 WHERE id = ?1";
        self.tx.prepare_cached(sql)?.execute(params![step, used.at, used.seq, used.failed, used.features.to_bytes()])?;
        if let Some(file) = &used.file {
            let sql = "INSERT INTO step_files(step_id, path, reads, edits) VALUES (?1, ?2, ?3, ?4)
                       ON CONFLICT DO UPDATE SET reads = reads + excluded.reads, edits = edits + excluded.edits";
            self.tx.prepare_cached(sql)?.execute(params![step, file.path, file.reads, file.edits])?;
        }
        Ok(())
    }

    fn save_boundary(&self, step: i64, boundary: &BoundaryChange) -> Result<()> {
        let sql = "UPDATE steps SET boundary = json_object('reason', ?2, 'score', ?3, 'signals', json(?4),
                     'at_prompt', coalesce(boundary ->> '$.at_prompt', ?5), 'active', ?6,
                     'history', CASE WHEN boundary IS NULL THEN json_array(json(?7)) WHEN ?7 IS NULL THEN boundary -> '$.history'
                                ELSE json_insert(boundary -> '$.history', '$[#]', json(?7)) END) WHERE id = ?1";
        self.tx.prepare_cached(sql)?.execute(params![
            step,
            boundary.reason,
            boundary.score,
            boundary.signals.as_ref().map(ToString::to_string),
            boundary.at_prompt,
            boundary.stands,
            boundary.history.as_ref().map(ToString::to_string),
        ])?;
        Ok(())
    }

    fn save_unit(&self, id: i64, change: &UnitChange) -> Result<()> {
        let intent = match change.intent {
            Intent::Unchanged => None,
            Intent::Prompt(prompt) => self.beginning_of_prompt(prompt)?,
            Intent::WorkFrom(step) => self.name_of_work(id, step)?,
        };
        let sql = "UPDATE work_units SET ended_at = max(:ended, CASE WHEN :before THEN ended_at ELSE 0 END),
                     started_at = CASE WHEN :before THEN started_at ELSE :started END,
                     intent = CASE WHEN :before THEN intent ELSE :intent END,
                     evidence = CASE WHEN :before AND outcome = 'done' AND :outcome IN ('answered', 'unknown') THEN evidence ELSE :evidence END,
                     outcome = CASE WHEN :before AND outcome = 'done' AND :outcome IN ('answered', 'unknown') THEN outcome ELSE :outcome END,
                     state = CASE WHEN state = 'distilled' THEN state WHEN :over THEN 'closed' ELSE 'open' END,
                     closed_by = CASE WHEN NOT :over THEN NULL WHEN closed_by IS NULL THEN 'boundary' ELSE closed_by END,
                     rules_due = rules_due OR outcome IS NOT :outcome OR evidence IS NOT :evidence WHERE id = :id";
        self.tx.prepare_cached(sql)?.execute(named_params! {
            ":id": id, ":before": !change.whole, ":started": change.started, ":ended": change.ended, ":intent": intent,
            ":outcome": change.outcome.name(), ":evidence": change.evidence, ":over": change.over,
        })?;
        Ok(())
    }

    fn beginning_of_prompt(&self, prompt: i64) -> Result<Option<String>> {
        let sql = "SELECT substr(text, 1, ?2) FROM prompts WHERE id = ?1";
        let mut statement = self.tx.prepare_cached(sql)?;
        Ok(statement.query_map([prompt, INTENT], |row| row.get(0))?.next().transpose()?)
    }

    /// A name for work without a prompt: the subject of its commit, or the description of its first command.
    fn name_of_work(&self, unit: i64, first_step: i64) -> Result<Option<String>> {
        let sql = "SELECT coalesce(t.metadata -> 'commit' ->> 'subject', t.metadata ->> 'description', t.content)
                   FROM steps s JOIN tool_uses t ON t.session_id = s.session_id AND t.seq BETWEEN s.first_seq AND s.last_seq
                     AND (t.kind IN ('edit', 'write', 'command') OR t.succeeded = 0) AND t.step_id = s.id
                   WHERE s.id >= ?1 AND s.session_id = (SELECT session_id FROM steps WHERE id = ?1) AND s.work_unit_id = ?2
                   ORDER BY t.metadata -> 'commit' ->> 'subject' IS NULL, t.seq LIMIT 1";
        let mut statement = self.tx.prepare_cached(sql)?;
        Ok(statement.query_map([first_step, unit], |row| row.get(0))?.next().transpose()?.flatten())
    }
}

/// Maximum parts of the work on a prompt to search for a subagent.
const PARTS: i64 = 64;

const STEP: &str = "SELECT id, work_unit_id, prompt_id, settled, started_at, features,
    boundary ->> '$.active',
    (SELECT closed_by IS 'clear' FROM work_units WHERE id = steps.work_unit_id) FROM steps";
/// `STEP` without the columns for boundary decisions: every tool use runs this query.
const STEP_ALONE: &str = "SELECT id, work_unit_id, prompt_id, settled, started_at, features, NULL, NULL FROM steps";

fn step(row: &Row) -> rusqlite::Result<StepRow> {
    let features: Vec<u8> = row.get(5)?;
    Ok(StepRow {
        id: StepId::Stored(row.get(0)?),
        unit: UnitId::Stored(row.get(1)?),
        prompt: row.get(2)?,
        settled: row.get(3)?,
        // Features of an unknown version are ignored; the step itself remains.
        step: Step::from_bytes(&features).unwrap_or(Step::going_on(row.get(4)?)),
        boundary: row.get(6)?,
        cleared: row.get::<_, Option<bool>>(7)?.unwrap_or(false),
    })
}

impl Tx<'_> {
    /// The last steps of a session in order, enough for a window of whole turns.
    pub fn last_steps(&self, session: i64) -> Result<Vec<StepRow>> {
        let sql = format!("{STEP} WHERE session_id = ?1 ORDER BY prompt_id DESC, id DESC LIMIT ?2");
        let mut statement = self.tx.prepare_cached(&sql)?;
        let mut rows: Vec<StepRow> =
            statement.query_map(params![session, WINDOW_STEPS as i64], step)?.collect::<Result<_, _>>()?;
        rows.reverse();
        Ok(rows)
    }

    /// The last step of a prompt or, with `all`, its last 64, newest first. If it has none, the session's last step.
    pub fn steps_of_prompt(&self, session: i64, prompt: Option<i64>, all: bool) -> Result<Vec<StepRow>> {
        let sql = format!("{STEP_ALONE} WHERE session_id = ?1 AND prompt_id IS ?2 ORDER BY id DESC LIMIT ?3");
        let mut statement = self.tx.prepare_cached(&sql)?;
        let limit = if all { PARTS } else { 1 };
        let rows: Vec<StepRow> = statement.query_map(params![session, prompt, limit], step)?.collect::<Result<_, _>>()?;
        if !rows.is_empty() {
            return Ok(rows);
        }
        let sql = format!("{STEP_ALONE} WHERE session_id = ?1 ORDER BY prompt_id DESC, id DESC LIMIT 1");
        Ok(self.tx.prepare_cached(&sql)?.query_row([session], step).optional()?.into_iter().collect())
    }

    /// All steps of a unit, in order.
    pub(super) fn steps_of_unit(&self, session: i64, unit: i64) -> Result<Vec<StepRow>> {
        let sql = format!("{STEP} WHERE session_id = ?1 AND work_unit_id = ?2 ORDER BY prompt_id, id");
        Ok(self.tx.prepare_cached(&sql)?.query_map([session, unit], step)?.collect::<Result<_, _>>()?)
    }

    /// Whether a step is the session's last one.
    pub fn is_last_step(&self, session: i64, step: StepId) -> Result<bool> {
        let sql = "SELECT id FROM steps WHERE session_id = ?1 ORDER BY prompt_id DESC, id DESC LIMIT 1";
        let last: i64 = self.tx.prepare_cached(sql)?.query_row([session], |row| row.get(0))?;
        Ok(step == StepId::Stored(last))
    }
}

/// Time without events after which a unit is closed, even if its client is running.
const SILENCE: Millis = 12 * 3_600_000;
/// Maximum sessions to check: the last ones.
const SESSIONS: i64 = 100;

/// A session whose last unit is open.
#[derive(Clone, Debug)]
pub struct LeftOpen {
    pub session: i64,
    pub client: Option<Client>,
    /// Time of its last event.
    pub heard_of: Millis,
}

impl LeftOpen {
    /// Returns the reason to close its unit, if any. `alive` states whether its client runs; `None` if unknown.
    pub fn closed_by(&self, alive: Option<bool>, now: Millis) -> Option<ClosedBy> {
        match alive {
            Some(false) => Some(ClosedBy::ClientGone),
            _ => (now - self.heard_of > SILENCE).then_some(ClosedBy::Silence),
        }
    }
}

impl Store {
    /// Other sessions of the same project whose last unit is open.
    pub fn left_open(&self, platform: Platform, session: &str) -> Result<Vec<LeftOpen>> {
        let Some(own) = known_session(&self.conn, platform, session)? else { return Ok(Vec::new()) };
        let sql = format!(
            "SELECT o.id, o.client_pid, o.client_started, max(o.active_at, u.ended_at, coalesce((SELECT max(ended_at) FROM steps WHERE session_id = o.id), 0))
             FROM (SELECT id, client_pid, client_started, active_at FROM sessions WHERE project_id = ?1
                     AND id <> ?2 ORDER BY active_at DESC LIMIT {SESSIONS}) o
             JOIN work_units u ON u.id = (SELECT max(id) FROM work_units WHERE session_id = o.id) AND u.state = 'open'"
        );
        let row = |row: &Row| {
            let pid: Option<u32> = row.get(1)?;
            let started: Option<i64> = row.get(2)?;
            let client = pid.map(|pid| Client { pid, started: started.map(|s| s as u64) });
            Ok(LeftOpen { session: row.get(0)?, client, heard_of: row.get(3)? })
        };
        Ok(self.conn.prepare_cached(&sql)?.query_map(params![own.project, own.id], row)?.collect::<Result<_, _>>()?)
    }
}

/// A unit to rebuild: its steps in order, each with its remaining tool uses.
#[derive(Debug)]
pub struct UnitToRecount {
    pub unit: i64,
    /// True if another unit has begun after it, or its session has ended.
    pub over: bool,
    pub steps: Vec<(StepRow, Vec<(ToolUse, Millis)>)>,
}

impl Tx<'_> {
    /// Updates the counts and files of a session's steps. Deletes steps without prompt and tool uses, and units without
    /// steps. Returns the remaining units.
    pub fn recount_steps(&self, session: i64) -> Result<Vec<UnitToRecount>> {
        let steps = "SELECT id FROM steps WHERE session_id = ?1";
        self.tx.execute(&format!("DELETE FROM step_files WHERE step_id IN ({steps})"), [session])?;
        let sql = "INSERT INTO step_files(step_id, path, reads, edits)
                   SELECT step_id, path, sum(kind = 'read'), sum(kind IN ('edit', 'write') AND succeeded IS NOT 0) FROM tool_uses
                   WHERE session_id = ?1 AND step_id IS NOT NULL AND path IS NOT NULL AND kind IN ('read', 'edit', 'write') GROUP BY 1, 2";
        self.tx.execute(sql, [session])?;
        let sql = "UPDATE steps SET (tool_uses, failures, first_seq, last_seq) =
                     (SELECT count(*), count(*) FILTER (WHERE succeeded = 0), min(seq), max(seq) FROM tool_uses t
                      WHERE t.session_id = ?1 AND t.step_id = steps.id) WHERE session_id = ?1";
        self.tx.execute(sql, [session])?;
        let gone = "session_id = ?1 AND tool_uses = 0 AND NOT EXISTS (SELECT 1 FROM prompts WHERE prompts.id = steps.prompt_id)";
        self.tx.execute(&format!("DELETE FROM steps WHERE {gone}"), [session])?;
        self.unindex_titles(session)?;
        let sql =
            "DELETE FROM work_units WHERE session_id = ?1 AND id NOT IN (SELECT work_unit_id FROM steps WHERE session_id = ?1)";
        self.tx.execute(sql, [session])?;
        // Intent and title are derived again from the remaining rows.
        self.tx.execute("UPDATE work_units SET intent = NULL, title = NULL WHERE session_id = ?1", [session])?;
        self.wait_for_session(session)?;
        let mut units = self.tx.prepare_cached("SELECT id, state <> 'open' FROM work_units WHERE session_id = ?1")?;
        let units: Vec<(i64, bool)> =
            units.query_map([session], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
        let whole = |(unit, over)| {
            let rows = self.steps_of_unit(session, unit)?;
            let steps = rows.into_iter().map(|row| self.tool_uses_of_step(session, row.id).map(|tools| (row, tools)));
            Ok(UnitToRecount { unit, over, steps: steps.collect::<Result<_>>()? })
        };
        units.into_iter().map(whole).collect()
    }

    fn tool_uses_of_step(&self, session: i64, step: StepId) -> Result<Vec<(ToolUse, Millis)>> {
        let StepId::Stored(step) = step else { return Ok(Vec::new()) };
        let sql = "SELECT kind, command_kind, succeeded, metadata, content, received_at FROM tool_uses
                   WHERE session_id = ?1 AND step_id = ?2 ORDER BY seq";
        let mut statement = self.tx.prepare_cached(sql)?;
        Ok(statement.query_map([session, step], tool_use)?.collect::<Result<_, _>>()?)
    }
}

/// The parts of a tool use that its step counts.
fn tool_use(row: &Row) -> rusqlite::Result<(ToolUse, Millis)> {
    let word = |word: Option<String>| Value::from(word.unwrap_or_default());
    let metadata: Option<String> = row.get(3)?;
    let tool = ToolUse {
        id: None,
        name: String::new(),
        kind: serde_json::from_value(word(row.get(0)?)).unwrap_or(Kind::Other),
        command: serde_json::from_value(word(row.get(1)?)).ok(),
        path: None,
        repository: None,
        content: row.get(4)?,
        input: None,
        outcome: None,
        succeeded: row.get(2)?,
        source_event: String::new(),
        metadata: metadata.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default(),
        tasks: None,
        ended: None,
    };
    Ok((tool, row.get(5)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CommandKind, Event, EventKind, Kind, Metadata, Millis, Platform, SessionStart, StartSource, ToolUse};
    use crate::redact::{Clean, Redactor};
    use crate::store::Store;
    use crate::store::testing::{Scratch, prompt, store_event};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const SUBJECTS: [&str; 4] = ["fix the login of customers", "yes, go on", "write release notes for the exporter", "/review"];

    /// An event made from a few numbers: session, kind, time, prompt and tool.
    fn event((session, what, at, n): (u8, u8, i16, u8)) -> Clean<Event> {
        let at = Millis::from(at) * 60_000;
        let base = |what| Event {
            platform: Platform::ClaudeCode,
            session: format!("session-of-many-events-{session}"),
            at,
            time: None,
            cwd: None,
            project: None,
            transcript: None,
            repository_url: None,
            transcript_length: None,
            usage: None,
            prompt: Some(format!("p{}", n % 5)),
            agent: (n % 7 == 0).then(|| format!("agent{}", n % 2)),
            what,
        };
        let what = match what % 8 {
            0 => EventKind::UserPrompt { text: SUBJECTS[usize::from(n) % 4].to_string() },
            1 => EventKind::TurnEnded { closing: Some("Done. Shall I go on?".into()), error: None },
            2 => EventKind::SessionEnded { reason: if n % 3 == 0 { "clear" } else { "other" }.into(), git: None },
            3 => EventKind::SessionStarted(SessionStart {
                source: if n % 4 == 0 { StartSource::Clear } else { StartSource::Resume },
                ..SessionStart::default()
            }),
            kind => EventKind::ToolUsed(Box::new(ToolUse {
                id: Some(format!("t{n}-{kind}")),
                name: "Tool".into(),
                kind: [Kind::Read, Kind::Edit, Kind::Command, Kind::Command][usize::from(kind) - 4],
                command: [None, None, Some(CommandKind::Test), Some(CommandKind::Commit)][usize::from(kind) - 4],
                path: (kind < 6).then(|| format!("src/file{}.rs", n % 6)),
                repository: None,
                content: Some(format!("cargo test part{n}")),
                input: None,
                outcome: None,
                succeeded: [None, Some(true), Some(n % 2 == 0)][usize::from(n) % 3],
                source_event: "PostToolUse".into(),
                metadata: Metadata { agent_id: (n % 7 == 0).then(|| format!("agent{}", n % 2)), ..Metadata::default() },
                tasks: None,
                ended: None,
            })),
        };
        Redactor::default().clean(base(what))
    }

    fn numbers(store: &Store, sql: &str) -> Vec<i64> {
        store.conn.prepare(sql).unwrap().query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn every_tool_use_is_in_one_unit_and_units_of_a_session_do_not_overlap(
            stored in prop::collection::vec((0_u8..2, any::<u8>(), any::<i16>(), any::<u8>()), 1..90)
        ) {
            let scratch = Scratch::new("units-of-any-events");
            let mut store = scratch.open();
            for event in stored.iter().map(|numbers| event(*numbers)) {
                store.write(|tx| store_event(tx, &event)).unwrap();
            }
            let stray = "SELECT count(*) FROM tool_uses t LEFT JOIN steps s ON s.id = t.step_id AND s.session_id = t.session_id
                         LEFT JOIN work_units u ON u.id = s.work_unit_id AND u.session_id = t.session_id WHERE u.id IS NULL";
            prop_assert_eq!(numbers(&store, stray), [0]);
            prop_assert_eq!(numbers(&store, "SELECT count(*) FROM work_units WHERE id NOT IN (SELECT work_unit_id FROM steps)"), [0]);
            let counted = numbers(&store, "SELECT coalesce(sum(tool_uses), 0) FROM steps");
            prop_assert_eq!(counted, numbers(&store, "SELECT count(*) FROM tool_uses"));
            let active = numbers(&store, "SELECT count(*) FROM steps WHERE boundary ->> '$.active'");
            prop_assert_eq!(active, numbers(&store, "SELECT count(*) FROM work_units"), "what is taken back is written down");
            for session in numbers(&store, "SELECT id FROM sessions") {
                let in_order = format!("SELECT work_unit_id FROM steps WHERE session_id = {session} ORDER BY prompt_id, id");
                let mut runs = numbers(&store, &in_order);
                runs.dedup();
                let apart: BTreeSet<i64> = runs.iter().copied().collect();
                prop_assert_eq!(apart.len(), runs.len(), "a unit is one run of steps: {:?}", runs);
            }
        }
    }

    #[test]
    fn a_unit_of_thousands_of_tool_uses_stays_small() {
        let scratch = Scratch::new("units-long");
        let mut store = scratch.open();
        store.write(|tx| store_event(tx, &prompt("long", 1, "go through all files and fix what you find"))).unwrap();
        store
            .write(|tx| {
                (0..3000_u32).try_for_each(|n| {
                    let mut used = event((0, 5, 1, (n % 250) as u8 | 1));
                    used = Redactor::default().clean(Event {
                        session: "long".into(),
                        prompt: Some("p1".into()),
                        agent: None,
                        ..(*used).clone()
                    });
                    let EventKind::ToolUsed(mut tool) = (*used).clone().what else { unreachable!() };
                    tool.id = Some(format!("long{n}"));
                    tool.content = Some(format!("word{n} other{}", n * 7));
                    tool.metadata = Metadata::default();
                    let used = Event { what: EventKind::ToolUsed(tool), ..(*used).clone() };
                    store_event(tx, &Redactor::default().clean(used))
                })
            })
            .unwrap();
        let largest = numbers(&store, "SELECT max(length(features)) FROM steps");
        assert!(largest[0] < 4096, "{largest:?} bytes");
        assert_eq!(numbers(&store, "SELECT count(*) FROM tool_uses WHERE step_id IS NULL"), [0]);
    }

    #[test]
    fn a_gone_client_closes_and_so_does_half_a_day_of_silence() {
        let left = LeftOpen { session: 1, client: None, heard_of: 0 };
        assert_eq!(left.closed_by(Some(false), 1), Some(ClosedBy::ClientGone));
        assert_eq!(left.closed_by(Some(true), SILENCE), None);
        assert_eq!(left.closed_by(None, SILENCE + 1), Some(ClosedBy::Silence));
    }
}
