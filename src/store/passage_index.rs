//! The index of passages: of prompts, closing messages, commit messages, memories and titles of units (ADR/0062).
//!
//! A text that is new or has changed waits until a turn ends or somebody searches, so that no other hook pays for its
//! index. The index stores no text: a passage is cut from its text again when it is shown.

use super::index::{LAST_TOOL, scope};
use super::query::Query;
use super::{Store, Tx};
use crate::commit_message::commit_message;
use crate::index_text::index_text;
use crate::model::{MessageSize, PassageId, SearchScope, SessionsAround, TextId, TextKind, WithWord};
use crate::passages::passages;
use crate::rank::passage_score::rarity;
use anyhow::Result;
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::{BTreeMap, HashMap};

/// Texts to index per transaction: 0.1 s, so that hooks hardly wait.
const BATCH: usize = 500;
/// Number of passages above which a word is common. Ranking would visit all of them, and counting takes 1 µs each.
pub const COMMON: i64 = 400;
/// Number of passages above which a word of a prompt says little about its subject; in a large index, one passage in so many.
const TELLING: i64 = 120;
const TELLING_SHARE: i64 = 64;
/// Maximum total of passages for the words of a query; the most common words are left out.
const RANKED: i64 = 1500;
/// Maximum common words that must occur together. More than these hardly ever do, and checking takes 5 ms per word.
const TOGETHER: usize = 5;

/// SQL for a memory's text after its title, by lines.
macro_rules! memory_lines {
    () => {
        "concat_ws(char(10), m.subtitle, (SELECT group_concat(CASE WHEN path = '$.alternatives' THEN 'instead of: ' || value
             WHEN key IN ('chosen', 'question', 'problem') AND value <> m.title THEN key || ': ' || value
             WHEN key IN ('reason', 'reasoning', 'rationale') THEN 'reason: ' || value ELSE value END, char(10))
           FROM json_tree(m.content) WHERE type = 'text'
           AND key NOT IN ('request', 'task', 'task_description', 'sha', 'subject', 'ended', 'stated_in')
           AND path NOT IN ('$.files_read', '$.files_edited', '$.modules_affected')), m.body)"
    };
}
pub(super) use memory_lines;

/// The rows of each kind of text that are searched, as SQL.
const SEARCHED: [(TextKind, &str); 4] = [
    (TextKind::Message, "prompts WHERE kind NOT IN ('thinking', 'taken-back')"),
    (TextKind::Memory, "memories WHERE true"),
    (TextKind::Commit, "tool_uses WHERE command_kind = 'commit'"),
    (TextKind::Unit, "work_units WHERE rules_mark IS NOT NULL"),
];

/// A text as it is indexed.
struct IndexedText {
    project: Option<i64>,
    text: String,
    /// Names by which its first passage is also found: concepts and files.
    names: String,
}

/// Reads a text; `None` if it is gone or is not searched.
fn read_text(conn: &Connection, id: TextId) -> Result<Option<IndexedText>> {
    const OF_MEMORY: &str = concat!(
        "SELECT m.project_id, concat_ws(char(10), m.title, nullif(",
        memory_lines!(),
        ", '')),
           concat_ws(' ', (SELECT group_concat(value, ' ') FROM json_each(m.concepts)),
             (SELECT group_concat(path, ' ') FROM memory_files WHERE memory_id = m.id)) FROM memories m WHERE m.id = ?1"
    );
    let sql = match id.kind() {
        TextKind::Message => {
            "SELECT coalesce(p.project_id, s.project_id), p.text, '' FROM prompts p JOIN sessions s ON s.id = p.session_id
             WHERE p.id = ?1 AND p.kind NOT IN ('thinking', 'taken-back')"
        }
        TextKind::Memory => OF_MEMORY,
        TextKind::Commit => {
            "SELECT coalesce(t.project_id, s.project_id), coalesce(t.content, ''), '' FROM tool_uses t
             JOIN sessions s ON s.id = t.session_id WHERE t.id = ?1"
        }
        TextKind::Unit => {
            "SELECT coalesce(u.project_id, s.project_id), coalesce(u.title, u.intent, ''), '' FROM work_units u
             JOIN sessions s ON s.id = u.session_id WHERE u.id = ?1"
        }
    };
    let row = |row: &rusqlite::Row| Ok(IndexedText { project: row.get(0)?, text: row.get(1)?, names: row.get(2)? });
    let mut text = conn.prepare_cached(sql)?.query_row([id.row()], row).optional()?;
    if id.kind() == TextKind::Commit {
        text = text.and_then(|text| Some(IndexedText { text: commit_message(&text.text)?, ..text }));
    }
    Ok(text)
}

