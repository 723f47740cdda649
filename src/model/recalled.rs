//! What is recalled for a moment, as `recall` gathers it and `render` writes it.

use super::spelled::spelled;
use super::{MemoryRow, Millis, SessionRow, UnitRow};
use std::collections::HashMap;

/// What is recalled.
#[derive(Clone, Debug, Default)]
pub struct Recalled {
    /// The newest first.
    pub sessions: Vec<SessionTold>,
    /// Memories that a person pinned.
    pub pinned: Vec<MemoryRow>,
    /// Decisions and lessons, the nearest first; what is contradicted stands behind what contradicts it.
    pub settled: Vec<MemoryRow>,
    /// Of these, and of what is pinned and was observed.
    pub beside: Beside,
    /// Observations, the nearest first.
    pub observations: Vec<MemoryRow>,
    /// How near pieces of work are, by their ids, and why.
    pub why: HashMap<i64, (f64, Vec<Why>)>,
    pub suggestions: Vec<Suggestion>,
}

/// A session, told.
#[derive(Clone, Debug)]
pub struct SessionTold {
    pub session: SessionRow,
    pub state: State,
    /// The session's last event.
    pub until: Millis,
    /// Its last turns, in order.
    pub turns: Vec<Turn>,
    /// Its last pieces of work, the newest first.
    pub units: Vec<UnitTold>,
}

/// Where a session's own work stands: what it needs back when its conversation is gone.
#[derive(Clone, Debug)]
pub struct Standing {
    pub session: SessionRow,
    /// The piece of work under way.
    pub unit: Option<UnitRow>,
    /// What the user asked in it, in their words, by the numbers of the prompts.
    pub asked: Vec<(i64, String)>,
    /// The agent's last answer in it.
    pub answered: Option<String>,
    /// What fails as it stands, the latest first.
    pub failing: Vec<Failing>,
    /// Open entries of the task list.
    pub open_tasks: Vec<String>,
    /// Decisions and lessons of the session, the newest first; what is contradicted stands behind what contradicts it.
    pub settled: Vec<MemoryRow>,
    pub beside: Beside,
    /// The newest first.
    pub observations: Vec<MemoryRow>,
    /// Pieces of work before, the newest first.
    pub before: Vec<UnitTold>,
}

/// A command that failed and has not gone through since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failing {
    pub command: String,
    pub times: usize,
    /// In the tool's words.
    pub reason: String,
}

/// A piece of work, told.
#[derive(Clone, Debug)]
pub struct UnitTold {
    pub unit: UnitRow,
    pub summary: Option<MemoryRow>,
}

/// A piece of work that was found to matter.
#[derive(Clone, Debug)]
pub struct Past {
    pub unit: UnitRow,
    pub branch: Option<String>,
    pub score: f64,
    /// What counts most first.
    pub why: Vec<Why>,
    /// Those that hold.
    pub memories: Vec<MemoryRow>,
    /// Of these.
    pub beside: Beside,
    /// Whether it is clear enough to be told at a prompt unasked, and by what (ADR/0030).
    pub clarity: Clarity,
}

/// How clearly a piece of work is relevant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Clarity {
    /// What speaks for it beside its age and its kin, and the part of that which words or meaning make.
    pub sum: f64,
    pub words: f64,
    pub is_enough: bool,
}

impl Clarity {
    /// How much of either is enough. Chosen where 461 real prompts left little to gain (ADR/0030).
    pub const ENOUGH: f64 = 1.2;
    pub const WORDS: f64 = 0.5;
}

/// What is to be said beside memories, by their ids.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    /// Which newer one says otherwise.
    pub against: HashMap<i64, i64>,
    /// What has become of their files by other hands than those that are known (ADR/0032).
    pub stale: HashMap<i64, Vec<Stale>>,
}

/// A file that is not what it was when a memory was drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stale {
    pub path: String,
    pub became: Became,
}

/// What has become of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Became {
    Changed,
    Gone,
    Moved(String),
}

/// A reason, and what it adds to a score.
#[derive(Clone, Debug, PartialEq)]
pub struct Why {
    pub what: &'static str,
    pub adds: f64,
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

/// A commit that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    pub sha: Option<String>,
    pub subject: String,
}

spelled! {
/// When an agent is given something.
Moment, default Start {
    /// A session begins.
    Start = "start",
    /// It goes on with its conversation cut away.
    Compaction = "compaction",
    /// The user asks for something.
    Prompt = "prompt",
    /// The agent is about to change a file.
    File = "file",
}
}

/// What agents were given at one kind of moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Given {
    pub times: i64,
    pub bytes: i64,
    /// Memories and pieces of work, and those of them that were used.
    pub items: i64,
    pub used: i64,
}

/// What remembering saves (the observation protocol): tokens to read what is given, and tokens that finding it out cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenStats {
    pub read: i64,
    pub work: i64,
    /// Tokens that models were paid for drawing memories.
    pub distil: i64,
    /// Some of the work's tokens were not counted by the platform, but estimated by the length of what is stored.
    pub estimated: bool,
}

impl TokenStats {
    /// Work less reading.
    pub fn savings(self) -> i64 {
        self.work - self.read
    }

    /// Savings in hundredths of the work, rounded down; 0 where nothing is known of it.
    pub fn savings_percent(self) -> i64 {
        if self.work > 0 { self.savings() * 100 / self.work } else { 0 }
    }

    /// Savings less what models were paid.
    pub fn net(self) -> i64 {
        self.savings() - self.distil
    }
}

spelled! {
/// What recurs.
PatternKind, default Lesson {
    /// A command fails for the same reason.
    Failure = "failure",
    /// The same file is repaired.
    Fix = "fix",
    /// Lessons of the same tag.
    Lesson = "lesson",
}
}

/// Something that recurs.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    pub kind: PatternKind,
    /// What its newest case is called: the command, the file, or the tag.
    pub title: String,
    /// The newest first.
    pub cases: Vec<Case>,
}

/// What experience suggests, drawn by rules.
#[derive(Clone, Debug, PartialEq)]
pub enum Suggestion {
    Recurs(Pattern),
    /// A decision that is not what it was: how sure it is now, why, and by what that is known.
    Doubtful {
        decision: Box<MemoryRow>,
        now: f64,
        why: &'static str,
        by: String,
    },
}

/// One case of a pattern.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// As `nmem show` takes it: `t12`, `m3`.
    pub id: String,
    pub unit: Option<i64>,
    pub at: Millis,
    /// The error, or the memory's title.
    pub said: String,
    /// The memory that says how it was mended.
    pub mended: Option<String>,
}
