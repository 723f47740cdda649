//! Use case: nmem's hooks in an agent's settings: examine, plan, and write atomically.

use crate::config::environment;
use crate::error::UserError;
use crate::files;
use crate::model::DoctorFinding;
use crate::platforms::claude::HOOKS;
use crate::platforms::settings::{self, Hook};
use crate::project;
use anyhow::{Context, Result};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Maximum bytes of a settings file.
const SETTINGS_BYTES: u64 = 4 << 20;

/// Whose settings: the user's, or those of a project's folder (`None`: the current one).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    User,
    Project(Option<PathBuf>),
}

/// What installing would change.
#[derive(Debug)]
pub struct InstallPlan {
    pub file: PathBuf,
    /// The current text; empty if there is no file.
    pub before: String,
    /// The text with or without the hooks; `None` deletes the file.
    pub after: Option<String>,
    existed: bool,
    /// The backup made when the hooks were installed.
    kept: Option<String>,
}

impl InstallPlan {
    /// Whether the file stays unchanged.
    pub fn changes_nothing(&self) -> bool {
        self.after.as_deref() == Some(&self.before)
    }
}

/// Plans to install the hooks.
pub fn plan_install(scope: &Scope) -> Result<InstallPlan> {
    let file = settings_file(scope)?;
    let program = program(scope)?;
    let hooks: Vec<Hook> = HOOKS.iter().map(|hook| hook.with(format!("{program} {}", hook.verb))).collect();
    let before = read(&file)?;
    let text = before.clone().unwrap_or_default();
    // Hooks of a moved binary are also ours: they are replaced, not duplicated.
    let stale = |command: &str| is_ours(command) && !hooks.iter().any(|h| h.command == command);
    let cleared =
        if text.trim().is_empty() { text.clone() } else { settings::remove(&text, &stale).map_err(|e| refused(&file, &e))? };
    let after = settings::add(&cleared, &hooks).map_err(|e| refused(&file, &e))?;
    Ok(InstallPlan { file, before: text, after: Some(after), existed: before.is_some(), kept: None })
}

/// Installs the hooks; returns the path of the backup.
pub fn install(plan: &InstallPlan) -> Result<Option<PathBuf>> {
    if plan.existed && !is_hooked(&plan.before) {
        write_whole(&backup(&plan.file), &plan.before)?;
    }
    write_whole(&plan.file, plan.after.as_deref().unwrap_or_default())?;
    Ok(plan.existed.then(|| backup(&plan.file)))
}

/// Plans to remove the hooks; returns the file's path if it has none.
pub fn plan_uninstall(scope: &Scope) -> Result<std::result::Result<InstallPlan, PathBuf>> {
    let file = settings_file(scope)?;
    let text = read(&file)?.unwrap_or_default();
    if let Err(reason) = settings::checked(&text)
        && !text.trim().is_empty()
    {
        return Err(refused(&file, &reason));
    }
    if !is_hooked(&text) {
        return Ok(Err(file));
    }
    let kept = read(&backup(&file))?;
    let after = match &kept {
        // Nothing but the hooks has changed since, so the backup is restored byte for byte.
        Some(kept) if is_undone_by(&text, kept) => Some(kept.clone()),
        _ => Some(settings::remove(&text, &is_ours).map_err(|e| refused(&file, &e))?),
    };
    // We created a file without other content, so delete it, unless it is a link.
    let is_link = fs::symlink_metadata(&file).is_ok_and(|meta| meta.is_symlink());
    let after = after.filter(|text| kept.is_some() || is_link || text.trim() != "{}");
    Ok(Ok(InstallPlan { file, before: text, after, existed: true, kept }))
}

/// Removes the hooks.
pub fn uninstall(plan: &InstallPlan) -> Result<()> {
    match &plan.after {
        Some(after) => write_whole(&plan.file, after)?,
        None => fs::remove_file(&plan.file).with_context(|| format!("cannot remove {}", plan.file.display()))?,
    }
    if plan.kept.is_some() && plan.after == plan.kept {
        let _ = fs::remove_file(backup(&plan.file));
    }
    Ok(())
}

