//! Stores tool uses, and the task list that some tools keep.

use super::events::{SAME_EVENT, name_of};
use super::events::{StoredSession, known_session};
use super::{Store, Tx};
use crate::model::{BackgroundEnd, CommandKind, Event, Metadata, Millis, Platform, Task, TaskChange, TextKind, ToolUse};
use crate::segmentation::StepId;
use anyhow::Result;
use rusqlite::{OptionalExtension, Row, named_params, params};
use std::collections::HashMap;

/// Maximum entries of a task list.
const TASKS: usize = 50;

impl Store {
    /// Returns the ids of calls that are stored, among `ids`; each with true if its outcome is known.
    pub fn stored_calls(&self, platform: Platform, session: &str, ids: &[&str]) -> Result<HashMap<String, bool>> {
        let Some(session) = known_session(&self.conn, platform, session)? else { return Ok(HashMap::new()) };
        let sql = "SELECT tool_use_id, succeeded IS NOT NULL FROM tool_uses
                   WHERE session_id = ?1 AND tool_use_id IN (SELECT value FROM json_each(?2))";
        let values = params![session.id, serde_json::to_string(ids)?];
        let row = |row: &Row| Ok((row.get(0)?, row.get(1)?));
        Ok(self.conn.prepare_cached(sql)?.query_map(values, row)?.collect::<Result<_, _>>()?)
    }

    /// Kind and content of calls that hooks stored without an id since a time.
    pub fn unnamed_calls(&self, platform: Platform, session: &str, since: Millis) -> Result<Vec<(String, Option<String>)>> {
        let Some(session) = known_session(&self.conn, platform, session)? else { return Ok(Vec::new()) };
        let sql = "SELECT kind, coalesce(content, path) FROM tool_uses
                   WHERE session_id = ?1 AND (tool_use_id IS NULL OR tool_use_id LIKE '~%') AND received_at >= ?2";
        let row = |row: &Row| Ok((row.get(0)?, row.get(1)?));
        Ok(self.conn.prepare_cached(sql)?.query_map(params![session.id, since], row)?.collect::<Result<_, _>>()?)
    }
}

