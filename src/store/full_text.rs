//! Full-text search over memories, prompts, units, tool uses and commands.

use super::Store;
use super::history::{TOOL_USE, tool_use};
use super::index::scope;
use super::query::Query;
use crate::index_text::query_terms;
use crate::model::{Filter, Hit, HitKind, SearchScope, ToolUseRow};
use anyhow::Result;
use rusqlite::{OptionalExtension, Row, ToSql, params};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

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
    fn by_word(&self, query: &Query, words: &[&String], filter: &Filter) -> Result<ByWord> {
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

    /// Loads the newest rows of each project.
    fn newest(&self, kind: HitKind, filter: &Filter, limit: usize) -> Result<Vec<Hit>> {
        if filter.scope.projects.len() < 2 {
            return self.newest_of(kind, filter.scope.projects.first().copied(), filter, limit);
        }
        let mut hits = Vec::new();
        for project in &filter.scope.projects {
            hits.extend(self.newest_of(kind, Some(*project), filter, limit)?);
        }
        hits.sort_by_key(|hit: &Hit| std::cmp::Reverse(hit.at));
        hits.truncate(limit);
        Ok(hits)
    }

    /// Loads the newest rows of a project. Walks sessions from the last one, so that an old project among many is found
    /// quickly.
    fn newest_of(&self, kind: HitKind, project: Option<i64>, filter: &Filter, limit: usize) -> Result<Vec<Hit>> {
        let of_session = match sql(kind).newest {
            Newest::OfSession(of_session) => of_session,
            Newest::OfProject(of_project) => {
                let mut statement = self.conn.prepare_cached(of_project)?;
                let mut rows = statement.query((project, VISITED.max(limit as i64)))?;
                return self.load(kind, &mut rows, filter, limit);
            }
        };
        let is_elsewhere = self.conn.prepare_cached("SELECT 1 FROM work_units WHERE project_id = ?1")?.exists([project])?;
        let last_first = match is_elsewhere {
            false => "SELECT id FROM sessions WHERE (?1 IS NULL OR project_id = ?1) AND (?2 IS NULL OR platform = ?2) ORDER BY active_at DESC",
            true => {
                "SELECT id FROM sessions WHERE (project_id = ?1 OR id IN (SELECT session_id FROM work_units WHERE project_id = ?1))
                   AND (?2 IS NULL OR platform = ?2) ORDER BY active_at DESC"
            }
        };
        let mut walk = self.conn.prepare_cached(last_first)?;
        let mut sessions = walk.query((project, &filter.platform))?;
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
    within(expression, &filter.scope)
}

/// Restricts an expression of the full-text index to projects.
fn within(expression: &str, wanted: &SearchScope) -> String {
    let terms: Vec<String> = wanted.projects.iter().map(|project| scope(Some(*project))).collect();
    if terms.is_empty() { expression.to_string() } else { format!("({expression}) AND scope : ({})", terms.join(" OR ")) }
}

/// Number of hits whose neighbours and sessions are read.
const LOOKED_AT: usize = 300;
/// Weights of a word in the messages before, the nearest first, and in those after.
const BEFORE: [f64; 2] = [0.6, 0.3];
const AFTER: [f64; 2] = [0.4, 0.2];
/// Saturation of one word over several messages.
const ENOUGH: f64 = 1.5;
/// Maximum bonus from the session, as a multiple of a message's own score.
const SESSION: f64 = 2.0;
/// BM25 parameters over sessions.
const K1: f64 = 1.2;
const B: f64 = 0.75;

/// Messages that contain a query word, with scores, for each of the words.
pub(super) type ByWord = Vec<HashMap<i64, f64>>;

impl Store {
    /// Ranks messages, best first.
    pub(super) fn in_context(&self, by_word: &ByWord) -> Result<Vec<(i64, f64)>> {
        let mut own: HashMap<i64, f64> = HashMap::new();
        for (id, score) in by_word.iter().flatten() {
            *own.entry(*id).or_default() += score;
        }
        let mut best: Vec<(i64, f64)> = own.into_iter().collect();
        best.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
        let rest = best.split_off(best.len().min(LOOKED_AT));
        let sessions = self.messages_around(&best)?;
        let scored = scored(by_word, &sessions);
        // Messages without context keep their own score, below all others.
        let floor = scored.last().map_or(0.0, |(_, score)| *score);
        let known: std::collections::HashSet<i64> = scored.iter().map(|(id, _)| *id).collect();
        let rest = rest.into_iter().filter(|(id, _)| !known.contains(id)).map(|(id, score)| (id, score.min(floor)));
        Ok(scored.iter().copied().chain(rest).collect())
    }

    /// All messages of the sessions of some hits, in order.
    fn messages_around(&self, hits: &[(i64, f64)]) -> Result<Vec<Vec<i64>>> {
        let mut sessions: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
        let mut of = self.conn.prepare_cached("SELECT session_id FROM prompts WHERE id = ?1")?;
        for (id, _) in hits {
            sessions.entry(of.query_row([id], |row| row.get(0))?).or_default();
        }
        let sql = "SELECT id FROM prompts WHERE session_id = ?1 AND kind NOT IN ('thinking', 'taken-back') ORDER BY number, id";
        let mut all = self.conn.prepare_cached(sql)?;
        for (session, messages) in &mut sessions {
            *messages = all.query_map([session], |row| row.get(0))?.collect::<Result<_, _>>()?;
        }
        Ok(sessions.into_values().collect())
    }
}

/// Scores of all matching messages of some sessions, best first.
fn scored(by_word: &ByWord, sessions: &[Vec<i64>]) -> Vec<(i64, f64)> {
    let mean = sessions.iter().map(Vec::len).sum::<usize>() as f64 / sessions.len().max(1) as f64;
    let mut of_session = vec![0.0; sessions.len()];
    let mut scores: Vec<Vec<f64>> = sessions.iter().map(|messages| vec![0.0; messages.len()]).collect();
    for held in by_word {
        let most = held.values().copied().fold(0.0, f64::max);
        let counts: Vec<usize> =
            sessions.iter().map(|messages| messages.iter().filter(|id| held.contains_key(id)).count()).collect();
        let with = counts.iter().filter(|count| **count > 0).count() as f64;
        let idf = (1.0 + (sessions.len() as f64 - with + 0.5) / (with + 0.5)).ln();
        for (at, messages) in sessions.iter().enumerate().filter(|(at, _)| counts[*at] > 0) {
            let count = counts[at] as f64;
            of_session[at] += idf * count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * messages.len() as f64 / mean));
            let own = |i: usize| messages.get(i).and_then(|id| held.get(id)).copied().unwrap_or(0.0);
            for (i, score) in scores[at].iter_mut().enumerate() {
                let before = BEFORE.iter().zip((0..i).rev()).map(|(weight, i)| weight * own(i));
                let after = AFTER.iter().zip(i + 1..).map(|(weight, i)| weight * own(i));
                let around = own(i) + before.sum::<f64>() + after.sum::<f64>();
                *score += around * (1.0 + ENOUGH) / (1.0 + ENOUGH * around / most.max(f64::MIN_POSITIVE));
            }
        }
    }
    let best = of_session.iter().copied().fold(0.0, f64::max);
    let mut all = Vec::new();
    for ((messages, scores), session) in sessions.iter().zip(scores).zip(of_session) {
        let times = 1.0 + SESSION * if best > 0.0 { session / best } else { 0.0 };
        all.extend(messages.iter().copied().zip(scores).filter(|(_, score)| *score > 0.0).map(|(id, score)| (id, score * times)));
    }
    all.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
    all
}

