//! What people and agents ask about commands: what ended an error before, how a program is called.

use super::Millis;

/// An error that occurred before.
#[derive(Clone, Debug, PartialEq)]
pub struct PastError {
    /// By what it is the same as others: its words without paths, numbers and quoted names.
    pub signature: String,
    /// How alike it is to the one asked about; 1 if it has the same words.
    pub likeness: f64,
    pub at: Millis,
    /// The agent's id of the session.
    pub session: String,
    pub unit: Option<i64>,
    pub command: String,
    /// The line that names it.
    pub error: String,
    /// `None` if its session did not end it.
    pub ended_by: Option<ErrorEnding>,
}

/// What ended an error.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ErrorEnding {
    /// The command that succeeded afterwards.
    pub command: String,
    /// Files changed before it, relative to the project.
    pub files: Vec<String>,
    /// Id and subject of the next commit.
    pub commit: Option<String>,
    /// What a memory of the same unit says of it, with the memory's id.
    pub text: Option<(String, i64)>,
}

/// A way in which a program is called.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandForm {
    /// The newest call of this form; of those that succeeded, if any did.
    pub command: String,
    pub succeeded: usize,
    pub failed: usize,
    /// Whether it succeeded where another form had just failed.
    pub worked_instead: bool,
    pub last_at: Millis,
    pub unit: Option<i64>,
}
