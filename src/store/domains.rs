//! Domains of projects and sessions. Rows never change, so a session keeps the domain that it began with.

use super::{Store, Tx};
use crate::model::{DomainText, Millis, ProjectId};
use crate::redact::Clean;
use anyhow::Result;
use rusqlite::{OptionalExtension, params};

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
