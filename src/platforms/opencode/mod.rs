//! OpenCode: its tools, `hooks` (live; the plugin is `hooks/opencode/nmem.js`), `past` (past sessions).

pub(crate) mod hooks;
mod past;

use super::past::text_of;
use super::translated::{changes_like, command_result, field};
use serde_json::{Value, json};

/// Converts a call to one or more Claude Code calls: names and inputs.
pub fn like(name: &str, input: &Value) -> Vec<(String, Value)> {
    let of = |names: &[&str]| field(input, names).clone();
    let path = || of(&["filePath", "file_path", "path"]);
    let one = |like: &str, input: Value| vec![(like.to_string(), input)];
    match name {
        "bash" | "shell" => one("Bash", json!({"command": of(&["command"]), "description": of(&["description"])})),
        "read" => one("Read", json!({"file_path": path()})),
        "write" => one("Write", json!({"file_path": path(), "content": of(&["content"])})),
        "patch" | "apply_patch" => changes_like(of(&["patchText", "patch", "input"]).as_str().unwrap_or_default()),
        // The second generation writes, edits and patches with one tool.
        "edit" => match (field(input, &["patchText", "patch"]).as_str(), field(input, &["oldString", "old_string"])) {
            (Some(patch), _) => changes_like(patch),
            (None, Value::Null) if !input["content"].is_null() => {
                one("Write", json!({"file_path": path(), "content": of(&["content"])}))
            }
            (None, old) => {
                one("Edit", json!({"file_path": path(), "old_string": old, "new_string": of(&["newString", "new_string"])}))
            }
        },
        "multiedit" => {
            let edits = input["edits"].as_array().into_iter().flatten();
            let edit = |edit: &Value| {
                let (old, new) = (field(edit, &["oldString"]), field(edit, &["newString"]));
                ("Edit".to_string(), json!({"file_path": path(), "old_string": old, "new_string": new}))
            };
            edits.map(edit).collect()
        }
        "grep" => one("Grep", json!({"pattern": of(&["pattern"]), "path": path()})),
        "glob" => one("Glob", json!({"pattern": of(&["pattern"]), "path": path()})),
        "list" => one("LS", json!({"path": path()})),
        "webfetch" => one("WebFetch", json!({"url": of(&["url"])})),
        "websearch" => one("WebSearch", json!({"query": of(&["query"])})),
        "task" | "subagent" => {
            let kind = of(&["subagent_type", "agent"]);
            one("Agent", json!({"description": of(&["description"]), "prompt": of(&["prompt"]), "subagent_type": kind}))
        }
        "todowrite" => one("TodoWrite", input.clone()),
        name => one(name, input.clone()),
    }
}

/// Removes the quotes that `opencode run` puts around a prompt.
pub fn quoted_once(prompt: &str) -> &str {
    let inside = prompt.trim().strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inside.filter(|inside| !inside.contains('"')).unwrap_or(prompt)
}

/// Returns the result of a call. Its status is `completed` even for a failed command, so exit codes are checked.
pub fn result(name: &str, payload: &Value) -> Result<Value, String> {
    let response = &payload["tool_response"];
    if payload["hook_event_name"] == "PostToolUseFailure" || name == "invalid" {
        let error = field(payload, &["error"]);
        return Err(error["message"].as_str().map_or_else(|| text_of(error), String::from));
    }
    let text = response["output"].as_str().map_or_else(|| text_of(response), String::from);
    match name {
        "bash" | "shell" => command_result(&text, response["exit"].as_i64()),
        _ => Ok(json!(text)),
    }
}
