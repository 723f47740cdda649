//! Programs without an adapter of their own: those that use the RAD protocol, and agents that run Claude Code's hooks or
//! its plugin. Each agent is named after itself; their tools share one table.

use super::adapter::{Adapter, HookAnswer, Moment, Support, envelope, event_of};
use super::past::{Found, PastCall, PastFormat, PastOptions, PastReader, PastSession, text_of};
use super::payload::DecodeContext;
use super::settings_file::Setup;
use super::transcript_tail::time;
use super::translated::{self, HookCall, Translated, changes_like, cwd, event_name, field, unpacked};
use super::{claude, gemini};
use crate::model::{Event, EventKind, InjectionPoint, Millis, Platform};
use serde_json::{Value, json};
use std::collections::HashMap;

pub struct Custom;

impl Adapter for Custom {
    fn platform(&self) -> Platform {
        Platform::Custom
    }

    fn recognises(&self, _payload: &Value) -> bool {
        false
    }

    fn translate(&self, payload: &Value) -> Vec<Translated> {
        translated::event(payload.clone())
    }

    fn decode(&self, payload: &Value, around: &DecodeContext) -> Result<Vec<Event>, String> {
        Ok(claude::decode(payload, around)?.map(|event| Event { platform: Platform::Custom, ..event }).into_iter().collect())
    }

    fn encode(&self, _payload: &Value, answer: &HookAnswer) -> Option<String> {
        envelope(event_of(answer.point), answer)
    }

    fn support(&self) -> Support {
        let request = Moment::Possible;
        Support {
            outcome: "`error` in `observations`",
            failures: "`error` in `observations`",
            tokens: "not possible: the protocol has no field for them",
            start: request,
            prompt: request,
            edit: request,
            subagent: request,
            compaction: request,
            context_bytes: None,
            takes_results: false,
            keeps_start_context: true,
        }
    }

    fn setup(&self) -> Option<&'static Setup> {
        None
    }
}

/// An agent that runs Claude Code's hooks.
pub struct OtherHost {
    platform: Platform,
    recognises: fn(&Value) -> bool,
    past: &'static [PastFormat],
    /// The moments at which it passes context on to the model; at others, it drops the answer.
    takes: &'static [InjectionPoint],
    /// It passes context on with the result of a call, and not at a session start.
    takes_results: bool,
}

pub const QWEN: OtherHost = OtherHost {
    platform: Platform::QwenCode,
    recognises: |payload| transcript(payload).contains("/.qwen/"),
    past: &[],
    takes: &[InjectionPoint::Start, InjectionPoint::Prompt, InjectionPoint::Compaction],
    takes_results: false,
};

pub const DROID: OtherHost = OtherHost {
    platform: Platform::Droid,
    recognises: |payload| transcript(payload).contains("/.factory/"),
    past: &[DROID_PAST],
    takes: &[InjectionPoint::Start, InjectionPoint::Compaction],
    takes_results: false,
};

pub const GROK: OtherHost = OtherHost {
    platform: Platform::GrokBuild,
    recognises: |payload| {
        transcript(payload).contains("/.grok/") || payload["workspaceRoot"].is_string() && payload["hookEventName"].is_string()
    },
    past: &[],
    takes: &[InjectionPoint::File],
    takes_results: true,
};

/// Any other agent whose session files lie in a folder of its own.
pub const OTHER: OtherHost = OtherHost {
    platform: Platform::Other,
    recognises: |payload| is_in_other_folder(&transcript(payload)),
    past: &[],
    takes: &[InjectionPoint::Start, InjectionPoint::Compaction],
    takes_results: false,
};

fn transcript(payload: &Value) -> String {
    field(payload, &["transcript_path", "transcriptPath"]).as_str().unwrap_or_default().replace('\\', "/")
}

