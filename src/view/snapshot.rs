//! The content of the page as one JSON object: sessions, work units, memories with their sources, injections, failures,
//! and model calls. Rows are rendered as `--json` of the commands renders them, without fields that the page
//! does not use.
//!
//! The newest rows are read up to a limit for each kind; `totals` states how many there are.

use crate::config::Config;
use crate::evidence::{Git, ProjectRecords, verify};
use crate::model::{InjectionRow, MemoryRow, Millis, Platform, PromptRow, SearchScope, SessionRow, Source, ToolUseRow, UnitRow};
use crate::rank::contradicted;
use crate::recall::{self, CurrentTask};
use crate::render::{details, evidence_text, memory_text, session_log, session_start, unit_text};
use crate::runtime::{Projects, redactor};
use crate::store::Store;
use crate::text::is_unseen;
use anyhow::Result;
use serde_json::{Map, Value, json};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

const MEMORIES: usize = 10_000;
const UNITS: usize = 5_000;
const SESSIONS: usize = 2_000;
const CALLS: usize = 5_000;
/// Number of newest injections whose use is judged: each session's texts are read.
const JUDGED: usize = 200;

/// Maximum failed commands of each project.
const FAILURES: usize = 200;
/// Number of newest decisions and lessons to check for contradictions.
const SETTLED: usize = 500;
/// Maximum characters of one text. Longer texts are cut; `nmem show` prints them completely.
const TEXT: usize = 12_000;

/// Level of detail of the rows on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detail {
    /// Maximum characters of the text of a prompt or tool use that a memory comes from.
    pub source_text: usize,
    /// Maximum tool uses that a memory comes from.
    pub tool_uses: usize,
    /// True if the input and output of a tool use are included, not only its command or file.
    pub tool_texts: bool,
    /// Maximum files of a unit, most edited first.
    pub unit_files: usize,
    /// Maximum injections with their texts, newest first.
    pub injection_texts: usize,
}

impl Detail {
    pub const FULL: Detail =
        Detail { source_text: TEXT, tool_uses: 200, tool_texts: true, unit_files: 100, injection_texts: usize::MAX };
    /// For a page that requests the rest from its server.
    pub const BRIEF: Detail =
        Detail { source_text: 160, tool_uses: 5, tool_texts: false, unit_files: 40, injection_texts: 2_000 };
}

/// Characters of the output of a failed tool use that every level of detail allows.
const FAILURE: usize = 600;
/// Number of leading characters of a quotation to search for in its source text.
const QUOTE: usize = 30;

/// The projects on the page, and its heading.
#[derive(Clone, Debug)]
pub struct PageScope {
    /// `None`: all projects.
    pub project: Option<i64>,
    /// The page's heading.
    pub name: String,
}

/// Row id of a project without records; no row has this number.
const NOT_RECORDED: i64 = 0;

impl PageScope {
    /// The project of a folder, or all projects; `None` if the folder is not a project.
    pub fn of(config: &Config, folder: &Path, all: bool, store: Option<&Store>) -> Option<PageScope> {
        if all {
            return Some(PageScope { project: None, name: "all projects".into() });
        }
        let redactor = redactor(config).unwrap_or_default();
        let place = Projects { config, redactor: &redactor }.look_up(&folder.to_string_lossy(), store);
        let project = Some(place.row.as_ref().map_or(NOT_RECORDED, |row| row.id));
        place.name().map(|name| PageScope { project, name: name.to_string() })
    }

    /// Returns an empty scope.
    pub fn nothing() -> PageScope {
        PageScope { project: Some(NOT_RECORDED), name: "nothing".into() }
    }

    pub fn is_recorded(&self) -> bool {
        self.project != Some(NOT_RECORDED)
    }
}

/// Rows for the page.
#[derive(Debug, Default)]
pub struct Snapshot {
    sessions: Vec<SessionRow>,
    units: Vec<UnitRow>,
    memories: Vec<MemoryRow>,
    injections: Vec<InjectionRow>,
    /// Failed commands, with their units.
    failures: Vec<(ToolUseRow, Option<i64>)>,
    /// The tool uses and texts that the memories come from.
    tool_uses: Vec<ToolUseRow>,
    prompts: Vec<PromptRow>,
    /// Parts that belong to no session: heading, time, totals, model calls.
    rest: Map<String, Value>,
}

