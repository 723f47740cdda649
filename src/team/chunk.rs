//! One chunk of a machine's series in a shared folder.

use super::incoming::BODY;
use crate::files;
use crate::model::SharedChange;
use anyhow::{Context, Result};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
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
