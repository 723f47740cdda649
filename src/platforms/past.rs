//! Past sessions: what a reader of a format provides, and where files lie.

use super::author::{Author, author};
use super::payload::DecodeContext;
pub use super::payload::text_of;
use crate::model::{Event, EventKind, GitState, Millis, Platform, SessionStart, StartSource, TurnUsage};
use anyhow::Result;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

/// Reason to skip a line that a continued session copied.
pub const COPIED: &str = "copied from another session";

/// A format of session files.
#[derive(Clone, Copy, Debug)]
pub struct PastFormat {
    pub platform: Platform,
    pub version: i64,
    /// The folders in which the agent keeps its sessions, below its own folder. If a file is in several, the first
    /// counts.
    pub folders: &'static [&'static str],
    /// The file below the root of each project in which the agent keeps that project's sessions, if it does.
    pub in_project: Option<&'static str>,
    /// Maximum search depth below these folders.
    pub depth: usize,
    /// Returns true if a line is of this format.
    pub is_line: fn(&Value) -> bool,
    /// Kinds of lines (`type`) that were seen when the reader was written, read or not; one that ends in a dot is the
    /// beginning of several. Empty if lines have no kinds.
    pub kinds: &'static [&'static str],
    /// Returns the version of the format, if a line states it.
    pub states_version: fn(&Value) -> Option<&Value>,
    /// Versions that were seen, as JSON.
    pub versions: &'static [&'static str],
    pub source: PastSource,
    /// Returns the session's folder, if a line states it.
    pub cwd: fn(&Value) -> Option<&str>,
    /// Returns the session's folder, if it is known from the file's path or a file next to it.
    pub folder: fn(&Path) -> Option<String>,
    /// Returns true if a file's path shows that its session is of a folder, though it does not name the folder.
    pub is_of_folder: fn(&Path, folder: &str) -> bool,
    /// Returns the session's own file, if the given file holds a subagent's work.
    pub session_file: fn(&Path) -> Option<PathBuf>,
    /// Returns the folders with a project's newest sessions, below `store`; `cwd` is the project's folder.
    pub newest: fn(store: &Path, cwd: &str) -> Vec<PathBuf>,
    pub reader: fn(&PastOptions) -> Box<dyn PastReader>,
}

impl PastFormat {
    /// Defaults that most formats share: sessions stored as lines.
    pub const LINES: PastFormat = PastFormat {
        platform: Platform::Custom,
        version: 1,
        folders: &[],
        in_project: None,
        depth: 12,
        is_line: |_| false,
        kinds: &[],
        states_version: |_| None,
        versions: &[],
        source: PastSource::Lines,
        cwd: |_| None,
        folder: |_| None,
        is_of_folder: |_, _| false,
        session_file: |_| None,
        newest: |store, _| vec![store.to_path_buf()],
        reader: |_| unreachable!("each format has a reader"),
    };
}

impl PastFormat {
    /// Returns true if the reader was written with lines of this kind in view.
    pub fn knows(&self, record: &Value) -> bool {
        let kind = record["type"].as_str().unwrap_or_default();
        self.kinds.iter().any(|known| *known == kind || known.ends_with('.') && kind.starts_with(known))
    }
}

/// Options for reading a file.
#[derive(Clone, Debug, Default)]
pub struct PastOptions {
    pub path: PathBuf,
    /// The session's folder, if it is known from elsewhere.
    pub cwd: Option<String>,
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
    /// Reads the line at an offset, in bytes. It may be any JSON object.
    fn line(&mut self, record: Value, at: u64, found: &mut Found);

    /// Handles the end of the file, at an offset. With `is_over`, the session will not continue.
    fn end(&mut self, at: u64, is_over: bool, found: &mut Found);
}

/// The results of a reader so far.
#[derive(Debug, Default)]
pub struct Found {
    /// Complete turns, in order. The caller removes them.
    pub events: Vec<Event>,
    pub counts: PastCounts,
    /// Offset in bytes of the first line that must be read again when the file has grown.
    pub resume_at: u64,
}

