//! Hits of a search: passages in a given order, tool uses with words, the newest rows; and commands by their words.

use super::Store;
use super::history::{TOOL_USE, tool_use};
use super::index::within;
use super::passage_index::memory_lines;
use super::query::Query;
use crate::commit_message::commit_message;
use crate::index_text::query_terms;
use crate::model::{Filter, Hit, HitKind, Millis, PassageId, SearchScope, TextKind, ToolUseRow};
use crate::passages::passages;
use anyhow::Result;
use rusqlite::{OptionalExtension, Row, ToSql, params};
use std::collections::{HashMap, HashSet};

/// Number of tool uses above which a word is common. Ranking would visit all of them, and counting takes 1 µs per row.
const COMMON: i64 = 400;
/// Maximum total of rows for the words of a query; the most common words are left out.
const RANKED: i64 = 1000;
/// Maximum rows to examine for ones that pass the filter.
const VISITED: i64 = 8000;

impl Store {
    /// Finds tool uses by words, best first; those with all words, newest first, if all words are common. A file of the
    /// filter counts as words of the path.
    pub fn tool_uses_with(&self, query: &Query, filter: &Filter, limit: usize) -> Result<Vec<Hit>> {
        if !HitKind::Tool.passes(filter) {
            return Ok(Vec::new());
        }
        let counts = self.tool_counts(query, filter)?;
        let (words, rare) = chosen(query, &counts, filter);
        let path = filter.file.as_deref().map(query_terms).filter(|terms| !terms.is_empty());
        let path = path.map(|terms| {
            let all = terms.iter().map(|term| format!("\"{term}\"")).collect::<Vec<_>>().join(" AND ");
            format!("path : ({all})")
        });
        let expression = match (words, path) {
            (Some(words), Some(path)) => format!("({words}) AND {path}"),
            (Some(words), None) => words,
            (None, Some(path)) => within(&path, &filter.scope),
            (None, None) => return self.newest_of_kind(HitKind::Tool, filter, limit),
        };
        let sql = if rare { RANKED_TOOLS } else { LATEST_TOOLS };
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query((expression, VISITED.max(limit as i64)))?;
        self.load(HitKind::Tool, &mut rows, filter, limit)
    }

    /// The newest rows of the given kinds. Prompts have no files, and only memories have types and concepts.
    pub fn newest_hits(&self, kinds: &[HitKind], filter: &Filter, limit: usize) -> Result<Vec<Hit>> {
        let mut hits = Vec::new();
        for kind in kinds.iter().filter(|kind| kind.passes(filter)) {
            match kind {
                HitKind::Tool => hits.extend(self.tool_uses_with(&Query::default(), filter, limit)?),
                kind => hits.extend(self.newest_of_kind(*kind, filter, limit)?),
            }
        }
        hits.sort_by_key(|hit| std::cmp::Reverse(hit.at));
        hits.truncate(limit);
        Ok(hits)
    }

    /// Memories in a given order with given scores, filtered.
    pub fn memories_as_hits(&self, ranked: &[(i64, f64)], filter: &Filter) -> Result<Vec<Hit>> {
        let mut loader = Loader::new(self, HitKind::Memory, filter)?;
        let mut hits = Vec::new();
        for (id, score) in ranked {
            hits.extend(loader.load(*id, *score)?);
        }
        Ok(hits)
    }

