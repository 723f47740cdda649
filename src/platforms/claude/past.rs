//! Claude Code's past sessions: JSON Lines transcripts, and its memory files.

use super::{decode, is_command, notified, readable, text, typed};
use crate::model::{Entity, Event, EventKind, Millis, Platform, TITLE, TakenBack};
use crate::platforms::author::refusal;
use crate::platforms::past::{
    COPIED, Found, PastCall, PastFormat, PastOptions, PastReader, PastSession, cut_bytes, line_id, stable_uuid,
};
use crate::platforms::transcript_tail::{UsageCounter, time};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::path::Path;

/// The format of the session files. Raise the version when the reader learns to find more than before.
pub const PAST: PastFormat = PastFormat {
    platform: Platform::ClaudeCode,
    version: 4,
    folders: &["projects"],
    kinds: &[
        "agent-name",
        "ai-title",
        "api-request",
        "api-request-blob",
        "api-request-shape",
        "assistant",
        "atis-latch",
        "attachment",
        "cost-state",
        "custom-title",
        "file-history-snapshot",
        "last-prompt",
        "mode",
        "permission-mode",
        "pr-link",
        "progress",
        "queue-operation",
        "summary",
        "system",
        "tag",
        "tools-used",
        "user",
    ],
    is_line,
    cwd: |record| record["cwd"].as_str(),
    session_file: |path| agent_of(path).and(session_folder(path)).map(|session| session.with_extension("jsonl")),
    newest: |store, cwd| vec![store.join(folder_of(cwd))],
    reader: |options| Box::new(Reader::new(options)),
    ..PastFormat::LINES
};

/// Returns true for a message: other agents that keep the same fields around it have other messages.
fn is_line(record: &Value) -> bool {
    let is_said = matches!(record["type"].as_str(), Some("user" | "assistant"));
    is_said && record["sessionId"].is_string() && !record["message"]["content"].is_null()
}

/// Prefixes of messages about a call that a person declined.
const DECLINED: [&str; 2] = ["The user doesn't want to ", "[Request interrupted"];

/// Prefix of generated ids, for prompts without an id.
const QUEUED: &str = "queued-";

struct Reader {
    options: PastOptions,
    session: PastSession,
    /// Calls that wait for their results.
    calls: HashMap<String, PastCall>,
    /// Queued prompts.
    queue: Vec<String>,
    usage: UsageCounter,
    /// The last message of the main thread: its id, text and time.
    closing: Option<(String, String, Millis)>,
    /// True if the last message is complete.
    is_complete: bool,
    /// Prompts, each with the line that it follows: a prompt that follows the same line as an earlier one replaces it.
    prompts_after: Vec<(String, String)>,
    /// True if the last prompt replaces an earlier one.
    is_replacing: bool,
}

/// Returns true if a line says that the conversation continues from before its first prompt. It is written after the
/// next prompt, also if the person went back to a later one.
pub fn begins_again(record: &Value) -> bool {
    let is_zero = |id: &str| id.bytes().all(|byte| matches!(byte, b'0' | b'-'));
    record["type"] == "last-prompt" && record["explicit"] == true && record["leafUuid"].as_str().is_some_and(is_zero)
}

/// Returns the id of the prompt in a part of a file that follows the line `parent`; `None` if there is none.
pub fn prompt_after(part: &[u8], parent: &str) -> Option<String> {
    let mark = format!("\"{parent}\"");
    let lines = part.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    let mut prompts = lines.filter(|line| line.contains(&mark)).filter_map(|line| serde_json::from_str::<Value>(line).ok());
    prompts.find_map(|record| {
        let is_prompt = record["type"] == "user" && record["parentUuid"] == parent && record["isMeta"] != true;
        let content = &record["message"]["content"];
        let is_result = content[0]["type"] == "tool_result";
        text(&record["promptId"]).filter(|_| is_prompt && !is_result)
    })
}

