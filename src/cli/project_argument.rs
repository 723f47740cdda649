//! Shared by commands that read a project: its `--project` argument, its settings, and its store.

use super::output;
use crate::config::{self, Config};
use crate::error::{NO_PROJECT, UserError};
use crate::evidence::{Git, ProjectRecords};
use crate::files;
use crate::index_text::INDEX_TEXT_VERSION;
use crate::ingest::persist;
use crate::ingest::run::{Caller, Run};
use crate::model::{Platform, SearchScope};
use crate::project::git;
use crate::redact::{REDACTION_VERSION, Redactor};
use crate::redact_stored::OldSecrets;
use crate::render::count;
use crate::runtime::{FolderProject, Projects, redactor};
use crate::store::{PERSON_WAIT, Store, spool};
use anyhow::{Context, Result};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Arguments of every command that reads a project.
#[derive(Debug, Default, clap::Args)]
pub struct ProjectArgument {
    /// Use this project, by its folder or name, instead of the current one
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
}

impl ProjectArgument {
    /// The absolute folder.
    pub fn folder(&self) -> Result<PathBuf> {
        match &self.project {
            Some(folder) => files::canonical(folder).or_else(|error| {
                named_folder(folder).ok_or_else(|| {
                    UserError::new(
                        format!("cannot open {}: {error}", folder.display()),
                        "give a folder, or the name of one project; `nmem project list` shows both",
                    )
                    .into()
                })
            }),
            None => std::env::current_dir().context("cannot determine the current folder"),
        }
    }

    /// Returns the folder and all settings for it. Reports unreadable files and uses the defaults instead.
    pub fn config(&self) -> Result<(PathBuf, Config)> {
        let folder = self.folder()?;
        let (config, problem) = self.config_and_problem(&folder)?;
        if let Some(problem) = problem {
            output::warn(&format!("nothing is recorded: {problem:#}"));
        }
        for key in &config.unknown {
            output::warn(&format!("{}: `{key}` is not a known setting", config.file.display()));
        }
        Ok((folder, config))
    }

    pub fn config_and_problem(&self, folder: &Path) -> Result<(Config, Option<anyhow::Error>)> {
        let (config, problem) = config::load_what_can_be(&[folder])?;
        let problem = problem.or_else(|| redactor(&config).err());
        Ok((config, problem))
    }

    /// Returns the stored project, or the project that the folder would become.
    pub fn find(&self, folder: &Path, config: &Config, store: Option<&Store>) -> FolderProject {
        let redactor = redactor(config).unwrap_or_default();
        Projects { config, redactor: &redactor }.look_up(&folder.to_string_lossy(), store)
    }
}

/// The folder of the only project with a name.
fn named_folder(name: &Path) -> Option<PathBuf> {
    let name = name.to_str()?;
    let config = config::load_what_can_be(&[]).ok()?.0;
    let store = open(&config).ok()??;
    let mut named = store.projects().ok()?.into_iter().map(|(project, ..)| project).filter(|project| project.name == name);
    let project = named.next().filter(|_| named.next().is_none())?;
    let root = PathBuf::from(project.root);
    Some(files::canonical(&root).unwrap_or(root))
}

/// Argument of commands that list the work of one branch.
#[derive(Debug, clap::Args)]
pub struct BranchArgument {
    /// Only sessions on the current branch, or on NAME
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    branch: Option<String>,
}

impl BranchArgument {
    pub fn is_set(&self) -> bool {
        self.branch.is_some()
    }

    /// Returns the sessions on the branch; `None` if all are wanted.
    ///
    /// # Errors
    ///
    /// The folder has no current branch.
    pub fn sessions(&self, store: &Store, folder: &Path, config: &Config) -> Result<Option<HashSet<(Platform, String)>>> {
        let current = || git::state_at(folder, config.home.as_deref()).and_then(|state| state.branch);
        let none = || UserError::usage("this folder is on no branch", "name one: --branch=NAME");
        let Some(given) = self.branch.as_deref() else { return Ok(None) };
        let name = if given.is_empty() { current().ok_or_else(none)? } else { given.to_string() };
        Ok(Some(store.sessions_on_branch(&name)?.into_iter().collect()))
    }
}

/// The records of a project, and its repository.
pub struct ProjectEvidence {
    pub store: Store,
    scope: SearchScope,
    redactor: Redactor,
    git: Git,
}