/// Examines the hooks of both scopes and the program that they start.
pub fn examine(folder: &Path) -> Result<Vec<DoctorFinding>> {
    let mut findings = Vec::new();
    let mut installed: Vec<PathBuf> = Vec::new();
    let mut places = vec![settings_file(&Scope::User)?, settings_file(&Scope::Project(Some(folder.to_path_buf())))?];
    places.dedup();
    for file in places {
        let text = match read(&file) {
            Ok(text) => text.unwrap_or_default(),
            Err(error) => {
                findings.push(DoctorFinding::problem("hooks", format!("{error:#}"), "make the file readable for you"));
                continue;
            }
        };
        let Ok(value) = settings::checked(&text) else {
            if !text.trim().is_empty() {
                findings.push(DoctorFinding::problem("hooks", format!("{} is not valid JSON", file.display()), "fix it"));
            }
            continue;
        };
        let ours = |event: &str| settings::commands(&value, event).into_iter().find(|c| is_ours(c));
        let commands: Vec<(&str, Option<String>)> = HOOKS.iter().map(|hook| (hook.event, ours(hook.event))).collect();
        let missing: Vec<&str> = commands.iter().filter(|(_, c)| c.is_none()).map(|(event, _)| *event).collect();
        if missing.len() == commands.len() {
            continue;
        }
        installed.push(file.clone());
        if !missing.is_empty() {
            let what = format!("{} has no hook for {}", file.display(), missing.join(", "));
            findings.push(DoctorFinding::problem("hooks", what, "run `nmem install claude-code` again"));
        }
        for program in commands.iter().filter_map(|(_, c)| gone(c.as_deref()?)).take(1) {
            let what = format!("{} starts {program}, which does not exist", file.display());
            findings.push(DoctorFinding::problem("hooks", what, "run `nmem install claude-code` again"));
        }
    }
    match &installed[..] {
        [] => findings.push(DoctorFinding::problem(
            "hooks",
            "nmem is not installed for any agent",
            "run `nmem install claude-code`",
        )),
        [file] if findings.is_empty() => {
            findings.push(DoctorFinding::good("hooks", format!("installed for claude-code in {}", file.display())));
        }
        [_] => {}
        _ => findings.push(DoctorFinding::note(
            "hooks",
            "nmem is installed in both the user's and the project's settings: every hook runs twice",
            "remove one: nmem uninstall, or nmem uninstall --scope project",
        )),
    }
    let this = std::env::current_exe().context("cannot determine the path of this binary")?;
    for other in other_programs(&this) {
        let what = format!("{} is another program with this name", other.display());
        findings.push(DoctorFinding::note("hooks", what, "hooks that call `nmem` without a path run the first `nmem` on PATH"));
    }
    Ok(findings)
}

/// Other programs of the same name earlier on `PATH`.
fn other_programs(this: &Path) -> Vec<PathBuf> {
    let real = this.canonicalize().unwrap_or_else(|_| this.to_path_buf());
    let found = environment::path_folders().into_iter().map(|folder| folder.join("nmem")).filter(|path| path.is_file());
    found.filter(|path| path.canonicalize().is_ok_and(|p| p != real)).collect()
}

/// The program of a hook's command, if it is missing. A bare name is searched on `PATH`, although the agent's may
/// differ.
fn gone(command: &str) -> Option<String> {
    let program = match command.trim().strip_prefix('\'') {
        Some(quoted) => quoted.split_once('\'')?.0,
        None => command.split_whitespace().next()?,
    };
    let there = match program.contains(['/', '\\']) {
        true => Path::new(program).is_file(),
        false => environment::path_folders().iter().any(|folder| folder.join(program).is_file()),
    };
    (!there).then(|| program.to_string())
}

/// Whether adding today's hooks to the backup yields the current file.
fn is_undone_by(text: &str, kept: &str) -> bool {
    let Ok(value) = settings::checked(text) else { return false };
    let hooks: Vec<Hook> = HOOKS
        .iter()
        .filter_map(|hook| Some(hook.with(settings::commands(&value, hook.event).into_iter().find(|c| is_ours(c))?)))
        .collect();
    settings::add(kept, &hooks).is_ok_and(|again| again == text)
}

fn is_hooked(text: &str) -> bool {
    settings::remove(text, &is_ours).is_ok_and(|without| without != text)
}

/// Whether a command line is one of our hooks, from any folder: this program and a verb, with nothing before it,
/// followed at most by a platform or shell redirections.
fn is_ours(command: &str) -> bool {
    let command = command.trim();
    let (program, rest) = match command.strip_prefix('\'') {
        Some(quoted) => quoted.split_once('\'').unwrap_or_default(),
        None => command.split_once(char::is_whitespace).unwrap_or_default(),
    };
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    let this = std::env::current_exe().is_ok_and(|exe| exe == Path::new(program));
    let mut words = rest.split_whitespace();
    let verb = words.next().is_some_and(|verb| matches!(verb, "record" | "context"));
    let behind = words.next().is_none_or(|w| w.starts_with("--platform") || w.starts_with("||") || w.contains('>'));
    (matches!(name, "nmem" | "nmem.exe") || this) && verb && behind
}

