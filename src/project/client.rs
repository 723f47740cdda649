//! The agent's process, recorded at session start so that later commands can tell whether it is still running.

use crate::model::Client;

/// Adds the start time to a process id. `started` is `None` if the system does not report it cheaply.
pub fn client(pid: u32) -> Client {
    Client { pid, started: started(pid) }
}

/// Returns the process that started this one, which may be a shell and not the agent. Windows does not report it, so
/// there this process is returned.
pub fn caller() -> Client {
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
        let me = client(std::process::id());
        assert_eq!(is_alive(me), Some(true));
        assert_eq!(is_alive(Client { started: me.started.map(|s| s + 1), ..me }), Some(false));
        assert_eq!(is_alive(Client { started: None, ..me }), None);
    }
}
