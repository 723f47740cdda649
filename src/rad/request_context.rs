//! The context of a request: its folder, the settings there, and the store.

use super::request::{ProtocolError, Request};
use crate::config::{Config, environment};
use crate::domains;
use crate::ingest::{self, Caller, Run};
use crate::model::{Domain, Millis, Platform, ProjectId};
use crate::redact::Redactor;
use crate::runtime::{self, Projects, Where};
use crate::store::{PERSON_WAIT, Store};
use anyhow::Result;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

/// The settings of a folder.
pub struct Settings {
    pub config: Config,
    pub redactor: Redactor,
    /// The store after the first write, for the next line of a batch.
    pub store: RefCell<Option<Store>>,
    /// Parsed domains of projects; parsing is slow.
    pub domains: RefCell<HashMap<i64, Rc<Domain>>>,
}

/// The context of one request.
#[derive(Clone, Copy)]
pub struct RequestContext<'a> {
    pub folder: &'a Path,
    pub settings: &'a Settings,
    pub now: Millis,
}

impl<'a> RequestContext<'a> {
    pub fn projects(&self) -> Projects<'a> {
        Projects { config: &self.settings.config, redactor: &self.settings.redactor }
    }

    /// Input for the event pipeline.
    pub fn run(&self) -> Run<'a> {
        Run { now: self.now, ..Run::new(Caller::Program, &self.settings.config, &self.settings.redactor) }
    }

    /// The store for reading.
    pub fn reader(&self) -> Result<Option<Store>, ProtocolError> {
        Ok(Store::open_to_read(&self.settings.config.files.value, PERSON_WAIT)?)
    }

    /// Reads from the store; `None` if nothing was ever recorded.
    pub fn look<T>(&self, at: impl FnOnce(&Store) -> Result<T>) -> Result<Option<T>, ProtocolError> {
        match self.settings.store.borrow().as_ref() {
            Some(store) => Ok(Some(at(store)?)),
            None => Ok(self.reader()?.as_ref().map(at).transpose()?),
        }
    }

    /// Writes to the store.
    pub fn write<T>(&self, work: impl FnOnce(&mut Store) -> Result<T, ProtocolError>) -> Result<T, ProtocolError> {
        let mut kept = self.settings.store.borrow_mut();
        match kept.as_mut() {
            Some(store) => work(store),
            None => work(kept.insert(Store::open(&self.settings.config.files.value, PERSON_WAIT)?)),
        }
    }

    /// A project's domain.
    pub fn domain(&self, store: &Store, project: i64) -> Result<Rc<Domain>, ProtocolError> {
        if let Some(known) = self.settings.domains.borrow().get(&project) {
            return Ok(known.clone());
        }
        let domain = store.domain_of_project(project)?.unwrap_or_default();
        let domain = Rc::new(domains::of(Some(&domain.0), domain.1.as_deref()));
        self.settings.domains.borrow_mut().insert(project, domain.clone());
        Ok(domain)
    }

    /// Returns the store for reading, after draining the spool; `None` if nothing was ever recorded. Events that cannot
    /// be drained, because the database is locked or read-only, stay in the spool.
    pub fn store(&self) -> Result<Option<Store>, ProtocolError> {
        Ok(ingest::reader(&self.run())?)
    }

    /// The identity of the project that a request names: a stored one with that name, the folder's own if it has that
    /// name, or a new one. `None` without a name.
    pub fn identity(&self, request: Request) -> Result<Option<ProjectId>, ProtocolError> {
        let Some(name) = request.name(&["project", "repo_id", "repo"])? else { return Ok(None) };
        if let Some(own) = self.own_identity().filter(|own| own.name == name) {
            return Ok(Some(own));
        }
        let stored = self.look(|store| store.identity_by_name(name))?.flatten();
        let new = || ProjectId {
            keys: vec![format!("name:{name}")],
            name: name.to_string(),
            root: self.folder.display().to_string(),
            ..ProjectId::default()
        };
        Ok(Some(stored.unwrap_or_else(new)))
    }

    /// The identity of the folder's own project.
    pub fn own_identity(&self) -> Option<ProjectId> {
        self.projects().identify(&self.folder.to_string_lossy())
    }

    /// Checks that recording is on for this session, this folder, and the named project.
    pub fn may_record(&self, session: Option<(Platform, &str)>, named: Option<&ProjectId>) -> Result<(), ProtocolError> {
        let begun = environment::session_folder();
        let folders = [self.folder.to_str(), begun.as_ref().and_then(|folder| folder.to_str())];
        match runtime::why_off(&self.projects(), &Where { session, folders, project: named }, self.now) {
            Some(message) => Err(ProtocolError { code: "off", message }),
            None => Ok(()),
        }
    }

    /// The project that a request names, or that of its folder.
    pub fn project(&self, store: &Store, request: Request) -> Result<Option<(i64, String)>, ProtocolError> {
        let Some(identity) = self.identity(request)?.or_else(|| self.own_identity()) else { return Ok(None) };
        let row = store.project_by_identity(&self.settings.redactor.clean(identity))?;
        Ok(row.map(|row| (row.id, row.name)))
    }
}
