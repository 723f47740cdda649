//! Steps, units and boundaries in the database. `segmentation` decides; `steps` reads its input, `save` writes its
//! changes, `recount` reads the remaining rows of a session after forgetting. `list` reads whole units, `orphaned`
//! finds units whose client is gone.

mod list;
mod orphaned;
mod recount;
mod save;
mod steps;

pub use orphaned::LeftOpen;
pub use recount::UnitToRecount;

#[cfg(test)]
mod tests {
    use super::super::testing::{Scratch, prompt, store_event};
    use crate::model::{CommandKind, Event, EventKind, Metadata, Platform, SessionStart, StartSource};
    use crate::model::{Kind, Millis, ToolUse};
    use crate::redact::{Clean, Redactor};
    use crate::store::Store;
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
            let active = numbers(&store, "SELECT count(*) FROM boundaries WHERE active");
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
}
