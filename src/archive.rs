//! Use case: exports all stored data as JSON Lines, and restores it (ADR/0038).

use crate::error::UserError;
use crate::model::{ARCHIVE, Millis, ProjectRow, Row, Table};
use crate::redact::Redactor;
use crate::store::Store;
use crate::store::restore::{Restored, Restoring};
use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use std::io::{BufRead, Read, Write};

/// Maximum bytes of a line.
const LINE: u64 = 64 << 20;
/// Rows between progress reports.
const OFTEN: usize = 1000;

/// Writes all rows of one project or of all projects; returns the number of rows.
pub fn export(
    store: &Store,
    of: Option<&ProjectRow>,
    now: Millis,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(usize),
) -> Result<usize> {
    writeln!(out, "{}", json!({"nmem_export": ARCHIVE, "at": now, "project": of.map(|project| &project.name)}))?;
    let mut count = 0;
    store.each_row(of.map(|project| project.id), &mut |row| {
        let mut values = row.values;
        if row.table != Table::Memories {
            values.insert("table".into(), row.table.name().into());
        }
        serde_json::to_writer(&mut *out, &values)?;
        out.write_all(b"\n")?;
        count += 1;
        if count % OFTEN == 0 {
            progress(count);
        }
        Ok(())
    })?;
    writeln!(out, "{}", json!({"nmem_export_rows": count}))?;
    out.flush()?;
    Ok(count)
}

/// Carries the result of a dry run out of the transaction that it rolls back.
#[derive(Debug)]
struct OnlyTried(Restored);

impl std::fmt::Display for OnlyTried {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "only tried")
    }
}

impl std::error::Error for OnlyTried {}

/// Restores all rows or none. A dry run changes nothing.
///
/// # Errors
///
/// A [`UserError`] that names the invalid line.
pub fn restore(
    store: &mut Store,
    redactor: &Redactor,
    input: &mut dyn BufRead,
    dry_run: bool,
    progress: &mut dyn FnMut(usize),
) -> Result<Restored> {
    header(input)?;
    let done = store.write(|tx| {
        let mut restoring = Restoring::begin(tx)?;
        let mut at = 1;
        loop {
            let Some(values) = next(input, at + 1)? else {
                return Err(UserError::new(
                    "the file is truncated: its last line is missing",
                    "nothing was restored; export it again",
                )
                .into());
            };
            at += 1;
            if let Some(rows) = values.get("nmem_export_rows") {
                if rows.as_u64() != Some(at as u64 - 2) {
                    return Err(UserError::new(
                        format!("the file is truncated: it has {} rows instead of {rows}", at - 2),
                        "nothing was restored; export it again",
                    )
                    .into());
                }
                break;
            }
            let row = redactor.clean(row(values).map_err(|error| placed(error, at))?);
            restoring.take(&row).map_err(|error| placed(error, at))?;
            if at % OFTEN == 0 {
                progress(at);
            }
        }
        progress(at);
        let restored = restoring.finish()?;
        if dry_run { Err(OnlyTried(restored).into()) } else { Ok(restored) }
    });
    match done {
        Err(error) => error.downcast::<OnlyTried>().map(|tried| tried.0),
        done => done,
    }
}

fn header(input: &mut dyn BufRead) -> Result<()> {
    let hint = "give a file that `nmem export` wrote";
    let first = next(input, 1)?.unwrap_or_default();
    match first.get("nmem_export").and_then(Value::as_i64) {
        Some(1..=ARCHIVE) => Ok(()),
        Some(later) if later > ARCHIVE => {
            let what = format!("the file was written by a newer nmem (version {later} of its format; this one reads {ARCHIVE})");
            Err(UserError::new(what, "restore it with that nmem").into())
        }
        _ => Err(UserError::new("not a file that `nmem export` wrote", hint).into()),
    }
}

fn next(input: &mut dyn BufRead, at: usize) -> Result<Option<Map<String, Value>>> {
    let mut line = Vec::new();
    if input.take(LINE + 1).read_until(b'\n', &mut line).context("cannot read the file")? == 0 {
        return Ok(None);
    }
    match serde_json::from_slice(&line) {
        Ok(Value::Object(values)) if line.last() == Some(&b'\n') => Ok(Some(values)),
        _ => {
            let what = format!("line {at} is truncated or not a JSON object");
            Err(UserError::new(what, "nothing was restored; export it again").into())
        }
    }
}

/// Columns renamed since version 1 of the format.
const RENAMED: [(&str, &str); 3] = [("sketch", "features"), ("standing", "active"), ("moment", "point")];

fn row(mut values: Map<String, Value>) -> Result<Row> {
    let table = match values.remove("table") {
        Some(name) => name.as_str().and_then(Table::from_name).filter(|table| *table != Table::Memories),
        None => values.contains_key("entity_type").then_some(Table::Memories),
    };
    for (old, new) in RENAMED {
        if let Some(value) = values.remove(old) {
            values.insert(new.into(), value);
        }
    }
    let table = table.ok_or_else(|| UserError::new("not a row of an export", "nothing was restored"))?;
    Ok(Row { table, values })
}

fn placed(error: anyhow::Error, at: usize) -> anyhow::Error {
    match error.downcast::<UserError>() {
        Ok(failure) => UserError { what: format!("line {at}: {}", failure.what), ..failure }.into(),
        Err(error) => error.context(format!("line {at}")),
    }
}
