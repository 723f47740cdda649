//! Finds open units whose client is gone or that had no event for 12 hours. This is checked when the project's next
//! session starts.

use super::super::Store;
use super::super::sessions::known_session;
use crate::model::ClosedBy;
use crate::model::{Client, Millis, Platform};
use anyhow::Result;
use rusqlite::{Row, params};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gone_client_closes_and_so_does_half_a_day_of_silence() {
        let left = LeftOpen { session: 1, client: None, heard_of: 0 };
        assert_eq!(left.closed_by(Some(false), 1), Some(ClosedBy::ClientGone));
        assert_eq!(left.closed_by(Some(true), SILENCE), None);
        assert_eq!(left.closed_by(None, SILENCE + 1), Some(ClosedBy::Silence));
    }
}
