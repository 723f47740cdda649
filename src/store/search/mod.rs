//! Full-text search: from a typed query to ranked rows.
//!
//! The cost is bounded for any query: occurrences of a word are counted up to 400 rows; rows are ranked by BM25 over
//! the rare words; a query that has only common words returns the newest rows with all of them. Typed text never
//! reaches FTS5 as syntax, so no query is an error.
//!
//! Read in this order: `query` (parsing), candidates and ranking, in this file, `rows`, `context` (neighbouring
//! messages), `typos`.

mod context;
mod query;
mod rows;
mod typos;

use super::Store;
use super::index::scope;
use crate::index_text::query_terms;
use crate::model::{Filter, Hit, HitKind};
use anyhow::Result;
pub use query::Query;
use rows::{Newest, hit, sql, values};
use rusqlite::OptionalExtension;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Number of rows above which a word is common. Ranking would visit all of them, and counting takes 1 µs per row.
const COMMON: i64 = 400;
/// Maximum total of rows for the words of a query; the most common words are left out.
const RANKED: i64 = 1000;
/// Maximum common words that must occur together. More than these hardly ever do, and checking takes 5 ms per word.
const TOGETHER: usize = 5;
/// Maximum rows to examine for ones that pass the filter.
const VISITED: i64 = 8000;

