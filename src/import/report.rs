//! What an import did, by agent.

use crate::model::{Millis, Platform};
use crate::platforms::past::PastCounts;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Maximum broken lines to name.
const NAMED: usize = 10;

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
    pub agent: Platform,
    /// Files read.
    pub files: u64,
    /// Files that were imported before and have not changed.
    pub unchanged: u64,
    pub sessions: BTreeSet<String>,
    pub counts: PastCounts,
    pub first: Option<Millis>,
    pub last: Option<Millis>,
    /// Lines that are not JSON: some of them, by file and number from 1.
    pub broken: Vec<(PathBuf, u64)>,
}

impl ImportReport {
    /// The part of an agent.
    pub fn agent(&mut self, agent: Platform) -> &mut AgentReport {
        let at = self.agents.iter().position(|known| known.agent == agent).unwrap_or_else(|| {
            self.agents.push(AgentReport { agent, ..AgentReport::default() });
            self.agents.len() - 1
        });
        &mut self.agents[at]
    }
}

impl AgentReport {
    /// Whether there were files and nothing came of them.
    pub fn gave_nothing(&self) -> bool {
        self.files > 0
            && self.counts.prompts + self.counts.tool_uses + self.counts.subagent_tool_uses == 0
            && self.counts.skipped.is_empty()
    }

    /// Counts a line that is not JSON.
    pub fn broken_line(&mut self, path: &std::path::Path, line: u64) {
        self.counts.skip("line that is not JSON");
        if self.broken.len() < NAMED {
            self.broken.push((path.to_path_buf(), line));
        }
    }

    /// Widens the range of times.
    pub fn saw(&mut self, at: Millis) {
        self.first = Some(self.first.map_or(at, |first| first.min(at)));
        self.last = Some(self.last.map_or(at, |last| last.max(at)));
    }
}
