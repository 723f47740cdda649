//! The index of units by words and files that recall searches.
//!
//! Its content comes from one function of a unit's rows, as in the other indexes. The words of an open unit are updated
//! when rules run at Stop. Memories without a unit (a program's task with its decisions and lessons, a person's memory)
//! are indexed on their own, under their memory's id, negated (ADR/0036).

use super::index::scope;
use super::{Store, Tx};
use crate::index_text::index_text;
use crate::model::{TextKind, ToolUseRow, UnitStory};
use crate::rank::QueryTerm;
use anyhow::Result;
use foldhash::fast::FixedState;
use rusqlite::{OptionalExtension, params};
use std::collections::{BTreeSet, HashMap};

/// Maximum count of a word per unit: repeating it ten times does not make a unit ten times as relevant.
const TIMES: usize = 3;
/// Maximum bytes of a unit's words.
const WORDS: usize = 24 * 1024;
/// Limits if all words are common: number of words that must occur together, number of newest such units to find, and
/// their score; then the share of that score for files that occur in all units.
const TOGETHER: usize = 3;
const NEWEST: i64 = 50;
const ALL_COMMON: f64 = 2.0;
const COMMON_FILE: f64 = 0.1;
/// Maximum units per route.
const FOUND: usize = 400;

/// Limits on the work of a query.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Maximum words to count; of a long plan, the first ones.
    counted: usize,
    /// Number of units above which a word is common.
    common: i64,
    /// Maximum total of units for the words of a request; ranking takes 3 µs each.
    ranked: i64,
    /// Also find the newest units for common words, which never have high relevance, and search memories.
    newest: bool,
    /// Also find memories without a unit.
    lone: bool,
}

impl Effort {
    /// For a session start or a person.
    pub const WHOLE: Effort = Effort { counted: 120, common: 200, ranked: 1600, newest: true, lone: false };
    /// The same, including memories without a unit.
    pub const RELATED: Effort = Effort { lone: true, ..Effort::WHOLE };
    /// For every prompt.
    pub const QUICK: Effort = Effort { counted: 32, common: 60, ranked: 300, newest: false, lone: false };
}

impl Effort {
    /// Whether memories are searched too.
    pub fn reads_memories(self) -> bool {
        self.newest
    }

    pub fn reads_lone_memories(self) -> bool {
        self.lone
    }
}

/// The index term of a file, different for edits and reads.
fn file_word(kind: char, path: &str) -> String {
    format!("{kind}{:016x}", hash(path))
}

/// A path as 8 bytes (FNV-1a), stable across versions, unlike std's hashers.
pub(super) fn hash(path: &str) -> u64 {
    path.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Number of units below which BM25 is useless: a word in half of them scores zero, and most words occur in that many.
const FEW: i64 = 32;
/// Memories indexed on their own: a task with its decisions and lessons, or a memory without a task.
const LONE: &str =
    "m.work_unit_id IS NULL AND (m.kind = 'task' OR m.kind IN ('decision', 'lesson') AND m.content ->> '$.task' IS NULL)";

/// The text of a unit: messages, descriptions of commands, commits and edited files.
fn said_and_done(story: &UnitStory) -> String {
    let said = story.prompts.iter().map(|prompt| prompt.text.as_str());
    let done = story.tools.iter().flat_map(|tool| {
        let (description, commit) = (&tool.metadata["description"], &tool.metadata["commit"]["subject"]);
        [description.as_str(), commit.as_str(), tool.path.as_deref().filter(|_| is_edit(tool))]
    });
    counted(said.chain(done.flatten()))
}

/// The words of texts, each repeated up to [`TIMES`].
fn counted<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let mut times: HashMap<String, usize, FixedState> = HashMap::default();
    let mut out = String::new();
    for text in texts {
        for word in index_text(text).to_lowercase().split(' ') {
            let count = match times.get_mut(word) {
                Some(count) => count,
                None => times.entry(word.to_string()).or_default(),
            };
            *count += 1;
            if *count <= TIMES && out.len() + word.len() < WORDS {
                out.push_str(word);
                out.push(' ');
            }
        }
    }
    out
}

fn is_edit(tool: &ToolUseRow) -> bool {
    tool.is_edit()
}

fn files(story: &UnitStory) -> String {
    let word = |tool: &ToolUseRow| Some(file_word(if is_edit(tool) { 'p' } else { 'r' }, tool.path.as_deref()?));
    let words: BTreeSet<String> = story.tools.iter().filter_map(word).collect();
    words.into_iter().collect::<Vec<_>>().join(" ")
}