impl Tx<'_> {
    /// Notes that a text is new or has changed.
    pub(super) fn wait_for_index(&self, kind: TextKind, row: i64) -> Result<()> {
        let id = TextId::new(kind, row);
        self.tx.prepare_cached("INSERT OR IGNORE INTO waiting(text) VALUES (?1)")?.execute([id.0])?;
        Ok(())
    }

    /// Removes a text from the index.
    pub(super) fn unindex(&self, kind: TextKind, row: i64) -> Result<()> {
        let id = TextId::new(kind, row);
        self.tx.prepare_cached("DELETE FROM waiting WHERE text = ?1")?.execute([id.0])?;
        self.unindex_passages(id)
    }

    /// Removes the titles of a session's units from the index.
    pub(super) fn unindex_titles(&self, session: i64) -> Result<()> {
        let mut units = self.tx.prepare_cached("SELECT id FROM work_units WHERE session_id = ?1")?;
        let units: Vec<i64> = units.query_map([session], |row| row.get(0))?.collect::<Result<_, _>>()?;
        units.into_iter().try_for_each(|unit| self.unindex(TextKind::Unit, unit))
    }

    fn unindex_passages(&self, id: TextId) -> Result<()> {
        let (first, last) = (PassageId::new(id, 0).0, PassageId::new(id, PassageId::MAX - 1).0);
        let mut stored = self.tx.prepare_cached("SELECT id FROM passage_index_docsize WHERE id BETWEEN ?1 AND ?2")?;
        let stored: Vec<i64> = stored.query_map([first, last], |row| row.get(0))?.collect::<Result<_, _>>()?;
        let mut delete = self.tx.prepare_cached("DELETE FROM passage_index WHERE rowid = ?1")?;
        stored.into_iter().try_for_each(|id| delete.execute([id]).map(drop))?;
        Ok(())
    }

    /// Indexes the passages of a text. An empty text has one empty passage.
    fn index_passages(&self, id: TextId) -> Result<()> {
        self.unindex_passages(id)?;
        let Some(IndexedText { project, text, names }) = read_text(&self.tx, id)? else { return Ok(()) };
        let mut ranges = passages(&text);
        if ranges.is_empty() {
            ranges.push(0..0);
        }
        let sql = "INSERT INTO passage_index(rowid, text, scope) VALUES (?1, ?2, ?3)";
        let mut insert = self.tx.prepare_cached(sql)?;
        for (number, range) in ranges.into_iter().enumerate() {
            let mut words = index_text(&text[range]);
            if number == 0 && !names.is_empty() {
                words = format!("{words} {}", index_text(&names));
            }
            insert.execute(params![PassageId::new(id, number).0, words, scope(project)])?;
        }
        Ok(())
    }

    /// Marks all texts as waiting, of rows after the given ids: prompts, memories, tool uses, units.
    pub(super) fn wait_for_all(&self, after: [i64; 4]) -> Result<()> {
        for ((kind, rows), after) in SEARCHED.into_iter().zip(after) {
            let sql = format!("INSERT OR IGNORE INTO waiting(text) SELECT id * 4 + ?1 FROM {rows} AND id > ?2");
            self.tx.execute(&sql, [kind as i64, after])?;
        }
        Ok(())
    }

    /// Marks the texts of a session as waiting.
    pub(super) fn wait_for_session(&self, session: i64) -> Result<()> {
        for (kind, rows) in SEARCHED {
            let sql = format!("INSERT OR IGNORE INTO waiting(text) SELECT id * 4 + ?1 FROM {rows} AND session_id = ?2");
            self.tx.prepare_cached(&sql)?.execute([kind as i64, session])?;
        }
        Ok(())
    }
}

