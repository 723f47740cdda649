//! Domains: built-in presets and the user's own. `schema` checks the fields of a domain's entities.

pub(crate) mod schema;

pub use schema::schema_violations;

use crate::model::{Becomes, DECISION_TYPES, Domain, Finding, LESSON_TYPES, MemoryKind, Term};

/// A built-in preset, as TOML for people and as JSON (`build.rs`).
macro_rules! preset {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!("../../presets/", $name, ".toml")),
            include_str!(concat!(env!("OUT_DIR"), "/", $name, ".json")),
        )
    };
}

/// The built-in presets, the default first.
const PRESETS: [(&str, &str, &str); 5] =
    [preset!("coding"), preset!("emails"), preset!("books"), preset!("research"), preset!("devops")];

/// The domain of a project without a setting.
pub const DEFAULT: &str = "coding";

/// Kinds of custom fields.
const KINDS: [&str; 4] = ["text", "list", "numbers", "date"];
/// Common fields of observations; a domain must not redefine them.
const TAKEN: [&str; 12] = [
    "facts",
    "title",
    "subtitle",
    "narrative",
    "type",
    "concepts",
    "files_read",
    "files_modified",
    "commit",
    "committed",
    "id",
    "kind",
];
/// Maximum size of a domain file in bytes.
pub const MOST_BYTES: u64 = 64 * 1024;

/// Names of the built-in presets.
pub fn names() -> impl Iterator<Item = &'static str> {
    PRESETS.iter().map(|(name, ..)| *name)
}

/// The text of a built-in preset.
pub fn text(name: &str) -> Option<&'static str> {
    PRESETS.iter().find(|(known, ..)| *known == name).map(|(_, text, _)| *text)
}

/// A built-in preset.
pub fn built_in(name: &str) -> Option<Domain> {
    let (_, _, json) = PRESETS.iter().find(|(known, ..)| *known == name)?;
    let mut domain: Domain = serde_json::from_str(json).ok()?;
    complete_findings(&mut domain);
    Some(domain)
}

/// The domain of a session: its custom configuration, the preset of that name, or the default.
pub fn of(name: Option<&str>, config: Option<&str>) -> Domain {
    let own = config.and_then(|text| read(text).ok());
    own.or_else(|| built_in(name?)).or_else(|| built_in(DEFAULT)).unwrap_or_default()
}

/// Parses and checks a domain.
///
/// # Errors
///
/// Each problem with its line or entry, and what to write instead.
pub fn read(text: &str) -> Result<Domain, Vec<String>> {
    let mut domain: Domain = toml::from_str(text).map_err(|error| {
        let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        let at = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        vec![format!("{at}{}", error.message().split_whitespace().collect::<Vec<_>>().join(" "))]
    })?;
    let wrong = check(&domain, text);
    if !wrong.is_empty() {
        return Err(wrong);
    }
    complete_findings(&mut domain);
    Ok(domain)
}

