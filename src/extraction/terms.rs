//! Maps a model's word for a type or concept to the domain's: the word itself, a synonym, or a near spelling.

use crate::model::{Domain, Finding, Term};
use strsim::osa_distance as distance;

/// Synonyms that models use for a fix, a feature, …; each list maps to the type that the domain uses for that finding.
const MEANT: [(Finding, &[&str]); 5] = [
    (Finding::Fix, &["bug", "fix", "bug-fix", "bugfixes", "hotfix", "fixed", "problem", "error", "issue", "defect"]),
    (Finding::Feature, &["new-feature", "enhancement", "improvement", "addition", "implementation", "feat", "added"]),
    (Finding::Refactor, &["refactoring", "cleanup", "clean-up", "restructure", "rename", "restructuring"]),
    (
        Finding::Change,
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
        Finding::Discovery,
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

/// The type of an observation: exact, near, or the one for discoveries.
pub fn kind_type(given: Option<&str>, domain: &Domain) -> Option<String> {
    let fallback = || domain.becomes(Finding::Discovery).kind_type;
    let Some(given) = given.map(bare).filter(|given| !given.is_empty()) else { return fallback() };
    if let Some(term) = nearest(&given, &domain.types) {
        return Some(term.to_string());
    }
    let meant = MEANT.iter().find(|(_, words)| words.contains(&given.as_str())).map(|(found, _)| *found);
    meant.and_then(|finding| domain.becomes(finding).kind_type).or_else(fallback)
}

/// The domain's concepts among the given ones, five at most; others are dropped.
pub fn concepts(given: &[String], domain: &Domain) -> Vec<String> {
    let mut term: Vec<String> = Vec::new();
    for concept in given.iter().map(|given| bare(given)).filter_map(|given| nearest(&given, &domain.concepts).map(String::from)) {
        if !term.contains(&concept) && term.len() < 5 {
            term.push(concept);
        }
    }
    term
}

/// Returns a name in lower case, with words joined by `-`.
fn bare(given: &str) -> String {
    let given = given.trim().trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    given.split(|c: char| c.is_whitespace() || c == '_').filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}

/// The term with that name, or the only one with a near spelling.
fn nearest<'a>(given: &str, terms: &'a [Term]) -> Option<&'a str> {
    if let Some(term) = terms.iter().find(|term| bare(&term.name) == given) {
        return Some(&term.name);
    }
    let within = given.len() / 4;
    let mut near = terms.iter().filter(|term| distance(&bare(&term.name), given) <= within.min(2));
    match (near.next(), near.next()) {
        (Some(term), None) => Some(&term.name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Becomes, MemoryKind};

    fn domain() -> Domain {
        let term = |name: &str| Term { name: name.into(), ..Term::default() };
        let findings = [("fix", "bugfix"), ("feature", "feature"), ("discovery", "discovery")];
        let becomes =
            |kind_type: &str| Becomes { kind: MemoryKind::Observation, kind_type: Some(kind_type.into()), concepts: vec![] };
        Domain {
            findings: findings.map(|(name, kind_type)| (name.into(), becomes(kind_type))).into(),
            types: vec![term("bugfix"), term("feature"), term("discovery")],
            concepts: vec![term("how-it-works"), term("gotcha"), term("trade-off")],
            ..Domain::default()
        }
    }

    #[test]
    fn a_type_that_is_not_the_domains_goes_to_the_nearest() {
        for (given, expected) in [
            ("bugfix", "bugfix"),
            ("Bug Fix", "bugfix"),
            ("bug", "bugfix"),
            ("enhancement", "feature"),
            ("featur", "feature"),
            ("documentation", "bugfix"), // No type asks for changes: the first one.
            ("poem", "discovery"),
        ] {
            assert_eq!(kind_type(Some(given), &domain()).as_deref(), Some(expected), "{given}");
        }
        assert_eq!(kind_type(None, &domain()).as_deref(), Some("discovery"));
    }

    #[test]
    fn concepts_are_the_domains_or_none() {
        let given = ["How it works", "gotchas", "tradeoff", "bugfix", "how-it-works"].map(String::from);
        assert_eq!(concepts(&given, &domain()), ["how-it-works", "gotcha", "trade-off"]);
    }
}
