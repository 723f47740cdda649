//! `nmem install` and `nmem uninstall`: hooks in an agent's own settings, planned, shown, backed up, written whole.

use super::output;
use crate::config::{self, environment};
use crate::doctor::Finding;
use crate::error::Failure;
use crate::files;
use crate::platforms::claude::HOOKS;
use crate::platforms::settings::{self, Hook};
use crate::project;
use anyhow::{Context, Result};
use clap::ValueEnum;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Hook nmem into an agent
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem install claude-code --dry-run\n\nOther hooks in the file stay as they are. A copy of the file is kept beside it; `nmem uninstall` undoes it byte for byte."
)]
pub struct InstallArguments {
    /// Agents to hook into
    #[arg(required = true, value_enum, value_name = "PLATFORM")]
    platforms: Vec<PlatformArgument>,
    #[command(flatten)]
    place: PlaceArguments,
}

/// Take nmem's hooks out again; what was recorded stays
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: nmem uninstall\n\nThe database stays; the command says where it is.")]
pub struct UninstallArguments {
    /// Agents to leave [default: all]
    #[arg(value_enum, value_name = "PLATFORM")]
    platforms: Vec<PlatformArgument>,
    #[command(flatten)]
    place: PlaceArguments,
}

#[derive(Debug, clap::Args)]
struct PlaceArguments {
    /// The user's settings, or those of one project
    #[arg(long, value_enum, default_value_t = Scope::User)]
    scope: Scope,
    /// The project, with --scope project [default: the current folder]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PlatformArgument {
    ClaudeCode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Scope {
    User,
    Project,
}

/// Bytes of a settings file that are read.
const SETTINGS_BYTES: u64 = 4 << 20;

/// Hooks nmem in.
pub fn install(args: &InstallArguments) -> Result<()> {
    for platform in &args.platforms {
        let PlatformArgument::ClaudeCode = platform;
        let file = settings_file(&args.place)?;
        let program = program(args.place.scope)?;
        let hooks: Vec<Hook> = HOOKS.iter().map(|hook| hook.with(format!("{program} {}", hook.verb))).collect();
        let before = read(&file)?;
        let text = before.clone().unwrap_or_default();
        // Hooks of a binary that has moved are ours as well: they are replaced, not doubled.
        let stale = |command: &str| is_ours(command) && !hooks.iter().any(|h| h.command == command);
        let cleared = if text.trim().is_empty() {
            text.clone()
        } else {
            settings::remove(&text, &stale).map_err(|e| refused(&file, &e))?
        };
        let after = settings::add(&cleared, &hooks).map_err(|e| refused(&file, &e))?;
        if after == text {
            output::say(&format!("nmem is hooked into claude-code already ({})", file.display()))?;
            continue;
        }
        if args.place.dry_run {
            output::say(&diff(&file, &text, &after))?;
            continue;
        }
        if let Some(other) = other_scope(&args.place)? {
            output::warn(&format!("{} hooks nmem in as well: a session would be told everything twice", other.display()));
        }
        if before.is_some() && !is_hooked(&text) {
            write_whole(&backup(&file), &text)?;
        }
        write_whole(&file, &after)?;
        let kept = if before.is_some() { format!("\nThe file as it was: {}", backup(&file).display()) } else { String::new() };
        output::say(&format!(
            "nmem is hooked into claude-code: {} events in {}{kept}\nIt records from the next session on. `nmem uninstall{}` undoes it.",
            HOOKS.len(),
            file.display(),
            if args.place.scope == Scope::Project { " --scope project" } else { "" }
        ))?;
    }
    Ok(())
}

/// Takes the hooks out.
pub fn uninstall(args: &UninstallArguments) -> Result<()> {
    let file = settings_file(&args.place)?;
    let text = read(&file)?.unwrap_or_default();
    if let Err(reason) = settings::checked(&text)
        && !text.trim().is_empty()
    {
        return Err(refused(&file, &reason));
    }
    if !is_hooked(&text) {
        let other = match args.place.scope {
            Scope::User => "`nmem uninstall --scope project` looks into the current project's settings",
            Scope::Project => "`nmem uninstall` looks into the user's settings",
        };
        return output::say(&format!("nmem is not hooked into claude-code ({})\n{other}", file.display()));
    }
    let kept = read(&backup(&file))?;
    let after = match &kept {
        // Nothing but the hooks has changed since: the copy is what was there, byte for byte.
        Some(kept) if is_undone_by(&text, kept) => Some(kept.clone()),
        _ => Some(settings::remove(&text, &is_ours).map_err(|e| refused(&file, &e))?),
    };
    // A file that held nothing else was made by us; a link is somebody's own.
    let is_link = fs::symlink_metadata(&file).is_ok_and(|meta| meta.is_symlink());
    let after = after.filter(|text| kept.is_some() || is_link || text.trim() != "{}");
    if args.place.dry_run {
        return output::say(&diff(&file, &text, after.as_deref().unwrap_or_default()));
    }
    match &after {
        Some(after) => write_whole(&file, after)?,
        None => fs::remove_file(&file).with_context(|| format!("cannot remove {}", file.display()))?,
    }
    if kept.is_some() && after == kept {
        let _ = fs::remove_file(backup(&file));
    }
    let data = config::files()?.value.db;
    let data = if data.exists() { format!("\nWhat was recorded is still in {}", data.display()) } else { String::new() };
    output::say(&format!("nmem is no longer hooked into claude-code ({}){data}", file.display()))
}

/// Looks at the hooks of both scopes, and at the program that they start.
pub fn examine(folder: &Path) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let mut hooked = 0;
    let project = Some(folder.to_path_buf());
    let mut places = vec![
        settings_file(&PlaceArguments { scope: Scope::User, project: None, dry_run: false })?,
        settings_file(&PlaceArguments { scope: Scope::Project, project, dry_run: false })?,
    ];
    places.dedup();
    for file in places {
        let text = match read(&file) {
            Ok(text) => text.unwrap_or_default(),
            Err(error) => {
                findings.push(Finding::problem("hooks", format!("{error:#}"), "make the file readable for you"));
                continue;
            }
        };
        let Ok(value) = settings::checked(&text) else {
            if !text.trim().is_empty() {
                findings.push(Finding::problem("hooks", format!("{} is no sound JSON", file.display()), "mend it"));
            }
            continue;
        };
        let ours = |event: &str| settings::commands(&value, event).into_iter().find(|c| is_ours(c));
        let commands: Vec<(&str, Option<String>)> = HOOKS.iter().map(|hook| (hook.event, ours(hook.event))).collect();
        let missing: Vec<&str> = commands.iter().filter(|(_, c)| c.is_none()).map(|(event, _)| *event).collect();
        if missing.len() == commands.len() {
            continue;
        }
        hooked += 1;
        if !missing.is_empty() {
            let what = format!("{} has no hook for {}", file.display(), missing.join(", "));
            findings.push(Finding::problem("hooks", what, "run `nmem install claude-code` again"));
        }
        for program in commands.iter().filter_map(|(_, c)| gone(c.as_deref()?)).take(1) {
            let what = format!("{} starts {program}, which is not there", file.display());
            findings.push(Finding::problem("hooks", what, "run `nmem install claude-code` again"));
        }
    }
    match hooked {
        0 => findings.push(Finding::problem("hooks", "no agent calls nmem", "run `nmem install claude-code`")),
        1 if findings.is_empty() => findings.push(Finding::good("hooks", "claude-code calls nmem")),
        1 => {}
        _ => findings.push(Finding::note(
            "hooks",
            "both the user's settings and the project's hook nmem in: a session is told everything twice",
            "take one out: nmem uninstall, or nmem uninstall --scope project",
        )),
    }
    let this = std::env::current_exe().context("cannot tell where this binary is")?;
    for other in super::doctor::other_programs(&this) {
        let what = format!("{} is another program of this name", other.display());
        findings.push(Finding::note("hooks", what, "hooks with the bare name start whichever comes first on PATH"));
    }
    Ok(findings)
}