/// Returns true if a path lies in a hidden folder of the home folder that is not one of Claude Code's, nor one that many
/// programs share, and the file is not placed as Claude Code's are: `projects/<project>/<session>.jsonl`.
fn is_in_other_folder(path: &str) -> bool {
    const SHARED: [&str; 4] = [".config", ".local", ".cache", ".var"];
    let parts: Vec<&str> = path.split('/').collect();
    let hidden = parts.iter().position(|part| part.len() > 1 && part.starts_with('.'));
    let Some(at) = hidden.filter(|at| *at <= 4 && !parts[*at].contains("claude") && !SHARED.contains(&parts[*at])) else {
        return false;
    };
    let is_placed_alike = parts.get(at + 1) == Some(&"projects") && parts.len() == at + 4;
    let homes = ["/home/", "/Users/", "/root/"];
    homes.iter().any(|home| path.starts_with(home) || path.contains(&format!(":{home}"))) && !is_placed_alike
}

/// Returns Claude Code's name for an event: some agents write `post_tool_use`.
fn event(payload: &Value) -> String {
    let capital = |word: &str| word.split_at_checked(1).map(|(first, rest)| first.to_uppercase() + rest).unwrap_or_default();
    match event_name(payload) {
        name if name.contains('_') || name.starts_with(|c: char| c.is_ascii_lowercase()) => {
            name.split('_').map(capital).collect()
        }
        name => name.to_string(),
    }
}

impl Adapter for OtherHost {
    fn platform(&self) -> Platform {
        self.platform
    }

    fn recognises(&self, payload: &Value) -> bool {
        (self.recognises)(payload)
    }

    fn translate(&self, payload: &Value) -> Vec<Translated> {
        let event = event(payload);
        if !matches!(event.as_str(), "PreToolUse" | "PostToolUse" | "PostToolUseFailure") {
            let mut head = translated::payload(&event, payload);
            head["prompt_id"] = field(payload, &["prompt_id", "promptId"]).clone();
            head["cwd"] = json!(cwd(payload));
            return translated::event(head);
        }
        let name = field(payload, &["tool_name", "toolName"]).as_str().unwrap_or("unknown");
        let response = field(payload, &["tool_response", "toolResult", "tool_output", "tool_result"]);
        let result = match event.as_str() {
            "PreToolUse" => None,
            "PostToolUseFailure" => Some(Err(failure(name, payload))),
            _ => Some(result(name, response)),
        };
        let mut from = payload.clone();
        from["prompt_id"] = field(payload, &["prompt_id", "promptId"]).clone();
        let call = HookCall {
            id: field(payload, &["tool_call_id", "tool_use_id", "toolUseId"]),
            name,
            like: like(name, &unpacked(field(payload, &["tool_input", "toolInput"]))),
            result,
            duration_ms: field(payload, &["duration_ms", "durationMs"]),
        };
        translated::call(&from, call)
    }

    fn encode(&self, payload: &Value, answer: &HookAnswer) -> Option<String> {
        envelope(&event(payload), answer)
    }

    fn support(&self) -> Support {
        let moment = |point| match self.takes.contains(&point) {
            true => Moment::Possible,
            false => Moment::NotPossible("the answer is dropped, or was never tried"),
        };
        Support {
            outcome: "the call's response",
            failures: "an event of its own, or the call's response",
            tokens: "not read",
            start: moment(InjectionPoint::Start),
            prompt: moment(InjectionPoint::Prompt),
            edit: moment(InjectionPoint::File),
            subagent: moment(InjectionPoint::Subagent),
            compaction: moment(InjectionPoint::Compaction),
            context_bytes: None,
            takes_results: self.takes_results,
            keeps_start_context: true,
        }
    }

    fn setup(&self) -> Option<&'static Setup> {
        None
    }

    fn past(&self) -> &'static [PastFormat] {
        self.past
    }

    fn reports_prompts(&self) -> bool {
        self.platform != Platform::Droid
    }

    fn keeps_closing_in_transcript(&self) -> bool {
        self.platform == Platform::Droid
    }

    /// Finds the last text of Droid's main thread, if no call follows it.
    fn closing(&self, transcript: &[u8]) -> Option<String> {
        let lines = transcript.rsplit(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
        let mut said = lines.filter(|record| record["message"]["role"] == "assistant");
        let blocks = said.next()?["message"]["content"].take();
        let calls = blocks.as_array().is_some_and(|blocks| blocks.iter().any(|block| block["type"] == "tool_use"));
        Some(text_of(&blocks)).filter(|text| !calls && !text.trim().is_empty())
    }
}

