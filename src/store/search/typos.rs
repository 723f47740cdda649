//! Corrects misspelt query words if nothing was found.

use super::super::Store;
use super::Query;
use super::query::word_of;
use anyhow::Result;
use strsim::osa_distance;

/// Minimum letters of a word to correct, and of its correction; shorter words resemble everything.
const SHORTEST: usize = 5;
const SHORTEST_TERM: usize = 4;
/// Minimum letters of a word for which two differing letters are allowed.
const LONG: usize = 8;
/// Suffixes that stemming removes: "exporter" is indexed as "export".
const ENDINGS: [&str; 15] = ["s", "e", "es", "ed", "er", "ers", "or", "ors", "ing", "ings", "ion", "ions", "ly", "ment", "ation"];

impl Store {
    /// The query with each unknown word replaced by the nearest indexed one; `None` if there is none. Use only for
    /// queries without hits, since it scans all words with the same first letter.
    pub fn corrected(&self, query: &Query) -> Result<Option<Query>> {
        self.conn.execute_batch("CREATE VIRTUAL TABLE IF NOT EXISTS temp.words USING fts5vocab(main, 'text_index', 'row')")?;
        let mut corrected = Query { unwanted: query.unwanted.clone(), ..Query::default() };
        let mut replaced = false;
        for wanted in &query.wanted {
            let word = word_of(wanted);
            if self.stands_somewhere(wanted)? {
                corrected.wanted.push(wanted.clone());
            } else if !word.contains(' ')
                && !wanted.ends_with('*')
                && word.len() >= SHORTEST
                && word.is_ascii()
                && let Some(nearest) = self.nearest(word)?
            {
                corrected.wanted.push(format!("\"{nearest}\""));
                replaced = true;
            }
        }
        Ok(replaced.then_some(corrected))
    }

    fn stands_somewhere(&self, wanted: &str) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM text_index WHERE text_index MATCH ?1) OR EXISTS (SELECT 1 FROM tool_index WHERE tool_index MATCH ?1)";
        let expression = format!("- scope : {wanted}");
        Ok(self.conn.prepare_cached(sql)?.query_row([expression], |row| row.get(0))?)
    }

    /// Finds the nearest indexed word. Most typos occur after the first two letters, and few words share both.
    /// Otherwise, the second letter may be wrong, or the first two may be swapped.
    fn nearest(&self, word: &str) -> Result<Option<String>> {
        for beginning in [&word[..2], &word[..1], &word[1..2]] {
            if let Some(found) = self.nearest_among(beginning, word)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn nearest_among(&self, beginning: &str, word: &str) -> Result<Option<String>> {
        let sql = "SELECT term, doc FROM temp.words WHERE term >= ?1 AND term < ?2 AND term NOT GLOB 'qstem*'";
        let after = format!("{beginning}{}", char::MAX);
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query([beginning, &after])?;
        let within = if word.len() >= LONG { 2 } else { 1 };
        let stems = ENDINGS.iter().filter_map(|ending| word.strip_suffix(ending)).filter(|stem| stem.len() >= SHORTEST_TERM);
        let forms: Vec<&str> = std::iter::once(word).chain(stems).collect();
        let mut best: Option<(usize, i64, String)> = None;
        while let Some(row) = rows.next()? {
            let (term, held): (String, i64) = (row.get(0)?, row.get(1)?);
            if term.len() < SHORTEST_TERM || !term.is_ascii() || term.len() > word.len() + within {
                continue;
            }
            let forms = forms.iter().filter(|form| form.len().abs_diff(term.len()) <= within);
            let far = forms.map(|form| osa_distance(&term, form)).min().unwrap_or(usize::MAX);
            let nearer = best.as_ref().is_none_or(|(least, most, _)| far < *least || far == *least && held > *most);
            if far <= within && nearer {
                best = Some((far, held, term));
            }
        }
        Ok(best.map(|(_, _, term)| term))
    }
}