impl Tx<'_> {
    /// Whether the same tool use, without an id of its own, was stored just now.
    pub fn is_same_tool_use(&self, session: &StoredSession, event: &Event, tool: &ToolUse) -> Result<bool> {
        Ok(id_of(event, tool).is_none() && self.used_just_now(session, event, tool)?)
    }

    /// Stores a tool use once, in the step that it continues, and the task list if the tool keeps one. `project`: that of
    /// its repository, if it is not the session's. Returns its row if it is new.
    pub fn tool_use(
        &self,
        session: &StoredSession,
        event: &Event,
        tool: &ToolUse,
        prompt: Option<i64>,
        step: StepId,
        project: Option<i64>,
    ) -> Result<Option<i64>> {
        let StepId::Stored(step) = step else { anyhow::bail!("a step that is not stored") };
        let sql =
            "INSERT INTO tool_uses(session_id, seq, prompt_id, tool_use_id, received_at, cwd, tool_name, kind, command_kind,
                     path, content, input, outcome, succeeded, source_event, metadata, step_id, project_id)
                   VALUES (:session, :seq, :prompt, :id, :at, :cwd, :name, :kind, :command, :path, :content, :input, :outcome,
                     :succeeded, :event, :metadata, :step, :project)
                   ON CONFLICT(session_id, tool_use_id) WHERE tool_use_id IS NOT NULL DO NOTHING";
        let metadata = Some(serde_json::to_string(&tool.metadata)?).filter(|json| json != "{}");
        let insert = |id: Option<String>| -> Result<bool> {
            let inserted = self.tx.prepare_cached(sql)?.execute(named_params! {
                ":session": session.id, ":seq": session.tool_uses + 1, ":prompt": prompt, ":id": id, ":at": event.at,
                ":cwd": event.cwd.as_deref().filter(|cwd| session.cwd.as_deref() != Some(cwd)),
                ":name": tool.name, ":kind": tool.kind.name(), ":command": tool.command.map(|c| c.name()),
                ":path": tool.path, ":content": tool.content, ":input": tool.input, ":outcome": tool.outcome,
                ":succeeded": tool.succeeded, ":event": tool.source_event, ":metadata": metadata,
                ":step": step, ":project": project,
            })?;
            Ok(inserted > 0)
        };
        let id = id_of(event, tool);
        if !insert(id.clone())? {
            let (Some(id), Some(turn)) = (id, event.prompt.as_deref()) else { return Ok(None) };
            if !self.is_another_call(session, tool, &id, prompt)? || !insert(Some(format!("{id}@{turn}")))? {
                return Ok(None);
            }
        }
        let id = self.tx.last_insert_rowid();
        if tool.command == Some(CommandKind::Commit) {
            self.wait_for_index(TextKind::Commit, id)?;
        }
        let sql = "UPDATE sessions SET tool_uses = tool_uses + 1, failures = failures + ?2,
                     kinds = json_set(kinds, ?3, coalesce(json_extract(kinds, ?3), 0) + 1) WHERE id = ?1";
        let failed = i64::from(tool.succeeded == Some(false));
        self.tx.prepare_cached(sql)?.execute(params![session.id, failed, format!("$.{}", tool.kind.name())])?;
        if let Some(change) = &tool.tasks {
            self.change_tasks(session, change)?;
        }
        Ok(Some(id))
    }

    /// Returns true if a stored id belongs to another call: some models restart their numbers in each turn.
    fn is_another_call(&self, session: &StoredSession, tool: &ToolUse, id: &str, prompt: Option<i64>) -> Result<bool> {
        let sql = "SELECT 1 FROM tool_uses WHERE session_id = ?1 AND tool_use_id = ?2 AND prompt_id IS NOT ?3
                     AND (tool_name <> ?4 OR content IS NOT ?5 OR path IS NOT ?6)";
        let values = params![session.id, id, prompt, tool.name, tool.content, tool.path];
        Ok(self.tx.prepare_cached(sql)?.exists(values)?)
    }

    /// Searches the session's latest calls for the same one; for platforms without call ids.
    fn used_just_now(&self, session: &StoredSession, event: &Event, tool: &ToolUse) -> Result<bool> {
        let sql = "SELECT 1 FROM tool_uses WHERE session_id = ?1 AND seq > ?2 - 16 AND tool_use_id IS NULL AND tool_name = ?3
                     AND content IS ?4 AND path IS ?5 AND input IS ?6 AND outcome IS ?7 AND source_event = ?8 AND abs(?9 - received_at) <= ?10";
        let values = params![
            session.id,
            session.tool_uses,
            tool.name,
            tool.content,
            tool.path,
            tool.input,
            tool.outcome,
            tool.source_event,
            event.at,
            SAME_EVENT
        ];
        Ok(self.tx.prepare_cached(sql)?.exists(values)?)
    }

    /// Finds a call whose outcome is not known yet, by its id or the id of its background command.
    pub fn background_call(&self, event: &Event, id: &str) -> Result<Option<BackgroundCall>> {
        let Some(session) = known_session(&self.tx, event.platform, &event.session)? else { return Ok(None) };
        let sql = "SELECT id, step_id, content, command_kind FROM tool_uses
                   WHERE session_id = ?1 AND succeeded IS NULL AND (metadata ->> 'background' = ?2 OR tool_use_id = ?2) ORDER BY seq DESC LIMIT 1";
        let row = |row: &Row| {
            let (row, step, content, command) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
            Ok(BackgroundCall { row, session: session.id, step, content, command })
        };
        Ok(self.tx.prepare_cached(sql)?.query_row(params![session.id, id], row).optional()?)
    }

    /// Stores the outcome of a background command. A stopped one has none, but it ended.
    pub fn end_background_call(&self, call: &BackgroundCall, ended: &BackgroundEnd, succeeded: Option<bool>) -> Result<()> {
        let failed = succeeded == Some(false);
        let output = ended.output.as_deref();
        let code = ended.exit_code.map(|code| format!("Exit code {code}"));
        let response = [code.as_deref(), output].into_iter().flatten().collect::<Vec<_>>().join("\n");
        let facts = Metadata {
            failed,
            response: failed.then_some(response),
            exit_code: ended.exit_code,
            interrupted: succeeded.is_none(),
            ..Metadata::default()
        };
        let sql = "UPDATE tool_uses SET succeeded = ?2, outcome = coalesce(?3, outcome), metadata = json_patch(coalesce(metadata, '{}'), ?4)
                   WHERE id = ?1";
        let output = output.filter(|_| !failed);
        self.tx.prepare_cached(sql)?.execute(params![call.row, succeeded, output, serde_json::to_string(&facts)?])?;
        self.index_tool_again(call.row)?;
        if failed {
            self.tx.execute("UPDATE sessions SET failures = failures + 1 WHERE id = ?1", [call.session])?;
            self.tx.execute("UPDATE steps SET failures = failures + 1 WHERE id = ?1", [call.step])?;
        }
        let sql = "UPDATE work_units SET rules_due = 1 WHERE id = (SELECT work_unit_id FROM steps WHERE id = ?1)";
        self.tx.execute(sql, [call.step])?;
        Ok(())
    }

    /// Changes the session's task list.
    pub fn change_tasks(&self, session: &StoredSession, change: &TaskChange) -> Result<()> {
        let existing = session.tasks.as_deref().and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default();
        let json = serde_json::to_string(&changed(existing, change))?;
        self.tx.prepare_cached("UPDATE sessions SET tasks = ?2 WHERE id = ?1")?.execute(params![session.id, json])?;
        Ok(())
    }
}

