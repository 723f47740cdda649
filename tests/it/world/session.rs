//! A session sent through the hooks, event by event.

use super::World;
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

pub const MINUTE: i64 = 60_000;
/// 2026-11-20 09:00 UTC
pub const NINE: i64 = 1_795_165_200_000;

/// A session sent event by event, one minute apart.
pub struct Session<'a> {
    world: &'a World,
    id: &'a str,
    /// Unix milliseconds of the last event.
    pub at: i64,
    used: usize,
    pub asked: usize,
    /// The working directory, if it is not the project.
    pub cwd: Option<PathBuf>,
    /// Context that the agent received from the last event's hook.
    pub received: String,
}

impl<'a> Session<'a> {
    pub fn new(world: &'a World, id: &'a str) -> Session<'a> {
        Session { world, id, at: NINE, used: 0, asked: 0, cwd: None, received: String::new() }
    }

    pub fn send(&mut self, mut payload: Value) -> &mut Self {
        self.at += MINUTE;
        payload["session_id"] = json!(self.id);
        payload["cwd"] = json!(self.cwd.clone().unwrap_or_else(|| self.world.project()));
        payload["prompt_id"] = json!(format!("{}-p{}", self.id, self.asked));
        let mut hook = self.world.command(&["record"]);
        let mut hook = hook.env("NMEM_NOW", self.at.to_string()).stdin(Stdio::piped()).spawn().unwrap();
        hook.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
        let out = self.world.finish(hook);
        assert_eq!((out.stderr.as_str(), out.code), ("", Some(0)));
        let answer: Value = serde_json::from_str(&out.stdout).unwrap_or_default();
        self.received = answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default().to_string();
        self
    }

    pub fn ask(&mut self, prompt: &str) -> &mut Self {
        self.asked += 1;
        self.send(json!({"hook_event_name": "UserPromptSubmit", "prompt": prompt}))
    }

    pub fn uses(&mut self, tool: &str, input: Value, response: Value) -> &mut Self {
        self.used += 1;
        let id = format!("{}-t{}", self.id, self.used);
        self.send(json!({"hook_event_name": "PostToolUse", "tool_name": tool, "tool_input": input, "tool_response": response, "tool_use_id": id}))
    }

    /// Asks, as a client does before each tool, whether there is anything to say.
    pub fn is_about_to(&mut self, tool: &str, file: &str) -> String {
        let path = self.world.project().join(file);
        self.send(
            json!({"hook_event_name": "PreToolUse", "tool_name": tool, "tool_use_id": "x", "tool_input": {"file_path": path}}),
        );
        std::mem::take(&mut self.received)
    }

    /// Begins a session; returns what it receives.
    pub fn starts(&mut self, source: &str) -> String {
        self.send(json!({"hook_event_name": "SessionStart", "source": source}));
        std::mem::take(&mut self.received)
    }

    /// The same session in another folder, at a time.
    pub fn within(self, folder: &Path, at: i64) -> Session<'a> {
        Session { cwd: Some(folder.to_path_buf()), at, ..self }
    }

    /// Edits a file by its whole path.
    pub fn edit_at(&mut self, path: &Path) -> &mut Self {
        self.uses("Edit", json!({"file_path": path, "old_string": "a", "new_string": "b"}), json!({"filePath": path}))
    }

    pub fn edit(&mut self, file: &str) -> &mut Self {
        let path = self.world.project().join(file);
        self.uses("Read", json!({"file_path": path}), json!({"type": "text"}));
        self.uses("Edit", json!({"file_path": path, "old_string": "a", "new_string": "b"}), json!({"filePath": path}))
    }

    pub fn fails(&mut self, command: &str, error: &str) -> &mut Self {
        self.used += 1;
        let id = format!("{}-t{}", self.id, self.used);
        self.send(json!({"hook_event_name": "PostToolUseFailure", "tool_name": "Bash", "tool_input": {"command": command}, "error": error, "tool_use_id": id}))
    }

    /// The same session later: its next prompt and tool use have numbers of their own.
    pub fn again(world: &'a World, id: &'a str) -> Session<'a> {
        Session { at: NINE + 600 * MINUTE, used: 500, asked: 500, ..Session::new(world, id) }
    }

    pub fn bash(&mut self, command: &str, stdout: &str) -> &mut Self {
        self.uses("Bash", json!({"command": command}), json!({"stdout": stdout, "stderr": "", "interrupted": false}))
    }

    pub fn close(&mut self, text: &str) -> &mut Self {
        self.send(json!({"hook_event_name": "Stop", "last_assistant_message": text}))
    }

    pub fn end(&mut self) -> &mut Self {
        self.send(json!({"hook_event_name": "SessionEnd", "reason": "other"}))
    }
}
