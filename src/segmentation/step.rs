//! A step: a prompt with its work, or a part of that work. Counts and hashed terms, no text. Stored as postcard bytes.

use super::phases::{Phase, PhaseRun, RUNS, add_run, fold};
use super::prompt_features::{ONE, PromptFeatures, TermCounts, hash};
use crate::command_kind::checks_by_hooks;
use crate::languages::in_english;
use crate::model::{CommandKind, Kind, Millis, ToolUse};
use crate::text::is_plan_of_agent;
use serde::{Deserialize, Serialize};

/// Maximum bytes that are read of a text: a prompt, a closing message, a tool's content or input.
const TEXT: usize = 4000;
const LINE: usize = 600;
const INPUT: usize = 1500;
/// Maximum terms of a text, and of the work.
const TEXT_TERMS: usize = 48;
const WORK_TERMS: usize = 80;
/// Maximum files, as hashes.
const FILES: usize = 48;
/// Maximum subagents, as hashes.
const AGENTS: usize = 32;
/// Weight of a word in a tool's input; words in its command or path have weight 10.
const IN_INPUT: u8 = 3;

/// Features of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Time of its start, and of its latest event.
    pub at: Millis,
    pub until: Millis,
    /// Features of the prompt; `None` for a later part of a prompt's work.
    pub prompt_features: Option<PromptFeatures>,
    pub prompt: TermCounts,
    pub work: TermCounts,
    pub answer: TermCounts,
    /// Hashes of the touched files.
    pub files: Vec<u32>,
    pub tool_uses: u32,
    /// Reads, searches, fetches and delegated work.
    pub looks: u32,
    pub edits: u32,
    pub failures: u32,
    pub commits: u32,
    pub pushes: u32,
    /// Number of passing test runs.
    pub passes: u32,
    /// The last tool use failed.
    pub failed_last: bool,
    /// It ended with a commit, or with commands that belong to one.
    pub committed_last: bool,
    /// Files were changed or examined since the last check (test, build, lint), and the result of that check.
    pub edited_since_check: bool,
    pub looked_since_check: bool,
    pub check_passed: Option<bool>,
    /// The agent has ended the turn; whether its closing message asks something or reports completion.
    pub closed: bool,
    pub asks: bool,
    pub says_done: bool,
    pub phases: Vec<PhaseRun>,
    /// Hashes of subagents that it started or that reported to it.
    pub agents: Vec<u32>,
    /// The project of its last edit: 0 without an edit, 1 the session's own, else one more than the project's row.
    pub edited_in: u32,
    /// Sorts of checks that ran (1 test, 2 build, 4 lint), and those whose last run failed, eight times as much.
    pub checks: u8,
    /// Edits of plans that the agent keeps outside the project. They are not among `edits`.
    pub plans: u32,
}

impl Step {
    /// A step that begins with a prompt.
    pub fn from_prompt(prompt: &str, at: Millis) -> Step {
        let text = head(prompt, TEXT);
        let prompt = TermCounts::of(text, TEXT_TERMS);
        Step { at, until: at, prompt_features: Some(PromptFeatures::of(text, prompt.word_count())), prompt, ..Step::default() }
    }

    /// A step inside a prompt's work, or before any prompt.
    pub fn going_on(at: Millis) -> Step {
        Step { at, until: at, ..Step::default() }
    }

    /// Adds a tool use. `project`: that of its repository, if it is not the session's.
    pub fn used(&mut self, tool: &ToolUse, project: Option<i64>, at: Millis) {
        let took = (at - self.until).max(0);
        // The session's file may report a call after later ones: it isn't the last.
        let is_late = at < self.until;
        self.until = self.until.max(at);
        self.tool_uses += 1;
        let words = [tool.content.as_deref(), tool.path.as_deref(), tool.metadata.description.as_deref()];
        let line: Vec<&str> = words.into_iter().flatten().map(|text| head(text, LINE)).collect();
        self.work.add(&line.join("\n"), ONE, false, WORK_TERMS);
        if let Some(input) = &tool.input {
            self.work.add(head(input, INPUT), IN_INPUT, false, WORK_TERMS);
        }
        if let Some(path) = &tool.path {
            let file = hash(path);
            if !self.files.contains(&file) && self.files.len() < FILES {
                self.files.push(file);
            }
        }
        let agents = [tool.metadata.spawned_agent.as_deref(), tool.metadata.agent_id.as_deref()];
        for agent in agents.into_iter().flatten().map(hash) {
            if !self.agents.contains(&agent) && self.agents.len() < AGENTS {
                self.agents.push(agent);
            }
        }
        if matches!(tool.kind, Kind::Edit | Kind::Write) && tool.succeeded != Some(false) && !is_plan(tool) {
            self.edited_in = project.and_then(|project| u32::try_from(project).ok()).unwrap_or_default() + 1;
        }
        self.count(tool, is_late);
        add_run(&mut self.phases, Phase::of(tool), took);
    }