/// SQL for one kind of row. `count`, `ranked` and `latest` take an FTS5 expression; all but `load` return row ids.
pub(super) struct Sql {
    pub count: &'static str,
    pub ranked: &'static str,
    pub latest: &'static str,
    pub newest: Newest,
    /// One row, if it passes the filter (`values`).
    pub load: &'static str,
}

/// Rows by time, newest first.
pub(super) enum Newest {
    OfSession(&'static str),
    OfProject(&'static str),
}

const COUNT: &str = "SELECT count(*) FROM (SELECT 1 FROM text_index WHERE text_index MATCH ?1 LIMIT ?2)";

/// `text_index` contains prompts under `id * 4` (`INDEXED_PROMPT`); the first line counts twice.
const PROMPTS: Sql = Sql {
    count: COUNT,
    ranked: "SELECT rowid / 4, -bm25(text_index, 2.0, 1.0, 0.0) FROM text_index WHERE text_index MATCH ?1 AND rowid % 4 = 0 ORDER BY 2 DESC LIMIT ?2",
    latest: "SELECT rowid / 4, 0.0 FROM text_index WHERE text_index MATCH ?1 AND rowid % 4 = 0 ORDER BY rowid DESC LIMIT ?2",
    newest: Newest::OfSession("SELECT id, 0.0 FROM prompts WHERE session_id = ?1 ORDER BY number DESC, id DESC LIMIT ?2"),
    load: "SELECT p.id, p.source, p.text, '', NULL, NULL, pr.name, s.agent_session_id, s.platform, p.received_at,
             (SELECT min(work_unit_id) FROM steps WHERE session_id = p.session_id AND prompt_id = p.id), NULL, NULL, NULL, 'prompt'
           FROM prompts p JOIN sessions s ON s.id = p.session_id LEFT JOIN projects pr ON pr.id = coalesce(p.project_id, s.project_id)
           WHERE p.id = ?1 AND p.kind NOT IN ('thinking', 'taken-back') AND (?2 IS NULL OR coalesce(p.project_id, s.project_id) IN (SELECT value FROM json_each(?2)))
             AND (?3 IS NULL OR s.platform = ?3) AND p.received_at >= ?4 AND p.received_at < ?5 AND ?6 IS NULL AND ?7 IS NULL AND ?8 IS NULL AND ?9 IS NOT NULL",
};

/// `text_index` contains memories under `id * 4 + 1` (`INDEXED_MEMORY`). Memories rank slightly above their sources.
const MEMORIES: Sql = Sql {
    count: COUNT,
    ranked: "SELECT rowid / 4, -1.25 * bm25(text_index, 2.0, 1.0, 0.0) FROM text_index WHERE text_index MATCH ?1 AND rowid % 4 = 1 ORDER BY 2 DESC LIMIT ?2",
    latest: "SELECT rowid / 4, 0.0 FROM text_index WHERE text_index MATCH ?1 AND rowid % 4 = 1 ORDER BY rowid DESC LIMIT ?2",
    newest: Newest::OfProject("SELECT id, 0.0 FROM memories WHERE (?1 IS NULL OR project_id = ?1) ORDER BY created_at DESC, id DESC LIMIT ?2"),
    load: "SELECT m.id, m.type, m.title,
             concat_ws(char(10), m.subtitle, (SELECT group_concat(value, char(10)) FROM json_tree(m.content) WHERE type = 'text'
               AND key NOT IN ('request', 'task', 'task_description', 'sha', 'subject') AND path NOT IN ('$.files_read', '$.files_edited', '$.modules_affected')), m.body),
             NULL, NULL, pr.name, coalesce(s.agent_session_id, ''), coalesce(m.platform, ''), m.created_at, m.work_unit_id,
             (SELECT json_group_array(concept) FROM memory_concepts WHERE memory_id = m.id),
             (SELECT json_group_array(path) FROM memory_files WHERE memory_id = m.id),
             CASE m.provenance WHEN 'team' THEN (SELECT 'teammate ' || k.name FROM shared h JOIN machines k ON k.id = h.machine WHERE h.uuid = m.uuid) ELSE m.made_by END, m.kind
           FROM memories m LEFT JOIN sessions s ON s.id = m.session_id LEFT JOIN projects pr ON pr.id = m.project_id
           WHERE m.id = ?1 AND m.superseded_by IS NULL AND (?2 IS NULL OR m.project_id IN (SELECT value FROM json_each(?2)))
             AND (?3 IS NULL OR m.platform = ?3) AND m.created_at >= ?4 AND m.created_at < ?5
             AND (?6 IS NULL OR EXISTS (SELECT 1 FROM memory_files f WHERE f.memory_id = m.id AND (f.path = ?6 OR substr(f.path, -length('/' || ?6)) = '/' || ?6)))
             AND (?7 IS NULL OR m.type = ?7)
             AND (?8 IS NULL OR EXISTS (SELECT 1 FROM memory_concepts c WHERE c.memory_id = m.id AND c.concept = ?8))
             AND (?9 = '[]' OR m.kind IN (SELECT value FROM json_each(?9)))",
};

/// Units contain many words and score high, so their memories are ranked above them.
const UNITS: Sql = Sql {
    count: "SELECT count(*) FROM (SELECT 1 FROM unit_index WHERE unit_index MATCH ?1 LIMIT ?2)",
    ranked: "SELECT rowid, -0.6 * bm25(unit_index, 1.0, 0.0, 0.0) FROM unit_index WHERE unit_index MATCH ?1 AND rowid > 0 ORDER BY 2 DESC LIMIT ?2",
    latest: "SELECT rowid, 0.0 FROM unit_index WHERE unit_index MATCH ?1 AND rowid > 0 ORDER BY rowid DESC LIMIT ?2",
    newest: Newest::OfSession("SELECT id, 0.0 FROM work_units WHERE session_id = ?1 ORDER BY id DESC LIMIT ?2"),
    load: "SELECT u.id, u.outcome, coalesce(u.title, u.intent, 'work without a prompt'),
             coalesce((SELECT group_concat(value, char(10)) FROM memories m, json_tree(m.content) WHERE m.session_id = u.session_id AND m.work_unit_id = u.id
               AND m.kind = 'summary' AND m.superseded_by IS NULL AND json_tree.type = 'text' AND key NOT IN ('request') AND path = '$'), ''),
             NULL, NULL, pr.name, s.agent_session_id, s.platform, u.started_at, u.id, NULL,
             (SELECT json_group_array(DISTINCT f.path) FROM steps p JOIN step_files f ON f.step_id = p.id WHERE p.session_id = u.session_id AND p.work_unit_id = u.id AND f.edits > 0),
             NULL, 'unit'
           FROM work_units u JOIN sessions s ON s.id = u.session_id LEFT JOIN projects pr ON pr.id = coalesce(u.project_id, s.project_id)
           WHERE u.id = ?1 AND (?2 IS NULL OR coalesce(u.project_id, s.project_id) IN (SELECT value FROM json_each(?2))) AND (?3 IS NULL OR s.platform = ?3) AND u.ended_at >= ?4 AND u.started_at < ?5
             AND (?6 IS NULL OR EXISTS (SELECT 1 FROM steps p JOIN step_files f ON f.step_id = p.id WHERE p.session_id = u.session_id AND p.work_unit_id = u.id
               AND (f.path = ?6 OR substr(f.path, -length('/' || ?6)) = '/' || ?6)))
             AND ?7 IS NULL AND ?8 IS NULL AND ?9 IS NOT NULL",
};

/// Words of a command and its description count more than those of an error.
const TOOL_USES: Sql = Sql {
    count: "SELECT count(*) FROM (SELECT 1 FROM tool_index WHERE tool_index MATCH ?1 LIMIT ?2)",
    ranked: "SELECT rowid, -bm25(tool_index, 2.0, 2.0, 1.5, 1.0, 0.0) FROM tool_index WHERE tool_index MATCH ?1 ORDER BY 2 DESC LIMIT ?2",
    latest: "SELECT rowid, 0.0 FROM tool_index WHERE tool_index MATCH ?1 ORDER BY rowid DESC LIMIT ?2",
    newest: Newest::OfSession("SELECT id, 0.0 FROM tool_uses WHERE session_id = ?1 ORDER BY seq DESC LIMIT ?2"),
    load: "SELECT t.id, t.kind, coalesce(t.content, t.path, t.tool_name),
             trim(coalesce(t.metadata ->> 'description', '') || ' ' || coalesce(t.metadata ->> 'response', '')),
             t.path, t.succeeded, pr.name, s.agent_session_id, s.platform, t.received_at,
             (SELECT work_unit_id FROM steps WHERE id = t.step_id), NULL, NULL, NULL, 'tool'
           FROM tool_uses t JOIN sessions s ON s.id = t.session_id LEFT JOIN projects pr ON pr.id = coalesce(t.project_id, s.project_id)
           WHERE t.id = ?1 AND (?2 IS NULL OR coalesce(t.project_id, s.project_id) IN (SELECT value FROM json_each(?2))) AND (?3 IS NULL OR s.platform = ?3)
             AND t.received_at >= ?4 AND t.received_at < ?5
             AND (?6 IS NULL OR t.path = ?6 OR substr(t.path, -length('/' || ?6)) = '/' || ?6) AND ?7 IS NULL AND ?8 IS NULL AND ?9 IS NOT NULL",
};

/// The SQL for a kind.
pub(super) fn sql(kind: HitKind) -> &'static Sql {
    match kind {
        HitKind::Memory => &MEMORIES,
        HitKind::Unit => &UNITS,
        HitKind::Prompt => &PROMPTS,
        HitKind::Tool => &TOOL_USES,
    }
}

/// Parameters of `load` after the row id.
pub(super) fn values(filter: &Filter) -> Vec<Box<dyn ToSql>> {
    let kinds: Vec<&str> = filter.memories.iter().map(|kind| kind.name()).collect();
    vec![
        Box::new(filter.scope.json()),
        Box::new(filter.platform.clone()),
        Box::new(filter.since.unwrap_or(i64::MIN)),
        Box::new(filter.until.unwrap_or(i64::MAX)),
        Box::new(filter.file.clone()),
        Box::new(filter.kind_type.clone()),
        Box::new(filter.concept.clone()),
        Box::new(serde_json::to_string(&kinds).unwrap_or_else(|_| "[]".into())),
    ]
}

pub(super) fn hit(kind: HitKind, score: f64, row: &Row) -> rusqlite::Result<Hit> {
    let list = |i: usize| {
        row.get::<_, Option<String>>(i).map(|json| json.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default())
    };
    let path: Option<String> = row.get(4)?;
    let mut files: Vec<String> = list(12)?;
    files.extend(path.clone());
    Ok(Hit {
        kind,
        id: row.get(0)?,
        what: row.get::<_, Option<String>>(1)?.unwrap_or_default(),
        text: row.get(2)?,
        more: row.get(3)?,
        path,
        succeeded: row.get(5)?,
        project: row.get(6)?,
        session: row.get(7)?,
        platform: row.get(8)?,
        at: row.get(9)?,
        unit: row.get(10)?,
        concepts: list(11)?,
        files,
        made_by: row.get(13)?,
        name: row.get(14)?,
        passage: None,
        score,
    })
}

/// Number of rows above which a word is common: ranking by it would visit all of them.
const COMMON_COMMAND_WORD: i64 = 2000;
/// Maximum words to rank by.
const WORDS: usize = 6;

/// A command with its unit and the agent's id of its session.
#[derive(Clone, Debug)]
pub struct StoredCommand {
    pub tool: ToolUseRow,
    pub agent_session_id: String,
    pub unit: Option<i64>,
}

impl Store {
    /// Failed commands of a project with their units, newest sessions first.
    pub fn failed_commands(&self, project: i64, limit: usize) -> Result<Vec<(ToolUseRow, Option<i64>)>> {
        let sessions = "SELECT id FROM sessions WHERE project_id = ?1 AND failures > 0 ORDER BY active_at DESC";
        let mut sessions = self.conn.prepare_cached(sessions)?;
        let mut sessions = sessions.query([project])?;
        let mut found = Vec::new();
        while let (Some(session), true) = (sessions.next()?, found.len() < limit) {
            found.extend(self.failed_commands_of(session.get(0)?, limit - found.len())?);
        }
        Ok(found)
    }

