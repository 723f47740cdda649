//! Safe access to files: files that a payload or a repository names, and nmem's own private files.
//!
//! A named path may lead to a FIFO, a device or a huge file. It is opened without blocking, must be a regular file, and
//! is read up to a limit. Files that nmem writes are private to their owner.

use sha2::{Digest, Sha256};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
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

/// Opens a regular file; anything else is an error, and never waits.
pub fn regular(path: &Path) -> io::Result<File> {
    open(path).map(|(file, _)| file)
}

/// Reads a regular file of at most `limit` bytes by and by.
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

/// When a file was last modified, in Unix milliseconds; `None` if it is missing.
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

/// A path without links and `..`, as far as it exists.
pub fn resolved(path: &Path) -> PathBuf {
    let existing = path.ancestors().find_map(|folder| Some((folder, folder.canonicalize().ok()?)));
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

/// Creates a folder that only its owner may enter, whatever the umask.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    #[cfg(unix)]
    fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    Ok(())
}

/// Checks a folder of nmem's own in a place where others may write: not a link, owned by the user, closed to others.
#[cfg(unix)]
pub fn own_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
        _ => {}
    }
    let meta = fs::symlink_metadata(folder)?;
    let refused = |why| Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{} {why}", folder.display())));
    if !meta.is_dir() {
        return refused("is not a folder");
    }
    if meta.uid() != user() {
        return refused("belongs to somebody else");
    }
    tighten(folder, &meta, 0o700)
}

/// On Windows, temporary folders belong to the user.
#[cfg(not(unix))]
pub fn own_folder(folder: &Path) -> io::Result<()> {
    make_folder(folder)
}

/// Network and shared file systems by their statfs(2) number: NFS, SMB and CIFS, AFS, Coda, 9P, Ceph, GPFS, Lustre,
/// VirtualBox, and anything behind FUSE. Processes of several machines may share a file there, or shared memory may not
/// work.
#[cfg(target_os = "linux")]
const REMOTE: [u32; 13] = [
    0x6969,
    0x517B,
    0xFF53_4D42,
    0xFE53_4D42,
    0x5346_414F,
    0x7375_7245,
    0x0102_1997,
    0x00C3_6400,
    0x4750_4653,
    0x0BD0_0BD0,
    0x786F_4256,
    0x6573_5546,
    0x564C,
];

/// Whether a folder is on a network file system, where SQLite's write-ahead log does not work.
#[cfg(target_os = "linux")]
pub fn is_remote(folder: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let Ok(path) = std::ffi::CString::new(folder.as_os_str().as_bytes()) else { return false };
    let mut found = std::mem::MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: `path` is NUL-terminated, and an all-zero statfs is a valid value.
    #[expect(unsafe_code, reason = "std does not tell the file system")]
    let kind = unsafe {
        if libc::statfs(path.as_ptr(), found.as_mut_ptr()) != 0 {
            return false;
        }
        found.assume_init().f_type
    };
    REMOTE.contains(&(kind as u32))
}

/// Not checked elsewhere: macOS and Windows keep application data on a local disk.
#[cfg(not(target_os = "linux"))]
pub fn is_remote(_: &Path) -> bool {
    false
}

/// Whether a file is executable.
pub fn is_program(path: &Path) -> bool {
    let Ok(meta) = fs::metadata(path) else { return false };
    #[cfg(unix)]
    let may = std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let may = true;
    meta.is_file() && may
}

/// Whether a file belongs to the user.
#[cfg(unix)]
pub fn is_ours(meta: &fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::uid(meta) == user()
}

/// Windows keeps the user's folders private by itself.
#[cfg(not(unix))]
pub fn is_ours(_: &fs::Metadata) -> bool {
    true
}

/// The effective user id of this process.
#[cfg(unix)]
pub fn user() -> u32 {
    // SAFETY: geteuid(2) takes no arguments and always succeeds.
    #[expect(unsafe_code, reason = "std does not tell the user")]
    unsafe {
        libc::geteuid()
    }
}

/// Identifies a file whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity(u64, u64);

/// Device and inode.
#[cfg(unix)]
pub fn identity(meta: &fs::Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    Identity(meta.dev(), meta.ino())
}

