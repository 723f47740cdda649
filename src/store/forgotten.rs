//! Hashes of the identities of forgotten rows; an import skips such rows.

use super::{Store, Tx};
use crate::model::Deletion;
use anyhow::Result;
use rusqlite::Row;
use std::collections::{BTreeSet, HashSet};

/// Minimum characters of an id that counts as unique across sessions.
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
    /// Records hashes of the rows that are about to be deleted. For an event without an id, the hash of its whole
    /// session is recorded.
    pub(super) fn note_forgotten(&self, going: &Deletion, hash: HashIdentity) -> Result<()> {
        let row = |row: &Row| Ok((row.get(0)?, row.get(1)?, row.get::<_, Option<String>>(2)?));
        let sessions = serde_json::to_string(&going.sessions)?;
        let of = "SELECT platform, agent_session_id, '' FROM sessions WHERE id IN (SELECT value FROM json_each(?1))";
        let mut all: BTreeSet<(String, String, Option<String>)> =
            self.tx.prepare(of)?.query_map([&sessions], row)?.collect::<Result<_, _>>()?;
        let of = "SELECT '', '', uuid FROM memories WHERE id IN (SELECT value FROM json_each(?1)) AND made_by = 'custom'";
        let memories = serde_json::to_string(&going.memories)?;
        all.extend(self.tx.prepare(of)?.query_map([memories], row)?.collect::<Result<Vec<_>, _>>()?);
        let answer = "iif(e.source = 'user', e.platform_prompt_id, 'answer ' || e.platform_prompt_id)";
        let tables = [
            ("prompts", "e.platform_prompt_id", answer, &going.prompts),
            ("tool_uses", "e.tool_use_id", "e.tool_use_id", &going.tool_uses),
        ];
        for (table, id, identity, ids) in tables {
            let ids = serde_json::to_string(ids)?;
            // If a whole session is forgotten, its events need only hashes without the session: a continued session has
            // copies of them under its own id.
            let sql = format!(
                "SELECT s.platform, s.agent_session_id, {identity} FROM {table} e JOIN sessions s ON s.id = e.session_id
                 WHERE e.id IN (SELECT value FROM json_each(?1)) AND s.id NOT IN (SELECT value FROM json_each(?2))
                 UNION ALL SELECT s.platform, '', {identity} FROM {table} e JOIN sessions s ON s.id = e.session_id
                 WHERE e.id IN (SELECT value FROM json_each(?1)) AND length({id}) >= {UNIQUE}"
            );
            let found = self.tx.prepare(&sql)?.query_map([&ids, &sessions], row)?.collect::<Result<Vec<_>, _>>()?;
            all.extend(found);
        }
        let mut insert = self.tx.prepare("INSERT OR IGNORE INTO forgotten(hash) VALUES (?1)")?;
        for (platform, session, id) in all {
            insert.execute([hash(&platform, &session, &id.unwrap_or_default())])?;
        }
        Ok(())
    }
}