fn check(domain: &Domain, text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    // The line with an entry's name: close enough to find it.
    let line = |name: &str| {
        let at = text.lines().position(|line| line.trim_start().starts_with("name") && line.contains(&format!("\"{name}\"")));
        at.map(|at| format!("line {}: ", at + 1)).unwrap_or_default()
    };
    let is_name = |name: &str| {
        !name.is_empty()
            && name.len() <= 40
            && name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_'))
    };
    if !is_name(&domain.name) {
        wrong.push(format!(
            "{}name = {:?}: use lower-case letters, digits and -, such as \"cooking\"",
            line(&domain.name),
            domain.name
        ));
    }
    for (what, terms, least, most, known) in
        [("type", &domain.types, 1, 20, &RULE_TYPES[..]), ("concept", &domain.concepts, 2, 30, &RULE_CONCEPTS[..])]
    {
        if !(least..=most).contains(&terms.len()) {
            wrong.push(format!("there are {} [[{what}]]: give {least} to {most}", terms.len()));
        }
        for (at, term) in terms.iter().enumerate() {
            if !is_name(&term.name) {
                wrong.push(format!(
                    "{}[[{what}]] name = {:?}: use lower-case letters, digits and -",
                    line(&term.name),
                    term.name
                ));
            }
            if term.meaning.trim().is_empty() {
                wrong.push(format!(
                    "{}[[{what}]] {}: `meaning` is empty; describe in one line when it applies",
                    line(&term.name),
                    term.name
                ));
            }
            if terms[..at].iter().any(|other| other.name == term.name) {
                wrong.push(format!("{}[[{what}]] {} is defined twice; remove one", line(&term.name), term.name));
            }
            let taken = |rule: &&String| terms[..at].iter().any(|other| other.rules.contains(rule)) && what == "type";
            for rule in term.rules.iter().filter(taken) {
                wrong.push(format!(
                    "{}[[{what}]] {}: rules = [{rule:?}] is already used by another type; use it once",
                    line(&term.name),
                    term.name
                ));
            }
            for rule in term.rules.iter().filter(|rule| !known.contains(&rule.as_str())) {
                wrong.push(format!(
                    "{}[[{what}]] {}: rules = [{rule:?}] is unknown; valid: {}",
                    line(&term.name),
                    term.name,
                    known.join(", ")
                ));
            }
        }
    }
    let problem = |(name, becomes): (&String, &Becomes)| {
        let line = text.lines().position(|line| line.trim_start().starts_with(&format!("{name} ")));
        Some((line.unwrap_or_default() + 1, format!("[findings] {name}: {}", finding_problem(domain, name, becomes)?)))
    };
    let mut problems: Vec<(usize, String)> = domain.findings.iter().filter_map(problem).collect();
    problems.sort();
    wrong.extend(problems.into_iter().map(|(line, problem)| format!("line {line}: {problem}")));
    for (at, field) in domain.fields.iter().enumerate() {
        if !is_name(&field.name) || TAKEN.contains(&field.name.as_str()) {
            wrong.push(format!(
                "{}[[field]] name = {:?}: choose another name; every observation has {}",
                line(&field.name),
                field.name,
                TAKEN.join(", ")
            ));
        }
        if !KINDS.contains(&field.kind.as_str()) {
            wrong.push(format!(
                "{}[[field]] {}: kind = {:?}; use one of {}",
                line(&field.name),
                field.name,
                field.kind,
                KINDS.join(", ")
            ));
        }
        if domain.fields[..at].iter().any(|other| other.name == field.name) {
            wrong.push(format!("{}[[field]] {} is defined twice; remove one", line(&field.name), field.name));
        }
    }
    for (at, entity) in domain.entities.iter().enumerate() {
        let (place, name) = (line(&entity.name), &entity.name);
        if !is_name(name) || MemoryKind::from_name(name).is_some() {
            wrong.push(format!(
                "{place}[[entity]] name = {name:?}: use lower-case letters, digits and -, but not the name of a built-in kind"
            ));
        }
        if domain.entities[..at].iter().any(|other| other.name == *name) {
            wrong.push(format!("{place}[[entity]] {name} is defined twice; remove one"));
        }
        if let Some(why) = schema::problem(&entity.schema) {
            wrong.push(format!("{place}[[entity]] {name}: `schema` is invalid: {why}"));
        }
    }
    wrong
}

/// Returns the problem with an entry of `[findings]`, if there is one.
fn finding_problem(domain: &Domain, name: &str, becomes: &Becomes) -> Option<String> {
    if !named_by_presets().any(|finding| finding.name() == name) {
        let valid: Vec<&str> = named_by_presets().map(Finding::name).collect();
        return Some(format!("there is no such finding; valid: {}", valid.join(", ")));
    }
    let types: Vec<&str> = match becomes.kind {
        MemoryKind::Observation => domain.types.iter().map(|term| term.name.as_str()).collect(),
        MemoryKind::Decision => DECISION_TYPES.to_vec(),
        MemoryKind::Lesson => LESSON_TYPES.to_vec(),
        kind => return Some(format!("kind = {:?}: use observation, decision or lesson", kind.name())),
    };
    match &becomes.kind_type {
        None => return Some(format!("`type` is missing; use one of {}", types.join(", "))),
        Some(given) if !types.contains(&given.as_str()) => {
            return Some(format!("type = {given:?}: use one of {}", types.join(", ")));
        }
        Some(_) => {}
    }
    let unknown = becomes.concepts.iter().find(|concept| !domain.concepts.iter().any(|term| term.name == **concept))?;
    let valid: Vec<&str> = domain.concepts.iter().map(|term| term.name.as_str()).collect();
    Some(format!("concept {unknown:?}: use {}", valid.join(", ")))
}

