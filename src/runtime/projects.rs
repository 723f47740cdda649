//! The project of a folder: its identity on disk, the name that the user gave it, and its row in the store.

use crate::config::Config;
use crate::config::pauses::ProjectIdentity;
use crate::domains;
use crate::files;
use crate::model::{Event, ProjectId, ProjectRow};
use crate::project;
use crate::redact::{Clean, Redactor};
use crate::store::Store;
use std::path::{Path, PathBuf};

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
}

impl FolderProject {
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
        let found = event.project.clone().or_else(|| self.identify(event.cwd.as_deref()?));
        found.map(|id| self.redactor.clean(id))
    }

    /// Looks up the project of a folder, with its row in the store.
    pub fn look_up(&self, folder: &str, store: Option<&Store>) -> FolderProject {
        let path = Path::new(folder);
        let real = files::canonical(path).unwrap_or_else(|_| path.to_path_buf());
        let Some(id) = self.identify(folder) else {
            return FolderProject { known: ProjectIdentity { folder: real, ..ProjectIdentity::default() }, id: None, row: None };
        };
        let id = self.redactor.clean(id);
        let (known, row) = look_up(real, &id, store);
        FolderProject { known, id: Some((*id).clone()), row }
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
