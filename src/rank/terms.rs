//! A request → the words that it is searched by, and the files that it names.

use crate::index_text::query_terms;
use crate::words::is_filler;

/// Words of a request that are looked at: of a long plan the first ones.
const TERMS: usize = 120;

/// A word as the index holds it, before stemming.
pub type Term = String;

/// The words of a request, each once, in their order.
pub fn terms(text: &str) -> Vec<Term> {
    let mut terms: Vec<Term> = Vec::new();
    for word in text.split_whitespace() {
        for term in query_terms(word) {
            let says = term.len() > 1 && !is_filler(&term);
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

/// Branches that every repository has, and that say nothing.
const TRUNKS: [&str; 5] = ["main", "master", "trunk", "develop", "dev"];

/// The words of a branch's name, without whose it is: `dev1/improve-commit-link` is about improve, commit, link.
pub fn branch_terms(branch: &str) -> Vec<Term> {
    if TRUNKS.contains(&branch) {
        return Vec::new();
    }
    terms(branch.rsplit('/').next().unwrap_or(branch))
}

/// Whether a branch is one on which a piece of work stands by itself.
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
