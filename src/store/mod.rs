//! The one file of data: all SQL and all of rusqlite are in this folder (ADR/0002).
//!
//! A lone process that opens a WAL database first rebuilds the log's index, 1.4 µs a frame, so the log is kept under
//! 1 MiB by checkpoints of our own: SQLite's automatic ones are forgotten by a process that exits. `synchronous` is
//! NORMAL: `kill -9` loses nothing, a power cut may lose the last commits but never the file.
//!
//! Read in this order: here opening and transactions; `make` and `migrate`; `failure`; `words`; `identity` (what makes two events
//! one), `sessions`, `prompts`, `tool_uses`, `units` (rows as events come in); `index` and `unit_index` (text);
//! `memories`, `domains`, `spend`, `vectors`; `spool`; and what is read: `projects`, `history`, `search`, `recall`,
//! `told`, `patterns`; `forget`; `archive`.

pub mod archive;
mod domains;
mod failure;
pub mod forget;
pub mod history;
mod identity;
mod index;
mod make;
pub mod memories;
mod migrate;
pub mod patterns;
pub mod projects;
mod prompts;
pub mod recall;
pub mod search;
pub mod sessions;
mod spend;
pub mod spool;
mod told;
mod tool_uses;
mod unit_index;
pub mod units;
pub mod vectors;
mod words;

pub use failure::{is_full, reason};
pub use units::LeftOpen;

use crate::files::{self, Identity};
use crate::model::Files;
use anyhow::{Context, Result, anyhow, bail};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a hook waits for the database before its event goes to the spool.
pub const HOOK_WAIT: Duration = Duration::from_millis(250);
/// How long a person's command waits.
pub const PERSON_WAIT: Duration = Duration::from_secs(5);
/// Size of the log above which it is written back, in bytes: 20 events or so.
const WAL_LIMIT: u64 = 1 << 20;

/// Statements that stay compiled: more than any command has, since to compile one costs as much as to run it.
const STATEMENTS: usize = 128;

/// An open database.
#[derive(Debug)]
pub struct Store {
    conn: Connection,
    files: Files,
    /// The file that was opened for writing.
    found: Option<Identity>,
}

/// A write transaction. Dropped without [`Store::write`] finishing, it leaves no trace.
#[derive(Debug)]
pub struct Tx<'a> {
    tx: Transaction<'a>,
}

impl Store {
    /// Opens the database for writing, making it where there is none.
    ///
    /// A broken database is set aside and a new one made.
    ///
    /// # Errors
    /// A database of a newer nmem or of another program, one that stays locked for `wait`, one that can't be read or written.
    pub fn open(files: &Files, wait: Duration) -> Result<Store> {
        let mut broken = None;
        // Once more for a broken file; a disk that breaks the new one too is not filled with copies.
        for _ in 0..2 {
            let found = match guard(files)? {
                Some(found) => found,
                None => {
                    make::create(files)?;
                    guard(files)?.context("the database is gone again")?
                }
            };
            match Store::open_as_it_is(files, wait, found) {
                Err(error) if failure::is_broken(&error) => {
                    make::set_aside(files, found).with_context(|| format!("{error:#}"))?;
                    broken = Some(error);
                }
                opened => return opened,
            }
        }
        Err(broken.unwrap_or_else(|| anyhow!("cannot open {}", files.db.display())))
    }

    fn open_as_it_is(files: &Files, wait: Duration, found: Identity) -> Result<Store> {
        // Not SQLITE_OPEN_NOFOLLOW: it refuses a link anywhere in the path, and on some systems /home is one.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut store = Store::connect(files, flags, wait)?;
        store.found = Some(found);
        migrate::bring_up(&mut store.conn, &files.db, wait > HOOK_WAIT)?;
        Ok(store)
    }

    /// Sets the database aside if `error`, which came from it, says that it is broken; tells whether it did. What is
    /// opened next is a new one.
    pub fn set_aside_if_broken(self, error: &anyhow::Error) -> Result<bool> {
        let Some(found) = self.found.filter(|_| failure::is_broken(error)) else { return Ok(false) };
        let files = self.files.clone();
        drop(self);
        make::set_aside(&files, found)?;
        Ok(true)
    }

    /// Sets the database aside, since a person knows it to be broken. What is opened next is a new one.
    pub fn set_aside(self) -> Result<()> {
        let (found, files) = (self.found.context("the database was opened for reading")?, self.files.clone());
        drop(self);
        make::set_aside(&files, found)
    }

