//! Results of recall, which `render` formats.

use super::{GitState, Grade, Hit, MemoryRow, Millis, Platform, PromptRow, SessionRow, ToolUseRow, UnitRow};
use std::collections::HashMap;

/// The selection for a session start.
#[derive(Clone, Debug, Default)]
pub struct Recalled {
    /// The agent that receives it, if it is known.
    pub agent: Option<Platform>,
    /// The repository's folder, if it is below the one in which the session starts.
    pub folder: Option<String>,
    /// The session to continue: the last one on this branch that used a tool.
    pub last: Option<SessionOverview>,
    pub branch: Option<String>,
    /// True on a topic branch; false on a trunk, or if the branch is unknown.
    pub on_topic_branch: bool,
    /// A session on another branch is newer than `last`.
    pub others_are_newer: bool,
    /// Files that the last session edited after its last commit.
    pub not_committed: Vec<String>,
    /// Sessions that are active now on the branch or on the same files.
    pub active: Vec<SessionOverview>,
    /// Memories that a person pinned.
    pub pinned: Vec<MemoryRow>,
    /// Decisions and lessons that apply here, most relevant first. A contradicted one follows the contradicting one.
    pub decisions: Vec<MemoryRow>,
    /// Notes on all memories of the selection.
    pub annotations: Annotations,
    /// Open ends of the branch, newest first.
    pub open: Vec<MemoryRow>,
    /// Checks that failed when they ran last, most frequently run first.
    pub failing: Vec<Check>,
    /// Lessons on calls that failed in several of the newest sessions, newest first.
    pub mistakes: Vec<MemoryRow>,
    /// Number of memories by people whom the user does not trust, which are left out.
    pub strangers: i64,
    /// A part could not be read, because the database is damaged.
    pub is_damaged: bool,
}

/// A test, a build or a linter, with the result of its last run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub command: String,
    pub passed: bool,
}

/// A session with its latest turns and units.
#[derive(Clone, Debug)]
pub struct SessionOverview {
    pub session: SessionRow,
    pub state: SessionStatus,
    /// Time of its last event.
    pub last_event_at: Millis,
    /// Its last turns, in order.
    pub turns: Vec<TurnOverview>,
    /// Its last units, newest first.
    pub units: Vec<UnitOverview>,
}

/// The state of a session: what an agent needs to continue after it loses its conversation.
#[derive(Clone, Debug)]
pub struct SessionState {
    pub session: SessionRow,
    /// The open unit.
    pub unit: Option<UnitRow>,
    /// The user's prompts in it, by number.
    pub prompts: Vec<(i64, String)>,
    /// The agent's last answer in it.
    pub last_answer: Option<String>,
    /// Commands that still fail, latest first.
    pub failing: Vec<Failing>,
    /// Open entries of the task list.
    pub open_tasks: Vec<String>,
    /// Decisions and lessons of the session, newest first. A contradicted one follows the one that contradicts it.
    pub decisions: Vec<MemoryRow>,
    pub annotations: Annotations,
    /// Newest first.
    pub observations: Vec<MemoryRow>,
    /// Earlier units of the session, newest first.
    pub earlier_units: Vec<UnitOverview>,
}

/// A command that failed and has not passed since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failing {
    pub command: String,
    pub times: usize,
    /// The reason that the tool reported.
    pub reason: String,
}

/// A unit with its summary.
#[derive(Clone, Debug)]
pub struct UnitOverview {
    pub unit: UnitRow,
    pub summary: Option<MemoryRow>,
}

/// A unit that the ranking found relevant.
#[derive(Clone, Debug)]
pub struct RankedUnit {
    pub unit: UnitRow,
    /// The branch, unless it is a trunk.
    pub branch: Option<String>,
    pub score: f64,
    /// Strongest reason first.
    pub why: Vec<Why>,
    /// Its memories that are not superseded.
    pub memories: Vec<MemoryRow>,
    /// Statements of these memories, best match first.
    pub passages: Vec<Passage>,
    /// Notes on these memories.
    pub annotations: Annotations,
    pub relevance: Relevance,
}