impl Snapshot {
    /// Reads all data of the page.
    pub fn whole(store: &Store, scope: &PageScope, now: Millis) -> Result<Snapshot> {
        store.read(|store| {
            let (sessions, all_sessions) = store.sessions_since(&SearchScope::of_any(scope.project), None, SESSIONS)?;
            let (units, all_units) = store.units_of_projects(&SearchScope::of_any(scope.project), None, UNITS)?;
            let (memories, all_memories) = store.all_memories(scope.project, MEMORIES)?;
            let totals = json!({
                "sessions": [sessions.len(), all_sessions], "units": [units.len(), all_units], "memories": [memories.len(), all_memories],
            });
            let mut failures = Vec::new();
            for project in projects(store, scope)? {
                failures.extend(store.failed_commands(project, FAILURES)?);
            }
            let calls = store.calls_about(scope.project, CALLS)?.into_iter().map(|call| {
                json!({"at": call.at, "provider": call.provider, "model": call.model, "purpose": call.purpose,
                    "outcome": call.outcome, "input": call.input_tokens, "output": call.output_tokens, "estimated": call.estimated})
            });
            let rest = [
                ("project", json!(scope.name)),
                ("made_at", json!(now)),
                ("version", json!(env!("CARGO_PKG_VERSION"))),
                ("agents", Platform::ALL.iter().map(|platform| (platform.name().to_string(), json!(platform.title()))).collect()),
                ("totals", totals),
                ("calls", calls.collect()),
            ];
            let rest = rest.map(|(name, value)| (name.to_string(), value)).into_iter().collect();
            Snapshot { sessions, units, memories, failures, rest, ..Snapshot::default() }.completed(store)
        })
    }

    /// Adds what holds now in a folder: the checks of its worktree, and what the next session there would receive.
    pub fn with_current_state(mut self, store: &Store, config: &Config, folder: &Path, now: Millis) -> Snapshot {
        // The page does without what cannot be read.
        let checks = with_records(store, config, folder, verify).ok().flatten();
        let next = next_context(store, config, folder, now).ok().flatten();
        let state = json!({
            "checks": checks.map(|verification| evidence_text::verification_json(&verification)), "next": next,
        });
        self.rest.insert("now".to_string(), state);
        self
    }

    /// Reads the data of some sessions (rows), without the data that belongs to no session. Sessions outside the scope
    /// are skipped.
    pub fn of_sessions(store: &Store, scope: &PageScope, sessions: &[i64]) -> Result<Snapshot> {
        store.read(|store| {
            let mut part = Snapshot::default();
            for id in sessions {
                if scope.project.is_some() && store.project_of_session(*id)? != scope.project {
                    continue;
                }
                part.sessions.extend(store.session_by_row(*id)?);
                part.units.extend(store.units_of_session(*id)?);
                part.memories.extend(store.memories_of_session(*id)?);
                part.failures.extend(store.failed_commands_of(*id, FAILURES)?);
            }
            part.completed(store)
        })
    }

    /// Adds the injections of the sessions and the sources of the memories.
    fn completed(mut self, store: &Store) -> Result<Snapshot> {
        self.injections = store.injections_of(&self.sessions.iter().map(|session| session.id).collect::<Vec<_>>())?;
        let newest = self.injections.len().min(JUDGED);
        recall::judge_use(store, &mut self.injections[..newest])?;
        let (mut tool_uses, mut prompts) = (BTreeSet::new(), BTreeSet::new());
        for source in self.memories.iter().flat_map(|memory| &memory.sources) {
            match source {
                Source::ToolUse(id) => tool_uses.insert(*id),
                Source::Prompt(id) => prompts.insert(*id),
            };
        }
        let list = |ids: BTreeSet<i64>| ids.into_iter().collect::<Vec<_>>();
        self.tool_uses = store.tool_uses_by_row(&list(tool_uses))?;
        self.prompts = store.prompts_by_row(&list(prompts))?;
        Ok(self)
    }

    /// Returns a page without data.
    pub fn empty(scope: &PageScope, now: Millis) -> Snapshot {
        let rest = [("project", json!(scope.name)), ("made_at", json!(now))];
        Snapshot { rest: rest.map(|(name, value)| (name.to_string(), value)).into_iter().collect(), ..Snapshot::default() }
    }

    /// The number of memories.
    pub fn memory_count(&self) -> usize {
        self.memories.len()
    }

