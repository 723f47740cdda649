//! Parses the output of Codex's tools: exit codes and process numbers are part of the text.

use serde_json::Value;

/// The output of a command.
#[derive(Debug, PartialEq, Eq)]
pub struct Output<'a> {
    pub text: &'a str,
    /// The exit code; `None` if the output has none.
    pub exit_code: Option<i64>,
    /// The number of a process that keeps running.
    pub process: Option<i64>,
}

/// Parses an output: a few lines about the process, `Output:`, and the text.
pub fn read(output: &str) -> Output<'_> {
    let (head, text) = output.split_once("\nOutput:\n").unwrap_or(("", output));
    let number = |label: &str| head.lines().find_map(|line| line.trim().strip_prefix(label)?.trim().parse().ok());
    let exit_code = number("Process exited with code").or_else(|| number("Exit code:"));
    Output { text, exit_code, process: number("Process running with session ID") }
}

/// Returns true if the output of a tool other than a command reports a failure.
pub fn says_failed(output: &str) -> bool {
    let text = read(output).text.trim_start();
    let is_error = match serde_json::from_str::<Value>(text) {
        Ok(answer) => answer.get("error").is_some_and(|error| !error.is_null()),
        // A long answer may be cut, so it may not be valid JSON.
        Err(_) => text.starts_with("{\"error\""),
    };
    is_error
        || ["aborted by user", "unsupported call: ", "unsupported custom tool call: "].iter().any(|begin| text.starts_with(begin))
}

/// Returns the command line of a call: a string, or a list of words such as `bash -lc COMMAND`.
pub fn command_of(input: &Value) -> String {
    let words = |list: &Value| {
        let words: Vec<&str> = list.as_array()?.iter().filter_map(Value::as_str).collect();
        Some(if words.len() == 3 && words[1].starts_with('-') { words[2].to_string() } else { words.join(" ") })
    };
    let said = |key: &str| input[key].as_str().map(String::from).or_else(|| words(&input[key]));
    said("cmd").or_else(|| said("command")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn exit_codes_and_processes_stand_before_the_output() {
        let ended =
            "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 2\nOriginal token count: 3\nOutput:\nerror: no";
        assert_eq!(read(ended), Output { text: "error: no", exit_code: Some(2), process: None });
        let goes_on = "Chunk ID: 1\nProcess running with session ID 77\nOutput:\nProcess exited with code 1";
        assert_eq!(read(goes_on), Output { text: "Process exited with code 1", exit_code: None, process: Some(77) });
        let words = serde_json::json!({"command": ["bash", "-lc", "cargo test"]});
        assert_eq!((command_of(&words), command_of(&Value::Null)), ("cargo test".into(), String::new()));
        assert!(says_failed("Wall time: 1 seconds\nOutput:\n{\"error\": \"not found\"}"));
        assert!(!says_failed("Wall time: 1 seconds\nOutput:\n{\"error\": null, \"result\": 1}"));
    }

    proptest! {
        #[test]
        fn any_output_is_read(output in "(?s).{0,300}") {
            let _ = (read(&output), says_failed(&output));
        }
    }
}
