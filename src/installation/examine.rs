//! The hooks of all agents, for `nmem doctor` and `nmem status`.

use super::edit::{Edit, first_word, read, without_guard};
use super::location::{AgentFiles, Extras, FILE, Scope, accounts};
use super::{agents, without_mark};
use crate::config::environment;
use crate::files;
use crate::model::DoctorFinding;
use crate::platforms::settings_file::Hook;
use crate::render::clean::line;
use anyhow::{Context, Result};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Examines the hooks of all scopes and the programs that they start. `recorded`: other settings folders in which hooks
/// were installed.
pub fn examine(folder: &Path, recorded: &[PathBuf]) -> Result<Vec<DoctorFinding>> {
    let mut findings = Vec::new();
    let mut is_anywhere = false;
    for (adapter, setup) in agents() {
        let platform = adapter.platform().name();
        let again = || format!("run `nmem install {platform}` again");
        let mut installed: Vec<PathBuf> = Vec::new();
        let mut scopes = 0;
        let both = [Scope::User, Scope::Project(Some(folder.to_path_buf()))];
        for scope in both.into_iter().chain(accounts(adapter, recorded)) {
            let target = AgentFiles::new(adapter, setup, &scope, Extras::default())?;
            let before = installed.len();
            for (file, edit) in &target.edits {
                let text = match read(file) {
                    Ok(text) => text.unwrap_or_default(),
                    Err(error) => {
                        findings.push(DoctorFinding::problem("hooks", format!("{error:#}"), "make the file readable for you"));
                        continue;
                    }
                };
                match state(edit, without_mark(&text)) {
                    State::Absent => {}
                    State::Broken => {
                        let what = format!("{} is not valid JSON", file.display());
                        findings.push(DoctorFinding::problem("hooks", what, "fix it"));
                    }
                    State::Found { missing, gone } => {
                        if !installed.contains(file) {
                            installed.push(file.clone());
                        }
                        if !missing.is_empty() {
                            let what = format!("{} has no hook for {}", file.display(), missing.join(", "));
                            findings.push(DoctorFinding::problem("hooks", what, again()));
                        }
                        if let Some(program) = gone {
                            let what = format!("{} starts {program}, which does not exist", file.display());
                            let is_named = !program.contains(['/', '\\']);
                            let remedy = if is_named { format!("put {program} on PATH") } else { again() };
                            findings.push(DoctorFinding::problem("hooks", what, remedy));
                        }
                    }
                }
            }
            let is_account = matches!(scope, Scope::Account(_));
            for file in installed.drain(before..).collect::<Vec<_>>() {
                match is_account {
                    true => {
                        is_anywhere = true;
                        findings.push(DoctorFinding::good("hooks", format!("installed for {platform} in {}", file.display())));
                    }
                    false => installed.push(file),
                }
            }
            scopes += usize::from(installed.len() > before);
        }
        is_anywhere = is_anywhere || !installed.is_empty();
        match &installed[..] {
            [] => {}
            [file, ..] if scopes == 1 => {
                findings.push(DoctorFinding::good("hooks", format!("installed for {platform} in {}", file.display())));
            }
            _ => findings.push(DoctorFinding::note(
                "hooks",
                format!("nmem is installed for {platform} in both the user's and the project's settings: every hook runs twice"),
                format!("remove one: nmem uninstall {platform}, or nmem uninstall {platform} --scope project"),
            )),
        }
    }
    for plugin in plugins() {
        findings.push(DoctorFinding::good("hooks", format!("the plugin {plugin} of Claude Code")));
    }
    if !is_anywhere && findings.is_empty() {
        let remedy = "run `nmem install --found`, or `nmem install claude-code`";
        findings.push(DoctorFinding::problem("hooks", "nmem is not installed for any agent", remedy));
    }
    findings.extend(same_name()?);
    Ok(findings)
}

