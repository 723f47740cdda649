//! Projects and domains.

use super::story::story_of;
use super::{Store, Tx};
use crate::model::{About, DomainText, Millis, ProjectId, ProjectRow, TextKind};
use crate::redact::Clean;
use crate::segmentation::UnitId;
use anyhow::Result;
use rusqlite::{Connection, OptionalExtension, Row, params};

/// Maximum projects below a folder.
const BELOW: usize = 20;

const PROJECT: &str = "SELECT id, name, repo_url, root, created_at, about FROM projects";

fn project(row: &Row) -> rusqlite::Result<ProjectRow> {
    let stored: Option<serde_json::Value> = row.get::<_, Option<String>>(5)?.and_then(|json| serde_json::from_str(&json).ok());
    let about = stored.and_then(|stored| Some((serde_json::from_value(stored.clone()).ok()?, stored["looked_at"].as_i64()?)));
    Ok(ProjectRow {
        id: row.get(0)?,
        name: row.get(1)?,
        repo_url: row.get(2)?,
        root: row.get(3)?,
        created_at: row.get(4)?,
        about,
    })
}

/// The project of an identity: the innermost part that was split off, else the one with the most reliable key.
fn known(conn: &Connection, id: &ProjectId) -> Result<Option<i64>> {
    let mut statement = conn.prepare_cached("SELECT project_id FROM project_keys WHERE key = ?1")?;
    let has_url = id.keys.iter().any(|key| key.starts_with("repo:"));
    for key in id.places.iter().chain(&id.keys) {
        let Some(project) = statement.query_row([key], |row| row.get(0)).optional()? else { continue };
        // A first commit can be copied with a repository. It identifies a project without a URL, but not one with a
        // different URL.
        if has_url && key.starts_with("root:") && is_known_by_url(conn, project)? {
            continue;
        }
        return Ok(Some(project));
    }
    Ok(None)
}

fn is_known_by_url(conn: &Connection, project: i64) -> Result<bool> {
    let sql = "SELECT 1 FROM project_keys WHERE project_id = ?1 AND key >= 'repo:' AND key < 'repo;'";
    Ok(conn.prepare_cached(sql)?.exists([project])?)
}

