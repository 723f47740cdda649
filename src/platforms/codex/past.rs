//! Codex's past sessions: rollout files, with running totals of tokens.

use crate::files;
use crate::model::{Event, EventKind, Millis, Platform, TakenBack, Tokens, TurnUsage};
use crate::platforms::past::{COPIED, Found, PastCall, PastFormat, PastOptions, PastReader, PastSession, text_of};
use crate::platforms::transcript_tail::time;
use serde_json::Value;
use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

/// The format of the session files. Raise the version when the reader learns to find more than before.
pub const PAST: PastFormat = PastFormat {
    platform: Platform::Codex,
    version: 4,
    folders: &["sessions", "archived_sessions"],
    kinds: &[
        "compacted",
        "event_msg",
        "function_call",
        "function_call_output",
        "local_shell_call",
        "message",
        "reasoning",
        "response_item",
        "session_meta",
        "token_usage_record",
        "turn_context",
        "world_state",
    ],
    is_line: |record| record["type"] == "session_meta" && record["payload"].is_object() || is_first_of_early_file(record),
    cwd: |record| record["payload"]["cwd"].as_str().or_else(|| early_folder(record)),
    session_file: |_| None,
    newest: |store, _| newest_days(store),
    reader: |options| Box::new(Reader::new(options)),
    ..PastFormat::LINES
};

/// Returns true for the first line of a file from before September 2025: there, lines have no `payload`.
fn is_first_of_early_file(record: &Value) -> bool {
    record["id"].is_string() && record["timestamp"].is_string() && record.get("instructions").is_some()
}

/// The working directory in a file from before September 2025: in a message that describes the environment.
fn early_folder(record: &Value) -> Option<&str> {
    let text = record["content"].get(0).filter(|_| record["type"] == "message")?["text"].as_str()?;
    let tagged = text.split_once("<cwd>").and_then(|(_, rest)| Some(rest.split_once("</cwd>")?.0));
    let listed = || text.split_once("Current working directory: ").and_then(|(_, rest)| rest.lines().next());
    tagged.or_else(listed).map(str::trim).filter(|folder| !folder.is_empty())
}

/// Heading that editors put before a prompt.
const REQUEST: &str = "## My request for Codex:";

/// Lists the folders of the newest two days, such as `sessions/2026/11/24`.
fn newest_days(store: &Path) -> Vec<PathBuf> {
    let mut newest = vec![store.to_path_buf()];
    for _ in ["year", "month", "day"] {
        let below = newest.iter().flat_map(fs::read_dir).flatten().flatten().map(|entry| entry.path());
        let mut below: Vec<PathBuf> = below.filter(|path| path.is_dir()).collect();
        below.sort();
        newest = below.split_off(below.len().saturating_sub(2));
    }
    newest
}

pub(super) struct Reader {
    pub(super) session: PastSession,
    /// Calls that wait for their results.
    pub(super) calls: HashMap<String, PastCall>,
    /// Running commands: their calls, by process number.
    pub(super) running: HashMap<i64, (String, PastCall)>,
    /// Scripts that are waited for, by the number of their cell.
    pub(super) cells: HashMap<String, (String, PastCall)>,
    /// True if events report the commands of scripts, as they do in most versions.
    pub(super) reports_scripts: bool,
    /// First ordinal of the lines that were undone: another file continues from there.
    rewound_at: Option<i64>,
    turn_id: Option<String>,
    /// Offset of the line that began the turn.
    begun: Option<u64>,
    /// Number of prompts in the turn.
    asked: usize,
    model: Option<String>,
    /// The last message, and its time.
    closing: Option<(String, Millis)>,
    /// True if the last turn has ended.
    is_complete: bool,
    /// True if the file belongs to the guardian, which assesses commands and does no work.
    is_guardian: bool,
    /// The copied part at the start of a fork's file, until its end is seen.
    fork: Option<Fork>,
    tokens: TokenTotals,
}

/// The copied part of a fork's file: its parent's lines, with the parent's turns and the time of the copy.
struct Fork {
    /// The fork's own id.
    id: String,
    /// Time of the last copied line, if the parent's first line was copied.
    copied_until: Option<Millis>,
}

/// Maximum time between two copied lines.
const COPYING: Millis = 1000;

