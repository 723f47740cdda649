//! Texts of a value with their limits, so that redaction and cleaning reach each of them.

use super::{BackgroundEnd, Event, EventKind, GitState, Kind, ProjectId, TakenBack, TaskChange, ToolUse, TurnUsage};
use serde_json::{Map, Value};

/// Maximum bytes kept of a text: its head and tail, not its middle, because the reason for a failure is at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit(pub usize);

/// Keys that identify or join rows: kept whole or replaced by a hash.
pub const ID: Limit = Limit(512);
/// Names and paths.
pub const NAME: Limit = Limit(1024);
/// A command, a pattern, a query.
pub const CONTENT: Limit = Limit(2048);
/// Input or output of a tool that succeeded (ADR/0003).
pub const EXCERPT: Limit = Limit(600);
/// Output of a tool that failed.
pub const FAILURE: Limit = Limit(2000);
/// A user's prompt.
pub const PROMPT: Limit = Limit(16 * 1024);
/// An agent's closing message.
pub const CLOSING: Limit = Limit(8 * 1024);
/// An agent's thinking.
pub const THINKING: Limit = Limit(2048);
/// A task's subject.
pub const SUBJECT: Limit = Limit(200);

/// A value with texts that can be visited, each with its limit.
pub trait Texts {
    /// Calls `visit` on every text that could hold something private.
    fn texts(&mut self, visit: &mut dyn FnMut(&mut String, Limit));

    /// Returns the tool use in the value and the folder at which its paths start, because some files are recorded by path
    /// only.
    fn tool_use(&mut self) -> Option<(&mut ToolUse, Option<String>)> {
        None
    }
}

fn each(visit: &mut dyn FnMut(&mut String, Limit), texts: &mut [(&mut Option<String>, Limit)]) {
    for (text, limit) in texts {
        if let Some(text) = text {
            visit(text, *limit);
        }
    }
}

impl Texts for String {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut String, Limit)) {
        visit(self, FAILURE);
    }
}

/// A session id assigned by an agent.
#[derive(Clone, Debug)]
pub struct AgentSession(pub String);

impl Texts for AgentSession {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut String, Limit)) {
        visit(&mut self.0, ID);
    }
}

impl Texts for Event {
    fn tool_use(&mut self) -> Option<(&mut ToolUse, Option<String>)> {
        match &mut self.what {
            EventKind::ToolUsed(tool) => {
                let root = tool.repository.clone().filter(|_| tool.kind != Kind::Command);
                Some((tool, root.or(self.cwd.clone())))
            }
            _ => None,
        }
    }

    fn texts(&mut self, visit: &mut dyn FnMut(&mut String, Limit)) {
        visit(&mut self.session, ID);
        each(visit, &mut [(&mut self.cwd, NAME), (&mut self.transcript, NAME), (&mut self.prompt, ID), (&mut self.agent, ID)]);
        each(visit, &mut [(&mut self.repository_url, NAME)]);
        if let Some(project) = &mut self.project {
            project.texts(visit);
        }
        if let Some(usage) = &mut self.usage {
            usage.texts(visit);
        }
        match &mut self.what {
            EventKind::SessionStarted(start) => {
                each(visit, &mut [(&mut start.model, NAME)]);
                git_texts(&mut start.git, visit);
            }
            EventKind::UserPrompt { text } => visit(text, PROMPT),
            EventKind::Answered { call, answers } => {
                each(visit, &mut [(call, ID)]);
                for answer in answers {
                    visit(&mut answer.question, NAME);
                    answer.options.iter_mut().for_each(|option| visit(option, NAME));
                    visit(&mut answer.text, PROMPT);
                }
            }
            EventKind::TakenBack(TakenBack::Since(prompt) | TakenBack::One(prompt)) => visit(prompt, ID),
            EventKind::TakenBack(TakenBack::Last(_) | TakenBack::At(_)) => {}
            EventKind::PreEdit { path, repository } => {
                visit(path, NAME);
                each(visit, &mut [(repository, NAME)]);
            }
            EventKind::PrivatePrompt | EventKind::Compacting | EventKind::SubagentStarted => {}
            EventKind::ToolUsed(tool) => tool.texts(visit),
            EventKind::TasksChanged(change) => change.texts(visit),
            EventKind::BackgroundEnded(ended) => ended.texts(visit),
            EventKind::TurnEnded { closing, error } => each(visit, &mut [(closing, CLOSING), (error, NAME)]),
            EventKind::Delegating { files } => files.iter_mut().for_each(|file| visit(file, NAME)),
            EventKind::SubagentEnded { agent_type, closing } => {
                visit(agent_type, NAME);
                each(visit, &mut [(closing, CLOSING)]);
            }
            EventKind::SessionEnded { reason, git } => {
                visit(reason, NAME);
                git_texts(git, visit);
            }
        }
    }
}

fn git_texts(git: &mut Option<GitState>, visit: &mut dyn FnMut(&mut String, Limit)) {
    if let Some(git) = git {
        each(visit, &mut [(&mut git.branch, NAME), (&mut git.head, NAME)]);
    }
}

