//! Commands that hooks call: bounded stdin, deadline, and the envelope that never fails the agent (ADR/0006). Memory for
//! other programs over stdio: `nmem mcp` (MCP tools) and `nmem rad` (the RAD protocol).

use super::output;
#[cfg(feature = "mcp")]
use super::project_argument::ProjectArgument;
use crate::config::environment;
#[cfg(feature = "mcp")]
use crate::error::UserError;
use crate::hook_event;
#[cfg(feature = "mcp")]
use crate::mcp;
use crate::platforms::payload;
use crate::rad::{self, Answered};
use crate::runtime::log_error;
use anyhow::Result;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Runs a hook. Always reports success to the agent; `run` returns the text to print.
pub fn run_safely(run: impl FnOnce() -> Result<Option<String>>) -> ExitCode {
    // The default panic hook prints to stderr, which some platforms show to the model.
    std::panic::set_hook(Box::new(|_| {}));
    keep_memory();
    match caught(run) {
        // The agent may have exited.
        Ok(Some(answer)) => drop(output::print(&answer)),
        Ok(None) => {}
        Err(error) => log_error(&format!("{error:#}")),
    }
    ExitCode::SUCCESS
}

/// Bytes of the heap that every hook needs.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const HEAP: usize = 320 << 10;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const PAGE: usize = 4096;

/// Keeps freed memory for reuse: otherwise glibc returns it to the system and requests it again a dozen times, each
/// time filled with zeros. Also has the kernel provide the pages of the heap in one call: each page by itself is a fault,
/// and they are a tenth of a hook's time (ADR/0007).
fn keep_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: sets numbers of the allocator, before any other thread starts, and has the kernel write zeros to pages
        // that lie inside a new block. Where the kernel can't, it changes nothing.
        #[expect(unsafe_code, reason = "std does not tune the allocator")]
        unsafe {
            libc::mallopt(libc::M_TRIM_THRESHOLD, 64 << 20);
            libc::mallopt(libc::M_TOP_PAD, 1 << 20);
            // A smaller block than this comes from the heap, and returns to it.
            libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 20);
            let block = libc::malloc(HEAP);
            let first = block.map_addr(|at| at.next_multiple_of(PAGE));
            libc::madvise(first, HEAP - PAGE, libc::MADV_POPULATE_WRITE);
            libc::free(block);
        }
    }
}

fn caught<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| Err(anyhow::anyhow!("panic: {}", message(&*panic))))
}

fn message(panic: &(dyn std::any::Any + Send)) -> &str {
    panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("unknown")
}

/// Maximum wait for stdin to close: less than the shortest timeout that `install` sets.
const STDIN: Duration = Duration::from_secs(8);

#[derive(Debug, clap::Args)]
pub struct RecordArguments {
    /// The agent that sends the event [default: detected from the payload]
    #[arg(long, value_name = "NAME")]
    platform: Option<String>,
}

/// Runs the hook; returns what to print.
pub fn run(args: &[OsString]) -> Result<Option<String>> {
    if environment::switched_off().is_some() {
        return Ok(None);
    }
    hook_event::answer(hook_event::platform(args), payload::read(Stdin::within(STDIN)?)?)
}

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

/// Serve memory as MCP tools over stdio
#[cfg(feature = "mcp")]
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: claude mcp add nmem -- nmem mcp\n         nmem install cursor --mcp\n\nSix tools: memory_search, memory_context, memory_show, memory_remember, memory_error, memory_how. A client starts it in the project's folder and ends it."
)]
pub struct McpArguments {
    #[command(flatten)]
    project: ProjectArgument,
}

/// Runs `nmem mcp`.
#[cfg(feature = "mcp")]
pub fn run_mcp(args: &McpArguments) -> Result<()> {
    if std::io::stdin().is_terminal() {
        return Err(UserError::usage("`nmem mcp` speaks to a program, not to a person", "see `nmem mcp --help`").into());
    }
    mcp::serve(args.project.folder()?)
}

/// Handle a JSON request from another program (RAD protocol)
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: echo '{\"agent_session_id\": \"a-1\", \"project\": \"my-app\", \"user_prompt\": \"Add a login\"}' | nmem rad sessions/ensure\n\nVerbs: sessions/init, sessions/ensure, observations, sessions/summarize, sessions/complete, context, search, observation, session, entities, knowledge/record, knowledge/related, health. An invalid request is answered with {\"error\": {\"code\", \"message\"}} and exit 1. With --batch each line is a request, which may name its own verb in \"verb\"; each answer is a line."
)]
pub struct RadArguments {
    /// The request, such as sessions/init or search
    #[arg(value_name = "VERB")]
    verb: Option<String>,
    /// One request per line, one answer per line
    #[arg(long)]
    batch: bool,
}

/// Runs `nmem rad`; returns true if every request was answered.
pub fn run_rad(args: &RadArguments) -> Result<bool> {
    let verb = args.verb.as_deref();
    let mut say = |answer: Answered| output::print(&answer.unwrap_or_else(|problem| problem.json()).to_string());
    if args.batch {
        return rad::batch(verb, std::io::stdin().lock(), &mut say);
    }
    let answer = rad::answer(verb, payload::read(std::io::stdin().lock())?)?;
    let answered = answer.is_ok();
    say(answer)?;
    Ok(answered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_that_says_what_it_was() {
        let error = caught::<()>(|| panic!("boom {}", 1)).unwrap_err();
        assert_eq!(error.to_string(), "panic: boom 1");
    }
}
