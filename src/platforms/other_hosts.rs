//! Programs without a folder of their own here: those that use the RAD protocol, and agents whose hooks are like Claude Code's. An
//! agent is one description: its names for events, where its hooks are installed, when it takes context.

use super::adapter::{Adapter, HookAnswer, Moment, Support, envelope, event_of};
use super::host_calls::{failure, like, result};
use super::past::{PastFormat, text_of};
use super::payload::DecodeContext;
use super::settings_file::{McpForm, McpServers, OwnFile, Permission, Setup, Shape, Subscribed, WindowsShell, to};
use super::translated::{self, HookCall, Translated, cwd, field, unpacked};
use super::{claude, message_sessions, read_only, vibe_journal};
use crate::model::{Event, InjectionPoint, Platform};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

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

/// An agent that runs Claude Code's hooks, or hooks like them.
pub struct OtherHost {
    platform: Platform,
    recognises: fn(&Value) -> bool,
    /// Its names for Claude Code's events, apart from their spelling.
    events: &'static [(&'static str, &'static str)],
    past: &'static [PastFormat],
    /// The moments at which it passes context on to the model; at others, it drops the answer.
    takes: &'static [InjectionPoint],
    /// It passes context on with the result of a call, and not at a session start.
    takes_results: bool,
    answer: fn(event: &str, &HookAnswer) -> Option<String>,
    setup: Option<&'static Setup>,
    tokens: &'static str,
    /// The command that resumes a session.
    resume: &'static [&'static str],
    /// False if a mode of the agent has no event for prompts: they are read from the session's file.
    reports_prompts: bool,
    /// Finds the closing message at the end of the session's file, if hooks do not report it.
    closing: Option<FindClosing>,
    /// Finds the session's file below the agent's folder, if hooks do not name it.
    session_file: Option<fn(session: &str, folder: &Path) -> Option<PathBuf>>,
    /// The session's file begins again with each turn.
    file_per_turn: bool,
}

type FindClosing = fn(&[u8]) -> Option<String>;

const HOST: OtherHost = OtherHost {
    platform: Platform::Other,
    recognises: |_| false,
    events: &[],
    past: &[],
    takes: &[],
    takes_results: false,
    answer: envelope,
    setup: None,
    tokens: "not read",
    resume: &[],
    reports_prompts: true,
    closing: None,
    session_file: None,
    file_per_turn: false,
};

const SETUP: Setup = Setup {
    programs: &[],
    folder: None,
    user: "",
    or_user: None,
    project: "",
    shape: Shape::Nested,
    hooks: &[],
    windows_shell: WindowsShell::Cmd,
    arguments: "",
    files: &[],
    permission: Permission::ByHand("This agent has no such setting that nmem knows."),
    mcp: McpServers::Json { user: "", project: "", key: "", form: McpForm::Plain },
    instructions: "AGENTS.md",
    status_line: &[],
    afterwards: &["Restart the agent: it reads hooks when it starts."],
};

/// Claude Code's events that most agents have.
const CALLS: [Subscribed; 6] = [
    to("SessionStart", "context", 10),
    to("UserPromptSubmit", "record", 10),
    to("PostToolUse", "record", 10),
    to("PostToolUseFailure", "record", 10),
    to("Stop", "record", 30),
    to("SessionEnd", "record", 10),
];

pub const QWEN: OtherHost = OtherHost {
    platform: Platform::QwenCode,
    recognises: |payload| transcript(payload).contains("/.qwen/"),
    past: &[message_sessions::QWEN],
    takes: &[InjectionPoint::Start, InjectionPoint::Prompt, InjectionPoint::Compaction],
    setup: Some(&Setup {
        programs: &["qwen"],
        folder: Some(".qwen"),
        user: "settings.json",
        project: ".qwen/settings.json",
        shape: Shape::NestedMillis,
        hooks: &CALLS,
        arguments: " --platform qwen-code",
        mcp: McpServers::Json { user: "settings.json", project: ".qwen/settings.json", key: "mcpServers", form: McpForm::Plain },
        instructions: "QWEN.md",
        status_line: &["ui", "statusLine"],
        ..SETUP
    }),
    tokens: "the session file, when a turn ends; the last one's may be missing",
    resume: &["qwen", "--resume", "{session}"],
    ..HOST
};

