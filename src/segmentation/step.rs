//! A step: a prompt and the work on it, as the detector remembers it. Long work is cut into several steps where something
//! was completed (`substeps`), so that a unit can begin in its middle.

use super::asked::Asked;
use super::bag::{Bag, ONE, hash};
use super::phases::{Phase, RUNS, Run, add_run, fold};
use crate::model::{CommandKind, Kind, Millis, ToolUse};
use serde::{Deserialize, Serialize};

/// Bytes of a text that are looked at: of a prompt or a closing message, of a tool use's line, of what it was given.
const TEXT: usize = 4000;
const LINE: usize = 600;
const INPUT: usize = 1500;
/// Terms that are kept of a prompt or closing message, and of the work.
const TEXT_TERMS: usize = 48;
const WORK_TERMS: usize = 80;
/// Files that are kept, as hashes.
const FILES: usize = 48;
/// Subagents that are kept, as hashes.
const AGENTS: usize = 32;
/// What a word in a tool's input counts, against one in its command or path.
const IN_INPUT: u8 = 3;

/// What is known of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// When it began, and when it was last heard of.
    pub at: Millis,
    pub until: Millis,
    /// What the prompt was like; `None` where the step is a later part of a prompt's work.
    pub asked: Option<Asked>,
    pub prompt: Bag,
    pub work: Bag,
    pub answer: Bag,
    /// Hashes of the files that were touched.
    pub files: Vec<u32>,
    pub tool_uses: u32,
    /// Reads, searches, fetches and delegated work.
    pub looks: u32,
    pub edits: u32,
    pub failures: u32,
    pub commits: u32,
    pub pushes: u32,
    /// Test runs that passed.
    pub passes: u32,
    /// The last tool use failed.
    pub failed_last: bool,
    /// The last thing that it did was a commit, or what belongs to one.
    pub committed_last: bool,
    /// Files were changed, or looked at, since the last check (test, build, lint), and how that went.
    pub edited_since_check: bool,
    pub looked_since_check: bool,
    pub check_passed: Option<bool>,
    /// The agent has closed the turn; its closing message asks something, or says that the work is done.
    pub closed: bool,
    pub asks: bool,
    pub says_done: bool,
    pub phases: Vec<Run>,
    /// Hashes of the subagents that it started, or that reported to it.
    pub agents: Vec<u32>,
}

impl Step {
    /// A step that a prompt begins.
    pub fn asked(prompt: &str, at: Millis) -> Step {
        let text = head(prompt, TEXT);
        let prompt = Bag::of(text, TEXT_TERMS);
        Step { at, until: at, asked: Some(Asked::of(text, prompt.word_count())), prompt, ..Step::default() }
    }

    /// A step in the middle of a prompt's work, or before any prompt.
    pub fn going_on(at: Millis) -> Step {
        Step { at, until: at, ..Step::default() }
    }

    /// Takes a tool use in.
    pub fn used(&mut self, tool: &ToolUse, at: Millis) {
        let took = (at - self.until).max(0);
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
        self.count(tool);
        add_run(&mut self.phases, Phase::of(tool), took);
    }

    fn count(&mut self, tool: &ToolUse) {
        let failed = tool.succeeded == Some(false);
        self.failures += u32::from(failed);
        self.failed_last = failed;
        self.committed_last = match tool.command {
            Some(CommandKind::Commit) => !failed,
            Some(CommandKind::Git) => self.committed_last,
            _ => false,
        };
        match tool.kind {
            Kind::Read | Kind::Search | Kind::Fetch | Kind::Delegate => {
                self.looks += 1;
                self.looked_since_check = true;
            }
            Kind::Edit | Kind::Write if !failed => {
                self.edits += 1;
                self.edited_since_check = true;
            }
            _ => {}
        }
        match tool.command {
            Some(CommandKind::Test | CommandKind::Build | CommandKind::Lint) => {
                self.check_passed = Some(!failed);
                self.edited_since_check = false;
                self.looked_since_check = false;
                self.passes += u32::from(!failed && tool.command == Some(CommandKind::Test));
            }
            Some(CommandKind::Commit) if !failed => self.commits += 1,
            _ => {}
        }
        if tool.kind == Kind::Command && !failed && is_push(tool.content.as_deref().unwrap_or("")) {
            self.pushes += 1;
        }
    }

    /// Takes the agent's closing message in.
    pub fn closes(&mut self, closing: &str, at: Millis) {
        self.until = self.until.max(at);
        let text = head(closing, TEXT);
        self.answer = Bag::of(text, TEXT_TERMS);
        self.closed = true;
        self.asks = tail(text, 200).contains('?');
        let begin = head(text, 160).to_lowercase();
        self.says_done = DONE.iter().any(|word| begin.contains(word));
    }

    /// Whether a subagent was started here, or has reported here.
    pub fn knows_agent(&self, agent: &str) -> bool {
        self.agents.contains(&hash(agent))
    }

    /// Takes in what a later part of the same work came to.
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
        self.closed |= later.closed;
        self.asks |= later.asks;
        self.says_done |= later.says_done;
        self.phases = fold(self.phases.iter().chain(&later.phases).copied(), RUNS);
    }

    /// Whether its words are forgotten, or it never had any.
    pub fn is_faded(&self) -> bool {
        [&self.prompt, &self.work, &self.answer].iter().all(|bag| bag.terms().is_empty())
    }

    /// Forgets the words: what is far behind is compared with nothing any more.
    pub fn fade(&mut self) {
        (self.prompt, self.work, self.answer) = (Bag::default(), Bag::default(), Bag::default());
        self.files.clear();
    }
}

/// How agents say that a piece of work is finished.
const DONE: [&str; 8] = ["done", "all tests pass", "implemented", "complete", "pushed", "committed", "fixed", "summary"];

fn is_push(command: &str) -> bool {
    command.contains("git push") || command.contains("gh pr create")
}

/// The beginning of a text, at most so many bytes.
pub(super) fn head(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// The end of a text, at most so many bytes.
pub(super) fn tail(text: &str, bytes: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(bytes))..]
}
