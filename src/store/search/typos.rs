//! Where nothing holds the words of a query: the words that are spelt nearly so.

use super::super::Store;
use super::Query;
use crate::words::distance;
use anyhow::Result;

/// Letters of the shortest word that is corrected: of a shorter one everything is near.
const SHORTEST: usize = 4;
/// Letters from which two may differ.
const LONG: usize = 8;
/// Letters of a word's ending that stemming takes away: "exporter" stands in the index as "export".
const ENDING: usize = 4;

impl Store {
    /// The query with each word replaced by the nearest that is in the index; `None` where there is none. Only to be asked
    /// where nothing was found: it looks at all words that begin with the same letter.
    pub fn corrected(&self, query: &Query) -> Result<Option<Query>> {
        self.conn.execute_batch("CREATE VIRTUAL TABLE IF NOT EXISTS temp.words USING fts5vocab(main, 'text_index', 'row')")?;
        let mut corrected = Query { unwanted: query.unwanted.clone(), ..Query::default() };
        for wanted in &query.wanted {
            let word = wanted.trim_matches('"');
            if word.contains([' ', '"']) || word.len() < SHORTEST || !word.is_ascii() {
                continue;
            }
            if let Some(nearest) = self.nearest(word)? {
                corrected.wanted.push(format!("\"{nearest}\""));
            }
        }
        Ok((!corrected.wanted.is_empty()).then_some(corrected))
    }

    fn nearest(&self, word: &str) -> Result<Option<String>> {
        let sql = "SELECT term, doc FROM temp.words WHERE term >= ?1 AND term < ?2";
        let first = &word[..1];
        let after = char::from(first.as_bytes()[0] + 1).to_string();
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query([first, &after])?;
        let within = if word.len() >= LONG { 2 } else { 1 };
        let mut best: Option<(usize, i64, String)> = None;
        while let Some(row) = rows.next()? {
            let (term, held): (String, i64) = (row.get(0)?, row.get(1)?);
            if term.len() + 1 < SHORTEST
                || !term.is_ascii()
                || term.len() > word.len() + within
                || term.len() + ENDING + within < word.len()
            {
                continue;
            }
            // As it is, and with an ending that the stem has not.
            let ends = [word.len(), (term.len() + 1).min(word.len()), term.len().min(word.len())];
            let far = ends.into_iter().map(|end| distance(&term, &word[..end])).min().unwrap_or(usize::MAX);
            let nearer = best.as_ref().is_none_or(|(least, most, _)| far < *least || far == *least && held > *most);
            if far <= within && nearer {
                best = Some((far, held, term));
            }
        }
        Ok(best.map(|(_, _, term)| term))
    }
}
