//! The schema, and the steps that bring an older database up to it, tracked by `user_version`.
//!
//! `migrations/schema.sql` creates a new database. A step `migrations/NNNN-name.sql` leads from version NNNN - 1 to
//! NNNN; a released step is never changed, removed or reordered. A database of a newer nmem, of another program, or
//! from before the oldest version is rejected and left alone.

use crate::error::UserError;
use crate::index_text::INDEX_TEXT_VERSION;
use anyhow::{Context, Result};
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;

const SCHEMA: &str = include_str!("../../migrations/schema.sql");
/// The oldest version that can be migrated: the last one before the first release.
const OLDEST: i64 = 16;

/// One step to the next version.
struct Migration {
    sql: &'static str,
    /// True if it takes at most 50 ms at 1,000,000 tool uses, so that hooks may apply it. Otherwise hooks spool their
    /// events until a command has migrated.
    quick: bool,
}

/// Steps from [`OLDEST`] on.
const MIGRATIONS: &[Migration] = &[
    Migration { sql: include_str!("../../migrations/0017-supersession.sql"), quick: true },
    Migration { sql: include_str!("../../migrations/0018-projects.sql"), quick: true },
    Migration { sql: include_str!("../../migrations/0019-open-ends.sql"), quick: true },
    Migration { sql: include_str!("../../migrations/0020-passages.sql"), quick: true },
    Migration { sql: include_str!("../../migrations/0021-fewer-objects.sql"), quick: true },
];

/// Page count below which every migration is fast: 8 MB, some ten thousand tool uses.
const SMALL: i64 = 2048;

/// The current schema version.
pub const SCHEMA_VERSION: i64 = OLDEST + MIGRATIONS.len() as i64;

/// `application_id` of our databases: "nmem".
const APPLICATION: i64 = 0x6e6d_656d;

/// Creates the schema in an empty database, or applies missing steps, each in its own transaction; only quick ones unless
/// `patient`.
pub fn bring_up(conn: &mut Connection, path: &Path, patient: bool) -> Result<()> {
    refuse_foreign(conn, path)?;
    match version(conn)? {
        SCHEMA_VERSION => return Ok(()),
        0 => create_schema(conn, path)?,
        _ => apply(conn, path, MIGRATIONS, patient)?,
    }
    refuse_other_versions(conn, path)
}

fn create_schema(conn: &mut Connection, path: &Path) -> Result<()> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Exclusive)?;
    // Read again under the lock: another process may have created it.
    if version(&tx)? == 0 {
        tx.execute_batch(SCHEMA).with_context(|| format!("cannot create the schema of {}", path.display()))?;
        tx.pragma_update(None, "application_id", APPLICATION)?;
        tx.execute("INSERT INTO meta(key, value) VALUES ('index_text_version', ?1)", [INDEX_TEXT_VERSION])?;
        tx.pragma_update(None, "user_version", SCHEMA_VERSION)?;
    }
    Ok(tx.commit()?)
}

fn apply(conn: &mut Connection, path: &Path, migrations: &[Migration], patient: bool) -> Result<()> {
    let goal = OLDEST + migrations.len() as i64;
    let mut at = version(conn)?;
    // In a small database, all are quick.
    let pages: i64 = conn.query_row("PRAGMA page_count", [], |row| row.get(0))?;
    let patient = patient || pages < SMALL;
    while (OLDEST..goal).contains(&at) {
        let tx = conn.transaction_with_behavior(TransactionBehavior::Exclusive)?;
        // Read again under the lock: another process may have migrated.
        at = version(&tx)?;
        if let Some(migration) = usize::try_from(at - OLDEST).ok().and_then(|n| migrations.get(n)) {
            if !migration.quick && !patient {
                let what = format!("{} needs a migration that takes too long for a hook", path.display());
                return Err(UserError::new(what, "run `nmem status` once").into());
            }
            at += 1;
            tx.execute_batch(migration.sql).with_context(|| format!("migration {at} of {}", path.display()))?;
            tx.pragma_update(None, "user_version", at)?;
        }
        tx.commit()?;
    }
    Ok(())
}

/// Whether this nmem can migrate the database.
pub fn is_old(conn: &Connection) -> Result<bool> {
    Ok((OLDEST..SCHEMA_VERSION).contains(&version(conn)?))
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
        early if early < OLDEST => Err(UserError::new(
            format!(
                "{} has schema {early}, from before the first release; this nmem migrates {OLDEST} and later",
                path.display()
            ),
            "export it with the nmem that wrote it (`nmem export FILE`), move it away, and run `nmem restore FILE`",
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
    use super::*;
    use crate::store::testing::Scratch;
    use crate::store::{HOOK_WAIT, PERSON_WAIT, Store};

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
    fn a_database_from_before_the_first_release_is_refused_with_the_way_through() {
        let scratch = Scratch::new("early");
        for schema in [1, OLDEST - 1] {
            scratch.open().conn.pragma_update(None, "user_version", schema).unwrap();
            for wait in [HOOK_WAIT, PERSON_WAIT] {
                let error = Store::open(&scratch.files(), wait).map(|_| ()).unwrap_err();
                assert!(error.to_string().contains(&format!("has schema {schema}, from before")), "{error}");
                let read = Store::open_to_read(&scratch.files(), wait).map(|_| ()).unwrap_err();
                let hint = crate::error::explain(&read).hint.unwrap();
                assert!(hint.contains("nmem restore"), "{hint}");
            }
            drop(std::fs::remove_file(scratch.files().db));
        }
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
        let old = scratch.open();
        for table in ["prompts", "tool_uses", "work_units"] {
            old.conn
                .execute_batch(&format!("DROP INDEX IF EXISTS work_units_elsewhere; ALTER TABLE {table} DROP COLUMN project_id"))
                .unwrap();
        }
        old.conn
            .execute_batch(
                "ALTER TABLE sessions DROP COLUMN imported_at; DROP TABLE passage_index; DROP TABLE waiting;
                 ALTER TABLE steps DROP COLUMN boundary; ALTER TABLE memories DROP COLUMN concepts; DROP INDEX memories_at_start;
                 CREATE TABLE boundaries(step_id, reason, score, signals, at_prompt, active, history);
                 CREATE TABLE memory_concepts(memory_id, concept); CREATE TABLE drained(event);
                 CREATE VIEW work_unit_files AS SELECT 1; CREATE INDEX spend_by_time ON spend(at);
                 CREATE INDEX memories_pinned ON memories(project_id) WHERE pinned",
            )
            .unwrap();
        old.conn.pragma_update(None, "user_version", 17).unwrap();
        drop(old);
        let reading = |wait| Store::open_to_read(&scratch.files(), wait).map(|_| ()).map_err(|error| format!("{error:#}"));
        assert!(reading(HOOK_WAIT).unwrap_err().contains("this nmem needs"));
        reading(PERSON_WAIT).unwrap();
        assert_eq!(version(&scratch.open().conn).unwrap(), SCHEMA_VERSION);
    }
}
