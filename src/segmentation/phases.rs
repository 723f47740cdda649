//! The phases of a work unit: the order of its kinds of work.

use crate::model::{CommandKind, Kind, Millis, ToolUse};
use serde::{Deserialize, Serialize};

/// Maximum runs per step; beyond that, the shortest joins its predecessor.
pub(super) const RUNS: usize = 12;

/// The kind of work that a run of tool uses does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    Investigation,
    Execution,
    Verification,
    Completion,
}

impl Phase {
    /// All phases, in the order of their codes.
    pub const ALL: [Phase; 4] = [Phase::Investigation, Phase::Execution, Phase::Verification, Phase::Completion];

    /// Its name in the database.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Investigation => "investigation",
            Phase::Execution => "execution",
            Phase::Verification => "verification",
            Phase::Completion => "completion",
        }
    }

    /// The phase of a tool use; `None` if it fits any.
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

/// Consecutive tool uses in one phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseRun {
    pub phase: Phase,
    pub tool_uses: u32,
    pub ms: Millis,
}

impl PhaseRun {
    fn grow(&mut self, by: PhaseRun) {
        self.tool_uses = self.tool_uses.saturating_add(by.tool_uses);
        self.ms = self.ms.saturating_add(by.ms);
    }
}

/// Adds a tool use that came `ms` after the previous event. Without a phase of its own it extends the current run.
pub fn add_run(runs: &mut Vec<PhaseRun>, phase: Option<Phase>, ms: Millis) {
    let going_on = runs.last().map_or(Phase::Investigation, |run| run.phase);
    join(runs, PhaseRun { phase: phase.unwrap_or(going_on), tool_uses: 1, ms });
    while runs.len() > RUNS {
        swallow_shortest(runs);
    }
}

/// Concatenates the runs of several steps, `most` at most.
pub fn fold(steps: impl IntoIterator<Item = PhaseRun>, most: usize) -> Vec<PhaseRun> {
    let mut runs = Vec::new();
    steps.into_iter().for_each(|run| join(&mut runs, run));
    while runs.len() > most.max(1) {
        swallow_shortest(&mut runs);
    }
    runs
}

fn join(runs: &mut Vec<PhaseRun>, run: PhaseRun) {
    match runs.last_mut() {
        Some(last) if last.phase == run.phase => last.grow(run),
        _ => runs.push(run),
    }
}

/// Merges the shortest run into its predecessor, and the next one too if it has the same phase.
fn swallow_shortest(runs: &mut Vec<PhaseRun>) {
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

    fn described(runs: &[PhaseRun]) -> String {
        runs.iter().map(|run| format!("{} {}", run.phase.name(), run.tool_uses)).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn what_has_no_phase_of_its_own_goes_on_with_the_one_before() {
        let mut runs = Vec::new();
        for phase in [None, Some(Phase::Investigation), Some(Phase::Execution), None, Some(Phase::Verification)] {
            add_run(&mut runs, phase, 10);
        }
        assert_eq!(described(&runs), "investigation 2, execution 2, verification 1");
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
