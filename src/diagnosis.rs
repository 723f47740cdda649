//! Use case: checks hooks, database, permissions and provider, each finding with its remedy.

use crate::archive;
use crate::config::Config;
use crate::files;
use crate::import;
use crate::index_text::INDEX_TEXT_VERSION;
use crate::model::{DoctorFinding, Files, beside};
use crate::redact::Redactor;
use crate::render::count;
use crate::store::salvage::salvage;
use crate::store::{PERSON_WAIT, Store, is_broken, spool};
use anyhow::{Context, Result};
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Age at which leftover temporary files of killed processes are removed.
const STALE: Duration = Duration::from_secs(3600);

/// Drains the spool.
pub type Drain<'a> = &'a dyn Fn(&mut Store) -> Result<()>;

/// Examines the data folder and the database, and repairs them if `fix` is set. `step` receives progress.
pub fn examine(config: &Config, redactor: &Redactor, drain: Drain, fix: bool, step: &mut dyn FnMut(&str)) -> Vec<DoctorFinding> {
    let files = &config.files.value;
    let mut findings = permissions(config, fix);
    findings.extend(leftovers(files, fix));
    step("checking the database");
    match database(files, redactor, drain, fix, step) {
        Ok(more) => findings.extend(more),
        Err(error) => findings.push(DoctorFinding::problem(
            "database",
            format!("{error:#}"),
            "fix the problem; meanwhile hooks keep their events in the spool",
        )),
    }
    findings.extend(waiting(files));
    findings.extend(not_imported(config));
    findings
}

/// Past sessions that were never imported.
fn not_imported(config: &Config) -> Option<DoctorFinding> {
    let past = import::never_imported(config).ok().filter(|past| *past > 0)?;
    let what = format!("{} on this machine", count(past as i64, "session was never imported", "sessions were never imported"));
    Some(DoctorFinding::note("import", what, "`nmem import` reads past sessions"))
}

fn permissions(config: &Config, fix: bool) -> Vec<DoctorFinding> {
    let files = &config.files.value;
    let folder = files.folder();
    if fs::symlink_metadata(folder).is_err() {
        return vec![DoctorFinding::note(
            "files",
            format!("{} does not exist yet", folder.display()),
            "the first event creates it",
        )];
    }
    let mut wrong = Vec::new();
    if files.own_folder && is_open(folder, 0o700) {
        wrong.push((folder.to_path_buf(), 0o700));
    }
    let mut findings = Vec::new();
    let own = [files.db.clone(), files.wal(), beside(&files.db, "-shm"), files.rejected.clone(), files.log.clone()];
    for path in own.into_iter().chain(files.spools.iter().cloned()).chain([config.switches_file.clone(), config.mark_key.clone()])
    {
        match fs::symlink_metadata(&path) {
            Ok(meta) if !meta.is_file() => {
                let what = format!("{} is not a regular file, and nmem does not follow links there", path.display());
                findings.push(DoctorFinding::problem("files", what, "replace it with a regular file, or remove it"));
            }
            Ok(_) if is_open(&path, 0o600) => wrong.push((path, 0o600)),
            _ => {}
        }
    }
    for (path, mode) in wrong {
        let finding =
            DoctorFinding::problem("files", format!("others may read {}", path.display()), format!("chmod {mode:o}, or --fix"));
        let repaired = fix && fs::symlink_metadata(&path).is_ok_and(|meta| files::tighten(&path, &meta, mode).is_ok());
        findings.push(if repaired { finding.fixed() } else { finding });
    }
    if findings.is_empty() {
        findings.push(DoctorFinding::good("files", format!("{}, private to you", folder.display())));
    }
    findings
}

#[cfg(unix)]
fn is_open(path: &Path, mode: u32) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::symlink_metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o777 & !mode != 0)
}

#[cfg(not(unix))]
fn is_open(_: &Path, _: u32) -> bool {
    false
}

