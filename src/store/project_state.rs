//! The point at which work on a project stopped: last turns, edits without a commit, checks.

use super::Store;
use super::history::{PROMPT, prompt};
use crate::model::{Check, PromptRow};
use anyhow::Result;
use rusqlite::{OptionalExtension, Row, params};

/// Maximum messages of a turn, files without a commit, and commands to look at for checks.
const MESSAGES: usize = 40;
const FILES: i64 = 40;
const COMMANDS: i64 = 120;

impl Store {
    /// The messages of a session's last turn that edited a file, else of the last that used a tool, in order.
    pub fn last_worked_turn(&self, session: i64) -> Result<Vec<PromptRow>> {
        let sql = "SELECT p.number FROM steps s JOIN prompts p ON p.id = s.prompt_id
                   WHERE s.session_id = ?1 AND s.tool_uses > 0
                   ORDER BY EXISTS (SELECT 1 FROM step_files f WHERE f.step_id = s.id AND f.edits > 0) DESC, s.prompt_id DESC LIMIT 1";
        let number: Option<i64> = self.conn.prepare_cached(sql)?.query_row([session], |row| row.get(0)).optional()?;
        let Some(number) = number else { return Ok(Vec::new()) };
        let sql = format!(
            "{PROMPT} WHERE session_id = ?1 AND number = ?2 AND kind <> 'thinking' AND agent_id IS NULL ORDER BY id LIMIT {MESSAGES}"
        );
        Ok(self.conn.prepare_cached(&sql)?.query_map([session, number], prompt)?.collect::<Result<_, _>>()?)
    }

    /// The files of the project that a session edited after its last commit.
    pub fn edited_since_commit(&self, session: i64) -> Result<Vec<String>> {
        let sql = "SELECT path FROM tool_uses WHERE session_id = ?1 AND kind IN ('edit', 'write') AND succeeded IS NOT 0 AND path IS NOT NULL AND path NOT LIKE '/%' AND path NOT LIKE '_:%'
                     AND seq > coalesce((SELECT max(seq) FROM tool_uses WHERE session_id = ?1 AND command_kind = 'commit' AND succeeded), -1)
                   GROUP BY path ORDER BY max(seq) DESC LIMIT ?2";
        Ok(self.conn.prepare_cached(sql)?.query_map([session, FILES], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }

    /// Tests, builds and linters that ran in the given sessions, the newest first.
    pub fn checks_of_sessions(&self, sessions: &[i64]) -> Result<Vec<Check>> {
        let sql = "SELECT content, succeeded FROM tool_uses WHERE session_id IN (SELECT value FROM json_each(?1))
                     AND command_kind IN ('test', 'build', 'lint') AND succeeded IS NOT NULL AND content IS NOT NULL
                   ORDER BY id DESC LIMIT ?2";
        let row = |row: &Row| Ok(Check { command: row.get(0)?, passed: row.get(1)? });
        let sessions = serde_json::to_string(sessions)?;
        Ok(self.conn.prepare_cached(sql)?.query_map(params![sessions, COMMANDS], row)?.collect::<Result<_, _>>()?)
    }
}
