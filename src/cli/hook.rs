//! The envelope around everything that an agent starts: exit 0, a panic caught, errors in the log, nothing on stdout but
//! what the platform accepts (ADR/0006).

use super::output;
use crate::config::{self, Config, environment};
use crate::error::Failure;
use crate::files;
use crate::log;
use crate::model::LogLevel;
use crate::record::Recorder;
use crate::redact::Redactor;
use anyhow::Result;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

/// Runs a hook. Whatever happens in it, the agent sees success; `run` returns what is to be printed.
pub fn sealed(run: impl FnOnce() -> Result<Option<String>>) -> ExitCode {
    // The default hook would print to stderr, which some platforms show to the model.
    std::panic::set_hook(Box::new(|_| {}));
    keep_memory();
    match caught(run) {
        // The agent may be gone: nobody is left to be told.
        Ok(Some(answer)) => drop(output::say(&answer)),
        Ok(None) => {}
        Err(error) => log_error(&format!("{error:#}")),
    }
    ExitCode::SUCCESS
}

/// A hook is gone in milliseconds: memory that is freed is kept for what comes next. Else glibc gives it back to the system
/// and asks for it again a dozen times, each time to be filled with zeros: a twentieth of a hook's time.
fn keep_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: sets two numbers of the allocator; it is called before any other thread is begun.
        #[expect(unsafe_code, reason = "std does not tune the allocator")]
        unsafe {
            libc::mallopt(libc::M_TRIM_THRESHOLD, 64 << 20);
            libc::mallopt(libc::M_TOP_PAD, 1 << 20);
        }
    }
}

fn caught<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| Err(anyhow::anyhow!("panic: {}", words(&*panic))))
}

fn words(panic: &(dyn std::any::Any + Send)) -> &str {
    panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("unknown")
}

/// Writes an error to the log, redacted.
pub fn log_error(message: &str) {
    log_at(LogLevel::Error, message);
}

/// Writes a line to the log, redacted, if the log is to say so much.
pub fn log_at(level: LogLevel, message: &str) {
    if let Ok(files) = config::files() {
        // An error is rare: reading the user's patterns once more costs nothing that counts.
        let own = config::load(&[]).ok().and_then(|config| redactor(&config).ok());
        let clean = own.unwrap_or_default().clean(message.to_string());
        log::write(&files.value, environment::log_level(), level, environment::now(), &clean);
    }
}

/// The redactor with the user's own patterns; the key of marks is read when the first mark is made.
pub fn redactor(config: &Config) -> Result<Redactor> {
    let key = config.mark_key.clone();
    let made = Redactor::new(&config.redact.value, &config.ignored(), Some(Box::new(move || files::own_key(&key))));
    made.map_err(|e| {
        let what = format!("{}: {}", config.file.display(), e.split_whitespace().collect::<Vec<_>>().join(" "));
        Failure::new(what, "mend it; until then hooks record nothing").into()
    })
}

/// Puts together what recording needs.
pub fn recorder<'a>(config: &'a Config, redactor: &'a Redactor) -> Recorder<'a> {
    Recorder {
        config,
        redactor,
        client_pid: environment::client_pid(),
        session_folder: environment::session_folder(),
        transcripts: environment::claude_folder(config.home.as_deref()),
    }
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
