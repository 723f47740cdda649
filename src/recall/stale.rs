//! Which memories tell of files that are not what they were (DESIGN §5, ADR/0032). A memory keeps its files' hashes; what has
//! another one now, was written while no session was at work, and no later memory knows it so, was changed by other hands.

use crate::files;
use crate::model::{Became, MemoryRow, Stale};
use crate::store::Store;
use anyhow::Result;
use std::collections::HashMap;
use std::path::Path;

/// Files that are looked at, and bytes of one that are hashed.
const FILES: usize = 40;
const BYTES: u64 = 1 << 20;
/// Files that are gone and for which the commands are searched.
const MOVES: usize = 8;

/// Looks at the files of memories that are about to be shown, the first ones first; by the memories' ids.
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
                    file.moved_to.clone().flatten().map_or(Became::Gone, Became::Moved)
                }
                // What has not been written since is what it was: to know that takes no reading.
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
                    Became::Changed
                }
            };
            all.entry(memory.id).or_default().push(Stale { path: path.clone(), became });
        }
    }
    Ok(all)
}

/// A file as it is now.
struct File {
    /// `None` where it is not there.
    changed_at: Option<i64>,
    /// Read when it is asked for; `None` inside where it is too large.
    hash: Option<Option<String>>,
    /// Where it went, if a command moved it; searched when it is asked for.
    moved_to: Option<Option<String>>,
    /// Whether it is as recorded work left it.
    known: Option<bool>,
}