/// Rule results that a type may list.
pub const RULE_TYPES: [&str; 5] = ["fix", "feature", "refactor", "change", "discovery"];
/// Rule results that a concept may list.
pub const RULE_CONCEPTS: [&str; 7] = ["mechanism", "reason", "change", "solution", "trap", "pattern", "trade-off"];

/// Findings whose kind of memory a preset chooses.
fn named_by_presets() -> impl Iterator<Item = Finding> {
    Finding::ALL.iter().copied().filter(|finding| finding.own_kind().is_none())
}

/// Adds the findings that a preset does not name.
pub fn complete_findings(domain: &mut Domain) {
    for finding in named_by_presets() {
        if !domain.findings.contains_key(finding.name()) {
            let becomes = by_rules(domain, finding);
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
        Finding::Tried | Finding::Open => (MemoryKind::Observation, "discovery", &[]),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_sound_and_goes_by_its_name() {
        for (name, text, _) in PRESETS {
            let domain = read(text).unwrap_or_else(|wrong| panic!("{name}: {wrong:?}"));
            assert_eq!(domain.name, name);
            assert_eq!(built_in(name).as_ref(), Some(&domain), "as JSON");
            for finding in named_by_presets() {
                let becomes = text.lines().find(|line| line.starts_with(&format!("{} ", finding.name())));
                assert!(becomes.is_some(), "{name} does not say what a {finding} becomes");
            }
            for text in [&domain.prompts.observer, &domain.prompts.continuation, &domain.prompts.summary] {
                assert!(text.split_whitespace().count() > 5, "{name}: a prompt that says nothing");
            }
        }
    }

    #[test]
    fn errors_name_the_line_and_the_remedy() {
        let wrong = |from: &str, to: &str| read(&text("coding").unwrap().replacen(from, to, 1)).unwrap_err().join("\n");
        insta::assert_snapshot!(wrong("name = \"bugfix\"", "name = \"Bug Fix\""), @r#"
        line 9: [[type]] name = "Bug Fix": use lower-case letters, digits and -
        line 67: [findings] fix: type = "bugfix": use one of Bug Fix, feature, refactor, change, discovery, decision
        "#);
        let wrong_in =
            |preset: &str, from: &str, to: &str| read(&text(preset).unwrap().replacen(from, to, 1)).unwrap_err().join("\n");
        insta::assert_snapshot!(wrong_in("books", "kind = \"list\"", "kind = \"array\""), @r#"line 75: [[field]] quotes: kind = "array"; use one of text, list, numbers, date"#);
        insta::assert_snapshot!(wrong("type = \"bugfix\"", "type = \"bug\""), @r#"line 67: [findings] fix: type = "bug": use one of bugfix, feature, refactor, change, discovery, decision"#);
        insta::assert_snapshot!(wrong("limit =", "limits ="), @"line 72: [findings] limits: there is no such finding; valid: decision, constraint, reminder, fix, feature, refactor, change, cause, limit, discovery, failed-approach, working-command");
        insta::assert_snapshot!(wrong("kind = \"lesson\"", "kind = \"summary\""), @r#"line 66: [findings] reminder: kind = "summary": use observation, decision or lesson"#);
        insta::assert_snapshot!(wrong("[summary]", "[summry]"), @"line 77: unknown field `summry`, expected one of `name`, `about`, `skip_tools`, `ignore`, `type`, `concept`, `findings`, `field`, `entity`, `summary`, `prompts`");
        insta::assert_snapshot!(wrong("about = ", "about "), @"line 3: key with no value, expected `=`");
    }
}
