//! A team's PostgreSQL. Files: `address` (the URL), `series` (signed changes; `series.sql`), `rad_tables` (tables for
//! other programs; `rad.sql`).

mod address;
mod rad_tables;
mod series;

pub use rad_tables::{ForeignRow, ForeignRows, RadRow};
pub use series::{BATCH, SeriesHead};

use crate::error::UserError;
use anyhow::Result;
use std::path::Path;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio_postgres::types::{FromSql, ToSql};
use tokio_postgres::{Client, Row};

/// A connection. Every wait has a time limit: a server that does not answer counts as down.
pub struct TeamServer {
    runtime: Runtime,
    client: Client,
    limit: Duration,
    /// Number of round trips, for measurements.
    pub round_trips: usize,
    /// True if the database also has the RAD tables.
    pub has_rad: bool,
}

/// Parameter values of a statement.
type SqlValues<'a> = &'a [&'a (dyn ToSql + Sync)];

impl TeamServer {
    /// Connects, and creates or migrates nmem's schema. `limit` is the time limit for each answer.
    ///
    /// # Errors
    ///
    /// An invalid URL, no encryption to another machine, or a server that refuses or does not answer in time.
    pub fn connect(url: &str, certificates: Option<&Path>, limit: Duration) -> Result<TeamServer> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let address = address::Address::parse(url, certificates)?;
        let host = address.host.clone();
        let connected = runtime.block_on(async { tokio::time::timeout(limit, address.connect()).await });
        let client = match connected {
            Ok(Ok(client)) => client,
            Ok(Err(error)) => {
                let hint = "check RAD_DATABASE_URL, and that the server accepts you: psql \"$RAD_DATABASE_URL\"";
                return Err(UserError::new(format!("cannot connect to PostgreSQL at {host}: {}", reason(&error)), hint).into());
            }
            Err(_) => return Err(no_answer(&host, limit)),
        };
        let mut server = TeamServer { runtime, client, limit, round_trips: 1, has_rad: false };
        server.migrate()?;
        Ok(server)
    }

    fn wait<T>(&mut self, work: impl AsyncFnOnce(&mut Client) -> Result<T, tokio_postgres::Error>) -> Result<T> {
        self.round_trips += 1;
        let (client, limit) = (&mut self.client, self.limit);
        match self.runtime.block_on(async { tokio::time::timeout(limit, work(client)).await }) {
            Ok(done) => done.map_err(|error| {
                let hint = "the next `nmem sync` goes on where this one stopped";
                UserError::new(format!("PostgreSQL: {}", reason(&error)), hint).into()
            }),
            Err(_) => Err(no_answer("the server", limit)),
        }
    }

    fn query(&mut self, sql: &str, values: SqlValues) -> Result<Vec<Row>> {
        self.wait(async |client| client.query(sql, values).await)
    }

    fn execute(&mut self, sql: &str, values: SqlValues) -> Result<u64> {
        self.wait(async |client| client.execute(sql, values).await)
    }

    fn batch(&mut self, sql: &str) -> Result<()> {
        self.wait(async |client| client.batch_execute(sql).await)
    }

    /// Runs `work` in a transaction. Without a commit the server rolls it back, even if this process is killed.
    fn transaction<T>(&mut self, work: impl FnOnce(&mut TeamServer) -> Result<T>) -> Result<T> {
        self.batch("BEGIN")?;
        match work(self) {
            Ok(done) => {
                self.batch("COMMIT")?;
                Ok(done)
            }
            Err(error) => {
                let _ = self.batch("ROLLBACK");
                Err(error)
            }
        }
    }
}

/// A column of a row.
///
/// # Errors
///
/// A type that differs from nmem's schema: somebody changed the table.
fn column<'r, T: FromSql<'r>>(row: &'r Row, name: &str) -> Result<T> {
    row.try_get(name)
        .map_err(|error| UserError::new(format!("PostgreSQL: {}", reason(&error)), "was the table changed by hand?").into())
}

fn no_answer(host: &str, limit: Duration) -> anyhow::Error {
    let what = format!("PostgreSQL at {host} did not answer within {} s", limit.as_secs_f64());
    UserError::new(what, "try again later; nothing is lost").into()
}

/// Returns the server's own message, or the cause of a failed connection. Neither contains the password.
fn reason(error: &tokio_postgres::Error) -> String {
    if let Some(said) = error.as_db_error() {
        return said.message().to_string();
    }
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    text
}
