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

/// Whether a branch is dedicated to one topic. `recent` are the branches of the project's sessions, newest first: a branch
/// on which at least half of them began is a trunk, whatever its name.
pub fn is_topic<'a>(branch: &str, recent: impl Iterator<Item = Option<&'a str>>) -> bool {
    const SESSIONS: usize = 24;
    const LEAST: usize = 6;
    let (mut all, mut here) = (0, 0);
    for other in recent.take(SESSIONS) {
        all += 1;
        here += usize::from(other == Some(branch));
    }
    !TRUNKS.contains(&branch) && (here < LEAST || here * 2 < all)
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

    #[test]
    fn a_trunk_is_known_by_its_name_or_by_how_many_sessions_begin_on_it() {
        let recent = |n: usize| [Some("fix/login"), None].into_iter().chain(std::iter::repeat_n(Some("next"), n));
        assert!(is_topic("fix/login", recent(9)) && is_topic("next", recent(5)));
        assert!(!is_topic("next", recent(6)) && !is_topic("main", recent(0)));
    }
}