/// The program of a hook's command, if it isn't there. A bare name is looked for on `PATH`, which an agent may have another of.
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

/// Whether adding today's hooks to the copy gives the file as it stands.
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

/// Whether a command line is one of ours, from whichever folder: this program and a verb, with nothing before it, and
/// behind it at most a platform or what a shell does with its output.
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

fn settings_file(place: &PlaceArguments) -> Result<PathBuf> {
    if place.scope == Scope::Project {
        let folder = match &place.project {
            Some(folder) => folder
                .canonicalize()
                .map_err(|e| Failure::new(format!("cannot look at {}: {e}", folder.display()), "give a folder that exists"))?,
            None => std::env::current_dir().context("cannot tell the current folder")?,
        };
        let root = project::worktree_root(&folder, environment::home().as_deref()).unwrap_or(&folder);
        return Ok(root.join(".claude/settings.json"));
    }
    if place.project.is_some() {
        return Err(Failure::usage("--project goes with --scope project", "add --scope project").into());
    }
    let home = environment::home();
    let folder =
        environment::claude_folder(home.as_deref()).ok_or_else(|| Failure::new("no home folder is known", "set HOME"))?;
    Ok(folder.join("settings.json"))
}

/// The settings of the other scope, if nmem is hooked in there too: the agent runs the hooks of both.
fn other_scope(place: &PlaceArguments) -> Result<Option<PathBuf>> {
    let scope = if place.scope == Scope::User { Scope::Project } else { Scope::User };
    let file = settings_file(&PlaceArguments { scope, project: None, dry_run: false })?;
    let hooked = read(&file).ok().flatten().is_some_and(|text| is_hooked(&text));
    Ok(hooked.then_some(file))
}

