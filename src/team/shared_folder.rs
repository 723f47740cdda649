//! Exchange through a folder: one file per machine, in signed chunks.

use super::incoming::{BODY, Inbox};
use super::outgoing::Outbox;
use super::people::is_authentic;
use crate::error::UserError;
use crate::files;
use crate::model::{Machine, Received, SharedChange};
use crate::store::Store;
use anyhow::{Context, Result};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// Maximum bytes of a chunk, as stored and as text. This stops a decompression bomb.
const STORED: u64 = 64 << 20;
const TEXT: u64 = 512 << 20;
/// Maximum bytes of a line: a body with every character escaped, and the fields around it.
const LINE: u64 = 7 * BODY as u64;
/// Digits of a chunk's hash in its name.
const HASH: usize = 16;
const ENDING: &str = ".jsonl.gz";

/// The name of a chunk, which describes its content.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChunkName {
    /// The first and last number that it covers.
    pub first: i64,
    pub last: i64,
    /// Number of memories' texts in it; superseded changes and tombstones have none.
    pub texts: usize,
    pub hash: String,
}

impl ChunkName {
    /// Parses a file name.
    pub fn parse(name: &str) -> Option<ChunkName> {
        let mut parts = name.strip_suffix(ENDING)?.split('-');
        let mut number = || parts.next().filter(|part| part.chars().all(|c| c.is_ascii_digit()))?.parse::<i64>().ok();
        let (first, last, texts) = (number()?, number()?, number()?);
        let hash = parts.next()?.to_string();
        let is_sound = 0 < first && first <= last && hash.len() == HASH && parts.next().is_none();
        is_sound.then_some(ChunkName { first, last, texts: texts as usize, hash })
    }

    fn file(&self) -> String {
        format!("{:08}-{:08}-{}-{}{ENDING}", self.first, self.last, self.texts, self.hash)
    }
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes)[..HASH / 2].iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// Reads a chunk, or returns the reason to skip it.
pub fn read(path: &Path, name: &ChunkName) -> Result<Vec<SharedChange>, &'static str> {
    let mut stored = Vec::new();
    let file = files::regular(path).map_err(|_| "cannot be read")?;
    file.take(STORED + 1).read_to_end(&mut stored).map_err(|_| "cannot be read")?;
    if stored.len() as u64 > STORED {
        return Err("larger than a chunk can be");
    }
    if hash(&stored) != name.hash {
        return Err("not complete yet, or damaged");
    }
    let mut lines = BufReader::new(GzDecoder::new(&stored[..]).take(TEXT));
    let mut changes = Vec::new();
    let mut line = Vec::new();
    while changes.len() as i64 <= name.last - name.first {
        line.clear();
        let read = (&mut lines).take(LINE).read_until(b'\n', &mut line).map_err(|_| "damaged")?;
        if read == 0 {
            break;
        }
        // A line of a later version is no reason to reject the others.
        if line.last() != Some(&b'\n') {
            return Err("larger than a chunk can be");
        }
        changes.extend(
            serde_json::from_slice::<SharedChange>(&line).ok().filter(|change| (name.first..=name.last).contains(&change.seq)),
        );
    }
    Ok(changes)
}

/// Writes a chunk; returns its path, and whether it is new. The same changes produce the same file.
pub fn write(folder: &Path, first: i64, last: i64, texts: usize, changes: &[SharedChange]) -> Result<(PathBuf, bool)> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    for change in changes {
        serde_json::to_writer(&mut gzip, change)?;
        gzip.write_all(b"\n")?;
    }
    let bytes = gzip.finish()?;
    let name = ChunkName { first, last, texts, hash: hash(&bytes) };
    let path = folder.join(name.file());
    if path.exists() {
        return Ok((path, false));
    }
    // The name begins with a dot until the file is complete, so that other machines ignore it.
    let temporary = folder.join(format!(".{}-{}", name.file(), &files::unique()[..8]));
    let all = || -> std::io::Result<()> {
        let mut file = fs::File::create(&temporary)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, &path)
    };
    all().inspect_err(|_| drop(fs::remove_file(&temporary))).with_context(|| format!("cannot write {}", path.display()))?;
    Ok((path, true))
}

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
