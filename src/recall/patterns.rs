//! Use case: recurring patterns in a project, and outcomes of its decisions.

use crate::domains;
use crate::model::{Case, Finding, MemoryKind, MemoryRow, Pattern, PatternKind, RankedUnit, Suggestion, UnitOutcome, UnitRow};
use crate::rank::{DecisionOutcome, confidence, contradicted};
use crate::rules::{OFTEN, Recurs, Reverted, reason, recurring, reverted, shape};
use crate::store::Store;
use crate::store::patterns::Noted;
use anyhow::Result;
use serde_json::{Value, json};
use std::collections::HashMap;

/// Number of newest failures and memories to examine: for `nmem patterns`, and for suggestions.
const MANY: usize = 5000;
const LATELY: usize = 150;
/// Maximum memories of one file, and maximum commands that may revert something.
const OF_FILE: usize = 50;
const REVERTS: usize = 200;
/// Maximum suggestions at once, and maximum files and units to check for them.
const SUGGESTED: usize = 2;
const FILES: usize = 8;
const NEAREST: usize = 3;
/// Minimum relevance of such a unit, without recency and shared files.
const NEAR: f64 = 0.5;
/// Decisions below this confidence are doubtful.
const DOUBTFUL: f64 = 0.5;
/// Number of newest decisions and lessons to check for contradictions.
pub(super) const SETTLED: usize = 200;

/// Recurring failures, fixes and lesson tags of a project.
pub fn patterns(store: &Store, project: i64) -> Result<Vec<Pattern>> {
    among(store, project, MANY)
}

fn among(store: &Store, project: i64, most: usize) -> Result<Vec<Pattern>> {
    let fix = fix(store, project)?;
    let repaired = store.fixes_of_files(project, &fix, most)?;
    let by_unit: HashMap<i64, i64> = repaired.iter().filter_map(|noted| Some((noted.unit?, noted.memory))).collect();
    let failures = store.failed_commands(project, most)?.into_iter().filter_map(|(tool, unit)| {
        let (program, shape) = shape(&tool)?;
        let repaired = unit.and_then(|unit| by_unit.get(&unit)).map(|memory| format!("m{memory}"));
        let case = Case { id: format!("t{}", tool.id), unit, at: tool.received_at, text: reason(&tool), repaired };
        let piece = unit.map_or(format!("s{}", tool.session_id), |unit| format!("u{unit}"));
        Some(Recurs { kind: PatternKind::Failure, key: format!("{program}: {shape}"), title: program, piece, case })
    });
    let lessons = store.tagged_lessons(project, most)?;
    let all = failures.chain(noted(PatternKind::Fix, repaired)).chain(noted(PatternKind::Lesson, lessons));
    Ok(recurring(all.collect()))
}

/// Recurring fixes in any of the given files; a quick check.
pub fn patterns_of(store: &Store, project: i64, files: &[String]) -> Result<Vec<Pattern>> {
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let mut often = Vec::new();
    for path in files {
        if store.is_often_changed(project, path, OFTEN)? {
            often.push(path);
        }
    }
    // Most files have few memories, so this check is usually the whole cost.
    if often.is_empty() {
        return Ok(Vec::new());
    }
    let fix = fix(store, project)?;
    let mut all = Vec::new();
    for path in often {
        all.extend(noted(PatternKind::Fix, store.fixes_of_file(project, &fix, path, OF_FILE)?));
    }
    Ok(recurring(all))
}

/// Suggestions for a session start: patterns in the last edited files, and decisions that were reverted. Examines
/// little, because a hook waits.
pub(super) fn suggested_at_start(
    store: &Store,
    project: i64,
    files: &[String],
    settled: &[MemoryRow],
) -> Result<Vec<Suggestion>> {
    let files = &files[..files.len().min(FILES)];
    let patterns = patterns_of(store, project, files)?;
    suggested(store, project, patterns, settled)
}

/// Suggestions next to ranked units: patterns in the best of them, in the files in play or of a command in the request,
/// and their reverted decisions.
pub fn suggested_beside(
    store: &Store,
    project: i64,
    found: &[RankedUnit],
    request: Option<&str>,
    files: &[String],
) -> Result<Vec<Suggestion>> {
    let near = found.iter().filter(|past| past.relevance.sum >= NEAR).take(NEAREST);
    let near: Vec<i64> = near.map(|past| past.unit.id).collect();
    let in_play = |pattern: &Pattern| {
        pattern.kind == PatternKind::Fix && files.contains(&pattern.title)
            || pattern.kind == PatternKind::Failure && request.is_some_and(|request| holds_word(request, &pattern.title))
            || pattern.cases.iter().any(|case| case.unit.is_some_and(|unit| near.contains(&unit)))
    };
    let mut patterns = among(store, project, LATELY)?;
    patterns.retain(in_play);
    let settled: Vec<MemoryRow> = found.iter().flat_map(|past| &past.memories).cloned().collect();
    suggested(store, project, patterns, &settled)
}

/// Whether a request names a command as a whole word of more than two letters.
fn holds_word(request: &str, title: &str) -> bool {
    let ends = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    title.len() >= 4
        && request
            .match_indices(title)
            .any(|(at, _)| ends(request[..at].chars().next_back()) && ends(request[at + title.len()..].chars().next()))
}

fn suggested(store: &Store, project: i64, patterns: Vec<Pattern>, settled: &[MemoryRow]) -> Result<Vec<Suggestion>> {
    let mut all = Vec::new();
    let has_decisions = settled.iter().any(|memory| memory.kind == MemoryKind::Decision);
    let judge = has_decisions.then(|| Judge::of(store, project, settled)).transpose()?;
    if let Some(judge) = judge.filter(|judge| !judge.reverted.is_empty()) {
        for decision in settled.iter().filter(|memory| memory.kind == MemoryKind::Decision) {
            let unit = decision.unit.map(|unit| store.unit_by_row(unit)).transpose()?.flatten();
            let sure = judge.judge(decision, unit.as_ref())?;
            let retracted = sure.evidence.iter().find(|(outcome, _)| *outcome == DecisionOutcome::Reverted);
            if let Some((outcome, by)) = retracted.filter(|_| sure.now < DOUBTFUL) {
                let (decision, why, by) = (Box::new(decision.clone()), outcome.name(), by.clone());
                all.push(Suggestion::Doubtful { decision, now: sure.now, why, by });
            }
        }
    }
    all.extend(patterns.into_iter().map(Suggestion::Recurs));
    all.truncate(SUGGESTED);
    Ok(all)
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
    /// `settled` are the decisions and lessons to check for contradictions.
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
