//! A session file of Claude Code, written line by line.

use super::World;
use super::session::{MINUTE, NINE};
use serde_json::{Value, json};

pub const SESSION: &str = "5a4b5aa4-b959-4920-a53c-7ae4ff8f0d73";
pub const FOLDER: &str = "home/.claude/projects/p";

/// Lines of a session file, one minute apart.
pub struct Lines {
    pub cwd: String,
    pub at: i64,
    pub text: String,
    pub number: usize,
}

impl Lines {
    pub fn new(world: &World) -> Lines {
        Lines { cwd: world.project().display().to_string(), at: NINE - 100 * 24 * 60 * MINUTE, text: String::new(), number: 0 }
    }

    pub fn add(&mut self, mut line: Value) -> &mut Lines {
        self.at += MINUTE;
        self.number += 1;
        let time = jiff::Timestamp::from_millisecond(self.at).unwrap().to_string();
        for (key, value) in [
            ("timestamp", json!(time)),
            ("sessionId", json!(SESSION)),
            ("uuid", json!(format!("line-{}", self.number))),
            ("cwd", json!(self.cwd)),
            ("gitBranch", json!("main")),
        ] {
            if line[key].is_null() {
                line[key] = value;
            }
        }
        self.text += &(line.to_string() + "\n");
        self
    }

    pub fn user(&mut self, text: &str) -> &mut Lines {
        self.add(json!({"type": "user", "message": {"role": "user", "content": text}}))
    }

    pub fn says(&mut self, text: &str) -> &mut Lines {
        let id = format!("msg_{}", self.number);
        self.assistant(&id, json!({"type": "text", "text": text}), "end_turn")
    }

    pub fn assistant(&mut self, id: &str, block: Value, stop: &str) -> &mut Lines {
        let usage =
            json!({"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2});
        let message =
            json!({"id": id, "model": "m", "role": "assistant", "content": [block], "stop_reason": stop, "usage": usage});
        self.add(json!({"type": "assistant", "message": message}))
    }

    /// A call and its result.
    pub fn uses(&mut self, id: &str, tool: &str, input: Value, response: Value) -> &mut Lines {
        self.assistant(&format!("msg_{id}"), json!({"type": "tool_use", "id": id, "name": tool, "input": input}), "tool_use");
        let result = json!([{"type": "tool_result", "tool_use_id": id, "content": "done"}]);
        self.add(json!({"type": "user", "message": {"role": "user", "content": result}, "toolUseResult": response}))
    }

    pub fn fails(&mut self, id: &str, command: &str, error: &str) -> &mut Lines {
        let call = json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command}});
        self.assistant(&format!("msg_{id}"), call, "tool_use");
        let result = json!([{"type": "tool_result", "tool_use_id": id, "content": error, "is_error": true}]);
        self.add(
            json!({"type": "user", "message": {"role": "user", "content": result}, "toolUseResult": format!("Error: {error}")}),
        )
    }

    pub fn work(&mut self) -> &mut Lines {
        let path = format!("{}/src/login.rs", self.cwd);
        self.user("Fix the login: tokens expire too early. Always round expiry up to the next minute.");
        self.fails("t1", "cargo test login", "Exit code 101\ntest login::expiry ... FAILED\nassertion failed: 59 != 60");
        self.uses("t2", "Edit", json!({"file_path": path, "old_string": "a", "new_string": "b"}), json!({"filePath": path}));
        self.uses(
            "t3",
            "Bash",
            json!({"command": "cargo test login"}),
            json!({"stdout": "ok", "stderr": "", "interrupted": false}),
        );
        self.says("Fixed. The root cause was that expiry was rounded down to the minute, so tokens expired early.")
    }
}

/// Imports; the report as JSON.
pub fn import(world: &World, more: &[&str]) -> Value {
    let out = world.nmem(&[&["import", "--json"], more].concat());
    assert_eq!((out.stderr.as_str(), out.code), ("", Some(0)));
    serde_json::from_str(&out.stdout).unwrap()
}

/// The counts that matter of the only agent.
pub fn counts(report: &Value) -> (u64, u64, u64, Value) {
    let agent = &report["agents"][0];
    let of = |key: &str| agent[key].as_u64().unwrap();
    (of("prompts"), of("tool_uses"), of("failures"), agent["skipped"].clone())
}