/// Counts of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PastCounts {
    /// Prompts of a person.
    pub prompts: u64,
    /// Tool calls of the main thread, including those that are not stored.
    pub tool_uses: u64,
    /// Failed ones among them.
    pub failures: u64,
    /// Tool calls of subagents.
    pub subagent_tool_uses: u64,
    /// Lines of a kind that the reader knows.
    pub known_lines: u64,
    /// Number of skipped items, by reason.
    pub skipped: BTreeMap<String, u64>,
}

impl PastCounts {
    /// Counts an item that is not stored.
    pub fn skip(&mut self, reason: &str) {
        *self.skipped.entry(reason.to_string()).or_default() += 1;
    }

    /// Adds other counts.
    pub fn add(&mut self, other: &PastCounts) {
        self.prompts += other.prompts;
        self.tool_uses += other.tool_uses;
        self.failures += other.failures;
        self.subagent_tool_uses += other.subagent_tool_uses;
        self.known_lines += other.known_lines;
        for (reason, n) in &other.skipped {
            *self.skipped.entry(reason.clone()).or_default() += n;
        }
    }
}

/// A tool call that waits for its result.
#[derive(Clone, Debug)]
pub struct PastCall {
    pub name: String,
    pub input: Value,
}

/// The session that is being read: common data of its events, and the events of the current turn.
#[derive(Debug)]
pub struct PastSession {
    platform: Platform,
    /// The agent's id of the session.
    pub id: String,
    /// The subagent to which the file belongs.
    pub agent: Option<String>,
    /// The current prompt's id.
    pub prompt: Option<String>,
    pub cwd: Option<String>,
    pub branch: Option<String>,
    /// Remote URL of the repository.
    pub repository_url: Option<String>,
    /// Time of the current line.
    pub at: Millis,
    pub has_started: bool,
    length: u64,
    skip_tools: Vec<String>,
    turn: Vec<Event>,
}

impl PastSession {
    /// Creates an empty session.
    pub fn new(platform: Platform, id: String, options: &PastOptions) -> PastSession {
        PastSession {
            platform,
            id,
            agent: None,
            prompt: None,
            cwd: options.cwd.clone(),
            branch: None,
            repository_url: None,
            at: 0,
            has_started: options.first.is_some(),
            length: options.length,
            skip_tools: options.skip_tools.clone(),
            turn: Vec::new(),
        }
    }

    /// Adds an event of the current line; returns it for changes.
    pub fn add(&mut self, what: EventKind) -> &mut Event {
        let event = Event {
            platform: self.platform,
            session: self.id.clone(),
            at: self.at,
            time: None,
            cwd: self.cwd.clone(),
            project: None,
            repository_url: self.repository_url.clone(),
            transcript: None,
            // A hook that later reads this file starts after this length.
            transcript_length: Some(self.length),
            usage: None,
            prompt: self.prompt.clone(),
            agent: self.agent.clone(),
            what,
        };
        self.turn.push(event);
        self.turn.last_mut().expect("it was just added")
    }

    /// Returns true if a person wrote a text that stands where a prompt does. A subagent's prompts come from its parent.
    pub fn is_persons(&self, text: &str) -> bool {
        self.agent.is_none() && author(text) == Author::Person
    }

    /// Starts the session, once. A subagent's file starts none.
    pub fn start(&mut self, head: Option<String>) {
        if !self.has_started && self.agent.is_none() {
            let git = GitState { branch: self.branch.clone(), head };
            let start = SessionStart { source: StartSource::Startup, model: None, client: None, git: Some(git) };
            self.add(EventKind::SessionStarted(start)).prompt = None;
        }
        self.has_started = true;
    }

    /// Adds a session start, because the conversation was compacted.
    pub fn compact(&mut self) {
        let start = SessionStart { source: StartSource::Compact, ..SessionStart::default() };
        self.add(EventKind::SessionStarted(start));
    }

    /// Ends the turn with the agent's last message; `at` is the message's time.
    pub fn end_turn(&mut self, closing: String, at: Millis, usage: Option<TurnUsage>) {
        let what = match self.agent {
            Some(_) => EventKind::SubagentEnded { agent_type: "subagent".into(), closing: Some(closing) },
            None => EventKind::TurnEnded { closing: Some(closing), error: None },
        };
        let event = self.add(what);
        (event.at, event.usage) = (at, usage.map(Box::new));
    }

