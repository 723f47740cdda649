//! Schema migrations: `migrations/NNNN-name.sql` in order, tracked by `user_version`.
//!
//! A released migration is never changed, removed or reordered. The database of a newer nmem, or of another program, is
//! rejected and left alone.

use super::early_schemas;
use crate::error::UserError;
use crate::index_text::INDEX_TEXT_VERSION;
use anyhow::{Context, Result};
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;

/// One migration.
struct Migration {
    sql: &'static str,
    /// True if it takes at most 50 ms at 1,000,000 tool uses, so that hooks may apply it. Otherwise hooks spool their
    /// events until a command has migrated.
    quick: bool,
}

const MIGRATIONS: &[Migration] = &[
    Migration { sql: include_str!("../../migrations/0001-events.sql"), quick: true },
    Migration { sql: include_str!("../../migrations/0002-work-units.sql"), quick: true },
    Migration { sql: include_str!("../../migrations/0003-memories.sql"), quick: true },
    Migration { sql: include_str!("../../migrations/0004-models.sql"), quick: true },
    Migration { sql: include_str!("../../migrations/0005-recall.sql"), quick: true },
    // Reads all tool uses and memories: 0.6 s at 1,000,000 and 100,000.
    Migration { sql: include_str!("../../migrations/0006-hook-cost.sql"), quick: false },
    Migration { sql: include_str!("../../migrations/0007-told.sql"), quick: true },
    // Adding a column to a strict table checks all its rows: 0.9 s at 100,000 memories.
    Migration { sql: include_str!("../../migrations/0008-vectors.sql"), quick: false },
    // Creates an index over all memories.
    Migration { sql: include_str!("../../migrations/0009-knowledge.sql"), quick: false },
    Migration { sql: include_str!("../../migrations/0010-merge.sql"), quick: true },
    Migration { sql: include_str!("../../migrations/0011-names.sql"), quick: true },
    Migration { sql: include_str!("../../migrations/0012-titles.sql"), quick: true },
    Migration { sql: include_str!("../../migrations/0013-rules-version.sql"), quick: true },
    Migration { sql: include_str!("../../migrations/0014-imports.sql"), quick: true },
    Migration { sql: include_str!("../../migrations/0015-forgotten.sql"), quick: true },
    Migration { sql: include_str!("../../migrations/0016-team.sql"), quick: true },
];

/// Page count below which every migration is fast: 8 MB, some ten thousand tool uses.
const SMALL: i64 = 2048;

/// The current schema version.
pub const SCHEMA_VERSION: i64 = MIGRATIONS.len() as i64;

/// `application_id` of our databases: "nmem".
const APPLICATION: i64 = 0x6e6d_656d;

/// Applies missing migrations, each in its own transaction; only quick ones unless `patient`.
pub fn bring_up(conn: &mut Connection, path: &Path, patient: bool) -> Result<()> {
    refuse_foreign(conn, path)?;
    if version(conn)? == SCHEMA_VERSION {
        return Ok(());
    }
    apply(conn, path, MIGRATIONS, patient)?;
    refuse_other_versions(conn, path)
}

fn apply(conn: &mut Connection, path: &Path, migrations: &[Migration], patient: bool) -> Result<()> {
    let goal = migrations.len() as i64;
    let mut at = version(conn)?;
    // In an empty or small database, all are quick.
    let pages: i64 = conn.query_row("PRAGMA page_count", [], |row| row.get(0))?;
    let patient = patient || at == 0 || pages < SMALL;
    while at < goal {
        let tx = conn.transaction_with_behavior(TransactionBehavior::Exclusive)?;
        // Read again under the lock: another process may have migrated.
        at = version(&tx)?;
        if let Some(migration) = usize::try_from(at).ok().and_then(|at| migrations.get(at)) {
            if !migration.quick && !patient {
                let what = format!("{} needs a migration that takes too long for a hook", path.display());
                return Err(UserError::new(what, "run `nmem status` once").into());
            }
            early_schemas::complete(&tx, at)?;
            tx.execute_batch(migration.sql).with_context(|| format!("migration {} of {}", at + 1, path.display()))?;
            if at == 0 {
                tx.pragma_update(None, "application_id", APPLICATION)?;
                tx.execute("INSERT INTO meta(key, value) VALUES ('index_text_version', ?1)", [INDEX_TEXT_VERSION])?;
            }
            at += 1;
            tx.pragma_update(None, "user_version", at)?;
        }
        tx.commit()?;
    }
    Ok(())
}