/// Passages and units related to a task.
#[derive(Clone, Debug, Default)]
pub struct RelatedWork {
    /// Passages that answer the request, best first.
    pub passages: Vec<Hit>,
    /// The grade of the answer; `None` without a request.
    pub grade: Option<Grade>,
    /// Units, most related first.
    pub units: Vec<RankedUnit>,
    /// Number of memories by people whom the user does not trust, which are left out.
    pub strangers: i64,
}

/// One statement of a memory: its title, one of its facts, or a part of a summary.
#[derive(Clone, Debug)]
pub struct Passage {
    /// The id of its memory.
    pub memory: i64,
    /// The part of its memory that it comes from: `facts`, or a section of a summary; `None` for the title.
    pub part: Option<&'static str>,
    pub text: String,
    /// Quality of its match with the request; up to about 1.
    pub fit: f64,
}

/// Earlier work that a prompt is about.
#[derive(Clone, Debug, Default)]
pub struct PromptContext {
    /// The best unit, with the passage to show.
    pub unit: Option<RankedUnit>,
    /// Files in which this work ended, most relevant first.
    pub files: Vec<KnownFile>,
    /// The user's wishes about these files, newest first.
    pub wishes: Vec<MemoryRow>,
    /// The measures of all candidates, by unit, for benchmarks.
    pub measures: Vec<(i64, [f64; 3])>,
}

/// A file in which earlier work ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownFile {
    pub path: String,
    /// The file's purpose in a few words, if anybody said it.
    pub role: Option<String>,
}

/// Strength of a unit's match.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Relevance {
    /// The score of all routes except frequently edited files, and the part of it that comes from words or embeddings.
    pub sum: f64,
    pub words: f64,
    /// Probability, without any request, that the next session edits a file of the unit.
    pub often_edited: f64,
}

impl Relevance {
    /// Returns the probability that the requesting session edits a file of the unit or works on its branch: a logistic
    /// regression on the first prompts of two projects, each validated on the other (ADR/0027).
    pub fn probability(self) -> f64 {
        1.0 / (1.0 + (3.2 - 2.55 * self.sum - 2.3 * self.often_edited).exp())
    }
}

/// Notes on memories, by memory id.
#[derive(Clone, Debug, Default)]
pub struct Annotations {
    /// The newer memory that contradicts it.
    pub contradicted_by: HashMap<i64, i64>,
    /// Files of the memory that somebody else has changed since (ADR/0032).
    pub stale: HashMap<i64, Vec<Stale>>,
}

/// A file that has changed since a memory was created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stale {
    pub path: String,
    pub became: FileChange,
}

/// Kind of change to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileChange {
    Changed,
    Removed,
    Moved(String),
}

/// A reason for a unit's relevance, and its contribution to the score.
#[derive(Clone, Debug, PartialEq)]
pub struct Why {
    pub what: &'static str,
    pub adds: f64,
}

/// Status of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionStatus {
    Ended,
    /// Its client is running, or it had an event recently.
    Active,
    /// It never reported its end, and its client has exited or is silent.
    Interrupted,
}

/// A prompt and the agent's final answer to it.
#[derive(Clone, Debug)]
pub struct TurnOverview {
    pub number: i64,
    pub prompt: String,
    pub answer: Option<String>,
}

/// A commit of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitCommit {
    pub sha: Option<String>,
    pub subject: String,
}

spelled! {
/// Point at which an agent receives context.
InjectionPoint, default Start {
    /// At the start of a session.
    Start = "start",
    /// After a compaction.
    Compaction = "compaction",
    /// At a prompt.
    Prompt = "prompt",
    /// Before a file is edited.
    File = "file",
    /// At the start of a subagent.
    Subagent = "subagent",
}
}

