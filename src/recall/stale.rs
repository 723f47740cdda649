//! Files that others changed or committed since, wishes that practice overtook, and concepts of findings in a domain.

use crate::config::environment;
use crate::distil::user_decisions::{kept_work, orders_work};
use crate::domains;
use crate::files;
use crate::model::{FileChange, Finding, MemoryRow, Provenance, Stale};
use crate::store::Store;
use anyhow::Result;
use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

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

/// Time that git may take at a session start, and time between two looks at it.
const GIT_TIME: Duration = Duration::from_millis(150);
const GIT_PAUSE: Duration = Duration::from_micros(500);

/// Variables that lead git to another repository or index, as in a hook of git, or that set options.
const REDIRECTING: [&str; 5] = ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT"];

/// Asks git which of the files differ from the last commit; `None` if git doesn't know, or not in time.
pub(super) fn not_committed(root: &Path, files: &HashSet<String>) -> Option<HashSet<String>> {
    let mut git = environment::git(root)?;
    git.args(["--literal-pathspecs", "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all"]);
    git.arg("--ignore-submodules=all").arg("--").args(files);
    for name in REDIRECTING {
        git.env_remove(name);
    }
    let mut git = git.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let begun = Instant::now();
    let ended = loop {
        match git.try_wait().ok()? {
            Some(status) => break status,
            None if begun.elapsed() < GIT_TIME => std::thread::sleep(GIT_PAUSE),
            None => {
                git.kill().and_then(|()| git.wait()).ok();
                return None;
            }
        }
    };
    let mut said = Vec::new();
    git.stdout.take().filter(|_| ended.success())?.read_to_end(&mut said).ok()?;
    // `XY path`: the state in the index, that in the worktree.
    let entries = said.split(|byte| *byte == 0).filter_map(|entry| entry.get(3..));
    Some(entries.map(|path| String::from_utf8_lossy(path).into_owned()).collect())
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

/// Orders of a kind of work after which a wish to keep it no longer holds. One may be an exception.
const ORDERS: usize = 2;

/// Removes the wishes that keep a kind of work for the user, if the user has ordered that work since.
pub(super) fn remove_overtaken(store: &Store, project: i64, wishes: &mut Vec<MemoryRow>) -> Result<()> {
    let is_users = |wish: &MemoryRow| wish.provenance == Provenance::User && !wish.by_hand && !wish.pinned;
    let kept = |wish: &MemoryRow| Some(wish).filter(|wish| is_users(wish)).and_then(|wish| kept_work(&wish.title));
    let Some(since) = wishes.iter().filter(|wish| kept(wish).is_some()).map(|wish| wish.created_at).min() else { return Ok(()) };
    let prompts = store.short_prompts_since(project, since)?;
    wishes.retain(|wish| {
        let Some(work) = kept(wish) else { return true };
        // Only a few prompts name the work, so most need no reading.
        let names = |text: &str| !text.is_ascii() || text.to_ascii_lowercase().contains(work);
        let orders = prompts.iter().filter(|(at, text)| *at > wish.created_at && names(text) && orders_work(text, work));
        orders.take(ORDERS).count() < ORDERS
    });
    Ok(())
}