/// Droid's session files: JSON Lines with messages of Anthropic's blocks.
const DROID_PAST: PastFormat = PastFormat {
    platform: Platform::Droid,
    folders: &["sessions"],
    is_line: |record| record["type"] == "session_start" && record["id"].is_string() && record["hostId"].is_string(),
    cwd: |record| record["cwd"].as_str(),
    newest: |store, cwd| vec![store.join(cwd.replace(['/', '\\'], "-"))],
    reader: |options| Box::new(DroidReader::new(options)),
    ..PastFormat::LINES
};

struct DroidReader {
    session: PastSession,
    /// Calls that wait for their results.
    calls: HashMap<String, PastCall>,
    /// The last text of the agent, and its time.
    closing: Option<(String, Millis)>,
    is_complete: bool,
}

impl DroidReader {
    fn new(options: &PastOptions) -> DroidReader {
        let session = PastSession::new(Platform::Droid, options.path.display().to_string(), options);
        let mut reader = DroidReader { session, calls: HashMap::new(), closing: None, is_complete: false };
        options.first.iter().for_each(|first| reader.identify(first));
        reader
    }

    fn identify(&mut self, first: &Value) {
        if let Some(id) = first["id"].as_str() {
            self.session.id = id.to_string();
        }
        self.session.cwd = first["cwd"].as_str().map(String::from);
    }

    fn said_by_user(&mut self, id: &str, text: &str, at: u64, found: &mut Found) {
        let text = text.trim();
        if text.is_empty() || !self.session.is_persons(text) {
            return;
        }
        self.end_turn();
        self.session.flush(found);
        (found.resume_at, self.is_complete) = (at, false);
        found.counts.prompts += 1;
        self.session.prompt = Some(id.to_string());
        self.session.add(EventKind::UserPrompt { text: text.to_string() });
    }

    fn result(&mut self, block: &Value, found: &mut Found) {
        let id = block["tool_use_id"].as_str().unwrap_or_default();
        let Some(call) = self.calls.remove(id) else { return found.counts.skip("result without a call") };
        let said = text_of(&block["content"]);
        let result = match result(&call.name, &json!(said)) {
            Ok(_) if block["is_error"] == true => Err(said.trim_start_matches("Error: ").to_string()),
            result => result,
        };
        found.counts.failures += u64::from(result.is_err());
        for (n, (name, input)) in like(&call.name, &call.input).into_iter().enumerate() {
            let id = if n == 0 { id.to_string() } else { format!("{id}-{}", n + 1) };
            let payload = self.session.payload(
                &id,
                &name,
                input,
                match &result {
                    Ok(response) => Ok(response.clone()),
                    Err(error) => Err(error.as_str()),
                },
            );
            match claude::decode(&payload, &self.session.decode_context()) {
                Ok(Some(event)) => {
                    if let EventKind::ToolUsed(tool) = &mut self.session.add_decoded(event).what {
                        tool.name.clone_from(&call.name);
                    }
                }
                _ => found.counts.skip("tool that is not recorded"),
            }
        }
    }

    fn end_turn(&mut self) {
        if let Some((closing, at)) = self.closing.take() {
            self.session.end_turn(closing, at, None);
        }
    }
}

impl PastReader for DroidReader {
    fn line(&mut self, record: Value, at: u64, found: &mut Found) {
        let session = &mut self.session;
        session.at = time(&record).unwrap_or(session.at);
        found.counts.known_lines += u64::from(record["type"] == "message");
        let message = &record["message"];
        match record["type"].as_str() {
            Some("session_start") if !session.has_started => return self.identify(&record),
            Some("agent_turn_outcome") => {
                self.end_turn();
                self.is_complete = true;
            }
            _ => {}
        }
        let id = record["id"].as_str().unwrap_or_default();
        // Notes of the client: reminders, and records of hooks.
        if record["type"] != "message" || id.starts_with("context-") || message["visibility"] == "user_only" {
            return;
        }
        if self.session.at > 0 {
            self.session.start(None);
        }
        for block in message["content"].as_array().into_iter().flatten() {
            match (message["role"].as_str(), block["type"].as_str()) {
                (Some("user"), Some("text")) => self.said_by_user(id, block["text"].as_str().unwrap_or_default(), at, found),
                (Some("user"), Some("tool_result")) => self.result(block, found),
                (Some("assistant"), Some("text")) => {
                    self.closing = Some((text_of(&json!([block])), self.session.at)).filter(|(text, _)| !text.trim().is_empty());
                }
                (Some("assistant"), Some("tool_use")) => {
                    self.closing = None;
                    found.counts.tool_uses += 1;
                    let call =
                        PastCall { name: block["name"].as_str().unwrap_or("unknown").into(), input: block["input"].clone() };
                    self.calls.insert(block["id"].as_str().unwrap_or_default().to_string(), call);
                }
                _ => {}
            }
        }
    }