/// An injection as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InjectionRow {
    /// Row of the session that received it.
    pub session: i64,
    pub point: InjectionPoint,
    pub at: Millis,
    pub bytes: i64,
    /// `None` if an older nmem stored it, or if anything was forgotten since.
    pub text: Option<String>,
    pub items: Vec<InjectedItem>,
}

/// An item of an injection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InjectedItem {
    /// As `nmem show` accepts it.
    pub id: String,
    /// The evidence that the agent used it, once it is judged.
    pub used: Option<UseEvidence>,
}

/// Evidence that an agent used an item: words of it, and the agent's text in which they turn up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UseEvidence {
    pub words: Vec<String>,
    /// The id of the text, as `nmem show` accepts it.
    pub source: String,
}

/// Counts of injections at one point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InjectionStats {
    pub times: i64,
    pub bytes: i64,
    /// Memories and units; those whose use was judged, and those that were used.
    pub items: i64,
    pub judged: i64,
    pub used: i64,
}

/// Token economics (the observation protocol): tokens to read the context, and tokens that the discoveries cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenStats {
    pub read: i64,
    pub work: i64,
    /// Tokens paid to models for distilling.
    pub distil: i64,
    /// Some tokens were estimated from the length of the stored text.
    pub estimated: bool,
}

impl TokenStats {
    /// Work minus reading.
    pub fn savings(self) -> i64 {
        self.work - self.read
    }

    /// Savings in percent of the work, rounded down; 0 if the work is unknown.
    pub fn savings_percent(self) -> i64 {
        if self.work > 0 { self.savings() * 100 / self.work } else { 0 }
    }

    /// Savings minus the cost of models.
    pub fn net(self) -> i64 {
        self.savings() - self.distil
    }
}

spelled! {
/// The reason to name a unit.
Certainty, default Unknown {
    /// A recorded edit wrote this text.
    Edit = "edit",
    /// A recorded command made this commit.
    Commit = "commit",
    /// The commit makes the same change as a recorded one: it was amended, rebased or squashed.
    SameChange = "same change",
    /// Recorded edits wrote most of the commit's lines; nmem did not see who made the commit.
    Text = "text",
    /// Nothing recorded is behind it: a person, another machine, or work before recording.
    Unknown = "unknown",
}
}

/// The thing that is asked about.
#[derive(Clone, Debug)]
pub enum OriginOf {
    Line { file: String, number: usize, text: String, commit: Option<String> },
    Commit { sha: String, subject: String },
}

/// The work behind a line or a commit.
#[derive(Clone, Debug)]
pub struct Origin {
    pub subject: OriginOf,
    pub certainty: Certainty,
    /// The recorded commit of the same change, if it has another id.
    pub recorded_as: Option<String>,
    /// The edit of a line, or the command that made a commit.
    pub tool_use: Option<ToolUseRow>,
    pub unit: Option<UnitRow>,
    pub session: Option<SessionRow>,
    /// The request that the edit answers.
    pub prompt: Option<PromptRow>,
    pub decisions: Vec<MemoryRow>,
    /// Findings of the unit that did not help.
    pub tried: Vec<MemoryRow>,
    /// Tests, builds and linters of the unit after the edit: the last run of each.
    pub checks: Vec<ToolUseRow>,
    /// Other units whose edits are in a commit, each with the number of its lines.
    pub others: Vec<(UnitRow, usize)>,
    /// Lines that a commit added, and those that recorded edits wrote.
    pub lines: (usize, usize),
}

spelled! {
/// The state of a check, as far as it says something about the working tree.
CheckState, default Stale {
    /// It passed, and nothing has changed since.
    Passed = "passed",
    /// It failed when it ran last.
    Failed = "failed",
    /// It passed, and something has changed since.
    Stale = "stale",
}
}

