//! Exchange through a folder: one file per machine, in signed chunks.

use super::incoming::{Inbox, SyncBudget};
use super::outgoing::Outbox;
use super::people::is_authentic;
use crate::error::UserError;
use crate::files;
use crate::model::{Machine, Received, Share, SharedChange};
use crate::store::Store;
use anyhow::{Context, Result};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// Maximum bytes of a chunk as stored, and of its lines; maximum lines. An honest chunk has at most `CHUNK` lines. This stops
/// a decompression bomb.
const STORED: u64 = 16 << 20;
const TEXT: u64 = 64 << 20;
const LINES: usize = 4 * CHUNK as usize;
/// Maximum bytes of a line.
const LINE: u64 = 6 << 20;
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

/// The lines of a chunk whose content is the one that its name states.
pub struct ChunkLines {
    lines: std::io::Take<BufReader<GzDecoder<std::io::Cursor<Vec<u8>>>>>,
    /// Lines read so far.
    pub count: usize,
}

impl ChunkLines {
    /// Opens a chunk, or returns the reason to skip it.
    pub fn open(path: &Path, name: &ChunkName) -> Result<ChunkLines, &'static str> {
        let mut stored = Vec::new();
        let file = files::regular(path).map_err(|_| "cannot be read")?;
        file.take(STORED + 1).read_to_end(&mut stored).map_err(|_| "cannot be read")?;
        if stored.len() as u64 > STORED {
            return Err("larger than a chunk can be");
        }
        if hash(&stored) != name.hash {
            return Err("not complete yet, or damaged");
        }
        let lines = BufReader::new(GzDecoder::new(std::io::Cursor::new(stored))).take(TEXT);
        Ok(ChunkLines { lines, count: 0 })
    }

    /// Returns the next change with the bytes of its line, `None` for a line of a later version; or the end, or the reason to
    /// read no further.
    pub fn next_change(&mut self) -> Result<Option<(Option<SharedChange>, usize)>, &'static str> {
        let mut line = Vec::new();
        let read = (&mut self.lines).take(LINE).read_until(b'\n', &mut line).map_err(|_| "damaged")?;
        if read == 0 {
            return Ok(None);
        }
        self.count += 1;
        if line.last() != Some(&b'\n') || self.count > LINES {
            return Err("larger than a chunk can be");
        }
        Ok(Some((serde_json::from_slice::<SharedChange>(&line).ok(), read)))
    }
}

/// Returns the numbers of the changes in a chunk of this machine; `None` if it is damaged, or has a line that this machine did not
/// sign. Only the first such line of somebody else's file is read.
fn own_numbers(path: &Path, name: &ChunkName, key: &str) -> Option<HashSet<i64>> {
    let mut lines = ChunkLines::open(path, name).ok()?;
    let mut numbers = HashSet::new();
    while let Some((change, _)) = lines.next_change().ok()? {
        numbers.insert(change.filter(|change| change.machine == key && is_authentic(change))?.seq);
    }
    Some(numbers)
}

/// Whether a path is a folder itself, and no link to one.
fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())
}

/// Creates a file that others may read only if they may read the memories.
fn create(path: &Path, is_private: bool) -> std::io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, if is_private { 0o600 } else { 0o666 });
    #[cfg(not(unix))]
    let _ = is_private;
    options.open(path)
}