impl Store {
    /// Finds rows of the given kinds, best first. Prompts have no files, and only memories have types and concepts.
    pub fn search(&self, query: &Query, kinds: &[HitKind], filter: &Filter, limit: usize) -> Result<Vec<Hit>> {
        let mut hits = Vec::new();
        let mut counts: HashMap<&str, Vec<i64>> = HashMap::new();
        for &kind in kinds.iter().filter(|kind| kind.passes(filter)) {
            let counts = match counts.entry(sql(kind).count) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(self.counts_of(kind, query, filter)?),
            };
            let mut chosen = chosen(query, counts, filter);
            let by_path = filter.file.as_deref().filter(|_| kind == HitKind::Tool);
            if let Some(path) = by_path.map(query_terms).filter(|terms| !terms.is_empty()) {
                let path = format!("path : ({})", path.iter().map(|t| format!("\"{t}\"")).collect::<Vec<_>>().join(" AND "));
                chosen.expression = Some(match chosen.expression {
                    Some(words) => format!("({words}) AND {path}"),
                    None => narrowed(&path, filter),
                });
            }
            match chosen.expression {
                // With a single word, context adds nothing.
                Some(_) if kind == HitKind::Prompt && chosen.rare.len() > 1 => {
                    let ranked = self.in_context(&self.by_word(query, &chosen.rare, filter)?)?;
                    hits.extend(self.load_all(kind, &ranked, filter, limit)?);
                }
                Some(words) if !chosen.rare.is_empty() => {
                    hits.extend(self.matches(kind, sql(kind).ranked, &words, filter, limit)?);
                }
                Some(words) => {
                    let with_all = match query.wanted.len() {
                        ..=TOGETHER => self.matches(kind, sql(kind).latest, &words, filter, limit)?,
                        _ => Vec::new(),
                    };
                    hits.extend(if with_all.is_empty() { self.with_most(kind, query, filter, limit)? } else { with_all });
                }
                None => hits.extend(self.newest(kind, filter, limit)?),
            }
        }
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.at.cmp(&a.at)));
        hits.truncate(limit);
        Ok(hits)
    }

    /// Memories in a given order with given scores, filtered.
    pub fn memories_as_hits(&self, ranked: &[(i64, f64)], filter: &Filter) -> Result<Vec<Hit>> {
        self.load_all(HitKind::Memory, ranked, filter, ranked.len())
    }

    /// Number of rows with each word, counted up to [`COMMON`].
    fn counts_of(&self, kind: HitKind, query: &Query, filter: &Filter) -> Result<Vec<i64>> {
        let mut statement = self.conn.prepare_cached(sql(kind).count)?;
        let count = |wanted: &String| {
            let one = narrowed(&format!("- scope : {wanted}"), filter);
            Ok(statement.query_row((one, COMMON + 1), |row| row.get(0))?)
        };
        query.wanted.iter().map(count).collect()
    }

    /// Prompts that contain a word, with scores, for each of the words.
    fn by_word(&self, query: &Query, words: &[&String], filter: &Filter) -> Result<context::ByWord> {
        let mut statement = self.conn.prepare_cached(sql(HitKind::Prompt).ranked)?;
        let mut found = Vec::new();
        for word in words {
            let expression = narrowed(&format!("- scope : ({})", query.expression(&[word], "")), filter);
            let held = statement.query_map((expression, COMMON + 1), |row| Ok((row.get(0)?, row.get(1)?)))?;
            found.push(held.collect::<Result<HashMap<i64, f64>, _>>()?);
        }
        Ok(found)
    }

    /// Finds the newest rows of each word, those with the most words first. For queries that are sentences, or if no
    /// row has all common words. The score is the negative share of missing words.
    fn with_most(&self, kind: HitKind, query: &Query, filter: &Filter, limit: usize) -> Result<Vec<Hit>> {
        let mut statement = self.conn.prepare_cached(sql(kind).latest)?;
        let mut held: HashMap<i64, usize> = HashMap::new();
        for word in &query.wanted {
            let one = narrowed(&format!("- scope : ({})", query.expression(&[word], "")), filter);
            let rows = statement.query_map((one, COMMON), |row| row.get(0))?;
            rows.into_iter().try_for_each(|id| id.map(|id| *held.entry(id).or_default() += 1))?;
        }
        let most = held.values().copied().max().unwrap_or(0);
        let mut ranked: Vec<(i64, usize)> = held.into_iter().filter(|(_, words)| words * 2 > most).collect();
        ranked.sort_by_key(|(id, words)| std::cmp::Reverse((*words, *id)));
        let all = query.wanted.len() as f64;
        let ranked: Vec<(i64, f64)> = ranked.into_iter().map(|(id, words)| (id, words as f64 / all - 1.0)).collect();
        self.load_all(kind, &ranked, filter, limit)
    }

    fn matches(&self, kind: HitKind, sql: &str, expression: &str, filter: &Filter, limit: usize) -> Result<Vec<Hit>> {
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query((expression, VISITED.max(limit as i64)))?;
        self.load(kind, &mut rows, filter, limit)
    }

    /// Loads the newest rows. Walks sessions from the last one, so that an old project among many is found quickly.
    fn newest(&self, kind: HitKind, filter: &Filter, limit: usize) -> Result<Vec<Hit>> {
        let of_session = match sql(kind).newest {
            Newest::OfSession(of_session) => of_session,
            Newest::OfProject(of_project) => {
                let mut statement = self.conn.prepare_cached(of_project)?;
                let mut rows = statement.query((filter.project, VISITED.max(limit as i64)))?;
                return self.load(kind, &mut rows, filter, limit);
            }
        };
        let last_first = "SELECT id FROM sessions WHERE (?1 IS NULL OR project_id = ?1) AND (?2 IS NULL OR platform = ?2) ORDER BY active_at DESC";
        let mut walk = self.conn.prepare_cached(last_first)?;
        let mut sessions = walk.query((filter.project, &filter.platform))?;
        let mut statement = self.conn.prepare_cached(of_session)?;
        let mut hits: Vec<Hit> = Vec::new();
        while hits.len() < limit
            && let Some(session) = sessions.next()?
        {
            let mut rows = statement.query((session.get::<_, i64>(0)?, VISITED))?;
            hits.extend(self.load(kind, &mut rows, filter, limit - hits.len())?);
        }
        Ok(hits)
    }

    /// Loads rows in order until enough of them pass the filter.
    fn load(&self, kind: HitKind, ids: &mut rusqlite::Rows, filter: &Filter, limit: usize) -> Result<Vec<Hit>> {
        let mut loader = Loader::new(self, kind, filter)?;
        let mut hits = Vec::new();
        while hits.len() < limit
            && let Some(row) = ids.next()?
        {
            hits.extend(loader.load(row.get(0)?, row.get(1)?)?);
        }
        Ok(hits)
    }

    fn load_all(&self, kind: HitKind, ranked: &[(i64, f64)], filter: &Filter, limit: usize) -> Result<Vec<Hit>> {
        let mut loader = Loader::new(self, kind, filter)?;
        let mut hits = Vec::new();
        for (id, score) in ranked {
            if hits.len() == limit {
                break;
            }
            hits.extend(loader.load(*id, *score)?);
        }
        Ok(hits)
    }
}