/// A check of a project, and its last run.
#[derive(Clone, Debug)]
pub struct VerifiedCheck {
    /// The program and its verb: `cargo test`.
    pub name: String,
    pub state: CheckState,
    pub run: ToolUseRow,
}

/// The checks of a working tree.
#[derive(Clone, Debug, Default)]
pub struct Verification {
    pub git: GitState,
    /// Paths that differ from the last commit.
    pub changed: Vec<String>,
    /// Time and path of the last change.
    pub last_change: Option<(Millis, String)>,
    /// Those that failed first.
    pub checks: Vec<VerifiedCheck>,
}

impl Verification {
    /// Returns true if each known check passed after the last change.
    pub fn is_sound(&self) -> bool {
        self.checks.iter().all(|check| check.state == CheckState::Passed)
    }
}

/// Something that a memory says about the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// A file or folder, relative to the root of the worktree.
    Path(String),
    /// A name in a file.
    Name { path: String, name: String },
    /// A setting in a file.
    Setting { path: String, key: String, value: String },
    /// A version of a package or language in a manifest.
    Version { path: String, name: String, version: String },
    /// A command that passes, or fails.
    Command { line: String, passes: bool },
}

impl Claim {
    /// The file that it is about; `None` for a command.
    pub fn path(&self) -> Option<&str> {
        match self {
            Claim::Path(path) | Claim::Name { path, .. } | Claim::Setting { path, .. } | Claim::Version { path, .. } => {
                Some(path)
            }
            Claim::Command { .. } => None,
        }
    }
}

/// Whether a claim that held when its memory was made holds now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimState {
    Holds,
    Gone,
    /// It is otherwise now, in words: `now in src/b.rs`, `timeout is 60`.
    Changed(String),
}

/// A memory with claims that no longer hold.
#[derive(Clone, Debug)]
pub struct Rotten {
    pub memory: MemoryRow,
    pub claims: Vec<(Claim, ClaimState)>,
}

/// The result of a check of memories' claims.
#[derive(Clone, Debug, Default)]
pub struct MemoryClaims {
    /// Memories with claims, and their claims.
    pub memories: usize,
    pub claims: usize,
    pub rotten: Vec<Rotten>,
}

/// The state of a unit, for somebody who goes on with it.
#[derive(Clone, Debug)]
pub struct Handoff {
    pub unit: UnitRow,
    pub session: Option<SessionRow>,
    /// Requests of the user, oldest first.
    pub asked: Vec<PromptRow>,
    /// The agent's last message.
    pub closing: Option<PromptRow>,
    pub decisions: Vec<MemoryRow>,
    pub tried: Vec<MemoryRow>,
    pub open: Vec<MemoryRow>,
    /// The last run of each check.
    pub checks: Vec<ToolUseRow>,
}

/// The commits of a branch, and the units whose work is in them.
#[derive(Clone, Debug, Default)]
pub struct BranchStory {
    /// Id and subject, oldest first, and whether a unit is known.
    pub commits: Vec<(String, String, bool)>,
    pub units: Vec<Handoff>,
    pub verification: Verification,
}

/// The answer to a question about a line, a commit or a file.
#[derive(Clone, Debug)]
pub enum Evidence {
    Origin(Box<Origin>),
    /// The units that wrote a file, those with most lines first.
    File {
        file: String,
        parts: Vec<FilePart>,
    },
}

impl Evidence {
    /// Returns true if something recorded is behind it.
    pub fn is_known(&self) -> bool {
        match self {
            Evidence::Origin(origin) => origin.unit.is_some() || origin.tool_use.is_some(),
            Evidence::File { parts, .. } => parts.iter().any(|part| part.unit.is_some()),
        }
    }
}

/// The lines of a file that one unit wrote; `None`: nothing recorded did.
#[derive(Clone, Debug)]
pub struct FilePart {
    pub unit: Option<UnitRow>,
    /// Number of its lines that have text.
    pub lines: usize,
    /// The first of them, from 1.
    pub first: usize,
}
