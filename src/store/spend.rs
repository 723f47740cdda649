//! Costs of model calls. Each call has a row, written before the call, so that calls of killed processes count too.

use super::{Store, Tx};
use crate::model::{Budget, CallCost, Endpoint, Millis, Purpose, Spend, Spent};
use anyhow::Result;
use rusqlite::{Connection, params};

/// Outcome of a call in progress, or of one whose process was killed.
const UNFINISHED: &str = "unfinished";
/// Number of consecutive failures after which Stop pauses its calls, and for how long.
const FAILURES: usize = 2;
const PAUSE: Millis = 30 * 60_000;

impl Store {
    /// Costs since a time.
    pub fn spent_since(&self, since: Millis) -> Result<Spent> {
        spent_since(&self.conn, since)
    }

    /// End of the pause after consecutive failures; `None` if there is none.
    pub fn paused_until(&self, now: Millis) -> Result<Option<Millis>> {
        let last = self.last_calls(FAILURES)?;
        // A time in the future comes from a clock that was set back.
        let until = last.first().map(|call| call.at.min(now) + PAUSE).filter(|until| *until > now);
        Ok(until.filter(|_| last.len() == FAILURES && last.iter().all(|call| call.outcome != "ok")))
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