/// Writes a chunk; returns its path, and whether it is new. The same changes produce the same file. A file with its name and other
/// content is replaced.
pub fn write(
    folder: &Path,
    (first, last): (i64, i64),
    texts: usize,
    changes: &[SharedChange],
    is_private: bool,
) -> Result<(PathBuf, bool)> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    for change in changes {
        serde_json::to_writer(&mut gzip, change)?;
        gzip.write_all(b"\n")?;
    }
    let bytes = gzip.finish()?;
    let name = ChunkName { first, last, texts, hash: hash(&bytes) };
    let path = folder.join(name.file());
    if ChunkLines::open(&path, &name).is_ok() {
        return Ok((path, false));
    }
    // The name begins with a dot until the file is complete, so that other machines ignore it.
    let temporary = folder.join(format!(".{}-{}", name.file(), &files::unique()[..8]));
    let all = || -> std::io::Result<()> {
        let mut file = create(&temporary, is_private)?;
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
const CHUNKS: usize = 5_000;
/// Changes per transaction, and their bytes: a hook keeps what it has done when its time is over.
const STEP: usize = 200;
const STEP_BYTES: usize = 1 << 20;

/// Name under which the chunks of this machine are remembered.
const OWN: &str = "own";

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

/// Reads the chunks of other machines. A chunk is known by its content: its name only says where it may be skipped, so a file
/// that takes the place of another hides that one no longer than it is there.
pub fn pull(store: &mut Store, folder: &Path, inbox: &Inbox, received: &mut Received, done: &mut FolderSync) -> Result<()> {
    let entries = fs::read_dir(folder).map_err(|error| {
        UserError::new(format!("cannot read {}: {error}", folder.display()), "create the folder, or name another one")
    })?;
    let mut folders: Vec<(String, PathBuf)> = Vec::new();
    for entry in entries.flatten().take(MACHINES) {
        let (name, path) = (entry.file_name().to_string_lossy().into_owned(), entry.path());
        if is_machine(&name) && is_folder(&path) {
            folders.push((name, path));
        } else if !name.starts_with('.') {
            done.left_alone.push((path, "not a machine's folder"));
        }
    }
    folders.sort();
    for (name, path) in folders.into_iter().filter(|(name, _)| !inbox.own_key.starts_with(name.as_str())) {
        let mut member = Member { name: &name, known: store.chunks_read(&name)?, budget: inbox.budget() };
        let chunks = chunks(&path, &mut done.left_alone)?;
        for (chunk, path) in &chunks {
            if member.budget.is_spent() {
                received.over_budget.push(name.clone());
                break;
            }
            member.read(store, inbox, (chunk, path), received, done)?;
        }
        let is_there: HashSet<String> = chunks.iter().flat_map(|(chunk, _)| [chunk.hash.clone(), chunk.file()]).collect();
        member.known.retain(|key, _| is_there.contains(key));
        if member.known != store.chunks_read(&name)? {
            store.set_chunks_read(&name, &member.known)?;
        }
    }
    Ok(())
}

/// A machine whose chunks are read.
struct Member<'a> {
    name: &'a str,
    /// Lines that were read, by the hash of a chunk; `WHOLE` if all were. For a file whose content is not the one that its name
    /// states, a stamp of that file by its name.
    known: BTreeMap<String, i64>,
    budget: SyncBudget,
}

/// All lines of a chunk.
const WHOLE: i64 = i64::MAX;

impl Member<'_> {
    fn read(
        &mut self,
        store: &mut Store,
        inbox: &Inbox,
        (chunk, path): (&ChunkName, &Path),
        received: &mut Received,
        done: &mut FolderSync,
    ) -> Result<()> {
        let begun = self.known.get(&chunk.hash).copied().unwrap_or(0);
        let stamp = stamp(path);
        if begun == WHOLE || self.known.get(&chunk.file()) == Some(&stamp) {
            return Ok(());
        }
        let mut lines = match ChunkLines::open(path, chunk) {
            Ok(lines) => lines,
            Err(why) => {
                done.left_alone.push((path.to_path_buf(), why));
                self.known.insert(chunk.file(), stamp);
                self.budget.count_invalid();
                return Ok(());
            }
        };
        let (mut step, mut bytes) = (Vec::new(), 0);
        loop {
            let (next, is_end) = match lines.next_change() {
                Ok(next) => {
                    let is_end = next.is_none();
                    (next, is_end)
                }
                Err(why) => {
                    done.left_alone.push((path.to_path_buf(), why));
                    (None, true)
                }
            };
            // Lines that an earlier sync has applied are only skipped.
            if let Some((change, length)) = next.filter(|_| lines.count as i64 > begun) {
                bytes += length;
                step.extend(change.filter(|change| change.machine.starts_with(self.name)));
            }
            if is_end || step.len() >= STEP || bytes >= STEP_BYTES {
                for of_machine in step.chunk_by(|one, next| one.machine == next.machine) {
                    inbox.apply(store, of_machine, None, &mut self.budget, received)?;
                }
                self.budget.spend(step.len(), bytes);
                // What has too much that is invalid is not read again.
                let is_over = is_end || self.budget.is_abused();
                self.known.insert(chunk.hash.clone(), if is_over { WHOLE } else { lines.count as i64 });
                store.set_chunks_read(self.name, &self.known)?;
                (step, bytes) = (Vec::new(), 0);
                if is_over || self.budget.is_spent() {
                    return Ok(());
                }
            }
        }
    }
}

