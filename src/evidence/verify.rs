//! The checks of a working tree: which passed, failed, or ran before the last change.

use super::git_program::ProjectRecords;
use crate::command_kind::{classify, entered_folder};
use crate::distil::commands::{did_not_run, is_look, programs, response};
use crate::distil::summary::claims_checks;
use crate::files;
use crate::model::{CheckState, CommandKind, GitState, Millis, ToolUseRow, Verification, VerifiedCheck};
use crate::store::Store;
use anyhow::Result;
use std::path::Path;

/// Runs after which a check counts as one of the project.
const RAN: usize = 2;
/// Milliseconds before the newest run after which a check counts as given up.
const GIVEN_UP: Millis = 14 * 86_400_000;
/// Maximum checks to name, and changed files to look at.
const CHECKS: usize = 8;
const FILES: usize = 500;

/// Finds the known checks of a working tree, and their last runs.
pub fn verify(recorded: &ProjectRecords) -> Result<Verification> {
    let root = files::canonical(&recorded.git.root).unwrap_or_else(|_| recorded.git.root.clone());
    let changed = recorded.git.uncommitted()?;
    let by_session = recorded.store.last_edit(recorded.scope, &root)?;
    // A person changes files, too.
    let by_time = changed.iter().take(FILES).filter_map(|path| Some((files::changed_at(&root.join(path))?, path.clone())));
    let last_change = by_time.chain(by_session).max();
    let git = GitState { branch: recorded.git.branch(), head: recorded.git.commit_id("HEAD") };
    let mut runs = recorded.store.runs_of_checks(recorded.scope, &root)?;
    let is_here = |folder: &str| !Path::new(folder).is_absolute() || Path::new(folder).starts_with(&root);
    runs.retain(|run| run.content.as_deref().and_then(entered_folder).is_none_or(is_here));
    let changed_at = last_change.as_ref().map_or(0, |(at, _)| *at);
    Ok(Verification { git, changed, checks: checks(runs, changed_at), last_change })
}

/// The checks of a project, those that failed first. `runs`: the newest first.
fn checks(runs: Vec<ToolUseRow>, changed_at: Millis) -> Vec<VerifiedCheck> {
    let newest = runs.first().map_or(0, |run| run.received_at);
    let mut found: Vec<(usize, VerifiedCheck)> = Vec::new();
    let mut open: Vec<(Vec<String>, ToolUseRow)> = Vec::new();
    for run in runs.into_iter().filter(has_run) {
        let names = check_names(run.content.as_deref().unwrap_or_default());
        let passed = run.succeeded == Some(true);
        // Of several checks on one line any may have failed.
        if names.len() > 1 && !passed {
            let is_settled = names.iter().all(|name| found.iter().any(|(_, check)| check.name == *name));
            let is_known = open.iter().any(|(known, _)| *known == names);
            if !is_settled && !is_known {
                open.push((names, run));
            }
            continue;
        }
        for name in names {
            match found.iter_mut().find(|(_, check)| check.name == name) {
                Some((times, _)) => *times += 1,
                None => {
                    let state = match (passed, run.received_at >= changed_at) {
                        (false, _) => CheckState::Failed,
                        (true, true) => CheckState::Passed,
                        (true, false) => CheckState::Stale,
                    };
                    found.push((1, VerifiedCheck { name, state, run: run.clone() }));
                }
            }
        }
    }
    let is_kept =
        |times: usize, run: &ToolUseRow| run.received_at > changed_at || times >= RAN && newest - run.received_at <= GIVEN_UP;
    found.retain(|(times, check)| is_kept(*times, &check.run));
    let several = open.into_iter().filter(|(_, run)| is_kept(RAN, run));
    let several = several.map(|(names, run)| VerifiedCheck { name: names.join(" && "), state: CheckState::Failed, run });
    let mut checks: Vec<VerifiedCheck> = found.into_iter().map(|(_, check)| check).chain(several).collect();
    let rank = |state| match state {
        CheckState::Failed => 0,
        CheckState::Stale => 1,
        CheckState::Passed => 2,
    };
    checks.sort_by_key(|check| (rank(check.state), std::cmp::Reverse(check.run.received_at)));
    checks.truncate(CHECKS);
    checks
}

