//! What kind of change it was, by the words of its commit or of its request.

use super::Finding;

/// Takes the type of a conventional commit off its subject: `fix(units): a` is a fix, `a`.
pub fn conventional(subject: &str) -> (Option<Finding>, &str) {
    let Some((head, rest)) = subject.split_once(": ") else { return (None, subject) };
    let name = head.split(['(', '!']).next().unwrap_or_default();
    let finding = match name {
        "fix" | "bugfix" | "hotfix" | "revert" => Finding::Fix,
        "feat" | "feature" => Finding::Feature,
        "refactor" | "perf" | "style" => Finding::Refactor,
        "docs" | "doc" | "test" | "tests" | "chore" | "build" | "ci" => Finding::Change,
        _ => return (None, subject),
    };
    if rest.trim().is_empty() { (None, subject) } else { (Some(finding), rest.trim()) }
}

/// The kind of change that the first telling word of a text names.
pub fn by_words(text: &str) -> Finding {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty()).take(24);
    for word in words {
        let finding = match word {
            "fix" | "fixes" | "fixed" | "fixing" | "bug" | "bugs" | "broken" | "resolve" | "resolves" | "resolved"
            | "correct" | "repair" | "repaired" | "crash" | "regression" | "revert" | "prevent" | "debug" => Finding::Fix,
            "add" | "adds" | "added" | "implement" | "implements" | "implemented" | "support" | "supports" | "introduce"
            | "create" | "created" | "allow" | "enable" | "build" | "new" | "write" => Finding::Feature,
            "refactor" | "refactored" | "rename" | "renamed" | "extract" | "extracted" | "move" | "moved" | "simplify"
            | "simplified" | "clean" | "cleanup" | "consolidate" | "deduplicate" | "split" | "restructure" | "inline" => {
                Finding::Refactor
            }
            "update" | "updated" | "change" | "changed" | "bump" | "document" | "docs" | "readme" | "changelog" | "remove"
            | "removed" | "delete" => Finding::Change,
            _ => continue,
        };
        return finding;
    }
    Finding::Change
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_tells_what_it_is() {
        assert_eq!(conventional("fix(units): stop at once"), (Some(Finding::Fix), "stop at once"));
        assert_eq!(conventional("feat!: x y"), (Some(Finding::Feature), "x y"));
        assert_eq!(conventional("units: stop at once"), (None, "units: stop at once"));
        assert_eq!(by_words("can you add a test for the fix"), Finding::Feature);
        assert_eq!(by_words("Rename it"), Finding::Refactor);
        assert_eq!(by_words("hm"), Finding::Change);
    }
}