/// Whether this nmem can migrate the database.
pub fn is_old(conn: &Connection) -> Result<bool> {
    Ok((1..SCHEMA_VERSION).contains(&version(conn)?))
}

/// Rejects the database of a newer nmem, and for reading also one that needs migration.
pub fn refuse_other_versions(conn: &Connection, path: &Path) -> Result<()> {
    match version(conn)? {
        SCHEMA_VERSION => Ok(()),
        newer if newer > SCHEMA_VERSION => Err(UserError::new(
            format!("{} was written by a newer nmem (schema {newer}, this one supports {SCHEMA_VERSION})", path.display()),
            "install that version of nmem; the database was not changed",
        )
        .into()),
        older => Err(UserError::new(
            format!("{} has schema {older}, this nmem needs {SCHEMA_VERSION}", path.display()),
            "run `nmem status` once to migrate it",
        )
        .into()),
    }
}

/// Rejects the database of another program: unless it is empty, it must have nmem's application id.
fn refuse_foreign(conn: &Connection, path: &Path) -> Result<()> {
    let application: i64 = conn.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    if application == APPLICATION || conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(());
    }
    Err(UserError::new(
        format!("{} is the database of another program", path.display()),
        "point NMEM_DB to another file; this one was left alone",
    )
    .into())
}

fn version(conn: &Connection) -> Result<i64> {
    Ok(conn.query_row("PRAGMA user_version", [], |row| row.get(0))?)
}

#[cfg(test)]
mod tests {
    use super::super::testing::Scratch;
    use super::super::{HOOK_WAIT, PERSON_WAIT, Store};
    use super::*;

    #[test]
    fn a_new_database_has_the_schema_the_index_version_and_the_wal_mode() {
        let scratch = Scratch::new("fresh");
        let store = scratch.open();
        assert_eq!(version(&store.conn).unwrap(), SCHEMA_VERSION);
        assert_eq!(store.index_text_version().unwrap(), INDEX_TEXT_VERSION);
        let mode: String = store.conn.query_row("PRAGMA journal_mode", [], |r| r.get(0)).unwrap();
        assert_eq!(mode, "wal");
    }

    #[test]
    fn a_hook_leaves_a_slow_migration_to_a_person() {
        let scratch = Scratch::new("slow");
        let mut store = scratch.open();
        store.conn.execute_batch("CREATE TABLE filler(x); INSERT INTO filler VALUES (zeroblob(9 << 20))").unwrap();
        let migration = |sql, quick| Migration { sql, quick };
        let mut later: Vec<Migration> = MIGRATIONS.iter().map(|_| migration("", true)).collect();
        later.extend([migration("CREATE TABLE quick(x)", true), migration("CREATE TABLE slow(x)", false)]);
        let path = scratch.files().db;
        let error = apply(&mut store.conn, &path, &later, false).unwrap_err();
        assert!(error.to_string().contains("needs a migration"), "{error}");
        assert_eq!(version(&store.conn).unwrap(), SCHEMA_VERSION + 1, "the quick one before it is applied");
        apply(&mut store.conn, &path, &later, true).unwrap();
        assert_eq!(version(&store.conn).unwrap(), SCHEMA_VERSION + 2);
    }

    #[test]
    fn a_database_from_the_future_is_refused_and_left_alone() {
        let scratch = Scratch::new("future");
        scratch.open().conn.pragma_update(None, "user_version", 99).unwrap();
        let error = Store::open(&scratch.files(), HOOK_WAIT).unwrap_err();
        assert!(error.to_string().contains("newer nmem (schema 99"), "{error}");
        assert!(Store::open_to_read(&scratch.files(), HOOK_WAIT).is_err());
        assert!(Store::open_to_read(&scratch.files(), PERSON_WAIT).is_err());
    }

    #[test]
    fn a_reading_command_migrates_an_old_database_and_a_hook_leaves_it() {
        let scratch = Scratch::new("old");
        scratch.open().conn.pragma_update(None, "user_version", SCHEMA_VERSION - 1).unwrap();
        let reading = |wait| Store::open_to_read(&scratch.files(), wait).map(|_| ()).map_err(|error| format!("{error:#}"));
        assert!(reading(HOOK_WAIT).unwrap_err().contains("this nmem needs"));
        // The last migration was applied before, so a second time fails: it was tried.
        let again = format!("migration {SCHEMA_VERSION} of");
        assert!(reading(PERSON_WAIT).unwrap_err().contains(&again));
    }
}
