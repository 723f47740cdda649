//! Errors as a user sees them: one line with the failure, one with the next step.
//!
//! Inside nmem, errors are `anyhow` chains. At the surface a chain becomes a [`UserError`]. Hooks log their errors and
//! exit 0 instead (`cli/hook.rs`, ADR/0006).

use std::fmt;

/// Message of a command in a folder that is not a project.
pub const NO_PROJECT: &str = "this folder is not a project (the home folder, the temporary folder and / cannot be projects)";

/// Message of a failed command.
#[derive(Debug)]
pub struct UserError {
    /// The failure and its cause: one line, no full stop.
    pub what: String,
    /// The next step for the user, if any.
    pub hint: Option<String>,
    pub kind: FailureKind,
}

/// Error kinds, by exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The command failed: exit 1.
    Failed,
    /// The command was used wrongly: exit 2.
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

impl UserError {
    /// Creates an error with a hint.
    pub fn new(what: impl Into<String>, hint: impl Into<String>) -> UserError {
        UserError { what: what.into(), hint: Some(hint.into()), kind: FailureKind::Failed }
    }

    /// Creates a usage error with a hint.
    pub fn usage(what: impl Into<String>, hint: impl Into<String>) -> UserError {
        UserError { kind: FailureKind::Usage, ..UserError::new(what, hint) }
    }
}

impl fmt::Display for UserError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for UserError {}

/// Converts an error chain to the error that the user sees. A `UserError` anywhere in the chain keeps its hint and
/// kind.
pub fn explain(error: &anyhow::Error) -> UserError {
    let own = error.chain().find_map(|cause| cause.downcast_ref::<UserError>());
    UserError {
        what: format!("{error:#}"),
        hint: own.and_then(|f| f.hint.clone()),
        kind: own.map_or(FailureKind::Failed, |f| f.kind),
    }
}

/// Whether the reader of our output closed the pipe. That is not an error.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let is_pipe = |cause: &(dyn std::error::Error + 'static)| {
        let io = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        let json = cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
        io.or(json) == Some(std::io::ErrorKind::BrokenPipe)
    };
    error.chain().any(is_pipe)
}
