//! SQL to find and load each kind of row.

use crate::model::{Filter, Hit, HitKind};
use rusqlite::{Row, ToSql};

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
           FROM prompts p JOIN sessions s ON s.id = p.session_id LEFT JOIN projects pr ON pr.id = s.project_id
           WHERE p.id = ?1 AND p.kind <> 'thinking' AND (?2 IS NULL OR s.project_id = ?2)
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
           WHERE m.id = ?1 AND m.superseded_by IS NULL AND (?2 IS NULL OR m.project_id = ?2)
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
           FROM work_units u JOIN sessions s ON s.id = u.session_id LEFT JOIN projects pr ON pr.id = s.project_id
           WHERE u.id = ?1 AND (?2 IS NULL OR s.project_id = ?2) AND (?3 IS NULL OR s.platform = ?3) AND u.ended_at >= ?4 AND u.started_at < ?5
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
           FROM tool_uses t JOIN sessions s ON s.id = t.session_id LEFT JOIN projects pr ON pr.id = s.project_id
           WHERE t.id = ?1 AND (?2 IS NULL OR s.project_id = ?2) AND (?3 IS NULL OR s.platform = ?3)
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
        Box::new(filter.project),
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
