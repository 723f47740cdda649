//! The only module that prints: results to stdout, through a pager if they are long, and messages to stderr.

use crate::config::environment;
use crate::error::UserError;
use crate::render::clean::line;
use crate::render::style::{Style, wrap};
use anyhow::Result;
use std::io::{self, IsTerminal, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Prints a result, wrapped to the width of a terminal.
pub fn say(text: &str) -> Result<()> {
    match columns() {
        Some(width) => print(&wrap(text, width)),
        None => print(text),
    }
}

/// Prints one of several results: wrapped for a person, unchanged for a program.
pub fn entry(text: &str, is_for_programs: bool) -> Result<()> {
    if is_for_programs { print(text) } else { say(text) }
}

/// Prints JSON and other text for programs unchanged.
pub fn print(text: &str) -> Result<()> {
    if let Ok(mut pager) = PAGER.lock() {
        if let Pager::Wanted = *pager {
            *pager = started_pager().map_or(Pager::None, Pager::Running);
        }
        if let Pager::Running(child) = &mut *pager
            && let Some(to) = &mut child.stdin
        {
            to.write_all(text.as_bytes())?;
            return Ok(to.write_all(b"\n")?);
        }
    }
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}

/// The program that shows long output in pages.
enum Pager {
    None,
    /// It starts with the first text.
    Wanted,
    Running(Child),
}

static PAGER: Mutex<Pager> = Mutex::new(Pager::None);
/// True if notes and progress are not wanted.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Leaves out notes and progress; errors are printed.
pub fn be_quiet() {
    QUIET.store(true, Relaxed);
}

/// Shows what is printed from now on in a pager, if a person reads it: stdout is a terminal, and not an agent's, which would
/// wait for the pager.
pub fn page() {
    if io::stdout().is_terminal()
        && !environment::is_run_by_agent()
        && let Ok(mut pager) = PAGER.lock()
    {
        *pager = Pager::Wanted;
    }
}

/// Starts the program that `PAGER` names, or `less`; `None` if there is none, or it is not wanted.
fn started_pager() -> Option<Child> {
    let named = environment::pager().unwrap_or_else(|| "less".into());
    let mut words = named.split_whitespace();
    let program = environment::program(words.next().filter(|name| *name != "cat")?)?;
    let mut pager = Command::new(program);
    pager.args(words).stdin(Stdio::piped());
    // As git sets it: less ends if all fits on the screen, keeps colours, and leaves the text there.
    if !environment::has_less_settings() {
        pager.env("LESS", "FRX");
    }
    let child = pager.spawn().ok()?;
    leave_interrupts_to_pager();
    Some(child)
}

/// Ctrl-C is for the pager: if this program ended first, the pager would be left without its terminal.
fn leave_interrupts_to_pager() {
    #[cfg(unix)]
    // SAFETY: sets the disposition of a signal to a constant.
    #[expect(unsafe_code, reason = "std cannot ignore a signal")]
    unsafe {
        libc::signal(libc::SIGINT, libc::SIG_IGN);
    }
}

/// Waits until the reader leaves the pager.
pub fn close_pager() {
    let running = PAGER.lock().map(|mut pager| std::mem::replace(&mut *pager, Pager::None));
    if let Ok(Pager::Running(mut child)) = running {
        drop(child.stdin.take());
        let _ = child.wait();
    }
}

/// Colour and width for stdout: colour only on a terminal and without NO_COLOR.
pub fn style() -> Style {
    if !io::stdout().is_terminal() {
        return Style::default();
    }
    Style { colour: !environment::no_color(), width: columns().unwrap_or(Style::default().width) }
}

/// Returns the width of the terminal that stdout writes to; `None` if there is none.
fn columns() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size().filter(|_| io::stdout().is_terminal())?;
    Some(usize::from(width.0).max(20))
}

/// A progress line on stderr, shown on a terminal if a command takes longer than a second.
#[derive(Debug)]
pub struct Progress {
    step: Arc<Mutex<Option<String>>>,
    line: Option<JoinHandle<()>>,
}

