//! nmem's own files: private to their owner, never reached through a link, replaced as a whole.

use super::open;
#[cfg(unix)]
use super::system::{tighten, user};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

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

/// Creates or checks one of nmem's own folders where others may write: not a link, owned by the user, closed to others.
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

/// Returns an unguessable token: 32 random bytes in hex.
pub fn random_token() -> String {
    // The standard library seeds what `unique` uses from the same source.
    random().map_or_else(|_| unique() + &unique(), |bytes| bytes.iter().map(|b| format!("{b:02x}")).collect())
}

/// Reads one of nmem's own keys (32 bytes in hex), or creates it. If several processes create it at once, the first
/// wins.
pub fn own_key(path: &Path) -> Option<[u8; 32]> {
    // Each edit's hook reads it: no call to the system is made twice.
    let open = || match open_private(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        opened => Some(opened),
    };
    let opened = open().or_else(|| {
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
        open()
    });
    let mut bytes = [0; 128];
    let length = opened?.ok()?.read(&mut bytes).ok()?;
    let text = std::str::from_utf8(&bytes[..length]).ok()?.trim();
    let byte = |i: usize| u8::from_str_radix(text.get(2 * i..2 * i + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..32).map(byte).collect();
    bytes.filter(|_| text.len() == 64)?.try_into().ok()
}

/// 32 bytes of system randomness.
fn random() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

/// A 128-bit random id. The standard library seeds its hashers from the system's random source.
pub fn unique() -> String {
    use std::hash::{BuildHasher, RandomState};
    let half = || RandomState::new().hash_one((std::process::id(), std::thread::current().id()));
    format!("{:016x}{:016x}", half(), half())
}

/// Locks a folder until the result is dropped, against other processes that lock it; `None` on a file system without
/// locks, which is not an error.
#[cfg(unix)]
pub fn lock_folder(folder: &Path) -> io::Result<Option<File>> {
    let folder = File::open(folder)?;
    Ok(folder.lock().is_ok().then_some(folder))
}

/// Locks a file in the folder, since Windows locks only files.
#[cfg(not(unix))]
pub fn lock_folder(folder: &Path) -> io::Result<Option<File>> {
    let file = append_private(&folder.join("lock"))?;
    Ok(file.lock().is_ok().then_some(file))
}
