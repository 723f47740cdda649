//! Work units as they are read back.

use super::spelled::spelled;
use super::{
    CLOSING, CONTENT, FAILURE, Limit, Made, Millis, NAME, PROMPT, Platform, PromptRow, PromptSource, SUBJECT, Texts, Tokens,
    ToolUseRow,
};
use serde_json::{Map, Value};

spelled! {
/// Where a unit stands.
UnitState, default Closed {
    Open = "open",
    Closed = "closed",
    /// A model has seen it whole.
    Distilled = "distilled",
}
}

spelled! {
/// How a unit went.
UnitOutcome, default Unknown {
    /// Something was changed, and committed, checked or said to be finished.
    Done = "done",
    /// Nothing was changed, and the agent answered.
    Answered = "answered",
    /// It fails, and did so several times.
    Struggling = "struggling",
    /// Something was changed, and left before it was finished.
    Abandoned = "abandoned",
    Unknown = "unknown",
}
}

spelled! {
/// Why a unit was closed.
ClosedBy, default Boundary {
    /// Another unit began.
    Boundary = "boundary",
    Clear = "clear",
    SessionEnd = "session end",
    ClientGone = "client gone",
    Silence = "silence",
}
}

/// A work unit, whole.
#[derive(Clone, Debug)]
pub struct UnitRow {
    pub id: i64,
    pub session: i64,
    /// The agent's own id of the session.
    pub agent_session_id: String,
    pub state: UnitState,
    pub closed_by: Option<ClosedBy>,
    pub started_at: Millis,
    pub ended_at: Millis,
    /// Time in which something happened: pauses between prompts are not in it.
    pub active_ms: Millis,
    pub intent: Option<String>,
    pub outcome: Option<UnitOutcome>,
    pub evidence: Option<String>,
    /// What it came to, in the eight fields of a summary; where rules or a model have told.
    pub summary: Option<Map<String, Value>>,
    /// Numbers of its prompts in the session.
    pub prompts: Vec<i64>,
    pub tool_uses: i64,
    pub failures: i64,
    /// First and last of its tool uses in the session's order.
    pub range: Option<(i64, i64)>,
    /// Tool uses that came after it was distilled.
    pub addendum: i64,
    pub phases: Vec<PhaseRow>,
    /// The most edited first.
    pub files: Vec<UnitFile>,
    pub commits: Vec<Made>,
    pub tokens: Option<Tokens>,
    pub boundary: Option<BoundaryRow>,
    /// Boundaries inside it that were decided once and taken back.
    pub taken_back: Vec<BoundaryRow>,
}

impl UnitRow {
    /// How it went, where that is known.
    pub fn known_outcome(&self) -> Option<UnitOutcome> {
        self.outcome.filter(|outcome| *outcome != UnitOutcome::Unknown)
    }

    /// Whether it was left unfinished.
    pub fn was_left(&self) -> bool {
        matches!(self.outcome, Some(UnitOutcome::Struggling | UnitOutcome::Abandoned))
    }
}

/// A phase of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseRow {
    pub phase: &'static str,
    pub tool_uses: u32,
    pub ms: Millis,
}

/// A file of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitFile {
    pub path: String,
    pub reads: i64,
    pub edits: i64,
}

/// Why a unit begins where it does.
#[derive(Clone, Debug)]
pub struct BoundaryRow {
    /// The prompt that it stands before; `None` inside the work on one.
    pub prompt: Option<i64>,
    /// The first tool use after it.
    pub first_seq: Option<i64>,
    pub reason: String,
    /// Log-odds; `None` where nothing was weighed.
    pub score: Option<f64>,
    /// `{name: {value, weight, adds}}`
    pub signals: Value,
    /// `[{at, what, score}]`
    pub history: Value,
}

/// A unit with all that was said and done in it: what memories are drawn from.
#[derive(Clone, Debug)]
pub struct UnitStory {
    pub unit: i64,
    pub session: i64,
    pub intent: Option<String>,
    pub outcome: Option<UnitOutcome>,
    pub evidence: Option<String>,
    pub platform: Platform,
    pub project: Option<i64>,
    /// Where its session works.
    pub folder: Option<String>,
    /// The user's prompts and the agent's closing texts, in order; no subagent's.
    pub prompts: Vec<PromptRow>,
    /// What each turn cost, by the number of its prompt: tokens that were read or written for the first time.
    pub costs: Vec<(i64, i64)>,
    /// In order; of a very long unit the last ones.
    pub tools: Vec<ToolUseRow>,
    pub reach: Reach,
    /// Open entries of the agent's task list, where this is the session's last unit.
    pub open_tasks: Vec<String>,
    /// The last tool use that rules have seen.
    pub seen: Option<i64>,
    /// How far the unit goes, to see later whether it goes further.
    pub mark: Option<String>,
    /// The name of its session's domain, and its own configuration.
    pub domain: Option<(String, Option<String>)>,
}

/// How much of a unit's work is still stored and was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    Whole,
    /// Its beginning was not read: it is very long.
    End,
    /// Tool uses of it have gone with time: what was drawn from them can't be drawn again.
    Trimmed,
}

impl Texts for UnitStory {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut String, Limit)) {
        for prompt in &mut self.prompts {
            visit(&mut prompt.text, if prompt.source == PromptSource::User { PROMPT } else { CLOSING });
        }
        self.open_tasks.iter_mut().for_each(|task| visit(task, SUBJECT));
        for tool in &mut self.tools {
            for name in ["description", "response"] {
                if let Some(Value::String(text)) = tool.metadata.get_mut(name) {
                    visit(text, FAILURE);
                }
            }
        }
        let own = self.intent.iter_mut().map(|text| (text, PROMPT));
        let of_tools = self.tools.iter_mut().flat_map(|tool| {
            let ToolUseRow { path, content, input, outcome, .. } = tool;
            [(path, NAME), (content, CONTENT), (input, FAILURE), (outcome, FAILURE)]
                .into_iter()
                .filter_map(|(text, limit)| Some((text.as_mut()?, limit)))
        });
        own.chain(of_tools).for_each(|(text, limit)| visit(text, limit));
    }
}
