//! Gemini CLI: its tools, `hooks` (live), `past` (past sessions).

pub(crate) mod hooks;
mod past;

use super::past::text_of;
use super::translated::{command_result, field, hunks};
use serde_json::{Value, json};

/// Converts a call to one or more Claude Code calls: names and inputs.
pub fn like(name: &str, input: &Value) -> Vec<(String, Value)> {
    let of = |names: &[&str]| field(input, names).clone();
    let path = || of(&["file_path", "absolute_path", "path", "dir_path"]);
    let one = |like: &str, input: Value| vec![(like.to_string(), input)];
    match name {
        "run_shell_command" => one("Bash", json!({"command": of(&["command"]), "description": of(&["description"])})),
        "read_file" => one("Read", json!({"file_path": path()})),
        "read_many_files" => {
            let files = field(input, &["include", "paths"]).as_array().into_iter().flatten();
            files.map(|file| ("Read".to_string(), json!({"file_path": file}))).collect()
        }
        "write_file" => one("Write", json!({"file_path": path(), "content": of(&["content"])})),
        "replace" | "edit" => {
            let new = of(&["new_string"]);
            one("Edit", json!({"file_path": path(), "old_string": of(&["old_string"]), "new_string": new}))
        }
        "grep_search" | "search_file_content" => one("Grep", json!({"pattern": of(&["pattern"]), "path": path()})),
        "glob" => one("Glob", json!({"pattern": of(&["pattern"]), "path": path()})),
        "list_directory" => one("LS", json!({"path": path()})),
        "web_fetch" => one("WebFetch", json!({"url": of(&["url", "prompt"])})),
        "google_web_search" => one("WebSearch", json!({"query": of(&["query"])})),
        "write_todos" => {
            let todos = input["todos"].as_array().into_iter().flatten();
            let todos: Vec<Value> = todos
                .map(|todo| json!({"content": field(todo, &["description", "content"]), "status": todo["status"]}))
                .collect();
            one("TodoWrite", json!({ "todos": todos }))
        }
        name => match name.strip_prefix("mcp_").filter(|rest| !rest.starts_with('_')) {
            Some(tool) => one(&format!("mcp__{}", tool.replacen('_', "__", 1)), input.clone()),
            None => one(name, input.clone()),
        },
    }
}

/// Removes the hooks' context before a prompt. In scripts, Gemini CLI reports this context as part of the prompt.
pub fn without_hook_context(prompt: &str) -> &str {
    let mut rest = prompt.trim();
    while let Some((_, behind)) = rest.strip_prefix("<hook_context>").and_then(|inside| inside.split_once("</hook_context>")) {
        rest = behind.trim();
    }
    rest
}

/// Parses a call's response: its text, or its error. `returnDisplay` is for people, `llmContent` for the model.
pub fn result(name: &str, response: &Value) -> Result<Value, String> {
    let said = text_of(&response["llmContent"]);
    if let Some(error) = Some(&response["error"]).filter(|error| !error.is_null()) {
        let message = error["message"].as_str().or(error.as_str()).map_or_else(|| said.clone(), String::from);
        return Err(message);
    }
    if name == "run_shell_command" {
        return printed(&said);
    }
    match hunks(response["returnDisplay"]["fileDiff"].as_str().unwrap_or_default()) {
        Value::Array(hunks) if !hunks.is_empty() => {
            let kind = if response["returnDisplay"]["isNewFile"] == true { "create" } else { "update" };
            Ok(json!({"structuredPatch": hunks, "type": kind}))
        }
        _ => Ok(json!(said)),
    }
}

/// Parses a command's output: named fields, inside a tag.
pub fn printed(said: &str) -> Result<Value, String> {
    let inside = said.trim().trim_start_matches("<untrusted_context>").trim_end_matches("</untrusted_context>").trim();
    if inside.starts_with("Command moved to background") {
        return Ok(json!({"stdout": inside, "backgroundTaskId": "background"}));
    }
    let of = |label: &str| inside.lines().rev().find_map(|line| line.strip_prefix(label)).map(str::trim);
    let code = of("Exit Code:").and_then(|code| code.parse().ok());
    // More named fields follow the output.
    const AFTER: [&str; 6] =
        ["\nExit Code:", "\nError:", "\nSignal:", "\nBackground PIDs:", "\nProcess Group PGID:", "\nStderr:"];
    let output = ["Output:", "Stdout:"].iter().find_map(|label| inside.split_once(label)).map_or(inside, |(_, behind)| behind);
    let end = AFTER.iter().filter_map(|label| output.rfind(label)).min().unwrap_or(output.len());
    let text = Some(output[..end].trim()).filter(|text| *text != "(empty)").unwrap_or_default();
    let error = of("Error:").filter(|error| *error != "(none)");
    match (code, error, of("Signal:").filter(|signal| *signal != "(none)")) {
        (None, Some(error), _) => Err(format!("{error}\n{text}")),
        (None, None, Some(signal)) => Err(format!("Signal {signal}\n{text}")),
        _ => command_result(text, code),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_exit_code_stands_after_the_output() {
        let failed = "<untrusted_context>\nOutput: before\nmore\nExit Code: 3\nProcess Group PGID: 1\n</untrusted_context>";
        assert_eq!(printed(failed), Err("Exit code 3\nbefore\nmore".into()));
        let done = "<untrusted_context>\nOutput: one\nProcess Group PGID: 9475\n</untrusted_context>";
        assert_eq!(printed(done), Ok(json!({"stdout": "one"})));
        let empty =
            "Command: false\nDirectory: (root)\nStdout: (empty)\nStderr: (empty)\nError: (none)\nExit Code: 1\nSignal: (none)";
        assert_eq!(printed(empty), Err("Exit code 1\n".into()));
    }

    proptest! {
        #[test]
        fn any_output_is_read(output in "(?s).{0,200}", name in "[a-z_]{0,20}") {
            let _ = (printed(&output), like(&name, &json!({"path": output})));
        }
    }
}
