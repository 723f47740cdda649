//! Recorded edits and commits, for questions about a line or a commit.

use super::Store;
use super::history::in_project;
use crate::model::{Kind, Millis, SearchScope};
use anyhow::Result;
use rusqlite::{Row, params};

/// An edit of a file.
#[derive(Clone, Debug)]
pub struct RecordedEdit {
    pub tool_use: i64,
    pub session: i64,
    pub seq: i64,
    pub unit: Option<i64>,
    pub at: Millis,
    pub kind: Kind,
    /// Marks of the lines that it wrote (`redact::LineMark`), in base64.
    pub written: Option<String>,
    /// An excerpt of its text.
    pub input: Option<String>,
}

/// A command that made a commit.
#[derive(Clone, Debug)]
pub struct RecordedCommit {
    pub tool_use: i64,
    pub session: i64,
    pub seq: i64,
    pub unit: Option<i64>,
    pub at: Millis,
    /// Ids of its commits, as git printed them; usually one.
    pub shas: Vec<String>,
}

impl Store {
    /// The edits of a file in the order of time, those that failed left out.
    pub fn edits_of_file(&self, scope: &SearchScope, path: &str) -> Result<Vec<RecordedEdit>> {
        let of = in_project("?2");
        let sql = format!(
            "SELECT t.id, t.session_id, t.seq, (SELECT work_unit_id FROM steps WHERE id = t.step_id), t.received_at, t.kind,
               t.metadata ->> 'written', t.input
             FROM tool_uses t WHERE t.step_id IN (SELECT step_id FROM step_files WHERE path = ?1 AND edits > 0)
               AND t.path = ?1 AND t.kind IN ('edit', 'write') AND t.succeeded IS NOT 0 AND {of} ORDER BY t.received_at, t.id"
        );
        let row = |row: &Row| {
            Ok(RecordedEdit {
                tool_use: row.get(0)?,
                session: row.get(1)?,
                seq: row.get(2)?,
                unit: row.get(3)?,
                at: row.get(4)?,
                kind: row.get(5)?,
                written: row.get(6)?,
                input: row.get(7)?,
            })
        };
        let mut statement = self.conn.prepare_cached(&sql)?;
        let mut all = Vec::new();
        for project in projects(scope) {
            all.extend(statement.query_map(params![path, project], row)?.collect::<Result<Vec<_>, _>>()?);
        }
        Ok(all)
    }

    /// The commands that made commits, in the order of time.
    pub fn recorded_commits(&self, scope: &SearchScope) -> Result<Vec<RecordedCommit>> {
        let of = in_project("?1");
        let sql = format!(
            "SELECT id, session_id, seq, (SELECT work_unit_id FROM steps WHERE id = step_id), received_at,
               metadata -> 'commit' ->> 'sha', metadata -> 'commit' -> 'also', outcome
             FROM tool_uses WHERE command_kind = 'commit' AND metadata -> 'commit' IS NOT NULL AND {of} ORDER BY received_at, id"
        );
        let row = |row: &Row| {
            // Before `also` was kept, the output has the other ids.
            let also: Option<String> = row.get(6)?;
            let also: Vec<String> = also.and_then(|also| serde_json::from_str(&also).ok()).unwrap_or_default();
            let outcome: Option<String> = row.get(7)?;
            let shas = row.get::<_, Option<String>>(5)?.into_iter().chain(also).chain(printed(&outcome.unwrap_or_default()));
            let mut ids: Vec<String> = Vec::new();
            for sha in shas.filter(|sha| is_id(sha)) {
                if !ids.contains(&sha) {
                    ids.push(sha);
                }
            }
            Ok(RecordedCommit {
                tool_use: row.get(0)?,
                session: row.get(1)?,
                seq: row.get(2)?,
                unit: row.get(3)?,
                at: row.get(4)?,
                shas: ids,
            })
        };
        let mut statement = self.conn.prepare_cached(&sql)?;
        let mut all = Vec::new();
        for project in projects(scope) {
            all.extend(statement.query_map(params![project], row)?.collect::<Result<Vec<_>, _>>()?);
        }
        Ok(all)
    }
}

fn is_id(sha: &str) -> bool {
    (7..=64).contains(&sha.len()) && sha.bytes().all(|b| b.is_ascii_hexdigit())
}

/// The ids in git's output: `[main abc1234] subject`.
fn printed(output: &str) -> Vec<String> {
    let id = |line: &str| {
        let (head, _) = line.trim().strip_prefix('[')?.split_once("] ")?;
        head.rsplit(' ').next().map(String::from)
    };
    output.lines().filter_map(id).collect()
}

/// The projects of a scope, or `None` for all.
fn projects(scope: &SearchScope) -> Vec<Option<i64>> {
    if scope.projects.is_empty() { vec![None] } else { scope.projects.iter().copied().map(Some).collect() }
}
