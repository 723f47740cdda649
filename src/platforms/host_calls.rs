//! Calls of agents that `other_hosts` describes: one table of tools, and the forms of responses.

use super::gemini;
use super::past::text_of;
use super::translated::{self, changes_like, field, unpacked};
use serde_json::{Value, json};

/// Returns true if a tool runs a command.
pub fn is_command(name: &str) -> bool {
    const COMMANDS: [&str; 10] = [
        "Bash",
        "bash",
        "Execute",
        "execute_command",
        "run_command",
        "run_commands",
        "run_shell_command",
        "run_terminal_command",
        "shell",
        "terminal",
    ];
    COMMANDS.contains(&name.strip_prefix("developer__").unwrap_or(name))
}

/// Converts a call of any agent to one or more Claude Code calls: names and inputs.
pub fn like(name: &str, input: &Value) -> Vec<(String, Value)> {
    let of = |names: &[&str]| field(input, names).clone();
    let path = || of(&["file_path", "target_file", "filePath", "absolute_path", "path", "dir_path", "filepath", "dirpath"]);
    let one = |like: &str, input: Value| vec![(like.to_string(), input)];
    // Goose puts the extension's name before the tool's.
    let name = name.strip_prefix("developer__").unwrap_or(name);
    let name = match (name, input["command"].as_str()) {
        ("text_editor", Some("view")) => "read",
        ("text_editor", Some("write")) => "write",
        ("text_editor", _) => "edit",
        (name, _) => name,
    };
    match name {
        // One call may run several commands.
        _ if is_command(name) && input["commands"].is_array() => {
            let commands = input["commands"].as_array().into_iter().flatten();
            commands.map(|command| ("Bash".to_string(), json!({"command": command}))).collect()
        }
        name if is_command(name) => {
            let background = of(&["run_in_background", "is_background"]);
            let input = json!({"command": of(&["command", "cmd"]), "description": of(&["description", "summary"])});
            one("Bash", if background == true { json!({"run_in_background": true, "command": input["command"]}) } else { input })
        }
        "Read" | "read" | "read_file" | "view" => one("Read", json!({"file_path": path()})),
        "read_many_files" | "read_files" => {
            let files = field(input, &["paths", "files", "include"]).as_array().into_iter().flatten();
            let path = |file: &Value| if file["path"].is_string() { file["path"].clone() } else { file.clone() };
            files.map(|file| ("Read".to_string(), json!({"file_path": path(file)}))).collect()
        }
        "Write" | "write" | "write_file" | "Create" | "create_file" | "WriteFile" | "write_to_file" => {
            one("Write", json!({"file_path": path(), "content": of(&["content", "contents", "text", "file_text"])}))
        }
        // A list of changes to one file.
        "edit" | "MultiEdit" | "multiedit" | "search_replace" if input["edits"].is_array() || input["content"].is_array() => {
            let edits = field(input, &["edits", "content"]).as_array().into_iter().flatten();
            let edit = |edit: &Value| {
                let (old, new) =
                    (field(edit, &["oldText", "old_string", "old_str"]), field(edit, &["newText", "new_string", "new_str"]));
                ("Edit".to_string(), json!({"file_path": path(), "old_string": old, "new_string": new}))
            };
            edits.map(edit).collect()
        }
        "Edit" | "edit" | "editor" | "replace" | "search_replace" | "StrReplaceFile" | "str_replace" | "MultiEdit"
        | "edit_file" | "replace_in_file" | "apply_diff" => {
            let old = of(&["old_string", "old_str", "oldText", "old_text", "oldString", "before"]);
            let new = of(&["new_string", "new_str", "newText", "new_text", "newString", "after"]);
            one("Edit", json!({"file_path": path(), "old_string": old, "new_string": new}))
        }
        "ApplyPatch" | "apply_patch" => {
            let patch = input.as_str().map_or_else(|| of(&["patch", "input", "patchText"]), Value::from);
            changes_like(patch.as_str().unwrap_or_default())
        }
        "Grep" | "grep" | "grep_search" | "search_file_content" => {
            one("Grep", json!({"pattern": of(&["pattern", "query", "regex"]), "path": path()}))
        }
        "Glob" | "glob" | "file_search" | "find_path" => {
            one("Glob", json!({"pattern": of(&["pattern", "query", "glob"]), "path": path()}))
        }
        "LS" | "list_dir" | "list_directory" => one("LS", json!({"path": path()})),
        "WebFetch" | "web_fetch" | "FetchUrl" | "fetch" => one("WebFetch", json!({"url": of(&["url", "prompt"])})),
        "WebSearch" | "web_search" => one("WebSearch", json!({"query": of(&["query"])})),
        "Task" | "Agent" | "agent" | "task" | "spawn_subagent" => {
            one("Agent", json!({"description": of(&["description", "name"]), "prompt": of(&["prompt", "task"])}))
        }
        "TodoWrite" | "todo_write" => one("TodoWrite", input.clone()),
        name => one(name, input.clone()),
    }
}