/// Returns what contradicts the agent's claim that checks pass, in a line for the person; `None` if it makes no such claim, or
/// its last checks show it.
pub fn unproven_claim(store: &Store, session: i64, closing: &str) -> Result<Option<String>> {
    if !claims_checks(closing) {
        return Ok(None);
    }
    let uses = store.last_edits_and_checks(session)?;
    let edits = uses.iter().filter(|tool| tool.is_edit() && tool.path.is_some()).map(|edit| edit.seq);
    let Some(last_edit) = edits.clone().max() else { return Ok(None) };
    let runs: Vec<&ToolUseRow> = uses.iter().filter(|tool| tool.is_check() && has_run(tool)).collect();
    let named = |run: &ToolUseRow| check_names(run.content.as_deref().unwrap_or_default()).pop();
    let newest = runs.iter().find_map(|run| Some((named(run)?, *run)));
    let reason = match newest {
        None => "no check ran in this session".to_string(),
        Some((name, run)) if run.succeeded == Some(false) => {
            let code = exit_code(run).map(|code| format!(" (exit {code})")).unwrap_or_default();
            format!("the last `{name}` failed{code}")
        }
        Some((name, run)) if run.seq < last_edit => {
            let later = edits.filter(|seq| *seq > run.seq).count();
            let later = if later == 1 { "an edit".to_string() } else { format!("{later} edits") };
            format!("the last check, `{name}`, ran before {later}")
        }
        Some(_) => return Ok(None),
    };
    Ok(Some(format!("nmem: the agent says that checks pass, but {reason}. `nmem verify` shows all.")))
}

/// The first check of a session whose last run failed.
pub fn failing_check(store: &Store, session: i64) -> Result<Option<String>> {
    let mut known: Vec<String> = Vec::new();
    for run in store.last_edits_and_checks(session)?.iter().filter(|tool| tool.is_check() && has_run(tool)) {
        let mut names = check_names(run.content.as_deref().unwrap_or_default());
        names.retain(|name| !known.contains(name));
        if run.succeeded == Some(false) && !names.is_empty() {
            return Ok(Some(names.join(" && ")));
        }
        known.extend(names);
    }
    Ok(None)
}

/// Returns true if a check ran on the tree as it is: a program that is not there has checked nothing, and `git stash` puts
/// changes aside.
pub(super) fn has_run(run: &ToolUseRow) -> bool {
    let is_stashed = run.content.as_deref().is_some_and(|line| line.contains("git stash"));
    let is_there = run.succeeded == Some(true) || !did_not_run(response(run)) && exit_code(run) != Some(127);
    is_there && !is_stashed
}

fn exit_code(run: &ToolUseRow) -> Option<i64> {
    run.metadata["exit_code"].as_i64()
}

/// The checks on a command line: `cd x && cargo test -q | tail` is `cargo test`, whatever is tested.
pub(super) fn check_names(line: &str) -> Vec<String> {
    let is_check =
        |name: &str| matches!(classify(name), CommandKind::Test | CommandKind::Build | CommandKind::Lint) && !is_look(name);
    let shortest = |program: String| {
        let mut words: Vec<&str> = program.split(' ').collect();
        words[0] = words[0].rsplit('/').next().unwrap_or(words[0]);
        (1..=words.len()).map(|n| words[..n].join(" ")).find(|name| is_check(name))
    };
    let mut names: Vec<String> = programs(&without_folders(line)).filter_map(shortest).collect();
    names.dedup();
    names
}