/// Creation time: stable Rust offers no file index on Windows.
#[cfg(not(unix))]
pub fn identity(meta: &fs::Metadata) -> Identity {
    let created = meta.created().ok().and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok());
    Identity(0, created.map_or(0, |d| d.as_nanos() as u64))
}

/// Removes all permissions beyond `mode` from a file or folder.
#[cfg(unix)]
pub fn tighten(path: &Path, meta: &fs::Metadata, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    if meta.permissions().mode() & 0o777 & !mode != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// Windows keeps the user's folders private by itself.
#[cfg(not(unix))]
pub fn tighten(_: &Path, _: &fs::Metadata, _: u32) -> io::Result<()> {
    Ok(())
}

/// Opens a private file for appending: never through a link, and readable by its owner whatever the umask.
pub fn append_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true).read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    }
    let file = options.open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        if meta.permissions().mode() & 0o777 != 0o600 {
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
        }
    }
    Ok(file)
}

/// Opens one of nmem's files for reading, never through a link.
pub fn open_private(path: &Path) -> io::Result<File> {
    match fs::symlink_metadata(path)?.is_file() {
        true => Ok(open(path)?.0),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
    }
}

/// Replaces a private file atomically: written under another name, then renamed.
pub fn replace_private(path: &Path, text: &str) -> io::Result<()> {
    write_private(path, |file| file.write_all(text.as_bytes()))
}

/// Writes a private file in pieces, atomically: if `write` fails, no partial file remains.
pub fn write_private<T, E: From<io::Error>>(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<T, E>) -> Result<T, E> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!("-new-{}", &unique()[..8]));
    let temporary = Path::new(&name);
    let all = || -> Result<T, E> {
        let mut out = BufWriter::new(append_private(temporary)?);
        let done = write(&mut out)?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        fs::rename(temporary, path)?;
        Ok(done)
    };
    all().inspect_err(|_| drop(fs::remove_file(temporary)))
}

/// Removes a file, if it is there.
pub fn remove(path: &Path) -> io::Result<()> {
    fs::remove_file(path).or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

/// 32 random bytes in hex: a token that nobody guesses.
pub fn random_token() -> String {
    random().iter().map(|b| format!("{b:02x}")).collect()
}

/// Reads one of nmem's own keys (32 bytes in hex), or creates it. Of several processes that create it at once, the
/// first wins.
pub fn own_key(path: &Path) -> Option<[u8; 32]> {
    if fs::symlink_metadata(path).is_err() {
        let fresh = random_token();
        if let Some(folder) = path.parent().filter(|f| !f.is_dir()) {
            make_folder(folder).ok()?;
        }
        let mut name = path.as_os_str().to_owned();
        name.push(format!("-new-{}", &unique()[..8]));
        let temporary = Path::new(&name);
        replace_private(temporary, &format!("{fresh}\n")).ok()?;
        let _ = fs::hard_link(temporary, path);
        let _ = fs::remove_file(temporary);
    }
    let mut text = String::new();
    open_private(path).ok()?.take(SMALL).read_to_string(&mut text).ok()?;
    let text = text.trim();
    let byte = |i: usize| u8::from_str_radix(text.get(2 * i..2 * i + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..32).map(byte).collect();
    bytes.filter(|_| text.len() == 64)?.try_into().ok()
}

/// 32 bytes of system randomness.
fn random() -> [u8; 32] {
    let mut bytes = [0; 32];
    let read = File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes));
    if read.is_err() {
        // Windows has no such file; `unique` is seeded by the system.
        let text = unique() + &unique();
        bytes.iter_mut().zip(text.as_bytes().chunks(2)).for_each(|(b, pair)| *b = pair[0].wrapping_mul(31) ^ pair[1]);
    }
    bytes
}

/// A 128-bit random id. The standard library seeds its hashers from the system's random source.
pub fn unique() -> String {
    use std::hash::{BuildHasher, RandomState};
    let half = || RandomState::new().hash_one((std::process::id(), std::thread::current().id()));
    format!("{:016x}{:016x}", half(), half())
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
