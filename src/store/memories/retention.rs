//! Retention: deletes old raw tool uses, oldest first, in small batches. Units, files, prompts and memories are kept.

use super::super::{Store, Tx};
use crate::model::Millis;
use anyhow::Result;
use rusqlite::params;

/// Tool uses per transaction; takes 3 ms.
const BATCH: i64 = 100;

impl Store {
    /// Deletes at most `batches` batches of tool uses from before a time, and returns how many.
    ///
    /// Rows are stored in order of arrival, so only the first ones are examined, up to the first one that is young
    /// enough to keep. The last row is always kept: new ids count from it, and memories refer to their sources by id.
    pub fn trim_tool_uses(&mut self, before: Millis, batches: usize) -> Result<usize> {
        let mut trimmed = 0;
        for _ in 0..batches {
            // Checked before locking the database: on most days there is nothing to do.
            let old = "SELECT id FROM (SELECT id, received_at FROM tool_uses ORDER BY id LIMIT ?2) WHERE received_at < ?1 AND id < (SELECT max(id) FROM tool_uses) ORDER BY id";
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
    pub(in crate::store) fn trim(&self, ids: &[i64]) -> Result<usize> {
        let mut gone = 0;
        for id in ids {
            self.unindex_tool(*id)?;
            gone += self.tx.prepare_cached("DELETE FROM tool_uses WHERE id = ?1")?.execute([id])?;
        }
        Ok(gone)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{self, Scratch, prompt};
    use crate::model::{Event, EventKind, Kind, Metadata, ToolUse};
    use crate::redact::Redactor;

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
                        content: Some(format!("echo {at}")),
                        input: None,
                        outcome: None,
                        succeeded: Some(true),
                        source_event: "PostToolUse".into(),
                        metadata: Metadata::default(),
                        tasks: None,
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
