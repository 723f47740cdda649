//! Units by their words and files: the index that recall looks into.
//!
//! What stands in it is made from the unit's rows by one function, as in the other indexes; the words of a unit that is at
//! work come with rules' look at it at each Stop. What belongs to no unit (a task that a program recorded, with its decisions
//! and lessons; what a person told) is a piece of work by itself: it stands under its memory's id, below zero (ADR/0036).

use super::index::scope;
use super::{Store, Tx};
use crate::index_text::index_text;
use crate::model::{ToolUseRow, UnitStory};
use crate::rank::Term;
use anyhow::Result;
use rusqlite::{OptionalExtension, params};
use std::collections::{BTreeSet, HashMap};

/// How often a word of a unit counts: what is said ten times is not ten times as much about it.
const TIMES: usize = 3;
/// Bytes of a unit's words.
const WORDS: usize = 24 * 1024;
/// Where all words are common: how many must stand together, how many of the newest units in which they do are found, and
/// their score; and what of it a file counts that all units touch.
const TOGETHER: usize = 3;
const NEWEST: i64 = 50;
const ALL_COMMON: f64 = 2.0;
const COMMON_FILE: f64 = 0.1;
/// Units that a route leads to at most.
const FOUND: usize = 400;

/// How much may be looked at.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Words that are counted: of a long plan those that come first.
    counted: usize,
    /// Units that one word may lead to before it is common.
    common: i64,
    /// Units that all words of a request may lead to: each costs 3 µs to rank.
    ranked: i64,
    /// What only common words lead to is looked for, too: the newest of it. It is never clear.
    newest: bool,
    /// What belongs to no unit is found, too.
    lone: bool,
}

impl Effort {
    /// Where a session begins, or a person asks.
    pub const WHOLE: Effort = Effort { counted: 120, common: 200, ranked: 1600, newest: true, lone: false };
    /// The same, also of what belongs to no unit.
    pub const RELATED: Effort = Effort { lone: true, ..Effort::WHOLE };
    /// At each prompt.
    pub const QUICK: Effort = Effort { counted: 32, common: 60, ranked: 300, newest: false, lone: false };
}

impl Effort {
    /// Whether tasks are compared.
    pub fn is_related(self) -> bool {
        self.lone
    }
}

/// The index's word for a file. Edits and reads are told apart.
fn file_word(kind: char, path: &str) -> String {
    format!("{kind}{:016x}", hash(path))
}

