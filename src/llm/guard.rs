//! A program that must be gone when its hook is, also when the hook is killed: nmem starts itself as a guard, which starts
//! the program in a process group of its own. The guard's stdin is a line to the hook: what is to be read comes through it,
//! and when it closes, the hook is done or dead, and the whole group is killed.

use super::refusal::refusal;
use crate::model::{Program, Refusal};
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// The hidden command that is a guard.
pub const COMMAND: &str = "guard";
/// How long the guard may take to end the program.
const ENDING: Duration = Duration::from_millis(500);

/// A program under guard, from the hook's side.
#[derive(Debug)]
pub struct Guarded {
    guard: Child,
    /// The line: dropped, it closes once what is to be read is through.
    line: Sender<()>,
}

impl Guarded {
    /// Starts a program and gives it a text to read.
    pub fn start(program: &Program, arguments: &[&str], text: String) -> io::Result<Guarded> {
        let mut command = Command::new(&program.guard);
        command.arg(COMMAND).arg(&program.path).args(arguments);
        command.current_dir(&program.folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        for name in &program.hidden {
            command.env_remove(name);
        }
        // Should a hook of nmem run in it all the same, it does nothing.
        command.env("NMEM_DISABLE", "1");
        apart(&mut command);
        let mut guard = command.spawn()?;
        let stdin = guard.stdin.take();
        let (line, open) = channel::<()>();
        std::thread::spawn(move || {
            let Some(mut stdin) = stdin else { return };
            let length = (text.len() as u64).to_le_bytes();
            if stdin.write_all(&length).and_then(|()| stdin.write_all(text.as_bytes())).is_ok() {
                // Until the other side is dropped.
                let _ = open.recv();
            }
        });
        Ok(Guarded { guard, line })
    }

    /// What the program prints, if it ends in time; then, or at the limit, nothing is left of it.
    pub fn output(mut self, limit: Duration, most: u64) -> Result<Vec<u8>, Refusal> {
        let stdout = self.guard.stdout.take();
        let (done, printed) = channel();
        std::thread::spawn(move || {
            let mut out = Vec::new();
            let read = stdout.map(|stdout| stdout.take(most + 1).read_to_end(&mut out));
            let _ = done.send(read.is_some_and(|read| read.is_ok()).then_some(out));
        });
        let printed = printed.recv_timeout(limit);
        self.end();
        match printed {
            Ok(Some(out)) if out.len() as u64 > most => Err(refusal("too large", "the program prints more than 1 MB")),
            Ok(Some(out)) => Ok(out),
            Err(RecvTimeoutError::Timeout) => Err(refusal("timeout", "the program did not answer in time")),
            _ => Err(refusal("program", "what the program prints can't be read")),
        }
    }

    fn end(self) {
        let Guarded { mut guard, line } = self;
        drop(line);
        let until = Instant::now() + ENDING;
        while matches!(guard.try_wait(), Ok(None)) {
            if Instant::now() > until {
                let _ = guard.kill();
                let _ = guard.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// The guard's side: runs a program until it ends or the line closes.
pub fn run(arguments: &[OsString]) -> ExitCode {
    let Some((program, arguments)) = arguments.split_first() else { return ExitCode::from(2) };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stderr(Stdio::null());
    apart(&mut command);
    let Ok(mut child) = command.spawn() else { return ExitCode::FAILURE };
    let (id, stdin) = (child.id(), child.stdin.take());
    std::thread::spawn(move || {
        let mut line = io::stdin().lock();
        let mut length = [0; 8];
        if line.read_exact(&mut length).is_ok() {
            let mut text = (&mut line).take(u64::from_le_bytes(length));
            // A program that reads none of it, or ends before, is no error here.
            let _ = stdin.map(|mut stdin| io::copy(&mut text, &mut stdin));
            let _ = io::copy(&mut line, &mut io::sink());
        }
        kill_group(id);
    });
    let ended = child.wait();
    // What it has started goes with it.
    kill_group(id);
    if ended.is_ok_and(|status| status.success()) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// In a process group of its own: a signal to the agent's does not reach it, the guard does.
#[cfg(unix)]
fn apart(command: &mut Command) {
    std::os::unix::process::CommandExt::process_group(command, 0);
}

#[cfg(not(unix))]
fn apart(_: &mut Command) {}

#[cfg(unix)]
fn kill_group(leader: u32) {
    let Ok(group) = libc::pid_t::try_from(leader) else { return };
    // SAFETY: a number goes in, a number comes out.
    #[expect(unsafe_code, reason = "std kills no groups")]
    unsafe {
        libc::kill(-group, libc::SIGKILL);
    }
}

/// Windows has no process groups; its own program ends a whole tree.
#[cfg(not(unix))]
fn kill_group(leader: u32) {
    let _ = Command::new("taskkill").args(["/T", "/F", "/PID", &leader.to_string()]).stdout(Stdio::null()).status();
}
