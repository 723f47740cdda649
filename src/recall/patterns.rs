//! Use case: recurring patterns in a project, and outcomes of its decisions.

use super::errors::ending;
use crate::domains;
use crate::model::{Case, Finding, MemoryKind, MemoryRow, Pattern, PatternKind, ToolUseRow, UnitOutcome, UnitRow};
use crate::rank::{DecisionOutcome, confidence, contradicted};
use crate::rules::failures::programs;
use crate::rules::{Recurs, Reverted, failure_signatures, recurring, reverted};
use crate::store::Store;
use crate::store::commands::StoredCommand;
use crate::store::patterns::Noted;
use anyhow::Result;
use serde_json::{Value, json};
use std::collections::HashMap;

/// Number of newest failures and memories to examine.
const MANY: usize = 5000;
/// Number of cases of a pattern to examine for a resolution.
const ENDED: usize = 10;
/// Maximum number of commands to check for reverts.
const REVERTS: usize = 200;
/// Number of newest decisions and lessons to check for contradictions.
pub(super) const SETTLED: usize = 200;

/// Recurring failures, fixes and lesson tags of a project.
pub fn patterns(store: &Store, project: i64) -> Result<Vec<Pattern>> {
    let fix = fix(store, project)?;
    let repaired = store.fixes_of_files(project, &fix, MANY)?;
    let by_unit: HashMap<i64, i64> = repaired.iter().filter_map(|noted| Some((noted.unit?, noted.memory))).collect();
    let failed = store.failed_commands(project, MANY)?;
    let mut failures: Vec<Recurs> = Vec::new();
    for (tool, unit) in &failed {
        let Some((program, errors)) = failure_signatures(tool) else { continue };
        let repaired = unit.and_then(|unit| by_unit.get(&unit)).map(|memory| format!("m{memory}"));
        let piece = unit.map_or(format!("s{}", tool.session_id), |unit| format!("u{unit}"));
        failures.extend(errors.into_iter().map(|(error, signature)| Recurs {
            kind: PatternKind::Failure,
            key: format!("{program}: {signature}"),
            title: program.clone(),
            piece: piece.clone(),
            case: Case {
                id: format!("t{}", tool.id),
                unit: *unit,
                at: tool.received_at,
                text: error,
                repaired: repaired.clone(),
            },
        }));
    }
    let lessons = store.tagged_lessons(project, MANY)?;
    let all = failures.into_iter().chain(noted(PatternKind::Fix, repaired)).chain(noted(PatternKind::Lesson, lessons));
    let mut patterns = recurring(all.collect());
    let tools: HashMap<String, (ToolUseRow, Option<i64>)> =
        failed.into_iter().map(|(tool, unit)| (format!("t{}", tool.id), (tool, unit))).collect();
    for pattern in patterns.iter_mut().filter(|pattern| pattern.kind == PatternKind::Failure) {
        let cases = pattern.cases.iter().filter_map(|case| tools.get(&case.id)).take(ENDED);
        pattern.ended_by = most_frequent_ending(store, cases)?;
    }
    Ok(patterns)
}

/// The form of the command that most often worked instead of a failed one, at least twice.
fn most_frequent_ending<'a>(store: &Store, cases: impl Iterator<Item = &'a (ToolUseRow, Option<i64>)>) -> Result<Option<String>> {
    let mut endings: Vec<(String, usize)> = Vec::new();
    for (tool, unit) in cases {
        let failed = StoredCommand { tool: tool.clone(), agent_session_id: String::new(), unit: *unit };
        let Some(ending) = ending(store, &failed, "")?.filter(|ending| ending.files.is_empty()) else { continue };
        let ran = programs(&ending.command).last().unwrap_or_default();
        match endings.iter_mut().find(|(known, _)| *known == ran) {
            Some((_, times)) => *times += 1,
            None => endings.push((ran, 1)),
        }
    }
    let best = endings.into_iter().filter(|(ran, times)| *times > 1 && !ran.is_empty());
    Ok(best.max_by_key(|(_, times)| *times).map(|(ran, _)| ran))
}

/// The domain's type for fixes.
fn fix(store: &Store, project: i64) -> Result<String> {
    let domain = store.domain_of_project(project)?.unwrap_or_default();
    let domain = domains::of(Some(&domain.0), domain.1.as_deref());
    Ok(domain.becomes(Finding::Fix).kind_type.unwrap_or_default())
}

fn noted(kind: PatternKind, all: Vec<Noted>) -> impl Iterator<Item = Recurs> {
    all.into_iter().map(move |noted| {
        let id = format!("m{}", noted.memory);
        let piece = noted.unit.map_or(id.clone(), |unit| format!("u{unit}"));
        let case = Case { id, unit: noted.unit, at: noted.at, text: noted.title, repaired: None };
        Recurs { kind, key: noted.on.clone(), title: noted.on, piece, case }
    })
}

