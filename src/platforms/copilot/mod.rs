//! Copilot CLI and VS Code: their tools, `hooks` (live), `past` (past sessions of the CLI), `chat` (of VS Code).

mod chat;
pub(crate) mod hooks;
mod past;

use super::translated::changes_like;
use serde_json::{Value, json};

/// Tools whose calls are not recorded.
pub const SKIPPED: [&str; 4] = ["report_intent", "update_todo", "manage_todo_list", "sql"];

/// Returns true if a tool runs a command.
pub fn is_command(name: &str) -> bool {
    matches!(name, "bash" | "powershell" | "run_in_terminal" | "local_shell")
}

/// Returns true if a tool reads from, writes to or stops a running command.
pub fn is_about_command(name: &str) -> bool {
    matches!(name, "read_bash" | "write_bash" | "stop_bash" | "read_powershell" | "write_powershell" | "stop_powershell")
}

/// Converts a call to one or more Claude Code calls: names and inputs.
pub fn like(name: &str, arguments: &Value) -> Vec<(String, Value)> {
    let of = |keys: &[&str]| keys.iter().map(|key| &arguments[*key]).find(|value| !value.is_null()).cloned().unwrap_or_default();
    let path = || of(&["path", "filePath", "file_path"]);
    let one = |like: &str, input: Value| vec![(like.to_string(), input)];
    let edit = |edit: &Value| {
        let of = |a: &str, b: &str| edit.get(a).or_else(|| edit.get(b)).cloned().unwrap_or_default();
        let path = edit.get("file_path").cloned().unwrap_or_else(|| of("filePath", "path"));
        let input =
            json!({"file_path": path, "old_string": of("oldString", "old_str"), "new_string": of("newString", "new_str")});
        ("Edit".to_string(), input)
    };
    match name {
        name if is_command(name) || name == "Bash" => {
            one("Bash", json!({"command": of(&["command"]), "description": of(&["description", "explanation"])}))
        }
        "view" | "read_file" | "Read" => one("Read", json!({"file_path": path()})),
        "Edit" if arguments.is_string() => changes_like(arguments.as_str().unwrap_or_default()),
        "edit" | "replace_string_in_file" | "Edit" => vec![edit(arguments)],
        "multi_replace_string_in_file" => arguments["replacements"].as_array().into_iter().flatten().map(edit).collect(),
        "insert_edit_into_file" => one("Edit", json!({"file_path": path(), "new_string": of(&["code"])})),
        "create" | "create_file" | "Write" => {
            one("Write", json!({"file_path": path(), "content": of(&["file_text", "content"])}))
        }
        "str_replace_editor" => match arguments["command"].as_str() {
            Some("view") => one("Read", json!({"file_path": path()})),
            Some("create") => one("Write", json!({"file_path": path(), "content": of(&["file_text"])})),
            _ => vec![edit(arguments)],
        },
        "apply_patch" => {
            let patch = arguments.as_str().map_or_else(|| of(&["input", "patch"]), Value::from);
            changes_like(patch.as_str().unwrap_or_default())
        }
        "grep" | "rg" | "grep_search" | "Grep" => one("Grep", json!({"pattern": of(&["pattern", "query"]), "path": path()})),
        "glob" | "file_search" | "Glob" => one("Glob", json!({"pattern": of(&["pattern", "query"]), "path": path()})),
        "semantic_search" => one("Grep", json!({"pattern": of(&["query"])})),
        "list_dir" => one("LS", json!({"path": path()})),
        "web_fetch" | "WebFetch" => one("WebFetch", json!({"url": of(&["url"])})),
        "fetch_webpage" => one("WebFetch", json!({"url": arguments["urls"].get(0).cloned().unwrap_or_default()})),
        "web_search" => one("WebSearch", json!({"query": of(&["query"])})),
        "task" | "runSubagent" | "Agent" => {
            one("Agent", json!({"description": of(&["description", "name"]), "prompt": of(&["prompt"])}))
        }
        name => one(name, arguments.clone()),
    }
}

/// The output of a command.
#[derive(Debug, PartialEq, Eq)]
pub struct Printed<'a> {
    pub text: &'a str,
    /// The exit code; `None` if the output has none.
    pub exit_code: Option<i64>,
    /// The shell of a command that keeps running.
    pub shell: Option<&'a str>,
}

/// Parses a command's output. Its last line reports how the command ended.
pub fn printed(output: &str) -> Printed<'_> {
    let trimmed = output.trim_end();
    let (text, last) = trimmed.rsplit_once('\n').unwrap_or(("", trimmed));
    let last = last.trim();
    let code = |last: &str| {
        let behind = last.rsplit_once("exit code ").or_else(|| last.rsplit_once("exited with code "))?.1;
        behind.trim_end_matches(['>', '.']).parse().ok()
    };
    if let Some(exit_code) = Some(last).filter(|last| last.starts_with('<') || last.starts_with("Command exited")).and_then(code)
    {
        return Printed { text, exit_code: Some(exit_code), shell: None };
    }
    let shell = last.split_once("shellId: ").filter(|_| last.contains("still running")).map(|(_, behind)| behind);
    let shell = shell.and_then(|behind| behind.split([' ', '>', ',', ')']).next());
    let is_last_a_note = last.starts_with('<') && last.ends_with('>') && shell.is_some();
    Printed { text: if is_last_a_note { text } else { output }, exit_code: None, shell }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_last_line_says_how_a_command_ended() {
        let ended = printed("error: no\n<shellId: 51 completed with exit code 128>");
        assert_eq!(ended, Printed { text: "error: no", exit_code: Some(128), shell: None });
        assert_eq!(printed("done\n<exited with exit code 0>\n").exit_code, Some(0));
        assert_eq!(printed("\nCommand exited with code 2").exit_code, Some(2));
        assert_eq!(printed("it exited with exit code 1\nreally").exit_code, None);
        let goes_on =
            printed("building\n<command with shellId: 22 is still running after 30 seconds. The command is still running.>");
        assert_eq!((goes_on.text, goes_on.exit_code, goes_on.shell), ("building", None, Some("22")));
    }

    #[test]
    fn tools_have_the_names_and_inputs_of_those_that_do_the_same() {
        let edit = like("edit", &json!({"path": "/p/a.rs", "old_str": "a", "new_str": "b"}));
        assert_eq!(edit[0].0, "Edit");
        assert_eq!(edit[0].1, json!({"file_path": "/p/a.rs", "old_string": "a", "new_string": "b"}));
        let two = json!({"replacements": [{"filePath": "/a", "oldString": "x", "newString": "y"}, {"filePath": "/b"}]});
        assert_eq!(like("multi_replace_string_in_file", &two).len(), 2);
        let patch = json!("*** Begin Patch\n*** Add File: /p/new.rs\n+x\n*** Update File: /p/old.rs\n*** End Patch");
        let names: Vec<String> = like("apply_patch", &patch).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["Write", "Edit"]);
    }

    proptest! {
        #[test]
        fn any_output_is_read(output in "(?s).{0,200}") {
            let _ = printed(&output);
        }
    }
}