impl PassagesByWord {
    /// The rarity of each word that is ranked by.
    pub fn rarities(&self) -> Vec<f64> {
        self.ranked.iter().map(|at| rarity(self.counts[*at], self.all)).collect()
    }
}

impl Store {
    /// Indexes texts and tool uses that wait, at most `most`; `progress` receives the number done. Returns how many were indexed.
    pub fn index_waiting(&mut self, most: usize, progress: &mut dyn FnMut(usize)) -> Result<usize> {
        let mut done = 0;
        while done < most && self.is_any_waiting()? {
            let batch = BATCH.min(most - done);
            let indexed = self.write(|tx| {
                let mut waiting = tx.tx.prepare_cached("SELECT text FROM waiting LIMIT ?1")?;
                let texts: Vec<i64> = waiting.query_map([batch as i64], |row| row.get(0))?.collect::<Result<_, _>>()?;
                for id in &texts {
                    tx.index_passages(TextId(*id))?;
                    tx.tx.prepare_cached("DELETE FROM waiting WHERE text = ?1")?.execute([id])?;
                }
                Ok(texts.len() + tx.index_waiting_tools(batch - texts.len())?)
            })?;
            if indexed == 0 {
                break;
            }
            done += indexed;
            progress(done);
        }
        Ok(done)
    }

    /// Whether a text or a tool use waits to be indexed.
    pub fn is_any_waiting(&self) -> Result<bool> {
        let sql = format!("SELECT EXISTS (SELECT 1 FROM waiting) OR (SELECT max(id) FROM tool_uses) > ({LAST_TOOL})");
        Ok(self.conn.prepare_cached(&sql)?.query_row([], |row| row.get::<_, Option<bool>>(0))?.unwrap_or(false))
    }

    /// Number of passages in the index.
    pub fn passages_indexed(&self) -> Result<i64> {
        self.rows_indexed("passage_index")
    }

    /// Number of rows of a full-text index: the first number of the record of averages that FTS5 keeps (FTS5, "Structure
    /// Record Format"), since counting 700,000 rows takes 10 ms.
    pub(super) fn rows_indexed(&self, index: &str) -> Result<i64> {
        let sql = format!("SELECT block FROM {index}_data WHERE id = 1");
        let averages: Option<Vec<u8>> = self.conn.prepare_cached(&sql)?.query_row([], |row| row.get(0)).optional()?;
        let mut count: i64 = 0;
        for byte in averages.unwrap_or_default().into_iter().take(8) {
            count = count << 7 | i64::from(byte & 0x7f);
            if byte & 0x80 == 0 {
                break;
            }
        }
        Ok(count)
    }

    /// Number of texts that wait to be indexed.
    pub fn texts_waiting(&self) -> Result<i64> {
        Ok(self.conn.query_row("SELECT count(*) FROM waiting", [], |row| row.get(0))?)
    }

    /// Passages with the words of a query, and the number of passages with each word, counted up to [`COMMON`]. The most
    /// common words are left out, unless there are no others: then each passage with most of them scores the same.
    pub fn passages_by_word(&self, query: &Query, kinds: &[TextKind], scope: &SearchScope) -> Result<PassagesByWord> {
        let counts = self.passage_counts(query, scope, COMMON)?;
        let rare = rarest(&counts);
        let mut by_word: Vec<WithWord> = Vec::new();
        for at in &rare {
            by_word.push(self.passages_with(query, &[&query.wanted[*at]], "", kinds, scope, true)?);
        }
        let mut ranked = rare;
        if ranked.is_empty() && counts.iter().any(|count| *count > COMMON) {
            let words: Vec<&String> = query.wanted.iter().collect();
            let all = match words.len() {
                ..=TOGETHER => self.passages_with(query, &words, " AND ", kinds, scope, false)?,
                _ => WithWord::new(),
            };
            let with = |word: &&String| match all.is_empty() {
                true => self.passages_with(query, &[word], "", kinds, scope, false),
                false => Ok(all.clone()),
            };
            by_word = words.iter().map(with).collect::<Result<_>>()?;
            ranked = (0..words.len()).collect();
        }
        Ok(PassagesByWord { by_word, ranked, counts, all: self.passages_indexed()? })
    }

