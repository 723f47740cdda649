//! Results of queries about commands: how an earlier error was resolved, and how a program is called.

use super::Millis;

/// An error that occurred before.
#[derive(Clone, Debug, PartialEq)]
pub struct PastError {
    /// Normalised text by which equal errors are recognised: without paths, numbers and quoted names.
    pub signature: String,
    /// Similarity to the error in question; 1 if both have the same words.
    pub likeness: f64,
    pub at: Millis,
    /// The session id assigned by the agent.
    pub session: String,
    pub unit: Option<i64>,
    pub command: String,
    /// The output line that reports the error.
    pub error: String,
    /// The resolution; `None` if the session did not resolve the error.
    pub ended_by: Option<ErrorEnding>,
}

/// The resolution of an error.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ErrorEnding {
    /// The command that succeeded afterwards.
    pub command: String,
    /// Files changed before that command, relative to the project.
    pub files: Vec<String>,
    /// Id and subject of the next commit.
    pub commit: Option<String>,
    /// Text about the error in a memory of the same unit, with the memory's id.
    pub text: Option<(String, i64)>,
}

/// A form in which a program is called.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandForm {
    /// The newest successful call of this form, or the newest call if none succeeded.
    pub command: String,
    pub succeeded: usize,
    pub failed: usize,
    /// True if it succeeded right after another form had failed.
    pub worked_instead: bool,
    pub last_at: Millis,
    pub unit: Option<i64>,
}
