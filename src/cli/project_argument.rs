//! What commands share that look at a project: its `--project` argument, its settings, and its store.

use super::output;
use crate::config::{self, Config};
use crate::error::Failure;
use crate::ingest::{self, Caller, Run};
use crate::runtime::{FolderProject, Projects, redactor};
use crate::store::{PERSON_WAIT, Store, spool};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// Arguments that every command has which looks at a project.
#[derive(Debug, clap::Args)]
pub struct ProjectArgument {
    /// Look at the project of this folder instead of the current one
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
}

impl ProjectArgument {
    /// The folder, absolute.
    pub fn folder(&self) -> Result<PathBuf> {
        match &self.project {
            Some(folder) => folder.canonicalize().map_err(|e| {
                Failure::new(format!("cannot look at {}: {e}", folder.display()), "give a folder that exists").into()
            }),
            None => std::env::current_dir().context("cannot tell the current folder"),
        }
    }

    /// All settings as they hold there; what can't be read is said, and its defaults count.
    pub fn config(&self) -> Result<(PathBuf, Config)> {
        let folder = self.folder()?;
        let (config, problem) = self.config_and_problem(&folder)?;
        if let Some(problem) = problem {
            output::warn(&format!("nothing is recorded: {problem:#}"));
        }
        for key in &config.unknown {
            output::warn(&format!("{}: `{key}` is not a setting that this nmem knows", config.file.display()));
        }
        Ok((folder, config))
    }

    pub fn config_and_problem(&self, folder: &Path) -> Result<(Config, Option<anyhow::Error>)> {
        let (config, problem) = config::load_what_can_be(&[folder])?;
        let problem = problem.or_else(|| redactor(&config).err());
        Ok((config, problem))
    }

    /// The project as it is stored: its row, or what it would be called.
    pub fn find(&self, folder: &Path, config: &Config, store: Option<&Store>) -> FolderProject {
        let redactor = redactor(config).unwrap_or_default();
        Projects { config, redactor: &redactor }.look_up(&folder.to_string_lossy(), store)
    }
}

/// Opens the store for a person's reading command: stores what waits first; `None` where nothing was ever recorded.
pub fn open(config: &Config) -> Result<Option<Store>> {
    let files = &config.files.value;
    if spool::is_waiting(files) {
        let drained = Store::open(files, PERSON_WAIT).and_then(|mut store| drain(config, &mut store));
        if let Err(error) = drained {
            output::warn(&format!("{} events wait and could not be stored: {error:#}", spool::waiting(files)));
        }
    }
    Store::open_to_read(files, PERSON_WAIT)
}

/// Opens the store for a person's writing command, making it where there is none: stores what waits first.
pub fn writable(config: &Config) -> Result<Store> {
    let mut store = Store::open(&config.files.value, PERSON_WAIT)?;
    drain(config, &mut store)?;
    Ok(store)
}

/// Stores what waits in the spool.
pub fn drain(config: &Config, store: &mut Store) -> Result<()> {
    let redactor = redactor(config)?;
    ingest::drain(&Run::new(Caller::Program, config, &redactor), store)
}