    /// Ends the session; a subagent's file ends none.
    pub fn end(&mut self, usage: Option<TurnUsage>) {
        if self.agent.is_none() && self.has_started {
            let git = self.branch.clone().map(|branch| GitState { branch: Some(branch), head: None });
            let event = self.add(EventKind::SessionEnded { reason: "other".into(), git });
            (event.prompt, event.usage) = (None, usage.map(Box::new));
        }
    }

    /// Creates the payload that a hook would have received for a call, with its response or error.
    pub fn payload(&self, id: &str, name: &str, input: Value, result: Result<Value, &str>) -> Value {
        let mut payload = json!({
            "hook_event_name": if result.is_ok() { "PostToolUse" } else { "PostToolUseFailure" },
            "session_id": self.id, "prompt_id": self.prompt, "agent_id": self.agent, "cwd": self.cwd,
            "tool_use_id": id, "tool_name": name,
        });
        payload["tool_input"] = input;
        match result {
            Ok(response) => payload["tool_response"] = response,
            Err(error) => payload["error"] = json!(error),
        }
        payload
    }

    /// Returns the context for decoding a payload of the current line.
    pub fn decode_context(&self) -> DecodeContext<'_> {
        DecodeContext { now: self.at, skip_tools: &self.skip_tools }
    }

    /// Adds a decoded payload; returns it for changes.
    pub fn add_decoded(&mut self, event: Event) -> &mut Event {
        self.turn.push(Event { platform: self.platform, transcript_length: Some(self.length), ..event });
        self.turn.last_mut().expect("it was just added")
    }

    /// Returns the events of the current turn. A caller may remove some.
    pub fn turn(&mut self) -> &mut Vec<Event> {
        &mut self.turn
    }

    /// Moves the turn's events to `found`, in chronological order: lines are not always in order.
    pub fn flush(&mut self, found: &mut Found) {
        // A line without a timestamp keeps its position.
        let mut last = 0;
        for event in &mut self.turn {
            event.at = if event.at == 0 { last } else { event.at };
            last = event.at;
        }
        self.turn.sort_by_key(|event| event.at);
        found.events.append(&mut self.turn);
    }
}

/// Returns the hashed id of a line; `None` if it has none.
pub fn line_id(record: &Value) -> Option<u64> {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    record["uuid"].as_str()?.hash(&mut hasher);
    Some(hasher.finish())
}

/// A row of a database, by column.
pub type Columns = Map<String, Value>;

/// Storage of a format's sessions.
#[derive(Clone, Copy, Debug)]
pub enum PastSource {
    /// One file per session, with a JSON object on each line.
    Lines,
    /// One file per session, as one document, possibly with related files.
    Document(PastDocument),
    /// A database with many sessions.
    Database(PastDatabase),
}

/// Sessions that are documents.
#[derive(Clone, Copy, Debug)]
pub struct PastDocument {
    /// Whether a file is one, by its path.
    pub is_file: fn(&Path) -> bool,
    /// Reads a session's records, in order.
    pub records: fn(&Path) -> Result<Vec<Value>>,
}

/// Sessions in a database.
#[derive(Clone, Copy, Debug)]
pub struct PastDatabase {
    /// Whether a file is one, by its path.
    pub is_file: fn(&Path) -> bool,
    /// Tables by which a database is recognised whose path says nothing.
    pub tables: &'static [&'static str],
    /// A table that a program with the same tables has in addition.
    pub foreign_table: &'static str,
    /// Lists the sessions of the database at a path.
    pub sessions: fn(&dyn Rows, &Path) -> Result<Vec<PastPart>>,
    /// Reads a session's records, in order.
    pub records: fn(&dyn Rows, &PastPart) -> Result<Vec<Value>>,
}

/// A session in a database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PastPart {
    /// The agent's id of the session.
    pub id: String,
    /// Bytes, or another number that grows with the session; 0 if only the time shows that it has grown.
    pub size: u64,
    pub modified_at: Millis,
    /// The folder in which it began.
    pub cwd: Option<String>,
}

/// Formats a time as in records (RFC 3339); `None` if it is not valid.
pub fn timestamp(at: Millis) -> Option<String> {
    Some(jiff::Timestamp::from_millisecond(at).ok().filter(|_| at > 0)?.to_string())
}

/// Rows of another program's database. A table that does not exist has none.
pub trait Rows {
    fn all(&self, table: &str) -> Result<Vec<Columns>>;