pub const DROID: OtherHost = OtherHost {
    platform: Platform::Droid,
    recognises: |payload| transcript(payload).contains("/.factory/"),
    past: &[message_sessions::DROID],
    takes: &[InjectionPoint::Start, InjectionPoint::Compaction],
    setup: Some(&Setup {
        programs: &["droid"],
        folder: Some(".factory"),
        user: "hooks.json",
        // Droid reads the hooks in its settings only if there is no file of hooks.
        or_user: Some("settings.json"),
        project: ".factory/hooks.json",
        hooks: &CALLS,
        arguments: " --platform droid",
        mcp: McpServers::Json { user: "mcp.json", project: ".factory/mcp.json", key: "mcpServers", form: McpForm::Stdio },
        ..SETUP
    }),
    reports_prompts: false,
    closing: Some(droid_closing),
    ..HOST
};

pub const GROK: OtherHost = OtherHost {
    platform: Platform::GrokBuild,
    recognises: |payload| {
        transcript(payload).contains("/.grok/") || payload["workspaceRoot"].is_string() && payload["hookEventName"].is_string()
    },
    past: &[message_sessions::GROK],
    takes: &[InjectionPoint::File],
    takes_results: true,
    setup: Some(&Setup {
        programs: &["grok"],
        folder: Some(".grok"),
        user: "hooks/nmem.json",
        project: ".grok/hooks/nmem.json",
        hooks: &[
            to("SessionStart", "context", 10),
            to("UserPromptSubmit", "record", 10),
            Subscribed { event: "PreToolUse", tools: Some("search_replace|write"), verb: "record", timeout: 10 },
            to("PostToolUse", "record", 10),
            to("Stop", "record", 30),
            to("SessionEnd", "record", 10),
        ],
        arguments: " --platform grok-build",
        ..SETUP
    }),
    tokens: "`nmem import`, from the session file",
    ..HOST
};

pub const KIMI: OtherHost = OtherHost {
    platform: Platform::KimiCode,
    recognises: |payload| payload["client_type"] == "kimi_code_cli",
    past: &[message_sessions::KIMI],
    takes: &[InjectionPoint::Prompt],
    // What the hook prints becomes a part of the conversation, word for word.
    answer: |_, answer| answer.context.clone(),
    setup: Some(&Setup {
        programs: &["kimi"],
        folder: Some(".kimi-code"),
        user: "config.toml",
        shape: Shape::Toml { named: false },
        hooks: &CALLS,
        arguments: " --platform kimi-code",
        mcp: McpServers::Json { user: "mcp.json", project: ".kimi-code/mcp.json", key: "mcpServers", form: McpForm::Plain },
        ..SETUP
    }),
    tokens: "the session file, when a turn ends",
    resume: &["kimi", "--session", "{session}"],
    closing: Some(kimi_closing),
    session_file: Some(kimi_file),
    ..HOST
};

pub const VIBE: OtherHost = OtherHost {
    platform: Platform::MistralVibe,
    recognises: |payload| transcript(payload).contains("/.vibe/"),
    events: &[("pre_tool", "PreToolUse"), ("post_tool", "PostToolUse"), ("post_agent", "Stop")],
    past: &[vibe_journal::JOURNAL, vibe_journal::SESSION],
    takes_results: true,
    // Any other output is a failure that the person sees.
    answer: |_, answer| {
        let context = answer.context.as_ref()?;
        Some(json!({"hook_specific_output": {"additional_context": context}}).to_string())
    },
    setup: Some(&Setup {
        programs: &["vibe"],
        folder: Some(".vibe"),
        user: "hooks.toml",
        project: ".vibe/hooks.toml",
        shape: Shape::Toml { named: true },
        hooks: &[to("post_tool", "record", 10), to("post_agent", "record", 30)],
        arguments: " --platform mistral-vibe",
        afterwards: &["Restart Mistral Vibe: it reads hooks when it starts."],
        ..SETUP
    }),
    tokens: "the session file, when a turn ends",
    resume: &["vibe", "--resume", "{session}"],
    // Hooks have neither prompts nor closing messages.
    reports_prompts: false,
    closing: Some(vibe_journal::closing),
    session_file: Some(vibe_journal::journal),
    file_per_turn: true,
    ..HOST
};

