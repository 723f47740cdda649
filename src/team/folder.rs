//! A shared folder: each machine writes chunks of its own series into a folder of its own, and reads those of others.
//!
//! A chunk is compressed JSON Lines, `<first>-<last>-<texts>-<hash>.jsonl.gz`: the numbers that it covers, how many
//! texts it contains, and the SHA-256 of its bytes. No file is ever changed, and no two machines write the same one, so
//! git, Dropbox, Syncthing and rsync have nothing to merge. A chunk is a function of this machine's store: when texts
//! in it were forgotten or superseded, it is written again and the old one removed.

use super::chunk::{ChunkName, read, write};
use super::identity::is_authentic;
use super::incoming::Inbox;
use super::outgoing::Outbox;
use crate::error::UserError;
use crate::model::{Machine, Received, SharedChange};
use crate::store::Store;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Maximum changes per chunk.
const CHUNK: i64 = 1000;
/// Chunks with fewer numbers than this are joined if there are more than `MANY` of them.
const SMALL: i64 = 200;
const MANY: usize = 20;
/// Digits of a machine's key that name its folder.
const KEY: usize = 16;
/// Maximum machines, and maximum chunks of a machine, to look at.
const MACHINES: usize = 1000;
const CHUNKS: usize = 100_000;

/// Result of a sync with a folder.
#[derive(Clone, Debug, Default)]
pub struct FolderSync {
    /// Chunks written, and changes in them.
    pub chunks: usize,
    pub sent: usize,
    /// Chunks removed, because other chunks contain the same changes, or because their texts were forgotten.
    pub removed: usize,
    /// Files that were skipped, each with the reason.
    pub left_alone: Vec<(PathBuf, &'static str)>,
}

/// The chunks in a machine's folder, in order of their first number.
fn chunks(folder: &Path, left_alone: &mut Vec<(PathBuf, &'static str)>) -> Result<Vec<(ChunkName, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?.flatten().take(CHUNKS) {
        let name = entry.file_name().to_string_lossy().into_owned();
        match ChunkName::parse(&name) {
            Some(chunk) => found.push((chunk, entry.path())),
            // Programs that share folders keep their own files there; our unfinished ones begin with a dot, too.
            None if name.starts_with('.') => {}
            None => left_alone.push((entry.path(), "not a chunk of nmem")),
        }
    }
    found.sort();
    Ok(found)
}

fn is_machine(name: &str) -> bool {
    name.len() == KEY && name.chars().all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c))
}

/// Reads the chunks of other machines.
pub fn pull(store: &mut Store, folder: &Path, inbox: &Inbox, received: &mut Received, done: &mut FolderSync) -> Result<()> {
    let entries = fs::read_dir(folder).map_err(|error| {
        UserError::new(format!("cannot read {}: {error}", folder.display()), "create the folder, or name another one")
    })?;
    let known: BTreeMap<String, i64> = store.machines()?.into_iter().map(|machine| (machine.key, machine.seq)).collect();
    let mut folders: Vec<(String, PathBuf)> = Vec::new();
    for entry in entries.flatten().take(MACHINES) {
        let (name, path) = (entry.file_name().to_string_lossy().into_owned(), entry.path());
        let is_folder = fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir());
        if is_machine(&name) && is_folder {
            folders.push((name, path));
        } else if !name.starts_with('.') {
            done.left_alone.push((path, "not a machine's folder"));
        }
    }
    folders.sort();
    for (name, path) in folders.into_iter().filter(|(name, _)| !inbox.own_key.starts_with(name.as_str())) {
        let applied = known.iter().find(|(key, _)| key.starts_with(&name)).map_or(0, |(_, seq)| *seq);
        // Last number that the chunks cover without a gap, according to their names.
        let mut covered = applied;
        for (chunk, path) in chunks(&path, &mut done.left_alone)? {
            if chunk.last <= applied {
                continue;
            }
            // If numbers before it have not arrived yet, the chunk is read now and again later.
            let is_next = chunk.first <= covered + 1;
            match read(&path, &chunk) {
                Ok(mut changes) => {
                    changes.retain(|change| change.machine.starts_with(&name));
                    for of_machine in changes.chunk_by(|one, next| one.machine == next.machine) {
                        inbox.apply(store, of_machine, is_next, received)?;
                    }
                    covered = if is_next { covered.max(chunk.last) } else { covered };
                }
                Err(why) => done.left_alone.push((path, why)),
            }
        }
    }
    Ok(())
}

