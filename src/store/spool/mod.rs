//! The spool: events that could not be stored wait here in order, one JSON line each (ADR/0010).
//!
//! They wait in the data folder, or in one of two fallback folders. If a fallback folder already has events, new ones
//! are added there too, and the folders are drained in order, so that the order is preserved. A line has a format
//! version, a unique id and the redacted event.
//!
//! The drainer takes the database's write lock and renames each file under the file's own lock. It stores the lines in
//! the same transaction as its own event, and deletes the files after the commit. If it dies in between, the ids in
//! `drained` make a second drain harmless. A line that the store rejects permanently is moved to the rejected file, so
//! that it does not block the rest.
//!
//! `drain` stores the lines.

mod drain;

use crate::files::{self, append_private, open_private};
use crate::model::{Event, Files, beside};
use crate::redact::Clean;
use anyhow::{Result, bail};
use serde::Serialize;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const FORMAT: u32 = 1;
/// The lock is held for one write or rename; a longer wait means that its holder is suspended.
const LOCK_WAIT: Duration = Duration::from_millis(200);

#[derive(Serialize)]
struct Written<'a> {
    v: u32,
    id: String,
    event: &'a Clean<Event>,
}

/// Whether events are waiting.
pub fn is_waiting(files: &Files) -> bool {
    files.spools.iter().any(|spool| holds(spool))
}

/// The spool files with waiting events.
pub fn waiting_places(files: &Files) -> Vec<&Path> {
    files.spools.iter().map(PathBuf::as_path).filter(|spool| holds(spool)).collect()
}

/// Number of waiting events.
pub fn waiting(files: &Files) -> usize {
    let all = files.spools.iter().filter(|spool| holds(spool)).flat_map(|spool| [spool.clone(), aside(spool)]);
    all.filter_map(|p| open_private(&p).ok()).map(|f| BufReader::new(f).lines().count()).sum()
}

/// Number of rejected lines.
pub fn rejected(files: &Files) -> usize {
    open_private(&files.rejected).map_or(0, |f| BufReader::new(f).lines().count())
}

/// Queues rejected lines again. A newer nmem may understand them.
pub fn retry_rejected(files: &Files) -> Result<()> {
    let mut text = Vec::new();
    open_private(&files.rejected)?.read_to_end(&mut text)?;
    let spool = &files.spools[0];
    folder(files, spool)?;
    append_line(spool, &text)?;
    Ok(fs::remove_file(&files.rejected)?)
}

/// Whether a spool file has lines and is ours. Links are not followed, because others may write to some of the folders.
fn holds(spool: &Path) -> bool {
    let lines = |path: &Path| fs::symlink_metadata(path).is_ok_and(|m| m.is_file() && m.len() > 0 && files::is_ours(&m));
    lines(spool) || lines(&aside(spool))
}

/// Prepares a spool file's folder: the data folder is created as for the database, other folders must be ours.
fn folder(files: &Files, spool: &Path) -> io::Result<()> {
    let folder = spool.parent().unwrap_or(Path::new("/"));
    match files.spools.first().is_some_and(|first| first == spool) {
        true if folder.is_dir() => Ok(()),
        true => files::make_folder(folder),
        false => files::own_folder(folder),
    }
}

/// Appends an event to the first writable spool file, starting at the last one that has lines; earlier ones are tried
/// only if those fail. If no spool file is writable, the loss is counted.
pub fn append(files: &Files, event: &Clean<Event>) -> Result<()> {
    let mut line = serde_json::to_vec(&Written { v: FORMAT, id: files::unique(), event })?;
    line.push(b'\n');
    let last = files.spools.iter().rposition(|spool| holds(spool)).unwrap_or(0);
    let (before, from) = files.spools.split_at(last);
    let mut errors = Vec::new();
    // Out of order is better than lost.
    for spool in from.iter().chain(before) {
        match folder(files, spool).and_then(|()| append_line(spool, &line)) {
            Ok(()) => return Ok(()),
            Err(error) => errors.push(format!("{}: {error}", spool.display())),
        }
    }
    count_loss(files);
    bail!("an event is lost: {}", errors.join("; "))
}

fn append_line(spool: &Path, line: &[u8]) -> io::Result<()> {
    let mut file = locked(spool)?;
    let length = file.seek(SeekFrom::End(0))?;
    let mut text = Vec::new();
    // A line cut off by a crash must not swallow this one.
    if length > 0 {
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            text.push(b'\n');
        }
    }
    text.extend_from_slice(line);
    file.write_all(&text).inspect_err(|_| {
        let _ = file.set_len(length);
        if length == 0 {
            let _ = fs::remove_file(spool);
        }
    })
}

/// Counts a lost event as one more byte of a file's length, without data, which works even on a full disk.
fn count_loss(files: &Files) {
    let count = |spool: &PathBuf| {
        folder(files, spool)?;
        let file = append_private(&losses(spool))?;
        let _ = file.lock();
        file.set_len(file.metadata()?.len() + 1)
    };
    let _ = files.spools.iter().any(|spool| count(spool).is_ok());
}

/// Number of events lost because nothing was writable.
pub fn lost(files: &Files) -> u64 {
    let length =
        |spool: &PathBuf| fs::symlink_metadata(losses(spool)).ok().filter(|m| m.is_file() && files::is_ours(m)).map(|m| m.len());
    files.spools.iter().filter_map(length).sum()
}

/// Resets the count after the losses were reported.
pub fn losses_were_reported(files: &Files) {
    for spool in &files.spools {
        let _ = fs::remove_file(losses(spool));
    }
}

fn aside(spool: &Path) -> PathBuf {
    beside(spool, "-draining")
}

fn losses(spool: &Path) -> PathBuf {
    beside(spool, "-lost")
}

/// Opens and locks the spool; retries if it was moved aside in between.
fn locked(spool: &Path) -> io::Result<File> {
    let begun = Instant::now();
    loop {
        let file = append_private(spool)?;
        match file.try_lock() {
            Ok(()) if is_at(&file, spool) => return Ok(file),
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) if begun.elapsed() < LOCK_WAIT => std::thread::sleep(Duration::from_millis(1)),
            // No locks on this file system: renames are atomic, and one write appends a whole line.
            Err(_) => return Ok(file),
        }
    }
}

fn is_at(file: &File, spool: &Path) -> bool {
    let existing = fs::symlink_metadata(spool);
    matches!((file.metadata(), existing), (Ok(a), Ok(b)) if files::identity(&a) == files::identity(&b))
}
