//! Past sessions: the files in which agents keep them, read line by line into the events that hooks would have sent.
//!
//! Each agent's format is one file in its adapter's folder. A format has a version: when a reader gets better, files
//! that an older version read are read again.

use super::{claude, codex};
use crate::model::{Event, Millis, Platform};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

/// All formats, in the order in which a file is matched against them.
pub const FORMATS: [PastFormat; 2] = [claude::PAST, codex::PAST];

/// A format of session files.
#[derive(Clone, Copy, Debug)]
pub struct PastFormat {
    pub platform: Platform,
    pub version: i64,
    /// The folders in which the agent keeps its sessions, below its own folder. A file in the first one counts.
    pub folders: &'static [&'static str],
    /// Whether a line is of this format.
    pub is_line: fn(&Value) -> bool,
    /// The session's folder, if a line says it.
    pub cwd: fn(&Value) -> Option<&str>,
    /// Whether a file belongs to another session: a subagent's.
    pub is_part: fn(&Path) -> bool,
    pub reader: fn(&PastOptions) -> Box<dyn PastReader>,
}

/// How to read a file.
#[derive(Clone, Debug)]
pub struct PastOptions {
    pub path: PathBuf,
    /// Its length in bytes.
    pub length: u64,
    /// Tools that are not recorded.
    pub skip_tools: Vec<String>,
    pub thinking: bool,
    /// Lines of earlier files, by [`line_id`]: a continued session begins with a copy of them.
    pub copied: HashSet<u64>,
    /// The first line of the format, if a part of the file was read before.
    pub first: Option<Value>,
}

/// Reads the lines of one file, in order.
pub trait PastReader {
    /// Takes the line at an offset, in bytes.
    fn line(&mut self, record: Value, at: u64, found: &mut Found);

    /// Takes the end of the file, at an offset. With `is_over`, the session will not go on.
    fn end(&mut self, at: u64, is_over: bool, found: &mut Found);
}

/// What a reader has found so far.
#[derive(Debug, Default)]
pub struct Found {
    /// Complete turns, in order; the caller takes them away.
    pub events: Vec<Event>,
    pub counts: PastCounts,
    /// Offset in bytes of the first line that must be read again when the file has grown.
    pub resume_at: u64,
}

/// Counts of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PastCounts {
    /// Messages of a person.
    pub prompts: u64,
    /// Tool calls of the main thread, also those that are not stored.
    pub tool_uses: u64,
    /// Failed ones among them.
    pub failures: u64,
    /// Tool calls of subagents.
    pub subagent_tool_uses: u64,
    /// What is not stored, and why.
    pub skipped: BTreeMap<String, u64>,
}

impl PastCounts {
    /// Counts something that is not stored.
    pub fn skip(&mut self, reason: &str) {
        *self.skipped.entry(reason.to_string()).or_default() += 1;
    }

    /// Adds other counts.
    pub fn add(&mut self, other: &PastCounts) {
        self.prompts += other.prompts;
        self.tool_uses += other.tool_uses;
        self.failures += other.failures;
        self.subagent_tool_uses += other.subagent_tool_uses;
        for (reason, n) in &other.skipped {
            *self.skipped.entry(reason.clone()).or_default() += n;
        }
    }
}

/// The turn that is being read: its events are put in order of time when it ends, since lines are not always.
#[derive(Debug, Default)]
pub struct PastTurn {
    events: Vec<Event>,
}

impl PastTurn {
    /// Adds an event.
    pub fn push(&mut self, event: Event) {
        self.events.push(event);
    }

    /// The events so far, which may be changed.
    pub fn events(&mut self) -> &mut Vec<Event> {
        &mut self.events
    }

    /// Ends the turn.
    pub fn flush(&mut self, found: &mut Found) {
        // A line without a time keeps its place.
        let mut last = Millis::MIN;
        for event in &mut self.events {
            event.at = if event.at == 0 { last.max(0) } else { event.at };
            last = event.at;
        }
        self.events.sort_by_key(|event| event.at);
        found.events.append(&mut self.events);
    }
}

/// The id of a line, hashed; `None` if it has none.
pub fn line_id(record: &Value) -> Option<u64> {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    record["uuid"].as_str()?.hash(&mut hasher);
    Some(hasher.finish())
}