impl Tx<'_> {
    /// Indexes a unit in its current state.
    pub(super) fn index_unit(&self, story: &UnitStory) -> Result<()> {
        self.unindex_unit(story.unit)?;
        self.wait_for_index(TextKind::Unit, story.unit)?;
        let sql = "INSERT INTO unit_index(rowid, words, files, scope) VALUES (?1, ?2, ?3, ?4)";
        self.tx.prepare_cached(sql)?.execute(params![story.unit, said_and_done(story), files(story), scope(story.project)])?;
        Ok(())
    }

    /// The task of a decision or lesson.
    pub(super) fn task_of(&self, memory: i64) -> Result<Option<i64>> {
        let sql = "SELECT t.id FROM memories m JOIN memories t ON t.uuid = m.content ->> '$.task' WHERE m.id = ?1 AND m.kind IN ('decision', 'lesson')";
        Ok(self.tx.prepare_cached(sql)?.query_row([memory], |row| row.get(0)).optional()?)
    }

    /// Indexes a memory without a unit: on its own, or as part of its task.
    pub(super) fn index_lone(&self, memory: i64) -> Result<()> {
        let head = self.task_of(memory)?.unwrap_or(memory);
        self.unindex_unit(-head)?;
        let sql = format!("SELECT m.project_id, m.uuid FROM memories m WHERE m.id = ?1 AND {LONE}");
        let row = |row: &rusqlite::Row| Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, String>(1)?));
        let Some((project, uuid)) = self.tx.prepare_cached(&sql)?.query_row([head], row).optional()? else { return Ok(()) };
        let sql = "SELECT concat_ws(char(10), title, subtitle, body, (SELECT group_concat(value, char(10)) FROM json_tree(content) WHERE type = 'text' AND key <> 'task'))
                   FROM memories WHERE id = ?1
                   UNION ALL SELECT concat_ws(char(10), title, body, (SELECT group_concat(value, char(10)) FROM json_tree(content) WHERE type = 'text' AND key <> 'task'))
                   FROM memories WHERE content ->> '$.task' = ?2 AND kind IN ('decision', 'lesson')";
        let mut texts = self.tx.prepare_cached(sql)?;
        let texts: Vec<String> = texts.query_map(params![head, uuid], |row| row.get(0))?.collect::<Result<_, _>>()?;
        let mut files = self.tx.prepare_cached("SELECT path, modified FROM memory_files WHERE memory_id = ?1")?;
        let word = |row: &rusqlite::Row| Ok(file_word(if row.get(1)? { 'p' } else { 'r' }, &row.get::<_, String>(0)?));
        let files: Vec<String> = files.query_map([head], word)?.collect::<Result<_, _>>()?;
        let sql = "INSERT INTO unit_index(rowid, words, files, scope) VALUES (?1, ?2, ?3, ?4)";
        let values = params![-head, counted(texts.iter().map(String::as_str)), files.join(" "), scope(project)];
        self.tx.prepare_cached(sql)?.execute(values)?;
        Ok(())
    }

    pub(super) fn unindex_unit(&self, unit: i64) -> Result<()> {
        self.tx.prepare_cached("DELETE FROM unit_index WHERE rowid = ?1")?.execute([unit])?;
        Ok(())
    }
}

impl Store {
    /// The memory under which one without a unit is indexed: its task, or itself.
    pub fn head_of(&self, memory: i64) -> Result<i64> {
        let sql = "SELECT t.id FROM memories m JOIN memories t ON t.uuid = m.content ->> '$.task' WHERE m.id = ?1";
        let task = self.conn.prepare_cached(sql)?.query_row([memory], |row| row.get(0)).optional()?;
        Ok(task.unwrap_or(memory))
    }

    /// A project's units with any of the words, with BM25 scores.
    pub fn units_by_words(&self, project: i64, terms: &[QueryTerm], effort: Effort) -> Result<HashMap<i64, f64>> {
        let (rare, mut common) = self.affordable(project, "words", terms, effort)?;
        if rare.is_empty() && !common.is_empty() && effort.newest {
            // The longest words are the most informative.
            common.sort_by_key(|term| std::cmp::Reverse(term.len()));
            common.truncate(TOGETHER);
            return self.newest_with(project, "words", &common.join("\" AND \""), effort);
        }
        self.units_ranked(project, "words", &rare, effort)
    }

    /// A project's units that edited any of the files or, with lower scores, read one.
    pub fn units_by_files(&self, project: i64, paths: &[String], also_read: bool, effort: Effort) -> Result<HashMap<i64, f64>> {
        let of = |kind: char| -> Result<HashMap<i64, f64>> {
            let words: Vec<String> = paths.iter().map(|path| file_word(kind, path)).collect();
            let (rare, common) = self.affordable(project, "files", &words, effort)?;
            let mut found = self.units_ranked(project, "files", &rare, effort)?;
            if !common.is_empty() && effort.newest {
                // A file that occurs in every unit is a weak signal; only the newest units with it count.
                for (unit, score) in self.newest_with(project, "files", &common.join("\" OR \""), effort)? {
                    found.entry(unit).or_insert(score * COMMON_FILE);
                }
            }
            Ok(found)
        };
        let mut found = of('p')?;
        if also_read {
            for (unit, score) in of('r')? {
                *found.entry(unit).or_default() += score * 0.3;
            }
        }
        Ok(found)
    }