impl Texts for ToolUse {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut String, Limit)) {
        visit(&mut self.name, NAME);
        visit(&mut self.source_event, NAME);
        let meta = &mut self.metadata;
        each(
            visit,
            &mut [
                (&mut self.id, ID),
                (&mut self.path, NAME),
                (&mut self.repository, NAME),
                (&mut self.content, CONTENT),
                (&mut self.input, EXCERPT),
                (&mut self.outcome, EXCERPT),
                (&mut meta.description, EXCERPT),
                (&mut meta.subagent_type, NAME),
                (&mut meta.response, FAILURE),
                (&mut meta.background, NAME),
                (&mut meta.spawned_agent, ID),
                (&mut meta.agent_id, ID),
            ],
        );
        each_field(&mut meta.extra, "", EXCERPT, visit);
        if let Some(commit) = &mut meta.commit {
            each(visit, &mut [(&mut commit.sha, NAME), (&mut commit.subject, SUBJECT)]);
        }
        if let Some(tasks) = &mut self.tasks {
            tasks.texts(visit);
        }
        if let Some(ended) = &mut self.ended {
            ended.texts(visit);
        }
    }
}

impl Texts for BackgroundEnd {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut String, Limit)) {
        visit(&mut self.id, NAME);
        each(visit, &mut [(&mut self.output, FAILURE)]);
    }
}

impl Texts for TaskChange {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut String, Limit)) {
        match self {
            TaskChange::Replace(tasks) => {
                for task in tasks {
                    each(visit, &mut [(&mut task.id, NAME)]);
                    visit(&mut task.subject, SUBJECT);
                    visit(&mut task.status, NAME);
                }
            }
            TaskChange::Upsert(patch) => {
                each(visit, &mut [(&mut patch.id, NAME), (&mut patch.subject, SUBJECT), (&mut patch.status, NAME)])
            }
        }
    }
}

impl Texts for ProjectId {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut String, Limit)) {
        self.places.iter_mut().chain(&mut self.keys).for_each(|key| visit(key, ID));
        visit(&mut self.name, NAME);
        visit(&mut self.root, NAME);
        each(visit, &mut [(&mut self.repo_url, NAME), (&mut self.domain, NAME)]);
    }
}

impl Texts for TurnUsage {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut String, Limit)) {
        each(
            visit,
            &mut [
                (&mut self.model, NAME),
                (&mut self.stop_reason, NAME),
                (&mut self.thinking, THINKING),
                (&mut self.last_message, ID),
            ],
        );
    }
}

/// Longest name, in bytes, that can mark its value as a secret.
const TELLING: usize = 64;
/// Longest value, in bytes, that a name can mark as a secret.
const SHORT: usize = 1024;
const WORDS: usize = 6;
/// Maximum nesting. nmem must be able to read back what it writes, and JSON parsing stops at 128.
pub const DEPTH: usize = 64;

type Visit<'a> = &'a mut dyn FnMut(&mut String, Limit);

/// Visits the fields, their names and all texts in them.
pub fn each_field(fields: &mut Map<String, Value>, above: &str, limit: Limit, visit: Visit) {
    let mut names: Vec<(String, String)> = Vec::new();
    for (name, value) in fields.iter_mut() {
        let mut cleaned = name.clone();
        visit(&mut cleaned, NAME);
        if cleaned != *name {
            names.push((name.clone(), cleaned));
        }
        each_text([above, name], value, limit, visit);
    }
    for (name, cleaned) in names {
        if let Some(value) = fields.remove(&name) {
            fields.insert(cleaned, value);
        }
    }
}

/// Visits the texts of a value below the given names.
pub fn each_text(names: [&str; 2], value: &mut Value, limit: Limit, visit: Visit) {
    match value {
        Value::String(text) => {
            visit(text, limit);
            // A secret that follows a name is short; longer prose is visited without the name.
            let is_short = text.len() <= SHORT && text.split_whitespace().nth(WORDS).is_none();
            for name in names.into_iter().filter(|name| is_short && !name.is_empty() && name.len() <= TELLING) {
                let lead = format!("\"{name}\": ");
                let mut named = format!("{lead}{}", Value::from(text.as_str()));
                let before = named.clone();
                // An escaped character takes at most six bytes. Nothing may be cut here.
                visit(&mut named, Limit(lead.len() + 6 * text.len() + 2));
                // If the name marks it as a secret, the whole value becomes a mark.
                if let Some(mark) = named.strip_prefix(&lead).filter(|_| named != before).and_then(mark) {
                    *text = mark.to_string();
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(names, item, limit, visit)),
        Value::Object(fields) => each_field(fields, names[1], limit, visit),
        _ => {}
    }
}

fn mark(text: &str) -> Option<&str> {
    let from = text.find("[redacted:")?;
    let to = text[from..].find(']')?;
    Some(&text[from..=from + to])
}

/// Nesting depth of a value: 1 for a scalar or an empty container.
pub fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 1,
    }
}