impl Fork {
    /// Returns true if a line was copied.
    fn is_copied(&mut self, record: &Value) -> bool {
        let (payload, at) = (&record["payload"], time(record).unwrap_or_default());
        let created = |id: Option<&str>| uuid_time(id?);
        let is_copied = match created(payload["turn_id"].as_str()).zip(created(Some(&self.id))) {
            Some((turn, own)) => turn < own,
            None if record["type"] == "session_meta" => true,
            None => self.copied_until.is_some_and(|until| (at - until).abs() < COPYING),
        };
        if is_copied {
            self.copied_until = Some(at);
        }
        is_copied
    }
}

/// Returns the time in a UUID of version 7; `None` for any other text.
fn uuid_time(id: &str) -> Option<Millis> {
    let is_timed = id.len() == 36 && id.as_bytes()[14] == b'7';
    let digits = (id.get(..8).zip(id.get(9..13))).filter(|_| is_timed)?;
    Millis::from_str_radix(&format!("{}{}", digits.0, digits.1), 16).ok()
}

impl Reader {
    fn new(options: &PastOptions) -> Reader {
        let mut options = options.clone();
        options.skip_tools.push("update_plan".into());
        let mut session = PastSession::new(Platform::Codex, options.path.display().to_string(), &options);
        if let Some(first) = &options.first {
            identify(&mut session, &first["payload"]);
        }
        Reader {
            session,
            calls: HashMap::new(),
            running: HashMap::new(),
            cells: HashMap::new(),
            reports_scripts: false,
            rewound_at: rewound_at(&options.path),
            turn_id: None,
            begun: None,
            asked: 0,
            model: None,
            closing: None,
            is_complete: false,
            is_guardian: options.first.as_ref().is_some_and(|first| is_guardian(&first["payload"])),
            fork: None,
            tokens: TokenTotals::new(options.first.is_some()),
        }
    }

    fn said(&mut self, event: &Value, offset: u64, found: &mut Found) {
        match event["type"].as_str() {
            Some("task_started") => {
                self.turn_id = event["turn_id"].as_str().map(String::from);
                self.begun = Some(offset);
                self.asked = 0;
                self.is_complete = false;
            }
            Some("user_message") => self.asks(event["message"].as_str().unwrap_or_default(), offset, found),
            // The second generation of events.
            Some("item_completed") => {
                let text = text_of(&event["item"]["content"]);
                match event["item"]["type"].as_str() {
                    Some("UserMessage") => self.asks(&text, offset, found),
                    Some("AgentMessage") => self.says(&text),
                    Some("CommandExecution") => self.executed(&event["item"], found),
                    Some("FileChange") => {
                        let item = &event["item"];
                        self.patched(item["id"].as_str().unwrap_or_default(), item, item["status"] == "completed", found);
                    }
                    _ => {}
                }
            }
            Some("agent_message") => self.says(event["message"].as_str().unwrap_or_default()),
            Some("task_complete") => {
                self.says(event["last_agent_message"].as_str().unwrap_or_default());
                self.end_turn();
                (self.is_complete, self.begun) = (true, None);
            }
            Some("turn_aborted") => self.closing = None,
            Some("thread_rolled_back") => {
                // Undone turns do not count as work. Earlier ones may already be stored.
                let mut removed: Vec<Event> = std::mem::take(self.session.turn());
                self.closing = None;
                let turns = event["num_turns"].as_u64().unwrap_or(1).max(1);
                (0..turns).for_each(|_| found.counts.skip("turn that was undone"));
                let is_prompt = |event: &Event| matches!(event.what, EventKind::UserPrompt { .. });
                let count = |removed: &[Event]| removed.iter().filter(|event| is_prompt(event)).count() as u64;
                while count(&removed) < turns
                    && let Some(at) = found.events.iter().rposition(is_prompt)
                {
                    removed.splice(0..0, found.events.split_off(at));
                }
                let first = removed.iter().find(|event| is_prompt(event)).and_then(|event| event.prompt.clone());
                let rest = turns.saturating_sub(count(&removed));
                let taken = [first.map(TakenBack::Since), Some(rest).filter(|rest| *rest > 0).map(TakenBack::Last)];
                for taken in taken.into_iter().flatten() {
                    self.session.add(EventKind::TakenBack(taken)).prompt = None;
                }
            }
            Some("token_count") => self.tokens.count(&event["info"]),
            Some("patch_apply_end") => {
                self.patched(event["call_id"].as_str().unwrap_or_default(), event, event["success"] == true, found);
            }
            Some("exec_command_end") => {
                let mut item = event.clone();
                item["id"] = event["call_id"].clone();
                self.executed(&item, found);
            }
            Some("mcp_tool_call_end") => self.mcp(event, found),
            Some("context_compacted") => self.session.compact(),
            _ => {}
        }
    }