    /// Returns the data as JSON. Source texts are cut around the parts that memories quote.
    pub fn json(&self, detail: Detail) -> Value {
        let by_row: HashMap<i64, &SessionRow> = self.sessions.iter().map(|session| (session.id, session)).collect();
        let agents_id = |row: i64| by_row.get(&row).map(|session| session.agent_session_id.as_str());
        let injections = self.injections.iter().enumerate().filter_map(|(at, injection)| {
            let mut out = session_log::injection_json(injection, by_row.get(&injection.session)?);
            if at >= detail.injection_texts && injection.text.is_some() {
                out["text"] = Value::Null;
                out["is_cut"] = true.into();
            }
            Some(out)
        });
        let mut sources = Map::new();
        let shown: HashSet<i64> = self.memories.iter().flat_map(|memory| first_tool_uses(memory, detail.tool_uses)).collect();
        let drawn = self.tool_uses.iter().filter(|tool| shown.contains(&tool.id)).map(|tool| (tool, None));
        for (tool, unit) in drawn.chain(self.failures.iter().map(|(tool, unit)| (tool, *unit))) {
            sources.insert(format!("t{}", tool.id), tool_use(tool, agents_id(tool.session_id), unit, detail));
        }
        let quoted = self.quoted();
        for prompt in &self.prompts {
            let mut out = details::prompt_json(prompt, agents_id(prompt.session_id), None);
            let quotes = quoted.get(&prompt.id).map_or(&[][..], Vec::as_slice);
            out["text"] = passage(&prompt.text, quotes, detail.source_text).into();
            sources.insert(format!("p{}", prompt.id), out);
        }
        let mut out = self.rest.clone();
        let rows = [
            ("sessions", self.sessions.iter().map(session).collect()),
            ("units", self.units.iter().map(|row| unit(row, detail.unit_files)).collect()),
            ("memories", self.memories()),
            ("injections", injections.collect()),
            ("failures", self.failures.iter().map(|(tool, _)| Value::from(format!("t{}", tool.id))).collect()),
            ("sources", Value::Object(sources)),
        ];
        out.extend(rows.map(|(name, value)| (name.to_string(), value)));
        tidy(Value::Object(out))
    }

    /// Returns memories as JSON, with `contradicted_by` if a newer one contradicts them.
    fn memories(&self) -> Value {
        let settled = self.memories.iter().filter(|memory| memory.superseded_by.is_none() && memory.kind.is_lasting());
        let against = contradicted(&settled.take(SETTLED).cloned().collect::<Vec<_>>());
        let json = |memory: &MemoryRow| {
            let mut out = memory_text::json(memory);
            for unused in ["hashes", "uuid", "tokens_estimated"] {
                out[unused] = Value::Null;
            }
            out["contradicted_by"] = against.get(&memory.id).map(|by| format!("m{by}")).into();
            out
        };
        self.memories.iter().map(json).collect()
    }

    /// Returns the titles of memories, by the prompt that they come from.
    fn quoted(&self) -> HashMap<i64, Vec<&str>> {
        let mut quoted: HashMap<i64, Vec<&str>> = HashMap::new();
        for memory in &self.memories {
            for source in &memory.sources {
                if let Source::Prompt(id) = source {
                    quoted.entry(*id).or_default().push(&memory.title);
                }
            }
        }
        quoted
    }
}

/// Asks a question about the work behind a folder's repository; `None` if it is in none, or nothing is recorded for it.
pub fn with_records<T>(
    store: &Store,
    config: &Config,
    folder: &Path,
    question: impl FnOnce(&ProjectRecords) -> Result<T>,
) -> Result<Option<T>> {
    let Ok(git) = Git::open(folder) else { return Ok(None) };
    let redactor = redactor(config)?;
    let place = Projects { config, redactor: &redactor }.look_up(&folder.to_string_lossy(), Some(store));
    let Some(scope) = place.scope() else { return Ok(None) };
    question(&ProjectRecords { store, scope: &scope, redactor: &redactor, git: &git }).map(Some)
}

/// The text that the next session in a folder would receive.
fn next_context(store: &Store, config: &Config, folder: &Path, now: Millis) -> Result<Option<String>> {
    let redactor = redactor(config)?;
    let place = Projects { config, redactor: &redactor }.look_up(&folder.to_string_lossy(), Some(store));
    let Some(row) = place.row else { return Ok(None) };
    let home = config.home.as_deref();
    let task = CurrentTask { project: row.id, folder, home, request: None, files: &[], embedding: None, now };
    let recalled = recall::for_new_session(store, &task, now)?;
    Ok(Some(session_start::for_agent(&recalled, config.context_bytes.value).text).filter(|text| !text.is_empty()))
}