    fn count(&mut self, tool: &ToolUse, is_late: bool) {
        let failed = tool.succeeded == Some(false);
        self.failures += u32::from(failed);
        if !is_late {
            self.failed_last = failed;
            self.committed_last = match tool.command {
                Some(CommandKind::Commit) => !failed,
                Some(CommandKind::Git) => self.committed_last,
                _ => false,
            };
        }
        match tool.kind {
            Kind::Read | Kind::Search | Kind::Fetch | Kind::Delegate => {
                self.looks += 1;
                self.looked_since_check = true;
            }
            Kind::Edit | Kind::Write if !failed && is_plan(tool) => self.plans += 1,
            Kind::Edit | Kind::Write if !failed => {
                self.edits += 1;
                self.edited_since_check = true;
            }
            _ => {}
        }
        match (tool.command, tool.succeeded) {
            (Some(CommandKind::Commit), _) if !failed => {
                self.commits += 1;
                if !is_late && tool.succeeded == Some(true) {
                    let [line, output] = [&tool.content, &tool.outcome].map(|text| text.as_deref().unwrap_or_default());
                    checks_by_hooks(line, output).into_iter().for_each(|kind| self.checked(kind, true));
                }
            }
            (Some(command), Some(passed)) if !is_late => self.checked(command, passed),
            _ => {}
        }
        if tool.kind == Kind::Command && !failed && is_push(tool.content.as_deref().unwrap_or("")) {
            self.pushes += 1;
        }
    }

    /// Counts a check; other commands are none.
    fn checked(&mut self, command: CommandKind, passed: bool) {
        let sort = match command {
            CommandKind::Test => 1,
            CommandKind::Build => 2,
            CommandKind::Lint => 4,
            _ => 0,
        };
        if sort > 0 {
            self.checks = (self.checks | sort) & !(sort << FAILED) | if passed { 0 } else { sort << FAILED };
            self.check_passed = Some(passed);
            self.edited_since_check = false;
            self.looked_since_check = false;
            self.passes += u32::from(passed && command == CommandKind::Test);
        }
    }

    /// Adds the outcome of a command that ran in the background.
    pub fn background_ended(&mut self, command: CommandKind, succeeded: bool, at: Millis) {
        self.until = self.until.max(at);
        self.failures += u32::from(!succeeded);
        self.checked(command, succeeded);
    }

    /// Adds the agent's closing message.
    pub fn closes(&mut self, closing: &str, at: Millis) {
        self.until = self.until.max(at);
        let text = head(closing, TEXT);
        self.answer = TermCounts::of(text, TEXT_TERMS);
        self.closed = true;
        self.asks = tail(text, 200).contains(['?', '？']);
        let begin = in_english(head(text, 160)).to_lowercase();
        self.says_done = DONE.iter().any(|word| begin.contains(word));
    }

    /// Whether a subagent started or reported here.
    pub fn knows_agent(&self, agent: &str) -> bool {
        self.agents.contains(&hash(agent))
    }

    /// Merges a later part of the same work.
    pub fn join(&mut self, later: &Step) {
        self.at = self.at.min(later.at);
        self.until = self.until.max(later.until);
        self.work.join(&later.work, WORK_TERMS);
        self.answer.join(&later.answer, TEXT_TERMS);
        for file in &later.files {
            if !self.files.contains(file) && self.files.len() < FILES {
                self.files.push(*file);
            }
        }
        for (own, more) in [
            (&mut self.tool_uses, later.tool_uses),
            (&mut self.looks, later.looks),
            (&mut self.edits, later.edits),
            (&mut self.failures, later.failures),
            (&mut self.commits, later.commits),
            (&mut self.pushes, later.pushes),
            (&mut self.passes, later.passes),
            (&mut self.plans, later.plans),
        ] {
            *own = own.saturating_add(more);
        }
        if later.tool_uses > 0 {
            self.failed_last = later.failed_last;
            self.committed_last = later.committed_last;
        }
        let checked = later.check_passed.is_some();
        self.edited_since_check = later.edited_since_check || (self.edited_since_check && !checked);
        self.looked_since_check = later.looked_since_check || (self.looked_since_check && !checked);
        self.check_passed = later.check_passed.or(self.check_passed);
        self.checks = after(self.checks, later.checks);
        self.closed |= later.closed;
        self.asks |= later.asks;
        self.says_done |= later.says_done;
        self.phases = fold(self.phases.iter().chain(&later.phases).copied(), RUNS);
        self.edited_in = if later.edited_in == 0 { self.edited_in } else { later.edited_in };
    }