/// A call that started a background command.
#[derive(Clone, Debug)]
pub struct BackgroundCall {
    pub row: i64,
    pub session: i64,
    pub step: Option<i64>,
    /// The command line.
    pub content: Option<String>,
    pub command: Option<CommandKind>,
}

/// The platform's id of a call, or a name from its content and time.
fn id_of(event: &Event, tool: &ToolUse) -> Option<String> {
    let texts = [Some(tool.source_event.as_str()), Some(&tool.name), tool.content.as_deref(), tool.path.as_deref()];
    let more = [tool.input.as_deref(), tool.outcome.as_deref(), tool.metadata.response.as_deref()];
    tool.id.clone().or_else(|| name_of(event, &[&texts[..], &more[..]].concat()))
}

fn changed(mut tasks: Vec<Task>, change: &TaskChange) -> Vec<Task> {
    match change {
        TaskChange::Replace(list) => tasks = list.clone(),
        TaskChange::Upsert(patch) => {
            let known = patch.id.is_some().then(|| tasks.iter_mut().find(|t| t.id == patch.id)).flatten();
            match known {
                Some(task) => {
                    task.subject = patch.subject.clone().unwrap_or(std::mem::take(&mut task.subject));
                    task.status = patch.status.clone().unwrap_or(std::mem::take(&mut task.status));
                }
                None => tasks.push(Task {
                    id: patch.id.clone(),
                    subject: patch.subject.clone().unwrap_or_default(),
                    status: patch.status.clone().unwrap_or_else(|| "pending".into()),
                }),
            }
        }
    }
    tasks.retain(|task| task.status != "deleted");
    // A list that is too long loses completed entries first.
    while tasks.len() > TASKS {
        let done = tasks.iter().position(|task| task.status == "completed").unwrap_or(tasks.len() - 1);
        tasks.remove(done);
    }
    tasks
}
