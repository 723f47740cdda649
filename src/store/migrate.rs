//! The schema, a new database, and the steps that bring an older one up to it, tracked by `user_version`. A broken one is
//! set aside.
//!
//! `migrations/schema.sql` creates a new database. A step `migrations/NNNN-name.sql` leads from version NNNN - 1 to
//! NNNN; a released step is never changed, removed or reordered. A database of a newer nmem, of another program, or
//! from before the oldest version is rejected and left alone.

use crate::error::UserError;
use crate::files::{self, Identity};
use crate::index_text::INDEX_TEXT_VERSION;
use crate::model::{Files, RULES_VERSION, beside};
use crate::redact::REDACTION_VERSION;
use anyhow::{Context, Result, bail};
use rusqlite::{Connection, TransactionBehavior, params};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

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
    Migration { sql: include_str!("../../migrations/0022-plans.sql"), quick: true },
    Migration { sql: include_str!("../../migrations/0023-merges.sql"), quick: true },
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

/// Key in `meta`: the version of the redaction rules that last checked all texts.
pub const REDACTION: &str = "redaction_version";
/// Key in `meta`: the version of the rules for which the user was last offered to distil again.
pub const ANNOUNCED: &str = "rules_version";

/// Files that SQLite keeps next to a database.
const COMPANIONS: [&str; 3] = ["-wal", "-shm", "-journal"];
/// First bytes of an SQLite database (sqlite3 file format, offset 0).
const MAGIC: &[u8] = b"SQLite format 3\0";

/// Suffix of a database that is being created, before its unique part.
const UNFINISHED: &str = "-new-";
/// Age from which such a file belongs to a process that was killed.
const KILLED: Duration = Duration::from_secs(600);

/// Removes databases whose creation was interrupted: a hook may be killed at any time.
pub fn remove_unfinished(files: &Files) {
    let own = beside(&files.db, UNFINISHED);
    let Some(begin) = own.file_name().and_then(|name| name.to_str()) else { return };
    for entry in fs::read_dir(files.folder()).into_iter().flatten().flatten() {
        let is_old = || entry.metadata().ok()?.modified().ok()?.elapsed().ok().filter(|age| *age > KILLED);
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(begin)) && is_old().is_some() {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Creates a database. If another process is faster, its database is used.
pub fn create(files: &Files) -> Result<()> {
    remove_unfinished(files);
    let temporary = beside(&files.db, &format!("{UNFINISHED}{}", files::unique()));
    let built = build(&temporary).and_then(|()| place(&temporary, files));
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let _ = fs::remove_file(beside(&temporary, suffix));
    }
    built.with_context(|| format!("cannot make {}", files.db.display()))
}

fn build(temporary: &Path) -> Result<()> {
    drop(files::append_private(temporary)?);
    #[expect(clippy::disallowed_methods, reason = "a new database is opened here alone")]
    let mut conn = Connection::open(temporary)?;
    // A failure loses nothing: the temporary file is discarded. The write-ahead log starts only when the schema is
    // complete. Otherwise closing would hide that the disk is too full for the log.
    conn.execute_batch("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY;")?;
    bring_up(&mut conn, temporary, true)?;
    // A new database contains nothing older than the current rules.
    mark(&conn, REDACTION, REDACTION_VERSION)?;
    mark(&conn, ANNOUNCED, RULES_VERSION)?;
    // The write-ahead log needs shared memory, which does not work across machines.
    if !files::is_remote(temporary.parent().unwrap_or(Path::new("/"))) {
        conn.execute_batch("PRAGMA journal_mode = WAL")?;
    }
    conn.close().map_err(|(_, e)| e)?;
    // Windows flushes only files that are open for writing.
    fs::OpenOptions::new().append(true).open(temporary)?.sync_all()?;
    Ok(())
}

/// Records a version in `meta`.
pub fn mark(conn: &Connection, key: &str, version: i64) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO meta(key, value) VALUES (?1, ?2)";
    Ok(conn.execute(sql, params![key, version]).map(|_| ())?)
}

/// Links the temporary file into place. A log left by an earlier database is set aside first, or SQLite would apply it.
fn place(temporary: &Path, files: &Files) -> Result<()> {
    let _alone = lock_folder(files)?;
    if files.db.exists() {
        return Ok(());
    }
    for path in COMPANIONS.map(|suffix| beside(&files.db, suffix)).iter().filter(|p| p.exists()) {
        fs::rename(path, aside_name(files, path)).with_context(|| format!("cannot move {} aside", path.display()))?;
    }
    match fs::hard_link(temporary, &files.db) {
        // The file system has no hard links; the lock keeps other processes out.
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists && !files.db.exists() => Ok(fs::rename(temporary, &files.db)?),
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(e.into()),
        _ => Ok(()),
    }
}