    /// Reads a line of a file from before September 2025. Only the first one has a time; each later one gets 1 ms more.
    fn early_line(&mut self, record: &Value, at: u64, found: &mut Found) {
        self.session.at = time(record).unwrap_or(self.session.at + 1);
        found.counts.known_lines += u64::from(record["type"].is_string());
        if is_first_of_early_file(record) && !self.session.has_started {
            identify(&mut self.session, record);
            return self.session.start(record["git"]["commit_hash"].as_str().map(String::from));
        }
        if let Some(folder) = early_folder(record) {
            self.session.cwd = Some(folder.to_string());
        }
        match (record["type"].as_str(), record["role"].as_str()) {
            (Some("message"), Some("user")) => self.asks(&text_of(&record["content"]), at, found),
            (Some("message"), Some("assistant")) => self.says(&text_of(&record["content"])),
            _ => self.item(record, found),
        }
    }

    /// Keeps a message of the agent, which may be the last one.
    fn says(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.closing = Some((text.to_string(), self.session.at));
        }
    }

    fn asks(&mut self, said: &str, offset: u64, found: &mut Found) {
        let said = said.split_once(REQUEST).map_or(said, |(_, request)| request).trim();
        if said.is_empty() || !self.session.is_persons(said) {
            return;
        }
        self.end_turn();
        self.session.flush(found);
        // Reading again begins with the turn's first line, which names it.
        found.resume_at = self.begun.unwrap_or(offset);
        self.asked += 1;
        self.is_complete = false;
        let turn = self.turn_id.clone().unwrap_or_else(|| format!("at-{}", self.session.at));
        self.session.prompt = Some(if self.asked < 2 { turn } else { format!("{turn}-{}", self.asked) });
        found.counts.prompts += 1;
        self.session.add(EventKind::UserPrompt { text: said.to_string() });
    }

    fn end_turn(&mut self) {
        if let Some((closing, at)) = self.closing.take() {
            let usage = self.usage();
            self.session.end_turn(closing, at, usage);
        }
    }

    /// Returns the tokens used since the last turn.
    fn usage(&mut self) -> Option<TurnUsage> {
        self.tokens.take(self.model.clone()).filter(|_| self.session.agent.is_none())
    }

    /// Counts a call as a failure, if it failed.
    pub(super) fn count_failure(&self, failed: bool, found: &mut Found) {
        found.counts.failures += u64::from(failed && self.session.agent.is_none());
    }
}

/// Returns the first ordinal of the lines of a file that were undone. A later file of the same session states the
/// ordinal from which it continues.
fn rewound_at(path: &Path) -> Option<i64> {
    let name = path.file_name()?.to_str()?;
    let id = name.split(".jsonl").next()?.split('_').next()?;
    let id = id.get(id.len().checked_sub(36)?..)?;
    let later = |file: &PathBuf| {
        let file = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        file > name && file.contains(&format!("{id}_")) && file.ends_with(".jsonl")
    };
    let siblings = fs::read_dir(path.parent()?).ok()?.flatten().map(|entry| entry.path()).filter(later);
    let base = |file: PathBuf| {
        let line = files::reader(&file, u64::MAX).ok()?.take(1 << 20).lines().next()?.ok()?;
        serde_json::from_str::<Value>(&line).ok()?["payload"]["history_base"]["end_ordinal_exclusive"].as_i64()
    };
    siblings.filter_map(base).min()
}

/// Returns true if a file's first line names the guardian as its source.
fn is_guardian(meta: &Value) -> bool {
    meta["source"]["subagent"]["other"] == "guardian"
}