    /// Failed commands of a session with their units, newest first.
    pub fn failed_commands_of(&self, session: i64, limit: usize) -> Result<Vec<(ToolUseRow, Option<i64>)>> {
        let columns = TOOL_USE.replace(" FROM tool_uses", ", (SELECT work_unit_id FROM steps WHERE id = step_id) FROM tool_uses");
        let sql = format!("{columns} WHERE session_id = ?1 AND kind = 'command' AND succeeded = 0 ORDER BY seq DESC LIMIT ?2");
        let row = |row: &rusqlite::Row| Ok((tool_use(row)?, row.get(15)?));
        Ok(self.conn.prepare_cached(&sql)?.query_map(params![session, limit as i64], row)?.collect::<Result<_, _>>()?)
    }

    /// Finds failed commands whose errors contain most of the words, best first. If all words are common, returns the
    /// newest whose errors contain all of them.
    pub fn failed_with(&self, scope: &SearchScope, words: &[String], limit: usize) -> Result<Vec<StoredCommand>> {
        let words: Vec<String> = words.iter().flat_map(|word| query_terms(word)).collect();
        let sql = "SELECT count(*) FROM (SELECT 1 FROM tool_index WHERE tool_index MATCH ?1 LIMIT ?2)";
        let mut count = self.conn.prepare_cached(sql)?;
        let mut rare: Vec<(i64, &String)> = Vec::new();
        for word in &words {
            let rows = count.query_row(
                params![matching("error", std::slice::from_ref(word), " AND ", scope), COMMON_COMMAND_WORD + 1],
                |row| row.get(0),
            )?;
            rare.extend((0 < rows && rows <= COMMON_COMMAND_WORD).then_some((rows, word)));
        }
        rare.sort();
        let rare: Vec<String> = rare.into_iter().take(WORDS).map(|(_, word)| word.clone()).collect();
        let (expression, order) = match rare.is_empty() {
            true => (matching("error", &words, " AND ", scope), "rowid DESC"),
            false => (matching("error", &rare, " OR ", scope), "bm25(tool_index)"),
        };
        self.commands(&expression, order, "AND t.succeeded = 0", limit)
    }

