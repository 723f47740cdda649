//! Use case: knowledge related to a task (`getRelatedKnowledge` of the RAD memory specification), ranked as in recall.

use super::ranked::{RecallQuery, RelatedUnit, by_own_words, related_units, similarity};
use crate::model::{MemoryKind, MemoryRow, Millis, UnitOutcome, Vector};
use crate::store::Store;
use anyhow::Result;

/// Maximum units to examine.
const PIECES: usize = 40;
/// Minimum share of the best score: for a unit, and for a decision or lesson by its own words.
const LEAST: f64 = 0.75;
const OWN: f64 = 0.3;
/// Minimum score of a unit if there are many.
const ENOUGH: f64 = 0.4;
/// Maximum other projects to search for lessons, the most recently active first, and the minimum share of the best
/// score there.
const OTHERS: usize = 20;
const AS_NEAR: f64 = 0.5;

/// A task: recorded by a program, or derived from a unit.
#[derive(Clone, Debug)]
pub struct RelatedTask {
    /// Its memory; `None` if only the unit exists.
    pub memory: Option<MemoryRow>,
    pub unit: Option<i64>,
    pub description: String,
    /// `None` if unknown.
    pub success: Option<bool>,
    pub at: Millis,
    pub similarity: f64,
}

/// The result; each list is in order of relevance.
#[derive(Clone, Debug, Default)]
pub struct RelatedKnowledge {
    pub tasks: Vec<RelatedTask>,
    pub decisions: Vec<(MemoryRow, f64)>,
    /// Lessons of other projects come last.
    pub lessons: Vec<(MemoryRow, f64)>,
}

/// A query.
#[derive(Clone, Copy, Debug)]
pub struct RelatedQuery<'a> {
    pub project: Option<i64>,
    pub description: &'a str,
    /// Only tasks of this kind.
    pub kind: Option<&'a str>,
    pub embedding: Option<(&'a str, &'a Vector)>,
    /// Maximum length of each list.
    pub limit: usize,
}

/// Runs the query.
pub fn related(store: &Store, question: &RelatedQuery) -> Result<RelatedKnowledge> {
    // The branch is ignored: a task is described independently of where the program runs.
    let query =
        |project, embedding| RecallQuery { project, request: Some(question.description), embedding, ..RecallQuery::default() };
    let ask = |project, embedding, share| related_units(store, &query(project, embedding), PIECES, share);
    let mut knowledge = RelatedKnowledge::default();
    let mut nearest: f64 = 0.0;
    if let Some(project) = question.project {
        let mut near = ask(project, question.embedding, LEAST)?;
        nearest = near.first().map_or(0.0, |best| best.score);
        let least = if store.knows_few_pieces()? { nearest * LEAST } else { (nearest * LEAST).max(ENOUGH) };
        near.retain(|unit| unit.score >= least);
        let own = by_own_words(store, &query(project, question.embedding))?;
        for unit in &near {
            let task = task(unit).filter(|task| question.kind.is_none_or(|kind| kind_of(task) == Some(kind)));
            knowledge.tasks.extend(task.filter(|_| knowledge.tasks.len() < question.limit));
            // A session covers many topics, so its memories must match by their own words. Records that a program made
            // with a task belong to that task.
            let is_near = |memory: &&MemoryRow| unit.unit.is_none() || own.get(&memory.id).is_some_and(|own| *own >= OWN);
            for memory in unit.memories.iter().filter(is_near) {
                match memory.kind {
                    MemoryKind::Decision if knowledge.decisions.len() < question.limit => {
                        knowledge.decisions.push((memory.clone(), similarity(unit.score)));
                    }
                    MemoryKind::Lesson if knowledge.lessons.len() < question.limit => {
                        knowledge.lessons.push((memory.clone(), similarity(unit.score)));
                    }
                    _ => {}
                }
            }
        }
    }
    let others = store.projects()?.into_iter().map(|(project, ..)| project.id).filter(|id| Some(*id) != question.project);
    let mut foreign: Vec<(MemoryRow, f64)> = Vec::new();
    for project in others.take(OTHERS).take_while(|_| knowledge.lessons.len() < question.limit) {
        for unit in ask(project, None, AS_NEAR)? {
            nearest = nearest.max(unit.score);
            let lessons = unit.memories.into_iter().filter(|memory| memory.kind == MemoryKind::Lesson);
            foreign.extend(lessons.map(|lesson| (lesson, unit.score)));
        }
    }
    foreign.retain(|(_, near)| *near >= nearest * AS_NEAR);
    foreign.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.created_at.cmp(&a.0.created_at)));
    foreign.truncate(question.limit - knowledge.lessons.len());
    knowledge.lessons.extend(foreign.into_iter().map(|(lesson, near)| (lesson, similarity(near))));
    Ok(knowledge)
}

fn kind_of(task: &RelatedTask) -> Option<&str> {
    task.memory.as_ref()?.kind_type.as_deref()
}

fn task(unit: &RelatedUnit) -> Option<RelatedTask> {
    let memory = unit.memories.iter().find(|memory| memory.kind == MemoryKind::Task).cloned();
    let of = similarity(unit.score);
    let unit = unit.unit.as_ref();
    let description_text = memory.as_ref().map(|memory| memory.text("task_description").unwrap_or(&memory.title));
    let description = description_text.or(unit.and_then(|unit| unit.title.as_deref().or(unit.intent.as_deref())))?.to_string();
    let said = memory.as_ref().and_then(|memory| memory.content.get("success")?.as_bool());
    let success = said.or(match unit.and_then(|unit| unit.outcome) {
        Some(UnitOutcome::Done | UnitOutcome::Answered) => Some(true),
        Some(UnitOutcome::Failing | UnitOutcome::Struggling | UnitOutcome::Abandoned) => Some(false),
        _ => None,
    });
    let at = memory.as_ref().map(|memory| memory.created_at).or(unit.map(|unit| unit.ended_at))?;
    Some(RelatedTask { memory, unit: unit.map(|unit| unit.id), description, success, at, similarity: of })
}
