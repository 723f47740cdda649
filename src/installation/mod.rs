//! Use case: installs hooks in agents' settings. Files: `location` (settings of an agent), `edit` (changes of a file),
//! `examine` (what is installed).

mod edit;
mod examine;
mod location;

pub use examine::{examine, foreign_first, plugins};
pub use location::{Extras, MCP_CLIENTS, McpClient, Scope, accounts, is_on_machine, unusual_folder};

use crate::error::UserError;
use crate::platforms::ADAPTERS;
use crate::platforms::adapter::Adapter;
use crate::platforms::json_repair::NotEditable;
use crate::platforms::settings_file::{self, Setup};
use anyhow::Result;
use edit::{Edit, backup, read, remove_file, write_whole};
use location::AgentFiles;
use std::path::{Path, PathBuf};

/// Byte order mark that Windows programs write at the start of a file.
const MARK: &str = "\u{feff}";

/// The change to one file.
#[derive(Debug)]
pub struct SettingsChange {
    pub file: PathBuf,
    /// The current text; `None` if there is no file.
    pub before: Option<String>,
    /// The new text; `None` deletes the file.
    pub after: Option<String>,
    /// The backup that installing creates, or that removing restores.
    pub backup: Option<PathBuf>,
}

impl SettingsChange {
    pub fn changes_nothing(&self) -> bool {
        self.before == self.after
    }
}

/// The changes that installing or removing would make for one agent.
#[derive(Debug)]
pub struct InstallPlan {
    pub changes: Vec<SettingsChange>,
    base: PathBuf,
}

impl InstallPlan {
    /// Whether no file changes.
    pub fn changes_nothing(&self) -> bool {
        self.changes.iter().all(SettingsChange::changes_nothing)
    }
}

/// Returns the agents that have hooks, those on this machine first.
pub fn agents() -> Vec<(&'static dyn Adapter, &'static Setup)> {
    let mut agents: Vec<(&dyn Adapter, &Setup)> =
        ADAPTERS.iter().filter_map(|adapter| Some((*adapter, adapter.setup()?))).collect();
    agents.sort_by_cached_key(|(adapter, setup)| (!is_on_machine(*adapter, setup), adapter.platform()));
    agents
}

/// Plans to install the hooks.
pub fn plan_install(adapter: &dyn Adapter, setup: &Setup, scope: &Scope, extras: Extras) -> Result<InstallPlan> {
    plan_additions(AgentFiles::new(adapter, setup, scope, extras)?)
}

/// Plans to add nmem's tools to a client that takes MCP servers.
pub fn plan_client(client: &McpClient) -> Result<InstallPlan> {
    plan_additions(AgentFiles::of_client(client)?)
}

fn plan_additions(target: AgentFiles) -> Result<InstallPlan> {
    let mut changes = Vec::new();
    for file in target.files() {
        let before = read(file)?;
        let mut text = before.clone().unwrap_or_default();
        let is_new = before.is_some() && !target.of_file(file).any(|edit| edit.as_in(without_mark(&text)).is_some());
        for edit in target.of_file(file) {
            text = edited(&text, |text| edit.add(text)).map_err(|e| refused(file, &e))?;
        }
        let backup = is_new.then(|| backup(file));
        // A file of that name that the user created, or a remnant of an interrupted installation.
        if let Some(kept) = backup.as_ref()
            && read(kept)?.is_some_and(|kept| Some(kept) != before)
        {
            return Err(UserError::new(
                format!("{} is there already", kept.display()),
                "move it away, then run the command again",
            )
            .into());
        }
        changes.push(SettingsChange { file: file.to_path_buf(), before, after: Some(text), backup });
    }
    Ok(InstallPlan { changes, base: target.base })
}

/// Installs the hooks.
pub fn install(plan: &InstallPlan) -> Result<()> {
    for change in plan.changes.iter().filter(|change| !change.changes_nothing()) {
        if let (Some(backup), Some(before)) = (&change.backup, &change.before) {
            write_whole(backup, before)?;
        }
        write_whole(&change.file, change.after.as_deref().unwrap_or_default())?;
    }
    Ok(())
}

/// Plans to remove everything that nmem has added for an agent; without changes if there is nothing. A block with
/// instructions is kept while another agent reads it.
pub fn plan_uninstall(adapter: &dyn Adapter, setup: &Setup, scope: &Scope, others: &[&Setup]) -> Result<InstallPlan> {
    let is_project = matches!(scope, Scope::Project(_));
    let is_shared = others.iter().any(|other| other.instructions == setup.instructions);
    let guidance = is_project && !is_shared;
    let extras = Extras { search: true, guidance, mcp: true, status_line: true, without_hooks: false, asks_for_notes: false };
    plan_removals(AgentFiles::new(adapter, setup, scope, extras)?)
}

/// Plans to remove nmem's tools from a client; without changes if there are none.
pub fn plan_client_removal(client: &McpClient) -> Result<InstallPlan> {
    plan_removals(AgentFiles::of_client(client)?)
}