    /// The words of a query that passages have, but not too many of them, each with its rarity; and the rarity of a word that no
    /// passage has. Counts are of all projects: for one, FTS5 would read the list of all its passages for each word.
    pub fn rarities(&self, query: &Query) -> Result<(Vec<(String, f64)>, f64)> {
        let all = self.passages_indexed()?;
        let most = TELLING.max(all / TELLING_SHARE);
        let last = "SELECT coalesce(max(id), 0) FROM passage_index_docsize";
        let last: i64 = self.conn.prepare_cached(last)?.query_row([], |row| row.get(0))?;
        let counts: Vec<i64> =
            query.wanted.iter().map(|word| self.passages_estimated(word, TELLING + 1, last)).collect::<Result<_>>()?;
        let telling = rarest(&counts).into_iter().filter(|at| counts[*at] <= most);
        Ok((telling.map(|at| (query.word(at).to_string(), rarity(counts[at], all))).collect(), rarity(0, all)))
    }

    /// Number of passages with a word: counted up to `most`, else estimated by how close together the first ones lie. So a
    /// prompt costs no more in a large store than in a small one. `last` is the last passage's id.
    fn passages_estimated(&self, word: &str, most: i64, last: i64) -> Result<i64> {
        let sql = "SELECT count(*), max(rowid) FROM (SELECT rowid FROM passage_index WHERE passage_index MATCH ?1 ORDER BY rowid LIMIT ?2)";
        let row = |row: &rusqlite::Row| Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?.unwrap_or(last)));
        let (count, reached) = self.conn.prepare_cached(sql)?.query_row(params![format!("- scope : {word}"), most], row)?;
        Ok(if count < most { count } else { (count as f64 * last as f64 / reached.max(1) as f64) as i64 })
    }

    /// Number of passages with each word of a query, counted up to one more than `most`.
    fn passage_counts(&self, query: &Query, scope: &SearchScope, most: i64) -> Result<Vec<i64>> {
        let sql = "SELECT count(*) FROM (SELECT 1 FROM passage_index WHERE passage_index MATCH ?1 LIMIT ?2)";
        let mut statement = self.conn.prepare_cached(sql)?;
        let count = |word: &String| {
            let expression = super::index::within(&format!("- scope : {word}"), scope);
            statement.query_row(params![expression, most + 1], |row| row.get(0))
        };
        Ok(query.wanted.iter().map(count).collect::<Result<_, _>>()?)
    }

    /// Passages with words of a query: ranked, or the newest with a score of 1.
    fn passages_with(
        &self,
        query: &Query,
        words: &[&String],
        join: &str,
        kinds: &[TextKind],
        scope: &SearchScope,
        is_ranked: bool,
    ) -> Result<WithWord> {
        let numbers: Vec<String> = kinds.iter().map(|kind| (*kind as i64).to_string()).collect();
        let (score, order) = if is_ranked { ("-bm25(passage_index, 1.0, 0.0)", "") } else { ("1.0", "ORDER BY rowid DESC") };
        let sql = format!(
            "SELECT rowid, {score} FROM passage_index WHERE passage_index MATCH ?1 AND rowid / {} % 4 IN ({}) {order} LIMIT ?2",
            PassageId::MAX,
            numbers.join(", ")
        );
        let expression = super::index::within(&format!("- scope : ({})", query.expression(words, join)), scope);
        let row = |row: &rusqlite::Row| Ok((PassageId(row.get(0)?), row.get(1)?));
        let mut statement = self.conn.prepare_cached(&sql)?;
        Ok(statement.query_map(params![expression, COMMON + 1], row)?.collect::<Result<_, _>>()?)
    }

    /// The sessions of texts, each with all its messages in order.
    pub fn sessions_around(&self, texts: &[TextId]) -> Result<SessionsAround> {
        let sql = |kind: TextKind| match kind {
            TextKind::Message => "SELECT session_id FROM prompts WHERE id = ?1",
            TextKind::Memory => "SELECT session_id FROM memories WHERE id = ?1",
            TextKind::Commit => "SELECT session_id FROM tool_uses WHERE id = ?1",
            TextKind::Unit => "SELECT session_id FROM work_units WHERE id = ?1",
        };
        let mut sessions: BTreeMap<i64, usize> = BTreeMap::new();
        let mut of = HashMap::new();
        for text in texts {
            let mut statement = self.conn.prepare_cached(sql(text.kind()))?;
            let session: Option<i64> = statement.query_row([text.row()], |row| row.get(0)).optional()?.flatten();
            if let Some(session) = session {
                let next = sessions.len();
                of.insert(*text, *sessions.entry(session).or_insert(next));
            }
        }
        let sql = "SELECT id, octet_length(text) FROM prompts WHERE session_id = ?1 AND kind NOT IN ('thinking', 'taken-back') ORDER BY number, id";
        let mut messages = self.conn.prepare_cached(sql)?;
        let row = |row: &rusqlite::Row| {
            Ok(MessageSize { text: TextId::new(TextKind::Message, row.get(0)?), bytes: row.get::<_, i64>(1)? as usize })
        };
        let mut all = vec![Vec::new(); sessions.len()];
        for (session, at) in sessions {
            all[at] = messages.query_map([session], row)?.collect::<Result<_, _>>()?;
        }
        Ok(SessionsAround { sessions: all, of })
    }
}