/// Returns the error of a call that the agent reports as failed.
pub fn failure(name: &str, payload: &Value) -> String {
    let error = field(payload, &["error", "error_message", "tool_response", "toolResult"]);
    let said = error["message"].as_str().map_or_else(|| text_of(error), String::from);
    if !is_command(name) {
        return said;
    }
    let (text, code) = exit_code(&said);
    let stated = translated::command_result(text, code).and_then(|_| gemini::printed(&said));
    stated.err().unwrap_or(said)
}

/// Returns the result of a call from any agent's response.
pub fn result(name: &str, response: &Value) -> Result<Value, String> {
    let response = &unpacked(response);
    let failed = ["is_error", "isError"].iter().any(|key| response[*key] == true) || response["success"] == false;
    // Cline has the text of a failure beside its kind.
    let error = response["error"]["message"].as_str().or(response["error"].as_str()).filter(|_| !response["result"].is_string());
    let not_found = response["NoMatchesFound"]["message"].as_str();
    if let Some(error) = error.or(not_found) {
        return Err(error.to_string());
    }
    let said = field(response, &["output_for_prompt", "llmContent", "output", "stdout", "content", "result"]);
    let said = if said.is_null() { text_of(response) } else { text_of(said) };
    if failed {
        return match exit_code(&said) {
            (text, code @ Some(1..)) if is_command(name) => translated::command_result(text, code),
            _ => Err(said),
        };
    }
    if !is_command(name) {
        return Ok(json!(said));
    }
    let stated = field(response, &["exit_code", "exitCode", "returncode"]).as_i64();
    if response["stdout"].is_string() && matches!(stated, None | Some(0)) {
        return Ok(response.clone());
    }
    let errors = field(response, &["stderr"]).as_str().unwrap_or_default();
    let said = if errors.is_empty() { said } else { format!("{said}{errors}") };
    if said.lines().any(|line| line.starts_with("Exit Code:")) {
        return gemini::printed(&said);
    }
    let (text, code) = exit_code(&said);
    translated::command_result(text, stated.or(code))
}

/// Splits a command's output from its exit code, which some agents write on the first or on the last line.
fn exit_code(said: &str) -> (&str, Option<i64>) {
    const FIRST: [(&str, &str); 2] = [("exit: ", ""), ("[Command exited with code ", "]")];
    const LAST: [(&str, &str); 3] =
        [("[Process exited with code ", "]"), ("Command exited with code ", ""), ("Command failed with exit code: ", ".")];
    let of = |line: &str, forms: &[(&str, &str)]| {
        let inside = |(before, after): &(&str, &str)| line.trim().strip_prefix(before)?.strip_suffix(after)?.trim().parse().ok();
        forms.iter().find_map(inside)
    };
    if let Some((first, rest)) = said.split_once('\n')
        && let Some(code) = of(first, &FIRST)
    {
        return (rest, Some(code));
    }
    let said = said.trim_end();
    let (text, last) = said.rsplit_once('\n').unwrap_or(("", said));
    let code = of(last, &LAST);
    if code.is_some() { (text.trim_end(), code) } else { (said, None) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_exit_code_is_found_where_each_agent_writes_it() {
        for said in [
            "exit: 2\nno such file",
            "[Command exited with code 2]\nno such file",
            "no such file\n\n[Process exited with code 2]",
            "no such file\n\n\nCommand exited with code 2",
            "no such file\nCommand failed with exit code: 2.",
        ] {
            let (text, code) = exit_code(said);
            assert_eq!((text.trim(), code), ("no such file", Some(2)), "{said}");
        }
        assert_eq!(exit_code("it says: exit code 2"), ("it says: exit code 2", None));
    }

    proptest! {
        #[test]
        fn any_response_is_read(said in "(?s).{0,200}", name in "[A-Za-z_]{0,20}") {
            let _ = (result(&name, &json!(said)), like(&name, &json!({"path": said})), exit_code(&said));
        }
    }
}
