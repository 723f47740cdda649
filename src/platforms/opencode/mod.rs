//! OpenCode: its plugin and tools, `past` (past sessions). OpenCode has no hook commands: `hooks/opencode/nmem.js` is a
//! plugin for both of its generations. It sends Claude Code's events with OpenCode's tools, and passes each answer on in
//! the way that the generation accepts.

mod past;

use crate::model::{Event, EventKind, Platform, Tokens, TurnUsage};
use crate::platforms::adapter::{Adapter, HookAnswer, Moment, Support, envelope, event_of};
use crate::platforms::past::PastFormat;
use crate::platforms::payload::DecodeContext;
use crate::platforms::settings_file::{McpForm, McpServers, OwnFile, Permission, Setup, Shape, WindowsShell};
use crate::platforms::translated::{self, HookCall, Translated, event_name};
use past::{like, quoted_once, result};
use serde_json::{Value, json};

/// OpenCode, or a program with the same plugins and tables.
pub struct OpenCode {
    platform: Platform,
    /// The command line's name.
    program: &'static str,
    setup: &'static Setup,
    past: &'static [PastFormat],
    resume: &'static [&'static str],
}

pub const OPENCODE: OpenCode = OpenCode {
    platform: Platform::OpenCode,
    program: "opencode",
    setup: &SETUP,
    past: &[past::DATABASE, past::FILES],
    resume: &["opencode", "--session", "{session}"],
};

pub const KILO: OpenCode = OpenCode {
    platform: Platform::Kilo,
    program: "kilo",
    setup: &Setup {
        programs: &["kilo"],
        files: &[OwnFile {
            user: "plugins/nmem.js",
            project: ".kilo/plugins/nmem.js",
            text: include_str!("../../../hooks/opencode/nmem.js"),
        }],
        permission: Permission::ByHand(
            "Kilo CLI asks before a command only if kilo.json says so. If it does, add \"nmem search *\": \"allow\" to permission.bash there, after the entry \"*\".",
        ),
        mcp: McpServers::Json { user: "kilo.json", project: "kilo.json", key: "mcp", form: McpForm::List },
        afterwards: &["Restart Kilo CLI: it loads plugins when it starts."],
        ..SETUP
    },
    past: &[past::KILO, super::read_only::KILO_CODE],
    resume: &["kilo", "--session", "{session}"],
};

const SETUP: Setup = Setup {
    programs: &["opencode"],
    folder: None,
    user: "",
    or_user: None,
    project: "",
    shape: Shape::Nested,
    hooks: &[],
    windows_shell: WindowsShell::Cmd,
    arguments: "",
    files: &[OwnFile {
        user: "plugins/nmem.js",
        project: ".opencode/plugins/nmem.js",
        text: include_str!("../../../hooks/opencode/nmem.js"),
    }],
    permission: Permission::ByHand(
        "OpenCode asks before a command only if opencode.json says so. If it does, add \"nmem search *\": \"allow\" to permission.bash there, after the entry \"*\".",
    ),
    mcp: McpServers::Json { user: "opencode.json", project: "opencode.json", key: "mcp", form: McpForm::List },
    instructions: "AGENTS.md",
    status_line: &[],
    afterwards: &["Restart OpenCode: it loads plugins when it starts."],
};

impl Adapter for OpenCode {
    fn platform(&self) -> Platform {
        self.platform
    }

    fn recognises(&self, payload: &Value) -> bool {
        payload["agent"] == self.program
    }

    fn translate(&self, payload: &Value) -> Vec<Translated> {
        let event = event_name(payload);
        match event {
            "PreToolUse" | "PostToolUse" | "PostToolUseFailure" => {}
            _ => {
                let mut head = translated::payload(event, payload);
                if let Some(prompt) = payload["prompt"].as_str() {
                    head["prompt"] = json!(quoted_once(prompt));
                }
                head["error"] = payload["error"].clone();
                return translated::event(head);
            }
        }
        let name = payload["tool_name"].as_str().unwrap_or("unknown");
        let call = HookCall {
            id: &payload["tool_use_id"],
            name,
            like: like(name, &payload["tool_input"]),
            result: (event != "PreToolUse").then(|| result(name, payload)),
            duration_ms: &payload["duration_ms"],
        };
        translated::call(payload, call)
    }

    /// Decodes a payload. The plugin sends a turn's tokens with the turn's end.
    fn decode(&self, payload: &Value, around: &DecodeContext) -> Result<Vec<Event>, String> {
        let mut events = translated::decode(self.platform, self.translate(payload), around)?;
        for event in events.iter_mut().filter(|event| matches!(event.what, EventKind::TurnEnded { .. })) {
            event.usage = usage(&payload["usage"]).map(Box::new);
        }
        Ok(events)
    }

    fn encode(&self, _payload: &Value, answer: &HookAnswer) -> Option<String> {
        envelope(event_of(answer.point), answer)
    }

    fn support(&self) -> Support {
        Support {
            outcome: "`metadata.exit` of a command",
            failures: "the state of a call, and exit codes",
            tokens: "with each turn's end",
            start: Moment::Possible,
            prompt: Moment::Possible,
            edit: Moment::Unreliable("in the edit's result: nothing is taken before it"),
            subagent: Moment::NotPossible("no event at which a subagent takes context"),
            compaction: Moment::Possible,
            context_bytes: None,
            takes_results: false,
            keeps_start_context: true,
        }
    }

    fn setup(&self) -> Option<&'static Setup> {
        Some(self.setup)
    }

    fn resume(&self) -> &'static [&'static str] {
        self.resume
    }

    fn past(&self) -> &'static [PastFormat] {
        self.past
    }
}

fn usage(usage: &Value) -> Option<TurnUsage> {
    let of = |key: &str| usage[key].as_i64().unwrap_or(0).max(0);
    let tokens = Tokens {
        input: of("input"),
        output: of("output") + of("reasoning"),
        cache_read: of("cache_read"),
        cache_write: of("cache_write"),
    };
    let text = |key: &str| usage[key].as_str().map(String::from);
    let (model, last_message) = (text("model"), text("message"));
    Some(TurnUsage { tokens: Some(tokens), model, last_message, ..TurnUsage::default() }).filter(|_| tokens != Tokens::default())
}