    /// Commands with all the words, newest first.
    pub fn commands_with(&self, scope: &SearchScope, words: &str, limit: usize) -> Result<Vec<StoredCommand>> {
        let words = query_terms(words);
        if words.is_empty() {
            return Ok(Vec::new());
        }
        self.commands(&matching("command", &words, " AND ", scope), "rowid DESC", "", limit)
    }

    fn commands(&self, expression: &str, order: &str, only: &str, limit: usize) -> Result<Vec<StoredCommand>> {
        let sql = format!("SELECT rowid FROM tool_index WHERE tool_index MATCH ?1 ORDER BY {order} LIMIT ?2");
        let mut ids = self.conn.prepare_cached(&sql)?;
        let ids: Vec<i64> = ids.query_map(params![expression, limit as i64], |row| row.get(0))?.collect::<Result<_, _>>()?;
        let columns = TOOL_USE.replace(" FROM tool_uses", ", (SELECT work_unit_id FROM steps WHERE id = step_id), (SELECT agent_session_id FROM sessions WHERE id = session_id) FROM tool_uses t");
        let sql = format!("{columns} WHERE t.id = ?1 AND t.kind = 'command' AND t.succeeded IS NOT NULL {only}");
        let mut load = self.conn.prepare_cached(&sql)?;
        let mut found = Vec::new();
        for id in ids {
            found.extend(load.query_map([id], command)?.collect::<Result<Vec<StoredCommand>, _>>()?);
        }
        Ok(found)
    }

