//! Use case: finding what is wrong with nmem's own files, and mending what is safe to mend.

use crate::config::Config;
use crate::files;
use crate::index_text::INDEX_TEXT_VERSION;
use crate::model::{Files, Finding, beside};
use crate::render::count;
use crate::store::{PERSON_WAIT, Store, spool};
use anyhow::Result;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Drafts of files that a killed process has left are removed when they are so old.
const STALE: Duration = Duration::from_secs(3600);

/// Stores what waits in the spool.
pub type Drain<'a> = &'a dyn Fn(&mut Store) -> Result<()>;

/// Looks at the data folder and the database; mends with `fix`. `step` is told what goes on.
pub fn examine(config: &Config, drain: Drain, fix: bool, step: &mut dyn FnMut(&str)) -> Vec<Finding> {
    let files = &config.files.value;
    let mut findings = permissions(config, fix);
    findings.extend(leftovers(files, fix));
    step("checking the database");
    match database(files, drain, fix, step) {
        Ok(more) => findings.extend(more),
        Err(error) => findings.push(Finding::problem(
            "database",
            format!("{error:#}"),
            "mend what is named; hooks keep their events in the spool meanwhile",
        )),
    }
    findings.extend(waiting(files));
    findings
}

fn permissions(config: &Config, fix: bool) -> Vec<Finding> {
    let files = &config.files.value;
    let folder = files.folder();
    if fs::symlink_metadata(folder).is_err() {
        return vec![Finding::note(
            "files",
            format!("{} does not exist yet", folder.display()),
            "it is made with the first event",
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
                let what = format!("{} is no regular file: nmem follows no links there", path.display());
                findings.push(Finding::problem("files", what, "put a regular file there, or take it away"));
            }
            Ok(_) if is_open(&path, 0o600) => wrong.push((path, 0o600)),
            _ => {}
        }
    }
    for (path, mode) in wrong {
        let finding =
            Finding::problem("files", format!("others may read {}", path.display()), format!("chmod {mode:o}, or --fix"));
        let mended = fix && fs::symlink_metadata(&path).is_ok_and(|meta| files::tighten(&path, &meta, mode).is_ok());
        findings.push(if mended { finding.fixed() } else { finding });
    }
    if findings.is_empty() {
        findings.push(Finding::good("files", format!("{}, for you alone", folder.display())));
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

/// What killed processes and broken databases have left.
fn leftovers(files: &Files, fix: bool) -> Vec<Finding> {
    let name = files.db.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let entries = fs::read_dir(files.folder()).into_iter().flatten().flatten().map(|e| e.path());
    let is_draft = |p: &PathBuf| {
        let file = p.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let old = fs::symlink_metadata(p).and_then(|m| m.modified()).is_ok_and(|at| at.elapsed().is_ok_and(|age| age > STALE));
        (file.starts_with(&name) || file.starts_with("switches.json") || file.starts_with("mark-key"))
            && file.contains("-new-")
            && old
    };
    let drafts: Vec<PathBuf> = entries.filter(is_draft).collect();
    let mut findings = Vec::new();
    if !drafts.is_empty() {
        let finding = Finding::note(
            "files",
            format!("{} of a process that was killed", count(drafts.len() as i64, "draft", "drafts")),
            "--fix removes them",
        );
        let removed = fix && drafts.iter().all(|p| fs::remove_file(p).is_ok());
        findings.push(if removed { finding.fixed() } else { finding });
    }
    for broken in Store::broken_ones(files) {
        let what = format!("a broken database was set aside: {}", broken.display());
        findings.push(Finding::note(
            "database",
            what,
            format!(
                "`sqlite3 {} .recover` may read what is left of it; delete it if it holds nothing that you miss",
                broken.display()
            ),
        ));
    }
    findings
}

fn database(files: &Files, drain: Drain, fix: bool, step: &mut dyn FnMut(&str)) -> Result<Vec<Finding>> {
    if !files.db.exists() && !spool::is_waiting(files) {
        return Ok(vec![Finding::note(
            "database",
            "nothing is recorded yet",
            "recording begins with the first session after `nmem install claude-code`",
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
        findings.push(Finding::good(
            "database",
            format!("{}: sound, {}", files.db.display(), count(counts.tool_uses, "tool use", "tool uses")),
        ));
    } else {
        let what = format!("{} is damaged: {}", files.db.display(), unsound.join("; "));
        let finding = Finding::problem("database", what, "--fix rebuilds its indexes, and sets it aside if that doesn't help");
        if !fix {
            return Ok(vec![finding]);
        }
        step("rebuilding indexes");
        let mended = store.reindex().and_then(|()| store.rebuild_index(&mut |_, _| ())).and_then(|()| store.integrity());
        if !mended.is_ok_and(|left| left.is_empty()) {
            store.set_aside()?;
            return Ok(vec![
                Finding { what: format!("{}; it was set aside, and the next event begins a new one", finding.what), ..finding }
                    .fixed(),
            ]);
        }
        findings.push(finding.fixed());
    }
    findings.extend(text_index(&mut store, fix, step)?);
    findings.push(journal(&store, files, fix)?);
    Ok(findings)
}

/// The text indexes hold a row for each row, made by today's text function.
fn text_index(store: &mut Store, fix: bool, step: &mut dyn FnMut(&str)) -> Result<Vec<Finding>> {
    let version = store.index_text_version()?;
    let missing = store.unindexed()?;
    let what = match (version == INDEX_TEXT_VERSION, missing) {
        (true, 0) => return Ok(vec![Finding::good("search", "every row is in the index")]),
        (true, n) => format!("{} missing from the index, or in it without a row", count(n, "row is", "rows are")),
        (false, _) => format!("the index was made by version {version} of its text function, this nmem has {INDEX_TEXT_VERSION}"),
    };
    let finding = Finding::problem("search", what, "--fix makes the index anew");
    if fix {
        store.rebuild_index(&mut |done, all| step(&format!("indexing row {done} of {all}")))?;
    }
    Ok(vec![if fix { finding.fixed() } else { finding }])
}

fn journal(store: &Store, files: &Files, fix: bool) -> Result<Finding> {
    let mode = store.journal_mode()?;
    let fit = if files::is_remote(files.folder()) { "truncate" } else { "wal" };
    if mode == fit {
        let why = if fit == "wal" { "a local disk" } else { "a network file system: slower, but safe" };
        return Ok(Finding::good("database", format!("journal {mode}, on {why}")));
    }
    let what = format!("the journal is {mode}, and should be {fit} on this file system");
    let finding = Finding::problem("database", what, "--fix changes it while no session runs");
    Ok(if fix && store.set_journal_mode(fit).is_ok() { finding.fixed() } else { finding })
}

fn waiting(files: &Files) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (waiting, rejected, lost) = (spool::waiting(files), spool::rejected(files), spool::lost(files));
    if waiting > 0 {
        let places: Vec<String> = spool::waiting_places(files).iter().map(|p| p.display().to_string()).collect();
        findings.push(Finding::problem(
            "events",
            format!("{waiting} wait in {}", places.join(", ")),
            "they are stored as soon as the database can be written",
        ));
    }
    if rejected > 0 {
        let what = format!("{rejected} could not be stored and lie in {}", files.rejected.display());
        findings.push(Finding::note("events", what, "--fix tries them again; a newer nmem may understand them"));
    }
    if lost > 0 {
        findings.push(Finding::note(
            "events",
            format!("{lost} were lost: no place could be written"),
            "make room on the disk; the next session's start says it too",
        ));
    }
    if findings.is_empty() {
        findings.push(Finding::good("events", "none waits, none was rejected, none was lost"));
    }
    findings
}