/// The words that are cheap to rank by, by their counts, rarest first: these are also the most informative.
fn rarest(counts: &[i64]) -> Vec<usize> {
    let mut rare: Vec<usize> = (0..counts.len()).filter(|at| (1..=COMMON).contains(&counts[*at])).collect();
    rare.sort_by_key(|at| (counts[*at], *at));
    let mut rows = 0;
    rare.retain(|at| {
        rows += counts[*at];
        rows <= RANKED || rows == counts[*at]
    });
    rare
}

/// Passages with each of a query's words that are cheap to rank by.
#[derive(Debug, Default)]
pub struct PassagesByWord {
    pub by_word: Vec<WithWord>,
    /// The numbers of these words in the query.
    pub ranked: Vec<usize>,
    /// For each word of the query: number of passages with it, counted up to [`COMMON`].
    pub counts: Vec<i64>,
    /// Number of all passages.
    pub all: i64,
}

#[cfg(test)]
mod tests {
    use crate::model::testing::event;
    use crate::model::{EventKind, TextKind};
    use crate::redact::Redactor;
    use crate::store::testing::{Scratch, store_event};

    #[test]
    fn passages_are_counted_and_a_text_that_waits_is_indexed_once() {
        let scratch = Scratch::new("passages-counted");
        let mut store = scratch.open();
        let redactor = Redactor::default();
        let prompts = (0..300).map(|n| EventKind::UserPrompt { text: format!("prompt {n} about the parser") });
        let events: Vec<_> =
            prompts.enumerate().map(|(n, what)| redactor.clean(event("counted", n as i64 * 5000, what))).collect();
        store.write(|tx| events.iter().try_for_each(|event| store_event(tx, event))).unwrap();
        assert_eq!((store.texts_waiting().unwrap(), store.passages_indexed().unwrap()), (300, 0));
        assert_eq!(store.index_waiting(100, &mut |_| ()).unwrap(), 100);
        assert_eq!(store.index_waiting(usize::MAX, &mut |_| ()).unwrap(), 200);
        assert_eq!((store.passages_indexed().unwrap(), store.unindexed().unwrap()), (300, 0));
        let last: i64 = store.conn.query_row("SELECT max(id) FROM passage_index_docsize", [], |row| row.get(0)).unwrap();
        let estimated = store.passages_estimated("parser", 100, last).unwrap();
        assert!((270..=330).contains(&estimated), "{estimated}");
        assert_eq!(store.passages_estimated("parser", 1000, last).unwrap(), 300, "a short list is counted");
        store.write(|tx| tx.unindex(TextKind::Message, 7)).unwrap();
        assert_eq!((store.passages_indexed().unwrap(), store.unindexed().unwrap()), (299, 1));
    }
}