    /// The words that are cheap to rank by, rarest first, and the common ones: BM25 visits every unit with any of the
    /// words.
    fn affordable(&self, project: i64, column: &str, words: &[String], effort: Effort) -> Result<(Vec<String>, Vec<String>)> {
        // With so few units no word is common, and counting costs more than ranking.
        if self.pieces_known(effort.common)? <= effort.common {
            return Ok((words.iter().take(effort.counted).cloned().collect(), Vec::new()));
        }
        let sql = "SELECT count(*) FROM (SELECT 1 FROM unit_index WHERE unit_index MATCH ?1 LIMIT ?2)";
        let mut statement = self.conn.prepare_cached(sql)?;
        let (mut counted, mut common) = (Vec::new(), Vec::new());
        for word in words.iter().take(effort.counted) {
            let expression = format!("({column} : \"{word}\") AND scope : {}", scope(Some(project)));
            match statement.query_row(params![expression, effort.common + 1], |row| row.get::<_, i64>(0))? {
                0 => {}
                count if count > effort.common => common.push(word.clone()),
                count => counted.push((count, word.clone())),
            }
        }
        counted.sort();
        let mut rows = 0;
        let rare = counted.into_iter().take_while(|(count, _)| {
            rows += count;
            rows <= effort.ranked
        });
        Ok((rare.map(|(_, word)| word).collect(), common))
    }

    /// The newest units that match an expression of words.
    fn newest_with(&self, project: i64, column: &str, words: &str, effort: Effort) -> Result<HashMap<i64, f64>> {
        let lone = if effort.lone { "" } else { "AND rowid > 0" };
        let sql = format!("SELECT rowid FROM unit_index WHERE unit_index MATCH ?1 {lone} ORDER BY rowid DESC LIMIT ?2");
        let expression = format!("({column} : (\"{words}\")) AND scope : {}", scope(Some(project)));
        let row = |row: &rusqlite::Row| Ok((row.get(0)?, ALL_COMMON));
        Ok(self.conn.prepare_cached(&sql)?.query_map(params![expression, NEWEST], row)?.collect::<Result<_, _>>()?)
    }

    fn units_ranked(&self, project: i64, column: &str, words: &[String], effort: Effort) -> Result<HashMap<i64, f64>> {
        if words.is_empty() {
            return Ok(HashMap::new());
        }
        let all = self.pieces_known(FEW)?;
        // At a prompt, nothing is injected if there are so few units.
        if all <= FEW && effort.newest {
            return self.few_ranked(project, all, column, words, effort);
        }
        let weights = if column == "words" { "1.0, 0.0, 0.0" } else { "0.0, 1.0, 0.0" };
        let sql = format!("SELECT rowid, -bm25(unit_index, {weights}) FROM unit_index WHERE unit_index MATCH ?1");
        let expression = format!("({column} : (\"{}\")) AND scope : {}", words.join("\" OR \""), scope(Some(project)));
        let row = |row: &rusqlite::Row| Ok((row.get(0)?, row.get(1)?));
        let mut found: Vec<(i64, f64)> =
            self.conn.prepare_cached(&sql)?.query_map([expression], row)?.collect::<Result<_, _>>()?;
        // Sorted here, since SQLite would use a temporary table.
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        found.retain(|(unit, _)| effort.lone || *unit > 0);
        found.truncate(FOUND);
        Ok(found.into_iter().collect())
    }

    /// Number of indexed units, counted up to `most`.
    fn pieces_known(&self, most: i64) -> Result<i64> {
        let sql = "SELECT count(*) FROM (SELECT 1 FROM unit_index_docsize LIMIT ?1)";
        Ok(self.conn.prepare_cached(sql)?.query_row([most + 1], |row| row.get(0))?)
    }

    /// Whether there are so few units that scores alone mean little.
    pub fn knows_few_pieces(&self) -> Result<bool> {
        Ok(self.pieces_known(FEW)? <= FEW)
    }

    /// Ranks few units by an inverse document frequency that is never negative, ignoring lengths: ln(1 + (N - n + 0.5)
    /// / (n + 0.5)) for each word, as in Lucene.
    fn few_ranked(&self, project: i64, all: i64, column: &str, words: &[String], effort: Effort) -> Result<HashMap<i64, f64>> {
        let mut statement = self.conn.prepare_cached("SELECT rowid FROM unit_index WHERE unit_index MATCH ?1")?;
        let mut found: HashMap<i64, f64> = HashMap::new();
        for word in words {
            let expression = format!("({column} : \"{word}\") AND scope : {}", scope(Some(project)));
            let hold: Vec<i64> = statement.query_map([expression], |row| row.get(0))?.collect::<Result<_, _>>()?;
            let (all, count) = (all as f64, hold.len() as f64);
            let says = (1.0 + (all - count + 0.5) / (count + 0.5)).ln();
            for unit in hold.into_iter().filter(|unit| effort.lone || *unit > 0) {
                *found.entry(unit).or_default() += says;
            }
        }
        Ok(found)
    }
}