/// How a shell finds this binary: the name alone in a project's settings, which other machines read too; else the
/// absolute path, by the `PATH` entry where that leads here, since it stays when a package manager moves the file.
fn program(scope: Scope) -> Result<String> {
    if scope == Scope::Project {
        return Ok("nmem".to_string());
    }
    let exe = std::env::current_exe().context("cannot tell where this binary is")?;
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

/// Writes beside the file and renames: a reader sees the old text or the new one. A link stays a link, also one that
/// leads nowhere yet. Settings may hold keys: what is new is for its owner alone, what was there keeps its mode.
fn write_whole(file: &Path, text: &str) -> Result<()> {
    let target = match fs::read_link(file) {
        Ok(link) => file.parent().unwrap_or(Path::new("/")).join(link),
        Err(_) => file.to_path_buf(),
    };
    let target = target.canonicalize().unwrap_or(target);
    let folder = target.parent().context("a settings file without a folder")?;
    let draft = target.with_extension(format!("nmem-{}", std::process::id()));
    let write = || -> std::io::Result<()> {
        fs::create_dir_all(folder)?;
        let _ = fs::remove_file(&draft);
        let mut out = files::append_private(&draft)?;
        out.write_all(text.as_bytes())?;
        if let Ok(meta) = fs::metadata(&target) {
            out.set_permissions(meta.permissions())?;
        }
        out.sync_all()?;
        fs::rename(&draft, &target)
    };
    write().with_context(|| format!("cannot write {}", file.display())).inspect_err(|_| drop(fs::remove_file(&draft)))
}

fn refused(file: &Path, reason: &settings::NotEditable) -> anyhow::Error {
    Failure::new(format!("{} was left alone: {}", file.display(), reason.0), "mend the file, then run the command again").into()
}

/// The lines that change. Edits are insertions or removals at few places, so a common head and tail say enough.
fn diff(file: &Path, before: &str, after: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(a, b)| a == b).count();
    let mut out = vec![format!("{} would change:", file.display())];
    out.extend(old[head.saturating_sub(2)..head].iter().map(|l| format!("  {l}")));
    out.extend(old[head..old.len() - tail].iter().map(|l| format!("- {l}")));
    out.extend(new[head..new.len() - tail].iter().map(|l| format!("+ {l}")));
    out.extend(old[old.len() - tail..].iter().take(2).map(|l| format!("  {l}")));
    out.join("\n")
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