fn plan_removals(target: AgentFiles) -> Result<InstallPlan> {
    let mut changes = Vec::new();
    for file in target.files() {
        // A file that does not name nmem is not ours, even if it is malformed.
        let Some(text) = read(file)?.filter(|text| names_us(text)) else { continue };
        let wanted: Vec<&Edit> = target.of_file(file).collect();
        if let Some(Edit::Hooks { shape, .. }) = wanted.first() {
            settings_file::checked(&text, *shape).map_err(|reason| refused(file, &reason))?;
        }
        let present: Vec<Edit> = wanted.iter().filter_map(|edit| edit.as_in(without_mark(&text))).collect();
        if present.is_empty() {
            continue;
        }
        let kept = read(&backup(file))?;
        // Nothing but the additions has changed since: the backup is restored byte for byte.
        let is_undone = kept.as_ref().is_some_and(|kept| is_made_from(&text, kept, &present));
        let after = match kept.filter(|_| is_undone) {
            Some(kept) => Some(kept),
            None => {
                let mut without = text.clone();
                for edit in &present {
                    without = edited(&without, |text| edit.remove(text)).map_err(|e| refused(file, &e))?;
                }
                // We created a file without other content, so delete it, unless it is a link.
                Some(without).filter(|text| !is_empty(text) || backup(file).is_file() || file.is_symlink())
            }
        };
        changes.push(SettingsChange { file: file.to_path_buf(), before: Some(text), after, backup: Some(backup(file)) });
    }
    Ok(InstallPlan { changes, base: target.base })
}

/// Removes the hooks.
pub fn uninstall(plan: &InstallPlan) -> Result<()> {
    for change in &plan.changes {
        match &change.after {
            Some(after) => write_whole(&change.file, after)?,
            None => remove_file(&change.file, &plan.base)?,
        }
        if let Some(backup) = &change.backup {
            let _ = std::fs::remove_file(backup);
        }
    }
    Ok(())
}

/// Whether nmem's hooks are installed for an agent.
pub fn is_installed(adapter: &dyn Adapter, setup: &Setup, scope: &Scope) -> Result<bool> {
    let target = AgentFiles::new(adapter, setup, scope, Extras::default())?;
    let is_hooked = |(file, edit): &(PathBuf, Edit)| {
        let text = read(file).ok().flatten().unwrap_or_default();
        edit.as_in(without_mark(&text)).is_some()
    };
    Ok(target.edits.iter().any(is_hooked))
}

/// Returns the file of the other scope if nmem is installed there too: the agent runs the hooks of both.
pub fn other_scope(adapter: &dyn Adapter, setup: &Setup, scope: &Scope) -> Result<Option<PathBuf>> {
    let other = if matches!(scope, Scope::Project(_)) { Scope::User } else { Scope::Project(None) };
    let target = AgentFiles::new(adapter, setup, &other, Extras::default())?;
    let own = AgentFiles::new(adapter, setup, scope, Extras::default())?;
    let file = target.files().first().map(|file| file.to_path_buf());
    // In the home folder both scopes have the same file.
    let file = file.filter(|file| own.files().first() != Some(&file.as_path()));
    Ok(if is_installed(adapter, setup, &other)? { file } else { None })
}

/// Whether a text names nmem, or this program under another name.
fn names_us(text: &str) -> bool {
    let this = std::env::current_exe().ok();
    text.contains("nmem") || this.and_then(|exe| Some(text.contains(exe.to_str()?))).unwrap_or_default()
}

/// Whether a text is a backup plus the additions, applied in either order.
fn is_made_from(text: &str, kept: &str, present: &[Edit]) -> bool {
    let again = |edits: Vec<&Edit>| {
        let mut edits = edits.into_iter();
        edits.try_fold(kept.to_string(), |text, edit| edited(&text, |text| edit.add(text))).is_ok_and(|again| again == text)
    };
    again(present.iter().collect()) || again(present.iter().rev().collect())
}

/// Edits a text after its byte order mark.
fn edited(text: &str, edit: impl Fn(&str) -> Result<String, NotEditable>) -> Result<String, NotEditable> {
    let inside = without_mark(text);
    Ok(format!("{}{}", &text[..text.len() - inside.len()], edit(inside)?))
}

fn without_mark(text: &str) -> &str {
    text.strip_prefix(MARK).unwrap_or(text)
}

/// Whether a file is empty: no text, or JSON without content.
fn is_empty(text: &str) -> bool {
    let json = serde_json::from_str::<serde_json::Value>(text).ok();
    let members = json.as_ref().and_then(serde_json::Value::as_object);
    text.trim().is_empty() || members.is_some_and(|members| members.keys().all(|key| key == "version"))
}

fn refused(file: &Path, reason: &NotEditable) -> anyhow::Error {
    UserError::new(format!("{} was left alone: {}", file.display(), reason.0), "fix the file, then run the command again").into()
}