/// Sets a session's id, folder and branch from its first line. A subagent's thread names the session that started it.
fn identify(session: &mut PastSession, meta: &Value) {
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(String::from);
    let own = text(&meta["id"]).or_else(|| text(&meta["session_id"]));
    let parent = text(&meta["parent_thread_id"]);
    session.agent = own.clone().filter(|_| parent.is_some());
    if let Some(id) = parent.or(own) {
        session.id = id;
    }
    session.cwd = text(&meta["cwd"]).or(session.cwd.take());
    session.branch = text(&meta["git"]["branch"]);
    session.repository_url = text(&meta["git"]["repository_url"]);
}

impl PastReader for Reader {
    fn line(&mut self, record: Value, at: u64, found: &mut Found) {
        if record["ordinal"].as_i64().zip(self.rewound_at).is_some_and(|(at, rewound)| at >= rewound) {
            return found.counts.skip("line of a turn that was undone");
        }
        let payload = &record["payload"];
        if payload.is_null() && (record["type"] != "compacted") {
            return self.early_line(&record, at, found);
        }
        self.is_guardian |= record["type"] == "session_meta" && !self.session.has_started && is_guardian(payload);
        if self.is_guardian {
            return found.counts.skip("line of the guardian");
        }
        if let Some(fork) = &mut self.fork {
            if fork.is_copied(&record) {
                return found.counts.skip(COPIED);
            }
            self.fork = None;
        }
        self.session.at = time(&record).unwrap_or(self.session.at);
        found.counts.known_lines += u64::from(matches!(record["type"].as_str(), Some("event_msg" | "response_item")));
        match record["type"].as_str() {
            Some("session_meta") if !self.session.has_started => {
                identify(&mut self.session, payload);
                let is_fork = payload["forked_from_id"].is_string();
                self.fork = payload["id"].as_str().filter(|_| is_fork).map(|id| Fork { id: id.to_string(), copied_until: None });
                if is_fork || payload["history_base"].is_object() {
                    // The totals include those of the file that this one continues.
                    self.tokens = TokenTotals::new(true);
                }
                self.session.start(payload["git"]["commit_hash"].as_str().map(String::from));
            }
            Some("turn_context") => {
                self.session.cwd = payload["cwd"].as_str().map(String::from).or(self.session.cwd.take());
                self.model = payload["model"].as_str().map(String::from).or(self.model.take());
            }
            Some("event_msg") => self.said(payload, at, found),
            Some("response_item") => self.item(payload, found),
            _ => {}
        }
    }

    fn end(&mut self, at: u64, is_over: bool, found: &mut Found) {
        if is_over {
            for (_, (id, call)) in std::mem::take(&mut self.running) {
                self.command(&id, &call, None, found);
            }
            self.end_turn();
        }
        if is_over {
            for (_, (id, call)) in std::mem::take(&mut self.cells) {
                self.script(&id, &call, &Value::Null, found);
            }
        }
        if is_over || self.is_complete && self.calls.is_empty() && self.running.is_empty() && self.cells.is_empty() {
            found.resume_at = at;
        }
        if is_over {
            let usage = self.usage();
            self.session.end(usage);
        }
        for _ in self.calls.drain().filter(|_| is_over) {
            found.counts.skip("call without a result");
        }
        self.session.flush(found);
    }
}

/// The totals so far, and those at the last turn's end.
pub struct TokenTotals {
    now: Tokens,
    counted: Tokens,
    /// True while the totals before the part that is read are unknown.
    is_behind: bool,
}

impl TokenTotals {
    /// Starts counting from the start of a file, or (`is_behind`) after an unknown total.
    pub fn new(is_behind: bool) -> TokenTotals {
        TokenTotals { now: Tokens::default(), counted: Tokens::default(), is_behind }
    }

    /// Adds the `info` of a `token_count`.
    pub fn count(&mut self, info: &Value) {
        if !info["total_token_usage"].is_object() {
            return;
        }
        self.now = read(&info["total_token_usage"]);
        if std::mem::take(&mut self.is_behind) {
            self.counted = difference(self.now, read(&info["last_token_usage"]));
        }
    }

    /// Returns the tokens since the last call of this function; `None` if there are none.
    pub fn take(&mut self, model: Option<String>) -> Option<TurnUsage> {
        let tokens = difference(self.now, self.counted);
        if self.now == self.counted {
            return None;
        }
        self.counted = self.now;
        // The totals serve as the last message's id: the same file produces the same id when it is read again.
        let last_message = Some(format!("tokens-{}-{}", self.now.input, self.now.output));
        Some(TurnUsage { tokens: Some(tokens), model, last_message, ..TurnUsage::default() })
    }
}