pub const CLINE: OtherHost = OtherHost {
    platform: Platform::Cline,
    recognises: |payload| payload["hookName"].is_string() && payload["taskId"].is_string(),
    events: &[
        ("agent_start", "SessionStart"),
        ("agent_resume", "SessionStart"),
        ("prompt_submit", "UserPromptSubmit"),
        ("tool_call", "PreToolUse"),
        ("tool_result", "PostToolUse"),
        ("agent_end", "Stop"),
        ("session_shutdown", "SessionEnd"),
    ],
    past: &[message_sessions::CLINE, read_only::CLINE_CODE],
    takes: &[InjectionPoint::File],
    takes_results: true,
    answer: |_, answer| {
        let context = answer.context.as_ref()?;
        Some(json!({"cancel": false, "context": context}).to_string())
    },
    setup: Some(&Setup {
        programs: &["cline"],
        folder: Some(".cline"),
        files: &[
            script("hooks/TaskStart", ".clinerules/hooks/TaskStart", CLINE_CONTEXT),
            script("hooks/TaskResume", ".clinerules/hooks/TaskResume", CLINE_CONTEXT),
            script("hooks/UserPromptSubmit", ".clinerules/hooks/UserPromptSubmit", CLINE_RECORD),
            script("hooks/PreToolUse", ".clinerules/hooks/PreToolUse", CLINE_RECORD),
            script("hooks/PostToolUse", ".clinerules/hooks/PostToolUse", CLINE_RECORD),
            script("hooks/TaskComplete", ".clinerules/hooks/TaskComplete", CLINE_RECORD),
            script("hooks/SessionShutdown", ".clinerules/hooks/SessionShutdown", CLINE_RECORD),
        ],
        ..SETUP
    }),
    tokens: "the session file, when a turn ends",
    // No hook has the prompt, nor names the file that has it.
    reports_prompts: false,
    session_file: Some(message_sessions::cline_messages),
    ..HOST
};

/// Scripts for agents that run files named after their events.
const CLINE_RECORD: &str = "#!/bin/sh\n# Written by `nmem install cline`; `nmem uninstall cline` removes it.\nexec nmem record --platform cline 2>/dev/null\n";
const CLINE_CONTEXT: &str = "#!/bin/sh\n# Written by `nmem install cline`; `nmem uninstall cline` removes it.\nexec nmem context --platform cline 2>/dev/null\n";

const fn script(user: &'static str, project: &'static str, text: &'static str) -> OwnFile {
    OwnFile { user, project, text }
}

/// Pi has no hook commands: `hooks/pi/nmem.js` is an extension that sends Claude Code's events.
pub const PI: OtherHost = OtherHost {
    platform: Platform::Pi,
    recognises: |payload| payload["agent"] == "pi",
    past: &[message_sessions::PI],
    takes: &[InjectionPoint::Start, InjectionPoint::Prompt, InjectionPoint::Compaction],
    setup: Some(&Setup {
        programs: &["pi"],
        folder: Some(".pi"),
        files: &[OwnFile {
            user: "agent/extensions/nmem.js",
            project: ".pi/extensions/nmem.js",
            text: include_str!("../../hooks/pi/nmem.js"),
        }],
        afterwards: &["Restart Pi: it loads extensions when it starts."],
        ..SETUP
    }),
    tokens: "the session file, when a turn ends",
    resume: &["pi", "--session", "{session}"],
    ..HOST
};