impl Progress {
    /// Starts; nothing is shown in the first second.
    pub fn begin() -> Progress {
        let step = Arc::new(Mutex::new(Some(String::new())));
        let (shown, begun) = (Arc::clone(&step), Instant::now());
        let draw = move || {
            let mut drawn = false;
            loop {
                std::thread::sleep(Duration::from_millis(100));
                let Some(step) = shown.lock().ok().and_then(|s| s.clone()) else { break };
                if begun.elapsed() > Duration::from_secs(1) {
                    drawn = true;
                    let _ = write!(io::stderr().lock(), "\r\u{1b}[K{step} … {} s", begun.elapsed().as_secs());
                }
            }
            if drawn {
                let _ = write!(io::stderr().lock(), "\r\u{1b}[K");
            }
        };
        let is_wanted = io::stderr().is_terminal() && !QUIET.load(Relaxed);
        Progress { step, line: is_wanted.then(|| std::thread::spawn(draw)) }
    }

    /// Shows the current step.
    pub fn say(&self, step: &str) {
        if let Ok(mut shown) = self.step.lock() {
            *shown = Some(step.to_string());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Ok(mut shown) = self.step.lock() {
            *shown = None;
        }
        drop(self.line.take().map(JoinHandle::join));
    }
}

/// Asks for confirmation on the terminal; returns an error if there is none.
pub fn confirm(question: &str) -> Result<bool> {
    if !io::stdin().is_terminal() {
        return Err(UserError::usage("cannot ask for confirmation: stdin is not a terminal", "--yes answers").into());
    }
    let answer = ask(&format!("{question} [y/N]"))?;
    Ok(answer.is_some_and(|answer| matches!(answer.as_str(), "y" | "yes")))
}

/// Whether a person runs this command: it is on a terminal, and no variable of an agent is set. An agent that opens a terminal
/// and clears its variables counts as one: it can do all that the user can.
pub fn is_person() -> bool {
    let on_terminal = io::stdin().is_terminal() || io::stdout().is_terminal() || io::stderr().is_terminal();
    on_terminal && !environment::is_run_by_agent()
}

/// Refuses anybody but a person at a terminal.
///
/// # Errors
///
/// An agent or a script runs this command.
pub fn only_by_person(what: &str, command: &str) -> Result<()> {
    match is_person() {
        true => Ok(()),
        false => {
            Err(UserError::new(format!("only a person can {what}"), format!("run `{command}` in a terminal of your own")).into())
        }
    }
}

/// Asks a question until it is answered; Enter means no. `None` at the end of the input.
pub fn yes_or_no(question: &str) -> Result<Option<bool>> {
    loop {
        match ask(&format!("{question} [y/N]"))?.as_deref() {
            None => return Ok(None),
            Some("y" | "yes") => return Ok(Some(true)),
            Some("" | "n" | "no") => return Ok(Some(false)),
            Some(_) => {}
        }
    }
}

/// Asks on the terminal; returns the answer in lower case, `None` at the end of the input.
pub fn ask(question: &str) -> Result<Option<String>> {
    let mut err = io::stderr().lock();
    write!(err, "{question} ")?;
    err.flush()?;
    let mut answer = String::new();
    let read = io::stdin().read_line(&mut answer)?;
    Ok((read > 0).then(|| answer.trim().to_lowercase()))
}

/// Prints an error and what to do next to stderr.
pub fn complain(failure: &UserError) {
    close_pager();
    let style = Style { colour: io::stderr().is_terminal() && !environment::no_color(), ..Style::default() };
    let mut err = io::stderr().lock();
    let _ = writeln!(err, "{} {}", style.bad("nmem:"), line(&failure.what, 2000));
    if let Some(hint) = &failure.hint {
        let _ = writeln!(err, "  {}", line(hint, 500));
    }
}

/// Prints a note to stderr, unless the user wants none.
pub fn warn(text: &str) {
    if QUIET.load(Relaxed) {
        return;
    }
    close_pager();
    let _ = writeln!(io::stderr().lock(), "nmem: {}", line(text, 2000));
}
