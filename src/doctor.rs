//! Use case: checks nmem's own files, and repairs what can be repaired safely.

use crate::config::Config;
use crate::files;
use crate::index_text::INDEX_TEXT_VERSION;
use crate::model::{DoctorFinding, Files, beside};
use crate::render::count;
use crate::store::{PERSON_WAIT, Store, spool};
use anyhow::Result;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Age at which leftover temporary files of killed processes are removed.
const STALE: Duration = Duration::from_secs(3600);

/// Drains the spool.
pub type Drain<'a> = &'a dyn Fn(&mut Store) -> Result<()>;

/// Examines the data folder and the database; repairs with `fix`. `step` receives progress.
pub fn examine(config: &Config, drain: Drain, fix: bool, step: &mut dyn FnMut(&str)) -> Vec<DoctorFinding> {
    let files = &config.files.value;
    let mut findings = permissions(config, fix);
    findings.extend(leftovers(files, fix));
    step("checking the database");
    match database(files, drain, fix, step) {
        Ok(more) => findings.extend(more),
        Err(error) => findings.push(DoctorFinding::problem(
            "database",
            format!("{error:#}"),
            "fix the problem; meanwhile hooks keep their events in the spool",
        )),
    }
    findings.extend(waiting(files));
    findings
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

/// Leftovers of killed processes, and broken databases.
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
    for broken in Store::broken_ones(files) {
        let what = format!("a broken database was set aside: {}", broken.display());
        findings.push(DoctorFinding::note(
            "database",
            what,
            format!("`sqlite3 {} .recover` may recover its data; delete it if you do not need it", broken.display()),
        ));
    }
    findings
}

fn database(files: &Files, drain: Drain, fix: bool, step: &mut dyn FnMut(&str)) -> Result<Vec<DoctorFinding>> {
    if !files.db.exists() && !spool::is_waiting(files) {
        return Ok(vec![DoctorFinding::note(
            "database",
            "nothing is recorded yet",
            "recording starts with the first session after `nmem install claude-code`",
        )]);
    }
    if fix && spool::rejected(files) > 0 {
        spool::retry_rejected(files)?;
    }
    let mut store = Store::open(files, PERSON_WAIT)?;
    drain(&mut store)?;
    let mut findings = Vec::new();
    let unsound = store.integrity()?;
    if unsound.is_empty() {
        let counts = store.counts()?;
        findings.push(DoctorFinding::good(
            "database",
            format!("{}: sound, {}", files.db.display(), count(counts.tool_uses, "tool use", "tool uses")),
        ));
    } else {
        let what = format!("{} is damaged: {}", files.db.display(), unsound.join("; "));
        let finding =
            DoctorFinding::problem("database", what, "--fix rebuilds its indexes, and sets it aside if that doesn't help");
        if !fix {
            return Ok(vec![finding]);
        }
        step("rebuilding indexes");
        let repaired = store.reindex().and_then(|()| store.rebuild_index(&mut |_, _| ())).and_then(|()| store.integrity());
        if !repaired.is_ok_and(|left| left.is_empty()) {
            store.set_aside()?;
            return Ok(vec![
                DoctorFinding {
                    what: format!("{}; it was set aside, and the next event creates a new one", finding.what),
                    ..finding
                }
                .fixed(),
            ]);
        }
        findings.push(finding.fixed());
    }
    findings.extend(text_index(&mut store, fix, step)?);
    findings.push(journal(&store, files, fix)?);
    Ok(findings)
}

/// Whether the full-text indexes match the stored rows and the current text function.
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