/// Says which `nmem` comes first on `PATH` if there are several, and whose each is.
fn same_name() -> Result<Vec<DoctorFinding>> {
    let this = std::env::current_exe().context("cannot determine the path of this binary")?;
    let real = files::canonical(&this).unwrap_or_else(|_| this.clone());
    let others = programs_on_path().into_iter().enumerate().filter(|(_, path)| files::canonical(path).is_ok_and(|p| p != real));
    let finding = |(at, path): (usize, PathBuf)| {
        let first = if at == 0 { ", the first on PATH," } else { "" };
        match is_nmem(&path) {
            true => {
                let what = format!("{}{first} is another copy of nmem", path.display());
                DoctorFinding::note("hooks", what, "remove one of them, or update both")
            }
            false => {
                let what = format!("{}{first} is a program of somebody else with this name", path.display());
                let remedy = match at {
                    0 => format!(
                        "put {} first on PATH; hooks with a path are not affected",
                        real.parent().unwrap_or(&real).display()
                    ),
                    _ => "it does not matter while nmem comes first on PATH".to_string(),
                };
                DoctorFinding::note("hooks", what, remedy)
            }
        }
    };
    Ok(others.map(finding).collect())
}

/// Returns the first `nmem` on `PATH` if it is a program of somebody else.
pub fn foreign_first() -> Option<PathBuf> {
    programs_on_path().into_iter().next().filter(|path| !is_nmem(path))
}

fn programs_on_path() -> Vec<PathBuf> {
    let folders = environment::path_folders().into_iter().filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(FILE)).filter(|path| path.is_file()).collect()
}

/// Maximum time for a program to say its version.
const VERSION: Duration = Duration::from_secs(5);

/// Whether a program is nmem: this one, or one that says so.
fn is_nmem(program: &Path) -> bool {
    let real = files::canonical(program).ok();
    if real.is_some() && real == std::env::current_exe().ok().and_then(|this| files::canonical(&this).ok()) {
        return true;
    }
    let mut command = Command::new(program);
    let started = command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let Ok(mut child) = started else { return false };
    let until = Instant::now() + VERSION;
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() > until {
            let _ = child.kill();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut said = String::new();
    let _ = child.stdout.take().map(|out| out.take(200).read_to_string(&mut said));
    said.starts_with("nmem ") && said.trim_end().ends_with("(nmem-dev)")
}

/// Returns nmem's enabled plugins of Claude Code, by name and marketplace.
pub fn plugins() -> Vec<String> {
    let folder = environment::claude_folder(environment::home().as_deref());
    let text = folder.and_then(|folder| read(&folder.join("settings.json")).ok().flatten()).unwrap_or_default();
    let settings: serde_json::Value = serde_json::from_str(without_mark(&text)).unwrap_or_default();
    let enabled = settings["enabledPlugins"].as_object().into_iter().flatten();
    enabled.filter(|(name, is_on)| name.starts_with("nmem@") && **is_on == true).map(|(name, _)| line(name, 80)).collect()
}

/// The state of an addition in a file.
enum State {
    Absent,
    Broken,
    Found {
        /// Events without a hook.
        missing: Vec<&'static str>,
        /// The program that a hook starts, if it does not exist.
        gone: Option<String>,
    },
}

fn state(edit: &Edit, text: &str) -> State {
    if let Edit::Hooks { shape, .. } = edit
        && !text.trim().is_empty()
        && crate::platforms::settings_file::checked(text, *shape).is_err()
    {
        return State::Broken;
    }
    let (Edit::Hooks { hooks: wanted, .. }, Some(found)) = (edit, edit.as_in(text)) else {
        let is_there = edit.as_in(text).is_some();
        return if is_there { State::Found { missing: Vec::new(), gone: None } } else { State::Absent };
    };
    let Edit::Hooks { hooks: found, .. } = found else { return State::Absent };
    let has = |event: &str| found.iter().any(|hook| hook.on.event == event);
    let missing = wanted.iter().map(|hook| hook.on.event).filter(|event| !has(event)).collect();
    State::Found { missing, gone: found.iter().find_map(|Hook { command, .. }| gone(command)) }
}

/// Returns the program of a hook's command if it is missing. A bare name is searched on `PATH`, although the agent's
/// `PATH` may differ.
fn gone(command: &str) -> Option<String> {
    let (program, _) = first_word(without_guard(command.trim()))?;
    let there = match program.contains(['/', '\\']) {
        true => Path::new(&program).is_file(),
        false => {
            let names = [program.clone(), format!("{program}{}", std::env::consts::EXE_SUFFIX)];
            environment::path_folders().iter().any(|folder| names.iter().any(|name| folder.join(name).is_file()))
        }
    };
    (!there).then_some(program)
}
