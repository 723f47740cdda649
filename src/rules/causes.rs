//! Problems and their solutions: a check that failed, changes, the same check green; and what the agent found to be the
//! cause of what the person reported.

use super::cues::{Words, begins_with, holds, is_one_of};
use super::failures::{Failure, failures, program};
use super::finding::{Cue, Finding};
use super::prose::{Prose, word_count};
use super::said::{is_check, is_statement};
use super::subject::of_request;
use super::told::{PASSED_BEFORE, Told, alike, asked_for};
use super::turns::{Turn, is_inside, is_project_change};
use crate::model::{MemoryFile, Provenance, Source, ToolUseRow};

/// Words with which a cause is named.
const CAUSES: Words = "root cause|the bug was|the bug is|the bug occurred|the issue was|the issue is|the problem was|the problem is|caused by|this happens because|this happened because|happens because|failed because|fails because|the reason is|the reason was|the cause was|the cause is|turns out";
/// Words of somebody who isn't sure, or speaks of what isn't.
const UNSURE: Words =
    "likely|might|maybe|could be|probably|perhaps|possibly|not sure|if |may be|would|should|i think|i suspect|seems|is not";
/// Changes that make a line of a fix.
const FIXED: Words = "fix|fixed|fixes|now |added|changed|updated|the fix|moved|replaced|removed";

/// A problem that was solved.
pub struct Problem {
    /// As a memory of its own.
    told: Told,
    /// As facts of the change that solved it.
    facts: Vec<String>,
    /// It was there before the work on it began.
    is_repair: bool,
    took_long: bool,
}

/// Runs of a check that failed before it passed, for it to be told by itself.
const LONG: usize = 3;
/// Words of a cause that says something.
const CAUSE_WORDS: usize = 8;

/// What the message names as the cause of a problem; a guess is none.
pub fn cause(prose: &Prose) -> Option<&str> {
    let mut parts = prose.parts.iter().enumerate();
    let at = parts.find_map(|(at, part)| {
        let lower = part.text.to_ascii_lowercase();
        let sure = !holds(UNSURE, &lower) && !part.text.ends_with('?') && !part.is_point;
        let named = holds(CAUSES, &lower) && word_count(&part.text) >= CAUSE_WORDS && sure && !part.text.ends_with(':');
        let below = (part.under.contains("root cause") || part.under == "cause" || part.under == "the problem")
            && !part.is_point
            && sure
            && is_statement(&part.text)
            && word_count(&part.text) >= CAUSE_WORDS - 2;
        (named || below).then_some(at)
    })?;
    Some(without_label(&prose.parts[at].text))
}

/// `Root cause: the lock …` → `the lock …`
fn without_label(text: &str) -> &str {
    match text.split_once(": ") {
        Some((label, rest))
            if word_count(label) <= 4 && label.to_ascii_lowercase().contains("cause") && word_count(rest) >= 5 =>
        {
            rest
        }
        _ => text,
    }
}

