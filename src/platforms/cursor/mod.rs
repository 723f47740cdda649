//! Cursor: its tools, `hooks` (live), `past` (past sessions).

pub(crate) mod hooks;
mod past;

use super::past::text_of;
use super::translated::{changes_like, command_result, field};
use serde_json::{Value, json};

/// Converts a call to one or more Claude Code calls: names and inputs.
pub fn like(name: &str, input: &Value) -> Vec<(String, Value)> {
    let of = |names: &[&str]| field(input, names).clone();
    let path = || of(&["file_path", "path", "target_file", "filePath", "relative_workspace_path"]);
    let one = |like: &str, input: Value| vec![(like.to_string(), input)];
    match name {
        "Shell" | "Bash" | "run_terminal_cmd" | "run_terminal_command_v2" | "run_terminal_command" => {
            one("Bash", json!({"command": of(&["command"]), "description": of(&["description", "explanation"])}))
        }
        "Read" | "read_file" | "read_file_v2" => one("Read", json!({"file_path": path()})),
        "Write" | "write" | "create_file" if input["old_string"].is_null() => {
            one("Write", json!({"file_path": path(), "content": of(&["content", "contents", "file_text"])}))
        }
        "Write" | "StrReplace" | "Edit" | "MultiEdit" | "edit_file" | "edit_file_v2" | "search_replace" => {
            let new = of(&["new_string", "code_edit", "streamingContent", "contents"]);
            one("Edit", json!({"file_path": path(), "old_string": of(&["old_string"]), "new_string": new}))
        }
        "Delete" | "delete_file" => one("Edit", json!({"file_path": path()})),
        "ApplyPatch" | "apply_patch" => {
            let patch = input.as_str().map_or_else(|| of(&["patch", "input"]), Value::from);
            changes_like(patch.as_str().unwrap_or_default())
        }
        "Grep" | "grep" | "grep_search" | "rg" | "ripgrep_raw_search" => {
            one("Grep", json!({"pattern": of(&["pattern", "query"]), "path": path()}))
        }
        "SemanticSearch" | "codebase_search" | "semantic_search_full" => one("Grep", json!({"pattern": of(&["query"])})),
        "Glob" | "file_search" | "glob_file_search" => {
            one("Glob", json!({"pattern": of(&["pattern", "glob_pattern", "globPattern", "query"]), "path": path()}))
        }
        "LS" | "list_dir" | "list_dir_v2" => {
            one("LS", json!({"path": of(&["path", "target_directory", "relative_workspace_path"])}))
        }
        "WebFetch" | "web_fetch" => one("WebFetch", json!({"url": of(&["url"])})),
        "WebSearch" | "web_search" => one("WebSearch", json!({"query": of(&["query", "search_term", "searchTerm"])})),
        "Task" | "Subagent" | "task_v2" => one(
            "Agent",
            json!({"description": of(&["description"]), "prompt": of(&["prompt"]), "subagent_type": of(&["subagent_type"])}),
        ),
        "TodoWrite" | "todo_write" => one("TodoWrite", input.clone()),
        name => match name.strip_prefix("MCP:") {
            Some(tool) => one(&format!("mcp__cursor__{tool}"), input.clone()),
            None => one(name, input.clone()),
        },
    }
}

/// Returns the result of a call that Cursor reports as done. Commands report their exit code.
pub fn result(output: &Value) -> Result<Value, String> {
    let code = field(output, &["exitCode", "exit_code"]).as_i64();
    let text = field(output, &["output", "stdout", "content"]);
    let text = text.as_str().map_or_else(|| text_of(output), String::from);
    match (code, output) {
        (Some(_), _) | (None, Value::String(_)) => command_result(&text, code),
        _ => Ok(output.clone()),
    }
}
