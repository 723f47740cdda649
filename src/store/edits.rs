//! Recorded edits, commits and runs of checks, for questions about a line, a commit or the working tree.

use super::Store;
use super::history::{TOOL_USE, in_project, tool_use};
use crate::model::{Kind, Millis, SearchScope, ToolUseRow};
use anyhow::Result;
use rusqlite::{OptionalExtension, Row, params};
use std::path::Path;

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
        // By the steps of the file, whose tool uses an index finds.
        let sql = "SELECT t.id, t.session_id, t.seq, s.work_unit_id, t.received_at, t.kind, t.metadata ->> 'written', t.input
             FROM step_files f JOIN steps s ON s.id = f.step_id
               JOIN tool_uses t ON t.session_id = s.session_id AND t.seq BETWEEN s.first_seq AND s.last_seq
             WHERE f.path = ?1 AND f.edits > 0 AND t.step_id = s.id AND t.path = ?1 AND t.kind IN ('edit', 'write') AND t.succeeded IS NOT 0
               AND (?2 IS NULL OR coalesce(t.project_id, (SELECT project_id FROM sessions WHERE id = t.session_id)) = ?2)
             ORDER BY t.received_at, t.id";
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
        let mut statement = self.conn.prepare_cached(sql)?;
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

/// Maximum runs of checks to read.
const RUNS: i64 = 400;
/// Maximum edits and runs of one session to read.
const OF_SESSION: i64 = 100;

impl Store {
    /// Runs of tests, builds and linters in a worktree whose result is known, the newest first.
    pub fn runs_of_checks(&self, scope: &SearchScope, root: &Path) -> Result<Vec<ToolUseRow>> {
        let of = in_project("?1");
        let sql = format!(
            "{TOOL_USE} WHERE command_kind IN ('test', 'build', 'lint') AND succeeded IS NOT NULL AND content IS NOT NULL
               AND {of} AND {IN_WORKTREE} ORDER BY received_at DESC, id DESC LIMIT {RUNS}"
        );
        let mut statement = self.conn.prepare_cached(&sql)?;
        let mut all = Vec::new();
        for project in projects(scope) {
            let rows = statement.query_map(params![project, root.to_string_lossy()], tool_use)?;
            all.extend(rows.collect::<Result<Vec<_>, _>>()?);
        }
        Ok(all)
    }

    /// The last edits and runs of checks of a session, the newest first.
    pub fn last_edits_and_checks(&self, session: i64) -> Result<Vec<ToolUseRow>> {
        let sql = format!(
            "{TOOL_USE} WHERE session_id = ?1 AND (kind IN ('edit', 'write') AND succeeded IS NOT 0
               OR command_kind IN ('test', 'build', 'lint') AND succeeded IS NOT NULL) ORDER BY seq DESC LIMIT {OF_SESSION}"
        );
        Ok(self.conn.prepare_cached(&sql)?.query_map([session], tool_use)?.collect::<Result<_, _>>()?)
    }

    /// Time and path of the last edit in a worktree.
    pub fn last_edit(&self, scope: &SearchScope, root: &Path) -> Result<Option<(Millis, String)>> {
        let of = in_project("?1");
        let sql = format!(
            "SELECT received_at, path FROM tool_uses WHERE kind IN ('edit', 'write') AND succeeded IS NOT 0 AND path IS NOT NULL
               AND {IN_PROJECT} AND {of} AND {IN_WORKTREE} ORDER BY received_at DESC, id DESC LIMIT 1"
        );
        let mut statement = self.conn.prepare_cached(&sql)?;
        let mut last = None;
        for project in projects(scope) {
            let row = |row: &Row| Ok((row.get(0)?, row.get(1)?));
            last = last.max(statement.query_row(params![project, root.to_string_lossy()], row).optional()?);
        }
        Ok(last)
    }
}

/// SQL that is true for the path of a file of the project, as [`crate::text::is_in_project`].
pub(super) const IN_PROJECT: &str =
    "path NOT LIKE '/%' AND path NOT LIKE '~%' AND path NOT LIKE '\\%' AND path NOT LIKE '..%' AND path NOT LIKE '_:%'";

/// SQL that is true for a tool use in the worktree `?2`.
const IN_WORKTREE: &str =
    "(SELECT coalesce(tool_uses.cwd, s.cwd) = ?2 OR coalesce(tool_uses.cwd, s.cwd) NOT LIKE '%/.claude/worktrees/%' AND substr(coalesce(tool_uses.cwd, s.cwd), 1, length(?2) + 1) = ?2 || '/'
   FROM sessions s WHERE s.id = tool_uses.session_id)";

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
