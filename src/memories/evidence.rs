//! What commands show, whatever anybody says: a check that failed and passes after changes, a command that was given up,
//! a command that worked after another of its program failed.

use super::memory::RuleMemory;
use crate::choice::{Turn, is_inside, is_project_change};
use crate::model::{Finding, MemoryFile, Provenance, Source, ToolUseRow};
use crate::rules::failures::{Failure, failures, is_look, program};
use crate::rules::worked_after;
use crate::text::cut;

/// Failures of a command after which it counts as given up, or as long in solving.
const MANY: usize = 3;
/// Memories of one sort in a unit.
const MOST: usize = 2;

/// Adds what commands show: to the memory of the same turn, else as a memory of its own.
pub fn add(memories: &mut Vec<RuleMemory>, turns: &[Turn]) {
    let all: Vec<&ToolUseRow> = turns.iter().flat_map(|turn| turn.tools.iter().copied()).collect();
    let failures = failures(&all);
    for failure in failures.iter().filter(|failure| !is_look(failure.command()) && failure.is_clear()) {
        let Some(passed) = failure.passed.filter(|_| failure.edits.iter().any(|edit| is_project_change(edit))) else { continue };
        let (from, to) = (turn_of(turns, failure.failed[0]), turn_of(turns, passed));
        let is_work = |memory: &RuleMemory| !memory.is_summary() && !memory.is_decided();
        let in_turns = |memory: &RuleMemory| is_work(memory) && memory.turns.iter().any(|at| (from..=to).contains(at));
        match memories.iter_mut().rev().find(|memory| in_turns(memory)) {
            Some(memory) if !failure.own_making || memory.finding == Some(Finding::Fix) => {
                memory.finding = Some(Finding::Fix);
                memory.fact(&line(failure));
            }
            // What the work broke by itself says nothing about the project.
            _ if failure.own_making && failure.failed.len() < MANY => {}
            _ if failure.reason().is_empty() => {}
            _ => memories.push(solved(turns, failure, (from, to))),
        }
    }
    memories.extend(given_up(&failures, &all, turns).into_iter().take(MOST));
    memories.extend(worked_after(&all).into_iter().take(MOST).map(|(failed, worked)| {
        let title = format!("`{}` works", cut(worked.content.as_deref().unwrap_or_default(), 100));
        let at = turn_of(turns, worked);
        let key = format!("works:t{}", worked.id);
        let mut memory = RuleMemory::new(key, Some(Finding::WorkingCommand), &title, vec![at]);
        let reason = crate::rules::failures::reason(failed);
        let failed_line = cut(failed.content.as_deref().unwrap_or_default(), 80);
        memory.fact(&match reason.is_empty() {
            true => format!("`{failed_line}` failed before it"),
            false => format!("`{failed_line}` failed before it: {}", cut(&reason, 110)),
        });
        memory.provenance = Provenance::Tool;
        memory.sources = vec![Source::ToolUse(failed.id), Source::ToolUse(worked.id)];
        memory
    }));
}

fn turn_of(turns: &[Turn], tool: &ToolUseRow) -> usize {
    turns.iter().position(|turn| turn.tools.iter().any(|own| own.id == tool.id)).unwrap_or(0)
}

fn solved(turns: &[Turn], failure: &Failure, (from, to): (usize, usize)) -> RuleMemory {
    let title = format!("Fixed `{}`: {}", named(failure), cut(&failure.reason(), 110));
    let first = failure.failed[0];
    let mut memory = RuleMemory::new(format!("fix:t{}", first.id), Some(Finding::Fix), &title, (from..=to).collect());
    memory.fact(&line(failure));
    memory.provenance = Provenance::Tool;
    memory.files = changed_files(&failure.edits);
    memory.sources = failure.failed.iter().chain(&failure.edits).map(|tool| Source::ToolUse(tool.id)).collect();
    memory.sources.extend(failure.passed.map(|tool| Source::ToolUse(tool.id)));
    memory.sources.extend(turns[to].said());
    memory
}

/// `go test` failed twice (undefined: x), passed after changes to `a.go`
fn line(failure: &Failure) -> String {
    let times = match failure.failed.len() {
        1 => String::new(),
        n => format!(" {n} times"),
    };
    let reason = failure.reason();
    let reason = if reason.is_empty() { String::new() } else { format!(" ({})", cut(&reason, 90)) };
    let files = changed_files(&failure.edits);
    let names: Vec<String> = files.iter().take(2).map(|file| format!("`{}`", file.path)).collect();
    let after = if names.is_empty() { String::new() } else { format!(", passed after changes to {}", names.join(", ")) };
    format!("`{}` failed{times}{reason}{after}", named(failure))
}

fn named(failure: &Failure) -> String {
    let program = program(failure.command());
    if program.is_empty() { cut(failure.command(), 60) } else { program }
}

fn changed_files(tools: &[&ToolUseRow]) -> Vec<MemoryFile> {
    let paths = tools.iter().filter(|tool| is_project_change(tool)).filter_map(|tool| tool.path.clone());
    let paths: std::collections::BTreeSet<String> = paths.filter(|path| is_inside(path)).collect();
    paths.into_iter().map(|path| MemoryFile { path, modified: true, hash: None }).collect()
}

/// Commands that failed again and again and never passed.
fn given_up(failures: &[Failure], all: &[&ToolUseRow], turns: &[Turn]) -> Vec<RuleMemory> {
    let last = all.last().map_or(0, |tool| tool.seq);
    let is_given_up = |failure: &&Failure| {
        let end = failure.failed.last().map_or(0, |tool| tool.seq);
        failure.passed.is_none()
            && failure.failed.len() >= MANY
            && !is_look(failure.command())
            && !failure.failed[0].is_check()
            && end < last
    };
    let memory = |failure: &Failure| {
        let (reason, program) = (failure.reason(), program(failure.command()));
        if reason.is_empty() || program.is_empty() {
            return None;
        }
        let first = failure.failed[0];
        let title = format!("`{program}` failed {} times and was given up: {}", failure.failed.len(), cut(&reason, 100));
        let key = format!("gaveup:t{}", first.id);
        let mut memory = RuleMemory::new(key, Some(Finding::FailedApproach), &title, vec![turn_of(turns, first)]);
        memory.provenance = Provenance::Tool;
        memory.fact(&format!("last tried: `{}`", cut(failure.command(), 160)));
        memory.sources = failure.failed.iter().map(|tool| Source::ToolUse(tool.id)).collect();
        Some(memory)
    };
    failures.iter().filter(is_given_up).filter_map(memory).collect()
}
