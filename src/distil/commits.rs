//! The subject of a commit or request.

use super::statements::{Words, first_word, is_one_of};
use crate::model::Finding;

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

const FIXES: Words = "fix|fixes|fixed|fixing|resolve|resolves|resolved|correct|corrects|corrected|repair|repaired|revert|prevent|prevents|stop|avoid|handle";
const ADDS: Words = "add|adds|added|implement|implements|implemented|support|supports|introduce|introduces|introduced|create|creates|created|allow|allows|enable|enables";
const RESHAPES: Words = "refactor|refactors|refactored|rename|renames|renamed|extract|extracts|extracted|move|moves|moved|simplify|simplifies|simplified|consolidate|consolidates|consolidated|deduplicate|split|restructure|inline|reorganize";

/// The kind of change that the first word of a subject or of a report names; anything else is just a change.
pub fn by_first_word(text: &str) -> Finding {
    let lower = text.to_lowercase();
    let bare = ["i've ", "i have ", "i "].iter().find_map(|who| lower.strip_prefix(who)).unwrap_or(&lower);
    // `parser: add x` names its place first.
    let bare = bare
        .split_once(": ")
        .filter(|(place, _)| !place.contains(' ') && !is_one_of(FIXES, place))
        .map_or(bare, |(_, rest)| rest);
    // "There was none, so I added one".
    let word = lower.find(" so i ").map_or_else(|| first_word(bare), |at| first_word(&lower[at + 6..]));
    match () {
        () if is_one_of(FIXES, &word) => Finding::Fix,
        () if is_one_of(ADDS, &word) => Finding::Feature,
        () if is_one_of(RESHAPES, &word) => Finding::Refactor,
        () => Finding::Change,
    }
}

/// Words by which a request is known to be about something that is broken.
const BROKEN: Words = "fix|bug|broken|error|fails|failing|failed|crash|regression|problem|wrong|hangs|loses";
/// Words of a request for something new.
const WANTED: Words = "add|implement|create|introduce|support";

/// The kind of work that a request asks for, where its words leave no doubt.
pub fn of_request(text: &str) -> Option<Finding> {
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let holds = |list: Words| words.iter().any(|word| is_one_of(list, word));
    match (holds(BROKEN), holds(WANTED), holds(RESHAPES)) {
        (true, false, _) => Some(Finding::Fix),
        (false, true, false) => Some(Finding::Feature),
        (false, false, true) => Some(Finding::Refactor),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_tells_what_it_is() {
        assert_eq!(conventional("fix(units): stop at once"), (Some(Finding::Fix), "stop at once"));
        assert_eq!(conventional("feat!: x y"), (Some(Finding::Feature), "x y"));
        assert_eq!(conventional("units: stop at once"), (None, "units: stop at once"));
        assert_eq!(by_first_word("I've renamed it"), Finding::Refactor);
        assert_eq!(by_first_word("parser: add a test"), Finding::Feature);
        assert_eq!(by_first_word("Now the fix is there"), Finding::Change);
        assert_eq!(of_request("the login is broken, please have a look"), Some(Finding::Fix));
        assert_eq!(of_request("add a test for the fix"), None);
    }
}