/// A path in 8 bytes (FNV-1a): stable over versions, which a hasher of std is not.
pub(super) fn hash(path: &str) -> u64 {
    path.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Units below which BM25 says nothing: a word that half of them hold counts as none there, and most words are such.
const FEW: i64 = 32;
/// What belongs to no unit and is a piece of work by itself: a task with its decisions and lessons, or one without a task.
const LONE: &str =
    "m.work_unit_id IS NULL AND (m.kind = 'task' OR m.kind IN ('decision', 'lesson') AND m.content ->> '$.task' IS NULL)";

/// All that was said in a unit, what its commands were said to do, its commits and its edited files.
fn said_and_done(story: &UnitStory) -> String {
    let commit = |tool: &ToolUseRow| tool.metadata["commit"]["subject"].as_str().map(String::from);
    let said = story.prompts.iter().map(|prompt| prompt.text.clone());
    let done = story.tools.iter().flat_map(|tool| {
        [tool.metadata["description"].as_str().map(String::from), commit(tool), tool.path.clone().filter(|_| is_edit(tool))]
    });
    counted(said.chain(done.flatten()))
}

/// The words of texts, each so often as it counts.
fn counted(texts: impl Iterator<Item = String>) -> String {
    let mut times: HashMap<String, usize> = HashMap::new();
    let mut out = String::new();
    for text in texts {
        for word in index_text(&text).split(' ').map(str::to_lowercase) {
            let count = times.entry(word.clone()).or_default();
            *count += 1;
            if *count <= TIMES && out.len() + word.len() < WORDS {
                out.push_str(&word);
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
    /// Puts a unit into the index as it stands now.
    pub(super) fn index_unit(&self, story: &UnitStory) -> Result<()> {
        self.unindex_unit(story.unit)?;
        let sql = "INSERT INTO unit_index(rowid, words, files, scope) VALUES (?1, ?2, ?3, ?4)";
        self.tx.prepare_cached(sql)?.execute(params![story.unit, said_and_done(story), files(story), scope(story.project)])?;
        Ok(())
    }

    /// The task that a decision or a lesson belongs to.
    pub(super) fn task_of(&self, memory: i64) -> Result<Option<i64>> {
        let sql = "SELECT t.id FROM memories m JOIN memories t ON t.uuid = m.content ->> '$.task' WHERE m.id = ?1 AND m.kind IN ('decision', 'lesson')";
        Ok(self.tx.prepare_cached(sql)?.query_row([memory], |row| row.get(0)).optional()?)
    }

    /// Puts what a memory belongs to into the index, if that is no unit: itself, or its task with all that goes with it.
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
        let values = params![-head, counted(texts.into_iter()), files.join(" "), scope(project)];
        self.tx.prepare_cached(sql)?.execute(values)?;
        Ok(())
    }

    pub(super) fn unindex_unit(&self, unit: i64) -> Result<()> {
        self.tx.prepare_cached("DELETE FROM unit_index WHERE rowid = ?1")?.execute([unit])?;
        Ok(())
    }
}

impl Store {
    /// What a memory of no unit belongs to: its task, or itself.
    pub fn head_of(&self, memory: i64) -> Result<i64> {
        let sql = "SELECT t.id FROM memories m JOIN memories t ON t.uuid = m.content ->> '$.task' WHERE m.id = ?1";
        let task = self.conn.prepare_cached(sql)?.query_row([memory], |row| row.get(0)).optional()?;
        Ok(task.unwrap_or(memory))
    }

    /// Units of a project that hold any of the words, with their BM25 scores.
    pub fn units_by_words(&self, project: i64, terms: &[Term], effort: Effort) -> Result<HashMap<i64, f64>> {
        let (rare, mut common) = self.affordable(project, "words", terms, effort)?;
        if rare.is_empty() && !common.is_empty() && effort.newest {
            // The longest say most.
            common.sort_by_key(|term| std::cmp::Reverse(term.len()));
            common.truncate(TOGETHER);
            return self.newest_with(project, "words", &common.join("\" AND \""), effort);
        }
        self.units_ranked(project, "words", &rare, effort)
    }

    /// Units of a project that edited any of the files, or, for less, read one.
    pub fn units_by_files(&self, project: i64, paths: &[String], also_read: bool, effort: Effort) -> Result<HashMap<i64, f64>> {
        let of = |kind: char| -> Result<HashMap<i64, f64>> {
            let words: Vec<String> = paths.iter().map(|path| file_word(kind, path)).collect();
            let (rare, common) = self.affordable(project, "files", &words, effort)?;
            let mut found = self.units_ranked(project, "files", &rare, effort)?;
            if !common.is_empty() && effort.newest {
                // A file that everything touches says little, but its last touch says something.
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

    /// The words by which ranking is cheap, the rarest first, and those that are common: BM25 visits every unit that holds
    /// any, and the rarest say most.
    fn affordable(&self, project: i64, column: &str, words: &[String], effort: Effort) -> Result<(Vec<String>, Vec<String>)> {
        // Where so few units are known, no word is common, and to count costs more than to rank.
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

    /// The newest units that hold words, all or any of them, as the expression has it.
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
        // At a prompt nothing is said where so little is known.
        if all <= FEW && effort.newest {
            return self.few_ranked(project, all, column, words, effort);
        }
        let weights = if column == "words" { "1.0, 0.0, 0.0" } else { "0.0, 1.0, 0.0" };
        let sql = format!("SELECT rowid, -bm25(unit_index, {weights}) FROM unit_index WHERE unit_index MATCH ?1");
        let expression = format!("({column} : (\"{}\")) AND scope : {}", words.join("\" OR \""), scope(Some(project)));
        let row = |row: &rusqlite::Row| Ok((row.get(0)?, row.get(1)?));
        let mut found: Vec<(i64, f64)> =
            self.conn.prepare_cached(&sql)?.query_map([expression], row)?.collect::<Result<_, _>>()?;
        // Sorted here: SQLite would open a table of its own for it.
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        found.retain(|(unit, _)| effort.lone || *unit > 0);
        found.truncate(FOUND);
        Ok(found.into_iter().collect())
    }

    /// How many pieces of work the index holds; of more than `most` no more is said.
    fn pieces_known(&self, most: i64) -> Result<i64> {
        let sql = "SELECT count(*) FROM (SELECT 1 FROM unit_index_docsize LIMIT ?1)";
        Ok(self.conn.prepare_cached(sql)?.query_row([most + 1], |row| row.get(0))?)
    }

    /// Whether so few pieces of work are known that a score says little by itself.
    pub fn knows_few_pieces(&self) -> Result<bool> {
        Ok(self.pieces_known(FEW)? <= FEW)
    }

    /// Where there are few, what BM25 would say with an inverse document frequency that is never below zero, and without
    /// lengths: ln(1 + (N - n + 0.5) / (n + 0.5)) for each word, as Lucene has it.
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
