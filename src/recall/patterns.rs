//! Use case: what recurs in a project, and what became of its decisions.

use crate::domains;
use crate::model::{Case, MemoryKind, MemoryRow, Past, Pattern, PatternKind, Suggestion, UnitOutcome, UnitRow};
use crate::rank::{Outcome, confidence, contradicted};
use crate::rules::{Finding, OFTEN, Recurs, Reverted, reason, recurring, reverted, shape};
use crate::store::Store;
use crate::store::patterns::Noted;
use anyhow::Result;
use serde_json::{Value, json};
use std::collections::HashMap;

/// Failures, and memories, that are looked at, the newest: where a person asks for patterns, and beside other things.
const MANY: usize = 5000;
const LATELY: usize = 150;
/// Memories of one file, and commands that speak of taking back.
const OF_FILE: usize = 50;
const REVERTS: usize = 200;
/// Suggestions that are given at once; files, and pieces of work, for which any are looked for.
const SUGGESTED: usize = 2;
const FILES: usize = 8;
const NEAREST: usize = 3;
/// What must speak for such a piece of work beside its age and its kin.
const NEAR: f64 = 0.5;
/// How sure a decision is that is called doubtful.
const DOUBTFUL: f64 = 0.5;
/// Decisions and lessons that may contradict each other: the newest.
pub(super) const SETTLED: usize = 200;

/// What recurs in a project: failures, fixes, and tags of lessons.
pub fn patterns(store: &Store, project: i64) -> Result<Vec<Pattern>> {
    among(store, project, MANY)
}

fn among(store: &Store, project: i64, most: usize) -> Result<Vec<Pattern>> {
    let fix = fix(store, project)?;
    let mended = store.mended_files(project, &fix, most)?;
    let by_unit: HashMap<i64, i64> = mended.iter().filter_map(|noted| Some((noted.unit?, noted.memory))).collect();
    let failures = store.failed_commands(project, most)?.into_iter().filter_map(|(tool, unit)| {
        let (program, shape) = shape(&tool)?;
        let mended = unit.and_then(|unit| by_unit.get(&unit)).map(|memory| format!("m{memory}"));
        let case = Case { id: format!("t{}", tool.id), unit, at: tool.received_at, said: reason(&tool), mended };
        let piece = unit.map_or(format!("s{}", tool.session_id), |unit| format!("u{unit}"));
        Some(Recurs { kind: PatternKind::Failure, key: format!("{program}: {shape}"), title: program, piece, case })
    });
    let lessons = store.tagged_lessons(project, most)?;
    let all = failures.chain(noted(PatternKind::Fix, mended)).chain(noted(PatternKind::Lesson, lessons));
    Ok(recurring(all.collect()))
}

/// Fixes that recur on one of some files: what is quick to know.
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
    // Of most files little is remembered, and to learn that is all that it costs then.
    if often.is_empty() {
        return Ok(Vec::new());
    }
    let fix = fix(store, project)?;
    let mut all = Vec::new();
    for path in often {
        all.extend(noted(PatternKind::Fix, store.mended_file(project, &fix, path, OF_FILE)?));
    }
    Ok(recurring(all))
}

/// What a session that begins is told beside what is recalled: what recurs on the files at which work stopped, and which of
/// the settled things were taken back. Little is looked at, since a hook waits for it.
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

/// What is suggested beside pieces of work that were found: what recurs in the nearest of them, on the files in play or by the
/// command that the request names, and which of their decisions were taken back.
pub fn suggested_beside(
    store: &Store,
    project: i64,
    found: &[Past],
    request: Option<&str>,
    files: &[String],
) -> Result<Vec<Suggestion>> {
    let near = found.iter().filter(|past| past.clarity.sum >= NEAR).take(NEAREST);
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

/// Whether a request names a command: whole words, and not one of two letters.
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
            let taken_back = sure.evidence.iter().find(|(outcome, _)| *outcome == Outcome::Reverted);
            if let Some((outcome, by)) = taken_back.filter(|_| sure.now < DOUBTFUL) {
                let (decision, why, by) = (Box::new(decision.clone()), outcome.name(), by.clone());
                all.push(Suggestion::Doubtful { decision, now: sure.now, why, by });
            }
        }
    }
    all.extend(patterns.into_iter().map(Suggestion::Recurs));
    all.truncate(SUGGESTED);
    Ok(all)
}