/// A number that differs if a file has changed.
fn stamp(path: &Path) -> i64 {
    let Ok(meta) = fs::symlink_metadata(path) else { return -1 };
    let modified = meta.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    (modified.map_or(0, |at| at.as_micros() as i64) ^ (meta.len() as i64) << 40) & i64::MAX >> 1
}

/// Whether the folder has later changes that this machine signed: the database was copied or restored.
pub fn is_forked(folder: &Path, own: &Machine) -> Result<bool> {
    let path = folder.join(&own.key[..KEY]);
    let here = if is_folder(&path) { chunks(&path, &mut Vec::new())? } else { Vec::new() };
    let later = here.iter().filter(|(chunk, _)| chunk.last > own.seq);
    Ok(later.filter_map(|(chunk, path)| own_numbers(path, chunk, &own.key)).flatten().any(|seq| seq > own.seq))
}

/// Writes this machine's chunks: new ones, and again those whose texts were forgotten or superseded.
pub fn push(store: &mut Store, folder: &Path, outbox: &Outbox, done: &mut FolderSync) -> Result<()> {
    let own = folder.join(&outbox.own.machine.key[..KEY]);
    let numbers = store.own_numbers(0)?;
    let head = outbox.own.machine.seq;
    if fs::symlink_metadata(&own).is_ok_and(|meta| !meta.is_dir()) {
        let what = format!("{} is no folder", own.display());
        return Err(UserError::new(what, "somebody put a link or a file there: remove it, then sync again").into());
    }
    let is_private = outbox.projects.iter().all(|project| project.share == Share::Mine);
    let mut here = if is_folder(&own) { chunks(&own, &mut done.left_alone)? } else { Vec::new() };
    // A chunk counts if its content is what this machine remembers to have written, or if it has all changes that it should have.
    // Another file must not count as one, or be a reason to remove one.
    let mut written = store.chunks_read(OWN)?;
    let is_own = |(chunk, path): &(ChunkName, PathBuf)| {
        let mut wanted = numbers.iter().map(|(seq, _)| *seq).filter(|seq| (chunk.first..=chunk.last).contains(seq));
        let is_remembered = || written.contains_key(&chunk.file()) && ChunkLines::open(path, chunk).is_ok();
        let mut has_all =
            || own_numbers(path, chunk, &outbox.own.machine.key).is_some_and(|signed| wanted.all(|seq| signed.contains(&seq)));
        chunk.last <= head && (is_remembered() || has_all())
    };
    let foreign: Vec<PathBuf> = here.extract_if(.., |entry| !is_own(entry)).map(|(_, path)| path).collect();
    done.left_alone.extend(foreign.into_iter().map(|path| (path, "not written by this machine")));
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
    if !wanted.is_empty() && !is_folder(&own) {
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
        let (path, is_new) = write(&own, (first, last), held(first, last), &changes, is_private)?;
        done.chunks += usize::from(is_new);
        done.sent += if is_new { changes.len() } else { 0 };
        kept.push(path);
    }
    for path in old.iter().filter(|path| !kept.contains(path)) {
        fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))?;
        done.removed += 1;
    }
    written.clear();
    let is_kept = |path: &&PathBuf| !old.contains(path);
    let names = here.iter().map(|(_, path)| path).filter(is_kept).chain(&kept).filter_map(|path| path.file_name()?.to_str());
    written.extend(names.map(|name| (name.to_string(), WHOLE)));
    if written != store.chunks_read(OWN)? {
        store.set_chunks_read(OWN, &written)?;
    }
    Ok(())
}
