//! Runs a program that must not outlive its hook, even if the hook is killed. nmem starts itself as a guard, and the
//! guard starts the program in its own process group. The guard's stdin is a pipe from the hook: it carries the
//! program's input, and when it closes, the hook is done or dead and the guard kills the group.

use super::servers::failure;
use crate::model::{LlmError, Program};
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// The hidden command that runs the guard.
pub const COMMAND: &str = "guard";
/// Maximum time that the guard may take to kill the program.
const ENDING: Duration = Duration::from_millis(500);

/// Maximum time in which a program that has closed its output ends by itself.
const ENDED: Duration = Duration::from_millis(200);
/// Bytes of stderr that are read: an error's message.
const ERRORS: u64 = 64 * 1024;

/// A program's output.
#[derive(Debug, Default)]
pub struct Printed {
    pub out: Vec<u8>,
    pub err: Vec<u8>,
    /// It ended with an error.
    pub failed: bool,
}

/// A guarded program, seen from the hook.
#[derive(Debug)]
pub struct Guarded {
    guard: Child,
    /// Keeps the pipe open; dropping it closes the pipe once the input is written.
    line: Sender<()>,
}

impl Guarded {
    /// Starts a program with additions to its environment, and writes `text` to its stdin.
    pub fn start(program: &Program, arguments: &[String], environment: &[(&str, String)], text: String) -> io::Result<Guarded> {
        let mut command = Command::new(&program.guard);
        command.arg(COMMAND).arg(&program.path).args(arguments);
        command.current_dir(&program.folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        for name in &program.hidden {
            command.env_remove(name);
        }
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        // A hook of nmem inside the program must do nothing.
        command.env("NMEM_DISABLE", "1");
        apart(&mut command);
        let mut guard = command.spawn()?;
        let stdin = guard.stdin.take();
        let (line, open) = channel::<()>();
        std::thread::spawn(move || {
            let Some(mut stdin) = stdin else { return };
            let length = (text.len() as u64).to_le_bytes();
            if stdin.write_all(&length).and_then(|()| stdin.write_all(text.as_bytes())).is_ok() {
                // Blocks until the other side is dropped.
                let _ = open.recv();
            }
        });
        Ok(Guarded { guard, line })
    }

    /// Returns the program's output if it ends in time. After that, or at the limit, the whole process group is dead.
    pub fn output(mut self, limit: Duration, most: u64) -> Result<Printed, LlmError> {
        let read = |from: Option<Box<dyn Read + Send>>, most: u64| {
            let (done, text) = channel();
            std::thread::spawn(move || {
                let mut out = Vec::new();
                let read = from.map(|from| from.take(most + 1).read_to_end(&mut out));
                let _ = done.send(read.is_some_and(|read| read.is_ok()).then_some(out));
            });
            text
        };
        let errors = read(self.guard.stderr.take().map(|from| Box::new(from) as _), ERRORS);
        let printed = read(self.guard.stdout.take().map(|from| Box::new(from) as _), most);
        let printed = printed.recv_timeout(limit);
        let failed = !self.end(if printed.is_ok() { ENDED } else { Duration::ZERO });
        match printed {
            Ok(Some(out)) if out.len() as u64 > most => Err(failure("too large", "the program printed more than 1 MB")),
            Ok(Some(out)) => Ok(Printed { out, err: errors.recv_timeout(ENDED).ok().flatten().unwrap_or_default(), failed }),
            Err(RecvTimeoutError::Timeout) => Err(failure("timeout", "the program did not answer in time")),
            _ => Err(failure("program", "the program's output cannot be read")),
        }
    }

    /// Ends the guard, at once or after `grace`; returns whether the program succeeded by itself.
    fn end(self, grace: Duration) -> bool {
        let Guarded { mut guard, line } = self;
        let ended = waits(&mut guard, grace);
        drop(line);
        if ended.is_none() && waits(&mut guard, ENDING).is_none() {
            let _ = guard.kill();
            let _ = guard.wait();
        }
        ended.is_some_and(|status| status.success())
    }
}

/// Waits for a process; `None` if it is still there after `limit`.
fn waits(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let until = Instant::now() + limit;
    loop {
        match child.try_wait() {
            Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(2)),
            ended => return ended.ok().flatten(),
        }
    }
}

/// Runs the guard itself, which runs a program until it ends or the pipe closes.
pub fn run(arguments: &[OsString]) -> ExitCode {
    let Some((program, arguments)) = arguments.split_first() else { return ExitCode::from(2) };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped());
    apart(&mut command);
    let Ok(mut child) = command.spawn() else { return ExitCode::FAILURE };
    let (id, stdin) = (child.id(), child.stdin.take());
    std::thread::spawn(move || {
        let mut line = io::stdin().lock();
        let mut length = [0; 8];
        if line.read_exact(&mut length).is_ok() {
            let mut text = (&mut line).take(u64::from_le_bytes(length));
            // A program that ignores its input, or ends early, is not an error here.
            let _ = stdin.map(|mut stdin| io::copy(&mut text, &mut stdin));
            let _ = io::copy(&mut line, &mut io::sink());
        }
        kill_group(id);
    });
    let ended = child.wait();
    // Kill its child processes too.
    kill_group(id);
    if ended.is_ok_and(|status| status.success()) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Puts a command into its own process group, which signals to the agent's group do not reach. The guard kills that
/// group.
#[cfg(unix)]
fn apart(command: &mut Command) {
    std::os::unix::process::CommandExt::process_group(command, 0);
}

#[cfg(not(unix))]
fn apart(_: &mut Command) {}

#[cfg(unix)]
fn kill_group(leader: u32) {
    let Ok(group) = libc::pid_t::try_from(leader) else { return };
    // SAFETY: plain numbers in and out.
    #[expect(unsafe_code, reason = "std kills no groups")]
    unsafe {
        libc::kill(-group, libc::SIGKILL);
    }
}

/// Ends a whole process tree with `taskkill`, since Windows has no process groups.
#[cfg(not(unix))]
fn kill_group(leader: u32) {
    let _ = Command::new("taskkill").args(["/T", "/F", "/PID", &leader.to_string()]).stdout(Stdio::null()).status();
}
