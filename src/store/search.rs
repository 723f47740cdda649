//! Full-text search: from a query as people type it to rows in the order in which they fit.
//!
//! The cost is bounded whatever the query: the words of a query are counted up to 4,000 rows each; rows are ranked
//! by BM25 over the rare words, and a query of nothing but common words takes the newest rows that hold all of them.
//! What a person types is never handed to FTS5 as syntax, so no query can be an error.

use super::Store;
use super::index::scope;
use crate::index_text::query_terms;
use crate::model::{Filter, Hit, HitKind};
use anyhow::Result;
use rusqlite::{OptionalExtension, Row, named_params};

/// A word that more rows hold than this is common: ranking by it would visit them all. Ranking 4,000 rows takes 10 ms.
const COMMON: i64 = 4000;
/// Rows that the words of one query may add up to; what is left out are its commonest words.
const RANKED: i64 = 8000;
/// Rows that are looked at before a search gives up finding more that pass its filter.
const VISITED: i64 = 8000;
/// Words of a query that are looked at.
const WORDS: usize = 24;

/// English words that say nothing about what is searched for.
const STOP_WORDS: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "by", "did", "do", "does", "for", "from", "had", "has", "have", "how", "i", "in",
    "is", "it", "its", "me", "my", "of", "on", "or", "our", "that", "the", "this", "to", "was", "we", "were", "what", "when",
    "where", "which", "who", "why", "will", "with", "you", "your",
];

/// What is searched for, freed of syntax.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Each is one word, phrase or prefix as an FTS5 expression.
    wanted: Vec<String>,
    unwanted: Vec<String>,
}

impl Query {
    /// Reads `words "a phrase" -not prefix*`. Stop words are left out unless nothing else is there.
    pub fn parse(text: &str) -> Query {
        let mut query = Query::default();
        let mut stopped = Vec::new();
        for (negated, token) in tokens(text).into_iter().take(WORDS) {
            let terms = query_terms(token);
            // One character of a script without spaces stands in bigrams alone.
            let single = terms.len() == 1 && !terms[0].is_ascii() && terms[0].chars().count() == 1;
            let prefix = single || token.len() > 1 && token.ends_with('*');
            if terms.is_empty() {
                continue;
            }
            // Terms are letters and digits alone, so a quoted string of them is always valid.
            let expression = format!("\"{}\"{}", terms.join(" "), if prefix { " *" } else { "" });
            if negated {
                query.unwanted.push(expression);
            } else if terms.len() == 1 && !prefix && STOP_WORDS.contains(&terms[0].as_str()) {
                stopped.push(expression);
            } else {
                query.wanted.push(expression);
            }
        }
        if query.wanted.is_empty() {
            query.wanted = stopped;
        }
        query
    }

    /// Whether it asks for nothing: the newest rows are wanted.
    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    fn expression(&self, wanted: &[&String], join: &str) -> String {
        let wanted = wanted.iter().map(|w| w.as_str()).collect::<Vec<_>>().join(join);
        match self.unwanted.is_empty() {
            true => wanted,
            false => format!("({wanted}) NOT ({})", self.unwanted.join(" OR ")),
        }
    }
}

/// Cuts at white space, but holds `"a phrase"` together; tells which tokens have a minus before them.
fn tokens(text: &str) -> Vec<(bool, &str)> {
    let mut out = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let bare = rest.strip_prefix('-').filter(|word| word.starts_with(|c: char| !c.is_whitespace()));
        rest = bare.unwrap_or(rest);
        let (token, behind) = match rest.strip_prefix('"') {
            Some(phrase) => phrase.split_once('"').unwrap_or((phrase, "")),
            None => rest.split_at(rest.find(|c: char| c.is_whitespace() || c == '"').unwrap_or(rest.len())),
        };
        out.push((bare.is_some(), token));
        rest = behind.trim_start();
    }
    out
}

/// How one kind of row is found. `count`, `ranked` and `latest` take an FTS5 expression; all but `load` give row ids.
struct Sql {
    count: &'static str,
    ranked: &'static str,
    latest: &'static str,
    /// A session's rows, the newest first.
    of_session: &'static str,
    /// One row, if it passes the filter.
    load: &'static str,
}

/// `text_index` holds prompts under `id * 4` (`INDEXED_PROMPT`); its first line counts twice.
const PROMPTS: Sql = Sql {
    count: "SELECT count(*) FROM (SELECT 1 FROM text_index WHERE text_index MATCH ?1 LIMIT ?2)",
    ranked: "SELECT rowid / 4, -bm25(text_index, 2.0, 1.0, 0.0) FROM text_index WHERE text_index MATCH ?1 AND rowid % 4 = 0 ORDER BY 2 DESC LIMIT ?2",
    latest: "SELECT rowid / 4, 0.0 FROM text_index WHERE text_index MATCH ?1 AND rowid % 4 = 0 ORDER BY rowid DESC LIMIT ?2",
    of_session: "SELECT id, 0.0 FROM prompts WHERE session_id = ?1 ORDER BY number DESC, id DESC LIMIT ?2",
    load: "SELECT p.id, p.source, p.text, '', NULL, NULL, pr.name, s.agent_session_id, s.platform, p.received_at
           FROM prompts p JOIN sessions s ON s.id = p.session_id LEFT JOIN projects pr ON pr.id = s.project_id
           WHERE p.id = :id AND p.kind <> 'thinking' AND (:project IS NULL OR s.project_id = :project)
             AND (:platform IS NULL OR s.platform = :platform) AND p.received_at >= :since AND p.received_at < :until AND :file IS NULL",
};