    /// Loads passages in a given order, with their texts, until enough of them pass the filter; the same text once.
    pub fn passages_as_hits(&self, ranked: &[(PassageId, f64)], filter: &Filter, limit: usize) -> Result<Vec<(PassageId, Hit)>> {
        let mut loaders: HashMap<HitKind, Loader> = HashMap::new();
        let mut texts: HashSet<String> = HashSet::new();
        let open = filter.asked_at.map(|at| self.open_prompts(&filter.scope, at)).transpose()?.unwrap_or_default();
        let mut hits = Vec::new();
        for (id, score) in ranked {
            if hits.len() == limit {
                break;
            }
            let kind = id.text().kind().hit();
            let is_open = kind == HitKind::Prompt && open.contains(&id.text().row());
            if is_open || !kind.passes(filter) {
                continue;
            }
            let loader = match loaders.entry(kind) {
                std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
                std::collections::hash_map::Entry::Vacant(new) => new.insert(Loader::new(self, kind, filter)?),
            };
            let own = |hit: &Hit| filter.without_session.as_ref().is_some_and(|own| *own == hit.session);
            let Some(mut hit) = loader.load(id.text().row(), *score)?.filter(|hit| !own(hit)) else { continue };
            let Some(passage) = passage(&hit, *id) else { continue };
            if texts.insert(passage.clone()) {
                hit.passage = Some(passage);
                hits.push((*id, hit));
            }
        }
        Ok(hits)
    }