/// Agents of which only past sessions are read.
pub const AIDER: OtherHost = OtherHost { platform: Platform::Aider, past: &[read_only::AIDER], ..HOST };
pub const AMP: OtherHost = OtherHost { platform: Platform::Amp, past: &[read_only::AMP], ..HOST };
pub const CONTINUE: OtherHost = OtherHost { platform: Platform::Continue, past: &[read_only::CONTINUE], ..HOST };
pub const CRUSH: OtherHost = OtherHost { platform: Platform::Crush, past: &[read_only::CRUSH], ..HOST };
pub const ROO: OtherHost = OtherHost { platform: Platform::Roo, past: &[read_only::ROO], ..HOST };
pub const ZED: OtherHost = OtherHost { platform: Platform::Zed, past: &[read_only::ZED], ..HOST };

/// Goose runs the hooks of plugins, and passes no context on. `nmem install` does not write plugins: a person places ours.
pub const GOOSE: OtherHost = OtherHost {
    platform: Platform::Goose,
    recognises: |payload| payload["event"].is_string() && payload["hook_event_name"].is_null(),
    past: &[read_only::GOOSE],
    answer: |_, _| None,
    ..HOST
};

/// Any other agent whose session files lie in a folder of its own.
pub const OTHER: OtherHost = OtherHost {
    recognises: |payload| is_in_other_folder(&transcript(payload)),
    past: &[message_sessions::OTHER],
    takes: &[InjectionPoint::Start, InjectionPoint::Compaction],
    ..HOST
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

/// Spells an event as Claude Code does: some agents write `post_tool_use`.
fn spelled(name: &str) -> String {
    let capital = |word: &str| word.split_at_checked(1).map(|(first, rest)| first.to_uppercase() + rest).unwrap_or_default();
    match name.contains('_') || name.starts_with(|c: char| c.is_ascii_lowercase()) {
        true => name.split('_').map(capital).collect(),
        false => name.to_string(),
    }
}

impl OtherHost {
    /// Claude Code's name for a payload's event.
    fn event(&self, payload: &Value) -> String {
        let name = field(payload, &["hook_event_name", "hookEventName", "hookName", "event"]).as_str().unwrap_or_default();
        let own = self.events.iter().find(|(own, _)| *own == name);
        own.map_or_else(|| spelled(name), |(_, claudes)| claudes.to_string())
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
        let event = self.event(payload);
        let mut from = payload.clone();
        from["prompt_id"] = field(payload, &["prompt_id", "promptId"]).clone();
        let folder = cwd(payload).or_else(|| payload["workspaceRoots"].get(0)?.as_str());
        from["cwd"] = json!(folder.or(payload["working_dir"].as_str()));
        if payload["message"].is_string() && event == "UserPromptSubmit" {
            from["prompt"] = payload["message"].clone();
        }
        if let Some(session) = payload["sessionContext"]["rootSessionId"].as_str() {
            from["session_id"] = json!(session);
        }
        if !matches!(event.as_str(), "PreToolUse" | "PostToolUse" | "PostToolUseFailure") {
            let mut head = translated::payload(&event, &from);
            if payload["prompt"].is_array() {
                head["prompt"] = json!(text_of(&payload["prompt"]));
            }
            if let Some(said) = payload["turn"]["outputText"].as_str() {
                head["last_assistant_message"] = json!(said);
            }
            return translated::event(head);
        }
        // Cline puts a call into an object of its own.
        let own = field(payload, &["tool_call", "tool_result"]);
        let call = if own.is_object() { own } else { payload };
        let name = field(call, &["tool_name", "toolName", "name"]).as_str().unwrap_or("unknown");
        // Mistral Vibe names a tool with its group.
        let name = name.strip_prefix("file_system.").unwrap_or(name);
        let response = field(call, &["tool_response", "toolResult", "tool_output", "tool_result", "output"]);
        let has_failed = event == "PostToolUseFailure" || payload["tool_status"] == "failure";
        let outcomes: Vec<Result<Value, String>> = match response.as_array() {
            _ if has_failed => vec![Err(failure(name, payload))],
            Some(all) if all.iter().any(|one| one["success"].is_boolean()) => all.iter().map(|one| result(name, one)).collect(),
            _ => vec![result(name, response)],
        };
        let mut calls = Vec::new();
        for (n, like) in like(name, &unpacked(field(call, &["tool_input", "toolInput", "input"]))).into_iter().enumerate() {
            let id = field(call, &["tool_call_id", "tool_use_id", "toolUseId", "id"]);
            let id = if n == 0 { id.clone() } else { json!(format!("{}-{}", id.as_str().unwrap_or_default(), n + 1)) };
            let outcome = outcomes.get(n).or(outcomes.last()).cloned();
            let call = HookCall {
                id: &id,
                name,
                like: vec![like],
                result: outcome.filter(|_| event != "PreToolUse"),
                duration_ms: field(call, &["duration_ms", "durationMs"]),
            };
            calls.extend(translated::call(&from, call));
        }
        calls
    }

    fn encode(&self, payload: &Value, answer: &HookAnswer) -> Option<String> {
        (self.answer)(&self.event(payload), answer)
    }

    fn support(&self) -> Support {
        let moment = |point| match self.takes.contains(&point) {
            true => Moment::Possible,
            false if point == InjectionPoint::Start && self.takes_results => {
                Moment::NotPossible("the result of the first call carries it")
            }
            false => Moment::NotPossible("not known to work"),
        };
        Support {
            outcome: "the call's response",
            failures: "an event of its own, or the call's response",
            tokens: self.tokens,
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
        self.setup
    }

    fn past(&self) -> &'static [PastFormat] {
        self.past
    }

    fn resume(&self) -> &'static [&'static str] {
        self.resume
    }

    fn reports_prompts(&self) -> bool {
        self.reports_prompts
    }

    fn keeps_closing_in_transcript(&self) -> bool {
        self.closing.is_some()
    }

    fn closing(&self, transcript: &[u8]) -> Option<String> {
        self.closing?(transcript)
    }

    fn closing_wait(&self) -> Duration {
        // The agent that names no file writes the message while the hook runs.
        self.session_file.map_or(Duration::ZERO, |_| Duration::from_millis(400))
    }

    fn has_file_per_turn(&self) -> bool {
        self.file_per_turn
    }

    fn session_file(&self, session: &str, folder: &Path) -> Option<PathBuf> {
        // An id is one name.
        self.session_file.filter(|_| !session.contains(['/', '\\', '.']))?(session, folder)
    }
}

