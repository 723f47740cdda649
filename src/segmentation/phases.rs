//! What kind of work follows on what: the phases of a work unit (ADR-009's `phase_signature`).

use crate::model::{CommandKind, Kind, Millis, ToolUse};
use serde::{Deserialize, Serialize};

/// Runs that are kept of one step: beyond, the shortest joins the one before it.
pub(super) const RUNS: usize = 12;

/// What a stretch of tool uses is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    Investigation,
    Execution,
    Verification,
    Completion,
}

impl Phase {
    /// Every phase, in the order of their codes.
    pub const ALL: [Phase; 4] = [Phase::Investigation, Phase::Execution, Phase::Verification, Phase::Completion];

    /// The word that is stored.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Investigation => "investigation",
            Phase::Execution => "execution",
            Phase::Verification => "verification",
            Phase::Completion => "completion",
        }
    }

    /// The phase that a tool use speaks for; `None` where it may belong to any.
    pub fn of(tool: &ToolUse) -> Option<Phase> {
        match (tool.kind, tool.command) {
            (Kind::Read | Kind::Search | Kind::Fetch, _) => Some(Phase::Investigation),
            (Kind::Delegate, _) => tool.metadata.subagent_type.as_deref().filter(|t| looks(t)).map(|_| Phase::Investigation),
            (Kind::Edit | Kind::Write, _) => Some(Phase::Execution),
            (_, Some(CommandKind::Test | CommandKind::Build | CommandKind::Lint)) => Some(Phase::Verification),
            (_, Some(CommandKind::Commit)) => Some(Phase::Completion),
            _ => None,
        }
    }
}

fn looks(subagent: &str) -> bool {
    let name = subagent.to_lowercase();
    ["explore", "search", "research", "plan", "review"].iter().any(|word| name.contains(word))
}

/// Tool uses of one phase after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    pub phase: Phase,
    pub tool_uses: u32,
    pub ms: Millis,
}

impl Run {
    fn grow(&mut self, by: Run) {
        self.tool_uses = self.tool_uses.saturating_add(by.tool_uses);
        self.ms = self.ms.saturating_add(by.ms);
    }
}

/// Adds a tool use that took `ms` since what came before it; without a phase of its own it goes on with the one that is.
pub fn add_run(runs: &mut Vec<Run>, phase: Option<Phase>, ms: Millis) {
    let going_on = runs.last().map_or(Phase::Investigation, |run| run.phase);
    join(runs, Run { phase: phase.unwrap_or(going_on), tool_uses: 1, ms });
    while runs.len() > RUNS {
        swallow_shortest(runs);
    }
}

/// The runs of several steps as one sequence, at most `most` of them.
pub fn fold(steps: impl IntoIterator<Item = Run>, most: usize) -> Vec<Run> {
    let mut runs = Vec::new();
    steps.into_iter().for_each(|run| join(&mut runs, run));
    while runs.len() > most.max(1) {
        swallow_shortest(&mut runs);
    }
    runs
}

fn join(runs: &mut Vec<Run>, run: Run) {
    match runs.last_mut() {
        Some(last) if last.phase == run.phase => last.grow(run),
        _ => runs.push(run),
    }
}

/// The shortest run becomes part of the one before it, and so does the one behind it where that is of the same phase.
fn swallow_shortest(runs: &mut Vec<Run>) {
    let shortest = (1..runs.len()).min_by_key(|at| (runs[*at].tool_uses, *at)).unwrap_or(1);
    let run = runs.remove(shortest);
    runs[shortest - 1].grow(run);
    if shortest < runs.len() && runs[shortest].phase == runs[shortest - 1].phase {
        let next = runs.remove(shortest);
        runs[shortest - 1].grow(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(runs: &[Run]) -> String {
        runs.iter().map(|run| format!("{} {}", run.phase.name(), run.tool_uses)).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn what_has_no_phase_of_its_own_goes_on_with_the_one_before() {
        let mut runs = Vec::new();
        for phase in [None, Some(Phase::Investigation), Some(Phase::Execution), None, Some(Phase::Verification)] {
            add_run(&mut runs, phase, 10);
        }
        assert_eq!(told(&runs), "investigation 2, execution 2, verification 1");
        assert_eq!(runs.iter().map(|run| run.ms).sum::<i64>(), 50);
    }

    #[test]
    fn a_long_sequence_loses_its_shortest_runs_and_no_tool_use() {
        let mut runs = Vec::new();
        for i in 0..1000 {
            add_run(&mut runs, Some(Phase::ALL[i % 3]), 1);
        }
        assert!(runs.len() <= RUNS);
        assert_eq!(runs.iter().map(|run| run.tool_uses).sum::<u32>(), 1000);
        assert_eq!(fold(runs, 1).len(), 1);
    }
}