/// Returns the name of a project's folder: its path, with a dash for each character other than ASCII letters and
/// digits.
fn folder_of(cwd: &str) -> String {
    cwd.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

/// The id of a file's subagent, from the file's name.
fn agent_of(path: &Path) -> Option<&str> {
    path.file_stem()?.to_str()?.strip_prefix("agent-")
}

/// Returns the folder of the session to which a subagent's file belongs. A workflow's subagents lie deeper:
/// `<session>/subagents/workflows/<workflow>/agent-<id>.jsonl`.
fn session_folder(path: &Path) -> Option<&Path> {
    let folder = path.parent()?;
    folder.ancestors().take(3).find(|folder| folder.ends_with("subagents")).unwrap_or(folder).parent()
}

impl Reader {
    fn new(options: &PastOptions) -> Reader {
        let agent = agent_of(&options.path).map(String::from);
        let name = |path: Option<&Path>| path.and_then(|path| path.file_stem()?.to_str().map(String::from));
        let id = match agent {
            Some(_) => name(session_folder(&options.path)),
            None => name(Some(&options.path)),
        };
        let mut session = PastSession::new(Platform::ClaudeCode, id.unwrap_or_default(), options);
        session.agent = agent;
        Reader {
            options: options.clone(),
            session,
            calls: HashMap::new(),
            queue: Vec::new(),
            usage: UsageCounter::default(),
            closing: None,
            is_complete: false,
            prompts_after: Vec::new(),
            is_replacing: false,
        }
    }

    /// Returns the subagent of a line. Early versions wrote subagents' work into the main file.
    fn agent(&self, record: &Value) -> Option<String> {
        let inline = || (record["isSidechain"] == true).then(|| text(&record["agentId"]).unwrap_or_else(|| "sidechain".into()));
        self.session.agent.clone().or_else(inline)
    }

    fn assistant(&mut self, record: &Value, found: &mut Found) {
        let message = &record["message"];
        let is_inline = self.session.agent.is_none() && self.agent(record).is_some();
        if self.agent(record).is_none() {
            self.usage.record(record, self.options.thinking);
        }
        // The client's own notes ("API Error …").
        if message["model"] == "<synthetic>" || record["isApiErrorMessage"] == true {
            return;
        }
        for block in message["content"].as_array().into_iter().flatten() {
            match block["type"].as_str() {
                Some("text") if !is_inline => self.says(message, block),
                Some("tool_use") => {
                    let is_new = self.call(block);
                    found.counts.tool_uses += u64::from(is_new && self.agent(record).is_none());
                    self.closing = self.closing.take().filter(|_| is_inline);
                }
                _ => {}
            }
        }
        if !is_inline {
            self.is_complete = message["stop_reason"] == "end_turn" || message["stop_reason"] == "stop_sequence";
        }
    }

    fn says(&mut self, message: &Value, block: &Value) {
        let (Some(said), Some(id)) = (text(&block["text"]), message["id"].as_str()) else { return };
        self.closing = match self.closing.take() {
            Some((of, before, _)) if of == id => Some((of, format!("{before}\n{said}"), self.session.at)),
            _ => Some((id.to_string(), said, self.session.at)),
        };
    }

    /// Records a call that waits for its result; returns true if it is new.
    fn call(&mut self, block: &Value) -> bool {
        let (Some(id), Some(name)) = (block["id"].as_str(), block["name"].as_str()) else { return false };
        let call = PastCall { name: name.to_string(), input: block["input"].clone() };
        self.calls.insert(id.to_string(), call).is_none()
    }

    /// Reads a user line: results of calls, or text.
    fn user(&mut self, mut record: Value, offset: u64, found: &mut Found) {
        let content = record.pointer_mut("/message/content").map(Value::take).unwrap_or_default();
        let blocks = match content {
            Value::Array(blocks) => blocks,
            Value::String(said) => return self.text(&record, &said, offset, found),
            _ => return,
        };
        let agent = self.agent(&record);
        let mut said = Vec::new();
        for block in blocks {
            match block["type"].as_str() {
                Some("tool_result") => {
                    let response = record["toolUseResult"].take();
                    self.result(&block, response, found, agent.clone());
                }
                Some("text") => said.extend(text(&block["text"])),
                _ => {}
            }
        }
        if !said.is_empty() {
            self.text(&record, &said.join("\n"), offset, found);
        }
    }

    /// Adds a call with its result.
    fn result(&mut self, block: &Value, response: Value, found: &mut Found, agent: Option<String>) {
        let id = block["tool_use_id"].as_str().unwrap_or_default();
        let Some(call) = self.calls.remove(id) else { return found.counts.skip("result without a call") };
        let said = readable(&block["content"]).unwrap_or_default();
        let failed = block["is_error"] == true;
        match agent {
            Some(_) => found.counts.subagent_tool_uses += 1,
            None => found.counts.failures += u64::from(failed),
        }
        if failed && DECLINED.iter().any(|declined| said.starts_with(declined)) {
            if let Some(answer) = refusal(&said, &described(&call)).filter(|_| agent.is_none()) {
                self.session.add(EventKind::Answered { call: Some(id.to_string()), answers: vec![answer] });
            }
            return found.counts.skip("declined by the user");
        }
        let error = said.strip_prefix("<tool_use_error>").map(|said| said.trim_end_matches("</tool_use_error>"));
        let response = match response {
            // A subagent's lines have only the text.
            Value::Null if matches!(call.name.as_str(), "Bash" | "PowerShell") => json!({"stdout": said}),
            Value::Null => block["content"].clone(),
            response => response,
        };
        let result = if failed { Err(error.unwrap_or(&said)) } else { Ok(response) };
        let mut payload = self.session.payload(id, &call.name, call.input, result);
        payload["agent_id"] = json!(agent);
        match decode(&payload, &self.session.decode_context()) {
            Ok(Some(event)) => drop(self.session.add_decoded(event)),
            _ => found.counts.skip("tool that is not recorded"),
        }
    }

    /// Reads the text of a user line, which may be a prompt.
    fn text(&mut self, record: &Value, said: &str, offset: u64, found: &mut Found) {
        let is_own =
            ["isMeta", "isCompactSummary", "isSidechain", "isVisibleInTranscriptOnly"].iter().all(|key| record[*key] != true);
        if !is_own || self.session.agent.is_some() {
            return;
        }
        if said.trim_start().starts_with("[Request interrupted") {
            self.closing = None;
            return;
        }
        let is_machine_made = record["origin"]["kind"].as_str().is_some_and(|kind| kind != "human");
        match typed(said).filter(|_| !is_machine_made) {
            Some(prompt) => {
                // In some versions, a queued prompt later has its own line.
                let is_queued = |event: &Event| event.prompt.as_ref().is_some_and(|id| id.starts_with(QUEUED));
                let is_same = |event: &Event| is_queued(event) && is_prompt(event, &prompt);
                if let Some(at) = self.session.turn().iter().rposition(is_same) {
                    self.session.turn().remove(at);
                    found.counts.prompts -= 1;
                }
                self.end_turn();
                self.session.flush(found);
                found.resume_at = offset;
                self.is_complete = false;
                let id = text(&record["promptId"]).or_else(|| text(&record["uuid"]));
                let taken = self.taken_back(record, id.as_deref());
                self.prompts(prompt, id, found);
                if let Some(since) = taken {
                    self.session.add(EventKind::TakenBack(TakenBack::Since(since)));
                }
            }
            None if is_command(said) => {}
            None => {
                self.end_turn();
                if let Some(ended) = notified(said) {
                    self.session.add(EventKind::BackgroundEnded(ended));
                }
            }
        }
    }

    /// Returns the first prompt that a new one replaces, if the person went back.
    fn taken_back(&mut self, record: &Value, id: Option<&str>) -> Option<String> {
        let (parent, id) = (text(&record["parentUuid"]).unwrap_or_default(), id?);
        let at = self.prompts_after.iter().position(|(_, after)| *after == parent && !parent.is_empty());
        let since = at.map(|at| self.prompts_after.drain(at..).next().expect("it is there").0).filter(|since| since != id);
        self.prompts_after.push((id.to_string(), parent));
        self.is_replacing = since.is_some();
        since
    }

    /// Handles the mark that the last prompt begins the conversation again: all prompts before it were taken back.
    fn begun_again(&mut self) {
        if self.is_replacing || self.prompts_after.len() < 2 {
            return;
        }
        let before = self.prompts_after.len() - 1;
        let (first, _) = self.prompts_after.drain(..before).next().expect("there are two");
        self.session.add(EventKind::TakenBack(TakenBack::Since(first)));
    }

    fn prompts(&mut self, prompt: String, id: Option<String>, found: &mut Found) {
        self.queue.retain(|queued| *queued != prompt);
        // The same file produces the same id when it is read again.
        self.session.prompt = id.or_else(|| Some(format!("{QUEUED}{}", self.session.at)));
        found.counts.prompts += 1;
        self.session.add(EventKind::UserPrompt { text: prompt });
    }

    /// Ends the turn with the agent's last text, if it ended with text.
    fn end_turn(&mut self) {
        if let Some((_, closing, at)) = self.closing.take() {
            let usage = if self.session.agent.is_none() { Some(self.usage.take()) } else { None };
            self.session.end_turn(closing, at, usage);
        }
    }

    /// Reads a queue line. A prompt that leaves the queue for its own line is read from that line.
    fn queue(&mut self, record: &Value, found: &mut Found) {
        let said = text(&record["content"]);
        match record["operation"].as_str() {
            Some("enqueue") => {
                if let Some(ended) = said.as_deref().and_then(notified) {
                    self.session.add(EventKind::BackgroundEnded(ended));
                }
                let is_note = |said: &String| serde_json::from_str::<Value>(said).is_ok_and(|note| note.is_object());
                self.queue.extend(said.filter(|said| !is_note(said)).and_then(|said| typed(&said)));
            }
            // The agent read the prompt while working, and in some versions no other line has it.
            Some("remove") if said.is_none() && !self.queue.is_empty() => {
                let prompt = self.queue.remove(0);
                self.only_queued(prompt, found);
            }
            Some("remove") => {
                let prompt = said.and_then(|said| typed(&said));
                self.queue.retain(|queued| Some(queued) != prompt.as_ref());
            }
            Some("popAll") => self.queue.clear(),
            _ => {}
        }
    }

    /// Adds a prompt that appears only in the queue.
    fn only_queued(&mut self, prompt: String, found: &mut Found) {
        // The client's own commands are not prompts. A path may begin one.
        let is_command =
            prompt.split_whitespace().next().and_then(|word| word.strip_prefix('/')).is_some_and(|name| !name.contains('/'));
        if !is_command {
            self.prompts(prompt, None, found);
        }
    }

    /// Adds a prompt typed while the agent worked, in versions that give it its own line.
    fn queued_command(&mut self, record: &Value, found: &mut Found) {
        let attachment = &record["attachment"];
        let is_human = attachment["origin"]["kind"].as_str().is_none_or(|kind| kind == "human");
        let said = text(&attachment["prompt"]).or_else(|| readable(&attachment["prompt"]));
        if let Some(prompt) = said.and_then(|said| typed(&said)).filter(|_| is_human)
            && !self.session.turn().iter().any(|event| is_prompt(event, &prompt))
        {
            self.prompts(prompt, text(&record["uuid"]), found);
        }
    }

    /// Reads a subagent's work, in versions that report it in the main file.
    fn progress(&mut self, record: &Value, found: &mut Found) {
        let Some(agent) = text(&record["data"]["agentId"]) else { return };
        for block in record["data"]["message"]["message"]["content"].as_array().into_iter().flatten() {
            match block["type"].as_str() {
                Some("tool_use") => drop(self.call(block)),
                Some("tool_result") => self.result(block, Value::Null, found, Some(agent.clone())),
                _ => {}
            }
        }
    }
}

/// Returns a line that names a call to a person.
fn described(call: &PastCall) -> String {
    let what = ["command", "file_path", "plan", "description", "url"].iter().find_map(|key| call.input[key].as_str());
    let line = what.and_then(|what| what.lines().find(|line| !line.trim().is_empty())).unwrap_or_default();
    format!("{} {}", call.name, line.trim()).trim_end().to_string()
}

/// Returns true if an event is a prompt with this text.
fn is_prompt(event: &Event, prompt: &str) -> bool {
    matches!(&event.what, EventKind::UserPrompt { text } if text == prompt)
}

impl PastReader for Reader {
    fn line(&mut self, record: Value, at: u64, found: &mut Found) {
        if line_id(&record).is_some_and(|id| self.options.copied.contains(&id)) {
            return found.counts.skip(COPIED);
        }
        let session = &mut self.session;
        session.at = time(&record).unwrap_or(session.at);
        session.cwd = text(&record["cwd"]).or(session.cwd.take());
        session.branch = text(&record["gitBranch"]).filter(|branch| branch != "HEAD").or(session.branch.take());
        if session.cwd.is_some() && session.at > 0 {
            session.start(None);
        }
        if session.agent.is_some() {
            session.prompt = text(&record["promptId"]).or(session.prompt.take());
        }
        found.counts.known_lines += u64::from(matches!(record["type"].as_str(), Some("assistant" | "user")));
        match record["type"].as_str() {
            Some("assistant") => self.assistant(&record, found),
            Some("user") => self.user(record, at, found),
            Some("last-prompt") if begins_again(&record) => self.begun_again(),
            Some("queue-operation") => self.queue(&record, found),
            Some("attachment") if record["attachment"]["type"] == "queued_command" => self.queued_command(&record, found),
            Some("progress") if record["data"]["type"] == "agent_progress" => self.progress(&record, found),
            // The turn ended here, whatever follows: an interrupted hook, or more work that a hook asked for.
            Some("progress") if record["data"]["hookEvent"] == "Stop" => self.end_turn(),
            Some("system") if record["subtype"] == "stop_hook_summary" => self.end_turn(),
            Some("system") if record["subtype"] == "turn_duration" => {
                self.end_turn();
                self.is_complete = true;
            }
            Some("system") if record["subtype"] == "compact_boundary" => self.session.compact(),
            _ => {}
        }
    }

    fn end(&mut self, at: u64, is_over: bool, found: &mut Found) {
        if is_over {
            std::mem::take(&mut self.queue).into_iter().for_each(|prompt| self.only_queued(prompt, found));
        }
        if is_over || self.is_complete && self.calls.is_empty() {
            self.end_turn();
            found.resume_at = at;
        }
        if is_over {
            let usage = self.usage.take();
            self.session.end(Some(usage));
        }
        for _ in self.calls.drain().filter(|_| is_over) {
            found.counts.skip("call without a result");
        }
        self.session.flush(found);
    }
}

/// Minimum bytes of a note.
const LEAST: usize = 20;
/// Maximum bytes of a note's text.
const NOTE: usize = 8000;

/// Returns true if a file holds notes, judged by its path.
pub fn is_notes(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "md") && path.components().any(|part| part.as_os_str() == "memory")
}

