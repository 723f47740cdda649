//! Shared by every run: the redactor, the error log that `nmem status` shows, projects of folders, and pauses that apply.

use crate::config::pauses::{ProjectIdentity, RecordingPause};
use crate::config::{self, Config, environment};
use crate::domains;
use crate::error::UserError;
use crate::files::{self, append_private, make_folder};
use crate::model::{Event, Files, LogLevel, Millis, Platform, ProjectId, ProjectRow, SearchScope, beside};
use crate::project;
use crate::redact::{Clean, Redactor};
use crate::store::{HOOK_WAIT, Store};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

/// Creates the redactor with the user's patterns. The redactor reads the key for marks when it creates its first mark.
///
/// # Errors
///
/// A pattern that does not compile: without it, nmem does not know everything that the user considers secret.
pub fn redactor(config: &Config) -> Result<Redactor> {
    let key = config.mark_key.clone();
    let made = Redactor::new(&config.redact.value, &config.ignored(), Some(Box::new(move || files::own_key(&key))));
    made.map_err(|e| {
        let what = format!("{}: {}", config.file.display(), e.split_whitespace().collect::<Vec<_>>().join(" "));
        UserError::new(what, "fix it; until then hooks record nothing").into()
    })
}

/// Logs an error, redacted.
pub fn log_error(message: &str) {
    log_at(LogLevel::Error, message);
}

/// Logs a line, redacted, if the log level includes it.
pub fn log_at(level: LogLevel, message: &str) {
    if let Ok(files) = config::files() {
        // Errors are rare, so loading the user's patterns again costs little.
        let own = config::load(&[]).ok().and_then(|config| redactor(&config).ok());
        let clean = own.unwrap_or_default().clean(message.to_string());
        write(&files.value, environment::log_level(), level, environment::now(), &clean);
    }
}

/// The scope to check for pauses: a session, its folders (current and first), and a project given by name.
#[derive(Clone, Copy, Debug, Default)]
pub struct Where<'a> {
    pub session: Option<(Platform, &'a str)>,
    pub folders: [Option<&'a str>; 2],
    pub project: Option<&'a ProjectId>,
}

/// Whether recording is paused there now. One applicable pause is enough.
pub fn is_paused(projects: &Projects, at: &Where, now: Millis) -> bool {
    pause(projects, at, now).is_some()
}

/// Returns the reason why nothing may be recorded there now; `None` if recording is on.
pub fn why_off(projects: &Projects, at: &Where, now: Millis) -> Option<String> {
    let config = projects.config;
    if let Some(name) = environment::switched_off() {
        return Some(format!("{name} disables nmem"));
    }
    if !config.enabled.value {
        return Some(format!("enabled = false ({}): nothing is recorded here", config.enabled.source));
    }
    is_paused(projects, at, now).then(|| "recording is paused here: `nmem on` resumes it".into())
}

/// Returns the pause that applies there now. If several apply, one without an end is preferred.
pub fn pause<'a>(projects: &Projects<'a>, at: &Where, now: Millis) -> Option<&'a RecordingPause> {
    let config = projects.config;
    let off: Vec<&RecordingPause> = config.switches.off.iter().filter(|off| off.holds(now)).collect();
    let places = places(projects, at, &off);
    let applicable = off.into_iter().filter(|off| off.is_about(at.session, &places));
    applicable.min_by_key(|off| off.until.is_some())
}

/// Returns the projects there if a pause needs them: identifying a project reads its repository and the store.
pub fn places(projects: &Projects, at: &Where, switches: &[&RecordingPause]) -> Vec<ProjectIdentity> {
    if !switches.iter().any(|off| off.asks_for_project()) {
        return Vec::new();
    }
    let store = Store::open_to_read(&projects.config.files.value, HOOK_WAIT).ok().flatten();
    let folders = at.folders.into_iter().flatten().map(|folder| projects.look_up(folder, store.as_ref()).known);
    let named = at.project.map(|id| projects.look_up_named(id, store.as_ref()));
    folders.chain(named).collect()
}

/// Identifies projects under the settings of this run.
#[derive(Clone, Copy, Debug)]
pub struct Projects<'a> {
    pub config: &'a Config,
    pub redactor: &'a Redactor,
}

/// A folder and its project.
#[derive(Debug)]
pub struct FolderProject {
    pub known: ProjectIdentity,
    /// `None`: the folder is not a project (home, `/`).
    pub id: Option<ProjectId>,
    /// `None`: nothing is stored for it yet.
    pub row: Option<ProjectRow>,
    /// Projects in folders below, newest first, if the folder is in no repository.
    pub below: Vec<ProjectRow>,
}

impl FolderProject {
    /// The projects that a question in this folder is about; `None` if nothing is stored for any.
    pub fn scope(&self) -> Option<SearchScope> {
        let projects: Vec<i64> = self.row.iter().chain(&self.below).map(|row| row.id).collect();
        (!projects.is_empty()).then_some(SearchScope { projects })
    }

    /// Display name; `None` if the folder is not a project.
    pub fn name(&self) -> Option<&str> {
        self.row.as_ref().map(|row| row.name.as_str()).or(self.id.as_ref().map(|id| id.name.as_str()))
    }
}