    /// Returns some columns of all rows. Those that the table lacks are missing.
    fn all_of(&self, table: &str, columns: &[&str]) -> Result<Vec<Columns>>;

    /// Returns the rows in which a column has a value, sorted by other columns.
    fn with(&self, table: &str, column: &str, value: &str, order: &[&str]) -> Result<Vec<Columns>>;

    /// Visits the rows whose key begins with a text, by a key range query. No other row is read.
    fn keyed(&self, table: &str, key: &str, begin: &str, visit: &mut dyn FnMut(Columns) -> Result<()>) -> Result<()>;

    /// Opens another database of the same agent.
    fn beside(&self, path: &Path) -> Result<Box<dyn Rows>>;
}

/// Returns the path of a `file://` URL.
pub fn path_of_url(url: &str) -> Option<String> {
    url.strip_prefix("file://").map(without_escapes)
}

/// Decodes the percent escapes in a URL's path.
fn without_escapes(url: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), url.as_bytes());
    while let Some((byte, behind)) = rest.split_first() {
        let hex = behind.get(..2).filter(|_| *byte == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(escaped) => (bytes.push(escaped), rest = &behind[2..]),
            None => (bytes.push(*byte), rest = behind),
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Cuts a text to at most `most` bytes, at a character boundary.
pub fn cut_bytes(text: &str, most: usize) -> String {
    text[..text.floor_char_boundary(most)].to_string()
}

/// Derives a UUID from a key. It is always the same, so a second import finds the memories of the first one.
pub fn stable_uuid(key: &str) -> String {
    let hash = Sha256::digest(key);
    let hex: String = hash[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    // Version 8, variant 1 (RFC 9562): 122 bits are up to the program.
    format!("{}-{}-8{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platforms::formats;
    use proptest::prelude::*;

    /// Values with the keys and words that readers look at.
    fn value() -> impl Strategy<Value = Value> {
        const KEYS: &str = "type payload message content data attachment id name input tool_use_id call_id output arguments \
             uuid cwd timestamp operation prompt agentId isSidechain stop_reason usage changes invocation \
             result item info sessionId git role toolCalls args status parts state tool request response \
             calls toolCallRounds toolCallId $set messages $rewindTo kind";
        const WORDS: &str = "assistant user text tool_use tool_result queue-operation enqueue remove progress agent_progress \
             attachment queued_command event_msg response_item session_meta user_message function_call \
             function_call_output write_stdin apply_patch patch_apply_end 2026-06-18T04:57:11Z gemini \
             session request tool completed error toolInvocationSerialized run_shell_command";
        let word = || proptest::sample::select(WORDS.split(' ').collect::<Vec<_>>()).prop_map(|word| json!(word));
        let leaf = prop_oneof![4 => word(), 1 => any::<i64>().prop_map(|n| json!(n)), 1 => Just(Value::Null), 1 => ".{0,20}".prop_map(|t| json!(t))];
        leaf.prop_recursive(4, 40, 6, |inner| {
            let key = proptest::sample::select(KEYS.split(' ').collect::<Vec<_>>()).prop_map(String::from);
            prop_oneof![
                1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                3 => prop::collection::btree_map(key, inner, 0..6).prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn readers_take_any_objects(lines in prop::collection::vec(value(), 0..20), is_over: bool, first in proptest::option::of(value())) {
            for format in formats() {
                let options = PastOptions {
                    path: "/a/b.jsonl".into(),
                    thinking: true,
                    first: first.clone(),
                    ..PastOptions::default()
                };
                let (mut reader, mut found) = ((format.reader)(&options), Found::default());
                for (at, line) in lines.iter().filter(|line| line.is_object()).enumerate() {
                    reader.line(line.clone(), at as u64, &mut found);
                }
                reader.end(lines.len() as u64, is_over, &mut found);
                prop_assert!(found.resume_at <= lines.len() as u64);
            }
        }
    }

    #[test]
    fn a_url_is_a_path_with_escapes() {
        assert_eq!(path_of_url("file:///home/a%20b/%C3%A9%").as_deref(), Some("/home/a b/é%"));
        assert_eq!(path_of_url("vscode-remote://ssh/home"), None);
    }
}