    /// Whether it has no words, or has dropped them.
    pub fn is_faded(&self) -> bool {
        [&self.prompt, &self.work, &self.answer].iter().all(|term_counts| term_counts.terms().is_empty())
    }

    /// Drops the words: a step this old is not compared any more.
    pub fn fade(&mut self) {
        (self.prompt, self.work, self.answer) = (TermCounts::default(), TermCounts::default(), TermCounts::default());
        self.files.clear();
    }
}

fn is_plan(tool: &ToolUse) -> bool {
    tool.path.as_deref().is_some_and(is_plan_of_agent)
}

/// Phrases with which agents report completion.
const DONE: [&str; 8] = ["done", "all tests pass", "implemented", "complete", "pushed", "committed", "fixed", "summary"];

/// Distance between the bit of a sort of checks that ran and the bit that says that its last run failed.
const FAILED: u8 = 3;

/// The checks of two steps in order: of each sort the last run counts.
pub fn after(checks: u8, later: u8) -> u8 {
    let ran = later & 0b111;
    (checks | ran) & !(ran << FAILED) | later
}

/// Whether a check failed when it ran last.
pub fn is_failing(checks: u8) -> bool {
    checks >> FAILED > 0
}

fn is_push(command: &str) -> bool {
    command.contains("git push") || command.contains("gh pr create")
}

/// The first bytes of a text, at a character boundary.
pub(super) fn head(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// The last bytes of a text, at a character boundary.
pub(super) fn tail(text: &str, bytes: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(bytes))..]
}

/// Version of the encoding. It must change whenever the meaning of a field, or a term's hash, changes.
const VERSION: u8 = 5;
/// The versions without `plans`, without `checks`, and without `edited_in`.
const WITHOUT_PLANS: u8 = 4;
const WITHOUT_CHECKS: u8 = 3;
const WITHOUT_PROJECT: u8 = 2;

impl Step {
    /// Encodes the step.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Serialisation fails only if the writer does, and a vector never does.
        postcard::to_extend(self, vec![VERSION]).unwrap_or_default()
    }

    /// Decodes a step; `None` if it is damaged or of an unknown version.
    pub fn from_bytes(bytes: &[u8]) -> Option<Step> {
        let (version, rest) = bytes.split_first()?;
        let step: Step = match *version {
            VERSION => postcard::from_bytes(rest).ok()?,
            WITHOUT_PLANS => postcard::from_bytes(&[rest, &[0]].concat()).ok()?,
            WITHOUT_CHECKS => postcard::from_bytes(&[rest, &[0, 0]].concat()).ok()?,
            WITHOUT_PROJECT => postcard::from_bytes(&[rest, &[0, 0, 0]].concat()).ok()?,
            _ => return None,
        };
        [&step.prompt, &step.work, &step.answer].iter().all(|term_counts| term_counts.is_sound()).then_some(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_step_comes_back_as_it_was_written() {
        let mut step = Step::from_prompt("Please fix parseHookInput in src/hook.rs, it loses the last line", 5);
        step.closes("Done: `src/hook.rs` keeps it. Shall I commit?", 9);
        let bytes = step.to_bytes();
        assert_eq!(Step::from_bytes(&bytes), Some(step.clone()));
        assert_eq!(Step::from_bytes(&Step::going_on(-1).to_bytes()), Some(Step::going_on(-1)));
        // The version before had no plans: its bytes end one earlier.
        let before = [&[WITHOUT_PLANS], &bytes[1..bytes.len() - 1]].concat();
        assert_eq!(Step::from_bytes(&before), Some(step));
        for cut in 0..bytes.len() {
            assert_eq!(Step::from_bytes(&bytes[..cut]), None, "cut at {cut}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_break_the_reader(mut bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            bytes.insert(0, VERSION);
            if let Some(step) = Step::from_bytes(&bytes) {
                prop_assert_eq!(Step::from_bytes(&step.to_bytes()), Some(step));
            }
        }
    }
}
