//! Events for tests: what is not said is left out.

use super::{Event, Happening, Kind, Metadata, Millis, Platform, ToolUse};

/// Something that happens in a session of Claude Code.
pub fn event(session: &str, at: Millis, what: Happening) -> Event {
    Event {
        platform: Platform::ClaudeCode,
        session: session.into(),
        at,
        time: None,
        cwd: None,
        project: None,
        transcript: None,
        transcript_length: None,
        prompt: None,
        agent: None,
        what,
    }
}

/// A tool use: a command's text, or a file's path.
pub fn tool(kind: Kind, what: &str, succeeded: bool) -> ToolUse {
    let is_command = kind == Kind::Command;
    ToolUse {
        id: None,
        name: "Tool".into(),
        kind,
        command: is_command.then(|| crate::command_kind::classify(what)),
        path: (!is_command).then(|| what.to_string()),
        content: is_command.then(|| what.to_string()),
        input: None,
        outcome: None,
        succeeded: Some(succeeded),
        source_event: "PostToolUse".into(),
        metadata: Metadata::default(),
        tasks: None,
    }
}
