//! Safe access to files: files that a payload or a repository names, and nmem's own private files.
//!
//! A named path may lead to a FIFO, a device or a huge file. It is opened without blocking, must be a regular file, and
//! is read up to a limit. Files that nmem writes are private to their owner.
//!
//! Read in this order: reading, in this file; `private` (nmem's own files, keys and locks), `system` (owners and other
//! differences between systems).

pub(crate) mod private;
mod system;

pub use private::{
    append_private, lock_folder, make_folder, open_private, own_folder, own_key, random_token, remove, replace_private, unique,
    write_private,
};
#[cfg(unix)]
pub use system::user;
pub use system::{Identity, calling_process, identity, is_alive, is_locked, is_ours, is_program, is_remote, process, tighten};

use sha2::{Digest, Sha256};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

/// Bytes read of a small file, such as `.git/HEAD` or `.git/config`.
pub const SMALL: u64 = 64 * 1024;

/// Opens a regular file without ever blocking, whatever the path leads to.
fn open(path: &Path) -> io::Result<(File, u64)> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    }
    let file = options.open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok((file, meta.len()))
}

/// Reads the first [`SMALL`] bytes of a text file; `None` if it is missing or not a regular file.
pub fn small_text(path: &Path) -> Option<String> {
    let (file, _) = open(path).ok()?;
    let mut text = Vec::new();
    file.take(SMALL).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Opens a regular file without waiting; anything else is an error.
pub fn regular(path: &Path) -> io::Result<File> {
    open(path).map(|(file, _)| file)
}

/// Opens a regular file of at most `limit` bytes for buffered reading.
pub fn reader(path: &Path, limit: u64) -> io::Result<impl BufRead + use<>> {
    let (file, len) = open(path)?;
    if len > limit {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("larger than {limit} bytes")));
    }
    Ok(BufReader::new(file.take(limit)))
}

/// Reads a whole text file of at most `limit` bytes.
pub fn whole_text(path: &Path, limit: u64) -> io::Result<String> {
    let (file, len) = open(path)?;
    if len > limit {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("larger than {limit} bytes")));
    }
    // One read for the content, one that finds the end.
    let mut text = String::with_capacity(len as usize + 1);
    file.take(limit).read_to_string(&mut text)?;
    Ok(text)
}

/// SHA-256 of a file's content: the first 16 bytes in hex; `None` if it is not a regular file of at most `limit` bytes.
pub fn content_hash(path: &Path, limit: u64) -> Option<String> {
    let (file, len) = open(path).ok()?;
    if len > limit {
        return None;
    }
    let mut bytes = Vec::with_capacity(len as usize);
    file.take(limit + 1).read_to_end(&mut bytes).ok()?;
    Some(Sha256::digest(&bytes)[..16].iter().map(|b| format!("{b:02x}")).collect())
}

/// Returns the time of a file's last change, in Unix milliseconds; `None` if it is missing.
pub fn changed_at(path: &Path) -> Option<i64> {
    let changed = fs::metadata(path).ok()?.modified().ok()?;
    let since = changed.duration_since(std::time::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok()
}

/// Part of a growing file.
#[derive(Debug, PartialEq, Eq)]
pub struct Stretch {
    pub bytes: Vec<u8>,
    /// Offset at which the part begins. Larger than requested if the limit cut its start off.
    pub from: u64,
}

/// Reads a file from offset `from` on: at most `limit` bytes, from its end. A file that is now shorter than `from` has
/// nothing to read.
pub fn tail(path: &Path, from: u64, limit: u64) -> io::Result<Stretch> {
    let (mut file, len) = open(path)?;
    let from = from.max(len.saturating_sub(limit)).min(len);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(len - from).read_to_end(&mut bytes)?;
    Ok(Stretch { bytes, from })
}

/// Reads a part of a file, as far as it exists.
pub fn part(path: &Path, part: Range<u64>) -> io::Result<Vec<u8>> {
    let (mut file, _) = open(path)?;
    file.seek(SeekFrom::Start(part.start))?;
    let mut bytes = Vec::new();
    file.take(part.end - part.start).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the path of an existing file or folder without links and `..`. On Windows it lacks the prefix `\\?\`, which
/// shells and other programs do not understand.
pub fn canonical(path: &Path) -> io::Result<PathBuf> {
    dunce::canonicalize(path)
}

/// A path without links and `..`, as far as it exists.
pub fn resolved(path: &Path) -> PathBuf {
    let existing = path.ancestors().find_map(|folder| Some((folder, canonical(folder).ok()?)));
    let Some((folder, real)) = existing else { return path.to_path_buf() };
    let missing = path.strip_prefix(folder).unwrap_or(Path::new(""));
    missing.components().fold(real, |mut out, part| {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            part => out.push(part),
        }
        out
    })
}

/// Length of a regular file in bytes.
pub fn length(path: &Path) -> Option<u64> {
    open(path).ok().map(|(_, len)| len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_and_a_folder_are_refused_at_once() {
        assert!(small_text(Path::new("/dev/zero")).is_none());
        assert!(small_text(Path::new("/")).is_none());
        assert!(tail(Path::new("/dev/zero"), 0, 10).is_err());
    }

    #[test]
    fn only_the_tail_is_read_and_nothing_of_a_shorter_file() {
        let path = std::env::temp_dir().join(format!("nmem-files-{}", std::process::id()));
        std::fs::write(&path, "0123456789").unwrap();
        assert_eq!(tail(&path, 4, 100).unwrap(), Stretch { bytes: b"456789".to_vec(), from: 4 });
        assert_eq!(tail(&path, 0, 3).unwrap(), Stretch { bytes: b"789".to_vec(), from: 7 });
        assert_eq!(tail(&path, 99, 100).unwrap(), Stretch { bytes: Vec::new(), from: 10 });
        std::fs::remove_file(&path).unwrap();
    }
}