/// What the project's domain calls what was broken and is mended.
fn fix(store: &Store, project: i64) -> Result<String> {
    let domain = store.domain_of_project(project)?.unwrap_or_default();
    let domain = domains::of(Some(&domain.0), domain.1.as_deref());
    Ok(domain.type_for(Finding::Fix.name()).unwrap_or_default().to_string())
}

fn noted(kind: PatternKind, all: Vec<Noted>) -> impl Iterator<Item = Recurs> {
    all.into_iter().map(move |noted| {
        let id = format!("m{}", noted.memory);
        let piece = noted.unit.map_or(id.clone(), |unit| format!("u{unit}"));
        let case = Case { id, unit: noted.unit, at: noted.at, said: noted.title, mended: None };
        Recurs { kind, key: noted.on.clone(), title: noted.on, piece, case }
    })
}

/// How sure a decision is by what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Confidence {
    /// From 0 to 1.
    pub now: f64,
    /// What was said when it was made.
    pub said: Option<f64>,
    /// What became of it, and by what that is known: `u3`, `m7`, `t12`.
    pub evidence: Vec<(Outcome, String)>,
}

impl Confidence {
    /// How sure a decision is now, and what moved it, for a person.
    pub fn text(&self) -> String {
        let evidence: Vec<String> = self.evidence.iter().map(|(outcome, by)| format!("{} ({by})", outcome.name())).collect();
        let since = if evidence.is_empty() { "nothing is known to have come of it".to_string() } else { evidence.join(", ") };
        let said = self.said.map(|said| format!("{said} said, ")).unwrap_or_default();
        format!("sure: {said}{} now; {since}", self.now)
    }

    /// What moved it, as JSON: `[{what, by, counts}]`.
    pub fn evidence_json(&self) -> Value {
        let one = |(outcome, by): &(Outcome, String)| json!({"what": outcome.name(), "by": by, "counts": outcome.counts()});
        self.evidence.iter().map(one).collect()
    }
}

/// How sure a decision of the store is now; `None` for what is no decision.
pub fn sure(store: &Store, memory: &MemoryRow) -> Result<Option<Confidence>> {
    let Some(project) = memory.project_id.filter(|_| memory.kind == MemoryKind::Decision) else { return Ok(None) };
    let mut settled = store.newest_memories(project, &[MemoryKind::Decision, MemoryKind::Lesson], SETTLED)?;
    settled.push(memory.clone());
    let unit = memory.unit.map(|unit| store.unit_by_row(unit)).transpose()?.flatten();
    Judge::of(store, project, &settled)?.judge(memory, unit.as_ref()).map(Some)
}

/// Knows what was taken back in a project.
#[derive(Debug)]
pub struct Judge<'a> {
    store: &'a Store,
    /// Commits that were reverted, with the command that did.
    reverted: Vec<(Reverted, i64)>,
    against: HashMap<i64, i64>,
}

impl Judge<'_> {
    /// `settled` are the decisions and lessons that may contradict each other.
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
        Ok(Judge { store, reverted: all, against: contradicted(settled) })
    }

    /// How sure a decision is now; `unit` is the piece of work that it is of.
    pub fn judge(&self, decision: &MemoryRow, unit: Option<&UnitRow>) -> Result<Confidence> {
        let mut evidence = Vec::new();
        if let Some(unit) = unit {
            let outcome = match unit.outcome {
                Some(UnitOutcome::Done) => Some(Outcome::Done),
                Some(UnitOutcome::Struggling | UnitOutcome::Abandoned) => Some(Outcome::Failed),
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
            evidence.extend(by.map(|(_, by)| (Outcome::Reverted, format!("t{by}"))));
        } else if let Some(task) = decision.text("task") {
            let task = self.store.memories_by_uuid(task)?.pop();
            let outcome = |task: &MemoryRow| match task.content.get("success")?.as_bool()? {
                true => Some((Outcome::Done, format!("m{}", task.id))),
                false => Some((Outcome::Failed, format!("m{}", task.id))),
            };
            evidence.extend(task.as_ref().and_then(outcome));
        }
        match (decision.superseded_by, self.against.get(&decision.id)) {
            (Some(by), _) => evidence.push((Outcome::Superseded, format!("m{by}"))),
            (None, Some(by)) => evidence.push((Outcome::Contradicted, format!("m{by}"))),
            (None, None) => {}
        }
        let said = decision.content.get("confidence").and_then(serde_json::Value::as_f64);
        Ok(Confidence { now: confidence(said, evidence.iter().map(|(outcome, _)| *outcome)), said, evidence })
    }
}
