//! Memories for a task in a folder, described by a request, by files, or by neither.

use super::{RecallQuery, SessionContext, at_start, ranked};
use crate::model::{Millis, RankedUnit, Recalled, Vector};
use crate::project;
use crate::store::Store;
use anyhow::Result;
use std::path::Path;

/// Number of ranked units to select from.
const RANKED: usize = 16;

/// A task in a folder of a project.
#[derive(Clone, Copy, Debug)]
pub struct CurrentTask<'a> {
    pub project: i64,
    pub folder: &'a Path,
    pub home: Option<&'a Path>,
    pub request: Option<&'a str>,
    /// Files of the task, absolute or relative to the folder.
    pub files: &'a [String],
    /// Embedding of the request, and the model.
    pub embedding: Option<(&'a str, &'a Vector)>,
}

impl CurrentTask<'_> {
    fn branch(&self) -> Option<String> {
        project::git::state_at(self.folder, self.home).and_then(|state| state.branch)
    }
}

/// The work units related to a task, best first.
pub fn for_task(store: &Store, task: &CurrentTask) -> Result<Vec<RankedUnit>> {
    let (branch, cwd) = (task.branch(), task.folder.to_string_lossy());
    let relative = |file: &String| project::relative(&task.folder.join(file).to_string_lossy(), Some(&cwd), task.home);
    let files: Vec<String> = task.files.iter().map(relative).collect();
    let query = RecallQuery {
        project: task.project,
        own: None,
        request: task.request,
        branch: branch.as_deref(),
        embedding: task.embedding,
        files: &files,
        root: project::worktree_root(task.folder, task.home),
    };
    ranked(store, &query, RANKED)
}

/// Returns the memories for a session that starts in the task's folder, with at most `observations` observations.
pub fn for_new_session(store: &Store, task: &CurrentTask, observations: usize, now: Millis) -> Result<Recalled> {
    let branch = task.branch();
    let root = project::worktree_root(task.folder, task.home);
    let here = SessionContext { own: None, agent: None, branch: branch.as_deref(), root, home: task.home };
    at_start(store, task.project, here, observations, now)
}
