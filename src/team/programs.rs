//! The RAD tables: rows that other programs wrote there become memories with provenance tool.

use super::projects::find;
use crate::model::{Draft, MemoryKind, Provenance, SharedProject};
use crate::postgres::{ForeignRow, TeamServer};
use crate::project::git;
use crate::redact::Redactor;
use crate::store::Store;
use crate::text::cut;
use anyhow::Result;
use serde_json::Value;
use std::collections::HashMap;

/// Maximum characters of a title; the whole text is in the memory's fields.
const TITLE: usize = 160;
/// Memories per transaction.
const STEP: usize = 500;

/// Result of reading other programs' rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramRows {
    pub written: usize,
    pub removed: usize,
    /// Rows that name no project shared here.
    pub elsewhere: usize,
    /// True if there are more rows than were read.
    pub is_cut: bool,
}

/// Returns the name of a project for other programs: its key without the kind.
pub fn repo_id(key: &str) -> &str {
    key.split_once(':').map_or(key, |(_, id)| id)
}

/// Writes the facts about the shared repositories.
pub fn write_repositories(store: &Store, server: &mut TeamServer, projects: &[SharedProject]) -> Result<()> {
    for project in projects {
        let Some(row) = store.project_by_row(project.id)? else { continue };
        let repo = project.keys.first().map_or("", |key| repo_id(key));
        server.write_repository(repo, &row.name, row.repo_url.as_deref(), row.about.as_ref())?;
    }
    Ok(())
}

/// Reads the rows of other programs, if they have changed since the last time.
pub fn read(store: &mut Store, server: &mut TeamServer, redactor: &Redactor, projects: &[SharedProject]) -> Result<ProgramRows> {
    let mut keys: Vec<&str> = projects.iter().flat_map(|project| project.keys.iter().map(String::as_str)).collect();
    keys.sort_unstable();
    // Rows of a project that is shared only now were skipped before.
    let state = format!("{} {}", server.foreign_state()?, keys.join(" "));
    if store.rad_tables_read()?.as_deref() == Some(state.as_str()) {
        return Ok(ProgramRows::default());
    }
    let found = server.foreign_rows()?;
    let known = store.memories_of_programs()?;
    let urls: HashMap<&str, &str> = found.repositories.iter().map(|(id, url)| (id.as_str(), url.as_str())).collect();
    let mut done = ProgramRows { is_cut: found.is_cut, ..ProgramRows::default() };
    let mut due = Vec::new();
    let mut kept = Vec::new();
    for row in &found.rows {
        let project = row.repo.as_deref().and_then(|repo| find(projects, &keys_of(repo, urls.get(repo).copied())));
        let Some(project) = project else {
            done.elsewhere += 1;
            continue;
        };
        kept.push(row.uuid.as_str());
        if known.get(&row.uuid) != Some(&row.digest) {
            due.push((row, project.id, redactor.clean(draft(row))));
        }
    }
    for step in due.chunks(STEP) {
        done.written += store.write(|tx| {
            let mut written = 0;
            for (row, project, draft) in step {
                written += usize::from(tx.write_of_program(&row.uuid, &row.digest, *project, draft)?);
            }
            Ok(written)
        })?;
    }
    if !found.is_cut {
        let gone: Vec<&String> = known.keys().filter(|uuid| !kept.contains(&uuid.as_str())).collect();
        done.removed = gone.len();
        store.write(|tx| gone.iter().try_for_each(|uuid| tx.forget_of_program(uuid)))?;
    }
    store.write(|tx| tx.set_rad_tables_read(&state))?;
    Ok(done)
}

/// The keys that a program may mean: a URL, a path in a URL, or a name.
fn keys_of(repo: &str, url: Option<&str>) -> Vec<String> {
    let of_url = |url: &str| format!("repo:{}", git::normalised(url));
    let mut keys: Vec<String> = url.map(of_url).into_iter().collect();
    keys.extend([of_url(repo), format!("repo:{repo}"), format!("name:{repo}"), format!("root:{repo}")]);
    keys
}

fn draft(row: &ForeignRow) -> Draft {
    let mut content = row.content.clone();
    if row.kind == MemoryKind::Decision && content.get("alternatives").is_some_and(|list| !list.is_array()) {
        content.insert("alternatives".into(), Value::Array(Vec::new()));
    }
    Draft {
        key: None,
        kind: row.kind,
        kind_type: Some(row.kind_type.clone()),
        title: cut(&row.title.split_whitespace().collect::<Vec<_>>().join(" "), TITLE),
        subtitle: None,
        body: None,
        content,
        concepts: Vec::new(),
        files: Vec::new(),
        prompt: None,
        sources: Vec::new(),
        provenance: Provenance::Tool,
        at: row.created_at,
        tokens: None,
    }
}