/// Confidence in a decision, from its outcomes.
#[derive(Clone, Debug, PartialEq)]
pub struct Confidence {
    /// From 0 to 1.
    pub now: f64,
    /// As stated when the decision was made.
    pub stated: Option<f64>,
    /// Outcomes with their evidence: `u3`, `m7`, `t12`.
    pub evidence: Vec<(DecisionOutcome, String)>,
}

impl Confidence {
    /// The current confidence and its reasons, for a person.
    pub fn text(&self) -> String {
        let evidence: Vec<String> = self.evidence.iter().map(|(outcome, by)| format!("{} ({by})", outcome.name())).collect();
        let since = if evidence.is_empty() { "no known outcome".to_string() } else { evidence.join(", ") };
        let said = self.stated.map(|said| format!("{said} said, ")).unwrap_or_default();
        format!("sure: {said}{} now; {since}", self.now)
    }

    /// The outcomes as JSON: `[{what, by, counts}]`.
    pub fn evidence_json(&self) -> Value {
        let one =
            |(outcome, by): &(DecisionOutcome, String)| json!({"what": outcome.name(), "by": by, "counts": outcome.counts()});
        self.evidence.iter().map(one).collect()
    }
}

/// Current confidence in a decision; `None` for other memories.
pub fn sure(store: &Store, memory: &MemoryRow) -> Result<Option<Confidence>> {
    let Some(project) = memory.project_id.filter(|_| memory.kind == MemoryKind::Decision) else { return Ok(None) };
    let mut settled = store.newest_memories(project, &[MemoryKind::Decision, MemoryKind::Lesson], SETTLED)?;
    settled.push(memory.clone());
    let unit = memory.unit.map(|unit| store.unit_by_row(unit)).transpose()?.flatten();
    Judge::of(store, project, &settled)?.judge(memory, unit.as_ref()).map(Some)
}

/// Judges the decisions of a project.
#[derive(Debug)]
pub struct Judge<'a> {
    store: &'a Store,
    /// Reverted commits, each with the command that reverted it.
    reverted: Vec<(Reverted, i64)>,
    contradicted_by: HashMap<i64, i64>,
}

impl Judge<'_> {
    /// Prepares to judge decisions. `settled` are the decisions and lessons to check for contradictions.
    pub fn of<'a>(store: &'a Store, project: i64, settled: &[MemoryRow]) -> Result<Judge<'a>> {
        let mut all = Vec::new();
        for reverting in store.reverting(project, REVERTS)? {
            for taken in reverted(&reverting.command) {
                let taken = match taken {
                    Reverted::Last => match store.commit_before(reverting.session, reverting.seq)? {
                        Some((Some(sha), _)) => Reverted::Sha(sha.to_lowercase()),
                        Some((None, Some(subject))) => Reverted::Subject(subject),
                        _ => continue,
                    },
                    taken => taken,
                };
                all.push((taken, reverting.tool_use));
            }
        }
        Ok(Judge { store, reverted: all, contradicted_by: contradicted(settled) })
    }

    /// Current confidence in a decision of `unit`.
    pub fn judge(&self, decision: &MemoryRow, unit: Option<&UnitRow>) -> Result<Confidence> {
        let mut evidence = Vec::new();
        if let Some(unit) = unit {
            let outcome = match unit.outcome {
                Some(UnitOutcome::Done) => Some(DecisionOutcome::Done),
                Some(UnitOutcome::Struggling | UnitOutcome::Abandoned) => Some(DecisionOutcome::Failed),
                _ => None,
            };
            evidence.extend(outcome.map(|outcome| (outcome, format!("u{}", unit.id))));
            let is_of = |taken: &Reverted| {
                unit.commits.iter().any(|made| match taken {
                    Reverted::Sha(sha) => made.sha.as_deref().is_some_and(|own| own.starts_with(sha) || sha.starts_with(own)),
                    Reverted::Subject(subject) => made.subject == *subject,
                    Reverted::Last => false,
                })
            };
            let by = self.reverted.iter().find(|(taken, _)| is_of(taken));
            evidence.extend(by.map(|(_, by)| (DecisionOutcome::Reverted, format!("t{by}"))));
        } else if let Some(task) = decision.text("task") {
            let task = self.store.memories_by_uuid(task)?.pop();
            let outcome = |task: &MemoryRow| match task.content.get("success")?.as_bool()? {
                true => Some((DecisionOutcome::Done, format!("m{}", task.id))),
                false => Some((DecisionOutcome::Failed, format!("m{}", task.id))),
            };
            evidence.extend(task.as_ref().and_then(outcome));
        }
        match (decision.superseded_by, self.contradicted_by.get(&decision.id)) {
            (Some(by), _) => evidence.push((DecisionOutcome::Superseded, format!("m{by}"))),
            (None, Some(by)) => evidence.push((DecisionOutcome::Contradicted, format!("m{by}"))),
            (None, None) => {}
        }
        let said = decision.content.get("confidence").and_then(serde_json::Value::as_f64);
        Ok(Confidence { now: confidence(said, evidence.iter().map(|(outcome, _)| *outcome)), stated: said, evidence })
    }
}
