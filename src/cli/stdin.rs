//! Reads stdin with a time limit, because a hook's caller may never close it.

use std::io::{self, IsTerminal, Read};
use std::time::{Duration, Instant};

/// Whether stdin is a terminal.
pub fn is_terminal() -> bool {
    io::stdin().is_terminal()
}

/// Stdin that fails with `TimedOut` at a deadline.
#[derive(Debug)]
pub struct Stdin {
    file: std::fs::File,
    until: Instant,
}

impl Stdin {
    /// Starts reading; `limit` counts from now.
    #[cfg(unix)]
    pub fn within(limit: Duration) -> io::Result<Stdin> {
        use std::os::fd::AsFd;
        Ok(Stdin { file: io::stdin().as_fd().try_clone_to_owned()?.into(), until: Instant::now() + limit })
    }

    /// Starts reading; `limit` counts from now.
    #[cfg(windows)]
    pub fn within(limit: Duration) -> io::Result<Stdin> {
        use std::os::windows::io::AsHandle;
        Ok(Stdin { file: io::stdin().as_handle().try_clone_to_owned()?.into(), until: Instant::now() + limit })
    }
}

impl Read for Stdin {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        wait(&self.file, self.until)?;
        self.file.read(buf)
    }
}

/// Waits until there is something to read.
#[cfg(unix)]
fn wait(file: &std::fs::File, until: Instant) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    loop {
        let left = until.saturating_duration_since(Instant::now()).as_millis().min(60_000) as libc::c_int;
        let mut poll = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid pollfd that outlives the call, and its count.
        #[expect(unsafe_code, reason = "std has no poll")]
        let ready = unsafe { libc::poll(&raw mut poll, 1, left) };
        match ready {
            0 => return Err(io::Error::new(io::ErrorKind::TimedOut, "stdin was not closed in time")),
            -1 => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            _ => return Ok(()),
        }
    }
}

/// Waits until there is something to read. Windows cannot wait for a pipe, so this polls it every few milliseconds.
#[cfg(windows)]
fn wait(file: &std::fs::File, until: Instant) -> io::Result<()> {
    use std::os::windows::io::AsRawHandle;
    use windows_sys::Win32::Storage::FileSystem::{FILE_TYPE_PIPE, GetFileType};
    use windows_sys::Win32::System::Pipes::PeekNamedPipe;
    const PAUSE: Duration = Duration::from_millis(2);
    let pipe = file.as_raw_handle();
    loop {
        let (none, mut waiting) = (std::ptr::null_mut(), 0);
        // SAFETY: the handle is open as long as `file`; null pointers request no output.
        #[expect(unsafe_code, reason = "std does not look into pipes")]
        let found = unsafe {
            GetFileType(pipe) != FILE_TYPE_PIPE
                || PeekNamedPipe(pipe, none, 0, std::ptr::null_mut(), &raw mut waiting, std::ptr::null_mut()) == 0
        };
        // Files never block, and reading a pipe whose other end is closed returns at once.
        if found || waiting > 0 {
            return Ok(());
        }
        if Instant::now() >= until {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "stdin was not closed in time"));
        }
        std::thread::sleep(PAUSE);
    }
}