/// Problems that were solved in the unit, in order.
pub fn problems(turns: &[Turn]) -> Vec<Problem> {
    let mut found = Vec::new();
    let all: Vec<&ToolUseRow> = turns.iter().flat_map(|turn| turn.tools.iter().copied()).collect();
    let place = |tool: &ToolUseRow| turns.iter().position(|turn| turn.tools.iter().any(|own| own.id == tool.id)).unwrap_or(0);
    let changed_after =
        |at: usize| turns[at..].iter().position(|turn| turn.tools.iter().any(|tool| is_project_change(tool))).map(|n| at + n);
    let mut causes: Vec<(usize, Told)> = Vec::new();
    for (at, turn) in turns.iter().enumerate() {
        // A cause that is followed by changes at once is a problem that was solved.
        let Some((cause, fixed)) = cause(&turn.prose).zip(changed_after(at).filter(|fixed| *fixed <= at + 1)) else { continue };
        if causes.iter().any(|(_, told)| alike(&told.title, cause)) {
            continue;
        }
        let mut over = vec![at, fixed];
        over.dedup();
        let mut told = Told::observation(
            format!("cause:p{}", turn.closing.map_or(0, |closing| closing.id)),
            Finding::Fix,
            cause,
            over.clone(),
        );
        told.subtitle = fix_line(turns, &over, cause).or_else(|| turn.asked.map(|asked| asked_for(&asked.text)));
        told.cues = vec![Cue::Solution, Cue::Mechanism];
        told.files = changed_files(turns[fixed].tools.iter().copied());
        told.sources = over.iter().flat_map(|at| turns[*at].said()).collect();
        told.sources
            .extend(turns[fixed].tools.iter().filter(|tool| is_project_change(tool)).map(|tool| Source::ToolUse(tool.id)));
        for at in &over {
            turns[*at].prose.points().take(3).for_each(|point| told.fact(point));
        }
        causes.push((at, told));
    }
    for failure in failures(&all).into_iter().filter(|failure| !is_look(failure.command()) && failure.is_told()) {
        let Some(passed) = failure.passed.filter(|_| failure.edits.iter().any(|edit| is_project_change(edit))) else { continue };
        let (from, to) = (place(failure.failed[0]), place(passed));
        let known = causes.iter_mut().find(|(_, told)| told.turns.iter().any(|at| (from..=to).contains(at)));
        if let Some((_, told)) = known {
            told.fact(&line(&failure));
            told.sources.extend([Source::ToolUse(failure.failed[0].id), Source::ToolUse(passed.id)]);
            continue;
        }
        found.push(Problem {
            told: solved(turns, &failure, (from, to)),
            facts: vec![line(&failure)],
            is_repair: !failure.own_making && wanted(turns),
            took_long: failure.failed.len() >= LONG && !failure.reason().is_empty() && wanted(turns),
        });
    }
    found.extend(causes.into_iter().map(|(_, told)| Problem {
        facts:
            told.facts.iter().filter(|fact| fact.starts_with('`')).cloned().chain([format!("Cause: {}", told.title)]).collect(),
        told,
        is_repair: true,
        took_long: false,
    }));
    found
}

/// Adds problems to the changes that solved them: cause and failure are facts of the change, which is a fix by them. What no
/// change takes in, and a failure that took many attempts, is a memory of its own.
pub fn merge(told: &mut Vec<Told>, problems: Vec<Problem>) {
    let mut left_out = None;
    for problem in problems {
        let turn = problem.told.turns.last().copied();
        let change = told.iter_mut().find(|change| {
            (change.key.starts_with("commit:") || change.key.starts_with("edits:"))
                && turn.is_some_and(|turn| change.turns.contains(&turn))
        });
        match change {
            Some(change) if !problem.took_long => {
                // That a check passed is told with how it failed.
                let told = |fact: &String| problem.facts.iter().any(|known| known.split(' ').take(2).eq(fact.split(' ').take(2)));
                change.facts.retain(|fact| !fact.ends_with(PASSED_BEFORE) || !told(fact));
                problem.facts.iter().for_each(|fact| change.fact_first(fact));
                change.sources.extend(&problem.told.sources);
                if problem.is_repair {
                    change.finding = Some(Finding::Fix);
                    change.cues = vec![Cue::Solution, Cue::Change];
                }
            }
            _ if problem.is_repair || problem.took_long => told.push(problem.told),
            // What work broke and mended by itself is told where nothing else is.
            _ => left_out = Some(problem.told),
        }
    }
    if told.is_empty() {
        told.extend(left_out);
    }
}

/// Whether the unit is about something that is broken: what fails on the way of other work is of its own making.
fn wanted(turns: &[Turn]) -> bool {
    let asked = turns.iter().filter_map(|turn| turn.asked);
    asked.take(2).any(|asked| of_request(&asked.text) == Some(Finding::Fix))
}