/// Finds temporary files of killed processes.
fn leftovers(files: &Files, fix: bool) -> Vec<DoctorFinding> {
    let name = files.db.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let entries = fs::read_dir(files.folder()).into_iter().flatten().flatten().map(|e| e.path());
    let is_temporary = |p: &PathBuf| {
        let file = p.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let old = fs::symlink_metadata(p).and_then(|m| m.modified()).is_ok_and(|at| at.elapsed().is_ok_and(|age| age > STALE));
        (file.starts_with(&name) || file.starts_with("switches.json") || file.starts_with("mark-key"))
            && file.contains("-new-")
            && old
    };
    let leftovers: Vec<PathBuf> = entries.filter(is_temporary).collect();
    let mut findings = Vec::new();
    if !leftovers.is_empty() {
        let finding = DoctorFinding::note(
            "files",
            format!("{} of a process that was killed", count(leftovers.len() as i64, "temporary file", "temporary files")),
            "--fix removes them",
        );
        let removed = fix && leftovers.iter().all(|p| fs::remove_file(p).is_ok());
        findings.push(if removed { finding.fixed() } else { finding });
    }
    findings
}

fn database(
    files: &Files,
    redactor: &Redactor,
    drain: Drain,
    fix: bool,
    step: &mut dyn FnMut(&str),
) -> Result<Vec<DoctorFinding>> {
    if !files.db.exists() && !spool::is_waiting(files) {
        return Ok(vec![DoctorFinding::note(
            "database",
            "nothing is recorded yet",
            "recording starts with the first session after `nmem install`",
        )]);
    }
    if fix && spool::rejected(files) > 0 {
        spool::retry_rejected(files)?;
    }
    let mut findings = Vec::new();
    let mut store = Store::open(files, PERSON_WAIT)?;
    if let Some(damage) = damage(&mut store, drain)? {
        let what = format!("{} is damaged: {damage}", files.db.display());
        let remedy = "--fix rebuilds its indexes; if that doesn't help, it copies what can be read into a new database";
        let finding = DoctorFinding::problem("database", what, remedy);
        if !fix {
            return Ok(vec![finding]);
        }
        step("rebuilding indexes");
        let rebuilt = store.reindex().and_then(|()| store.rebuild_index(&mut |_, _| ()));
        if rebuilt.is_err() || damage_of(&store).is_none_or(|damage| damage.is_some()) {
            store.set_aside()?;
            let what = format!("{}; it was set aside", finding.what);
            findings.push(DoctorFinding { what, ..finding }.fixed());
            store = Store::open(files, PERSON_WAIT)?;
        } else {
            findings.push(finding.fixed());
        }
    } else {
        let uses = count(store.counts()?.tool_uses, "tool use", "tool uses");
        findings.push(DoctorFinding::good("database", format!("{}: sound, {uses}", files.db.display())));
    }
    for broken in Store::broken_ones(files) {
        findings.push(if fix { carried_over(&mut store, redactor, &broken, step) } else { set_aside(&broken) });
    }
    findings.extend(text_index(&mut store, fix, step)?);
    findings.push(journal(&store, files, fix)?);
    Ok(findings)
}

/// Drains the spool and returns the damage to the database; `None` if it is sound.
fn damage(store: &mut Store, drain: Drain) -> Result<Option<String>> {
    match drain(store) {
        Err(error) if is_broken(&error) => Ok(Some(format!("{error:#}"))),
        Err(error) => Err(error),
        Ok(()) => damage_of(store).context("the database cannot be checked"),
    }
}

/// Returns the damage to the database: `Some(None)` if it is sound, `None` if it cannot be checked now.
fn damage_of(store: &Store) -> Option<Option<String>> {
    let checked = store.integrity().and_then(|unsound| {
        store.counts()?;
        store.unindexed()?;
        Ok(unsound)
    });
    match checked {
        Ok(unsound) => Some(Some(unsound.join("; ")).filter(|unsound| !unsound.is_empty())),
        Err(error) if is_broken(&error) => Some(Some(format!("{error:#}"))),
        Err(_) => None,
    }
}

fn set_aside(broken: &Path) -> DoctorFinding {
    let what = format!("a broken database was set aside: {}", broken.display());
    DoctorFinding::note("database", what, "--fix copies what can be read of it into the current one")
}