    fn end(&mut self, at: u64, is_over: bool, found: &mut Found) {
        if is_over || self.is_complete && self.calls.is_empty() {
            self.end_turn();
            found.resume_at = at;
        }
        if is_over {
            self.session.end(None);
            (0..self.calls.drain().count()).for_each(|_| found.counts.skip("call without a result"));
        }
        self.session.flush(found);
    }
}

/// Returns true if a tool runs a command.
fn is_command(name: &str) -> bool {
    const COMMANDS: [&str; 9] = [
        "Bash",
        "bash",
        "Execute",
        "execute_command",
        "run_command",
        "run_commands",
        "run_shell_command",
        "run_terminal_command",
        "shell",
    ];
    COMMANDS.contains(&name)
}

/// Converts a call of any agent to one or more Claude Code calls: names and inputs.
fn like(name: &str, input: &Value) -> Vec<(String, Value)> {
    let of = |names: &[&str]| field(input, names).clone();
    let path = || of(&["file_path", "target_file", "filePath", "absolute_path", "path", "dir_path"]);
    let one = |like: &str, input: Value| vec![(like.to_string(), input)];
    match name {
        name if is_command(name) => {
            let background = of(&["run_in_background", "is_background"]);
            let input = json!({"command": of(&["command", "cmd"]), "description": of(&["description", "summary"])});
            one("Bash", if background == true { json!({"run_in_background": true, "command": input["command"]}) } else { input })
        }
        "Read" | "read" | "read_file" | "view" => one("Read", json!({"file_path": path()})),
        "read_many_files" | "read_files" => {
            let files = field(input, &["paths", "files", "include"]).as_array().into_iter().flatten();
            files.map(|file| ("Read".to_string(), json!({"file_path": file}))).collect()
        }
        "Write" | "write" | "write_file" | "Create" | "create_file" | "WriteFile" => {
            one("Write", json!({"file_path": path(), "content": of(&["content", "contents", "text"])}))
        }
        "Edit" | "edit" | "editor" | "replace" | "search_replace" | "StrReplaceFile" | "str_replace" | "MultiEdit" => {
            let old = of(&["old_string", "old_str", "oldText", "old_text", "oldString"]);
            let new = of(&["new_string", "new_str", "newText", "new_text", "newString"]);
            one("Edit", json!({"file_path": path(), "old_string": old, "new_string": new}))
        }
        "ApplyPatch" | "apply_patch" => {
            let patch = input.as_str().map_or_else(|| of(&["patch", "input", "patchText"]), Value::from);
            changes_like(patch.as_str().unwrap_or_default())
        }
        "Grep" | "grep" | "grep_search" | "search_file_content" => {
            one("Grep", json!({"pattern": of(&["pattern", "query"]), "path": path()}))
        }
        "Glob" | "glob" | "file_search" => one("Glob", json!({"pattern": of(&["pattern", "query"]), "path": path()})),
        "LS" | "list_dir" | "list_directory" => one("LS", json!({"path": path()})),
        "WebFetch" | "web_fetch" | "FetchUrl" => one("WebFetch", json!({"url": of(&["url", "prompt"])})),
        "WebSearch" | "web_search" => one("WebSearch", json!({"query": of(&["query"])})),
        "Task" | "Agent" | "agent" | "task" | "spawn_subagent" => {
            one("Agent", json!({"description": of(&["description", "name"]), "prompt": of(&["prompt", "task"])}))
        }
        "TodoWrite" | "todo_write" => one("TodoWrite", input.clone()),
        name => one(name, input.clone()),
    }
}

