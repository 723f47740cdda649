//! Which project a folder is: what is found there on disk, under the name that the user gave it, and its row in the store.

use crate::config::Config;
use crate::config::switches::Known;
use crate::domains;
use crate::model::{Event, ProjectId, ProjectRow};
use crate::project;
use crate::redact::{Clean, Redactor};
use crate::store::Store;
use std::path::{Path, PathBuf};

/// Finds projects by the settings of this run.
#[derive(Clone, Copy, Debug)]
pub struct Projects<'a> {
    pub config: &'a Config,
    pub redactor: &'a Redactor,
}

/// A folder seen as a project.
#[derive(Debug)]
pub struct FolderProject {
    pub known: Known,
    /// `None`: the folder is no project (home, `/`).
    pub id: Option<ProjectId>,
    /// `None`: nothing is stored of it yet.
    pub row: Option<ProjectRow>,
}

impl FolderProject {
    /// What people call it; `None` where the folder is no project.
    pub fn name(&self) -> Option<&str> {
        self.row.as_ref().map(|row| row.name.as_str()).or(self.id.as_ref().map(|id| id.name.as_str()))
    }
}

impl Projects<'_> {
    /// The project of a folder, by the name that the user gave it or by what is found there.
    pub fn identify(&self, folder: &str) -> Option<ProjectId> {
        let folder = Path::new(folder);
        let project = project::identify(folder, self.config.home.as_deref(), self.config.project_named(folder))?;
        let domain = self.config.domain.value.clone().filter(|name| domains::text(name).is_some());
        Some(ProjectId { domain, ..project })
    }

    /// The project of an event: the one that it names, or that of its folder.
    pub fn of_event(&self, event: &Event) -> Option<Clean<ProjectId>> {
        let found = event.project.clone().or_else(|| self.identify(event.cwd.as_deref()?));
        found.map(|id| self.redactor.clean(id))
    }

    /// The project of a folder with all that the store knows of it.
    pub fn look_up(&self, folder: &str, store: Option<&Store>) -> FolderProject {
        let path = Path::new(folder);
        let real = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let Some(id) = self.identify(folder) else {
            return FolderProject { known: Known { folder: real, ..Known::default() }, id: None, row: None };
        };
        let id = self.redactor.clean(id);
        let (known, row) = look_up(real, &id, store);
        FolderProject { known, id: Some((*id).clone()), row }
    }

    /// A project that is named, without a folder.
    pub fn look_up_named(&self, named: &ProjectId, store: Option<&Store>) -> Known {
        look_up(PathBuf::new(), &self.redactor.clean(named.clone()), store).0
    }
}

fn look_up(folder: PathBuf, id: &Clean<ProjectId>, store: Option<&Store>) -> (Known, Option<ProjectRow>) {
    let row = store.and_then(|s| s.project_by_identity(id).ok().flatten());
    let mut keys = row.as_ref().zip(store).and_then(|(row, s)| s.project_keys(row.id).ok()).unwrap_or_default();
    let is_part = id.places.iter().any(|place| keys.contains(place));
    if !is_part {
        keys.extend(id.keys.iter().cloned());
    }
    (Known { folder, keys, is_part }, row)
}
