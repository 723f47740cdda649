//! Parses agents' patches: the files of an `apply_patch` text, the hunks of a unified diff.

use serde_json::{Value, json};

/// Returns the files that a patch's headers name, each with true if it is added.
pub fn files_of_patch(patch: &str) -> Vec<(String, bool)> {
    patch.lines().filter_map(file_of_header).collect()
}

/// Returns the file that a header line names, with true if it is added.
fn file_of_header(line: &str) -> Option<(String, bool)> {
    let named = |header: &str| line.strip_prefix(header).map(|path| path.trim().to_string());
    let added = named("*** Add File: ").map(|path| (path, true));
    added.or_else(|| Some((named("*** Update File: ").or_else(|| named("*** Delete File: "))?, false)))
}

/// Converts a patch to Claude Code calls that change its files: names and inputs, with the lines of each file.
pub fn changes_like(patch: &str) -> Vec<(String, Value)> {
    let mut changes: Vec<(String, bool, [String; 2])> = Vec::new();
    for line in patch.lines() {
        if let Some((path, added)) = file_of_header(line) {
            changes.push((path, added, Default::default()));
        } else if let Some((_, _, [old, new])) = changes.last_mut() {
            let side = match line.bytes().next() {
                Some(b'-') => old,
                Some(b'+') => new,
                _ => continue,
            };
            *side += &line[1..];
            side.push('\n');
        }
    }
    let call = |(path, added, [old, new]): (String, bool, [String; 2])| match added {
        true => ("Write".to_string(), json!({"file_path": path, "content": new})),
        false => ("Edit".to_string(), json!({"file_path": path, "old_string": old, "new_string": new})),
    };
    changes.into_iter().map(call).collect()
}

/// Converts the hunks of a unified diff to a structured patch.
pub fn hunks(diff: &str) -> Value {
    let mut hunks: Vec<Value> = Vec::new();
    for line in diff.lines() {
        let numbers = line.strip_prefix("@@ -").and_then(|head| head.split_once(" +"));
        match (numbers, hunks.last_mut()) {
            (Some((old, new)), _) => {
                let start = |text: &str| text.split([',', ' ']).next().and_then(|n| n.parse::<i64>().ok()).unwrap_or(0);
                hunks.push(json!({"oldStart": start(old), "newStart": start(new), "lines": []}));
            }
            (None, Some(hunk)) => {
                if let Some(lines) = hunk["lines"].as_array_mut() {
                    lines.push(Value::from(line));
                }
            }
            (None, None) => {}
        }
    }
    Value::Array(hunks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_patch_names_its_files_and_a_diff_has_hunks() {
        let patch = "*** Begin Patch\n*** Add File: a.rs\n+fn a() {}\n*** Update File: /p/b.rs\n@@\n-x\n+y\n*** End Patch";
        assert_eq!(files_of_patch(patch), [("a.rs".to_string(), true), ("/p/b.rs".to_string(), false)]);
        let changes = changes_like(patch);
        assert_eq!(changes[0].1, json!({"file_path": "a.rs", "content": "fn a() {}\n"}));
        assert_eq!(changes[1].1, json!({"file_path": "/p/b.rs", "old_string": "x\n", "new_string": "y\n"}));
        let hunks = hunks("@@ -4,2 +5,3 @@ fn a\n-x\n+y\n z\n@@ -9 +9 @@\n+w");
        assert_eq!(hunks[0]["lines"].as_array().unwrap().len(), 3);
        assert_eq!((&hunks[0]["newStart"], &hunks[1]["oldStart"]), (&Value::from(5), &Value::from(9)));
    }

    proptest! {
        #[test]
        fn any_patch_is_read(patch in "(?s).{0,300}") {
            let _ = (files_of_patch(&patch), changes_like(&patch), hunks(&patch));
        }
    }
}