/// Returns the error of a call that the agent reports as failed.
fn failure(name: &str, payload: &Value) -> String {
    let error = field(payload, &["error", "error_message", "tool_response", "toolResult"]);
    let said = error["message"].as_str().map_or_else(|| text_of(error), String::from);
    match gemini::printed(&said) {
        Err(printed) if is_command(name) => printed,
        _ => said,
    }
}

/// Returns the result of a call from any agent's response.
fn result(name: &str, response: &Value) -> Result<Value, String> {
    let response = &unpacked(response);
    let failed = ["is_error", "isError"].iter().any(|key| response[*key] == true) || response["success"] == false;
    let error = response["error"]["message"].as_str().or(response["error"].as_str());
    let not_found = response["NoMatchesFound"]["message"].as_str();
    if let Some(error) = error.or(not_found) {
        return Err(error.to_string());
    }
    let said = field(response, &["output_for_prompt", "llmContent", "output", "stdout", "content"]);
    let said = if said.is_null() { text_of(response) } else { text_of(said) };
    if failed {
        return Err(said);
    }
    if !is_command(name) {
        return Ok(json!(said));
    }
    if response["stdout"].is_string() {
        return Ok(response.clone());
    }
    if said.lines().any(|line| line.starts_with("Exit Code:")) {
        return gemini::printed(&said);
    }
    let (text, code) = exit_code(&said);
    let stated = field(response, &["exit_code", "exitCode", "returncode"]).as_i64();
    translated::command_result(text, stated.or(code))
}

