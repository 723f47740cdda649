//! The database: all SQL and all use of rusqlite are in this folder (ADR/0002).
//!
//! A process that opens a WAL database alone first rebuilds the log's index, 1.4 µs per frame. So nmem checkpoints the
//! log itself at 1 MiB: SQLite's automatic checkpoints count pages per connection, and a hook's connection never lives
//! long enough. With `synchronous = NORMAL`, `kill -9` loses nothing; a power cut may lose the last commits, but never
//! corrupts the file.
//!
//! Files: this one opens the database and runs transactions; `migrate` (also creates it), `salvage` (a
//! broken database), `spool`. What hooks write: `events` and `tool_uses`, `unit_rows`, `index`, `passage_index` and `unit_index`
//! (full text), `injections`. Memories: `memory_rows`, `story` and `rule_memories`, `llm_queue`, `memory_list`. Queries:
//! `project_rows`, `history`, `edits` (of a file; commits), `unit_list`, `query` and `full_text` (search), `candidates` (recall). Others: `imports`,
//! `team_incoming` and `team_outgoing`, `deletion`, `stored_texts` (redacting again), `export_rows` and `restore`.

pub mod candidates;
pub mod deletion;
pub mod edits;
pub mod events;
pub mod export_rows;
pub mod full_text;
pub mod history;
pub mod imports;
mod index;
pub mod injections;
pub(crate) mod llm_queue;
mod memory_list;
pub mod memory_rows;
mod migrate;
pub mod passage_index;
pub mod project_rows;
pub mod query;
pub(crate) mod restore;
pub(crate) mod rule_memories;
pub mod salvage;
pub mod spool;
pub mod stored_texts;
pub(super) mod story;
pub(crate) mod team_incoming;
pub mod team_outgoing;
mod tool_uses;
pub mod unit_index;
mod unit_list;
pub mod unit_rows;

pub use unit_rows::LeftOpen;

use crate::files::{self, Identity};
use crate::model::{Files, beside};
use anyhow::{Context, Result, anyhow, bail};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io};

/// Maximum time that a hook waits for the database before it writes to the spool.
pub const HOOK_WAIT: Duration = Duration::from_millis(250);
/// Maximum time that a command run by a person waits for the database.
pub const PERSON_WAIT: Duration = Duration::from_secs(5);
/// Size of the write-ahead log, in bytes, above which it is checkpointed: about 20 events.
const WAL_LIMIT: u64 = 1 << 20;

/// Size of the statement cache: more than any command uses, because compiling a statement costs as much as running it.
const STATEMENTS: usize = 128;

/// An open database.
#[derive(Debug)]
pub struct Store {
    conn: Connection,
    files: Files,
    /// The file that was opened for writing.
    found: Option<Identity>,
    /// Maximum time that a statement waits for another process's lock.
    wait: Duration,
}

/// A write transaction. If [`Store::write`] does not finish, it changes nothing.
#[derive(Debug)]
pub struct Tx<'a> {
    tx: Transaction<'a>,
}

impl Store {
    /// Removes databases whose creation was interrupted.
    pub fn remove_unfinished(&self) {
        migrate::remove_unfinished(&self.files);
    }

    /// Opens the database for writing, and creates it if needed. A broken database is set aside and replaced.
    ///
    /// # Errors
    ///
    /// Fails if the database belongs to a newer nmem or another program, stays locked for `wait`, or cannot be read or
    /// written.
    pub fn open(files: &Files, wait: Duration) -> Result<Store> {
        let mut broken = None;
        // One retry for a broken file. If the disk damages the new one too, do not fill it with copies.
        for _ in 0..2 {
            let found = match guard(files)? {
                Some(found) => found,
                None => {
                    migrate::create(files)?;
                    guard(files)?.context("the database is gone again")?
                }
            };
            match Store::open_as_it_is(files, wait, found) {
                Err(error) if is_broken(&error) => {
                    migrate::set_aside(files, found).with_context(|| format!("{error:#}"))?;
                    broken = Some(error);
                }
                opened => return opened,
            }
        }
        Err(broken.unwrap_or_else(|| anyhow!("cannot open {}", files.db.display())))
    }

    fn open_as_it_is(files: &Files, wait: Duration, found: Identity) -> Result<Store> {
        // Not SQLITE_OPEN_NOFOLLOW: it rejects links anywhere in the path, and on some systems /home is one.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut store = Store::connect(files, flags, wait)?;
        store.found = Some(found);
        migrate::bring_up(&mut store.conn, &files.db, wait > HOOK_WAIT)?;
        Ok(store)
    }

    /// Sets the database aside if `error` shows that it is broken, and returns whether it did. The next open creates a
    /// new one.
    pub fn set_aside_if_broken(self, error: &anyhow::Error) -> Result<bool> {
        let Some(found) = self.found.filter(|_| is_broken(error)) else { return Ok(false) };
        let files = self.files.clone();
        drop(self);
        migrate::set_aside(&files, found)?;
        Ok(true)
    }