/// A line whose programs are named without their folders: `/usr/local/go/bin/go build` is `go build`.
fn without_folders(line: &str) -> String {
    let bare = |part: &str| {
        let trimmed = part.trim_start();
        match trimmed.split_once(' ') {
            Some((program, rest)) if program.starts_with('/') => {
                format!("{} {rest}", program.rsplit('/').next().unwrap_or(program))
            }
            _ => trimmed.to_string(),
        }
    };
    line.split("&&").map(|part| part.split(';').map(bare).collect::<Vec<_>>().join("; ")).collect::<Vec<_>>().join(" && ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_kind::failed_unseen;
    use serde_json::json;

    fn run(at: Millis, line: &str, passed: bool) -> ToolUseRow {
        ToolUseRow {
            id: at,
            session_id: 1,
            seq: at,
            prompt_id: None,
            tool_use_id: None,
            received_at: at,
            tool_name: "Bash".into(),
            kind: "command".into(),
            command_kind: Some(classify(line)),
            path: None,
            content: Some(line.into()),
            input: None,
            outcome: None,
            succeeded: Some(passed),
            metadata: json!({}),
        }
    }

    fn states(mut runs: Vec<ToolUseRow>, changed_at: Millis) -> Vec<String> {
        runs.reverse();
        checks(runs, changed_at).iter().map(|check| format!("{} {}", check.name, check.state.name())).collect()
    }

    #[test]
    fn a_check_counts_by_its_last_run_and_by_what_changed_since() {
        let runs = || {
            vec![
                run(1, "cargo test", false),
                run(2, "cd x && cargo test -q 2>&1 | tail", true),
                run(3, "cargo clippy", true),
                run(4, "cargo clippy", true),
            ]
        };
        assert_eq!(states(runs(), 0), ["cargo clippy passed", "cargo test passed"]);
        assert_eq!(states(runs(), 3), ["cargo test stale", "cargo clippy passed"]);
        let mut failed = runs();
        failed.push(run(5, "cargo test --lib", false));
        assert_eq!(states(failed, 5), ["cargo test failed", "cargo clippy stale"], "a failure counts whatever changed");
        // One run of long ago is no check of the project.
        assert_eq!(
            states(vec![run(1, "pytest tests/one.py", true), run(2, "cargo test", true), run(3, "cargo test", true)], 2),
            ["cargo test passed"]
        );
    }

    #[test]
    fn a_run_whose_exit_code_is_another_programs_or_of_another_tree_proves_little() {
        // As recording decides it.
        let said = |line: &str, output: &str| run(5, line, !failed_unseen(line, classify(line), output));
        let of = |run: ToolUseRow| checks(vec![run], 1).iter().map(|check| check.state.name()).collect::<Vec<_>>().join(" ");
        assert_eq!(of(said("cargo test 2>&1 | tail -3", "test result: FAILED. 1 failed")), "failed");
        assert_eq!(of(said("cargo test 2>&1 | tail -3", "test result: ok")), "passed");
        assert_eq!(of(said("cargo test", "no FAILED here: it exits with 0")), "passed");
        assert_eq!(of(said("git stash && go vet ./... | tail; git stash pop", "")), "");
        assert_eq!(check_names("cd x && /usr/local/go/bin/go build ./cmd 2>&1"), ["go build"]);
    }

    #[test]
    fn of_several_checks_on_a_line_any_may_have_failed() {
        let chain = "cargo clippy && cargo test";
        assert_eq!(states(vec![run(1, chain, true)], 0), ["cargo clippy passed", "cargo test passed"]);
        assert_eq!(states(vec![run(1, chain, true), run(2, chain, false)], 1), ["cargo clippy && cargo test failed"]);
        let settled = vec![run(1, chain, false), run(2, "cargo clippy", true), run(3, "cargo test", true)];
        assert_eq!(states(settled, 1), ["cargo test passed", "cargo clippy passed"]);
    }
}
