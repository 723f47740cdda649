//! What a session came to, as the rules of `digest` draw it and `render` writes it.

use super::{Millis, SessionRow};

/// A session, told.
#[derive(Clone, Debug)]
pub struct Digest {
    pub session: SessionRow,
    pub state: State,
    /// The session's last event.
    pub until: Millis,
    pub turns: Vec<Turn>,
    /// Files in the order of their last change, the last one first.
    pub changed: Vec<Change>,
    pub commits: Vec<Made>,
    /// Failures in order, each command once, as it went last.
    pub failed: Vec<Failed>,
    /// Open entries of the agent's task list.
    pub open_tasks: Vec<String>,
    /// The line of the last closing message that says what is left to do.
    pub next: Option<String>,
}

/// Whether a session is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Ended,
    /// Its client runs, or it was heard of a short while ago.
    AtWork,
    /// It never said that it ended, and its client is gone or silent.
    BrokenOff,
}

/// What the user asked, and what the agent answered at the end of it.
#[derive(Clone, Debug)]
pub struct Turn {
    pub number: i64,
    pub asked: String,
    pub done: Option<String>,
}

/// A file that was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub path: String,
    pub times: usize,
    pub created: bool,
}

/// A commit that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    pub sha: Option<String>,
    pub subject: String,
}

/// Something that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    pub what: String,
    pub reason: String,
    pub times: usize,
    /// The same command went through later.
    pub passed_later: bool,
}