    /// Sets the database aside on a person's request. The next open creates a new one.
    pub fn set_aside(self) -> Result<()> {
        let (found, files) = (self.found.context("the database was opened for reading")?, self.files.clone());
        drop(self);
        migrate::set_aside(&files, found)
    }

    /// Broken databases that were set aside.
    pub fn broken_ones(files: &Files) -> Vec<PathBuf> {
        migrate::set_aside_before(files)
    }

    /// Opens the database for reading; `None` if there is none. A command first migrates an old schema; a hook does
    /// not.
    pub fn open_to_read(files: &Files, wait: Duration) -> Result<Option<Store>> {
        if !files.db.exists() {
            return Ok(None);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let store = Store::connect(files, flags, wait)?;
        if wait > HOOK_WAIT && migrate::is_old(&store.conn)? {
            return Store::open(files, wait).map(Some);
        }
        migrate::refuse_other_versions(&store.conn, &files.db)?;
        Ok(Some(store))
    }

    fn connect(files: &Files, flags: OpenFlags, wait: Duration) -> Result<Store> {
        save_memory();
        let path = &files.db;
        #[expect(clippy::disallowed_methods, reason = "the one place where databases are opened")]
        let conn = Connection::open_with_flags(path, flags).with_context(|| format!("cannot open {}", path.display()))?;
        conn.busy_timeout(wait)?;
        conn.set_prepared_statement_cache_capacity(STATEMENTS);
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        // Otherwise SQLite compiles a statement again once parameters are bound; our plans do not depend on them.
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        conn.execute_batch("PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0;")?;
        // Without a log, the database may be on a network file system and use no WAL at all.
        let writes = flags.contains(OpenFlags::SQLITE_OPEN_READ_WRITE);
        if writes && !files.wal().exists() && journal_mode(&conn)? != "wal" {
            conn.query_row("PRAGMA journal_mode = TRUNCATE", [], |_| Ok(()))?;
        }
        Ok(Store { conn, files: files.clone(), found: None, wait })
    }

    /// Runs `work` in one write transaction and commits it, then checkpoints a log that has grown too large.
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

    /// Runs `work` on one snapshot, so its statements take no locks of their own.
    pub fn read<T>(&self, work: impl FnOnce(&Store) -> Result<T>) -> Result<T> {
        let snapshot = self.conn.unchecked_transaction()?;
        let done = work(self);
        drop(snapshot);
        done
    }

    /// Checkpoints the log whatever its size, after commands or if the disk is full.
    pub fn checkpoint(&self) {
        self.checkpoint_over(0);
    }

    /// Leaves the database open until the process exits, which releases memory, locks and files at once. Closing would
    /// cost a hook 70 µs and change nothing on disk.
    pub fn exit_without_close(self) {
        std::mem::forget(self);
    }

    /// Checkpoints a log larger than `limit`. If other processes prevent the checkpoint, the next one tries again.
    fn checkpoint_over(&self, limit: u64) {
        if fs::metadata(self.files.wal()).is_ok_and(|m| m.len() > limit) {
            let _ = self.conn.busy_timeout(Duration::ZERO);
            let _ = self.conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
            let _ = self.conn.busy_timeout(self.wait);
        }
    }

    /// The journal mode: `wal`, or `truncate` on a network file system.
    pub fn journal_mode(&self) -> Result<String> {
        journal_mode(&self.conn)
    }

    /// Changes the journal mode permanently.
    pub fn set_journal_mode(&self, mode: &str) -> Result<()> {
        let now: String = self.conn.query_row(&format!("PRAGMA journal_mode = {mode}"), [], |row| row.get(0))?;
        if now != mode {
            bail!("cannot change the journal mode from `{now}`: another program has the database open");
        }
        Ok(())
    }

    /// Runs SQLite's integrity check; returns its first findings.
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

/// Pages that SQLite allocates for a table of its own before it needs them. Its default of 20 is written to as a whole: 88 kB
/// for each `IN (SELECT …)`, 64 of the 570 page faults of a session start.
const PAGES_AT_ONCE: std::ffi::c_int = 1;

/// Disables SQLite's memory statistics, for which it counts each allocation under a lock, and its large allocations.
fn save_memory() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        // SAFETY: called before the first connection of this process, as sqlite3_config requires; MEMSTATUS takes one
        // int, PAGECACHE a pointer and two.
        #[expect(unsafe_code, reason = "rusqlite has no way to say it")]
        unsafe {
            use rusqlite::ffi::{SQLITE_CONFIG_MEMSTATUS, SQLITE_CONFIG_PAGECACHE, sqlite3_config};
            sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0 as std::ffi::c_int);
            sqlite3_config(
                SQLITE_CONFIG_PAGECACHE,
                std::ptr::null_mut::<std::ffi::c_void>(),
                0 as std::ffi::c_int,
                PAGES_AT_ONCE,
            );
        }
    });
}

