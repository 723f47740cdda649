//! Makes the schema, and brings an older one up: `migrations/NNNN-name.sql` in order, `user_version` as the mark.
//!
//! A migration is never changed, removed or reordered once released. A database of a newer nmem is refused and left
//! alone. A new database is built under another name and linked into place whole, so that sixty-four hooks that start at
//! once never see half of one.

use super::Store;
use crate::error::Failure;
use crate::files;
use crate::index_text::INDEX_TEXT_VERSION;
use crate::model::{Files, beside};
use anyhow::{Context, Result};
use rusqlite::{Connection, TransactionBehavior};
use std::fs;
use std::path::Path;

const MIGRATIONS: &[&str] = &[include_str!("../../migrations/0001-events.sql")];

/// The schema's version that this binary writes.
pub const SCHEMA_VERSION: i64 = MIGRATIONS.len() as i64;

/// Makes a new database. Another process that is faster wins.
pub fn create(files: &Files) -> Result<()> {
    let draft = beside(&files.db, &format!("-new-{}", files::unique()));
    let built = build(&draft).and_then(|()| place(&draft, &files.db));
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let _ = fs::remove_file(beside(&draft, suffix));
    }
    built.with_context(|| format!("cannot make {}", files.db.display()))
}

fn build(draft: &Path) -> Result<()> {
    let _ = fs::remove_file(draft);
    drop(files::append_private(draft)?);
    #[expect(clippy::disallowed_methods, reason = "a new database is opened here alone")]
    let mut conn = Connection::open(draft)?;
    // Nothing is lost if this fails half-way: the draft is thrown away.
    conn.execute_batch("PRAGMA synchronous = OFF; PRAGMA journal_mode = WAL;")?;
    bring_up(&mut conn, draft)?;
    conn.close().map_err(|(_, e)| e)?;
    fs::File::open(draft)?.sync_all()?;
    Ok(())
}

fn place(draft: &Path, db: &Path) -> Result<()> {
    match fs::hard_link(draft, db) {
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        // A file system without links: a rename could only harm an event written in the same millisecond.
        Err(_) if !db.exists() => Ok(fs::rename(draft, db)?),
        other => Ok(other?),
    }
}

/// Applies the migrations that are missing, each in a transaction of its own.
pub fn bring_up(conn: &mut Connection, path: &Path) -> Result<()> {
    while version(conn)? < SCHEMA_VERSION {
        let tx = conn.transaction_with_behavior(TransactionBehavior::Exclusive)?;
        // Read again under the lock: another process may have been faster.
        let at = version(&tx)?;
        if let Some(sql) = usize::try_from(at).ok().and_then(|at| MIGRATIONS.get(at)) {
            tx.execute_batch(sql).with_context(|| format!("migration {} of {}", at + 1, path.display()))?;
            if at == 0 {
                tx.execute("INSERT INTO meta(key, value) VALUES ('index_text_version', ?1)", [INDEX_TEXT_VERSION])?;
            }
            tx.pragma_update(None, "user_version", at + 1)?;
        }
        tx.commit()?;
    }
    refuse_other_versions(conn, path)
}

/// Refuses a database of a newer nmem, and for reading also one that has not been brought up.
pub fn refuse_other_versions(conn: &Connection, path: &Path) -> Result<()> {
    match version(conn)? {
        SCHEMA_VERSION => Ok(()),
        newer if newer > SCHEMA_VERSION => Err(Failure::new(
            format!("{} was written by a newer nmem (schema {newer}, this one knows {SCHEMA_VERSION})", path.display()),
            "install the newer nmem again; the database was left alone",
        )
        .into()),
        older => Err(Failure::new(
            format!("{} has schema {older}, this nmem needs {SCHEMA_VERSION}", path.display()),
            "run `nmem status` once: it brings the database up",
        )
        .into()),
    }
}

fn version(conn: &Connection) -> Result<i64> {
    Ok(conn.query_row("PRAGMA user_version", [], |row| row.get(0))?)
}

impl Store {
    /// The version of the text function with which the index was filled.
    pub fn index_text_version(&self) -> Result<i64> {
        Ok(self.conn.query_row("SELECT value FROM meta WHERE key = 'index_text_version'", [], |row| row.get(0))?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::HOOK_WAIT;
    use super::super::testing::Scratch;
    use super::*;

    #[test]
    fn a_new_database_has_the_schema_the_index_version_and_the_wal_mode() {
        let scratch = Scratch::new("fresh");
        let store = scratch.open();
        assert_eq!(version(&store.conn).unwrap(), SCHEMA_VERSION);
        assert_eq!(store.index_text_version().unwrap(), INDEX_TEXT_VERSION);
        let mode: String = store.conn.query_row("PRAGMA journal_mode", [], |r| r.get(0)).unwrap();
        assert_eq!(mode, "wal");
        let left: Vec<_> = fs::read_dir(&scratch.0).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert!(left.iter().all(|n| !n.to_string_lossy().contains("-new-")), "{left:?}");
    }

    #[test]
    fn a_database_from_the_future_is_refused_and_left_alone() {
        let scratch = Scratch::new("future");
        scratch.open().conn.pragma_update(None, "user_version", 99).unwrap();
        let error = Store::open(&scratch.files(), HOOK_WAIT).unwrap_err();
        assert!(error.to_string().contains("newer nmem (schema 99"), "{error}");
        assert!(Store::open_to_read(&scratch.files(), HOOK_WAIT).is_err());
    }

    #[test]
    fn many_processes_that_start_at_once_find_one_whole_database() {
        let scratch = Scratch::new("race");
        let files = scratch.files();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    Store::open(&files, std::time::Duration::from_secs(5)).unwrap();
                });
            }
        });
    }
}
