//! Units by their words and files: the index that recall looks into.
//!
//! What stands in it is made from the unit's rows by one function, as in the other indexes; the words of a unit that is at
//! work come with rules' look at it at each Stop.

use super::index::scope;
use super::{Store, Tx};
use crate::index_text::index_text;
use crate::model::{ToolUseRow, UnitStory};
use crate::rank::Term;
use anyhow::Result;
use rusqlite::params;
use std::collections::{BTreeSet, HashMap};

/// How often a word of a unit counts: what is said ten times is not ten times as much about it.
const TIMES: usize = 3;
/// Bytes of a unit's words.
const WORDS: usize = 24 * 1024;
/// Units that one word may lead to before it is common, and that all words of a request may.
const COMMON: i64 = 1500;
const RANKED: i64 = 6000;
/// Units that a route leads to at most.
const FOUND: i64 = 400;

/// The index's word for a file. Edits and reads are told apart.
fn file_word(kind: char, path: &str) -> String {
    format!("{kind}{:016x}", hash(path))
}

/// A path in 8 bytes (FNV-1a): stable over versions, which a hasher of std is not.
pub(super) fn hash(path: &str) -> u64 {
    path.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// All that was said in a unit, what its commands were said to do, its commits and its edited files.
fn words(story: &UnitStory) -> String {
    let commit = |tool: &ToolUseRow| tool.metadata["commit"]["subject"].as_str().map(String::from);
    let said = story.prompts.iter().map(|prompt| prompt.text.clone());
    let done = story.tools.iter().flat_map(|tool| {
        [tool.metadata["description"].as_str().map(String::from), commit(tool), tool.path.clone().filter(|_| is_edit(tool))]
    });
    let mut times: HashMap<String, usize> = HashMap::new();
    let mut out = String::new();
    for text in said.chain(done.flatten()) {
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
    matches!(tool.kind.as_str(), "edit" | "write")
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
        self.tx.prepare_cached(sql)?.execute(params![story.unit, words(story), files(story), scope(story.project)])?;
        Ok(())
    }

    pub(super) fn unindex_unit(&self, unit: i64) -> Result<()> {
        self.tx.prepare_cached("DELETE FROM unit_index WHERE rowid = ?1")?.execute([unit])?;
        Ok(())
    }
}

impl Store {
    /// Units of a project that hold any of the words, with their BM25 scores. Common words are left out where there are
    /// others: the rarest say most, and ranking by all would visit every unit.
    pub fn units_by_words(&self, project: i64, terms: &[Term]) -> Result<HashMap<i64, f64>> {
        let mut counted = Vec::new();
        for term in terms {
            let count = self.units_with(project, term)?;
            if count > 0 {
                counted.push((count, term));
            }
        }
        counted.sort();
        let mut rows = 0;
        let affordable: Vec<&String> = counted
            .iter()
            .take_while(|(count, _)| {
                rows += count;
                rows <= RANKED && *count <= COMMON || rows == *count
            })
            .map(|(_, term)| *term)
            .collect();
        let words: Vec<String> = affordable.iter().map(|term| format!("\"{term}\"")).collect();
        self.units_ranked(project, "words", &words)
    }

    fn units_with(&self, project: i64, term: &str) -> Result<i64> {
        let sql = "SELECT count(*) FROM (SELECT 1 FROM unit_index WHERE unit_index MATCH ?1 LIMIT ?2)";
        let expression = format!("(words : \"{term}\") AND scope : {}", scope(Some(project)));
        Ok(self.conn.prepare_cached(sql)?.query_row(params![expression, COMMON + 1], |row| row.get(0))?)
    }

    /// Units of a project that edited any of the files, or, for less, read one.
    pub fn units_by_files(&self, project: i64, paths: &[String], also_read: bool) -> Result<HashMap<i64, f64>> {
        let edited: Vec<String> = paths.iter().map(|path| file_word('p', path)).collect();
        let mut found = self.units_ranked(project, "files", &edited)?;
        if also_read {
            let read: Vec<String> = paths.iter().map(|path| file_word('r', path)).collect();
            for (unit, score) in self.units_ranked(project, "files", &read)? {
                *found.entry(unit).or_default() += score * 0.3;
            }
        }
        Ok(found)
    }

    fn units_ranked(&self, project: i64, column: &str, words: &[String]) -> Result<HashMap<i64, f64>> {
        if words.is_empty() {
            return Ok(HashMap::new());
        }
        let weights = if column == "words" { "1.0, 0.0, 0.0" } else { "0.0, 1.0, 0.0" };
        let sql = format!(
            "SELECT rowid, -bm25(unit_index, {weights}) FROM unit_index WHERE unit_index MATCH ?1 ORDER BY 2 DESC LIMIT ?2"
        );
        let expression = format!("({column} : ({})) AND scope : {}", words.join(" OR "), scope(Some(project)));
        let row = |row: &rusqlite::Row| Ok((row.get(0)?, row.get(1)?));
        Ok(self.conn.prepare_cached(&sql)?.query_map(params![expression, FOUND], row)?.collect::<Result<_, _>>()?)
    }
}
