//! What calls of a model cost: a row each, written before the call, so that one whose process is killed is counted too.

use super::{Store, Tx};
use crate::model::{Budget, CallCost, Endpoint, Millis, Purpose, Spend, Spent};
use anyhow::Result;
use rusqlite::{Connection, params};

/// A call that goes on, or whose process was killed.
const UNFINISHED: &str = "unfinished";
/// Failures in a row after which Stop asks no more for a while, and how long.
const FAILURES: usize = 2;
const PAUSE: Millis = 30 * 60_000;

impl Store {
    /// What calls have cost since a moment.
    pub fn spent_since(&self, since: Millis) -> Result<Spent> {
        spent_since(&self.conn, since)
    }

    /// Until when Stop asks no model: after failures in a row, for half an hour from the last one.
    pub fn paused_until(&self, now: Millis) -> Result<Option<Millis>> {
        let last = self.last_calls(FAILURES)?;
        // A time that is ahead is of a clock that was set back.
        let until = last.first().map(|call| call.at.min(now) + PAUSE).filter(|until| *until > now);
        Ok(until.filter(|_| last.len() == FAILURES && last.iter().all(|call| call.outcome != "ok")))
    }

    /// The last calls, the newest first.
    pub fn last_calls(&self, limit: usize) -> Result<Vec<Spend>> {
        let sql = "SELECT at, provider, model, purpose, input_tokens, output_tokens, estimated, took, outcome FROM spend ORDER BY id DESC LIMIT ?1";
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
        Ok(self.conn.prepare_cached(sql)?.query_map([limit as i64], row)?.collect::<Result<_, _>>()?)
    }

    /// What calls about some units have cost, in tokens.
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

    /// Writes down that a call begins, with what it will read and may write; returns its row.
    pub(super) fn begin_call(&self, unit: i64, purpose: Purpose, to: &Endpoint, budget: Budget, now: Millis) -> Result<i64> {
        let sql =
            "INSERT INTO spend(at, work_unit_id, provider, model, purpose, input_tokens, output_tokens, estimated, took, outcome)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 1, 0, ?8)";
        let values = params![now, unit, to.provider.name(), to.model, purpose.name(), budget.input, budget.output, UNFINISHED];
        self.tx.prepare_cached(sql)?.execute(values)?;
        Ok(self.tx.last_insert_rowid())
    }

    /// Writes down how a call ended.
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
