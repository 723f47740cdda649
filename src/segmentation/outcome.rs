//! The outcome of a unit and its evidence. What the tools did counts more than what the agent says.

use super::step::Step;
use crate::model::UnitOutcome;

/// Number of failures that make a unit a struggle.
const STRUGGLE: u32 = 3;

/// The outcome of a unit from its steps, in order; `over`: another unit has begun or the session has ended.
pub fn outcome(steps: &[&Step], over: bool) -> (UnitOutcome, String) {
    let sum = |count: fn(&Step) -> u32| steps.iter().map(|step| count(step)).fold(0, u32::saturating_add);
    let (edits, failures, commits) = (sum(|s| s.edits), sum(|s| s.failures), sum(|s| s.commits));
    let Some(last) = steps.last() else { return (UnitOutcome::Unknown, "unknown".into()) };
    let times = |n: u32, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    // The last check, and whether files were changed after it.
    let checked = steps.iter().rposition(|step| step.check_passed.is_some());
    let passed = checked.and_then(|at| steps[at].check_passed);
    let edited_since = checked.is_none_or(|at| steps[at].edited_since_check || steps[at + 1..].iter().any(|s| s.edits > 0));
    if failures >= STRUGGLE && (passed == Some(false) || last.failed_last) {
        let how = if passed == Some(false) { "the last check did not pass" } else { "the last tool use failed" };
        return (UnitOutcome::Struggling, format!("{}, and {how}", times(failures, "failure")));
    }
    if commits > 0 {
        let since = steps.iter().rposition(|step| step.commits > 0).is_some_and(|at| steps[at + 1..].iter().any(|s| s.edits > 0));
        let open = if since { ", and changes since" } else { "" };
        return (UnitOutcome::Done, format!("{}{open}", times(commits, "commit")));
    }
    if edits > 0 && passed == Some(true) && !edited_since {
        return (UnitOutcome::Done, "checks passed after the last change".into());
    }
    if edits > 0 && last.closed && last.says_done && !last.failed_last {
        return (UnitOutcome::Done, "the agent said that it is done".into());
    }
    match (edits > 0, last.closed, over) {
        (true, false, true) => (UnitOutcome::Abandoned, "changes, and its last turn was broken off".into()),
        (true, _, true) if passed == Some(false) => (UnitOutcome::Abandoned, "changes, and the last check did not pass".into()),
        (false, true, _) => (UnitOutcome::Answered, "nothing was changed, and the agent answered".into()),
        _ => (
            UnitOutcome::Unknown,
            if edits > 0 { "changes, and nothing that completes them" } else { "no closing message" }.into(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(steps: &[Step]) -> (&'static str, String) {
        let (outcome, evidence) = outcome(&steps.iter().collect::<Vec<_>>(), true);
        (outcome.name(), evidence)
    }

    #[test]
    fn what_the_tools_did_decides() {
        let answered = Step { closed: true, ..Step::default() };
        assert_eq!(described(&[answered]), ("answered", "nothing was changed, and the agent answered".into()));
        let committed = Step { edits: 2, commits: 1, closed: true, ..Step::default() };
        assert_eq!(described(&[committed]), ("done", "1 commit".into()));
        let green = Step { edits: 2, check_passed: Some(true), ..Step::default() };
        assert_eq!(described(std::slice::from_ref(&green)).0, "done");
        let red = Step { edits: 1, failures: 4, check_passed: Some(false), closed: true, says_done: true, ..Step::default() };
        assert_eq!(described(std::slice::from_ref(&red)), ("struggling", "4 failures, and the last check did not pass".into()));
        assert_eq!(described(&[red, green]).0, "done", "it passed in the end");
        let broken_off = Step { edits: 1, ..Step::default() };
        assert_eq!(described(&[broken_off]).0, "abandoned");
        assert_eq!(described(&[Step::default()]).0, "unknown");
    }
}
