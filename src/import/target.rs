//! The state of an import before it reads a file, and its report.

use super::find::Imported;
use crate::config::pauses::{self, RecordingPause};
use crate::config::{self, Config};
use crate::ingest::keep;
use crate::model::Millis;
use crate::platforms::past::{COPIED, PastCounts};
use crate::redact::Redactor;
use crate::runtime::redactor;
use crate::store::{PERSON_WAIT, Store};
use anyhow::Result;
use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

/// A database's record of earlier imports.
#[derive(Debug, Default)]
pub struct Target {
    pub files: Imported,
    /// Hashes of forgotten sessions, events and memories.
    pub forgotten: HashSet<Vec<u8>>,
    /// A connection that remains open during an import. Closing the last one checkpoints the write-ahead log, which is
    /// slow.
    #[expect(dead_code, reason = "held, not used")]
    pub open: Option<Store>,
}

impl Target {
    /// Opens a database to import into.
    pub fn new(config: &Config) -> Result<Target> {
        let store = Store::open(&config.files.value, PERSON_WAIT)?;
        Ok(Target { files: store.imported_files()?, forgotten: store.forgotten()?, open: Some(store) })
    }
}

/// The settings of the folder in which a session began.
pub struct Folder {
    pub config: Config,
    pub redactor: Redactor,
    /// Pauses of recording that have ended.
    pub past_pauses: Vec<RecordingPause>,
}

impl Folder {
    /// Loads the settings of a folder, or the settings that apply outside any folder.
    pub fn new(folder: Option<&Path>) -> Result<Folder> {
        let config = config::load(&folder.into_iter().collect::<Vec<_>>())?;
        let redactor = redactor(&config)?;
        let past_pauses = pauses::load_past(&config.switches_file)?;
        Ok(Folder { config, redactor, past_pauses })
    }
}

/// Maximum number of broken lines to name.
const NAMED: usize = 10;
/// Minimum number of files without a prompt or a tool use that counts as a problem. A few such files are common.
const MANY: u64 = 5;
/// Reasons to skip a file even though it may have content.
pub const LEFT_OUT: [&str; 9] =
    [keep::OFF_ELSEWHERE, OFF, AT_WORK, OF_MEMORY_TOOL, FORGOTTEN, keep::FORGOTTEN, keep::PAUSED, UNREADABLE, COPIED];
pub const OFF: &str = "session in a folder where recording is off";
pub const AT_WORK: &str = "session that hooks are recording now";
pub const OF_MEMORY_TOOL: &str = "session in which another memory tool ran an agent";
pub const FORGOTTEN: &str = "forgotten session";
pub const UNREADABLE: &str = "rest of a file that cannot be read";

/// The result of an import.
#[derive(Debug, Default)]
pub struct ImportReport {
    pub agents: Vec<AgentReport>,
    /// Bytes read.
    pub bytes: u64,
    /// Folders that are gone and have joined the project of their repository.
    pub joined: Vec<JoinedWorktree>,
}

/// A worktree that is gone, whose sessions have joined the project of its repository.
#[derive(Debug)]
pub struct JoinedWorktree {
    pub folder: String,
    pub project: String,
    pub sessions: usize,
}

/// The import's result for one agent.
#[derive(Debug, Default)]
pub struct AgentReport {
    /// A platform, or another program.
    pub agent: &'static str,
    /// Files read.
    pub files: u64,
    /// Files among them that were read from the start.
    pub whole: u64,
    /// Files that were imported before and have not changed.
    pub unchanged: u64,
    pub sessions: BTreeSet<String>,
    pub counts: PastCounts,
    /// Memories of another program, or notes of the agent.
    pub memories: u64,
    /// Secrets and private parts that were hidden.
    pub secrets: u64,
    pub first: Option<Millis>,
    pub last: Option<Millis>,
    /// Lines that are not JSON: some of them, by file and number from 1.
    pub broken: Vec<(PathBuf, u64)>,
    /// Files that could not be read, each with the reason.
    pub unreadable: Vec<String>,
}

impl ImportReport {
    /// Returns the entry of an agent; adds one if there is none.
    pub fn agent(&mut self, agent: &'static str) -> &mut AgentReport {
        let at = self.agents.iter().position(|known| known.agent == agent).unwrap_or_else(|| {
            self.agents.push(AgentReport { agent, ..AgentReport::default() });
            self.agents.len() - 1
        });
        &mut self.agents[at]
    }
}

impl AgentReport {
    /// Returns true if files read from the start yielded nothing, and either no line was of a known kind or there were
    /// many files.
    pub fn gave_nothing(&self) -> bool {
        let counts = &self.counts;
        let is_empty = counts.prompts + counts.tool_uses + counts.subagent_tool_uses == 0;
        let left_out: u64 = LEFT_OUT.iter().filter_map(|reason| counts.skipped.get(*reason)).sum();
        is_empty && left_out == 0 && self.whole > 0 && (counts.known_lines == 0 || self.whole >= MANY)
    }

    /// Counts a line that is not a JSON object. `place` returns its file and line number; it is called only if the line
    /// is named.
    pub fn broken_line(&mut self, place: impl FnOnce() -> (PathBuf, u64)) {
        self.counts.skip("line that is not JSON");
        if self.broken.len() < NAMED {
            self.broken.push(place());
        }
    }

    /// Extends the time range to include `at`.
    pub fn saw(&mut self, at: Millis) {
        self.first = Some(self.first.map_or(at, |first| first.min(at)));
        self.last = Some(self.last.map_or(at, |last| last.max(at)));
    }
}
