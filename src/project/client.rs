//! The agent's process, noted at session start so that later commands can tell whether it still runs.

use crate::model::Client;

/// Adds the start time to a process id. `started` is `None` if the system does not report it cheaply.
pub fn client(pid: u32) -> Client {
    Client { pid, started: started(pid) }
}

/// The process that started this one. It may be a shell, not the agent.
pub fn caller() -> Client {
    #[cfg(unix)]
    let pid = std::os::unix::process::parent_id();
    #[cfg(not(unix))]
    let pid = std::process::id();
    Client { pid, started: None }
}

/// Whether this very process still runs; `None` if unknown.
pub fn is_alive(client: Client) -> Option<bool> {
    let noted = client.started?;
    Some(started(client.pid) == Some(noted))
}

/// proc(5): field 22 of `/proc/PID/stat`, counted after the program's name, which may contain anything but ends in `)`.
#[cfg(target_os = "linux")]
fn started(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(not(target_os = "linux"))]
fn started(_: u32) -> Option<u64> {
    None
}

#[cfg(all(test, target_os = "linux"))]
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
