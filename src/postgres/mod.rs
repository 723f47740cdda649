//! A team's PostgreSQL. Files: `address` (the URL), `rad_tables` (tables for other programs;
//! `rad.sql`); here: the connection, and the series of signed changes (`series.sql`).

mod address;
mod rad_tables;

pub use rad_tables::{ForeignRow, ForeignRows, RadRow};

use crate::error::UserError;
use crate::model::{SeriesContents, SharedChange};
use anyhow::Result;
use std::collections::HashSet;
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

/// Separates the keys of a project in one text.
const BETWEEN: &str = "\u{1f}";
/// Changes per answer, and per transaction.
pub const BATCH: i64 = 1000;

/// Maximum machines that are not known yet.
const HEADS: i64 = 1000;
/// Maximum bytes of an answer with changes.
pub const ANSWER: usize = 8 << 20;

/// Maximum bytes of the contents of a series, and of those in one answer.
const CONTENTS: i32 = 4 << 20;
const ALL_CONTENTS: i64 = 16 << 20;

/// The last number of a machine's series on the server, and how many of its changes have a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesHead {
    pub machine: String,
    pub seq: i64,
    /// Changes with a text.
    pub texts: i64,
    /// As the server says; `None` if they are missing, or unreadable.
    pub contents: Option<SeriesContents>,
}

fn head(row: &Row) -> Result<SeriesHead> {
    let contents: Option<String> = column(row, "contents")?;
    let contents = contents.and_then(|json| serde_json::from_str(&json).ok());
    Ok(SeriesHead { machine: column(row, "machine")?, seq: column(row, "seq")?, texts: column(row, "texts")?, contents })
}

fn change(row: &Row) -> Result<SharedChange> {
    Ok(SharedChange {
        machine: column(row, "machine")?,
        seq: column(row, "seq")?,
        uuid: column(row, "uuid")?,
        counter: column(row, "counter")?,
        gone: column(row, "gone")?,
        withdrawn: column(row, "withdrawn")?,
        projects: column(row, "projects")?,
        name: column(row, "name")?,
        digest: column(row, "digest")?,
        signature: column(row, "signature")?,
        body: column(row, "body")?,
    })
}

