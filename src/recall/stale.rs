//! Files of memories that were changed by others since, and concepts of findings in a domain.

use crate::domains;
use crate::files;
use crate::model::{FileChange, Finding, MemoryRow, Stale};
use crate::store::Store;
use anyhow::Result;
use std::collections::HashMap;
use std::path::Path;

/// Maximum files to check, and maximum bytes of one.
const FILES: usize = 40;
const BYTES: u64 = 1 << 20;
/// Maximum missing files for which to search for a command that moved them.
const MOVES: usize = 8;

/// Checks the files of memories about to be shown, in order; the result is by memory id.
pub fn stale<'a>(
    store: &Store,
    project: i64,
    root: &Path,
    memories: impl IntoIterator<Item = &'a MemoryRow>,
) -> Result<HashMap<i64, Vec<Stale>>> {
    let mut seen: HashMap<&str, File> = HashMap::new();
    let mut all: HashMap<i64, Vec<Stale>> = HashMap::new();
    let mut searched = 0;
    for memory in memories {
        for (path, hash) in
            memory.files.iter().filter(|file| file.modified).filter_map(|file| Some((&file.path, file.hash.as_ref()?)))
        {
            if !seen.contains_key(path.as_str()) && seen.len() == FILES {
                continue;
            }
            let file = seen.entry(path).or_insert_with(|| File {
                changed_at: files::changed_at(&root.join(path)),
                hash: None,
                known: None,
                moved_to: None,
            });
            let became = match file.changed_at {
                None => {
                    if file.moved_to.is_none() && searched < MOVES {
                        searched += 1;
                        file.moved_to = Some(store.moved_to(project, path)?.filter(|new| root.join(new).exists()));
                    }
                    file.moved_to.clone().flatten().map_or(FileChange::Removed, FileChange::Moved)
                }
                // A file that was not written since then is unchanged and need not be read.
                Some(at) if at <= memory.created_at => continue,
                Some(at) => {
                    let now = file.hash.get_or_insert_with(|| files::content_hash(&root.join(path), BYTES));
                    let Some(now) = now.as_ref().filter(|now| *now != hash) else { continue };
                    let known = match file.known {
                        Some(known) => known,
                        None => store.last_hash(project, path)?.as_ref() == Some(now) || store.was_at_work(project, at)?,
                    };
                    file.known = Some(known);
                    if known {
                        continue;
                    }
                    FileChange::Changed
                }
            };
            all.entry(memory.id).or_default().push(Stale { path: path.clone(), became });
        }
    }
    Ok(all)
}

/// Returns true if all files that a memory is about are gone: it is not given unasked. `stale`: of memories, by id.
pub(super) fn is_gone(memory: &MemoryRow, stale: &HashMap<i64, Vec<Stale>>) -> bool {
    let Some(changes) = stale.get(&memory.id) else { return false };
    let is_removed = |path: &str| changes.iter().any(|change| change.path == path && change.became == FileChange::Removed);
    memory.files.iter().filter(|file| file.modified).all(|file| is_removed(&file.path))
}

/// A file's current state.
struct File {
    /// `None` if it is missing.
    changed_at: Option<i64>,
    /// Computed on demand; the inner `None` means too large.
    hash: Option<Option<String>>,
    /// The path to which a command moved it; searched on demand.
    moved_to: Option<Option<String>>,
    /// True if recorded work left the file with its current content; computed on demand.
    known: Option<bool>,
}

/// Returns the concept of each finding in a project's domain; empty if the domain has no concept for it.
pub(super) fn concepts<const N: usize>(store: &Store, project: i64, findings: [Finding; N]) -> Result<[String; N]> {
    let domain = store.domain_of_project(project)?.unwrap_or_default();
    let domain = domains::of(Some(&domain.0), domain.1.as_deref());
    Ok(findings.map(|finding| domain.becomes(finding).concepts.into_iter().next().unwrap_or_default()))
}