fn settings_file(scope: &Scope) -> Result<PathBuf> {
    let home = environment::home();
    let Scope::Project(folder) = scope else {
        let folder = environment::claude_folder(home.as_deref())
            .ok_or_else(|| UserError::new("the home folder is unknown", "set HOME"))?;
        return Ok(folder.join("settings.json"));
    };
    let folder = match folder {
        Some(folder) => folder
            .canonicalize()
            .map_err(|e| UserError::new(format!("cannot open {}: {e}", folder.display()), "use an existing folder"))?,
        None => std::env::current_dir().context("cannot determine the current folder")?,
    };
    let root = project::worktree_root(&folder, home.as_deref()).unwrap_or(&folder);
    Ok(root.join(".claude/settings.json"))
}

/// The settings of the other scope, if nmem is installed there too: the agent runs the hooks of both.
pub fn other_scope(scope: &Scope) -> Result<Option<PathBuf>> {
    let file = settings_file(&if *scope == Scope::User { Scope::Project(None) } else { Scope::User })?;
    let hooked = read(&file).ok().flatten().is_some_and(|text| is_hooked(&text));
    Ok(hooked.then_some(file))
}

/// How a shell finds this binary. In project settings, which other machines share, by its bare name. Otherwise by
/// absolute path, preferably the one on `PATH`, which stays valid when a package manager moves the file.
fn program(scope: &Scope) -> Result<String> {
    if matches!(scope, Scope::Project(_)) {
        return Ok("nmem".to_string());
    }
    let exe = std::env::current_exe().context("cannot determine the path of this binary")?;
    let real = exe.canonicalize().unwrap_or_else(|_| exe.clone());
    let on_path = environment::path_folders().into_iter().filter(|f| f.is_absolute()).map(|f| f.join("nmem"));
    let stable = on_path.into_iter().find(|p| p.canonicalize().is_ok_and(|p| p == real));
    let path = stable.unwrap_or(exe).display().to_string();
    let plain = path.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+:\\".contains(c));
    Ok(if plain { path } else { format!("'{}'", path.replace('\'', r"'\''")) })
}

fn read(file: &Path) -> Result<Option<String>> {
    use std::io::Read;
    let opened = match fs::File::open(file) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened.with_context(|| format!("cannot read {}", file.display()))?,
    };
    let mut text = String::new();
    opened.take(SETTINGS_BYTES).read_to_string(&mut text).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(Some(text))
}

fn backup(file: &Path) -> PathBuf {
    file.with_file_name("settings.json.before-nmem")
}

/// Writes a new file and renames it. Links are kept, even dangling ones. Settings may contain keys: a new file is
/// private, an existing one keeps its mode.
fn write_whole(file: &Path, text: &str) -> Result<()> {
    let target = match fs::read_link(file) {
        Ok(link) => file.parent().unwrap_or(Path::new("/")).join(link),
        Err(_) => file.to_path_buf(),
    };
    let target = target.canonicalize().unwrap_or(target);
    let folder = target.parent().context("a settings file without a folder")?;
    let temporary = target.with_extension(format!("nmem-{}", std::process::id()));
    let write = || -> std::io::Result<()> {
        fs::create_dir_all(folder)?;
        let _ = fs::remove_file(&temporary);
        let mut out = files::append_private(&temporary)?;
        out.write_all(text.as_bytes())?;
        if let Ok(meta) = fs::metadata(&target) {
            out.set_permissions(meta.permissions())?;
        }
        out.sync_all()?;
        fs::rename(&temporary, &target)
    };
    write().with_context(|| format!("cannot write {}", file.display())).inspect_err(|_| drop(fs::remove_file(&temporary)))
}

fn refused(file: &Path, reason: &settings::NotEditable) -> anyhow::Error {
    UserError::new(format!("{} was left alone: {}", file.display(), reason.0), "fix the file, then run the command again").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_ours_are_known_from_whichever_folder() {
        for command in [
            "/usr/bin/nmem record",
            "nmem context",
            "'/my tools/nmem' record",
            "nmem record --platform claude-code",
            "nmem record || true",
            "nmem record 2>/dev/null",
        ] {
            assert!(is_ours(command), "{command}");
        }
        for command in [
            "/usr/bin/nmemo record",
            "nmem",
            "echo nmem record x",
            "nmem status",
            "rsync -a /data/nmem context",
            "backup --to /srv/nmem record",
            "timeout 5 /usr/bin/nmem record",
            "echo start; /opt/x/nmem record",
        ] {
            assert!(!is_ours(command), "{command}");
        }
    }
}