/// Parses the notes in a file.
pub fn notes(path: &Path, text: &str, at: Millis) -> Vec<Entity> {
    let (head, text) = front_matter(text);
    let named =
        |key: &str| head.lines().find_map(|line| line.trim().strip_prefix(key)).map(|value| value.trim().trim_matches('"'));
    let description = named("description:").or_else(|| named("name:"));
    let note = |title: &str, body: &str, key: &str| Entity {
        uuid: Some(stable_uuid(&format!("note {} {key}", path.display()))),
        entity_type: "observation".into(),
        title: Some(cut_bytes(title, TITLE.0)),
        subtitle: None,
        content: Map::from_iter([
            ("narrative".into(), json!(cut_bytes(body, NOTE))),
            ("notes_file".into(), json!(path.display().to_string())),
        ]),
        concepts: Vec::new(),
        files_read: Vec::new(),
        files_modified: Vec::new(),
        tokens: None,
        at,
    };
    if let Some(description) = description.filter(|_| text.trim().len() >= LEAST) {
        return vec![note(description, text.trim(), "")];
    }
    let sections = sections(text).into_iter().map(|(heading, body)| (heading, without_links(&body)));
    let sections = sections.filter(|(_, body)| body.len() >= LEAST);
    sections.map(|(heading, body)| note(&title(&heading, &body), &body, &heading)).collect()
}