    /// Returns at most `limit` tool uses of a session from number `seq` on, in order.
    pub fn tool_uses_from(&self, session: i64, seq: i64, limit: usize) -> Result<Vec<ToolUseRow>> {
        let sql = format!("{TOOL_USE} WHERE session_id = ?1 AND seq >= ?2 ORDER BY seq LIMIT ?3");
        let mut statement = self.conn.prepare_cached(&sql)?;
        Ok(statement.query_map(params![session, seq, limit as i64], tool_use)?.collect::<Result<_, _>>()?)
    }
}

fn matching(column: &str, words: &[String], joined: &str, scope: &SearchScope) -> String {
    let words = words.iter().map(|word| format!("\"{}\"", word.replace('"', ""))).collect::<Vec<_>>().join(joined);
    within(&format!("{column} : ({words})"), scope)
}

fn command(row: &Row) -> rusqlite::Result<StoredCommand> {
    Ok(StoredCommand { tool: tool_use(row)?, unit: row.get(15)?, agent_session_id: row.get(16)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Event, EventKind, Platform, ProjectId};
    use crate::redact::Redactor;
    use crate::store::testing::Scratch;
    use proptest::prelude::*;

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
            repository_url: None,
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
        store
            .write(|tx| {
                events.try_for_each(|e| {
                    crate::ingest::persist::store_event(tx, &redactor.clean(e.clone()), None, &|_| identify(&e))
                })
            })
            .unwrap();
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
        let in_a = Filter { scope: SearchScope::of(1), ..Filter::default() };
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

    #[test]
    fn a_message_between_two_that_match_is_found_and_one_of_a_better_session_comes_first() {
        let word = |ids: &[i64]| ids.iter().map(|id| (*id, 1.0)).collect::<HashMap<i64, f64>>();
        let sessions = [vec![1, 2, 3], vec![4, 5, 6, 7]];
        let ranked = scored(&vec![word(&[1, 3, 4]), word(&[3])], &sessions);
        let order: Vec<i64> = ranked.iter().map(|(id, _)| *id).collect();
        assert_eq!(order[..3], [3, 2, 1], "{ranked:?}");
        assert!(order.contains(&6) && !order.contains(&7));
    }
}
