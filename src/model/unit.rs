//! Work units as the store returns them.

use super::{
    CLOSING, CONTENT, FAILURE, Limit, MemoryRow, Millis, NAME, PROMPT, Platform, PromptRow, PromptSource, SUBJECT, Texts, Tokens,
    ToolUseRow, UnitCommit,
};
use serde_json::{Map, Value};

/// Version of the rules that distil memories. Increase it if an improvement should also apply to existing units.
pub const RULES_VERSION: i64 = 10;

spelled! {
/// State of a unit.
UnitState, default Closed {
    Open = "open",
    Closed = "closed",
    /// A model has distilled all of it.
    Distilled = "distilled",
}
}

spelled! {
/// Outcome of a unit.
UnitOutcome, default Unknown {
    /// Something was changed and committed, checked or reported finished.
    Done = "done",
    /// Nothing was changed; the agent answered.
    Answered = "answered",
    /// Something was changed, and a check failed when it ran last.
    Failing = "failing",
    /// It failed several times and still fails.
    Struggling = "struggling",
    /// Something was changed but not finished.
    Abandoned = "abandoned",
    Unknown = "unknown",
}
}

spelled! {
/// Reason for closing a unit.
ClosedBy, default Boundary {
    /// Another unit began.
    Boundary = "boundary",
    Clear = "clear",
    SessionEnd = "session end",
    ClientGone = "client gone",
    Silence = "silence",
}
}

/// A work unit, complete.
#[derive(Clone, Debug)]
pub struct UnitRow {
    pub id: i64,
    pub session: i64,
    /// The session id assigned by the agent.
    pub agent_session_id: String,
    pub platform: Platform,
    pub state: UnitState,
    pub closed_by: Option<ClosedBy>,
    pub started_at: Millis,
    pub ended_at: Millis,
    /// Active time: pauses between prompts are excluded.
    pub active_ms: Millis,
    /// The request that the unit is about.
    pub intent: Option<String>,
    /// The result of the unit.
    pub title: Option<String>,
    pub outcome: Option<UnitOutcome>,
    pub evidence: Option<String>,
    /// Its summary in eight fields, if rules or a model wrote one.
    pub summary: Option<Map<String, Value>>,
    /// Numbers of its prompts in the session.
    pub prompts: Vec<i64>,
    pub tool_uses: i64,
    pub failures: i64,
    /// Sequence numbers of its first and last tool use.
    pub range: Option<(i64, i64)>,
    /// Tool uses added after it was distilled.
    pub addendum: i64,
    pub phases: Vec<PhaseRow>,
    /// Most edited first.
    pub files: Vec<UnitFile>,
    pub commits: Vec<UnitCommit>,
    pub tokens: Option<Tokens>,
    pub boundary: Option<BoundaryRow>,
    /// Earlier boundaries inside it that were retracted.
    pub retracted: Vec<BoundaryRow>,
}

impl UnitRow {
    /// Its outcome, if known.
    pub fn known_outcome(&self) -> Option<UnitOutcome> {
        self.outcome.filter(|outcome| *outcome != UnitOutcome::Unknown)
    }

    /// Whether it was left unfinished.
    pub fn was_left(&self) -> bool {
        matches!(self.outcome, Some(UnitOutcome::Failing | UnitOutcome::Struggling | UnitOutcome::Abandoned))
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

/// The boundary at the start of a unit, with its reasons.
#[derive(Clone, Debug)]
pub struct BoundaryRow {
    /// The prompt that follows it; `None` inside the work on one prompt.
    pub prompt: Option<i64>,
    /// The first tool use after it.
    pub first_seq: Option<i64>,
    pub reason: String,
    /// Log-odds; `None` if no signal was weighed.
    pub score: Option<f64>,
    /// `{name: {value, weight, adds}}`
    pub signals: Value,
    /// `[{at, what, score}]`
    pub history: Value,
}

/// A unit with all its prompts and tool uses: the input of distillation.
#[derive(Clone, Debug)]
pub struct UnitStory {
    pub unit: i64,
    pub session: i64,
    pub intent: Option<String>,
    pub outcome: Option<UnitOutcome>,
    pub evidence: Option<String>,
    pub platform: Platform,
    pub project: Option<i64>,
    /// Working directory of its session.
    pub folder: Option<String>,
    /// The user's prompts and the agent's closing messages in order, without subagents.
    pub prompts: Vec<PromptRow>,
    /// Tokens of each turn by prompt number: tokens read or written for the first time.
    pub costs: Vec<(i64, i64)>,
    /// In order; only the last ones of a very long unit.
    pub tools: Vec<ToolUseRow>,
    pub reach: Reach,
    /// Open entries of the agent's task list, if this is the session's last unit.
    pub open_tasks: Vec<String>,
    /// The prompt that the user sent next, in the session or in the branch's next one.
    pub followed_by: Option<PromptRow>,
    /// Open ends of earlier units, which this unit may have ended. Only distillation by rules reads them.
    pub open_before: Vec<MemoryRow>,
    /// The last tool use that rules have processed.
    pub seen: Option<i64>,
    /// Marker of the unit's extent, used to detect later growth.
    pub mark: Option<String>,
    /// Name of its session's domain, and the custom configuration of it.
    pub domain: Option<(String, Option<String>)>,
}

/// Extent to which a unit's work is still stored and was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    Whole,
    /// The first part was not read because the unit is very long.
    End,
    /// Retention has deleted tool uses, so what was derived from them cannot be derived again.
    Trimmed,
}

impl Texts for UnitStory {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut String, Limit)) {
        for prompt in &mut self.prompts {
            visit(&mut prompt.text, if prompt.source == PromptSource::User { PROMPT } else { CLOSING });
        }
        self.open_tasks.iter_mut().for_each(|task| visit(task, SUBJECT));
        self.followed_by.iter_mut().for_each(|prompt| visit(&mut prompt.text, PROMPT));
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