/// Words of a command and of its description count more than those of an error.
const TOOL_USES: Sql = Sql {
    count: "SELECT count(*) FROM (SELECT 1 FROM tool_index WHERE tool_index MATCH ?1 LIMIT ?2)",
    ranked: "SELECT rowid, -bm25(tool_index, 2.0, 2.0, 1.5, 1.0, 0.0) FROM tool_index WHERE tool_index MATCH ?1 ORDER BY 2 DESC LIMIT ?2",
    latest: "SELECT rowid, 0.0 FROM tool_index WHERE tool_index MATCH ?1 ORDER BY rowid DESC LIMIT ?2",
    of_session: "SELECT id, 0.0 FROM tool_uses WHERE session_id = ?1 ORDER BY seq DESC LIMIT ?2",
    load: "SELECT t.id, t.kind, coalesce(t.content, t.path, t.tool_name),
             trim(coalesce(t.metadata ->> 'description', '') || ' ' || coalesce(t.metadata ->> 'response', '')),
             t.path, t.succeeded, pr.name, s.agent_session_id, s.platform, t.received_at
           FROM tool_uses t JOIN sessions s ON s.id = t.session_id LEFT JOIN projects pr ON pr.id = s.project_id
           WHERE t.id = :id AND (:project IS NULL OR s.project_id = :project) AND (:platform IS NULL OR s.platform = :platform)
             AND t.received_at >= :since AND t.received_at < :until
             AND (:file IS NULL OR t.path = :file OR substr(t.path, -length('/' || :file)) = '/' || :file)",
};

fn sql(kind: HitKind) -> &'static Sql {
    match kind {
        HitKind::Prompt => &PROMPTS,
        HitKind::Tool => &TOOL_USES,
    }
}

impl Store {
    /// Finds rows of the wanted kinds, best first. A search by file finds tool uses alone.
    pub fn search(&self, query: &Query, kinds: &[HitKind], filter: &Filter, limit: usize) -> Result<Vec<Hit>> {
        let mut hits = Vec::new();
        for &kind in kinds.iter().filter(|k| **k == HitKind::Tool || filter.file.is_none()) {
            let mut expression = self.expression(kind, query, filter)?;
            if let Some(path) = filter.file.as_deref().map(query_terms).filter(|terms| !terms.is_empty()) {
                let path = format!("path : ({})", path.iter().map(|t| format!("\"{t}\"")).collect::<Vec<_>>().join(" AND "));
                expression = Some(match expression {
                    Some((words, ranked)) => (format!("({words}) AND {path}"), ranked),
                    None => (narrowed(&path, filter), false),
                });
            }
            match expression {
                Some((words, true)) => hits.extend(self.matches(kind, sql(kind).ranked, &words, filter, limit)?),
                Some((words, false)) => hits.extend(self.matches(kind, sql(kind).latest, &words, filter, limit)?),
                None => hits.extend(self.newest(kind, filter, limit)?),
            }
        }
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.at.cmp(&a.at)));
        hits.truncate(limit);
        Ok(hits)
    }

    /// The FTS5 expression for a query, and whether ranking by it is cheap; `None` for a query without words.
    fn expression(&self, kind: HitKind, query: &Query, filter: &Filter) -> Result<Option<(String, bool)>> {
        let within = |words: &[&String], join: &str| narrowed(&format!("- scope : ({})", query.expression(words, join)), filter);
        let (mut rare, mut common) = (Vec::new(), Vec::new());
        for wanted in &query.wanted {
            let one = narrowed(&format!("- scope : {wanted}"), filter);
            let count: i64 = self.conn.prepare_cached(sql(kind).count)?.query_row((one, COMMON + 1), |row| row.get(0))?;
            if count > COMMON { common.push(wanted) } else { rare.push((wanted, count)) }
        }
        // The rarest words say most. One that stands nowhere leaves the choice to the others.
        rare.sort_by_key(|(_, count)| *count);
        let mut rows = 0;
        let affordable = rare.iter().filter(|(_, count)| *count > 0).take_while(|(_, count)| {
            rows += count;
            rows <= RANKED || rows == *count
        });
        let found: Vec<&String> = affordable.map(|(word, _)| *word).collect();
        if !found.is_empty() {
            return Ok(Some((within(&found, " OR "), true)));
        }
        if common.is_empty() {
            let all: Vec<&String> = query.wanted.iter().collect();
            return Ok((!all.is_empty()).then(|| (within(&all, " OR "), true)));
        }
        Ok(Some((within(&common, " AND "), false)))
    }

    fn matches(&self, kind: HitKind, sql: &str, expression: &str, filter: &Filter, limit: usize) -> Result<Vec<Hit>> {
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query((expression, VISITED.max(limit as i64)))?;
        self.load(kind, &mut rows, filter, limit)
    }

    /// Sessions are walked from the last one, so that an old project among many is found at once.
    fn newest(&self, kind: HitKind, filter: &Filter, limit: usize) -> Result<Vec<Hit>> {
        let last_first = "SELECT id FROM sessions WHERE (?1 IS NULL OR project_id = ?1) AND (?2 IS NULL OR platform = ?2) ORDER BY active_at DESC";
        let mut walk = self.conn.prepare_cached(last_first)?;
        let mut sessions = walk.query((filter.project, &filter.platform))?;
        let mut statement = self.conn.prepare_cached(sql(kind).of_session)?;
        let mut hits: Vec<Hit> = Vec::new();
        while hits.len() < limit
            && let Some(session) = sessions.next()?
        {
            let mut rows = statement.query((session.get::<_, i64>(0)?, VISITED))?;
            hits.extend(self.load(kind, &mut rows, filter, limit - hits.len())?);
        }
        Ok(hits)
    }

    /// Loads rows in their order until there are enough that pass the filter.
    fn load(&self, kind: HitKind, ids: &mut rusqlite::Rows, filter: &Filter, limit: usize) -> Result<Vec<Hit>> {
        let mut statement = self.conn.prepare_cached(sql(kind).load)?;
        let mut hits = Vec::new();
        while hits.len() < limit
            && let Some(row) = ids.next()?
        {
            let score: f64 = row.get(1)?;
            let values = named_params! {
                ":id": row.get::<_, i64>(0)?, ":project": filter.project, ":platform": filter.platform, ":file": filter.file,
                ":since": filter.since.unwrap_or(i64::MIN), ":until": filter.until.unwrap_or(i64::MAX),
            };
            hits.extend(statement.query_row(values, |row| hit(kind, score, row)).optional()?);
        }
        Ok(hits)
    }
}

