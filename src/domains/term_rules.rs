//! Presets from before `[findings]`: their types and concepts list the accepted rule results in `rules = [...]`. Users
//! still have such files, and databases contain them.

use crate::model::{Becomes, Domain, Finding, MemoryKind, Term};

/// Rule results that a type may list.
pub const TYPES: [&str; 5] = ["fix", "feature", "refactor", "change", "discovery"];
/// Rule results that a concept may list.
pub const CONCEPTS: [&str; 7] = ["mechanism", "reason", "change", "solution", "trap", "pattern", "trade-off"];

/// Adds the findings that a preset does not name.
pub fn complete(domain: &mut Domain) {
    for finding in Finding::ALL {
        if !domain.findings.contains_key(finding.name()) {
            let becomes = by_rules(domain, *finding);
            domain.findings.insert(finding.name().into(), becomes);
        }
    }
}

fn by_rules(domain: &Domain, finding: Finding) -> Becomes {
    let (kind, kind_type, concepts): (MemoryKind, &str, &[&str]) = match finding {
        Finding::Decision | Finding::Constraint => (MemoryKind::Decision, "approach", &[]),
        Finding::Reminder => (MemoryKind::Lesson, "warning", &["trap"]),
        Finding::WorkingCommand => (MemoryKind::Lesson, "success", &["solution"]),
        Finding::Fix => (MemoryKind::Observation, "fix", &["solution", "change"]),
        Finding::Feature => (MemoryKind::Observation, "feature", &["change"]),
        Finding::Refactor => (MemoryKind::Observation, "refactor", &["change"]),
        Finding::Change => (MemoryKind::Observation, "change", &["change"]),
        Finding::Cause => (MemoryKind::Observation, "discovery", &["reason", "mechanism"]),
        Finding::Limit | Finding::FailedApproach => (MemoryKind::Observation, "discovery", &["trap", "mechanism"]),
        Finding::Discovery => (MemoryKind::Observation, "discovery", &["mechanism"]),
    };
    let listing = |terms: &[Term], rule: &str| {
        terms.iter().find(|term| term.rules.iter().any(|own| own == rule)).map(|term| term.name.clone())
    };
    let mut named: Vec<String> = concepts.iter().filter_map(|rule| listing(&domain.concepts, rule)).collect();
    named.dedup();
    let of_domain = || listing(&domain.types, kind_type).or_else(|| domain.types.first().map(|term| term.name.clone()));
    let kind_type = if kind == MemoryKind::Observation { of_domain() } else { Some(kind_type.to_string()) };
    Becomes { kind, kind_type, concepts: named }
}
