//! The spool: events that could not be stored, and draining it.

use super::{Store, Tx};
use crate::files::{self, append_private, open_private};
use crate::model::{Event, Files, beside};
use crate::redact::{Clean, Redactor};
use anyhow::{Context, Result, bail};
use rusqlite::ErrorCode;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read as _, Seek, SeekFrom, Write};
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
        add(&losses(spool))
    };
    let _ = files.spools.iter().any(|spool| count(spool).is_ok()) || outside(files).iter().any(|path| add(path).is_ok());
}

/// Files for the count beside the spools' folders, for folders that are refused because somebody else made them.
fn outside(files: &Files) -> Vec<PathBuf> {
    files.spools.iter().skip(1).filter_map(|spool| Some(beside(spool.parent()?, "-lost"))).collect()
}

fn add(losses: &Path) -> io::Result<()> {
    let file = append_private(losses)?;
    let _ = file.lock();
    let meta = file.metadata()?;
    if files::is_ours(&meta) { file.set_len(meta.len() + 1) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

/// Number of events lost because nothing was writable.
pub fn lost(files: &Files) -> u64 {
    let length = |path: PathBuf| fs::symlink_metadata(path).ok().filter(|m| m.is_file() && files::is_ours(m)).map(|m| m.len());
    files.spools.iter().map(|spool| losses(spool)).chain(outside(files)).filter_map(length).sum()
}

/// Resets the count after the losses were reported.
pub fn losses_were_reported(files: &Files) {
    for path in files.spools.iter().map(|spool| losses(spool)).chain(outside(files)) {
        let _ = fs::remove_file(path);
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

#[derive(Deserialize)]
struct SpoolRead {
    v: u32,
    id: String,
    event: Event,
}

/// Lines that were moved aside for draining.
#[derive(Debug)]
pub struct Taken {
    spool: PathBuf,
    path: PathBuf,
    /// First bytes of the file. Every line has its own id, whereas inodes are reused.
    head: Vec<u8>,
    /// True if a process that died left them, so that more lines may wait in the spool itself.
    leftover: bool,
}

/// Moves the waiting lines aside, in order of their spool files. Call it inside a write transaction, so that only one
/// process drains.
pub fn take(files: &Files) -> Result<Vec<Taken>> {
    let taken = files.spools.iter().filter(|spool| holds(spool) && folder(files, spool).is_ok()).map(|spool| take_from(spool));
    taken.filter_map(Result::transpose).collect()
}

fn take_from(spool: &Path) -> Result<Option<Taken>> {
    let path = aside(spool);
    // Anything that is not a regular file is moved out of the way.
    if fs::symlink_metadata(&path).is_ok_and(|meta| !meta.is_file()) {
        fs::rename(&path, beside(&path, &format!("-odd-{}", &files::unique()[..8])))?;
    }
    if fs::symlink_metadata(&path).is_ok() {
        return Ok(Some(Taken { head: head(&path)?, path, spool: spool.into(), leftover: true }));
    }
    let _held = locked(spool)?;
    let head = head(spool)?;
    fs::rename(spool, &path).with_context(|| format!("cannot move {} aside", spool.display()))?;
    Ok(Some(Taken { path, spool: spool.into(), head, leftover: false }))
}

fn head(path: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    open_private(path)?.take(64).read_to_end(&mut head)?;
    Ok(head)
}

impl Taken {
    /// Removes the lines after the commit. If another process has drained and removed them meanwhile, and moved new
    /// lines to the same name, those are kept. New lines are moved only under the spool's lock.
    fn remove(self) {
        let Ok(_held) = locked(&self.spool) else { return };
        if head(&self.path).is_ok_and(|head| head == self.head) {
            let _ = fs::remove_file(&self.path);
        }
        // Taking the lock may have created an empty spool.
        if fs::metadata(&self.spool).is_ok_and(|m| m.len() == 0) {
            let _ = fs::remove_file(&self.spool);
        }
    }
}

impl Tx<'_> {
    /// Stores the lines in order; returns how many were rejected.
    fn drain(
        &self,
        taken: &Taken,
        files: &Files,
        redactor: &Redactor,
        store: &dyn Fn(&Tx, &Clean<Event>) -> Result<()>,
    ) -> Result<usize> {
        let file = open_private(&taken.path).with_context(|| format!("cannot read {}", taken.path.display()))?;
        let mut rejected = Vec::new();
        for line in BufReader::new(file).split(b'\n') {
            let line = line?;
            if line.is_empty() {
                continue;
            }
            // Lines are redacted again: the file may be older than a secret family, or written by somebody else.
            let parsed = serde_json::from_slice::<SpoolRead>(&line).ok().filter(|r| r.v <= FORMAT);
            let stored = match parsed {
                Some(read) => self.drain_one(&read.id, &redactor.clean(read.event), store)?,
                None => false,
            };
            if !stored {
                rejected.push(line);
            }
        }
        if !rejected.is_empty() {
            let mut file = append_private(&files.rejected)?;
            rejected.iter().try_for_each(|line| file.write_all(line).and_then(|()| file.write_all(b"\n")))?;
        }
        Ok(rejected.len())
    }

    fn drain_one(&self, id: &str, event: &Clean<Event>, store: &dyn Fn(&Tx, &Clean<Event>) -> Result<()>) -> Result<bool> {
        if self
            .tx
            .prepare_cached("INSERT INTO meta(key, value) VALUES ('drained:' || ?1, 1) ON CONFLICT DO NOTHING")?
            .execute([id])?
            == 0
        {
            return Ok(true);
        }
        self.tx.execute_batch("SAVEPOINT line")?;
        match store(self, event) {
            Ok(()) => self.tx.execute_batch("RELEASE line")?,
            Err(e) if is_outage(&e) => return Err(e),
            Err(_) => {
                self.tx.execute_batch("ROLLBACK TO line; RELEASE line")?;
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Store {
    /// Drains the spool and then runs `work`, in one transaction, so that events keep their order.
    pub fn write_after_spool<T>(
        &mut self,
        redactor: &Redactor,
        store: &dyn Fn(&Tx, &Clean<Event>) -> Result<()>,
        mut work: impl FnMut(&Tx) -> Result<T>,
    ) -> Result<T> {
        let files = self.files.clone();
        // The commit must be on disk before the lines are removed.
        self.conn.pragma_update(None, "synchronous", "FULL")?;
        loop {
            let (taken, done) = self.write(|tx| {
                let taken = take(&files)?;
                let leftover = taken.iter().any(|lines| lines.leftover);
                if !leftover {
                    tx.tx.execute("DELETE FROM meta WHERE key >= 'drained:' AND key < 'drained;'", [])?;
                }
                for lines in &taken {
                    tx.drain(lines, &files, redactor, store)?;
                }
                let done = if leftover { None } else { Some(work(tx)?) };
                Ok((taken, done))
            })?;
            taken.into_iter().for_each(Taken::remove);
            if let Some(done) = done {
                return Ok(done);
            }
        }
    }
}

/// Whether an error is temporary, in contrast to an event that the schema rejects.
fn is_outage(error: &anyhow::Error) -> bool {
    !matches!(
        crate::store::code(error),
        None | Some(ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch | ErrorCode::TooBig)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::HOOK_WAIT;
    use crate::store::testing::Scratch;

    fn prompt(n: i64) -> Clean<Event> {
        crate::store::testing::prompt("s", n, &format!("prompt {n}"))
    }

    fn store_event(tx: &Tx, event: &Clean<Event>) -> Result<()> {
        crate::store::testing::store_event(tx, event)
    }

    fn texts(store: &Store) -> Vec<String> {
        let mut statement = store.conn.prepare("SELECT text FROM prompts ORDER BY number").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(|t| t.unwrap()).collect()
    }

    #[test]
    fn what_waits_is_stored_before_what_comes_now() {
        let scratch = Scratch::new("order");
        let mut store = scratch.open();
        append(&scratch.files(), &prompt(1)).unwrap();
        append(&scratch.files(), &prompt(2)).unwrap();
        assert_eq!(waiting(&scratch.files()), 2);
        store.write_after_spool(&Redactor::default(), &store_event, |tx| store_event(tx, &prompt(3))).unwrap();
        assert_eq!(texts(&store), ["prompt 1", "prompt 2", "prompt 3"]);
        assert!(!is_waiting(&scratch.files()));
    }

    #[cfg(unix)]
    #[test]
    fn an_event_that_nothing_takes_is_counted_even_if_the_folder_is_not_ours() {
        let scratch = Scratch::new("spool-refused");
        let (data, temporary) = (scratch.0.join("data"), scratch.0.join("tmp"));
        std::fs::create_dir_all(&temporary).unwrap();
        std::fs::write(&data, "no folder").unwrap();
        std::os::unix::fs::symlink("/", temporary.join("nmem-1")).unwrap();
        let files = Files { spools: vec![data.join("spool"), temporary.join("nmem-1/spool")], ..scratch.files() };
        assert!(append(&files, &prompt(1)).is_err() && append(&files, &prompt(2)).is_err());
        assert_eq!(lost(&files), 2);
        losses_were_reported(&files);
        assert_eq!(lost(&files), 0);
    }

    #[test]
    fn a_crash_between_commit_and_removal_stores_nothing_twice() {
        let scratch = Scratch::new("crash");
        let mut store = scratch.open();
        let mut nameless = prompt(1);
        for _ in 0..2 {
            append(&scratch.files(), &nameless).unwrap();
            nameless = prompt(2);
        }
        let files = scratch.files();
        store
            .write(|tx| {
                let taken = take(&files)?;
                tx.drain(&taken[0], &files, &Redactor::default(), &store_event)
            })
            .unwrap(); // and the process dies here
        append(&files, &prompt(3)).unwrap();
        store.write_after_spool(&Redactor::default(), &store_event, |_| Ok(())).unwrap();
        assert_eq!(texts(&store), ["prompt 1", "prompt 2", "prompt 3"]);
        assert!(!is_waiting(&files));
    }

    #[test]
    fn a_line_that_can_never_be_stored_is_set_aside_and_the_rest_drains() {
        let scratch = Scratch::new("reject");
        let mut store = scratch.open();
        append(&scratch.files(), &prompt(1)).unwrap();
        append_private(&scratch.files().spools[0]).unwrap().write_all(b"{\"v\":1,\"id\":\"x\",\"ev\n{\"v\":9}\n").unwrap();
        append(&scratch.files(), &prompt(2)).unwrap();
        store.write_after_spool(&Redactor::default(), &store_event, |_| Ok(())).unwrap();
        assert_eq!(texts(&store), ["prompt 1", "prompt 2"]);
        assert_eq!(rejected(&scratch.files()), 2);
    }

    #[test]
    fn a_line_that_a_crash_has_cut_does_not_swallow_the_next() {
        let scratch = Scratch::new("cut");
        let mut store = scratch.open();
        append(&scratch.files(), &prompt(1)).unwrap();
        append_private(&scratch.files().spools[0]).unwrap().write_all(b"{\"v\":1,\"id\":\"hal").unwrap();
        append(&scratch.files(), &prompt(2)).unwrap();
        store.write_after_spool(&Redactor::default(), &store_event, |_| Ok(())).unwrap();
        assert_eq!(texts(&store), ["prompt 1", "prompt 2"]);
        assert_eq!(rejected(&scratch.files()), 1);
    }

    #[test]
    fn a_late_removal_does_not_take_lines_that_came_to_the_same_name() {
        let scratch = Scratch::new("late");
        let files = scratch.files();
        drop(scratch.open());
        append(&files, &prompt(1)).unwrap();
        let take = || take(&files).unwrap().remove(0);
        let first = take();
        // Another process drains the leftover, removes it, and moves new lines aside.
        take().remove();
        append(&files, &prompt(2)).unwrap();
        take();
        first.remove();
        assert_eq!(waiting(&files), 1);
    }

    #[test]
    fn an_outage_leaves_every_line_in_its_place() {
        let scratch = Scratch::new("outage");
        let mut store = scratch.open();
        append(&scratch.files(), &prompt(1)).unwrap();
        let mut other = Store::open(&scratch.files(), HOOK_WAIT).unwrap();
        other
            .write(|_| {
                store.conn.busy_timeout(std::time::Duration::ZERO)?;
                assert!(store.write_after_spool(&Redactor::default(), &store_event, |_| Ok(())).is_err());
                Ok(())
            })
            .unwrap();
        assert_eq!(waiting(&scratch.files()), 1);
    }
}