/// Copies the readable rows of a broken database into the current one. Rows that the current one already has are
/// omitted.
fn carried_over(store: &mut Store, redactor: &Redactor, broken: &Path, step: &mut dyn FnMut(&str)) -> DoctorFinding {
    step("reading the broken database");
    let scratch = beside(&store.files().db, "-salvage");
    let carried = salvage(broken, &scratch).and_then(|(from, salvaged)| {
        let file = scratch.join("rows");
        files::write_private(&file, |out| archive::export(&from, None, 0, out, &mut |_| ()))?;
        let mut input = BufReader::new(File::open(&file)?);
        let mut progress = |rows| step(&format!("copying row {rows} of {}", salvaged.rows));
        Ok((salvaged.clone(), archive::restore(store, redactor, &mut input, false, &mut progress)?))
    });
    let _ = fs::remove_dir_all(&scratch);
    let place = broken.display();
    match carried {
        Ok((salvaged, restored)) => {
            let new = count(restored.written.values().sum::<usize>() as i64, "row", "rows");
            let lost = match salvaged.damaged.as_slice() {
                [] => String::new(),
                tables => format!("; parts of {} cannot be read", tables.join(", ")),
            };
            let what = format!("{new} of the broken database {place} were copied into the current one{lost}");
            DoctorFinding::note("database", what, "delete the broken one when you do not need it")
        }
        Err(error) => {
            let what = format!("nothing of the broken database {place} can be read: {error:#}");
            DoctorFinding::note("database", what, "`sqlite3 FILE .recover` may find more; delete it if you do not need it")
        }
    }
}

/// Checks that the full-text indexes match the stored rows and the current text function.
fn text_index(store: &mut Store, fix: bool, step: &mut dyn FnMut(&str)) -> Result<Vec<DoctorFinding>> {
    let version = store.index_text_version()?;
    let missing = store.unindexed()?;
    let what = match (version == INDEX_TEXT_VERSION, missing) {
        (true, 0) => return Ok(vec![DoctorFinding::good("search", "every row is indexed")]),
        (true, n) => format!("{} missing from the index, or superfluous", count(n, "row is", "rows are")),
        (false, _) => format!("the index has version {version}, this nmem uses {INDEX_TEXT_VERSION}"),
    };
    let finding = DoctorFinding::problem("search", what, "--fix rebuilds the index");
    if fix {
        store.rebuild_index(&mut |done, all| step(&format!("indexing row {done} of {all}")))?;
    }
    Ok(vec![if fix { finding.fixed() } else { finding }])
}

fn journal(store: &Store, files: &Files, fix: bool) -> Result<DoctorFinding> {
    let mode = store.journal_mode()?;
    let fit = if files::is_remote(files.folder()) { "truncate" } else { "wal" };
    if mode == fit {
        let why = if fit == "wal" { "a local disk" } else { "a network file system: slower, but safe" };
        return Ok(DoctorFinding::good("database", format!("journal {mode}, on {why}")));
    }
    let what = format!("the journal mode is {mode}, but should be {fit} on this file system");
    let finding = DoctorFinding::problem("database", what, "--fix changes it while no session runs");
    Ok(if fix && store.set_journal_mode(fit).is_ok() { finding.fixed() } else { finding })
}

fn waiting(files: &Files) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    let (waiting, rejected, lost) = (spool::waiting(files), spool::rejected(files), spool::lost(files));
    if waiting > 0 {
        let places: Vec<String> = spool::waiting_places(files).iter().map(|p| p.display().to_string()).collect();
        findings.push(DoctorFinding::problem(
            "events",
            format!("{waiting} waiting in {}", places.join(", ")),
            "they are stored as soon as the database is writable",
        ));
    }
    if rejected > 0 {
        let what = format!("{rejected} rejected, kept in {}", files.rejected.display());
        findings.push(DoctorFinding::note("events", what, "--fix stores them again; a newer nmem may be able to read them"));
    }
    if lost > 0 {
        findings.push(DoctorFinding::note(
            "events",
            format!("{lost} were lost: neither the database nor a spool folder could be written"),
            "free disk space; the next session start reports it, too",
        ));
    }
    if findings.is_empty() {
        findings.push(DoctorFinding::good("events", "none waiting, rejected or lost"));
    }
    findings
}
