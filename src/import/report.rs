//! What an import did, by agent.

use crate::model::Millis;
use crate::platforms::past::{COPIED, PastCounts};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Maximum broken lines to name.
const NAMED: usize = 10;
/// Files without a prompt or a tool use are common; so many are not.
const MANY: u64 = 5;
/// Why files are left out that may be full.
pub const LEFT_OUT: [&str; 9] = [OFF, AT_WORK, OF_MEMORY_TOOL, FORGOTTEN, FORGOTTEN_EVENT, PAUSED, MISSED, UNREADABLE, COPIED];
pub const OFF: &str = "session in a folder where recording is off";
pub const AT_WORK: &str = "session that hooks are recording now";
pub const OF_MEMORY_TOOL: &str = "session in which another memory tool ran an agent";
pub const FORGOTTEN: &str = "forgotten session";
pub const FORGOTTEN_EVENT: &str = "forgotten event";
pub const PAUSED: &str = "event while recording was paused";
pub const MISSED: &str = "session that was not recorded, maybe because recording was off: give its path to import it";
pub const UNREADABLE: &str = "rest of a file that cannot be read";

/// The result of an import.
#[derive(Debug, Default)]
pub struct ImportReport {
    pub agents: Vec<AgentReport>,
    /// Bytes read.
    pub bytes: u64,
}

/// What was imported of one agent.
#[derive(Debug, Default)]
pub struct AgentReport {
    /// A platform, or another program.
    pub agent: &'static str,
    /// Files read.
    pub files: u64,
    /// Files among them that were read from the beginning.
    pub whole: u64,
    /// Files that were imported before and have not changed.
    pub unchanged: u64,
    pub sessions: BTreeSet<String>,
    pub counts: PastCounts,
    /// Memories of another program, or notes of the agent.
    pub memories: u64,
    /// Secrets and private parts that were hidden.
    pub secrets: u64,
    /// Tool uses that are older than retention allows: they became units and memories, and were deleted.
    pub old_tool_uses: u64,
    pub first: Option<Millis>,
    pub last: Option<Millis>,
    /// Lines that are not JSON: some of them, by file and number from 1.
    pub broken: Vec<(PathBuf, u64)>,
    /// Files that could not be read, and why.
    pub unreadable: Vec<String>,
}

impl ImportReport {
    /// The part of an agent.
    pub fn agent(&mut self, agent: &'static str) -> &mut AgentReport {
        let at = self.agents.iter().position(|known| known.agent == agent).unwrap_or_else(|| {
            self.agents.push(AgentReport { agent, ..AgentReport::default() });
            self.agents.len() - 1
        });
        &mut self.agents[at]
    }
}

impl AgentReport {
    /// Whether nothing came of whole files: no line was of a known kind, or there were many files.
    pub fn gave_nothing(&self) -> bool {
        let counts = &self.counts;
        let is_empty = counts.prompts + counts.tool_uses + counts.subagent_tool_uses == 0;
        let left_out: u64 = LEFT_OUT.iter().filter_map(|reason| counts.skipped.get(*reason)).sum();
        is_empty && left_out == 0 && self.whole > 0 && (counts.known_lines == 0 || self.whole >= MANY)
    }

    /// Counts a line that is no JSON object; `place` is its file and number, asked for where it is named.
    pub fn broken_line(&mut self, place: impl FnOnce() -> (PathBuf, u64)) {
        self.counts.skip("line that is not JSON");
        if self.broken.len() < NAMED {
            self.broken.push(place());
        }
    }

    /// Widens the range of times.
    pub fn saw(&mut self, at: Millis) {
        self.first = Some(self.first.map_or(at, |first| first.min(at)));
        self.last = Some(self.last.map_or(at, |last| last.max(at)));
    }
}