/// Splits a command's output from its exit code: `exit: 2` on the first line, or `[Process exited with code 2]` on the
/// last.
fn exit_code(said: &str) -> (&str, Option<i64>) {
    if let Some((first, rest)) = said.split_once('\n')
        && let Some(code) = first.strip_prefix("exit: ").and_then(|code| code.trim().parse().ok())
    {
        return (rest, Some(code));
    }
    let said = said.trim_end();
    let (text, last) = said.rsplit_once('\n').unwrap_or(("", said));
    let code = last.strip_prefix("[Process exited with code ").and_then(|code| code.trim_end_matches(']').parse().ok());
    if code.is_some() { (text.trim_end(), code) } else { (said, None) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Kind;
    use proptest::prelude::*;

    const AROUND: DecodeContext = DecodeContext { now: 1, skip_tools: &[] };

    #[test]
    fn calls_of_any_host_have_their_kind_and_outcome() {
        let call = |name: &str, input: Value, response: Value| {
            let payload = json!({
                "hookEventName": "post_tool_use", "sessionId": "s", "toolName": name, "toolInput": input, "toolResult": response,
            });
            let events = OTHER.decode(&payload, &AROUND).unwrap();
            let [Event { what: EventKind::ToolUsed(tool), platform: Platform::Other, .. }] = events.as_slice() else { panic!() };
            assert_eq!(tool.name, name);
            (tool.kind, tool.content.clone().or(tool.path.clone()).unwrap_or_default(), tool.succeeded, tool.metadata.exit_code)
        };
        let ls = json!({"command": "ls /nonexistent"});
        let failed = |code| (Kind::Command, "ls /nonexistent".to_string(), Some(false), Some(code));
        assert_eq!(
            call("run_terminal_command", ls.clone(), json!({"output_for_prompt": "exit: 2\nno", "exit_code": 2})),
            failed(2)
        );
        assert_eq!(call("Execute", ls.clone(), json!("no\n\n[Process exited with code 3]")), failed(3));
        assert_eq!(call("run_shell_command", ls.clone(), json!({"llmContent": "Output: no\nExit Code: 4\n"})), failed(4));
        assert_eq!(call("execute_command", ls.clone(), json!({"stdout": "a"})).2, Some(true));
        assert_eq!(call("bash", ls, json!("fine")).2, Some(true));
        let edit = json!({"file_path": "/p/a.rs", "old_str": "a", "new_str": "b"});
        let no_match = json!({"type": "SearchReplace", "NoMatchesFound": {"message": "not found"}});
        assert_eq!(call("search_replace", edit.clone(), no_match), (Kind::Edit, "/p/a.rs".into(), Some(false), None));
        assert_eq!(call("Edit", edit, json!("{\"success\":true}")).2, Some(true));
        assert_eq!(call("read_file", json!({"target_file": "/p/a.rs"}), json!({})).0, Kind::Read);
        assert_eq!(call("Create", json!({"file_path": "/p/b.rs", "content": "x"}), json!("ok")).0, Kind::Write);
        assert_eq!(call("list_dir", json!({"path": "/p"}), json!("a")).0, Kind::Search);
    }

    #[test]
    fn a_session_file_of_droid_has_what_its_hooks_leave_out() {
        let message = |id: &str, role: &str, content: Value| json!({"type": "message", "id": id, "timestamp": "2026-11-25T14:12:54Z", "message": {"role": role, "content": content}});
        let lines = [
            json!({"type": "session_start", "id": "the-session", "cwd": "/p", "hostId": "h", "version": 2}),
            message("context-1", "user", json!([{"type": "text", "text": "Tools are listed below"}])),
            message("m1", "user", json!([{"type": "text", "text": "Make it friendlier"}])),
            message(
                "m2",
                "assistant",
                json!([{"type": "tool_use", "id": "c1", "name": "Execute", "input": {"command": "ls /nonexistent"}}]),
            ),
            message(
                "m3",
                "user",
                json!([{"type": "tool_result", "tool_use_id": "c1", "is_error": true, "content": "Error: no\n\n[Process exited with code 2]"}]),
            ),
            message("m4", "assistant", json!([{"type": "text", "text": "It is friendlier now."}])),
            json!({"type": "agent_turn_outcome", "turnId": "m1", "reason": "completed"}),
        ];
        let options = PastOptions { path: "/home/dev/.factory/sessions/-p/s.jsonl".into(), ..PastOptions::default() };
        let (mut reader, mut found) = (DroidReader::new(&options), Found::default());
        let transcript: Vec<String> = lines.iter().map(Value::to_string).collect();
        assert_eq!(DROID.closing(transcript.join("\n").as_bytes()).as_deref(), Some("It is friendlier now."));
        lines.into_iter().enumerate().for_each(|(at, line)| reader.line(line, at as u64, &mut found));
        reader.end(7, true, &mut found);
        let kinds: Vec<String> = found
            .events
            .iter()
            .map(|event| match &event.what {
                EventKind::UserPrompt { text } => format!("prompt {text}"),
                EventKind::ToolUsed(tool) => format!("{} {:?} {:?}", tool.name, tool.succeeded, tool.metadata.exit_code),
                EventKind::TurnEnded { closing, .. } => format!("closing {}", closing.as_deref().unwrap_or_default()),
                EventKind::SessionStarted(_) => "start".into(),
                EventKind::SessionEnded { .. } => "end".into(),
                other => format!("{other:?}"),
            })
            .collect();
        assert_eq!(
            kinds,
            ["start", "prompt Make it friendlier", "Execute Some(false) Some(2)", "closing It is friendlier now.", "end"]
        );
        assert!(found.events.iter().all(|event| event.session == "the-session"));
        assert_eq!((found.counts.prompts, found.counts.tool_uses, found.counts.failures), (1, 1, 1));
    }

    #[test]
    fn context_goes_only_where_the_host_passes_it_on() {
        let takes = |host: &OtherHost| {
            [InjectionPoint::Start, InjectionPoint::Prompt, InjectionPoint::File].map(|point| host.support().takes(point))
        };
        assert_eq!(takes(&QWEN), [true, true, false]);
        assert_eq!(takes(&DROID), [true, false, false]);
        assert_eq!(takes(&GROK), [false, false, true]);
    }

    proptest! {
        #[test]
        fn any_response_is_read(said in "(?s).{0,200}", name in "[A-Za-z_]{0,20}") {
            let _ = (result(&name, &json!(said)), like(&name, &json!({"path": said})), exit_code(&said));
        }
    }
}