    /// Databases that were found broken and set aside.
    pub fn broken_ones(files: &Files) -> Vec<PathBuf> {
        make::set_aside_before(files)
    }

    /// Opens the database for reading; `None` where there is none yet.
    pub fn open_to_read(files: &Files, wait: Duration) -> Result<Option<Store>> {
        if !files.db.exists() {
            return Ok(None);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let store = Store::connect(files, flags, wait)?;
        migrate::refuse_other_versions(&store.conn, &files.db)?;
        Ok(Some(store))
    }

    fn connect(files: &Files, flags: OpenFlags, wait: Duration) -> Result<Store> {
        count_no_memory();
        let path = &files.db;
        #[expect(clippy::disallowed_methods, reason = "the one place where databases are opened")]
        let conn = Connection::open_with_flags(path, flags).with_context(|| format!("cannot open {}", path.display()))?;
        conn.busy_timeout(wait)?;
        conn.set_prepared_statement_cache_capacity(STATEMENTS);
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        // Else a statement is compiled a second time once its values are known; plans here don't hang on them.
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        conn.execute_batch("PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0;")?;
        // A database without a log may be one that has none, on a network file system.
        let writes = flags.contains(OpenFlags::SQLITE_OPEN_READ_WRITE);
        if writes && !files.wal().exists() && journal_mode(&conn)? != "wal" {
            conn.query_row("PRAGMA journal_mode = TRUNCATE", [], |_| Ok(()))?;
        }
        Ok(Store { conn, files: files.clone(), found: None })
    }

    /// Runs `work` in one write transaction and commits it; then writes the log back if it has grown.
    pub fn write<T>(&mut self, work: impl FnOnce(&Tx) -> Result<T>) -> Result<T> {
        let done = {
            let tx = Tx { tx: self.conn.transaction_with_behavior(TransactionBehavior::Immediate)? };
            let done = work(&tx)?;
            tx.tx.commit()?;
            done
        };
        self.checkpoint_over(WAL_LIMIT);
        Ok(done)
    }

    /// Runs `work` on one snapshot: its statements take and give back no locks of their own.
    pub fn read<T>(&self, work: impl FnOnce(&Store) -> Result<T>) -> Result<T> {
        let snapshot = self.conn.unchecked_transaction()?;
        let done = work(self);
        drop(snapshot);
        done
    }

    /// Writes the log back whatever its size: where a person's command, or a full disk, needs it.
    pub fn checkpoint(&self) {
        self.checkpoint_over(0);
    }

    /// Leaves the database to the end of the process, which takes back memory, locks and files all at once: closing costs a
    /// hook 70 µs and changes nothing in the files.
    pub fn exit_without_close(self) {
        std::mem::forget(self);
    }

    /// A checkpoint that fails because others read or write is tried again by the next process.
    fn checkpoint_over(&self, limit: u64) {
        if fs::metadata(self.files.wal()).is_ok_and(|m| m.len() > limit) {
            let _ = self.conn.busy_timeout(Duration::ZERO);
            let _ = self.conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        }
    }

    /// How changes are made safe: `wal`, or `truncate` on a network file system.
    pub fn journal_mode(&self) -> Result<String> {
        journal_mode(&self.conn)
    }

    /// Changes how changes are made safe, for good.
    pub fn set_journal_mode(&self, mode: &str) -> Result<()> {
        let now: String = self.conn.query_row(&format!("PRAGMA journal_mode = {mode}"), [], |row| row.get(0))?;
        if now != mode {
            bail!("the journal stays `{now}`: another program has the database open");
        }
        Ok(())
    }

    /// Asks SQLite whether the file is sound; the first findings where it isn't.
    pub fn integrity(&self) -> Result<Vec<String>> {
        let mut check = self.conn.prepare("PRAGMA integrity_check(5)")?;
        let lines: Vec<String> = check.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        Ok(lines.into_iter().filter(|line| line != "ok").collect())
    }

    /// The files of this database.
    pub fn files(&self) -> &Files {
        &self.files
    }
}

/// SQLite counts each allocation under a lock, for statistics that nobody asks for: of a hook that costs a few hundredths.
fn count_no_memory() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        // SAFETY: before the first connection of this process, as sqlite3_config asks; MEMSTATUS takes one int.
        #[expect(unsafe_code, reason = "rusqlite has no way to say it")]
        unsafe {
            rusqlite::ffi::sqlite3_config(rusqlite::ffi::SQLITE_CONFIG_MEMSTATUS, 0 as std::ffi::c_int);
        }
    });
}