impl TeamServer {
    /// Returns the heads of the known machines' series in this order, and of a bounded number of others: anybody can add rows.
    /// `known` gives the last number that was read of each; a head has contents only if there is more.
    pub fn heads(&mut self, known: &[(&str, i64)]) -> Result<Vec<SeriesHead>> {
        let (machines, read): (Vec<&str>, Vec<i64>) = known.iter().copied().unzip();
        let sql = "SELECT machine, seq, texts, CASE WHEN bytes <= $4 THEN contents END AS contents FROM (
                     SELECT h.*, sum(octet_length(contents)) OVER (ORDER BY place, machine) AS bytes FROM (
                       SELECT h.machine, h.seq, h.texts, k.place,
                         CASE WHEN octet_length(h.contents) <= $3 AND h.seq > coalesce(k.read, 0) THEN h.contents END AS contents
                       FROM nmem.heads h LEFT JOIN unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS k(machine, read, place)
                         ON k.machine = h.machine COLLATE \"C\"
                       WHERE octet_length(h.machine) = 64 ORDER BY k.place, h.machine LIMIT $5
                     ) h
                   ) h ORDER BY place, machine";
        let rows = self.query(sql, &[&machines, &read, &CONTENTS, &ALL_CONTENTS, &(known.len() as i64 + HEADS)])?;
        rows.iter().map(head).collect()
    }

    /// Returns the numbers of a machine's changes, up to its last one, that the server has whole.
    pub fn numbers(&mut self, machine: &str, last: i64) -> Result<HashSet<i64>> {
        let sql = "SELECT seq FROM nmem.changes WHERE machine = $1 AND seq BETWEEN 1 AND $2 AND (gone OR body IS NOT NULL)";
        self.query(sql, &[&machine, &last])?.iter().map(|row| column(row, "seq")).collect()
    }

    /// Returns the next changes of other machines after the last applied one of each, by machine and number: those of
    /// the given projects, and all tombstones. Texts above `most` bytes are omitted.
    pub fn changes(&mut self, applied: &[(&str, i64)], projects: &[String], most: usize) -> Result<Vec<SharedChange>> {
        let machines: Vec<&str> = applied.iter().map(|(machine, _)| *machine).collect();
        let numbers: Vec<i64> = applied.iter().map(|(_, seq)| *seq).collect();
        // The bytes are summed over one answer's rows only, and a text that is left out counts nothing.
        let sql = "SELECT machine, seq, left(uuid, 100) AS uuid, counter, gone, withdrawn,
                     CASE WHEN pg_column_size(projects) <= 20000 AND cardinality(projects) <= 50 THEN projects ELSE '{}' END AS projects,
                     left(name, 500) AS name, left(digest, 100) AS digest, left(signature, 200) AS signature,
                     CASE WHEN octet_length(body) <= $5 THEN body END AS body
                   FROM (
                     SELECT c.*, sum(CASE WHEN octet_length(body) <= $5 THEN octet_length(body) ELSE 0 END) OVER (ORDER BY machine, seq) AS bytes
                     FROM (
                       SELECT c.* FROM unnest($1::text[], $2::bigint[]) AS a(machine, seq)
                       JOIN nmem.changes c ON c.machine = a.machine COLLATE \"C\" AND c.seq > a.seq
                       WHERE c.gone OR c.projects && $3 ORDER BY c.machine, c.seq LIMIT $4
                     ) c
                   ) c WHERE bytes <= $6 ORDER BY machine, seq";
        let bytes = ANSWER as i64 + most as i64;
        let rows = self.query(sql, &[&machines, &numbers, &projects, &BATCH, &(most as i32), &bytes])?;
        rows.iter().map(change).collect()
    }

    /// The last changes of a machine's series that the server has, without their texts, newest first.
    pub fn last_changes(&mut self, machine: &str, limit: i64) -> Result<Vec<SharedChange>> {
        let sql = "SELECT machine, seq, left(uuid, 100) AS uuid, counter, gone, withdrawn,
                     CASE WHEN pg_column_size(projects) <= 20000 AND cardinality(projects) <= 50 THEN projects ELSE '{}' END AS projects,
                     left(name, 500) AS name, left(digest, 100) AS digest, left(signature, 200) AS signature, NULL::text AS body
                   FROM nmem.changes WHERE machine = $1 ORDER BY seq DESC LIMIT $2";
        self.query(sql, &[&machine, &limit])?.iter().map(change).collect()
    }

    /// Removes the changes in a machine's name from a number on: it did not make them.
    pub fn remove_forged(&mut self, machine: &str, from: i64) -> Result<()> {
        self.execute("DELETE FROM nmem.changes WHERE machine = $1 AND seq >= $2", &[&machine, &from]).map(drop)
    }

    /// Adds changes of one machine, at most [`BATCH`], in one transaction; what is there under their numbers is replaced. `rows` are
    /// written to the RAD tables along with them.
    pub fn add(&mut self, changes: &[SharedChange], rows: &[RadRow]) -> Result<()> {
        let Some(SharedChange { machine, .. }) = changes.first() else { return Ok(()) };
        let texts = |field: fn(&SharedChange) -> &str| changes.iter().map(field).collect::<Vec<&str>>();
        let (uuids, names) = (texts(|change| &change.uuid), texts(|change| &change.name));
        let (digests, signatures) = (texts(|change| &change.digest), texts(|change| &change.signature));
        let numbers: Vec<i64> = changes.iter().map(|change| change.seq).collect();
        let counters: Vec<i64> = changes.iter().map(|change| change.counter).collect();
        let gone: Vec<bool> = changes.iter().map(|change| change.gone).collect();
        let withdrawn: Vec<bool> = changes.iter().map(|change| change.withdrawn).collect();
        let projects: Vec<String> = changes.iter().map(|change| change.projects.join(BETWEEN)).collect();
        let bodies: Vec<Option<&str>> = changes.iter().map(|change| change.body.as_deref()).collect();
        self.transaction(|server| {
            let sql = "INSERT INTO nmem.changes(machine, seq, uuid, counter, gone, withdrawn, projects, name, digest, signature, body)
                       SELECT $1, seq, uuid, counter, gone, withdrawn, string_to_array(projects, $12), name, digest, signature, body
                       FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::boolean[], $6::boolean[], $7::text[], $8::text[], $9::text[],
                         $10::text[], $11::text[]) AS n(seq, uuid, counter, gone, withdrawn, projects, name, digest, signature, body)
                       ON CONFLICT (machine, seq) DO UPDATE SET uuid = excluded.uuid, counter = excluded.counter, gone = excluded.gone,
                         withdrawn = excluded.withdrawn, projects = excluded.projects, name = excluded.name, digest = excluded.digest,
                         signature = excluded.signature, body = excluded.body";
            server.execute(
                sql,
                &[
                    &machine, &numbers, &uuids, &counters, &gone, &withdrawn, &projects, &names, &digests, &signatures, &bodies, &BETWEEN,
                ],
            )?;
            // Texts that these changes supersede are removed, whoever wrote them.
            let sql = "UPDATE nmem.changes c SET body = NULL FROM unnest($2::text[], $3::bigint[]) AS n(uuid, counter)
                       WHERE c.uuid = n.uuid COLLATE \"C\" AND c.body IS NOT NULL AND (c.counter, c.machine) < (n.counter, $1 COLLATE \"C\")";
            server.execute(sql, &[&machine, &uuids, &counters])?;
            if server.has_rad {
                let gone: Vec<&str> = changes.iter().filter(|change| change.gone).map(|change| change.uuid.as_str()).collect();
                server.remove_rad(&gone)?;
                server.write_rad(rows)?;
            }
            let last = numbers.iter().max().copied().unwrap_or_default();
            let sql = "INSERT INTO nmem.heads(machine, seq, texts) VALUES ($1, $2, -1)
                       ON CONFLICT (machine) DO UPDATE SET seq = greatest(heads.seq, excluded.seq), texts = -1";
            server.execute(sql, &[&machine, &last]).map(drop)
        })
    }

    /// Removes all texts of a machine's series but those of the given changes, and records the number of remaining
    /// texts and what the series contains.
    pub fn keep_texts(&mut self, machine: &str, contents: &SeriesContents, kept: &[i64]) -> Result<()> {
        // Too long for a reader: they read such a series again each time.
        let json = serde_json::to_string(contents).ok().filter(|json| json.len() <= CONTENTS as usize);
        self.transaction(|server| {
            let sql = "SELECT count(*) AS texts FROM nmem.changes WHERE machine = $1 AND body IS NOT NULL";
            let held: i64 = column(&server.query(sql, &[&machine])?[0], "texts")?;
            if held != kept.len() as i64 {
                let sql = "UPDATE nmem.changes c SET body = NULL WHERE machine = $1 AND body IS NOT NULL
                           AND NOT EXISTS (SELECT 1 FROM unnest($2::bigint[]) AS k(seq) WHERE k.seq = c.seq)";
                server.execute(sql, &[&machine, &kept])?;
            }
            let sql = "UPDATE nmem.heads SET texts = $2, seq = $3, contents = $4 WHERE machine = $1";
            server.execute(sql, &[&machine, &(kept.len() as i64), &contents.last, &json]).map(drop)
        })
    }
}