/// Narrows an expression to a project.
fn narrowed(expression: &str, filter: &Filter) -> String {
    match filter.project {
        Some(project) => format!("({expression}) AND scope : {}", scope(Some(project))),
        None => expression.to_string(),
    }
}

fn hit(kind: HitKind, score: f64, row: &Row) -> rusqlite::Result<Hit> {
    Ok(Hit {
        kind,
        id: row.get(0)?,
        what: row.get(1)?,
        text: row.get(2)?,
        more: row.get(3)?,
        path: row.get(4)?,
        succeeded: row.get(5)?,
        project: row.get(6)?,
        session: row.get(7)?,
        platform: row.get(8)?,
        at: row.get(9)?,
        score,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_query_is_words_phrases_negations_and_prefixes() {
        let query = Query::parse("the login \"query string\" -logout -\"a b\" parseHook*");
        assert_eq!(query.wanted, ["\"login\"", "\"query string\"", "\"parse hook\" *"]);
        assert_eq!(query.unwanted, ["\"logout\"", "\"a b\""]);
        assert_eq!(Query::parse("what is it").wanted.len(), 3, "stop words alone are better than nothing");
        assert!(Query::parse(" - \" ").is_empty());
    }

    #[test]
    fn a_search_in_one_project_is_not_drowned_by_another() {
        use crate::model::{Event, Happening, Platform, ProjectId};
        use crate::redact::Redactor;
        let scratch = crate::store::testing::Scratch::new("drowned");
        let mut store = scratch.open();
        let redactor = Redactor::default();
        let prompt = |n: usize, project: &str, text: &str| Event {
            platform: Platform::ClaudeCode,
            session: format!("in {project}"),
            at: n as i64,
            time: None,
            cwd: Some(project.into()),
            transcript: None,
            transcript_length: None,
            prompt: Some(format!("p{n}")),
            agent: None,
            what: Happening::Prompted { text: text.into() },
        };
        let mut events = vec![prompt(0, "/a", "deploy the 記憶 thing of project1")];
        events.extend((1..9000).map(|n| prompt(n, "/b", if n % 2 == 0 { "deploy zebra" } else { "deploy" })));
        let identify = |cwd: &str| {
            let id = ProjectId {
                places: Vec::new(),
                keys: vec![format!("dir:{cwd}")],
                name: cwd.into(),
                repo_url: None,
                root: cwd.into(),
            };
            Some(Redactor::default().clean(id))
        };
        store.write(|tx| events.into_iter().try_for_each(|e| tx.store_event(&redactor.clean(e), None, &identify))).unwrap();
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