/// Renames a broken database and its companions, if it is still the file that was opened: another process may already
/// have replaced it with an intact one.
///
/// # Errors
///
/// Fails if `NMEM_DB` names a file that never was a database: it belongs to somebody else and is left unchanged.
pub fn set_aside(files: &Files, opened: Identity) -> Result<()> {
    let _alone = lock_folder(files)?;
    if !fs::symlink_metadata(&files.db).is_ok_and(|meta| files::identity(&meta) == opened) {
        return Ok(());
    }
    let mut head = [0; 16];
    let ours = fs::File::open(&files.db).and_then(|mut f| f.read_exact(&mut head)).is_ok() && head == MAGIC;
    if !ours && !files.own_folder {
        bail!("{} is not a database", files.db.display());
    }
    let name = aside_name(files, &files.db);
    fs::rename(&files.db, &name).with_context(|| format!("cannot move {} aside", files.db.display()))?;
    for suffix in COMPANIONS {
        let _ = fs::rename(beside(&files.db, suffix), beside(&name, suffix));
    }
    Ok(())
}

/// `nmem.db-broken-<unique>`: in the same folder, and not ending in `.db`.
fn aside_name(files: &Files, path: &Path) -> PathBuf {
    let name = path.strip_prefix(files.db.parent().unwrap_or(Path::new("/"))).unwrap_or(path);
    files.db.with_file_name(format!("{}-broken-{}", name.display(), &files::unique()[..8]))
}

/// Databases that were set aside.
pub fn set_aside_before(files: &Files) -> Vec<PathBuf> {
    let begin = format!("{}-broken-", files.db.file_name().unwrap_or_default().to_string_lossy());
    let is_one = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with(&begin) && !COMPANIONS.iter().any(|suffix| name.ends_with(suffix))
    };
    let entries = files.db.parent().and_then(|folder| fs::read_dir(folder).ok());
    entries.into_iter().flatten().filter_map(|e| Some(e.ok()?.path())).filter(is_one).collect()
}

/// Locks the folder while a database is created or moved; the lock ends when the result is dropped.
fn lock_folder(files: &Files) -> Result<Option<fs::File>> {
    Ok(files::lock_folder(files.db.parent().unwrap_or(Path::new("/")))?)
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

    #[test]
    fn what_a_killed_process_left_is_removed() {
        let scratch = Scratch::new("killed");
        let [old, new] = ["-new-killed", "-new-running"].map(|suffix| beside(&scratch.files().db, suffix));
        for path in [&old, &new] {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "half a database").unwrap();
        }
        let long_ago = std::time::UNIX_EPOCH + Duration::from_secs(3600);
        fs::File::options().append(true).open(&old).unwrap().set_modified(long_ago).unwrap();
        Store::open(&scratch.files(), HOOK_WAIT).unwrap();
        assert!(!old.exists() && new.exists());
    }

    #[test]
    fn many_processes_that_start_at_once_find_one_whole_database() {
        let scratch = Scratch::new("race");
        let files = scratch.files();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| Store::open(&files, std::time::Duration::from_secs(5)).unwrap());
            }
        });
        let left: Vec<_> = fs::read_dir(&scratch.0).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert!(left.iter().all(|n| !n.to_string_lossy().contains("-new-")), "{left:?}");
    }

    #[test]
    fn the_log_of_a_database_that_was_deleted_is_not_taken_for_the_new_ones() {
        let scratch = Scratch::new("stale-wal");
        scratch.open().write(|_| Ok(())).unwrap();
        let files = scratch.files();
        fs::write(files.wal(), b"what a database before left").unwrap();
        fs::remove_file(&files.db).unwrap();
        scratch.open().write(|_| Ok(())).unwrap();
        assert!(!fs::read(files.wal()).is_ok_and(|bytes| bytes.starts_with(b"what")));
    }

    #[test]
    fn a_broken_database_is_set_aside_and_a_new_one_made() {
        let scratch = Scratch::new("broken");
        drop(scratch.open());
        let files = scratch.files();
        let mut bytes = fs::read(&files.db).unwrap();
        bytes[100..8000].fill(0x5A);
        fs::write(&files.db, &bytes).unwrap();
        let store = scratch.open();
        assert_eq!(store.counts().unwrap().sessions, 0);
        assert_eq!(fs::read(&set_aside_before(&files)[0]).unwrap(), bytes);
    }

    #[test]
    fn a_file_of_somebody_elses_is_neither_moved_nor_changed() {
        let scratch = Scratch::new("foreign");
        fs::create_dir_all(&scratch.0).unwrap();
        let foreign = Files { own_folder: false, ..scratch.files() };
        fs::write(&foreign.db, "my notes, which are no database at all").unwrap();
        assert!(Store::open(&foreign, HOOK_WAIT).is_err());
        assert_eq!(fs::read_to_string(&foreign.db).unwrap(), "my notes, which are no database at all");

        fs::remove_file(&foreign.db).unwrap();
        #[expect(clippy::disallowed_methods, reason = "another program's database")]
        let other = Connection::open(&foreign.db).unwrap();
        other.execute_batch("CREATE TABLE theirs(x); PRAGMA user_version = 1").unwrap();
        let error = Store::open(&foreign, HOOK_WAIT).unwrap_err();
        assert!(error.to_string().contains("another program"), "{error}");
    }
}