fn journal_mode(conn: &Connection) -> Result<String> {
    Ok(conn.query_row("PRAGMA journal_mode", [], |row| row.get(0))?)
}

/// Bytes of a region of the log's index (`-shm`), and the byte that every process locks that uses it (SQLite's walformat, 2.3).
const INDEX_REGION: u64 = 32_768;
const INDEX_IN_USE: i64 = 128;
/// SQLite lets the index grow in steps, and begins it with 3 bytes.
const INDEX_GROWS: Duration = Duration::from_millis(20);

/// Refuses a database whose log's index somebody cut while another process uses it: a writer would not see the last changes, and
/// would write over them. If nobody uses it, SQLite makes a new one.
fn refuse_cut_index(files: &Files) -> Result<()> {
    let index = beside(&files.db, "-shm");
    let begun = Instant::now();
    loop {
        let is_cut = fs::metadata(&index).is_ok_and(|meta| meta.len() > 3 && meta.len() % INDEX_REGION != 0);
        if !is_cut {
            return Ok(());
        }
        if begun.elapsed() > INDEX_GROWS {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    if files::is_locked(&index, INDEX_IN_USE) {
        bail!("{} was cut while another program has the database open: close that program", index.display());
    }
    Ok(())
}

/// Creates the folder if needed and tightens the modes of folder and file; returns the file's identity.
fn guard(files: &Files) -> Result<Option<Identity>> {
    let folder = files.db.parent().unwrap_or(Path::new("/"));
    match fs::metadata(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => files::make_folder(folder).inspect(|()| {
            // A database that the user put into a worktree must not be committed with it.
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
            refuse_cut_index(files)?;
            Ok(Some(files::identity(&meta)))
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e).with_context(|| format!("cannot look at {}", files.db.display())),
    }
}

/// The SQLite code of an error, if it has one.
fn code(error: &anyhow::Error) -> Option<ErrorCode> {
    error.chain().find_map(|e| e.downcast_ref::<rusqlite::Error>()).and_then(rusqlite::Error::sqlite_error_code)
}

/// Whether the disk is full.
pub fn is_full(error: &anyhow::Error) -> bool {
    code(error) == Some(ErrorCode::DiskFull)
}

/// Returns the reason why the database is unavailable, as text for the user.
pub fn reason(error: &anyhow::Error) -> String {
    match code(error) {
        Some(ErrorCode::DiskFull) => "the disk is full".into(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => "another program has locked the database".into(),
        Some(ErrorCode::ReadOnly) => "the database or its disk is read-only".into(),
        Some(ErrorCode::SystemIoFailure) => "disk I/O error: the disk may be full or failing".into(),
        _ => format!("{error:#}"),
    }
}

/// Whether the file is damaged or not a database.
pub fn is_broken(error: &anyhow::Error) -> bool {
    matches!(code(error), Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt))
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::model::{Event, EventKind, Platform};
    use crate::redact::{Clean, Redactor};
    use std::path::PathBuf;

    /// A folder for a test's database, deleted on drop.
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
        /// A connection that holds the write lock until dropped.
        pub fn lock(&self) -> Connection {
            let conn = self.open().conn;
            conn.execute_batch("BEGIN IMMEDIATE").unwrap();
            conn
        }
        /// Starts counting how often each unit's memories are written.
        pub fn count_draws(&self) {
            let sql = "CREATE TABLE drawn(unit); CREATE TRIGGER draws AFTER UPDATE OF rules_mark ON work_units
                       BEGIN INSERT INTO drawn VALUES (NEW.id); END";
            self.open().conn.execute_batch(sql).unwrap();
        }
        pub fn draws(&self) -> i64 {
            self.open().conn.query_row("SELECT count(*) FROM drawn", [], |row| row.get(0)).unwrap()
        }
        /// Makes every session's third tool use fail to be stored.
        pub fn refuse_third_tool_use(&self) {
            let sql = "CREATE TRIGGER refuses BEFORE INSERT ON tool_uses WHEN NEW.seq = 3
                       BEGIN SELECT RAISE(FAIL, 'no room'); END";
            self.open().conn.execute_batch(sql).unwrap();
        }
    }

    /// Stores an event as the pipeline does.
    pub fn store_event(tx: &Tx, event: &Clean<Event>) -> Result<()> {
        crate::ingest::persist::store_event(tx, event, None, &|_| None)
    }

    /// A prompt of a session at millisecond `n`.
    pub fn prompt(session: &str, n: i64, text: &str) -> Clean<Event> {
        Redactor::default().clean(Event {
            platform: Platform::ClaudeCode,
            session: session.into(),
            at: n,
            time: None,
            cwd: None,
            project: None,
            transcript: None,
            repository_url: None,
            transcript_length: None,
            usage: None,
            prompt: Some(format!("p{n}")),
            agent: None,
            what: EventKind::UserPrompt { text: text.into() },
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