fn solved(turns: &[Turn], failure: &Failure, (from, to): (usize, usize)) -> Told {
    let command = named(failure);
    let reason = failure.reason();
    let title = match reason.is_empty() {
        true => format!("`{command}` failed and passes after changes"),
        false => format!("Fixed `{command}`: {reason}"),
    };
    let mut over: Vec<usize> = (from..=to).collect();
    over.dedup();
    let first = failure.failed[0];
    let mut told = Told::observation(format!("fix:t{}", first.id), Finding::Fix, &title, over.clone());
    told.subtitle = fix_line(turns, &over, &title);
    if told.subtitle.is_none() {
        told.subtitle = turns[from].asked.map(|asked| asked_for(&asked.text)).filter(|asked| !asked.is_empty());
    }
    told.fact(&line(failure));
    told.cues = vec![Cue::Solution, Cue::Change];
    // The reason is what a tool printed.
    told.provenance = Provenance::Tool;
    told.files = changed_files(failure.edits.iter().copied());
    told.sources = failure.failed.iter().chain(failure.edits.iter()).map(|tool| Source::ToolUse(tool.id)).collect();
    told.sources.extend(failure.passed.map(|tool| Source::ToolUse(tool.id)));
    told.sources.extend(turns[to].said());
    told
}

/// `go test` failed twice (undefined: x), and passed after changes to `a.go`
fn line(failure: &Failure) -> String {
    let times = match failure.failed.len() {
        1 => String::new(),
        n => format!(" {n} times"),
    };
    let reason = failure.reason();
    let reason = if reason.is_empty() { String::new() } else { format!(" ({})", super::prose::cut(&reason, 110)) };
    let files = changed_files(failure.edits.iter().copied());
    let names: Vec<String> = files.iter().take(3).map(|file| format!("`{}`", file.path)).collect();
    let after = if names.is_empty() { String::new() } else { format!(", passed after changes to {}", names.join(", ")) };
    format!("`{}` failed{times}{reason}{after}", named(failure))
}

fn named(failure: &Failure) -> String {
    let program = program(failure.command());
    if program.is_empty() { super::prose::cut(failure.command(), 60) } else { program }
}

/// The sentence that says what the fix was.
fn fix_line(turns: &[Turn], over: &[usize], not: &str) -> Option<String> {
    let parts = over.iter().flat_map(|at| &turns[*at].prose.parts);
    let says = |text: &str| {
        let lower = text.to_lowercase();
        begins_with(FIXED, &lower) && is_statement(text) && !is_check(text) && !alike(text, not)
    };
    parts.map(|part| part.text.as_str()).find(|text| says(text)).map(String::from)
}

fn changed_files<'a>(tools: impl Iterator<Item = &'a ToolUseRow>) -> Vec<MemoryFile> {
    let paths = tools.filter(|tool| is_project_change(tool)).filter_map(|tool| tool.path.clone()).filter(|path| is_inside(path));
    let paths: std::collections::BTreeSet<String> = paths.collect();
    paths.into_iter().map(|path| MemoryFile { path, modified: true, hash: None }).collect()
}

/// Whether a command only looks: that `grep` finds nothing is no failure.
pub fn is_look(command: &str) -> bool {
    let program = program(command);
    let mut words = program.split(' ');
    match words.next().unwrap_or_default().rsplit('/').next().unwrap_or_default() {
        "git" => words.next().is_none_or(|verb| {
            is_one_of("log|diff|show|status|branch|grep|ls-files|rev-parse|cat-file|ls-tree|check-ignore", verb)
        }),
        name => {
            name.is_empty()
                || is_one_of(
                    "ls|cat|grep|rg|find|head|tail|test|which|wc|sed|awk|echo|stat|diff|pgrep|ps|kill|pkill|sleep|jq|for|if|while|[",
                    name,
                )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_what_the_message_is_sure_of() {
        let found = |text: &str| cause(&Prose::of(text)).map(String::from);
        assert_eq!(
            found("Found the root cause.\n\n**Root Cause**: The `State` struct was missing the field.").as_deref(),
            Some("The `State` struct was missing the field.")
        );
        assert_eq!(
            found("### Root Cause\nThe map is iterated in undefined order.").as_deref(),
            Some("The map is iterated in undefined order.")
        );
        assert_eq!(
            found("The bug was that it walked all commits of main.").as_deref(),
            Some("The bug was that it walked all commits of main.")
        );
        assert_eq!(found("The issue is likely not a caching bug of the library."), None);
        assert_eq!(found("The issue is:"), None);
        assert_eq!(found("All good now."), None);
    }
}
