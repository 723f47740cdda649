//! The only module that prints: results to stdout, messages to stderr.

use crate::config::environment;
use crate::error::UserError;
use crate::render::clean::line;
use crate::render::style::{Style, wrap};
use anyhow::Result;
use std::io::{self, IsTerminal, Write};
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
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
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
        Progress { step, line: io::stderr().is_terminal().then(|| std::thread::spawn(draw)) }
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
    let style = Style { colour: io::stderr().is_terminal() && !environment::no_color(), ..Style::default() };
    let mut err = io::stderr().lock();
    let _ = writeln!(err, "{} {}", style.bad("nmem:"), line(&failure.what, 2000));
    if let Some(hint) = &failure.hint {
        let _ = writeln!(err, "  {}", line(hint, 500));
    }
}

/// Prints a warning to stderr.
pub fn warn(text: &str) {
    let _ = writeln!(io::stderr().lock(), "nmem: {}", line(text, 2000));
}
