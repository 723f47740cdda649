//! Search words of a request and of a branch name.

use crate::index_text::query_terms;
use crate::text::is_stop_word;

/// Maximum words of a request; a long plan is cut.
const TERMS: usize = 120;

/// A word as the index holds it before stemming.
pub type QueryTerm = String;

/// The words of a request in order, without duplicates.
pub fn terms(text: &str) -> Vec<QueryTerm> {
    let mut terms: Vec<QueryTerm> = Vec::new();
    for word in text.split_whitespace() {
        for term in query_terms(word) {
            let says = term.len() > 1 && !is_stop_word(&term);
            if says && !terms.contains(&term) {
                terms.push(term);
            }
            if terms.len() == TERMS {
                return terms;
            }
        }
    }
    terms
}

/// Branches that every repository has; their names say nothing.
const TRUNKS: [&str; 5] = ["main", "master", "trunk", "develop", "dev"];

/// The words of a branch name without its owner: `dev1/improve-commit-link` yields improve, commit, link.
pub fn branch_terms(branch: &str) -> Vec<QueryTerm> {
    if TRUNKS.contains(&branch) {
        return Vec::new();
    }
    terms(branch.rsplit('/').next().unwrap_or(branch))
}

/// Whether a branch is dedicated to one topic.
pub fn is_topic(branch: &str) -> bool {
    !TRUNKS.contains(&branch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_its_words_without_those_that_say_nothing() {
        assert_eq!(terms("Can you please fix parseHookInput in the login?"), ["fix", "parse", "hook", "input", "login"]);
        assert_eq!(branch_terms("dev1/improve-commit-link-prompt"), ["improve", "commit", "link", "prompt"]);
        assert!(branch_terms("main").is_empty());
    }
}