impl Tx<'_> {
    /// Finds or creates the project of an identity, and stores its new keys, so that a repository keeps its project
    /// when it moves or gets its first remote.
    pub fn project(&self, id: &Clean<ProjectId>, at: Millis) -> Result<i64> {
        let known = known(&self.tx, id)?;
        let project = match known {
            Some(project) => {
                let sql =
                    "UPDATE projects SET root = CASE WHEN ?4 AND root <> '' THEN root ELSE coalesce(nullif(?2, ''), root) END,
                             repo_url = coalesce(?3, repo_url) WHERE id = ?1";
                self.tx.prepare_cached(sql)?.execute(params![project, id.root, id.repo_url, id.is_secondary])?;
                project
            }
            None => {
                let sql = "INSERT INTO projects(name, repo_url, root, created_at) VALUES (?1, ?2, ?3, ?4)";
                self.tx.prepare_cached(sql)?.execute(params![id.name, id.repo_url, id.root, at])?;
                self.tx.last_insert_rowid()
            }
        };
        if id.root.is_empty() {
            self.join_folder(project, id)?;
        }
        // A split-off part must not get the keys of the whole project.
        if !self.is_part(project, id)? {
            let mut note =
                self.tx.prepare_cached("INSERT INTO project_keys(key, project_id) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?;
            id.keys.iter().try_for_each(|key| note.execute(params![key, project]).map(drop))?;
        }
        Ok(project)
    }

    /// Joins the project of a folder that is gone, known before its URL was, with the project of the URL.
    fn join_folder(&self, project: i64, id: &ProjectId) -> Result<()> {
        let sql = "SELECT project_id FROM project_keys k WHERE key = ?1 AND project_id <> ?2
                     AND NOT EXISTS (SELECT 1 FROM project_keys o WHERE o.project_id = k.project_id AND substr(o.key, 1, 4) <> 'dir:')";
        for key in id.keys.iter().filter(|key| key.starts_with("dir:")) {
            let other = self.tx.prepare_cached(sql)?.query_row(params![key, project], |row| row.get(0)).optional()?;
            if let Some(other) = other {
                self.merge(other, project)?;
            }
        }
        Ok(())
    }

    fn is_part(&self, project: i64, id: &ProjectId) -> Result<bool> {
        let mut statement = self.tx.prepare_cached("SELECT 1 FROM project_keys WHERE project_id = ?1 AND key = ?2")?;
        for place in &id.places {
            if statement.exists(params![project, place])? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Store {
    /// The project of an identity.
    pub fn project_by_identity(&self, id: &ProjectId) -> Result<Option<ProjectRow>> {
        match known(&self.conn, id)? {
            Some(project) => self.project_by_row(project),
            None => Ok(None),
        }
    }

    /// Reads a project by its row id.
    pub fn project_by_row(&self, id: i64) -> Result<Option<ProjectRow>> {
        Ok(self.conn.prepare_cached(&format!("{PROJECT} WHERE id = ?1"))?.query_row([id], project).optional()?)
    }

    /// The keys of the project with a name; if several projects have it, those of the newest.
    pub fn identity_by_name(&self, name: &str) -> Result<Option<ProjectId>> {
        let sql = format!("{PROJECT} WHERE name = ?1 ORDER BY id DESC LIMIT 1");
        let Some(row) = self.conn.query_row(&sql, [name], project).optional()? else { return Ok(None) };
        let keys = self.project_keys(row.id)?;
        Ok(Some(ProjectId { keys, name: row.name, repo_url: row.repo_url, root: row.root, ..ProjectId::default() }))
    }

    /// All projects, most recently active first, with their number of sessions and time of the last one.
    pub fn projects(&self) -> Result<Vec<(ProjectRow, i64, Option<Millis>)>> {
        let sql = "SELECT p.id, p.name, p.repo_url, p.root, p.created_at, p.about, (SELECT count(*) FROM sessions WHERE project_id = p.id),
                     (SELECT max(active_at) FROM sessions WHERE project_id = p.id)
                   FROM projects p ORDER BY 8 DESC, p.id DESC";
        let row = |row: &Row| Ok((project(row)?, row.get(6)?, row.get(7)?));
        Ok(self.conn.prepare(sql)?.query_map([], row)?.collect::<Result<_, _>>()?)
    }

    /// Projects whose root is below a folder, most recently active first.
    pub fn projects_below(&self, folder: &str) -> Result<Vec<ProjectRow>> {
        let sql = format!(
            "{PROJECT} p WHERE root >= ?1 AND root < ?2
             ORDER BY max(coalesce((SELECT max(active_at) FROM sessions s WHERE s.project_id = p.id), 0),
                          coalesce((SELECT max(ended_at) FROM work_units u WHERE u.project_id = p.id), 0)) DESC LIMIT {BELOW}"
        );
        // The characters between the two bounds begin with the separator.
        let separator = std::path::MAIN_SEPARATOR;
        let from = format!("{}{separator}", folder.trim_end_matches(separator));
        let mut to = from.clone();
        to.pop();
        to.push(char::from(separator as u8 + 1));
        Ok(self.conn.prepare(&sql)?.query_map([from, to], project)?.collect::<Result<_, _>>()?)
    }

    /// Folders of projects and sessions.
    pub fn folders(&self) -> Result<Vec<String>> {
        let sql = "SELECT root FROM projects WHERE root <> '' UNION SELECT cwd FROM sessions WHERE cwd IS NOT NULL";
        Ok(self.conn.prepare(sql)?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }

    /// The keys of a project.
    pub fn project_keys(&self, id: i64) -> Result<Vec<String>> {
        let sql = "SELECT key FROM project_keys WHERE project_id = ?1 ORDER BY key";
        Ok(self.conn.prepare_cached(sql)?.query_map([id], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }

    /// The project of an identity, created if needed.
    pub fn ensure_project(&mut self, id: &Clean<ProjectId>, at: Millis) -> Result<i64> {
        self.write(|tx| tx.project(id, at))
    }

    /// Stores facts about a project's repository.
    pub fn set_about(&mut self, project: i64, about: &About, at: Millis) -> Result<()> {
        let mut stored = serde_json::to_value(about)?;
        stored["looked_at"] = at.into();
        let sql = "UPDATE projects SET about = ?2 WHERE id = ?1";
        self.write(|tx| Ok(tx.tx.execute(sql, params![project, stored.to_string()]).map(drop)?))
    }

    /// Renames a project.
    pub fn rename_project(&mut self, id: i64, name: &Clean<String>) -> Result<()> {
        self.write(|tx| Ok(tx.tx.execute("UPDATE projects SET name = ?2 WHERE id = ?1", params![id, **name])?)).map(drop)
    }

    /// Merges project `from` into `into`: its sessions and keys move. Returns the number of sessions.
    pub fn merge_projects(&mut self, from: i64, into: i64) -> Result<usize> {
        self.write(|tx| tx.merge(from, into))
    }

    /// Moves a session to a project, except units that belong to others.
    pub fn move_session(&mut self, session: i64, into: i64) -> Result<()> {
        self.write(|tx| tx.move_sessions(&[session], into))
    }

    /// Moves a unit with its tool uses to a project. Work on it that follows stays there.
    pub fn move_unit_by_hand(&mut self, session: i64, unit: i64, into: i64) -> Result<()> {
        self.write(|tx| {
            let own = "SELECT project_id FROM sessions WHERE id = ?1";
            let own: Option<i64> = tx.tx.query_row(own, [session], |row| row.get(0))?;
            let into = Some(into).filter(|into| own != Some(*into));
            let used = "SELECT t.id FROM steps s JOIN tool_uses t ON t.session_id = s.session_id AND t.seq BETWEEN s.first_seq AND s.last_seq
                          AND t.step_id = s.id WHERE s.session_id = ?1 AND s.work_unit_id = ?2";
            for tool in tx.ids(used, params![session, unit])? {
                tx.tx.prepare_cached("UPDATE tool_uses SET project_id = ?2 WHERE id = ?1")?.execute(params![tool, into])?;
                tx.index_tool_again(tool)?;
            }
            tx.move_unit(session, unit, into)?;
            if let Some(story) = story_of(&tx.tx, unit)?.filter(|story| story.mark.is_some()) {
                tx.index_unit(&story)?;
            }
            Ok(())
        })
    }

    /// Makes a folder and everything below it a separate project. Its sessions move there, later ones too. Returns the
    /// number of sessions.
    pub fn split_project(&mut self, from: i64, folder: &Clean<String>, name: &Clean<String>, at: Millis) -> Result<usize> {
        self.write(|tx| {
            let sql = "INSERT INTO projects(name, repo_url, root, created_at) SELECT ?2, repo_url, ?3, ?4 FROM projects WHERE id = ?1";
            tx.tx.execute(sql, params![from, **name, **folder, at])?;
            let into = tx.tx.last_insert_rowid();
            let sql = "INSERT INTO project_keys(key, project_id) VALUES (?1, ?2) ON CONFLICT(key) DO UPDATE SET project_id = excluded.project_id";
            tx.tx.execute(sql, params![format!("under:{}", **folder), into])?;
            let below = format!("{}/", folder.trim_end_matches('/'));
            let sessions =
                tx.sessions_where("project_id = ?1 AND (cwd = ?2 OR substr(cwd, 1, length(?3)) = ?3)", &[&from, &**folder, &below])?;
            tx.move_sessions(&sessions, into)?;
            Ok(sessions.len())
        })
    }
}

impl Tx<'_> {
    /// Merges project `from` into `into`; returns the number of its sessions.
    fn merge(&self, from: i64, into: i64) -> Result<usize> {
        let sessions = self.sessions_where("project_id = ?1", &[&from])?;
        self.move_sessions(&sessions, into)?;
        self.tx.execute("UPDATE project_keys SET project_id = ?2 WHERE project_id = ?1", [from, into])?;
        let others = self.ids("SELECT DISTINCT session_id FROM work_units WHERE project_id = ?1", [from])?;
        for table in ["work_units", "prompts", "tool_uses"] {
            self.tx.execute(&format!("UPDATE {table} SET project_id = ?2 WHERE project_id = ?1"), [from, into])?;
        }
        others.iter().try_for_each(|session| self.index_again(*session))?;
        self.move_memories_by_hand(from, into)?;
        self.tx.execute("DELETE FROM projects WHERE id = ?1", [from])?;
        Ok(sessions.len())
    }
}

/// Edits and all tool uses of a unit, by project (NULL: the session's).
const WORK_BY_PROJECT: &str = "SELECT t.project_id, sum(t.kind IN ('edit', 'write') AND t.succeeded IS NOT 0), count(*)
    FROM steps s JOIN tool_uses t ON t.session_id = s.session_id AND t.seq BETWEEN s.first_seq AND s.last_seq AND t.step_id = s.id
    WHERE s.session_id = ?1 AND s.work_unit_id = ?2 GROUP BY t.project_id";
/// Number of a session's last units whose project may still change.
const LAST_UNITS: i64 = 3;

impl Tx<'_> {
    /// Whether a unit is stored in a project that is not its session's.
    pub fn is_unit_in(&self, unit: UnitId, project: i64) -> Result<bool> {
        let UnitId::Stored(unit) = unit else { return Ok(false) };
        Ok(self.tx.prepare_cached("SELECT 1 FROM work_units WHERE id = ?1 AND project_id = ?2")?.exists([unit, project])?)
    }

    /// Assigns the last units of a session to projects, if one of its units belongs to another project.
    pub fn place_units_again(&self, session: i64) -> Result<()> {
        let sql = "SELECT 1 FROM work_units WHERE session_id = ?1 AND project_id IS NOT NULL LIMIT 1";
        if self.tx.prepare_cached(sql)?.exists([session])? { self.place_units(session) } else { Ok(()) }
    }

    /// Assigns the last units of a session to the project in which most of their edits are. If nothing was edited, the
    /// session's project decides if it is a repository, otherwise its commands and reads do.
    pub fn place_units(&self, session: i64) -> Result<()> {
        let sql = "SELECT u.id, u.project_id, (SELECT 1 FROM project_keys k WHERE k.project_id = s.project_id AND substr(k.key, 1, 5) IN ('repo:', 'root:', 'name:')
                          OR k.project_id = s.project_id AND substr(k.key, 1, 4) = 'git:' LIMIT 1) IS NOT NULL
                   FROM work_units u JOIN sessions s ON s.id = u.session_id WHERE u.session_id = ?1 ORDER BY u.id DESC LIMIT ?2";
        let row = |row: &Row| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let units: Vec<(i64, Option<i64>, bool)> =
            self.tx.prepare_cached(sql)?.query_map([session, LAST_UNITS], row)?.collect::<Result<_, _>>()?;
        for (unit, before, is_in_repository) in units {
            let row = |row: &Row| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
            let work: Vec<(Option<i64>, i64, i64)> =
                self.tx.prepare_cached(WORK_BY_PROJECT)?.query_map([session, unit], row)?.collect::<Result<_, _>>()?;
            // Beside edits in a repository, those in the folder above it or outside do not count.
            let is_candidate = |project: &Option<i64>| is_in_repository || project.is_some();
            let most_edited = |only: bool| {
                let edited = work.iter().filter(|(project, edits, _)| *edits > 0 && (!only || is_candidate(project)));
                edited.max_by_key(|(_, edits, _)| *edits)
            };
            let edited = most_edited(true).or_else(|| most_edited(false));
            let used =
                || work.iter().filter(|(project, ..)| !is_in_repository && project.is_some()).max_by_key(|(.., uses)| *uses);
            let project = edited.or_else(used).and_then(|(project, ..)| *project);
            if project.or(before).is_some() {
                self.move_unit(session, unit, project)?;
            }
        }
        Ok(())
    }

    /// Moves a unit with its prompts and memories to a project; `None` is that of its session. What is there already stays
    /// as it is: a unit gets new prompts and closing messages later.
    pub fn move_unit(&self, session: i64, unit: i64, project: Option<i64>) -> Result<()> {
        let sql = "UPDATE work_units SET project_id = ?2, rules_due = 1 WHERE id = ?1 AND project_id IS NOT ?2";
        self.tx.prepare_cached(sql)?.execute(params![unit, project])?;
        let said = "SELECT id FROM prompts WHERE session_id = ?1 AND project_id IS NOT ?3 AND number IN
                      (SELECT p.number FROM steps s JOIN prompts p ON p.id = s.prompt_id WHERE s.session_id = ?1 AND s.work_unit_id = ?2)";
        for prompt in self.ids(said, params![session, unit, project])? {
            self.tx.prepare_cached("UPDATE prompts SET project_id = ?2 WHERE id = ?1")?.execute(params![prompt, project])?;
            self.wait_for_index(TextKind::Message, prompt)?;
        }
        let own = "SELECT id FROM memories WHERE session_id = ?1 AND work_unit_id = ?2
                     AND project_id IS NOT coalesce(?3, (SELECT project_id FROM sessions WHERE id = ?1))";
        for memory in self.ids(own, params![session, unit, project])? {
            let sql =
                "UPDATE memories SET project_id = coalesce(?2, (SELECT project_id FROM sessions WHERE id = ?3)) WHERE id = ?1";
            self.tx.prepare_cached(sql)?.execute(params![memory, project, session])?;
            self.index_memory_again(memory)?;
        }
        Ok(())
    }

    fn ids(&self, sql: &str, values: impl rusqlite::Params) -> Result<Vec<i64>> {
        Ok(self.tx.prepare_cached(sql)?.query_map(values, |row| row.get(0))?.collect::<Result<_, _>>()?)
    }

    fn sessions_where(&self, condition: &str, values: &[&dyn rusqlite::ToSql]) -> Result<Vec<i64>> {
        let sql = format!("SELECT id FROM sessions WHERE {condition}");
        Ok(self.tx.prepare(&sql)?.query_map(values, |row| row.get(0))?.collect::<Result<_, _>>()?)
    }

    /// Moves a person's memories of a project, which belong to no session.
    fn move_memories_by_hand(&self, from: i64, into: i64) -> Result<()> {
        let mut stored = self.tx.prepare_cached("SELECT id FROM memories WHERE project_id = ?1")?;
        let stored: Vec<i64> = stored.query_map([from], |row| row.get(0))?.collect::<Result<_, _>>()?;
        for id in stored {
            self.tx.prepare_cached("UPDATE memories SET project_id = ?2 WHERE id = ?1")?.execute([id, into])?;
            self.index_memory_again(id)?;
        }
        Ok(())
    }

    /// Moves sessions to a project and indexes their rows again, since the index contains the project.
    fn move_sessions(&self, sessions: &[i64], into: i64) -> Result<()> {
        for session in sessions {
            self.tx.prepare_cached("UPDATE sessions SET project_id = ?2 WHERE id = ?1")?.execute(params![session, into])?;
            let sql = "UPDATE memories SET project_id = ?2 WHERE session_id = ?1
                         AND NOT EXISTS (SELECT 1 FROM work_units u WHERE u.id = work_unit_id AND u.project_id IS NOT NULL)";
            self.tx.prepare_cached(sql)?.execute(params![session, into])?;
            self.index_again(*session)?;
        }
        Ok(())
    }
}

impl Store {
    /// Name of a session's domain, and its configuration if custom.
    pub fn domain_of_session(&self, session: i64) -> Result<Option<(String, Option<String>)>> {
        let sql = "SELECT d.name, d.config FROM sessions s JOIN domains d ON d.id = s.domain_id WHERE s.id = ?1";
        Ok(self.conn.prepare_cached(sql)?.query_row([session], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
    }

    /// Name of a project's domain and its configuration, if set.
    pub fn domain_of_project(&self, project: i64) -> Result<Option<(String, Option<String>)>> {
        let sql = "SELECT d.name, d.config FROM projects p JOIN domains d ON d.id = p.domain_id WHERE p.id = ?1";
        Ok(self.conn.prepare_cached(sql)?.query_row([project], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
    }

    /// Sets or, with `None`, clears a project's domain. Existing sessions keep theirs.
    pub fn set_domain(&mut self, project: i64, domain: Option<(&str, Option<&Clean<DomainText>>)>, at: Millis) -> Result<()> {
        self.write(|tx| {
            let id = domain.map(|(name, config)| tx.domain(name, config.map(|text| text.0.as_str()), at)).transpose()?;
            tx.tx.execute("UPDATE projects SET domain_id = ?2 WHERE id = ?1", params![project, id])?;
            Ok(())
        })
    }
}

impl Tx<'_> {
    /// Project and domain of a new session: the domain set for the project, else the one that its repository names.
    pub(super) fn project_and_domain(&self, id: &Clean<ProjectId>, at: Millis) -> Result<(Option<i64>, Option<i64>)> {
        let project = self.project(id, at)?;
        let sql = "SELECT domain_id FROM projects WHERE id = ?1";
        let own: Option<i64> = self.tx.prepare_cached(sql)?.query_row([project], |row| row.get(0))?;
        let named = || id.domain.as_deref().map(|name| self.domain(name, None, at)).transpose();
        Ok((Some(project), own.map_or_else(named, |own| Ok(Some(own)))?))
    }

    /// Returns the row id of a domain, and creates the row if needed.
    pub(super) fn domain(&self, name: &str, config: Option<&str>, at: Millis) -> Result<i64> {
        let sql = "SELECT id FROM domains WHERE name = ?1 AND config IS ?2";
        if let Some(id) = self.tx.prepare_cached(sql)?.query_row(params![name, config], |row| row.get(0)).optional()? {
            return Ok(id);
        }
        let sql = "INSERT INTO domains(name, config, created_at) VALUES (?1, ?2, ?3)";
        self.tx.prepare_cached(sql)?.execute(params![name, config, at])?;
        Ok(self.tx.last_insert_rowid())
    }
}
