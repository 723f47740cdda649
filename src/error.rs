//! What can go wrong, as a user sees it: one line that says what failed, and one that says what to do next.
//!
//! Inside, errors are `anyhow` chains. At the surface a chain becomes a [`Failure`]. Hooks never get that far: they log
//! and exit 0 (`cli/hook.rs`, ADR/0006).

use std::fmt;

/// What a failed command tells its user.
#[derive(Debug)]
pub struct Failure {
    /// What failed and why, one line, no full stop.
    pub what: String,
    /// What to do next, where there is something.
    pub hint: Option<String>,
    pub kind: FailureKind,
}

/// Sorts failures by what the exit code says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// It could not be done: exit 1.
    Failed,
    /// It was asked for wrongly: exit 2.
    Usage,
}

impl FailureKind {
    /// Returns the process's exit code.
    pub fn exit_code(self) -> u8 {
        match self {
            FailureKind::Failed => 1,
            FailureKind::Usage => 2,
        }
    }
}

impl Failure {
    /// Makes a failure with its hint.
    pub fn new(what: impl Into<String>, hint: impl Into<String>) -> Failure {
        Failure { what: what.into(), hint: Some(hint.into()), kind: FailureKind::Failed }
    }

    /// Makes a failure of usage with its hint.
    pub fn usage(what: impl Into<String>, hint: impl Into<String>) -> Failure {
        Failure { kind: FailureKind::Usage, ..Failure::new(what, hint) }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Failure {}

/// Turns an error chain into what is shown. A `Failure` anywhere in the chain keeps its hint and kind.
pub fn explain(error: &anyhow::Error) -> Failure {
    let own = error.chain().find_map(|cause| cause.downcast_ref::<Failure>());
    Failure {
        what: format!("{error:#}"),
        hint: own.and_then(|f| f.hint.clone()),
        kind: own.map_or(FailureKind::Failed, |f| f.kind),
    }
}

/// Tells whether the reader of our output went away, which is no error.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe))
}