/// Whether the folder has later changes that this machine signed: the database was copied or restored.
pub fn is_forked(folder: &Path, own: &Machine) -> Result<bool> {
    let path = folder.join(&own.key[..KEY]);
    let here = if path.is_dir() { chunks(&path, &mut Vec::new())? } else { Vec::new() };
    let is_later = |change: &SharedChange| change.machine == own.key && change.seq > own.seq && is_authentic(change);
    let later = here.iter().filter(|(chunk, _)| chunk.last > own.seq);
    Ok(later.filter_map(|(chunk, path)| read(path, chunk).ok()).flatten().any(|change| is_later(&change)))
}

/// Writes this machine's chunks: new ones, and again those whose texts were forgotten or superseded.
pub fn push(store: &Store, folder: &Path, outbox: &Outbox, done: &mut FolderSync) -> Result<()> {
    let own = folder.join(&outbox.own.machine.key[..KEY]);
    let numbers = store.own_numbers(0)?;
    let head = outbox.own.machine.seq;
    let mut here = if own.is_dir() { chunks(&own, &mut done.left_alone)? } else { Vec::new() };
    // Not written by this machine, or `is_forked` would have found them.
    let foreign = here.extract_if(.., |(chunk, _)| chunk.last > head);
    done.left_alone.extend(foreign.map(|(_, path)| (path, "not written by this machine")));
    let texts = store.own_texts()?;
    let held = |first: i64, last: i64| texts.partition_point(|seq| *seq <= last) - texts.partition_point(|seq| *seq < first);
    let mut old: Vec<PathBuf> = Vec::new();
    let mut wanted: Vec<(i64, i64)> = Vec::new();
    let mut covered = 0;
    // Many small chunks become one; the rest keep their ranges.
    let small = |chunk: &ChunkName| chunk.last - chunk.first < SMALL;
    let joins = here.iter().filter(|(chunk, _)| small(chunk)).count() > MANY;
    let from = if joins { here.iter().find(|(chunk, _)| small(chunk)).map(|(chunk, _)| chunk.first) } else { None };
    here.sort_by_key(|(chunk, _)| (chunk.first, -chunk.last));
    for (chunk, path) in &here {
        let is_joined = from.is_some_and(|from| chunk.first >= from);
        if chunk.last <= covered || is_joined {
            old.push(path.clone());
        } else if chunk.first > covered + 1 {
            // A gap: another branch of the repository has the changes in between. Everything from here on is written
            // again.
            old.push(path.clone());
        } else {
            if chunk.texts != held(chunk.first, chunk.last) {
                old.push(path.clone());
                wanted.push((chunk.first, chunk.last));
            }
            covered = chunk.last;
        }
    }
    while covered < head {
        let last = head.min(covered + CHUNK);
        wanted.push((covered + 1, last));
        covered = last;
    }
    if !wanted.is_empty() && !own.is_dir() {
        fs::create_dir_all(&own).with_context(|| format!("cannot create {}", own.display()))?;
    }
    let mut kept: Vec<PathBuf> = Vec::new();
    for (first, last) in wanted {
        let begin = numbers.partition_point(|(seq, _)| *seq < first);
        let end = numbers.partition_point(|(seq, _)| *seq <= last);
        let changes = numbers[begin..end].iter().filter_map(|(seq, uuid)| outbox.change(store, *seq, uuid).transpose());
        let changes: Vec<SharedChange> = changes.collect::<Result<_>>()?;
        // Texts that the store has but no longer sends count as contained, or the chunk would be written again each
        // time.
        let (path, is_new) = write(&own, first, last, held(first, last), &changes)?;
        done.chunks += usize::from(is_new);
        done.sent += if is_new { changes.len() } else { 0 };
        kept.push(path);
    }
    for path in old.iter().filter(|path| !kept.contains(path)) {
        fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))?;
        done.removed += 1;
    }
    Ok(())
}