    /// The prompts that are being answered: the last ones of sessions that were active in the hour before.
    fn open_prompts(&self, scope: &SearchScope, at: Millis) -> Result<HashSet<i64>> {
        const HOUR: Millis = 3_600_000;
        // With projects, their sessions are found by an index.
        let among = if scope.is_all() { "?2 IS NULL" } else { "s.project_id IN (SELECT value FROM json_each(?2))" };
        let sql = format!(
            "SELECT p.id FROM sessions s JOIN prompts p ON p.id =
               (SELECT id FROM prompts WHERE session_id = s.id ORDER BY number DESC, id DESC LIMIT 1)
             WHERE {among} AND s.active_at >= ?1 AND s.ended_at IS NULL AND p.kind = 'prompt'"
        );
        let mut statement = self.conn.prepare_cached(&sql)?;
        Ok(statement.query_map(params![at - HOUR, scope.json()], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }

    /// Number of tool uses with each word, counted up to [`COMMON`].
    fn tool_counts(&self, query: &Query, filter: &Filter) -> Result<Vec<i64>> {
        let sql = "SELECT count(*) FROM (SELECT 1 FROM tool_index WHERE tool_index MATCH ?1 LIMIT ?2)";
        let mut statement = self.conn.prepare_cached(sql)?;
        let count = |wanted: &String| {
            let one = within(&format!("- scope : {wanted}"), &filter.scope);
            Ok(statement.query_row((one, COMMON + 1), |row| row.get(0))?)
        };
        query.wanted.iter().map(count).collect()
    }

    /// Loads the newest rows of each project.
    fn newest_of_kind(&self, kind: HitKind, filter: &Filter, limit: usize) -> Result<Vec<Hit>> {
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
}

/// Loads rows that pass a filter.
struct Loader<'a> {
    store: &'a Store,
    kind: HitKind,
    statement: rusqlite::CachedStatement<'a>,
    filter: Vec<Box<dyn rusqlite::ToSql>>,
}

impl<'a> Loader<'a> {
    fn new(store: &'a Store, kind: HitKind, filter: &Filter) -> Result<Loader<'a>> {
        Ok(Loader { store, kind, statement: store.conn.prepare_cached(sql(kind).load)?, filter: values(filter) })
    }

    fn load(&mut self, id: i64, score: f64) -> Result<Option<Hit>> {
        let bound = std::iter::once(&id as &dyn rusqlite::ToSql).chain(self.filter.iter().map(|value| value.as_ref()));
        let bound: Vec<&dyn rusqlite::ToSql> = bound.collect();
        let row = |row: &Row| Ok((hit(self.kind, score, row)?, row.get::<_, Option<String>>(15)?));
        let Some((mut hit, of_team)) = self.statement.query_row(bound.as_slice(), row).optional()? else { return Ok(None) };
        if let Some(uuid) = of_team {
            hit.team = self.store.team_origins(&[&uuid])?.into_values().next();
        }
        Ok(Some(hit))
    }
}

/// The passage of a hit's text; `None` if the text has changed.
fn passage(hit: &Hit, id: PassageId) -> Option<String> {
    let text = match id.text().kind() {
        TextKind::Message | TextKind::Unit => hit.text.clone(),
        TextKind::Memory if hit.more.is_empty() => hit.text.clone(),
        TextKind::Memory => format!("{}\n{}", hit.text, hit.more),
        TextKind::Commit => commit_message(&hit.text)?,
    };
    let range = passages(&text).into_iter().nth(id.number())?;
    Some(text[range].to_string())
}

/// The words to search for: the rare ones, or all if all are common; `None` for a query without words. The flag tells
/// that they are rare, so that ranking by them is cheap.
fn chosen(query: &Query, counts: &[i64], filter: &Filter) -> (Option<String>, bool) {
    let narrow =
        |words: &[&String], join: &str| Some(within(&format!("- scope : ({})", query.expression(words, join)), &filter.scope));
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
    let common: Vec<&String> = common.into_iter().map(|(word, _)| word).collect();
    let all: Vec<&String> = query.wanted.iter().collect();
    match (found.is_empty(), common.is_empty(), all.is_empty()) {
        (false, ..) => (narrow(&found, " OR "), true),
        (_, false, _) => (narrow(&common, " AND "), false),
        (_, _, false) => (narrow(&all, " OR "), false),
        _ => (None, false),
    }
}

const RANKED_TOOLS: &str =
    "SELECT rowid, -bm25(tool_index, 2.0, 2.0, 1.5, 1.0, 0.0) FROM tool_index WHERE tool_index MATCH ?1 ORDER BY 2 DESC LIMIT ?2";
const LATEST_TOOLS: &str = "SELECT rowid, 0.0 FROM tool_index WHERE tool_index MATCH ?1 ORDER BY rowid DESC LIMIT ?2";

/// SQL for one kind of row.
pub(super) struct Sql {
    pub newest: Newest,
    /// One row, if it passes the filter (`values`).
    pub load: &'static str,
}

/// Rows by time, newest first.
pub(super) enum Newest {
    OfSession(&'static str),
    OfProject(&'static str),
}

const PROMPTS: Sql = Sql {
    newest: Newest::OfSession("SELECT id, 0.0 FROM prompts WHERE session_id = ?1 ORDER BY number DESC, id DESC LIMIT ?2"),
    load: "SELECT p.id, p.source, p.text, '', NULL, NULL, pr.name, s.agent_session_id, s.platform, p.received_at,
             (SELECT max(work_unit_id) FROM steps WHERE session_id = p.session_id AND prompt_id =
               CASE p.source WHEN 'user' THEN p.id ELSE (SELECT id FROM prompts a WHERE a.session_id = p.session_id AND a.number = p.number AND a.kind = 'prompt') END),
             NULL, NULL, NULL, 'prompt', NULL
           FROM prompts p JOIN sessions s ON s.id = p.session_id LEFT JOIN projects pr ON pr.id = coalesce(p.project_id, s.project_id)
           WHERE p.id = ?1 AND p.kind NOT IN ('thinking', 'taken-back') AND (?2 IS NULL OR coalesce(p.project_id, s.project_id) IN (SELECT value FROM json_each(?2)))
             AND (?3 IS NULL OR s.platform = ?3) AND p.received_at >= ?4 AND p.received_at < ?5 AND ?6 IS NULL AND ?7 IS NULL AND ?8 IS NULL AND ?9 IS NOT NULL",
};

const MEMORIES: Sql = Sql {
    newest: Newest::OfProject("SELECT id, 0.0 FROM memories WHERE (?1 IS NULL OR project_id = ?1) ORDER BY created_at DESC, id DESC LIMIT ?2"),
    load: concat!(
        "SELECT m.id, iif(m.kind = 'open' AND m.content ->> '$.ended' IS NOT NULL, 'ended', m.type), m.title, ",
        memory_lines!(),
        ",
             NULL, NULL, pr.name, coalesce(s.agent_session_id, ''), coalesce(m.platform, ''), m.created_at, m.work_unit_id,
             m.concepts,
             (SELECT json_group_array(path) FROM memory_files WHERE memory_id = m.id),
             CASE WHEN m.provenance <> 'team' THEN m.made_by END, m.kind, CASE WHEN m.provenance = 'team' THEN m.uuid END
           FROM memories m LEFT JOIN sessions s ON s.id = m.session_id LEFT JOIN projects pr ON pr.id = m.project_id
           WHERE m.id = ?1 AND m.superseded_by IS NULL AND (?2 IS NULL OR m.project_id IN (SELECT value FROM json_each(?2)))
             AND (?3 IS NULL OR m.platform = ?3) AND m.created_at >= ?4 AND m.created_at < ?5
             AND (?6 IS NULL OR EXISTS (SELECT 1 FROM memory_files f WHERE f.memory_id = m.id AND (f.path = ?6 OR substr(f.path, -length('/' || ?6)) = '/' || ?6)))
             AND (?7 IS NULL OR m.type = ?7)
             AND (?8 IS NULL OR EXISTS (SELECT 1 FROM json_each(m.concepts) WHERE value = ?8))
             AND CASE ?9 WHEN '[]' THEN m.kind <> 'open' OR m.content ->> '$.ended' IS NULL
                 ELSE m.kind IN (SELECT value FROM json_each(?9)) END"
    ),
};

const UNITS: Sql = Sql {
    newest: Newest::OfSession("SELECT id, 0.0 FROM work_units WHERE session_id = ?1 ORDER BY id DESC LIMIT ?2"),
    load: "SELECT u.id, u.outcome, coalesce(u.title, u.intent, 'work without a prompt'),
             coalesce((SELECT group_concat(value, char(10)) FROM memories m, json_tree(m.content) WHERE m.session_id = u.session_id AND m.work_unit_id = u.id
               AND m.kind = 'summary' AND m.superseded_by IS NULL AND json_tree.type = 'text' AND key NOT IN ('request') AND path = '$'), ''),
             NULL, NULL, pr.name, s.agent_session_id, s.platform, u.started_at, u.id, NULL,
             (SELECT json_group_array(DISTINCT f.path) FROM steps p JOIN step_files f ON f.step_id = p.id WHERE p.session_id = u.session_id AND p.work_unit_id = u.id AND f.edits > 0),
             NULL, 'unit', NULL
           FROM work_units u JOIN sessions s ON s.id = u.session_id LEFT JOIN projects pr ON pr.id = coalesce(u.project_id, s.project_id)
           WHERE u.id = ?1 AND (?2 IS NULL OR coalesce(u.project_id, s.project_id) IN (SELECT value FROM json_each(?2))) AND (?3 IS NULL OR s.platform = ?3) AND u.ended_at >= ?4 AND u.started_at < ?5
             AND (?6 IS NULL OR EXISTS (SELECT 1 FROM steps p JOIN step_files f ON f.step_id = p.id WHERE p.session_id = u.session_id AND p.work_unit_id = u.id
               AND (f.path = ?6 OR substr(f.path, -length('/' || ?6)) = '/' || ?6)))
             AND ?7 IS NULL AND ?8 IS NULL AND ?9 IS NOT NULL",
};

const TOOL_USES: Sql = Sql {
    newest: Newest::OfSession("SELECT id, 0.0 FROM tool_uses WHERE session_id = ?1 ORDER BY seq DESC LIMIT ?2"),
    load: "SELECT t.id, t.kind, coalesce(t.content, t.path, t.tool_name),
             trim(coalesce(t.metadata ->> 'description', '') || ' ' || coalesce(t.metadata ->> 'response', iif(t.succeeded = 0, t.outcome, NULL), '')),
             t.path, t.succeeded, pr.name, s.agent_session_id, s.platform, t.received_at,
             (SELECT work_unit_id FROM steps WHERE id = t.step_id), NULL, NULL, NULL, 'tool', NULL
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
        team: None,
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
