//! Use case: what is known that a task has to do with (`getRelatedKnowledge` of the RAD memory specification), in recall's order.

use super::patterns::{Confidence, Judge, SETTLED};
use super::pieces::{Piece, by_own_words, pieces, similarity};
use super::ranked::Asked;
use crate::model::{MemoryKind, MemoryRow, Millis, UnitOutcome, Vector};
use crate::store::Store;
use anyhow::Result;

/// Pieces of work that are looked at.
const PIECES: usize = 40;
/// Of the best score, what is still near: of a piece, and of a decision or a lesson by its own words.
const LEAST: f64 = 0.75;
const OWN: f64 = 0.3;
/// What a piece must come to at all, where more than a few are known.
const ENOUGH: f64 = 0.4;
/// Other projects that are asked for lessons, those that were last at work; and how near a piece of them must be, of what the
/// nearest of all pieces is.
const OTHERS: usize = 20;
const AS_NEAR: f64 = 0.5;

/// A task that was done, or not: recorded by a program, or a piece of work.
#[derive(Clone, Debug)]
pub struct Task {
    /// The memory that tells of it; none: only the piece of work is known.
    pub memory: Option<MemoryRow>,
    pub unit: Option<i64>,
    pub description: String,
    /// `None`: nobody knows.
    pub success: Option<bool>,
    pub at: Millis,
    pub similarity: f64,
}

/// What is known, each list the nearest first.
#[derive(Clone, Debug, Default)]
pub struct Known {
    pub tasks: Vec<Task>,
    pub decisions: Vec<(MemoryRow, f64, Confidence)>,
    /// Those of other projects behind the own.
    pub lessons: Vec<(MemoryRow, f64)>,
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    pub project: Option<i64>,
    pub description: &'a str,
    /// Only tasks of this kind.
    pub kind: Option<&'a str>,
    pub meaning: Option<(&'a str, &'a Vector)>,
    /// Of each list.
    pub limit: usize,
}

/// What a store knows.
pub fn related(store: &Store, question: &Question) -> Result<Known> {
    // Not the branch: a task is described, and asked for wherever the program stands.
    let asked = |project, meaning| Asked { project, request: Some(question.description), meaning, ..Asked::default() };
    let ask = |project, meaning, share| pieces(store, &asked(project, meaning), PIECES, share);
    let mut known = Known::default();
    let mut nearest: f64 = 0.0;
    if let Some(project) = question.project {
        let mut near = ask(project, question.meaning, LEAST)?;
        nearest = near.first().map_or(0.0, |best| best.near);
        let least = if store.knows_few_pieces()? { nearest * LEAST } else { (nearest * LEAST).max(ENOUGH) };
        near.retain(|piece| piece.near >= least);
        let settled = store.newest_memories(project, &[MemoryKind::Decision, MemoryKind::Lesson], SETTLED)?;
        let judge = Judge::of(store, project, &settled)?;
        let own = by_own_words(store, &asked(project, question.meaning))?;
        for piece in &near {
            let task = task(piece).filter(|task| question.kind.is_none_or(|kind| kind_of(task) == Some(kind)));
            known.tasks.extend(task.filter(|_| known.tasks.len() < question.limit));
            // A session does many things; what a program recorded with a task is about that task.
            let is_near = |memory: &&MemoryRow| piece.unit.is_none() || own.get(&memory.id).is_some_and(|own| *own >= OWN);
            for memory in piece.memories.iter().filter(is_near) {
                match memory.kind {
                    MemoryKind::Decision if known.decisions.len() < question.limit => {
                        let confidence = judge.judge(memory, piece.unit.as_ref())?;
                        known.decisions.push((memory.clone(), similarity(piece.near), confidence));
                    }
                    MemoryKind::Lesson if known.lessons.len() < question.limit => {
                        known.lessons.push((memory.clone(), similarity(piece.near)));
                    }
                    _ => {}
                }
            }
        }
    }
    let others = store.projects()?.into_iter().map(|(project, ..)| project.id).filter(|id| Some(*id) != question.project);
    let mut foreign: Vec<(MemoryRow, f64)> = Vec::new();
    for project in others.take(OTHERS).take_while(|_| known.lessons.len() < question.limit) {
        for piece in ask(project, None, AS_NEAR)? {
            nearest = nearest.max(piece.near);
            let lessons = piece.memories.into_iter().filter(|memory| memory.kind == MemoryKind::Lesson);
            foreign.extend(lessons.map(|lesson| (lesson, piece.near)));
        }
    }
    foreign.retain(|(_, near)| *near >= nearest * AS_NEAR);
    foreign.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.created_at.cmp(&a.0.created_at)));
    foreign.truncate(question.limit - known.lessons.len());
    known.lessons.extend(foreign.into_iter().map(|(lesson, near)| (lesson, similarity(near))));
    Ok(known)
}

fn kind_of(task: &Task) -> Option<&str> {
    task.memory.as_ref()?.kind_type.as_deref()
}

fn task(piece: &Piece) -> Option<Task> {
    let memory = piece.memories.iter().find(|memory| memory.kind == MemoryKind::Task).cloned();
    let unit = piece.unit.as_ref();
    let told = memory.as_ref().map(|memory| memory.text("task_description").unwrap_or(&memory.title));
    let description = told.or(unit.and_then(|unit| unit.intent.as_deref()))?.to_string();
    let said = memory.as_ref().and_then(|memory| memory.content.get("success")?.as_bool());
    let success = said.or(match unit.and_then(|unit| unit.outcome) {
        Some(UnitOutcome::Done | UnitOutcome::Answered) => Some(true),
        Some(UnitOutcome::Struggling | UnitOutcome::Abandoned) => Some(false),
        _ => None,
    });
    let at = memory.as_ref().map(|memory| memory.created_at).or(unit.map(|unit| unit.ended_at))?;
    Some(Task { memory, unit: unit.map(|unit| unit.id), description, success, at, similarity: similarity(piece.near) })
}
