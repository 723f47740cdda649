//! A model's word for a type or a concept → the domain's: the word itself, what is meant by another, or what is spelt nearly so.

use crate::model::{Domain, Term};
use strsim::osa_distance as distance;

/// Words that models use for what rules call a fix, a feature, …; each list is of the type that the domain files it under.
const MEANT: [(&str, &[&str]); 5] = [
    ("fix", &["bug", "fix", "bug-fix", "bugfixes", "hotfix", "fixed", "problem", "error", "issue", "defect"]),
    ("feature", &["new-feature", "enhancement", "improvement", "addition", "implementation", "feat", "added"]),
    ("refactor", &["refactoring", "cleanup", "clean-up", "restructure", "rename", "restructuring"]),
    (
        "change",
        &[
            "changed",
            "update",
            "modification",
            "docs",
            "documentation",
            "config",
            "configuration",
            "chore",
            "test",
            "tests",
            "dependency",
            "removal",
        ],
    ),
    (
        "discovery",
        &[
            "finding",
            "insight",
            "learning",
            "learned",
            "investigation",
            "analysis",
            "research",
            "observation",
            "how-it-works",
            "gotcha",
            "note",
        ],
    ),
];

/// The type of an observation: as it says, nearly as it says, or the one that discoveries are filed under.
pub fn kind_type(said: Option<&str>, domain: &Domain) -> Option<String> {
    let fallback = || domain.type_for("discovery").map(String::from);
    let Some(said) = said.map(bare).filter(|said| !said.is_empty()) else { return fallback() };
    if let Some(known) = nearest(&said, &domain.types) {
        return Some(known.to_string());
    }
    let meant = MEANT.iter().find(|(_, words)| words.contains(&said.as_str())).map(|(found, _)| *found);
    meant.and_then(|found| domain.type_for(found)).map(String::from).or_else(fallback)
}

/// The domain's concepts among what was said, five at most; others go.
pub fn concepts(said: &[String], domain: &Domain) -> Vec<String> {
    let mut known: Vec<String> = Vec::new();
    for concept in said.iter().map(|said| bare(said)).filter_map(|said| nearest(&said, &domain.concepts).map(String::from)) {
        if !known.contains(&concept) && known.len() < 5 {
            known.push(concept);
        }
    }
    known
}

/// Small letters, words joined by `-`.
fn bare(said: &str) -> String {
    let said = said.trim().trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    said.split(|c: char| c.is_whitespace() || c == '_').filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}

/// The term of that name, or the only one that is spelt nearly so.
fn nearest<'a>(said: &str, terms: &'a [Term]) -> Option<&'a str> {
    if let Some(term) = terms.iter().find(|term| bare(&term.name) == said) {
        return Some(&term.name);
    }
    let within = said.len() / 4;
    let mut near = terms.iter().filter(|term| distance(&bare(&term.name), said) <= within.min(2));
    match (near.next(), near.next()) {
        (Some(term), None) => Some(&term.name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain() -> Domain {
        let term = |name: &str, rules: &[&str]| Term {
            name: name.into(),
            rules: rules.iter().map(|r| r.to_string()).collect(),
            ..Term::default()
        };
        Domain {
            types: vec![term("bugfix", &["fix"]), term("feature", &["feature"]), term("discovery", &["discovery"])],
            concepts: vec![term("how-it-works", &[]), term("gotcha", &[]), term("trade-off", &[])],
            ..Domain::default()
        }
    }

    #[test]
    fn a_type_that_is_not_the_domains_goes_to_the_nearest() {
        for (said, expected) in [
            ("bugfix", "bugfix"),
            ("Bug Fix", "bugfix"),
            ("bug", "bugfix"),
            ("enhancement", "feature"),
            ("featur", "feature"),
            ("documentation", "bugfix"), // No type asks for changes: the first one.
            ("poem", "discovery"),
        ] {
            assert_eq!(kind_type(Some(said), &domain()).as_deref(), Some(expected), "{said}");
        }
        assert_eq!(kind_type(None, &domain()).as_deref(), Some("discovery"));
    }

    #[test]
    fn concepts_are_the_domains_or_none() {
        let said = ["How it works", "gotchas", "tradeoff", "bugfix", "how-it-works"].map(String::from);
        assert_eq!(concepts(&said, &domain()), ["how-it-works", "gotcha", "trade-off"]);
    }
}
