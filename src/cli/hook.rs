//! Wraps everything that an agent starts: exit code 0, panics caught, errors logged, and nothing on stdout but what the
//! platform accepts (ADR/0006).

use super::output;
use crate::runtime::log_error;
use anyhow::Result;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

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

/// Keeps freed memory for reuse: otherwise glibc returns it to the system and requests it again a dozen times, each
/// time filled with zeros. That takes a twentieth of a hook's time.
fn keep_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: sets two numbers of the allocator, before any other thread starts.
        #[expect(unsafe_code, reason = "std does not tune the allocator")]
        unsafe {
            libc::mallopt(libc::M_TRIM_THRESHOLD, 64 << 20);
            libc::mallopt(libc::M_TOP_PAD, 1 << 20);
        }
    }
}

fn caught<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| Err(anyhow::anyhow!("panic: {}", message(&*panic))))
}

fn message(panic: &(dyn std::any::Any + Send)) -> &str {
    panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("unknown")
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
