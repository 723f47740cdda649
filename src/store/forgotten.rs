//! What was forgotten, as hashes of identities: an import leaves it out.

use super::{Store, Tx};
use crate::model::Deletion;
use anyhow::Result;
use rusqlite::{Row, params};
use std::collections::{BTreeSet, HashSet};

/// Minimum characters of an id that no other session has.
const UNIQUE: usize = 16;

/// Hashes an identity: platform, session, and the event's id, which is empty for a whole session.
pub type HashIdentity<'a> = &'a dyn Fn(&str, &str, &str) -> Vec<u8>;

impl Store {
    /// The hashes of everything that was forgotten.
    pub fn forgotten(&self) -> Result<HashSet<Vec<u8>>> {
        Ok(self.conn.prepare("SELECT hash FROM forgotten")?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }

    /// Whether a session is the empty row that remains of one that was forgotten while it was active.
    pub fn is_emptied(&self, session: i64) -> Result<bool> {
        let sql =
            "SELECT 1 FROM sessions WHERE id = ?1 AND muted AND cwd IS NULL AND project_id IS NULL AND prompts + tool_uses = 0";
        Ok(self.conn.prepare(sql)?.exists([session])?)
    }
}

impl Tx<'_> {
    /// Notes what is about to be deleted. An event without an id stands for its session.
    pub(super) fn note_forgotten(&self, going: &Deletion, hash: HashIdentity) -> Result<()> {
        let row = |row: &Row| Ok((row.get(0)?, row.get(1)?, row.get::<_, Option<String>>(2)?));
        let sessions = serde_json::to_string(&going.sessions)?;
        let of = "SELECT platform, agent_session_id, '' FROM sessions WHERE id IN (SELECT value FROM json_each(?1))";
        let mut all: BTreeSet<(String, String, Option<String>)> =
            self.tx.prepare(of)?.query_map([&sessions], row)?.collect::<Result<_, _>>()?;
        let of = "SELECT '', '', uuid FROM memories WHERE id IN (SELECT value FROM json_each(?1)) AND made_by = 'custom'";
        let memories = serde_json::to_string(&going.memories)?;
        all.extend(self.tx.prepare(of)?.query_map([memories], row)?.collect::<Result<Vec<_>, _>>()?);
        let closing = "CASE WHEN e.source = 'user' THEN e.platform_prompt_id ELSE 'answer ' || e.platform_prompt_id END";
        for (table, id, ids) in [("prompts", closing, &going.prompts), ("tool_uses", "e.tool_use_id", &going.tool_uses)] {
            let sql = format!(
                "SELECT s.platform, s.agent_session_id, {id} FROM {table} e JOIN sessions s ON s.id = e.session_id
                 WHERE e.id IN (SELECT value FROM json_each(?1)) AND s.id NOT IN (SELECT value FROM json_each(?2))"
            );
            let values = params![serde_json::to_string(ids)?, sessions];
            let found = self.tx.prepare(&sql)?.query_map(values, row)?.collect::<Result<Vec<_>, _>>()?;
            all.extend(found);
        }
        // A continued session brings copies of them under another session's id. Short ids are not unique.
        for (table, id, ids) in [("prompts", closing, &going.prompts), ("tool_uses", "e.tool_use_id", &going.tool_uses)] {
            let sql = format!(
                "SELECT s.platform, '', {id} FROM {table} e JOIN sessions s ON s.id = e.session_id
                 WHERE e.id IN (SELECT value FROM json_each(?1)) AND length({id}) >= {UNIQUE}"
            );
            let found = self.tx.prepare(&sql)?.query_map([serde_json::to_string(ids)?], row)?.collect::<Result<Vec<_>, _>>()?;
            all.extend(found);
        }
        let mut insert = self.tx.prepare("INSERT OR IGNORE INTO forgotten(hash) VALUES (?1)")?;
        for (platform, session, id) in all {
            insert.execute([hash(&platform, &session, &id.unwrap_or_default())])?;
        }
        Ok(())
    }
}