impl ProjectEvidence {
    /// Opens the records of the project in a folder.
    pub fn open(argument: &ProjectArgument) -> Result<ProjectEvidence> {
        let (folder, config) = argument.config()?;
        let git = Git::open(&folder)?;
        let nothing = || UserError::new("nothing is recorded here yet", "`nmem import` reads past sessions");
        let store = open(&config)?.ok_or_else(nothing)?;
        let place = argument.find(&folder, &config, Some(&store));
        let none = || UserError::new(NO_PROJECT, "change into a project folder, or use --project DIR");
        place.name().ok_or_else(none)?;
        let scope = place.scope().ok_or_else(nothing)?;
        Ok(ProjectEvidence { store, scope, redactor: redactor(&config)?, git })
    }

    pub fn recorded(&self) -> ProjectRecords<'_> {
        ProjectRecords { store: &self.store, scope: &self.scope, redactor: &self.redactor, git: &self.git }
    }
}

/// Opens the store for reading, after draining the spool; `None` if nothing was ever recorded.
pub fn open(config: &Config) -> Result<Option<Store>> {
    let files = &config.files.value;
    if spool::is_waiting(files) {
        let drained = Store::open(files, PERSON_WAIT).and_then(|mut store| drain(config, &mut store));
        if let Err(error) = drained {
            output::warn(&format!("{} waiting events could not be stored: {error:#}", spool::waiting(files)));
        }
    }
    let Some(store) = Store::open_to_read(files, PERSON_WAIT)? else { return Ok(None) };
    if needs_upgrade(&store)? {
        match Store::open(files, PERSON_WAIT) {
            Ok(mut store) => upgrade(config, &mut store)?,
            // On a read-only disk, reading still works.
            Err(error) => output::warn(&format!("stored texts were not checked for secrets: {error:#}")),
        }
    }
    let progress = output::Progress::begin();
    persist::index_waiting(files, &store, PERSON_WAIT, &mut |done| progress.say(&format!("indexing text {done}")));
    Ok(Some(store))
}

/// Opens the store for writing, after draining the spool; creates it if needed.
pub fn writable(config: &Config) -> Result<Store> {
    let mut store = Store::open(&config.files.value, PERSON_WAIT)?;
    drain(config, &mut store)?;
    if needs_upgrade(&store)? {
        upgrade(config, &mut store)?;
    }
    Ok(store)
}

fn needs_upgrade(store: &Store) -> Result<bool> {
    let is_old = store.redaction_version()? < REDACTION_VERSION || store.index_text_version()? < INDEX_TEXT_VERSION;
    Ok(is_old || store.has_unannounced_rules()?)
}

/// Upgrades stored texts: the first command in a terminal after an upgrade does this, a hook never.
fn upgrade(config: &Config, store: &mut Store) -> Result<()> {
    if store.redaction_version()? < REDACTION_VERSION {
        redact_again(config, store);
    }
    if store.index_text_version()? < INDEX_TEXT_VERSION {
        output::warn("indexing stored texts again, once after the upgrade");
        let progress = output::Progress::begin();
        store.rebuild_index(&mut |done, all| progress.say(&format!("indexing row {done} of {all}")))?;
    }
    if store.has_unannounced_rules()? {
        older_rules(store)?.into_iter().for_each(|offer| output::warn(&offer));
        store.announce_rules()?;
    }
    Ok(())
}

/// Returns an offer to distil again the units that older rules distilled; `None` if there are none.
pub fn older_rules(store: &Store) -> Result<Option<String>> {
    let (units, projects) = store.units_of_older_rules()?;
    let all = if projects > 1 { " --all" } else { "" };
    let units = (units > 0).then(|| count(units, "work unit was", "work units were"));
    Ok(units.map(|units| format!("{units} distilled by earlier rules; `nmem distil --redo{all}` draws their memories again")))
}

/// Redacts texts that an earlier version stored, once.
fn redact_again(config: &Config, store: &mut Store) {
    output::warn("checking stored texts with this version's rules for secrets, once after the upgrade");
    let progress = output::Progress::begin();
    let checked = redactor(config).and_then(|redactor| {
        let secrets = OldSecrets::find(store, &redactor, &mut |step| progress.say(step))?;
        // A migration may have added an index.
        if store.unindexed()? > 0 {
            store.rebuild_index(&mut |done, all| progress.say(&format!("indexing row {done} of {all}")))?;
        }
        secrets.remove(store, &redactor, &mut |step| progress.say(step))?;
        Ok(secrets.count())
    });
    drop(progress);
    match checked {
        Ok(0) => output::warn("nothing found"),
        Ok(n) => output::warn(&format!("{} cleaned of secrets", count(n as i64, "text was", "texts were"))),
        Err(error) => output::warn(&format!("the check failed and will be tried again: {error:#}; `nmem doctor` says more")),
    }
}

/// Drains the spool.
pub fn drain(config: &Config, store: &mut Store) -> Result<()> {
    let redactor = redactor(config)?;
    persist::drain(&Run::new(Caller::Program, config, &redactor), store)
}