/// Loads rows that pass a filter.
struct Loader<'a> {
    kind: HitKind,
    statement: rusqlite::CachedStatement<'a>,
    filter: Vec<Box<dyn rusqlite::ToSql>>,
}

impl<'a> Loader<'a> {
    fn new(store: &'a Store, kind: HitKind, filter: &Filter) -> Result<Loader<'a>> {
        Ok(Loader { kind, statement: store.conn.prepare_cached(sql(kind).load)?, filter: values(filter) })
    }

    fn load(&mut self, id: i64, score: f64) -> Result<Option<Hit>> {
        let bound = std::iter::once(&id as &dyn rusqlite::ToSql).chain(self.filter.iter().map(|value| value.as_ref()));
        let bound: Vec<&dyn rusqlite::ToSql> = bound.collect();
        Ok(self.statement.query_row(bound.as_slice(), |row| hit(self.kind, score, row)).optional()?)
    }
}

/// The parts of a query for an index.
struct Chosen<'a> {
    /// The FTS5 expression; `None` for a query without words.
    expression: Option<String>,
    /// Rare words for ranking, rarest first; if there are none, the newest rows with all words are taken.
    rare: Vec<&'a String>,
}

fn chosen<'a>(query: &'a Query, counts: &[i64], filter: &Filter) -> Chosen<'a> {
    let within = |words: &[&String], join: &str| narrowed(&format!("- scope : ({})", query.expression(words, join)), filter);
    let counted = query.wanted.iter().zip(counts.iter().copied());
    let (common, mut rare): (Vec<_>, Vec<_>) = counted.partition(|(_, count)| *count > COMMON);
    // The rarest words are the most informative. A word without occurrences is ignored.
    rare.sort_by_key(|(_, count)| *count);
    let mut rows = 0;
    let affordable = rare.iter().filter(|(_, count)| *count > 0).take_while(|(_, count)| {
        rows += count;
        rows <= RANKED || rows == *count
    });
    let found: Vec<&String> = affordable.map(|(word, _)| *word).collect();
    if !found.is_empty() {
        return Chosen { expression: Some(within(&found, " OR ")), rare: found };
    }
    let common: Vec<&String> = common.into_iter().map(|(word, _)| word).collect();
    let all: Vec<&String> = query.wanted.iter().collect();
    let expression = match (common.is_empty(), all.is_empty()) {
        (true, true) => None,
        (true, false) => Some(within(&all, " OR ")),
        (false, _) => Some(within(&common, " AND ")),
    };
    Chosen { expression, rare: Vec::new() }
}