/// The projects of a scope.
fn projects(store: &Store, scope: &PageScope) -> Result<Vec<i64>> {
    match scope.project {
        Some(project) => Ok(vec![project]),
        None => Ok(store.projects()?.into_iter().map(|(project, ..)| project.id).collect()),
    }
}

fn session(row: &SessionRow) -> Value {
    let mut out = details::session_json(row, Vec::new(), Vec::new());
    out["cwd"] = Value::Null;
    out["tasks"] = Value::Null;
    out
}

fn first_tool_uses(memory: &MemoryRow, most: usize) -> impl Iterator<Item = i64> {
    memory.sources.iter().filter_map(|source| source.tool_use()).take(most)
}

fn unit(row: &UnitRow, most_files: usize) -> Value {
    let mut out = unit_text::json(row);
    if let Some(files) = out["files"].as_array_mut() {
        files.truncate(most_files);
    }
    out["boundary"] = row.boundary.as_ref().map(|boundary| json!({"reason": boundary.reason})).into();
    out["taken_back"] = Value::Null;
    out
}

fn tool_use(row: &ToolUseRow, session: Option<&str>, unit: Option<i64>, detail: Detail) -> Value {
    let mut out = details::tool_use_json(row, session, unit);
    let most = if row.succeeded == Some(false) { detail.source_text.max(FAILURE) } else { detail.source_text };
    let kept = ["description", "response"].map(|name| (name.to_string(), row.metadata[name].clone()));
    out["metadata"] = Value::Object(Map::from_iter(kept));
    let unused: &[&str] = if detail.tool_texts { &["tool_use_id", "seq"] } else { &["tool_use_id", "seq", "input", "metadata"] };
    unused.iter().for_each(|name| out[*name] = Value::Null);
    for name in ["content", "input", "outcome"] {
        if let Some(text) = out[name].as_str().filter(|text| text.len() > most) {
            out[name] = passage(text, &[], most).into();
        }
    }
    out
}

/// Cuts a text to at most `most` characters. A longer text starts shortly before the first quotation, with `…` where
/// something is missing.
fn passage(text: &str, quotes: &[&str], most: usize) -> String {
    if text.len() <= most || text.chars().count() <= most {
        return text.to_string();
    }
    let begin = |quote: &&str| quote.chars().take(QUOTE).collect::<String>();
    let first = quotes.iter().filter_map(|quote| text.find(&begin(quote))).min().unwrap_or(0);
    let before = text[..first].chars().count().saturating_sub(most / 4);
    let kept: String = text.chars().skip(before).take(most).collect();
    let reaches_end = text.chars().count() <= before + most;
    format!("{}{kept}{}", if before > 0 { "…" } else { "" }, if reaches_end { "" } else { "…" })
}

/// Prepares values for the page: removes nulls, empty lists and invisible characters, and cuts texts.
fn tidy(value: Value) -> Value {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    match value {
        Value::String(text) => Value::String(shown(text)),
        Value::Array(items) => items.into_iter().map(tidy).collect(),
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, value)| (name, tidy(value)));
            Value::Object(fields.filter(|(_, value)| !is_empty(value)).collect())
        }
        other => other,
    }
}

fn shown(text: String) -> String {
    if text.len() <= TEXT && !text.chars().any(is_unseen) {
        return text;
    }
    let mut chars = text.chars().filter(|c| !is_unseen(*c));
    let mut out: String = chars.by_ref().take(TEXT).collect();
    if chars.next().is_some() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_empty_goes_and_what_cannot_be_seen_too() {
        let value = json!({"a": null, "b": [], "c": {"d": null}, "e": "x\u{202e}y\u{1b}[31m", "f": 0, "g": false});
        assert_eq!(tidy(value), json!({"e": "xy[31m", "f": 0, "g": false}));
    }

    #[test]
    fn a_long_text_is_cut_around_what_a_memory_quotes() {
        let text = format!("{} The cache is in SQLite because of locks. {}", "before ".repeat(50), "after ".repeat(50));
        let cut = passage(&text, &["The cache is in SQLite because of locks"], 120);
        assert!(cut.starts_with('…') && cut.ends_with('…') && cut.contains("The cache is in SQLite because of locks."), "{cut}");
        assert_eq!(cut.chars().count(), 122);
        assert_eq!(passage("short", &["nothing"], 120), "short");
    }

    #[test]
    fn a_text_of_a_megabyte_is_cut() {
        let Value::String(text) = tidy(json!("ä".repeat(1 << 20))) else { panic!() };
        assert_eq!(text.chars().count(), TEXT + 1);
        assert!(text.ends_with('…'));
    }
}