/// The file of a session of Kimi Code: `sessions/<project>/<session>/agents/main/wire.jsonl`.
fn kimi_file(session: &str, folder: &Path) -> Option<PathBuf> {
    let projects = fs::read_dir(folder.join("sessions")).into_iter().flatten().flatten();
    projects.map(|project| project.path().join(session).join("agents/main/wire.jsonl")).find(|file| file.is_file())
}

/// Finds Kimi Code's last text, if no call follows it.
fn kimi_closing(transcript: &[u8]) -> Option<String> {
    let lines = transcript.rsplit(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let mut events = lines.map(|mut line| line["event"].take());
    let last = events.find(|event| matches!(event["type"].as_str(), Some("content.part" | "tool.call" | "tool.result")))?;
    last["part"]["text"].as_str().filter(|text| !text.trim().is_empty()).map(String::from)
}

/// Finds the last text of Droid's main thread, if no call follows it.
fn droid_closing(transcript: &[u8]) -> Option<String> {
    let lines = transcript.rsplit(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let mut said = lines.filter(|record| record["message"]["role"] == "assistant");
    let blocks = said.next()?["message"]["content"].take();
    let calls = blocks.as_array().is_some_and(|blocks| blocks.iter().any(|block| block["type"] == "tool_use"));
    Some(text_of(&blocks)).filter(|text| !calls && !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{EventKind, Kind};

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
    fn goose_sends_events_of_open_plugins() {
        let decoded = |payload: Value| {
            assert_eq!(super::super::recognised(None, &payload).platform(), Platform::Goose);
            GOOSE.decode(&payload, &AROUND).unwrap().pop().unwrap()
        };
        let prompt = json!({"event": "UserPromptSubmit", "session_id": "s", "matcher_context": "Greet", "message": "Greet"});
        assert!(matches!(decoded(prompt).what, EventKind::UserPrompt { text } if text == "Greet"));
        let stop = json!({"event": "Stop", "session_id": "s", "last_assistant_message": "Done."});
        assert!(matches!(decoded(stop).what, EventKind::TurnEnded { closing: Some(said), .. } if said == "Done."));
        let call = |event: &str, name: &str, input: Value| {
            let event = decoded(json!({"event": event, "session_id": "s", "tool_name": name, "tool_input": input,
                "working_dir": "/p", "tool_call_id": "c1"}));
            let (EventKind::ToolUsed(tool), cwd) = (event.what, event.cwd) else { panic!() };
            assert_eq!((cwd.as_deref(), tool.id.as_deref()), (Some("/p"), Some("c1")));
            (tool.kind, tool.succeeded)
        };
        let edit = json!({"path": "/p/a.py", "before": "a", "after": "b"});
        assert_eq!(call("PostToolUse", "developer__edit", edit), (Kind::Edit, Some(true)));
        assert_eq!(call("PostToolUseFailure", "developer__shell", json!({"command": "ls /x"})), (Kind::Command, Some(false)));
    }

    /// The cost of one more agent whose hooks are like Claude Code's: this description.
    const MADE_UP: OtherHost = OtherHost {
        recognises: |payload| payload["vendor"] == "made-up",
        events: &[("asked", "UserPromptSubmit"), ("tool_done", "PostToolUse"), ("idle", "Stop")],
        takes: &[InjectionPoint::Prompt],
        answer: |_, answer| Some(json!({"say": answer.context.as_ref()?}).to_string()),
        setup: Some(&Setup {
            programs: &["made-up"],
            folder: Some(".made-up"),
            user: "hooks.toml",
            shape: Shape::Toml { named: true },
            hooks: &[to("asked", "record", 10), to("tool_done", "record", 10), to("idle", "record", 30)],
            arguments: " --platform other",
            ..SETUP
        }),
        ..HOST
    };

    #[test]
    fn a_made_up_host_needs_a_description_only() {
        let payload = |event: &str, more: Value| {
            let mut payload = json!({"vendor": "made-up", "hookEventName": event, "sessionId": "s", "cwd": "/p"});
            payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            payload
        };
        let events = |payload: &Value| MADE_UP.decode(payload, &AROUND).unwrap();
        let asked = payload("asked", json!({"prompt": "Make it friendlier"}));
        assert!(MADE_UP.recognises(&asked) && !QWEN.recognises(&asked));
        assert!(
            matches!(&events(&asked)[..], [Event { what: EventKind::UserPrompt { text }, .. }] if text == "Make it friendlier")
        );
        let input = json!({"toolName": "shell", "toolInput": {"cmd": "ls /x"}, "toolResult": "no\nCommand exited with code 2"});
        let done = events(&payload("tool_done", input));
        assert!(matches!(&done[..], [Event { what: EventKind::ToolUsed(tool), .. }] if tool.metadata.exit_code == Some(2)));
        let idle = events(&payload("idle", json!({"lastAssistantMessage": "It is."})));
        assert!(matches!(&idle[..], [Event { what: EventKind::TurnEnded { closing: Some(said), .. }, .. }] if said == "It is."));
        let answer = HookAnswer { point: InjectionPoint::Prompt, context: Some("a memory".into()), message: None };
        assert_eq!(MADE_UP.encode(&asked, &answer).as_deref(), Some("{\"say\":\"a memory\"}"));
        assert_eq!(MADE_UP.setup().unwrap().hooks_text(), "3 events");
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
}