/// Narrows an expression to a project.
fn narrowed(expression: &str, filter: &Filter) -> String {
    match filter.project {
        Some(project) => format!("({expression}) AND scope : {}", scope(Some(project))),
        None => expression.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    use crate::model::{Event, EventKind, Platform, ProjectId};
    use crate::redact::Redactor;
    use crate::store::testing::Scratch;

    /// A store with prompts, given as project and text, a millisecond apart.
    fn with_prompts(name: &str, prompts: &[(&str, &str)]) -> (Scratch, Store) {
        let scratch = Scratch::new(name);
        let mut store = scratch.open();
        let redactor = Redactor::default();
        let prompt = |(n, (project, text)): (usize, &(&str, &str))| Event {
            platform: Platform::ClaudeCode,
            session: format!("in {project}"),
            at: n as i64,
            time: None,
            cwd: Some((*project).into()),
            project: None,
            transcript: None,
            transcript_length: None,
            usage: None,
            prompt: Some(format!("p{n}")),
            agent: None,
            what: EventKind::UserPrompt { text: (*text).into() },
        };
        let identify = |event: &Event| {
            let cwd = event.cwd.clone()?;
            let id = ProjectId { keys: vec![format!("dir:{cwd}")], name: cwd.clone(), root: cwd.clone(), ..ProjectId::default() };
            Some(redactor.clean(id))
        };
        let mut events = prompts.iter().enumerate().map(prompt);
        store.write(|tx| events.try_for_each(|e| crate::ingest::store_event(tx, &redactor.clean(e), None, &identify))).unwrap();
        (scratch, store)
    }

    #[test]
    fn of_common_words_the_newest_rows_with_most_of_them_are_found() {
        let mut prompts: Vec<(&str, &str)> = (0..1500).map(|n| ("/a", ["deploy the zebra", "zebra", "quagga"][n % 3])).collect();
        prompts.extend([("/a", "quagga and zebra"), ("/a", "deploy")]);
        let (_scratch, store) = with_prompts("most", &prompts);
        let found = |text: &str| -> Vec<String> {
            let hits = store.search(&Query::parse(text), &[HitKind::Prompt], &Filter::default(), 2).unwrap();
            hits.into_iter().map(|hit| hit.text).collect()
        };
        assert_eq!(found("deploy zebra"), ["deploy the zebra", "deploy the zebra"], "all words in one row");
        assert_eq!(found("quagga zebra deploy"), ["quagga and zebra", "deploy the zebra"], "two of three");
        assert_eq!(store.corrected(&Query::parse("quagga zebra deploy")).unwrap(), None, "each of them stands somewhere");
        let corrected = store.corrected(&Query::parse("quagga zerba")).unwrap().unwrap();
        assert_eq!(corrected.sought(), "quagga, zebra");
        let swapped = store.corrected(&Query::parse("quagga ezbra")).unwrap().unwrap();
        assert_eq!(swapped.sought(), "quagga, zebra", "the first two letters");
    }

    #[test]
    fn a_search_in_one_project_is_not_drowned_by_another() {
        let mut prompts = vec![("/a", "deploy the 記憶 thing of project1")];
        prompts.extend((1..9000).map(|n| ("/b", if n % 2 == 0 { "deploy zebra" } else { "deploy" })));
        let (_scratch, store) = with_prompts("drowned", &prompts);
        let in_a = Filter { project: Some(1), ..Filter::default() };
        let found = |text: &str, filter: &Filter, limit| {
            store.search(&Query::parse(text), &[HitKind::Prompt], filter, limit).unwrap().len()
        };
        for text in ["deploy", "deploy zebra", "記", "project1"] {
            assert_eq!(found(text, &in_a, 10), 1, "{text}");
        }
        assert_eq!(found("project2", &Filter::default(), 10), 0, "the index's own word for a project is no text");
        assert_eq!(found("deploy", &Filter::default(), 100_000), 9000);
    }

    proptest! {
        #[test]
        fn no_query_is_an_error(text in "[\\PC\"*():^+-]{0,60}|(AND|OR|NOT|NEAR| |\"|\\(|\\*|a|:|-){0,20}") {
            let conn = rusqlite::Connection::open_in_memory().unwrap();
            conn.execute_batch("CREATE VIRTUAL TABLE i USING fts5(a, b)").unwrap();
            let query = Query::parse(&text);
            if !query.is_empty() {
                let expression = query.expression(&query.wanted.iter().collect::<Vec<_>>(), " OR ");
                conn.query_row("SELECT count(*) FROM i WHERE i MATCH ?1", [&expression], |r| r.get::<_, i64>(0)).unwrap();
            }
        }
    }
}
