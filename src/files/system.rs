//! Differences between systems: the owner of a file, its identity, whether others share it, and whether a process still
//! runs.

use crate::model::Client;
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

/// Adds the start time to a process id. `started` is `None` if the system does not report it cheaply.
pub fn process(pid: u32) -> Client {
    Client { pid, started: started(pid) }
}

/// Returns the process that started this one, which may be a shell and not the agent. Windows does not report it, so
/// there this process is returned.
pub fn calling_process() -> Client {
    #[cfg(unix)]
    let pid = std::os::unix::process::parent_id();
    #[cfg(not(unix))]
    let pid = std::process::id();
    Client { pid, started: None }
}

/// Returns true if exactly this process is still running; `None` if unknown.
pub fn is_alive(client: Client) -> Option<bool> {
    let noted = client.started?;
    Some(started(client.pid) == Some(noted))
}

/// Reads field 22 of `/proc/PID/stat` (proc(5)). Fields are counted after the program's name, which ends with `)` and
/// may contain any character.
#[cfg(target_os = "linux")]
fn started(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// Reads the start time with `proc_pidinfo` (libproc.h), in microseconds since 1970.
#[cfg(target_os = "macos")]
fn started(pid: u32) -> Option<u64> {
    let pid = libc::c_int::try_from(pid).ok()?;
    let size = size_of::<libc::proc_bsdinfo>() as libc::c_int;
    let mut info = std::mem::MaybeUninit::<libc::proc_bsdinfo>::zeroed();
    // SAFETY: `info` has room for `size` bytes, and all-zero is a valid value.
    #[expect(unsafe_code, reason = "std does not tell when another process started")]
    let info = unsafe {
        if libc::proc_pidinfo(pid, libc::PROC_PIDTBSDINFO, 0, info.as_mut_ptr().cast(), size) != size {
            return None;
        }
        info.assume_init()
    };
    Some(info.pbi_start_tvsec * 1_000_000 + info.pbi_start_tvusec)
}

/// Reads the start time with `GetProcessTimes`, in units of 100 ns since 1601.
#[cfg(windows)]
fn started(pid: u32) -> Option<u64> {
    use windows_sys::Win32::Foundation::{CloseHandle, FILETIME, WAIT_TIMEOUT};
    use windows_sys::Win32::System::Threading::{
        GetProcessTimes, OpenProcess, PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE, WaitForSingleObject,
    };
    let mut times = [FILETIME { dwLowDateTime: 0, dwHighDateTime: 0 }; 4];
    let [created, exited, kernel, user] = &mut times;
    // SAFETY: the handle is checked, and closed once; the times outlive the call.
    #[expect(unsafe_code, reason = "std does not tell when another process started")]
    let is_running = unsafe {
        let process = OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE, 0, pid);
        if process.is_null() {
            return None;
        }
        let known = GetProcessTimes(process, created, exited, kernel, user) != 0;
        // A process that has exited remains known while another process holds a handle to it.
        let is_running = known && WaitForSingleObject(process, 0) == WAIT_TIMEOUT;
        CloseHandle(process);
        is_running
    };
    is_running.then_some(u64::from(created.dwHighDateTime) << 32 | u64::from(created.dwLowDateTime))
}

#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
fn started(_: u32) -> Option<u64> {
    None
}

#[cfg(all(test, any(target_os = "linux", target_os = "macos", windows)))]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_id_and_start_time() {
        let me = process(std::process::id());
        assert_eq!(is_alive(me), Some(true));
        assert_eq!(is_alive(Client { started: me.started.map(|s| s + 1), ..me }), Some(false));
        assert_eq!(is_alive(Client { started: None, ..me }), None);
    }
}
