//! Work units as events come in: each prompt and tool use goes into a step, and each prompt, closing message and due part
//! of long work has the last places judged (`crate::units`). All of it touches the last steps of one session only.

mod apply;
mod judge;
mod left;
mod list;
mod steps;

use super::Tx;
use super::events::Session;
use crate::model::{Event, Kind, Millis, ToolUse};
use crate::units::{Step, begins_step, is_due};
use anyhow::Result;
use rusqlite::params;
use steps::{STEPS_AT_HAND, StepRow};

/// Why a unit was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClosedBy {
    Clear,
    SessionEnd,
    ClientGone,
    Silence,
}

impl ClosedBy {
    fn name(self) -> &'static str {
        match self {
            ClosedBy::Clear => "clear",
            ClosedBy::SessionEnd => "session end",
            ClosedBy::ClientGone => "client gone",
            ClosedBy::Silence => "silence",
        }
    }
}

impl Tx<'_> {
    /// A prompt begins a step, and perhaps a unit.
    pub(super) fn prompt_in_units(&self, session: &Session, prompt: i64, text: &str, at: Millis) -> Result<()> {
        let mut rows = self.last_steps(session.id)?;
        let step = Step::asked(text, at);
        let cleared = rows.last().map(|last| self.was_cleared(last.unit)).transpose()?;
        let (unit, reason) = match (rows.last(), cleared) {
            (Some(last), Some(false)) => (last.unit, None),
            (Some(_), _) => (self.open_unit(session.id, at)?, Some("/clear")),
            (None, _) => (self.open_unit(session.id, at)?, Some("the session began")),
        };
        let id = self.insert_step(session.id, unit, Some(prompt), &step, reason.is_some())?;
        rows.push(StepRow { id, unit, prompt: Some(prompt), settled: reason.is_some(), step });
        let Some(reason) = reason else { return self.judge(session.id, rows, false, at) };
        self.begin_without_judgment(id, reason, at)?;
        self.settle_all(session.id)?;
        self.refresh_unit(unit, &rows[rows.len() - 1..], true, false)
    }

    /// The step that a tool use belongs to; where there is none, it begins one.
    pub(super) fn step_for_tool(&self, session: &Session, prompt: Option<i64>, event: &Event) -> Result<StepRow> {
        if let Some(step) = self.step_of(session.id, prompt, event.agent.as_deref())? {
            return Ok(step);
        }
        let unit = self.open_unit(session.id, event.at)?;
        let step = Step::going_on(event.at);
        let id = self.insert_step(session.id, unit, prompt, &step, true)?;
        self.begin_without_judgment(id, "the session was met at work", event.at)?;
        Ok(StepRow { id, unit, prompt, settled: true, step })
    }

    /// Takes a stored tool use into its step, or into a new one where the work on the prompt is cut.
    pub(super) fn tool_in_units(
        &self,
        session: &Session,
        mut row: StepRow,
        (id, seq): (i64, i64),
        tool: &ToolUse,
        at: Millis,
    ) -> Result<()> {
        if begins_step(&row.step, tool) && self.is_last_step(session.id, row.id)? {
            let step = Step::going_on(row.step.until.max(row.step.at));
            let new = self.insert_step(session.id, row.unit, row.prompt, &step, false)?;
            self.tx.prepare_cached("UPDATE tool_uses SET step_id = ?2 WHERE id = ?1")?.execute([id, new])?;
            row = StepRow { id: new, settled: false, step, ..row };
        }
        row.step.used(tool, at);
        let sql = "UPDATE steps SET ended_at = max(ended_at, ?2), first_seq = coalesce(first_seq, ?3), last_seq = ?3,
                     tool_uses = tool_uses + 1, failures = failures + ?4, sketch = ?5 WHERE id = ?1";
        let failed = tool.succeeded == Some(false);
        self.tx.prepare_cached(sql)?.execute(params![row.id, at, seq, failed, row.step.to_bytes()])?;
        if let Some(path) = &tool.path {
            let edits = i64::from(matches!(tool.kind, Kind::Edit | Kind::Write) && !failed);
            let reads = i64::from(tool.kind == Kind::Read);
            if edits + reads > 0 {
                let sql = "INSERT INTO step_files(step_id, path, reads, edits) VALUES (?1, ?2, ?3, ?4)
                           ON CONFLICT DO UPDATE SET reads = reads + excluded.reads, edits = edits + excluded.edits";
                self.tx.prepare_cached(sql)?.execute(params![row.id, path, reads, edits])?;
            }
        }
        if is_due(&row.step) {
            let rows = self.last_steps(session.id)?;
            self.judge(session.id, rows, true, at)?;
        }
        Ok(())
    }

    /// The agent closes a turn: its work is known now, and the last places are judged anew.
    pub(super) fn turn_in_units(
        &self,
        session: &Session,
        prompt: Option<i64>,
        (closing, is_new): (Option<&str>, bool),
        at: Millis,
    ) -> Result<()> {
        let Some(mut row) = self.step_of(session.id, prompt, None)? else { return Ok(()) };
        if let Some(closing) = closing {
            row.step.closes(closing, at);
            self.update_sketch(row.id, &row.step)?;
            if is_new {
                self.tx.prepare_cached("UPDATE work_units SET rules_due = 1 WHERE id = ?1")?.execute([row.unit])?;
            }
        }
        let rows = self.last_steps(session.id)?;
        self.judge(session.id, rows, true, at)
    }

    /// A recorded stream is over, and its session goes on somewhere else: what is known is judged once more.
    pub fn end_of_stream(&self, session: i64, at: Millis) -> Result<()> {
        let rows = self.last_steps(session)?;
        self.judge(session, rows, true, at)
    }

    /// A session's unit closes, for the time being: where the session goes on, so does the unit.
    pub fn close_units(&self, session: i64, by: ClosedBy, at: Millis) -> Result<()> {
        let rows = self.last_steps(session)?;
        if rows.is_empty() {
            return Ok(());
        }
        self.judge(session, rows, true, at)?;
        let rows = self.last_steps(session)?;
        let Some(unit) = rows.last().map(|row| row.unit) else { return Ok(()) };
        self.refresh_unit(unit, &rows, rows[0].unit != unit || rows.len() < STEPS_AT_HAND, true)?;
        let sql = "UPDATE work_units SET closed_by = ?2 WHERE id = ?1 AND state <> 'distilled'";
        self.tx.prepare_cached(sql)?.execute(params![unit, by.name()])?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scratch, prompt};
    use crate::model::{CommandKind, Event, Happening, Metadata, Platform, SessionStart, StartSource};
    use crate::model::{Kind, Millis, ToolUse};
    use crate::redact::{Clean, Redactor};
    use crate::store::Store;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const SUBJECTS: [&str; 4] = ["fix the login of customers", "yes, go on", "write release notes for the exporter", "/review"];

    /// An event made of a few numbers: which session, what, when, which prompt and tool.
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
            transcript_length: None,
            prompt: Some(format!("p{}", n % 5)),
            agent: (n % 7 == 0).then(|| format!("agent{}", n % 2)),
            what,
        };
        let what = match what % 8 {
            0 => Happening::Prompted { text: SUBJECTS[usize::from(n) % 4].to_string() },
            1 => Happening::TurnEnded { closing: Some("Done. Shall I go on?".into()), error: None },
            2 => Happening::SessionEnded { reason: if n % 3 == 0 { "clear" } else { "other" }.into(), git: None },
            3 => Happening::SessionStarted(SessionStart {
                source: if n % 4 == 0 { StartSource::Clear } else { StartSource::Resume },
                ..SessionStart::default()
            }),
            kind => Happening::ToolUsed(Box::new(ToolUse {
                id: Some(format!("t{n}-{kind}")),
                name: "Tool".into(),
                kind: [Kind::Read, Kind::Edit, Kind::Command, Kind::Command][usize::from(kind) - 4],
                command: [None, None, Some(CommandKind::Test), Some(CommandKind::Commit)][usize::from(kind) - 4],
                path: (kind < 6).then(|| format!("src/file{}.rs", n % 6)),
                content: Some(format!("cargo test part{n}")),
                input: None,
                outcome: None,
                succeeded: [None, Some(true), Some(n % 2 == 0)][usize::from(n) % 3],
                source_event: "PostToolUse".into(),
                metadata: Metadata { agent_id: (n % 7 == 0).then(|| format!("agent{}", n % 2)), ..Metadata::default() },
                tasks: None,
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
            told in prop::collection::vec((0_u8..2, any::<u8>(), any::<i16>(), any::<u8>()), 1..90)
        ) {
            let scratch = Scratch::new("units-of-any-events");
            let mut store = scratch.open();
            for event in told.iter().map(|numbers| event(*numbers)) {
                store.write(|tx| tx.store_event(&event, None, &|_| None)).unwrap();
            }
            let stray = "SELECT count(*) FROM tool_uses t LEFT JOIN steps s ON s.id = t.step_id AND s.session_id = t.session_id
                         LEFT JOIN work_units u ON u.id = s.work_unit_id AND u.session_id = t.session_id WHERE u.id IS NULL";
            prop_assert_eq!(numbers(&store, stray), [0]);
            prop_assert_eq!(numbers(&store, "SELECT count(*) FROM work_units WHERE id NOT IN (SELECT work_unit_id FROM steps)"), [0]);
            let counted = numbers(&store, "SELECT coalesce(sum(tool_uses), 0) FROM steps");
            prop_assert_eq!(counted, numbers(&store, "SELECT count(*) FROM tool_uses"));
            let standing = numbers(&store, "SELECT count(*) FROM boundaries WHERE standing");
            prop_assert_eq!(standing, numbers(&store, "SELECT count(*) FROM work_units"), "what is taken back is written down");
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
        store
            .write(|tx| tx.store_event(&prompt("long", 1, "go through all files and fix what you find"), None, &|_| None))
            .unwrap();
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
                    let Happening::ToolUsed(mut tool) = (*used).clone().what else { unreachable!() };
                    tool.id = Some(format!("long{n}"));
                    tool.content = Some(format!("word{n} other{}", n * 7));
                    tool.metadata = Metadata::default();
                    let used = Event { what: Happening::ToolUsed(tool), ..(*used).clone() };
                    tx.store_event(&Redactor::default().clean(used), None, &|_| None)
                })
            })
            .unwrap();
        let largest = numbers(&store, "SELECT max(length(sketch)) FROM steps");
        assert!(largest[0] < 4096, "{largest:?} bytes");
        assert_eq!(numbers(&store, "SELECT count(*) FROM tool_uses WHERE step_id IS NULL"), [0]);
    }
}
