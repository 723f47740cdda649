//! Patches as agents write them: files of an `apply_patch` text, hunks of a unified diff.

use serde_json::Value;

/// The files of a patch, each with whether it is added: from the headers of its text.
pub fn files_of_patch(patch: &str) -> Vec<(String, bool)> {
    let file = |line: &str| {
        let named = |header: &str| line.strip_prefix(header).map(|path| path.trim().to_string());
        let added = named("*** Add File: ").map(|path| (path, true));
        added.or_else(|| Some((named("*** Update File: ").or_else(|| named("*** Delete File: "))?, false)))
    };
    patch.lines().filter_map(file).collect()
}

/// The hunks of a unified diff, as a structured patch.
pub fn hunks(diff: &str) -> Value {
    let mut hunks: Vec<Value> = Vec::new();
    for line in diff.lines() {
        let numbers = line.strip_prefix("@@ -").and_then(|head| head.split_once(" +"));
        match (numbers, hunks.last_mut()) {
            (Some((old, new)), _) => {
                let start = |text: &str| text.split([',', ' ']).next().and_then(|n| n.parse::<i64>().ok()).unwrap_or(0);
                hunks.push(serde_json::json!({"oldStart": start(old), "newStart": start(new), "lines": []}));
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
        let hunks = hunks("@@ -4,2 +5,3 @@ fn a\n-x\n+y\n z\n@@ -9 +9 @@\n+w");
        assert_eq!(hunks[0]["lines"].as_array().unwrap().len(), 3);
        assert_eq!((&hunks[0]["newStart"], &hunks[1]["oldStart"]), (&Value::from(5), &Value::from(9)));
    }

    proptest! {
        #[test]
        fn any_patch_is_read(patch in "(?s).{0,300}") {
            let _ = (files_of_patch(&patch), hunks(&patch));
        }
    }
}