impl Projects<'_> {
    /// Identifies the project of a folder.
    pub fn identify(&self, folder: &str) -> Option<ProjectId> {
        let folder = Path::new(folder);
        let project = project::identify(folder, self.config.home.as_deref(), self.config.project_named(folder))?;
        let domain = self.config.domain.value.clone().filter(|name| domains::text(name).is_some());
        Some(ProjectId { domain, ..project })
    }

    /// Returns the project of an event: the one that it names, or that of its folder.
    pub fn of_event(&self, event: &Event) -> Option<Clean<ProjectId>> {
        let found = event.project.clone().or_else(|| {
            let cwd = event.cwd.as_deref()?;
            self.by_url(cwd, event.repository_url.as_deref()).or_else(|| self.identify(cwd))
        });
        found.map(|id| self.redactor.clean(id))
    }

    /// Identifies the project of a repository in which a session works; `None` if it belongs to the session's own, whose
    /// root is `own`.
    pub fn elsewhere(&self, repository: &str, own: Option<&str>) -> Option<Clean<ProjectId>> {
        if own.is_some_and(|own| project::is_submodule(Path::new(repository), Path::new(own))) {
            return None;
        }
        self.identify(repository).map(|id| self.redactor.clean(id))
    }

    /// Identifies the project of a folder that is gone by the URL that a session's file names.
    fn by_url(&self, cwd: &str, url: Option<&str>) -> Option<ProjectId> {
        let (url, folder, home) = (url?, Path::new(cwd), self.config.home.as_deref());
        let is_named = self.config.project_named(folder).is_some();
        let is_there = folder.is_dir() || project::worktree_root(folder, home).is_some();
        if is_named || is_there { None } else { project::of_url(url, cwd, home) }
    }

    /// Looks up the project of a folder, with its row in the store.
    pub fn look_up(&self, folder: &str, store: Option<&Store>) -> FolderProject {
        let path = Path::new(folder);
        let real = files::canonical(path).unwrap_or_else(|_| path.to_path_buf());
        let Some(id) = self.identify(folder) else {
            return FolderProject {
                known: ProjectIdentity { folder: real, ..ProjectIdentity::default() },
                id: None,
                row: None,
                below: Vec::new(),
            };
        };
        let id = self.redactor.clean(id);
        let is_in_repository = id.keys.iter().any(|key| !key.starts_with("dir:"));
        let below = store.filter(|_| !is_in_repository).and_then(|store| store.projects_below(&id.root).ok()).unwrap_or_default();
        let (known, row) = look_up(real, &id, store);
        FolderProject { known, id: Some((*id).clone()), row, below }
    }

    /// Looks up a project given by name, without a folder.
    pub fn look_up_named(&self, named: &ProjectId, store: Option<&Store>) -> ProjectIdentity {
        look_up(PathBuf::new(), &self.redactor.clean(named.clone()), store).0
    }
}

fn look_up(folder: PathBuf, id: &Clean<ProjectId>, store: Option<&Store>) -> (ProjectIdentity, Option<ProjectRow>) {
    let row = store.and_then(|s| s.project_by_identity(id).ok().flatten());
    let mut keys = row.as_ref().zip(store).and_then(|(row, s)| s.project_keys(row.id).ok()).unwrap_or_default();
    let is_part = id.places.iter().any(|place| keys.contains(place));
    if !is_part {
        keys.extend(id.keys.iter().cloned());
    }
    (ProjectIdentity { folder, keys, is_part }, row)
}

/// Bytes at which the log is rotated.
const LIMIT: u64 = 256 << 10;

/// One log entry.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LogLine {
    pub at: Millis,
    pub level: String,
    pub message: String,
}

/// Appends an entry. Failures are ignored: there is nowhere left to report them.
pub fn write(files: &Files, wanted: LogLevel, level: LogLevel, at: Millis, message: &Clean<String>) {
    if wanted < level || level == LogLevel::Off {
        return;
    }
    if let Some(folder) = files.log.parent().filter(|f| !f.is_dir()) {
        let _ = make_folder(folder);
    }
    if fs::metadata(&files.log).is_ok_and(|m| m.len() > LIMIT) {
        let _ = fs::rename(&files.log, beside(&files.log, "-old"));
    }
    let level = format!("{level:?}").to_lowercase();
    let line = serde_json::json!({"at": at, "level": level, "message": **message});
    if let Ok(mut file) = append_private(&files.log) {
        let _ = file.write_all(format!("{line}\n").as_bytes());
    }
}

/// Returns the last errors, newest first.
pub fn last_errors(files: &Files, limit: usize) -> Vec<LogLine> {
    let Ok(file) = File::open(&files.log) else { return Vec::new() };
    let lines = BufReader::new(file).lines().map_while(Result::ok);
    let mut errors: Vec<LogLine> =
        lines.filter_map(|l| serde_json::from_str(&l).ok()).filter(|l: &LogLine| l.level == "error").collect();
    errors.reverse();
    errors.truncate(limit);
    errors
}