/// Parses token counts. Codex's input tokens include those read from the cache.
fn read(usage: &Value) -> Tokens {
    let of = |key: &str| usage[key].as_i64().unwrap_or(0).max(0);
    let cache_read = of("cached_input_tokens");
    Tokens { input: (of("input_tokens") - cache_read).max(0), output: of("output_tokens"), cache_read, cache_write: 0 }
}

fn difference(later: Tokens, earlier: Tokens) -> Tokens {
    Tokens {
        input: (later.input - earlier.input).max(0),
        output: (later.output - earlier.output).max(0),
        cache_read: (later.cache_read - earlier.cache_read).max(0),
        cache_write: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn options() -> PastOptions {
        PastOptions { path: "/s/rollout.jsonl".into(), ..PastOptions::default() }
    }

    #[test]
    fn the_copied_part_of_a_fork_is_its_parents() {
        const OWN: &str = "019bb000-0000-7000-8000-00000000000b";
        let line = |second: i64, kind: &str, payload: Value| json!({"timestamp": format!("2026-11-20T09:00:{second:02}Z"), "type": kind, "payload": payload});
        let turn = |second: i64, id: &str, prompt: &str| {
            vec![
                line(second, "event_msg", json!({"type": "task_started", "turn_id": id})),
                line(second, "event_msg", json!({"type": "user_message", "message": prompt})),
                line(second, "event_msg", json!({"type": "task_complete", "turn_id": id, "last_agent_message": "ok"})),
            ]
        };
        let meta = |second: i64, id: &str, fork: Value| {
            line(second, "session_meta", json!({"id": id, "cwd": "/a", "forked_from_id": fork}))
        };
        let prompts = |lines: Vec<Value>| {
            let (mut reader, mut found) = (Reader::new(&options()), Found::default());
            lines.into_iter().enumerate().for_each(|(at, line)| reader.line(line, at as u64, &mut found));
            reader.end(99, true, &mut found);
            let prompt = |event: Event| if let EventKind::UserPrompt { text } = event.what { Some(text) } else { None };
            found.events.into_iter().filter_map(prompt).collect::<Vec<_>>()
        };
        let (older, newer) = ("019aa000-0000-7000-8000-000000000001", "019bb000-0001-7000-8000-000000000002");
        let fork = || meta(1, OWN, json!("019aa000-0000-7000-8000-00000000000a"));
        let copied = || meta(1, "019aa000-0000-7000-8000-00000000000a", Value::Null);
        // By the time in the turns' ids; a spawned agent begins at once.
        let by_id = [vec![fork(), copied()], turn(1, older, "First"), turn(1, newer, "Second")].concat();
        assert_eq!(prompts(by_id), ["Second"]);
        // By the time of the copy.
        let by_time = [vec![fork(), copied()], turn(1, "turn-1", "First"), turn(9, "turn-2", "Second")].concat();
        assert_eq!(prompts(by_time), ["Second"]);
        // Newer versions refer to the parent's file and copy nothing.
        assert_eq!(prompts([vec![fork()], turn(1, "turn-1", "First")].concat()), ["First"]);
        assert_eq!(prompts([vec![meta(1, OWN, Value::Null)], turn(1, older, "First")].concat()), ["First"]);
    }

    #[test]
    fn nothing_of_the_guardian_is_work() {
        let options = options();
        let events = |source: Value| {
            let (mut reader, mut found) = (Reader::new(&options), Found::default());
            reader.line(
                json!({"type": "session_meta", "payload": {"id": "g", "parent_thread_id": "p", "cwd": "/a", "source": source}}),
                0,
                &mut found,
            );
            reader.line(
                json!({"type": "event_msg", "payload": {"type": "task_complete", "last_agent_message": "allow"}}),
                1,
                &mut found,
            );
            reader.end(2, true, &mut found);
            found.events.len()
        };
        assert_eq!(events(json!({"subagent": {"other": "guardian"}})), 0);
        assert_eq!(events(json!({"subagent": "review"})), 1);
    }
}