fn journal_mode(conn: &Connection) -> Result<String> {
    Ok(conn.query_row("PRAGMA journal_mode", [], |row| row.get(0))?)
}

/// Puts folder and file into their modes, also where looser ones stand already; tells which file stands there.
fn guard(files: &Files) -> Result<Option<Identity>> {
    let folder = files.db.parent().unwrap_or(Path::new("/"));
    match fs::metadata(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => files::make_folder(folder).inspect(|()| {
            // A database that the user puts into a worktree is not to be committed with it.
            if !files.own_folder {
                let _ = files::replace_private(&folder.join(".gitignore"), "*\n");
            }
        }),
        Ok(meta) if files.own_folder => files::tighten(folder, &meta, 0o700),
        other => other.map(|_| ()),
    }
    .with_context(|| format!("cannot use the folder {}", folder.display()))?;
    match fs::symlink_metadata(&files.db) {
        Ok(meta) if !meta.is_file() => bail!("{} is not a regular file", files.db.display()),
        Ok(meta) => {
            files::tighten(&files.db, &meta, 0o600).with_context(|| format!("cannot make {} private", files.db.display()))?;
            Ok(Some(files::identity(&meta)))
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e).with_context(|| format!("cannot look at {}", files.db.display())),
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::model::{Event, Happening, Platform};
    use crate::redact::{Clean, Redactor};
    use std::path::PathBuf;

    /// A folder of its own for a test's database, gone when dropped.
    pub struct Scratch(pub PathBuf);

    impl Scratch {
        pub fn new(name: &str) -> Scratch {
            let path = std::env::temp_dir().join(format!("nmem-store-{}-{name}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            Scratch(path)
        }
        pub fn files(&self) -> Files {
            Files::of(self.0.join("nmem.db"), true)
        }
        pub fn open(&self) -> Store {
            Store::open(&self.files(), HOOK_WAIT).unwrap()
        }
        /// A connection that holds the write lock until it is dropped.
        pub fn lock(&self) -> Connection {
            let conn = self.open().conn;
            conn.execute_batch("BEGIN IMMEDIATE").unwrap();
            conn
        }
        /// Counts from now on how often the memories of a unit are drawn.
        pub fn count_draws(&self) {
            let sql = "CREATE TABLE drawn(unit); CREATE TRIGGER draws AFTER UPDATE OF rules_mark ON work_units
                       BEGIN INSERT INTO drawn VALUES (NEW.id); END";
            self.open().conn.execute_batch(sql).unwrap();
        }
        pub fn draws(&self) -> i64 {
            self.open().conn.query_row("SELECT count(*) FROM drawn", [], |row| row.get(0)).unwrap()
        }
        /// Has every session's third tool use fail to be stored.
        pub fn refuse_third_tool_use(&self) {
            let sql = "CREATE TRIGGER refuses BEFORE INSERT ON tool_uses WHEN NEW.seq = 3
                       BEGIN SELECT RAISE(FAIL, 'no room'); END";
            self.open().conn.execute_batch(sql).unwrap();
        }
    }

    /// Stores an event as the pipeline does.
    pub fn store_event(tx: &Tx, event: &Clean<Event>) -> Result<()> {
        crate::ingest::store_event(tx, event, None, &|_| None)
    }

    /// A prompt of a session, the n-th millisecond.
    pub fn prompt(session: &str, n: i64, text: &str) -> Clean<Event> {
        Redactor::default().clean(Event {
            platform: Platform::ClaudeCode,
            session: session.into(),
            at: n,
            time: None,
            cwd: None,
            project: None,
            transcript: None,
            transcript_length: None,
            prompt: Some(format!("p{n}")),
            agent: None,
            what: Happening::Prompted { text: text.into() },
        })
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::Scratch;
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_looser_folder_and_file_are_made_private() {
        use std::os::unix::fs::PermissionsExt;
        let scratch = Scratch::new("modes");
        drop(scratch.open());
        fs::set_permissions(&scratch.0, fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(scratch.files().db, fs::Permissions::from_mode(0o644)).unwrap();
        let mut store = scratch.open();
        store.write(|_| Ok(())).unwrap();
        for (path, mode) in [(scratch.0.clone(), 0o700), (scratch.files().db, 0o600)] {
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode, "{}", path.display());
        }
    }

    #[test]
    fn a_reader_finds_no_database_where_there_is_none_and_makes_none() {
        let scratch = Scratch::new("none");
        assert!(Store::open_to_read(&scratch.files(), HOOK_WAIT).unwrap().is_none());
        assert!(!scratch.0.exists());
    }
}