/// Returns the heading with the first line of its text: a heading alone tells little.
fn title(heading: &str, body: &str) -> String {
    let first = body.lines().map(|line| line.trim_start_matches(['-', '*', ' '])).find(|line| !line.is_empty());
    let parts: Vec<&str> = [heading, first.unwrap_or_default()].into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(": ")
}

/// Splits a file into its front matter (between `---` lines) and the rest.
fn front_matter(text: &str) -> (&str, &str) {
    let inside = text.trim_start_matches('\u{feff}').strip_prefix("---\n");
    inside.and_then(|inside| inside.split_once("\n---")).unwrap_or(("", text))
}

/// Splits a text into headings, each with the text below it.
fn sections(text: &str) -> Vec<(String, String)> {
    let mut sections = vec![(String::new(), String::new())];
    let mut is_code = false;
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        match line.strip_prefix('#').filter(|_| !is_code) {
            Some(heading) => sections.push((heading.trim_start_matches('#').trim().to_string(), String::new())),
            None => {
                let body = &mut sections.last_mut().expect("there is a first one").1;
                *body += line;
                *body += "\n";
            }
        }
    }
    sections
}

/// Removes the lines that only link to another notes file.
fn without_links(body: &str) -> String {
    let is_link = |line: &str| line.trim_start().starts_with("- [") && line.contains(".md)");
    body.lines().filter(|line| !is_link(line)).collect::<Vec<_>>().join("\n").trim().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subagents_file_belongs_to_its_session_at_any_depth() {
        for path in ["/p/one/subagents/agent-a1.jsonl", "/p/one/subagents/workflows/wf_12/agent-a1.jsonl"] {
            assert_eq!((PAST.session_file)(Path::new(path)), Some("/p/one.jsonl".into()), "{path}");
        }
        assert_eq!((PAST.session_file)(Path::new("/p/one.jsonl")), None);
        let beside = Path::new("/subagents/.claude/projects/p/agent-a1.jsonl");
        assert_eq!(session_folder(beside), Some(Path::new("/subagents/.claude/projects")));
    }

    #[test]
    fn a_list_of_files_is_no_note_and_each_section_is_one() {
        let path = Path::new("/h/.claude/projects/-p/memory/MEMORY.md");
        let text = "# Memory\n- [Testing](testing.md) — how to run tests\n\n## Build\n- `make all` needs GNU make, not BSD make\n- slow\n";
        let found = notes(path, text, 7);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].title.as_deref(), Some("Build: `make all` needs GNU make, not BSD make"));
        let file = "---\nname: testing\ndescription: Tests need a running database\ntype: project\n---\n\nStart it with `make db` first.\n";
        let found = notes(Path::new("/h/memory/testing.md"), file, 7);
        assert_eq!(found[0].title.as_deref(), Some("Tests need a running database"));
        assert_eq!(found[0].content["narrative"], "Start it with `make db` first.");
        assert!(is_notes(path) && !is_notes(Path::new("/h/README.md")));
    }
}
