//! Differences between systems: the owner of a file, its identity, whether others share it.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Network and shared file systems by their statfs(2) number: NFS, SMB and CIFS, AFS, Coda, 9P, Ceph, GPFS, Lustre,
/// VirtualBox, and anything on FUSE. Processes of several machines may share a file there, or shared memory may not
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

/// Not checked on other systems: macOS and Windows keep application data on a local disk.
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

/// Always true: Windows already keeps the user's folders private.
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

/// Whether another process holds a lock on a byte of a file. Closing a file gives up this process's own locks on it.
#[cfg(unix)]
pub fn is_locked(path: &Path, byte: i64) -> bool {
    use std::os::fd::AsRawFd;
    let Ok(file) = File::open(path) else { return false };
    // SAFETY: the structure is plain numbers, and fcntl(2) only fills it.
    #[expect(unsafe_code, reason = "std has no locks of ranges")]
    unsafe {
        let mut lock: libc::flock = std::mem::zeroed();
        lock.l_type = libc::F_WRLCK as _;
        lock.l_whence = libc::SEEK_SET as _;
        lock.l_start = byte as _;
        lock.l_len = 1;
        libc::fcntl(file.as_raw_fd(), libc::F_GETLK, &mut lock) == 0 && lock.l_type != libc::F_UNLCK as libc::c_short
    }
}

/// Always false: Windows does not let a file be cut that another process has mapped.
#[cfg(not(unix))]
pub fn is_locked(_: &Path, _: i64) -> bool {
    false
}

/// Identity of a file, independent of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity(u64, u64);

/// Returns device and inode.
#[cfg(unix)]
pub fn identity(meta: &fs::Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    Identity(meta.dev(), meta.ino())
}

/// Returns the creation time: stable Rust offers no file index on Windows.
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

/// Does nothing: Windows already keeps the user's folders private.
#[cfg(not(unix))]
pub fn tighten(_: &Path, _: &fs::Metadata, _: u32) -> io::Result<()> {
    Ok(())
}
